"""Opens a file: application id, format version, PRAGMAs, durability; `StorageBusy`, `StorageFull`, `StorageCorrupt`.

The file is an SQLite database in WAL mode. Two fields of its header identify it: the application id (`ISOT` in ASCII),
and the user version. The lowest byte of the user version is the version of the format; the others are a random number of
the database, by which `log_origin` recognizes its log. A file with another application id or a later format is refused
before anything in it is changed.

The guarantee of each durability after a commit has returned:

    disk     it survives a power cut: the log is synced at each commit (synchronous=FULL)
    process  it survives the death of the process. A power cut may lose the last commits, but does not damage
             the file: the log is synced before each checkpoint (synchronous=NORMAL)
    none     it survives the death of the process. A power cut may damage the file: nothing is ever synced
             (synchronous=OFF). For data that can be created again.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import apsw

from isotone.errors import (
    IsotoneError,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    UsageError,
)
from isotone.first_bytes import first_bytes
from isotone.storage import file_upgrade, log_check
from isotone.storage.interface import NOT_BYTES, NoSuchTree
from isotone.storage.log_frames import target_of
from isotone.storage.log_origin import NUMBER_FROM

Durability = Literal["disk", "process", "none"]

MEMORY: Final = ":memory:"
_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100  # bytes of a file
_FIRST_PAGE: Final = 108  # bytes of the file header and the header of the first page
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
APPLICATION_ID: Final = 0x49534F54
FORMAT: Final = 2

SYNCHRONOUS: Final[dict[Durability, str]] = {"disk": "FULL", "process": "NORMAL", "none": "OFF"}
PAGE_SIZE: Final = 8192
_STATEMENTS: Final = 256
_CREATING: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE  # apsw's own flags
MEMORY_MAP: Final = 2 << 30  # bytes of the file that are mapped into memory
LOG_PAGES: Final = 1000  # pages of the log; a commit copies a longer one into the file
_RETRY_PAUSE: Final = 0.005
LOCK_PAUSE: Final = 0.0005  # seconds between two attempts to take a lock

# docs/design/storage.md has the measurement behind each of these.
_SETTINGS: Final = (
    "PRAGMA cache_size=-8192",
    f"PRAGMA wal_autocheckpoint={LOG_PAGES}",
    "PRAGMA journal_size_limit=67108864",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
)
# On macOS a plain fsync leaves the bytes in the drive's cache. These two settings have no effect elsewhere.
_THROUGH_THE_DRIVE: Final = ("PRAGMA fullfsync=ON", "PRAGMA checkpoint_fullfsync=ON")


class Header(NamedTuple):
    """What the first bytes of an SQLite file say about it. A log next to the file may contain later ones."""

    application_id: int
    is_in_wal_mode: bool


def header_of(path: str) -> Header | None:
    """The header of a file; None if it does not begin like an SQLite file."""
    page = _first_page(path)
    if page is None:
        return None
    return Header(_mark_of(page), page[18:20] == b"\x02\x02")


def check_exists(path: str) -> None:
    """Raise `UsageError` unless there is a file that may be a database. For callers that only read.

    An empty file counts as missing, although opening it for writing makes it a database.
    """
    location = Path(path)
    if not location.exists():
        raise UsageError(f"there is no file {path}")
    _check_path(path)
    if not location.stat().st_size:
        raise UsageError(f"{path} is empty, so it is no database of Isotone: give another file")


def connect(
    path: str,
    durability: Durability,
    busy_timeout: float,
    memory_map: int,
    waiting: Waiting | None = None,
    *,
    read_only: bool = False,
    is_open: bool = False,
) -> apsw.Connection:
    """An open connection to a verified Isotone file. Creates the file if it does not exist.

    With `read_only`, nothing is written to the file. A file of an older format is an exception: it must be upgraded
    first. `is_open` means that another connection of this process has the file open, and so has checked its log.

    Raises `StorageCorrupt` for any other file, `DamagedLog` if the log has commits that SQLite would drop,
    `StorageError` for a file that cannot be used, and `StorageBusy` if another process keeps it locked for
    `busy_timeout` seconds.
    """
    if durability not in get_args(Durability):
        names = ", ".join(get_args(Durability))
        raise UsageError(f"{durability!r} is not a durability; use one of {names}")
    _check_path(path)
    if not read_only:
        _check_names(path)
    is_writable = not is_read_only(path)
    if is_writable:
        check_is_ours(path)
    checked = (
        nullcontext(False)
        if is_open
        else log_check.opening(
            path,
            is_synced=durability == "disk",
            is_writable=is_writable,
            may_change=not read_only,
        )
    )
    with checked as is_cut_off:
        if not is_writable:
            return _connect_read_only(path, memory_map)
        if read_only:
            reading = _connect_for_reading(path, busy_timeout, memory_map)
            if reading is not None:
                return reading
        waiting = waiting or Waiting(busy_timeout)
        connection = _connect(path, durability, busy_timeout, memory_map, waiting)
        if is_cut_off:
            _begin_log(connection, path)
        return connection


def _connect(
    path: str, durability: Durability, busy_timeout: float, memory_map: int, waiting: Waiting
) -> apsw.Connection:
    with _opening(path, partial(storage_error, path=path)) as connection:
        connection.set_busy_handler(waiting)
        _prepare(connection, path, busy_timeout)
        _configure(connection, durability, memory_map)
    return connection


@contextmanager
def _opening(
    name: str, explain: Callable[..., Exception], flags: int = _CREATING
) -> Iterator[apsw.Connection]:
    """A connection that is closed if the block fails; `explain` makes our error of SQLite's."""
    connection = None
    try:
        connection = apsw.Connection(name, flags=flags, statementcachesize=_STATEMENTS)
        yield connection
    except BaseException as error:
        number = 0
        if connection is not None:
            number = connection.system_errno
            connection.close(True)
        if isinstance(error, apsw.Error):
            raise explain(error, number=number) from error
        raise


