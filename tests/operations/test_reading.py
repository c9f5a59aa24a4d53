"""Which attributes a Query or Scan answers with, and which choices are refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operations.conftest import Asker, key_schema

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
def test_an_update_into_the_key_is_reported_as_an_update_of_the_key(ask: Asker, text: str) -> None:
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


def keys_only_indexes(ask: Asker) -> None:
    """A table `p`, `s` with a global and a local index that copy only keys, and an item with `x`."""
    only_keys = {"Projection": {"ProjectionType": "KEYS_ONLY"}}
    ask.table(
        keys="p s",
        types={"g": "S"},
        GlobalSecondaryIndexes=[{"IndexName": "by-g", "KeySchema": key_schema("g"), **only_keys}],
        LocalSecondaryIndexes=[
            {"IndexName": "by-pg", "KeySchema": key_schema("p", "g"), **only_keys}
        ],
    )
    text = {name: {"S": name} for name in "psgx"}
    ask("PutItem", TableName="tab", Item=text)


@pytest.mark.parametrize("index", ["by-g", "by-pg"])
def test_a_scan_of_an_index_filters_by_what_it_lacks(ask: Asker, index: str) -> None:
    keys_only_indexes(ask)
    request = {"TableName": "tab", "IndexName": index}
    absent = ask("Scan", **request, FilterExpression="attribute_not_exists(x)")
    assert (absent["Count"], absent["ScannedCount"]) == (1, 1)
    assert ask("Scan", **request, ScanFilter={"x": {"ComparisonOperator": "NULL"}})["Count"] == 1
    value = {"ExpressionAttributeValues": {":x": {"S": "x"}}}
    assert ask("Scan", **request, FilterExpression="x = :x", **value)["Count"] == 0


@pytest.mark.parametrize(("index", "key"), [("by-g", "g"), ("by-pg", "p")])
def test_a_query_of_an_index_may_not(ask: Asker, index: str, key: str) -> None:
    keys_only_indexes(ask)
    error = ask.refused(
        "Query",
        TableName="tab",
        IndexName=index,
        KeyConditionExpression=f"{key} = :k",
        FilterExpression="attribute_not_exists(x)",
        ExpressionAttributeValues={":k": {"S": key}},
    )
    assert error.message == (
        f"One or more parameter values were invalid: Secondary index {index} "
        "does not project one or more filter attributes: [x]"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {},
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ),
        ({"N": "x"}, "The parameter cannot be converted to a numeric value: x"),
        (
            {"NS": ["1", "1.0"]},
            "One or more parameter values were invalid: Input collection contains duplicates.",
        ),
        ({"S": ""}, "Requested resource not found"),
    ],
)
def test_a_batch_reports_a_wrong_value_before_an_absent_table(
    ask: Asker, value: dict[str, Any], message: str
) -> None:
    error = ask.refused("BatchGetItem", RequestItems={"absent": {"Keys": [{"p": value}]}})
    assert error.message == message


@pytest.mark.parametrize("key", ["p", "q"])
def test_a_batch_reports_equal_keys_before_all_that_needs_the_table(ask: Asker, key: str) -> None:
    ask.table()
    for table in ("tab", "absent"):
        twice = {table: {"Keys": [{key: {"S": "a"}}, {key: {"S": "a"}}]}}
        error = ask.refused("BatchGetItem", RequestItems=twice)
        assert error.message == "Provided list of item keys contains duplicates"


def test_a_null_in_a_map_is_no_absent_member(ask: Asker) -> None:
    ask.table()
    item = {"TableName": "tab", "Item": {"p": {"S": "a"}}}
    assert "Value must be provided" in ask.refused("PutItem", Expected={"a": None}, **item).message
    scan = ask.refused("Scan", TableName="tab", ScanFilter={"a": None})
    assert "scanFilter.a.member.comparisonOperator" in scan.message
    assert (
        "Member must have length"
        in ask.refused("BatchWriteItem", RequestItems={"tab": None}).message
    )
