"""GetItem and PutItem of a ten-attribute item inside the process, against the store's floor and moto."""

from __future__ import annotations

import itertools
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

import isotone
from bench import peers, requests
from bench.measuring import Effort, Row, Target, alternately

GET, PUT = "GetItem in the process", "PutItem in the process"
OURS, RAW_JSON, FLOOR = "Isotone client (memory)", "Isotone execute (memory)", "raw APSW (memory)"
DECODED = "raw APSW and decoding the JSON (memory)"
FILE, FILE_FLOOR = "Isotone client (file, durable)", "raw APSW (file, durable)"
MOTO = "boto3 on moto in the process"

TARGETS = (
    # From bytes to bytes, as the floor; then with Python dictionaries at both ends, as boto3's client.
    Target(GET, RAW_JSON, "at most", 3, FLOOR),
    Target(PUT, RAW_JSON, "at most", 6, FLOOR),
    Target(GET, OURS, "at most", 3, FLOOR),
    Target(PUT, OURS, "at most", 6, FLOOR),
    Target(GET, OURS, "at most", 1 / 100, MOTO),
)
MOTO_PROGRAM = """
import sys, json, time
sys.path.insert(0, {root!r})
import boto3
from moto import mock_aws
from bench import requests

with mock_aws():
    client = boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    client.create_table(**requests.SCHEMA)
    for number in range(100):
        client.put_item(**requests.put(number))
    def timed(call):
        for n in range(30): call(n)
        began = time.perf_counter()
        for n in range({calls}): call(n % 100)
        return (time.perf_counter() - began) / {calls} * 1e6
    print(json.dumps([timed(lambda n: client.get_item(**requests.get(n))), timed(lambda n: client.put_item(**requests.put(n)))]))
"""


class Raw:
    """The floor: the same bytes under the same kind of key, in SQLite and nothing else."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path)
        self._cursor = self._connection.cursor()
        if path != ":memory:":
            self._cursor.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL").fetchall()
        self._cursor.execute("CREATE TABLE t (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID")

    def put(self, key: bytes, value: bytes) -> None:
        self._cursor.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", (key, value))

    def get(self, key: bytes) -> Any:
        return self._cursor.execute("SELECT v FROM t WHERE k = ?", (key,)).fetchone()

    def close(self) -> None:
        self._connection.close()


def versions() -> Iterator[tuple[int, int]]:
    """Each item in one version, then in another, so that every put changes something."""
    for version in (1, 2):
        for number in range(requests.ROWS):
            yield number, version


def _row(number: int, version: int = 0) -> tuple[bytes, bytes]:
    key = requests.key(number)
    text = key["pk"]["S"] + "\0" + key["sk"]["S"]
    return number.to_bytes(8, "big") + text.encode(), json.dumps(
        requests.item(number, version)
    ).encode()


def cycled(call: Callable[[Any], object], arguments: list[Any]) -> Callable[[], object]:
    """A function that makes the next of these calls each time."""
    turn = itertools.cycle(arguments)
    return lambda: call(next(turn))


@contextmanager
def _subjects(memory: bool) -> Iterator[tuple[dict[str, Callable[[], object]], ...]]:
    numbers = range(requests.ROWS)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=peers.data_folder()))
        raw = Raw(":memory:" if memory else str(Path(folder) / "raw.db"))
        stack.callback(raw.close)
        database = stack.enter_context(
            isotone.open(":memory:" if memory else Path(folder) / "isotone.db")
        )
        client = database.client()
        client.create_table(**requests.SCHEMA)
        for number in numbers:
            client.put_item(**requests.put(number))
            raw.put(*_row(number))
        rows = [_row(number) for number in numbers]
        gets = [requests.get(number) for number in numbers]
        puts = [requests.put(*one) for one in versions()]
        ours, floor = (OURS, FLOOR) if memory else (FILE, FILE_FLOOR)
        reads = {
            ours: cycled(lambda request: client.get_item(**request), gets),
            floor: cycled(raw.get, [key for key, _ in rows]),
        }
        writes = {
            ours: cycled(lambda request: client.put_item(**request), puts),
            floor: cycled(lambda row: raw.put(*row), [_row(*one) for one in versions()]),
        }
        if memory:
            reads[DECODED] = cycled(
                lambda key: msgspec.json.decode(raw.get(key)[0]), [k for k, _ in rows]
            )
            for subjects, operation, asked in ((reads, "GetItem", gets), (writes, "PutItem", puts)):
                bodies = [json.dumps(request).encode() for request in asked]
                subjects[RAW_JSON] = cycled(
                    lambda body, operation=operation: database.send(operation, body), bodies
                )
        yield reads, writes


def _moto(effort: Effort) -> list[Row]:
    calls = max(50, effort.calls // 10)
    program = MOTO_PROGRAM.format(root=str(peers.ROOT), calls=calls)
    taken: list[list[float]] = []
    try:
        for _ in range(min(3, effort.rounds)):
            done = subprocess.run(
                [str(peers.MOTO / "python"), "-c", program],
                capture_output=True,
                text=True,
                check=True,
            )
            taken.append(json.loads(done.stdout.splitlines()[-1]))
    except (OSError, subprocess.CalledProcessError) as error:
        return [Row(name, MOTO, "µs", absent=str(error)) for name in (GET, PUT)]
    gets, puts = zip(*taken, strict=True)
    return [Row(GET, MOTO, "µs", list(gets)), Row(PUT, MOTO, "µs", list(puts))]


def run(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    for memory in (True, False):
        with _subjects(memory) as (reads, writes):
            rows += alternately(GET, reads, effort)
            rows += alternately(PUT, writes, effort if memory else _fewer(effort))
    return rows + _moto(effort)


def _fewer(effort: Effort) -> Effort:
    """Durable writes wait for the disk: a tenth of the calls says as much."""
    return Effort(effort.seconds, effort.rounds, max(50, effort.calls // 10), effort.items)
