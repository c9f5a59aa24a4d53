"""Which engine answers: named by the address or the caller, or recognised by one question."""

from __future__ import annotations

import asyncio
import dataclasses
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone import ENGINES, Attr, Capabilities, Entity, Key, Local, Table, field
from isotone.backends.interface import Tape
from isotone.errors import Unsupported, UsageError
from isotone.server import running_server
from isotone.structures import SortedSet

AMAZON = {"credentials": isotone.Credentials("a", "b")}

people = Table("people")


class Person(Entity, table=people):
    email: Attr[str] = field()
    nick: Attr[str] = field(unique=True)
    primary = Key("PERSON", email).sort("PERSON")


class _Asked(http.server.ThreadingHTTPServer):
    """A server that gives one answer to everything, and counts who asks."""

    asked: list[str]


@contextmanager
def answering(status: int, headers: dict[str, str], body: bytes) -> Iterator[_Asked]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            self.wfile.write(b"HTTP/1.1 %d Some\r\n" % status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def send_header(self, keyword: str, value: str) -> None:
            self.wfile.write(f"{keyword}: {value}\r\n".encode())

        def end_headers(self) -> None:
            self.wfile.write(b"\r\n")

        def log_message(self, *_: Any) -> None:
            pass

    server = _Asked(("127.0.0.1", 0), Handler)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def url(server: _Asked) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


NODES = b'["127.0.0.1"]'
FRAMES = {"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"}


@pytest.mark.parametrize(
    ("status", "headers", "body", "engine"),
    [
        (200, {"Server": "Seastar httpd"}, NODES, "alternator"),
        (200, {}, NODES, "alternator"),
        (200, {"Server": "Server"}, NODES, "isotone"),
        (400, {"Server": "Jetty(12.1.11)"}, b"{}", "dynamodb-local"),
        (404, FRAMES, b"", "extenddb"),
        (404, {"Server": "Server"}, b"<UnknownOperationException/>\n", "dynamodb"),
        (200, {"Server": "other"}, b"{}", "dynamodb"),
    ],
)
def test_a_server_is_asked_once_what_it_is(
    status: int, headers: dict[str, str], body: bytes, engine: str
) -> None:
    with answering(status, headers, body) as server:
        store = isotone.connect(url(server))
        assert server.asked == []
        assert store.capabilities == ENGINES[engine]
        assert store.capabilities == ENGINES[engine]
        assert server.asked == ["/localnodes"]


def test_who_does_not_answer_is_asked_again() -> None:
    with answering(200, {}, NODES) as server:
        port = server.server_address[1]
    store = isotone.connect(f"http://127.0.0.1:{port}")
    assert store.capabilities == ENGINES["dynamodb"]
    assert store.engine.known is None


@pytest.mark.parametrize(
    ("make", "engine"),
    [
        (lambda folder: isotone.connect(), "isotone"),
        (lambda folder: isotone.connect(folder / "a.db"), "isotone"),
        (lambda folder: isotone.connect(isotone.open()), "isotone"),
        (lambda folder: isotone.connect(isotone.open().client()), "isotone"),
        (lambda folder: isotone.connect(Tape()), "dynamodb"),
        (lambda folder: isotone.connect("dynamodb://eu-west-1", **AMAZON), "dynamodb"),
        (
            lambda folder: isotone.connect("https://dynamodb.eu-west-1.amazonaws.com", **AMAZON),
            "dynamodb",
        ),
        (lambda folder: isotone.connect("http://localhost:1", engine="extenddb"), "extenddb"),
        (lambda folder: isotone.connect("http://localhost:1?engine=extenddb"), "extenddb"),
        (
            lambda folder: isotone.connect("dynamodb://eu-west-1?engine=isotone", **AMAZON),
            "isotone",
        ),
    ],
)
def test_an_address_or_the_caller_names_it(
    make: Callable[[Path], isotone.Store],
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB", raising=False)
    with make(tmp_path) as store:
        assert store.engine.known == ENGINES[engine]


def test_a_boto3_client_is_known_by_its_endpoint() -> None:
    import boto3

    given = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    amazon = boto3.client("dynamodb", region_name="eu-west-1", **given)
    assert isotone.connect(amazon).engine.known == ENGINES["dynamodb"]
    with answering(200, {}, NODES) as server:
        client = boto3.client(
            "dynamodb", region_name="eu-west-1", endpoint_url=url(server), **given
        )
        assert isotone.connect(client).capabilities == ENGINES["alternator"]


def test_isotones_server_is_recognised() -> None:
    with isotone.open() as database, running_server(database) as served:
        assert isotone.connect(served).capabilities == ENGINES["isotone"]


@pytest.mark.parametrize("address", ["http://localhost:1", ":memory:"])
def test_an_unknown_engine_is_refused_with_the_known_ones(address: str) -> None:
    with pytest.raises(UsageError, match="'scylla' is not known; write one of alternator, azure-"):
        isotone.connect(address, engine="scylla")


def test_a_variant_of_an_engine() -> None:
    mine = dataclasses.replace(ENGINES["alternator"], streams=True)
    store = isotone.connect("http://localhost:1", capabilities=mine)
    assert store.capabilities == mine


def test_an_async_store_asks_when_it_is_awaited() -> None:
    async def main(server: _Asked) -> None:
        async with isotone.aconnect(url(server)) as store:
            ranked = SortedSet(store, "a", ranked=True)
            assert server.asked == []
            with pytest.raises(Unsupported, match="this SortedSet needs transactions, which Alt"):
                await ranked.zcard()
            assert server.asked == ["/localnodes"]
            with pytest.raises(Unsupported, match="leave out ranked=True"):
                SortedSet(store, "a", ranked=True)
            with pytest.raises(Unsupported, match=r"entity Person with unique nick needs"):
                await store.put(Person(email="a@b", nick="ann"))

    with answering(200, {}, NODES) as server:
        asyncio.run(main(server))
        assert server.asked == ["/localnodes"]


def test_an_async_store_continues_where_nothing_is_lacking() -> None:
    async def main(address: str) -> None:
        async with isotone.aconnect(address) as store:
            ranked = SortedSet(store, "a", ranked=True)
            await ranked.create_table()
            await ranked.zadd({"x": 1, "y": 2})
            assert await ranked.zrank("y") == 1

    with isotone.open() as database, running_server(database) as served:
        asyncio.run(main(served))


def test_tables_that_exist_are_compared_as_the_engine_keeps_them() -> None:
    """An engine that ignores projections has all attributes in every index: that is no difference."""
    wide = Table("wide", indexes={"by_b": Local("b")})
    narrow = Table("wide", indexes={"by_b": Local("b", projection="KEYS_ONLY")})
    with isotone.open() as database:
        plain = isotone.connect(database)
        plain.create_tables(wide)
        assert [each.what for each in plain.differences(narrow)] == [
            "projects ALL, declared is KEYS_ONLY"
        ]
        ignoring = Capabilities("Mine", index_projections=False)
        store = isotone.connect(database, capabilities=ignoring)
        assert store.differences(narrow) == []
        with pytest.warns(isotone.EngineWarning, match="index 'by_b' of table 'wide' stores all"):
            assert store.create_tables(narrow) == []
