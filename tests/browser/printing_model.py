"""Jobs of a printing shop with their sheets: found by customer with the latest due date first, and by status."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal

from isotone import Attr, Entity, Global, Index, Key, Table, desc, field

press = Table(
    "press", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")}
)


class Job(Entity, table=press):
    number: Attr[int] = field(max=99_999)
    customer: Attr[str] = field()
    due: Attr[date] = field()
    status: Attr[Literal["QUOTED", "PRINTING", "COLLECTED"]] = field(default="QUOTED")
    title: Attr[str] = field()
    total: Attr[Decimal] = field(max=99_999, scale=2)
    machine: Attr[str] = field(default="Heidelberg 1")

    primary = Key("JOB", number).sort("JOB")
    of_customer = Index("GSI1", "CUSTOMER", customer).sort("JOB", desc(due), number)
    by_status = Index("GSI2", "STATUS", status).sort(due, number)


class Sheet(Entity, table=press):
    job: Attr[int] = field(max=99_999)
    line: Attr[int] = field(max=99)
    paper: Attr[Literal["matt", "gloss"]] = field(default="matt")
    copies: Attr[int] = field(max=999_999)
    price: Attr[Decimal] = field(max=9_999, scale=2)

    primary = Job.primary.children(job).after("SHEET", line)
