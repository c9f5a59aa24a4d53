"""The order as an entity of Isotone, and the time that it takes to declare it."""

from __future__ import annotations

import time
from datetime import datetime
from decimal import Decimal
from typing import Literal

from bench.model_values import TABLE
from isotone import Attr, Entity, Key, Table, field

orders = Table(TABLE, partition="pk", sort="sk")

_began = time.perf_counter()


class Order(Entity, table=orders):
    """Ten fields, and a key of two of them."""

    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Literal["PLACED", "SHIPPED", "CANCELLED"]] = field()
    placed_at: Attr[datetime] = field()
    total: Attr[Decimal] = field()
    quantity: Attr[int] = field()
    gift: Attr[bool] = field()
    tags: Attr[set[str]] = field()
    address: Attr[dict[str, str]] = field()
    note: Attr[str] = field()

    primary = Key("CUSTOMER", customer).sort("ORDER", number)


SECONDS_TO_DECLARE = time.perf_counter() - _began
