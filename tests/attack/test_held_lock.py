"""Another process holds the write lock of the file, and may even be stopped: reads go on, writes wait for it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.server.fakes import headers_of, request_bytes
from tests.server.test_connection import answers

import isotone
from isotone.server import running_server

SITE = Path(__file__).with_name("held_lock_site.py")
TABLE: dict[str, Any] = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
KEY = {"p": {"S": "x"}}
PUT = {"TableName": "tab", "Item": KEY}
GET = {"TableName": "tab", "Key": KEY}
SOON = 1.0  # seconds; the lock is waited for much longer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shared.db"


@pytest.fixture
def database(path: Path) -> Iterator[isotone.Database]:
    with isotone.open(path, durability="none", busy_timeout=20) as database:
        database.execute("CreateTable", TABLE)
        database.execute("PutItem", PUT)
        yield database


@contextlib.contextmanager
def held(path: Path) -> Iterator[Callable[[], None]]:
    """Hold the lock in a stopped process; yields a function that lets it go on and end."""
    command = [sys.executable, str(SITE), str(path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    os.kill(holder.pid, signal.SIGSTOP)

    def release() -> None:
        os.kill(holder.pid, signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            holder.communicate("\n", timeout=20)

    try:
        yield release
    finally:
        if holder.poll() is None:
            release()


class Peer:
    """One connection to a server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def close(self) -> None:
        self._connection.close()

    def __call__(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self._connection.request("POST", "/", json.dumps(request), headers_of(operation))
        response = self._connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")


def once(url: str, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The answer to one request on a connection of its own."""
    with contextlib.closing(Peer(url)) as peer:
        return peer(operation, request)


def slowest(read: Callable[[], object], seconds: float) -> float:
    """The longest time that a read took."""
    longest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        read()
        longest = max(longest, time.monotonic() - began)
    return longest


WRITES = [
    ("PutItem", PUT),
    ("TransactWriteItems", {"TransactItems": [{"Put": PUT}]}),
    ("CreateTable", {**TABLE, "TableName": "other"}),
    ("ExecuteStatement", {"Statement": "INSERT INTO tab VALUE {'p': 'new'}"}),
    ("UpdateTimeToLive", {
        "TableName": "tab",
        "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": True},
    }),
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write[0])
def test_a_server_reads_on_while_writes_wait(database, path, write):
    with running_server(database) as url, held(path) as release, ThreadPoolExecutor() as pool:
        waiting = [pool.submit(once, url, *each) for each in (write, ("PutItem", PUT))]
        with contextlib.closing(Peer(url)) as peer:
            assert slowest(lambda: peer("GetItem", GET), 1.5) < SOON
        assert not any(each.done() for each in waiting)
        release()
        assert [each.result(30)[0] for each in waiting] == [200, 200]
        assert once(url, "GetItem", GET) == (200, {"Item": KEY})


def test_statements_that_read_do_not_wait(database, path):
    with running_server(database) as url, held(path), ThreadPoolExecutor() as pool:
        waiting = pool.submit(once, url, "PutItem", PUT)
        select = {"Statement": "SELECT * FROM tab WHERE p = 'x'"}
        together = {"TransactStatements": [select]}
        time.sleep(0.1)
        for operation, request in (
            ("ExecuteStatement", select),
            ("BatchExecuteStatement", {"Statements": [select]}),
            ("ExecuteTransaction", together),
        ):
            began = time.monotonic()
            assert once(url, operation, request)[0] == 200
            assert time.monotonic() - began < SOON
        assert not waiting.done()


def test_answers_of_one_connection_keep_their_order(database, path):
    with running_server(database) as url, held(path) as release:
        parts = urlsplit(url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        connection.connect()
        assert connection.sock is not None
        with connection.sock as sock:
            put = request_bytes("PutItem", json.dumps(PUT).encode())
            get = request_bytes("GetItem", json.dumps(GET).encode())
            sock.sendall(put + get)
            sock.settimeout(0.5)
            with pytest.raises(TimeoutError):
                sock.recv(1)
            release()
            sock.settimeout(30)
            received = answers(sock, 2)
    assert [json.loads(body) for _, body in received] == [{}, {"Item": KEY}]


def test_a_write_that_waits_too_long_fails_as_ever(path):
    with isotone.open(path, durability="none", busy_timeout=0.3) as database:
        database.execute("CreateTable", TABLE)
        with running_server(database) as url, held(path) as release:
            status, answer = once(url, "PutItem", PUT)
            assert status == 500
            assert "busy_timeout" in answer["message"]
            release()
            assert once(url, "PutItem", PUT) == (200, {})


def test_threads_of_one_program_read_while_one_waits_to_write(database, path):
    with held(path) as release, ThreadPoolExecutor() as pool:
        waiting = pool.submit(database.execute, "PutItem", PUT)
        assert slowest(lambda: database.execute("GetItem", GET), 1.0) < SOON
        assert not waiting.done()
        release()
        assert waiting.result(30) == {}


def test_background_work_gives_way(path, caplog):
    with isotone.open(path, durability="none") as database:
        database.execute("CreateTable", TABLE)
        enabled = {"AttributeName": "t", "Enabled": True}
        database.execute(
            "UpdateTimeToLive", {"TableName": "tab", "TimeToLiveSpecification": enabled}
        )
        expiring = {**KEY, "t": {"N": str(int(time.time()) + 1)}}
        database.execute("PutItem", {"TableName": "tab", "Item": expiring})
        with held(path) as release:
            assert slowest(lambda: database.execute("GetItem", GET), 3) < SOON
            assert database.execute("GetItem", GET)["Item"] == expiring
            release()
        deadline = time.monotonic() + 20
        while database.execute("GetItem", GET) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert database.execute("GetItem", GET) == {}
    assert not caplog.records
