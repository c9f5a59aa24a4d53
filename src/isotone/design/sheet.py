"""The sheet of access patterns: what each read and write of a model reads, costs a month, and where it is hot.

    sheet = sheet_of(shop, items={"Customer": 1_000_000}, rates={"Order.by_status": 50})
    print(sheet)
    sheet.hot                                        # rows with a key above the limit of a partition

A sample in memory is measured, and what is asked for beyond its size follows from how its collections grow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from isotone.advisor.drawn_collections import text_of as text_of_parts
from isotone.advisor.explain import explain
from isotone.advisor.key_names import key_form
from isotone.advisor.simulation.partitions import PartitionLoad
from isotone.advisor.simulation.workload import Ranks
from isotone.design.measures import MeasuredSample, ReadMeasure, WriteMeasure, query_of_partition
from isotone.design.sample_plan import EntitySample, SampleData, SampleRequest
from isotone.design.sheet_text import text_of
from isotone.errors import UsageError
from isotone.model import Entity, EntitySchema, Table
from isotone.prices import DAYS_A_MONTH, US_EAST_1, Prices

Operation = Literal["get", "query", "put", "update", "delete"]

MONTH: Final = DAYS_A_MONTH * 86_400
"""The seconds of a month."""
DEFAULT_PAGE: Final = 100
"""Items that a query reads at most, unless another number is given."""
_SAMPLED: Final = 6000  # items of the sample, about
_LARGEST: Final = 20_000  # items of the sample at most
_SMALLEST: Final = 5  # items of an entity in the sample, if possible
_GREATEST: Final = 1000


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One access pattern: what one call reads and costs, and what all of them cost a month."""

    name: str
    operation: Operation
    table: str
    index: str | None
    key: str
    """The condition on the key, as it is stored."""
    order: str
    items: float
    """Items that one call reads or writes."""
    in_collection: float
    """Items in the range that a query could read."""
    units: float
    """Units of one call."""
    rate: float
    """Calls a second."""
    cost: float
    """The cost of a month, on demand."""
    hottest: PartitionLoad
    """The units a second of the most used key."""

    @property
    def units_a_second(self) -> float:
        """The units of all calls in a second."""
        return self.units * self.rate

    @property
    def is_hot(self) -> bool:
        """Whether one key gets more than a partition serves."""
        return self.hottest.use > 1


@dataclass(frozen=True, slots=True)
class SheetPlace:
    """A table or an index: its items and bytes at this size, the price of storing them, and its most used key."""

    table: str
    index: str | None
    items: float
    size: float
    cost: float
    hottest: PartitionLoad
    """The units a second of the most used key, if it is the same for all patterns."""

    def __str__(self) -> str:
        return self.table if self.index is None else f"{self.table}.{self.index}"

    @property
    def is_hot(self) -> bool:
        """Whether one key gets more than a partition serves."""
        return self.hottest.use > 1


@dataclass(frozen=True, slots=True)
class PatternSheet:
    """The access patterns of a model at some size, as plain values."""

    rows: tuple[SheetRow, ...]
    places: tuple[SheetPlace, ...]
    entities: Mapping[str, float]
    """How many items there are of each entity."""
    prices: Prices
    page: int
    factor: int = field(default=1)
    """How many times larger the size is than the sample that was measured."""

    @property
    def cost(self) -> float:
        """The cost of a month: reads, writes and storage."""
        return sum(row.cost for row in self.rows) + sum(place.cost for place in self.places)

    @property
    def hot(self) -> list[SheetRow | SheetPlace]:
        """The rows, tables and indexes with a key that gets more than a partition serves."""
        every: list[SheetRow | SheetPlace] = [*self.rows, *self.places]
        return [each for each in every if each.is_hot]

    def row(self, name: str) -> SheetRow:
        """A row by its name; raises `UsageError`."""
        for each in self.rows:
            if each.name == name:
                return each
        raise UsageError(f"there is no pattern {name!r}; there are {_names(self.rows)}")

    def __str__(self) -> str:
        return text_of(self)


