"""How long a request may compute in a thread that must not be held, such as the event loop of a server.

A thread may ask that its turns are bounded. Work that can take long announces how long (`spend`) before it begins; what does
not fit into the turn raises `Postponed`, and nothing has been done. Other threads compute as long as they want.

A thread that does such work instead gives way after each large piece of it (`give_way`): another thread needs Python's lock
several times for one small request. No call of a C function should hold the lock for milliseconds. To free a large value is
such a call, too, so what it was made of is kept (`keep`), and freed piece by piece.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import Enum
from heapq import merge
from math import inf
from time import perf_counter
from typing import Any, Final, TypeAlias

from isotone import limits
from isotone.errors import ApiError

A_TURN: Final = (
    4000.0  # microseconds that the requests of one turn of an event loop may compute in all
)
A_BYTE: Final = 0.01
"""Microseconds to hash, to decompress or to parse a byte of a request."""
LARGE_PIECE: Final = 64 * limits.KB
"""Bytes that hold Python's lock for some milliseconds if they are parsed at once."""
_KEPT: Final = 128
"""Pieces that are kept: those of two megabytes of JSON."""
_MANY: Final = 16
"""Pieces that take a collection of garbage more than a millisecond."""
SORTED_AT_ONCE: Final = 2000
"""Texts that are sorted in about a millisecond."""
_A_WHILE: Final = 0.001  # seconds, in which others answer a few small requests
_A_BREATH: Final = 0.0001  # seconds of work in small pieces, after which others get Python's lock
_A_MOMENT: Final = 0.00005  # seconds, in which one of them takes it
_UNDISTURBED: Final = 0.0002  # a moment that took no longer: nobody else is at work
_MOST_PAUSES: Final = 5


class Wait(Enum):
    """What the caller of a request may wait for."""

    FULLY = "fully"
    """The whole answer, however long it takes."""
    ONE_TURN = "one turn"
    """A turn of its thread; the result is a function that does what is left, in any thread."""
    GIVING_WAY = "giving way"
    """The whole answer, in a thread that gives way to others while it computes."""


Rest: TypeAlias = Callable[[], bytes]
"""Does what is left of a request when its turn is over, in any thread."""


class Postponed(ApiError):
    """A request does not fit into this turn: it is executed in another thread. No caller gets this error.

    It is an `ApiError` because a transaction ends as with one: nothing was changed.
    """


class Turn:
    """The turns of one thread: the microseconds that one may take, and those that are left of the present one.

    Both are infinite in a thread whose turns are not bounded, `left` also between two turns. `gives_way` is whether the
    thread gives way to others, `paused` when it last did that, `kept` what it has kept, and `delays_garbage` whether garbage
    waits for it.
    """

    __slots__ = ("delays_garbage", "gives_way", "kept", "left", "limit", "paused")

    def __init__(self) -> None:
        self.paused = 0.0
        self.gives_way = self.delays_garbage = False
        self.kept: deque[object] | None = None
        self.limit = inf
        self.left = inf

    @property
    def is_bounded(self) -> bool:
        return self.limit != inf


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.turn = Turn()


class _Garbage:
    """Lets the collection of garbage wait while any thread needs that; the last one turns it on again if it was on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
        self._was_on = True

    def wait(self) -> None:
        with self._lock:
            if not self._threads:
                self._was_on = gc.isenabled()
                gc.disable()
            self._threads += 1

    def go_on(self) -> None:
        with self._lock:
            self._threads -= 1
            if not self._threads and self._was_on:
                gc.enable()


_garbage: Final = _Garbage()
this_thread: Final = _OfThread()
"""Has the `turn` of this thread. To look it up takes longer than to use it."""


@contextmanager
def one_turn() -> Iterator[None]:
    """A turn of this thread. Work in it that takes longer raises `Postponed` if the turns of this thread are bounded."""
    turn = this_thread.turn
    turn.left = turn.limit
    try:
        yield
    finally:
        turn.left = inf


@contextmanager
def unbounded() -> Iterator[None]:
    """Work that must not be interrupted: it costs nothing of the turn."""
    turn = this_thread.turn
    left, turn.left = turn.left, inf
    try:
        yield
    finally:
        turn.left = left


@contextmanager
def giving_way() -> Iterator[None]:
    """Long work in a thread of its own, which gives way to others."""
    turn = this_thread.turn
    turn.gives_way = True
    turn.kept = deque(maxlen=_KEPT)
    try:
        yield
    finally:
        turn.gives_way = False
        free_kept()
        if turn.delays_garbage:
            turn.delays_garbage = False
            _garbage.go_on()


def spend(microseconds: float) -> None:
    """Announce work. Raises `Postponed` if it does not fit into the turn, and leaves the turn to others."""
    turn = this_thread.turn
    if microseconds > turn.left:
        raise Postponed
    turn.left -= microseconds


def give_way() -> None:
    """After a large piece of work, while no lock is held: let others work for a while, if this thread is for long work."""
    if this_thread.turn.gives_way:
        time.sleep(_A_WHILE)


def breathe() -> None:
    """Between small pieces of work, while no lock is held: after a tenth of a millisecond, let others work for a moment.

    Python by itself lets a thread go on for five milliseconds while others wait. A moment that takes longer than it should
    shows that another thread has Python's lock; then this one waits for another, so that a request needs not ask for the
    lock again and again.
    """
    turn = this_thread.turn
    now = perf_counter()
    if not turn.gives_way or now - turn.paused <= _A_BREATH:
        return
    for _ in range(_MOST_PAUSES):
        began = now
        time.sleep(_A_MOMENT)
        now = perf_counter()
        if now - began < _UNDISTURBED:
            break
    turn.paused = now


def in_order(texts: Collection[str], key: Callable[[str], Any] = str) -> list[str]:
    """The same as `sorted`. A thread that gives way sorts few at once: to sort 60,000 numbers takes many milliseconds."""
    if len(texts) <= SORTED_AT_ONCE or not this_thread.turn.gives_way:
        return sorted(texts, key=key)
    listed = list(texts)
    starts = range(0, len(listed), SORTED_AT_ONCE)
    parts = [sorted(listed[start : start + SORTED_AT_ONCE], key=key) for start in starts]
    return list(merge(*parts, key=key))


def keep(piece: object) -> None:
    """Keep a piece of a large value while others are made, so that the value is not freed all at once, if this thread gives way.

    A collection of garbage would go through all of it in one call, and find nothing: there are no cycles in requests and items.
    So garbage waits until the work is done, if there are many pieces.
    """
    turn = this_thread.turn
    kept = turn.kept
    if kept is not None:
        kept.append(piece)
        if len(kept) >= _MANY and not turn.delays_garbage:
            turn.delays_garbage = True
            _garbage.wait()


def free_kept() -> None:
    """Free what was kept, one piece after the other."""
    turn = this_thread.turn
    kept, turn.kept = turn.kept, None
    while kept:
        kept.popleft()
