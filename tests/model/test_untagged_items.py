"""Items without a tag have the kind whose keys have the form of theirs; those of no kind are reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import Attr, Entity, Global, Index, Key, Number, Store, Table, field
from isotone.errors import InvalidItem

app = Table("app", indexes={"GSI1": Global("GSI1PK", "GSI1SK")}, stream="NEW_IMAGE")


class Account(Entity, table=app):
    user: Attr[int] = field(max=999)
    primary = Key("USER", user).sort("ACCOUNT")


class Day(Entity, table=app):
    """Its sort keys have no literal, so those of other kinds lie between them."""

    user: Attr[int] = field(max=999)
    day: Attr[str] = field()
    primary = Key("USER", user).sort(day, "DAY")


class Order(Entity, table=app):
    user: Attr[int] = field(max=999)
    number: Attr[int] = field(max=999, alert=None)
    note: Attr[str] = field(default="")
    primary = Key("USER", user).sort("ORDER", number)
    by_number = Index("GSI1", "ORDERS").sort(number)


numbers = Table("numbers", partition="group", sort=Number("at"))


class Reading(Entity, table=numbers):
    group: Attr[str] = field()
    at: Attr[int] = field()
    primary = Key(group).sort(at)


MINE = Order.user == 1


def put(store: Store, sort: str, **attributes: Any) -> None:
    item = {"PK": {"S": "USER#001"}, "SK": {"S": sort}, **attributes}
    store.backend.execute("PutItem", {"TableName": "app", "Item": item})


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect(":memory:", report=None) as store:
        store.create_tables(app)
        yield store


def test_what_is_of_no_kind_is_reported(store: Store) -> None:
    for sort in ("ACCOUNT", "ORDER#007", "ORDER#8", "ORDER#abc"):
        put(store, sort)
    orders = Order.primary.where(MINE)
    with pytest.raises(InvalidItem) as raised:
        store.all(orders)
    assert raised.value.key == {"PK": "USER#001", "SK": "ORDER#8"}
    assert raised.value.field is None
    assert (
        "the item has no tag and its key has another form than that of Order (USER#{Natural}, "
        "ORDER#{Natural}); declare the entity that has such keys, give the item its tag"
    ) in str(raised.value)
    skipping = orders.on_invalid("skip")
    assert [order.number for order in store.all(skipping)] == [7]
    assert store.count(skipping) == 1
    assert store.page(skipping, size=5).stats.invalid == 2


def test_items_of_other_kinds_are_neither_read_nor_counted(store: Store) -> None:
    for sort in ("ACCOUNT", "ORDER#007", "ORDER#008", "2026-01-01#DAY", "2026-01-02#DAY"):
        put(store, sort)
    for query, wanted in ((Order.primary.where(MINE), 2), (Day.primary.where(Day.user == 1), 2)):
        assert len(store.all(query)) == store.count(query) == wanted
        assert store.count(query.limit(1)) == 1
    assert len(store.all(Account.primary.scan())) == store.count(Account.primary.scan()) == 1
    kinds = [type(event.entity).__name__ for event in store.changes(app)]
    assert sorted(kinds) == ["Account", "Day", "Day", "Order", "Order"]


def test_a_count_of_a_range_that_no_other_kind_reaches_reads_no_items(store: Store) -> None:
    asked: list[Any] = []
    with isotone.connect(store.backend, observe=[isotone.at_end(asked.append)]) as watched:
        put(watched, "ORDER#007")
        asked.clear()
        assert watched.count(Order.by_number.where()) == 0
        assert [each.operation for each in asked if each.operation == "Query"] == ["Query"]


def test_a_tag_that_is_not_a_text_is_reported(store: Store) -> None:
    put(store, "ORDER#007", _type={"N": "1"})
    for read in (store.all, store.first, store.load):
        with pytest.raises(
            InvalidItem, match=r"its tag '_type' has {'N': '1'}.*another attribute as the tag"
        ):
            read(Order.primary.where(MINE))


def test_an_index_entry_has_the_kind_of_its_primary_key(store: Store) -> None:
    put(store, "ORDER#007", GSI1PK={"S": "ORDERS"}, GSI1SK={"S": "007"})
    put(store, "ACCOUNT", GSI1PK={"S": "ORDERS"}, GSI1SK={"S": "008"})
    put(store, "ELSE", GSI1PK={"S": "ORDERS"}, GSI1SK={"S": "009"})
    errors: list[InvalidItem] = []
    query = Order.by_number.where().on_invalid(errors.append)
    assert [order.number for order in store.all(query)] == [7]
    assert [error.key["SK"] for error in errors] == ["ELSE"]


def test_keys_that_are_the_fields_themselves_have_their_form() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(numbers)
        item = {"group": {"S": "a"}, "at": {"N": "1"}}
        store.backend.execute("PutItem", {"TableName": "numbers", "Item": item})
        assert store.all(Reading.primary.scan()) == [Reading(group="a", at=1)]
        item = {"group": {"S": "a"}, "at": {"N": "1.5"}}
        store.backend.execute("PutItem", {"TableName": "numbers", "Item": item})
        with pytest.raises(InvalidItem, match=r"another form than that of Reading \(str, int\)"):
            store.all(Reading.primary.scan())


KIND_OF: dict[str, type[Entity] | None] = {
    "ACCOUNT": Account,
    "ORDER#001": Order,
    "ORDER#002": Order,
    "ORDER#3": None,
    "ORDER#": None,
    "2026#DAY": Day,
    "OTHER#DAY": Day,
    "OTHER": None,
    "ORDER#DAY#DAY": None,
}


@settings(max_examples=examples(60), deadline=None)
@given(
    rows=st.dictionaries(st.sampled_from(sorted(KIND_OF)), st.booleans()),
    size=st.integers(1, 3),
)
def test_all_counts_and_pages_agree(rows: dict[str, bool], size: int) -> None:
    with isotone.connect(":memory:", report=None) as store:
        store.create_tables(app)
        for sort, is_tagged in rows.items():
            kind = KIND_OF[sort]
            has_tag = is_tagged and kind is not None
            put(store, sort, **({"_type": {"S": kind.__name__}} if has_tag and kind else {}))
        for kind, query in (
            (Order, Order.primary.where(MINE)),
            (Day, Day.primary.where(Day.user == 1)),
            (Account, Account.primary.where(Account.user == 1)),
            (Order, Order.primary.scan()),
        ):
            wanted = sum(KIND_OF[sort] is kind for sort in rows)
            errors: list[InvalidItem] = []
            found = store.all(query.on_invalid(errors.append))  # type: ignore[attr-defined]
            assert all(type(each) is kind for each in found)
            assert len(found) == store.count(query.on_invalid("skip")) == wanted  # type: ignore[attr-defined]
            assert all(KIND_OF[error.key["SK"]] is None for error in errors)
            if errors:
                with pytest.raises(InvalidItem):
                    store.all(query)
            else:
                assert store.count(query) == wanted
            paged, cursor, invalid = 0, None, 0
            while True:
                page = store.page(query.on_invalid("collect"), size=size, cursor=cursor)  # type: ignore[attr-defined]
                paged, invalid, cursor = paged + len(page), invalid + len(page.invalid), page.cursor
                if cursor is None:
                    break
            assert (paged, invalid) == (wanted, len(errors))
