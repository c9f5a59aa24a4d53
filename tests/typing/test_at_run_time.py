"""What no type checker can see is refused when an entity is defined, or at the call, with what to write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar, Literal

import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, desc, field
from isotone.errors import UsageError

NOW = datetime(2026, 1, 11, tzinfo=UTC)


@pytest.fixture
def table() -> Table:
    return Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Shop:
    """Two entities of one table, and a store that has it."""

    def __init__(self, table: Table) -> None:
        class Customer(Entity, table=table):
            customer_id: Attr[str] = field()
            name: Attr[str] = field()

            primary = Key("CUSTOMER", customer_id).sort("PROFILE")

        class Order(Entity, table=table):
            customer_id: Attr[str] = field()
            number: Attr[int] = field(max=99_999)
            status: Attr[Literal["PLACED", "SHIPPED"]] = field(default="PLACED")
            ordered_at: Attr[datetime] = field(default=NOW)
            total: Attr[Decimal] = field(default=Decimal(0))

            primary = Key("CUSTOMER", customer_id).sort("ORDER", desc(number))
            by_status = Index("GSI1", "CUSTOMER", customer_id).sort(status, ordered_at)

        self.customer: Any = Customer
        self.order: Any = Order
        self.store = isotone.connect(":memory:")
        self.store.create_tables(table)


@pytest.fixture
def shop(table: Table) -> Shop:
    return Shop(table)


# When an entity is defined


def unknown_index(table: Table) -> None:
    class Thing(Entity, table=table):
        name: Attr[str] = field()
        primary = Key("THING", name).sort("THING")
        by_name = Index("GSI2", "NAME").sort(name)


def undeclared_width(table: Table) -> None:
    class Thing(Entity, table=table):
        number: Attr[int] = field()
        primary = Key("THINGS").sort("THING", number)


def missing_type(table: Table) -> None:
    class Thing(Entity, table=table):
        name = field()
        primary = Key("THING", name).sort("THING")


def plain_type(table: Table) -> None:
    class Thing(Entity, table=table):
        name: Attr[str] = field()
        size: int = 0
        limit: ClassVar[int] = 3
        primary = Key("THING", name).sort("THING")


def missing_declaration(table: Table) -> None:
    class Thing(Entity, table=table):
        name: Attr[str] = field()
        size: Attr[int]
        primary = Key("THING", name).sort("THING")


def no_order_in_a_list(table: Table) -> None:
    class Thing(Entity, table=table):
        names: Attr[list[str]] = field()
        primary = Key("THING", names).sort("THING")


def no_sort_key(table: Table) -> None:
    class Thing(Entity, table=table):
        name: Attr[str] = field()
        primary = Key("THING", name)


def no_primary_key(table: Table) -> None:
    class Thing(Entity, table=table):
        name: Attr[str] = field()


def two_primary_keys(table: Table) -> None:
    class Thing(Entity, table=table):
        name: Attr[str] = field()
        primary = Key("THING", name).sort("THING")
        other = Key("OTHER", name).sort("THING")


@pytest.mark.parametrize(
    ("define", "words"),
    [
        (unknown_index, "declares no index 'GSI2' (it has: GSI1); add it to Table(indexes={...})"),
        (undeclared_width, "10 would come before 2"),
        (missing_type, "field 'name' has no type; declare it as `name: Attr[…] = field(…)`"),
        (missing_declaration, "field 'size' has a type but no field(); write `= field()`"),
        (
            plain_type,
            "'size' is not a field, so it would not be stored; declare it as `size: Attr[…]",
        ),
        (no_order_in_a_list, "cannot be part of a string key"),
        (no_sort_key, "key 'primary' has no sort parts; add .sort(…)"),
        (no_primary_key, "it has no primary key; declare one"),
        (two_primary_keys, "declare all but one as an index: Index(…)"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(
    table: Table, define: Callable[[Table], None], words: str
) -> None:
    with pytest.raises(UsageError) as refused:
        define(table)
    assert str(refused.value).startswith("Thing: ")
    assert words in str(refused.value)


# At the call

WRONG_CALLS: dict[str, tuple[Callable[[Shop], object], str]] = {
    "a misspelt field": (
        lambda shop: shop.customer(customer_id="a", nmae="Ann"),
        "Customer has no field 'nmae' (did you mean 'name'?)",
    ),
    "a missing field": (lambda shop: shop.customer(customer_id="a"), "name is missing"),
    "a wrong type": (
        lambda shop: shop.order(customer_id="a", number="x"),
        "number is 'x': Input should be a valid integer",
    ),
    "a wrong choice": (
        lambda shop: shop.order(customer_id="a", number=1, status="LOST"),
        "status is 'LOST': Input should be 'PLACED' or 'SHIPPED'",
    ),
    "a naive datetime": (
        lambda shop: shop.order(customer_id="a", number=1, ordered_at=datetime(2026, 1, 1)),
        "no time zone",
    ),
    "a wrong type in a comparison": (
        lambda shop: shop.order.number == "157",
        "field 'number': '157' is a str, but an int is expected",
    ),
    "a wrong choice in a comparison": (
        lambda shop: shop.order.status == "LOST",
        "field 'status': 'LOST' is a str, but one of 'PLACED', 'SHIPPED' is expected",
    ),
    "a wrong type in a change": (
        lambda shop: shop.store.update(
            shop.order, shop.order.number.set("x"), customer_id="a", number=1
        ),
        "number",
    ),
    "a misspelt key": (
        lambda shop: shop.store.get(shop.order, customer="a", number=1),
        "Order is identified by customer_id, number: customer_id is missing and customer is not a part of its key",
    ),
    "half a key": (
        lambda shop: shop.store.get(shop.order, customer_id="a"),
        "Order is identified by customer_id, number: number is missing",
    ),
    "another entity's field in a key": (
        lambda shop: shop.order.primary.where(shop.customer.customer_id == "a"),
        "the condition is on customer_id, which is not of Order; use that class's own fields",
    ),
    "another entity's field in a filter": (
        lambda shop: shop.order.primary.where(shop.order.customer_id == "a").filter(
            shop.customer.name == "Ann"
        ),
        "the condition is on name, which is not of Order; use that class's own fields",
    ),
    "another entity's field in a selection": (
        lambda shop: shop.order.primary.where(shop.order.customer_id == "a").select(
            shop.customer.name
        ),
        "'name' is not a field of Order",
    ),
    "a group that is not given": (
        lambda shop: shop.order.primary.where(shop.order.number == 1),
        "a query needs customer_id == …",
    ),
    "an order that is not the key's": (
        lambda shop: shop.order.by_status.where(
            shop.order.customer_id == "a", shop.order.ordered_at > NOW
        ),
        "orders by 'status' before 'ordered_at'",
    ),
    "a field that no key has": (
        lambda shop: shop.order.find(shop.order.customer_id == "a", shop.order.total > 3),
        "no key of Order answers these conditions",
    ),
    "a comparison of a value in when": (
        lambda shop: shop.store.put(a := an_order(shop), when=a.number > 3),
        "when takes a condition on fields of the class, such as Order.customer_id == …, not False",
    ),
    "another entity's field in when": (
        lambda shop: shop.store.put(an_order(shop), when=shop.customer.name == "Ann"),
        "'name' in the condition is not a field of Order",
    ),
    "a condition in place of a change": (
        lambda shop: shop.store.update(
            shop.order, shop.order.number == 3, customer_id="a", number=1
        ),
        "is not a change; write one such as Order.status.set(…)",
    ),
    "a list of changes": (
        lambda shop: shop.store.update(
            shop.order, [shop.order.total.add(3)], customer_id="a", number=1
        ),
        "is not a change; write one such as",
    ),
    "a class in place of an entity": (
        lambda shop: shop.store.put(shop.order),
        "Order is a class; give an entity of it: Order(…)",
    ),
    "a dict in place of an entity": (
        lambda shop: shop.store.put_many([{"number": 1}]),
        "{'number': 1} is not an entity with a table",
    ),
    "something else in place of a class": (
        lambda shop: shop.store.delete("Order", number=1),
        "'Order' is not an entity with a table",
    ),
    "a page of nothing": (
        lambda shop: shop.store.page(
            shop.order.primary.where(shop.order.customer_id == "a"), size=0
        ),
        "give 1 or more",
    ),
}


def an_order(shop: Shop) -> Any:
    return shop.order(customer_id="a", number=1)


@pytest.mark.parametrize(("call", "words"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_call_that_cannot_work_is_refused(
    shop: Shop, call: Callable[[Shop], object], words: str
) -> None:
    with pytest.raises(UsageError) as refused:
        call(shop)
    assert words in str(refused.value)


JOINED: dict[str, Callable[[Any, Any], object]] = {
    "and": lambda one, other: one and other,
    "or": lambda one, other: one or other,
    "not": lambda one, other: not one,
    "if": lambda one, other: 1 if one else 2,
}


@pytest.mark.parametrize("join", JOINED.values(), ids=JOINED)
def test_conditions_are_joined_by_operators_alone(
    shop: Shop, join: Callable[[Any, Any], object]
) -> None:
    with pytest.raises(TypeError, match=r"join conditions with & \| ~"):
        join(shop.order.number == 1, shop.order.total > 3)


def test_an_entity_has_the_fields_of_its_class_alone(shop: Shop) -> None:
    order = shop.order(customer_id="a", number=1)
    with pytest.raises(AttributeError, match="Order has no field 'totla'"):
        order.totla = Decimal(1)
    with pytest.raises(AttributeError, match="by_staus"):
        _ = shop.order.by_staus
