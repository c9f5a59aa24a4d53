"""Forecasts the load, the hot keys, the storage and the cost of a whole application from the footprints of a sample.

A call's units are taken from the sample; if they grow with the number of members, they are extrapolated from two sizes.
The calls a second are those of the whole population. A member's key gets the calls of its rank; a shared key gets
everybody's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from isotone.advisor.simulation import partitions
from isotone.advisor.simulation.partitions import PartitionLoad
from isotone.advisor.simulation.runs import DEVIATIONS, ConfidenceInterval, Runs, Trend, interval_of
from isotone.advisor.simulation.sampling import CallUnits, Owner, WorkloadSample
from isotone.advisor.simulation.touches import PartitionSpace
from isotone.advisor.simulation.workload import Ranks, Workload, WorkloadAction
from isotone.errors import UsageError
from isotone.prices import DAYS_A_MONTH, Prices

RANKS: Final = 200  # members of a population whose keys are tracked one by one
BUSY: Final = 0.7  # of a partition's limit; a key with more load is hot
SURE: Final = 0.1  # half of an interval relative to its figure; above this, the sample is too small
_PART_OF_ALL: Final = 0.01  # of all units or bytes; smaller figures are not judged
_UTILIZATION: Final = 0.7  # of provisioned capacity, the target of auto scaling
_LEAST_READ: Final = 0.5  # units of a query that finds little or nothing
_DAY: Final = 86400.0


class HotKey(NamedTuple):
    """One partition key: its load in the busiest hour, and the share of a day's units that are throttled."""

    place: PartitionSpace
    label: str
    load: PartitionLoad
    throttled: float
    is_shared: bool
    shards: int = 1

    @property
    def wanted_shards(self) -> int:
        """The number of keys over which the load must be spread to stay below 70 % of the limit."""
        return max(1, math.ceil(self.load.use * self.shards / BUSY))


@dataclass(frozen=True)
class PlaceForecast:
    """A table or a global index: load on average and in the busiest hour, bytes, partitions, and its hottest keys."""

    place: PartitionSpace
    average: PartitionLoad
    peak: PartitionLoad
    stored: float
    growth: float
    """Growth in bytes per day."""
    partitions: int
    busiest: list[PartitionLoad]
    """The load of each of the busiest partitions in the busiest hour, before and after hot keys are isolated."""
    keys: list[HotKey]
    throttled: float
    """The share of the day's units that is throttled."""


@dataclass(frozen=True)
class Costs:
    """The cost of a month."""

    on_demand: float
    provisioned: float
    storage: float
    currency: str


Figure = Callable[["Forecast"], float]


