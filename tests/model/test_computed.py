"""Computed fields that read other ones, and what a write sets: their order, circles, errors, and each way to write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.effort import examples

import isotone
from isotone import (
    ULID,
    Attr,
    Entity,
    Global,
    Index,
    Key,
    ManualClock,
    Store,
    Table,
    computed,
    created,
    created_id,
    field,
    updated,
    version,
)
from isotone.errors import InvalidEntity, InvalidItem, UsageError
from isotone.server import running_server

START = datetime(2026, 1, 1, tzinfo=UTC)

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


def with_tax(order: Any) -> int:
    """Reads fields in a function of its own, which nothing in the class shows."""
    return int(order.net + order.tax)


class Order(Entity, table=shop):
    number: Attr[int] = field(max=99, alert=None)
    net: Attr[int] = field()
    # Each reads fields that are declared below.
    label: Attr[str] = computed(lambda order: f"{order.day} {order.gross} v{order.revision}")
    day: Attr[str] = computed(lambda order: order.placed_at.date().isoformat())
    gross: Attr[int] = computed(lambda order: with_tax(order))
    tax: Attr[int] = computed(lambda order: order.net // 5)
    age: Attr[int] = computed(lambda order: (order.changed_at - order.placed_at).days)
    placed_at: Attr[datetime] = created()
    changed_at: Attr[datetime] = updated()
    revision: Attr[int] = version()

    primary = Key("ORDER", number).sort("ORDER")
    by_day = Index("GSI1", "DAY", day).sort(number)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture(params=["memory", "file", "http", "DynamoDB Local"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    with ExitStack() as stack:
        address = {"memory": ":memory:", "file": str(tmp_path / "shop.db")}.get(request.param)
        if request.param == "DynamoDB Local":
            address = request.getfixturevalue("dynamodb_local")
        elif request.param == "http":
            database = stack.enter_context(isotone.open(clock=clock))
            address = stack.enter_context(running_server(database))
        store = stack.enter_context(isotone.connect(address, clock=clock, report=None))
        store.drop_tables(shop)
        store.create_tables(shop)
        yield store
        store.drop_tables(shop)


def check(store: Store, order: Order, net: int, revision: int, days: int) -> None:
    """An order, here and as it is stored, has the values that its other fields give."""
    assert (order.net, order.tax, order.gross) == (net, net // 5, net + net // 5)
    assert (order.age, order.day) == (days, "2026-01-01")
    assert order.label == f"2026-01-01 {order.gross} v{revision}"
    assert store.get(Order, number=order.number, consistent=True) == order
    assert [each.number for each in store.all(Order.by_day.where(Order.day == "2026-01-01"))] == [
        order.number
    ]
    assert store.verify(Order).is_clean


def test_each_write_computes_after_what_it_sets(store: Store, clock: ManualClock) -> None:
    order = store.put(Order(number=1, net=100))
    check(store, order, 100, 1, 0)
    clock.advance(86_400)
    order.net = 200
    check(store, store.put(order), 200, 2, 1)
    clock.advance(86_400)
    check(store, store.update(Order, Order.net.set(300), number=1), 300, 3, 2)
    check(store, store.update(store.refresh(order), Order.net.add(50)), 350, 4, 2)
    check(store, store.upsert(Order, Order.net.set(5), number=1), 5, 5, 2)
    check(store, store.replace(store.refresh(order).replace(net=7)), 7, 6, 2)
    check(store, store.touch(Order, number=1), 7, 7, 2)
    with store.transaction() as together:
        together.update(Order, Order.net.set(9), number=1)
    check(store, store.refresh(order), 9, 8, 2)
    moved = store.move(Order, Order.number.set(2), number=1)
    check(store, moved, 9, 9, 2)
    assert store.delete(moved) == moved


def test_an_upsert_that_creates_computes_too(store: Store) -> None:
    check(store, store.upsert(Order, Order.net.set(10), number=1), 10, 1, 0)


def test_before_the_write_there_is_what_does_not_depend_on_it() -> None:
    order = Order(number=1, net=100)
    assert (order.tax, order.gross, order.to_dict()["placed_at"]) == (20, 120, None)
    assert order.to_dict().keys() == Order.__schema__.fields.keys() - {"day", "label", "age"}
    assert order.model_dump()["gross"] == 120
    assert "day" not in repr(order)
    assert order == Order(number=1, net=100)
    with pytest.raises(AttributeError, match="Order has no 'placed_at' before it is written"):
        print(order.day)
    with pytest.raises(AttributeError, match="'label' is computed from it"):
        print(order.label)
    order.net = 5
    assert (order.gross, order.replace(net=10).gross) == (6, 12)
    validated = TypeAdapter(Order).validate_python({"number": 1, "net": 10})
    assert validated.gross == 12


def test_an_id_that_the_write_makes_can_be_read_for_the_primary_key(clock: ManualClock) -> None:
    class Ticket(Entity, table=Table("tickets")):
        ident: Attr[ULID] = created_id()
        shard: Attr[str] = computed(lambda ticket: str(ticket.ident)[-1])
        primary = Key("SHARD", shard).sort(ident)

    with isotone.connect(":memory:", clock=clock) as store:
        store.create_tables(Ticket.__schema__.table)
        ticket = store.put(Ticket())
        assert ticket.shard == str(ticket.ident)[-1]
        assert store.get(Ticket, shard=ticket.shard, ident=ticket.ident) == ticket


def test_a_time_that_the_write_sets_can_be_in_the_primary_key(clock: ManualClock) -> None:
    class Visit(Entity, table=Table("visits")):
        at: Attr[datetime] = created()
        day: Attr[str] = computed(lambda visit: visit.at.date().isoformat())
        primary = Key("DAY", day).sort("VISIT", at)

    with isotone.connect(":memory:", clock=clock) as store:
        store.create_tables(Visit.__schema__.table)
        visits = [store.put(Visit())]
        clock.advance(60)
        visits.append(store.create(Visit()))
        clock.advance(60)
        with store.transaction() as together:
            together.put(third := Visit())
        visits.append(third)
        clock.advance(60)
        store.put_many([Visit()])
        found = store.all(Visit.primary.where(Visit.day == "2026-01-01"))
        assert found[:3] == visits
        assert len(found) == 4


def test_an_item_that_lacks_several_is_completed_in_order(clock: ManualClock) -> None:
    with isotone.connect(":memory:", clock=clock) as store:
        store.create_tables(shop)
        order = store.put(Order(number=1, net=100))
        item = Order.__schema__.to_item(order.__dict__)
        for name in ("label", "gross", "tax", "day"):
            del item[name]
        store.backend.execute("PutItem", {"TableName": "shop", "Item": item})
        assert store.get(Order, number=1) == order
        assert {each.kind for each in store.verify(Order).findings} == {"computed"}
        store.rewrite(Order)
        assert store.verify(Order).is_clean


def test_an_entity_that_was_read_in_part_is_not_computed_from(clock: ManualClock) -> None:
    with isotone.connect(":memory:", clock=clock) as store:
        store.create_tables(shop)
        store.put(Order(number=1, net=100))
        query = Order.primary.where(Order.number == 1).select(Order.net)
        (part,) = store.all(query)
        with pytest.raises(AttributeError, match="Order was read without its field 'tax'"):
            print(part.tax)


# Any order of declaration

NAMES = ("a", "b", "c", "d", "e")


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    reads=st.tuples(
        *(st.sets(st.sampled_from(NAMES[:n])) if n else st.just(set()) for n in range(5))
    ),
    hidden=st.sets(st.sampled_from(NAMES)),
    order=st.permutations(NAMES),
    base=st.integers(-9, 9),
)
def test_the_order_of_declaration_does_not_matter(
    reads: tuple[set[str], ...], hidden: set[str], order: list[str], base: int
) -> None:
    """Each field is 1 more than the base and the fields that it reads, openly or by `getattr`."""

    def function(name: str) -> Any:
        others = sorted(reads[NAMES.index(name)])
        if name in hidden:
            return lambda each: 1 + each.base + sum(getattr(each, other) for other in others)
        return eval(f"lambda each: 1 + each.base{''.join(f' + each.{other}' for other in others)}")

    def meant(base: int) -> dict[str, int]:
        values: dict[str, int] = {}
        for name in NAMES:
            values[name] = 1 + base + sum(values[other] for other in reads[NAMES.index(name)])
        return values

    table = Table("any")
    members: dict[str, Any] = {name: computed(function(name)) for name in order}
    base_field: Any = field()
    ident: Any = field()
    members |= {"base": base_field, "ident": ident}
    members["__annotations__"] = {**dict.fromkeys([*NAMES, "base"], Attr[int]), "ident": Attr[str]}
    members["primary"] = Key("ANY", ident).sort("ANY")
    kind: Any = type("Any", (Entity,), members, table=table)

    def values(entity: Any) -> dict[str, int]:
        return {name: getattr(entity, name) for name in NAMES}

    entity = kind(ident="x", base=base)
    assert values(entity) == meant(base)
    entity.base = base + 1
    assert values(entity) == meant(base + 1)
    with isotone.connect(":memory:") as store:
        store.create_tables(table)
        assert values(store.put(entity)) == meant(base + 1)
        assert values(store.update(kind, kind.base.set(7), ident="x")) == meant(7)
        assert values(store.update(kind, kind.base.add(1), ident="x")) == meant(8)
        assert values(store.get(kind, ident="x")) == meant(8)
        assert store.verify(kind).is_clean


# Circles


def circle_of_two(table: Table) -> None:
    class Thing(Entity, table=table):
        name: Attr[str] = field()
        net: Attr[int] = computed(lambda thing: thing.gross - 1)
        gross: Attr[int] = computed(lambda thing: thing.net + 1)
        primary = Key("THING", name).sort("THING")


def circle_through_a_method(table: Table) -> None:
    class Thing(Entity, table=table):
        name: Attr[str] = field()
        first: Attr[int] = computed(lambda thing: thing.second)
        second: Attr[int] = computed(lambda thing: thing.sum())
        third: Attr[int] = computed(lambda thing: len([n for n in (1, 2) if n < thing.half]))
        primary = Key("THING", name).sort("THING")

        def sum(self) -> int:
            return sum(self.third + number for number in range(3))

        @property
        def half(self) -> int:
            return self.first // 2


def circle_of_one(table: Table) -> None:
    class Thing(Entity, table=table):
        name: Attr[str] = field()
        size: Attr[int] = computed(lambda thing: thing.size + 1)
        primary = Key("THING", name).sort("THING")


def circle_with_a_base(table: Table) -> None:
    class Base(Entity):
        one: Attr[int] = computed(lambda thing: thing.other)

    class Thing(Base, table=table):
        name: Attr[str] = field()
        other: Attr[int] = computed(lambda thing: thing.one)
        primary = Key("THING", name).sort("THING")


@pytest.mark.parametrize(
    ("declare", "path"),
    [
        (circle_of_two, "net → gross → net"),
        (circle_through_a_method, "first → second → third → first"),
        (circle_of_one, "size → size"),
        (circle_with_a_base, "one → other → one"),
    ],
)
def test_a_circle_is_refused_with_its_path(declare: Any, path: str) -> None:
    table = Table("things")
    with pytest.raises(UsageError, match=f"computed fields of Thing read one another .*: {path};"):
        declare(table)
    assert not table.entities


def test_the_same_name_elsewhere_is_no_circle() -> None:
    class Basket(Entity, table=Table("baskets")):
        name: Attr[str] = field()
        lines: Attr[list[str]] = field(default_factory=list)
        count: Attr[int] = computed(lambda basket: basket.lines.count("x"))
        strip: Attr[int] = computed(
            lambda basket: sum(len(line.strip()) * basket.count for line in basket.lines)
        )
        primary = Key("BASKET", name).sort("BASKET")

    basket = Basket(name="a", lines=["x", " yy "])
    assert (basket.count, basket.strip) == (1, 3)


def test_a_hidden_circle_is_told_when_it_is_computed() -> None:
    class Thing(Entity, table=Table("things")):
        name: Attr[str] = field()
        one: Attr[int] = computed(lambda thing: getattr(thing, thing.name))
        other: Attr[int] = computed(lambda thing: thing.one)
        primary = Key("THING", name).sort("THING")

    with pytest.raises(UsageError, match="in a circle: one → other → one"):
        Thing(name="other")


# Errors


class Ratio(Entity, table=shop):
    name: Attr[str] = field()
    part: Attr[int] = field()
    whole: Attr[int] = field()
    text: Attr[str] = computed(lambda ratio: f"{ratio.percent} %")
    percent: Attr[int] = computed(lambda ratio: 100 * ratio.part // ratio.whole)
    primary = Key("RATIO", name).sort("RATIO")


RAISED = r"Ratio: computed field 'percent' has no value, .* raised ZeroDivisionError\("


def test_an_error_names_the_entity_and_the_field(store: Store) -> None:
    with pytest.raises(InvalidEntity, match=RAISED) as failure:
        Ratio(name="a", part=1, whole=0)
    assert [error["loc"] for error in failure.value.errors] == [("percent",)]
    assert isinstance(failure.value.__cause__, ZeroDivisionError)
    ratio = store.put(Ratio(name="a", part=1, whole=2))
    with pytest.raises(InvalidEntity, match=RAISED):
        store.update(Ratio, Ratio.whole.set(0), name="a")
    with pytest.raises(InvalidEntity, match=RAISED):
        store.update(Ratio, Ratio.whole.set(0), Ratio.part.set(1), name="a")
    with pytest.raises(InvalidEntity, match=RAISED):
        ratio.whole = 0
    assert store.get(Ratio, name="a", consistent=True) == Ratio(name="a", part=1, whole=2)
    with pytest.raises(ValidationError, match=RAISED):
        TypeAdapter(Ratio).validate_python({"name": "a", "part": 1, "whole": 0})


def test_a_function_may_handle_the_error_of_another_one() -> None:
    def shown(ratio: Any) -> str:
        try:
            return f"{ratio.percent} %"
        except ZeroDivisionError:
            return "none"

    class Handled(Entity, table=Table("handled")):
        name: Attr[str] = field()
        whole: Attr[int] = field()
        both: Attr[str] = computed(lambda ratio: f"{ratio.text}, {ratio.whole + len(ratio.text)}")
        text: Attr[str] = computed(shown)
        percent: Attr[int] = computed(lambda ratio: 100 // ratio.whole)
        primary = Key("HANDLED", name).sort("A")

    with pytest.raises(InvalidEntity, match="Handled: computed field 'percent' has no value"):
        Handled(name="a", whole=0)  # which is a field of its own, too
    assert Handled(name="a", whole=10).both == "10 %, 14"


def test_an_item_from_which_nothing_can_be_computed_names_them_too(store: Store) -> None:
    item = Ratio.__schema__.to_item(Ratio(name="a", part=1, whole=2).__dict__)
    del item["percent"], item["text"]
    item["whole"] = {"N": "0"}
    store.backend.execute("PutItem", {"TableName": "shop", "Item": item})
    with pytest.raises(
        InvalidItem, match=r"Ratio .*computed field 'percent' has no value"
    ) as failure:
        store.get(Ratio, name="a")
    assert failure.value.field == "percent"


def test_a_time_of_a_kind_is_computed_for_the_kind(clock: ManualClock) -> None:
    class Action(Entity, table=shop):
        name: Attr[str] = field()
        at: Attr[datetime] = created()
        primary = Key("ACTION", name).sort("ACTION")

    class Comment(Action):
        until: Attr[datetime] = computed(lambda comment: comment.at + timedelta(days=1))

    with isotone.connect(":memory:", clock=clock) as store:
        store.create_tables(shop)
        comment = store.put(Comment(name="a"))
        assert comment.until == START + timedelta(days=1)
        assert store.get(Action, name="a") == comment
