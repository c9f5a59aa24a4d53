"""PostgreSQL storage: lookups, ranges in chunks, the commit (`durability`), the queue of writers, lost sessions.

Round trips decide the speed, so there is one for each lookup, and one for each chunk of a range. A transaction has one
for its beginning and one for its end. Its writes stay in a `WriteBuffer` until then; what it reads is read through that.

One process writes at a time: a transaction begins with the schema's advisory lock, which the server releases with the
commit, or when the session dies. Whoever waits stands in the server's own queue (`queue`), so that processes take turns.
A transaction therefore sees what is committed, and reads need no isolation beyond that.

The row `isotone_state` has a revision, which each commit raises, and a second one, which rises when trees are created or
dropped. Lookups and ranges read it as well. So commits of others cost no round trip, nor does a schema that was restored.

A session lost outside of a block, or in the queue, is replaced, and the statement repeated; a block fails. If it is
lost while a commit is under way, nobody knows whether that happened: the commit raises, and is never reported as done.

A tree that is dropped disappears at once, but its table is deleted only when no snapshot is older than that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from itertools import chain, islice
from struct import Struct
from typing import Any, Final, Literal

from isotone.errors import StorageBusy, StorageCorrupt, StorageError, TakesLong, UsageError
from isotone.postgres_address import NoDatabase, address_of
from isotone.storage.interface import (
    ABANDONED,
    BUSY_TIMEOUT,
    NO_TRANSACTION,
    NOT_BYTES,
    TRANSACTION_IN_SNAPSHOT,
    DescribeDamage,
    NoSuchTree,
    OnDamage,
    TreePart,
    checked_tree_name,
    damaged_entry,
    existing_tree,
)
from isotone.storage.long_keys import LONGEST, end_of_rows, entries_of, rows_of, value_in
from isotone.storage.postgres_connection import (
    Connection,
    ServerStatement,
    StatementFailed,
    array,
    asked,
    in_session,
    repeated,
)
from isotone.storage.postgres_sql import FORMAT, CommitStatements, SchemaSQL
from isotone.storage.write_buffer import Branch, WriteBuffer

Durability = Literal["disk", "process", "none"]

_PASSES: Final = 3  # of `reading_together`
_FIRST: Final = 128  # rows of a range that are read first if the caller takes all
_MOST: Final = 4000  # rows of a later chunk
_CHUNK_SIZE: Final = 1 << 20  # its bytes, as far as known before they are read
_GROWTH: Final = 8
_CONTENDED: Final = 0.02  # seconds after a turn of another process in which writers queue at once
_DROP_TIMEOUT: Final = b"200"  # milliseconds that this waits for readers

_NO_TABLE: Final = "42P01"
_LOCK_TIMEOUT: Final = "55P03"
_BEGIN: Final = ServerStatement(b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
_BEGIN_READING: Final = ServerStatement(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_COMMIT: Final = ServerStatement(b"COMMIT")
_ROLLBACK: Final = ServerStatement(b"ROLLBACK")
_UNSYNCED: Final = ServerStatement(b"SET LOCAL synchronous_commit = off")
_PATIENCE: Final = b"SELECT set_config('lock_timeout', $1::text, true)"
_NEVER_BEGUN: Final = b""
# A process that stopped in a transaction must not keep all others from writing.
_FOR_WRITING: Final = b"; SET idle_in_transaction_session_timeout = '60s'"
_ASYNCHRONOUS: Final = b"; SET synchronous_commit = off"

_number: Final = Struct("!q").pack


class PostgresStore:
    """Ordered trees in a schema of a PostgreSQL database, which servers on several machines may open."""

    __slots__ = (
        "_address",
        "_buffer",
        "_contended_until",
        "_depth",
        "_durability",
        "_fetched",
        "_gate",
        "_has_changed",
        "_is_queued",
        "_latest",
        "_losses",
        "_queued_by",
        "_reading",
        "_relations",
        "_seen",
        "_snapshot_losses",
        "_snapshots",
        "_sql",
        "_thread",
        "_trees_seen",
        "_unsettled",
        "_wanted",
        "_writing",
        "address",
        "busy_timeout",
        "describe_damage",
        "read_only",
        "replica",
    )
    exclusive = False
    needs_snapshots = False
    reads_together = True

    def __init__(
        self,
        address: str,
        durability: Durability = "disk",
        *,
        busy_timeout: float = BUSY_TIMEOUT,
        read_only: bool = False,
    ) -> None:
        self.address: str = address
        self.busy_timeout: float = busy_timeout
        self.read_only: bool = read_only
        self.describe_damage: DescribeDamage = (
            damaged_entry  # never called: PostgreSQL has checksums of its own
        )
        self._address = address_of(address)
        self._durability: Durability = durability
        replica = self._address.replica
        self.replica: Callable[[], PostgresStore] | None = (
            partial(PostgresStore, replica, read_only=True) if replica else None
        )
        settings = _FOR_WRITING if durability == "disk" else _FOR_WRITING + _ASYNCHRONOUS
        self._reading = Connection(self._address, reopened=self._forget_seen)
        self._writing = Connection(self._address, settings, reopened=self._forget_seen)
        self._sql = SchemaSQL(self._address.schema)
        self._relations: dict[str, str] = {}  # the table of each tree
        self._trees_seen = _NEVER_BEGUN
        self._seen = self._latest = _NEVER_BEGUN
        self._has_changed = False
        self._depth = self._snapshots = 0
        self._losses = self._snapshot_losses = 0  # of the session in which the open block began
        self._buffer = WriteBuffer()
        self._wanted: dict[Sequence[ServerStatement], None] | None = None  # what attempts want
        self._fetched: dict[Sequence[ServerStatement], list[Any]] = {}  # results of it
        self._unsettled = False  # whether a commit was interrupted
        self._gate = threading.RLock()  # held by whoever uses the session of the transactions
        self._is_queued = False  # whether that session waits for its turn
        self._queued_by = 0  # threads that wait for it
        self._contended_until = 0.0
        self._thread = threading.local()  # whether this thread queues when it is refused
        try:
            self._find_or_create()
        except BaseException:
            self.close()
            raise

    # Blocks

    def transaction(self, *, wait: bool = True, synced: bool = True) -> _Transaction:
        """Take the write lock of the schema until the block ends. One round trip, and one at the end.

        Raises `StorageBusy` if others keep the lock for longer than `busy_timeout`, or at once without `wait`.
        """
        return _Transaction(self, wait, synced)

    @contextmanager
    def reading_together(self, attempts: Sequence[Callable[[], object]]) -> Iterator[None]:
        """Fetch what some functions read, in a few round trips for all of them; it is known inside the block."""
        self._fetched = {}
        try:
            for _ in range(_PASSES):
                wanted: dict[Sequence[ServerStatement], None] = {}
                self._wanted = wanted
                try:
                    attempts = [attempt for attempt in attempts if _ends_early(attempt)]
                finally:
                    self._wanted = None
                if not wanted:
                    break
                self._fetch([*wanted])
            yield
        finally:
            self._fetched = {}

    @contextmanager
    def queue(self) -> Iterator[Callable[[float], object]]:
        """Stand in the server's queue of writers inside the block; the function waits there for some seconds, and returns
        early when it is our turn. The next transaction of any thread takes it.
        """
        self._thread.queues = True
        with self._gate:
            self._queued_by += 1
        try:
            yield self._wait_in_queue
        finally:
            with self._gate:
                self._queued_by -= 1
                if self._is_queued and not self._queued_by:
                    self._is_queued = False
                    self._writing.drop()  # nobody takes the turn

    def reader(self) -> PostgresStore:
        """Another store over the same schema, which another thread may read. Costs a connection."""
        return PostgresStore(self.address, busy_timeout=self.busy_timeout, read_only=True)

    def abandon(self) -> None:
        """Roll back everything that is open."""
        with suppress(RuntimeError):  # raised once it is not ours
            while True:  # a signal may have raised just after it was acquired
                self._gate.release()
        if self._depth:
            self._writing.post(_ROLLBACK)
        if self._snapshots:
            self._reading.post(_COMMIT)
        self._depth = self._snapshots = 0
        self._buffer = WriteBuffer()
        if self._unsettled:
            # The server may still be at the commit that was interrupted. It has the lock until it knows the outcome.
            self._unsettled = False
            with suppress(StorageError), self.transaction() as settled:
                settled.rollback()
            self._forget_seen()

    def snapshot(self) -> AbstractContextManager[None]:
        """Make all reads inside the block see the moment at which it began. One round trip."""
        return _Snapshot(self)

    # Trees

    def create_tree(self, tree: str) -> None:
        """Create an empty tree; the commit makes its table."""
        self._require_transaction()
        if self._has(checked_tree_name(tree)):
            raise existing_tree(tree)
        self._buffer.replace(tree, Branch(None))

    def drop_tree(self, tree: str) -> None:
        """Delete a tree and its entries. O(1)."""
        self._require_transaction()
        if not self._has(tree):
            raise NoSuchTree(tree)
        self._buffer.replace(tree, None)

    def trees(self) -> list[str]:
        """The names of all trees, sorted."""
        if not self._depth and not self._snapshots:
            self._read_state()
        names = dict.fromkeys(self._relations, True)
        if self._depth:
            names.update(
                (tree, branch is not None) for tree, branch in self._buffer.branches.items()
            )
        return sorted(name for name, exists in names.items() if exists)

    # Entries

    def get(self, tree: str, key: bytes) -> bytes | None:
        """The value at a key, or None. One round trip, and none for what the open transaction has written."""
        if self._depth:
            return self._get_through(tree, key)
        row = key[:LONGEST]
        while True:
            relation = self._relation(tree)
            try:
                (result,) = self._read(ServerStatement(self._sql.of(relation).get, (row,)))
            except StatementFailed as failure:
                self._meet_missing_table(failure)
                continue
            if not self._snapshots:
                self._see(result.get_value(0, 1))
                if result.get_value(0, 2) != self._trees_seen:
                    self._load_trees()
                    continue
            value: bytes | None = result.get_value(0, 0)
            return value if len(key) < LONGEST else value_in(value, key)

    def put(self, tree: str, key: bytes, value: bytes) -> None:
        """Set the value at a key, as part of the commit. No round trip."""
        self._set(tree, key, value)

    def add(self, tree: str, entries: Sequence[tuple[bytes, bytes]]) -> int:
        """Put the entries whose keys do not exist, and return how many. One round trip."""
        branch = self._branch(tree)
        existing = self._existing(branch, [key for key, _ in entries])
        new = 0
        for key, value in entries:
            if key not in existing:
                self._set(tree, key, value)
                existing.add(key)
                new += 1
        return new

    def delete(self, tree: str, key: bytes) -> None:
        """Remove a key, if it exists, as part of the commit. No round trip."""
        self._set(tree, key, None)

    def range(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries with `low <= key < high` in order. One round trip for each chunk, and chunks grow."""
        return self._entries(tree, low, high, reverse, _FIRST)

    def values(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        expected: int | None = None,
    ) -> Iterator[Sequence[bytes]]:
        """The values of a range, in sequences. One round trip if the caller takes no more than `expected`."""
        count = _FIRST if expected is None else max(1, min(expected, _MOST))
        branch = self._branch(tree, to_write=False) if self._depth else None
        relation = self._relation(tree) if branch is None else branch.relation
        if relation is not None and not (branch and branch.written):
            return self._values(tree, relation, low, high, reverse, count)
        values = (value for _, value in self._entries(tree, low, high, reverse, count))
        return iter(lambda: list(islice(values, count)), [])

    # Commits of others

    def changed_elsewhere(self) -> bool:
        """Whether another process has committed since the last call. One round trip outside of a block, else none."""
        if not self._depth and not self._snapshots:
            self._read_state()
        return self.has_seen_changes()

    def has_seen_changes(self) -> bool:
        """Whether a read has met another process's commit since the last call. Reads nothing."""
        self._note_commits()
        found, self._has_changed = self._has_changed, False
        return found

    def is_current(self) -> bool:
        """Whether no read since `changed_elsewhere` has seen another process's commit. Reads nothing."""
        return not self._has_changed and self._latest == self._seen

    @property
    def revision(self) -> bytes:
        """The newest revision that a read of this session has met; each commit raises it."""
        return self._latest

    # Checks

    def check(self) -> list[str]:
        """Trees without a table. What is in the tables, PostgreSQL verifies itself (`data_checksums`)."""
        return self.check_structure()

    def check_structure(self, trees: Sequence[str] | None = None) -> list[str]:
        """Same as `check`, of all trees or some."""
        names = set(self.trees() if trees is None else trees)
        (result,) = self._read(self._sql.tables)
        there = {result.get_value(row, 0).decode() for row in range(result.ntuples)}
        return [
            f"tree {tree} has no table {relation}"
            for tree, relation in sorted(self._relations.items())
            if tree in names and relation not in there
        ]

    def check_keys(self, tree: str, part: TreePart) -> Iterator[Exception]:
        """Yields nothing: PostgreSQL has checksums of pages."""
        return iter(())

    def parts(self, trees: Sequence[str], pages: int) -> dict[str, list[TreePart]]:
        """One part for each tree."""
        return {tree: [TreePart()] for tree in trees}

    def is_upgrading(self) -> bool:
        """False: there is one format."""
        return False

    def upgrade(self, is_sound: Callable[[str, bytes, bytes], bool]) -> bool:
        """Do nothing: there is one format."""
        return False

    def background(self) -> AbstractContextManager[None]:
        """Does nothing: checkpoints are the server's business."""
        return nullcontext()

    def sync(self) -> None:
        """Make unsynced commits survive a power cut: a later commit waits for the log up to its own place."""
        with closing(Connection(self._address)) as own:
            own.exchange(ServerStatement(b"SELECT pg_logical_emit_message(true, 'isotone', '')"))

    def close(self) -> None:
        """Close both sessions."""
        self._reading.close()
        self._writing.close()

    # Reading

    def _entries(
        self, tree: str, low: bytes, high: bytes | None, reverse: bool, count: int
    ) -> Iterator[tuple[bytes, bytes]]:
        if not self._depth:
            return self._stored(tree, self._relation(tree), low, high, reverse, count)
        branch = self._branch(tree, to_write=False)
        if branch.relation is None:
            return branch.through((), low, high, reverse)
        stored = self._stored(tree, branch.relation, low, high, reverse, count)
        return branch.through(stored, low, high, reverse) if branch.written else stored

    def _stored(
        self, tree: str, relation: str, low: bytes, high: bytes | None, reverse: bool, count: int
    ) -> Iterator[tuple[bytes, bytes]]:
        """The stored entries of a range."""
        for keys, values in self._rows(tree, relation, low, high, reverse, count):
            yield from entries_of(keys, values, low, high, reverse)

    def _values(
        self, tree: str, relation: str, low: bytes, high: bytes | None, reverse: bool, count: int
    ) -> Iterator[Sequence[bytes]]:
        """The stored values of a range, in sequences."""
        for keys, values in self._rows(tree, relation, low, high, reverse, count):
            if max(map(len, keys)) < LONGEST:
                yield values
            elif found := [value for _, value in entries_of(keys, values, low, high, reverse)]:
                yield found

    def _rows(
        self, tree: str, relation: str, low: bytes, high: bytes | None, reverse: bool, count: int
    ) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """The keys and values of the rows of a range, in chunks; no chunk is empty."""
        bounds = [low[:LONGEST], end_of_rows(high)]
        is_first = True
        count = max(1, min(count, _CHUNK_SIZE // self._sql.of(relation).row_size))
        while True:
            sql = self._sql.of(relation).range[is_first or reverse, bounds[1] is not None, reverse]
            given = [bound for bound in bounds if bound is not None]
            try:
                result = self._read_range(ServerStatement(sql, (*given, _number(count))))
            except StatementFailed as failure:
                if not is_first:
                    raise NoSuchTree(tree) from failure
                self._meet_missing_table(failure)
                relation = self._relation(tree)
                continue
            found = result.ntuples
            if not found:
                return
            value_at = result.get_value
            keys = [value_at(row, 0) for row in range(found)]
            values = [value_at(row, 1) for row in range(found)]
            size = sum(map(len, keys)) + sum(map(len, values))
            self._sql.of(relation).row_size = max(1, size // found)
            yield keys, values
            if found < count:
                return
            bounds[1 if reverse else 0] = keys[-1]
            is_first = False
            count = max(1, min(_MOST, _GROWTH * count, _CHUNK_SIZE * count // size))

    def _read_range(self, statement: ServerStatement) -> Any:
        """The result of a statement; outside of a block, the revision is read after it, so that it is not too old."""
        if self._depth or self._snapshots:
            return self._read(statement)[0]
        result, state = self._read(statement, self._sql.state)
        self._see(state.get_value(0, 0))
        return result

    def _read(self, *statements: ServerStatement) -> list[Any]:
        """Results in the open block, or outside of one; there a lost session is replaced once."""
        if self._fetched or self._wanted is not None:
            found = None if self._snapshots else self._fetched.get(statements)
            if found is not None:
                return found
            if self._wanted is not None:
                self._wanted[statements] = None
                raise _AttemptEnds
        if self._depth:
            return self._in_transaction(*statements)
        if self._snapshots:
            return in_session(self._reading, self._snapshot_losses, statements)
        return repeated(self._reading, statements)

    def _fetch(self, wanted: list[Sequence[ServerStatement]]) -> None:
        """Send what attempts want together. If the server refuses a part, each reads for itself."""
        with suppress(StatementFailed):
            results = iter(self._read(*chain.from_iterable(wanted)))
            for statements in wanted:
                self._fetched[statements] = [*islice(results, len(statements))]

    def _read_state(self) -> None:
        (state,) = self._read(self._sql.state)
        self._see(state.get_value(0, 0))
        trees = state.get_value(0, 1)
        if trees != self._trees_seen:
            self._load_trees()

    def _load_trees(self) -> None:
        """Read which trees there are, with the revision that it belongs to. Results that wait may be older."""
        self._fetched = {}
        state, trees = self._read(self._sql.state, self._sql.trees)
        self._trees_seen = state.get_value(0, 1)
        self._relations = {
            trees.get_value(row, 0).decode(): trees.get_value(row, 1).decode()
            for row in range(trees.ntuples)
        }

    def _relation(self, tree: str) -> str:
        """The table of a tree, outside of a transaction."""
        relation = self._relations.get(tree)
        if relation is None and not self._snapshots:
            self._read_state()
            relation = self._relations.get(tree)
        if relation is None:
            raise NoSuchTree(tree)
        return relation

    def _meet_missing_table(self, failure: StatementFailed) -> None:
        """The table was deleted since its name was read: read the names again. Raises for any other failure."""
        before = self._trees_seen
        if failure.state != _NO_TABLE or self._snapshots:
            raise failure
        self._load_trees()
        if self._trees_seen == before:
            raise failure

    def _see(self, revision: bytes) -> None:
        """Note a revision that a read has met; of several, the highest counts, because results may have waited."""
        self._latest = max(self._latest, revision)

    def _see_now(self, revision: bytes) -> None:
        """Note the revision at which a block begins. A lower one than before is that of a schema that was restored."""
        if revision < self._latest:
            self._forget_seen()
        self._see(revision)

    def _note_commits(self) -> None:
        if self._latest != self._seen:
            self._has_changed = True
            self._seen = self._latest
            if self._wanted is None:
                self._fetched = {}  # it may be older than what the caller reads from now on

    def _forget_seen(self) -> None:
        """Take it that others have committed: the server may be another one, with the same revision."""
        self._has_changed = True
        self._seen = self._latest = self._trees_seen = _NEVER_BEGUN

    # Writing

    def _has(self, tree: str) -> bool:
        """Whether a tree exists in the open transaction."""
        branches = self._buffer.branches
        return branches[tree] is not None if tree in branches else tree in self._relations

    def _branch(self, tree: str, *, to_write: bool = True) -> Branch:
        """A tree in the open transaction."""
        if to_write:
            self._require_transaction()
        try:
            branch = self._buffer.branches[tree]
        except KeyError:
            if tree not in self._relations:
                raise NoSuchTree(tree) from None
            branch = self._buffer.branches[tree] = Branch(self._relations[tree])
        if branch is None:
            raise NoSuchTree(tree)
        return branch

    def _set(self, tree: str, key: bytes, value: bytes | None) -> None:
        if type(key) is not bytes or (value is not None and type(value) is not bytes):
            raise UsageError(NOT_BYTES)
        self._buffer.set(self._branch(tree), key, value)

    def _get_through(self, tree: str, key: bytes) -> bytes | None:
        branch = self._branch(tree, to_write=False)
        if key in branch.written:
            return branch.written[key]
        if branch.relation is None:
            return None
        (result,) = self._read(ServerStatement(self._sql.of(branch.relation).get, (key[:LONGEST],)))
        value: bytes | None = result.get_value(0, 0)
        return value if len(key) < LONGEST else value_in(value, key)

    def _existing(self, branch: Branch, keys: Sequence[bytes]) -> set[bytes]:
        """Those of some keys that exist."""
        existing = {key for key in keys if branch.written.get(key) is not None}
        asked = [key for key in keys if key not in branch.written]
        if branch.relation is None or not asked:
            return existing
        found = self._rows_at(branch.relation, asked)
        return existing.union(
            key
            for key in asked
            if (row := found.get(key[:LONGEST])) is not None
            and (len(key) < LONGEST or value_in(row, key) is not None)
        )

    def _rows_at(self, relation: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of the rows of some keys. One round trip."""
        (result,) = self._in_transaction(
            ServerStatement(self._sql.of(relation).rows, (array(rows_of(keys)),))
        )
        value_at = result.get_value
        return {value_at(row, 0): value_at(row, 1) for row in range(result.ntuples)}

    def _in_transaction(self, *statements: ServerStatement) -> list[Any]:
        """What statements read in the open transaction, which no buffered write has reached yet."""
        return in_session(self._writing, self._losses, statements)

    def _begin(self, wait: bool, synced: bool) -> None:
        if self._snapshots:
            raise UsageError(TRANSACTION_IN_SNAPSHOT)
        if self.read_only:
            raise StorageError(f"{self._address.shown} is open for reading only")
        if not wait and self._queues_at_once():
            raise self._busy()
        if not self._gate.acquire(wait):
            raise self._busy()
        try:
            state = self._take_turn(wait, synced)
            self._losses = self._writing.losses
            self._see_now(state.get_value(0, 0))
            if self._latest != self._seen:
                self._contended_until = time.monotonic() + _CONTENDED
            self._note_commits()
            self._depth = 1
            if state.get_value(0, 1) != self._trees_seen:
                self._load_trees()
        except BaseException:
            if self._depth:
                self._writing.post(_ROLLBACK)
                self._depth = 0
            raise
        finally:
            self._gate.release()

    def _queues_at_once(self) -> bool:
        """Whether to refuse the lock unasked: the thread will queue, and loses turns to others as long as it does not."""
        is_contended = not self._is_queued and time.monotonic() < self._contended_until
        return is_contended and getattr(self._thread, "queues", False)

    def _take_turn(self, wait: bool, synced: bool) -> Any:
        """Begin a transaction with the lock; returns the state, read when the lock was held."""
        if self._is_queued and (state := self._turn_of_queue(self.busy_timeout if wait else 0.0)):
            return state
        statements = [_BEGIN, *([] if synced else [_UNSYNCED])]
        statements += self._waiting_lock() if wait else [self._sql.try_lock]
        try:
            *_, locked, state = repeated(self._writing, [*statements, self._sql.state])
        except StatementFailed as failure:
            raise self._not_locked(failure) from None
        if not wait and locked.get_value(0, 0) != b"\x01":
            self._writing.post(_ROLLBACK)
            raise self._busy()
        return state

    def _waiting_lock(self) -> list[ServerStatement]:
        milliseconds = str(max(1, int(self.busy_timeout * 1000))).encode()
        return [ServerStatement(_PATIENCE, (milliseconds,)), self._sql.lock]

    def _wait_in_queue(self, seconds: float) -> None:
        """Wait for our turn without any lock of this process; returns early if it is our turn."""
        if not self._gate.acquire(timeout=seconds):
            return
        try:
            if not self._depth:
                if not self._is_queued:
                    asked(self._writing, [_BEGIN, *self._waiting_lock(), self._sql.state])
                    self._is_queued = True
                self._writing.await_reply(seconds)
                return
        finally:
            self._gate.release()
        time.sleep(seconds)

    def _turn_of_queue(self, seconds: float) -> Any:
        """The state, if it is our turn in the queue; None if the session in which we stood there was lost."""
        self._is_queued = False
        try:
            results = self._writing.answered(seconds)
        except StatementFailed as failure:
            raise self._not_locked(failure) from None
        except StorageError:  # nothing had begun: the caller does so in another session
            return None
        if results is None:
            self._is_queued = True
            raise self._busy()
        return results[-1]

    def _not_locked(self, failure: StatementFailed) -> Exception:
        self._writing.post(_ROLLBACK)
        return self._busy() if failure.state == _LOCK_TIMEOUT else failure

    def _busy(self) -> StorageBusy:
        return StorageBusy(
            f"another process keeps writing to {self._address.shown}: gave up after {self.busy_timeout:g} seconds"
        )

    def _end(self, mark: int, undo: bool) -> None:
        """End the open transaction, or a nested one that began at a mark."""
        if undo:
            self._buffer.undo_to(mark)
        if self._depth > 1:
            return
        try:
            if self._buffer.is_empty:
                self._writing.post(_ROLLBACK)
                return
            made, dropped = self._commit()
        finally:
            self._buffer = WriteBuffer()
        if made or dropped:
            self._relations = {
                tree: relation for tree, relation in self._relations.items() if tree not in dropped
            } | made
            self._delete_dropped()

    def _commit(self) -> tuple[dict[str, str], set[str]]:
        """Send all writes with the commit; returns the new tables, and the trees that lost theirs."""
        statements = CommitStatements(
            self._sql, self._relations, int.from_bytes(self._seen), self._rows_at
        )
        for tree, branch in self._buffer.branches.items():
            statements.add(tree, branch)
        trees = bool(statements.made or statements.dropped)
        raised = ServerStatement(self._sql.raise_revision, (_number(trees),))
        if self._writing.losses != self._losses:
            raise self._writing.lost("nothing of this transaction was stored")
        self._unsettled = True
        try:
            *_, state, committed = self._writing.exchange(*statements.all, raised, _COMMIT)
        except StatementFailed as failure:
            self._unsettled = False
            self._writing.post(_ROLLBACK)
            raise failure
        except StorageError as error:
            self._unsettled = False
            raise StorageError(
                f"{error}; whether the last writes were stored is not known"
            ) from error
        self._unsettled = False
        if committed.command_status != b"COMMIT":
            raise StorageError(f"PostgreSQL at {self._address.shown} rolled the transaction back")
        self._seen = self._latest = state.get_value(0, 0)
        if trees:
            self._trees_seen = state.get_value(0, 1)
        return statements.made, statements.dropped

    def _require_transaction(self) -> None:
        if not self._depth:
            raise UsageError(NO_TRANSACTION)
        if self._wanted is not None:
            raise _AttemptEnds

    # Tables

    def _find_or_create(self) -> None:
        if not self._is_made():
            if self.read_only:
                raise NoDatabase(
                    f"{self._address.shown} has no Isotone database in the schema {self._address.schema}"
                )
            self._create()
        (found,) = self._reading.exchange(self._sql.format)
        if found.get_value(0, 0) != FORMAT:
            raise StorageCorrupt(
                f"{self._address.shown} was written by another version of Isotone, in the format "
                f"{found.get_value(0, 0)!r}: open it with that version"
            )
        self._read_state()
        self._seen, self._has_changed = self._latest, False

    def _is_made(self) -> bool:
        (result,) = self._reading.exchange(self._sql.is_made)
        return bool(result.get_value(0, 0) == b"\x01")

    def _create(self) -> None:
        """Create the schema, unless the role has one, and our own tables."""
        try:
            self._writing.exchange(_BEGIN, *self._waiting_lock())
            (result,) = self._writing.exchange(self._sql.has_schema)
            schema = [] if result.get_value(0, 0) == b"\x01" else [self._sql.create_schema]
            self._writing.exchange(*schema, *self._sql.create, _COMMIT)
        except StatementFailed as failure:
            raise self._not_locked(failure) from failure

    def _delete_dropped(self) -> None:
        """Delete tables of dropped trees that no snapshot can read any more. Readers may be in the way: then later."""
        patience = ServerStatement(_PATIENCE, (_DROP_TIMEOUT,))
        with suppress(StatementFailed, StorageError):
            try:
                *_, found = self._writing.exchange(_BEGIN, patience, self._sql.dropped)
                names = [found.get_value(row, 0) for row in range(found.ntuples)]
                deletions = [self._sql.drop_table(name.decode()) for name in names]
                forgotten = [ServerStatement(self._sql.forget_dropped, (name,)) for name in names]
                self._writing.exchange(*deletions, *forgotten, _COMMIT)
            except StatementFailed:
                self._writing.post(_ROLLBACK)


class _AttemptEnds(TakesLong):
    """Ends an attempt of `reading_together`: like any `TakesLong`, it passes through all blocks, and nothing was done."""


class _Transaction:
    __slots__ = ("_level", "_mark", "_rolled_back", "_store", "_synced", "_wait")

    def __init__(self, store: PostgresStore, wait: bool, synced: bool) -> None:
        self._store = store
        self._wait = wait
        self._synced = synced
        self._level = self._mark = 0
        self._rolled_back = False

    def rollback(self) -> None:
        """Roll back this transaction at the end of its block."""
        self._rolled_back = True

    def __enter__(self) -> _Transaction:
        store = self._store
        if store._depth:
            store._depth += 1
        else:
            store._begin(self._wait, self._synced)
        self._mark = store._buffer.mark
        self._level = store._depth
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        store = self._store
        undo = kind is not None or self._rolled_back
        if store._depth < self._level:
            if not undo:
                raise StorageError(ABANDONED)
            return
        store._depth = self._level
        try:
            store._end(self._mark, undo)
        finally:
            store._depth = self._level - 1


class _Snapshot:
    __slots__ = ("_store",)

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def __enter__(self) -> None:
        store = self._store
        if not store._depth and not store._snapshots:
            if store._wanted is not None:
                raise _AttemptEnds
            try:
                self._begin()
            except StatementFailed:  # as when the schema was deleted; the session is used again
                store._reading.post(_ROLLBACK)
                store._snapshots = 0
                raise
            return
        store._snapshots += 1

    def _begin(self) -> None:
        store = self._store
        _, state = repeated(store._reading, [_BEGIN_READING, store._sql.state])
        store._snapshot_losses = store._reading.losses
        store._see_now(state.get_value(0, 0))
        store._note_commits()
        store._snapshots = 1
        if state.get_value(0, 1) != store._trees_seen:
            store._load_trees()

    def __exit__(self, *_: object) -> None:
        store = self._store
        if not store._snapshots:
            return  # the snapshot was abandoned
        store._snapshots -= 1
        if not store._depth and not store._snapshots:
            store._reading.post(_COMMIT)


def _ends_early(attempt: Callable[[], object]) -> bool:
    """Call a function; whether it ended at a read of something unknown, or at its first write."""
    try:
        attempt()
    except _AttemptEnds:
        return True
    except Exception:  # noqa: BLE001 - it is called again, and its caller gets the error then
        return False
    return False
