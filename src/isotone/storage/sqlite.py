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
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, NoReturn
from weakref import WeakSet

import apsw

from isotone.errors import StorageError, UsageError
from isotone.storage.file import MEMORY_MAP, Durability, Waiting, connect, storage_error
from isotone.storage.interface import (
    ABANDONED,
    CLOSED,
    NO_TRANSACTION,
    TRANSACTION_IN_SNAPSHOT,
    NoSuchTree,
    checked_tree_name,
    existing_tree,
)

_LOST: Final = -1
_MAX_PROBLEMS: Final = 100  # reported by one check


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
        "_connection",
        "_depth",
        "_execute",
        "_ready",
        "_seen_version",
        "_snapshots",
        "_statements",
        "_waiting",
        "busy_timeout",
        "path",
    )
    exclusive = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = "disk",
        *,
        busy_timeout: float = 5.0,
        memory_map: int = MEMORY_MAP,
    ) -> None:
        self.path = os.fspath(path)
        self.busy_timeout = busy_timeout
        self._waiting = Waiting(busy_timeout)
        self._connection: Any = connect(
            self.path, durability, busy_timeout, memory_map, self._waiting
        )
        self._execute: Any = self._connection.cursor().execute
        self._statements = _StatementsByTree()
        self._depth = 0
        self._ready = 1
        self._snapshots = 0
        self._seen_version = self._data_version()
        _OPEN.add(self)

    def transaction(self, *, wait: bool = True) -> _SQLiteTransaction:
        """Take the write lock of the file until the block ends; nested ones are savepoints.

        Raises `StorageBusy` if another process keeps the lock for longer than `busy_timeout`; without `wait`, at
        once if another process has it.
        """
        return _SQLiteTransaction(self, wait)

    def abandon(self) -> None:
        """Undo everything that is open."""
        if self._connection.in_transaction:
            self._command("ROLLBACK")
        self._depth = self._snapshots = 0
        self._ready = 1

    def snapshot(self) -> AbstractContextManager[None]:
        """Make all reads inside the block see the moment of the first one.

        A transaction already is a snapshot. A transaction cannot begin inside a snapshot.
        """
        return _Snapshot(self)

    def create_tree(self, tree: str) -> None:
        """Create an empty tree."""
        sql = self._statements[checked_tree_name(tree)].create
        if tree in self.trees():
            raise existing_tree(tree)
        self._write(sql, tree)

    def drop_tree(self, tree: str) -> None:
        """Delete a tree and its entries."""
        self._write(self._statements[tree].drop, tree)
        self._statements.pop(tree, None)  # a table that is created again gets them again

    def trees(self) -> list[str]:
        """The names of all trees, sorted."""
        try:
            rows = self._execute(_TREES).fetchall()
        except apsw.Error as error:
            raise self._failure(error) from error
        return [name for (name,) in rows]

    def get(self, tree: str, key: bytes) -> bytes | None:
        """The value at a key, or None. O(log n)."""
        try:
            value: bytes | None = self._execute(self._statements[tree].get, (key,)).get
        except apsw.Error as error:
            raise self._failure(error, tree) from error
        return value

    def put(self, tree: str, key: bytes, value: bytes) -> None:
        """Set the value at a key. O(log n)."""
        if self._depth != self._ready:
            self._make_ready()
        try:
            self._execute(self._statements[tree].put, (key, value))
        except apsw.Error as error:
            raise self._failure(error, tree) from error

    def add(self, tree: str, entries: Sequence[tuple[bytes, bytes]]) -> int:
        """Put the entries whose keys do not exist, and return how many. One statement for all."""
        if self._depth != self._ready:
            self._make_ready()
        before = self._connection.total_changes()
        try:
            self._connection.executemany(self._statements[tree].add, entries)
        except apsw.Error as error:
            raise self._failure(error, tree) from error
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
        self, tree: str, low: bytes, high: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries with `low <= key < high` in order. O(log n), then O(1) per entry."""
        bounds = (low,) if high is None else (low, high)
        cursor = self._connection.cursor()
        try:
            cursor.execute(self._statements[tree].range[high is None, reverse], bounds)
        except apsw.Error as error:
            raise self._failure(error, tree) from error
        return self._entries(cursor, tree)

    def changed_elsewhere(self) -> bool:
        """Whether another connection has committed since the last call. O(1).

        Inside a snapshot or a transaction, it considers commits before that began.
        """
        version = self._data_version()
        changed = version != self._seen_version
        self._seen_version = version
        return changed

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file. Reads all of it."""
        try:
            reports = [row[0] for row in self._execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})")]
            tables = dict(
                self._execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
            )
        except apsw.Error as error:
            return [f"the file cannot be read: {error}"]
        expected = {self._statements[tree].create for tree in self.trees()}
        return [report for report in reports if report != "ok"] + [
            f"table {name} was not created by Isotone"
            for name, sql in tables.items()
            if sql not in expected and not name.startswith(_OF_REPLICATOR)
        ]

    def close(self) -> None:
        """Close the file; the last process to do so merges the log into it."""
        _OPEN.discard(self)
        connection = self._connection
        self._replace_connection(_Unusable(CLOSED))
        if not isinstance(connection, _Unusable):
            connection.close(True)

    def _entries(self, cursor: apsw.Cursor, tree: str) -> Iterator[tuple[bytes, bytes]]:
        try:
            yield from cursor
        except apsw.Error as error:
            raise self._failure(error, tree) from error

    def _data_version(self) -> int:
        try:
            version: int = self._execute("PRAGMA data_version").get
        except apsw.Error as error:
            raise self._failure(error) from error
        return version

    def _write(self, sql: str, tree: str) -> None:
        if self._depth != self._ready:
            self._make_ready()
        try:
            self._execute(sql)
        except apsw.Error as error:
            raise self._failure(error, tree) from error

    def _begin(self, wait: bool) -> None:
        if self._snapshots:
            raise UsageError(TRANSACTION_IN_SNAPSHOT)
        if self._connection.in_transaction:
            # A signal handler's exception cut an earlier block short before it was counted.
            self._execute("ROLLBACK")
        if wait:
            self._command("BEGIN IMMEDIATE")
            return
        self._waiting.allowed = False
        try:
            self._command("BEGIN IMMEDIATE")
        finally:
            self._waiting.allowed = True

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
        if self._depth and not self._connection.in_transaction:
            self._ready = _LOST
        return storage_error(error, self.path, tree, self._connection.system_errno)

    def _lost(self) -> StorageError:
        return StorageError(
            f"an earlier error rolled back this transaction on {self.path}: begin it again"
        )

    def _replace_connection(self, unusable: _Unusable) -> None:
        self._connection = unusable
        self._execute = unusable.refuse

    def _disown(self) -> None:
        """In a forked child: never touch the parent's connection again.

        SQLite does not even allow closing it here, so it must not be garbage-collected either.
        """
        if not isinstance(self._connection, _Unusable):
            import ctypes  # slow to import, and rarely needed

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._replace_connection(
                _Unusable(f"{self.path} was opened before fork(); open it again in the child")
            )


