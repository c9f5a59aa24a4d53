"""Time slices: how long background work may hold the engine's lock before it lets requests in.

Every other thread that reads or writes waits for that long. So a slice is limited by time: it processes entries while
time remains, and at least one, however large. Its commit takes about 0.2 ms more. The time is processor time, because
waiting for a processor is no reason to do less in a slice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from time import thread_time
from typing import Final, TypeVar

SECONDS: Final = 0.0002
LONG: Final = 0.001
"""For work on a table that nobody can read yet."""

T = TypeVar("T")


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
        if sum(map(len, chain.from_iterable(group))) > size:
            so_far = list(accumulate(len(key) + len(value) for key, value in group))
            group = group[: bisect_left(so_far, size) + 1]
        yield group
        begin += len(group)
