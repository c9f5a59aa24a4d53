"""A small collection in memory: filtered, sorted, grouped and shown by any attribute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

import isotone
from isotone import Attr, Entity, Key, Store, Table, desc, field
from isotone.errors import TooLarge, UsageError

office = Table("office")
DAY = datetime(2026, 3, 2, tzinfo=UTC)


class Appointment(Entity, table=office):
    room: Attr[str] = field()
    starts: Attr[datetime] = field()
    ends: Attr[datetime] = field()
    who: Attr[str | None] = field(default=None)
    price: Attr[Decimal] = field(default=Decimal(0))

    primary = Key("ROOM", room).sort("AT", starts)


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


def test_it_is_a_sequence_of_entities(store: Store) -> None:
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


def test_it_is_sorted_by_any_attribute_with_what_is_unknown_last(store: Store) -> None:
    loaded = store.load(ROOM)
    assert [each.who for each in loaded.sorted_by(Appointment.who)] == ["ann", "bob", None]
    assert [each.who for each in loaded.sorted_by(desc(Appointment.who))] == ["bob", "ann", None]
    assert [int(each.price) for each in loaded.sorted_by(Appointment.price)] == [1, 2, 3]
    by_two = loaded.sorted_by(Appointment.room, desc(Appointment.price))
    assert [int(each.price) for each in by_two] == [3, 2, 1]


def test_it_is_grouped(store: Store) -> None:
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


def test_it_is_shown_as_a_table(store: Store) -> None:
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