class _SQLiteTransaction:
    __slots__ = ("_level", "_rolled_back", "_store", "_wait")

    def __init__(self, store: SQLiteStore, wait: bool) -> None:
        self._store = store
        self._wait = wait
        self._level = 0
        self._rolled_back = False

    def rollback(self) -> None:
        """Undo this transaction's work at the end of its block."""
        self._rolled_back = True

    def __enter__(self) -> _SQLiteTransaction:
        store = self._store
        if not store._depth:
            store._begin(self._wait)
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


class _Snapshot:
    __slots__ = ("_store",)

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store

    def __enter__(self) -> None:
        store = self._store
        if not store._depth and not store._snapshots:
            store._command("BEGIN")
        store._snapshots += 1

    def __exit__(self, *_: object) -> None:
        store = self._store
        if not store._snapshots:
            return  # abandoned
        store._snapshots -= 1
        if not store._depth and not store._snapshots:
            store._command("COMMIT")


class _Unusable:
    """Replaces the connection of a store that can no longer be used."""

    __slots__ = ("_why",)

    def __init__(self, why: str) -> None:
        self._why = why

    def refuse(self, *_: object) -> NoReturn:
        raise UsageError(self._why)

    cursor = refuse

    @property
    def in_transaction(self) -> bool:
        return False


_OPEN: WeakSet[SQLiteStore] = WeakSet()


def _disown_all() -> None:
    for store in list(_OPEN):
        store._disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)


# The SQL of a tree. A tree `name` is the table `tree_name` with two columns, its key and its value.

_PREFIX: Final = "tree_"
_OF_REPLICATOR: Final = "_litestream_"  # Litestream's own tables; it takes its locks by them
_TREES: Final = (
    f"SELECT substr(name, {len(_PREFIX) + 1}) AS tree FROM sqlite_schema"
    f" WHERE type = 'table' AND name GLOB '{_PREFIX}*' ORDER BY tree"
)


class _Statements(NamedTuple):
    """The SQL of one tree; the keys of `range` are (without an upper bound, reverse)."""

    create: str
    drop: str
    get: str
    put: str
    add: str
    delete: str
    range: dict[tuple[bool, bool], str]


def _statements_of(tree: str) -> _Statements:
    table = f'"{_PREFIX}{tree}"'
    bounds = {False: "key >= ? AND key < ?", True: "key >= ?"}
    orders = {False: "ASC", True: "DESC"}
    return _Statements(
        create=f"CREATE TABLE {table} (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID",
        drop=f"DROP TABLE {table}",
        get=f"SELECT value FROM {table} WHERE key = ?",
        # An upsert changes the row in place, where REPLACE deletes and inserts.
        put=f"INSERT INTO {table} VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        add=f"INSERT INTO {table} VALUES (?, ?) ON CONFLICT DO NOTHING",
        delete=f"DELETE FROM {table} WHERE key = ?",
        range={
            (unbounded, reverse): (
                f"SELECT key, value FROM {table} WHERE {bound} ORDER BY key {order}"
            )
            for unbounded, bound in bounds.items()
            for reverse, order in orders.items()
        },
    )


class _StatementsByTree(dict[str, _Statements]):
    """The statements of each tree, created at first use, whether or not the tree exists.

    SQLite reports a tree that does not exist, even if another process has just dropped it.
    """

    def __missing__(self, tree: str) -> _Statements:
        try:
            statements = self[tree] = _statements_of(checked_tree_name(tree))
        except UsageError:
            raise NoSuchTree(tree) from None
        return statements
