"""The runs of a workload that a forecast is made of, what grows between their sizes, and how sure each figure is.

A workload runs once with all members of the sample, eight times with an eighth of them, and eight times with an eighth of
those, each time with chance of its own. The large run gives the figures. The others say how far to trust them:

- *Chance.* Each of the eight small runs gives a forecast of its own. How much these differ is how much chance does to an
  eighth of the members; with eight times as many it does an eighth of that (of the variance). Student's t for seven
  degrees of freedom makes an interval of it.
- *Size.* If the small runs together forecast something else than the large one, the figure may depend on the number of
  members in a way that the forecast misses. What is still missing at the large run is taken to shrink with the square root
  of the members.
- *Rare events.* What happened in none of n calls may happen in 3 of n (the rule of three), so no figure is surer than 3/n.

The interval adds the second to the others, which are independent. It has no more: what begins only among many more members
is in none of the runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, variance
from typing import Final, NamedTuple

from isotone.advisor.simulation.recording import PartitionSpace
from isotone.advisor.simulation.sampling import WorkloadSample

PARTS: Final = 8
"""How many small runs there are, and which part of the large run's members each has."""
CONFIDENCE: Final = 0.95
DEVIATIONS: Final = 1.96
"""Within so many standard deviations are 95 % of what is spread normally."""
_STUDENT: Final = 2.365  # of which 95 % is within this, for 7 degrees of freedom
_UNSEEN: Final = 3.0  # what none of n calls did, at most 3 of n do, with a confidence of 95 %
_SAME: Final = 0.05  # a smaller difference between two sizes is not extrapolated
_STEEP: Final = (
    0.5  # from this exponent on, units grow with the members and not with their logarithm
)
_STRAIGHT: Final = 1.5  # up to this one in a straight line


class ConfidenceInterval(NamedTuple):
    """Where a figure is with a confidence of 95 %."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        return isinstance(value, int | float) and self.low - slack <= value <= self.high + slack

    @property
    def half(self) -> float:
        """Half of its width."""
        return (self.high - self.low) / 2

    def widened(self, half: float) -> ConfidenceInterval:
        """The interval with one more independent reason to be off, by so much to either side."""
        middle, whole = (self.low + self.high) / 2, math.hypot(self.half, half)
        return ConfidenceInterval(max(middle - whole, 0.0), middle + whole)


def interval_of(
    large: float,
    small: Sequence[float],
    ratio: float,
    *,
    calls: int = 0,
    measured: float = math.inf,
) -> ConfidenceInterval:
    """The interval of a figure by its values in the large run and in the small ones.

    `ratio` is how many members the large run has for each of a small one's, `calls` how often its rarest action was called,
    and `measured` how many members are measured for each of the large run's, which has chance, too. No figure is below 0.
    """
    if len(small) < 2:
        return ConfidenceInterval(large, large)
    of_large = variance(small) / ratio
    apart, of_apart = abs(large - fmean(small)), of_large + variance(small) / len(small)
    shrinks = math.sqrt(ratio) - 1 if ratio > 1 else 1.0
    chance = _STUDENT * math.sqrt(of_large * (1 + 1 / measured) + of_apart / shrinks**2)
    unseen = large * _UNSEEN / calls if calls else 0.0
    half = math.hypot(chance, unseen) + apart / shrinks
    return ConfidenceInterval(min(max(large - half, 0.0), large), large + half)


class Trend(NamedTuple):
    """How a call's units in a place change with the number of members: not, by the logarithm, in a line, or by a power."""

    small: float
    big: float
    ratio: float
    """The bigger sample's members for each of the smaller one's."""

    @property
    def exponent(self) -> float:
        if not self.small or not self.big or self.ratio <= 1:
            return 0.0
        if abs(self.big / self.small - 1) < _SAME:
            return 0.0
        return math.log(self.big / self.small) / math.log(self.ratio)

    def factor(self, members: float) -> float:
        """The units among so many times the members of the bigger sample, for each unit in it."""
        if not (exponent := self.exponent) or members <= 1:
            return 1.0
        if _STEEP <= exponent <= _STRAIGHT:  # a part for each member, and one that is the same
            each = (1 - self.small / self.big) / (1 - 1 / self.ratio)
            return 1 + each * (members - 1)
        if abs(exponent) > _STRAIGHT:
            return float(members**exponent)
        step = (self.big - self.small) / self.big / math.log(self.ratio)
        return max(1 + step * math.log(members), 0.1)


