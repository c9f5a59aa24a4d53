"""Walks meet every item once: in segments, in pieces, after an interruption, and within a budget of units."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Key, Store, Table, field
from isotone.errors import UsageError
from isotone.model.walking import Walk, WalkProgress
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

notes = Table("notes")


class Note(Entity, table=notes):
    group: Attr[str] = field()
    number: Attr[int] = field(max=9_999, alert=None)
    text: Attr[str] = field(default="")
    primary = Key("GROUP", group).sort("NOTE", number)


def filled(count: int, text: str = "") -> Store:
    store = isotone.connect(":memory:", check_keys=False)
    store.create_tables(notes)
    store.put_many(Note(group=str(n % 7), number=n, text=text) for n in range(count))
    return store


def key(item: Item) -> str:
    return item["PK"]["S"] + item["SK"]["S"]


def walked(store: Store, walk: Walk, steps: int | None = None) -> list[str]:
    """The keys that a walk meets, in so many steps."""
    met: list[str] = []

    def visit(items: list[Item]) -> Steps[None]:
        met.extend(map(key, items))
        return
        yield Call("", {})

    while not walk.is_over and steps != 0:
        store.run(walk.step(visit))
        steps = None if steps is None else steps - 1
    return met


@given(
    count=st.integers(0, 60),
    segments=st.integers(1, 5),
    page=st.integers(1, 20),
    pieces=st.lists(st.integers(0, 3), max_size=5),
)
def test_every_item_is_met_once(count: int, segments: int, page: int, pieces: list[int]) -> None:
    with filled(count) as store:
        walk = Walk(notes, segments=segments, items_a_page=page)
        met = []
        for steps in pieces:
            met += walked(store, walk, steps)
            position = json.loads(json.dumps(walk.position))
            assert walk.progress.seen == len(met)
            walk = Walk(notes, position=position, items_a_page=page)
        met += walked(store, walk)
        assert sorted(met) == sorted(f"GROUP#{n % 7}NOTE#{n:04}" for n in range(count))
        assert walk.progress.is_over
        assert walk.progress.seen == count
        assert walk.progress.units > 0


def test_a_segment_that_fails_is_met_again_and_the_others_are_not() -> None:
    with filled(50) as store:
        walk, met = Walk(notes, segments=3, items_a_page=5), []
        is_down = True

        def visit(items: list[Item]) -> Steps[None]:
            nonlocal is_down
            if is_down:
                is_down = False
                raise UsageError("once")
            met.extend(map(key, items))
            return
            yield Call("", {})

        with pytest.raises(UsageError, match="once"):
            store.run(walk.step(visit))
        walk = Walk(notes, position=walk.position, items_a_page=5)
        while not walk.is_over:
            store.run(walk.step(visit))
        assert len(met) == len(set(met)) == 50


def test_a_budget_makes_pauses_and_small_pages(pauses: list[float], desk: Any) -> None:
    desk.store.create_tables(notes)
    for n in range(30):
        desk.store.put(Note(group="a", number=n, text="x" * 3000))
    pauses.clear()
    walk = Walk(notes, units_per_second=10, items_a_page=500)
    desk.asked.clear()
    assert len(walked(desk.store, walk)) == 31  # the record of the keys is an item as well
    limits = [request["Limit"] for operation, request in desk.asked if operation == "Scan"]
    assert limits[0] == 10
    assert all(limit <= 20 for limit in limits)
    assert walk.progress.units / 10 - 2 <= max(pauses)  # no time passes, so the last pause has all


def test_units_of_what_a_visit_asks_count_as_well() -> None:
    walk = Walk(notes)
    walk.count({"ConsumedCapacity": {"TableName": "notes", "CapacityUnits": 2.5}})
    walk.count({"ConsumedCapacity": [{"CapacityUnits": 1.0}, {"CapacityUnits": 3.0}]})
    walk.count({})
    assert walk.progress.units == 6.5


def test_the_same_when_awaited() -> None:
    with isotone.open(":memory:") as database:
        store = isotone.connect(database, check_keys=False)
        store.create_tables(notes)
        store.put_many(Note(group="a", number=n) for n in range(40))
        met: list[str] = []

        def visit(items: list[Item]) -> Steps[None]:
            met.extend(map(key, items))
            return
            yield Call("", {})

        async def main() -> None:
            async with isotone.aconnect(database) as other:
                walk = Walk(notes, segments=4, items_a_page=3)
                while not walk.is_over:
                    await other.run(walk.step(visit))

        asyncio.run(main())
        assert len(met) == len(set(met)) == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"segments": 0}, "segments=0; give 1 or more"),
        ({"units_per_second": 0}, "units_per_second=0 would read nothing"),
        ({"position": {"a": 1}}, "is not the position of a walk"),
        (
            {"position": Walk(Table("others")).position},
            "table 'others', and this one is over 'notes'",
        ),
    ],
)
def test_what_a_walk_refuses(arguments: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Walk(notes, **arguments)


def test_a_table_that_does_not_exist() -> None:
    with (
        isotone.connect(":memory:") as store,
        pytest.raises(UsageError, match="create_tables"),
    ):
        walked(store, Walk(notes))


def test_progress_reads_well() -> None:
    progress = WalkProgress("shop", 12_000, 1_000_000, 440.0, 3.0, 4_000.0, False)
    assert str(progress) == (
        "shop: 12,000 of about 1,000,000 items, 440 units, 4,000 a second, 4 min 7 s left"
    )
    assert progress.share == 0.012
    done = WalkProgress("shop", 12_000, 1_000_000, 440.0, 3.0, 4_000.0, True)
    assert str(done) == "shop: 12,000 items, 440 units, 4,000 a second"
    assert done.share == 1.0
