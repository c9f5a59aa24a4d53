"""Requests that carry many independent items: BatchGetItem and BatchWriteItem."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from isotone import limits
from isotone.operations.shapes.members import (
    AttributeMap,
    AttributeNames,
    ExpressionNames,
    Flag,
    ReturnConsumedCapacity,
    ReturnItemCollectionMetrics,
    Structure,
    TableName,
)


class KeysAndAttributes(Structure, frozen=True):
    """The keys to read from one table."""

    keys: Annotated[list[AttributeMap], Meta(min_length=1, max_length=limits.BATCH_GET_ITEMS)]
    attributes_to_get: AttributeNames | None = None
    consistent_read: Flag | None = None
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None


class BatchGetItem(Structure, frozen=True):
    """Read items of several tables by their keys."""

    request_items: Annotated[
        dict[TableName, KeysAndAttributes], Meta(min_length=1, max_length=limits.BATCH_GET_ITEMS)
    ]
    return_consumed_capacity: ReturnConsumedCapacity | None = None


class PutRequest(Structure, frozen=True):
    """One put of a batch."""

    item: AttributeMap


class DeleteRequest(Structure, frozen=True):
    """One delete of a batch."""

    key: AttributeMap


class WriteRequest(Structure, frozen=True):
    """One write of a batch: exactly one of the two members is there."""

    put_request: PutRequest | None = None
    delete_request: DeleteRequest | None = None


WriteRequests = Annotated[
    list[WriteRequest], Meta(min_length=1, max_length=limits.BATCH_WRITE_ITEMS)
]


class BatchWriteItem(Structure, frozen=True):
    """Put and delete items of several tables, each on its own."""

    request_items: Annotated[
        dict[TableName, WriteRequests], Meta(min_length=1, max_length=limits.BATCH_WRITE_ITEMS)
    ]
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
