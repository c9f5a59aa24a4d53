"""Storage in an SQLite file: one b-tree (a WITHOUT ROWID table) for each tree.

Reads outside a transaction begin and end their own read transaction in SQLite. Nothing is left open when a call
returns, so no reader keeps the log from shrinking. A `range` holds its read transaction as long as its iterator
lives.

Nested transactions are savepoints, created at the first write inside. So a nested transaction that only reads runs
no SQL. `_depth` counts the open transactions, and `_ready` those that have begun in SQLite. One comparison in
each write therefore shows whether it must first create savepoints, or must be refused.

SQLite may roll back the whole transaction itself, for example when the disk is full. Then `_ready` is `_LOST` until
the outermost block ends: every write is refused, nothing can commit, and the outermost block raises even if the
program has caught the error in an inner one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain, islice, starmap
from operator import itemgetter
from typing import Any, Final, NoReturn
from weakref import WeakSet

import apsw

from isotone.crc import crc32
from isotone.errors import DamagedItem, StorageError, UsageError
from isotone.storage.checkpoints import LONGEST, Checkpoints
from isotone.storage.checksums import (
    CHUNK_SIZE,
    FIRST,
    SUM_SIZE,
    are_in_order,
    next_count,
)
from isotone.storage.file import (
    LOG_PAGES,
    MEMORY,
    MEMORY_MAP,
    READ_ONLY,
    SYNCHRONOUS,
    Durability,
    Waiting,
    connect,
    state_without_log,
    storage_error,
)
from isotone.storage.file_upgrade import TABLE as UPGRADE
from isotone.storage.file_upgrade import Judge, is_pending, reached_in
from isotone.storage.file_upgrade import step as upgrade_step
from isotone.storage.forking import leak
from isotone.storage.interface import (
    ABANDONED,
    BUSY_TIMEOUT,
    CLOSED,
    NO_TRANSACTION,
    NOT_BYTES,
    TRANSACTION_IN_SNAPSHOT,
    DescribeDamage,
    OnDamage,
    TreePart,
    checked_tree_name,
    damaged_entry,
    existing_tree,
)
from isotone.storage.statements import KEY, OF_REPLICATOR, PREFIX, TREES, StatementsByTree

_LOST: Final = -1
_BEGIN_READING: Final = (
    "BEGIN; PRAGMA data_version"  # which reads something: so it is the moment of the snapshot
)
_LOOK: Final = 0.25  # seconds between two looks whether the file is still at its path
# What SQLite and APSW raise for a row whose bytes have changed. SQLite's texts are decoded, so a changed type counts.
_UNREADABLE: Final = (apsw.Error, TypeError, UnicodeDecodeError)
_DAMAGED: Final = (apsw.CorruptError, apsw.TooBigError, apsw.MismatchError)
_VALUES: Final = itemgetter(1)
_ROWS: Final = 50  # that one statement adds
_RANGE_COLUMNS: Final = 3  # key, value, row_sum
_PAGES_WRITTEN: Final = apsw.SQLITE_DBSTATUS_CACHE_WRITE  # to the log, in WAL mode
_CHECKPOINT_TIMEOUT: Final = 0.25  # seconds that a checkpoint waits for writers
_BEHIND_ALL: Final = b"\xff" * 64  # no key that we write begins like this
_MAX_PROBLEMS: Final = 100  # reported by one check
_STEPS: Final = (
    1000  # of SQLite between two moments at which a check of the structure can be interrupted
)


class SQLiteStore:
    """Ordered trees in an SQLite file, which several processes may open.

    >>> store = SQLiteStore(":memory:")
    >>> with store.transaction():
    ...     store.create_tree("fruit")
    ...     store.put("fruit", b"apple", b"red")
    >>> store.get("fruit", b"apple")
    b'red'
    """

    __slots__ = (
        "__weakref__",
        "_as_opened",
        "_checkpoints",
        "_connection",
        "_depth",
        "_durability",
        "_execute",
        "_has_changed",
        "_identity",
        "_log_limit",
        "_memory_map",
        "_next_look",
        "_place",
        "_ready",
        "_seen_version",
        "_snapshots",
        "_statements",
        "_synced",
        "_waiting",
        "busy_timeout",
        "describe_damage",
        "path",
        "read_only",
    )
    exclusive = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = "disk",
        *,
        busy_timeout: float = BUSY_TIMEOUT,
        memory_map: int = MEMORY_MAP,
        read_only: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        self.busy_timeout = busy_timeout
        self._waiting = Waiting(busy_timeout)
        self._memory_map = memory_map
        self._durability: Durability = durability
        state = state_without_log(self.path)
        self._connection: Any = connect(
            self.path, durability, busy_timeout, memory_map, self._waiting, read_only=read_only
        )
        self.read_only: bool = self._connection.readonly("main") or bool(
            self._connection.execute("PRAGMA query_only").get
        )
        self._synced = True  # whether commits wait for the disk, as far as the durability says so
        self._checkpoints = Checkpoints(
            partial(connect, self.path, durability, _CHECKPOINT_TIMEOUT, memory_map)
        )
        self._log_limit = LOG_PAGES
        # A log that was there at first may have been gone when the file was opened, so look again.
        self._as_opened = (state or state_without_log(self.path)) if self.read_only else None
        self._execute: Any = self._connection.cursor().execute
        self._place = os.path.abspath(self.path)  # noqa: PTH100 - as it is, without following links
        self._identity = _identity_of(self._place)
        self._next_look = 0.0
        self._statements = StatementsByTree()
        self._depth = 0
        self._ready = 1
        self._snapshots = 0
        self._seen_version: int = self._connection.data_version()
        self._has_changed = False
        self.describe_damage: DescribeDamage = damaged_entry
        _OPEN.add(self)

    def transaction(self, *, wait: bool = True, synced: bool = True) -> _SQLiteTransaction:
        """Take the write lock of the file until the block ends; nested ones are savepoints.

        Raises `StorageBusy` if another process keeps the lock for longer than `busy_timeout`; without `wait`, at
        once if another process has it. If not `synced`, its commit is as durable as with durability "process".
        """
        return _SQLiteTransaction(self, wait, synced)

    def abandon(self) -> None:
        """Undo everything that is open."""
        self._depth = self._snapshots = 0
        self._ready = 1
        if self._connection.in_transaction:
            self._command("ROLLBACK")  # if it fails, the next transaction begins with it

    def snapshot(self) -> AbstractContextManager[None]:
        """Make all reads inside the block see the moment at which it began.

        A transaction already is a snapshot. A transaction cannot begin inside a snapshot.
        """
        return _Snapshot(self)

    def create_tree(self, tree: str) -> None:
        """Create an empty tree."""
        sql = self._statements[checked_tree_name(tree)].create
        try:
            self._write(sql, tree)
        except StorageError:
            if not self._connection.in_transaction or tree not in self.trees():
                raise
            raise existing_tree(tree) from None

    def drop_tree(self, tree: str) -> None:
        """Delete a tree and its entries."""
        self._write(self._statements[tree].drop, tree)
        self._statements.pop(tree, None)  # a table that is created again gets them again

    def trees(self) -> list[str]:
        """The names of all trees, sorted."""
        try:
            rows = self._execute(TREES).fetchall()
        except apsw.Error as error:
            raise self._failure(error) from error
        return [name for (name,) in rows]

    def get(self, tree: str, key: bytes) -> bytes | None:
        """The value at a key, or None. O(log n)."""
        statements = self._statements[tree]
        try:
            found = self._execute(statements.get, (key,)).get
            if found is None:
                self._check_gap(tree, key)
                return None
            value: bytes
            value, row_sum = found
            start = statements.start
            if row_sum is None or crc32(row_sum, crc32(value, crc32(key, start))) != start:
                self._check_unsealed(tree, key, row_sum)
        except _UNREADABLE as error:
            raise self._read_failure(error, tree, key) from error
        return value

    def put(self, tree: str, key: bytes, value: bytes) -> None:
        """Set the value at a key. O(log n)."""
        if self._depth != self._ready:
            self._make_ready()
        statements = self._statements[tree]
        try:
            self._execute(statements.put, (key, value, *statements.sums.of(key, value)))
        except apsw.Error as error:
            raise self._failure(error, tree) from error
        except TypeError:
            raise UsageError(NOT_BYTES) from None

    def add(self, tree: str, entries: Sequence[tuple[bytes, bytes]]) -> int:
        """Put the entries whose keys do not exist, and return how many. One statement for fifty of them.

        Python's lock is free while SQLite executes it.
        """
        if self._depth != self._ready:
            self._make_ready()
        before = self._connection.total_changes()
        statements = self._statements[tree]
        try:
            for start in range(0, len(entries), _ROWS):
                rows = entries[start : start + _ROWS]
                self._execute(statements.add(len(rows)), statements.sums.cells(rows))
        except apsw.Error as error:
            raise self._failure(error, tree) from error
        except TypeError:
            raise UsageError(NOT_BYTES) from None
        added: int = self._connection.total_changes() - before
        return added

    def delete(self, tree: str, key: bytes) -> None:
        """Remove a key, if it exists. O(log n)."""
        if self._depth != self._ready:
            self._make_ready()
        try:
            self._execute(self._statements[tree].delete, (key,))
        except apsw.Error as error:
            raise self._failure(error, tree) from error

    def range(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries with `low <= key < high` in order. O(log n), then O(1) per entry."""
        reading = _CheckedRange(self, tree, low, high, reverse, on_damage)
        return chain.from_iterable(starmap(zip, reading.chunks(FIRST)))

    def values(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        expected: int | None = None,
    ) -> Iterator[Sequence[bytes]]:
        """The values of a range, in sequences. O(log n), then O(1) per entry."""
        reading = _CheckedRange(self, tree, low, high, reverse, None)
        return map(_VALUES, reading.chunks(reading.sums.first_count(expected)))

    def changed_elsewhere(self) -> bool:
        """Whether another connection has committed since the last call. O(1).

        Inside a snapshot or a transaction, it considers commits before that began.
        """
        if not self._depth and not self._snapshots:
            try:
                self._execute("PRAGMA data_version").get  # noqa: B018 - reads the file, and ends that
            except apsw.Error as error:
                raise self._failure(error) from error
            self._note_commits()
        if not self._has_changed:
            return False
        self._has_changed = False
        return True

    def is_current(self) -> bool:
        """Whether no read since `changed_elsewhere` has met another process's commit. O(1), and reads nothing."""
        if self._has_changed:
            return False
        in_one_moment = self._depth or self._snapshots
        return bool(in_one_moment) or self._connection.data_version() == self._seen_version

    def _note_commits(self) -> None:
        """Note whether others have committed before the moment of the open transaction or snapshot."""
        version = self._connection.data_version()
        if version != self._seen_version:
            self._has_changed = True
            self._seen_version = version

    def check(self) -> list[str]:
        """What SQLite finds wrong with the structure of the file, and the keys without their sums. Reads all of it."""
        problems = self.check_structure()
        try:
            trees = [tree for tree in self._made().values() if tree is not None]
        except apsw.Error:
            return problems
        damaged = (self.check_keys(tree, TreePart()) for tree in trees)
        return problems + [str(damage) for damage in chain.from_iterable(damaged)]

    def check_structure(self, trees: Sequence[str] | None = None) -> list[str]:
        """What SQLite finds wrong, and tables that are not ours. Without `trees` also what no tree has: free pages."""
        subjects = [_MAX_PROBLEMS] if trees is None else [f'"{PREFIX}{tree}"' for tree in trees]
        # SQLite calls this now and then. As it is Python's code, an interruption (Ctrl-C) need not wait for the end.
        self._connection.set_progress_handler(lambda: False, _STEPS)
        try:
            rows = [
                self._execute(f"PRAGMA integrity_check({each})").fetchall() for each in subjects
            ]
            made = self._made() if trees is None else {}
        except apsw.Error as error:
            return [str(self._failure(error))]
        finally:
            self._connection.set_progress_handler(None)
        reports = [report for (report,) in chain.from_iterable(rows) if report != "ok"]
        foreign = [name for name, tree in made.items() if tree is None]
        return reports + [f"table {name} was not created by Isotone" for name in foreign]

    def _made(self) -> dict[str, str | None]:
        """The tree of each table; None for one that is not ours."""
        sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        ours = {self._statements[tree].create: tree for tree in self.trees()}
        return {
            name: ours.get(made)
            for name, made in self._execute(sql).fetchall()
            if name != UPGRADE and not name.startswith(OF_REPLICATOR)
        }

    def check_keys(self, tree: str, part: TreePart) -> Iterator[Exception]:
        """The exception for each key without its sum. A range does not read these sums, a read at a gap does."""
        sums, reached = self._statements[tree].sums, reached_in(self._connection, tree)
        sql = f'SELECT {KEY}, key_sum FROM "{PREFIX}{tree}"'
        cursor = self._connection.cursor()
        try:
            # Without a bound, a first key that is no longer bytes is met as well.
            rows = (
                cursor.execute(f"{sql} WHERE key >= ?", (part.low,))
                if part.low
                else cursor.execute(sql)
            )
            for key, _ in sums.damaged(rows, reached, part.high):
                yield self.describe_damage(tree, key)
        except _UNREADABLE as error:
            yield self._read_failure(error, tree)

    def parts(self, trees: Sequence[str], pages: int) -> dict[str, list[TreePart]]:
        """Parts of about so many pages each, for each tree. Reads the interior pages of trees that have any."""
        from isotone.storage import tree_parts  # which nothing else needs

        try:
            return tree_parts.cut(self._connection, trees, pages)
        except apsw.Error as error:
            raise self._failure(error) from error

    def is_upgrading(self) -> bool:
        """Whether entries of an older format still lack their checksums. O(1)."""
        try:
            return is_pending(self._connection)
        except apsw.Error as error:
            raise self._failure(error) from error

    def upgrade(self, is_sound: Judge) -> bool:
        """Give a slice of old entries their checksums; False if there are none left."""
        if self._depth != self._ready:
            self._make_ready()
        try:
            return is_pending(self._connection) and upgrade_step(self._connection, is_sound)
        except apsw.Error as error:
            raise self._failure(error) from error

    def background(self) -> AbstractContextManager[None]:
        """Commits inside the block do not copy the log into the file; the end of the block does, on its own connection."""
        return self._checkpoints.deferred()

    def sync(self) -> None:
        """Sync the log, and copy it into the file, on its own connection."""
        self._checkpoints.copy_now()

    def close(self) -> None:
        """Close the file; the last process to do so merges the log into it."""
        _OPEN.discard(self)
        self._checkpoints.close()
        connection = self._connection
        self._replace_connection(_UnusableConnection(CLOSED))
        if not isinstance(connection, _UnusableConnection):
            connection.close(True)

    # Checksums

    def _check_gap(self, tree: str, key: bytes) -> None:
        """Raise if a key next to one that was not found is not as it was written: it may be that key."""
        after = key + b"\x00"
        self._check_neighbours(tree, key, after, key, after)

    def _check_neighbours(
        self, tree: str, low: bytes, high: bytes | None, below: bytes | None, above: bytes | None
    ) -> None:
        """Raise if a key next to a range is not as it was written, or belongs in the range.

        The neighbours are the last key before `below`, and the first one from `above` on; none where that is None.
        """
        statements = self._statements[tree]
        try:
            before, behind = self._execute(statements.neighbours, (below, above)).get
        except _UNREADABLE as error:
            raise self._read_failure(error, tree) from error
        start = statements.start
        if before is not None:
            if crc32(before, start) != start:
                self._check_unsealed_key(tree, before)
            elif before[:-SUM_SIZE] >= low:
                self._check_moment(tree)
        if behind is not None:
            if crc32(behind, start) != start:
                self._check_unsealed_key(tree, behind)
            elif high is not None and behind[:-SUM_SIZE] < high:
                self._check_moment(tree)

    def _check_moment(self, tree: str) -> None:
        """Raise for a key that a range has not met, unless another process may have just written it."""
        if self._depth or self._snapshots or self.is_current():
            raise self.describe_damage(tree, None)

    def _check_unsealed_key(self, tree: str, found: bytes) -> None:
        """Raise for a key with its checksum that do not fit, unless it is one without, as `_check_unsealed`."""
        try:
            sums = self._execute(self._statements[tree].key_sum, (found,)).fetchall()
        except _UNREADABLE as error:
            raise self._read_failure(error, tree) from error
        if sums == [(None,)]:
            self._check_unsealed(tree, found, None)
        else:
            raise self.describe_damage(tree, found[:-SUM_SIZE])

    def _check_unsealed(self, tree: str, key: Any, checksum: Any) -> None:
        """Raise for a key or value without its checksum, unless the upgrade has not reached the entry."""
        if checksum is None and type(key) is bytes:
            reached = reached_in(self._connection, tree)
            if reached is not None and key >= reached:
                return
        raise self.describe_damage(tree, key if type(key) is bytes else None)

    def _read_failure(self, error: Exception, tree: str, key: bytes | None = None) -> Exception:
        """Isotone's exception for one that a read has met."""
        if isinstance(error, apsw.Error):
            failure = self._failure(error, tree)
            if not isinstance(error, _DAMAGED):
                return failure
        return self.describe_damage(tree, key)

    def _write(self, sql: str, tree: str) -> None:
        if self._depth != self._ready:
            self._make_ready()
        try:
            self._execute(sql)
        except apsw.Error as error:
            raise self._failure(error, tree) from error

    def _begin(self, wait: bool, synced: bool) -> None:
        if self._snapshots:
            raise UsageError(TRANSACTION_IN_SNAPSHOT)
        if self.read_only:
            raise StorageError(READ_ONLY.format(path=self.path))
        self._check_place()
        if self._connection.in_transaction:
            # A signal handler's exception cut an earlier block short before it was counted.
            self._execute("ROLLBACK")
        if synced is not self._synced and self._durability == "disk":
            self._command(f"PRAGMA synchronous={SYNCHRONOUS['disk' if synced else 'process']}")
            self._synced = synced
        log_limit = LONGEST if self._checkpoints.blocks else LOG_PAGES
        if log_limit != self._log_limit:
            self._connection.wal_autocheckpoint(log_limit)
            self._log_limit = log_limit
        self._waiting.allowed = wait
        try:
            self._command("BEGIN IMMEDIATE")
        finally:
            self._waiting.allowed = True
        self._note_commits()

    def _end_snapshot(self) -> None:
        try:
            self._execute("COMMIT")
        except apsw.Error as error:
            # After damage it reports that again, but has ended.
            failure = self._failure(error)
            if self._connection.in_transaction or not isinstance(error, apsw.CorruptError):
                raise failure from error

    def _follow_writers(self) -> None:
        """Open a read-only file again if somebody has written to it since: without a log, it was opened on the promise that nobody does."""
        state = state_without_log(self.path)
        if state == self._as_opened:
            return
        if _identity_of(self._place) is None:
            raise StorageError(f"{self.path} was deleted while it was open: close it")
        before = self._connection
        self._connection = connect(
            self.path, "disk", self.busy_timeout, self._memory_map, self._waiting
        )
        self._execute = self._connection.cursor().execute
        self._as_opened = state or state_without_log(self.path)
        self._has_changed = True
        before.close(True)

    def _check_place(self) -> None:
        """Raise if the file is no longer at its path: what is written to it would be lost. Looks a few times a second."""
        now = time.monotonic()
        if now < self._next_look or self.path == MEMORY:
            return
        if _identity_of(self._place) != self._identity:
            raise StorageError(
                f"{self.path} was replaced or deleted while it was open, so nothing is written to it: close it, "
                "and open it again"
            )
        self._next_look = now + _LOOK

    def _make_ready(self) -> None:
        """Create the savepoints of nested transactions that now write, or raise if that is not possible."""
        if not self._depth:
            raise UsageError(NO_TRANSACTION)
        if self._ready == _LOST:
            raise self._lost()
        while self._ready < self._depth:
            # Counted first: after an interruption in between, ending it fails. Otherwise the savepoint
            # would be taken for that of an outer transaction.
            self._ready += 1
            self._command("SAVEPOINT nested")

    def _end(self, level: int, undo: bool) -> None:
        """End a transaction that has begun in SQLite, and any that is still open inside it."""
        if level == 1:
            self._command("ROLLBACK" if undo else "COMMIT")
            self._seen_version = self._connection.data_version()  # counts own commits, too
            if self._checkpoints.blocks:
                self._checkpoints.written = self._connection.status(_PAGES_WRITTEN)[0]
            return
        for _ in range(level, self._ready + 1):
            if undo:
                self._command("ROLLBACK TO nested")
            self._command("RELEASE nested")

    def _command(self, sql: str) -> None:
        try:
            self._execute(sql)
        except apsw.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: apsw.Error, tree: str = "") -> Exception:
        """Isotone's exception for SQLite's; it also records that SQLite has rolled back the transaction."""
        if isinstance(error, apsw.CorruptError):
            # The cursor would raise the error again with its next statement, which it does not concern.
            self._execute.__self__.close(True)
            self._execute = self._connection.cursor().execute
        if self._depth and not self._connection.in_transaction:
            self._ready = _LOST
        return storage_error(error, self.path, tree, self._connection.system_errno)

    def _lost(self) -> StorageError:
        return StorageError(
            f"an earlier error rolled back this transaction on {self.path}: begin it again"
        )

    def _replace_connection(self, unusable: _UnusableConnection) -> None:
        self._connection = unusable
        self._execute = unusable.refuse

    def _disown(self) -> None:
        """In a forked child: never touch the parent's connection again.

        SQLite does not even allow closing it here, so it must not be garbage-collected either.
        """
        if not isinstance(self._connection, _UnusableConnection):
            leak(self._connection)
            self._replace_connection(
                _UnusableConnection(
                    f"{self.path} was opened before fork(); open it again in the child"
                )
            )


