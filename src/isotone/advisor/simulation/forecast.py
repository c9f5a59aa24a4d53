"""From the footprints of a sample to the load, the hot keys, the storage and the cost of the whole application.

A call's units are taken from the sample; where they grow with the number of members, from how they grew between two
sizes. The calls a second are those of the whole population. A member's key gets the calls of its rank; a shared key gets
those of everybody.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from isotone.advisor.simulation import partitions
from isotone.advisor.simulation.partitions import Load
from isotone.advisor.simulation.recording import Place
from isotone.advisor.simulation.sampling import Owner, Sample, Units
from isotone.advisor.simulation.workload import Action, Ranks, Workload
from isotone.errors import UsageError
from isotone.prices import DAYS_A_MONTH, Prices

RANKS: Final = 200  # members of a population whose keys are followed one by one
BUSY: Final = 0.7  # of a partition's limit: from here on a key is called hot
_SAME: Final = 0.05  # a smaller difference between two samples is chance
_STEEP: Final = (
    0.5  # from this exponent on, units grow with the members and not with their logarithm
)
_STRAIGHT: Final = 1.5  # up to this one in a straight line
_UTILIZATION: Final = 0.7  # of provisioned capacity, as auto scaling aims for
_LEAST_READ: Final = 0.5  # units of a query that finds little
_DAY: Final = 86400.0


class HotKey(NamedTuple):
    """One partition key with its load in the busiest hour, and the share of its units that are throttled in a day."""

    place: Place
    label: str
    load: Load
    throttled: float
    is_shared: bool
    shards: int = 1

    @property
    def wanted_shards(self) -> int:
        """Over how many keys the load would have to be spread to stay under 70 % of the limit."""
        return max(1, math.ceil(self.load.use * self.shards / BUSY))


@dataclass(frozen=True)
class PlaceForecast:
    """A table or a global index: load on average and in the busiest hour, bytes, partitions, and its hottest keys."""

    place: Place
    average: Load
    peak: Load
    stored: float
    growth: float
    """Bytes a day."""
    partitions: int
    busiest: list[Load]
    """The load of each of the busiest partitions in the busiest hour, before and without isolated keys."""
    keys: list[HotKey]
    throttled: float
    """The share of the day's units that no partition serves."""


@dataclass(frozen=True)
class Costs:
    """What a month costs."""

    on_demand: float
    provisioned: float
    storage: float
    currency: str


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


