"""What is no query is refused with what to write instead, where no type checker has seen it before."""

from __future__ import annotations

from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Key, Query, Scan, Table, field
from isotone.errors import BudgetSpent, UsageError

shelf = Table("shelf")


class Book(Entity, table=shelf):
    number: Attr[int] = field(max=9, alert=2)

    primary = Key("BOOKS").sort("BOOK", number)


class Shelf(Entity, table=shelf):
    name: Attr[str] = field()

    primary = Key("SHELF", name).sort("SHELF")


class Volume(Entity, table=shelf):
    shelf: Attr[str] = field()
    number: Attr[int] = field(max=9)

    primary = Shelf.primary.children(shelf).after("VOLUME", number)


@pytest.mark.parametrize(
    "wrong", [Book, Book.primary, Book.number, Book.number == 3, "BOOKS", None]
)
def test_what_is_no_query(wrong: Any) -> None:
    with isotone.connect() as store:
        calls = [
            store.all,
            store.first,
            store.count,
            store.load,
            lambda read: store.page(read, size=1),
            lambda read: list(store.iterate(read)),
        ]
        for call in calls:
            with pytest.raises(UsageError, match=r"write a query, such as Order\.primary\.where\("):
                call(wrong)


def test_what_is_no_query_of_a_family() -> None:
    query: Any = Book.primary.where()
    with (
        isotone.connect() as store,
        pytest.raises(UsageError, match=r"with_children\(Child\.primary\)\.where\("),
    ):
        store.family(query)


def test_what_is_no_scan() -> None:
    query: Any = Book.primary.where()
    with isotone.connect() as store, pytest.raises(UsageError, match=r"Order\.primary\.scan\(\)"):
        store.scan(query)


@pytest.mark.parametrize(
    "scan",
    [
        Book.primary.scan().limit(1),
        Book.primary.scan().max_units(1),
        Book.primary.scan().max_requests(1),
        Book.primary.scan().segment(0, of=2),
    ],
)
def test_bounds_of_a_whole_scan_are_not_taken_for_those_of_its_segments(scan: Scan[Book]) -> None:
    with isotone.connect() as store, pytest.raises(UsageError, match="iterate over it"):
        store.scan(scan)


def test_numbers_that_ask_for_nothing() -> None:
    family: Any = Shelf.primary.with_children(Volume.primary).where(Shelf.name == "a")
    with isotone.connect() as store:
        with pytest.raises(UsageError, match="0 segments reads nothing"):
            store.scan(Book.primary.scan(), segments=0)
        with pytest.raises(UsageError, match="at_most=-1 allows no result"):
            store.all(Book.primary.where(), at_most=-1)
        with pytest.raises(UsageError, match="children=-1"):
            store.family(family, children=-1)


def test_a_limit_is_no_part_of_what_is_read_as_a_whole() -> None:
    family: Any = Shelf.primary.with_children(Volume.primary).where(Shelf.name == "a")
    with isotone.connect() as store:
        with pytest.raises(UsageError, match="a snapshot has the whole of a collection; use limit"):
            store.load(Book.primary.where().limit(2))
        with pytest.raises(UsageError, match="a family has a number of children; use limit"):
            store.family(family.limit(2))


@pytest.mark.parametrize(
    "bounded",
    [Book.primary.where().max_requests(2), Book.primary.where().max_units(1)],
)
def test_a_snapshot_that_would_be_incomplete_raises(bounded: Query[Book]) -> None:
    with isotone.connect() as store:
        store.create_tables(shelf)
        for number in range(5):
            store.put(Book(number=number))
        with pytest.raises(BudgetSpent):
            store.load(bounded.page_size(1))


@pytest.mark.parametrize("wrong", [True, "number", Book.number, None])
def test_what_is_no_condition_is_no_filter(wrong: Any) -> None:
    for read in (Book.primary.where(), Book.primary.scan()):
        with pytest.raises(UsageError, match="is not a condition; write "):
            read.filter(wrong)


@pytest.mark.parametrize("wrong", ["number", None, Shelf.name, Book.number == 3])
def test_what_is_no_field_is_not_selected(wrong: Any) -> None:
    with pytest.raises(UsageError, match="is not a field of Book; select whole fields"):
        Book.primary.where().select(wrong)


@pytest.mark.parametrize("wrong", ["25", 2.0, None, True])
def test_a_number_of_results_is_an_int(wrong: Any) -> None:
    with pytest.raises(UsageError, match="give an int"):
        Book.primary.where().limit(wrong)
    with isotone.connect() as store, pytest.raises(UsageError, match="give 1 or more"):
        store.page(Book.primary.where(), size=wrong)


def test_changing_a_request_does_not_change_the_query() -> None:
    class Named(Entity, table=Table("named", partition="name", sort=None)):
        name: Attr[str] = field()

        primary = Key(name)

    request = Named.primary.where(Named.name == "a").request()
    request["ExpressionAttributeNames"].clear()
    assert "ExpressionAttributeNames" in Named.primary.where(Named.name == "b").request()
    assert Named.primary.where(Named.name == "b").request()["ExpressionAttributeNames"]
