"""Projections: what a read returns of an entity, behind each engine, and what is refused."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from contextlib import ExitStack
from copy import copy
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.model.conftest import Desk

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    ManualClock,
    Projection,
    Store,
    Table,
    computed,
    created,
    expires,
    field,
    upgrade,
    version,
)
from isotone.errors import InvalidItem, TransactionFailed, UsageError
from isotone.model.operation import Waits
from isotone.model.transactions import Transaction
from isotone.server import running_server

START = datetime(2026, 1, 1, tzinfo=UTC)

shop = Table(
    "shop",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "thin": Global("GSI2PK", "GSI2SK", projection="KEYS_ONLY"),
    },
)


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99, alert=None)
    total: Attr[int] = field(name="t")
    status: Attr[str] = field(default="PLACED")
    secret: Attr[str] = field(default="", hidden=True)
    lines: Attr[list[str]] = field(default_factory=list)
    mail: Attr[str | None] = field(default=None, unique=True)
    label: Attr[str] = computed(lambda order: f"{order.number}: {order.total}")
    placed_at: Attr[datetime] = created()
    revision: Attr[int] = version()
    until: Attr[datetime | None] = expires(default=None)

    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    by_status = Index("GSI1", "STATUS", status).sort(number)
    thin = Index("thin", "STATUS", status).sort(number)


class Loose(Entity, table=shop):
    name: Attr[str] = field()
    total: Attr[int] = field()
    lines: Attr[list[str]] = field(default_factory=list)

    primary = Key("LOOSE", name).sort("A")


class Summary(Projection[Order]):
    amount = Order.total
    number = Order.number
    label = Order.label
    placed_at = Order.placed_at

    @property
    def is_large(self) -> bool:
        return self.amount > 20

    @property
    def is_open(self) -> bool:
        whole: Any = self
        return bool(whole.status == "PLACED")


class WithStatus(Summary):
    status = Order.status


@pytest.fixture(params=["memory", "file", "http", "DynamoDB Local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    clock = ManualClock(START)
    with ExitStack() as stack:
        address = {"memory": ":memory:", "file": str(tmp_path / "shop.db")}.get(request.param)
        if request.param == "DynamoDB Local":
            address = request.getfixturevalue("dynamodb_local")
        elif request.param == "http":
            database = stack.enter_context(isotone.open(clock=clock))
            address = stack.enter_context(running_server(database))
        store = stack.enter_context(isotone.connect(address, clock=clock, report=None))
        store.drop_tables(shop)
        store.create_tables(shop)
        yield store
        store.drop_tables(shop)


def orders(store: Store) -> list[Order]:
    return [
        store.put(Order(customer="ann", number=number, total=10 * number, lines=["x"] * number))
        for number in range(5)
    ]


MINE = Order.primary.where(Order.customer == "ann")


def test_each_read_returns_projections(store: Store) -> None:
    kept = orders(store)
    expected = [Summary.from_entity(order) for order in kept]
    query = MINE.select(Summary)
    assert store.all(query) == expected
    assert list(store.iterate(query)) == expected
    assert store.first(query.descending()) == expected[-1]
    assert store.count(query) == 5
    assert sorted(store.scan(Order.primary.scan().select(Summary), segments=2), key=by_number) == (
        expected
    )
    assert store.get(Summary, customer="ann", number=3) == expected[3]
    assert store.get(Summary, customer="ann", number=3, consistent=True) == expected[3]
    assert store.get(Summary, customer="ann", number=9) is None
    assert store.all(query.filter(Order.status != "PLACED")) == []
    of_status = Order.by_status.where(Order.status == "PLACED").select(WithStatus)
    assert [each.status for each in store.all(of_status)] == ["PLACED"] * 5
    first, second = (summary for summary in expected[2:4])
    assert (first.amount, first.label, first.placed_at) == (20, "2: 20", START)
    assert (first.is_large, second.is_large) == (False, True)
    assert second.to_dict() == {
        "amount": 30,
        "number": 3,
        "label": "3: 30",
        "placed_at": START,
    }


def by_number(summary: Summary) -> int:
    return summary.number


def test_pages_of_projections_lead_both_ways(store: Store) -> None:
    expected = [Summary.from_entity(order) for order in orders(store)]
    query = MINE.select(Summary)
    pages = list(store.pages(query, size=2))
    assert [page.items for page in pages] == [expected[:2], expected[2:4], expected[4:]]
    back = store.page(query, size=2, cursor=pages[1].previous)
    assert back.items == expected[:2]
    whole = store.page(MINE, size=2, cursor=pages[0].cursor)  # the cursor of the same query
    assert [order.number for order in whole] == [2, 3]
    assert "Summary(amount=0" in repr(pages[0])
    assert "<th>amount</th><th>number</th>" in pages[0]._repr_html_()
    shown = StringIO()
    isotone.show(pages[0], file=shown)
    assert shown.getvalue().split()[:4] == ["amount", "number", "label", "placed_at"]


def test_a_merge_of_projections(store: Store) -> None:
    orders(store)
    store.put(Order(customer="bob", number=2, total=7))
    both = [
        Order.primary.where(Order.customer == customer).select(Summary)
        for customer in ("ann", "bob")
    ]
    page = store.page(isotone.merge(*both), size=4)
    assert [(each.number, each.amount) for each in page] == [(0, 0), (1, 10), (2, 20), (2, 7)]
    assert {type(each) for each in store.all(isotone.merge(*both))} == {Summary}


def test_only_the_fields_are_transferred(desk: Desk) -> None:
    desk.store.create_tables(shop)
    desk.store.put(Order(customer="ann", number=1, total=10))
    desk.asked.clear()
    desk.store.get(Summary, customer="ann", number=1)
    ((operation, request),) = desk.asked
    assert operation == "GetItem"
    names = request["ProjectionExpression"]
    for name, placeholder in request.get("ExpressionAttributeNames", {}).items():
        names = names.replace(name, placeholder)
    sent = set(names.split(", "))
    assert {"t", "number", "label", "placed_at"} <= sent
    assert sent.isdisjoint({"lines", "secret", "status", "mail"})


def test_what_was_not_read_is_told(store: Store) -> None:
    (order, *_) = orders(store)
    summary: Any = store.get(Summary, customer="ann", number=0)
    with pytest.raises(
        AttributeError,
        match=r"Summary was read with amount, number, label, placed_at of Order, and has no 'status'; "
        "add status = Order.status to it",
    ):
        print(summary.status)
    with pytest.raises(AttributeError, match="has no 'status'"):
        print(summary.is_open)
    assert WithStatus.from_entity(order).is_open
    assert copy(summary) == pickle.loads(pickle.dumps(summary)) == summary
    with pytest.raises(AttributeError, match=r"has no 'colour'$"):
        print(summary.colour)
    with pytest.raises(AttributeError, match="does not change; update the Order"):
        summary.amount = 3
    for write in (store.put, store.delete, store.update):
        with pytest.raises((UsageError, AttributeError)):
            write(summary)
    assert store.get(Order, customer="ann", number=0) == order


def test_a_unique_value_and_an_expired_item(store: Store) -> None:
    store.put(Order(customer="ann", number=1, total=10, mail="ann@example.com"))
    store.put(Order(customer="ann", number=2, total=10, until=START - timedelta(days=1)))
    found = store.get(Summary, mail="ann@example.com")
    assert found is not None
    assert found.number == 1
    assert store.get(Summary, customer="ann", number=2) is None
    with pytest.raises(UsageError, match="number is missing"):
        store.get(Summary, customer="ann")


def test_awaited_reads_return_projections_too() -> None:
    async def read() -> None:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(shop)
            order = await store.put(Order(customer="ann", number=1, total=10))
            expected = Summary.from_entity(order)
            assert await store.get(Summary, customer="ann", number=1) == expected
            key = {"customer": "ann", "number": 1}
            assert await store.get_many(Summary, [key]) == [expected]
            async with store.transaction() as tx:
                assert await tx.get(Summary, **key) == expected
            assert [each async for each in store.iterate(MINE.select(Summary))] == [expected]
            found = store.scan(Order.primary.scan().select(Summary))
            assert [each async for each in found] == [expected]

    asyncio.run(read())


def test_an_older_version_is_upgraded_and_a_wider_key_is_found() -> None:
    def programs(phase: str) -> Any:
        table = Table("notes")
        wide: dict[str, Any] = {
            "before": {"max": 99, "alert": None},
            "during": {"max": 9_999, "was": 99, "alert": None},
        }[phase]

        class Note(Entity, table=table):
            day: Attr[str] = field()
            number: Attr[int] = field(**wide)
            text: Attr[str] = field(default="-")
            primary = Key("DAY", day).sort("NOTE", number)

        return Note

    class Second(Entity, table=Table("versions"), version=2):
        name: Attr[str] = field()
        title: Attr[str] = field()
        primary = Key("NAME", name).sort("A")

        @staticmethod
        @upgrade(1)
        def renamed(item: dict[str, Any]) -> dict[str, Any]:
            return {**item, "title": item.pop("called")}

    class Title(Projection[Second]):
        title = Second.title

    with isotone.open() as database:
        store = isotone.connect(database, report=None)
        before = programs("before")
        store.create_tables(before.__schema__.table, Second.__schema__.table)
        store.put(before(day="monday", number=7, text="x"))
        note: Any = programs("during")

        class Text(Projection[note]):
            text = note.text

        text: Any = Text
        store = isotone.connect(database, report=None)
        assert store.get(text, day="monday", number=7).text == "x"
        key = {"day": "monday", "number": 7}
        assert [each.text for each in store.get_many(text, [key])] == ["x"]
        assert [
            each.text for each in store.all(note.primary.where(note.day == "monday").select(text))
        ] == ["x"]
        old = {"PK": {"S": "NAME#a"}, "SK": {"S": "A"}, "_type": {"S": "Second"}}
        old |= {"name": {"S": "a"}, "called": {"S": "Old"}}
        store.backend.execute("PutItem", {"TableName": "versions", "Item": old})
        title = Title.from_entity(Second(name="a", title="Old"))
        assert store.get(Title, name="a") == title
        assert store.get_many(Title, [{"name": "a"}]) == [title]
        assert store.get_together((Title, {"name": "a"})) == [title]
        assert list(store.load(Second.primary.scan().select(Title))) == [title]
        with store.transaction() as tx:
            assert tx.get(Title, name="a") == title


def test_a_wrong_value_is_told(store: Store) -> None:
    (order, *_) = orders(store)
    item = {**Order.__schema__.to_item(order.__dict__), "t": {"S": "many"}}
    store.backend.execute("PutItem", {"TableName": "shop", "Item": item})
    with pytest.raises(InvalidItem, match="field 'total'"):
        store.get(Summary, customer="ann", number=0)
    valid = store.page(MINE.select(Summary).on_invalid("collect"))
    assert [each.number for each in valid] == [1, 2, 3, 4]
    assert valid.invalid[0].field == "total"


def test_a_hidden_field_is_not_shown() -> None:
    class Secret(Projection[Order]):
        secret = Order.secret
        number = Order.number

    shown = Secret.from_entity(Order(customer="ann", number=1, total=1, secret="s3cret"))
    assert repr(shown) == "Secret(number=1)"
    assert shown.secret == "s3cret"


class Customer(Entity, table=shop):
    customer: Attr[str] = field()
    primary = Key("CUSTOMER", customer).sort("A")


class Names(Projection[Customer]):
    customer = Customer.customer


NAMES: Any = Names


def without_entity() -> None:
    class Wrong(Projection):  # type: ignore[type-arg] # what type checkers refuse, too
        total = Order.total


def with_another_entity() -> None:
    class Wrong(Projection[Order]):
        customer = Customer.customer


def without_fields() -> None:
    class Wrong(Projection[Order]):
        pass


def with_a_taken_name() -> None:
    class Wrong(Projection[Order]):
        to_dict = Order.total


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (without_entity, "Wrong does not say which entity it reads"),
        (with_another_entity, "Wrong.customer is not a field of Order"),
        (without_fields, "Wrong has no fields; write total = Order.total"),
        (with_a_taken_name, "Wrong.to_dict would hide Projection.to_dict"),
        (
            lambda: MINE.select(NAMES),
            "Names is a projection of Customer, and Order.primary reads Order",
        ),
        (
            lambda: (
                Customer.primary.with_children(Order.primary)
                .where(Customer.customer == "ann")
                .select(NAMES)
            ),
            "reads Customer or Order",
        ),
        (lambda: NAMES(customer="ann"), "a Names is read by a store; .* Names.from_entity"),
        (
            lambda: NAMES.from_entity(Order(customer="ann", number=1, total=1)),
            "a projection of Customer, not of Order",
        ),
        (
            lambda: Order.thin.where(Order.status == "x").select(Summary),
            "index 'thin' does not project label, placed_at, total",
        ),
    ],
)
def test_what_is_no_projection_is_refused(wrong: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        wrong()


def test_a_selection_of_fields_replaces_a_projection(store: Store) -> None:
    orders(store)
    found = store.all(MINE.select(Summary).limit(1))
    assert type(found[0]) is Summary
    query: Any = MINE.select(Summary)
    (part, *_) = store.all(query.select(Order.total))
    assert (type(part), part.total) == (Order, 0)


def test_many_by_their_keys(store: Store) -> None:
    expected = [Summary.from_entity(order) for order in orders(store)]
    keys = [{"customer": "ann", "number": number} for number in (3, 9, 1)]
    assert store.get_many(Summary, keys) == [expected[3], None, expected[1]]
    assert store.get_many(Summary, keys, consistent=True) == [expected[3], None, expected[1]]
    assert store.get_many(Summary, []) == []


def test_several_together(store: Store) -> None:
    kept = orders(store)
    store.put(Customer(customer="ann"))
    key = {"customer": "ann", "number": 2}
    found = store.get_together(
        (Summary, key), (Order, key), (WithStatus, key), (Names, {"customer": "ann"})
    )
    kinds: list[Any] = [Summary, None, WithStatus]
    assert found[:3] == [kind.from_entity(kept[2]) if kind else kept[2] for kind in kinds]
    assert found[3] == Names.from_entity(Customer(customer="ann"))
    assert store.get_together((Summary, {"customer": "ann", "number": 9})) == [None]


def test_only_the_fields_of_several_are_transferred(desk: Desk) -> None:
    desk.store.create_tables(shop)
    key = {"customer": "ann", "number": 1}
    desk.store.put(Order(customer="ann", number=1, total=10))
    desk.asked.clear()
    desk.store.get_many(Summary, [key])
    desk.store.get_together((Summary, key))
    desk.store.load(MINE.select(Summary))
    transaction = desk.store.transaction()
    transaction.get(Summary, **key)
    (_, many), (_, together), (_, loaded), (_, read) = desk.asked
    for request in (
        many["RequestItems"]["shop"],
        together["TransactItems"][0]["Get"],
        loaded,
        read,
    ):
        assert "label" in request["ProjectionExpression"]
        assert "lines" not in request["ProjectionExpression"]


def test_a_transaction_holds_only_what_it_read(store: Store) -> None:
    class Lines(Projection[Loose]):
        lines = Loose.lines

    store.put(Loose(name="a", total=10, lines=["x"]))
    with store.transaction() as tx:
        read = tx.get(Lines, name="a")
        assert read is not None
        assert read.lines == ["x"]
        store.update(Loose, Loose.total.add(1), name="a")  # another field: no conflict
        tx.create(Loose(name="copy", total=len(read.lines)))
    assert store.get(Loose, name="copy") == Loose(name="copy", total=1)

    def read_a_part(tx: Transaction[Waits]) -> None:
        tx.get(Lines, name="a")
        store.update(Loose, Loose.lines.append(["y"]), name="a")

    def read_the_whole_and_a_part(tx: Transaction[Waits]) -> None:
        tx.get(Loose, name="a")
        tx.get(Lines, name="a")
        store.update(Loose, Loose.total.add(1), name="a")

    def read_nothing(tx: Transaction[Waits]) -> None:
        assert tx.get(Lines, name="nobody") is None
        store.put(Loose(name="nobody", total=1))

    for meets_a_change in (read_a_part, read_the_whole_and_a_part, read_nothing):
        tx = store.transaction()
        meets_a_change(tx)
        tx.create(Loose(name="second", total=1))
        with pytest.raises(TransactionFailed):
            tx.commit()
    assert store.get(Loose, name="second") is None


def test_a_snapshot_of_projections(store: Store) -> None:
    expected = [Summary.from_entity(order) for order in orders(store)]
    loaded = store.load(MINE.select(Summary))
    assert list(loaded) == expected
    assert loaded[1:3] == expected[1:3]
    assert list(loaded.where(Order.total > 20)) == expected[3:]
    assert list(loaded.sorted_by(isotone.desc(Order.number))) == expected[::-1]
    assert loaded.group_by(Order.total)[30] == [expected[3]]
    assert loaded.table().split()[:4] == ["amount", "number", "label", "placed_at"]
    assert loaded.where(Order.number < 1).table(Order.total).splitlines()[-1].split() == ["0"]
    with pytest.raises(UsageError, match="the field 'status' was not loaded; select it as well"):
        loaded.where(Order.status == "PLACED")
    with pytest.raises(UsageError, match="if the query selects fields, select it as well"):
        loaded.sorted_by(Order.status)
