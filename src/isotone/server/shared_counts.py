"""What all processes of a server see in shared memory: connections and bodies of each front, and a torn line of the log.

Each number is written by one process alone, and all are added up, so that a budget is one for the whole server. The
supervisor counts the connections that it has handed to a front, and the front those that have ended.
"""

from __future__ import annotations

import mmap
from typing import Final

from isotone.server.audit import TornLine
from isotone.server.metrics import Bodies

_SIZE: Final = 8
_HANDED, _ENDED, _SERVED, _BODIES, _FIELDS = range(5)


class SharedCounts:
    """The counts of so many fronts. It is made before they are forked."""

    def __init__(self, fronts: int) -> None:
        self.torn_line: TornLine = TornLine()
        self.torn_line.share()
        self._numbers = memoryview(mmap.mmap(-1, fronts * _FIELDS * _SIZE)).cast("q")

    def hand(self, front: int) -> None:
        """A front gets one more connection."""
        self._numbers[front * _FIELDS + _HANDED] += 1

    def end(self, front: int) -> None:
        """A connection of a front has ended."""
        self._numbers[front * _FIELDS + _ENDED] += 1

    def connections(self, front: int) -> int:
        """The connections of a front, with those that it has not begun with."""
        start = front * _FIELDS
        return self._numbers[start + _HANDED] - self._numbers[start + _ENDED]

    def set_served(self, front: int, number: int) -> None:
        """How many connections a front serves: not those that it turns away."""
        self._numbers[front * _FIELDS + _SERVED] = number

    def all_served(self) -> int:
        """The connections that all fronts serve."""
        return sum(self._numbers[_SERVED::_FIELDS])

    def bodies(self, front: int) -> int:
        """Bytes of the bodies that a front holds."""
        return self._numbers[front * _FIELDS + _BODIES]

    def set_bodies(self, front: int, held: int) -> None:
        """How many bytes a front holds now."""
        self._numbers[front * _FIELDS + _BODIES] = held

    def all_bodies(self) -> int:
        """Bytes of the bodies that all fronts hold."""
        return sum(self._numbers[_BODIES::_FIELDS])

    def clear(self, front: int) -> None:
        """Forget a front that has ended."""
        for field in range(_FIELDS):
            self._numbers[front * _FIELDS + field] = 0


class SharedBodies(Bodies):
    """The budget of the bodies of all fronts, as one of them counts it."""

    __slots__ = ("_counts", "_front")

    def __init__(self, limit: int, counts: SharedCounts, front: int) -> None:
        self._counts = counts
        self._front = front
        super().__init__(limit)

    @property
    def held(self) -> int:
        """Bytes that this front holds."""
        return self._counts.bodies(self._front)

    @held.setter
    def held(self, held: int) -> None:
        self._counts.set_bodies(self._front, held)

    def fits(self, size: int) -> bool:
        return self._counts.all_bodies() + size <= self.limit
