"""What one client feels beside a heavy one: the latencies of GetItem on a served file, while another client works.

    python -m bench.heavy_clients [SECONDS [WORDS]]      # WORDS: only the clients whose name has them

Each heavy client is a process that sends its request again and again on one connection; GetItem comes from this process,
one call after the other. The first row has nobody beside it. On a busy machine all rows are slower, so the first one is
the measure. The last rows have another process that holds the write lock of the file, stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

SECONDS = 10.0
SMALL_ITEMS = 90_000
_TABLE = {
    "TableName": "small",
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
_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "5" * 64,
}
_NEW = "00000001"  # in a request: another number each time
_KEY = {"p": {"S": "one"}, "s": {"N": "0"}}
_OF_SMALL = {"TableName": "small"}
Request: TypeAlias = tuple[str, dict[str, Any]]
GET: Final[Request] = ("GetItem", {**_OF_SMALL, "Key": _KEY})
PUT: Final[Request] = ("PutItem", {**_OF_SMALL, "Item": {**_KEY, "v": {"S": "x" * 100}}})
_QUERY = {
    **_OF_SMALL,
    "KeyConditionExpression": "p = :p",
    "ExpressionAttributeValues": {":p": {"S": "a"}},
}


def _values(count: int) -> dict[str, Any]:
    return {f":v{number}": {"N": str(-number - 1)} for number in range(count)}


def _any_of(condition: str, count: int) -> str:
    return " OR ".join(condition.format(number) for number in range(count))


_LISTS = [{"p": {"S": "list"}, "s": {"N": str(number)}} for number in range(2)]
_CONTAINS = _any_of("contains(l, :v{})", 100)


def heavy() -> dict[str, Request]:
    """The requests, by what is heavy about them."""
    return {**heavy_reads(), **_heavy_writes()}


def heavy_reads() -> dict[str, Request]:
    names = [f"a{number}" for number in range(700)]
    return {
        f"Query, a page of {SMALL_ITEMS:,} items": ("Query", _QUERY),
        "Scan, the same, counted": ("Scan", {**_OF_SMALL, "Select": "COUNT"}),
        "Scan, 150 comparisons with each item": (
            "Scan",
            {
                **_OF_SMALL,
                "FilterExpression": _any_of("s = :v{}", 150),
                "ExpressionAttributeValues": _values(150),
            },
        ),
        "Scan, IN of 98 values": (
            "Scan",
            {
                **_OF_SMALL,
                "FilterExpression": f"s IN ({','.join(_values(98))})",
                "ExpressionAttributeValues": _values(98),
            },
        ),
        "Scan, a projection of 700 names": (
            "Scan",
            {**_OF_SMALL, "ProjectionExpression": ",".join(names)},
        ),
        "Scan, 100,000 names to get": (
            "Scan",
            {**_OF_SMALL, "AttributesToGet": [f"a{number}" for number in range(100_000)]},
        ),
        "Query, contains × 100 on two long lists": (
            "Query",
            {
                **_OF_SMALL,
                "KeyConditionExpression": "p = :p",
                "FilterExpression": _CONTAINS,
                "ExpressionAttributeValues": {":p": {"S": "list"}, **_values(100)},
            },
        ),
        "SELECT of PartiQL, the same": (
            "ExecuteStatement",
            {
                "Statement": "SELECT * FROM small WHERE p = 'list' AND ("
                + _any_of("contains(l, -{})", 100).replace("-0", "-999")
                + ")"
            },
        ),
        "SELECT of PartiQL, all items": ("ExecuteStatement", {"Statement": "SELECT * FROM small"}),
        "BatchGetItem, two long lists, a path in each": (
            "BatchGetItem",
            {"RequestItems": {"small": {"Keys": _LISTS, "ProjectionExpression": "l[0]"}}},
        ),
        "BatchExecuteStatement, a path in each of two long lists": (
            "BatchExecuteStatement",
            {
                "Statements": [
                    {"Statement": f"SELECT l[0] FROM small WHERE p = 'list' AND s = {number}"}
                    for number in range(2)
                ]
            },
        ),
    }


def _heavy_writes() -> dict[str, Request]:
    check = {"ConditionExpression": _CONTAINS, "ExpressionAttributeValues": _values(100)}
    expected = {
        name: {"ComparisonOperator": "CONTAINS", "AttributeValueList": [{"N": str(-number - 1)}]}
        for number, name in enumerate(["l", *(f"x{each}" for each in range(99))])
    }
    new = " OR ".join(f"a{number}x{_NEW} = :v" for number in range(148))
    return {
        "PutItem, condition contains × 100 on a long list": (
            "PutItem",
            {**_OF_SMALL, "Item": _LISTS[0], **check},
        ),
        "PutItem, Expected with CONTAINS": (
            "PutItem",
            {**_OF_SMALL, "Item": _LISTS[0], "Expected": expected, "ConditionalOperator": "OR"},
        ),
        "UpdateItem, the lengths of a long list × 100": (
            "UpdateItem",
            {
                **_OF_SMALL,
                "Key": _LISTS[0],
                "UpdateExpression": "SET v = :v0",
                "ConditionExpression": _any_of("size(l) = :v{}", 100),
                "ExpressionAttributeValues": _values(100),
            },
        ),
        "TransactWriteItems, contains × 100 on each of two long lists": (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"ConditionCheck": {**_OF_SMALL, "Key": key, **check}} for key in _LISTS
                ]
            },
        ),
        "UPDATE of PartiQL, contains × 100 on a long list": (
            "ExecuteStatement",
            {
                "Statement": "UPDATE small SET v = 1 WHERE p = 'list' AND s = 0 AND ("
                + _any_of("contains(l, -{})", 100).replace("-0", "-999")
                + ")"
            },
        ),
        "TransactWriteItems, 20 conditions of 3 KB, new each time": (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {
                        "Delete": {
                            **_OF_SMALL,
                            "Key": {"p": {"S": "none"}, "s": {"N": str(number)}},
                            "ConditionExpression": f"b{number} = :v OR {new}",
                            "ExpressionAttributeValues": {":v": {"N": "1"}},
                        }
                    }
                    for number in range(20)
                ]
            },
        ),
        "PutItem of 30,000 numbers": (
            "PutItem",
            {
                **_OF_SMALL,
                "Item": {"p": {"S": "big"}, "s": {"N": "2"}, "l": {"L": [{"N": "7"}] * 30_000}},
            },
        ),
        "PutItem of 390 KB": (
            "PutItem",
            {**_OF_SMALL, "Item": {"p": {"S": "big"}, "s": {"N": "1"}, "b": {"S": "x" * 390_000}}},
        ),
    }


class Peer:
    """One connection to a server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=600)

    def send(self, operation: str, body: bytes) -> tuple[int, bytes]:
        headers = {**_HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        self._connection.request("POST", "/", body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def ask(self, operation: str, request: dict[str, Any]) -> None:
        status, answer = self.send(operation, json.dumps(request).encode())
        if status != 200 and b"ConditionalCheckFailed" not in answer:
            raise SystemExit(f"{operation}: {status} {answer[:300]!r}")


@contextlib.contextmanager
def served(path: str, *options: str) -> Iterator[str]:
    """A server of a file, in a process of its own."""
    command = [sys.executable, "-m", "isotone", "serve", path, "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        try:
            yield found[0]
        finally:
            server.terminate()


def load(url: str) -> None:
    """The items that the heavy clients read."""
    peer = Peer(url)
    peer.ask("CreateTable", _TABLE)
    peer.ask(*PUT)
    for number in range(2):
        many = [{"N": str(each % 10)} for each in range(60_000)]
        item = {"p": {"S": "list"}, "s": {"N": str(number)}, "l": {"L": many}}
        peer.ask("PutItem", {**_OF_SMALL, "Item": item})
    for start in range(0, SMALL_ITEMS, 25):
        puts = [
            {"PutRequest": {"Item": {"p": {"S": "a"}, "s": {"N": str(number)}}}}
            for number in range(start, start + 25)
        ]
        peer.ask("BatchWriteItem", {"RequestItems": {"small": puts}})


def latencies(url: str, seconds: float, request: Request = GET) -> list[float]:
    """Milliseconds of each call of a small request, one after the other."""
    peer, operation, body = Peer(url), request[0], json.dumps(request[1]).encode()
    found, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        status, _ = peer.send(operation, body)
        found.append((time.perf_counter() - began) * 1000)
        assert status == 200
    return found


@contextlib.contextmanager
def beside(url: str, name: str) -> Iterator[None]:
    """A heavy client in a process of its own, which has had its first answer."""
    command = [sys.executable, "-m", "bench.heavy_clients", "--heavy", url, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        client.stdout.readline()
        try:
            yield
        finally:
            client.kill()


def be_heavy(url: str, name: str) -> None:
    operation, request = heavy()[name]
    peer, body = Peer(url), json.dumps(request).encode()
    peer.ask(operation, request)
    print("ready", flush=True)
    for number in count(2):
        peer.send(operation, body.replace(_NEW.encode(), b"%08d" % number))


@contextlib.contextmanager
def held(path: str) -> Iterator[None]:
    """The write lock of the file is held by a process that is stopped."""
    source = (
        "import sys, time; from isotone.storage.sqlite import SQLiteStore as S; s = S(sys.argv[1])\n"
        "with s.transaction(): print('held', flush=True); time.sleep(3600)"
    )
    command = [sys.executable, "-c", source, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        os.kill(holder.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            holder.kill()


def row(name: str, found: list[float]) -> str:
    p99 = quantiles(found, n=100)[98]
    return f"| {name} | {median(found):.2f} | {p99:.1f} | {max(found):.1f} | {len(found):,} |"


def main(seconds: float, words: str = "") -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "heavy.db")
        with served(path, "--durability", "none") as url:
            load(url)
        print("| beside GetItem | median, ms | p99, ms | slowest, ms | calls |")
        print("|---|---:|---:|---:|---:|")
        with served(path) as url:
            print(row("nobody", latencies(url, seconds)), flush=True)
            for name in [name for name in heavy() if words in name]:
                with beside(url, name):
                    print(row(name, latencies(url, seconds)), flush=True)
            with held(path):
                name = "a stopped process that holds the lock of the file"
                print(row(name, latencies(url, seconds)), flush=True)
                put = next(name for name in heavy() if name.startswith("PutItem of"))
                command = [sys.executable, "-m", "bench.heavy_clients", "--heavy", url, put]
                with subprocess.Popen(command, stderr=subprocess.DEVNULL) as client:
                    print(row("the same, and a client that writes", latencies(url, seconds)))
                    client.kill()
    print(f"\nLoad of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    if "--heavy" in sys.argv:
        be_heavy(*sys.argv[2:])
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS, " ".join(sys.argv[2:]))
