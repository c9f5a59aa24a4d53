"""Rules on BatchGetItem and BatchWriteItem."""

from __future__ import annotations

from typing import Final

from isotone import limits
from isotone.errors import ValidationException
from isotone.operations.rules.attributes import refuse_repeated_names
from isotone.operations.rules.parameters import Parameters, checker
from isotone.operations.shapes.batches import BatchGetItem, BatchWriteItem, WriteRequest

_check_keys: Final = checker(
    Parameters(expressions=("projection_expression",), legacy=("attributes_to_get",))
)


def check_batch_get_item(request: BatchGetItem) -> None:
    """How much BatchGetItem may ask for, and what it may combine."""
    for entry in request.request_items.values():
        _check_keys(entry)
        if entry.attributes_to_get is not None:
            refuse_repeated_names(entry.attributes_to_get)
    _refuse_too_many(
        sum(len(entry.keys) for entry in request.request_items.values()),
        limits.BATCH_GET_ITEMS,
        "BatchGetItem",
    )


def check_batch_write_item(request: BatchWriteItem) -> None:
    """How much BatchWriteItem may carry."""
    for writes in request.request_items.values():
        for write in writes:
            _check_write(write)
    _refuse_too_many(
        sum(map(len, request.request_items.values())), limits.BATCH_WRITE_ITEMS, "BatchWriteItem"
    )


def _check_write(write: WriteRequest) -> None:
    if (write.put_request is None) == (write.delete_request is None):
        # The service treats the entry as it treats an attribute value.
        raise ValidationException(
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
            if write.put_request is None
            else "Supplied AttributeValue has more than one datatypes set, "
            "must contain exactly one of the supported datatypes"
        )


def _refuse_too_many(count: int, limit: int, action: str) -> None:
    if count > limit:
        raise ValidationException(f"Too many items requested for the {action} call")