def _begin_log(connection: apsw.Connection, path: str) -> None:
    """Begin a new log after one with a damaged end, so that the damaged part is not found again."""
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except apsw.Error as error:
        number = connection.system_errno
        connection.close(True)
        raise storage_error(error, path, number=number) from error


def is_read_only(path: str) -> bool:
    """Whether a file, or the folder for its log, cannot be written."""
    location = Path(path)
    if path == MEMORY or not location.exists():
        return False
    if not os.access(location, os.W_OK):
        return True
    there = [_beside(path, end) for end in ("-wal", "-shm")]
    return not os.access(location.parent, os.W_OK) and not all(
        os.access(each, os.W_OK) for each in there
    )


def _has_log_files(path: str) -> bool:
    """Whether there is a log next to a file."""
    return any(_beside(path, end).exists() for end in ("-wal", "-shm"))


def _beside(path: str, ending: str) -> Path:
    """One of SQLite's files next to a database. For a symbolic link, it is next to the link's target."""
    return Path(target_of(path) + ending)


def state_without_log(path: str) -> tuple[int, ...] | None:
    """A fingerprint that changes when a file is written or replaced; None if there is a log next to it, or no file."""
    if path == MEMORY or _has_log_files(path):
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def identity_of(path: str) -> tuple[int, int] | None:
    """What stays the same as long as the same file is at a path; None if there is no file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - in transactions, where a Path costs more
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _connect_read_only(path: str, memory_map: int) -> apsw.Connection:
    """A read-only connection. It reads a log next to the file, if the log's index (-shm) can be read.

    Without a log, SQLite would create one. A reader may be unable to do that, and others could then not write it. So
    the file is opened as `immutable`: nobody writes. Owners of the connection must check whether that is still true.
    """
    journal = _beside(path, "-journal")  # of a backup whose update is running or was interrupted
    fixed = "" if _has_log_files(path) or journal.exists() else "&immutable=1"

    def explained(error: apsw.Error, number: int) -> Exception:
        if not isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError):
            return storage_error(error, path, number=number)
        log = journal if journal.exists() else _beside(path, "-wal")
        return StorageError(
            f"{path} is read-only and has a log ({log}) that cannot be read there: copy both to a "
            f"folder that can be written ({error})"
        )

    name = f"{Path(path).absolute().as_uri()}?mode=ro{fixed}"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with _opening(name, explained, flags=flags) as connection:
        if verify(connection, path):
            raise StorageError(f"{path} is empty and read-only: there is nothing to read")
        if format_of(connection) < FORMAT:
            raise StorageError(
                f"{path} is of an older format and read-only, so it cannot be upgraded: "
                "copy it to where it can be written"
            )
        connection.execute(f"PRAGMA mmap_size={memory_map}").fetchall()
        connection.execute("PRAGMA cell_size_check=ON").fetchall()
    return connection


def _connect_for_reading(path: str, busy_timeout: float, memory_map: int) -> apsw.Connection | None:
    """A connection that writes nothing to a writable file; None for a file of an older format.

    It reads a log next to the file, and leaves it unchanged. Without one, SQLite creates an empty log, which a
    connection that may write deletes when it closes.
    """
    check_exists(path)
    log = _beside(path, "-wal")
    mode = "ro" if log.exists() and log.stat().st_size else "rw"
    name = f"{Path(path).absolute().as_uri()}?mode={mode}"
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    with _opening(name, partial(storage_error, path=path), flags=flags) as connection:
        connection.set_busy_handler(Waiting(busy_timeout))
        connection.execute("PRAGMA query_only=ON").fetchall()
        if verify(connection, path):
            raise StorageCorrupt(f"{path} is an empty database, which Isotone did not make")
        if format_of(connection) < FORMAT:
            connection.close(True)
            return None
        connection.execute(f"PRAGMA mmap_size={memory_map}").fetchall()
        connection.execute("PRAGMA cell_size_check=ON").fetchall()
    return connection


def check_is_ours(path: str) -> None:
    """Raise `StorageCorrupt` for another program's database, before SQLite applies its log or its journal."""
    page = _first_page(path)
    if page is None or _mark_of(page) == APPLICATION_ID:
        return
    pages = [page, *_first_pages_in_log(path)]
    if all(_mark_of(each) != APPLICATION_ID for each in pages):
        for each in pages:
            version, objects = each[60:64], each[103:105]
            if _mark_of(each) or any(version) or any(objects):
                raise _of_another_program(path, _mark_of(each))


