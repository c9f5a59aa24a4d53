"""A small collection in memory, filtered and sorted by any field; a calendar's free slots.

Sort a table of appointments by the column that a user clicks, and find a free slot for a new one. Neither needs
an index: the week of one calendar is small, so it is loaded once and processed in memory. A large collection is
refused, with its size.

    python examples/16_client_side.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import isotone
from isotone import Attr, Entity, Key, Table, desc, field
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import TooLarge

calendars = Table("calendars")


class Appointment(Entity, table=calendars):
    calendar: Attr[str] = field()
    starts: Attr[datetime] = field(precision="seconds")
    ends: Attr[datetime] = field()
    title: Attr[str] = field()
    room: Attr[str] = field()

    primary = Key("CALENDAR", calendar).sort("APPOINTMENT", starts, title)


class Attachment(Entity, table=calendars):
    calendar: Attr[str] = field()
    name: Attr[str] = field()
    content: Attr[bytes] = field()

    primary = Key("ATTACHMENTS", calendar).sort("FILE", name)


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, 12, hour, minute, tzinfo=UTC)


APPOINTMENTS = [
    (at(14), at(15), "Review", "Blue"),
    (at(9), at(9, 30), "Stand-up", "Green"),
    (at(10), at(12), "Interview", "Blue"),
    (at(11), at(11, 30), "Call", "Red"),
    (at(9, 30), at(10), "Planning", "Green"),
]


# What many users would do: isotone simulate 16_client_side
load = Workload("calendars", tables=[calendars])
people = load.population("calendar", 500_000, activity=0.3)


@load.action(by=people, per_day=2)
def invite(call: WorkloadCall) -> None:
    starts = at(9 + call.chance.randrange(8), call.chance.randrange(60))
    call.store.put(
        Appointment(calendar=call.member.id, starts=starts, ends=at(18), title="Call", room="Blue")
    )


@load.action(by=people, per_day=20)
def show_the_day(call: WorkloadCall) -> None:
    call.store.page(Appointment.primary.where(Appointment.calendar == call.member.id), size=50)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.create_tables(calendars)
        for starts, ends, title, room in APPOINTMENTS:
            appointment = Appointment(
                calendar="ann", starts=starts, ends=ends, title=title, room=room
            )
            store.put(appointment)

        day = store.load(Appointment.primary.where(Appointment.calendar == "ann"))
        print("Loaded once, in the order of the key")
        isotone.show(day)

        columns = (Appointment.room, Appointment.title, Appointment.starts)
        print("\nBy room, the latest first")
        print(day.sorted_by(Appointment.room, desc(Appointment.starts)).table(*columns))

        print("\nIn the green or the blue room, by title")
        chosen = day.where(Appointment.room.is_in(["Green", "Blue"]))
        print(chosen.sorted_by(Appointment.title).table(*columns))

        print("\nFree between 8 and 18 o'clock")
        free = day.gaps(Appointment.starts, Appointment.ends, between=(at(8), at(18)))
        for begins, ends in free:
            print(f"{begins:%H:%M} – {ends:%H:%M}")

        for number in range(5):
            name, content = f"{number}.pdf", bytes(300_000)
            store.put(Attachment(calendar="ann", name=name, content=content))
        print("\nA larger collection")
        try:
            store.load(Attachment.primary.where(Attachment.calendar == "ann"))
        except TooLarge as error:
            print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
