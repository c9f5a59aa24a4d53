"""Slices: how long background work may hold the lock of the engine.

Every other thread that writes, and every one that reads, waits as long. So a slice is bounded by time: it takes entries as
long as it has time for them, and always one, however large. Its commit comes on top, with about 0.2 ms. The time is that
of the processor, because a thread that had to wait for one gains nothing by a shorter slice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from time import thread_time
from typing import Final, TypeVar

SECONDS: Final = 0.0002
LONG: Final = 0.001
"""For work whose table nobody can read yet."""

T = TypeVar("T")


def in_time(entries: Iterable[T], most: int | None = None, seconds: float = SECONDS) -> Iterator[T]:
    """The first of these entries that a slice has time for, and no more than `most`."""
    ends = thread_time() + seconds
    for number, entry in enumerate(entries, start=1):
        yield entry
        if number == most or thread_time() >= ends:
            return


def chunks(
    entries: Sequence[tuple[bytes, bytes]], most: int, size: int, begin: int = 0
) -> Iterator[Sequence[tuple[bytes, bytes]]]:
    """These entries from a place on, in groups of no more than `most`, each of which ends as soon as it has `size` bytes."""
    while begin < len(entries):
        group = entries[begin : begin + most]
        if sum(map(len, chain.from_iterable(group))) > size:
            so_far = list(accumulate(len(key) + len(value) for key, value in group))
            group = group[: bisect_left(so_far, size) + 1]
        yield group
        begin += len(group)
