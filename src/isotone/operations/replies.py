"""Members that several answers share: consumed capacity and item collection metrics."""

from __future__ import annotations

from typing import Any, Protocol

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.items import collection_size
from isotone.engine.metering import Meter
from isotone.engine.table import Table
from isotone.values.attributes import Item

_GB = 1024 * limits.MB


class Metered(Protocol):
    """A request that may ask what it consumed."""

    @property
    def table_name(self) -> str: ...
    @property
    def return_consumed_capacity(self) -> str | None: ...


class MeteredWrite(Metered, Protocol):
    """A write that may ask for the size of the item collection as well."""

    @property
    def return_item_collection_metrics(self) -> str | None: ...


def wants_capacity(mode: str | None) -> bool:
    return mode == "TOTAL" or mode == "INDEXES"


def meter_for(request: Metered) -> Meter | None:
    """A meter where the request asks for its consumption."""
    return Meter(request.table_name) if wants_capacity(request.return_consumed_capacity) else None


def add_capacity(answer: dict[str, Any], request: Metered, meter: Meter | None) -> None:
    """Add `ConsumedCapacity` where it was asked for."""
    if meter is not None and request.return_consumed_capacity is not None:
        answer["ConsumedCapacity"] = meter.report(request.return_consumed_capacity)


def add_write_members(
    answer: dict[str, Any],
    engine: Engine,
    table: Table,
    item: Item,
    request: MeteredWrite,
    meter: Meter | None,
) -> None:
    """Add what a write may be asked to report besides its attributes."""
    add_capacity(answer, request, meter)
    if request.return_item_collection_metrics == "SIZE":
        metrics = collection_metrics(engine, table, item)
        if metrics is not None:
            answer["ItemCollectionMetrics"] = metrics


def collection_metrics(engine: Engine, table: Table, item: Item) -> dict[str, Any] | None:
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
