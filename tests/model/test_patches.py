"""Patches: changes of an update from a dict, a model or the body of a request."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Patch,
    Table,
    computed,
    created,
    field,
    updated,
    version,
)
from isotone.errors import InvalidEntity, UsageError

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Line(BaseModel):
    sku: str
    count: int = 1


class Order(Entity, table=shop):
    customer_id: Attr[str] = field()
    number: Attr[int] = field(max=999)
    status: Attr[Literal["PLACED", "SHIPPED"]] = field(default="PLACED", description="where it is")
    total: Attr[Decimal] = field(min=0, max=999, default=Decimal(0))
    note: Attr[str | None] = field()
    tags: Attr[set[str]] = field(default_factory=set)
    lines: Attr[list[Line]] = field(default_factory=list)
    label: Attr[str] = computed(lambda order: f"{order.number} {order.status}")
    revision: Attr[int] = version()
    made_at: Attr[datetime] = created()
    changed_at: Attr[datetime] = updated()

    primary = Key("CUSTOMER", customer_id).sort("ORDER", number)
    by_status = Index("GSI1", "STATUS", status).sort(number)


class OrderPatch(BaseModel):
    status: Literal["PLACED", "SHIPPED"] | None = None
    note: str | None = None
    lines: list[Line] | None = None


def test_a_patch_is_the_changes_of_an_update() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        order = store.put(Order(customer_id="ann", number=1, note="gift", tags={"new"}))
        patch: dict[str, Any] = {"status": "SHIPPED", "total": "9.5", "note": None, "tags": []}
        after = store.update(order, *Order.changes(**patch))
        assert (after.status, after.total, after.note, after.tags) == (
            "SHIPPED",
            Decimal("9.5"),
            None,
            set(),
        )
        assert after.label == "1 SHIPPED"
        assert store.all(Order.by_status.where(Order.status == "SHIPPED")) == [after]


def test_of_a_model_what_was_set_counts() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        order = store.put(Order(customer_id="ann", number=1, note="gift"))
        patch = OrderPatch.model_validate({"lines": [{"sku": "lamp"}]})
        one = store.update(order, *Order.changes(patch))
        assert (one.note, one.lines) == ("gift", [Line(sku="lamp")])
        two = store.update(
            one, *Order.changes(**OrderPatch(note=None).model_dump(exclude_unset=True))
        )
        assert (two.note, two.lines) == (None, [Line(sku="lamp")])
        three = store.update(two, *Order.changes({"note": "x"}, status="SHIPPED"))
        assert (three.note, three.status) == ("x", "SHIPPED")


def test_every_fault_of_a_patch_is_reported() -> None:
    with pytest.raises(InvalidEntity) as raised:
        Order.changes(number=7, revision=3, label="x", made_at=None, total="much", status=None)
    assert [(each["field"], each["error"].partition(":")[0]) for each in raised.value.errors] == [
        ("number", "is part of the primary key, which store.move changes"),
        ("status", "is None"),
        ("total", "is 'much'"),
        ("label", "cannot be changed"),
        ("revision", "cannot be changed"),
        ("made_at", "cannot be changed"),
    ]
    with pytest.raises(InvalidEntity, match=r"Order has no field 'statu' .did you mean 'status'"):
        Order.changes(statu="SHIPPED")
    with pytest.raises(UsageError, match="5 is not a patch; give a dict"):
        Order.changes(5)


def test_an_empty_patch_has_no_changes() -> None:
    assert Order.changes() == Order.changes({}) == Order.changes(OrderPatch()) == []


values = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["PLACED", "SHIPPED"]),
        "total": st.integers(0, 999).map(Decimal),
        "note": st.none() | st.text(),
        "tags": st.sets(st.text(min_size=1)),
        "lines": st.lists(st.builds(Line, sku=st.text())),
    },
)


@given(values)
def test_an_update_by_a_patch_is_a_replacement(patch: dict[str, Any]) -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        order = store.put(Order(customer_id="ann", number=1, note="gift", tags={"new"}))
        expected = order.replace(**patch)
        if patch:
            store.update(order, *Order.changes(patch))
        found = store.get(Order, customer_id="ann", number=1)
        assert found is not None
        assert found.replace(revision=1, changed_at=order.changed_at) == expected


# As a type


def faults(patch: Any, kind: Any = Patch[Order]) -> dict[Any, str]:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(kind).validate_python(patch)
    return {each["loc"]: each["type"] for each in raised.value.errors()}


def test_a_patch_has_the_fields_that_were_given() -> None:
    patch = TypeAdapter(Patch[Order]).validate_json('{"note": null, "total": 2.5}')
    assert patch == {"note": None, "total": Decimal("2.5")}
    assert repr(patch) == "Patch[Order](total=Decimal('2.5'), note=None)"
    assert patch.entity is Order
    assert len(patch.changes()) == len(Order.changes(**patch)) == 2
    assert TypeAdapter(Patch[Order]).validate_python(patch) is patch
    assert TypeAdapter(Patch[Order]).dump_json(patch) == b'{"total":"2.5","note":null}'


def test_a_patch_is_checked() -> None:
    assert faults({"number": 1, "status": None, "total": 1000, "colour": 1, "revision": 9}) == {
        ("status",): "literal_error",
        ("total",): "less_than_equal",
        ("number",): "extra_forbidden",
        ("colour",): "extra_forbidden",
        ("revision",): "extra_forbidden",
    }
    for kind in (Patch, Patch[Any], Patch[Line]):  # type: ignore[type-var] # no entity
        with pytest.raises(UsageError, match=r"write Patch\[Order\]"):
            TypeAdapter(kind)


def test_the_schema_of_a_patch_requires_nothing() -> None:
    schema = TypeAdapter(Patch[Order]).json_schema()
    assert schema["title"] == "Patch[Order]"
    assert list(schema["properties"]) == ["status", "total", "note", "tags", "lines"]
    assert schema["properties"]["status"]["description"] == "where it is"
    assert "required" not in schema
    assert not any("default" in each for each in schema["properties"].values())


app = FastAPI()


@app.patch("/orders/{number}")
async def change(number: int, patch: Patch[Order]) -> Order:
    return Order(customer_id="ann", number=number, made_at=datetime.now(UTC)).replace(**patch)


def test_a_patch_is_a_body() -> None:
    async def send(body: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            return await client.patch("/orders/7", json=body)

    answer = asyncio.run(send({"total": 1.5, "lines": [{"sku": "lamp"}]}))
    assert answer.status_code == 200
    assert (answer.json()["total"], answer.json()["lines"][0]["count"]) == ("1.5", 1)
    answer = asyncio.run(send({"total": "x"}))
    assert [each["loc"] for each in answer.json()["detail"]] == [["body", "total"]]
