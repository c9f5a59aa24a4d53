"""Reads without a snapshot: as if they had one, whatever other processes commit meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone.engine.engine import Engine
from isotone.errors import TakesLong

TABLE = {
    "TableName": "tab",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
KEY = {"id": {"S": "a"}}
QUERY = {
    "TableName": "tab",
    "KeyConditionExpression": "id = :id",
    "ExpressionAttributeValues": {":id": {"S": "a"}},
}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[isotone.Database, isotone.Database]]:
    """Two databases on one file, as two processes have it."""
    path = tmp_path / "a.db"
    with isotone.open(path, durability="none") as one:
        one.execute("CreateTable", TABLE)
        with isotone.open(path, durability="none") as other:
            yield one, other


def put(database: isotone.Database, value: str) -> None:
    database.execute("PutItem", {"TableName": "tab", "Item": {**KEY, "v": {"S": value}}})


def found(database: isotone.Database) -> tuple[str, str]:
    got = database.execute("GetItem", {"TableName": "tab", "Key": KEY})["Item"]["v"]["S"]
    (queried,) = database.execute("Query", QUERY)["Items"]
    return got, queried["v"]["S"]


def test_each_sees_what_the_other_has_just_written(
    pair: tuple[isotone.Database, isotone.Database],
) -> None:
    one, other = pair
    for number in range(6):
        writer, reader = (one, other) if number % 2 else (other, one)
        put(writer, str(number))
        assert found(reader) == found(writer) == (str(number),) * 2


def test_a_table_that_the_other_has_just_made_dropped_or_changed(
    pair: tuple[isotone.Database, isotone.Database],
) -> None:
    one, other = pair
    put(one, "x")
    assert found(other) == found(one) == ("x", "x")
    other.execute("DeleteTable", {"TableName": "tab"})
    for operation, request in (("GetItem", {"TableName": "tab", "Key": KEY}), ("Query", QUERY)):
        with pytest.raises(isotone.errors.ResourceNotFoundException):
            one.execute(operation, request)
    other.execute("CreateTable", TABLE)
    assert one.execute("GetItem", {"TableName": "tab", "Key": KEY}) == {}
    other.execute("DeleteTable", {"TableName": "tab"})
    number = {"AttributeName": "id", "AttributeType": "N"}
    other.execute("CreateTable", {**TABLE, "AttributeDefinitions": [number]})
    with pytest.raises(isotone.errors.ValidationException, match="key element does not match"):
        one.execute("GetItem", {"TableName": "tab", "Key": KEY})
    assert one.execute("GetItem", {"TableName": "tab", "Key": {"id": {"N": "1"}}}) == {}


def test_an_empty_range_of_a_table_that_is_gone(
    pair: tuple[isotone.Database, isotone.Database],
) -> None:
    one, other = pair
    sort = [*TABLE["KeySchema"], {"AttributeName": "s", "KeyType": "RANGE"}]
    attributes = [*TABLE["AttributeDefinitions"], {"AttributeName": "s", "AttributeType": "S"}]
    one.execute(
        "CreateTable",
        {**TABLE, "TableName": "sorted", "KeySchema": sort, "AttributeDefinitions": attributes},
    )
    request = {
        "TableName": "sorted",
        "KeyConditionExpression": "id = :id AND s < :s",
        "ExpressionAttributeValues": {":id": {"S": "a"}, ":s": {"S": "b"}},
        "ExclusiveStartKey": {"id": {"S": "a"}, "s": {"S": "a"}},
        "ScanIndexForward": False,
    }
    assert one.execute("Query", request)["Count"] == 0
    other.execute("DeleteTable", {"TableName": "sorted"})
    with pytest.raises(isotone.errors.ResourceNotFoundException):
        one.execute("Query", request)


def test_an_optimistic_read_reads_again_only_if_another_has_committed(
    pair: tuple[isotone.Database, isotone.Database],
) -> None:
    one, other = pair
    put(one, "0")
    tree = one.engine.catalog.tables["tab"].tree
    calls: list[bool] = []

    def read(engine: Engine, commits: bool) -> Any:
        calls.append(engine.store._snapshots > 0)  # type: ignore[attr-defined] # of the SQLite store
        records = [value for _, value in engine.store.range(tree, b"", None)]
        if commits and len(calls) == 1:
            put(other, "1")
        return [*records, *(value for _, value in engine.store.range(tree, b"", None))]

    one.engine.read_optimistically(read, False)
    calls.clear()
    before = one.engine.read_optimistically(read, False)
    assert calls == [False]
    calls.clear()
    first, second = one.engine.read_optimistically(read, True)
    assert first == second != before[0]
    assert calls == [False, True]
    calls.clear()
    one.engine.read_optimistically(read, False)
    assert calls == [False]  # somebody is busy, but the catalog is the same
    calls.clear()
    one.engine.read_optimistically(read, False)
    assert calls == [False]


def test_a_read_that_another_thread_has_to_execute_is_not_tried_twice(
    pair: tuple[isotone.Database, isotone.Database],
) -> None:
    engine, attempts = pair[0].engine, []

    def read(_: Engine, request: str) -> None:
        attempts.append(request)
        raise TakesLong

    with pytest.raises(TakesLong):
        engine.read_optimistically(read, "long")
    assert attempts == ["long"]
