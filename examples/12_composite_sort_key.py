"""All cancelled orders of a customer in a quarter, in one range.

Report one customer's CANCELLED orders from July to September. In an index with the status before the time in its
sort key, exactly these orders are neighbours. With the time before the status they are scattered: the library
refuses such a query, and an explicit filter shows its cost.

    python examples/12_composite_sort_key.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Literal

import isotone
from isotone import Attr, Entity, Global, Index, Key, Stats, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import Unanswerable

shop = Table(
    "orders",
    indexes={
        "status-time": Global("GSI1PK", "GSI1SK"),
        "time-status": Global("GSI2PK", "GSI2SK"),
    },
)

Status = Literal["PLACED", "SHIPPED", "CANCELLED", "CANCELLED_BY_SHOP"]


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Status] = field()
    ordered_at: Attr[datetime] = field()

    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    by_status = Index("status-time", "CUSTOMER", customer).sort(status, ordered_at)
    # isotone: ignore[ISO105] the reverse composite, to show what it wastes
    by_time = Index("time-status", "CUSTOMER", customer).sort(ordered_at, status)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


ORDERS: list[tuple[Status, str]] = [
    ("CANCELLED", "2019-06-30T23:59:59.999999"),
    ("CANCELLED", "2019-07-01T00:00:00"),
    ("SHIPPED", "2019-07-14T09:30:00"),
    ("CANCELLED_BY_SHOP", "2019-08-01T08:00:00"),
    ("CANCELLED", "2019-08-15T12:00:00"),
    ("PLACED", "2019-09-01T10:00:00"),
    ("CANCELLED", "2019-09-30T23:59:59.999999"),
    ("CANCELLED", "2019-10-01T00:00:00"),
]

mine = Order.customer == "2b5a41c0"
cancelled = Order.status == "CANCELLED"
third_quarter = Order.ordered_at.between(at("2019-07-01"), at("2019-09-30T23:59:59.999999"))


def cost(stats: Stats) -> str:
    return f"{stats.scanned} items read, {stats.returned} returned ({stats.hit_rate:.0%})"


# What many users would do: isotone simulate 12_composite_sort_key
load = Workload("orders", tables=[shop])
customers = load.population("customer", 3_000_000, activity=0.6)


@load.action(by=customers, per_day=0.2)
def place(call: WorkloadCall) -> None:
    number = call.chance.randrange(20_000)
    ordered_at = datetime.fromtimestamp(call.clock.now(), UTC)
    call.store.put(
        Order(customer=call.member.id, number=number, status="PLACED", ordered_at=ordered_at)
    )


@load.action(by=customers, per_day=1)
def list_cancelled(call: WorkloadCall) -> None:
    call.store.page(Order.by_status.where(Order.customer == call.member.id, cancelled), size=10)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.create_tables(shop)
        for customer in ("2b5a41c0", "2b5a41"):
            for number, (status, ordered_at) in enumerate(ORDERS, start=1):
                order = Order(
                    customer=customer, number=number, status=status, ordered_at=at(ordered_at)
                )
                store.put(order)

        page = store.page(Order.by_status.where(mine, cancelled, third_quarter), size=100)
        print(f"Cancelled in the third quarter of 2019: {cost(page.stats)}")
        isotone.show(page, by=Order.by_status)

        print("\nThe reverse composite, asked by status")
        try:
            Order.by_time.where(mine, cancelled)
        except Unanswerable as error:
            print(error)

        page = store.page(Order.by_time.where(mine, third_quarter).filter(cancelled), size=100)
        print(f"\nThe reverse composite, with a filter: {cost(page.stats)}")
        isotone.show(page, by=Order.by_time)


if __name__ == "__main__":
    main(*sys.argv[1:])
