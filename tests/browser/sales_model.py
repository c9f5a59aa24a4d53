"""Orders of customers with their lines, for the tests of what users do in the workbench."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from isotone import Attr, Entity, Global, Index, Key, Table, field, version

sales = Table("sales", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=sales):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Literal["PLACED", "PAID", "SHIPPED"]] = field(default="PLACED")
    placed: Attr[datetime] = field(precision="seconds")
    total: Attr[Decimal] = field(min=0)
    revision: Attr[int] = version()

    primary = Key("ORDER", number).sort("ORDER")
    by_customer = Index("GSI1", "CUSTOMER", customer).sort("PLACED", placed)


class Line(Entity, table=sales):
    number: Attr[int] = field(max=99_999)
    line: Attr[int] = field(max=99)
    product: Attr[str] = field()
    quantity: Attr[int] = field(min=1)

    primary = Order.primary.children(number).after("LINE", line)
