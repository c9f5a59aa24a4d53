"""Consumed capacity and item collection metrics, by AWS's published rules."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operations.conftest import Asker, key_schema

INDEXES: dict[str, Any] = {
    "types": {"g": "S", "l": "S"},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "gsi",
            "KeySchema": key_schema("g"),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "lsi",
            "KeySchema": key_schema("p", "l"),
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def write(ask: Asker, **item: str) -> dict[str, Any]:
    capacity: dict[str, Any] = ask(
        "PutItem",
        TableName="tab",
        Item={
            "p": {"S": "p"},
            "s": {"S": "s"},
            **{name: {"S": value} for name, value in item.items()},
        },
        ReturnConsumedCapacity="INDEXES",
    )["ConsumedCapacity"]
    return capacity


def units(capacity: dict[str, Any]) -> tuple[float, float, float, float]:
    """Total, table, global index, local index."""
    return (
        capacity["CapacityUnits"],
        capacity["Table"]["CapacityUnits"],
        capacity.get("GlobalSecondaryIndexes", {}).get("gsi", {}).get("CapacityUnits", 0.0),
        capacity.get("LocalSecondaryIndexes", {}).get("lsi", {}).get("CapacityUnits", 0.0),
    )


def test_a_write_costs_a_unit_a_kilobyte_of_the_larger_item(ask: Asker) -> None:
    ask.table(keys="p s")
    assert write(ask)["CapacityUnits"] == 1.0
    assert write(ask, x="x" * 2000)["CapacityUnits"] == 2.0
    assert write(ask)["CapacityUnits"] == 2.0
    deleted = ask(
        "DeleteItem",
        TableName="tab",
        Key={"p": {"S": "p"}, "s": {"S": "none"}},
        ReturnConsumedCapacity="TOTAL",
    )
    assert deleted["ConsumedCapacity"] == {"TableName": "tab", "CapacityUnits": 1.0}


def test_an_index_costs_only_when_its_entry_changes(ask: Asker) -> None:
    ask.table(keys="p s", **INDEXES)
    assert units(write(ask)) == (1.0, 1.0, 0.0, 0.0)
    assert units(write(ask, g="1", l="1")) == (3.0, 1.0, 1.0, 1.0)
    # The KEYS_ONLY entry stays the same; the ALL entry carries the new attribute.
    assert units(write(ask, g="1", l="1", x="1")) == (2.0, 1.0, 0.0, 1.0)
    # A changed index key is a delete and a put.
    assert units(write(ask, g="2", l="1", x="1")) == (4.0, 1.0, 2.0, 1.0)
    # Losing the index key is a delete.
    # The local entry carries every attribute, so it changes with `g`.
    assert units(write(ask, l="1", x="1")) == (3.0, 1.0, 1.0, 1.0)


def test_an_index_costs_nothing_when_attributes_only_change_places(ask: Asker) -> None:
    ask.table(keys="p s", **INDEXES)
    write(ask, g="g", l="l", x="x")
    again = write(ask, x="x", l="l", g="g")
    assert (again["CapacityUnits"], again["Table"]["CapacityUnits"]) == (1, 1)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}),
        ({"NS": ["1", "2"]}, {"NS": ["2", "1"]}),
        ({"BS": ["YQ==", "Yg=="]}, {"BS": ["Yg==", "YQ=="]}),
        ({"L": [{"M": {"n": {"SS": ["a", "b"]}}}]}, {"L": [{"M": {"n": {"SS": ["b", "a"]}}}]}),
    ],
)
def test_an_index_costs_nothing_when_only_the_members_of_a_set_change_places(
    ask: Asker, first: dict[str, Any], again: dict[str, Any]
) -> None:
    ask.table(keys="p s", **INDEXES)
    item = {"p": {"S": "p"}, "s": {"S": "s"}, "l": {"S": "l"}}

    def put(value: dict[str, Any]) -> tuple[float, float, float, float]:
        request = {"TableName": "tab", "Item": {**item, "x": value}}
        answer = ask("PutItem", **request, ReturnConsumedCapacity="INDEXES")
        return units(answer["ConsumedCapacity"])

    assert put(first) == (2.0, 1.0, 0.0, 1.0)
    assert put(again) == (1.0, 1.0, 0.0, 0.0)
    assert put({"SS": ["other"]}) == (2.0, 1.0, 0.0, 1.0)


def test_a_read_costs_by_four_kilobytes_and_half_when_eventual(ask: Asker) -> None:
    ask.table(keys="p s")
    write(ask, x="x" * 5000)
    key = {"p": {"S": "p"}, "s": {"S": "s"}}
    for consistent, expected in ((False, 1.0), (True, 2.0)):
        got = ask(
            "GetItem",
            TableName="tab",
            Key=key,
            ConsistentRead=consistent,
            ReturnConsumedCapacity="TOTAL",
        )
        assert got["ConsumedCapacity"]["CapacityUnits"] == expected


def test_a_page_is_rounded_up_once(ask: Asker) -> None:
    ask.table(keys="p s")
    for number in range(10):
        item = {"p": {"S": "p"}, "s": {"S": str(number)}, "x": {"S": "x" * 500}}
        ask("PutItem", TableName="tab", Item=item)
    page = ask(
        "Query",
        TableName="tab",
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": {"S": "p"}},
        ConsistentRead=True,
        ReturnConsumedCapacity="TOTAL",
    )
    assert page["ConsumedCapacity"]["CapacityUnits"] == 2.0  # about 5 KB


def test_an_empty_answer_costs_the_smallest_read(ask: Asker) -> None:
    ask.table(keys="p s")
    page = ask("Scan", TableName="tab", ReturnConsumedCapacity="TOTAL")
    assert page["ConsumedCapacity"] == {"TableName": "tab", "CapacityUnits": 0.5}


def test_a_local_index_that_lacks_attributes_reads_the_table(ask: Asker) -> None:
    ask.table(
        keys="p s",
        types={"l": "S"},
        LocalSecondaryIndexes=[
            {
                "IndexName": "lsi",
                "KeySchema": key_schema("p", "l"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    write(ask, l="1", x="x" * 5000)
    page = ask(
        "Query",
        TableName="tab",
        IndexName="lsi",
        Select="ALL_ATTRIBUTES",
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": {"S": "p"}},
        ConsistentRead=True,
        ReturnConsumedCapacity="INDEXES",
    )
    assert len(page["Items"][0]["x"]["S"]) == 5000
    assert units(page["ConsumedCapacity"]) == (3.0, 2.0, 0.0, 1.0)


def test_an_item_collection_is_measured_where_there_are_local_indexes(ask: Asker) -> None:
    ask.table(keys="p s", **INDEXES)
    item = {"p": {"S": "p"}, "s": {"S": "s"}}
    answer = ask("PutItem", TableName="tab", Item=item, ReturnItemCollectionMetrics="SIZE")
    assert answer["ItemCollectionMetrics"] == {
        "ItemCollectionKey": {"p": {"S": "p"}},
        "SizeEstimateRangeGB": [0.0, 1.0],
    }
    ask.table("plain")
    plain = ask("PutItem", TableName="plain", Item=item, ReturnItemCollectionMetrics="SIZE")
    assert plain == {}
