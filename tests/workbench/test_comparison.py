"""What differs between two states of a table, and what is put back: against naive comparisons of random histories."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.intercepted_backend import InterceptedBackend
from tests.moving.tables import NAME, create, key_of, order, values

import isotone
from isotone.errors import ValidationException
from isotone.moving import Stopped
from isotone.moving.item_identity import canonical
from isotone.tables.definition import read_definition
from isotone.tables.pace import Pace
from isotone.workbench import comparison as comparing
from isotone.workbench.comparison import ALL, KINDS, Side, SnapshotComparison
from isotone.workbench.restoring import ItemToRestore, write_changes, write_of

State = dict[str, Any]
"""The items by their keys, both in canonical JSON."""


def text(item: Any) -> str:
    return msgspec.json.encode(canonical(item), order="sorted").decode()


def state_of(database: isotone.Database) -> State:
    items = database.execute("Scan", {"TableName": NAME})["Items"]
    return {text(key_of(item)): text(item) for item in items}


def order_of(*states: State) -> list[str]:
    """The keys of all items in the order in which a table returns them."""
    with isotone.open() as database:
        create(database)
        for state in states:
            for item in state.values():
                database.execute("PutItem", {"TableName": NAME, "Item": msgspec.json.decode(item)})
        return list(state_of(database))


def differing_in(before: str, after: str) -> set[str]:
    mine, theirs = msgspec.json.decode(before), msgspec.json.decode(after)
    return {name for name in mine | theirs if mine.get(name) != theirs.get(name)}


def compared(
    before: isotone.Database, after: isotone.Database, own: isotone.Database
) -> SnapshotComparison:
    definition = read_definition(before, NAME)
    assert definition is not None
    result = SnapshotComparison(own, definition)
    result.run(
        Side(before, NAME),
        Side(after, NAME),
        lambda _: None,
        threading.Event(),
        keep_after=True,
    )
    return result


def write_back(
    database: isotone.Database, result: SnapshotComparison, *, undo: bool = False
) -> list[bool]:
    rows = list(result.rows(result.numbers(ALL, 0, result.counts.all)))
    changes = [
        ItemToRestore(row.number, row.key, row.before, row.after)
        if undo
        else ItemToRestore(row.number, row.key, row.after, row.before)
        for row in rows
    ]
    parts = write_changes(database, NAME, changes, Pace())
    return [is_made for part in parts for _, is_made in part]


STEPS = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(["note", "total", "x"]), values | st.none()),
    max_size=24,
)
"""Writes: the number of an order, and an attribute that it gets; None deletes it."""


def write(databases: Sequence[isotone.Database], steps: Any) -> None:
    for number, name, value in steps:
        for database in databases:
            item = order(number)
            if value is None:
                database.execute("DeleteItem", {"TableName": NAME, "Key": key_of(item)})
            else:
                database.execute("PutItem", {"TableName": NAME, "Item": {**item, name: value}})


@settings(max_examples=examples(60), deadline=None)
@given(first=STEPS, second=STEPS, page=st.integers(1, 9))
def test_what_differs_is_what_a_naive_comparison_finds_and_goes_back(first, second, page):
    with (
        pytest.MonkeyPatch.context() as patch,
        isotone.open() as before,
        isotone.open() as after,
        isotone.open() as own,
    ):
        patch.setattr(comparing, "_ENTRIES_A_CHUNK", 4)
        patch.setattr(comparing, "_NUMBERS_A_CHUNK", 3)
        for database in (before, after):
            create(database)
        write((before, after), first)
        write((after,), second)
        old, new = state_of(before), state_of(after)
        result = compared(before, after, own)
        # what, and in which order
        expected = [
            (key, "added" if key not in old else "removed" if key not in new else "changed")
            for key in order_of(old, new)
            if old.get(key) != new.get(key)
        ]
        rows = list(result.rows(result.numbers(ALL, 0, 10_000)))
        assert [(text(row.key), row.kind) for row in rows] == expected
        for row in rows:
            assert (row.before and text(row.before)) == old.get(text(row.key))
            assert (row.after and text(row.after)) == new.get(text(row.key))
        counts = result.counts
        assert (counts.before, counts.after) == (len(old), len(new))
        assert counts.same == sum(old[key] == new.get(key) for key in old)
        # each list, page by page
        for name in (*KINDS, *(f"={each}" for each in counts.attributes)):
            size = result.size_of(name)
            numbers = [
                number for at in range(0, size, page) for number in result.numbers(name, at, page)
            ]
            wanted = [
                number
                for number, (key, kind) in enumerate(expected)
                if kind == name
                or (kind == "changed" and name[1:] in differing_in(old[key], new[key]))
            ]
            assert numbers == wanted
        # back, and forth
        assert all(write_back(after, result))
        assert state_of(after) == old
        assert all(write_back(after, result, undo=True))
        assert state_of(after) == new


def tables(*items: Any) -> isotone.Database:
    database = isotone.open()
    create(database)
    for item in items:
        database.execute("PutItem", {"TableName": NAME, "Item": item})
    return database


def get(database: isotone.Database, item: Any) -> Any:
    return database.execute("GetItem", {"TableName": NAME, "Key": key_of(item)}).get("Item")


def test_what_somebody_wrote_meanwhile_is_not_lost():
    changed, added, removed, untouched = (order(number) for number in range(4))
    before = tables(changed, removed, untouched)
    after = tables({**changed, "total": {"N": "5"}}, added, {**untouched, "total": {"N": "6"}})
    with before, after, isotone.open() as own:
        result = compared(before, after, own)
        theirs = [
            {**changed, "total": {"N": "7"}},
            {**added, "note": {"S": "mine"}, "total": {"N": "8"}},
            {**removed, "total": {"N": "9"}},
        ]
        for item in theirs:
            after.execute("PutItem", {"TableName": NAME, "Item": item})
        also = {**untouched, "total": {"N": "6"}, "note": {"S": "an attribute of somebody else"}}
        after.execute("PutItem", {"TableName": NAME, "Item": also})
        made = dict(
            zip((row.kind for row in result.rows(range(4))), write_back(after, result), strict=True)
        )
        assert made["added"] is made["removed"] is False
        assert [get(after, item) for item in theirs] == theirs
        assert get(after, untouched) == {**untouched, "note": also["note"]}
        assert not any(write_back(after, result))


def test_an_item_that_got_an_attribute_meanwhile_is_not_deleted():
    """Nor is one overwritten that has more changes than fit into an update."""
    wide = {**order(2), **{f"attribute {each}": {"S": "x"} for each in range(200)}}
    for item, wanted in ((order(1), None), (wide, None), (wide, order(2))):
        theirs = {**item, "theirs": {"S": "x"}}
        with tables(theirs) as database:
            change = ItemToRestore(0, key_of(item), item, wanted)
            assert list(write_changes(database, NAME, [change], Pace())) == [[(change, False)]]
            assert get(database, item) == theirs


@pytest.mark.parametrize("is_here", [True, False])
def test_what_was_written_beside_an_item_that_is_refused_is_reported(is_here):
    orders = [order(number) for number in range(4)]
    refused = {**orders[1], "status": {"N": "1"}}  # the key of an index is a text
    with tables() as database:
        changes = [
            ItemToRestore(number, key_of(item), None, item)
            for number, item in enumerate([orders[0], refused, *orders[2:]])
        ]
        backend: Any = database if is_here else InterceptedBackend(database)
        parts = write_changes(backend, NAME, changes, Pace())
        written = [change.number for change, is_made in next(parts) if is_made]
        assert written == [0, 2, 3]
        with pytest.raises(ValidationException):
            next(parts)
        assert state_of(database).keys() == {text(key_of(orders[each])) for each in written}


def test_a_write_that_was_answered_to_nobody_is_not_refused_when_it_is_sent_again():
    item = order(1)
    with tables(item) as database:
        change = ItemToRestore(0, key_of(item), {**item, "total": {"N": "3"}}, item)
        assert list(write_changes(database, NAME, [change], Pace())) == [[(change, True)]]
        gone = ItemToRestore(0, key_of(order(2)), order(2), None)
        assert list(write_changes(database, NAME, [gone], Pace())) == [[(gone, True)]]


@pytest.mark.parametrize("number", [1, 50, 89, 200, 600])
def test_items_with_many_attributes_fit_into_requests(number):
    wide = {**order(1), **{f"attribute {each}": {"S": "x"} for each in range(number)}}
    other = {**order(1), **{f"other {each}": {"S": "y"} for each in range(number)}}
    with tables(wide) as database:
        for present, wanted in ((wide, other), (other, None), (None, wide), (wide, other)):
            change = ItemToRestore(0, key_of(wide), present, wanted)
            assert list(write_changes(database, NAME, [change], Pace())) == [[(change, True)]]
            assert get(database, wide) == wanted
            request = write_of(NAME, change)[1]
            assert len(request["ConditionExpression"]) < 4096
            assert len(request.get("UpdateExpression", "")) < 4096


@contextmanager
def memory_of(most: int) -> Iterator[None]:
    """What is done takes no more bytes at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def test_large_items_differ_in_bounded_pages():
    large = [{**order(number), "text": {"S": "x" * 190_000}} for number in range(30)]
    with tables(*large) as before, tables() as after, isotone.open() as own:
        result = compared(before, after, own)
        assert result.counts.removed == 30
        (row,) = result.rows([19])
        assert row.before is not None
        assert row.after is None
        with before.frozen([NAME]) as pages_of:
            assert max(len(page) for page in pages_of(NAME)) < 30
        with memory_of(1 << 20):
            assert sum(row.number for row in result.rows(range(30))) == sum(range(30))
        changes = (
            ItemToRestore(row.number, row.key, None, row.before) for row in result.rows(range(30))
        )
        parts = [len(part) for part in write_changes(after, NAME, changes, Pace())]
        assert sum(parts) == 30
        assert max(parts) < 30


def test_a_comparison_is_stopped():
    stop = threading.Event()
    stop.set()
    with tables(order(1)) as before, tables() as after, isotone.open() as own:
        definition = read_definition(before, NAME)
        assert definition is not None
        with pytest.raises(Stopped):
            SnapshotComparison(own, definition).run(
                Side(before, NAME), Side(after, NAME), lambda _: None, stop
            )


def test_a_table_that_is_on_one_side_alone_is_all_added_or_all_removed():
    with tables(order(1), order(2)) as one, isotone.open() as own, isotone.open() as other:
        definition = read_definition(one, NAME)
        assert definition is not None
        for database, sides, kind in (
            (own, (Side(one, NAME), Side(one, None)), "removed"),
            (other, (Side(one, None), Side(one, NAME)), "added"),
        ):
            result = SnapshotComparison(database, definition)
            result.run(*sides, lambda _: None, threading.Event())
            assert [row.kind for row in result.rows([0, 1])] == [kind, kind]
            assert result.find(ALL, "c2", 0, 100) in (0, 1)
            assert result.find(ALL, "c9", 0, 100) is None
