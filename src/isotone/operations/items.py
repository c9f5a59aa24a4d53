"""The actions on one item: PutItem, GetItem, UpdateItem, DeleteItem."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

import msgspec

from isotone.engine.engine import Engine
from isotone.engine.layout import body_of, item_of, size_of
from isotone.errors import ValidationException
from isotone.expressions import Projection, Update
from isotone.operations import legacy
from isotone.operations.action import Answer, action
from isotone.operations.capacity import Meter, collection_metrics, meter_for
from isotone.operations.item_validation import requested_key
from isotone.operations.item_writes import (
    Change,
    Outcome,
    delete_change,
    execute,
    put_change,
    update_change,
)
from isotone.operations.legacy import refuse_repeated_names
from isotone.operations.request_expressions import Binding, Matches, Parameters, bound, checker
from isotone.operations.request_members import (
    AttributeMap,
    AttributeName,
    AttributeNames,
    AttributeValueUpdate,
    ConditionalOperator,
    ExpectedAttributeValue,
    ExpressionNames,
    ExpressionValues,
    Flag,
    ReturnConsumedCapacity,
    ReturnItemCollectionMetrics,
    ReturnValue,
    ReturnValuesOnConditionCheckFailure,
    Structure,
    TableName,
)
from isotone.operations.table_lookup import open_table
from isotone.values.attribute_validation import Item, canonical_item


class PutItem(Structure, frozen=True):
    """Put a whole item, replacing any with its key."""

    table_name: TableName
    item: AttributeMap
    expected: dict[AttributeName, ExpectedAttributeValue] | None = None
    return_values: ReturnValue | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    conditional_operator: ConditionalOperator | None = None
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class GetItem(Structure, frozen=True):
    """Read one item by its key."""

    table_name: TableName
    key: AttributeMap
    attributes_to_get: AttributeNames | None = None
    consistent_read: Flag | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None


class UpdateItem(Structure, frozen=True):
    """Change attributes of an item, or create it."""

    table_name: TableName
    key: AttributeMap
    attribute_updates: dict[AttributeName, AttributeValueUpdate] | None = None
    expected: dict[AttributeName, ExpectedAttributeValue] | None = None
    conditional_operator: ConditionalOperator | None = None
    return_values: ReturnValue | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    update_expression: str | None = None
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class DeleteItem(Structure, frozen=True):
    """Delete one item by its key."""

    table_name: TableName
    key: AttributeMap
    expected: dict[AttributeName, ExpectedAttributeValue] | None = None
    conditional_operator: ConditionalOperator | None = None
    return_values: ReturnValue | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


Write = PutItem | DeleteItem | UpdateItem

_check_write: Final = checker(
    Parameters(
        expressions=("condition_expression",),
        with_values=("condition_expression",),
        legacy=("expected", "conditional_operator"),
        filters=("expected",),
    )
)
_check_get: Final = checker(
    Parameters(expressions=("projection_expression",), legacy=("attributes_to_get",))
)
_check_update: Final = checker(
    Parameters(
        expressions=("update_expression", "condition_expression"),
        with_values=("update_expression", "condition_expression"),
        legacy=("attribute_updates", "expected", "conditional_operator"),
        filters=("expected",),
    )
)
# Most puts, deletes and reads have none of these: to compare them once takes less time than to check each.
# An UpdateItem has an expression, so it has no such shortcut.
_WRITE_OPTIONS: Final = (
    "condition_expression",
    "conditional_operator",
    "expected",
    "expression_attribute_names",
    "expression_attribute_values",
    "return_values",
)
_write_options_of: Final = attrgetter(*_WRITE_OPTIONS)
_NO_WRITE_OPTIONS: Final = (None,) * len(_WRITE_OPTIONS)
_read_options_of: Final = attrgetter(
    "projection_expression", "expression_attribute_names", "attributes_to_get"
)
_NO_READ_OPTIONS: Final = (None, None, None)


@action("PutItem", grouped=True)
def put_item(engine: Engine, request: PutItem) -> Answer:
    """Put a whole item, replacing any with its key."""
    binding, matches = _condition_of(request)
    item, size = canonical_item(request.item)
    with engine.writing:
        table = open_table(engine, request.table_name)
        if binding is not None:
            binding.check_keys(table)
        change = put_change(
            table, item, size, matches, request.return_values_on_condition_check_failure
        )
        return _execute_and_answer(engine, request, change)


@action("DeleteItem", grouped=True)
def delete_item(engine: Engine, request: DeleteItem) -> Answer:
    """Delete one item by its key; not an error if it does not exist."""
    binding, matches = _condition_of(request)
    with engine.writing:
        table = open_table(engine, request.table_name)
        if binding is not None:
            binding.check_keys(table)
        change = delete_change(
            table, request.key, matches, request.return_values_on_condition_check_failure
        )
        return _execute_and_answer(engine, request, change)


@action("UpdateItem", grouped=True)
def update_item(engine: Engine, request: UpdateItem) -> Answer:
    """Change attributes of an item, or create it."""
    _check_update(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    update = binding.update(request.update_expression)
    if update is None:
        update = legacy.attribute_updates(request.attribute_updates)
    matches = _write_condition(request, binding)
    binding.check()
    with engine.writing:
        table = open_table(engine, request.table_name)
        change = update_change(
            table,
            request.key,
            update,
            binding.values,
            matches,
            request.return_values_on_condition_check_failure,
        )
        # After the change: an update of `key.a` is refused as an update of the key, not as a path into it.
        binding.check_keys(table)
        return _execute_and_answer(engine, request, change, update)


def _execute_and_answer(
    engine: Engine, request: Write, change: Change, update: Update | None = None
) -> Answer:
    """Execute a write; returns the members of the response that the request asks for."""
    # Most requests do not ask for it, and save the call.
    meter = None if request.return_consumed_capacity is None else meter_for(request)
    outcome = execute(engine, change, meter)
    answer: dict[str, Any] = {}
    if request.return_values is not None:
        attributes = returned(request.return_values, update, outcome)
        if attributes:
            answer["Attributes"] = attributes
    if meter is not None or request.return_item_collection_metrics is not None:
        _add_metrics(answer, engine, change, request, meter)
    return answer


@action("GetItem")
def get_item(engine: Engine, request: GetItem) -> Answer:
    """Read one item by its key."""
    has_options = _read_options_of(request) != _NO_READ_OPTIONS
    binding, projection = _projection_of(request) if has_options else (None, None)
    with engine.reading:
        table = open_table(engine, request.table_name)
        if binding is not None:
            binding.check_keys(table)
        key, _ = requested_key(table.keyspace, request.key)
        record = engine.store.get(table.tree, key)
    answer: dict[str, Any] = {}
    if record is not None:
        answer["Item"] = item_in_response(record, projection)
    if request.return_consumed_capacity is not None and (meter := meter_for(request)):
        meter.read(size_of(record), consistent=bool(request.consistent_read))
        answer["ConsumedCapacity"] = meter.report(str(request.return_consumed_capacity))
    return answer


def item_in_response(record: bytes, projection: Projection | None) -> Item | msgspec.Raw:
    """A stored item in a response: its unparsed bytes, or its projection."""
    if projection is None:
        return msgspec.Raw(body_of(record))
    return projection.project(item_of(record))


def check_put_or_delete(request: PutItem | DeleteItem) -> None:
    """Check the combination of parameters of a PutItem or DeleteItem."""
    _check_write(request)
    if request.return_values not in (None, "NONE", "ALL_OLD"):
        raise ValidationException("ReturnValues can only be ALL_OLD or NONE")


def _condition_of(request: PutItem | DeleteItem) -> tuple[Binding | None, Matches | None]:
    """The condition of a put or a delete, and the binding to check its keys; None for both without options."""
    if _write_options_of(request) == _NO_WRITE_OPTIONS:
        return None, None
    check_put_or_delete(request)
    binding = Binding(request.expression_attribute_names, request.expression_attribute_values)
    matches = _write_condition(request, binding)
    binding.check()
    return binding, matches


def _write_condition(request: Write, binding: Binding) -> Matches | None:
    """The condition (expression or legacy) as a function of the item; None without one."""
    if request.condition_expression is not None:
        compiled = binding.condition(request.condition_expression)
    else:
        compiled = legacy.expected_condition(request.expected, request.conditional_operator)
    return bound(compiled, binding.values)


def _projection_of(request: GetItem) -> tuple[Binding | None, Projection | None]:
    """The projection of a read with options, and the binding of its expression, if it has one."""
    _check_get(request)
    if request.attributes_to_get is not None:
        refuse_repeated_names(request.attributes_to_get)
        return None, legacy.projection_of(request.attributes_to_get)
    binding = Binding(request.expression_attribute_names, None)
    projection = binding.projection(request.projection_expression)
    binding.check()
    return binding, projection


def returned(wanted: str, update: Update | None, outcome: Outcome) -> Item | msgspec.Raw | None:
    """The attributes that `ReturnValues` asks for; None if there are none."""
    old, new = outcome
    if wanted == "ALL_NEW":
        return new
    if wanted == "ALL_OLD" and old is not None:
        return msgspec.Raw(body_of(old))
    if wanted == "UPDATED_NEW" and update is not None and new is not None:
        return update.project(new)
    if wanted == "UPDATED_OLD" and update is not None and old is not None:
        return update.project(item_of(old))
    return None


def _add_metrics(
    answer: dict[str, Any],
    engine: Engine,
    change: Change,
    request: Write,
    meter: Meter | None,
) -> None:
    """Add the consumed capacity and the collection metrics, if requested."""
    if meter is not None:
        answer["ConsumedCapacity"] = meter.report(str(request.return_consumed_capacity))
    if request.return_item_collection_metrics == "SIZE":
        metrics = collection_metrics(engine, change.table, change.key_item)
        if metrics is not None:
            answer["ItemCollectionMetrics"] = metrics
