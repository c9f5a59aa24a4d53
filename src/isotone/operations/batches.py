"""BatchGetItem (up to 100 keys; UnprocessedKeys beyond 16 MB), BatchWriteItem (up to 25 writes); refuses duplicates."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from isotone import limits
from isotone.engine.consumed_units import per_thread
from isotone.engine.engine import Engine
from isotone.engine.layout import size_of
from isotone.engine.table_indexes import StoredTable
from isotone.errors import ValidationException
from isotone.expressions import CompiledProjection
from isotone.operations import legacy
from isotone.operations.action import Answer, action
from isotone.operations.capacity import Charged, add_capacity, collections_metrics, meter_for_table
from isotone.operations.item_responses import item_in_response
from isotone.operations.item_validation import check_size, requested_key, require_key
from isotone.operations.item_writes import ItemChange, delete_change, put_change, write_if_true
from isotone.operations.long_requests import MOST_READ, raise_if_long
from isotone.operations.request_expressions import Binding, ExpressionParameters, checker, mixed
from isotone.operations.request_members import (
    ApiStructure,
    AttributeMap,
    AttributeNames,
    ExpressionNames,
    Flag,
    ReturnConsumedCapacity,
    ReturnItemCollectionMetrics,
    TableName,
)
from isotone.operations.table_lookup import open_table
from isotone.values.attribute_validation import MANY_TYPES, Item, canonical_item


class KeysAndAttributes(ApiStructure, frozen=True):
    """The keys to read from one table."""

    keys: Annotated[list[AttributeMap], Meta(min_length=1, max_length=limits.BATCH_GET_ITEMS)]
    attributes_to_get: AttributeNames | None = None
    consistent_read: Flag | None = None
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None


class BatchGetItem(ApiStructure, frozen=True):
    """Read items of several tables by their keys."""

    request_items: Annotated[
        dict[TableName, KeysAndAttributes], Meta(min_length=1, max_length=limits.BATCH_GET_ITEMS)
    ]
    return_consumed_capacity: ReturnConsumedCapacity | None = None


class PutRequest(ApiStructure, frozen=True):
    """One put of a batch."""

    item: AttributeMap


class DeleteRequest(ApiStructure, frozen=True):
    """One delete of a batch."""

    key: AttributeMap


class WriteRequest(ApiStructure, frozen=True):
    """One write of a batch: exactly one of the two members is present."""

    put_request: PutRequest | None = None
    delete_request: DeleteRequest | None = None


WriteRequests = Annotated[
    list[WriteRequest], Meta(min_length=1, max_length=limits.BATCH_WRITE_ITEMS)
]


class BatchWriteItem(ApiStructure, frozen=True):
    """Put and delete items of several tables, independently."""

    request_items: Annotated[
        dict[TableName, WriteRequests], Meta(min_length=1, max_length=limits.BATCH_WRITE_ITEMS)
    ]
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None


BATCH_GET: Final = ExpressionParameters(
    expressions=("projection_expression",), legacy=("attributes_to_get",)
)
_check_keys: Final = checker(BATCH_GET)
DUPLICATES: Final = "Provided list of item keys contains duplicates"


@action("BatchGetItem")
def batch_get_item(engine: Engine, request: BatchGetItem) -> Answer:
    """Read items of several tables by their keys, up to 16 MB."""
    projections = _projections(request)
    answer: dict[str, Any] = {"Responses": {}, "UnprocessedKeys": {}}
    meters: list[Charged | None] = []
    read: list[tuple[Charged | None, KeysAndAttributes, list[int]]] = []
    room = limits.BATCH_GET_SIZE
    with engine.reading_beside as engine:
        keyed = [keys_of(engine, name, entry) for name, entry in request.request_items.items()]
        for (name, entry), projection, (table, keys) in zip(
            request.request_items.items(), projections, keyed, strict=True
        ):
            meter = meter_for_table(name, table, request.return_consumed_capacity)
            meters.append(meter)
            items = answer["Responses"].setdefault(name, [])
            sizes: list[int] = []
            for place, key in enumerate(keys):
                record = engine.store.get(table.tree, key)
                size = size_of(record)
                if size > room:
                    room = 0
                    answer["UnprocessedKeys"][name] = _unprocessed(entry, place)
                    break
                room -= size
                sizes.append(size)
                if record is not None:
                    items.append(item_in_response(record, projection))
            per_thread.spent.add_items(len(items), len(items))
            read.append((meter, entry, sizes))
            raise_if_long(limits.BATCH_GET_SIZE - room > MOST_READ)
    for meter, entry, sizes in read:
        if meter is not None:
            for size in sizes:
                meter.read(size, consistent=bool(entry.consistent_read))
    add_capacity(answer, request.return_consumed_capacity, meters)
    return answer


def check_entries_are_not_mixed(entries: Collection[KeysAndAttributes]) -> None:
    """Refuse a ProjectionExpression for one table and AttributesToGet for another."""
    if any(entry.projection_expression is not None for entry in entries) and any(
        entry.attributes_to_get is not None for entry in entries
    ):
        raise mixed(BATCH_GET.legacy, BATCH_GET.expressions)


def _projections(request: BatchGetItem) -> list[CompiledProjection | None]:
    """What each entry reads of its items. Raises for wrong parameters other than keys."""
    entries = request.request_items.values()
    if len(entries) > 1:
        check_entries_are_not_mixed(entries)
    for entry in entries:
        _check_keys(entry)
        if entry.attributes_to_get is not None:
            legacy.refuse_repeated_names(entry.attributes_to_get)
    check_count_of_keys(request)
    return [projection_of(entry) for entry in entries]


def projection_of(entry: KeysAndAttributes) -> CompiledProjection | None:
    if entry.attributes_to_get is not None:
        return legacy.projection_of(entry.attributes_to_get)
    binding = Binding(entry.expression_attribute_names, None)
    projection = binding.projection(entry.projection_expression)
    binding.check()
    return projection


def keys_of(engine: Engine, name: str, entry: KeysAndAttributes) -> tuple[StoredTable, list[bytes]]:
    """The table of an entry of BatchGetItem, and the physical keys of its items."""
    table = open_table(engine, name)
    keys = [requested_key(table.keyspace, key)[0] for key in entry.keys]
    if len(set(keys)) < len(keys):
        raise ValidationException(DUPLICATES)
    return table, keys


def _unprocessed(entry: KeysAndAttributes, first: int) -> dict[str, Any]:
    """An entry with its keys from the first unprocessed one on. AWS's unprocessed entries lack AttributesToGet."""
    rest = msgspec.structs.replace(entry, keys=entry.keys[first:], attributes_to_get=None)
    left = msgspec.to_builtins(rest)
    return {name: value for name, value in left.items() if value is not None}


