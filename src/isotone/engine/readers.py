"""Spare connections to an open file, so that a read need not wait while another thread uses the engine.

An engine has one connection, which one thread uses at a time. While another thread has it, for a transaction or for a
slice of background work, a read uses a reader instead: an engine with a connection and a catalog of its own. Like another
process, a reader sees everything that was committed before. A read that finds the engine free uses no reader, so a program
with one thread opens none.

There are at most `MOST` readers. A read that finds all of them in use waits until another read ends. They stay open until
the engine closes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from isotone.errors import IsotoneError

if TYPE_CHECKING:
    from isotone.engine.engine import Engine

MOST: Final = 4
"""Readers of an engine. More would hardly read faster, because Python computes in one thread at a time."""


class Readers:
    """The readers of an engine. Each has a lock, as every engine has; the thread that uses a reader holds its lock."""

    __slots__ = ("_is_closed", "_open", "_opened", "lock", "paused")

    def __init__(self, open_reader: Callable[[], Engine | None]) -> None:
        self._open = open_reader
        self._opened: list[Engine] = []
        self._is_closed = False
        self.lock: threading.Lock = threading.Lock()
        """Held while a reader is opened, and by forks."""
        self.paused: int = 0
        """The number of open blocks whose writes only the engine's own connection sees; meanwhile no reader is used."""

    @property
    def opened(self) -> Sequence[Engine]:
        """All readers, also those that other threads use."""
        return self._opened

    def take(self) -> Engine | None:
        """A reader whose lock this thread now holds; None if the read must wait for the engine."""
        if self.paused:
            return None
        reader = self._free() or self._new()
        if reader is None and self._opened:
            reader = self._opened[threading.get_ident() % len(self._opened)]
            reader.lock.acquire()
        if reader is not None and self._is_closed:
            reader.lock.release()
            return None
        return reader

    def _free(self) -> Engine | None:
        return next((each for each in self._opened if each.lock.acquire(False)), None)

    def _new(self) -> Engine | None:
        """Open a reader, unless there are `MOST` already."""
        if len(self._opened) >= MOST:
            return None
        with self.lock:
            if len(self._opened) >= MOST or self._is_closed:
                return None
            try:
                reader = self._open()
            except IsotoneError:
                return None  # the engine's own read reports what is wrong with the file
            if reader is not None:
                reader.lock.acquire()
                self._opened.append(reader)
            return reader

    def beside(self, engine: Engine) -> Engine:
        """A reader of an engine's region; if there is none, the engine itself once its lock is free. Its lock is held."""
        reader = None if engine.store.exclusive else self.take()
        if reader is not None:
            found = _region_of(reader, engine.region)
            if found is not None:
                found.catalog.share_units(engine.catalog.units)
                return found
            reader.lock.release()
        engine.lock.acquire()
        return engine

    def in_use(self) -> Engine:
        """The reader whose lock this thread holds."""
        return next(each for each in self._opened if each.lock._is_owned())

    def abandon(self) -> None:
        """Roll back transactions that this thread left open in a reader, after an unexpected exception."""
        for reader in self._opened:
            reader.abandon()

    def close(self) -> None:
        """Close all readers, each after the read that uses it."""
        if not self.lock.acquire(blocking=not sys.is_finalizing()):
            return
        self._is_closed = True
        self.lock.release()
        for reader in self._opened:
            reader.close()


def _region_of(reader: Engine, region: str) -> Engine | None:
    """A region, which may be newer than what the reader has read last; None if it is not committed yet."""
    if region not in reader.regions:
        with suppress(IsotoneError), reader.reading:
            pass  # the owner's own read reports what is wrong with the file
    return reader.regions.get(region)
