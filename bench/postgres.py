"""A database in PostgreSQL beside plain SQL on the same server: reads, writes of one and two servers, imports, growth.

    python -m bench postgres [--rounds N]

The floor is what psycopg does with the same rows, one statement after the other from one connection. A server
on a durable file makes the same requests, to show what the move costs. PostgreSQL listens on a Unix socket, on the disk of the
repository, with its usual settings. The load generator shares the cores with all of them.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final

from tests.postgres_server import PostgresServer, missing

import isotone
from bench import load, over_http, peers, requests
from bench.measuring import Effort, Row, Target, timed
from bench.peers import Running, Server

GET = "GetItem, 32 connections"
PUT = "durable PutItem with an index, 64 connections"
QUERY = "Query of 100, 32 connections"
SHARE = "share of the slower of two servers"
BESIDE = "p99 of GetItem beside a server that writes"
IMPORT = "items imported"
GET_LARGE, PUT_LARGE = "GetItem of a large table", "PutItem of a large table"
OPENED = "first item after opening"

SERVED, FLOOR, TWO = "isotone serve", "psycopg", "two servers"
LARGE, SMALL = "large", "10,000 items"
TARGETS: Final = (
    Target(GET, SERVED, "at least", 1.5, FLOOR),
    Target(PUT, SERVED, "at least", 3, FLOOR),
    Target(SHARE, TWO, "at least", 0.4),
    Target(QUERY, SERVED, "at least", 0.5, FLOOR),
    Target(BESIDE, "beside", "at most", 3, "alone"),
    Target(IMPORT, "add_frozen", "at least", 0.2, "COPY"),
    Target(GET_LARGE, LARGE, "at most", 1.3, SMALL),
    Target(PUT_LARGE, LARGE, "at most", 1.3, SMALL),
    Target(OPENED, LARGE, "at most", 100),
)
_WRITES: Final = 1000  # a second, of the other server
_SMALL: Final = 10_000
_READ: Final = 500  # rows of each table


def run(effort: Effort) -> list[Row]:
    if why := missing():
        return [Row(GET, SERVED, "/s", absent=why)]
    with PostgresServer() as postgres:
        return [
            *_served(postgres, effort),
            *_imported(postgres, effort),
        ]


def _server(address: str, name: str = SERVED) -> Server:
    return Server(
        name, lambda port, folder: peers.isotone(port, address, "--no-workbench"), durable=True
    )


# Served


def _served(postgres: PostgresServer, effort: Effort) -> Iterator[Row]:
    samples: dict[tuple[str, str], list[float]] = {}

    def note(measure: str, subject: str, value: float) -> None:
        samples.setdefault((measure, subject), []).append(value)

    with ExitStack() as stack:
        address = postgres.new_address()
        one, other = (stack.enter_context(peers.started(_server(address))) for _ in range(2))
        over_http.fill(one)
        one.ask("CreateTable", requests.INDEXED_SCHEMA)
        floor = stack.enter_context(_Floor(postgres))
        puts, gets, queries = _requests(one)
        on_file = stack.enter_context(peers.started(peers.ISOTONE_FILE))
        over_http.fill(on_file)
        on_file.ask("CreateTable", requests.INDEXED_SCHEMA)
        to_file = _requests(on_file)
        for _ in range(effort.rounds):
            note(GET, SERVED, load.run(one.port, gets, effort.seconds, 32).per_second)
            note(GET, FLOOR, _rate(floor.get, effort.seconds))
            note(QUERY, SERVED, load.run(one.port, queries, effort.seconds, 32).per_second)
            note(QUERY, FLOOR, _rate(floor.query, effort.seconds))
            note(PUT, SERVED, load.run(one.port, puts, effort.seconds, 64).per_second)
            note(PUT, FLOOR, _rate(floor.put, effort.seconds))
            note(SHARE, TWO, _share(one, other, puts, effort.seconds))
            for measure, sent, connections in zip(
                (PUT, GET, QUERY), to_file, (64, 32, 32), strict=True
            ):
                rate = load.run(on_file.port, sent, effort.seconds, connections).per_second
                note(measure, peers.ISOTONE_FILE.name, rate)
            note(BESIDE, "alone", load.run(one.port, gets, effort.seconds, 1).p99_us)
            with _writing(other):
                note(BESIDE, "beside", load.run(one.port, gets, effort.seconds, 1).p99_us)
    units = {SHARE: "", BESIDE: "µs"}
    for (measure, subject), found in samples.items():
        yield Row(measure, subject, units.get(measure, "/s"), found)


def _requests(running: Running) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """The puts, gets and queries of a server."""
    puts = [
        requests.raw(
            "PutItem", {**requests.put(number), "TableName": requests.INDEXED}, running.port
        )
        for number in range(requests.ROWS)
    ]
    gets, queries = (_raw(made(running), running) for made in (over_http.gets, over_http.queries))
    return puts, gets, queries


def _raw(asked: Iterator[tuple[str, dict[str, Any]]], running: Running) -> list[bytes]:
    return [requests.raw(operation, request, running.port) for operation, request in asked]


def _rate(call: Callable[[], object], seconds: float) -> float:
    """Calls a second, one after the other."""
    until, calls = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        call()
        calls += 1
    return calls / seconds


def _share(one: Running, other: Running, puts: list[bytes], seconds: float) -> float:
    """The part of all writes that the slower of two servers made, each under the same load."""
    with ThreadPoolExecutor(2) as pool:
        loads = pool.map(lambda each: load.run(each.port, puts, seconds, 32), (one, other))
        rates = [each.per_second for each in loads]
    return min(rates) / sum(rates)


class _writing:  # noqa: N801 - reads as a block
    """A thousand puts a second through a server, in batches of ten, while the block lasts."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        for first in itertools.count(0, 10):
            items = [requests.item(number % requests.ROWS) for number in range(first, first + 10)]
            puts = [{"PutRequest": {"Item": item}} for item in items]
            self._running.ask("BatchWriteItem", {"RequestItems": {requests.INDEXED: puts}})
            if self._stopped.wait(10 / _WRITES):
                return


