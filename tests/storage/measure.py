"""The figures of docs/design/storage.md: `python tests/storage/measure.py [ROWS]`, not run by pytest.

Each figure is the best of several rounds over the same keys in random order, in microseconds: on a
machine with other work to do, the best round is the one that was least disturbed.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from isotone.storage.file import Durability
from isotone.storage.interface import OrderedStore
from isotone.storage.memory import MemoryStore
from isotone.storage.sqlite import SQLiteStore

VALUES = [os.urandom(350), os.urandom(350)]
ROUNDS = 15


def key(number: int) -> bytes:
    return hashlib.blake2b(b"%d" % number, digest_size=8).digest() + b"user#%d" % number


def best(action: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(ROUNDS):
        VALUES.reverse()  # SQLite writes nothing where a value stays the same
        begin = time.perf_counter()
        action()
        found.append((time.perf_counter() - begin) / times * 1e6)
    return min(found)


def fill(store: OrderedStore, rows: int) -> None:
    with store.transaction():
        store.create_tree("t")
        for number in range(rows):
            store.put("t", key(number), VALUES[0])


def show(what: str, figure: float) -> None:
    print(f"  {what:42} {figure:8.2f} µs")


def get_all(store: OrderedStore, keys: list[bytes]) -> None:
    for each in keys:
        store.get("t", each)


def put_all(store: OrderedStore, keys: list[bytes]) -> None:
    with store.transaction():
        for each in keys:
            store.put("t", each, VALUES[0])


def transact(store: OrderedStore, keys: list[bytes], *, write: bool) -> None:
    for each in keys:
        with store.transaction():
            if write:
                store.put("t", each, VALUES[0])


def transact_nested(store: OrderedStore, keys: list[bytes], *, write: bool) -> None:
    with store.transaction():
        transact(store, keys, write=write)


def read_ranges(store: OrderedStore, keys: list[bytes]) -> None:
    for each in keys:
        rows = store.range("t", each[:1], None)
        for _ in zip(range(100), rows, strict=False):
            pass


def measure_calls(store: OrderedStore) -> None:
    keys = [key(number) for number in range(10_000)]
    random.shuffle(keys)
    few = keys[:100]
    show("get", best(lambda: get_all(store, keys), len(keys)))
    with store.snapshot():
        show("get, in a snapshot", best(lambda: get_all(store, keys), len(keys)))
    show("put, in a transaction", best(lambda: put_all(store, keys), len(keys)))
    show("empty transaction", best(lambda: transact(store, keys, write=False), len(keys)))
    for write, what in (
        (False, "empty nested transaction"),
        (True, "nested transaction with a put"),
    ):
        show(what, best(lambda w=write: transact_nested(store, keys, write=w), len(keys)))
    show("range of 100 rows", best(lambda: read_ranges(store, few), len(few)))
    show("changed_elsewhere", best(lambda: [store.changed_elsewhere() for _ in few], len(few)))


def measure_floor(store: SQLiteStore) -> None:
    """The same statements straight through APSW."""
    execute = store._connection.cursor().execute
    sql = store._statements["t"]
    keys = [key(number) for number in range(10_000)]
    random.shuffle(keys)
    few = keys[:100]

    def put() -> None:
        execute("BEGIN IMMEDIATE")
        for each in keys:
            execute(sql.put, (each, VALUES[0]))
        execute("COMMIT")

    def transact() -> None:
        for _ in keys:
            execute("BEGIN IMMEDIATE")
            execute("COMMIT")

    def read_ranges() -> None:
        for each in few:
            rows = store._connection.cursor().execute(sql.range[True, False], (each[:1],))
            for _ in zip(range(100), rows, strict=False):
                pass

    show("floor: get", best(lambda: [execute(sql.get, (each,)).get for each in keys], len(keys)))
    show("floor: put, in a transaction", best(put, len(keys)))
    show("floor: empty transaction", best(transact, len(keys)))
    show("floor: range of 100 rows", best(read_ranges, len(few)))


def measure_commits(folder: Path) -> None:
    for durability in ("disk", "process", "none"):
        store = SQLiteStore(folder / f"{durability}.db", durability)
        fill(store, 10_000)
        for size in (1, 8):
            show(f"commit of {size}, {durability}", commit(store, size, 10_000))
        store.close()


def commit(store: OrderedStore, size: int, rows: int) -> float:
    """The median of 1,000 commits of `size` puts at random keys, checkpoints and all."""
    found = []
    for _ in range(1_000):
        keys = [key(random.randrange(rows)) for _ in range(size)]
        VALUES[0] = os.urandom(350)
        begin = time.perf_counter()
        put_all(store, keys)
        found.append((time.perf_counter() - begin) * 1e6)
    return median(found)


def resident_mb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) // 1024


def measure_size(folder: Path, rows: int, durability: Durability = "disk") -> None:
    store = SQLiteStore(folder / f"{rows}.db", "none")
    fill(store, rows)
    store.close()
    os.sync()  # or the commits below wait for the filling to reach the disk
    store = SQLiteStore(folder / f"{rows}.db", durability)
    keys = [key(random.randrange(rows)) for _ in range(20_000)]
    get_all(store, keys)
    show(f"get, {rows:,} rows", best(lambda: get_all(store, keys), len(keys)))
    few = keys[:2000]
    show(f"range of 10, {rows:,} rows", best(lambda: read_tens(store, few), len(few)))
    show(f"commit of 1, {rows:,} rows", commit(store, 1, rows))
    show(f"commit of 8, {rows:,} rows", commit(store, 8, rows))
    print(
        f"  private memory {resident_mb()} MB, file {(folder / f'{rows}.db').stat().st_size >> 20} MB"
    )
    store.close()


def read_tens(store: OrderedStore, keys: list[bytes]) -> None:
    for each in keys:
        rows = store.range("t", each, None)
        for _ in zip(range(10), rows, strict=False):
            pass


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stores: dict[str, OrderedStore] = {
            "MemoryStore": MemoryStore(),
            "SQLiteStore in memory": SQLiteStore(":memory:"),
            "SQLiteStore on a file": SQLiteStore(folder / "calls.db"),
        }
        for what, store in stores.items():
            print(what)
            fill(store, 10_000)
            if isinstance(store, SQLiteStore):
                measure_floor(store)
            measure_calls(store)
            store.close()
        print("Commits, 10,000 rows")
        measure_commits(folder)
        print("Size, on a file, durability disk")
        for count in sorted({10_000, rows}):
            measure_size(folder, count)


if __name__ == "__main__":
    main()
