"""Versions of an entity: programs of two versions on one table, and items that are not rewritten yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.model.conftest import Desk

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, field, upgrade, version
from isotone.errors import (
    ConditionFailed,
    InvalidItem,
    NewerVersion,
    TransactionFailed,
    UsageError,
)

INDEXES = {
    "GSI1": Global("GSI1PK", "GSI1SK"),
    "some": Global("GSI2PK", "GSI2SK", projection=("_v", "_type", "first")),
    "less": Global("GSI3PK", "GSI3SK", projection=("first",)),
}


class Old(Entity, table=Table("people", indexes=INDEXES), tag="Person"):
    """A person as the first program declares it."""

    number: Attr[int] = field(max=99, alert=None)
    name: Attr[str] = field()
    age: Attr[int] = field(default=0)
    note: Attr[str | None] = field(default=None)

    primary = Key("PERSON").sort(number)
    by_name = Index("GSI1", "NAMES").sort(name)
    some = Index("some", "PEOPLE").sort(number)
    less = Index("less", "PEOPLE").sort(number)


class Declared(Entity, table=Table("people", indexes=INDEXES), tag="Person", version=1):
    """The same, by a program that declares its version."""

    number: Attr[int] = field(max=99, alert=None)
    name: Attr[str] = field()

    primary = Key("PERSON").sort(number)


class New(Entity, table=Table("people", indexes=INDEXES), tag="Person", version=2):
    """A person as the second program declares it."""

    number: Attr[int] = field(max=99, alert=None)
    first: Attr[str] = field()
    last: Attr[str] = field()
    months: Attr[int] = field(default=0)
    note: Attr[str | None] = field(default=None)

    primary = Key("PERSON").sort(number)
    by_name = Index("GSI1", "NAMES").sort(last, first)
    some = Index("some", "PEOPLE").sort(number)
    less = Index("less", "PEOPLE").sort(number)

    @staticmethod
    @upgrade(1)
    def split_name(item: dict[str, Any]) -> dict[str, Any]:
        first, _, last = item.pop("name").partition(" ")
        return {**item, "first": first, "last": last, "months": 12 * item.pop("age")}


ANN = New(number=1, first="Ann", last="Lee", months=480)


@pytest.fixture
def table(desk: Desk) -> Desk:
    desk.store.create_tables(Old.__schema__.table)
    return desk


def ids(people: Any) -> list[int]:
    return [person.number for person in people]


# A first program, and items of the second


READS: list[Callable[[isotone.Store], object]] = [
    lambda store: store.get(Old, number=1),
    lambda store: store.get(Old, number=1, consistent=True),
    lambda store: store.all(Old.primary.where()),
    lambda store: store.page(Old.primary.where(), size=3),
    lambda store: store.first(Old.primary.where()),
    lambda store: list(store.iterate(Old.primary.scan())),
    lambda store: store.all(Old.by_name.where()),
    lambda store: store.all(Old.some.where()),
    lambda store: store.all(Old.primary.where().select(Old.number)),
    lambda store: store.load(Old.primary.where()),
    lambda store: store.get_many(Old, [{"number": 1}]),
    lambda store: store.get_together((Old, {"number": 1})),
    lambda store: store.transaction().get(Old, number=1),
]


@pytest.mark.parametrize("read", READS)
def test_items_of_a_later_version_are_not_read_as_something_else(
    table: Desk, read: Callable[[isotone.Store], object]
) -> None:
    table.store.put(ANN)
    with pytest.raises(
        NewerVersion, match=r"has version 2.* knows Person up to version 1"
    ) as caught:
        read(table.store)
    error = caught.value
    assert isinstance(error, InvalidItem)
    assert (error.table, error.entity, error.found) == ("people", "Person", {"N": "2"})
    assert error.key == {"PK": "PERSON", "SK": "01"}


def in_transaction(store: isotone.Store, collect: Callable[[Any], object]) -> None:
    with store.transaction() as tx:
        collect(tx)


SET = Old.note.set("x")
WRITES: list[Callable[[isotone.Store], object]] = [
    lambda store: store.update(Old, SET, number=1),
    lambda store: store.update(Old, Old.name.set("Bo Lee"), number=1),
    lambda store: store.update(Old, SET, number=1, when=Old.age == 40),
    lambda store: store.update(Old, SET, number=1, when=Old.name.missing()),
    lambda store: store.update(Old(number=1, name="Ann Lee"), SET),
    lambda store: store.upsert(Old, SET, Old.name.set("Bo"), number=1),
    lambda store: store.upsert(Old, SET, Old.name.set("Bo"), number=1, when=Old.age == 1),
    lambda store: store.delete(Old, number=1),
    lambda store: store.delete(Old, number=1, when=Old.name.missing()),
    lambda store: store.move(Old, Old.number.set(2), number=1),
    lambda store: store.replace(Old(number=1, name="Bo")),
    lambda store: store.put(Old(number=1, name="Bo"), when=Old.name.missing()),
    lambda store: store.put(Declared(number=1, name="Bo")),
    lambda store: store.put_many([Declared(number=1, name="Bo")]),
    lambda store: store.delete_many(Declared, [{"number": 1}]),
    lambda store: store.delete_many([Declared(number=1, name="Bo")]),
    lambda store: in_transaction(store, lambda tx: tx.update(Old, SET, number=1)),
    lambda store: in_transaction(store, lambda tx: tx.delete(Old, number=1)),
    lambda store: in_transaction(store, lambda tx: tx.put(Declared(number=1, name="Bo"))),
    lambda store: in_transaction(store, lambda tx: tx.check(Old, Old.name.missing(), number=1)),
]


@pytest.mark.parametrize("write", WRITES)
def test_items_of_a_later_version_are_not_written_over(
    table: Desk, write: Callable[[isotone.Store], object]
) -> None:
    table.store.put(ANN)
    with pytest.raises(NewerVersion, match="has version 2"):
        write(table.store)
    assert table.store.get(New, number=1) == ANN
    assert table.store.count(New.primary.where()) == 1


def test_a_version_that_counts_writes_guards_every_put(desk: Desk) -> None:
    class Before(Entity, table=Table("accounts"), tag="Account"):
        number: Attr[int] = field(max=9, alert=None)
        cents: Attr[int] = field(default=0)
        revision: Attr[int] = version()

        primary = Key("ACCOUNT").sort(number)

    class After(Entity, table=Table("accounts"), tag="Account", version=2):
        number: Attr[int] = field(max=9, alert=None)
        euros: Attr[int] = field(default=0)
        revision: Attr[int] = version()

        primary = Key("ACCOUNT").sort(number)

        @staticmethod
        @upgrade(1)
        def in_euros(item: dict[str, Any]) -> dict[str, Any]:
            return {**item, "euros": item.pop("cents") // 100}

    desk.store.create_tables(Before.__schema__.table)
    read = desk.store.put(Before(number=1, cents=500))
    newer = desk.store.update(After, After.euros.add(1), number=1)
    for account in (read, Before(number=1, cents=3)):
        for write in (desk.store.put, desk.store.replace, desk.store.delete):
            with pytest.raises(NewerVersion):
                write(account)  # type: ignore[operator]
    assert desk.store.get(After, number=1) == newer


def test_a_declared_version_costs_no_request_more(table: Desk) -> None:
    person = table.store.put(Declared(number=2, name="Cy"))  # the first write records the keys
    table.store.put(New(number=2, first="Cy", last="X"))
    person = Declared(number=3, name="Cy")
    assert table.operations(lambda: table.store.put(person)) == ["PutItem"]
    assert table.operations(lambda: table.store.put(New(number=3, first="Cy", last="X"))) == [
        "PutItem"
    ]
    assert table.store.get(New, number=3) == New(number=3, first="Cy", last="X")
    assert table.operations(lambda: table.store.put(Old(number=4, name="Di"))) == ["PutItem"]
    assert table.asked[0][1].keys() == {"TableName", "Item"}


# A second program, and items of the first


@pytest.fixture
def mixed(table: Desk) -> Desk:
    for number, name, age in [(1, "Ann Lee", 40), (3, "Bo Ray", 20), (5, "Cy Lee", 30)]:
        table.store.put(Old(number=number, name=name, age=age))
    for number, first, last, months in [(2, "Di", "Lee", 240), (4, "Ann", "Ray", 480)]:
        table.store.put(New(number=number, first=first, last=last, months=months))
    return table


FILTERS = [
    (New.last == "Lee", [1, 2, 5]),
    (New.first == "Ann", [1, 4]),
    (New.months > 240, [1, 4, 5]),
    (~(New.last == "Lee"), [3, 4]),
    ((New.first == "Ann") | (New.months == 240), [1, 2, 3, 4]),
    (New.last.exists(), [1, 2, 3, 4, 5]),
    (New.last.missing(), []),
    (New.number > 2, [3, 4, 5]),
]


@pytest.mark.parametrize(("condition", "numbers"), FILTERS)
def test_filters_are_right_on_items_that_are_not_rewritten(
    mixed: Desk, condition: Any, numbers: list[int]
) -> None:
    store = mixed.store
    for query in (New.primary.where().filter(condition), New.primary.scan().filter(condition)):
        assert sorted(ids(store.all(query))) == numbers
        assert store.count(query) == len(numbers)
        assert sorted(ids(store.iterate(query.select(New.number)))) == numbers
        assert [person.number for person in store.all(query.limit(2))] == numbers[:2] or (
            query.operation == "Scan"
        )
    assert ids(store.load(New.primary.where()).where(condition)) == numbers
    pages, cursor = [], None
    while True:
        page = store.page(New.primary.where().filter(condition), size=2, cursor=cursor)
        pages += ids(page)
        cursor = page.cursor
        if cursor is None:
            break
    assert pages == numbers


def test_counts_and_selections_need_no_rewriting(mixed: Desk) -> None:
    assert mixed.store.count(New.primary.where()) == 5
    some = mixed.store.all(New.primary.where().select(New.last, New.months))
    assert [(each.last, each.months) for each in some] == [
        ("Lee", 480), ("Lee", 240), ("Ray", 240), ("Ray", 480), ("Lee", 360),
    ]  # fmt: skip


def test_an_index_that_lacks_attributes_says_what_it_cannot_tell(mixed: Desk) -> None:
    store = mixed.store
    with pytest.raises(InvalidItem, match="the entry has an older version than 2"):
        store.all(New.some.where())
    with pytest.raises(UsageError, match="index 'less' does not project '_v', so a filter cannot"):
        New.less.where().filter(New.first == "Ann")
    assert ids(store.all(New.less.where())) == [1, 2, 3, 4, 5]
    with pytest.raises(AttributeError, match="without its field 'first'"):
        store.all(New.less.where())[1].first  # noqa: B018
    for person in store.all(New.primary.where()):
        store.put(person)
    assert ids(store.all(New.some.where().filter(New.first == "Ann"))) == [1, 4]


HOLDS = (New.first == "Ann") & (New.months == 480)
FAILS = New.months == 40


def checked(store: isotone.Store, when: Any) -> None:
    with store.transaction() as tx:
        tx.check(New, when, number=1)
        tx.put(New(number=9, first="X", last="Y"))


CONDITIONAL: list[Callable[[isotone.Store, Any], object]] = [
    lambda store, when: store.update(New, New.note.set("x"), number=1, when=when),
    lambda store, when: store.update(New, New.last.set("Ray"), number=1, when=when),
    lambda store, when: store.upsert(
        New, New.first.set("A"), New.last.set("B"), number=1, when=when
    ),
    lambda store, when: store.move(New, New.number.set(7), number=1, when=when),
    lambda store, when: store.delete(New, number=1, when=when),
    lambda store, when: store.put(New(number=1, first="A", last="B"), when=when),
    lambda store, when: store.replace(New(number=1, first="A", last="B"), when=when),
    lambda store, when: in_transaction(
        store, lambda tx: tx.put(New(number=1, first="A", last="B"), when=when)
    ),
    lambda store, when: in_transaction(store, lambda tx: tx.delete(New, number=1, when=when)),
    lambda store, when: in_transaction(
        store, lambda tx: tx.update(New, New.note.set("x"), number=1, when=when)
    ),
    checked,
]


@pytest.mark.parametrize("write", CONDITIONAL)
def test_conditions_are_right_on_items_that_are_not_rewritten(
    mixed: Desk, write: Callable[[isotone.Store, Any], object]
) -> None:
    before = mixed.item(Old(number=1, name=""))
    with pytest.raises((ConditionFailed, TransactionFailed)) as caught:
        write(mixed.store, FAILS)
    failure: Any = caught.value
    if isinstance(failure, TransactionFailed):
        failure = failure.failures[0].reason
    assert failure.current == ANN
    assert mixed.item(Old(number=1, name="")) == before
    write(mixed.store, HOLDS)
    after = mixed.item(Old(number=1, name=""))
    if write is checked:
        assert mixed.store.get(New, number=9) is not None
    else:
        assert after is None or {"_v": {"N": "2"}}.items() <= after.items()


def test_a_write_between_the_reading_and_the_writing_is_seen(mixed: Desk) -> None:
    item = mixed.item(Old(number=1, name=""))
    younger = {"TableName": "people", "Item": {**item, "age": {"N": "1"}}}
    operations = {"GetItem": 0}
    mixed.before["PutItem"] = lambda: mixed.backend.execute("PutItem", younger)
    with pytest.raises(ConditionFailed):
        mixed.store.update(New, New.note.set("x"), number=1, when=HOLDS)
    assert operations == {"GetItem": 0}
    assert mixed.item(Old(number=1, name="")) == younger["Item"]


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.put(store.get(New, number=1)),
        lambda store: store.update(New, New.note.set("x"), number=1),
        lambda store: store.update(New, New.note.remove(), number=1),
        lambda store: store.upsert(New, New.first.set("A"), New.last.set("B"), number=1),
        lambda store: store.move(New, New.number.set(1), number=1),
        lambda store: in_transaction(store, lambda tx: tx.update(New, New.note.set("x"), number=1)),
    ],
)
def test_an_upgrade_removes_what_it_renames(
    mixed: Desk, write: Callable[[isotone.Store], object]
) -> None:
    write(mixed.store)
    item = mixed.item(New(number=1, first="", last=""))
    assert "name" not in item
    assert "age" not in item
    assert item["_v"] == {"N": "2"}
    assert item["months"] == {"N": "480"}
    assert (
        item["GSI1SK"] == New.__schema__.to_item(mixed.store.get(New, number=1).__dict__)["GSI1SK"]
    )  # type: ignore[union-attr]


def test_an_upgrade_clears_what_a_key_still_holds(desk: Desk) -> None:
    class V1(Entity, table=Table("jobs", indexes={"GSI1": Global("GSI1PK", "GSI1SK")}), tag="Job"):
        number: Attr[int] = field(max=9, alert=None)
        due: Attr[str | None] = field(default=None)

        primary = Key("JOB").sort(number)
        by_due = Index("GSI1", "DUE").sort(due)

    class V2(
        Entity,
        table=Table("jobs", indexes={"GSI1": Global("GSI1PK", "GSI1SK")}),
        tag="Job",
        version=2,
    ):
        number: Attr[int] = field(max=9, alert=None)
        due: Attr[str | None] = field(default=None)

        primary = Key("JOB").sort(number)
        by_due = Index("GSI1", "DUE").sort(due)

        @staticmethod
        @upgrade(1)
        def without_due(item: dict[str, Any]) -> dict[str, Any]:
            del item["due"]
            return item

    desk.store.create_tables(V1.__schema__.table)
    desk.store.put(V1(number=1, due="soon"))
    assert desk.store.get(V2, number=1) == V2(number=1, due=None)


@pytest.mark.parametrize("result", [None, "item", [("name", "Ann")]])
def test_an_upgrade_that_returns_no_item_is_refused_by_name(desk: Desk, result: Any) -> None:
    class First(Entity, table=Table("things"), tag="Thing"):
        number: Attr[int] = field(max=9, alert=None)

        primary = Key("THING").sort(number)

    class Second(Entity, table=Table("things"), tag="Thing", version=2):
        number: Attr[int] = field(max=9, alert=None)
        size: Attr[int] = field()

        primary = Key("THING").sort(number)

        @staticmethod
        @upgrade(1)
        def with_size(item: dict[str, Any]) -> Any:
            item["size"] = 1
            return result

    desk.store.create_tables(First.__schema__.table)
    desk.store.put(First(number=1))
    before = desk.item(First(number=1))
    for call in (
        lambda: desk.store.get(Second, number=1),
        lambda: desk.store.all(Second.primary.where()),
        lambda: desk.store.update(Second, Second.size.set(3), number=1),
    ):
        with pytest.raises(
            UsageError, match=r"@upgrade\(1\) .*Second.with_size returned .*return item"
        ):
            call()
    assert desk.item(First(number=1)) == before
