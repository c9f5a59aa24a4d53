"""What failures leave: a log line for the operator, and nothing in memory."""

from __future__ import annotations

import gc
import logging
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.server.fakes import FakeService, request_bytes

import isotone
from isotone.errors import InternalServerError, StorageBusy, UsageError
from isotone.expressions.expression import Expression
from isotone.server import connection, running_server
from isotone.storage.sqlite import SQLiteStore

TABLE = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
PUT = b'{"TableName": "tab", "Item": {"p": {"S": "x"}}}'


def test_a_busy_file_names_an_option_that_exists(tmp_path):
    path = tmp_path / "busy.db"
    with isotone.open(path, durability="none", busy_timeout=0.05) as database:
        database.execute("CreateTable", TABLE)
        holder = SQLiteStore(path)
        began = time.monotonic()
        with holder.transaction():
            with pytest.raises(StorageBusy, match="busy_timeout"):
                database.send("PutItem", PUT)
            for group in ([("PutItem", PUT)], [("PutItem", PUT)] * 2):
                answers = database.send_many(group)
                assert [type(answer) for answer in answers] == [StorageBusy] * len(group)
                assert "was locked by another process" in str(answers[0])
        assert time.monotonic() - began < 4
        holder.close()
    for wrong in (-1, float("nan"), "5"):
        with pytest.raises(UsageError, match="busy_timeout"):
            isotone.open(path, busy_timeout=wrong)  # type: ignore[arg-type]


class Failing(FakeService):
    """Answers every read with an error of its own."""

    def send(self, operation: str, body: bytes, region: str = "") -> bytes:
        raise InternalServerError("the disk is on fire")


def dial(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=5)


def test_every_500_of_a_server_is_logged(caplog):
    with (
        caplog.at_level(logging.ERROR, "isotone.server"),
        running_server(Failing()) as url,
        dial(url) as sock,
    ):
        sock.sendall(request_bytes("GetItem"))
        assert b" 500 " in sock.recv(65536)
    assert "GetItem failed" in caplog.text
    assert "the disk is on fire" in caplog.text


def bodies(size: int) -> int:
    """The bytes that connections of this process hold, reachable or not."""
    found: Any = [each for each in gc.get_objects() if type(each) is connection.ServerConnection]
    return sum(len(part) for each in found for part in each._body if size)


def test_an_upload_that_hangs_up_leaves_nothing():
    gc.collect()
    gc.disable()
    try:
        with running_server(FakeService()) as url:
            for _ in range(5):
                with dial(url) as sock:
                    request = request_bytes("PutItem", b"x" * 1_000_000)
                    sock.sendall(request[:-10])
                    time.sleep(0.05)
            time.sleep(0.3)
            assert bodies(1) == 0
    finally:
        gc.enable()


def test_dropped_trees_leave_no_statements(tmp_path):
    store = SQLiteStore(tmp_path / "trees.db", durability="none")
    for number in range(20):
        with store.transaction():
            store.create_tree(f"t{number}")
            store.put(f"t{number}", b"k", b"v")
        with store.transaction():
            store.drop_tree(f"t{number}")
    assert len(store._statements) == 0
    store.close()


def expressions() -> int:
    """The compiled expressions that are in memory."""
    return sum(isinstance(each, Expression) for each in gc.get_objects())


def test_long_expressions_do_not_fill_the_memory():
    gc.collect()
    before = expressions()
    with isotone.open() as database:
        database.execute("CreateTable", TABLE)
        for number in range(300):
            names = {f"#n{number}_{each}": f"a{each}" for each in range(150)}
            projection = ", ".join(names)
            scan = {
                "TableName": "tab",
                "ProjectionExpression": projection,
                "FilterExpression": f"a{number} = :v OR " + "x = :v OR " * 100 + "y = :v",
                "ExpressionAttributeNames": names,
                "ExpressionAttributeValues": {":v": {"S": "x"}},
            }
            assert database.execute("Scan", scan)["Count"] == 0
    gc.collect()
    assert expressions() < before + 200
