"""A cursor continues its own query, for as long as it is valid, and nothing else."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Global, Index, Key, Page, Query, Store, Table, desc, field
from isotone.clock import ManualClock
from isotone.errors import InvalidCursor, UsageError
from isotone.model.reading.cursors import CursorCipher, identity

QUERY = identity({"TableName": "t"})
CURSORS = CursorCipher(b"0123456789abcdef", ManualClock())
STATES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=4),
)


@given(STATES)
def test_what_is_written_is_read_and_fits_into_a_url(state: Any) -> None:
    cursor = CURSORS.write(state, QUERY)
    assert CURSORS.read(cursor, QUERY) == state
    assert all(each.isalnum() or each in "-_" for each in cursor)
    assert cursor.isascii()


@given(STATES, st.data())
def test_no_changed_cursor_is_read(state: Any, data: st.DataObject) -> None:
    cursor = CURSORS.write(state, QUERY)
    place = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from("AQgw09-_").filter(lambda each: each != cursor[place]))
    with pytest.raises(InvalidCursor):
        CURSORS.read(cursor[:place] + other + cursor[place + 1 :], QUERY)


@given(st.text(max_size=60))
def test_no_text_of_a_stranger_is_read(text: str) -> None:
    with pytest.raises(InvalidCursor):
        CURSORS.read(text, QUERY)


def test_a_cursor_belongs_to_its_query() -> None:
    with pytest.raises(InvalidCursor, match="another query"):
        CURSORS.read(CURSORS.write("a", QUERY), identity({"TableName": "u"}))


def test_another_secret_makes_other_cursors() -> None:
    cursor = CURSORS.write(None, QUERY)
    other = CursorCipher(b"another one, of sixteen or more", ManualClock())
    assert other.write(None, QUERY) != cursor
    with pytest.raises(InvalidCursor, match="secret"):
        other.read(cursor, QUERY)


def test_a_cursor_expires() -> None:
    clock = ManualClock()
    cursors = CursorCipher(b"0123456789abcdef", clock, lifetime=3600)
    cursor = cursors.write("a", QUERY)
    clock.advance(timedelta(minutes=59))
    assert cursors.read(cursor, QUERY) == "a"
    clock.advance(timedelta(minutes=1))
    with pytest.raises(InvalidCursor, match="expired"):
        cursors.read(cursor, QUERY)


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(UsageError, match="16 bytes"):
        CursorCipher(b"short", ManualClock())


@given(st.lists(st.none() | st.booleans() | st.text()))
def test_a_sealed_state_opens_for_what_it_is_of(state: Any) -> None:
    with isotone.connect() as store:
        cursor = store.calls.seal(state, board="a", shards=4)
        assert store.calls.unseal(cursor, shards=4, board="a") == state
        with pytest.raises(InvalidCursor, match="another query"):
            store.calls.unseal(cursor, board="b", shards=4)


notes = Table("notes", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Note(Entity, table=notes):
    book: Attr[str] = field()
    number: Attr[int] = field(max=99)
    title: Attr[str] = field()

    primary = Key("BOOK", book).sort("NOTE", number)
    by_title = Index("GSI1", "BOOK", book).sort(title)


def test_a_page_continues_after_any_position() -> None:
    with isotone.connect() as store:
        store.create_tables(notes)
        for number, title in enumerate("abbbc"):
            store.put(Note(book="x", number=number, title=title))
        query = Note.by_title.where(Note.book == "x")
        for direction, behind, expected in [
            (query, 2, [3, 4]),
            (query.reversed(), 2, [1, 0]),
            (query, 9, [4]),  # where there is nothing
        ]:
            cursor = store.calls.cursor_after(direction, book="x", number=behind, title="b")
            page = store.page(direction, size=9, cursor=cursor)
            assert [each.number for each in page] == expected


# What an application sees

logins = Table("logins", indexes={"recent": Global("RPK", "RSK")})


class Login(Entity, table=logins):
    email: Attr[str] = field()
    at: Attr[datetime] = field(precision="seconds")
    city: Attr[str] = field()
    tries: Attr[int] = field(default=1)

    primary = Key("USER", email).sort("LOGIN", at)
    recent = Index("recent", "CITY", city).sort(desc(at), email)


def at(second: int) -> datetime:
    return datetime(2026, 3, 1, 12, 0, second, tzinfo=UTC)


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect() as store:
        store.create_tables(logins)
        for second in range(30):
            login = Login(email="ann@example.com", at=at(second), city="Ghent", tries=second % 3)
            store.put(login)
        yield store


def test_a_cursor_hides_the_key_and_is_short(store: Store) -> None:
    for query in (
        Login.primary.where(Login.email == "ann@example.com"),
        Login.recent.where(Login.city == "Ghent"),
    ):
        cursor = store.page(query, size=3).cursor
        assert cursor is not None
        assert len(cursor) < 150
        raw = urlsafe_b64decode(cursor + "==")
        assert b"ann" not in raw
        assert b"2026" not in raw


def test_an_empty_cursor_is_the_first_page(store: Store) -> None:
    query = Login.primary.where(Login.email == "ann@example.com")
    assert store.page(query, size=3, cursor="").items == store.page(query, size=3).items


def test_a_cursor_survives_a_bound_that_is_relative_to_now(store: Store) -> None:
    def latest(now: int) -> Query[Login]:
        query = Login.recent.where(Login.city == "Ghent", Login.at <= at(now))
        return query.filter(Login.tries < 1 + now)

    first = store.page(latest(20), size=3)
    assert [login.at.second for login in first] == [20, 19, 18]
    second = store.page(latest(25), size=3, cursor=first.cursor)
    assert [login.at.second for login in second] == [17, 16, 15]
    back = store.page(latest(25), size=30, cursor=second.previous)
    assert [login.at.second for login in back] == [25, 24, 23, 22, 21, 20, 19, 18]


def test_another_filter_or_direction_is_another_query(store: Store) -> None:
    query = Login.recent.where(Login.city == "Ghent")
    cursor = store.page(query, size=3).cursor
    for other in (
        query.reversed(),
        query.filter(Login.tries == 1),
        Login.recent.where(Login.city == "Bruges"),
        Login.recent.where(Login.city == "Ghent", Login.at == at(1)),
        Login.recent.where(Login.city == "Ghent", Login.at < at(1)),
        Login.recent.scan(),
    ):
        with pytest.raises(InvalidCursor, match="another query"):
            store.page(other, size=3, cursor=cursor)
    assert len(store.page(query.select(Login.at), size=9, cursor=cursor)) == 9


@given(st.integers(0, 31), st.integers(0, 31), st.integers(0, 31), st.booleans(), st.integers(1, 5))
def test_a_position_outside_of_the_new_range_starts_or_ends_it(
    first: int, low: int, high: int, newest: bool, size: int
) -> None:
    with isotone.connect() as store:
        store.create_tables(logins)
        seconds = range(1, 31)
        store.put_many(Login(email="a", at=at(second), city="x") for second in seconds)

        def between(low: int, high: int) -> Query[Login]:
            query = Login.primary.where(Login.email == "a", Login.at.between(at(low), at(high)))
            return query.newest_first() if newest else query

        page = store.page(between(first, 31), size=size)
        if page.cursor is None:
            return
        last = page.items[-1].at.second
        further = store.page(between(low, high), size=50, cursor=page.cursor)
        expected = [each for each in seconds if low <= each <= high]
        if newest:
            assert [each.at.second for each in further] == [
                x for x in reversed(expected) if x < last
            ]
        else:
            assert [each.at.second for each in further] == [x for x in expected if x > last]


limited = Table("limited")


class Reading(Entity, table=limited):
    sensor: Attr[str] = field()
    number: Attr[int] = field(max=9_999)
    is_high: Attr[bool] = field(default=False)

    primary = Key("SENSOR", sensor).sort("READING", number)


@given(high=st.sets(st.integers(0, 39)), data=st.data())
def test_pages_that_a_limit_ends_early_lead_both_ways(high: set[int], data: st.DataObject) -> None:
    """Many of these pages are empty, and lead on from where their reads have ended."""
    with isotone.connect(":memory:", report=None) as store:
        store.create_tables(limited)
        store.put_many(
            Reading(sensor="a", number=number, is_high=number in high) for number in range(40)
        )
        query = Reading.primary.where(Reading.sensor == "a").filter(Reading.is_high == True)  # noqa: E712
        query = query.page_size(data.draw(st.integers(1, 6))).max_requests(
            data.draw(st.integers(1, 3))
        )
        at = store.page(query, size=3)
        for way in data.draw(st.lists(st.sampled_from(["cursor", "previous"]), max_size=30)):
            to = getattr(at, way)
            at = at if to is None else store.page(query, size=3, cursor=to)
        here = [each.number for each in at]
        after, before = walked(store, query, at, "cursor"), walked(store, query, at, "previous")
        assert [*before[::-1], *here, *after] == sorted(high)


def walked(store: Store, query: Query[Reading], page: Page[Reading], way: str) -> list[int]:
    """The numbers on all pages that follow in one direction, in the order in which they come."""
    found: list[int] = []
    while (cursor := getattr(page, way)) is not None:
        page = store.page(query, size=3, cursor=cursor)
        numbers = [each.number for each in page]
        found += numbers if way == "cursor" else numbers[::-1]
    return found


def test_a_query_that_finds_nothing_by_its_bounds_refuses_a_foreign_cursor() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(limited)
        nothing = Reading.primary.where(Reading.sensor == "a", Reading.number.between(9, 3))
        assert store.page(nothing, size=3).items == []
        with pytest.raises(InvalidCursor):
            store.page(nothing, size=3, cursor="of somebody else")
