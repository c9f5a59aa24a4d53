"""Hot backup, restore, and compaction (VACUUM) of a database file, the only way a file shrinks.

A backup is read in one SQLite transaction, so it is the file at one moment, and writers do not wait for it. It is
written next to its target (`shop.db.part`), checked, made durable, and renamed. A process that is killed leaves at most
that part, which the next backup to the same target replaces. A lock on the part keeps two backups apart.

A backup is in SQLite's rollback mode, not in WAL mode: it is a single file that can be read from any medium. Opening it
as a database converts it to WAL mode.

An update changes a backup in place, in one transaction. While it runs, and after a kill, SQLite's journal is next to
the backup (`shop.db-journal`), with what SQLite needs to undo the change. So anyone who reads the backup, or puts
another file in its place, first lets SQLite undo it.

A restore into an existing database is one transaction. So processes that have the file open see either all of the old
content or all of the new, and a killed restore has changed nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import apsw

from isotone.errors import DamagedLog, StorageBusy, StorageCorrupt, StorageError, UsageError
from isotone.file_lock import MARK
from isotone.folder_sync import sync_folder
from isotone.output_paths import OutputPath, check_output, check_outputs, is_write_protected
from isotone.storage import log_check
from isotone.storage.checksums import Sums
from isotone.storage.file import (
    APPLICATION_ID,
    FORMAT,
    MEMORY_MAP,
    check_exists,
    check_is_ours,
    connect,
    format_of,
    give_number,
    header_of,
    is_read_only,
    mark_log,
    storage_error,
    to_present_format,
    verify,
)
from isotone.storage.file_upgrade import copy_progress, reached_in
from isotone.storage.interface import BUSY_TIMEOUT, OrderedStore
from isotone.storage.log_frames import has_log, target_of
from isotone.storage.sqlite import SQLiteStore

Progress = Callable[[int, int], object]
"""Called with the finished bytes and the total bytes."""

IsEarlier = Callable[[str], bool]
"""Decides by its tables whether a database is an earlier state of the one that is backed up."""


def _never(_: str) -> bool:
    """Never treat a database as an earlier state: replace only backups that no program has opened."""
    return False


_STEP: Final = 512  # pages copied between two calls of the progress
_LOOK: Final = 0.2  # seconds between two checks of what SQLite is writing
_ROWS: Final = 1000  # entries of a database in memory that are written at once
_PART_ENDING: Final = ".part"
_MARK_ENDING: Final = _PART_ENDING + MARK
"""An empty file next to a part. It marks the part as an unfinished copy, not somebody's database."""
_DAMAGED: Final = (
    "{path} is damaged ({what}), so it was not copied: `isotone check` says what is wrong; use another backup, "
    "or save the rest with `isotone repair`"
)


def back_up(
    source: str,
    target: str,
    *,
    is_earlier: IsEarlier = _never,
    force: bool = False,
    compact: bool = False,
    update: bool = False,
    progress: Progress | None = None,
) -> int:
    """Copy a file as it is at one moment; returns the size of the copy.

    `compact` leaves out free pages. `update` brings an earlier backup at the target up to date, and writes only the
    differences.
    """
    check_exists(source)
    if Path(target).exists() and Path(target).samefile(source):
        raise UsageError(f"{target} is the database itself; give another file")
    _check_target(target, is_earlier, force=force, update=update, source=source)
    if update and Path(target).exists():
        with _part_of(target, force=True):  # its lock keeps other backups away
            return _update(source, target, progress)
    with _reading(source) as origin, _part_of(target, force=force or update) as part:
        _undo_interrupted_update(target)
        if compact:
            part.close()
            _vacuum_into(origin, part.path, progress)
            part.open()
        else:
            _copy_pages(origin, part.connection, progress)
        part.finish(source)
    return Path(target).stat().st_size


