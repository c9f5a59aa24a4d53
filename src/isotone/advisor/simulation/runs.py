"""The runs of a workload behind a forecast, the trends between their sizes, and the confidence of each figure (±).

A workload runs once with all members of the sample, eight times with an eighth of them, and eight times with an eighth
of those, each time with other random numbers. The large run gives the figures. The others show how reliable they are:

- *Randomness.* Each of the eight small runs gives a forecast of its own. How much these differ shows the variance with
  an
  eighth of the members; with eight times as many it is an eighth of that. Student's t for seven degrees of freedom turns
  it into an interval.
- *Size.* If the small runs together forecast something else than the large one, the figure may depend on the number of
  members in a way that the forecast misses. The error that remains at the large run is assumed to shrink with the square
  root of the members.
- *Rare events.* An event that happened in none of n calls may happen in 3 of n (the rule of three), so no figure is
  more
  precise than 3/n.

The interval combines these as independent errors. It covers no more: an effect that begins only with many more members
is in none of the runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, variance
from typing import Final, NamedTuple

from isotone.advisor.simulation.sampling import WorkloadSample
from isotone.advisor.simulation.touches import PartitionSpace

PARTS: Final = 8
"""The number of small runs, and the divisor of the large run's members in each."""
CONFIDENCE: Final = 0.95
DEVIATIONS: Final = 1.96
"""Standard deviations around the mean that contain 95 % of a normal distribution."""
_STUDENT: Final = 2.365  # contains 95 % of Student's t distribution with 7 degrees of freedom
# the rule of three: an event in none of n calls happens in at most 3 of n (95 %)
_UNSEEN: Final = 3.0
_SAME: Final = 0.05  # a smaller relative difference between two sizes is not extrapolated
_STEEP: Final = 0.5  # up to this exponent, units grow with the logarithm of the members
_STRAIGHT: Final = 1.5  # up to this exponent, linearly; above it, by a power


class ConfidenceInterval(NamedTuple):
    """The 95 % confidence interval of a figure."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        return isinstance(value, int | float) and self.low - slack <= value <= self.high + slack

    @property
    def half(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

    def widened(self, half: float) -> ConfidenceInterval:
        """The interval with another, independent error of `half` to either side."""
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
    """The interval of a figure, given its values in the large run and in the small ones.

    `ratio` is the number of members of the large run per member of a small one, and `calls` the number of calls of its
    rarest action. `measured` is the number of members in a measurement per member of the large run, because a
    measurement is random, too. No figure is below 0.
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
    """How a call's units in a place grow with the members: not at all, logarithmically, linearly, or by a power."""

    small: float
    big: float
    ratio: float
    """The members of the bigger sample per member of the smaller one."""

    @property
    def exponent(self) -> float:
        if not self.small or not self.big or self.ratio <= 1:
            return 0.0
        if abs(self.big / self.small - 1) < _SAME:
            return 0.0
        return math.log(self.big / self.small) / math.log(self.ratio)

    def factor(self, members: float) -> float:
        """The factor by which the units grow if the bigger sample's members are multiplied by `members`."""
        if not (exponent := self.exponent) or members <= 1:
            return 1.0
        # linear: a constant part, and one that is proportional to the members
        if _STEEP <= exponent <= _STRAIGHT:
            each = (1 - self.small / self.big) / (1 - 1 / self.ratio)
            return 1 + each * (members - 1)
        if abs(exponent) > _STRAIGHT:
            return float(members**exponent)
        step = (self.big - self.small) / self.big / math.log(self.ratio)
        return max(1 + step * math.log(members), 0.1)


@dataclass(frozen=True)
class Runs:
    """The samples of all runs: the large one, the small ones, and a smallest one for each small one."""

    large: WorkloadSample
    small: tuple[WorkloadSample, ...] = ()
    smallest: tuple[WorkloadSample, ...] = ()

    @classmethod
    def of(cls, samples: Sequence[WorkloadSample]) -> Runs:
        """The runs, given their samples in the order of running: smallest (if there are any), small, large."""
        *smaller, large = samples
        return cls(large, tuple(smaller[-PARTS:]), tuple(smaller[:-PARTS]))

    @classmethod
    def of_some(cls, samples: Sequence[WorkloadSample]) -> Runs | None:
        """The runs so far if only the first ones were made: a small run, with the smallest ones beside it."""
        if len(samples) <= PARTS:
            return None
        return cls(samples[PARTS], tuple(samples[:PARTS]))

    @property
    def ratio(self) -> float:
        """The members of the large run per member of a small one."""
        return _ratio(self.large, self.small[0]) if self.small else 1.0

    def trends(self, part: int | None = None) -> dict[tuple[str, PartitionSpace], Trend]:
        """The trends of the units that depend on the number of members, from the large run or from a small one."""
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
    """The difference between two sizes, in standard deviations of its random error."""
    deviation = math.sqrt(of_larger + variance(smaller) / len(smaller))
    if abs(difference) <= 1e-9 * max(map(abs, smaller), default=0.0):
        return 0.0
    return difference / deviation if deviation else math.copysign(math.inf, difference)


def _units(sample: WorkloadSample, key: tuple[str, PartitionSpace]) -> float:
    units = sample.footprints[key[0]].of(key[1])
    return units.reads + units.writes


def _ratio(large: WorkloadSample, small: WorkloadSample) -> float:
    return large.largest / small.largest
