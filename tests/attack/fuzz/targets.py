"""What is fuzzed: each target opens something, and returns a function of bytes that fails only if Isotone does."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.cli.test_invalid_arguments import NOT_TRIED

import isotone
from isotone.cli.program import COMMANDS
from isotone.cli.program import run as run_command
from isotone.errors import ApiError, InternalServerError, IsotoneError
from isotone.server import running_server

Run = Callable[[bytes], None]

_TABLE: Final = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
_ITEM: Final = {
    "p": {"S": "x"},
    "n": {"N": "1"},
    "l": {"L": [{"M": {"a": {"S": "y"}}}]},
    "s": {"SS": ["a", "b"]},
}
_VALUES: Final = {":v": {"S": "x"}, ":n": {"N": "1"}, ":l": {"L": []}, ":s": {"SS": ["a"]}}


@contextmanager
def _database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        _fill(database)
        yield database


def _fill(database: isotone.Database) -> None:
    if "tab" not in database.execute("ListTables", {})["TableNames"]:
        database.execute("CreateTable", _TABLE)
    database.execute("PutItem", {"TableName": "tab", "Item": _ITEM})


def _answer(database: isotone.Database, operation: str, body: bytes) -> bytes:
    """The answer in JSON, or the service's error. That of its own failure is one for us."""
    try:
        answer = database.send(operation, body)
    except InternalServerError:
        raise
    except ApiError:
        return b"{}"
    json.loads(answer)
    return answer


@contextmanager
def requests() -> Iterator[Run]:
    """An action and its body, with a line feed in between."""
    with _database() as database:

        def run(given: bytes) -> None:
            operation, _, body = given.partition(b"\n")
            _answer(database, operation.decode("latin-1"), body)
            _fill(database)

        yield run


@contextmanager
def expressions() -> Iterator[Run]:
    """One text as each kind of expression."""
    with _database() as database:
        key = {"TableName": "tab", "Key": {"p": {"S": "x"}}}
        names = {"#n": "n", "#p": "p"}

        def run(given: bytes) -> None:
            text = given.decode(errors="replace")
            for operation, request in (
                ("Scan", {"TableName": "tab", "FilterExpression": text}),
                ("Query", {"TableName": "tab", "KeyConditionExpression": text}),
                ("GetItem", {**key, "ProjectionExpression": text}),
                ("UpdateItem", {**key, "UpdateExpression": text}),
                ("DeleteItem", {**key, "ConditionExpression": text}),
            ):
                with_names: dict[str, Any] = dict(request)
                used = {name: each for name, each in names.items() if name in text}
                values = {name: each for name, each in _VALUES.items() if name in text}
                if used:
                    with_names["ExpressionAttributeNames"] = used
                if values and operation != "GetItem":
                    with_names["ExpressionAttributeValues"] = values
                _answer(database, operation, json.dumps(with_names).encode())
            _fill(database)

        yield run


@contextmanager
def partiql() -> Iterator[Run]:
    """A statement, without parameters and with one."""
    with _database() as database:

        def run(given: bytes) -> None:
            text = given.decode(errors="replace")
            for parameters in ({}, {"Parameters": [{"S": "x"}]}):
                body = json.dumps({"Statement": text, **parameters}).encode()
                _answer(database, "ExecuteStatement", body)
            _fill(database)

        yield run


class _ServerFailed(Exception):
    """A 500, or an answer that is no HTTP."""


@contextmanager
def http() -> Iterator[Run]:
    """The bytes of one connection, sent to a server at once. What arrives must be whole answers, none of them a 500."""
    with _database() as database, running_server(database) as url:
        parts = urlsplit(url)

        def run(given: bytes) -> None:
            with socket.create_connection((parts.hostname, parts.port), timeout=10) as dialled:
                with contextlib.suppress(ConnectionError):
                    dialled.sendall(given)
                    dialled.shutdown(socket.SHUT_WR)
                received = b""
                with contextlib.suppress(ConnectionError):
                    while chunk := dialled.recv(65536):
                        received += chunk
            # The service, too, answers 500 to a body that is not compressed as it says.
            failures = received.count(b"HTTP/1.1 500") - received.count(b"not compressed as its")
            if failures > 0 or (received and not received.startswith(b"HTTP/1.1 ")):
                raise _ServerFailed(received[:300])

        yield run


@contextmanager
def files() -> Iterator[Run]:
    """Places and bits of a database file that are changed: three bytes each."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder, "source.db"), Path(folder, "changed.db")
        with isotone.open(source, durability="none") as database:
            _fill(database)
            for number in range(200):
                item = {"p": {"S": str(number)}, "text": {"S": "t" * number}}
                database.execute("PutItem", {"TableName": "tab", "Item": item})
        whole = source.read_bytes()

        def run(given: bytes) -> None:
            content = bytearray(whole)
            for place in range(0, len(given) - 2, 3):
                where = int.from_bytes(given[place : place + 2], "big")
                # Both the head, whose bytes mean most, and everything else.
                index = where % 4096 if where & 1 else where * 37 % len(content)
                content[index] ^= given[place + 2]
            path.write_bytes(content)
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            with contextlib.suppress(IsotoneError), isotone.open(path) as database:
                database.check()
                for operation, request in (
                    ("Scan", {"TableName": "tab"}),
                    ("GetItem", {"TableName": "tab", "Key": {"p": {"S": "7"}}}),
                    ("PutItem", {"TableName": "tab", "Item": _ITEM}),
                ):
                    with contextlib.suppress(IsotoneError):
                        database.execute(operation, request)

        yield run


@contextmanager
def command_lines() -> Iterator[Run]:
    """Words of a command line, with a line feed in between."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["XDG_STATE_HOME"] = folder
        stdin = sys.stdin
        try:

            def run(given: bytes) -> None:
                words = os.fsdecode(given).split("\n")
                if (
                    words[0] in NOT_TRIED
                    or words[0] not in COMMANDS
                    or any("/" in w for w in words)
                ):
                    return
                # Each input begins in an empty place, except for one database.
                for path in Path(folder).iterdir():
                    if path.is_file():
                        path.unlink()
                with isotone.open("d.db", durability="none") as database:
                    _fill(database)
                sys.stdin = io.StringIO()
                told = io.StringIO()
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
                    try:
                        code = run_command(words)
                    except SystemExit as leaving:  # of argparse
                        code = int(str(leaving.code))
                assert code in (0, 1, 2), code
                assert "Traceback" not in told.getvalue(), told.getvalue()

            yield run
        finally:
            sys.stdin = stdin
            os.chdir(here)


TARGETS: Final[dict[str, Callable[[], AbstractContextManager[Run]]]] = {
    "http": http,
    "requests": requests,
    "expressions": expressions,
    "partiql": partiql,
    "files": files,
    "commands": command_lines,
}