def sheet_of(
    *targets: Table | type[Entity],
    request: SampleRequest | None = None,
    rates: Mapping[str, float] | None = None,
    reads: float = 1.0,
    writes: float = 1.0,
    page: int = DEFAULT_PAGE,
    prices: Prices = US_EAST_1,
    ignore_unknown: bool = False,
) -> PatternSheet:
    """The sheet of the access patterns of tables or entities.

    `request` says how many items there are, as for a sample. `rates` has calls a second by the names of the rows, such
    as `Order.by_status` or `Order.put`; the others have `reads` and `writes` calls. A query reads up to `page` items.
    Nothing leaves the process. Raises `UsageError` for an unknown name, unless `ignore_unknown`.

    >>> sheet_of(Order).row("Order.get").units
    0.5
    """
    if type(page) is not int or not 1 <= page <= _GREATEST:
        raise UsageError(f"page={page!r} is not a number of items; give 1 to {_GREATEST}")
    for name, rate in {"reads": reads, "writes": writes, **(rates or {})}.items():
        if not 0 <= rate < math.inf:
            raise UsageError(f"{name}={rate!r} is not a number of calls a second")
    asked = request or SampleRequest()
    if ignore_unknown:
        asked = asked.known_to(targets)
    making = _SheetMaking(targets, asked, smaller_sample(targets, asked), page, prices)
    try:
        sheet = making.sheet(rates or {}, reads, writes)
    finally:
        making.close()
    unknown = set(rates or {}) - {row.name for row in sheet.rows}
    if unknown and not ignore_unknown:
        raise UsageError(f"there is no pattern {min(unknown)!r}; there are {_names(sheet.rows)}")
    return sheet


class SmallerSample(NamedTuple):
    """How a sample is made smaller than what is asked for: fewer items of every entity, by a factor.

    Of a few parents with many children in all, the children become fewer, and the parents stay: `kept` has their names.
    """

    factor: int
    kept: frozenset[str] = frozenset()

    def of(self, asked: SampleRequest, times: int = 1) -> SampleRequest:
        """What the sample is asked for; that of a sample which is so many times smaller still."""
        smaller = asked.divided(self.factor * times)
        items = {name: count for name, count in asked.items.items() if name in self.kept}
        roots = asked.roots if self.kept - asked.items.keys() else smaller.roots
        return replace(smaller, items={**smaller.items, **items}, roots=roots)


