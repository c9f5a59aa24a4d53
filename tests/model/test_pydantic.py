"""Entities as types of pydantic and FastAPI: input, dumps, JSON schema, responses."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pprint
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import httpx
import pytest
from annotated_types import MaxLen
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

import isotone
from isotone import (
    Attr,
    Entity,
    Key,
    Page,
    Stats,
    Table,
    computed,
    created,
    desc,
    expires,
    field,
    updated,
    version,
)
from isotone.errors import InvalidEntity, UsageError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
shop = Table("shop")


class Status(Enum):
    OPEN = "open"
    DONE = "done"


class Line(BaseModel):
    sku: str
    count: int = 1


class Order(Entity, table=shop):
    """An order of a customer.

    With its lines.
    """

    customer_id: Attr[Annotated[str, MaxLen(8)]] = field(description="who ordered")
    number: Attr[int] = field(max=999)
    total: Attr[Decimal] = field(min=1, max=99_999, scale=2)
    status: Attr[Status] = field(default=Status.OPEN)
    lines: Attr[list[Line]] = field(default_factory=list)
    tags: Attr[set[str]] = field(default_factory=set, name="t")
    photo: Attr[bytes | None] = field()
    shipped_at: Attr[datetime | None] = field(default=None)
    weight: Attr[int | None] = field(default=None, min=-5, max=10)
    label: Attr[str] = computed(lambda order: f"{order.customer_id}/{order.number}")
    revision: Attr[int] = version()
    made_at: Attr[datetime] = created()
    changed_at: Attr[datetime] = updated()
    until: Attr[datetime | None] = expires(default=None)

    primary = Key("CUSTOMER", customer_id).sort("ORDER", desc(number))


class Sketch(Entity):
    """A base: it has no table."""

    name: Attr[str] = field()


GIVEN: dict[str, Any] = {"customer_id": "ann", "number": 7, "total": "12.50"}


def order(**more: Any) -> Order:
    return Order(**{**GIVEN, **more})


def faults(call: Callable[[], object]) -> dict[tuple[int | str, ...], str]:
    """The places and the kinds of the errors that a validation raises."""
    with pytest.raises(ValidationError) as raised:
        call()
    return {each["loc"]: each["type"] for each in raised.value.errors()}


# Input


@pytest.mark.parametrize(
    "read",
    [
        Order.model_validate,
        lambda given: Order.model_validate_json(json.dumps(given)),
        TypeAdapter(Order).validate_python,
        lambda given: TypeAdapter(Order).validate_json(json.dumps(given)),
        lambda given: TypeAdapter(list[Order]).validate_python([given])[0],
    ],
)
def test_input_becomes_an_entity(read: Callable[[Any], Order]) -> None:
    given = {
        **GIVEN,
        "status": "done",
        "lines": [{"sku": "lamp"}],
        "tags": ["new"],
        "photo": "AAH/",
        "shipped_at": "2026-03-01T12:00:00Z",
    }
    assert read(given) == order(
        status=Status.DONE,
        lines=[Line(sku="lamp")],
        tags={"new"},
        photo=b"\x00\x01\xff",
        shipped_at=NOW,
    )


def test_an_entity_is_its_own_input() -> None:
    one = order(revision=3)
    assert Order.model_validate(one) is one
    assert TypeAdapter(list[Order]).validate_python([one])[0] is one


def test_input_does_not_set_what_the_library_maintains() -> None:
    given = {**GIVEN, "label": 5, "revision": "forged", "made_at": "never", "changed_at": None}
    read = Order.model_validate(given)
    assert (read.label, read.revision, read.made_at, read.changed_at) == ("ann/7", 0, None, None)


def test_a_client_may_send_back_what_it_got() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        stored = store.put(order(revision=0))
        again = Order.model_validate_json(stored.model_dump_json())
        assert (stored.revision, again.revision) == (1, 0)
        assert (
            again.replace(revision=1, made_at=stored.made_at, changed_at=stored.changed_at)
            == stored
        )


def test_the_constructor_takes_a_dump_as_a_whole() -> None:
    stored = order(revision=3, made_at=NOW, changed_at=NOW, lines=[Line(sku="lamp")])
    assert Order(**stored.model_dump()) == stored
    assert Order(**json.loads(stored.model_dump_json(exclude={"photo"}))) == stored


def test_every_fault_has_its_place() -> None:
    given = {
        "number": 1000,
        "total": "1.234",
        "lines": [{"sku": "a", "count": "x"}],
        "colour": "red",
    }
    assert faults(lambda: Order.model_validate(given)) == {
        ("customer_id",): "missing",
        ("number",): "less_than_equal",
        ("total",): "decimal_max_places",
        ("lines", 0, "count"): "int_parsing",
        ("colour",): "extra_forbidden",
    }


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("number", -1, "greater_than_equal"),  # the key has no room for a sign
        ("number", "7.5", "int_parsing"),
        ("total", "0.99", "greater_than_equal"),
        ("total", 1.0000000000000002, "inexact_number"),
        ("total", None, "decimal_type"),
        ("weight", -6, "greater_than_equal"),
        ("weight", 11, "less_than_equal"),
        ("shipped_at", "2026-03-01T12:00:00", "timezone_aware"),
        ("photo", "#", "base64"),
        ("status", "lost", "enum"),
        ("customer_id", "a" * 9, "string_too_long"),
    ],
)
def test_a_wrong_value_is_refused(name: str, value: Any, kind: str) -> None:
    assert faults(lambda: Order.model_validate({**GIVEN, name: value})) == {(name,): kind}


@pytest.mark.parametrize("total", [12.5, 99_998.25, 7, "12.50", Decimal("1.1")])
def test_numbers_of_json_are_decimals(total: Any) -> None:
    assert Order.model_validate({**GIVEN, "total": total}).total == Decimal(str(total))
    text = json.dumps({**GIVEN, "total": total}, default=str)
    assert Order.model_validate_json(text).total == Decimal(str(total))


def test_errors_name_the_entity() -> None:
    with pytest.raises(ValidationError, match="1 validation error for Order\ntotal\n"):
        Order.model_validate({**GIVEN, "total": []})
    assert faults(lambda: Order.model_validate(5)) == {(): "model_type"}


def test_the_constructor_raises_its_own_errors() -> None:
    with pytest.raises(InvalidEntity, match="Order has no field 'colour'"):
        Order(**GIVEN, colour="red")
    with pytest.raises(InvalidEntity, match="a float is not exact"):
        order(total=12.5)


def test_strict_input_has_the_types_of_json() -> None:
    assert Order.model_validate_json(json.dumps(GIVEN), strict=True) == order()
    text = json.dumps({**GIVEN, "number": "7"})
    assert faults(lambda: Order.model_validate_json(text, strict=True)) == {("number",): "int_type"}


def test_attributes_of_another_object_are_input() -> None:
    class Row:
        customer_id, number, total, lines, photo = "ann", 7, Decimal("12.5"), [Line(sku="a")], None

    assert Order.model_validate(Row(), from_attributes=True) == order(lines=[Line(sku="a")])


def test_defaults_are_not_shared() -> None:
    one, two = Order.model_validate(GIVEN), Order.model_validate(GIVEN)
    one.tags.add("mine")
    assert two.tags == set()


def test_a_base_has_no_input() -> None:
    for call in (lambda: Sketch.model_validate({}), lambda: TypeAdapter(Sketch)):
        with pytest.raises(UsageError, match="Sketch has no table"):
            call()


def test_an_entity_is_a_field_of_a_model() -> None:
    class Parcel(BaseModel):
        order: Order
        others: list[Order] = []

    parcel = Parcel.model_validate({"order": GIVEN, "others": [order()]})
    assert parcel.order == order()
    assert parcel.others == [order()]
    assert parcel.model_dump(mode="json")["order"] == order().model_dump(mode="json")
    assert faults(lambda: Parcel.model_validate({"order": {**GIVEN, "number": "x"}})) == {
        ("order", "number"): "int_parsing"
    }


@pytest.mark.parametrize("kind", [Order, list[Order], Order | None])
def test_an_entity_is_no_field_of_another(kind: Any) -> None:
    members: dict[str, Any] = {"pk": field(), "order": field()}
    members["__annotations__"] = {"pk": Attr[str], "order": Attr[kind]}
    members["primary"] = Key("A", members["pk"]).sort("B")
    with pytest.raises(UsageError, match="Order: an entity is an item of its own"):
        type("Parcel", (Entity,), members, table=Table("parcels"))


# Dumps


def test_a_dump_has_all_fields() -> None:
    one = order(photo=b"\xff", lines=[Line(sku="lamp")], tags={"new"}, shipped_at=NOW, revision=2)
    assert one.model_dump() == {**one.to_dict(), "lines": [{"sku": "lamp", "count": 1}]}
    assert one.model_dump(mode="json") == json.loads(one.model_dump_json())
    assert one.model_dump(mode="json") == {
        "customer_id": "ann",
        "number": 7,
        "total": "12.50",
        "status": "open",
        "lines": [{"sku": "lamp", "count": 1}],
        "tags": ["new"],
        "photo": "/w==",
        "shipped_at": "2026-03-01T12:00:00Z",
        "weight": None,
        "label": "ann/7",
        "revision": 2,
        "made_at": None,
        "changed_at": None,
        "until": None,
    }


def test_what_a_dump_has_is_chosen() -> None:
    one = order(lines=[Line(sku="lamp")])
    assert one.model_dump(include={"number", "label"}) == {"number": 7, "label": "ann/7"}
    assert one.model_dump(include={"lines": {0: {"sku"}}}) == {"lines": [{"sku": "lamp"}]}
    assert one.model_dump().keys() - one.model_dump(exclude={"total"}).keys() == {"total"}
    left = json.loads(
        one.model_dump_json(exclude_none=True, exclude_defaults=True, exclude={"lines"})
    )
    assert left.keys() == {"customer_id", "number", "total", "tags", "label", "revision"}


def test_a_dump_of_a_part_has_what_was_read() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        store.put(order())
        (part,) = store.all(
            Order.primary.where(Order.customer_id == "ann").select(Order.number, Order.total)
        )
        assert part.model_dump(mode="json") == {"number": 7, "total": "12.5"}


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
orders = st.builds(
    Order,
    customer_id=texts,
    number=st.integers(0, 999),
    total=st.decimals(1, 99_999, places=2),
    status=st.sampled_from(Status),
    lines=st.lists(st.builds(Line, sku=texts, count=st.integers())),
    tags=st.sets(texts),
    photo=st.none() | st.binary(),
    shipped_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    weight=st.none() | st.integers(-5, 10),
)


@given(orders)
def test_json_gives_back_the_entity(one: Order) -> None:
    assert Order.model_validate_json(one.model_dump_json()) == one
    assert Order.model_validate(one.model_dump()) == one
    assert Order.model_validate(json.loads(one.model_dump_json())) == one


# JSON schema


def test_the_schema_says_what_the_declaration_says() -> None:
    schema = Order.model_json_schema()
    properties = schema["properties"]
    assert schema["title"] == "Order"
    assert schema["type"] == "object"
    assert schema["description"] == "An order of a customer.\n\nWith its lines."
    assert schema["required"] == ["customer_id", "number", "total"]
    assert schema["additionalProperties"] is False
    assert list(properties) == list(Order.__schema__.fields)
    assert properties["customer_id"] == {
        "description": "who ordered",
        "maxLength": 8,
        "title": "Customer Id",
        "type": "string",
    }
    assert (properties["number"]["minimum"], properties["number"]["maximum"]) == (0, 999)
    number = {"type": "number", "minimum": 1, "maximum": 99_999}
    assert number in properties["total"]["anyOf"]
    assert {"type": "integer", "minimum": -5, "maximum": 10} in properties["weight"]["anyOf"]
    assert properties["status"] == {"$ref": "#/$defs/Status", "default": "open"}
    assert schema["$defs"]["Status"]["enum"] == ["open", "done"]
    assert {"type": "string", "format": "base64"} in properties["photo"]["anyOf"]


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_what_the_library_maintains_is_read_only(mode: Any) -> None:
    schema = Order.model_json_schema(mode=mode)
    marked = {name for name, each in schema["properties"].items() if each.get("readOnly")}
    assert marked == {"label", "revision", "made_at", "changed_at"}


def test_a_dump_has_every_property_of_its_schema() -> None:
    schema = Order.model_json_schema(mode="serialization")
    assert schema["required"] == list(order().model_dump()) == list(schema["properties"])


# Pages


def test_a_page_is_its_items_and_its_cursors() -> None:
    pages = TypeAdapter(Page[Order])
    page = Page([order()], "next", None, Stats())
    text = pages.dump_json(page)
    assert json.loads(text) == {
        "items": [order().model_dump(mode="json")],
        "cursor": "next",
        "previous": None,
    }
    read = pages.validate_json(text)
    assert (read.items, read.cursor, read.previous) == ([order()], "next", None)
    assert pages.validate_python(page) is page
    schema = pages.json_schema(mode="serialization")
    assert schema["title"] == "Page[Order]"
    assert list(schema["properties"]) == [
        "items",
        "cursor",
        "previous",
    ]
    assert schema["properties"]["items"]["items"] == {"$ref": "#/$defs/Order"}


# Kinds

site = Table("site")


class Event(Entity, table=site):
    page: Attr[str] = field()
    at: Attr[int] = field(max=99)

    primary = Key("PAGE", page).sort("EVENT", at)


class Click(Event):
    button: Attr[int] = field()


class View(Event):
    seconds: Attr[int] = field(default=1)


def test_a_response_has_the_fields_of_its_declared_kind() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(site)
        store.put(Click(page="a", at=1, button=2))
        store.put(View(page="a", at=2))
        page = store.page(Event.primary.where(Event.page == "a"), size=9)
    click, view = {"page": "a", "at": 1, "button": 2}, {"page": "a", "at": 2, "seconds": 1}
    assert [each.model_dump() for each in page] == [click, view]
    for kind in (Page[Click | View], Page[View | Click]):
        assert TypeAdapter(kind).dump_python(page)["items"] == [click, view]
    base = TypeAdapter(Page[Event]).dump_python(page)["items"]
    assert base == [{"page": "a", "at": 1}, {"page": "a", "at": 2}]
    kinds = TypeAdapter(list[View | Click])
    assert list(map(type, kinds.validate_python([click, view]))) == [Click, View]


# The standard library


def test_an_entity_is_known_to_dataclasses() -> None:
    one = order(revision=4)
    assert dataclasses.is_dataclass(Order)
    assert not dataclasses.is_dataclass(Sketch)
    assert dataclasses.asdict(one) == one.to_dict()
    assert dataclasses.replace(one, number=8) == one.replace(number=8)
    names = {each.name: each.type for each in dataclasses.fields(Order)}
    assert list(names) == list(one.to_dict())
    assert names["weight"] == int | None
    assert pprint.pformat(one, width=10**6) == repr(one)


def test_entities_load_no_pydantic() -> None:
    program = (
        "import sys, isotone\n"
        "class A(isotone.Entity, table=isotone.Table('abc')):\n"
        "    x: isotone.Attr[str] = isotone.field()\n"
        "    primary = isotone.Key('A', x).sort('B')\n"
        "sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# FastAPI

app = FastAPI()


@app.post("/orders", status_code=201)
async def create(order: Order) -> Order:
    return order.replace(revision=1, made_at=NOW)


@app.post("/brief", response_model=list[Order], response_model_exclude_none=True)
async def brief(orders: list[Order]) -> Any:
    return orders


@app.get("/page")
async def page() -> Page[Order]:
    return Page([order()], "next", None, Stats())


@app.get("/parts", response_model=Order, response_model_include={"number"})
def parts() -> Any:
    return order()


@app.get("/untyped")
async def untyped():  # type: ignore[no-untyped-def] # as FastAPI's users may write it
    return order(total=3)


async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        yield client


def request(method: str, path: str, **options: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        async for each in client():
            return await each.request(method, path, **options)
        raise AssertionError

    return asyncio.run(send())


def test_a_body_is_an_entity() -> None:
    answer = request("POST", "/orders", json={**GIVEN, "total": 12.5, "revision": 99})
    assert answer.status_code == 201
    assert answer.json() == order(revision=1, made_at=NOW).model_dump(mode="json") | {
        "total": "12.5"
    }


def test_a_wrong_body_is_422_with_places() -> None:
    answer = request("POST", "/orders", json={"customer_id": "ann", "number": 1, "total": "much"})
    assert answer.status_code == 422
    assert [(each["loc"], each["type"]) for each in answer.json()["detail"]] == [
        (["body", "total"], "decimal_parsing")
    ]
    answer = request("POST", "/brief", json=[GIVEN, {**GIVEN, "lines": [{}]}])
    assert [each["loc"] for each in answer.json()["detail"]] == [["body", 1, "lines", 0, "sku"]]


def test_responses_take_fastapis_options() -> None:
    answer = request("POST", "/brief", json=[GIVEN])
    assert answer.json() == [order().model_dump(mode="json", exclude_none=True)]
    assert request("GET", "/parts").json() == {"number": 7}
    assert request("GET", "/untyped").json()["total"] == 3


def test_a_page_is_a_response() -> None:
    answer = request("GET", "/page").json()
    assert answer["cursor"] == "next"
    assert answer["items"] == [order().model_dump(mode="json")]


def test_openapi_has_the_entities() -> None:
    api = request("GET", "/openapi.json").json()
    schemas = api["components"]["schemas"]
    assert {"Order-Input", "Order-Output", "Page_Order_", "Line", "Status"} <= schemas.keys()
    body = api["paths"]["/orders"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/Order-Input"}
    assert schemas["Order-Input"]["properties"]["revision"]["readOnly"] is True
    assert schemas["Page_Order_"]["title"] == "Page[Order]"


def test_an_expiry_is_whole_seconds() -> None:
    read = Order.model_validate({**GIVEN, "until": "2026-03-01T12:00:00.75Z"})
    assert read.until == NOW
