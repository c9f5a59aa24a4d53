"""A model with a field of every type that has an input of its own, keys, an index, a unique value and what is maintained."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from isotone import Attr, Entity, Global, Index, Key, Table, field
from isotone.model import computed, created, desc, expires, updated, version


class Size(Enum):
    """An enum whose values are numbers."""

    SMALL = 1
    LARGE = 2


class Address(BaseModel):
    """A nested model."""

    street: str
    number: int = Field(ge=1)
    floor: int | None = None


@dataclass
class Line:
    """A nested dataclass, of which an order has several."""

    sku: str
    price: Decimal
    added: datetime | None = None


shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=shop):
    """An order of a customer."""

    customer: Attr[str] = field()
    placed: Attr[datetime] = field(description="when the customer ordered")
    status: Attr[Literal["OPEN", "PAID", "SENT"]] = field(default="OPEN")
    size: Attr[Size] = field(default=Size.SMALL)
    count: Attr[Annotated[int, Field(ge=1, le=99)]] = field(default=1)
    total: Attr[Decimal] = field(min=0)
    weight: Attr[float | None] = field(default=None)
    is_gift: Attr[bool] = field(default=False)
    note: Attr[str | None] = field(default=None)
    due: Attr[date | None] = field(default=None)
    at: Attr[time | None] = field(default=None)
    lasts: Attr[timedelta | None] = field(default=None)
    photo: Attr[bytes | None] = field(default=None)
    token: Attr[UUID | None] = field(default=None)
    tags: Attr[set[str]] = field(default_factory=set)
    scores: Attr[list[int]] = field(default_factory=list)
    prices: Attr[dict[str, Decimal]] = field(default_factory=dict)
    address: Attr[Address | None] = field(default=None)
    lines: Attr[list[Line]] = field(default_factory=list)
    extra: Attr[Any] = field(default=None)
    invoice: Attr[str] = field(unique=True)
    until: Attr[datetime | None] = expires()
    version: Attr[int] = version()
    made: Attr[datetime] = created()
    changed: Attr[datetime] = updated()
    label: Attr[str] = computed(lambda order: f"{order.customer}: {order.total}")

    primary = Key("CUSTOMER", customer).sort("ORDER", desc(placed))
    open = Index("GSI1", "STATUS", status, when=status != "SENT").sort("PLACED", placed)


class Customer(Entity, table=shop):
    """A customer, without a version."""

    login: Attr[str] = field()
    name: Attr[str] = field()
    city: Attr[str | None] = field(default=None)

    primary = Key("CUSTOMER", login).sort("PROFILE")


MOMENT = datetime(2026, 9, 1, 12, 30, tzinfo=UTC)


def order(**more: Any) -> Order:
    """An order with little in it."""
    values: dict[str, Any] = {
        "customer": "ann",
        "placed": MOMENT,
        "total": Decimal("12.5"),
        "invoice": "I-1",
    }
    return Order(**{**values, **more})


def full() -> dict[str, Any]:
    """What a form sends for each field that may be given, in other values than the defaults."""
    return {
        "customer": "bob",
        "placed": "2026-09-02T10:00:00+02:00",
        "status": "PAID",
        "size": "LARGE",
        "count": "7",
        "total": "1234567890123456789012345.67",
        "weight": "1.5",
        "is_gift": True,
        "note": "two\nlines",
        "due": "2026-10-01",
        "at": "08:15:00",
        "lasts": "1d 2h 30m",
        "photo": "AAEC",
        "token": "5f0c1c0e-0000-4000-8000-000000000001",
        "tags": ["new", "red"],
        "scores": ["3", "1"],
        "prices": {"net": "1.1", "gross": "1.31"},
        "address": {"street": "Long Lane", "number": "4", "floor": None},
        "lines": [{"sku": "a", "price": "2.5", "added": "2026-09-02T08:00:00Z"}],
        "extra": {"M": {"anything": {"L": [{"N": "1"}]}}},
        "invoice": "I-2",
        "until": "2099-01-01T00:00:00Z",
    }
