"""A count is the number of entities that reading would bring, whatever else lies beside them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    ManualClock,
    Number,
    Store,
    Table,
    expires,
    field,
)
from isotone.model import Read

START = datetime(2126, 1, 1, tzinfo=UTC)

alone = Table("alone", indexes={"ending": Global("user", Number("_expires"))})
several = Table("several")


class Account(Entity, table=alone):
    user: Attr[str] = field()
    mail: Attr[str] = field(unique=True)
    ends: Attr[datetime | None] = expires(default=None)

    primary = Key("USER", user).sort("ACCOUNT", mail)
    ending = Index("ending", user).sort(ends)


class Book(Entity, table=several):
    title: Attr[str] = field()
    primary = Key("BOOK", title).sort("BOOK")


class Film(Entity, table=several):
    title: Attr[str] = field()
    ends: Attr[datetime | None] = expires(default=START + timedelta(days=9))
    primary = Key("FILM", title).sort("FILM")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def store(clock: ManualClock) -> Iterator[Store]:
    with isotone.open(":memory:") as database, isotone.connect(database, clock=clock) as store:
        store.create_tables(alone, several)
        yield store


def put(store: Store, table: Table, **attributes: str) -> None:
    """An item that the library did not write."""
    item = {name: {"S": text} for name, text in attributes.items()}
    store.backend.execute("PutItem", {"TableName": table.name, "Item": item})


def counted(store: Store, read: Read[Any]) -> int:
    """The count, which is that of the entities that come back."""
    count = store.count(read)
    assert count == len(store.all(read))
    return count


def test_the_markers_of_unique_values_are_no_entities(store: Store) -> None:
    store.put(Account(user="ann", mail="a@b"))
    assert counted(store, Account.primary.scan()) == 1


def test_kinds_that_this_program_does_not_know_are_not_counted(store: Store) -> None:
    store.put(Account(user="ann", mail="a@b"))
    put(store, alone, PK="USER#ann", SK="ACCOUNT#z", _type="Ghost", user="ann", mail="z")
    assert counted(store, Account.primary.where(Account.user == "ann")) == 1


def test_items_without_a_tag_count_by_the_form_of_their_keys(store: Store) -> None:
    put(store, several, PK="BOOK#a", SK="BOOK", title="a")
    put(store, several, PK="BOOK#b", SK="BOOK", title="b")
    put(store, several, PK="FILM#c", SK="FILM", title="c")
    assert counted(store, Book.primary.scan()) == 2
    assert counted(store, Film.primary.scan()) == 1


def test_an_index_by_the_time_of_expiry_can_be_counted(store: Store, clock: ManualClock) -> None:
    for day in range(1, 4):
        store.put(Account(user="ann", mail=f"{day}", ends=START + timedelta(days=day)))
    clock.advance(86_400)
    assert counted(store, Account.ending.where(Account.user == "ann")) == 2


def test_none_in_place_of_an_expiry_lives_for_ever(store: Store) -> None:
    store.put(Film(title="a", ends=None))
    assert counted(store, Film.primary.where(Film.title == "a")) == 1


def test_a_limit_bounds_what_is_read_and_comes_before_the_other_bounds(store: Store) -> None:
    asked: list[Any] = []
    with isotone.connect(store.backend, observe=[isotone.at_end(asked.append)]) as watched:
        for number in range(40):
            watched.put(Account(user="ann", mail=f"{number:02}"))
        asked.clear()
        accounts = Account.primary.where(Account.user == "ann")
        assert watched.count(accounts.limit(3)) == 3
        assert [each.scanned for each in asked] == [3]
        assert watched.count(accounts.limit(3).page_size(5).max_requests(1)) == 3
