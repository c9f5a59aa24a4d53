"""What a measurement is: rows of numbers, and the targets that compare two of them.

Every number is the median of several rounds; within a round the subjects take turns, so that a busy
moment of the machine hits all of them alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure: seconds of load, rounds, calls of an in-process function per round."""

    seconds: float
    rounds: int
    calls: int
    items: int  # of the large table


FULL = Effort(seconds=4, rounds=5, calls=3000, items=1_000_000)
QUICK = Effort(seconds=1, rounds=1, calls=500, items=50_000)


@dataclass(frozen=True, slots=True)
class Row:
    """One subject's result in one measure; a subject that could not run has a reason instead."""

    measure: str
    subject: str
    unit: str
    samples: list[float] = field(default_factory=list)
    absent: str = ""
    extra: Mapping[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        return statistics.median(self.samples)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "value": None if self.absent else self.value}


@dataclass(frozen=True, slots=True)
class Target:
    """A promise: our row against a reference row, or against a constant where there is none.

    `at least` compares rates (ours over theirs), `at most` compares times and sizes.
    """

    measure: str
    subject: str
    kind: Literal["at least", "at most"]
    bound: float
    reference: str = ""

    def judge(self, rows: Mapping[tuple[str, str], Row]) -> tuple[float | None, bool | None]:
        """The figure and whether it keeps the promise; None where a side is absent."""
        ours = rows.get((self.measure, self.subject))
        theirs = rows.get((self.measure, self.reference)) if self.reference else None
        if ours is None or ours.absent or (self.reference and (theirs is None or theirs.absent)):
            return None, None
        figure = ours.value / theirs.value if theirs else ours.value
        return figure, figure >= self.bound if self.kind == "at least" else figure <= self.bound


def timed(function: Callable[[], object], calls: int) -> float:
    """Microseconds that one call takes, on average over so many."""
    began = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - began) / calls * 1e6


def alternately(
    measure: str, subjects: Mapping[str, Callable[[], object]], effort: Effort
) -> list[Row]:
    """Microseconds per call of each subject, in turns."""
    samples: dict[str, list[float]] = {name: [] for name in subjects}
    for function in subjects.values():
        timed(function, max(1, effort.calls // 10))
    for _ in range(effort.rounds):
        for name, function in subjects.items():
            samples[name].append(timed(function, effort.calls))
    return [Row(measure, name, "µs", taken) for name, taken in samples.items()]
