"""SQLite storage (`SQLiteStore`): one b-tree (WITHOUT ROWID table) per tree, savepoints, snapshots, checked ranges.

A read outside a transaction begins and ends its own SQLite read transaction. Nothing stays open when a call returns, so
no reader keeps the log from shrinking. A `range` holds its read transaction as long as its iterator lives.

Nested transactions are savepoints, created at the first write inside. So a nested transaction that only reads runs no
SQL. `_depth` counts the open transactions, and `_ready` those that have begun in SQLite. One comparison in each write
therefore shows whether savepoints must be created first, or the write refused. The first write of a store also marks the
log (`file.mark_log`): until then `_ready` is `_UNMARKED`.

SQLite may roll back the whole transaction by itself, for example when the disk is full. Then `_ready` is `_LOST` until
the outermost block ends: every write is refused, nothing can commit, and the outermost block raises even if the program
caught the error in an inner one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
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
    identity_of,
    mark_log,
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
_UNMARKED: Final = 0
# The PRAGMA reads, which fixes the moment of the snapshot
_BEGIN_READING: Final = "BEGIN; PRAGMA data_version"
_LOOK: Final = 0.25  # seconds between two checks that the file is still at its path
# Raised by SQLite and APSW for a row with changed bytes: they decode texts, so a changed type counts.
_UNREADABLE: Final = (apsw.Error, TypeError, UnicodeDecodeError)
_DAMAGED: Final = (apsw.CorruptError, apsw.TooBigError, apsw.MismatchError)
_VALUES: Final = itemgetter(1)
_ROWS: Final = 50  # rows that one statement adds
_RANGE_COLUMNS: Final = 3  # key, value, row_sum
_PAGES_WRITTEN: Final = apsw.SQLITE_DBSTATUS_CACHE_WRITE  # pages written to the log, in WAL mode
_CHECKPOINT_TIMEOUT: Final = 0.25  # seconds that a checkpoint waits for writers
_BEHIND_ALL: Final = b"\xff" * 64  # none of our keys begins like this
_MAX_PROBLEMS: Final = 100  # problems that one check reports
_STEPS: Final = 1000  # SQLite steps between two moments when Ctrl-C can interrupt a structure check


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
        "_is_marked",
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
        "needs_snapshots",
        "path",
        "read_only",
    )
    exclusive = False
    reads_together = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = "disk",
        *,
        busy_timeout: float = BUSY_TIMEOUT,
        memory_map: int = MEMORY_MAP,
        read_only: bool = False,
        is_open: bool = False,
    ) -> None:
        self.path: str = os.fspath(path)
        self.busy_timeout: float = busy_timeout
        self._waiting = Waiting(busy_timeout)
        self._memory_map = memory_map
        self._durability: Durability = durability
        state = state_without_log(self.path)
        self._connection: Any = connect(
            self.path,
            durability,
            busy_timeout,
            memory_map,
            self._waiting,
            read_only=read_only,
            is_open=is_open,
        )
        self.read_only: bool = self._connection.readonly("main") or bool(
            self._connection.execute("PRAGMA query_only").get
        )
        self._synced = True  # whether commits wait for the disk, if the durability says so
        self._checkpoints = Checkpoints(
            partial(connect, self.path, durability, _CHECKPOINT_TIMEOUT, memory_map)
        )
        self._log_limit = LOG_PAGES
        # A log that existed at first may have been gone when the file was opened, so check again.
        self._as_opened = (state or state_without_log(self.path)) if self.read_only else None
        self.needs_snapshots: bool = self._as_opened is not None
        self._execute: Any = self._connection.cursor().execute
        self._place = os.path.abspath(self.path)  # noqa: PTH100 - as it is, without following links
        self._identity = identity_of(self._place)
        self._next_look = 0.0
        self._statements = StatementsByTree()
        self._depth = 0
        self._ready = 1
        self._is_marked = False
        self._snapshots = 0
        self._seen_version: int = self._connection.data_version()
        self._has_changed = False
        self.describe_damage: DescribeDamage = damaged_entry
        _OPEN.add(self)

    def transaction(self, *, wait: bool = True, synced: bool = True) -> _SQLiteTransaction:
        """Take the write lock of the file until the block ends; nested transactions are savepoints.

        Raises `StorageBusy` if another process keeps the lock for longer than `busy_timeout`, or at once without
        `wait`. If not `synced`, the commit is as durable as with durability "process".
        """
        return _SQLiteTransaction(self, wait, synced)

    def reading_together(
        self, attempts: Sequence[Callable[[], object]]
    ) -> AbstractContextManager[None]:
        """Do nothing: there are no round trips."""
        return nullcontext()

    def queue(self) -> AbstractContextManager[Callable[[float], object]]:
        """A file has no queue: whoever tries first when the lock is free gets it."""
        return nullcontext(time.sleep)

    def reader(self) -> SQLiteStore | None:
        """Another store on the same file, which another thread may read while this one is in use.

        None for a database in memory, and if the file is no longer at its path. Costs 0.3 ms, and 10 µs for each tree.
        """
        if self.path == MEMORY or identity_of(self._place) != self._identity:
            return None
        found = SQLiteStore(
            self._place,
            busy_timeout=self.busy_timeout,
            memory_map=self._memory_map,
            read_only=True,
            is_open=True,
        )
        if found._identity == self._identity:
            found.path = self.path  # as messages name it
            return found
        found.close()
        return None

    def abandon(self) -> None:
        """Roll back everything that is open."""
        self._depth = self._snapshots = 0
        self._ready = 1
        self._is_marked = False
        if self._connection.in_transaction:
            self._command("ROLLBACK")  # if this fails, the next transaction repeats it

    def snapshot(self) -> AbstractContextManager[None]:
        """Make all reads inside the block see the moment at which it began.

        A transaction is already a snapshot. A transaction cannot begin inside a snapshot.
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
        self._statements.pop(tree, None)  # a tree that is created again gets new ones

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
        """Put the entries whose keys do not exist, and return how many. One statement adds fifty of them.

        The GIL is free while SQLite executes a statement.
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

        Inside a snapshot or a transaction, only commits from before its beginning count.
        """
        if not self._depth and not self._snapshots:
            try:
                self._execute("PRAGMA data_version").get  # noqa: B018 - reads the file, and ends that
            except apsw.Error as error:
                raise self._failure(error) from error
            self._note_commits()
        return self._take_changed()

    def has_seen_changes(self) -> bool:
        """Whether a read has met another connection's commit since the last call. O(1), and reads nothing."""
        self._note_commits()
        return self._take_changed()

    def _take_changed(self) -> bool:
        changed, self._has_changed = self._has_changed, False
        return changed

    def is_current(self) -> bool:
        """Whether no read since `changed_elsewhere` has seen another process's commit. O(1), and reads nothing."""
        if self._has_changed:
            return False
        in_one_moment = self._depth or self._snapshots
        return bool(in_one_moment) or self._connection.data_version() == self._seen_version

    def _note_commits(self) -> None:
        """Record whether others committed before the moment of the open transaction or snapshot."""
        version = self._connection.data_version()
        if version != self._seen_version:
            self._has_changed = True
            self._seen_version = version

    def check(self) -> list[str]:
        """Problems that SQLite finds in the structure of the file, and keys without valid sums. Reads the whole file."""
        problems = self.check_structure()
        try:
            trees = [tree for tree in self._made().values() if tree is not None]
        except apsw.Error:
            return problems
        damaged = (self.check_keys(tree, TreePart()) for tree in trees)
        return problems + [str(damage) for damage in chain.from_iterable(damaged)]

    def check_structure(self, trees: Sequence[str] | None = None) -> list[str]:
        """Problems that SQLite finds, and tables that are not ours. Without `trees`, free pages are checked too."""
        subjects = [_MAX_PROBLEMS] if trees is None else [f'"{PREFIX}{tree}"' for tree in trees]
        # SQLite calls this now and then. Since it is Python code, Ctrl-C need not wait for the end of the check.
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
        """The tree of each table; None for a table that is not ours."""
        sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        ours = {self._statements[tree].create: tree for tree in self.trees()}
        return {
            name: ours.get(made)
            for name, made in self._execute(sql).fetchall()
            if name != UPGRADE and not name.startswith(OF_REPLICATOR)
        }

    def check_keys(self, tree: str, part: TreePart) -> Iterator[Exception]:
        """The exception for each key without its sum. Ranges do not read these sums; reads that miss a key do."""
        sums, reached = self._statements[tree].sums, reached_in(self._connection, tree)
        sql = f'SELECT {KEY}, key_sum FROM "{PREFIX}{tree}"'
        cursor = self._connection.cursor()
        try:
            # Without bounds, the rows also include a first key that is no longer bytes.
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
        """Parts of about `pages` pages each, for each tree. Reads the interior pages of trees that have any."""
        from isotone.storage import tree_parts  # only needed here

        try:
            return tree_parts.cut(self._connection, trees, pages)
        except apsw.Error as error:
            raise self._failure(error) from error

    def is_upgrading(self) -> bool:
        """Whether entries of an older format still lack checksums. O(1)."""
        try:
            return is_pending(self._connection)
        except apsw.Error as error:
            raise self._failure(error) from error

    def upgrade(self, is_sound: Judge) -> bool:
        """Give a slice of old entries their checksums; False if none remain."""
        if self._depth != self._ready:
            self._make_ready()
        try:
            return is_pending(self._connection) and upgrade_step(self._connection, is_sound)
        except apsw.Error as error:
            raise self._failure(error) from error

    def background(self) -> AbstractContextManager[None]:
        """Commits inside the block do not copy the log into the file. The end of the block does, on a separate
        connection.
        """
        return self._checkpoints.deferred()

    def sync(self) -> None:
        """Sync the log, and copy it into the file, on a separate connection."""
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
        """Raise if a neighbour of a missing key is damaged, because it may be that key."""
        after = key + b"\x00"
        self._check_neighbours(tree, key, after, key, after)

    def _check_neighbours(
        self, tree: str, low: bytes, high: bytes | None, below: bytes | None, above: bytes | None
    ) -> None:
        """Raise if a neighbour of a range is damaged, or belongs into the range.

        The neighbours are the last key before `below` and the first key from `above` on; None means that there is none
        to check.
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
        """Raise for a key that a range has missed, unless another process may have just written it."""
        if self._depth or self._snapshots or self.is_current():
            raise self.describe_damage(tree, None)

    def _check_unsealed_key(self, tree: str, found: bytes) -> None:
        """Raise for a key that does not match its checksum; if it has none, check as `_check_unsealed` does."""
        try:
            sums = self._execute(self._statements[tree].key_sum, (found,)).fetchall()
        except _UNREADABLE as error:
            raise self._read_failure(error, tree) from error
        if sums == [(None,)]:
            self._check_unsealed(tree, found, None)
        else:
            raise self.describe_damage(tree, found[:-SUM_SIZE])

    def _check_unsealed(self, tree: str, key: Any, checksum: Any) -> None:
        """Raise for a key or value without a checksum, unless the upgrade has not reached the entry."""
        if checksum is None and type(key) is bytes:
            reached = reached_in(self._connection, tree)
            if reached is not None and key >= reached:
                return
        raise self.describe_damage(tree, key if type(key) is bytes else None)

    def _read_failure(self, error: Exception, tree: str, key: bytes | None = None) -> Exception:
        """Isotone's exception for an error while reading."""
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
            # An exception from a signal handler ended an earlier block before it was counted.
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
        if not self._is_marked:
            self._ready = _UNMARKED

    def _end_snapshot(self) -> None:
        try:
            self._execute("COMMIT")
        except apsw.Error as error:
            # After damage, COMMIT reports the damage again, but has ended the transaction.
            failure = self._failure(error)
            if self._connection.in_transaction or not isinstance(error, apsw.CorruptError):
                raise failure from error

    def _follow_writers(self) -> None:
        """Reopen a read-only file if somebody has written to it since: without a log, it was opened as immutable."""
        state = state_without_log(self.path)
        if state == self._as_opened:
            return
        if identity_of(self._place) is None:
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
        """Raise if the file is no longer at its path, because writes to it would be lost. Checks a few times a second."""
        now = time.monotonic()
        if now < self._next_look or self.path == MEMORY:
            return
        if identity_of(self._place) != self._identity:
            raise StorageError(
                f"{self.path} was replaced or deleted while it was open, so nothing is written to it: close it, "
                "and open it again"
            )
        self._next_look = now + _LOOK

    def _make_ready(self) -> None:
        """Create the savepoints of nested transactions that now write, or raise if that is impossible."""
        if not self._depth:
            raise UsageError(NO_TRANSACTION)
        if self._ready == _LOST:
            raise self._lost()
        if self._ready == _UNMARKED:
            try:
                mark_log(self._connection)
            except apsw.Error as error:
                raise self._failure(error) from error
            self._is_marked, self._ready = True, 1
        while self._ready < self._depth:
            # Counted first: if it is interrupted in between, ending it fails. Otherwise the savepoint would be mistaken
            # for that of an outer transaction.
            self._ready += 1
            self._command("SAVEPOINT nested")

    def _end(self, level: int, undo: bool) -> None:
        """End a transaction that has begun in SQLite, and all that are still open inside it."""
        if level == 1:
            if undo:
                self._is_marked = False
            self._command("ROLLBACK" if undo else "COMMIT")
            self._seen_version = self._connection.data_version()  # this also counts our own commits
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
        """Isotone's exception for an SQLite error. Also records that SQLite has rolled back the transaction."""
        if isinstance(error, apsw.CorruptError):
            # Otherwise the cursor would raise the error again with its next, unrelated statement.
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
            reason = f"{self.path} was opened before fork(); open it again in the child"
            self._replace_connection(_UnusableConnection(reason))


