"""Requests that address one item: PutItem, GetItem, UpdateItem, DeleteItem."""

from __future__ import annotations

from isotone.operations.shapes.members import (
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


class PutItem(Structure, frozen=True):
    """Replace an item whole."""

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
    """Change attributes of one item, which need not exist."""

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
    """Remove one item by its key."""

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
