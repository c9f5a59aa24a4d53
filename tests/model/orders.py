"""A small shop, for the tests of stores and what stands around them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal

from isotone import Attr, Entity, Global, Index, Key, Table, desc, expires, field

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

START = datetime(2019, 7, 1, tzinfo=UTC)


class Order(Entity, table=shop):
    customer_id: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Literal["PLACED", "SHIPPED", "CANCELLED"]] = field()
    ordered_at: Attr[datetime] = field()
    total: Attr[Decimal] = field(default=Decimal(0))

    primary = Key("CUSTOMER", customer_id).sort("ORDER", desc(number))
    by_status = Index("GSI1", "CUSTOMER", customer_id).sort(status, ordered_at)


class Session(Entity, table=shop):
    token: Attr[str] = field()
    until: Attr[datetime | None] = expires()

    primary = Key("SESSION", token).sort("SESSION")


def order(number: int, customer_id: str = "2b5a41c0") -> Order:
    """The order of a number: every third is cancelled, one a day."""
    return Order(
        customer_id=customer_id,
        number=number,
        status="CANCELLED" if number % 3 == 0 else "SHIPPED",
        ordered_at=START + timedelta(days=number),
        total=Decimal(number) / 4,
    )
