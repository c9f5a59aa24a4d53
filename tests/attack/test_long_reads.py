"""Reads that compute for long: other requests and signals are served meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import isotone
from isotone.effort import Wait
from isotone.errors import ResourceNotFoundException
from isotone.server.dispatcher import Dispatcher
from isotone.server.request import ServiceCall
from isotone.server.response import ORDINARY

TABLE = {
    "TableName": "tab",
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "s", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "s", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
ITEMS = 300


@pytest.fixture(params=["memory", "file"])
def database(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[isotone.Database]:
    path = ":memory:" if request.param == "memory" else tmp_path / "long.db"
    with isotone.open(path, durability="none") as database:
        database.execute("CreateTable", TABLE)
        for number in range(ITEMS):
            put(database, number)
        yield database


def put(database: isotone.Database, number: int, value: int = 5) -> None:
    item = {"p": {"S": "a"}, "s": {"N": str(number)}, "v": {"N": str(value)}}
    database.execute("PutItem", {"TableName": "tab", "Item": item})


def query(**more: Any) -> bytes:
    values = {":p": {"S": "a"}, ":v": {"N": "5"}}
    request = {
        "TableName": "tab",
        "KeyConditionExpression": "p = :p",
        "FilterExpression": "v = :v",
        "ExpressionAttributeValues": values,
        **more,
    }
    return json.dumps(request).encode()


def on_a_loop(database: isotone.Database, steps: Callable[[Dispatcher], Any]) -> Any:
    async def main() -> Any:
        dispatcher = Dispatcher(database, asyncio.get_running_loop())
        try:
            return await steps(dispatcher)
        finally:
            dispatcher.stop()

    return asyncio.run(main())


def test_a_long_read_is_of_one_moment(database):
    rest = database.send("Query", query(), Wait.ONE_TURN)
    assert callable(rest)
    for number in range(ITEMS):
        put(database, number, value=6)
    answer = json.loads(rest())
    assert answer["Count"] == ITEMS
    assert json.loads(database.send("Query", query()))["Count"] == 0


def test_a_short_read_is_answered_at_once(database):
    answer = database.send("Query", query(Limit=50), Wait.ONE_TURN)
    assert json.loads(answer)["Count"] == 50
    assert answer == database.send("Query", query(Limit=50))


def test_the_rest_of_a_long_read_leaves_the_loop_and_the_lock_free(database):
    threads = []

    async def steps(dispatcher: Dispatcher) -> bytes:
        loop = asyncio.get_running_loop()
        long: asyncio.Future[bytes] = loop.create_future()
        held = threading.Event()
        dispatcher._long_work.run(lambda: b"%d" % held.wait(5), lambda _: None)
        call = ServiceCall("Query", query(), ORDINARY)
        assert dispatcher.submit(call, long.set_result) is None
        key = {"p": {"S": "a"}, "s": {"N": "1"}}
        get = ServiceCall(
            "GetItem", json.dumps({"TableName": "tab", "Key": key}).encode(), ORDINARY
        )
        found = dispatcher.submit(get, long.set_result)  # while the long read still waits
        assert isinstance(found, bytes)
        assert json.loads(found)["Item"]["v"] == {"N": "5"}
        assert not long.done()
        threads.extend(thread.name for thread in threading.enumerate())
        held.set()
        return await asyncio.wait_for(long, 10)

    answer = on_a_loop(database, steps)
    assert json.loads(answer) == json.loads(database.send("Query", query()))
    assert "isotone-long-work" in threads


def test_a_large_request_is_decoded_in_the_thread(database):
    names = [f"a{number}" for number in range(20_000)]
    body = json.dumps({"TableName": "tab", "AttributesToGet": ["v", *names]}).encode()

    async def steps(dispatcher: Dispatcher) -> bytes:
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        assert dispatcher.submit(ServiceCall("Scan", body, ORDINARY), answered.set_result) is None
        return await asyncio.wait_for(answered, 10)

    assert json.loads(on_a_loop(database, steps))["Items"] == [{"v": {"N": "5"}}] * ITEMS


MANY = 9000


@pytest.fixture
def crowded(database: isotone.Database) -> isotone.Database:
    """The table with more small items than are read at once."""
    for start in range(ITEMS, MANY, 25):
        puts = [
            {"PutRequest": {"Item": {"p": {"S": "a"}, "s": {"N": str(number)}}}}
            for number in range(start, start + 25)
        ]
        database.execute("BatchWriteItem", {"RequestItems": {"tab": puts}})
    return database


SELECTS = [
    {"Statement": "SELECT * FROM tab"},
    {"Statement": "SELECT s FROM tab WHERE p = 'a' AND s >= 0"},
    {"Statement": "SELECT * FROM tab WHERE p IN ['a', 'b'] ORDER BY p DESC"},
]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_page_of_many_small_items_is_read_in_parts(crowded, reverse):
    request = json.loads(query(ScanIndexForward=not reverse))
    del request["FilterExpression"], request["ExpressionAttributeValues"][":v"]
    rest = crowded.send("Query", json.dumps(request).encode(), Wait.ONE_TURN)
    assert callable(rest)
    read, unread = (MANY - 1, 0) if reverse else (0, MANY - 1)
    for number in (read, unread):  # the first was read before it is deleted, the last was not
        key = {"p": {"S": "a"}, "s": {"N": str(number)}}
        crowded.execute("DeleteItem", {"TableName": "tab", "Key": key})
    answer = json.loads(rest())
    numbers = [int(item["s"]["N"]) for item in answer["Items"]]
    assert numbers == [n for n in range(MANY) if n != unread][:: -1 if reverse else 1]
    assert "LastEvaluatedKey" not in answer


def test_a_limit_and_the_size_of_a_page_hold_over_parts(crowded):
    whole = [item["s"]["N"] for item in pages(crowded, "Scan", {"TableName": "tab"})]
    for limit in (2000, 2001, 4000, 7777):
        request = {"TableName": "tab", "Limit": limit}
        rest = crowded.send("Scan", json.dumps(request).encode(), Wait.ONE_TURN)
        first = json.loads(rest() if callable(rest) else rest)
        assert [item["s"]["N"] for item in first["Items"]] == whole[:limit]
        assert "LastEvaluatedKey" in first
        assert [item["s"]["N"] for item in pages(crowded, "Scan", request)] == whole
    assert len(whole) == MANY


def pages(database: isotone.Database, operation: str, request: dict[str, Any]) -> list[Any]:
    found: list[Any] = []
    while True:
        answer = database.execute(operation, request)
        found += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return found
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


@pytest.mark.parametrize("select", SELECTS, ids=lambda select: select["Statement"])
def test_statements_are_long_reads_too(crowded, select):
    rest = crowded.send("ExecuteStatement", json.dumps(select).encode(), Wait.ONE_TURN)
    # A page of several collections is short.
    assert callable(rest) == (" IN " not in select["Statement"])
    answer = json.loads(rest() if callable(rest) else rest)
    assert (
        answer["Items"]
        == json.loads(crowded.send("ExecuteStatement", json.dumps(select).encode()))["Items"]
    )
    found = answer["Items"]
    while "NextToken" in answer:
        more = json.dumps({**select, "NextToken": answer["NextToken"]}).encode()
        answer = json.loads(crowded.send("ExecuteStatement", more))
        found += answer["Items"]
    assert sorted(int(item["s"]["N"]) for item in found) == list(range(MANY))


def test_a_table_that_is_dropped_ends_a_read(crowded):
    rest = crowded.send("Scan", b'{"TableName": "tab"}', Wait.ONE_TURN)
    assert callable(rest)
    crowded.execute("DeleteTable", {"TableName": "tab"})
    with pytest.raises(ResourceNotFoundException):
        rest()


BIG = {"p": {"S": "big"}, "s": {"N": "0"}, "l": {"L": [{"N": "1"}] * 20_000}}
KEYS = [{"p": {"S": "big"}, "s": {"N": "0"}}]


@pytest.mark.parametrize(
    ("operation", "request_", "found"),
    [
        ("GetItem", {"Key": KEYS[0]}, lambda answer: answer["Item"]),
        ("BatchGetItem", {"Keys": KEYS}, lambda answer: answer["Responses"]["tab"][0]),
        ("TransactGetItems", {"Key": KEYS[0]}, lambda answer: answer["Responses"][0]["Item"]),
    ],
)
def test_a_projection_of_a_large_item_is_made_later(database, operation, request_, found):
    database.execute("PutItem", {"TableName": "tab", "Item": BIG})
    request = {**request_, "ProjectionExpression": "l[7]"}
    if operation == "BatchGetItem":
        request = {"RequestItems": {"tab": request}}
    elif operation == "TransactGetItems":
        request = {"TransactItems": [{"Get": {"TableName": "tab", **request}}]}
    else:
        request["TableName"] = "tab"
    rest = database.send(operation, json.dumps(request).encode(), Wait.ONE_TURN)
    assert callable(rest)
    assert found(json.loads(rest())) == {"l": {"L": [{"N": "1"}]}}
    assert found(database.execute(operation, request)) == {"l": {"L": [{"N": "1"}]}}
