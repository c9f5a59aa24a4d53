"""Request structures of PutItem, GetItem, UpdateItem and DeleteItem, and which parameters can be combined."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from isotone.errors import ValidationException
from isotone.operations.request_expressions import ExpressionParameters, checker
from isotone.operations.request_members import (
    ApiStructure,
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
    TableName,
)


class PutItem(ApiStructure, frozen=True):
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


class GetItem(ApiStructure, frozen=True):
    """Read one item by its key."""

    table_name: TableName
    key: AttributeMap
    attributes_to_get: AttributeNames | None = None
    consistent_read: Flag | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None


class UpdateItem(ApiStructure, frozen=True):
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


class DeleteItem(ApiStructure, frozen=True):
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

PUT_OR_DELETE: Final = ExpressionParameters(
    expressions=("condition_expression",),
    with_values=("condition_expression",),
    legacy=("expected", "conditional_operator"),
    filters=("expected",),
)
READ: Final = ExpressionParameters(
    expressions=("projection_expression",), legacy=("attributes_to_get",)
)
UPDATE: Final = ExpressionParameters(
    expressions=("update_expression", "condition_expression"),
    with_values=("update_expression", "condition_expression"),
    legacy=("attribute_updates", "expected", "conditional_operator"),
    filters=("expected",),
)
_check_write: Final = checker(PUT_OR_DELETE)
check_get: Final = checker(READ)
check_update: Final = checker(UPDATE)
# Most requests have none of these, and comparing all of them at once is faster than checking each.
_WRITE_OPTIONS: Final = (
    "condition_expression",
    "conditional_operator",
    "expected",
    "expression_attribute_names",
    "expression_attribute_values",
    "return_values",
)
write_options_of: Final = attrgetter(*_WRITE_OPTIONS)
NO_WRITE_OPTIONS: Final = (None,) * len(_WRITE_OPTIONS)
read_options_of: Final = attrgetter(
    "projection_expression", "expression_attribute_names", "attributes_to_get"
)
NO_READ_OPTIONS: Final = (None, None, None)


def check_put_or_delete(request: PutItem | DeleteItem) -> None:
    """Check the combination of parameters of a PutItem or DeleteItem."""
    if request.return_values not in (None, "NONE", "ALL_OLD"):
        raise ValidationException("ReturnValues can only be ALL_OLD or NONE")
    _check_write(request)