def _identity_of(path: str) -> tuple[int, int] | None:
    """What stays the same while a file is at its path; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - in transactions, where a Path costs more
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _SQLiteTransaction:
    __slots__ = ("_level", "_rolled_back", "_store", "_synced", "_wait")

    def __init__(self, store: SQLiteStore, wait: bool, synced: bool) -> None:
        self._store = store
        self._wait = wait
        self._synced = synced
        self._level = 0
        self._rolled_back = False

    def rollback(self) -> None:
        """Undo this transaction's work at the end of its block."""
        self._rolled_back = True

    def __enter__(self) -> _SQLiteTransaction:
        store = self._store
        if not store._depth:
            store._begin(self._wait, self._synced)
        self._level = store._depth = store._depth + 1
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        store = self._store
        level = self._level
        undo = kind is not None or self._rolled_back
        try:
            if level <= store._ready and level <= store._depth:
                store._end(level, undo)
            elif level == 1 and not undo:
                raise store._lost() if store._depth else StorageError(ABANDONED)
        finally:
            # The transaction is over, whether or not SQLite ended it without an error.
            if level == 1:
                if store._connection.in_transaction:
                    store._execute("ROLLBACK")
                store._depth = 0
                store._ready = 1
            else:
                store._depth = min(store._depth, level - 1)
                store._ready = min(store._ready, level - 1)