class _Floor:
    """The same rows by plain SQL."""

    def __init__(self, postgres: PostgresServer) -> None:
        import psycopg

        self._connection = psycopg.connect(postgres.libpq_address, autocommit=True)
        self._number = 0

    def __enter__(self) -> _Floor:
        table = "(key bytea PRIMARY KEY, value bytea NOT NULL)"
        for name in ("floor", "floor_index"):
            self._connection.execute(f"CREATE TABLE {name} {table}")
        for number in range(requests.ROWS):
            self._number = number
            self.put()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _row(self, number: int) -> tuple[bytes, bytes]:
        key = requests.key(number)
        return json.dumps(key).encode(), json.dumps(requests.item(number)).encode()

    def get(self) -> None:
        self._number = (self._number + 7) % requests.ROWS
        sql = "SELECT value FROM floor WHERE key = %b"
        self._connection.execute(sql, [self._row(self._number)[0]], binary=True).fetchone()

    def put(self) -> None:
        self._number = (self._number + 7) % requests.ROWS
        key, value = self._row(self._number)
        conflict = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        sql = (
            f"WITH one AS (INSERT INTO floor VALUES (%b, %b) {conflict}) "
            f"INSERT INTO floor_index VALUES (%b, %b) {conflict}"
        )
        self._connection.execute(sql, [key, value, key, value], binary=True)

    def query(self) -> None:
        sql = f"SELECT value FROM floor WHERE key >= %b ORDER BY key LIMIT {requests.PARTITION}"
        self._connection.execute(sql, [b""], binary=True).fetchall()


# Imported, and grown


def _imported(postgres: PostgresServer, effort: Effort) -> Iterator[Row]:
    address = postgres.new_address()
    with isotone.open() as source, isotone.open(address) as target:
        small = {**requests.SCHEMA, "TableName": "Small"}
        for database in (source, target):
            database.execute("CreateTable", requests.SCHEMA)
            database.execute("CreateTable", small)
        _fill(source, requests.TABLE, effort.items)
        _fill(source, "Small", _SMALL)
        with source.frozen([requests.TABLE, "Small"]) as pages_of:
            _add(target, "Small", pages_of("Small"))
            pages = list(pages_of(requests.TABLE))
        began = time.perf_counter()
        _add(target, requests.TABLE, iter(pages))
        yield Row(IMPORT, "add_frozen", "/s", [effort.items / (time.perf_counter() - began)])
        yield Row(IMPORT, "COPY", "/s", [effort.items / _copied(postgres, pages)])
        yield from _grown(target, effort)
    yield Row(OPENED, LARGE, "ms", [_first_item(address) for _ in range(effort.rounds)])


def _grown(target: isotone.Database, effort: Effort) -> list[Row]:
    """Gets and puts of as many rows of a small table and of a large one, the tables in turn."""
    samples: dict[tuple[str, str], list[float]] = {}
    tables = {SMALL: ("Small", _SMALL), LARGE: (requests.TABLE, effort.items)}
    places = {
        subject: itertools.cycle(range(0, size, size // _READ))
        for subject, (_, size) in tables.items()
    }
    for _, (subject, (name, _)) in itertools.product(range(effort.rounds), tables.items()):
        numbers = places[subject]

        def get(name: str = name, numbers: Iterator[int] = numbers) -> object:
            key = requests.key(next(numbers))
            return target.execute("GetItem", {"TableName": name, "Key": key})

        def put(name: str = name, numbers: Iterator[int] = numbers) -> object:
            item = requests.item(next(numbers), 1)
            return target.execute("PutItem", {"TableName": name, "Item": item})

        for measure, call in ((GET_LARGE, get), (PUT_LARGE, put)):
            taken = timed(call, effort.calls // 3)
            samples.setdefault((measure, subject), []).append(taken)
    return [Row(measure, subject, "µs", taken) for (measure, subject), taken in samples.items()]


def _fill(database: isotone.Database, table: str, count: int) -> None:
    with database.engine.writing:
        for number in range(count):
            database.execute("PutItem", {"TableName": table, "Item": requests.item(number)})


def _add(database: isotone.Database, table: str, pages: Iterator[Any]) -> None:
    for page in pages:
        database.add_frozen(table, page)


def _copied(postgres: PostgresServer, pages: list[Any]) -> float:
    """Seconds that COPY takes for the same rows."""
    import psycopg

    with psycopg.connect(postgres.libpq_address) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE copied (key bytea PRIMARY KEY, value bytea NOT NULL)")
        began = time.perf_counter()
        with cursor.copy("COPY copied FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["bytea", "bytea"])
            for page in pages:
                for key, value, _ in page:
                    copy.write_row((key, value))
        connection.commit()
        return time.perf_counter() - began


def _first_item(address: str) -> float:
    began = time.perf_counter()
    with isotone.open(address) as database:
        database.execute("GetItem", {"TableName": requests.TABLE, "Key": requests.key(1)})
        return (time.perf_counter() - began) * 1e3
