"""Whatever is asked, the answer is the Python objects filtered and sorted in memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import (
    Attr,
    Binary,
    Condition,
    Entity,
    Global,
    Index,
    Key,
    Local,
    Number,
    Store,
    Table,
    desc,
    field,
    in_order,
    raw,
)
from isotone.model import Pattern
from isotone.server import running_server

things = Table(
    "things",
    indexes={
        "texts": Global("TPK", "TSK"),
        "mixed": Global("MPK", "MSK"),
        "raws": Global("RPK", "RSK"),
        "sizes": Global("group", Number("size")),
        "blobs": Global("group", Binary("blob")),
        "wide": Global(("group", "title"), ("day", Number("size"))),
        "local": Local("LSK"),
        "folded": Global("FPK", "FSK"),
    },
)


class Level(Enum):
    LOW = "low"
    HIGH = "high"
    MID = "mid"


class Thing(Entity, table=things):
    group: Attr[str] = field()
    number: Attr[int] = field(min=-50, max=50, alert=2)
    title: Attr[str] = field()
    size: Attr[Decimal] = field(min=-1, max=100, scale=2, alert=2)
    level: Attr[Level] = field()
    day: Attr[date] = field()
    at: Attr[datetime] = field()
    blob: Attr[bytes] = field()
    mark: Attr[Literal["NEW", "NEWER", "NEW#", "OLD"]] = field()
    name: Attr[str] = field(case="lower")

    primary = Key("THING", group).sort("N", desc(number))
    texts = Index("texts", "THING", group).sort(title, mark, desc(size), number)
    mixed = Index("mixed", "THING", group, mark).sort(
        "L", in_order(level), desc(title), "AT", at, number
    )
    raws = Index("raws", "THING", group).sort(desc(mark), raw(title))
    sizes = Index("sizes", group).sort(size)
    blobs = Index("blobs", group).sort(blob)
    wide = Index("wide", group, title).sort(day, size)
    local = Index("local", "THING", group).sort(desc(day), level, number)
    folded = Index("folded", "THING", group).sort(name, number)


class Neighbour(Entity, table=things):
    """Another kind in the same partitions: none of its items may ever come back as a Thing."""

    group: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=2)
    primary = Key("THING", group).sort("M", number)
    texts = Index("texts", "THING", group).sort("NEW", number)
    local = Index("local", "THING", group).sort("NEW", number)


TEXTS = st.sampled_from(["", "a", "a!", "a#", "ab", "a$", "b", "NEW", "NEW#", "é", "～", "😀", "~"])
NAMED = TEXTS.filter(bool)
DAYS = st.dates(date(2020, 1, 1), date(2020, 1, 6))
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "group": st.sampled_from(["g", "g#", "h"]),
    "number": st.integers(-50, 50),
    "title": NAMED,
    "size": st.integers(-400, 400).map(lambda cents: Decimal(cents) / 100),
    "level": st.sampled_from(Level),
    "day": DAYS,
    "at": st.integers(0, 5).map(
        lambda hour: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
    ),
    "blob": st.binary(min_size=1, max_size=2),
    "mark": st.sampled_from(["NEW", "NEWER", "NEW#", "OLD"]),
    "name": st.sampled_from(["Banana", "banana", "BANANA", "apple", "Cherry"]),
}


@dataclass(frozen=True)
class Place:
    """A field in an order, told apart from the library: its rank, and whether it is turned round."""

    name: str
    descending: bool = False
    rank: Callable[[Any], Any] = lambda value: value


LEVEL = Place("level", rank=list(Level).index)
LEVEL_TEXT = Place("level", rank=lambda level: level.value)
NAME = Place("name", rank=str.lower)

ORDERS: dict[str, tuple[list[Place], list[Place]]] = {
    "primary": ([Place("group")], [Place("number", True)]),
    "texts": (
        [Place("group")],
        [Place("title"), Place("mark"), Place("size", True), Place("number")],
    ),
    "mixed": (
        [Place("group"), Place("mark")],
        [LEVEL, Place("title", True), Place("at"), Place("number")],
    ),
    "raws": ([Place("group")], [Place("mark", True), Place("title")]),
    "sizes": ([Place("group")], [Place("size")]),
    "blobs": ([Place("group")], [Place("blob")]),
    "wide": ([Place("group"), Place("title")], [Place("day"), Place("size")]),
    "local": ([Place("group")], [Place("day", True), LEVEL_TEXT, Place("number")]),
    "folded": ([Place("group")], [NAME, Place("number")]),
}

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
TEXTUAL = {"title", "blob", "name", "mark"}


@dataclass
class Asked:
    """A query, and what it means for Python objects."""

    conditions: list[Condition]
    holds: Callable[[Thing], bool]
    order: list[Place]


@st.composite
def questions(draw: st.DrawFn, key: str, kept: Sequence[Thing]) -> Asked:
    partition, sort = ORDERS[key]
    values = draw(_values_near(kept))
    if not draw(st.integers(0, 5)):
        values |= draw(st.fixed_dictionaries(BEYOND))
    equal = draw(st.integers(0, len(sort)))
    fixed = [*partition, *sort[:equal]]
    conditions = [getattr(Thing, place.name) == values[place.name] for place in fixed]
    tests: list[Callable[[Thing], bool]] = [
        lambda each, p=place: p.rank(getattr(each, p.name)) == p.rank(values[p.name])  # type: ignore[misc]
        for place in fixed
    ]
    if equal < len(sort):
        condition, test = draw(_ranges(sort[equal], kept))
        conditions += condition
        tests.append(test)
    return Asked(
        draw(st.permutations(conditions)), lambda each: all(test(each) for test in tests), sort
    )


@st.composite
def _values_near(draw: st.DrawFn, kept: Sequence[Thing]) -> dict[str, Any]:
    """Mostly the values of something that is there, so that most questions have an answer."""
    if kept and draw(st.integers(0, 3)):
        return dict(draw(st.sampled_from(kept)).__dict__)
    return draw(st.fixed_dictionaries(FIELDS))


# Values that no key has room for; they are compared as any others.
BEYOND: dict[str, st.SearchStrategy[Any]] = {
    "number": st.sampled_from([-(10**7), -51, 51, 10**7]),
    "size": st.sampled_from([-1000, Decimal("-0.005"), Decimal("1.999"), Decimal(101), 10**9]),
}


@st.composite
def _operands(draw: st.DrawFn, name: str, kept: Sequence[Thing]) -> Any:
    if name in BEYOND and not draw(st.integers(0, 3)):
        return draw(BEYOND[name])
    return draw(_values_near(kept))[name]


@st.composite
def _ranges(
    draw: st.DrawFn, place: Place, kept: Sequence[Thing]
) -> tuple[list[Condition], Callable[[Thing], bool]]:
    field_ = getattr(Thing, place.name)

    def rank(each: Thing) -> Any:
        return place.rank(getattr(each, place.name))

    kinds = ["none", "one", "two", "between"]
    if place is LEVEL_TEXT or place.name == "mark":  # texts of choices, which have no such order
        kinds = ["none"]
    kinds += ["begins"] if place.name in TEXTUAL else []
    kind = draw(st.sampled_from(kinds))
    low, high = (draw(_operands(place.name, kept)) for _ in range(2))
    if kind == "none":
        return [], lambda each: True
    if kind == "between":
        return [
            field_.between(low, high)
        ], lambda each: place.rank(low) <= rank(each) <= place.rank(high)
    if kind == "begins":
        prefix = low[:1]
        return [field_.begins_with(prefix)], lambda each: rank(each).startswith(place.rank(prefix))
    names = draw(
        st.lists(st.sampled_from(list(OPERATORS)), min_size=1, max_size=1 + (kind == "two"))
    )
    bounds = list(zip(names, (low, high), strict=False))
    return (
        [OPERATORS[name](field_, value) for name, value in bounds],
        lambda each: all(OPERATORS[name](rank(each), place.rank(value)) for name, value in bounds),
    )


THINGS = st.lists(
    st.fixed_dictionaries(FIELDS),
    max_size=25,
    unique_by=lambda values: (values["group"], values["number"]),
)


def fill(store: Store, many: Sequence[dict[str, Any]]) -> list[Thing]:
    """A table of these things, with another kind of entities among them."""
    store.create_tables(things)
    kept = [Thing(**values) for values in many]
    for each in kept:
        store.put(each)
    for group in ("g", "g#", "h"):
        for number in (0, 5, 999):
            store.put(Neighbour(group=group, number=number))
    return kept


@contextmanager
def holding(many: Sequence[dict[str, Any]]) -> Iterator[tuple[Store, list[Thing]]]:
    with isotone.connect(report=None) as store:
        yield store, fill(store, many)


def sorted_rows(many: Sequence[Thing], order: Sequence[Place]) -> list[Any]:
    """What the objects have in the places of the order, sorted by them."""
    rows = [tuple(place.rank(getattr(each, place.name)) for place in order) for each in many]
    for at in reversed(range(len(order))):
        rows.sort(key=lambda row: row[at], reverse=order[at].descending)
    return rows


def ranks(many: Sequence[Thing], order: Sequence[Place]) -> list[Any]:
    return [tuple(place.rank(getattr(each, place.name)) for place in order) for each in many]


def identities(many: Sequence[Thing]) -> list[tuple[str, int]]:
    return sorted((each.group, each.number) for each in many)


SLOW = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("key", ORDERS)
@SLOW
@given(data=st.data())
def test_a_query_is_filtering_and_sorting(key: str, data: st.DataObject) -> None:
    with holding(data.draw(THINGS)) as (store, kept):
        for _ in range(6):
            check(store, kept, key, data.draw(questions(key, kept)))


def check(store: Store, kept: list[Thing], key: str, asked: Asked) -> None:
    """The library's answer is what filtering and sorting the objects gives."""
    pattern: Pattern[Thing] = getattr(Thing, key)
    meant = [each for each in kept if asked.holds(each)]
    query = pattern.where(*asked.conditions)
    found = store.all(query)
    assert identities(found) == identities(meant)
    assert ranks(found, asked.order) == sorted_rows(meant, asked.order)
    back = store.all(query.reversed())
    assert ranks(back, asked.order) == sorted_rows(meant, asked.order)[::-1]
    assert {repr(each) for each in found} == {repr(each) for each in meant}
    assert store.count(query) == len(meant)