@action("BatchWriteItem")
def batch_write_item(engine: Engine, request: BatchWriteItem) -> Answer:
    """Put and delete items of several tables.

    Throughput is not limited, so no item is ever left unprocessed.
    """
    for writes in request.request_items.values():
        for write in writes:
            check_write(write)
    check_count_of_writes(request)
    checked = {
        name: [_checked(write) for write in writes]
        for name, writes in request.request_items.items()
    }
    answer: dict[str, Any] = {"UnprocessedItems": {}}
    meters: list[Charged | None] = []
    with engine.writing:
        changes = {name: _changes(engine, name, writes) for name, writes in checked.items()}
        for of_table in changes.values():
            _refuse_duplicates(of_table)
        for name, of_table in changes.items():
            table = open_table(engine, name)
            meter = meter_for_table(name, table, request.return_consumed_capacity)
            meters.append(meter)
            for change in of_table:
                write_if_true(engine, change, meter)
        if request.return_item_collection_metrics == "SIZE":
            answer["ItemCollectionMetrics"] = collections_metrics(
                engine,
                (
                    (name, change.table, change.key_item)
                    for name, of_table in changes.items()
                    for change in of_table
                ),
            )
    add_capacity(answer, request.return_consumed_capacity, meters)
    return answer


def check_write(write: WriteRequest) -> None:
    """Refuse a write that is not exactly one of put and delete; the service's message is the same in both cases."""
    if (write.put_request is None) == (write.delete_request is None):
        raise ValidationException(MANY_TYPES)


def check_count_of_keys(request: BatchGetItem) -> None:
    """Refuse too many keys over all tables."""
    count = sum(len(entry.keys) for entry in request.request_items.values())
    _refuse_too_many(count, limits.BATCH_GET_ITEMS, "BatchGetItem")


def check_count_of_writes(request: BatchWriteItem) -> None:
    """Refuse too many writes over all tables."""
    count = sum(map(len, request.request_items.values()))
    _refuse_too_many(count, limits.BATCH_WRITE_ITEMS, "BatchWriteItem")


def _refuse_too_many(count: int, limit: int, action: str) -> None:
    """Counts over all tables. The list of one table is limited by its type, and refused by `request_validation`."""
    if count > limit:
        raise ValidationException(f"Too many items requested for the {action} call")


def _checked(write: WriteRequest) -> tuple[WriteRequest, Item, int]:
    """A write with the canonical item of its put or key of its delete."""
    if write.put_request is not None:
        item, size = canonical_item(write.put_request.item)
        check_size(size)
        return write, item, size
    assert write.delete_request is not None
    return write, *canonical_item(write.delete_request.key)


def _changes(
    engine: Engine, name: str, writes: list[tuple[WriteRequest, Item, int]]
) -> list[ItemChange]:
    """The changes of one table."""
    changes = []
    for write, item, size in writes:
        table = open_table(engine, name)
        if write.put_request is not None:
            try:
                changes.append(put_change(table, item, size, None, None))
            except ValidationException:
                require_key(table.keyspace, item)
                raise
        else:
            changes.append(delete_change(table, item, None, None))
    return changes


def _refuse_duplicates(changes: list[ItemChange]) -> None:
    if len({change.key for change in changes}) < len(changes):
        raise ValidationException(DUPLICATES)
