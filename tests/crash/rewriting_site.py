"""The orders whose keys the test of kills changes: the former program, and the present one."""

from __future__ import annotations

from isotone import Attr, Entity, Global, Index, Key, Table, field, raw

INDEXES = {"GSI1": Global("GSI1PK", "GSI1SK")}


class Purchase(Entity, table=Table("orders", indexes=INDEXES)):
    customer: Attr[int] = field()
    number: Attr[int] = field()
    status: Attr[str] = field(default="OPEN")

    primary = Key("CUSTOMER", raw(customer), separator="|").sort("BUY", raw(number))


class Order(Entity, table=Table("orders", indexes=INDEXES), was_tag="Purchase"):
    customer: Attr[int] = field(max=9)
    number: Attr[int] = field(max=999_999, alert=None)
    status: Attr[str] = field(default="OPEN")
    writes: Attr[int] = field(default=0)

    primary = (
        Key("ORDERS", customer)
        .sort("ORDER", number)
        .was(Key("CUSTOMER", raw(customer), separator="|").sort("BUY", raw(number)))
    )
    by_status = Index("GSI1", status).sort(number)
