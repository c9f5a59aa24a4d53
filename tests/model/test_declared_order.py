"""A condition on an ordered choice means one thing: in a key, a filter, a snapshot and the `when=` of a write."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from enum import Enum, IntEnum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, desc, field, in_order
from isotone.errors import ConditionFailed, Unanswerable, UsageError


class Priority(Enum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    CRITICAL = "critical"


class Size(IntEnum):
    LARGE = 10
    MEDIUM = 9
    SMALL = 2


Risk = Literal["NONE", "SOME", "GRAVE"]
Floor = Literal[2, 0, 10]
desks = Table(
    "desks",
    indexes={
        f"by_{name}": Global(f"{name}_pk", f"{name}_sk")
        for name in ("priority", "risk", "size", "floor", "text", "active", "grave")
    },
)


class Ticket(Entity, table=desks):
    number: Attr[int] = field(max=999)
    priority: Attr[Priority] = field(default=Priority.NORMAL)
    risk: Attr[Risk | None] = field(default=None)
    size: Attr[Size] = field(default=Size.SMALL)
    floor: Attr[Floor] = field(default=0, alert=None)
    active: Attr[bool] = field(default=True)
    mood: Attr[Literal["bad", "good", "fair"]] = field(default="good", in_order=True)
    kind: Attr[Literal["bug", "wish"]] = field(default="bug")

    primary = Key("DESK").sort("TICKET", number)
    by_priority = Index("by_priority", "DESK").sort(in_order(priority), number)
    by_risk = Index("by_risk", "DESK").sort(desc(in_order(risk)), number)
    by_size = Index("by_size", "DESK").sort(in_order(size), number)
    by_floor = Index("by_floor", "DESK").sort("F", floor)
    by_active = Index("by_active", "DESK").sort(desc(active), number)
    as_text = Index("by_text", "DESK").sort("P", priority, mood)
    grave = Index("by_grave", "DESK", when=priority >= Priority.HIGH).sort(number)


CHOICES: dict[Any, list[Any]] = {  # each field's values, the least first
    Ticket.priority: list(Priority),
    Ticket.risk: ["NONE", "SOME", "GRAVE"],
    Ticket.size: [Size.LARGE, Size.MEDIUM, Size.SMALL],  # as in_order declares it, not by number
    Ticket.floor: [0, 2, 10],  # numbers, in no declared order
    Ticket.active: [False, True],
    Ticket.mood: ["bad", "good", "fair"],
}
INDEX = {
    Ticket.priority: Ticket.by_priority,
    Ticket.risk: Ticket.by_risk,
    Ticket.size: Ticket.by_size,
    Ticket.floor: Ticket.by_floor,
    Ticket.active: Ticket.by_active,
}
SIGNS: list[Callable[[Any, Any], Any]] = [operator.lt, operator.le, operator.gt, operator.ge]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with isotone.connect(":memory:") as store:
        store.create_tables(desks)
        for number in range(60):
            values = {each: CHOICES[each][number % len(CHOICES[each])] for each in CHOICES}
            store.put(Ticket(number=number, **{each.name: values[each] for each in CHOICES}))
        store.put(Ticket(number=60))
        yield store


def numbers(found: Any) -> list[int]:
    return sorted(ticket.number for ticket in found)


@given(st.data())
def test_every_place_gives_the_same_answer(store: Store, data: st.DataObject) -> None:
    about = data.draw(st.sampled_from(list(CHOICES)), label="field")
    choices = CHOICES[about]
    one, other = data.draw(st.tuples(st.sampled_from(choices), st.sampled_from(choices)))
    condition: Any
    holds: Callable[[int], bool]
    if data.draw(st.booleans()):
        condition = about.between(one, other)
        holds = lambda rank: choices.index(one) <= rank <= choices.index(other)  # noqa: E731
    else:
        sign = data.draw(st.sampled_from(SIGNS))
        condition = sign(about, one)
        holds = lambda rank: sign(rank, choices.index(one))  # noqa: E731
    everything = store.all(Ticket.primary.where())
    values = {ticket.number: getattr(ticket, about.name) for ticket in everything}
    wanted = [number for number, value in values.items() if value is not None]
    wanted = sorted(number for number in wanted if holds(choices.index(values[number])))

    assert numbers(store.all(Ticket.primary.where().filter(condition))) == wanted
    assert numbers(store.load(Ticket.primary.where()).where(condition)) == wanted
    rest = sorted(values.keys() - set(wanted))
    assert numbers(store.all(Ticket.primary.where().filter(~condition))) == rest
    if about in INDEX:
        assert numbers(store.all(INDEX[about].where(condition))) == wanted
    number = data.draw(st.integers(0, 60))
    try:
        store.update(Ticket, Ticket.kind.set("bug"), number=number, when=condition)
        assert number in wanted
    except ConditionFailed:
        assert number not in wanted


def test_a_snapshot_sorts_by_the_declared_order(store: Store) -> None:
    tickets = store.load(Ticket.primary.where())
    for about, choices in CHOICES.items():
        ranks = [
            choices.index(value)
            for t in tickets.sorted_by(about)
            if (value := getattr(t, about.name)) is not None
        ]
        assert ranks == sorted(ranks)
        ranks = [
            choices.index(value)
            for t in tickets.sorted_by(desc(about))
            if (value := getattr(t, about.name)) is not None
        ]
        assert ranks == sorted(ranks, reverse=True)


def test_a_sparse_index_has_what_its_condition_means(store: Store) -> None:
    assert {ticket.priority for ticket in store.all(Ticket.grave.where())} == {
        Priority.HIGH,
        Priority.CRITICAL,
    }


def test_a_key_that_orders_by_text_refuses_a_range(store: Store) -> None:
    with pytest.raises(
        Unanswerable, match=r"as_text sorts 'priority' by its stored text, .*in_order\(priority\)"
    ):
        Ticket.as_text.where(Ticket.priority >= Priority.HIGH)
    found = store.all(Ticket.as_text.where(Ticket.priority == Priority.HIGH, Ticket.mood >= "good"))
    assert {ticket.mood for ticket in found} == {
        "good",
        "fair",
    }  # field(in_order=True) orders keys, too


@pytest.mark.parametrize("sign", SIGNS)
def test_choices_without_an_order_are_not_compared_by_it(sign: Any) -> None:
    with pytest.raises(UsageError, match=r"'kind' .*field\(in_order=True\).*is_in"):
        sign(Ticket.kind, "bug")


def test_between_and_the_condition_of_an_index_need_an_order() -> None:
    with pytest.raises(UsageError, match=r"'kind' .*field\(in_order=True\)"):
        Ticket.kind.between("bug", "wish")
    elsewhere = Table("elsewhere", indexes={"some": Global("a", "b")})
    with pytest.raises(UsageError, match=r"Thing: key 'some': .*'kind' .*field\(in_order=True\)"):

        class Thing(Entity, table=elsewhere):
            code: Attr[str] = field()
            kind: Attr[Literal["bug", "wish"]] = field()

            primary = Key("T", code).sort("T")
            some = Index("some", "T", when=kind > "bug").sort(code)


def test_the_order_of_numbers_needs_no_declaration_but_a_text_does_not_sort_by_it() -> None:
    class Step(IntEnum):
        FIRST = 1
        TENTH = 10
        SECOND = 2

    class Task(Entity, table=Table("tasks", indexes={"steps": Global("a", "b")})):
        code: Attr[str] = field()
        step: Attr[Step] = field()

        primary = Key("T", code).sort("T")
        by_step = Index("steps", "T").sort("S", step)

    with isotone.connect(":memory:") as store:
        store.create_tables(Task.__schema__.table)
        for step in Step:
            store.put(Task(code=step.name, step=step))
        late = store.all(Task.primary.scan().filter(Task.step >= Step.SECOND))
        assert {task.step for task in late} == {Step.SECOND, Step.TENTH}
        with pytest.raises(
            Unanswerable, match=r"by_step sorts 'step' by its stored text, .*in_order\(step\)"
        ):
            Task.by_step.where(Task.step >= Step.SECOND)


def test_in_order_needs_choices() -> None:
    with pytest.raises(UsageError, match=r"in_order\(name\) needs an enum or a Literal"):

        class Person(Entity, table=Table("people")):
            name: Attr[str] = field(in_order=True)

            primary = Key("P", name).sort("P")


@pytest.mark.parametrize("about", ["tags", "parts", "info"])
def test_collections_have_no_order(about: str) -> None:
    class Bag(Entity, table=Table("bags")):
        code: Attr[str] = field()
        tags: Attr[set[str]] = field(default_factory=set)
        parts: Attr[list[int]] = field(default_factory=list)
        info: Attr[dict[str, int]] = field(default_factory=dict)

        primary = Key("B", code).sort("B")

    place: Any = getattr(Bag, about)
    value: Any = {"tags": {"a"}, "parts": [1], "info": {"a": 1}}[about]
    with pytest.raises(UsageError, match=rf"'{about}' .*no order"):
        _ = place < value


def test_literals_of_the_same_values_keep_their_own_order() -> None:
    class Up(Entity, table=Table("upwards")):
        code: Attr[str] = field()
        level: Attr[Literal["low", "high"]] = field(in_order=True)

        primary = Key("U").sort("U", level, code)

    class Down(Entity, table=Table("downwards")):
        code: Attr[str] = field()
        level: Attr[Literal["high", "low"]] = field(in_order=True)

        primary = Key("D").sort("D", level, code)

    assert "0_low" in str(Up.primary.where(Up.level == "low").request())
    assert "0_high" in str(Down.primary.where(Down.level == "high").request())


def test_an_empty_set_is_compared_as_it_is_stored() -> None:
    class Bag(Entity, table=Table("bags")):
        code: Attr[str] = field()
        tags: Attr[set[str]] = field(default_factory=set)

        primary = Key("B", code).sort("B")

    with isotone.connect(":memory:") as store:
        store.create_tables(Bag.__schema__.table)
        store.put(Bag(code="empty"))
        store.put(Bag(code="full", tags={"a"}))
        for condition, wanted in [(Bag.tags == set(), ["empty"]), (Bag.tags != set(), ["full"])]:
            assert [bag.code for bag in store.all(Bag.primary.scan().filter(condition))] == wanted
            assert [bag.code for bag in store.load(Bag.primary.scan()).where(condition)] == wanted
