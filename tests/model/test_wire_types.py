"""How values are written and read back, where the type alone does not tell."""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, expires, field
from isotone.errors import Unanswerable, UsageError
from isotone.model.declaring.wire_types import wire_type, zoned_type

START = datetime(2126, 1, 1, tzinfo=UTC)

events = Table("events", indexes={"by_end": Global("GPK", "GSK")})


class Event(Entity, table=events):
    name: Attr[str] = field()
    area: Attr[str] = field(default="x")
    starts: Attr[datetime | None] = field(epoch=True, default=START)
    ends: Attr[datetime | None] = field(epoch=True, default=None)
    gone: Attr[datetime | None] = expires(default=START)

    primary = Key("EVENT", name).sort("EVENT")
    day: Attr[date] = field(default=date(2026, 1, 1))
    by_end = Index("by_end", "AREA", area).sort("END", ends)


def test_none_for_seconds_since_the_epoch_is_read_back() -> None:
    with isotone.connect() as store:
        store.create_tables(events)
        event = store.put(Event(name="a", starts=None, gone=None))
        assert store.get(Event, name="a") == event


def test_none_may_be_set_for_seconds_since_the_epoch() -> None:
    with isotone.connect() as store:
        store.create_tables(events)
        store.put(Event(name="a", ends=START))
        assert store.update(Event, Event.ends.remove(), name="a").ends is None


def test_an_index_lacks_what_has_none_for_seconds_since_the_epoch() -> None:
    with pytest.raises(Unanswerable, match="lacks entities without ends"):
        Event.find(Event.area == "x")


def test_seconds_since_the_epoch_are_exact_whatever_the_decimal_context() -> None:
    exact = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
    with decimal.localcontext(decimal.Context(prec=6)), isotone.connect() as store:
        store.create_tables(events)
        event = store.put(Event(name="a", ends=exact))
        assert store.get(Event, name="a") == event


def test_a_datetime_is_no_date() -> None:
    with pytest.raises(UsageError, match=r"for a datetime, its \.date\(\)"):
        Event.day >= START  # type: ignore[operator] # noqa: B015 - what is refused


BARE = datetime(2020, 1, 11, 16, 20)


@pytest.mark.parametrize(
    ("kind", "zone", "read"),
    [
        (datetime, UTC, BARE.replace(tzinfo=UTC)),
        (datetime | None, timezone(timedelta(hours=2)), datetime(2020, 1, 11, 14, 20, tzinfo=UTC)),
    ],
)
def test_a_datetime_without_a_zone_is_of_the_one_that_is_declared(
    kind: Any, zone: tzinfo, read: datetime
) -> None:
    text = {"S": BARE.isoformat()}
    zoned = zoned_type(kind, zone)
    assert zoned.decode(text) == read
    assert zoned.encode(zoned.decode(text)) == {
        "S": read.isoformat(timespec="microseconds")[:26] + "Z"
    }
    assert zoned.decode({"S": "2020-01-11T00:00:00Z"}) == datetime(2020, 1, 11, tzinfo=UTC)
    with pytest.raises(
        UsageError, match=r"'2020-01-11T16:20:00', which has no time zone.*zone=UTC"
    ):
        wire_type(kind).decode(text)


def test_a_zone_is_of_a_datetime() -> None:
    with pytest.raises(UsageError, match="is for a field of type datetime"):
        zoned_type(date, UTC)


def test_a_field_reads_what_another_program_wrote_without_a_zone() -> None:
    class Visit(Entity, table=Table("visits")):
        name: Attr[str] = field()
        at: Attr[datetime] = field(zone=UTC)
        by_whom: Attr[str] = field(default="")

        primary = Key("VISIT", name).sort("VISIT")

    with isotone.connect() as store:
        store.create_tables(Visit.__schema__.table)
        item = {"PK": {"S": "VISIT#a"}, "SK": {"S": "VISIT"}, "at": {"S": "2020-01-11 16:20:00"}}
        store.backend.execute("PutItem", {"TableName": "visits", "Item": item})
        visit = store.get(Visit, name="a")
        assert visit is not None
        assert visit.at == BARE.replace(tzinfo=UTC)
        assert store.put(visit.replace(by_whom="b")) == store.get(Visit, name="a")


containers = Table("containers")


