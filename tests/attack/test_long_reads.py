"""Reads that compute for long: other requests and signals are served meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import isotone
from isotone.server.dispatcher import Dispatcher
from isotone.server.request import Call
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
    rest = database.begin("Query", query())
    assert callable(rest)
    for number in range(ITEMS):
        put(database, number, value=6)
    answer = json.loads(rest())
    assert answer["Count"] == ITEMS
    assert json.loads(database.send("Query", query()))["Count"] == 0


def test_a_short_read_is_answered_at_once(database):
    answer = database.begin("Query", query(Limit=50))
    assert json.loads(answer)["Count"] == 50
    assert answer == database.send("Query", query(Limit=50))


def test_the_rest_of_a_long_read_leaves_the_loop_and_the_lock_free(database):
    threads = []

    async def steps(dispatcher: Dispatcher) -> bytes:
        loop = asyncio.get_running_loop()
        long: asyncio.Future[bytes] = loop.create_future()
        held = threading.Event()
        dispatcher._long_reads.run(lambda: b"%d" % held.wait(5), lambda _: None)
        call = Call("Query", query(), ORDINARY)
        assert dispatcher.submit(call, long.set_result) is None
        key = {"p": {"S": "a"}, "s": {"N": "1"}}
        get = Call("GetItem", json.dumps({"TableName": "tab", "Key": key}).encode(), ORDINARY)
        found = dispatcher.submit(get, long.set_result)  # while the long read still waits
        assert isinstance(found, bytes)
        assert json.loads(found)["Item"]["v"] == {"N": "5"}
        assert not long.done()
        threads.extend(thread.name for thread in threading.enumerate())
        held.set()
        return await asyncio.wait_for(long, 10)

    answer = on_a_loop(database, steps)
    assert json.loads(answer) == json.loads(database.send("Query", query()))
    assert "isotone-long-reads" in threads


def test_a_large_request_is_decoded_in_the_thread(database):
    names = [f"a{number}" for number in range(20_000)]
    body = json.dumps({"TableName": "tab", "AttributesToGet": ["v", *names]}).encode()

    async def steps(dispatcher: Dispatcher) -> bytes:
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        assert dispatcher.submit(Call("Scan", body, ORDINARY), answered.set_result) is None
        return await asyncio.wait_for(answered, 10)

    assert json.loads(on_a_loop(database, steps))["Items"] == [{"v": {"N": "5"}}] * ITEMS
