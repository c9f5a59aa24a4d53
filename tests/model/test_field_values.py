"""Fields compared with fields, and set from fields: the database does both in one atomic write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.model.conftest import Desk

import isotone
from isotone import (
    Attr,
    Change,
    Condition,
    Entity,
    Global,
    Index,
    Key,
    Table,
    computed,
    expires,
    field,
    version,
)
from isotone.errors import (
    ConditionFailed,
    TransactionFailed,
    UsageError,
    ValidationException,
)

hall = Table(
    "hall", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")}
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Grade(Enum):
    LOW = "low"
    HIGH = "high"


class Show(Entity, table=hall):
    number: Attr[int] = field(max=999, alert=None)
    capacity: Attr[int] = field(default=10)
    sold: Attr[int] = field(default=0, max=9999, alert=None)
    price: Attr[Decimal] = field(default=Decimal("2.5"))
    ratio: Attr[float] = field(default=0.5)
    waiting: Attr[int | None] = field(default=None)
    pending: Attr[int | None] = field(default=3)
    title: Attr[str] = field(default="Hamlet")
    alias: Attr[str | None] = field(default=None)
    nick: Attr[str | None] = field(default=None)
    shout: Attr[str] = field(default="HAMLET", case="lower")
    kind: Attr[Literal["play", "opera"]] = field(default="play", in_order=True)
    genre: Attr[Literal["play", "opera"]] = field(default="opera", in_order=True)
    grade: Attr[Grade] = field(default=Grade.LOW)
    other_grade: Attr[Grade] = field(default=Grade.LOW)
    opens: Attr[datetime] = field(default=NOON)
    begins: Attr[datetime] = field(default=NOON + timedelta(hours=1))
    at: Attr[datetime] = field(default=NOON, epoch=True)
    local: Attr[datetime] = field(default=NOON, zone=ZoneInfo("Europe/Brussels"))
    day: Attr[date] = field(default=NOON.date())
    lasts: Attr[timedelta] = field(default=timedelta(hours=2))
    is_open: Attr[bool] = field(default=True)
    was_open: Attr[bool] = field(default=True)
    tags: Attr[set[str]] = field(default_factory=lambda: {"a", "b"})
    names: Attr[list[str]] = field(default_factory=lambda: ["x"])
    stock: Attr[dict[str, int]] = field(default_factory=lambda: {"left": 4})
    until: Attr[datetime] = expires(default=datetime(2099, 1, 1, tzinfo=UTC))
    left: Attr[int] = computed(lambda show: show.capacity - show.sold)

    primary = Key("SHOWS").sort("SHOW", number)
    by_sold = Index("GSI1", "SOLD", when=sold < capacity).sort(sold)


ANY: Any = Show


@pytest.fixture
def desk(clocked: Desk) -> Desk:
    clocked.store.create_tables(hall)
    clocked.store.put(Show(number=1))
    return clocked


@pytest.fixture
def clocked() -> Iterator[Desk]:
    clock = isotone.ManualClock(NOON)
    with isotone.open(":memory:", clock=clock) as database:
        yield Desk(database, clock)


def fresh(desk: Desk) -> Show:
    """The stored show, whose item is what a put of it would write."""
    key = Show.__schema__.primary_key({"number": 1})
    item = desk.backend.execute("GetItem", {"TableName": "hall", "Key": key})["Item"]
    found = Show.__schema__.from_item(item)
    assert isinstance(found, Show)
    again = Show.__schema__.to_item(found.replace().__dict__)
    assert {**again, "tags": {}} == {**item, "tags": {}}
    return found


# Conditions


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Show.sold < Show.capacity, "sold < capacity"),
        (Show.sold != Show.capacity, "sold != capacity"),
        (Show.capacity > Show.price, "capacity > price"),
        (Show.price > Show.sold, "price > sold"),
        (Show.sold <= Show.ratio, "sold <= ratio"),
        (Show.opens < Show.begins, "opens < begins"),
        (Show.is_open == Show.was_open, "is_open == was_open"),
        (Show.grade == Show.other_grade, "grade == other_grade"),
        (Show.kind != Show.genre, "kind != genre"),
        (Show.price.between(Show.sold, Show.capacity), "price.between(sold, capacity)"),
        (Show.price.between(1, Show.capacity), "price.between(1, capacity)"),
        (Show.capacity.is_in([Show.sold, 10]), "capacity.is_in([sold, 10])"),
        (Show.stock["left"] < Show.capacity, "stock['left'] < capacity"),
        (Show.capacity > Show.stock["left"], "capacity > stock['left']"),
        (Show.tags.size < Show.capacity, "tags.size < capacity"),
        (Show.capacity > Show.tags.size, "capacity > tags.size"),
        (Show.tags.size > Show.names.size, "tags.size > names.size"),
        (Show.until > Show.at, "until > at"),
        (Show.waiting != Show.sold, "waiting != sold"),  # it has no value
    ],
    ids=repr,
)
def test_fields_are_compared(desk: Desk, condition: Condition, text: str) -> None:
    everything = Show.primary.where()
    assert repr(condition) == text
    assert len(desk.store.all(everything.filter(condition))) == 1
    assert desk.store.all(everything.filter(~condition)) == []
    assert len(desk.store.load(everything).where(condition)) == 1
    assert desk.store.update(Show, Show.price.add(1), number=1, when=condition).price == 3.5
    with pytest.raises(ConditionFailed, match=r"the condition on Show .* is false"):
        desk.store.update(Show, Show.price.add(1), number=1, when=~condition)


def test_a_comparison_with_a_field_without_a_value_is_false(desk: Desk) -> None:
    everything = Show.primary.where()
    for condition in (
        Show.waiting == Show.sold,
        Show.waiting < Show.sold,
        Show.sold > Show.waiting,
    ):
        assert desk.store.all(everything.filter(condition)) == []


def test_a_sparse_index_can_compare_fields(desk: Desk) -> None:
    assert len(desk.store.all(Show.by_sold.where())) == 1
    desk.store.update(Show, Show.sold.set(10), number=1)
    assert desk.store.all(Show.by_sold.where()) == []
    desk.store.update(Show, Show.capacity.add(1), number=1)
    assert [show.sold for show in desk.store.all(Show.by_sold.where())] == [10]


def test_no_more_are_sold_than_there_are(desk: Desk) -> None:
    for _ in range(10):
        desk.store.update(Show, Show.sold.add(1), number=1, when=Show.sold < Show.capacity)
    with pytest.raises(ConditionFailed, match="sold < capacity"):
        desk.store.update(Show, Show.sold.add(1), number=1, when=Show.sold < Show.capacity)
    assert fresh(desk).sold == 10


def test_a_condition_in_the_class_statement_is_checked_when_types_are_known() -> None:
    with pytest.raises(UsageError, match="stored differently, an int and a str"):

        class Wrong(Entity, table=Table("wrong", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})):
            a: Attr[int] = field(max=9)
            b: Attr[str] = field()

            primary = Key("A", a).sort("A")
            sparse = Index("GSI1", "B", when=a == b).sort(a)  # type: ignore[operator] # the point


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: ANY.sold == ANY.title, "stored differently, an int and a str"),
        (lambda: ANY.at == ANY.opens, "stored differently, seconds since the epoch and a datetime"),
        (lambda: ANY.local == ANY.opens, "stored differently, a datetime of zone Europe/Brussels"),
        (lambda: ANY.day == ANY.opens, "stored differently, a date and a datetime"),
        (lambda: ANY.shout == ANY.title, "'shout' has a case in keys"),
        (lambda: ANY.kind < ANY.genre, "does not know the order of 'play', 'opera'"),
        (lambda: ANY.grade < ANY.other_grade, "no declared order"),
        (lambda: ANY.grade == ANY.title, "stored differently"),
        (lambda: ANY.is_open < ANY.was_open, "does not know the order"),
        (lambda: ANY.names < ANY.names, "stored as L, which has no order"),
        (lambda: ANY.sold == ANY.sold, "sold is compared with itself; give"),
        (
            lambda: ANY.sold < ANY.capacity + 1,
            r"compared with capacity \+ 1, and conditions cannot",
        ),
        (lambda: ANY.sold < ANY.capacity.or_else(1), "conditions cannot compute"),
        (lambda: ANY.price.between("1", ANY.capacity), "'1' is a str, but a Decimal is expected"),
        (lambda: ANY.price.between(None, ANY.capacity), "compares with None"),
        (lambda: ANY.tags.size < ANY.title, "tags.size is a number, and title is a str"),
        (lambda: ANY.tags.contains(ANY.title), "is not a value; two fields are compared by"),
        (lambda: Show.primary.where(ANY.number == ANY.sold), "not a plain comparison"),
    ],
)
def test_what_cannot_be_compared_is_refused(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        wrong()


# Changes


@pytest.mark.parametrize(
    ("change", "name", "after"),
    [
        (Show.sold.set(Show.capacity), "sold", 10),
        (Show.sold.set(Show.capacity + 1), "sold", 11),
        (Show.sold.set(1 + Show.capacity), "sold", 11),
        (Show.sold.set(Show.capacity - 3), "sold", 7),
        (Show.sold.set(30 - Show.capacity), "sold", 20),
        (Show.sold.set(Show.capacity - Show.stock["left"]), "sold", 6),
        (Show.capacity.set(Show.sold), "capacity", 0),
        (Show.price.set(Show.price + Show.capacity), "price", Decimal("12.5")),
        (Show.price.set(Show.capacity + Show.price), "price", Decimal("12.5")),
        (Show.price.set(Show.sold), "price", Decimal(0)),
        (Show.ratio.set(Show.price - Show.sold), "ratio", 2.5),
        (Show.waiting.set(Show.sold + 1), "waiting", 1),
        (Show.waiting.set(Show.waiting.or_else(7) + 1), "waiting", 8),
        (Show.sold.set(Show.waiting.or_else(Show.capacity)), "sold", 10),
        (Show.sold.set(Show.waiting.or_else(7)), "sold", 7),
        (Show.waiting.set_default(Show.capacity), "waiting", 10),
        (Show.sold.set_default(Show.capacity), "sold", 0),
        (Show.sold.add(Show.capacity), "sold", 10),
        (Show.waiting.add(Show.capacity), "waiting", 10),
        (Show.price.add(Show.capacity), "price", Decimal("12.5")),
        (Show.title.set(Show.alias.or_else("Othello")), "title", "Othello"),
        (Show.alias.set(Show.title), "alias", "Hamlet"),
        (Show.alias.set(Show.nick.or_else(Show.title)), "alias", "Hamlet"),
        (Show.alias.set(Show.nick.or_else(Show.alias.or_else("x"))), "alias", "x"),
        (Show.waiting.set(Show.pending), "waiting", 3),
        (Show.title.set(Show.kind), "title", "play"),
        (Show.kind.set(Show.genre), "kind", "opera"),
        (Show.opens.set(Show.begins), "opens", NOON + timedelta(hours=1)),
        (Show.at.set(Show.at + timedelta(minutes=5)), "at", NOON + timedelta(minutes=5)),
        (Show.at.set(Show.at - Show.lasts), "at", NOON - timedelta(hours=2)),
        (Show.lasts.set(Show.lasts + timedelta(hours=1)), "lasts", timedelta(hours=3)),
        (Show.until.set(Show.until + timedelta(days=1)), "until", datetime(2099, 1, 2, tzinfo=UTC)),
        (Show.sold.set(Show.number + 1), "sold", 2),
        (Show.stock["left"].set(Show.stock["left"] - 1), "stock", {"left": 3}),
        (Show.stock["sold"].set(Show.sold), "stock", {"left": 4, "sold": 0}),
        (Show.stock["left"].add(Show.capacity), "stock", {"left": 14}),
        (Show.names.set(Show.names), "names", ["x"]),
    ],
    ids=lambda each: repr(getattr(each, "value", "")),
)
def test_a_field_is_set_from_fields(desk: Desk, change: Change, name: str, after: Any) -> None:
    found = desk.store.update(Show, change, number=1)
    assert getattr(found, name) == after
    assert fresh(desk) == found


def test_a_change_that_no_key_depends_on_is_one_request(desk: Desk) -> None:
    desk.store.put(Stranger(number=1, total=2))

    def update() -> None:
        change = Stranger.total.set(Stranger.total + Stranger.count)
        desk.store.update(Stranger, change, number=1, when=Stranger.count < Stranger.total)

    assert desk.operations(update) == ["UpdateItem"]


def test_all_values_are_read_before_any_is_written(desk: Desk) -> None:
    found = desk.store.update(
        Show, Show.sold.set(Show.capacity), Show.capacity.set(Show.sold), number=1
    )
    assert (found.sold, found.capacity) == (10, 0)
    assert fresh(desk) == found


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: ANY.sold.set(ANY.title), "a str is not stored as an int"),
        (lambda: ANY.sold.set(ANY.price), "a Decimal is not stored as an int"),
        (lambda: ANY.price.set(ANY.ratio), "a float is not stored as a Decimal"),
        (lambda: ANY.sold.set(ANY.waiting), r"waiting may have no value.* write waiting.or_else\("),
        (
            lambda: ANY.sold.set(ANY.waiting + 1),
            r"waiting \+ 1 adds a field that may have no value",
        ),
        (lambda: ANY.sold.set(ANY.capacity + ANY.sold + 1), "three operands"),
        (lambda: ANY.sold.set(ANY.capacity + "1"), "'1' cannot be added"),
        (lambda: ANY.sold.set(ANY.capacity + True), "True cannot be added"),
        (lambda: ANY.sold.set(ANY.capacity + ANY.title), "adds an int and a str"),
        (lambda: ANY.sold.set(ANY.waiting.or_else(ANY.capacity + 1)), "cannot fall back to a sum"),
        (lambda: ANY.waiting.or_else("x"), "'x' is a str, but an int is expected"),
        (lambda: ANY.waiting.or_else(ANY.title), "a str is not stored as an int"),
        (lambda: ANY.pending.or_else(1), "stored as NULL"),
        (lambda: ANY.kind.set(ANY.title), "not stored as a Literal"),
        (lambda: ANY.grade.set(ANY.title), "not stored as a Grade"),
        (lambda: ANY.opens.set(ANY.at), "seconds since the epoch is not stored as a datetime"),
        (lambda: ANY.until.set(ANY.at), "is not stored as whole seconds since the epoch"),
        (lambda: ANY.until.set(ANY.until + timedelta(seconds=0.5)), "add whole seconds"),
        (lambda: ANY.opens.set(ANY.opens + timedelta(1)), "a datetime with epoch=True"),
        (lambda: ANY.tags.set(ANY.tags), "tags is a set, and an empty one is not stored"),
        (lambda: ANY.stock["left"].set(ANY.title), "a str is not stored as an int"),
    ],
)
def test_what_cannot_be_set_is_refused(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        wrong()


class Stranger(Entity, table=hall):
    number: Attr[int] = field(max=9)
    count: Attr[int] = field(default=0)
    total: Attr[int] = field()
    note: Attr[int | None] = field(default=None)

    primary = Key("STRANGERS").sort("S", number)


def test_values_and_conditions_are_of_one_entity(desk: Desk) -> None:
    with pytest.raises(
        UsageError, match="'count' in the new value of 'sold' is not a field of Show"
    ):
        desk.store.update(Show, Show.sold.set(Stranger.count), number=1)
    with pytest.raises(UsageError, match="'count' in the condition is not a field of Show"):
        desk.store.update(Show, Show.sold.set(1), number=1, when=Show.sold < Stranger.count)
    with pytest.raises(UsageError, match="the condition is on sold, count"):
        Show.primary.where().filter(Show.sold < Stranger.count)
    with pytest.raises(UsageError, match=r"'number' is part of the primary key"):
        desk.store.update(Show, Show.number.set(Show.sold), number=1)
    with pytest.raises(UsageError, match=r"'left' cannot be changed"):
        desk.store.update(Show, Show.left.set(Show.sold), number=1)


def test_upsert_and_move_take_them_too(desk: Desk) -> None:
    store = desk.store
    key = {"number": 1}
    changes = [Stranger.total.set(Stranger.number + 2), Stranger.count.set(Stranger.count + 1)]
    assert store.upsert(Stranger, *changes, **key).total == 3
    again = store.upsert(Stranger, *changes, Stranger.note.set(Stranger.total.or_else(0)), **key)
    assert (again.total, again.count, again.note) == (3, 2, 3)
    with pytest.raises(UsageError, match=r"'total' has no value; write total.or_else\(…\)"):
        store.upsert(Stranger, Stranger.total.set(1), Stranger.note.set(Stranger.total), number=2)
    moved = store.move(Stranger, Stranger.number.set(Stranger.total), **key)
    assert moved.number == 3


def test_a_transaction_takes_them_too(desk: Desk) -> None:
    with desk.store.transaction() as tx:
        tx.update(Show, Show.sold.set(Show.capacity - 1), number=1, when=Show.sold < Show.capacity)
        tx.put(Stranger(number=1, total=1), when=Stranger.count.missing())
    assert fresh(desk).sold == 9
    tx = desk.store.transaction()
    tx.check(Stranger, ~(Stranger.count < Stranger.total), number=1)
    tx.update(Show, Show.sold.set(Show.capacity), number=1)
    with pytest.raises(TransactionFailed, match="count < total"):
        tx.commit()
    assert fresh(desk).sold == 9


def test_a_missing_value_says_what_to_write(desk: Desk) -> None:
    with pytest.raises(ValidationException, match=r"write .or_else\(…\) of that field"):
        desk.store.update(Show, Show.stock["left"].set(Show.stock["sold"]), number=1)


def test_a_default_is_the_value_of_a_missing_attribute(desk: Desk) -> None:
    key = Stranger.__schema__.primary_key({"number": 4})
    item = {**key, "_type": {"S": "Stranger"}, "number": {"N": "4"}, "total": {"N": "1"}}
    desk.backend.execute("PutItem", {"TableName": "hall", "Item": item})
    found = desk.store.update(Stranger, Stranger.total.set(Stranger.count), number=4)
    assert found.total == 0


# Values that only a key holds

legacy = Table("legacy", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Member(Entity, table=legacy):
    name: Attr[str] = field()
    points: Attr[int] = field(max=999, alert=None)
    best: Attr[int] = field(default=0)

    primary = Key("USER", name, separator="_").sort("profile")
    by_points = Index("GSI1", "POINTS").sort(points, name)


def test_a_value_that_only_a_key_holds_is_used(clocked: Desk) -> None:
    clocked.store.create_tables(legacy)
    key = {"PK": {"S": "USER_Ann"}, "SK": {"S": "profile"}}
    item = {**key, "GSI1PK": {"S": "POINTS"}, "GSI1SK": {"S": "007#Ann"}}
    clocked.backend.execute("PutItem", {"TableName": "legacy", "Item": item})
    changes = (Member.best.set(Member.points + 1),)
    assert clocked.store.update(Member, *changes, name="Ann").best == 8
    assert clocked.store.get(Member, name="Ann") == Member(name="Ann", points=7, best=8)
    assert [each.best for each in clocked.store.all(Member.by_points.where())] == [8]
    assert clocked.store.update(Member, Member.best.add(Member.points), name="Ann").best == 15


def test_an_async_store_takes_them_too() -> None:
    async def main() -> None:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(hall)
            await store.put(Show(number=1))
            found = await store.update(
                Show, Show.sold.set(Show.capacity), number=1, when=Show.sold < Show.capacity
            )
            assert found.sold == 10

    asyncio.run(main())


def test_dynamodb_local_does_the_same(dynamodb_local: str) -> None:
    store = isotone.connect(dynamodb_local)
    store.create_tables(hall)
    store.put(Show(number=1))
    enough = (Show.sold < Show.capacity) & (Show.tags.size < Show.capacity)
    changes = [
        Show.sold.set(Show.capacity - Show.stock["left"]),
        Show.waiting.set(Show.waiting.or_else(Show.sold) + 1),
        Show.until.set(Show.until + timedelta(days=1)),
        Show.price.add(Show.capacity),
    ]
    found = store.update(Show, *changes, number=1, when=enough)
    assert (found.sold, found.waiting, found.price) == (6, 1, Decimal("12.5"))
    assert store.count(Show.primary.where().filter(enough)) == 1
    assert store.count(Show.primary.where().filter(Show.sold > Show.capacity)) == 0


# Any updates, with an oracle in Python

tanks = Table(
    "tanks", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")}
)


class Tank(Entity, table=tanks):
    name: Attr[str] = field()
    a: Attr[int] = field(default=0, min=-99_999_999, max=99_999_999, alert=None)
    b: Attr[int] = field(default=1, min=-99_999_999, max=99_999_999, alert=None)
    c: Attr[int] = field(default=2)
    d: Attr[int | None] = field(default=None, min=-99_999_999, max=99_999_999, alert=None)
    total: Attr[int] = computed(lambda tank: tank.a + tank.c)

    primary = Key("TANK", name).sort("TANK")
    by_a = Index("GSI1", "A", when=b > c).sort(a, b)
    by_total = Index("GSI2", "TOTAL").sort(d)


class Versioned(Entity, table=tanks):
    name: Attr[str] = field()
    a: Attr[int] = field(default=0, min=-99_999_999, max=99_999_999, alert=None)
    b: Attr[int] = field(default=1, min=-99_999_999, max=99_999_999, alert=None)
    c: Attr[int] = field(default=2)
    d: Attr[int | None] = field(default=None)
    revision: Attr[int] = version()

    primary = Key("VERSIONED", name).sort("VERSIONED")
    by_a = Index("GSI1", "A", when=b > c).sort(a, b)


Values = dict[str, int | None]
Step = tuple[str, str, str, int]
NAMES = "abcd"
STEP = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(["copy", "plus", "minus", "from", "default", "add", "both"]),
    st.sampled_from(NAMES),
    st.integers(-3, 3),
)
STEPS = st.lists(STEP, min_size=1, max_size=3, unique_by=lambda step: step[0])


def change_of(entity: type[Any], step: Step) -> Change:
    name, how, source, by = step
    target, other = getattr(entity, name), getattr(entity, source).or_else(by)
    change: Change = {
        "copy": lambda: target.set(other),
        "plus": lambda: target.set(other + by),
        "minus": lambda: target.set(other - by),
        "from": lambda: target.set(by - other),
        "default": lambda: target.set_default(getattr(entity, "a" if source == "d" else source)),
        "add": lambda: target.add(other),
        "both": lambda: target.set(entity.a - other),
    }[how]()
    return change


def value_of(values: Values, step: Step) -> int | None:
    name, how, source, by = step
    now, other = values[name], values[source]
    other = by if other is None else other
    if how == "default":
        return (values["a" if source == "d" else source]) if now is None else now
    if how == "add":
        return (now or 0) + other
    whole = values["a"] or 0
    return {
        "copy": other,
        "plus": other + by,
        "minus": other - by,
        "from": by - other,
        "both": whole - other,
    }[how]


def applied(values: Values, steps: list[Step]) -> Values:
    return {**values, **{step[0]: value_of(values, step) for step in steps}}


@pytest.fixture(scope="module")
def pool() -> Iterator[Desk]:
    clock = isotone.ManualClock(NOON)
    with isotone.open(":memory:", clock=clock) as database:
        desk = Desk(database, clock)
        desk.store.create_tables(tanks)
        yield desk


def stored(desk: Desk, entity: type[Entity]) -> Any:
    schema = entity.__schema__
    key = schema.primary_key({"name": "t"})
    item = desk.backend.execute("GetItem", {"TableName": "tanks", "Key": key})["Item"]
    found = schema.from_item(item)
    computed_again = found.replace()
    assert schema.to_item(computed_again.__dict__) == item
    return found


@pytest.mark.parametrize("entity", [Tank, Versioned])
def test_a_key_follows_a_field_that_changed_meanwhile(pool: Desk, entity: type[Any]) -> None:
    """The key has the sum, so the write must see the same operand as the key's text."""
    pool.store.put(entity(name="t", b=5, d=5))
    pool.before["UpdateItem"] = lambda: pool.store.update(entity, entity.d.set(7), name="t")
    assert pool.store.update(entity, entity.a.set(entity.d.or_else(0) + 1), name="t").a == 8
    assert stored(pool, entity).a == 8
    pool.store.delete(entity, name="t")


@pytest.mark.parametrize("entity", [Tank, Versioned])
@given(updates=st.lists(st.tuples(STEPS, STEPS | st.none()), max_size=6))
@settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_updates_end_as_in_python(
    pool: Desk, entity: type[Any], updates: list[tuple[list[Step], list[Step] | None]]
) -> None:
    """Also if another update of the same entity comes first, and every key follows."""
    store = pool.store
    store.delete(entity, name="t")
    store.put(entity(name="t", b=9))
    values: Values = {"a": 0, "b": 9, "c": 2, "d": None}
    for ours, theirs in updates:
        if theirs is not None:

            def overtake(steps: list[Step] = theirs) -> None:
                store.update(entity, *[change_of(entity, step) for step in steps], name="t")

            pool.before["UpdateItem"] = overtake
            values = applied(values, theirs)
        values = applied(values, ours)
        found = store.update(entity, *[change_of(entity, step) for step in ours], name="t")
        assert {name: getattr(found, name) for name in NAMES} == values
        assert stored(pool, entity) == found