@dataclass
class Forecast:
    """What a workload does to DynamoDB at its real size: see `simulate`."""

    workload: Workload
    sizes: dict[str, int]
    prices: Prices
    shards: dict[str, int]
    seconds: float
    """How long the samples took."""
    calls_a_member: float
    """How often each action was called for each member of the largest population."""
    _small: Sample = field(repr=False)
    _sample: Sample = field(repr=False)

    def __post_init__(self) -> None:
        known = {key.label for place in self.places for key in place.keys}
        for label in self.shards:
            if label not in known:
                nearest = ", ".join(sorted(known)[:5]) or "none"
                raise UsageError(f"there is no key {label!r} to shard; the hottest are {nearest}")

    @property
    def sampled(self) -> dict[str, int]:
        """The members of each population in the sample."""
        return self._sample.members

    @cached_property
    def growing(self) -> dict[tuple[str, Place], Trend]:
        """The actions whose units depend on the number of members, and how."""
        return {key: trend for key, trend in self._trends().items() if trend.exponent}

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
        """The keys with the highest load."""
        keys = [key for place in self.places for key in place.keys]
        return sorted(keys, key=lambda key: -key.load.use)

    @property
    def throttled(self) -> float:
        """The share of all units that are throttled."""
        total = sum(place.average.units for place in self.places)
        refused = sum(place.average.units * place.throttled for place in self.places)
        return refused / total if total else 0.0

    @property
    def amplification(self) -> float:
        """The write units of tables and indexes for each write unit of a table."""
        tables = sum(place.average.writes for place in self.places if place.place.index is None)
        every = sum(place.average.writes for place in self.places)
        return every / tables if tables else 1.0

    @cached_property
    def costs(self) -> Costs:
        """The month's cost."""
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

    def flat_capacity(self, place: PlaceForecast) -> Load:
        """The provisioned units, the same all day, with which a table throttles nothing."""
        day = self.workload.day
        return Load(
            _least_capacity([hour * place.average.reads for hour in day]),
            _least_capacity([hour * place.average.writes for hour in day]),
        )

    def compare(self, measured: Sample) -> list[Comparison]:
        """This forecast at the size of another sample, beside what was measured there."""
        there = Forecast(
            self.workload,
            measured.members,
            self.prices,
            {},
            0.0,
            self.calls_a_member,
            self._small,
            self._sample,
        )
        return list(_compared(there, measured))

    def with_shards(self, shards: Mapping[str, int]) -> Forecast:
        """The same application with keys divided: `{"Songs: CHART": 10}`, by the labels of `hottest`."""
        merged = {**self.shards, **_checked_shards(shards)}
        return Forecast(
            *(self.workload, self.sizes, self.prices, merged, self.seconds),
            *(self.calls_a_member, self._small, self._sample),
        )

    def with_size(self, size: int) -> Forecast:
        """The same application with so many members in the largest population, the others in proportion."""
        return Forecast(
            *(self.workload, sizes_of(self.workload, size), self.prices, self.shards),
            *(self.seconds, self.calls_a_member, self._small, self._sample),
        )

    # One place

    def _place(self, place: Place) -> PlaceForecast:
        average = Load()
        by_key: dict[tuple[str, bool], Load] = defaultdict(Load)
        in_use_of: dict[str, float] = {}  # the part of the time in which a key has its load
        for action in self.workload.actions.values():
            for owner, units, in_use in self._units(action, place):
                load = Load(units.reads, units.writes) * self.rate(action)
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
            average += Load(more * in_use_of[key.label])
        stored, growth = self._bytes(place)
        number = partitions.number_of(average * peak, stored)
        keys.sort(key=lambda key: -key.load.use)
        known = Load()
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

    def _units(self, action: Action, place: Place) -> Iterator[tuple[Owner, Units, float]]:
        """The units of one call in a place at the real size, by whose key it is; and how much of the time it is used."""
        footprint = self._sample.footprints[action.name]
        trend = self.growing.get((action.name, place))
        factor = trend.factor(self._times_the_sample()) if trend else 1.0
        for (where, owner), units in footprint.units.items():
            if where == place:
                grown = Units(units.reads * factor, units.writes * factor)
                yield owner, grown, footprint.in_use.get((where, owner), 1.0)

    def _keys_of(self, action: Action, owner: Owner) -> Iterator[tuple[str, float]]:
        """The keys that are followed one by one, and each one's share of the calls."""
        if owner.kind == "shared":
            yield owner.form, 1.0
        elif owner.kind != "spread":
            population = self.workload.populations[owner.population]
            is_own = owner.kind == "own"
            exponent = population.activity if is_own else population.popularity
            ranks = _ranks(self.sizes[population.name], exponent)
            for rank in range(1, min(ranks.size, RANKS) + 1):
                yield owner.label(rank), ranks.share(rank)

    def _hot_key(self, place: Place, label: str, average: Load, is_shared: bool) -> HotKey:
        name = f"{place}: {label}"
        shards = self.shards.get(name, 1)
        peak = max(self.workload.day)
        # A write goes to one shard. A read asks all of them, and each takes half a unit at least.
        reads = average.reads
        if shards > 1 and reads:
            reads = max(reads / shards, self._calls_reading(place, label) * _LEAST_READ)
        load = Load(reads, average.writes / shards)
        hours = [load * hour for hour in self.workload.day]
        refused = sum(hour.beyond.units for hour in hours)
        total = sum(hour.units for hour in hours)
        return HotKey(
            place, name, load * peak, refused / total if total else 0.0, is_shared, shards
        )

    def _calls_reading(self, place: Place, label: str) -> float:
        """Calls a second that read a shared key."""
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

    def _bytes(self, place: Place) -> tuple[float, float]:
        """The bytes of a place with all members, and by how many it grows in a day."""
        stored = sum(
            self._sample.stored.get((name, place), 0.0) * size for name, size in self.sizes.items()
        )
        grown = sum(
            self.rate(action) * self._sample.footprints[action.name].grown.get(place.table, 0.0)
            for action in self.workload.actions.values()
        )
        return stored, max(grown, 0.0) * self._sample.index_bytes.get(place, 0.0) * _DAY

    # Sizes

    def rate(self, action: Action) -> float:
        """Calls a second of an action on average."""
        if action.by is None:
            return action.rate
        return action.rate_in_all(self.sizes[action.by.name])

    def _times_the_sample(self) -> float:
        """The members of the largest population for each one in the sample."""
        if not self.sizes:
            return 1.0
        name = max(self.sizes, key=lambda each: self.sizes[each])
        return self.sizes[name] / self._sample.members[name]

    def _trends(self) -> dict[tuple[str, Place], Trend]:
        ratio = max(self._sample.members.values(), default=1) / max(
            self._small.members.values(), default=1
        )
        found = {}
        for name, footprint in self._sample.footprints.items():
            for place in dict.fromkeys(place for place, _ in footprint.units):
                small, big = (
                    sample.footprints[name].of(place) for sample in (self._small, self._sample)
                )
                found[name, place] = Trend(
                    small.reads + small.writes, big.reads + big.writes, ratio
                )
        return found


