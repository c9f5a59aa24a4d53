"""Threads of a program on one file: do two read more than one, and what does a reader feel beside a thread that writes?

    python -m bench.threads [--folder /tmp]

First each kind of read is made by one thread and by two, in turns: the ratio of reads a second, and of processor time for each
read. Then one thread reads random items with short pauses, alone and beside a thread that writes with durability "disk". Only
ratios of one run mean something, and the first ones only on a machine where both cores are free: "cores used" shows it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import isotone

NAME = "threads"
PARTITIONS, ITEMS = 60, 100
SECONDS, ROUNDS = 0.5, 7
PAUSE = 0.001  # seconds between two reads beside the writer
TABLE: dict[str, Any] = {
    "TableName": NAME,
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "s", "AttributeType": "N"},
    ],
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "s", "KeyType": "RANGE"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
QUERY: dict[str, Any] = {
    "KeyConditionExpression": "p = :p",
    "ExpressionAttributeValues": {":p": {"S": "7"}},
}
READS: dict[str, tuple[str, dict[str, Any]]] = {
    "GetItem": ("GetItem", {"Key": {"p": {"S": "5"}, "s": {"N": "7"}}}),
    "Query of 100": ("Query", QUERY),
    "Scan of a page": ("Scan", {}),
}


def put(database: isotone.Database, partition: int, number: int) -> None:
    item = {"p": {"S": str(partition)}, "s": {"N": str(number)}, "text": {"S": "x" * 300}}
    database.execute("PutItem", {"TableName": NAME, "Item": item})


def fill(path: Path) -> None:
    with isotone.open(path, durability="none") as database:
        database.execute("CreateTable", TABLE)
        for partition in range(PARTITIONS):
            for number in range(ITEMS):
                put(database, partition, number)


def at_once(threads: int, call: Callable[[], object]) -> tuple[float, float, float]:
    """Calls a second, seconds of processor time for each, and cores used, by so many threads."""
    calls, stopping = [0] * threads, threading.Event()

    def repeat(which: int) -> None:
        while not stopping.is_set():
            call()
            calls[which] += 1

    started = [threading.Thread(target=repeat, args=(which,)) for which in range(threads)]
    wall, cpu = time.perf_counter(), time.process_time()
    for each in started:
        each.start()
    time.sleep(SECONDS)
    stopping.set()
    for each in started:
        each.join()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return sum(calls) / wall, cpu / sum(calls), cpu / wall


def two_against_one(database: isotone.Database) -> None:
    print("| two threads against one | reads a second | processor time | cores used |")
    print("|---|---:|---:|---:|")
    for name, (operation, members) in READS.items():
        body = json.dumps({"TableName": NAME, **members}).encode()
        pairs = [
            [at_once(threads, partial(database.send, operation, body)) for threads in (1, 2)]
            for _ in range(ROUNDS)
        ]
        ratios = [median(two[place] / one[place] for one, two in pairs) for place in (0, 1)]
        cores = median(two[2] for _, two in pairs)
        print(f"| {name} | {ratios[0]:.2f} × | {ratios[1]:.2f} × | {cores:.2f} |", flush=True)


def latencies(database: isotone.Database) -> list[float]:
    """Milliseconds of GetItem, in a thread that pauses between two."""
    found, chosen = [], random.Random(7)
    ends = time.perf_counter() + 8 * SECONDS
    while (began := time.perf_counter()) < ends:
        key = {
            "p": {"S": str(chosen.randrange(PARTITIONS))},
            "s": {"N": str(chosen.randrange(ITEMS))},
        }
        database.execute("GetItem", {"TableName": NAME, "Key": key})
        found.append((time.perf_counter() - began) * 1000)
        time.sleep(PAUSE)
    return found


def beside_a_writer(database: isotone.Database) -> None:
    print("\n| GetItem, ms | median | p99 |\n|---|---:|---:|")
    stopping = threading.Event()

    def write() -> None:
        while not stopping.is_set():
            put(database, 0, 0)

    writer = threading.Thread(target=write)
    for name in ("alone", "beside a thread that writes"):
        if name != "alone":
            writer.start()
        found = latencies(database)
        print(f"| {name} | {median(found):.3f} | {quantiles(found, n=100)[98]:.3f} |", flush=True)
    stopping.set()
    writer.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=None, help="where to make the file; a temporary folder")
    with tempfile.TemporaryDirectory(dir=parser.parse_args().folder) as folder:
        path = Path(folder) / "bench.db"
        fill(path)
        with isotone.open(path) as database:
            two_against_one(database)
            beside_a_writer(database)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
