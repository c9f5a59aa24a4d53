"""Memory is flat under a mixed load. `ISOTONE_SOAK_SECONDS=3600` runs a server for an hour; the quick form counts objects."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.attack.soak_load import Send, cycle, over_http, prepare

import isotone
from isotone.errors import ApiError
from isotone.expressions import expression, parser
from isotone.expressions.partiql import statements
from isotone.server import running_server

SECONDS = float(os.environ.get("ISOTONE_SOAK_SECONDS", "0"))
WARM_UP, CYCLES = 60, 60
MOST_OBJECTS = 60  # that may be added by so many cycles: fewer than one for each
MOST_MEGABYTES = (
    16.0  # that the second half of a long run may add to the memory that is not the file's
)


@contextmanager
def in_process(database: isotone.Database) -> Iterator[Send]:
    def send(operation: str, request: dict[str, Any]) -> object:
        try:
            return database.execute(operation, request)
        except ApiError as error:
            return type(error)

    yield send


def forget_expressions() -> None:
    """They are bounded, but fill slowly."""
    caches = (expression.COMPILED, parser._conditions, parser._updates, statements._statements)
    for cache in caches:
        cache.clear()
        cache._before.clear()
        cache._bytes = 0


def objects(database: isotone.Database) -> Counter[str]:
    forget_expressions()
    database.take_served()  # the shapes of queries are bounded, too, and each cycle has tables of its own
    gc.collect()
    return Counter(type(each).__name__ for each in gc.get_objects())


@pytest.mark.parametrize("way", ["memory", "file", "HTTP"])
def test_cycles_leave_no_objects(way, tmp_path):
    path = ":memory:" if way == "memory" else tmp_path / "soak.db"
    with isotone.open(path, durability="none") as database, running_server(database) as url:
        with over_http(url) if way == "HTTP" else in_process(database) as send:
            prepare(send)
            for number in range(WARM_UP):
                cycle(send, number)
            objects(database)  # the first count leaves what abstract classes remember
            before = objects(database)
            for number in range(WARM_UP, WARM_UP + CYCLES):
                cycle(send, number)
            deadline = time.monotonic() + 20
            while (
                added := objects(database) - before
            ).total() > MOST_OBJECTS and time.monotonic() < deadline:
                time.sleep(0.2)  # connections that hung up are being closed
        assert added.total() <= MOST_OBJECTS, added.most_common(10)


def memory(pid: int) -> tuple[float, float]:
    """Megabytes of a process in memory, and those of them that are no pages of files."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = dict(re.findall(r"(VmRSS|RssAnon):\s+(\d+) kB", status))
    return int(found["VmRSS"]) / 1024, int(found["RssAnon"]) / 1024


@pytest.mark.skipif(not SECONDS, reason="ISOTONE_SOAK_SECONDS is not set")
def test_the_memory_of_a_server_is_flat(tmp_path):
    command = [sys.executable, "-m", "isotone", "serve", str(tmp_path / "soak.db"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None
            measured = soak(found[0], server.pid)
        finally:
            server.terminate()
    halfway = max(own for _, own in measured[: len(measured) // 2])
    assert max(own for _, own in measured) < halfway + MOST_MEGABYTES, measured


def soak(url: str, pid: int) -> list[tuple[float, float]]:
    """The memory of the server, forty times in all."""
    measured: list[tuple[float, float]] = []
    with over_http(url) as send:
        prepare(send)
        measure_while_it_works(send, pid, measured)
    return measured


def measure_while_it_works(send: Send, pid: int, measured: list[tuple[float, float]]) -> None:
    began, number = time.monotonic(), 0
    while time.monotonic() < began + SECONDS:
        cycle(send, number)
        number += 1
        if time.monotonic() > began + SECONDS * len(measured) / 40:
            measured.append(memory(pid))
            elapsed = time.monotonic() - began
            print(f"{elapsed:.0f} s, {number} cycles: {measured[-1][0]:.1f} MB in memory, "
                  f"{measured[-1][1]:.1f} MB of its own", flush=True)  # fmt: skip
