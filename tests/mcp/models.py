"""The model that assistants get in these tests: customers, and their orders by status."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from isotone import Attr, Entity, Global, Index, Key, Table, desc, field

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Customer(Entity, table=shop):
    """Who orders."""

    customer_id: Attr[str] = field()
    name: Attr[str] = field()

    primary = Key("CUSTOMER", customer_id).sort("CUSTOMER")


class Order(Entity, table=shop):
    customer_id: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Literal["OPEN", "PAID", "SHIPPED"]] = field(default="OPEN")
    placed_at: Attr[datetime] = field()
    total: Attr[Decimal] = field(max=9_999, scale=2)

    primary = Key("CUSTOMER", customer_id).sort("ORDER", desc(number))
    by_status = Index("GSI1", "STATUS", status).sort(placed_at)
