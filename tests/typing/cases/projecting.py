"""Projections: the types of what was read, and fields that were not."""
# fmt: off

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, assert_type

from shop import Customer, Order

import isotone
from isotone import Page, Projection, Query, Scan, Snapshot


class Summary(Projection[Order]):
    amount = Order.total
    status = Order.status
    ordered_at = Order.ordered_at
    tags = Order.tags

    @property
    def is_large(self) -> bool:
        return self.amount > 100


class Longer(Summary):
    label = Order.label


class Name(Projection[Customer]):
    name = Customer.name
    nick = Customer.nick


store = isotone.connect(":memory:")
query = Order.primary.where(Order.customer_id == "a")

assert_type(query.select(Summary), Query[Summary])
assert_type(Order.primary.scan().select(Summary), Scan[Summary])
assert_type(query.select(Order.total), Query[Order])
assert_type(query.filter(Order.total > 3).select(Summary).newest_first().limit(3), Query[Summary])
assert_type(store.page(query.select(Summary)), Page[Summary])
assert_type(store.page(query.select(Summary)).cursor, str | None)
assert_type(store.pages(query.select(Summary)), Iterator[Page[Summary]])
assert_type(store.all(query.select(Summary)), list[Summary])
assert_type(store.first(query.select(Summary)), Summary | None)
assert_type(store.iterate(query.select(Summary)), Iterator[Summary])
assert_type(store.scan(Order.primary.scan().select(Summary)), Iterator[Summary])
assert_type(store.get(Summary, customer_id="a", number=1), Summary | None)
assert_type(store.get(Order, customer_id="a", number=1), Order | None)

key = {"customer_id": "a", "number": 1}
assert_type(store.get_many(Summary, [key]), list[Summary | None])
assert_type(store.get_many(Order, [key]), list[Order | None])
assert_type(store.get_together((Summary, key)), list[Summary | None])
assert_type(store.get_together((Summary, key), (Summary, key)), list[Summary | None])
assert_type(store.load(query.select(Summary)), Snapshot[Summary])
assert_type(store.load(query.select(Summary)).where(Order.total > 3)[0], Summary)
assert_type(store.load(query.select(Summary)).group_by(Order.total), dict[Decimal, list[Summary]])
with store.transaction() as tx:
    assert_type(tx.get(Summary, customer_id="a", number=1), Summary | None)
    assert_type(tx.get(Order, customer_id="a", number=1), Order | None)
for part in store.get_many(Summary, [key]):
    print(part.amount)  # E: has no attribute "amount"
    if part is not None:
        assert_type(part.amount, Decimal)
        print(part.number)  # E: "Summary" has no attribute "number"

for found in store.all(query.select(Longer)):
    assert_type(found.amount, Decimal)
    assert_type(found.ordered_at, datetime)
    assert_type(found.tags, set[str])
    assert_type(found.label, str)
    assert_type(found.is_large, bool)
    assert_type(found.to_dict(), dict[str, Any])
    print(found.number)  # E: "Longer" has no attribute "number"
    print(found.total)  # E: "Longer" has no attribute "total"

name = store.get(Name, customer_id="a")
print(name.nick)  # E: has no attribute "nick"
if name is not None:
    assert_type(name.nick, str | None)
    print(name.customer_id)  # E: "Name" has no attribute "customer_id"

order = store.first(query)
assert order is not None
assert_type(Summary.from_entity(order), Summary)
Name.from_entity(order)  # E: incompatible type "Order"; expected "Customer"
query.select(Name)  # E: No overload variant of "select"
query.select(Order)  # E: No overload variant of "select"
store.update_all(query.select(Summary), Order.number.add(1))  # E: cannot be "Summary"
store.get_many(str, [key])  # E: cannot be "str"
store.put(Summary.from_entity(order))  # E: cannot be "Summary"
store.get(str, customer_id="a")  # E: cannot be "str"
Summary(amount=Decimal(1))  # E: Unexpected keyword argument "amount"
Summary.from_entity(order).amount = "3"  # E: expression has type "str"


async def main() -> None:
    async with isotone.aconnect(":memory:") as awaited:
        assert_type(await awaited.get(Summary, customer_id="a", number=1), Summary | None)
        assert_type(await awaited.get_many(Summary, [key]), list[Summary | None])
        async with awaited.transaction() as collected:
            assert_type(await collected.get(Summary, customer_id="a", number=1), Summary | None)
        assert_type(await awaited.page(query.select(Summary)), Page[Summary])
        async for each in awaited.iterate(query.select(Summary)):
            assert_type(each, Summary)
