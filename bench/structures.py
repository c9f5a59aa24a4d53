"""What one operation of a structure costs, beside a put of its store: in memory, and in a durable file."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import isotone
from bench import peers
from bench.measuring import Effort, Row, Target, alternately
from isotone import Attr, Entity, Key, Store, Table, field
from isotone.structures import Counter, Idempotency, Lock, Queue, Sequence

PUT = "store: put"
TARGETS: tuple[Target, ...] = ()  # the ratios are shown, not promised

plain = Table("plain")


class Plain(Entity, table=plain):
    """What is put without any structure."""

    name: Attr[str] = field()
    body: Attr[str] = field()

    primary = Key("PLAIN", name).sort("PLAIN")


def _calls(store: Store) -> dict[str, Callable[[], object]]:
    fresh = map(str, itertools.count())
    filled, drained = Queue(store, "filled"), Queue(store, "drained")
    lock, counter = Lock(store, "bench"), Counter(store, "bench")
    sequence, once = Sequence(store, "bench"), Idempotency(store, "bench")
    for structure in (filled, lock, counter, once):
        structure.create_table()
    store.create_tables(plain)

    def passed() -> None:
        drained.put("body")
        (message,) = drained.claim()
        drained.acknowledge(message)

    def locked() -> None:
        lock.acquire()
        lock.release()

    return {
        PUT: lambda: store.put(Plain(name=next(fresh), body="body")),
        "queue: put": lambda: filled.put("body"),
        "queue: put, claim, acknowledge": passed,
        "lock: acquire, release": locked,
        "counter: add": counter.add,
        "sequence: next": sequence.next,
        "idempotency: once": lambda: once.once(next(fresh), lambda: 1),
    }


def run(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    fewer = replace(effort, calls=max(1, effort.calls // 10))
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=peers.data_folder()))
        for place, address in (
            ("in memory", ":memory:"),
            ("in a durable file", Path(folder, "bench.db")),
        ):
            store = stack.enter_context(isotone.connect(address))
            found = alternately(f"an operation of a structure, {place}", _calls(store), fewer)
            rows += [_compared(each, found[0]) for each in found]
    return rows


def _compared(row: Row, put: Row) -> Row:
    """The row with how many puts of the same run it takes."""
    return replace(row, extra={"puts": round(row.value / put.value, 1)})