@dataclass
class Forecast:
    """The behaviour of a workload at its real size: see `simulate`."""

    workload: Workload
    sizes: dict[str, int]
    prices: Prices
    shards: dict[str, int]
    seconds: float
    """How many seconds the sample runs took."""
    calls_a_member: float
    """The number of calls of each action per member of the largest population."""
    runs: Runs = field(repr=False)
    _part: int | None = field(default=None, repr=False)
    """The small run that the figures are from; None stands for the large run."""

    def __post_init__(self) -> None:
        if self._part is not None:
            return
        known = {key.label for place in self.places for key in place.keys}
        for label in self.shards:
            if label not in known:
                nearest = ", ".join(sorted(known)[:5]) or "none"
                raise UsageError(f"there is no key {label!r} to shard; the hottest are {nearest}")

    @property
    def sampled(self) -> dict[str, int]:
        """The number of members of each population in the sample."""
        return self._sample.members

    @property
    def _sample(self) -> WorkloadSample:
        return self.runs.large if self._part is None else self.runs.small[self._part]

    @cached_property
    def growing(self) -> dict[tuple[str, PartitionSpace], Trend]:
        """The actions whose units depend on the number of members, with the trend."""
        return self.runs.trends(self._part)

    # Confidence

    def interval(self, figure: Figure, *, measured: float = math.inf) -> ConfidenceInterval:
        """The 95 % confidence interval of a figure: `found.interval(lambda forecast: forecast.costs.on_demand)`.

        It covers the randomness of the sample, and effects of its size. It does not cover effects that begin only with
        many more members.
        """
        small = [figure(each) for each in self._repeats]
        calls = min(self._sample.calls.values())
        return interval_of(figure(self), small, self.runs.ratio, calls=calls, measured=measured)

    def part_unsure(self, figure: Figure) -> float:
        """Half of a figure's interval, relative to the figure; 0 for a figure of 0."""
        value = figure(self)
        return self.interval(figure).half / value if value else 0.0

    @cached_property
    def least_sure(self) -> tuple[str, float]:
        """The figure with the widest relative interval, and that width; only figures of at least 1 % of all count."""
        units = sum(place.average.units for place in self.places)
        stored = sum(place.stored for place in self.places)
        least = {"reads a second": units, "writes a second": units, "bytes": stored}
        unsure = [("the month's cost", self.part_unsure(lambda found: found.costs.on_demand))]
        for place in self.places:
            for unit, getter in _COMPARED.items():
                if getter(place) >= _PART_OF_ALL * least[unit]:
                    part = self.part_unsure(of_place(place.place, getter))
                    unsure.append((f"{place.place}: {unit}", part))
        for key in self.hot_keys:
            part = self.part_unsure(of_key(key.label, lambda found: found.load.use))
            unsure.append((f"{key.label}: part of a partition", part))
        return max(unsure, key=lambda each: each[1])

    @property
    def wanted_members(self) -> int | None:
        """The number of members that a sample needs for figures within 10 %; None if this one has enough, or all.

        An interval shrinks with the square root of the members.
        """
        sampled, every = (max(each.values(), default=1) for each in (self.sampled, self.sizes))
        _, part = self.least_sure
        if part <= SURE or sampled >= every:
            return None
        return min(_rounded_up(sampled * (part / SURE) ** 2), every)

    @cached_property
    def _repeats(self) -> list[Forecast]:
        """The forecasts from each of the small runs."""
        return [replace(self, _part=part) for part in range(len(self.runs.small))]

    def place(self, place: PartitionSpace) -> PlaceForecast:
        """A table or an index; without load if the sample has none."""
        found = next((each for each in self.places if each.place == place), None)
        return found or PlaceForecast(
            place, PartitionLoad(), PartitionLoad(), 0.0, 0.0, 0, [], [], 0.0
        )

    def key(self, label: str) -> HotKey | None:
        """A key by its label; None if it is not tracked."""
        return self._by_label.get(label)

    @cached_property
    def _by_label(self) -> dict[str, HotKey]:
        return {key.label: key for key in self.hottest}

    @cached_property
    def places(self) -> list[PlaceForecast]:
        """All tables and global indexes, the busiest first."""
        names = {place for each in self._sample.footprints.values() for place, _ in each.units}
        names |= self._sample.index_bytes.keys()
        made = [self._place(place) for place in names]
        return sorted(made, key=lambda each: (-each.peak.units, str(each.place)))

    @property
    def hot_keys(self) -> list[HotKey]:
        """The keys at 70 % of a partition's limit or more, the hottest first."""
        return [key for key in self.hottest if key.load.use >= BUSY]

    @cached_property
    def hottest(self) -> list[HotKey]:
        """The keys with the most load."""
        keys = [key for place in self.places for key in place.keys]
        return sorted(keys, key=lambda key: -key.load.use)

    @property
    def throttled(self) -> float:
        """The share of all units that is throttled."""
        total = sum(place.average.units for place in self.places)
        refused = sum(place.average.units * place.throttled for place in self.places)
        return refused / total if total else 0.0

    @property
    def amplification(self) -> float:
        """The write units of tables and indexes per write unit of a table."""
        tables = sum(place.average.writes for place in self.places if place.place.index is None)
        every = sum(place.average.writes for place in self.places)
        return every / tables if tables else 1.0

    @cached_property
    def costs(self) -> Costs:
        """The cost of a month."""
        month = DAYS_A_MONTH * _DAY
        reads = sum(place.average.reads for place in self.places)
        writes = sum(place.average.writes for place in self.places)
        stored = sum(place.stored + place.growth * DAYS_A_MONTH / 2 for place in self.places)
        return Costs(
            self.prices.on_demand(reads=reads * month, writes=writes * month),
            self.prices.provisioned(reads=reads / _UTILIZATION, writes=writes / _UTILIZATION),
            self.prices.storage(stored),
            self.prices.currency,
        )

    def compare(self, measured: WorkloadSample) -> list[MeasuredFigure]:
        """This forecast for the size of another sample, beside the figures measured there."""
        return list(_compared(replace(self, sizes=measured.members, shards={}), measured))

    def with_shards(self, shards: Mapping[str, int]) -> Forecast:
        """The same application with keys divided: `{"Songs: CHART": 10}`, by the labels of `hottest`."""
        return replace(self, shards={**self.shards, **_checked_shards(shards)})

    def with_size(self, size: int) -> Forecast:
        """The same application with `size` members in the largest population, the others in proportion."""
        return replace(self, sizes=sizes_of(self.workload, size))

    # One place

    def _place(self, place: PartitionSpace) -> PlaceForecast:
        average = PartitionLoad()
        by_key: dict[tuple[str, bool], PartitionLoad] = defaultdict(PartitionLoad)
        in_use_of: dict[str, float] = {}  # the share of the time in which a key is used
        for action in self.workload.actions.values():
            for owner, units, in_use in self._units(action, place):
                load = PartitionLoad(units.reads, units.writes) * self.rate(action)
                average += load
                for label, share in self._keys_of(action, owner):
                    by_key[label, owner.kind == "shared"] += load * (share / in_use)
                    in_use_of[f"{place}: {label}"] = in_use
        peak = max(self.workload.day)
        keys = []
        for (label, is_shared), load in by_key.items():
            key = self._hot_key(place, label, load, is_shared)
            keys.append(key)
            more = max(key.load.reads * key.shards / peak - load.reads, 0.0)
            average += PartitionLoad(more * in_use_of[key.label])
        stored, growth = self._bytes(place)
        number = partitions.number_of(average * peak, stored)
        keys.sort(key=lambda key: -key.load.use)
        known = PartitionLoad()
        for key in keys:
            known += key.load * (key.shards * in_use_of[key.label])
        loads = partitions.placed(
            [(f"{key.label}/{n}", key.load) for key in keys for n in range(key.shards)],
            _less(average * peak, known),
            number,
        )
        refused = sum(
            key.throttled * key.load.units * key.shards * in_use_of[key.label] / peak
            for key in keys
        )
        return PlaceForecast(
            place,
            average,
            average * peak,
            stored,
            growth,
            number,
            sorted(loads, key=lambda load: -load.use)[:10],
            keys[:RANKS],
            min(refused / average.units, 1.0) if average.units else 0.0,
        )

    def _units(
        self, action: WorkloadAction, place: PartitionSpace
    ) -> Iterator[tuple[Owner, CallUnits, float]]:
        """The units of one call in a place at the real size, by owner of the key, with the share of time it is used."""
        footprint = self._sample.footprints[action.name]
        trend = self.growing.get((action.name, place))
        factor = trend.factor(self._times_the_sample()) if trend else 1.0
        for (where, owner), units in footprint.units.items():
            if where == place:
                grown = CallUnits(units.reads * factor, units.writes * factor)
                yield owner, grown, footprint.in_use.get((where, owner), 1.0)

    def _keys_of(self, action: WorkloadAction, owner: Owner) -> Iterator[tuple[str, float]]:
        """The keys that are tracked one by one, with each one's share of the calls."""
        if owner.kind == "shared":
            yield owner.form, 1.0
        elif owner.kind != "spread":
            population = self.workload.populations[owner.population]
            is_own = owner.kind == "own"
            exponent = population.activity if is_own else population.popularity
            ranks = _ranks(self.sizes[population.name], exponent)
            for rank in range(1, min(ranks.size, RANKS) + 1):
                yield owner.label(rank), ranks.share(rank)

    def _hot_key(
        self, place: PartitionSpace, label: str, average: PartitionLoad, is_shared: bool
    ) -> HotKey:
        name = f"{place}: {label}"
        shards = self.shards.get(name, 1)
        peak = max(self.workload.day)
        # A write goes to one shard. A read queries all shards, each for at least half a unit.
        reads = average.reads
        if shards > 1 and reads:
            reads = max(reads / shards, self._calls_reading(place, label) * _LEAST_READ)
        load = PartitionLoad(reads, average.writes / shards)
        hours = [load * hour for hour in self.workload.day]
        refused = sum(hour.beyond.units for hour in hours)
        total = sum(hour.units for hour in hours)
        return HotKey(
            place, name, load * peak, refused / total if total else 0.0, is_shared, shards
        )

    def _calls_reading(self, place: PartitionSpace, label: str) -> float:
        """The calls a second that read a shared key."""
        rate = 0.0
        for action in self.workload.actions.values():
            for owner, units, _ in self._units(action, place):
                if units.reads:
                    rate += sum(
                        self.rate(action) * share
                        for name, share in self._keys_of(action, owner)
                        if name == label
                    )
        return rate

    def _bytes(self, place: PartitionSpace) -> tuple[float, float]:
        """The bytes of a place with all members, and its growth per day."""
        stored = sum(
            self._sample.stored.get((name, place), 0.0) * size for name, size in self.sizes.items()
        )
        grown = sum(
            self.rate(action) * self._sample.footprints[action.name].grown.get(place.table, 0.0)
            for action in self.workload.actions.values()
        )
        return stored, max(grown, 0.0) * self._sample.index_bytes.get(place, 0.0) * _DAY

    # Sizes

    def rate(self, action: WorkloadAction) -> float:
        """The average calls a second of an action."""
        if action.by is None:
            return action.rate
        return action.rate_in_all(self.sizes[action.by.name])

    def _times_the_sample(self) -> float:
        """The members of the largest population per member in the sample."""
        if not self.sizes:
            return 1.0
        name = max(self.sizes, key=lambda each: self.sizes[each])
        return self.sizes[name] / self._sample.members[name]


