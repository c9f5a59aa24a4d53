"""Requests that read many items in order: Query and Scan."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from isotone import limits
from isotone.operations.shapes.members import (
    AttributeMap,
    AttributeName,
    AttributeNames,
    Condition,
    ConditionalOperator,
    ExpressionNames,
    ExpressionValues,
    Flag,
    IndexName,
    PositiveInteger,
    ReturnConsumedCapacity,
    Select,
    Structure,
    TableName,
)

Segment = Annotated[int, Meta(ge=0, le=limits.TOTAL_SEGMENTS - 1)]
TotalSegments = Annotated[int, Meta(ge=1, le=limits.TOTAL_SEGMENTS)]


class Query(Structure, frozen=True):
    """Read the items of one partition key, in the order of their sort key."""

    table_name: TableName
    index_name: IndexName | None = None
    select: Select | None = None
    attributes_to_get: AttributeNames | None = None
    limit: PositiveInteger | None = None
    consistent_read: Flag | None = None
    key_conditions: dict[AttributeName, Condition] | None = None
    query_filter: dict[AttributeName, Condition] | None = None
    conditional_operator: ConditionalOperator | None = None
    scan_index_forward: Flag | None = None
    exclusive_start_key: AttributeMap | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    projection_expression: str | None = None
    filter_expression: str | None = None
    key_condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None


class Scan(Structure, frozen=True):
    """Read all items of a table or an index, or one segment of them."""

    table_name: TableName
    index_name: IndexName | None = None
    attributes_to_get: AttributeNames | None = None
    limit: PositiveInteger | None = None
    select: Select | None = None
    scan_filter: dict[AttributeName, Condition] | None = None
    conditional_operator: ConditionalOperator | None = None
    exclusive_start_key: AttributeMap | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    total_segments: TotalSegments | None = None
    segment: Segment | None = None
    projection_expression: str | None = None
    filter_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: ExpressionValues | None = None
    consistent_read: Flag | None = None