class _CheckedRange:
    """One range that is being read, in chunks of which each is checked before any of its entries is handed out."""

    __slots__ = (
        "_cursor",
        "_high",
        "_low",
        "_on_damage",
        "_reverse",
        "_statements",
        "_store",
        "_tree",
        "sums",
    )

    def __init__(
        self,
        store: SQLiteStore,
        tree: str,
        low: bytes,
        high: bytes | None,
        reverse: bool,
        on_damage: OnDamage | None,
    ) -> None:
        self._store = store
        self._tree = tree
        self._low = low
        self._high = high
        self._reverse = reverse
        self._on_damage = on_damage
        self._statements = store._statements[tree]
        self.sums = self._statements.sums
        self._cursor = store._connection.cursor()
        # Who goes on at damage also wants the rows that are only of another type.
        statement = self._statements.range[on_damage is not None, high is None, reverse]
        try:
            self._cursor.execute(statement, (low,) if high is None else (low, high))
        except _UNREADABLE as error:
            raise store._read_failure(error, tree) from error

    def chunks(self, count: int) -> Iterator[tuple[Sequence[bytes], Sequence[bytes]]]:
        """Keys and values, in growing chunks, of which the first has up to `count`."""
        sums, cursor = self.sums, self._cursor
        latest: bytes | None = None
        is_first = True
        while True:
            cells: list[Any] = []  # those of the first row, of the second, and so on
            error: Exception | None = None
            damage: DamagedItem | None = None
            try:
                cells.extend(chain.from_iterable(islice(cursor, count)))
            except _UNREADABLE as met:
                error = met
            is_last = len(cells) < _RANGE_COLUMNS * count
            size = sums.size_of_sound(cells)
            if size is None:
                cells, damage = self._sound(cells)
            keys: list[bytes] = cells[::_RANGE_COLUMNS]
            if keys:
                if not are_in_order(keys, after=latest, reverse=self._reverse):
                    raise self._store.describe_damage(self._tree, None)
                latest = keys[-1]
            if (is_first or is_last) and self._on_damage is None and not (damage or error):
                self._check_ends(is_first, is_last, latest)
            if keys:
                yield keys, cells[1::_RANGE_COLUMNS]
            if damage is not None or error is not None:
                cursor.close(True)  # the exception may keep this frame, and so its cursor
            if damage is not None:
                raise damage
            if error is not None:
                raise self._store._read_failure(error, self._tree) from error
            if size:
                sums.row_size = size // len(keys)
            if is_last:
                return
            is_first = False
            count = next_count(count, size or CHUNK_SIZE)

    def _sound(self, cells: list[Any]) -> tuple[list[Any], DamagedItem | None]:
        """The cells of the rows that are not damaged, up to the first that is, and its exception."""
        reached = reached_in(self._store._connection, self._tree)
        sound: list[Any] = []
        for start in range(0, len(cells), _RANGE_COLUMNS):
            row = cells[start : start + _RANGE_COLUMNS]
            if self.sums.holds(row, reached):
                sound += row
                continue
            damage = self._store.describe_damage(
                self._tree, row[0] if type(row[0]) is bytes else None
            )
            if self._on_damage is None:
                return sound, damage
            self._on_damage(damage)
        return sound, None

    def _check_ends(self, is_first: bool, is_last: bool, latest: bytes | None) -> None:
        """Check the key before the first one, and the one at which SQLite stopped.

        Next to both ends of a range a key may have changed that belongs inside. Who reads everything, with `on_damage`,
        meets it there.
        """
        low, high = self._low, self._high
        below: bytes | None = None
        above: bytes | None = None
        if self._reverse:
            if is_first:
                above = high
            if is_last and low:
                below = latest if latest is not None else _BEHIND_ALL if high is None else high
        else:
            if is_first and low:
                below = low
            if is_last and high is not None:
                above = low if latest is None else latest + b"\x00"
        if below is not None or above is not None:
            self._store._check_neighbours(self._tree, low, high, below, above)


class _Snapshot:
    __slots__ = ("_store",)

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store

    def __enter__(self) -> None:
        store = self._store
        if not store._depth and not store._snapshots:
            if store._as_opened is not None:
                store._follow_writers()
            try:
                store._execute(_BEGIN_READING)
            except apsw.Error as error:
                raise store._failure(error) from error
            if store._connection.data_version() != store._seen_version:
                store._note_commits()
        store._snapshots += 1

    def __exit__(self, *_: object) -> None:
        store = self._store
        if not store._snapshots:
            return  # abandoned
        store._snapshots -= 1
        if not store._depth and not store._snapshots:
            store._end_snapshot()


class _UnusableConnection:
    """Replaces the connection of a store that can no longer be used."""

    __slots__ = ("_why",)

    def __init__(self, why: str) -> None:
        self._why = why

    def refuse(self, *_: object) -> NoReturn:
        raise UsageError(self._why)

    cursor = data_version = refuse

    @property
    def in_transaction(self) -> bool:
        return False


_OPEN: WeakSet[SQLiteStore] = WeakSet()


def _disown_all() -> None:
    for store in list(_OPEN):
        store._disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
