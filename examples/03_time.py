"""Times in chronological order, whatever their zones.

Collect events from several countries and read them one after the other. A datetime sorts by its instant: in a
string key as UTC with a fixed number of digits, in a number key as seconds since 1970. A naive datetime does
not identify an instant and is refused, and so is a display format.

    python examples/03_time.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import isotone
from isotone import Attr, Entity, Global, Index, Key, Number, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import UsageError

events = Table("events", indexes={"by-epoch": Global("calendar", Number("at"))})

TOKYO = timezone(timedelta(hours=9))
NEW_YORK = timezone(timedelta(hours=-5))


class Event(Entity, table=events):
    calendar: Attr[str] = field()
    name: Attr[str] = field()
    at: Attr[datetime] = field(epoch=True)  # in the item as a number, for the index of numbers

    primary = Key("CALENDAR", calendar).sort("AT", at)
    by_epoch = Index("by-epoch", calendar).sort(at)


EVENTS = [
    Event(calendar="c", name="New York", at=datetime(2020, 1, 10, 20, 0, tzinfo=NEW_YORK)),
    Event(calendar="c", name="London", at=datetime(2020, 1, 11, 0, 30, tzinfo=UTC)),
    Event(calendar="c", name="London + 1 µs", at=datetime(2020, 1, 11, 0, 30, 0, 1, tzinfo=UTC)),
    Event(calendar="c", name="London + 0.5 s", at=datetime(2020, 1, 11, 0, 30, 0, 500_000, UTC)),
    Event(calendar="c", name="Tokyo", at=datetime(2020, 1, 11, 9, 0, tzinfo=TOKYO)),
]


# What many users would do: isotone simulate 03_time
load = Workload("calendars", tables=[events])
calendars = load.population("calendar", 2_000_000, activity=0.5)


def now(call: WorkloadCall) -> datetime:
    return datetime.fromtimestamp(call.clock.now(), UTC)


@load.action(by=calendars, per_day=3)
def enter(call: WorkloadCall) -> None:
    at = now(call) + timedelta(minutes=call.chance.randrange(10_000))
    call.store.put(Event(calendar=call.member.id, name="Meeting", at=at))


@load.action(by=calendars, per_day=20)
def show_the_week(call: WorkloadCall) -> None:
    week = Event.at.between(now(call), now(call) + timedelta(days=7))
    call.store.page(Event.primary.where(Event.calendar == call.member.id, week), size=50)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.create_tables(events)
        for event in EVENTS:
            store.put(event)

        print("By their instant, as text")
        isotone.show(store.all(Event.primary.where(Event.calendar == "c")))

        print("\nBy their instant, as a number")
        by_number = Event.by_epoch.where(Event.calendar == "c")
        isotone.show(store.all(by_number), by=Event.by_epoch)

        print("\nFrom midnight until half past, both included")
        midnight = datetime(2020, 1, 11, tzinfo=UTC)
        early = Event.at.between(midnight, midnight + timedelta(minutes=30))
        isotone.show(store.all(Event.primary.where(Event.calendar == "c", early)), Event.name)

    print("\nRefused")
    wrong: list[dict[str, Any]] = [
        {"at": datetime(2020, 1, 11, 0, 30)},
        {"at": "May 26, 1988"},
    ]
    for values in wrong:
        try:
            Event(calendar="c", name="wrong", **values)
        except UsageError as error:
            print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