_ranks: Final = lru_cache(maxsize=256)(Ranks)


def sizes_of(workload: Workload, size: int | None) -> dict[str, int]:
    """The members of each population if the largest has `size`; None stands for the declared sizes."""
    declared = {name: each.size for name, each in workload.populations.items()}
    if size is None:
        return declared
    if type(size) is not int or size < 1:
        raise UsageError(f"size={size!r} is not a number of members")
    factor = size / max(declared.values(), default=1)
    return {name: max(1, round(each * factor)) for name, each in declared.items()}


class MeasuredFigure(NamedTuple):
    """A predicted figure with its interval, and the measured one."""

    what: str
    predicted: float
    measured: float
    interval: ConfidenceInterval

    @property
    def difference(self) -> float:
        """The error of the prediction, relative to the measured figure."""
        return self.predicted / self.measured - 1 if self.measured else 0.0


_COMPARED: Final[dict[str, Callable[[PlaceForecast], float]]] = {
    "reads a second": lambda place: place.average.reads,
    "writes a second": lambda place: place.average.writes,
    "bytes": lambda place: place.stored,
}


def of_place(place: PartitionSpace, figure: Callable[[PlaceForecast], float]) -> Figure:
    """A figure of a table or an index, for `Forecast.interval`."""
    return lambda forecast: figure(forecast.place(place))


