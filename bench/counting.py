"""What counting costs a server: processor time of GetItem and PutItem with and without it, in turns.

The server's own code runs on requests as botocore sends them, without sockets, on tables in memory: whatever else a request costs
(the kernel, a disk) would make the share of counting smaller. A pair is some requests without and with counting, the
one or the other first. The figure is the median over all pairs, in percent of the time without; so a busy machine blurs
it, and does not move it. `units` are the capacity units by table and index, `all` also requests and latencies.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import isotone
from bench import requests
from bench.measuring import Effort, Row, Target
from bench.wired import WiredServer
from isotone.server.connection import ServerConnection

COST, TIME = "cost of counting", "server time of a request"
UNITS, ALL = "units", "all"
SUBJECTS = ("GetItem", "PutItem", "PutItem with an index")
TARGETS = tuple(Target(COST, f"{subject}: {UNITS}", "at most", 1.0) for subject in SUBJECTS[:2])

_REQUESTS: Final = (
    50  # of one half of a pair: so short that both have the same share of a busy machine
)
_WARM: Final = 5  # before that, as tables are new where counting begins or ends
_PAIRS: Final = 300  # of a round


class _Uncounted(ServerConnection):
    """A connection that counts neither requests nor latencies, and is the same otherwise."""

    def _advance(self) -> None:
        while self._backlog:
            request: Any = self._backlog.popleft()[0]
            result = self._dispatcher.submit(request, self._answer_with)
            if result is None:
                self._outstanding = request.style, True, request.operation, 0.0
                return
            self._respond(request.style, result, True)


class _Server(WiredServer):
    """A server with a connection that counts, and one that does not."""

    def __init__(self, database: isotone.Database) -> None:
        super().__init__(database)
        self.connections = [self.connect(_Uncounted), self.connect()]

    def time(self, raw: list[bytes], *, counted: bool) -> float:
        """Processor time in seconds that the server takes for these requests."""
        connection = self.connections[counted]
        began = time.thread_time()
        for each in raw:
            connection.data_received(each)
            self.run_group()
        return time.thread_time() - began


def _raw(operation: str, table: str) -> list[bytes]:
    make = requests.get if operation == "GetItem" else requests.put
    return [
        requests.raw(operation, {**make(number), "TableName": table}, 8000)
        for number in range(_REQUESTS)
    ]


def _puts(table: str) -> Iterator[list[bytes]]:
    """Requests that change what is there, as those of a program do."""
    versions = [
        [
            requests.raw("PutItem", {**requests.put(number, version), "TableName": table}, 8000)
            for number in range(_REQUESTS)
        ]
        for version in range(3)
    ]
    return itertools.cycle(versions)


def _workloads() -> dict[str, Iterator[list[bytes]]]:
    return {
        "GetItem": itertools.repeat(_raw("GetItem", requests.TABLE)),
        "PutItem": _puts(requests.TABLE),
        "PutItem with an index": _puts(requests.INDEXED),
    }


def run(effort: Effort) -> list[Row]:
    rows = []
    with isotone.open() as database:
        database.execute("CreateTable", requests.SCHEMA)
        database.execute("CreateTable", requests.INDEXED_SCHEMA)
        server = _Server(database)
        for subject, raw in _workloads().items():
            server.time(next(raw), counted=True)

            def measured(units: bool, *, counted: bool = True) -> float:
                database.measure(units)
                server.time(next(raw)[:_WARM], counted=counted)  # noqa: B023 - called at once
                return server.time(next(raw), counted=counted)  # noqa: B023 - called at once

            pairs = _PAIRS * effort.rounds
            costs = {
                UNITS: _pairs(lambda: measured(False), lambda: measured(True), pairs),
                ALL: _pairs(lambda: measured(False, counted=False), lambda: measured(True), pairs),
            }
            for name, (cost, without) in costs.items():
                rows.append(Row(COST, f"{subject}: {name}", "%", cost))
                if name == ALL:
                    rows.append(Row(TIME, subject, "µs", without))
        server.close()
    return rows


def _pairs(
    without: Callable[[], float], with_it: Callable[[], float], number: int
) -> tuple[list[float], list[float]]:
    """The cost in percent of each pair, and the microseconds of a request without. Which is first, alternates."""
    costs, times = [], []
    for pair in range(number):
        if pair % 2:
            before, after = without(), with_it()
        else:
            after, before = with_it(), without()
        costs.append((after / before - 1) * 100)
        times.append(before / _REQUESTS * 1e6)
    return _quarters(costs), _quarters(times)


def _quarters(samples: list[float]) -> list[float]:
    """The quartiles: the extremes of so many pairs say nothing but how busy the machine was."""
    return statistics.quantiles(samples, n=4)
