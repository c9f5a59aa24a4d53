"""What a simulation charges for requests that fail."""

from __future__ import annotations

from typing import Any

import pytest

import isotone
from isotone.advisor.simulation.touches import TouchRecorder
from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    TransactionCanceledException,
    ValidationException,
)

TABLE = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
PUT = {
    "TableName": "tab",
    "Item": {"p": {"S": "a"}},
    "ConditionExpression": "attribute_not_exists(p)",
}


@pytest.mark.parametrize(
    ("operation", "request_", "error", "units"),
    [
        ("PutItem", PUT, ConditionalCheckFailedException, [2]),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": PUT}]},
            TransactionCanceledException,
            [4],
        ),
        ("PutItem", {**PUT, "ConditionExpression": "p ="}, ValidationException, []),
    ],
)
def test_a_failed_condition_costs_a_write_and_a_bad_request_nothing(
    operation: str, request_: dict[str, Any], error: type[ApiError], units: list[int]
) -> None:
    with isotone.open() as database:
        database.execute("CreateTable", TABLE)
        stored = {"p": {"S": "a"}, "text": {"S": "x" * 1500}}  # two units
        database.execute("PutItem", {"TableName": "tab", "Item": stored})
        recorder = TouchRecorder(database)
        with pytest.raises(error):
            recorder.execute(operation, request_)
        assert [touch.writes for touch in recorder.take()] == units
