"""The same database in memory, in a file, and behind HTTP, as functions from request to answer."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.postgres_server import WANTED, database_address

import isotone
from isotone.errors import ApiError
from isotone.server import running_server

Answer = tuple[str, dict[str, Any]]
Ask = Callable[[str, dict[str, Any]], Answer]
"""Answers ("ok", response) or (error code, error body)."""


def in_process(database: isotone.Database) -> Ask:
    def ask(operation: str, request: dict[str, Any]) -> Answer:
        try:
            return "ok", json.loads(database.send(operation, json.dumps(request).encode()))
        except ApiError as error:
            return error.code, json.loads(json.dumps(error.body(), default=_raw))

    return ask


def in_turn(*databases: isotone.Database) -> Ask:
    """Ask several databases over the same data, one after the other."""
    asks = itertools.cycle(map(in_process, databases))
    return lambda operation, request: next(asks)(operation, request)


@contextlib.contextmanager
def over_http(url: str) -> Iterator[Ask]:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=0",
        "X-Amz-Date": "20260101T000000Z",
    }

    def ask(operation: str, request: dict[str, Any]) -> Answer:
        target = {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        connection.request("POST", "/", json.dumps(request), {**headers, **target})
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status == 200:
            return "ok", answer
        return answer["__type"].partition("#")[2], answer

    with contextlib.closing(connection):
        yield ask


@contextlib.contextmanager
def all_backends(folder: Path) -> Iterator[dict[str, tuple[Ask, isotone.Database]]]:
    """Three databases, alike but for where they live; with `make postgres` the first is in PostgreSQL, and asked in turn
    by two that share it.
    """
    address = database_address()
    with (
        isotone.open(address) as memory,
        isotone.open(address) as beside,
        isotone.open(folder / "file.db", durability="none") as file,
        isotone.open(":memory:") as served,
        running_server(served) as url,
        over_http(url) as ask_over_http,
    ):
        yield {
            "memory": (
                in_turn(memory, beside) if WANTED else in_process(memory),
                memory,
            ),
            "file": (in_process(file), file),
            "http": (ask_over_http, served),
        }


def _raw(value: Any) -> Any:
    return json.loads(bytes(value))
