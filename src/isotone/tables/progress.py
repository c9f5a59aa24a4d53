"""The progress of a long job: items, rate, time left, units, cost. Knows nothing about terminals.

meter = Meter("copy", of_items=1_000_000)
meter.add(items=25, read_units=6.5, write_units=25.0)       # from any thread
print(meter.progress("Orders"))
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from isotone.prices import US_EAST_1
from isotone.text_table import pluralized

_WINDOW: Final = 20.0  # seconds over which the rate is measured
_SAMPLE: Final = 0.2  # seconds between two samples


class Estimates:
    """Estimates made from a job's progress: the share that is done, the time left, and their text."""

    __slots__ = ()
    of_items: int
    items_per_second: float
    is_over: bool

    @property
    def _done(self) -> int:
        raise NotImplementedError  # each subclass has its own

    @property
    def share(self) -> float:
        """The fraction that is done, if the estimate of all items is right."""
        if self.is_over:
            return 1.0
        return min(self._done / self.of_items, 0.99) if self.of_items else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The estimated time to the end; None if there is no basis for an estimate."""
        if self.is_over:
            return 0.0
        left = self.of_items - self._done
        return left / self.items_per_second if left > 0 and self.items_per_second else None

    def _text(self, head: str, *counts: str) -> str:
        """A line with the items that are done, other counts, the rate and the time left."""
        done = pluralized(self._done, "item")
        if not self.is_over and self.of_items:
            done = f"{self._done:,} of about {pluralized(self.of_items, 'item')}"
        parts = [f"{head}: {done}", *filter(None, counts)]
        if self.items_per_second:
            parts.append(f"{self.items_per_second:,.0f} a second")
        if left := self.seconds_left:
            parts.append(f"{duration(left)} left")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Progress(Estimates):
    """The progress of a job with one table.

    `phase` is what the job is doing: copy, follow, verify, export … `of_items` is an estimate, 0 if there is none:
    DynamoDB updates a table's count every six hours. `seconds` and `items_per_second` are those of this run; the other
    numbers include the runs that it continues. `changes` are the changes of its source that a live copy has applied,
    and `lag` is how many seconds it is behind: 0 when it has caught up, None for a job that follows no source.
    """

    phase: str
    table: str
    items: int
    of_items: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    seconds: float = 0.0
    items_per_second: float = 0.0
    lag: float | None = None
    is_over: bool = False
    changes: int = 0

    @property
    def is_caught_up(self) -> bool:
        """Whether a live copy has applied every change of its source."""
        return self.lag == 0.0

    @property
    def _done(self) -> int:
        return self.items

    @property
    def dollars(self) -> float:
        """The price of the units, on demand on Amazon's service in us-east-1 (`isotone.prices`)."""
        return US_EAST_1.on_demand(reads=self.read_units, writes=self.write_units)

    def __str__(self) -> str:
        head = f"{self.phase} {self.table}"
        parts = [self._text(head, pluralized(self.changes, "change") if self.changes else "")]
        if self.lag is not None:
            parts.append(f"{duration(self.lag)} behind" if self.lag else "no lag")
        if self.read_units or self.write_units:
            writes = pluralized(self.write_units, "write unit", form=",.0f")
            parts.append(f"{self.read_units:,.0f} read and {writes}")
        return ", ".join(parts)


Report = Callable[[Progress], object]
"""Called with the progress of a job, from the thread that runs it."""


def duration(seconds: float) -> str:
    """A duration as text for people.

    >>> duration(3700)
    '1 h 1 min'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Meter:
    """Counts what a job has done with one table. Every method may be called from any thread."""

    def __init__(
        self,
        phase: str,
        table: str,
        *,
        of_items: int = 0,
        items: int = 0,
        read_units: float = 0.0,
        write_units: float = 0.0,
        changes: int = 0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.phase = phase
        self.table = table
        self.of_items = of_items
        self.lag: float | None = None
        self._items = items
        self._changes = changes
        self._read_units = read_units
        self._write_units = write_units
        self._now = now
        self._began = now()
        self._before = items + changes
        self._samples = deque([(self._began, self._before)])
        self._lock = threading.Lock()

    def add(
        self,
        items: int = 0,
        read_units: float = 0.0,
        write_units: float = 0.0,
        changes: int = 0,
    ) -> None:
        """Add what was done."""
        with self._lock:
            self._items += items
            self._changes += changes
            self._read_units += read_units
            self._write_units += write_units
            now = self._now()
            if now - self._samples[-1][0] >= _SAMPLE:
                self._samples.append((now, self._items + self._changes))
                while now - self._samples[0][0] > _WINDOW and len(self._samples) > 2:
                    self._samples.popleft()

    def progress(self, *, is_over: bool = False) -> Progress:
        """What was done so far."""
        with self._lock:
            now = self._now()
            first, before = (self._began, self._before) if is_over else self._samples[0]
            seconds = now - first
            return Progress(
                self.phase,
                self.table,
                self._items,
                self.of_items,
                self._read_units,
                self._write_units,
                now - self._began,
                (self._items + self._changes - before) / seconds if seconds > 0 else 0.0,
                self.lag,
                is_over,
                self._changes,
            )
