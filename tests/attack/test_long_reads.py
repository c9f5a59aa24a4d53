"""Reads that compute for long: other requests and signals are served meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import isotone
from isotone.errors import TakesLong
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


def in_a_hurry(database: isotone.Database, operation: str, body: bytes) -> Any:
    """The answer, or the error, in a thread that may not compute for long, as an event loop gets it."""
    database.allow_waiting(False)
    try:
        return json.loads(database.send(operation, body))
    except TakesLong as error:
        return type(error)
    finally:
        database.allow_waiting(True)


def test_a_long_read_is_handed_over(database):
    assert in_a_hurry(database, "Query", query()) is TakesLong
    assert in_a_hurry(database, "Query", query(Limit=200)) is TakesLong
    assert json.loads(database.send("Query", query()))["Count"] == ITEMS


def test_a_short_read_is_answered_at_once(database):
    answer = in_a_hurry(database, "Query", query(Limit=50))
    assert answer["Count"] == 50
    assert answer == json.loads(database.send("Query", query(Limit=50)))


def test_what_is_handed_over_has_consumed_nothing(database):
    database.measure()
    for _ in range(3):
        assert in_a_hurry(database, "Query", query()) is TakesLong
    assert database.series() == []
    database.send("Query", query())
    assert {value for name, _, value in database.series() if "read_units" in name} == {0.5}


def test_a_long_read_leaves_the_loop_and_the_lock_free(database):
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
def test_a_page_of_many_small_items_is_handed_over(crowded, reverse):
    request = json.loads(query(ScanIndexForward=not reverse))
    del request["FilterExpression"], request["ExpressionAttributeValues"][":v"]
    text = json.dumps(request).encode()
    assert in_a_hurry(crowded, "Query", text) is TakesLong
    numbers = [int(item["s"]["N"]) for item in json.loads(crowded.send("Query", text))["Items"]]
    assert numbers == list(range(MANY))[:: -1 if reverse else 1]


def test_a_limit_and_the_size_of_a_page_hold_however_it_is_read(crowded):
    whole = [item["s"]["N"] for item in pages(crowded, "Scan", {"TableName": "tab"})]
    for limit in (2000, 2001, 4000, 7777):
        request = {"TableName": "tab", "Limit": limit}
        text = json.dumps(request).encode()
        first = json.loads(crowded.send("Scan", text))
        assert in_a_hurry(crowded, "Scan", text) == (first if limit == 2000 else TakesLong)
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
    text = json.dumps(select).encode()
    answer = json.loads(crowded.send("ExecuteStatement", text))
    # A page of several collections is short.
    is_short = " IN " in select["Statement"]
    assert in_a_hurry(crowded, "ExecuteStatement", text) == (answer if is_short else TakesLong)
    found = answer["Items"]
    while "NextToken" in answer:
        more = json.dumps({**select, "NextToken": answer["NextToken"]}).encode()
        answer = json.loads(crowded.send("ExecuteStatement", more))
        found += answer["Items"]
    assert sorted(int(item["s"]["N"]) for item in found) == list(range(MANY))


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
def test_a_projection_of_a_large_item_is_handed_over(database, operation, request_, found):
    database.execute("PutItem", {"TableName": "tab", "Item": BIG})
    request = {**request_, "ProjectionExpression": "l[7]"}
    if operation == "BatchGetItem":
        request = {"RequestItems": {"tab": request}}
    elif operation == "TransactGetItems":
        request = {"TransactItems": [{"Get": {"TableName": "tab", **request}}]}
    else:
        request["TableName"] = "tab"
    text = json.dumps(request).encode()
    assert in_a_hurry(database, operation, text) is TakesLong
    assert found(json.loads(database.send(operation, text))) == {"l": {"L": [{"N": "1"}]}}
    assert found(database.execute(operation, request)) == {"l": {"L": [{"N": "1"}]}}
