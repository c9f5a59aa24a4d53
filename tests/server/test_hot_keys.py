"""Which keys are used most: counted while somebody asks, from requests of every kind."""

from __future__ import annotations

import json
import threading
from typing import Any

import boto3
import pytest
from tests.server.fakes import FakeService
from tests.server.test_monitor import TABLE, ask, call

import isotone
from isotone.expressions.partiql import statements
from isotone.expressions.partiql.parser import parse
from isotone.server import running_server
from isotone.server.dispatcher import Dispatcher
from isotone.server.hot_keys import HotKeys
from isotone.server.request import ServiceCall
from isotone.server.response import ORDINARY


def body(**members: Any) -> bytes:
    return json.dumps({"TableName": "tab", **members}).encode()


def hot(url: str) -> Any:
    status, text = ask(url, "GET", "/hotkeys")
    assert status == 200
    return json.loads(text)


def test_keys_are_counted_from_the_first_question_on():
    with isotone.open() as database, running_server(database) as url:
        database.execute("CreateTable", TABLE)
        call(url, "PutItem", body(Item={"p": {"S": "before"}}))
        assert hot(url)["keys"] == []
        for _ in range(3):
            call(url, "PutItem", body(Item={"p": {"S": "a"}}))
        call(url, "GetItem", body(Key={"p": {"S": "a"}}))
        query = body(KeyConditionExpression="p = :p", ExpressionAttributeValues={":p": {"S": "b"}})
        call(url, "Query", query)
        call(url, "Scan", body())
        put = {"PutRequest": {"Item": {"p": {"S": "c"}}}}
        call(url, "BatchWriteItem", json.dumps({"RequestItems": {"tab": [put]}}).encode())
        statement = "DELETE FROM tab WHERE p = 'c'"
        call(url, "ExecuteStatement", json.dumps({"Statement": statement}).encode())
        call(url, "GetItem", b'{"TableName": "none", "Key": {"p": {"S": "a"}}}')
        call(url, "GetItem", b"no json")
        found = hot(url)
        assert (found["requests"], found["looked_at"]) == (10, 10)
        assert {each["key"]: (each["reads"], each["writes"]) for each in found["keys"]} == {
            "a": (1, 3),
            "b": (1, 0),
            "c": (0, 2),
        }
        assert {each["table"] for each in found["keys"]} == {"tab"}
        assert found["keys"][0]["key"] == "a"


def test_credentials_hide_them(tmp_path):
    users = tmp_path / "users.json"
    users.write_text('{"users": {}}')
    with isotone.open() as database, running_server(database, credentials=users) as url:
        assert ask(url, "GET", "/hotkeys")[0] == 404


class Watched:
    """A service whose bodies are keys, and what shows its requests."""

    def __init__(self) -> None:
        self._on_request: Any = None

    def watch(self, on_request: Any) -> None:
        self._on_request = on_request

    @property
    def is_watched(self) -> bool:
        return self._on_request is not None

    def on_request(self, operation: str, body: bytes) -> None:
        self._on_request(operation, body, "eu-west-1")

    def is_long(self, operation: str, body: bytes) -> bool:
        return False

    def accesses(self, operation: str, body: bytes, region: str = "") -> list[Any]:
        class Access:
            action = operation
            resource = "arn:aws:dynamodb:eu-west-1:1:table/tab"

            def values(self, key: str) -> list[str]:
                return [body.decode()]

        return [Access()]


def test_a_busy_server_is_sampled_and_watching_ends(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("isotone.server.hot_keys.time.monotonic", lambda: now)
    service = Watched()
    keys = HotKeys(service, service.watch)
    keys.json()
    for second in range(4):
        now = 1000.0 + second
        for number in range(5_000):
            service.on_request("GetItem", b"hot" if number % 2 else str(number).encode())
    found = json.loads(keys.json())
    assert found["requests"] == 20_000
    assert found["looked_at"] < 7_000  # the whole first second, and then one of twenty
    counted = {each["key"]: each["reads"] for each in found["keys"]}
    assert max(counted, key=counted.__getitem__) == "hot"
    assert 8_000 < counted["hot"] < 12_000  # of 10,000
    now += 60
    service.on_request("GetItem", b"late")
    assert not service.is_watched
    assert json.loads(keys.json())["requests"] == 0


def test_counting_begins_again_after_a_long_silence(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("isotone.server.hot_keys.time.monotonic", lambda: now)
    service = Watched()
    keys = HotKeys(service, service.watch)
    keys.json()
    service.on_request("GetItem", b"old")
    assert json.loads(keys.json())["requests"] == 1
    now += 3600  # without any request
    assert json.loads(keys.json())["requests"] == 0
    service.on_request("GetItem", b"new")
    assert [each["key"] for each in json.loads(keys.json())["keys"]] == ["new"]


def test_a_look_never_takes_long(monkeypatch):
    threads = set()

    def noted(text: str) -> Any:
        threads.add(threading.current_thread().name)
        return parse(text)

    monkeypatch.setattr(statements, "parse", noted)
    with isotone.open() as database, running_server(database) as url:
        database.execute("CreateTable", TABLE)
        hot(url)
        condition = " OR ".join(f"attribute{number} = {number}" for number in range(80))
        long = f"SELECT * FROM tab WHERE p = 'a' AND ({condition})"
        assert call(url, "ExecuteStatement", json.dumps({"Statement": long}).encode()) == 200
        call(url, "PutItem", body(Item={"p": {"S": "b"}, "x": {"S": "x" * 70_000}}))
        found = hot(url)
    assert threads == {"isotone-long-work"}  # of the statement itself
    assert (found["requests"], found["keys"]) == (2, [])


def test_keys_are_counted_in_the_region_that_was_asked():
    with isotone.open(regions=True) as database, running_server(database) as url:
        other = database.region("eu-west-1")
        for each in (database, other):
            key = "p" if each is database else "q"
            schema = json.loads(json.dumps(TABLE).replace('"p"', f'"{key}"'))
            each.execute("CreateTable", schema)
        hot(url)
        client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="eu-west-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
        client.put_item(TableName="tab", Item={"q": {"S": "there"}})
        assert [each["key"] for each in hot(url)["keys"]] == ["there"]


def test_an_unwatched_server_calls_the_service_alone():
    dispatcher = Dispatcher(FakeService(), None)  # type: ignore[arg-type] # the loop is not needed
    seen: list[str] = []
    call = ServiceCall("GetItem", b"1", ORDINARY)
    dispatcher.watch(lambda operation, body, region: seen.append(operation))
    dispatcher.submit(call, lambda result: None)
    assert seen == ["GetItem"]
    dispatcher.watch(None)
    dispatcher.submit(call, lambda result: None)
    assert seen == ["GetItem"]


@pytest.mark.parametrize("peer", [("203.0.113.7", 1), None])
def test_other_machines_do_not_see_them(peer):
    from isotone.server.monitor import Monitor
    from isotone.server.response import NOT_FOUND

    service = Watched()
    monitor = Monitor(service, None, lambda: 0, metrics_for_all=True)  # type: ignore[arg-type] # what is asked for alone
    monitor.hot_keys = HotKeys(service, service.watch)
    assert monitor.page("/hotkeys", peer, print) is NOT_FOUND
    assert not service.is_watched
