"""Time slices: how long background work may hold the engine's lock before it lets requests in.

Every other thread that reads or writes waits for that long. So a slice is limited by time: it processes entries while
time remains, and at least one, however large. Its commit takes about 0.2 ms more. The time is processor time, because
waiting for a processor is no reason to do less in a slice.

Between two slices nobody holds the engine's lock, but Python lets a thread go on for a while although others wait. So a
thread for background work sleeps for a moment (`breathe`).
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain
from time import perf_counter, thread_time
from typing import Final, TypeVar

SECONDS: Final = 0.0002
LONG: Final = 0.001
"""For work on a table that nobody can read yet."""

_A_BREATH: Final = 0.0001  # seconds of work, after which others get Python's lock
_A_MOMENT: Final = 0.00005  # seconds, in which one of them takes it
_UNDISTURBED: Final = 0.0002  # a moment that took no longer: nobody else is at work
_MOST_PAUSES: Final = 5

T = TypeVar("T")


class _BackgroundWork(threading.local):
    is_background = False
    paused = 0.0


_this_thread: Final = _BackgroundWork()


@contextmanager
def in_background() -> Iterator[None]:
    """Background work, which leaves Python's lock to others."""
    _this_thread.is_background = True
    try:
        yield
    finally:
        _this_thread.is_background = False


def breathe() -> None:
    """Between small pieces of work, while no lock is held: after a tenth of a millisecond, let others work for a moment.

    A moment that takes longer than it should shows that another thread has Python's lock; then this one waits for another,
    so that a request needs not ask for the lock again and again.
    """
    now = perf_counter()
    if not _this_thread.is_background or now - _this_thread.paused <= _A_BREATH:
        return
    for _ in range(_MOST_PAUSES):
        began = now
        time.sleep(_A_MOMENT)
        now = perf_counter()
        if now - began < _UNDISTURBED:
            break
    _this_thread.paused = now


def in_time(entries: Iterable[T], most: int | None = None, seconds: float = SECONDS) -> Iterator[T]:
    """Yield entries while the slice has time for them, at most `most`."""
    ends = thread_time() + seconds
    for number, entry in enumerate(entries, start=1):
        yield entry
        if number == most or thread_time() >= ends:
            return


def chunks(
    entries: Sequence[tuple[bytes, bytes]], most: int, size: int, begin: int = 0
) -> Iterator[Sequence[tuple[bytes, bytes]]]:
    """Entries from a position on, in groups of at most `most` entries; a group ends when it has `size` bytes."""
    while begin < len(entries):
        group = entries[begin : begin + most]
        if sum(map(len, chain.from_iterable(group))) >= size:
            so_far = list(accumulate(len(key) + len(value) for key, value in group))
            group = group[: bisect_left(so_far, size) + 1]
        yield group
        begin += len(group)