@pytest.fixture(params=["file", "http", "DynamoDB Local"])
def other_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """The engines behind which the same has to be true as in memory."""
    with ExitStack() as stack:
        address = str(tmp_path / "things.db")
        if request.param == "DynamoDB Local":
            address = request.getfixturevalue("dynamodb_local")
        elif request.param == "http":
            database = stack.enter_context(isotone.open())
            address = stack.enter_context(running_server(database))
        yield stack.enter_context(isotone.connect(address, report=None))


@settings(SLOW, max_examples=12)
@given(data=st.data())
def test_a_query_is_the_same_behind_other_engines(other_store: Store, data: st.DataObject) -> None:
    other_store.drop_tables(things)
    kept = fill(other_store, data.draw(THINGS))
    for key in ORDERS:
        check(other_store, kept, key, data.draw(questions(key, kept)))


@pytest.mark.parametrize("key", ORDERS)
@SLOW
@given(data=st.data())
def test_pages_divide_the_answer_and_lead_back(key: str, data: st.DataObject) -> None:
    with holding(data.draw(THINGS)) as (store, kept):
        query = getattr(Thing, key).where(*data.draw(questions(key, kept)).conditions)
        if data.draw(st.booleans()):
            query = (
                query.filter(Thing.size > data.draw(FIELDS["size"]))
                if key not in ("sizes", "wide")
                else query
            )
        size = data.draw(st.integers(1, 5))
        whole = store.all(query)
        pages = [store.page(query, size=size)]
        while pages[-1].cursor is not None:
            assert len(pages[-1].items) == size
            pages.append(store.page(query, size=size, cursor=pages[-1].cursor))
        assert [each for page in pages for each in page.items] == whole
        assert pages[0].previous is None
        at = pages[-1]
        for expected in reversed(pages[:-1]):
            assert at.previous is not None
            at = store.page(query, size=size, cursor=at.previous)
            assert at.items == expected.items
            ahead = store.page(query, size=size, cursor=at.cursor)
            assert ahead.items == pages[pages.index(expected) + 1].items
        assert at.previous is None
        assert sorted(each.number for each in kept if each in whole) == sorted(
            e.number for e in whole
        )


