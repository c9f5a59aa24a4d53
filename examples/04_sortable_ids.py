"""Unique ids that sort in the order of their creation.

Give every log line an id without a central counter. The id fits into a URL, and the lines sort in the order in
which they were written. KSUID, ULID and UUIDv7 begin with the time; within one tick each id is the successor
of the previous one.

    python examples/04_sortable_ids.py [ADDRESS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from uuid import UUID

import isotone
from isotone import KSUID, ULID, Attr, Entity, Key, Table, created_id, field
from isotone.advisor.simulation import Workload, WorkloadCall

logs = Table("logs")

COUNT = 100_000  # ids of each kind
COUNT_TOGETHER = 10_000  # ids of each kind by each of two processes

AnyId = KSUID | ULID | UUID

KINDS: dict[str, Callable[[], AnyId]] = {
    "KSUID": KSUID.new,
    "ULID": ULID.new,
    "UUIDv7": isotone.uuid7,
}


class Line(Entity, table=logs):
    run: Attr[str] = field()
    id: Attr[ULID] = created_id()
    text: Attr[str] = field()

    primary = Key("RUN", run).sort("LINE", id)


def make(kind: str, count: int) -> list[str]:
    return [str(KINDS[kind]()) for _ in range(count)]


# What many users would do: isotone simulate 04_sortable_ids
load = Workload("logs", tables=[logs])
runs = load.population("run", 1_000)


@load.action(by=runs, per_second=5)
def log(call: WorkloadCall) -> None:
    call.store.put(Line(run=call.member.id, text="all is well"))


@load.action(by=runs, per_minute=1)
def read_the_last(call: WorkloadCall) -> None:
    call.store.page(Line.primary.where(Line.run == call.member.id).reversed(), size=100)


def main(address: str = ":memory:") -> None:
    for kind, new in KINDS.items():
        begun = datetime.now(UTC)
        ids = [new() for _ in range(COUNT)]
        texts = [str(each) for each in ids]
        age = isotone.time_of(ids[0]) - begun
        print(f"{kind}: {len(texts[0])} characters")
        print(f"  unique: {len(set(texts)):,} of {len(texts):,}")
        print(f"  sorted as they were made: {texts == sorted(texts)}")
        print(f"  the time in it is now: {abs(age) < timedelta(seconds=2)}")

    print("Two processes at the same time")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as writers:
        for kind in KINDS:
            one, other = writers.map(make, [kind] * 2, [COUNT_TOGETHER] * 2)
            print(f"  {kind}: {len({*one, *other}):,} different ids of {len(one) + len(other):,}")

    with isotone.connect(address) as store:
        store.create_tables(logs)
        run = str(isotone.uuid7())  # each run of this program writes its own collection
        for text in ["started", "read the list", "sent 3 mails", "ended"]:
            store.put(Line(run=run, text=text))
        print("\nLog lines as they were written")
        isotone.show(store.all(Line.primary.where(Line.run == run)), Line.text)
        hour_ago = datetime.now(UTC) - timedelta(hours=1)
        recent = Line.primary.where(Line.run == run, Line.id.since(hour_ago))
        print(f"\nLines of the last hour: {store.count(recent)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
