"""Explanations, drawings and lint, over a store that waits and one that is awaited."""

from __future__ import annotations

from typing import assert_type

from shop import Order

import isotone
from isotone import AsyncStore, CollectionDrawing, Explanation, LintReport, Store


def waiting(store: Store) -> None:
    query = Order.primary.where(Order.customer_id == "36ab")
    assert_type(isotone.explain(store, query), Explanation)
    assert_type(isotone.explain(store, "SELECT * FROM shop", run=True).estimate.units, float)
    assert_type(isotone.explain(store, ("Scan", {"TableName": "shop"})), Explanation)
    assert_type(isotone.draw(store, query), CollectionDrawing)
    assert_type(isotone.lint(Order), LintReport)
    assert_type(isotone.lint(store=store), LintReport)
    isotone.explain(store, 5)  # E: No overload
    isotone.draw(store, 5)  # E: No overload


async def awaiting(store: AsyncStore) -> None:
    assert_type(await isotone.explain(store, Order.primary), Explanation)
    assert_type(await isotone.draw(store, Order), CollectionDrawing)
    assert_type(await isotone.lint(Order, store=store), LintReport)
