"""A customer's orders of some days, with every condition on a sort key.

Read one customer's orders between two dates, and no other order. The partition key selects the customer, the
sort key the range. The bounds are exact for each part of a key: a query for CANCELLED never returns
CANCELLED_BY_SHOP, which has the same prefix.

    python examples/11_sort_key_conditions.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import isotone
from isotone import Attr, Condition, Entity, Global, Index, Key, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import UsageError

shop = Table("customer-orders", indexes={"by-status": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    ordered_at: Attr[datetime] = field()
    status: Attr[str] = field()

    primary = Key("CUSTOMER", customer).sort("ORDER", ordered_at)
    by_status = Index("by-status", "CUSTOMER", customer).sort(status, ordered_at)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


ORDERS: list[tuple[str, str]] = [
    ("2020-01-10T23:59:59.999999", "PLACED"),
    ("2020-01-11T00:00:00.000000", "CANCELLED"),
    ("2020-01-20T12:00:00.000000", "SHIPPED"),
    ("2020-02-01T00:00:00.000000", "CANCELLED_BY_SHOP"),
    ("2020-02-01T00:00:00.000001", "CANCELLED"),
]

JANUARY_11 = at("2020-01-11")
FEBRUARY_1 = at("2020-02-01")

RANGES: dict[str, Condition] = {
    "= January 11": Order.ordered_at == JANUARY_11,
    "< January 11": Order.ordered_at < JANUARY_11,
    "<= January 11": Order.ordered_at <= JANUARY_11,
    "> January 11": Order.ordered_at > JANUARY_11,
    ">= January 11": Order.ordered_at >= JANUARY_11,
    "BETWEEN January 11 and February 1": Order.ordered_at.between(JANUARY_11, FEBRUARY_1),
}

STATUSES: dict[str, Condition] = {
    "= CANCELLED": Order.status == "CANCELLED",
    "begins_with CANCELLED": Order.status.begins_with("CANCELLED"),
    ">= CANCELLED_BY_SHOP": Order.status >= "CANCELLED_BY_SHOP",
}


# What many users would do: isotone simulate 11_sort_key_conditions
load = Workload("customers' orders", tables=[shop])
customers = load.population("customer", 3_000_000, activity=0.6)


@load.action(by=customers, per_day=0.2)
def order(call: WorkloadCall) -> None:
    ordered_at = datetime.fromtimestamp(call.clock.now(), UTC)
    call.store.put(Order(customer=call.member.id, ordered_at=ordered_at, status="PLACED"))


@load.action(by=customers, per_day=1)
def find_placed(call: WorkloadCall) -> None:
    placed = Order.status.begins_with("PLACED")
    call.store.page(Order.by_status.where(Order.customer == call.member.id, placed), size=10)


def main(address: str = ":memory:") -> None:
    mine = Order.customer == "36ab55a589e4"
    with isotone.connect(address) as store:
        store.create_tables(shop)
        for customer in ("36ab55a589e4", "36ab", "another"):
            for ordered_at, status in ORDERS:
                store.put(Order(customer=customer, ordered_at=at(ordered_at), status=status))

        january = Order.ordered_at.between(JANUARY_11, FEBRUARY_1)
        page = store.page(Order.primary.where(mine, january), size=100)
        print(f"From 2020-01-11 to 2020-02-01: {page.stats.scanned} items read")
        isotone.show(page)

        for name, condition in RANGES.items():
            print(f"\nOrdered {name}")
            isotone.show(store.all(Order.primary.where(mine, condition)), Order.ordered_at)

        for name, condition in STATUSES.items():
            page = store.page(Order.by_status.where(mine, condition), size=100)
            print(f"\nStatus {name}: {page.stats.scanned} items read")
            isotone.show(page, by=Order.by_status)

    print("\nWithout the customer")
    try:
        Order.primary.where(january)
    except UsageError as error:
        print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
