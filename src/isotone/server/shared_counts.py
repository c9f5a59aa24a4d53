"""With --workers: counters in shared memory: connections and body bytes of each front, for the server's limits.

Each number has one writer, and readers add up all of them. The supervisor counts the connections that it has passed to a
front, and the front those that have ended. The state of the audit log's last line (`TornLine`) is shared here, too.
"""

from __future__ import annotations

import mmap
from typing import Final

from isotone.server.audit import TornLine
from isotone.server.body_budget import Bodies

_SIZE: Final = 8
_HANDED, _ENDED, _SERVED, _BODIES, _FIELDS = range(5)


class SharedCounts:
    """The counts of `fronts` fronts; created before they are forked."""

    def __init__(self, fronts: int) -> None:
        self.torn_line: TornLine = TornLine()
        self.torn_line.share()
        self._numbers = memoryview(mmap.mmap(-1, fronts * _FIELDS * _SIZE)).cast("q")

    def hand(self, front: int) -> None:
        """Count a connection that is passed to a front."""
        self._numbers[front * _FIELDS + _HANDED] += 1

    def end(self, front: int) -> None:
        """Count a connection of a front that has ended."""
        self._numbers[front * _FIELDS + _ENDED] += 1

    def connections(self, front: int) -> int:
        """The open connections of a front, including those that it has not accepted yet."""
        start = front * _FIELDS
        return self._numbers[start + _HANDED] - self._numbers[start + _ENDED]

    def set_served(self, front: int, number: int) -> None:
        """Set the number of connections that a front serves, without those that it refuses."""
        self._numbers[front * _FIELDS + _SERVED] = number

    def all_served(self) -> int:
        """The number of connections that all fronts serve."""
        return sum(self._numbers[_SERVED::_FIELDS])

    def bodies(self, front: int) -> int:
        """Bytes of the bodies that a front holds."""
        return self._numbers[front * _FIELDS + _BODIES]

    def set_bodies(self, front: int, held: int) -> None:
        """Set the bytes of the bodies that a front holds."""
        self._numbers[front * _FIELDS + _BODIES] = held

    def all_bodies(self) -> int:
        """Bytes of the bodies that all fronts hold."""
        return sum(self._numbers[_BODIES::_FIELDS])

    def clear(self, front: int) -> None:
        """Set the counts of a front that has ended to 0."""
        for field in range(_FIELDS):
            self._numbers[front * _FIELDS + field] = 0


class SharedBodies(Bodies):
    """The budget of the bodies of all fronts, in the process of one of them."""

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
