"""Items that are older than a field of their entity, or come from another program."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, computed, field
from isotone.errors import InvalidItem

bills = Table("bills", indexes={"by_label": Global("LPK", "LSK", projection="KEYS_ONLY")})


class Bill(Entity, table=bills):
    number: Attr[int] = field(max=999, alert=2)
    total: Attr[Decimal] = field()
    payer: Attr[str | None] = field()
    tags: Attr[set[str]] = field()
    note: Attr[str] = field(default="-")
    label: Attr[str] = computed(lambda bill: f"{bill.number}: {bill.total}")

    primary = Key("BILL").sort(number)
    by_label = Index("by_label", "LABELS").sort(label)


KEY = {"PK": {"S": "BILL"}, "SK": {"S": "007"}}


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect() as store:
        store.create_tables(bills)
        yield store


def keep(store: Store, **attributes: Any) -> None:
    store.backend.execute("PutItem", {"TableName": "bills", "Item": {**KEY, **attributes}})


def test_a_missing_field_has_its_default_or_is_computed(store: Store) -> None:
    keep(store, total={"N": "3"})
    bill = Bill(number=7, total=Decimal(3), payer=None, tags=set())
    assert store.get(Bill, number=7) == bill
    assert store.all(Bill.primary.where()) == [bill]
    assert bill.label == "7: 3"


def test_what_has_to_be_there_is_missed_aloud(store: Store) -> None:
    keep(store, payer={"S": "ann"})
    told = (
        r"Bill {'PK': 'BILL', 'SK': '007'} in table 'bills': the item has no attribute 'total', and field "
        r"'total' has no default: "
        r"declare one, or that the field may be None, or add it with @upgrade"
    )
    for read in (
        lambda: store.get(Bill, number=7),
        lambda: store.all(Bill.primary.where()),
        lambda: list(store.iterate(Bill.primary.scan())),
        lambda: store.get_many(Bill, [{"number": 7}]),
        lambda: store.get_together((Bill, {"number": 7})),
        lambda: store.load(Bill.primary.where()),
    ):
        with pytest.raises(InvalidItem, match=told):
            read()


def test_what_is_there_can_be_read_and_mended(store: Store) -> None:
    keep(store, payer={"S": "ann"})
    (some,) = store.all(Bill.primary.where().select(Bill.payer))
    assert some.payer == "ann"
    assert store.count(Bill.primary.where()) == 1
    assert store.update(Bill, Bill.total.set(Decimal(4)), number=7).label == "7: 4"
    assert store.get(Bill, number=7).total == 4  # type: ignore[union-attr]
    keep(store)
    store.delete(Bill, number=7)
    assert store.get(Bill, number=7) is None
