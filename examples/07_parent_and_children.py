"""A sensor and its newest readings in one query.

The page of a sensor shows its name and place, and its latest readings. Both come from one item collection and
one query. A collection that is read from its end needs the parent after its children; one that is read from its
start needs the parent first. `children(...).before(...)` and `.after(...)` declare this.

    python examples/07_parent_and_children.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import isotone
from isotone import Attr, Entity, Global, Index, Key, Stats, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall

telemetry = Table("telemetry", indexes={"history": Global("GSI1PK", "GSI1SK")})


class Sensor(Entity, table=telemetry):
    id: Attr[str] = field()
    place: Attr[str] = field()

    primary = Key("SENSOR", id).sort("SENSOR")
    history = Index("history", "SENSOR", id).sort("SENSOR")


class Reading(Entity, table=telemetry):
    sensor: Attr[str] = field()
    at: Attr[datetime] = field(precision="seconds")
    celsius: Attr[Decimal] = field()

    primary = Sensor.primary.children(sensor).before("READING", at)  # read from the end: newest
    history = Sensor.history.children(sensor).after("READING", at)  # read from the start: oldest


def cost(stats: Stats) -> str:
    return f"{stats.requests} request, {stats.scanned} items read"


# What many users would do: isotone simulate 07_parent_and_children
load = Workload("telemetry", tables=[telemetry])
sensors = load.population("sensor", 500_000)


@sensors.starts_with
def install(call: WorkloadCall) -> None:
    call.store.put(Sensor(id=call.member.id, place="roof"))


@load.action(by=sensors, per_minute=1)
def read(call: WorkloadCall) -> None:
    at = datetime.fromtimestamp(int(call.clock.now()), UTC)
    call.store.put(Reading(sensor=call.member.id, at=at, celsius=Decimal("20.5")))


@load.action(by=sensors, per_day=20)
def show(call: WorkloadCall) -> None:
    with_readings = Sensor.primary.with_children(Reading.primary)
    call.store.family(with_readings.where(Sensor.id == call.member.id), children=10)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.create_tables(telemetry)
        store.put(Sensor(id="s1", place="Roof"))
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        for hour, celsius in enumerate(["4.5", "4.1", "3.9", "3.2", "3.0"]):
            at = begin + timedelta(hours=hour)
            store.put(Reading(sensor="s1", at=at, celsius=Decimal(celsius)))

        newest = Sensor.primary.with_children(Reading.primary).where(Sensor.id == "s1")
        family = store.family(newest, children=3)
        print(f"The sensor and its three newest readings: {cost(family.stats)}")
        isotone.show(family)

        oldest = Sensor.history.with_children(Reading.history).where(Sensor.id == "s1")
        family = store.family(oldest, children=3)
        print(f"\nThe sensor and its three oldest readings: {cost(family.stats)}")
        isotone.show(family, by=Sensor.history)

        print("\nThe collection of the table as it is stored: the parent is last")
        isotone.show(store.all(newest.reversed()))
        print("\nThe collection of the index as it is stored: the parent is first")
        isotone.show(store.all(oldest), by=Sensor.history)


if __name__ == "__main__":
    main(*sys.argv[1:])
