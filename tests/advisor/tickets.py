"""A table of teams and their tickets, with indexes of every kind."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import isotone
from isotone import Attr, Entity, Global, Index, Key, Local, Table, desc, field, in_order, updated

places = Table(
    "places",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "by_lead": Global("lead", projection="KEYS_ONLY"),
        "by_points": Local(isotone.Number("points"), projection=("urgency",)),
    },
)
Urgency = Literal["LOW", "HIGH", "CRITICAL"]


class Team(Entity, table=places):
    team: Attr[str] = field()
    lead: Attr[str] = field()

    primary = Key("TEAM", team).sort("A")


class Ticket(Entity, table=places):
    team: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    urgency: Attr[Urgency] = field(default="LOW")
    changed_at: Attr[datetime] = updated()
    closed: Attr[bool] = field(default=False)

    primary = Key("TEAM", team).sort("TICKET", desc(number))
    waiting = Index("GSI1", "TEAM", team, when=~closed).sort(desc(in_order(urgency)), changed_at)


def fill(store: isotone.Store, count: int = 40) -> None:
    """Forty tickets of one team, three of another; every tenth is critical, every third closed."""
    urgencies: list[Urgency] = ["CRITICAL", *["LOW"] * 6, "HIGH", "LOW", "LOW"]
    store.put_many(
        Ticket(team="blue", number=n, urgency=urgencies[n % 10], closed=n % 3 == 0)
        for n in range(1, count + 1)
    )
    store.put_many(Ticket(team="red", number=n) for n in range(1, 4))
    store.put(Team(team="blue", lead="ann"))
