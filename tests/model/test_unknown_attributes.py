"""Attributes of an item that its entity does not declare: kept, dropped or refused, as the class says."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.model.conftest import Desk

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, computed, field, upgrade
from isotone.errors import InvalidItem, UsageError

books = Table("books", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Keeping(Entity, table=books, tag="Book"):
    number: Attr[int] = field(max=9, alert=None)
    title: Attr[str] = field(default="-")
    shelf: Attr[str | None] = field(default=None)
    tags: Attr[set[str]] = field(default_factory=set)
    label: Attr[str] = computed(lambda book: f"{book.number} {book.title}")

    primary = Key("BOOK").sort(number)
    by_shelf = Index("GSI1", "SHELF").sort(shelf)


class Dropping(Entity, table=Table("books"), tag="Book", unknown="drop"):
    number: Attr[int] = field(max=9, alert=None)
    title: Attr[str] = field(default="-")

    primary = Key("BOOK").sort(number)


class Refusing(Entity, table=Table("books"), tag="Book", unknown="refuse"):
    number: Attr[int] = field(max=9, alert=None)
    title: Attr[str] = field(default="-")

    primary = Key("BOOK").sort(number)


OTHERS: dict[str, Any] = {
    "isbn": {"S": "978"},
    "lent": {"M": {"to": {"S": "ann"}, "days": {"L": [{"N": "1"}, {"NULL": True}]}}},
    "sold": {"NS": ["1", "2"]},
}


@pytest.fixture
def table(desk: Desk) -> Desk:
    desk.store.create_tables(books)
    return desk


def fill(table: Desk, others: dict[str, Any] = OTHERS) -> None:
    table.store.put(Keeping(number=1, title="Emma"))
    item = table.item(Keeping(number=1))
    table.backend.execute("PutItem", {"TableName": "books", "Item": {**item, **others}})


def others_of(table: Desk, number: int = 1) -> dict[str, Any]:
    """The attributes that no class declares, as they are stored."""
    declared = {*Keeping.__schema__.fields, "PK", "SK", "_type", "GSI1PK", "GSI1SK"}
    item = table.item(Keeping(number=number))
    return {name: value for name, value in item.items() if name not in declared}


READS: list[Callable[[isotone.Store, Any], Any]] = [
    lambda store, entity: store.get(entity, number=1),
    lambda store, entity: store.all(entity.primary.where())[0],
    lambda store, entity: store.page(entity.primary.where(), size=3).items[0],
    lambda store, entity: next(iter(store.iterate(entity.primary.scan()))),
    lambda store, entity: store.load(entity.primary.where())[0],
    lambda store, entity: store.get_many(entity, [{"number": 1}])[0],
    lambda store, entity: store.get_together((entity, {"number": 1}))[0],
]
WRITES: list[Callable[[isotone.Store, Any], object]] = [
    lambda store, book: store.put(book),
    lambda store, book: store.put(book.replace(title="Persuasion")),
    lambda store, book: store.put(copy.deepcopy(book)),
    lambda store, book: store.put(pickle.loads(pickle.dumps(book))),
    lambda store, book: store.replace(book),
    lambda store, book: store.put_many([book]),
    lambda store, book: store.update(book, type(book).title.set("Persuasion")),
    lambda store, book: store.upsert(type(book), type(book).title.set("Persuasion"), number=1),
    lambda store, book: store.move(book, type(book).title.set("Persuasion")),
]


def in_transaction(store: isotone.Store, book: Any) -> None:
    with store.transaction() as tx:
        tx.put(book)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", [*WRITES, in_transaction])
def test_unknown_attributes_are_kept_by_default(
    table: Desk,
    read: Callable[[isotone.Store, Any], Any],
    write: Callable[[isotone.Store, Any], object],
) -> None:
    fill(table)
    book = read(table.store, Keeping)
    assert book == Keeping(number=1, title="Emma")
    assert book.unknown_attributes == {
        "isbn": "978", "lent": {"to": "ann", "days": [1, None]}, "sold": {1, 2},
    }  # fmt: skip
    assert book.to_dict().keys() == Keeping.__schema__.fields.keys()
    write(table.store, book)
    stored = others_of(table)
    stored["sold"]["NS"].sort()
    assert stored == OTHERS


def test_what_a_write_returns_has_them(table: Desk) -> None:
    fill(table)
    store = table.store
    for book in (
        store.update(Keeping, Keeping.title.set("a"), number=1),
        store.update(Keeping, Keeping.shelf.set("b"), number=1),
        store.move(Keeping, Keeping.number.set(2), number=1),
        store.delete(Keeping, number=2),
    ):
        assert book is not None
        assert book.unknown_attributes["isbn"] == "978"


def test_a_new_entity_and_a_selection_have_none(table: Desk) -> None:
    fill(table)
    assert Keeping(number=1).unknown_attributes == {}
    (some,) = table.store.all(Keeping.primary.where().select(Keeping.title))
    assert some.unknown_attributes == {}
    table.store.put(Keeping(number=1))  # a new one replaces the whole item
    assert others_of(table) == {}


@pytest.mark.parametrize("read", READS)
def test_unknown_attributes_are_dropped_where_the_class_says_so(
    table: Desk, read: Callable[[isotone.Store, Any], Any]
) -> None:
    fill(table)
    book = read(table.store, Dropping)
    assert book.unknown_attributes == {}
    table.store.put(book)
    assert table.item(book).keys() == {"PK", "SK", "_type", "number", "title"}


@pytest.mark.parametrize("read", READS)
def test_unknown_attributes_are_refused_where_the_class_says_so(
    table: Desk, read: Callable[[isotone.Store, Any], Any]
) -> None:
    fill(table)
    with pytest.raises(InvalidItem, match="attributes that Book does not declare: isbn") as caught:
        read(table.store, Refusing)
    assert caught.value.key == {"PK": "BOOK", "SK": "1"}
    table.store.put(Dropping(number=1))
    assert read(table.store, Refusing) == Refusing(number=1)


def test_only_the_three_words_are_options() -> None:
    with pytest.raises(UsageError, match="unknown='forget' is not an option; write 'keep', 'drop'"):

        class Forgetting(Entity, table=Table("books"), tag="B", unknown="forget"):  # type: ignore[call-arg]
            number: Attr[int] = field(max=9)

            primary = Key("BOOK").sort(number)


def test_an_upgrade_decides_what_is_unknown(table: Desk) -> None:
    class Later(Entity, table=Table("books"), tag="Book", version=2):
        number: Attr[int] = field(max=9, alert=None)
        title: Attr[str] = field(default="-")
        code: Attr[str] = field(default="")

        primary = Key("BOOK").sort(number)

        @staticmethod
        @upgrade(1)
        def with_code(item: dict[str, Any]) -> dict[str, Any]:
            return {**item, "code": item.pop("isbn")}

    fill(table)
    book = table.store.get(Later, number=1)
    assert book is not None
    assert (book.code, "isbn" in book.unknown_attributes) == ("978", False)
    table.store.put(book)
    assert "isbn" not in table.item(book)
    assert table.item(book)["lent"] == OTHERS["lent"]
    again = table.store.get(Later, number=1)
    assert again == book
    assert again.unknown_attributes == book.unknown_attributes  # type: ignore[union-attr]


def test_an_index_key_that_cannot_be_read_is_kept_by_a_put(table: Desk) -> None:
    shelves = Table("shelves", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    class Shelf(Entity, table=shelves):
        number: Attr[int] = field(max=9, alert=None)
        room: Attr[int | None] = field(default=None, max=99, alert=None)
        is_open: Attr[bool] = field(default=True)

        primary = Key("SHELF").sort(number)
        by_room = Index("GSI1", "ROOM", when=is_open == True).sort(room)  # noqa: E712

    table.store.create_tables(shelves)
    old = {"GSI1PK": {"S": "ROOM"}, "GSI1SK": {"S": "attic"}}
    key = {"PK": {"S": "SHELF"}, "SK": {"S": "1"}}
    put = {"TableName": "shelves", "Item": {**key, **old}}
    table.backend.execute("PutItem", put)
    shelf = table.store.get(Shelf, number=1)
    assert shelf is not None
    table.store.put(shelf)
    assert old.items() <= table.item(shelf).items()
    table.store.put(shelf.replace(room=7))
    assert table.item(shelf)["GSI1SK"] == {"S": "07"}
    table.backend.execute("PutItem", put)
    table.store.put(shelf.replace(is_open=False))
    assert "GSI1SK" not in table.item(shelf)


NAMES = st.sampled_from(["a", "b", "title2", "GSI2PK", "_expires", "_unique"])
VALUES = st.sampled_from([{"S": "x"}, {"N": "1"}, {"BOOL": False}, {"NULL": True}, {"M": {}}])


@given(
    st.dictionaries(NAMES, VALUES),
    st.sets(st.sampled_from(["title", "shelf", "label", "_type"])),
    st.sampled_from(["put", "update", "move"]),
)
@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_item_keeps_exactly_what_is_not_declared(
    others: dict[str, Any], left_out: set[str], call: str
) -> None:
    with isotone.connect() as store:
        store.create_tables(books)
        book = Keeping(number=1, shelf="s")
        item = {**Keeping.__schema__.to_item(book.__dict__), **others}
        item = {name: value for name, value in item.items() if name not in left_out}
        store.backend.execute("PutItem", {"TableName": "books", "Item": item})
        found = store.get(Keeping, number=1)
        assert found is not None
        assert found.unknown_attributes.keys() == others.keys()
        if call == "put":
            store.put(found)
        else:
            getattr(store, call)(found, Keeping.title.set("y"))
        get = {"TableName": "books", "Key": {"PK": item["PK"], "SK": item["SK"]}}
        after = store.backend.execute("GetItem", get)["Item"]
        assert {name: value for name, value in after.items() if name in others} == others
