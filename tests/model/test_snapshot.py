"""A small collection in memory: filtered, sorted, grouped and shown by any attribute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, desc, field, in_order
from isotone.errors import TooLarge, UsageError

office = Table("office", indexes={"keys": Global("KPK", "KSK", projection="KEYS_ONLY")})
DAY = datetime(2026, 3, 2, tzinfo=UTC)


class Appointment(Entity, table=office):
    room: Attr[str] = field()
    starts: Attr[datetime] = field()
    ends: Attr[datetime] = field()
    who: Attr[str | None] = field(default=None)
    price: Attr[Decimal] = field(default=Decimal(0))

    primary = Key("ROOM", room).sort("AT", starts)


class Room(Entity, table=office):
    room: Attr[str] = field()

    primary = Key("PLACE", room).sort("ROOM")


class Plant(Entity, table=office):
    room: Attr[str] = field()
    name: Attr[str] = field()

    primary = Room.primary.children(room).after("PLANT", name)


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect(":memory:") as store:
        store.create_tables(office)
        for hour, length, who, price in [(9, 60, "ann", 3), (10, 30, "bob", 1), (13, 90, None, 2)]:
            store.put(
                Appointment(
                    room="r1",
                    starts=DAY + timedelta(hours=hour),
                    ends=DAY + timedelta(hours=hour, minutes=length),
                    who=who,
                    price=Decimal(price),
                )
            )
        yield store


ROOM = Appointment.primary.where(Appointment.room == "r1")


def test_a_snapshot_is_a_sequence_of_entities(store: Store) -> None:
    loaded = store.load(ROOM)
    assert len(loaded) == 3
    assert loaded[0].who == "ann"
    assert [each.who for each in loaded[1:]] == ["bob", None]
    assert loaded.size > 200


def test_conditions_mean_what_they_mean_in_the_database(store: Store) -> None:
    loaded = store.load(ROOM)
    for condition in (
        Appointment.price > Decimal(1),
        Appointment.who == "bob",
        Appointment.who.missing(),
        (Appointment.price < Decimal(2)) | (Appointment.who == "ann"),
        ~(Appointment.who == "ann"),
    ):
        assert list(loaded.where(condition)) == store.all(ROOM.filter(condition))


def test_a_snapshot_is_sorted_by_any_attribute_with_what_is_unknown_last(store: Store) -> None:
    loaded = store.load(ROOM)
    assert [each.who for each in loaded.sorted_by(Appointment.who)] == ["ann", "bob", None]
    assert [each.who for each in loaded.sorted_by(desc(Appointment.who))] == ["bob", "ann", None]
    assert [int(each.price) for each in loaded.sorted_by(Appointment.price)] == [1, 2, 3]
    by_two = loaded.sorted_by(Appointment.room, desc(Appointment.price))
    assert [int(each.price) for each in by_two] == [3, 2, 1]


def test_a_snapshot_is_grouped(store: Store) -> None:
    groups = store.load(ROOM).group_by(Appointment.who)
    assert [(who, len(group)) for who, group in groups.items()] == [
        ("ann", 1),
        ("bob", 1),
        (None, 1),
    ]


def test_a_calendar_has_free_slots(store: Store) -> None:
    def at(hour: float) -> datetime:
        return DAY + timedelta(hours=hour)

    loaded = store.load(ROOM)
    free = loaded.gaps(Appointment.starts, Appointment.ends, between=(at(8), at(17)))
    assert free == [(at(8), at(9)), (at(10.5), at(13)), (at(14.5), at(17))]
    assert loaded.gaps(Appointment.starts, Appointment.ends, between=(at(9), at(10))) == []
    assert loaded.gaps(Appointment.starts, Appointment.ends, between=(at(18), at(19))) == [
        (at(18), at(19))
    ]


def test_a_snapshot_is_shown_as_a_table(store: Store) -> None:
    shown = store.load(ROOM).sorted_by(Appointment.price).table(Appointment.who, Appointment.price)
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == ["who", "price"]
    assert lines[2:] == [["bob", "1"], ["2"], ["ann", "3"]]


def test_a_large_collection_is_refused_with_its_size(store: Store) -> None:
    for minute in range(300):
        starts = DAY + timedelta(minutes=minute)
        store.put(Appointment(room="big", starts=starts, ends=starts, who="x" * 10_000))
    query = Appointment.primary.where(Appointment.room == "big")
    with pytest.raises(TooLarge, match=r"about (2\.[89]|3\.0) MB in 300 items") as refused:
        store.load(query)
    assert refused.value.stats.scanned == 300
    assert len(store.load(query, at_most=4_000_000)) == 300


def test_a_field_that_was_not_loaded_says_so(store: Store) -> None:
    loaded = store.load(ROOM.select(Appointment.starts))
    with pytest.raises(UsageError, match="'price'"):
        loaded.sorted_by(Appointment.price)


class Size(Enum):
    LARGE = "L"
    SMALL = "S"
    MIDDLE = "M"


class Desk(Entity, table=office):
    room: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=2)
    name: Attr[str] = field(case="lower")
    size: Attr[Size | None] = field()
    state: Attr[Literal["NEW", "GOOD", "BAD"]] = field(default="NEW")
    tags: Attr[set[str]] = field(default_factory=set)
    extra: Attr[dict[str, int]] = field(default_factory=dict)

    primary = Key("ROOM", room).sort("DESK", number)
    keys = Index("keys", "ROOM", room).sort("DESK", number, state)


@pytest.fixture
def desks(store: Store) -> Store:
    sizes = [Size.SMALL, Size.MIDDLE, None, Size.LARGE]
    states: list[Literal["NEW", "GOOD", "BAD"]] = ["BAD", "NEW", "GOOD", "NEW"]
    names = ["banana", "Cherry", "apple", "BANANA"]
    for number, (size, state, name) in enumerate(zip(sizes, states, names, strict=True)):
        store.put(Desk(room="r1", number=number, size=size, state=state, name=name))
    store.put_many([Room(room="r1"), Plant(room="r1", name="fern")])
    return store


DESKS = Desk.primary.where(Desk.room == "r1")


@pytest.mark.parametrize(
    ("part", "numbers"),
    [
        (Desk.size, [3, 1, 0, 2]),
        (in_order(Desk.size), [3, 0, 1, 2]),
        (desc(in_order(Desk.size)), [1, 0, 3, 2]),
        (Desk.state, [0, 2, 1, 3]),
        (in_order(Desk.state), [1, 3, 2, 0]),
        (Desk.name, [2, 0, 3, 1]),
    ],
)
def test_an_order_is_that_of_a_key(desks: Store, part: Any, numbers: list[int]) -> None:
    assert [each.number for each in desks.load(DESKS).sorted_by(part)] == numbers


@pytest.mark.parametrize("part", [Desk.tags, Desk.extra])
def test_what_has_no_order_is_no_order(desks: Store, part: Any) -> None:
    with pytest.raises(UsageError, match="have no order; sort by another field"):
        desks.load(DESKS).sorted_by(part)


def test_a_condition_on_what_was_not_loaded_is_refused(desks: Store) -> None:
    loaded = desks.load(DESKS.select(Desk.number))
    with pytest.raises(UsageError, match="the field 'state' was not loaded"):
        loaded.where(Desk.state == "NEW")
    with pytest.raises(UsageError, match="no loaded entity has the field who"):
        loaded.where(Appointment.who == "ann")
    wrong: Any = "who"
    with pytest.raises(UsageError, match="'who' is not a condition"):
        loaded.where(wrong)


def test_a_condition_sees_what_a_key_tells(desks: Store) -> None:
    loaded = desks.load(Desk.keys.where(Desk.room == "r1"))
    assert [each.number for each in loaded.where(Desk.number > 1)] == [2, 3]
    assert [each.number for each in loaded.where(Desk.state == "NEW")] == [1, 3]


def test_a_condition_is_satisfied_by_its_own_kind(desks: Store) -> None:
    both = desks.load(Room.primary.with_children(Plant.primary).where(Room.room == "r1"))
    assert [type(each) for each in both] == [Room, Plant]
    assert [type(each) for each in both.where(Room.room == "r1")] == [Room]
    assert [type(each) for each in both.where(Plant.name == "fern")] == [Plant]


def test_a_text_with_a_case_in_its_keys_is_compared_as_it_is(desks: Store) -> None:
    loaded = desks.load(DESKS)
    for text, numbers in (("Cherry", [1]), ("cherry", [])):
        condition = Desk.name == text
        assert [each.number for each in loaded.where(condition)] == numbers
        assert [each.number for each in desks.all(DESKS.filter(condition))] == numbers


def test_behind_a_full_last_page_lies_an_empty_one(desks: Store) -> None:
    last = desks.page(DESKS, size=4)
    assert len(last) == 4
    assert last.cursor is not None
    beyond = desks.page(DESKS, size=4, cursor=last.cursor)
    assert (beyond.items, beyond.cursor) == ([], None)
    assert beyond.previous is not None
    assert desks.page(DESKS, size=4, cursor=beyond.previous).items == last.items
