"""Tickets with the most recently updated one first.

A sort key of the table itself would have to be deleted and created again with each change. So `updated_at`,
which the library sets with every write, orders an index: one update of a ticket moves it to the top. A part of
the primary key cannot be changed in place; the error names `move`, which does it in one transaction.

    python examples/05_recently_updated.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    ManualClock,
    Observation,
    Table,
    field,
    updated,
)
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import UsageError

tickets = Table("tickets", indexes={"recent": Global("BOARD", "UPDATED")})


class Ticket(Entity, table=tickets):
    board: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    title: Attr[str] = field()
    updated_at: Attr[datetime] = updated()

    primary = Key("BOARD", board).sort("TICKET", number)
    recent = Index("recent", "BOARD", board).sort(updated_at)


# What many users would do: isotone simulate 05_recently_updated
load = Workload("boards", tables=[tickets])
boards = load.population("board", 200_000, activity=0.5)


@boards.starts_with
def open_tickets(call: WorkloadCall) -> None:
    for number in range(20):
        call.store.put(Ticket(board=call.member.id, number=number, title="A ticket"))


@load.action(by=boards, per_day=30)
def change(call: WorkloadCall) -> None:
    board, number = call.member.id, call.chance.randrange(20)
    call.store.update(Ticket, Ticket.title.set("Another title"), board=board, number=number)


@load.action(by=boards, per_day=100)
def show_recent(call: WorkloadCall) -> None:
    call.store.page(Ticket.recent.where(Ticket.board == call.member.id).reversed(), size=10)


def main(address: str = ":memory:") -> None:
    clock = ManualClock(datetime(2026, 1, 1, 9, 0, tzinfo=UTC))
    sent: list[Observation] = []
    observe = [isotone.at_end(sent.append)]
    newest = Ticket.recent.where(Ticket.board == "help").newest_first()

    with isotone.connect(address, clock=clock, observe=observe) as store:
        store.create_tables(tickets)
        for number, title in enumerate(["Printer", "Password", "Projector"], start=1):
            store.put(Ticket(board="help", number=number, title=title))
            clock.advance(timedelta(hours=1))
        print("The most recently updated first")
        isotone.show(store.all(newest), by=Ticket.recent)

        sent.clear()
        store.update(Ticket, Ticket.title.set("Printer is on fire"), board="help", number=1)
        print(f"\nAfter an update of ticket 1: {', '.join(each.operation for each in sent)}")
        isotone.show(store.all(newest), by=Ticket.recent)

        print("\nIts number is part of the primary key")
        try:
            store.update(Ticket, Ticket.number.set(4), board="help", number=1)
        except UsageError as error:
            print(error)

        sent.clear()
        clock.advance(timedelta(hours=1))
        store.move(Ticket, Ticket.number.set(4), board="help", number=1)
        print(f"\nMoved: {', '.join(each.operation for each in sent)}")
        isotone.show(store.all(Ticket.primary.where(Ticket.board == "help")))
        store.delete(Ticket, board="help", number=4)


if __name__ == "__main__":
    main(*sys.argv[1:])
