"""The database without its API: a store, the tables in it, the clock, and one lock.

Rules that every caller keeps:

- Work happens inside `with engine.reading:` or `with engine.writing:`. Both hold the lock and first
  notice what other processes changed. `writing` nests: the outermost block is the transaction, and
  what is inside it reaches the disk together (that is group commit).
- An action checks everything before its first write. So an `ApiError` leaves nothing to undo, and any
  other exception undoes the outermost block.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from isotone.clock import Clock, SystemClock
from isotone.engine import catalog, counts
from isotone.engine.catalog import Catalog
from isotone.engine.counts import Counts
from isotone.storage.interface import Store, Transaction

PROGRESS = "progress"  # how far each backfill has come
TOKENS = "tokens"  # answered transaction tokens
SYSTEM_TREES = (catalog.TREE, counts.TREE, PROGRESS, TOKENS)


class Engine:
    """One open database. Closing it closes its store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        region: str = "us-east-1",
        account: str = "000000000000",
    ) -> None:
        self.store = store
        self.clock: Clock = clock or SystemClock()
        self.region = region
        self.account = account
        self.lock = threading.RLock()
        _make_system_trees(store)
        self.catalog = Catalog(store)
        self.counts = Counts(store)
        self.reading = _Reading(self)
        self.writing = _Writing(self)

    def refresh(self) -> None:
        """Drop what is kept in memory if another process made it old."""
        if self.store.changed_elsewhere():
            self.counts.forget()
            self.catalog.refresh()

    def forget(self) -> None:
        """Read catalog and counts anew: a transaction was undone."""
        self.counts.forget()
        self.catalog.refresh()

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Undo everything that is written inside the block, in time proportional to what was written."""
        with self.lock:
            transaction = self.store.transaction()
            transaction.__enter__()
        try:
            yield
        finally:
            with self.lock:
                transaction.rollback()
                transaction.__exit__(None, None, None)
                self.forget()

    def close(self) -> None:
        with self.lock:
            self.store.close()


def _make_system_trees(store: Store) -> None:
    if set(SYSTEM_TREES) <= set(store.trees()):
        return
    with store.transaction():
        missing = set(SYSTEM_TREES) - set(store.trees())  # another process may have been faster
        for tree in sorted(missing):
            store.create_tree(tree)


class _Reading:
    """`with engine.reading:` the lock, and a view of one moment, not older than the last commit.

    What the catalog says and what is read by it is of the same moment, so that no other process can
    drop a table in between.
    """

    __slots__ = ("_engine", "_lock", "_snapshot")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = engine.lock
        self._snapshot = engine.store.snapshot()

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._snapshot.__enter__()
            try:
                self._engine.refresh()
            except BaseException:
                self._snapshot.__exit__(None, None, None)
                raise
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._snapshot.__exit__(None, None, None)
        finally:
            self._lock.release()


class _Writing:
    """`with engine.writing:` the lock and one transaction, shared by the blocks nested inside."""

    __slots__ = ("_depth", "_engine", "_lock", "_transaction")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = engine.lock
        self._depth = 0
        self._transaction: Transaction | None = None

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            if self._depth == 0:
                transaction = self._engine.store.transaction()
                transaction.__enter__()
                self._transaction = transaction
                self._engine.refresh()
            self._depth += 1
        except BaseException:
            self._lock.release()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._depth -= 1
            if self._depth == 0:
                self._end(kind, error, trace)
        finally:
            self._lock.release()

    def _end(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        transaction, self._transaction = self._transaction, None
        assert transaction is not None
        engine = self._engine
        if kind is None:
            try:
                engine.counts.flush()
            except BaseException as failure:
                transaction.__exit__(type(failure), failure, failure.__traceback__)
                engine.forget()
                raise
        touched = kind is not None and (engine.counts.changed or engine.catalog.changed)
        try:
            transaction.__exit__(kind, error, trace)
        except BaseException:
            touched = True
            raise
        finally:
            engine.catalog.changed = False
            if touched:
                engine.forget()
