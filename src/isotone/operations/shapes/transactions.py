"""Requests that happen whole or not at all: TransactGetItems and TransactWriteItems."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from isotone import limits
from isotone.operations.shapes.members import (
    AttributeMap,
    ExpressionNames,
    ExpressionValues,
    ReturnConsumedCapacity,
    ReturnItemCollectionMetrics,
    ReturnValuesOnConditionCheckFailure,
    Structure,
    TableName,
)

ClientRequestToken = Annotated[str, Meta(min_length=1, max_length=36)]


class Get(Structure, frozen=True):
    """One read of a transaction."""

    key: AttributeMap
    table_name: TableName
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None


class TransactGetItem(Structure, frozen=True):
    """One entry of TransactGetItems."""

    get: Get


class TransactGetItems(Structure, frozen=True):
    """Read items of several tables as they are at one moment."""

    transact_items: Annotated[
        list[TransactGetItem], Meta(min_length=1, max_length=limits.TRANSACTION_ITEMS)
    ]
    return_consumed_capacity: ReturnConsumedCapacity | None = None


class ConditionCheck(Structure, frozen=True):
    """A condition on an item that the transaction does not write."""

    key: AttributeMap
    table_name: TableName
    condition_expression: str
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class Put(Structure, frozen=True):
    """One put of a transaction."""

    item: AttributeMap
    table_name: TableName
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class Delete(Structure, frozen=True):
    """One delete of a transaction."""

    key: AttributeMap
    table_name: TableName
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class Update(Structure, frozen=True):
    """One update of a transaction."""

    key: AttributeMap
    update_expression: str
    table_name: TableName
    condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class TransactWriteItem(Structure, frozen=True):
    """One entry of TransactWriteItems: exactly one of the members is there."""

    condition_check: ConditionCheck | None = None
    put: Put | None = None
    delete: Delete | None = None
    update: Update | None = None


class TransactWriteItems(Structure, frozen=True):
    """Write items of several tables together, or none of them."""

    transact_items: Annotated[
        list[TransactWriteItem], Meta(min_length=1, max_length=limits.TRANSACTION_ITEMS)
    ]
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    client_request_token: ClientRequestToken | None = None
