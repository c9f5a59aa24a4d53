"""What the access patterns of a sample cost: measured collection by collection, and as they grow with the sample.

A pattern's collections either keep their size when there are more items (the orders of a customer), or grow with them
(all orders with a status). Two samples, of which one has half the items, tell which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from isotone.advisor.explain import explain
from isotone.advisor.explanation import Explanation
from isotone.advisor.read_costs import exact_cost
from isotone.advisor.read_plan import plan_of_read, plan_of_request
from isotone.advisor.table_sample import TableSample, collections, has_key, read_sample
from isotone.design.sample_plan import SampleData
from isotone.design.seeding import write_sample
from isotone.model import Attr, Entity, EntitySchema, Query, Store, connect
from isotone.values.types import Item

_MOST: Final = 1 << 30
_COLLECTIONS: Final = 60  # of a pattern that are measured
_WRITES: Final = 25  # of an entity that are measured


@dataclass(frozen=True, slots=True)
class ReadMeasure:
    """One read of a pattern: items read of those in the collection, units, and how many collections there are."""

    items: float
    in_collection: float
    units: float
    collections: int


@dataclass(frozen=True, slots=True)
class WriteMeasure:
    """One write: its units in the table (None) and in each index."""

    units: Mapping[str | None, float]

    @property
    def total(self) -> float:
        return sum(self.units.values())


class MeasuredSample:
    """A sample in memory, and what reads and writes of it cost."""

    def __init__(self, data: SampleData) -> None:
        self.data = data
        self.store: Store = connect(":memory:", report=None)
        self._empty: Store = connect(":memory:", report=None)
        self._empty.create_tables(*data.tables)
        self.store.run(write_sample(self.store.calls, data))
        self.contents: dict[str, TableSample] = {
            table.name: self.store.run(read_sample(table.name, _MOST)) for table in data.tables
        }
        self._groups: dict[tuple[str, str | None], list[list[Item]]] = {}

    def close(self) -> None:
        """Forget the sample."""
        self.store.close()
        self._empty.close()

    # Collections

    def groups(self, table: str, index: str | None) -> list[list[Item]]:
        """The whole items of each collection of a table or an index."""
        known = self._groups.get((table, index))
        if known is None:
            contents = self.contents[table]
            key = contents.shape.key_of(index)
            items = [item for item in contents.items if has_key(key, item)]
            known = self._groups[table, index] = list(collections(key, items).values())
        return known

    def groups_with(self, schema: EntitySchema, index: str | None) -> list[list[Item]]:
        """The collections that have an item of an entity."""
        found = self.groups(schema.table.name, index)
        return [group for group in found if any(_is_of(schema, item) for item in group)]

    def share(self, schema: EntitySchema, index: str | None) -> float:
        """The largest part of an entity's items that is in one collection."""
        counts = [
            sum(_is_of(schema, item) for item in group) for group in self.groups_with(schema, index)
        ]
        return max(counts) / sum(counts) if counts else 0.0

    # Reads

    def get(self, schema: EntitySchema) -> ReadMeasure:
        """The reads of single items by their key."""
        groups = self.groups_with(schema, None)
        shape = self.contents[schema.table.name].shape
        costs = []
        for group in _some(groups, _COLLECTIONS):
            item = next(each for each in group if _is_of(schema, each))
            key = {name: item[name] for name in shape.key.names}
            plan = plan_of_request("GetItem", {"TableName": shape.name, "Key": key}, shape)
            costs.append(exact_cost(plan, TableSample(shape, (item,), is_whole=True)).units)
        return ReadMeasure(1, 1, _mean(costs), len(groups))

    def query(
        self, schema: EntitySchema, index: str | None, query_of: Any, page: int, growth: float
    ) -> ReadMeasure:
        """The queries of collections with an item of an entity, which have `growth` as many items as in the sample."""
        groups = self.groups_with(schema, index)
        shape = self.contents[schema.table.name].shape
        read, inside, units = [], [], []
        for group in _some(sorted(groups, key=len), _COLLECTIONS):  # of all sizes
            item = next(each for each in group if _is_of(schema, each))
            plan = plan_of_read(query_of(schema.from_item(item)), shape)
            whole = exact_cost(plan, TableSample(shape, tuple(group), is_whole=True))
            larger = _grown(group, growth, page // max(whole.items_read, 1) + 2)
            contents = TableSample(shape, tuple(larger), is_whole=True)
            cost = exact_cost(replace(plan, limit=page), contents)
            read.append(cost.items_read)
            inside.append(whole.items_read * growth)
            units.append(cost.units)
        return ReadMeasure(_mean(read), _mean(inside), _mean(units), len(groups))

    def example(self, schema: EntitySchema, index: str | None) -> Entity | None:
        """An entity that has an entry."""
        for group in self.groups_with(schema, index):
            item = next(each for each in group if _is_of(schema, each))
            return schema.from_item(item)
        return None

    # Writes

    def put(self, schema: EntitySchema) -> WriteMeasure:
        """The writes of new items."""
        return _averaged(
            explain(self._empty, self._empty.requests.create(entity), sample=0)
            for entity in self._entities(schema)
        )

    def update(self, schema: EntitySchema) -> WriteMeasure | None:
        """The changes of a field that is in no key; None if there is none."""
        field = _changeable(schema)
        if field is None:
            return None
        entities = list(self._entities(schema))
        values = [each.__dict__[field.name] for each in entities]
        others = [next((other for other in values if other != value), None) for value in values]
        requests = [
            self.store.requests.update(each, field.set(other))
            for each, other in zip(entities, others, strict=True)
            if other is not None
        ]
        if not requests:
            return None
        return _averaged(explain(self.store, each, sample=0) for each in requests)

    def delete(self, schema: EntitySchema) -> WriteMeasure:
        """The deletes of items."""
        return _averaged(
            explain(self.store, _delete(self.store.requests.delete(entity)), sample=0)
            for entity in self._entities(schema)
        )

    def _entities(self, schema: EntitySchema) -> Iterator[Entity]:
        items = [item for item in self.contents[schema.table.name].items if _is_of(schema, item)]
        for item in _some(items, _WRITES):
            kind = schema.kind_of(item) or schema
            yield kind.from_item(item)


def _delete(request: Any) -> Any:
    """The request of a delete with its action: a transaction, if unique values are given back."""
    return request if "TransactItems" in request else ("DeleteItem", request)


def _averaged(explained: Iterator[Explanation]) -> WriteMeasure:
    units: dict[str | None, float] = {}
    count = 0
    for each in explained:
        count += 1
        for write in each.writes:
            units[write.index] = units.get(write.index, 0.0) + write.units
    return WriteMeasure({index: each / max(count, 1) for index, each in units.items()})


def _grown(group: Sequence[Item], growth: float, most: int) -> list[Item]:
    """A collection with so many times the items, up to `most` times: no page reads more."""
    times = min(math.ceil(growth), most)
    return [item for item in group for _ in range(times)]


def _changeable(schema: EntitySchema) -> Attr[Any] | None:
    in_keys = {field.name for key in schema.keys.values() for field in key.fields}
    return next(
        (
            each
            for name, each in schema.fields.items()
            if name not in in_keys
            and each.options.role == "plain"
            and not each.options.unique
            and each.why_fixed is None
        ),
        None,
    )


def _is_of(schema: EntitySchema, item: Item) -> bool:
    """Whether an item is one of an entity, or of one of its kinds."""
    tag = item.get(schema.table.tag, {}).get("S", "")
    found = schema.table.entity_of(tag)
    return found is not None and schema.tag in found.lineage


def _some(found: Sequence[Any], most: int) -> list[Any]:
    """Some of many, from everywhere among them."""
    if len(found) <= most:
        return list(found)
    return [found[(2 * at + 1) * len(found) // (2 * most)] for at in range(most)]


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def query_of_partition(pattern: Any, entity: Entity) -> Query[Any]:
    """The query of a pattern for the collection that an entity is in."""
    fields = dict.fromkeys(part.field for slot in pattern.key.partition for part in slot.components)
    query: Query[Any] = pattern.where(*(each == getattr(entity, each.name) for each in fields))
    return query
