"""A program that type checkers accept: what each call gives is known exactly. Never run."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Literal, assert_type

from tests.model.orders import Order

import isotone
from isotone import Condition, Page, Query, Snapshot


def fields(order: Order) -> None:
    assert_type(order.customer_id, str)
    assert_type(order.number, int)
    assert_type(order.total, Decimal)
    assert_type(order.status, Literal["PLACED", "SHIPPED", "CANCELLED"])
    assert_type(Order.number > 3, Condition)
    assert_type((Order.total >= 3) & (Order.total < Decimal("7.5")), Condition)
    assert_type(Order.status == "SHIPPED", Condition)
    order.total = Decimal(3)


def reads(store: isotone.Store) -> None:
    query = Order.by_status.where(Order.customer_id == "x").newest_first().limit(3)
    assert_type(query, Query[Order])
    assert_type(Order.find(Order.customer_id == "x"), Query[Order])
    assert_type(store.get(Order, customer_id="x", number=1), Order | None)
    assert_type(store.get_many(Order, []), list[Order | None])
    assert_type(store.page(query, size=3), Page[Order])
    assert_type(store.page(query, size=3).items, list[Order])
    assert_type(store.all(query.filter(Order.total > 3)), list[Order])
    assert_type(store.first(query), Order | None)
    assert_type(store.load(query), Snapshot[Order])
    assert_type(store.iterate(query), Iterator[Order])
    assert_type(store.scan(Order.primary.scan()), Iterator[Order])


def writes(store: isotone.Store, order: Order) -> None:
    assert_type(store.put(order, when=Order.total > 3), Order)
    assert_type(store.update(Order, Order.total.add(1), customer_id="x", number=1), Order)
    assert_type(store.update(order, Order.status.set("SHIPPED")), Order)
    assert_type(store.delete(order), Order | None)
    with store.transaction() as t:
        assert_type(t.get(Order, customer_id="x", number=1), Order | None)


async def awaited() -> None:
    query = Order.primary.where(Order.customer_id == "x")
    async with isotone.aconnect() as store:
        assert_type(await store.get(Order, customer_id="x", number=1), Order | None)
        assert_type(await store.page(query, size=3), Page[Order])
        async for order in store.iterate(query):
            assert_type(order, Order)
        async for order in store.scan(Order.primary.scan(), segments=2):
            assert_type(order, Order)
        async with store.transaction() as t:
            assert_type(await t.get(Order, customer_id="x", number=1), Order | None)
