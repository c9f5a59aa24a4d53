"""An index of customers only, in a table of several kinds.

List all customers of a shop. The table also has orders, products and reviews, and a scan of the table reads them
all. A scan of an index that only customers are in reads only customers. `one_kind=True` ensures this: a second
kind of entity in that index is refused when it is defined.

    python examples/14_sparse_by_kind.py [ADDRESS]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import isotone
from isotone import Attr, Entity, Global, Index, Key, Stats, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import UsageError

shop = Table("everything", indexes={"customers": Global("CUSTOMER", one_kind=True)})


class Customer(Entity, table=shop):
    id: Attr[int] = field(max=99_999)
    email: Attr[str] = field()

    primary = Key("CUSTOMER", id).sort("CUSTOMER")
    everyone = Index("customers", "CUSTOMER", id)


class Order(Entity, table=shop):
    customer: Attr[int] = field(max=99_999)
    number: Attr[int] = field(max=99_999)

    primary = Key("CUSTOMER", customer).sort("ORDER", number)


class Product(Entity, table=shop):
    id: Attr[int] = field(max=99_999)

    primary = Key("PRODUCT", id).sort("PRODUCT")


class Review(Entity, table=shop):
    product: Attr[int] = field(max=99_999)
    customer: Attr[int] = field(max=99_999)

    primary = Key("PRODUCT", product).sort("REVIEW", customer)


def everything() -> Iterator[Entity]:
    """10,000 items, 500 of them customers."""
    for number in range(500):
        yield Customer(id=number, email=f"customer-{number}@example.com")
    for number in range(6_000):
        yield Order(customer=number % 500, number=number)
    for number in range(1_000):
        yield Product(id=number)
    for number in range(2_500):
        yield Review(product=number % 1_000, customer=number // 1_000)


def cost(stats: Stats) -> str:
    return f"{stats.scanned:,} items read, {stats.returned:,} returned"


# What many users would do: isotone simulate 14_sparse_by_kind
load = Workload("everything", tables=[shop])
customers = load.population("customer", 90_000, activity=0.5)
products = load.population("product", 20_000, popularity=0.8)


@customers.starts_with
def register(call: WorkloadCall) -> None:
    number = call.member.number
    call.store.put(Customer(id=number, email=f"customer-{number}@example.com"))


@load.action(by=customers, per_day=1)
def order(call: WorkloadCall) -> None:
    call.store.put(Order(customer=call.member.number, number=call.chance.randrange(20_000)))


@load.action(by=customers, per_day=0.2)
def review(call: WorkloadCall) -> None:
    call.store.put(Review(product=call.draw(products).number, customer=call.member.number))


@load.action(per_hour=60)
def list_customers(call: WorkloadCall) -> None:
    call.store.page(Customer.everyone.scan(), size=100)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address, report=print) as store:
        store.create_tables(shop)
        print(f"{store.put_many(everything()):,} items are written")

        page = store.page(Customer.everyone.scan(), size=1_000)
        first = sorted(page, key=lambda customer: customer.id)[:3]
        print(f"\nThree customers of a scan of their index: {cost(page.stats)}")
        isotone.show(first, by=Customer.everyone)

        print("\nThe same by a scan of the table")
        page = store.page(Customer.primary.scan(), size=1_000)
        print(cost(page.stats))

    print("\nA second kind in the same index")
    try:

        class Supplier(Entity, table=shop):
            id: Attr[int] = field(max=99_999)

            primary = Key("SUPPLIER", id).sort("SUPPLIER")
            everyone = Index("customers", "SUPPLIER", id)

    except UsageError as error:
        print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
