"""Members of a library with their loans and the reservations of those, and copies of books, for the tests of what users do."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from isotone import Attr, Entity, Global, Index, Key, Table, field, version

library = Table(
    "library",
    indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")},
)


class Member(Entity, table=library):
    member: Attr[str] = field()
    name: Attr[str] = field()

    primary = Key("MEMBER", member).sort("MEMBER")


class Loan(Entity, table=library):
    member: Attr[str] = field()
    borrowed: Attr[datetime] = field(precision="seconds")
    title: Attr[str] = field()
    status: Attr[Literal["OUT", "OVERDUE", "RETURNED"]] = field(default="OUT")
    due: Attr[date] = field()
    fine: Attr[Decimal] = field(min=0, default=Decimal(0))
    renewals: Attr[list[date]] = field(default_factory=list)
    note: Attr[str | None] = field(default=None)
    revision: Attr[int] = version()

    primary = Key("MEMBER", member).sort("LOAN", borrowed)
    by_status = Index("GSI1", "STATUS", status).sort("DUE", due, member)
    by_title = Index("GSI2", "TITLE", title).sort("LOAN", borrowed)


class Reservation(Entity, table=library):
    """A loan's child: its key begins with that of the loan."""

    member: Attr[str] = field()
    borrowed: Attr[datetime] = field(precision="seconds")
    position: Attr[int] = field(min=1, max=99)
    reader: Attr[str] = field()

    primary = Key("MEMBER", member).sort("LOAN", borrowed, "RESERVATION", position)


class Copy(Entity, table=library):
    isbn: Attr[str] = field()
    number: Attr[int] = field(min=1, max=999)
    barcode: Attr[str] = field(unique=True)

    primary = Key("BOOK", isbn).sort("COPY", number)