@dataclass(frozen=True)
class Runs:
    """The samples of all runs: the large one, the small ones, and for each of these a smallest one."""

    large: WorkloadSample
    small: tuple[WorkloadSample, ...] = ()
    smallest: tuple[WorkloadSample, ...] = ()

    @classmethod
    def of(cls, samples: Sequence[WorkloadSample]) -> Runs:
        """The runs in the order in which they are made: smallest, if they are smaller than the small ones; small, large."""
        *smaller, large = samples
        return cls(large, tuple(smaller[-PARTS:]), tuple(smaller[:-PARTS]))

    @classmethod
    def of_some(cls, samples: Sequence[WorkloadSample]) -> Runs | None:
        """What is known when only the first of them have been made: a small run, and the smallest ones beside it."""
        if len(samples) <= PARTS:
            return None
        return cls(samples[PARTS], tuple(samples[:PARTS]))

    @property
    def ratio(self) -> float:
        """The members of the large run for each of a small one's."""
        return _ratio(self.large, self.small[0]) if self.small else 1.0

    def trends(self, part: int | None = None) -> dict[tuple[str, PartitionSpace], Trend]:
        """What depends on the number of members, and how, by the large run or by one of the small ones."""
        found = {}
        for key in self._growing:
            if part is None:
                small, big = fmean(_units(each, key) for each in self.small), self.large
                ratio = self.ratio
            else:
                if not self.smallest:
                    return {}
                big = self.small[part]
                small, ratio = _units(self.smallest[part], key), _ratio(big, self.smallest[part])
            trend = Trend(small, _units(big, key), ratio)
            if trend.exponent:
                found[key] = trend
        return found

    @cached_property
    def _growing(self) -> list[tuple[str, PartitionSpace]]:
        """The actions and places whose units differ between the sizes by more than chance."""
        keys = {
            (name, place)
            for name, footprint in self.large.footprints.items()
            for place, _ in footprint.units
        }
        return (
            sorted(filter(self._grows, keys), key=str) if self.small and self.large.members else []
        )

    def _grows(self, key: tuple[str, PartitionSpace]) -> bool:
        small = [_units(each, key) for each in self.small]
        of_small = variance(small)
        steps = [_steps(_units(self.large, key) - fmean(small), of_small / self.ratio, small)]
        if self.smallest and _ratio(self.small[0], self.smallest[0]) > 1:
            smallest = [_units(each, key) for each in self.smallest]
            steps.append(_steps(fmean(small) - fmean(smallest), of_small / len(small), smallest))
        return abs(sum(steps)) / math.sqrt(len(steps)) > _STUDENT


def _steps(difference: float, of_larger: float, smaller: Sequence[float]) -> float:
    """A difference between two sizes, as so many standard deviations of what chance makes of it."""
    deviation = math.sqrt(of_larger + variance(smaller) / len(smaller))
    if abs(difference) <= 1e-9 * max(map(abs, smaller), default=0.0):
        return 0.0
    return difference / deviation if deviation else math.copysign(math.inf, difference)


def _units(sample: WorkloadSample, key: tuple[str, PartitionSpace]) -> float:
    units = sample.footprints[key[0]].of(key[1])
    return units.reads + units.writes


def _ratio(large: WorkloadSample, small: WorkloadSample) -> float:
    return large.largest / small.largest
