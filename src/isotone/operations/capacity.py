"""ConsumedCapacity and ItemCollectionMetrics: capacity units of a request, doubled in transactions.

`values.size` computes the units for a size. This file decides what is charged: a write costs the larger of the old and
the new item, an index entry whose key changes costs two writes, and a transaction multiplies everything by
`TRANSACTION_FACTOR`.

A `CapacityMeter` exists only if the request asks for its consumption. If consumption is also counted for operators
(`engine/consumed_units.py`), the meter adds to the table's counters too; a request without a meter adds only to those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

from isotone import limits
from isotone.engine.consumed_units import TableUnits, entry_units
from isotone.engine.engine import Engine
from isotone.engine.index_entries import IndexEntry
from isotone.engine.items import collection_size
from isotone.engine.layout import size_of
from isotone.engine.table_indexes import SecondaryIndex, StoredTable
from isotone.engine.vector_index import StoredVectorIndex
from isotone.operations.table_lookup import open_table
from isotone.values.attribute_validation import Item
from isotone.values.size import read_units, write_units

TRANSACTION_FACTOR: Final = 2
"""A transaction reads or writes every item twice: to prepare, and to commit."""

_GB: Final = 1024 * limits.MB
_SEARCHED_BYTES: Final = 17.6  # per dimension, however many vectors the index has
_GROUPS: Final = {"local": "LocalSecondaryIndexes", "global": "GlobalSecondaryIndexes"}


class CapacityMeter:
    """The units that one request consumes on one table. `mode` decides how the response reports them.

    `kind` is the member that transactions report besides the total.
    """

    __slots__ = (
        "_counted",
        "_factor",
        "_indexes",
        "_kind",
        "_mode",
        "_name",
        "_table",
        "_vectors",
    )

    def __init__(
        self,
        name: str,
        table: StoredTable,
        mode: str | None,
        *,
        factor: int = 1,
        kind: str | None = None,
    ) -> None:
        self._name = name
        self._mode = mode
        self._factor = factor
        self._kind = kind
        self._counted = table.units
        self._table = 0.0
        self._indexes: dict[tuple[str, str], float] = {}
        self._vectors: dict[str, float] = {}

    def read(self, size: int, *, consistent: bool, index: SecondaryIndex | None = None) -> None:
        """Charge one read of some bytes to the table or to an index."""
        self._charge(read_units(size, consistent) * self._factor, index)
        if self._counted is not None:
            self._counted.read(size, consistent=consistent, index=index, factor=self._factor)

    def write(self, old_size: int, new_size: int) -> None:
        """Charge a write of an item, by the larger of its old and new sizes."""
        self._charge(write_units(max(old_size, new_size)) * self._factor, None)
        if self._counted is not None:
            self._counted.write(old_size, new_size, self._factor)

    def write_entry(
        self,
        index: SecondaryIndex | StoredVectorIndex,
        before: IndexEntry | None,
        after: IndexEntry | None,
    ) -> None:
        """Charge a change of an index entry: two writes if its key changes, otherwise one."""
        if isinstance(index, StoredVectorIndex):
            written = self._vectors.get(index.name, 0.0) + vector_write_bytes(before, after)
            self._vectors[index.name] = written
            return
        self._charge(entry_units(before, after) * self._factor, index)
        if self._counted is not None:
            self._counted.write_entry(index, before, after, self._factor)

    def _charge(self, units: float, index: SecondaryIndex | None) -> None:
        if index is None:
            self._table += units
        else:
            key = (index.kind, index.name)
            self._indexes[key] = self._indexes.get(key, 0.0) + units

    def report(self) -> dict[str, Any]:
        """The `ConsumedCapacity` that `ReturnConsumedCapacity` asks for."""
        total = self._table + sum(self._indexes.values())
        report: dict[str, Any] = {"TableName": self._name, **self._units(total)}
        if self._mode == "INDEXES":
            report["Table"] = self._units(self._table)
            for (kind, name), units in self._indexes.items():
                report.setdefault(_GROUPS[kind], {})[name] = self._units(units)
            if self._vectors:
                report["VectorIndexes"] = {
                    name: {"VectorWriteRequestBytes": written}
                    for name, written in self._vectors.items()
                }
        return report

    def _units(self, units: float) -> Mapping[str, float]:
        units = float(units)
        return (
            {"CapacityUnits": units}
            if self._kind is None
            else {"CapacityUnits": units, self._kind: units}
        )


def vector_write_bytes(before: IndexEntry | None, after: IndexEntry | None) -> float:
    """The bytes that a change of a vector index entry costs: the larger of old and new, or both if it moves.

    An entry has four bytes per dimension, the name of the vector attribute, and the size of the other projected
    attributes. It costs at least 1 KB.
    """
    sizes = [max(size_of(entry.record), limits.KB) for entry in (before, after) if entry]
    moved = before is not None and after is not None and before.key != after.key
    return float(sum(sizes) if moved else max(sizes))


def vector_search_bytes(dimensions: int, returned: Iterable[int]) -> float:
    """The bytes that a search costs: the vectors it compares, and the entries it returns, without their vectors.

    The service's figure varies from search to search. This is the lower of its most frequent figures.
    """
    return max(_SEARCHED_BYTES * dimensions + sum(returned), float(limits.KB))


class Metered(Protocol):
    """A request that may ask for its consumed capacity."""

    @property
    def table_name(self) -> str: ...
    @property
    def return_consumed_capacity(self) -> str | None: ...


Charged: TypeAlias = CapacityMeter | TableUnits
"""Where a request's costs go: a meter if it asks for its consumption, or only the table's counters."""


def meter_for(request: Metered, table: StoredTable) -> Charged | None:
    """Where the costs of a request go; None if it does not ask, and nobody counts."""
    return meter_for_table(request.table_name, table, request.return_consumed_capacity)


def meter_for_table(name: str, table: StoredTable, mode: str | None) -> Charged | None:
    """Where the costs go for a request with this table name and ReturnConsumedCapacity mode."""
    return table.units if mode is None or mode == "NONE" else CapacityMeter(name, table, mode)


def transaction_meters(
    engine: Engine, table_names: Iterable[str], mode: str | None, kind: Literal["Read", "Write"]
) -> dict[str, CapacityMeter]:
    """A meter for each table of a transaction; empty if the request does not ask, and nobody counts."""
    if (mode is None or mode == "NONE") and engine.catalog.units is None:
        return {}
    return {
        name: CapacityMeter(
            name,
            open_table(engine, name),
            mode,
            factor=TRANSACTION_FACTOR,
            kind=f"{kind}CapacityUnits",
        )
        for name in dict.fromkeys(table_names)
    }


def add_capacity(
    answer: dict[str, Any], mode: str | None, meters: Iterable[Charged | None]
) -> None:
    """Add the `ConsumedCapacity` of several tables, if requested."""
    if mode is not None and mode != "NONE":
        answer["ConsumedCapacity"] = [
            meter.report() for meter in meters if isinstance(meter, CapacityMeter)
        ]


def collection_metrics(engine: Engine, table: StoredTable, item: Item) -> dict[str, Any] | None:
    """The `ItemCollectionMetrics` of an item; None for a table without local indexes."""
    if table.collections is None:
        return None
    name = table.schema.keys.partition[0].name
    size = collection_size(engine, table, table.keyspace.prefix([item[name]]))
    low = size // _GB
    return {
        "ItemCollectionKey": {name: item[name]},
        "SizeEstimateRangeGB": [float(low), float(low + 1)],
    }


def collections_metrics(
    engine: Engine, written: Iterable[tuple[str, StoredTable, Item]]
) -> dict[str, list[dict[str, Any]]]:
    """The `ItemCollectionMetrics` of many writes, by the table names in the request."""
    metrics: dict[str, list[dict[str, Any]]] = {}
    for name, table, item in written:
        collection = collection_metrics(engine, table, item)
        if collection is not None and collection not in metrics.setdefault(name, []):
            metrics[name].append(collection)
    return metrics
