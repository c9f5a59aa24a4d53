"""The actions on one item: PutItem, GetItem, UpdateItem, DeleteItem."""

from __future__ import annotations

from typing import Any

import msgspec

from isotone import limits
from isotone.engine.consumed_units import TableUnits, per_thread
from isotone.engine.engine import Engine
from isotone.engine.layout import SIZE_BYTES, size_of
from isotone.expressions import CompiledProjection, CompiledUpdate
from isotone.operations import legacy
from isotone.operations.action import Answer, action
from isotone.operations.capacity import CapacityMeter, Charged, collection_metrics, meter_for
from isotone.operations.item_requests import (
    NO_READ_OPTIONS,
    NO_WRITE_OPTIONS,
    DeleteItem,
    GetItem,
    PutItem,
    UpdateItem,
    Write,
    check_get,
    check_put_or_delete,
    check_update,
    read_options_of,
    write_options_of,
)
from isotone.operations.item_responses import item_in_response, returned
from isotone.operations.item_validation import check_update_size, requested_key
from isotone.operations.item_writes import (
    ItemChange,
    delete_change,
    put_change,
    update_change,
    write_if_true,
)
from isotone.operations.request_expressions import Binding, Matches, Values, bound
from isotone.operations.table_lookup import open_table
from isotone.values.attribute_validation import canonical_item


