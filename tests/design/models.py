"""Models to make samples of: a shop with every kind of relation, and an entity with every kind of field."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, Field, HttpUrl
from typing_extensions import TypedDict

from isotone import (
    KSUID,
    ULID,
    Attr,
    Codec,
    Entity,
    Global,
    Index,
    Key,
    Local,
    Number,
    Table,
    Vector,
    computed,
    created,
    created_id,
    desc,
    expires,
    field,
    in_order,
    updated,
    vector,
    version,
    written,
)

shop = Table(
    "shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "by_total": Local(Number("total"))}
)

Status = Literal["OPEN", "PAID", "SHIPPED"]


class Customer(Entity, table=shop):
    customer_id: Attr[str] = field()
    name: Attr[str] = field()
    email: Attr[str] = field(unique=True)
    joined: Attr[datetime] = created()

    primary = Key("CUSTOMER", customer_id).sort("CUSTOMER")


class Settings(Entity, table=shop):
    customer_id: Attr[str] = field()
    language: Attr[Literal["en", "de"]] = field(default="en")

    primary = Key("CUSTOMER", customer_id).sort("SETTINGS")


class Order(Entity, table=shop):
    customer_id: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Status] = field(default="OPEN")
    placed_at: Attr[datetime] = field()
    total: Attr[Decimal] = field(max=9_999, scale=2)

    primary = Customer.primary.children(customer_id).after("ORDER", desc(number))
    open = Index("GSI1", "STATUS", status, when=status != "SHIPPED").sort(placed_at)


class Line(Entity, table=shop):
    customer_id: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    line: Attr[int] = field(max=99)
    product_id: Attr[str] = field()
    count: Attr[int] = field()

    primary = Key("ORDER", customer_id, number).sort("LINE", line)
    by_product = Index("GSI1", "PRODUCT", product_id).sort("LINE", customer_id, number, line)


class Product(Entity, table=shop):
    product_id: Attr[str] = field()
    title: Attr[str] = field()

    primary = Key("PRODUCT", product_id).sort("PRODUCT")


class Review(Entity, table=shop):
    product_id: Attr[str] = field()
    customer_id: Attr[str] = field()
    stars: Attr[Annotated[int, Field(ge=1, le=5)]] = field()

    primary = Product.primary.children(product_id).after("REVIEW", customer_id)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    city: str
    zip: Annotated[str, Field(min_length=5, max_length=5)]


@dataclass
class Size:
    width: int
    height: float


class Point(NamedTuple):
    x: int
    y: int


class Mood(TypedDict):
    word: str


everything = Table("everything", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Base(Entity, table=everything):
    made: Attr[KSUID] = created_id()
    title: Attr[str] = field()
    changed: Attr[datetime] = updated()
    ends: Attr[datetime | None] = expires(default=None)
    revision: Attr[int] = version()

    primary = Key("BASE", made).sort("BASE")


class First(Base):
    color: Attr[Color] = field()
    address: Attr[Address] = field()
    size: Attr[Size] = field()
    point: Attr[Point] = field()
    mood: Attr[Mood] = field()
    home: Attr[HttpUrl] = field()
    numbers: Attr[list[int]] = field(default_factory=list)
    words: Attr[set[str]] = field(default_factory=set)
    scores: Attr[dict[str, float]] = field(default_factory=dict)
    pair: Attr[tuple[int, str]] = field()
    either: Attr[int | str] = field()
    anything: Attr[Any] = field(default=None)
    code: Attr[Annotated[str, Field(min_length=3, max_length=4)]] = field()
    part: Attr[Annotated[float, Field(gt=0, lt=1)]] = field(default=0.5)


class Second(Base):
    day: Attr[date] = field()
    hour: Attr[time] = field()
    lasts: Attr[timedelta] = field()
    uuid: Attr[UUID] = field()
    ulid: Attr[ULID | None] = field(default=None)
    raw: Attr[bytes] = field()
    flag: Attr[bool] = field(default=False)
    coded: Attr[str] = field(codec=Codec(str.upper, str.lower))
    shape: Attr[Vector] = vector(4)
    twice: Attr[int] = computed(lambda each: 2 * len(each.title))


logs = Table("logs", partition="device", sort=Number("at"))


class Log(Entity, table=logs):
    device: Attr[str] = field()
    at: Attr[int] = field()
    urgency: Attr[Literal["LOW", "HIGH"]] = field()

    primary = Key(device).sort(at)


days = Table("days")


class Day(Entity, table=days):
    at: Attr[datetime] = field()
    level: Attr[Literal["low", "high"]] = field()

    primary = Key("DAY").sort(written(at, "%Y-%m-%d"), in_order(level))


class Configuration(Entity, table=days):
    text: Attr[str] = field()

    primary = Key("CONFIGURATION").sort("CONFIGURATION")


desk = Table("desk")


class Tenant(Entity, table=desk):
    tenant: Attr[str] = field()

    primary = Key("TENANT", tenant).sort("TENANT")


class Member(Entity, table=desk):
    tenant: Attr[str] = field()
    member_id: Attr[ULID] = field()

    primary = Tenant.primary.children(tenant).after("USER", member_id)


class Project(Entity, table=desk):
    tenant: Attr[str] = field()
    project: Attr[str] = field()

    primary = Key("PROJECTS", tenant).sort("PROJECT", project)


class Task(Entity, table=desk):
    tenant: Attr[str] = field()
    project: Attr[str] = field()
    number: Attr[int] = field(max=9_999)
    member_id: Attr[ULID | None] = field(default=None)

    primary = Key("TASKS", tenant, project).sort("TASK", number)
