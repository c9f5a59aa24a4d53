"""`reading`, `reading_beside` and `writing`, the blocks of an engine: their locks, the commit, and the wait for writers.

A block takes the engine's lock, and `reading_beside` that of a spare reader while another thread has it. While another
process writes (the lock of the file, or the turn in PostgreSQL), `writing` waits up to `busy_timeout` without the engine's
lock, so that other threads can read (`WriterWaits`). A process forks between two requests: a child must not inherit a
running one, or a held lock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from isotone.errors import ApiError, IsotoneError, StorageBusy, TakesLong
from isotone.storage.interface import OrderedStore, StoreTransaction

if TYPE_CHECKING:
    from isotone.engine.engine import Engine

_PAUSE = 0.0005  # seconds between the first two attempts to take the lock of a file
_LONGEST_PAUSE = 0.005
_LENGTHENED = 1.02  # factor from one pause to the next


class ReadBlock:
    """`with engine.reading:` takes the lock, and a snapshot that includes the last commit.

    The catalog and the items come from the same moment: no other process can drop a table in between. If no other
    process can write, the lock alone is enough.
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
            self._engine.refresh()
        except IsotoneError:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._snapshot.__exit__(None, None, None)
        except IsotoneError:
            self._lock.release()
            raise
        self._lock.release()


class ReadBesideBlock:
    """`with engine.reading_beside as engine:` is `reading`, but waits for no writer: if another thread has the engine's
    lock, the block gets a reader, which it must use instead of the engine.
    """

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Engine:
        engine = self._engine
        chosen = engine if engine.lock.acquire(False) else engine.readers.beside(engine)
        try:
            chosen.reading.__enter__()
        except IsotoneError:
            chosen.lock.release()
            raise
        return chosen

    def __exit__(self, *_: object) -> None:
        # A thread that owns the engine's lock uses the engine; any other uses a reader.
        engine = self._engine
        chosen = engine if engine.lock._is_owned() else engine.readers.in_use()
        try:
            chosen.reading.__exit__(None, None, None)
        finally:
            chosen.lock.release()


class LockBlock:
    """`reading_beside` of a store that no other process or thread can read: takes the lock."""

    __slots__ = ("_engine", "_lock")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = engine.lock

    def __enter__(self) -> Engine:
        self._lock.acquire()
        return self._engine

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class WriteBlock:
    """`with engine.writing:` takes the lock, and one transaction that nested blocks share."""

    __slots__ = ("_depth", "_engine", "_exclusive", "_lock", "_synced", "_transaction")

    def __init__(self, engine: Engine, *, synced: bool) -> None:
        self._engine = engine
        self._synced = synced
        self._exclusive = engine.store.exclusive
        self._lock = engine.lock
        self._transaction: StoreTransaction
        self._depth = 0

    def reset(self) -> None:
        """Forget the open transaction, which was abandoned."""
        self._depth = 0

    def __enter__(self) -> Engine:
        self._lock.acquire()
        if self._depth == 0:
            try:
                try:
                    self._begin()
                except StorageBusy as error:
                    self._engine.writer_waits.until_taken(self._begin, error)
            except IsotoneError:
                self._lock.release()
                raise
        self._depth += 1
        return self._engine

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._depth == 1:
                self._end(kind)
        except IsotoneError:
            self._depth -= 1
            self._lock.release()
            raise
        self._depth -= 1
        self._lock.release()

    def _begin(self) -> None:
        self._transaction = self._engine.store.transaction(wait=False, synced=self._synced)
        self._transaction.__enter__()
        if self._exclusive and not self._engine.outdated:
            return
        try:
            self._engine.refresh()
        except IsotoneError:
            self._undo()
            raise

    def _end(self, kind: type[BaseException] | None) -> None:
        engine = self._engine
        home = engine.home
        if kind is not None:
            self._undo()
            # Item actions raise one of these only before they have changed anything.
            if (
                not issubclass(kind, ApiError | TakesLong)
                or engine.counts.changed
                or len(home.regions) > 1
            ):
                engine.forget()
            else:
                engine.catalog.refresh()
            return
        try:
            if home.has_undelivered and home.deliver_to_replicas is not None:
                home.deliver_to_replicas(home)
            engine.counts.flush()
        except BaseException:
            self._undo()
            engine.forget()
            raise
        try:
            self._transaction.__exit__(None, None, None)
        except IsotoneError:
            engine.forget()
            raise

    def _undo(self) -> None:
        self._transaction.rollback()
        self._transaction.__exit__(None, None, None)


class WriterWaits:
    """Waits without the engine's lock while another process is writing, and measures the wait."""

    def __init__(self, lock: Any, store: OrderedStore) -> None:
        self.count: int = 0
        self.seconds: float = 0.0
        self._lock = lock
        self._store = store
        self._thread = threading.local()

    @property
    def are_forbidden(self) -> bool:
        """Whether this thread gets `StorageBusy` at once instead of waiting."""
        return getattr(self._thread, "forbidden", False)

    @are_forbidden.setter
    def are_forbidden(self, forbidden: bool) -> None:
        self._thread.forbidden = forbidden

    def until_taken(self, take: Callable[[], object], error: StorageBusy) -> None:
        """Repeat `take`, which raised the error, until it succeeds or `busy_timeout` is over.

        Each call, and the return, hold the engine's lock; the pauses do not.
        """
        if self.are_forbidden:
            raise error
        began = time.monotonic()
        try:
            self._retry(take, began + self._store.busy_timeout)
        finally:
            self.count += 1
            self.seconds += time.monotonic() - began

    def _retry(self, take: Callable[[], object], deadline: float) -> None:
        pause = _PAUSE
        with self._store.queue() as wait:
            while True:
                self._lock.release()
                try:
                    wait(pause)
                finally:
                    self._lock.acquire()
                try:
                    take()
                except StorageBusy:
                    if time.monotonic() >= deadline:
                        raise
                    pause = min(pause * _LENGTHENED, _LONGEST_PAUSE)
                else:
                    return


# Forks

OPEN: WeakSet[Engine] = WeakSet()
"""All engines of this process."""


def _lock_all() -> None:
    """Wait until no request is running: a child must not inherit a running request or a held lock."""
    for engine in sorted(OPEN, key=id):
        if engine.home is engine:
            _hold(engine.readers.lock)  # from here on no reader is opened
    for engine in sorted(OPEN, key=id):
        _hold(engine.lock)


def _hold(lock: Any) -> None:
    lock.acquire()
    _held.append(lock)


def _unlock_all() -> None:
    while _held:
        _held.pop().release()


_held: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock_all, after_in_parent=_unlock_all, after_in_child=_unlock_all)