def _mark_of(page: bytes) -> int:
    return int.from_bytes(page[68:72], "big")


def _first_page(path: str) -> bytes | None:
    """The beginning of the first page of a file; None if it does not begin like a database."""
    location = Path(path)
    if path == MEMORY or not location.is_file():
        return None
    page = first_bytes(path, _FIRST_PAGE)
    return page if page.startswith(_MAGIC) and len(page) >= _HEADER else None


def _first_pages_in_log(path: str) -> Iterator[bytes]:
    """The beginnings of all versions of the first page in a log, whichever of them SQLite would apply."""
    with suppress(FileNotFoundError), _beside(path, "-wal").open("rb") as log:
        size = int.from_bytes(log.read(_LOG_HEADER)[8:12], "big")
        while len(frame := log.read(_FRAME_HEADER)) == _FRAME_HEADER:
            if frame.startswith(b"\0\0\0\1"):
                yield log.read(_FIRST_PAGE)
                log.seek(size - _FIRST_PAGE, os.SEEK_CUR)
            else:
                log.seek(size, os.SEEK_CUR)


def _of_another_program(path: str, mark: int) -> StorageCorrupt:
    return StorageCorrupt(
        f"{path} is an SQLite database that Isotone did not make (application id {mark:#x}): "
        "give the path of an Isotone file, or of a file that does not exist yet"
    )


class Waiting:
    """A busy handler: pauses, and returns whether to try again; False at once unless `allowed`.

    SQLite's own handler pauses for up to 100 ms. With it, one busy process starves the others, because it takes the
    lock again before they retry.
    """

    __slots__ = ("_deadline", "_seconds", "allowed")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = 0.0
        self.allowed: bool = True

    def __call__(self, attempt: int) -> bool:
        if not self.allowed:
            return False
        now = time.monotonic()
        if attempt == 0:
            self._deadline = now + self._seconds
        if now >= self._deadline:
            return False
        time.sleep(LOCK_PAUSE)
        return True


