"""How one file grows: latencies, file size, start-up, processes, backup, check and a new index, at several sizes.

    python -m bench.growth 10000 1000000 10000000

Items have about 200 bytes, a thousand in each partition, and are written in random order of their keys. Latencies are
medians of single calls, the sizes in turn, so that a busy machine slows all of them alike; puts are durable. The first visit
of a process to a place of the file costs a page fault, so gets are measured right after opening and again when most places
have been visited. The long steps are given in wall time and in processor time, that of their processes included. Ten
million items take some gigabytes and half an hour.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import isotone
from bench import peers
from isotone.backends import embedded

NAME = "Orders"
IN_PARTITION = 1000
CALLS = 3000
VISITED_AT_ONCE = 1 << 16  # bytes that one page fault of Linux maps around it
_KEYS = [
    {"AttributeName": "customer", "KeyType": "HASH"},
    {"AttributeName": "number", "KeyType": "RANGE"},
]
_TYPES = [
    {"AttributeName": "customer", "AttributeType": "S"},
    {"AttributeName": "number", "AttributeType": "N"},
]
_BY_STATUS: dict[str, Any] = {
    "IndexName": "by_status",
    "KeySchema": [
        {"AttributeName": "status", "KeyType": "HASH"},
        {"AttributeName": "number", "KeyType": "RANGE"},
    ],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}
WITH_INDEX: dict[str, Any] = {
    "TableName": NAME,
    "AttributeDefinitions": [*_TYPES, {"AttributeName": "status", "AttributeType": "S"}],
    "GlobalSecondaryIndexUpdates": [{"Create": _BY_STATUS}],
}
WITHOUT_INDEX: dict[str, Any] = {
    "TableName": NAME,
    "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by_status"}}],
}
_WORK = """
import random, sys, time
import isotone
from bench.growth import calls
path, items, name, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
with isotone.open(path) as database:
    call, done = calls(database.client(), items)[name], 0
    call()
    print("ready", flush=True)
    sys.stdin.readline()
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        call()
        done += 1