@SLOW
@given(data=st.data())
def test_filters_judge_as_python_does(data: st.DataObject) -> None:
    with holding(data.draw(THINGS)) as (store, kept):
        limit, mark = data.draw(FIELDS["size"]), data.draw(FIELDS["mark"])
        query = Thing.primary.where(Thing.group == "g").filter(
            (Thing.size > limit) | ~(Thing.mark == mark)
        )
        meant = [e for e in kept if e.group == "g" and (e.size > limit or e.mark != mark)]
        assert identities(store.all(query)) == identities(meant)
        assert store.count(query) == len(meant)
        some = store.all(query.limit(3))
        assert identities(some) == identities(sorted(meant, key=lambda e: -e.number)[:3])


@SLOW
@given(data=st.data())
def test_newest_first_is_by_value_however_the_key_stores_it(data: st.DataObject) -> None:
    with holding(data.draw(THINGS)) as (store, kept):
        group = data.draw(FIELDS["group"])
        numbers = sorted((each.number for each in kept if each.group == group), reverse=True)
        stored_down = Thing.primary.where(Thing.group == group)
        assert [e.number for e in store.all(stored_down.newest_first())] == numbers
        assert [e.number for e in store.all(stored_down.oldest_first())] == numbers[::-1]
        sizes = sorted((each.size for each in kept if each.group == group), reverse=True)
        stored_up = Thing.sizes.where(Thing.group == group)
        assert [e.size for e in store.all(stored_up.newest_first())] == sizes


@SLOW
@given(data=st.data())
def test_find_takes_a_key_that_answers(data: st.DataObject) -> None:
    with holding(data.draw(THINGS)) as (store, kept):
        key = data.draw(st.sampled_from(sorted(ORDERS)))
        asked = data.draw(questions(key, kept))
        found = store.all(Thing.find(*asked.conditions))
        assert identities(found) == identities([each for each in kept if asked.holds(each)])
