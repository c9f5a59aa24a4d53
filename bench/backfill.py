"""What a program feels while an index is filled: the latencies of GetItem, in the process and over HTTP.

    python -m bench.backfill [--items 192000] [--folder /tmp]

Items of about 200 bytes are in a file with durability "disk". One thread, or one client, reads random ones with short
pauses; then an index is added, and it goes on until the index is ACTIVE. The first row of each table is the measure: on a
busy machine both are slower. The index is also filled once with nobody beside it, for its cost in processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import isotone
from bench import growth
from bench.heavy_clients import Peer, served

PAUSE = 0.001  # seconds between two calls: what is measured is how long one takes, not how many there are
SECONDS = 5.0  # before the index is added

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


def gets(ask: Ask, items: int, goes_on: Callable[[], bool]) -> Iterator[float]:
    """The milliseconds of each GetItem."""
    chosen = random.Random(7)
    while goes_on():
        time.sleep(PAUSE)
        key = growth.key_of(chosen.randrange(items))
        began = time.perf_counter()
        found = ask("GetItem", {"TableName": growth.NAME, "Key": key})
        yield (time.perf_counter() - began) * 1000
        assert found["Item"]["note"]


def for_a_while() -> Callable[[], bool]:
    end = time.perf_counter() + SECONDS
    return lambda: time.perf_counter() < end


def until_active(ask: Ask) -> Callable[[], bool]:
    """True until the index is ACTIVE, which is asked ten times a second."""
    next_look = time.perf_counter()

    def goes_on() -> bool:
        nonlocal next_look
        if time.perf_counter() < next_look:
            return True
        next_look = time.perf_counter() + 0.1
        (index,) = ask("DescribeTable", {"TableName": growth.NAME})["Table"][
            "GlobalSecondaryIndexes"
        ]
        return bool(index["IndexStatus"] != "ACTIVE")

    return goes_on


def compare(name: str, ask: Ask, items: int) -> None:
    """Print the latencies before the index is added, and while it is filled."""
    before = list(gets(ask, items, for_a_while()))
    began = time.perf_counter()
    ask("UpdateTable", growth.WITH_INDEX)
    during = list(gets(ask, items, until_active(ask)))
    took = time.perf_counter() - began
    for what, found in (("before", before), (f"during, {took:.1f} s", during)):
        p99 = quantiles(found, n=100)[98]
        print(
            f"| {name}, {what} | {median(found):.2f} | {p99:.2f} | {max(found):.1f} | {len(found):,} |",
            flush=True,
        )
    ask("UpdateTable", growth.WITHOUT_INDEX)


def in_process(path: Path, items: int) -> None:
    with isotone.open(path) as database:

        def ask(operation: str, request: dict[str, Any]) -> dict[str, Any]:
            return dict(database.execute(operation, request))

        compare("in the process", ask, items)


def over_http(path: Path, items: int) -> None:
    with served(str(path)) as url:
        peer = Peer(url)

        def ask(operation: str, request: dict[str, Any]) -> dict[str, Any]:
            status, answer = peer.send(operation, json.dumps(request).encode())
            assert status == 200, answer
            return dict(json.loads(answer))

        compare("over HTTP", ask, items)


def alone(path: Path, items: int) -> None:
    with isotone.open(path) as database:
        database.execute("UpdateTable", growth.WITH_INDEX)
        wall, cpu = time.perf_counter(), time.process_time()
        database.finish_maintenance()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"\nalone: {items / wall:,.0f} entries/s, {items / cpu:,.0f} per second of processor time"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=192_000)
    parser.add_argument("--folder", default=None, help="where to make the file; a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "bench.db"
        print("filling", file=sys.stderr, flush=True)
        growth.fill(path, arguments.items)
        print("| GetItem | median, ms | p99, ms | slowest, ms | calls |\n|---|---:|---:|---:|---:|")
        in_process(path, arguments.items)
        over_http(path, arguments.items)
        alone(path, arguments.items)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