def of_key(label: str, figure: Callable[[HotKey], float]) -> Figure:
    """A figure of a key, for `Forecast.interval`."""

    def value(forecast: Forecast) -> float:
        key = forecast.key(label)
        return 0.0 if key is None else figure(key)

    return value


def _compared(predicted: Forecast, measured: WorkloadSample) -> Iterator[MeasuredFigure]:
    truth = replace(predicted, runs=Runs(measured))
    members = measured.largest / predicted.runs.large.largest
    for there in truth.places:
        for unit, getter in _COMPARED.items():
            wanted = getter(there)
            if wanted:
                figure = of_place(there.place, getter)
                interval = predicted.interval(figure, measured=members)
                yield MeasuredFigure(f"{there.place}: {unit}", figure(predicted), wanted, interval)
    for label, (load, touches) in _measured_keys(truth, measured)[:3]:
        figure = of_key(label, lambda key: key.load.use)
        interval = predicted.interval(figure, measured=members)
        # Which calls reach a key is random in the measurement; the forecast has the key's average
        # share of them.
        interval = interval.widened(DEVIATIONS * load.use / math.sqrt(touches))
        yield MeasuredFigure(f"{label}: part of a partition", figure(predicted), load.use, interval)


def _measured_keys(
    truth: Forecast, measured: WorkloadSample
) -> list[tuple[str, tuple[PartitionLoad, int]]]:
    """The busiest keys as measured: the load in the busiest hour, and the number of touches."""
    found: dict[str, tuple[PartitionLoad, int]] = {}
    peak = max(truth.workload.day)
    for (place, label, action), each in measured.hottest.items():
        name = f"{place}: {label}"
        rate = truth.rate(truth.workload.actions[action]) * peak
        load, touches = found.get(name, (PartitionLoad(), 0))
        more = PartitionLoad(each.units.reads, each.units.writes) * rate
        found[name] = load + more, touches + each.number
    return sorted(found.items(), key=lambda each: -each[1][0].use)