def write_out(
    store: OrderedStore, target: str, *, is_earlier: IsEarlier, force: bool = False
) -> int:
    """Write a database in memory to a file; returns its size. The caller holds its lock."""
    _check_target(target, is_earlier, force=force)
    with _part_of(target, force=force) as part:
        _undo_interrupted_update(target)
        part.close()
        with suppress(FileNotFoundError):
            Path(part.path).unlink()
        copy = SQLiteStore(part.path, durability="none")
        try:
            for tree in store.trees():
                _copy_tree(store, copy, tree)
        finally:
            copy.close()
        part.open()
        part.finish(target)
    return Path(target).stat().st_size


def restore(
    backup: str, target: str, *, force: bool = False, progress: Progress | None = None
) -> int:
    """Turn a backup into a database, after checking it; returns its size.

    With `force`, an existing database at the target gets the backup's content instead of its own.
    """
    _check_is_file(backup)
    with _reading_backup(backup) as origin:
        exists = Path(target).exists()
        if exists and Path(target).samefile(backup):
            raise UsageError(f"{target} is the backup itself; give another file")
        if exists and not force:
            raise UsageError(
                f"{target} exists; --force (force=True) replaces its content with that of {backup}"
            )
        if is_write_protected(target):
            raise UsageError(f"{target} is read-only, and is not replaced; give another file")
        if not exists:
            _check_leftovers(target, force=force)
        _check_content(origin, backup)
        if exists and _is_usable(target):
            _replace_content(origin, target, progress)
        else:
            with _part_of(target, force=force) as part:
                _copy_pages(origin, part.connection, progress)
                _drop_log(target)
                part.finish(backup)
    return Path(target).stat().st_size


