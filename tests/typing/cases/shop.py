"""The entities that the other cases use."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from isotone import Attr, Entity, Global, Index, Key, Table, computed, desc, field, version

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Customer(Entity, table=shop):
    customer_id: Attr[str] = field()
    name: Attr[str] = field()
    nick: Attr[str | None] = field(default=None)

    primary = Key("CUSTOMER", customer_id).sort("PROFILE")


class Order(Entity, table=shop):
    customer_id: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Literal["PLACED", "SHIPPED", "CANCELLED"]] = field(default="PLACED")
    ordered_at: Attr[datetime] = field()
    total: Attr[Decimal] = field()
    tags: Attr[set[str]] = field(default_factory=set)
    label: Attr[str] = computed(lambda order: f"{order.customer_id}/{order.number}")
    revision: Attr[int] = version()

    primary = Key("CUSTOMER", customer_id).sort("ORDER", desc(number))
    by_status = Index("GSI1", "CUSTOMER", customer_id).sort(status, ordered_at)
