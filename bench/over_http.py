"""GetItem, PutItem and Query over HTTP: eight connections, one server process, our peers beside us."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from bench import load, peers, requests
from bench.measuring import Effort, Row, Target
from bench.peers import Running, Server

GET, PUT, QUERY = "GetItem over HTTP", "PutItem over HTTP", "Query of 100 items over HTTP"
WARM_UP = 3.0  # seconds of load that nobody counts: the JITs of Java and V8 need them
DISTINCT = 512  # different requests that the load goes through

READERS = (
    peers.ISOTONE_MEMORY,
    peers.ISOTONE_FILE,
    peers.DYNALITE_MEMORY,
    peers.DYNAMODB_LOCAL,
    peers.MOTO_SERVER,
    peers.DYNOXIDE_MEMORY,
    peers.DYNOXIDE_FILE,
)
WRITERS = tuple(server for server in READERS if server is not peers.MOTO_SERVER)

OURS, DURABLE = peers.ISOTONE_MEMORY.name, peers.ISOTONE_FILE.name
TARGETS = (
    Target(GET, OURS, "at least", 3, peers.DYNALITE_MEMORY.name),
    Target(GET, OURS, "at least", 10, peers.DYNAMODB_LOCAL.name),
    Target(GET, OURS, "at least", 40, peers.MOTO_SERVER.name),
    Target(GET, OURS, "at least", 1, peers.DYNOXIDE_MEMORY.name),
    Target(PUT, DURABLE, "at least", 1, peers.DYNALITE_MEMORY.name),
    Target(PUT, DURABLE, "at least", 5, peers.DYNAMODB_LOCAL.name),
    Target(PUT, DURABLE, "at least", 1, peers.DYNOXIDE_FILE.name),
    Target(QUERY, OURS, "at least", 3, peers.DYNALITE_MEMORY.name),
)


def fill(running: Running) -> None:
    """The table with its items."""
    running.ask("CreateTable", requests.SCHEMA)
    for first in range(0, requests.ROWS, 25):
        batch = [
            {"PutRequest": {"Item": requests.item(number)}} for number in range(first, first + 25)
        ]
        running.ask("BatchWriteItem", {"RequestItems": {requests.TABLE: batch}})


def gets(running: Running) -> Iterator[tuple[str, dict[str, Any]]]:
    chosen = random.Random(1)
    for _ in range(DISTINCT):
        yield "GetItem", requests.get(chosen.randrange(requests.ROWS))


def puts(running: Running) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every put changes what is there: we do not write again what is there already, and so would win
    a race that is none."""
    numbers = list(range(requests.ROWS))
    for version in range(1, 5):
        random.Random(version).shuffle(numbers)
        for number in numbers:
            yield "PutItem", requests.put(number, version)


def queries(running: Running) -> Iterator[tuple[str, dict[str, Any]]]:
    for partition in range(requests.ROWS // requests.PARTITION):
        yield "Query", requests.query(partition)


def check(running: Running, operation: str, request: dict[str, Any]) -> None:
    """The answer must be right before its speed counts."""
    answer = running.ask(operation, request)
    if operation == "GetItem" and set(answer["Item"]) != set(requests.item(0)):
        raise RuntimeError(f"{running.server.name} answered {answer}")
    if operation == "Query" and (answer["Count"], len(answer["Items"])) != (100, 100):
        raise RuntimeError(f"{running.server.name} answered {answer['Count']} items")


Requests = Callable[[Running], Iterator[tuple[str, dict[str, Any]]]]


def measure(name: str, servers: tuple[Server, ...], made: Requests, effort: Effort) -> list[Row]:
    """All servers are up at once; each round loads one after the other."""
    rows: list[Row] = []
    with ExitStack() as stack:
        loads: list[tuple[Running, list[bytes]]] = []
        for server in (*servers, peers.CONSTANT):
            try:
                loads.append(_prepared(stack, server, made))
            except (RuntimeError, OSError, KeyError) as error:
                rows.append(Row(name, server.name, "/s", absent=str(error) or type(error).__name__))
        rates: dict[str, list[load.Load]] = {running.server.name: [] for running, _ in loads}
        for running, sent in loads:
            load.run(running.port, sent, min(WARM_UP, effort.seconds))
        for _ in range(effort.rounds):
            for running, sent in loads:
                rates[running.server.name].append(load.run(running.port, sent, effort.seconds))
    return rows + [_row(name, subject, seen) for subject, seen in rates.items()]


def _prepared(stack: ExitStack, server: Server, made: Requests) -> tuple[Running, list[bytes]]:
    if not server.is_here:
        raise RuntimeError("not installed (python -m bench.peers)")
    running = stack.enter_context(peers.started(server))
    asked = list(made(running))
    if server is not peers.CONSTANT:
        fill(running)
        for operation, request in asked[:20]:
            check(running, operation, request)
    return running, [requests.raw(operation, request, running.port) for operation, request in asked]


def _row(name: str, subject: str, seen: list[load.Load]) -> Row:
    ordered = sorted(seen, key=lambda one: one.per_second)
    middle = ordered[len(ordered) // 2]
    extra = {"p50 µs": middle.p50_us, "p99 µs": middle.p99_us}
    return Row(name, subject, "/s", [one.per_second for one in seen], extra=extra)


def run(effort: Effort) -> list[Row]:
    return [
        *measure(GET, READERS, gets, effort),
        *measure(PUT, WRITERS, puts, effort),
        *measure(QUERY, WRITERS, queries, effort),
    ]