def smaller_sample(targets: Sequence[Any], asked: SampleRequest) -> SmallerSample:
    """A sample that is quick to measure, and of which the smallest entities still have some items."""
    smaller = SmallerSample(max(1, max(asked.items.values(), default=0) // _LARGEST))
    data = SampleData(targets, smaller.of(asked))
    roots = [each.name for each in data.of.values() if each.owner is None]
    numbers = [asked.items.get(name, asked.roots) for name in roots]
    enough = min((number for number in numbers if number), default=0) // _SMALLEST
    smaller = smaller._replace(kept=_kept(data, asked, smaller.factor))
    data = SampleData(targets, smaller.of(asked))
    while (data.count > _SAMPLED and 2 * smaller.factor <= enough) or data.count > _LARGEST:
        factor = 2 * smaller.factor
        smaller = SmallerSample(factor, _kept(data, asked, factor))
        data = SampleData(targets, smaller.of(asked))
        if factor > _LARGEST * max(numbers, default=1):
            break  # entities whose number does not follow from that of others
    return smaller


def _kept(data: SampleData, asked: SampleRequest, factor: int) -> frozenset[str]:
    """The roots that have so many children in all that each of them can have a fraction."""
    kept = set()
    for sample in data.of.values():
        root = sample
        while root.owner is not None:
            root = root.owner
        number = asked.items.get(root.name, asked.roots)
        if root is not sample and asked.items.get(sample.name, 0) >= factor * number:
            kept.add(root.name)
    return frozenset(kept)


def _names(rows: Sequence[SheetRow]) -> str:
    return ", ".join(each.name for each in rows)


class _SheetMaking:
    """One sheet in the making: the sample that is measured, and half of it."""

    def __init__(
        self,
        targets: Sequence[Any],
        asked: SampleRequest,
        smaller: SmallerSample,
        page: int,
        prices: Prices,
    ) -> None:
        self._asked = asked
        self._factor = smaller.factor
        self._page = page
        self._prices = prices
        self._whole = MeasuredSample(SampleData(targets, smaller.of(asked)))
        self._half: MeasuredSample | None = None
        if smaller.factor > 1:
            self._half = MeasuredSample(SampleData(targets, smaller.of(asked, times=2)))

    def close(self) -> None:
        self._whole.close()
        if self._half is not None:
            self._half.close()

    # Growth

    def _growth(self, whole: float, half: float) -> float:
        """How many times larger a figure is at the size that is asked for: it is constant, or in proportion."""
        if self._half is None or not whole or not half:
            return 1.0
        power = min(max(math.log2(whole / half), 0.0), 1.0)
        return float(self._factor ** round(power))

    def _collection_growth(self, schema: EntitySchema, index: str | None) -> float:
        if self._half is None:
            return 1.0
        sizes = [_mean_size(each.groups_with(schema, index)) for each in (self._whole, self._half)]
        return self._growth(*sizes)

    @cached_property
    def _entities(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for sample in self._whole.data.of.values():
            if sample.name in self._asked.items:
                found[sample.name] = float(self._asked.items[sample.name])
            elif sample.owner is not None:
                growth = found[sample.owner.name] / max(sample.owner.count, 1)
                found[sample.name] = sample.count * growth
            else:
                half = sample.count
                if self._half is not None:
                    half = self._half.data.of[sample.schema.tag].count
                found[sample.name] = sample.count * self._growth(sample.count, half)
        return found

    # Rows

    def sheet(self, rates: Mapping[str, float], reads: float, writes: float) -> PatternSheet:
        rows = []
        loads: dict[tuple[str, str | None], PartitionLoad] = {}
        for row, by_place in self._rows(rates, reads, writes):
            rows.append(row)
            for place, load in by_place.items():
                key = (row.table, place)
                loads[key] = loads.get(key, PartitionLoad()) + load
        places = tuple(self._places(loads))
        return PatternSheet(
            tuple(rows), places, self._entities, self._prices, self._page, self._factor
        )

    def _rows(
        self, rates: Mapping[str, float], reads: float, writes: float
    ) -> Iterator[tuple[SheetRow, Mapping[str | None, PartitionLoad]]]:
        for sample in self._whole.data.of.values():
            for row, measure in self._reads_of(sample):
                yield self._with_rate(row, measure, sample.schema, rates.get(row.name, reads))
        for table in self._whole.data.tables:
            for row, measure, schema in self._families_of(table):
                yield self._with_rate(row, measure, schema, rates.get(row.name, reads))
        for sample in self._whole.data.of.values():
            for row, written in self._writes_of(sample):
                yield self._written(row, sample, written, rates.get(row.name, writes))

    def _reads_of(self, sample: EntitySample) -> Iterator[tuple[SheetRow, ReadMeasure]]:
        schema = sample.schema
        got = self._whole.get(schema)
        if got.collections:
            yield self._row(f"{sample.name}.get", "get", schema, None, _whole_key(schema), ""), got
        for name, key in schema.keys.items():
            if key.index is None and not sample.count > got.collections:
                continue  # each collection has one item of the kind: that is the get
            pattern = schema.patterns[name]
            example = self._whole.example(schema, key.index)
            if example is not None:
                query = query_of_partition(pattern, example)
                row = self._row(
                    str(pattern), "query", schema, key.index, _shown(key), self._order(query)
                )
                growth = self._collection_growth(schema, key.index)
                measure = self._whole.query(
                    schema,
                    key.index,
                    lambda entity, pattern=pattern: query_of_partition(pattern, entity),
                    self._page,
                    growth,
                )
                yield row, measure

    def _families_of(self, table: Table) -> Iterator[tuple[SheetRow, ReadMeasure, EntitySchema]]:
        for name, collection in table.collections.items():
            pattern = collection.parent
            schema, index = pattern.schema, pattern.key.index
            example = self._whole.example(schema, index)
            if schema.tag not in self._whole.data.of or example is None:
                continue

            def query_of(
                entity: Entity, pattern: Any = pattern, collection: Any = collection
            ) -> Any:
                return collection.where(*query_of_partition(pattern, entity).asked)

            row = self._row(
                name,
                "query",
                schema,
                index,
                _shown(pattern.key, is_family=True),
                "children in order",
            )
            growth = self._collection_growth(schema, index)
            yield row, self._whole.query(schema, index, query_of, self._page, growth), schema

    def _writes_of(self, sample: EntitySample) -> Iterator[tuple[SheetRow, WriteMeasure]]:
        schema = sample.schema
        if not sample.count:
            return
        found: list[tuple[Operation, WriteMeasure | None]] = [
            ("put", self._whole.put(schema)),
            ("update", self._whole.update(schema)),
            ("delete", self._whole.delete(schema)),
        ]
        for operation, measure in found:
            if measure is not None:
                name = f"{sample.name}.{operation}"
                yield self._row(name, operation, schema, None, _whole_key(schema), ""), measure

    def _row(
        self,
        name: str,
        operation: Operation,
        schema: EntitySchema,
        index: str | None,
        key: str,
        order: str,
    ) -> SheetRow:
        table = schema.table.name
        return SheetRow(
            name, operation, table, index, key, order, 1, 1, 0.0, 0.0, 0.0, PartitionLoad()
        )

    def _order(self, query: Any) -> str:
        return explain(self._whole.store, query, sample=0).order

    # Rates, costs and hot keys

    def _with_rate(
        self, row: SheetRow, measure: ReadMeasure, schema: EntitySchema, rate: float
    ) -> tuple[SheetRow, Mapping[str | None, PartitionLoad]]:
        """A read with its calls a second: spread over the collections, or by their owner's popularity."""
        units = measure.units * rate
        load = PartitionLoad(reads=units * self._share_of_reads(row, measure, schema))
        made = replace(
            row,
            items=measure.items,
            in_collection=measure.in_collection,
            units=measure.units,
            rate=rate,
            cost=self._prices.on_demand(reads=units * MONTH),
            hottest=load,
        )
        return made, {self._space(row.table, row.index): load}

    def _share_of_reads(self, row: SheetRow, measure: ReadMeasure, schema: EntitySchema) -> float:
        known = measure.collections
        half = 0 if self._half is None else len(self._half.groups_with(schema, row.index))
        count = max(round(known * self._growth(known, half)), 1)
        exponent = self._popularity(schema, row)
        return Ranks(count, exponent).share(1) if exponent else 1 / count

    def _popularity(self, schema: EntitySchema, row: SheetRow) -> float:
        """The popularity of the entity whose key names the partitions that are read."""
        key = next(each for each in schema.keys.values() if each.index == row.index)
        fields = {part.field.name for slot in key.partition for part in slot.components}
        for each in self._whole.data.of[schema.tag].named_by(fields):
            if each.name in self._asked.popularity:
                return self._asked.popularity[each.name]
        return 0.0

    def _written(
        self, row: SheetRow, sample: EntitySample, measure: WriteMeasure, rate: float
    ) -> tuple[SheetRow, Mapping[str | None, PartitionLoad]]:
        """A write with its calls a second: a key gets the part of them that it has of the items."""
        loads: dict[str | None, PartitionLoad] = {}
        for index, units in measure.units.items():
            if units:
                space = self._space(row.table, index)
                load = PartitionLoad(
                    writes=units * rate * self._share_of_writes(sample.schema, index)
                )
                loads[space] = loads.get(space, PartitionLoad()) + load
        hottest = max(loads.values(), key=lambda load: load.use, default=PartitionLoad())
        units = measure.total
        cost = self._prices.on_demand(writes=units * rate * MONTH)
        return replace(row, units=units, rate=rate, cost=cost, hottest=hottest), loads

    def _share_of_writes(self, schema: EntitySchema, index: str | None) -> float:
        share = self._whole.share(schema, index)
        if self._half is None:
            return share
        total = self._entities[schema.entity.__name__] / max(
            self._whole.data.of[schema.tag].count, 1
        )
        return min(share * self._collection_growth(schema, index) / max(total, 1.0), 1.0)

    def _space(self, table: str, index: str | None) -> str | None:
        """The partitions that a table's index uses: a local index has those of its table."""
        if index is None:
            return None
        kind = self._whole.contents[table].shape.index(index).kind
        return None if kind == "local" else index

    # Places

    def _places(
        self, loads: Mapping[tuple[str, str | None], PartitionLoad]
    ) -> Iterator[SheetPlace]:
        for table, contents in self._whole.contents.items():
            for index in (None, *contents.shape.index_names):
                items, size = _counted(contents.shape, index)
                if self._half is not None:
                    less = _counted(self._half.contents[table].shape, index)
                    items, size = (
                        items * self._growth(items, less[0]),
                        size * self._growth(size, less[1]),
                    )
                load = loads.get((table, index), PartitionLoad())
                yield SheetPlace(table, index, items, size, self._prices.storage(size), load)


def _counted(shape: Any, index: str | None) -> tuple[float, float]:
    found = shape if index is None else shape.index(index)
    return float(found.item_count), float(found.size)


def _mean_size(groups: Sequence[Sequence[Any]]) -> float:
    return sum(map(len, groups)) / len(groups) if groups else 0.0


def _whole_key(schema: EntitySchema) -> str:
    return " and ".join(f"{slot.attribute.name} = {_form(slot)}" for slot in schema.primary.slots)


def _shown(key: Any, *, is_family: bool = False) -> str:
    """The condition of a pattern on its partition, and the beginning of its sort keys."""
    parts = [f"{slot.attribute.name} = {_form(slot)}" for slot in key.partition]
    for slot in key.sort[:1]:
        start = (
            ""
            if is_family or getattr(slot, "template", None) is None
            else slot.template.literals[0]
        )
        if start:
            parts.append(f"{slot.attribute.name} begins with {start}")
    return " and ".join(parts)


def _form(slot: Any) -> str:
    return text_of_parts(key_form(slot))