def compact(path: str, progress: Progress | None = None) -> tuple[int, int]:
    """Rewrite a file without its free pages (VACUUM); returns its size before and after.

    Readers continue; writers wait. Raises `StorageBusy` if another process writes to the file, or is still reading it.
    """
    check_exists(path)
    with _reading(path, snapshot=False) as connection:
        before = _size(connection)
        used = _used(connection)
        log = Path(f"{path}-wal")
        connection.execute("PRAGMA temp_store=FILE")  # it may not fit into memory
        _in_thread(connection, lambda: connection.execute("VACUUM"), log, used, progress, path)
        ((is_busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        after = _size(connection)
        if is_busy:
            raise StorageBusy(
                f"{path} is compact, but another process is reading it, so the file shrinks when it has "
                "ended: close it there, and run this again"
            )
    return before, after


# Checks


def _check_is_file(path: str) -> None:
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path}")


def _check_target(
    target: str,
    is_earlier: IsEarlier,
    *,
    force: bool,
    update: bool = False,
    source: str | None = None,
) -> None:
    check_outputs(
        OutputPath("the target", target, beside=(_PART_ENDING,), is_database=True),
        inputs={"the database": source},
    )
    exists = Path(target).exists()
    if exists and not (force or update):
        raise UsageError(f"{target} exists; --force (force=True) replaces it")
    if not exists:
        # with `update` as well: the journal of a backup that was moved away can still be needed
        _check_leftovers(target, force=force)
    if has_log(target):
        raise UsageError(
            f"{target}-wal exists, so {target} is a database that is in use, or was not closed; "
            "give another target, or use restore to replace a database"
        )
    if exists:
        _check_is_backup(target, is_earlier)


def _check_is_backup(path: str, is_earlier: IsEarlier) -> None:
    """Raise `UsageError` for anything but an empty file, a backup, and a database that is an earlier state of the source."""
    header = header_of(path)
    if header is None:
        if _is_not_empty(path):
            raise UsageError(
                f"{path} is no database, so it is no earlier backup: give another target, or delete it first"
            )
        return
    if header.application_id != APPLICATION_ID:
        raise UsageError(
            f"{path} is a database of another program, so it is not replaced: give another target, or delete it first"
        )
    if header.is_in_wal_mode and not is_earlier(path):
        raise UsageError(
            f"{path} is a database with other tables, not an earlier backup of this one: give another target, or use "
            "restore to replace its content"
        )


def _is_not_empty(path: str) -> bool:
    file = Path(path)
    return file.exists() and file.stat().st_size > 0


def _check_leftovers(target: str, *, force: bool) -> None:
    """Raise if a target that does not exist has a leftover log or journal, which SQLite would apply to a new file."""
    for end in ("-wal", "-journal"):
        if not force and _is_not_empty(target + end):
            raise UsageError(
                f"{target}{end} is the log of another database, and would be applied to this one: "
                "move it away; --force (force=True) deletes it"
            )


def _drop_log(path: str) -> None:
    """Delete the log of the replaced database, which SQLite would apply to the new one."""
    for end in ("-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            Path(path + end).unlink()


def _undo_interrupted_update(backup: str) -> None:
    """Let SQLite undo a killed update before another file takes the place of the backup.

    The journal must not outlive the backup, because SQLite would apply it to the other file. Without the journal, the
    backup is damaged.
    """
    journal = Path(f"{backup}-journal")
    if Path(backup).exists() and _is_not_empty(str(journal)):
        with suppress(StorageCorrupt), _reading_backup(backup):
            pass
    with suppress(FileNotFoundError):
        journal.unlink()  # SQLite did not need it


def _check_content(connection: apsw.Connection, path: str) -> None:
    """Verify a backup or a copy; `path` is the file to name in an error."""
    try:
        found = connection.execute("PRAGMA quick_check(1)").get
    except apsw.Error as error:
        raise storage_error(error, path) from error
    if found != "ok":
        raise StorageCorrupt(_DAMAGED.format(path=path, what=found))
    if format_of(connection) < 2:
        return  # it has no checksums
    for name in _tables(connection, "main"):
        if not _is_intact(connection, name):
            what = f"an entry of {name} does not have its checksum"
            raise StorageCorrupt(_DAMAGED.format(path=path, what=what))


def _is_intact(connection: Any, name: str) -> bool:
    tree = name.removeprefix(_PREFIX)
    sums = Sums(tree)
    reached = reached_in(connection, tree)
    for columns in ("key, value, row_sum", "key, key_sum"):
        rows = connection.execute(f'SELECT {columns} FROM main."{name}"')
        if any(True for _ in sums.damaged(rows, reached)):
            return False
    return True


def _is_usable(path: str) -> bool:
    """Whether a file is an Isotone database that SQLite can write to; a damaged one is replaced as a whole."""
    if Path(path).stat().st_size and header_of(path) is None:
        raise StorageCorrupt(
            f"{path} is not an Isotone file, so it is not replaced: delete it first"
        )
    try:
        connect(path, "disk", BUSY_TIMEOUT, 0).close()
    except DamagedLog:
        return False
    except StorageCorrupt as error:
        if isinstance(error.__cause__, apsw.Error):
            return False
        raise  # another program's database
    return True


# Open


@contextmanager
def _reading(path: str, *, snapshot: bool = True) -> Iterator[apsw.Connection]:
    """A connection to a database, by default in a read transaction, which fixes what it sees."""
    connection = connect(path, "disk", BUSY_TIMEOUT, MEMORY_MAP)
    try:
        if snapshot:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018 - begins it
        yield connection
    except apsw.Error as error:
        raise storage_error(error, path, number=connection.system_errno) from error
    finally:
        connection.close(True)


@contextmanager
def _reading_backup(path: str) -> Iterator[apsw.Connection]:
    """A connection to a backup. The backup is not changed, wherever it is, and no update can change it meanwhile."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    check_is_ours(path)
    connection: apsw.Connection | None = None
    try:
        with log_check.opening(
            path, is_synced=True, is_writable=not is_read_only(path), may_change=False
        ):
            address = f"{Path(path).absolute().as_uri()}?{_access_to(path)}"
            connection = apsw.Connection(address, flags)
            connection.set_busy_timeout(round(BUSY_TIMEOUT * 1000))
            connection.execute("BEGIN")
            if verify(connection, path):
                raise StorageCorrupt(f"{path} is empty: use another backup")
        yield connection
    except apsw.BusyError:
        raise StorageBusy(f"another process is updating {path}; wait until it is done") from None
    except apsw.ReadOnlyError as error:
        raise StorageError(
            f"an update of {path} was interrupted, and cannot be undone where nothing can be written: "
            f"copy {path} and {path}-journal to a folder that can be written"
        ) from error
    except apsw.Error as error:
        raise storage_error(error, path) from error
    finally:
        if connection is not None:
            connection.close(True)


def _access_to(path: str) -> str:
    """How SQLite opens a backup: with locks, and able to undo a killed update, if anybody could update it there.

    In WAL mode without a log, neither is needed, and SQLite would create a log.
    """
    if has_log(path):
        return "mode=ro"
    if os.access(path, os.R_OK | os.W_OK) and not _is_in_wal_mode(path):
        return "mode=rw"
    return "mode=ro" if _is_not_empty(f"{target_of(path)}-journal") else "mode=ro&immutable=1"


def _is_in_wal_mode(path: str) -> bool:
    header = header_of(path)
    return header is not None and header.is_in_wal_mode


class _PartFile:
    """An unfinished copy, locked against other processes."""

    def __init__(self, target: str, *, force: bool) -> None:
        self.target = target
        self.path = f"{target}{_PART_ENDING}"
        self._mark = Path(f"{target}{_MARK_ENDING}")
        self._force = force
        self.is_named = False
        self.is_of_another = False
        self.connection: Any = None

    def check(self) -> None:
        """Raise `UsageError` if a file is at the part's path that is not an unfinished backup."""
        file, header = Path(self.path), header_of(self.path)
        with suppress(FileNotFoundError):
            if file.stat().st_nlink > 1 and Path(self.target).exists():
                # a process was killed while naming its part; this name is also the finished target
                file.unlink()
                return
        if self._mark.exists():
            return
        if not file.exists():
            self._check_logs()
        if not _is_not_empty(self.path):
            return
        if header is None or header.application_id != APPLICATION_ID or header.is_in_wal_mode:
            what = "no unfinished backup" if header is None else "a database"
            raise UsageError(
                f"{self.path} is {what}, and the backup would be written there until it is complete: give another "
                "target, or delete that file"
            )

    def _check_logs(self) -> None:
        """Raise `UsageError` for a log without its database, which SQLite would apply to the part, or delete."""
        for end in ("-wal", "-journal"):
            if _is_not_empty(self.path + end):
                raise UsageError(
                    f"{self.path}{end} is the log of a database, and the backup would be written beside it: give another "
                    "target, or move that file away"
                )

    def open(self) -> None:
        """Open and lock the part. Deletes a part that a killed process has left."""
        with suppress(OSError):  # SQLite will report the reason
            self._mark.touch()
        try:
            self._lock()
        except apsw.BusyError:
            self.close()
            self.is_of_another = True
            raise StorageBusy(
                f"another process is writing {self.target}; wait until it is done"
            ) from None
        except (apsw.NotADBError, apsw.CorruptError):
            self.close()
            Path(self.path).unlink()
            self._lock()

    def _lock(self) -> None:
        self.connection = apsw.Connection(self.path)
        for pragma in ("locking_mode=EXCLUSIVE", "synchronous=OFF", "journal_mode=OFF"):
            self.connection.execute(f"PRAGMA {pragma}").get  # noqa: B018 - reading executes it
        self.connection.execute("BEGIN EXCLUSIVE; COMMIT")

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close(True)
            self.connection = None

    def forget(self) -> None:
        """Delete the mark, unless another process uses the part."""
        if not self.is_of_another:
            with suppress(OSError):
                self._mark.unlink()

    def finish(self, source: str) -> None:
        """Check the part, make it durable, and rename it to the target. Damage is reported for the source."""
        self.connection.execute("PRAGMA journal_mode=DELETE").get  # noqa: B018 - reading executes it
        _check_content(self.connection, source)
        if format_of(self.connection) == FORMAT:
            give_number(self.connection)
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            os.fsync(descriptor)
            if os.name != "nt":
                # before the descriptor is closed, which ends SQLite's lock on the file
                self._name()
        finally:
            os.close(descriptor)
        if os.name == "nt":
            self.close()  # Windows cannot rename an open file
            self._name()
        sync_folder(Path(self.target).absolute().parent)

    def _name(self) -> None:
        if self._force or not self._link():
            Path(self.path).replace(self.target)
        self.is_named = True

    def _link(self) -> bool:
        """Name the part by a hard link, which, unlike a rename, never replaces another file.

        Returns False on a file system without hard links. Raises `FileExistsError`.
        """
        try:
            os.link(self.path, self.target)
        except FileExistsError:
            raise
        except OSError:
            if Path(self.target).exists():
                raise FileExistsError from None
            return False
        Path(self.path).unlink()
        return True


@contextmanager
def _part_of(target: str, *, force: bool) -> Iterator[_PartFile]:
    check_output(OutputPath("the target", target, beside=(_PART_ENDING,), is_database=True))
    part = _PartFile(target, force=force)
    part.check()
    try:
        part.open()
        yield part
    except FileExistsError:
        raise UsageError(f"{target} exists; --force (force=True) replaces it") from None
    except apsw.Error as error:
        raise storage_error(error, target) from error
    finally:
        if not (part.is_named or part.is_of_another):
            with suppress(OSError):  # it does not exist, or its folder cannot be written
                Path(part.path).unlink()
        part.close()
        part.forget()


# Copy


def _copy_pages(
    origin: apsw.Connection, target: apsw.Connection, progress: Progress | None
) -> None:
    """Copy all pages. The transaction on the origin keeps writes of other processes out of the copy."""
    page = origin.execute("PRAGMA page_size").get
    with target.backup("main", origin, "main") as copying:
        while not copying.done:
            copying.step(_STEP)
            if progress is not None:
                total = copying.page_count
                progress((total - copying.remaining) * page, total * page)


def _copy_tree(store: OrderedStore, copy: SQLiteStore, tree: str) -> None:
    entries: list[tuple[bytes, bytes]] = []
    with copy.transaction():
        copy.create_tree(tree)
        for entry in store.range(tree, b"", None):
            entries.append(entry)
            if len(entries) == _ROWS:
                copy.add(tree, entries)
                entries = []
        copy.add(tree, entries)


def _replace_content(origin: apsw.Connection, target: str, progress: Progress | None) -> None:
    if format_of(origin) < FORMAT:
        # Programs that have the target open expect the current format.
        with _part_of(target, force=True) as part:
            _copy_pages(origin, part.connection, progress)
            part.connection.execute("BEGIN")
            to_present_format(part.connection)
            part.connection.execute("COMMIT")
            _replace_content(part.connection, target, progress)
        return
    with _reading(target, snapshot=False) as connection:
        connection.execute("BEGIN IMMEDIATE")
        mark_log(connection)  # before the copy's first page has another number
        connection.execute("COMMIT")
        _copy_pages(origin, connection, progress)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get  # noqa: B018 - reading executes it


def _vacuum_into(origin: apsw.Connection, path: str, progress: Progress | None) -> None:
    with suppress(FileNotFoundError):
        Path(path).unlink()
    used = _used(origin)
    origin.execute("COMMIT")  # VACUUM has its own transaction
    _in_thread(
        origin, lambda: origin.execute("VACUUM INTO ?", (path,)), Path(path), used, progress, path
    )


def _in_thread(
    connection: apsw.Connection,
    work: Callable[[], object],
    grows: Path,
    total: int,
    progress: Progress | None,
    path: str,
) -> None:
    """Run an SQLite statement in a thread, so that the caller can watch the file grow and interrupt it."""
    errors: list[apsw.Error] = []
    stopped, done = threading.Event(), threading.Event()

    def run() -> None:
        try:
            if not stopped.is_set():
                work()
        except apsw.Error as error:
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, name="isotone-copy", daemon=True)
    try:
        thread.start()  # Ctrl-C may arrive while this waits for the thread to begin
        is_done = False
        while not is_done:
            is_done = done.wait(_LOOK)
            if progress is not None:
                with suppress(FileNotFoundError):
                    progress(min(grows.stat().st_size, total), total)
    except BaseException as error:
        stopped.set()
        has_begun = not isinstance(error, RuntimeError) or thread.ident is not None
        while has_begun and not done.wait(_LOOK / 10):
            # repeated, because the statement may not have begun the first time
            connection.interrupt()
        raise
    if errors:
        if isinstance(errors[0], apsw.BusyError | apsw.LockedError):
            raise StorageBusy(
                f"another process is writing to {path}: stop it, or try again when it is idle"
            ) from errors[0]
        raise storage_error(errors[0], path, number=connection.system_errno) from errors[0]


def _size(connection: apsw.Connection) -> int:
    size: int = connection.execute(
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    ).get
    return size


def _used(connection: apsw.Connection) -> int:
    used: int = connection.execute(
        "SELECT (page_count - freelist_count) * page_size"
        " FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
    ).get
    return used


# Update an earlier backup


def _update(source: str, target: str, progress: Progress | None) -> int:
    """Change a backup to the present state of the source, in one SQLite transaction."""
    with _reading_backup(target):
        pass  # raises unless it is an Isotone database
    connection = apsw.Connection(target, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    try:
        connection.set_busy_timeout(round(BUSY_TIMEOUT * 1000))
        connection.execute("PRAGMA temp_store=FILE")
        # Opening through `connect` recovers a log that a crash has left, with the right settings.
        connect(source, "disk", BUSY_TIMEOUT, 0).close()
        connection.execute("ATTACH ? AS source", (f"{Path(source).absolute().as_uri()}?mode=rw",))
        connection.execute("BEGIN IMMEDIATE")
        _update_tables(connection, progress)
        _check_content(connection, source)
        connection.execute("COMMIT")
    except apsw.BusyError:
        raise StorageBusy(f"another process has {target} open; wait until it is done") from None
    except apsw.Error as error:
        raise storage_error(error, target, number=connection.system_errno) from error
    finally:
        connection.close(True)  # rolls back whatever is uncommitted
    return Path(target).stat().st_size


# Only our trees; a replicator such as Litestream may have its own tables in a file.
_PREFIX: Final = "tree_"
_TABLES: Final = "SELECT name, sql FROM {}.sqlite_schema WHERE type = 'table' AND name GLOB 'tree_*' ORDER BY name"


def _update_tables(connection: apsw.Connection, progress: Progress | None) -> None:
    to_present_format(connection)
    copy_progress(connection)
    wanted = _tables(connection, "source")
    present = _tables(connection, "main")
    total: int = connection.execute(
        "SELECT page_count * page_size FROM pragma_page_count('source'), pragma_page_size('source')"
    ).get
    for name in present.keys() - wanted.keys():
        connection.execute(f'DROP TABLE main."{name}"')
    for done, (name, sql) in enumerate(wanted.items(), 1):
        if name not in present:
            connection.execute(sql)
        for statement in _DIFFERENCES:
            connection.execute(statement.format(table=f'"{name}"'))
        if progress is not None:
            progress(total * done // len(wanted), total)


def _tables(connection: Any, schema: str) -> dict[str, str]:
    return dict(connection.execute(_TABLES.format(schema)).fetchall())


# SQLite walks both trees in key order, and writes only the rows that differ.
_DIFFERENCES: Final = (
    "DELETE FROM main.{table} WHERE NOT EXISTS"
    " (SELECT 1 FROM source.{table} AS s WHERE s.key = main.{table}.key)",
    "INSERT INTO main.{table} SELECT s.key, s.value, s.key_sum, s.row_sum FROM source.{table} AS s"
    " LEFT JOIN main.{table} AS m ON m.key = s.key"
    " WHERE m.value IS NOT s.value OR m.key_sum IS NOT s.key_sum OR m.row_sum IS NOT s.row_sum"
    " ON CONFLICT DO UPDATE SET value = excluded.value, key_sum = excluded.key_sum,"
    " row_sum = excluded.row_sum",
)
