"""What DescribeTable answers, as one description: with all members, with few, and as an engine answers it."""

from __future__ import annotations

from typing import Any

import pytest

import isotone
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.tables.description import (
    KeyElement,
    description_of,
    expiry_of,
    read_description,
    table_names,
)

CUSTOMER, PLACED_AT = KeyElement("customer", "S"), KeyElement("placed_at", "N")
STATUS = KeyElement("status", "S")


def key(partition: str, sort: str | None = None) -> list[dict[str, str]]:
    parts = [{"AttributeName": partition, "KeyType": "HASH"}]
    return parts + ([{"AttributeName": sort, "KeyType": "RANGE"}] if sort else [])


ORDERS: dict[str, Any] = {
    "TableName": "Orders",
    "AttributeDefinitions": [
        {"AttributeName": "customer", "AttributeType": "S"},
        {"AttributeName": "placed_at", "AttributeType": "N"},
        {"AttributeName": "status", "AttributeType": "S"},
    ],
    "KeySchema": key("customer", "placed_at"),
    "BillingMode": "PAY_PER_REQUEST",
    "LocalSecondaryIndexes": [
        {
            "IndexName": "zones",
            "KeySchema": key("customer", "status"),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["total", "gift"]},
        }
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_status",
            "KeySchema": key("status"),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


@pytest.fixture
def database() -> Any:
    with isotone.open(":memory:") as opened:
        yield opened


def test_keys_indexes_and_types(database: Any) -> None:
    database.execute("CreateTable", ORDERS)
    orders = read_description(database, "Orders")
    assert (orders.key.partition, orders.key.sort) == ((CUSTOMER,), (PLACED_AT,))
    assert str(orders.key) == "customer (S) · placed_at (N)"
    assert orders.types == {"customer": "S", "placed_at": "N", "status": "S"}
    zones, by_status = orders.indexes
    assert (zones.name, zones.kind, zones.projection) == ("zones", "local", ("total", "gift"))
    assert zones.key.parts == (CUSTOMER, STATUS)
    assert (by_status.name, by_status.kind, by_status.projection) == (
        "by_status",
        "global",
        "KEYS_ONLY",
    )
    assert (by_status.key.names, by_status.key.sort_names) == (("status",), ())
    assert orders.index_attributes == {"customer": "zones", "status": "by_status"}
    assert orders.key_of(None) == orders.key
    assert orders.key_of("by_status") == by_status.key


def test_counts_settings_and_identity(database: Any) -> None:
    database.execute("CreateTable", ORDERS)
    item = {"customer": {"S": "ann"}, "placed_at": {"N": "7"}, "status": {"S": "OPEN"}}
    database.execute("PutItem", {"TableName": "Orders", "Item": item})
    orders = read_description(database, "Orders")
    # DynamoDB's sizes: a name and a text their bytes, a number of one digit two.
    assert (orders.item_count, orders.size) == (1, 8 + 3 + 9 + 2 + 6 + 4)
    assert orders.index("by_status").item_count == 1
    assert orders.is_counted
    assert (orders.billing, orders.units) == ("PAY_PER_REQUEST", (0, 0))
    assert (orders.stream, orders.stream_arn, orders.is_protected) == (None, None, False)
    assert orders.statuses == {"ACTIVE"}
    changes = {
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        "DeletionProtectionEnabled": True,
    }
    database.execute("UpdateTable", {"TableName": "Orders", **changes})
    changed = read_description(database, "Orders")
    assert (changed.stream, changed.is_protected) == ("NEW_IMAGE", True)
    assert changed.stream_arn
    assert changed.stream_arn.startswith(changed.arn)
    assert changed.identity == orders.identity != ""


def test_a_table_of_the_same_name_has_another_identity(database: Any) -> None:
    database.execute("CreateTable", ORDERS)
    before = read_description(database, "Orders")
    database.execute("DeleteTable", {"TableName": "Orders"})
    database.execute("CreateTable", ORDERS)
    assert read_description(database, "Orders").identity != before.identity


def test_provisioned_units_and_what_an_engine_does_not_count() -> None:
    described = description_of(
        {
            "TableName": "Orders",
            "KeySchema": key("customer"),
            "AttributeDefinitions": [{"AttributeName": "customer", "AttributeType": "S"}],
            "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 2},
        }
    )
    assert (described.billing, described.units) == ("PROVISIONED", (5, 2))
    assert (described.is_counted, described.item_count, described.size) == (False, 0, 0)
    assert (described.indexes, described.statuses) == ((), {"ACTIVE"})


def test_a_disabled_stream_is_none() -> None:
    stream = {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}
    described = description_of({"StreamSpecification": stream, "LatestStreamArn": "arn:before"})
    assert (described.stream, described.stream_arn) == (None, "arn:before")


def test_vector_indexes_stand_apart() -> None:
    near = {
        "IndexName": "near",
        "IndexStatus": "CREATING",
        "Dimensions": 3,
        "SearchSchema": [
            {"AttributeName": "customer", "SearchSchemaElementType": "HASH"},
            {"AttributeName": "placed_at", "SearchSchemaElementType": "INLINE_FILTER"},
        ],
    }
    described = description_of({**ORDERS, "VectorIndexes": [near]})
    assert described.index_names == ["zones", "by_status"]
    assert [*described.all_indexes] == ["zones", "by_status", "near"]
    found = described.all_indexes["near"]
    assert (found.kind, found.projection, found.vectors) == ("vector", "ALL", near)
    assert (found.key.partition, found.key.sort) == ((CUSTOMER,), (PLACED_AT,))
    assert described.statuses == {"ACTIVE", "CREATING"}


def test_an_unknown_index_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        UsageError, match="table Orders has no index 'nope'; its indexes: zones, by_status"
    ):
        description_of(ORDERS).key_of("nope")
    plain = description_of({"TableName": "Plain"})
    with pytest.raises(UsageError, match="table Plain has no index 'nope'; its indexes: none"):
        plain.index("nope")


@pytest.mark.parametrize(
    ("status", "expiry"),
    [("ENABLED", "gone_at"), ("ENABLING", "gone_at"), ("DISABLING", None), ("DISABLED", None)],
)
def test_the_attribute_of_expiry(status: str, expiry: str | None) -> None:
    description = {"TimeToLiveStatus": status, "AttributeName": "gone_at"}
    assert expiry_of({"TimeToLiveDescription": description}) == expiry
    assert expiry_of({}) is None


def test_the_names_of_all_tables_on_several_pages(database: Any) -> None:
    assert table_names(database) == []
    names = [f"Table{number:03}" for number in range(103)]  # a page of ListTables has 100
    for name in names:
        database.execute("CreateTable", {**ORDERS, "TableName": name})
    assert len(database.execute("ListTables", {})["TableNames"]) == 100
    assert table_names(database) == names


def test_a_table_that_does_not_exist(database: Any) -> None:
    with pytest.raises(ResourceNotFoundException):
        read_description(database, "Orders")
