"""Copies a million items between files, and through a server with a writer at work and kills at random.

    python -m bench.copying files 1000000           # items a second, CPU, peak memory
    python -m bench.copying server 1000000          # file → isotone serve → file, ten kills each way, diff
    python -m bench.copying local 1000000           # the same with DynamoDB Local, which `make oracle` fetches

The last two prove that a live copy is exact, and take a while.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from tests.oracle.local import DynamoDBLocal

import isotone
from isotone.moving import diff

NAME = "Orders"
KILLS = 10
_GROUP = 2000

TABLE: dict[str, Any] = {
    "TableName": NAME,
    "KeySchema": [
        {"AttributeName": "customer", "KeyType": "HASH"},
        {"AttributeName": "number", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "customer", "AttributeType": "S"},
        {"AttributeName": "number", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


def order(number: int, total: int = 0) -> dict[str, Any]:
    """An order of about 200 bytes."""
    return {
        "customer": {"S": f"customer-{number % 50_000}"},
        "number": {"N": str(number)},
        "status": {"S": ("OPEN", "PAID", "SENT")[number % 3]},
        "total": {"N": f"{total}.5"},
        "tags": {"SS": ["gift", "new"]},
        "note": {"S": "n" * 100},
    }


def fill(path: Path, count: int) -> None:
    """A file with a table of orders."""
    with isotone.open(path, durability="none") as database:
        database.execute("CreateTable", TABLE)
        for start in range(0, count, _GROUP):
            numbers = range(start, min(start + _GROUP, count))
            database.send_many(
                [
                    ("BatchWriteItem", msgspec.json.encode({"RequestItems": {NAME: batch}}))
                    for at in range(0, len(numbers), 25)
                    for batch in [
                        [{"PutRequest": {"Item": order(n)}} for n in numbers[at : at + 25]]
                    ]
                ]
            )


def between_files(count: int, folder: Path) -> None:
    """Items a second from file to file, in a process of its own."""
    source, target = folder / "source.db", folder / "target.db"
    fill(source, count)
    code = (
        "import sys, time; from isotone.moving import copy, diff\n"
        "def peak():\n"  # not of getrusage, which counts what the parent had when it forked
        "    lines = open('/proc/self/status').read().split('\\n')\n"
        "    return int(next(l for l in lines if l.startswith('VmHWM')).split()[1]) / 1024\n"
        "t, c = time.perf_counter(), time.process_time()\n"
        "done = copy(*sys.argv[1:3], state=sys.argv[3])\n"
        "assert done.is_complete\n"
        "n, s, p = done.tables['Orders'].items, time.perf_counter() - t, time.process_time() - c\n"
        "print(f'copy: {n:,} items in {s:.1f} s: {n / s:,.0f}/s, {n / p:,.0f} a second of CPU, "
        "peak {peak():.0f} MB')\n"
        "t, c = time.perf_counter(), time.process_time()\n"
        "report = diff(*sys.argv[1:3]); assert report.is_equal, report\n"
        "s, p = time.perf_counter() - t, time.process_time() - c\n"
        "print(f'diff: {report} in {s:.1f} s, {2 * n / p:,.0f} items a second of CPU, peak {peak():.0f} MB')\n"
    )
    state = folder / "state.json"
    subprocess.run([sys.executable, "-c", code, source, target, state], check=True)


@contextmanager
def writing(address: str, count: int, rng: random.Random) -> Iterator[list[int]]:
    """A program that puts, updates and deletes orders until the block ends; the list has how often."""
    over, failures, writes = threading.Event(), list[BaseException](), [0]

    def write() -> None:
        try:
            with isotone.connect(address, region="us-east-1") as store:
                while not over.is_set():
                    item = order(rng.randrange(count + 1000), rng.randrange(1000))
                    key = {name: item[name] for name in ("customer", "number")}
                    if rng.random() < 0.3:
                        store.backend.execute("DeleteItem", {"TableName": NAME, "Key": key})
                    else:
                        store.backend.execute("PutItem", {"TableName": NAME, "Item": item})
                    writes[0] += 1
                    time.sleep(0.01)
        except BaseException as error:  # noqa: BLE001 - raised by the block's end
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield writes
    finally:
        over.set()
        thread.join()
    if failures:
        raise failures[0]


def peak_of(process: subprocess.Popen[bytes]) -> float:
    """The peak of a process's memory until now, in MB."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) / 1024 if lines else 0.0


def items_in(state: Path) -> int:
    """How many items a copy has saved to have copied."""
    if not state.exists():
        return 0
    entries = msgspec.json.decode(state.read_bytes())["entries"]
    return int(entries.get(NAME, {}).get("items", 0))


def killed_copy(
    source: str, target: str, count: int, state: Path, rng: random.Random
) -> tuple[float, float, int]:
    """A live copy that is killed at ten random places, then cut over: seconds, peak MB, writes meanwhile."""
    command = [sys.executable, "-m", "isotone", "copy", source, target, "--state", str(state)]
    places = sorted(rng.sample(range(count * 9 // 10), KILLS))  # the writer deletes some
    began, peak = time.monotonic(), 0.0
    with writing(source, count, rng) as writes:
        for place in places:
            process = subprocess.Popen([*command, "--live", "--quiet"])
            while items_in(state) < place:
                peak = max(peak, peak_of(process))
                assert process.poll() is None, "a live copy goes on until it is stopped"
                time.sleep(0.1)
            process.kill()
            process.wait()
            print(
                f"  killed at {items_in(state):,} items, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    over = subprocess.Popen([*command, "--cut-over", "--yes", "--quiet"])
    while over.poll() is None:
        peak = max(peak, peak_of(over))
        time.sleep(0.1)
    assert over.returncode == 0, "both sides are equal"
    return time.monotonic() - began, peak, writes[0]


@contextmanager
def isotone_serve(folder: Path) -> Iterator[str]:
    """The URL of `isotone serve` with a file, in a process of its own."""
    command = [sys.executable, "-m", "isotone", "serve", str(folder / "served.db"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(word for word in process.stdout.readline().split() if "://" in word)
        finally:
            process.terminate()


@contextmanager
def dynamodb_local(_: Path) -> Iterator[str]:
    """The URL of DynamoDB Local."""
    with DynamoDBLocal(heap="3g") as server:
        yield server.url


def through(
    serving: Callable[[Path], AbstractContextManager[str]], count: int, folder: Path
) -> None:
    """File → server → file."""
    rng = random.Random(7)
    first, last = folder / "first.db", folder / "last.db"
    fill(first, count)
    with serving(folder) as url:
        for source, target in ((str(first), url), (url, str(last))):
            print(f"{source} → {target}", flush=True)
            seconds, peak, writes = killed_copy(source, target, count, folder / "state.json", rng)
            report = diff(source, target)
            assert report.is_equal, report
            print(
                f"{report}; {KILLS} kills, {writes:,} writes meanwhile, {seconds:.0f} s, "
                f"peak {peak:.0f} MB",
                flush=True,
            )


JOBS: dict[str, Callable[[int, Path], None]] = {
    "files": between_files,
    "server": partial(through, isotone_serve),
    "local": partial(through, dynamodb_local),
}


def main(arguments: list[str]) -> None:
    """The command line of this file."""
    what, count = arguments[0], int(arguments[1])
    os.environ.setdefault("AWS_REGION", "us-east-1")
    folder = Path(tempfile.mkdtemp(prefix="copying-"))
    try:
        JOBS[what](count, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