def _compiled_update(request: UpdateItem) -> tuple[Binding, CompiledUpdate | None, Matches | None]:
    """The update and the condition of an UpdateItem, and the binding of their expressions."""
    check_update(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    update = binding.update(request.update_expression)
    if update is None:
        update = legacy.attribute_updates(request.attribute_updates)
        if update is not None:
            binding.nodes += update.nodes
    matches = _write_condition(request, binding)
    binding.check()
    return binding, update, matches


@action("PutItem")
def put_item(engine: Engine, request: PutItem) -> Answer:
    """Put a whole item, replacing any with its key."""
    binding, matches = _condition_of(request)
    item, size = canonical_item(request.item)
    with engine.writing:
        table = open_table(engine, request.table_name)
        nodes = 0
        if binding is not None:
            binding.check_keys(table)
            nodes = binding.nodes
        change = put_change(
            table, item, size, matches, request.return_values_on_condition_check_failure, nodes
        )
        return _execute_and_answer(engine, request, change)


@action("DeleteItem")
def delete_item(engine: Engine, request: DeleteItem) -> Answer:
    """Delete one item by its key; not an error if it does not exist."""
    binding, matches = _condition_of(request)
    with engine.writing:
        table = open_table(engine, request.table_name)
        nodes = 0
        if binding is not None:
            binding.check_keys(table)
            nodes = binding.nodes
        change = delete_change(
            table, request.key, matches, request.return_values_on_condition_check_failure, nodes
        )
        return _execute_and_answer(engine, request, change)


@action("UpdateItem")
def update_item(engine: Engine, request: UpdateItem) -> Answer:
    """Change attributes of an item, or create it."""
    binding, update, matches = _compiled_update(request)
    with engine.writing:
        table = open_table(engine, request.table_name)
        binding.check_keys(table, update)
        change = update_change(
            table,
            request.key,
            update,
            binding.values,
            matches,
            request.return_values_on_condition_check_failure,
            binding.nodes,
        )
        if request.update_expression is not None:
            check_update_size(update, binding)
        return _execute_and_answer(engine, request, change, update, binding.values)


def _execute_and_answer(
    engine: Engine,
    request: Write,
    change: ItemChange,
    update: CompiledUpdate | None = None,
    values: Values | None = None,
) -> Answer:
    """Execute a write; returns the members of the response that the request asks for."""
    # Most requests do not ask for it, and avoid the call.
    asks = request.return_consumed_capacity is not None
    meter = meter_for(request, change.table) if asks else change.table.units
    outcome = write_if_true(engine, change, meter)
    answer: dict[str, Any] = {}
    if request.return_values is not None:
        attributes = returned(request.return_values, update, outcome, values)
        if attributes:
            answer["Attributes"] = attributes
    if asks or request.return_item_collection_metrics is not None:
        _add_metrics(answer, engine, change, request, meter)
    return answer


@action("GetItem")
def get_item(engine: Engine, request: GetItem) -> Answer:
    """Read one item by its key."""
    has_options = read_options_of(request) != NO_READ_OPTIONS
    if has_options or request.return_consumed_capacity is not None:
        return _get_with_options(engine, request, has_options=has_options)
    units, record = engine.read_optimistically(_look_up, request)
    if units is not None:
        # A record is longer than its item's size. So most reads take one unit, and avoid the calls.
        if record is None or len(record) <= limits.READ_UNIT:
            consumed = 1.0 if request.consistent_read else 0.5
            units.read_units += consumed
            per_thread.spent.units += consumed
        else:
            units.read(size_of(record), consistent=bool(request.consistent_read))
    return {} if record is None else {"Item": msgspec.Raw(record[SIZE_BYTES:])}


def _get_with_options(engine: Engine, request: GetItem, *, has_options: bool) -> Answer:
    """Read one item with a projection, or for a request that asks for its consumption."""
    with engine.reading_beside as engine:
        table = open_table(engine, request.table_name)
        binding, projection = _projection_of(request) if has_options else (None, None)
        if binding is not None:
            binding.check_keys(table)
        key, _ = requested_key(table.keyspace, request.key)
        record = engine.store.get(table.tree, key)
        answer: dict[str, Any] = {}
        if record is not None:
            answer["Item"] = item_in_response(record, projection)
        meter = meter_for(request, table)
        if meter is not None:
            meter.read(size_of(record), consistent=bool(request.consistent_read))
    if type(meter) is CapacityMeter:
        answer["ConsumedCapacity"] = meter.report()
    return answer


def _look_up(engine: Engine, request: GetItem) -> tuple[TableUnits | None, bytes | None]:
    """The record that a GetItem reads, and the table's unit counter."""
    table = open_table(engine, request.table_name)
    key, _ = requested_key(table.keyspace, request.key)
    return table.units, engine.store.get(table.tree, key)


def _condition_of(request: PutItem | DeleteItem) -> tuple[Binding | None, Matches | None]:
    """The condition of a put or a delete, and the binding for checking its keys; both None without options."""
    if write_options_of(request) == NO_WRITE_OPTIONS:
        return None, None
    check_put_or_delete(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    matches = _write_condition(request, binding)
    binding.check()
    return binding, matches


def _write_condition(request: Write, binding: Binding) -> Matches | None:
    """The condition (expression or legacy) as a function of the item; None if there is none."""
    if request.condition_expression is not None:
        compiled = binding.condition(request.condition_expression)
    else:
        compiled = legacy.expected_condition(request.expected, request.conditional_operator)
        if compiled is not None:
            binding.nodes += compiled.nodes
    return bound(compiled, binding.values)


def _projection_of(request: GetItem) -> tuple[Binding | None, CompiledProjection | None]:
    """The projection of a read with options, and the binding of its expression, if it has one."""
    check_get(request)
    if request.attributes_to_get is not None:
        legacy.refuse_repeated_names(request.attributes_to_get)
        return None, legacy.projection_of(request.attributes_to_get)
    binding = Binding(request.expression_attribute_names, None)
    projection = binding.projection(request.projection_expression)
    binding.check()
    return binding, projection


def _add_metrics(
    answer: dict[str, Any],
    engine: Engine,
    change: ItemChange,
    request: Write,
    meter: Charged | None,
) -> None:
    """Add the consumed capacity and the collection metrics, if requested."""
    if type(meter) is CapacityMeter:
        answer["ConsumedCapacity"] = meter.report()
    if request.return_item_collection_metrics == "SIZE":
        metrics = collection_metrics(engine, change.table, change.key_item)
        if metrics is not None:
            answer["ItemCollectionMetrics"] = metrics
