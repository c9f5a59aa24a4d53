"""Which attributes a Query or Scan answers with, and which choices are refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operations.conftest import Asker

ALL_OF_A: dict[str, Any] = {"p": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}}


@pytest.mark.parametrize(
    ("operation", "more"), [("Query", {"KeyConditions": ALL_OF_A}), ("Scan", {})]
)
def test_a_name_is_asked_for_once(ask: Asker, operation: str, more: dict[str, Any]) -> None:
    ask.table()
    error = ask.refused(operation, TableName="tab", AttributesToGet=["x", "y", "x"], **more)
    assert error.message == (
        "One or more parameter values were invalid: Duplicate value in attribute name: x"
    )


@pytest.mark.parametrize("text", ["SET p.x = :v", "SET p[0] = :v", "SET p = :v"])
def test_an_update_into_the_key_is_told_as_an_update_of_the_key(ask: Asker, text: str) -> None:
    ask.table()
    error = ask.refused(
        "UpdateItem",
        TableName="tab",
        Key={"p": {"S": "a"}},
        UpdateExpression=text,
        ExpressionAttributeValues={":v": {"S": "b"}},
    )
    assert error.message == (
        "One or more parameter values were invalid: Cannot update attribute p. "
        "This attribute is part of the key"
    )
