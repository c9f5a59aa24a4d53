"""One planted fault for each code of lint that is found in declarations. No module outside the tests imports this."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from isotone import Attr, Entity, Global, Index, Key, Local, Number, Table, field, raw

shop = Table(
    "planted_shop",
    indexes={
        "unused": Global("GSI9PK", "GSI9SK"),
        "roles": Global("GSI1PK", "GSI1SK"),
        "due": Local(Number("due"), projection="KEYS_ONLY"),
    },
)
Status = Literal["PLACED", "SHIPPED"]


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field()
    status: Attr[Status] = field()
    ordered_at: Attr[datetime] = field()
    due: Attr[int | None] = field(default=None)
    title: Attr[str] = field()

    primary = Key("ORDER", customer).sort(raw(number))
    reverse = Index("roles", "ORDERS", customer).sort(ordered_at, status)
    by_due = Index("due", "ORDER", customer).sort(due)


class Admin(Entity, table=shop):
    email: Attr[str] = field()
    role: Attr[str] = field()
    hired_at: Attr[str] = field()

    primary = Key("ADMIN", email).sort("HIRED", hired_at)
    admins = Index("roles", "ADMINS", when=role == "Admin").sort(email)


class Visit(Entity, table=shop):
    day: Attr[date] = field()
    at: Attr[datetime] = field()

    primary = Key("DAY", day).sort(at)


shipped = Order.primary.where(Order.customer == "ann").filter(Order.status == "SHIPPED")
PLANTED = {"ISO101", "ISO103", "ISO104", "ISO105", "ISO202", "ISO205", "ISO301", "ISO302", "ISO303"}