print(done / seconds)
"""
_SECONDS = 4
_START = (
    "import sys, time; started = time.perf_counter(); import isotone; opened = time.perf_counter(); "
    "client = isotone.open(sys.argv[1]).client(); "
    "client.get_item(TableName='Orders', Key={'customer': {'S': 'c0'}, 'number': {'N': '0'}}); "
    "print(time.perf_counter() - opened)"
)


def key_of(number: int) -> dict[str, Any]:
    return {
        "customer": {"S": f"c{number // IN_PARTITION}"},
        "number": {"N": str(number % IN_PARTITION)},
    }


def order(number: int) -> dict[str, Any]:
    status = {"S": f"{('OPEN', 'PAID', 'SENT')[number % 3]}-{number % 1000}"}
    return {**key_of(number), "status": status, "note": {"S": "n" * 120}}


def fill(path: Path, items: int) -> None:
    """Batches of 25 at random places; not durable, since only the result matters."""
    numbers = list(range(items))
    random.Random(3).shuffle(numbers)
    with isotone.open(path, durability="none") as database:
        client = database.client()
        client.create_table(
            TableName=NAME,
            KeySchema=_KEYS,
            AttributeDefinitions=_TYPES,
            BillingMode="PAY_PER_REQUEST",
        )
        for first in range(0, items, 25):
            batch = [{"PutRequest": {"Item": order(n)}} for n in numbers[first : first + 25]]
            client.batch_write_item(RequestItems={NAME: batch})
            if first % 1_000_000 == 0 and first:
                print(f"  {first:,} of {items:,} written", file=sys.stderr, flush=True)


def calls(client: Any, items: int) -> dict[str, Callable[[], object]]:
    """One call of each kind, at a random place of the table."""
    chosen = random.Random(4)

    def get() -> object:
        return client.get_item(TableName=NAME, Key=key_of(chosen.randrange(items)))

    def query() -> object:
        start = key_of(chosen.randrange(items))
        return client.query(
            TableName=NAME,
            KeyConditionExpression="customer = :customer AND #n >= :number",
            ExpressionAttributeNames={"#n": "number"},
            ExpressionAttributeValues={
                ":customer": start["customer"],
                ":number": start["number"],
            },
            Limit=10,
        )

    def put() -> object:
        return client.put_item(TableName=NAME, Item=order(chosen.randrange(items)))

    return {"get": get, "query of 10": query, "put, durable": put}


def latencies(paths: dict[int, Path]) -> None:
    """The median of each call at each size, and its ratio to the smallest size."""
    with ExitStack() as stack:
        by_size = {
            items: calls(stack.enter_context(isotone.open(path)).client(), items)
            for items, path in paths.items()
        }
        _latencies("get, first visit", {items: each["get"] for items, each in by_size.items()})
        for items, functions in by_size.items():
            for _ in range(3 * paths[items].stat().st_size // VISITED_AT_ONCE):
                functions["get"]()
        for name in by_size[min(paths)]:
            _latencies(name, {items: each[name] for items, each in by_size.items()})


def _latencies(name: str, by_size: dict[int, Callable[[], object]]) -> None:
    samples: dict[int, list[float]] = {items: [] for items in by_size}
    for _ in range(CALLS):
        for items, call in by_size.items():
            started = time.perf_counter()
            call()
            samples[items].append(time.perf_counter() - started)
    base = median(samples[min(by_size)])
    for items, each in samples.items():
        typical, slowest = median(each), sorted(each)[len(each) * 99 // 100]
        print(
            f"{name:16} {items:>12,}  {typical * 1e6:9.1f} µs  p99 {slowest * 1e6:9.1f} µs  "
            f"{typical / base:5.2f} ×",
            flush=True,
        )


def by_processes(path: Path, items: int) -> None:
    """Calls a second of one, two and four processes on the same file."""
    for name in ("get", "put, durable"):
        for number in (1, 2, 4):
            workers = [
                subprocess.Popen(
                    [sys.executable, "-c", _WORK, str(path), str(items), name, str(_SECONDS)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for _ in range(number)
            ]
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "ready\n"
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write("go\n")
                worker.stdin.flush()
            rates = [worker.communicate()[0] for worker in workers]
            total = sum(map(float, rates))
            print(f"{name:14} {items:>12,}  {total:9,.0f} /s with {number} processes", flush=True)


def timed(what: str, items: int, step: Callable[[], object]) -> None:
    started, used = time.perf_counter(), sum(os.times()[:4])
    step()
    wall, cpu = time.perf_counter() - started, sum(os.times()[:4]) - used
    print(f"{what:14} {items:>12,}  {wall:9.1f} s  {cpu:9.1f} s of processor time", flush=True)


def start_up(path: Path) -> None:
    samples = [
        float(
            subprocess.run(
                [sys.executable, "-c", _START, str(path)], capture_output=True, check=True
            ).stdout
        )
        for _ in range(5)
    ]
    print(f"{'open and get':14} {'':12}  {median(samples) * 1e3:9.1f} ms", flush=True)


def add_index(path: Path) -> None:
    with isotone.open(path) as database:
        database.client().update_table(**WITH_INDEX)
        database.finish_maintenance()


def check(path: Path) -> None:
    found = embedded.check(path)
    assert not found.problems, found


def main(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory(dir=peers.data_folder()) as folder:
        paths = {items: Path(folder) / f"{items}.db" for items in sizes}
        for items, path in paths.items():
            timed("fill", items, partial(fill, path, items))
            print(
                f"{'size':14} {items:>12,}  {path.stat().st_size / items:9.1f} bytes an item",
                flush=True,
            )
            start_up(path)
        latencies(paths)
        by_processes(paths[min(sizes)], min(sizes))
        for items, path in paths.items():
            copy = path.with_suffix(".backup")
            timed("backup", items, partial(isotone.backup, path, copy))
            copy.unlink()
            timed("new index", items, partial(add_index, path))
            timed("check", items, partial(check, path))


if __name__ == "__main__":
    main([int(each.replace("_", "")) for each in sys.argv[1:]] or [10_000, 1_000_000, 10_000_000])
