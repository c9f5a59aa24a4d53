"""A cursor continues its own query, for as long as it is valid, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, field
from isotone.clock import ManualClock
from isotone.errors import InvalidCursor, UsageError
from isotone.model.reading.cursors import Position, Signer, fingerprint

REQUEST = {"TableName": "t", "KeyConditionExpression": "PK = :v0", "Limit": 5}
QUERY = fingerprint(REQUEST)
SIGNER = Signer(b"0123456789abcdef", ManualClock())
KEYS = st.none() | st.dictionaries(
    st.text(min_size=1), st.builds(lambda text: {"S": text}, st.text()), min_size=1, max_size=4
)


@given(KEYS, st.sampled_from(["forward", "back"]))
def test_what_is_written_is_read_and_fits_into_a_url(key: Any, direction: Any) -> None:
    cursor = SIGNER.write(Position(direction, key), QUERY)
    assert SIGNER.read(cursor, QUERY) == Position(direction, key)
    assert all(each.isalnum() or each in "-_" for each in cursor)
    assert cursor.isascii()


@given(KEYS, st.data())
def test_no_changed_cursor_is_read(key: Any, data: st.DataObject) -> None:
    cursor = SIGNER.write(Position("forward", key), QUERY)
    place = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from("AQgw09-_").filter(lambda each: each != cursor[place]))
    with pytest.raises(InvalidCursor):
        SIGNER.read(cursor[:place] + other + cursor[place + 1 :], QUERY)


@given(st.text(max_size=60))
def test_no_text_of_a_stranger_is_read(text: str) -> None:
    with pytest.raises(InvalidCursor):
        SIGNER.read(text, QUERY)


def test_the_size_of_a_page_may_change_and_the_query_may_not() -> None:
    cursor = SIGNER.write(Position("forward", {"PK": {"S": "a"}}), QUERY)
    assert SIGNER.read(cursor, fingerprint({**REQUEST, "Limit": 9})).key == {"PK": {"S": "a"}}
    with pytest.raises(InvalidCursor, match="another query"):
        SIGNER.read(cursor, fingerprint({**REQUEST, "ScanIndexForward": False}))


def test_another_secret_signs_otherwise() -> None:
    cursor = SIGNER.write(Position("forward", None), QUERY)
    with pytest.raises(InvalidCursor, match="secret"):
        Signer(b"another one, of sixteen or more", ManualClock()).read(cursor, QUERY)


def test_a_cursor_expires() -> None:
    clock = ManualClock()
    signer = Signer(b"0123456789abcdef", clock, lifetime=3600)
    cursor = signer.write(Position("forward", None), QUERY)
    clock.advance(timedelta(minutes=59))
    assert signer.read(cursor, QUERY) == Position("forward", None)
    clock.advance(timedelta(minutes=1))
    with pytest.raises(InvalidCursor, match="expired"):
        signer.read(cursor, QUERY)


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(UsageError, match="16 bytes"):
        Signer(b"short", ManualClock())


@given(st.lists(st.none() | st.booleans() | st.text()))
def test_a_sealed_state_opens_for_what_it_is_of(state: Any) -> None:
    cursor = SIGNER.seal(state, {"board": "a", "shards": 4})
    assert SIGNER.unseal(cursor, {"shards": 4, "board": "a"}) == state
    with pytest.raises(InvalidCursor, match="another query"):
        SIGNER.unseal(cursor, {"board": "b", "shards": 4})
    with pytest.raises(InvalidCursor, match="another query"):
        SIGNER.read(cursor, QUERY)


notes = Table("notes", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Note(Entity, table=notes):
    book: Attr[str] = field()
    number: Attr[int] = field(max=99)
    title: Attr[str] = field()

    primary = Key("BOOK", book).sort("NOTE", number)
    by_title = Index("GSI1", "BOOK", book).sort(title)


def test_a_page_goes_on_behind_any_place() -> None:
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