_ranks: Final = lru_cache(maxsize=256)(Ranks)


def sizes_of(workload: Workload, size: int | None) -> dict[str, int]:
    """The members of each population if the largest has so many; None: as declared."""
    declared = {name: each.size for name, each in workload.populations.items()}
    if size is None:
        return declared
    if type(size) is not int or size < 1:
        raise UsageError(f"size={size!r} is not a number of members")
    factor = size / max(declared.values(), default=1)
    return {name: max(1, round(each * factor)) for name, each in declared.items()}


class Comparison(NamedTuple):
    """A predicted figure and the measured one."""

    what: str
    predicted: float
    measured: float

    @property
    def difference(self) -> float:
        """By which part of the measured figure the prediction is off."""
        return self.predicted / self.measured - 1 if self.measured else 0.0


def _compared(predicted: Forecast, measured: Sample) -> Iterator[Comparison]:
    truth = Forecast(
        *(predicted.workload, measured.members, predicted.prices, {}, 0.0),
        *(predicted.calls_a_member, measured, measured),
    )
    found = {place.place: place for place in predicted.places}
    for there in truth.places:
        here = found.get(there.place)
        for kind in ("reads", "writes"):
            wanted = getattr(there.average, kind)
            if wanted:
                got = getattr(here.average, kind) if here else 0.0
                yield Comparison(f"{there.place}: {kind} a second", got, wanted)
        if there.stored:
            yield Comparison(f"{there.place}: bytes", here.stored if here else 0.0, there.stored)
    by_label = {key.label: key for key in predicted.hottest}
    for label, load in _measured_keys(truth, measured)[:3]:
        key = by_label.get(label)
        yield Comparison(f"{label}: part of a partition", key.load.use if key else 0.0, load.use)


def _measured_keys(truth: Forecast, measured: Sample) -> list[tuple[str, Load]]:
    """The load of the busiest keys in the busiest hour, as they were measured."""
    loads: dict[str, Load] = defaultdict(Load)
    peak = max(truth.workload.day)
    for (place, label, action), units in measured.hottest.items():
        rate = truth.rate(truth.workload.actions[action]) * peak
        loads[f"{place}: {label}"] += Load(units.reads, units.writes) * rate
    return sorted(loads.items(), key=lambda each: -each[1].use)


def _less(all_of_it: Load, known: Load) -> Load:
    return Load(max(all_of_it.reads - known.reads, 0.0), max(all_of_it.writes - known.writes, 0.0))


def _least_capacity(day: list[float]) -> float:
    """The smallest capacity that throttles nothing of a day."""
    low, high = 0.0, max(day)
    for _ in range(30):
        middle = (low + high) / 2
        if partitions.throttled_share(day, middle) > 0:
            low = middle
        else:
            high = middle
    return high


def _checked_shards(shards: Mapping[str, int]) -> dict[str, int]:
    for label, number in shards.items():
        if type(number) is not int or not 1 <= number <= 1000:
            raise UsageError(f"shards of {label!r}: {number!r} is not a number from 1 to 1000")
    return dict(shards)


def as_dict(forecast: Forecast) -> dict[str, Any]:
    """The forecast as JSON-like data."""
    return {
        "workload": forecast.workload.name,
        "populations": forecast.sizes,
        "sampled": forecast.sampled,
        "throttled": forecast.throttled,
        "write_amplification": forecast.amplification,
        "places": [
            {
                "table": place.place.table,
                "index": place.place.index,
                "average": _units(place.average),
                "peak": _units(place.peak),
                "stored_bytes": place.stored,
                "growth_bytes_a_day": place.growth,
                "partitions": place.partitions,
                "throttled": place.throttled,
            }
            for place in forecast.places
        ],
        "hottest_keys": [
            {
                "key": key.label,
                "peak": _units(key.load),
                "part_of_a_partition": key.load.use,
                "throttled": key.throttled,
                "shards": key.shards,
                "wanted_shards": key.wanted_shards,
            }
            for key in forecast.hottest[:20]
        ],
        "month": {
            "currency": forecast.costs.currency,
            "on_demand": forecast.costs.on_demand,
            "provisioned": forecast.costs.provisioned,
            "storage": forecast.costs.storage,
        },
    }


def _units(load: Load) -> dict[str, float]:
    return {"reads": load.reads, "writes": load.writes}