class _SQLiteTransaction:
    __slots__ = ("_level", "_rolled_back", "_store", "_synced", "_wait")

    def __init__(self, store: SQLiteStore, wait: bool, synced: bool) -> None:
        self._store = store
        self._wait = wait
        self._synced = synced
        self._level = 0
        self._rolled_back = False

    def rollback(self) -> None:
        """Roll back this transaction at the end of its block."""
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
            has_begun = level <= store._ready or (level == 1 and store._ready == _UNMARKED)
            if has_begun and level <= store._depth:
                store._end(level, undo)
            elif level == 1 and not undo:
                raise store._lost() if store._depth else StorageError(ABANDONED)
        finally:
            # The transaction is over, even if SQLite reported an error at its end.
            if level == 1:
                if store._connection.in_transaction:
                    store._is_marked = False
                    store._execute("ROLLBACK")
                store._depth = 0
                store._ready = 1
            else:
                store._depth = min(store._depth, level - 1)
                store._ready = min(store._ready, level - 1)


class _CheckedRange:
    """A range that is being read, in chunks; each chunk is checked before any of its entries is returned."""

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
        # Callers that tolerate damage also want rows whose types have changed.
        statement = self._statements.range[on_damage is not None, high is None, reverse]
        try:
            self._cursor.execute(statement, (low,) if high is None else (low, high))
        except _UNREADABLE as error:
            raise store._read_failure(error, tree) from error

    def chunks(self, count: int) -> Iterator[tuple[Sequence[bytes], Sequence[bytes]]]:
        """Keys and values in growing chunks; the first has up to `count` entries."""
        sums, cursor = self.sums, self._cursor
        latest: bytes | None = None
        is_first = True
        while True:
            cells: list[Any] = []  # columns of the first row, then of the second, and so on
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
                cursor.close(True)  # the exception may keep this frame alive, and so its cursor
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
        """The columns of the intact rows up to the first damaged one, and its exception."""
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
        """Check the key before the first one, and the key at which SQLite stopped.

        A damaged key next to an end of the range may really belong inside. Callers that read everything, with
        `on_damage`, find it in any case.
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
            return  # the snapshot was abandoned
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