def _check_path(path: str) -> None:
    if path == MEMORY:
        return
    location = Path(path)
    if not path or location.is_dir():
        raise StorageError(f"{path!r} is a folder; give the path of a file in it")
    if location.exists() and not location.is_file():
        raise StorageError(
            f"{path} is a device or a pipe, which cannot hold a database: give the path of a file, or {MEMORY!r}"
        )
    if not location.parent.is_dir():
        raise StorageError(
            f"the folder {location.parent} does not exist; create it before opening {path}"
        )


_LOG_ENDINGS: Final = ("-wal", "-shm", "-journal")


def _check_names(path: str) -> None:
    """Before anything is written, raise `StorageError` for file names with which SQLite would lose a database.

    SQLite finds a log by the name of its file. So a database that is named like the log of another database is deleted
    when that one is opened. And two names (hard links) of one file have two logs; each would be applied without the
    commits of the other.
    """
    if path == MEMORY:
        return
    file = target_of(path)  # a link may have any name
    for ending in _LOG_ENDINGS:
        base = file.removesuffix(ending)
        if base != file and header_of(base) is not None:
            raise StorageError(
                f"{file} is the name of a log of {base}, and would be deleted with it: give another name"
            )
        if ending != "-shm" and header_of(f"{file}{ending}") is not None:
            raise StorageError(
                f"{file}{ending} is a database, and would be deleted as a log of {file}: move it away, or give another name"
            )
    if _other_names(path):
        raise StorageError(
            f"{path} has another name (a hard link), and a log for each name would lose writes: delete the other name, "
            "or make the second file with isotone backup"
        )


def _other_names(path: str) -> int:
    """How many other names (hard links) a file has. A backup or a restore that has just ended does not count."""
    try:
        names = Path(path).stat().st_nlink - 1
    except OSError:
        return 0
    part = Path(f"{path}.part")
    return names - 1 if names and part.exists() and part.samefile(path) else names


def _prepare(connection: apsw.Connection, path: str, patience: float) -> None:
    fresh = verify(connection, path)
    if fresh:
        connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
    if path != MEMORY:
        _use_wal(connection, path, time.monotonic() + patience)
    if fresh or format_of(connection) < FORMAT:
        _mark(connection, path)


def verify(connection: apsw.Connection, path: str) -> bool:
    """Whether the file is empty. Raises for a file that is not an Isotone database."""
    mark, version, objects = connection.execute(
        "SELECT a.application_id, u.user_version, (SELECT count(*) FROM sqlite_schema)"
        " FROM pragma_application_id AS a, pragma_user_version AS u"
    ).get
    if mark == APPLICATION_ID:
        if _format_in(version) > FORMAT:
            raise StorageError(
                f"{path} has format {_format_in(version)}, and this Isotone knows formats up to {FORMAT}: "
                "open it with the newer Isotone that made it"
            )
        return False
    if mark or version or objects:
        raise _of_another_program(path, mark)
    return True


def _use_wal(connection: apsw.Connection, path: str, deadline: float) -> None:
    # SQLite does not use the busy handler when it changes the journal mode.
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL").get
            break
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_PAUSE)
    if mode != "wal":
        raise StorageError(
            f"{path} is on a file system without shared memory (journal mode {mode!r}): "
            "use a local disk"
        )