class Container(Entity, table=containers):
    name: Attr[str] = field()
    texts: Attr[list[str]] = field(default_factory=list)
    some_texts: Attr[list[str | None]] = field(default_factory=list)
    flags: Attr[list[bool | None]] = field(default_factory=list)
    numbers: Attr[list[int | None]] = field(default_factory=list)
    by_name: Attr[dict[str, str]] = field(default_factory=dict)
    some_by_name: Attr[dict[str, str | None]] = field(default_factory=dict)
    lists: Attr[dict[str, list[bool]]] = field(default_factory=dict)

    primary = Key("CONTAINER", name).sort("CONTAINER")


some_text = st.none() | st.text(max_size=3)


@given(
    st.fixed_dictionaries(
        {
            "texts": st.lists(st.text(max_size=3), max_size=3),
            "some_texts": st.lists(some_text, max_size=3),
            "flags": st.lists(st.none() | st.booleans(), max_size=3),
            "numbers": st.lists(st.none() | st.integers(-99, 99), max_size=3),
            "by_name": st.dictionaries(
                st.text(min_size=1, max_size=3), st.text(max_size=3), max_size=3
            ),
            "some_by_name": st.dictionaries(st.text(min_size=1, max_size=3), some_text, max_size=3),
            "lists": st.dictionaries(
                st.text(min_size=1, max_size=3), st.lists(st.booleans()), max_size=3
            ),
        }
    )
)
def test_lists_and_maps_are_read_as_they_were_written(values: dict[str, Any]) -> None:
    with isotone.connect() as store:
        store.create_tables(containers)
        container = store.put(Container(name="a", **values))
        assert store.get(Container, name="a") == container
        assert store.all(Container.primary.where(Container.name == "a")) == [container]


# Values whose type is not declared


class Node(BaseModel):
    more: dict[str, Any] = {}
    total: Decimal = Decimal(0)


class Strict(BaseModel, strict=True):
    total: Decimal = Decimal(0)


class Loose(Entity, table=Table("loose")):
    name: Attr[str] = field()
    anything: Attr[Any] = field(default=None)
    by_name: Attr[dict[str, Any]] = field(default_factory=dict)
    values: Attr[list[Any]] = field(default_factory=list)
    node: Attr[Node] = field(default_factory=Node)
    strict: Attr[Strict] = field(default_factory=Strict)

    primary = Key("LOOSE", name).sort("LOOSE")


def exactly(value: Any) -> Any:
    """A value with the types of all its parts, which equality ignores: 1 == Decimal(1) == True."""
    if isinstance(value, dict):
        return {name: exactly(each) for name, each in value.items()}
    if isinstance(value, list):
        return [exactly(each) for each in value]
    return type(value), value


fractions = st.decimals(-999, 999, places=2).filter(lambda number: number != int(number))
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**37), 10**37)
    | fractions
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(anything)
def test_untyped_values_come_back_as_they_were_given(value: Any) -> None:
    for kind in (Any, dict[str, Any], list[Any], Node):
        wire = wire_type(kind)
        given: Any = {Any: value, Node: Node(more={"a": value})}.get(kind, [value])
        if kind == dict[str, Any]:
            given = {"a": value}
        read = wire.decode(wire.encode(given))
        assert exactly(read.more if kind is Node else read) == exactly(
            given.more if kind is Node else given
        )


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (Decimal(1), 1),
        (Decimal("1.0"), 1),
        (Decimal("1.50"), Decimal("1.5")),
        (Decimal("1E+40"), 10**40),
        (Decimal("-0"), 0),
        (2.5, Decimal("2.5")),
        (2.0, 2),
        ({1, 2}, {1, 2}),
    ],
)
def test_a_whole_number_without_a_type_is_an_int(given: Any, read: Any) -> None:
    wire = wire_type(Any)
    assert exactly(wire.decode(wire.encode(given))) == exactly(read)
    assert all(type(each) is int for each in wire.decode(wire.encode({1, 2})))


def test_a_declared_type_is_kept() -> None:
    loose = Loose(
        name="a",
        by_name={"n": 1, "half": Decimal("0.5")},
        node=Node(total=Decimal(5)),
        strict=Strict(total=Decimal(7)),
    )
    with isotone.connect() as store:
        store.create_tables(Loose.__schema__.table)
        store.put(loose)
        read = store.get(Loose, name="a")
        assert read == loose
        assert exactly(read.by_name) == exactly(loose.by_name)
        assert (type(read.node.total), type(read.strict.total)) == (Decimal, Decimal)
