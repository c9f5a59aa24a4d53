"""Numbers in the order of their values, in number keys and inside string keys.

Sort measurements by value, including negative and very small ones, without losing a digit. A number key does
that itself. In a string key a number needs a declared width (`max`, and `scale` for its decimal places): then
every value is padded to that width and sorts correctly. A number without a width is refused when the entity
is defined.

    python examples/02_numbers.py [ADDRESS]
"""

from __future__ import annotations

import sys
from decimal import Decimal

import isotone
from isotone import Attr, Entity, Key, Number, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import UsageError

measurements = Table("measurements", partition="series", sort=Number("value"))
texts = Table("measurements-in-text")

VALUES = [
    *("10", "2", "-2", "0", "-1.5", "1e-130", "-1e125"),
    "123456789012345678901234567890.12345678",
]


class Measurement(Entity, table=measurements):
    series: Attr[str] = field()
    value: Attr[Decimal] = field()

    primary = Key(series).sort(value)


class Written(Entity, table=texts):
    """The same in a string key: up to 126 digits before the point and 130 after it."""

    series: Attr[str] = field()
    value: Attr[Decimal] = field(min=-1, max=Decimal("9.99e125"), scale=130)

    primary = Key("SERIES", series).sort("VALUE", value)


class Price(Entity, table=texts):
    """A realistic width: below 100,000.00, in whole cents."""

    shop: Attr[str] = field()
    amount: Attr[Decimal] = field(max=Decimal("99999.99"), scale=2)

    primary = Key("SHOP", shop).sort("PRICE", amount)


# What many users would do: isotone simulate 02_numbers
load = Workload("measurements", tables=[measurements, texts])
sensors = load.population("series", 50_000)


@load.action(by=sensors, per_minute=1)
def measure(call: WorkloadCall) -> None:
    value = Decimal(call.chance.randrange(10**6)) / 100
    call.store.put(Measurement(series=call.member.id, value=value))


@load.action(by=sensors, per_hour=1)
def find_the_greatest(call: WorkloadCall) -> None:
    query = Measurement.primary.where(Measurement.series == call.member.id)
    call.store.page(query.reversed(), size=10)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.create_tables(measurements, texts)
        for value in VALUES:
            store.put(Measurement(series="a", value=Decimal(value)))
            store.put(Written(series="a", value=Decimal(value)))
        for amount in ["10", "2", "0.5", "1234.56"]:
            store.put(Price(shop="a", amount=Decimal(amount)))

        print("In a number key")
        isotone.show(store.all(Measurement.primary.where(Measurement.series == "a")))

        print("\nIn a string key, with a declared width and scale")
        isotone.show(store.all(Written.primary.where(Written.series == "a")), Written.value)

        print("\nPrices in a string key")
        isotone.show(store.all(Price.primary.where(Price.shop == "a")))

    print("\nWithout a declared width")
    try:

        class Invoice(Entity, table=texts):
            number: Attr[int] = field()

            primary = Key("INVOICES").sort("INVOICE", number)

    except UsageError as error:
        print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