def _less(all_of_it: PartitionLoad, known: PartitionLoad) -> PartitionLoad:
    return PartitionLoad(
        max(all_of_it.reads - known.reads, 0.0), max(all_of_it.writes - known.writes, 0.0)
    )


def _rounded_up(number: float) -> int:
    """A number rounded up to two significant digits."""
    step: int = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return math.ceil(number / step) * step


def _checked_shards(shards: Mapping[str, int]) -> dict[str, int]:
    for label, number in shards.items():
        if type(number) is not int or not 1 <= number <= 1000:
            raise UsageError(f"shards of {label!r}: {number!r} is not a number from 1 to 1000")
    return dict(shards)


Figures = dict[str, Any]
"""Numbers by name, or by names of groups."""


def as_dict(forecast: Forecast) -> dict[str, Any]:
    """The forecast as JSON-like data; `intervals` has the same names as the figures."""

    def with_intervals(figures: Callable[[Forecast], Figures]) -> Figures:
        return {**figures(forecast), "intervals": _intervals(forecast, figures)}

    def of(place: PlaceForecast) -> Figures:
        return with_intervals(lambda found: _place_figures(found.place(place.place)))

    def of_one(key: HotKey) -> Figures:
        return with_intervals(lambda found: _key_figures(found.key(key.label)))

    return {
        "workload": forecast.workload.name,
        "populations": forecast.sizes,
        "sampled": forecast.sampled,
        "wanted_members": forecast.wanted_members,
        **with_intervals(_figures),
        "places": [
            {
                "table": place.place.table,
                "index": place.place.index,
                "partitions": place.partitions,
                **of(place),
            }
            for place in forecast.places
        ],
        "hottest_keys": [
            {
                "key": key.label,
                "shards": key.shards,
                "wanted_shards": key.wanted_shards,
                **of_one(key),
            }
            for key in forecast.hottest[:20]
        ],
        "month": {"currency": forecast.costs.currency, **with_intervals(_cost_figures)},
    }


def _figures(forecast: Forecast) -> Figures:
    return {"throttled": forecast.throttled, "write_amplification": forecast.amplification}


def _place_figures(place: PlaceForecast) -> Figures:
    return {
        "average": _units(place.average),
        "peak": _units(place.peak),
        "stored_bytes": place.stored,
        "growth_bytes_a_day": place.growth,
        "throttled": place.throttled,
    }


def _key_figures(key: HotKey | None) -> Figures:
    load = key.load if key else PartitionLoad()
    return {
        "peak": _units(load),
        "part_of_a_partition": load.use,
        "throttled": key.throttled if key else 0.0,
    }


def _cost_figures(forecast: Forecast) -> Figures:
    costs = forecast.costs
    return {
        "on_demand": costs.on_demand,
        "provisioned": costs.provisioned,
        "storage": costs.storage,
    }


def _intervals(forecast: Forecast, figures: Callable[[Forecast], Figures]) -> Figures:
    """The intervals of figures, in the same groups."""

    def interval(name: str, value: object) -> object:
        if isinstance(value, dict):
            return _intervals(forecast, lambda each: figures(each)[name])
        return [*forecast.interval(lambda each: figures(each)[name])]

    return {name: interval(name, value) for name, value in figures(forecast).items()}


def _units(load: PartitionLoad) -> Figures:
    return {"reads": load.reads, "writes": load.writes}