def _mark(connection: apsw.Connection, path: str) -> None:
    """Turn an empty file into an Isotone file, and a file of an older format into the present format."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it first, or with a later format.
        if verify(connection, path):
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            give_number(connection)
        else:
            to_present_format(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def to_present_format(connection: apsw.Connection) -> None:
    """Begin the upgrade of a file of an older format, in the open transaction."""
    if format_of(connection) == 1:
        file_upgrade.begin(connection)
        give_number(connection)


def format_of(connection: apsw.Connection) -> int:
    """The version of the format of an open file."""
    return _format_in(connection.execute("PRAGMA user_version").get)


def _format_in(user_version: int) -> int:
    return user_version & ((1 << NUMBER_FROM) - 1)


def give_number(connection: apsw.Connection) -> None:
    """Give a file of the present format a number of its own: a new database, or a copy of another one."""
    number = int.from_bytes(os.urandom(3)) >> 1 or 1
    connection.execute(f"PRAGMA user_version={number << NUMBER_FROM | FORMAT}")


def mark_log(connection: apsw.Connection) -> None:
    """Write the number into the log, in the open transaction, so that it shows whose log it is."""
    version = connection.execute("PRAGMA user_version").get
    if version >> NUMBER_FROM:
        connection.execute(f"PRAGMA user_version={version}")
    else:
        give_number(connection)


def _configure(connection: apsw.Connection, durability: Durability, memory_map: int) -> None:
    extra = _THROUGH_THE_DRIVE if durability == "disk" else ()
    given = (
        f"PRAGMA mmap_size={memory_map}",
        f"PRAGMA synchronous={SYNCHRONOUS[durability]}",
    )
    for pragma in (*_SETTINGS, *extra, *given):
        connection.execute(pragma).get  # noqa: B018 - reading the result executes it


# Errors

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})

_FULL: Final = "the disk is full under {path}: free some space, then write again ({reason})"
_RANGE_OPEN: Final = (
    "a range of {path} is still being read ({reason}): finish or drop it before writing"
)

READ_ONLY: Final = "{path} is read-only, so nothing can be written: check the permissions of the file and of its folder"

_ERRORS: Final[tuple[tuple[type[apsw.Error], type[IsotoneError], str], ...]] = (
    (apsw.FullError, StorageFull, _FULL),
    (
        apsw.BusyError,
        StorageBusy,
        "{path} was locked by another process for too long: try again, or open it with a longer "
        "busy_timeout ({reason})",
    ),
    (
        apsw.NotADBError,
        StorageCorrupt,
        "{path} is not an Isotone file ({reason}): {instead}",
    ),
    (
        apsw.CorruptError,
        StorageCorrupt,
        "{path} is damaged ({reason}): `isotone check` says what is wrong, and `isotone repair` saves the rest; or "
        "restore it from a backup",
    ),
    (
        apsw.ReadOnlyError,
        StorageError,
        "{path} is read-only ({reason}): check the permissions of the file and of its folder",
    ),
    (
        apsw.CantOpenError,
        StorageError,
        "{path} cannot be opened ({reason}): check the permissions of the file and of its folder",
    ),
    (apsw.IOError, StorageError, "the disk failed under {path}: {reason} (error {number})"),
    (apsw.LockedError, UsageError, _RANGE_OPEN),
    (apsw.ConstraintError, UsageError, NOT_BYTES + ": {reason}"),
    (
        apsw.SQLError,
        StorageCorrupt,
        "{path} does not have the tables of this version of Isotone ({reason}): `isotone check` says what is wrong",
    ),
    (apsw.Error, StorageError, "SQLite failed on {path}: {reason}"),
)


_INSTEAD: Final = (
    (".py", "give the path of an Isotone database, or where a module is wanted its name, {stem}"),
    *(
        (
            suffix,
            "give the path of an Isotone database, into which `isotone import` writes the items of such a file",
        )
        for suffix in (
            ".json",
            ".jsonl",
            ".ndjson",
            ".csv",
            ".tsv",
            ".ion",
            ".parquet",
            ".gz",
            ".zst",
        )
    ),
    ("", "give the path of an Isotone database, or of a file that does not exist yet"),
)
"""What to use instead of a file that is not a database, by its file extension."""


def _instead_of(path: str) -> str:
    name = Path(path)
    advice = next(advice for end, advice in _INSTEAD if name.name.lower().endswith(end))
    return advice.format(stem=name.stem)


def storage_error(error: apsw.Error, path: str, tree: str = "", number: int = 0) -> Exception:
    """Isotone's exception for an SQLite error; `number` is the errno of the operating system, if any."""
    reason = str(error)
    if reason == "not an error":  # SQLite's text for a code that it cannot describe
        reason = "SQLite refuses to write"
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_BUSY_SNAPSHOT:
        return UsageError(_RANGE_OPEN.format(path=path, reason=reason))
    if reason.startswith("no such table"):
        return NoSuchTree(tree)
    if isinstance(error, apsw.IOError) and number in _NO_ROOM:
        return StorageFull(_FULL.format(path=path, reason=reason))
    kind, text = next((kind, text) for theirs, kind, text in _ERRORS if isinstance(error, theirs))
    instead = _instead_of(path)
    return kind(text.format(path=path, reason=reason, number=number, instead=instead))
