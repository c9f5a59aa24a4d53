"""Filters, and what they cost.

Find the shipped orders among all orders of a shop. A filter drops items after they were read and charged, so
each page reports how many were scanned and returned, and at what cost. A read that drops most of its items is
reported, with the index that would help. A page of 25 has 25 orders, with any filter, unless it reaches its
limit of capacity units. Expired items are never returned, even before DynamoDB deletes them.

    python examples/15_filter_expressions.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Literal

import isotone
from isotone import Attr, Entity, Key, ManualClock, Stats, Table, expires, field
from isotone.advisor.simulation import Workload, WorkloadCall

shop = Table("shop-orders")
web = Table("web-sessions")


class Order(Entity, table=shop):
    shop: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Literal["PLACED", "SHIPPED"]] = field()
    note: Attr[str] = field()

    primary = Key("SHOP", shop).sort("ORDER", number)


class Session(Entity, table=web):
    user: Attr[str] = field()
    token: Attr[str] = field()
    ends_at: Attr[datetime | None] = expires(default=None)

    primary = Key("USER", user).sort("SESSION", token)


def cost(stats: Stats) -> str:
    return (
        f"{stats.scanned} scanned, {stats.returned} returned ({stats.hit_rate:.0%}), "
        f"{stats.units:g} units, requests: {stats.requests}"
    )


# What many users would do: isotone simulate 15_filter_expressions
load = Workload("shops", tables=[shop, web])
shops = load.population("shop", 20_000, activity=0.5)
users = load.population("user", 2_000_000)


@load.action(by=shops, per_hour=10)
def order(call: WorkloadCall) -> None:
    number = call.chance.randrange(20_000)
    call.store.put(Order(shop=call.member.id, number=number, status="PLACED", note="x" * 200))


@load.action(by=shops, per_hour=2)
def list_placed(call: WorkloadCall) -> None:
    query = Order.primary.where(Order.shop == call.member.id).filter(Order.status == "PLACED")
    call.store.page(query, size=10)


@load.action(by=users, per_day=2)
def log_in(call: WorkloadCall) -> None:
    ends_at = datetime.fromtimestamp(call.clock.now(), UTC) + timedelta(hours=1)
    token = f"{call.chance.randrange(10**12)}"
    call.store.put(Session(user=call.member.id, token=token, ends_at=ends_at))


def main(address: str = ":memory:") -> None:
    clock = ManualClock(datetime(2040, 1, 1, tzinfo=UTC))
    with isotone.connect(address, clock=clock, report=print) as store:
        store.create_tables(shop, web)
        orders = [
            Order(
                shop="s1",
                number=number,
                status="SHIPPED" if number % 10 == 0 else "PLACED",
                note="x" * 900,
            )
            for number in range(1, 401)
        ]
        store.put_many(orders)
        mine = Order.primary.where(Order.shop == "s1")
        shipped = mine.filter(Order.status == "SHIPPED")

        print("A page without a filter")
        print(cost(store.page(mine, size=10).stats))

        print("\nAll shipped orders, by a filter")
        everything = store.all(shipped)
        print(f"{len(everything)} orders")

        print("\nExactly 25 shipped orders, in one call")
        page = store.page(shipped.max_units(100), size=25)
        print(f"{len(page)} orders: {cost(page.stats)}")
        isotone.show(page, Order.number, Order.status)

        print("\nThe same, for 10 units at the most")
        page = store.page(shipped.max_units(10).page_size(40), size=25)
        print(f"{len(page)} orders, cut short: {page.stats.exhausted}; {cost(page.stats)}")
        page = store.page(shipped.max_units(100), size=25, cursor=page.cursor)
        print(f"and on from there: {len(page)} orders, from number {page.items[0].number}")

        print("\nSessions: one for an hour, one for a day, one for ever")
        for token, hours in [("a", 1), ("b", 24)]:
            ends_at = datetime(2040, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
            store.put(Session(user="ann", token=token, ends_at=ends_at))
        store.put(Session(user="ann", token="c"))
        sessions = Session.primary.where(Session.user == "ann")
        isotone.show(store.all(sessions))
        clock.advance(timedelta(hours=2))
        print("\nTwo hours later")
        isotone.show(store.all(sessions))
        print(f"count: {store.count(sessions)}, get: {store.get(Session, user='ann', token='a')}")


if __name__ == "__main__":
    main(*sys.argv[1:])
