"""What conditions imply: never wrong, and certain of what a reader would expect."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import product
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from tests.effort import examples
from tests.model.test_matching import CONDITIONS, DAY, JOINED, SIMPLE, Case

from isotone import Attr, Condition, Entity, Key, Table, field
from isotone.model.reading.implication import exclude_one_another, implies


class Thing(Entity, table=Table("things")):
    group: Attr[str] = field()
    number: Attr[int] = field(max=99, alert=None)
    status: Attr[Literal["a", "b", "c"]] = field(in_order=True)
    size: Attr[int] = field()
    day: Attr[date | None] = field(default=None)
    closed: Attr[bool] = field(default=False)
    name: Attr[str] = field(default="")
    level: Attr[Literal["a", "b", "c"]] = field()
    tags: Attr[set[str]] = field(default_factory=set)
    rest: Attr[dict[str, Any]] = field(default_factory=dict)

    primary = Key("G", group).sort("N", number)


def things(**values: list[Any]) -> list[Thing]:
    names = ["group", "status", "size", "day", "closed", "name", "level"]
    return [
        Thing(number=1, **dict(zip(names, each, strict=True)))
        for each in product(*(values[name] for name in names))
    ]


EVERY = things(
    group=["x", "y"],
    status=["a", "b", "c"],
    size=[0, 2, 3, 5, 9],
    day=[None, DAY - timedelta(1), DAY, DAY + timedelta(2), DAY + timedelta(9)],
    closed=[False, True],
    name=["", "a", "ab", "b#", "é"],
    level=["a", "c"],
)


@given(CONDITIONS, SIMPLE | JOINED)
@settings(max_examples=examples(150), deadline=None)
def test_what_is_implied_is_true_of_every_entity(facts: list[Case], goal: Case) -> None:
    conditions = [case.make(Thing) for case in facts]
    left = [each for each in EVERY if all(case.holds(each) for case in facts)]
    if implies(conditions, goal.make(Thing)):
        assert all(goal.holds(each) for each in left)
    if exclude_one_another(conditions):
        assert left == []


T = Thing
TRUE = [
    ([T.size == 3], T.size > 2),
    ([T.size == 3], T.size <= 3),
    ([T.size > 3], T.size >= 3),
    ([T.size > 3], T.size > 2),
    ([T.size > 3], T.size != 3),
    ([T.size < 3], T.size <= 3),
    ([T.size.between(2, 4)], T.size >= 2),
    ([T.size >= 2, T.size <= 4], T.size.between(2, 4)),
    ([T.size.is_in([1, 2])], T.size < 3),
    ([T.size == 3], (T.size == 3) | (T.size == 4)),
    ([(T.size == 3) | (T.size == 4)], T.size.is_in([3, 4])),
    ([T.size >= 3], ~(T.size < 3)),
    ([T.status != "a"], T.status.is_in(["b", "c"])),
    ([T.status > "a"], T.status != "a"),
    ([T.status >= "b", T.status != "b"], T.status == "c"),
    ([T.level != "a", T.level != "b"], T.level == "c"),
    ([~T.closed], T.closed != True),  # noqa: E712
    ([T.closed != True], ~T.closed),  # noqa: E712
    ([T.day > DAY], T.day.exists()),
    ([T.day == DAY], T.day != None),  # noqa: E711
    ([T.day.missing()], ~(T.day > DAY)),
    ([T.day.missing()], T.day == None),  # noqa: E711
    ([T.day != None], T.day.exists()),  # noqa: E711
    ([T.day == None], ~(T.day != None)),  # noqa: E711
    ([T.day == None], T.day != DAY),  # noqa: E711
    ([T.name.begins_with("ab")], T.name.begins_with("a")),
    ([T.name == "abc"], T.name.begins_with("ab")),
    ([T.name.begins_with("b")], T.name > "a"),
    ([T.tags.contains("new"), T.size > 1], T.tags.contains("new") & (T.size > 0)),
    ([T.size < T.number], T.size < T.number),
    ([T.rest["a"] == 1], T.rest["a"].exists()),
    ([T.size > 1, T.group == "x"], (T.group == "x") & (T.size > 0)),
    ([(T.group == "x") | (T.size > 1), T.group == "y"], T.size > 0),
]
FALSE: list[tuple[list[Condition], Condition]] = [
    ([T.size >= 3], T.size > 3),
    ([T.size > 2], T.size > 3),
    ([T.size != 3], T.size > 3),
    ([T.size.is_in([1, 3])], T.size < 3),
    ([T.day != DAY], T.day.exists()),
    ([T.day == None], T.day.missing()),  # noqa: E711
    ([T.day.exists()], T.day != None),  # noqa: E711
    ([~(T.day > DAY)], T.day <= DAY),
    ([T.name.begins_with("a")], T.name.begins_with("ab")),
    ([T.tags.contains("new")], T.tags.contains("old")),
    ([T.rest["a"] != 1], T.rest["a"].exists()),
    ([], T.size > 0),
    ([T.group == "x"], T.size > 0),
]


@pytest.mark.parametrize(("facts", "goal"), TRUE, ids=repr)
def test_what_follows(facts: list[Condition], goal: Condition) -> None:
    assert implies(facts, goal)


@pytest.mark.parametrize(("facts", "goal"), FALSE, ids=repr)
def test_what_does_not_follow(facts: list[Condition], goal: Condition) -> None:
    assert not implies(facts, goal)


def test_too_many_combinations_are_not_tried() -> None:
    facts = [T.size.is_in(range(100)), T.name.is_in(map(str, range(100))), T.number == 1]
    goal = (T.size < 200) & (T.number < 2) | (T.name == "a") | (T.day == DAY)
    assert not implies(facts, goal)  # it follows, but finding out would take too long


def test_what_excludes_one_another() -> None:
    assert exclude_one_another([T.size > 3, T.size < 2])
    assert exclude_one_another([T.size == 3, T.group == "x", T.size.is_in([1, 2])])
    assert exclude_one_another([T.status > "b", T.status != "c"])
    assert not exclude_one_another([T.size > 3, T.number < 2])
