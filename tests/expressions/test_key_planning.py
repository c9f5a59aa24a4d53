"""The plan of any condition, for any key: its range and its filter find what the condition alone finds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.expressions import CompiledCondition
from isotone.expressions.key_planning import KeyPlan, KeyPlanner, joined, mentions, plan_key
from isotone.expressions.nodes import (
    And,
    Between,
    Call,
    Comparison,
    ConditionNode,
    In,
    Literal,
    Not,
    Or,
    Path,
    Truth,
)
from isotone.values.types import Item

NAMES = "abcd"
VALUES = [{"S": text} for text in ("x", "xy", "y", "z")]
ITEMS: list[Item] = [
    dict(zip(NAMES, values, strict=True)) for values in product(VALUES, repeat=len(NAMES))
]
KEYS = [
    (("a",), ()),
    (("a",), ("b",)),
    (("b",), ("a",)),
    (("a", "b"), ("c", "d")),
    (("c",), ("a", "b")),
]

paths = st.sampled_from([Path((name,)) for name in NAMES])
literals = st.sampled_from([Literal(value) for value in VALUES])
bounds = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(
    lambda places: [Literal(VALUES[place]) for place in sorted(places)]
)
plain = st.one_of(
    st.builds(
        Comparison, st.sampled_from(["=", "=", "=", "<", "<=", ">", ">=", "<>"]), paths, literals
    ),
    st.builds(Comparison, st.sampled_from(["=", "<", "<=", ">", ">="]), literals, paths),
    st.builds(lambda path, ends: Between(path, *ends), paths, bounds),
    st.builds(In, paths, st.lists(literals, min_size=1, max_size=3).map(tuple)),
    st.builds(lambda path, prefix: Call("begins_with", (path, prefix)), paths, literals),
    st.builds(lambda path, prefix: Call("contains", (path, prefix)), paths, literals),
    st.permutations(NAMES).map(lambda names: Comparison("=", Path((names[0],)), Path((names[1],)))),
)


def operands(of: Any) -> Any:
    return st.lists(of, min_size=2, max_size=3).map(tuple)


trees = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.builds(And, operands(inner)), st.builds(Or, operands(inner)), st.builds(Not, inner)
    ),
    max_leaves=6,
)


def selected(nodes: Sequence[ConditionNode]) -> list[Item]:
    """The items that satisfy all conditions: the definition, by the evaluator alone."""
    node = joined(nodes)
    if node is None:
        return ITEMS
    matches = CompiledCondition.from_node(node, parameter="").matches
    return [item for item in ITEMS if matches(item, {})]


HOLDS = {
    "=": lambda its, value: its == value,
    "<": lambda its, value: its < value,
    "<=": lambda its, value: its <= value,
    ">": lambda its, value: its > value,
    ">=": lambda its, value: its >= value,
    "BETWEEN": lambda its, low, high: low <= its <= high,
    "begins_with": lambda its, prefix: its.startswith(prefix),
}


def read(plan: KeyPlan, partition: Sequence[str]) -> list[Item]:
    """The items that a plan reads, before its filter."""
    known = [[value.value for value in values] for values in plan.partition]
    return [
        item
        for item in ITEMS
        if all(item[name] in values for name, values in zip(partition, known, strict=False))
        and all(
            HOLDS[term.operator](
                item[term.attribute]["S"], *(each["S"] for each in term.values({}))
            )
            for term in (*plan.equal, *plan.ranges)
        )
    ]


@given(st.lists(trees, max_size=4), st.sampled_from(KEYS))
def test_a_range_and_its_filter_find_what_the_condition_finds(
    nodes: list[ConditionNode], key: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    plan = plan_key(nodes, *key)
    kept = selected(plan.rest)
    assert [item for item in read(plan, key[0]) if item in kept] == selected(nodes)
    assert plan.is_scan or len(plan.partition) == len(key[0])
    if plan.is_one_key:
        assert len(read(plan, key[0])) == len(ITEMS) // len(VALUES) ** len({*key[0], *key[1]})


@given(st.lists(trees, max_size=4), st.sampled_from(KEYS))
def test_what_is_answered_needs_no_filter(
    nodes: list[ConditionNode], key: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    plan = plan_key(nodes, *key)
    assert not any(each in plan.rest for each in plan.answered)
    assert selected((*plan.answered, *plan.rest)) == selected(nodes)
    if plan.is_query((*key[0], *key[1])):
        assert len(plan.ranges) < 2
        assert not mentions(plan.rest, (*key[0], *key[1]))
        assert selected(plan.answered) == read(plan, key[0])


@given(st.lists(plain, max_size=4))
def test_one_planner_serves_all_keys(nodes: list[ConditionNode]) -> None:
    planner = KeyPlanner(nodes)
    for partition, sort in KEYS:
        one, other = planner.plan(partition, sort), plan_key(nodes, partition, sort)
        assert (one.partition, one.equal, one.ranges) == (
            other.partition,
            other.equal,
            other.ranges,
        )
        assert (one.answered, one.rest) == (other.answered, other.rest)


def equals(name: str, value: str = "x") -> Comparison:
    return Comparison("=", Path((name,)), Literal({"S": value}))


def above(name: str, value: str = "x") -> Comparison:
    return Comparison(">", Path((name,)), Literal({"S": value}))


@pytest.mark.parametrize(
    ("nodes", "is_query"),
    [
        ([equals("a")], True),
        ([equals("a"), above("b")], True),
        ([equals("a"), equals("c")], True),
        ([above("a")], False),  # a scan
        ([equals("a"), above("b"), Comparison("<", Path(("b",)), Literal({"S": "z"}))], False),
        ([equals("a"), equals("a", "y")], False),  # the second would filter by the key
        ([equals("a"), Comparison("<>", Path(("b",)), Literal({"S": "z"}))], False),
        ([equals("a"), Or((equals("c"), equals("b")))], False),
        ([In(Path(("a",)), (Literal({"S": "x"}), Literal({"S": "y"})))], False),
        ([equals("a"), Comparison("=", Truth(equals("b")), Literal({"BOOL": True}))], False),
    ],
    ids=repr,
)
def test_a_query_filters_by_no_attribute_of_its_key(
    nodes: list[ConditionNode], is_query: bool
) -> None:
    assert plan_key(nodes, ("a",), ("b",)).is_query(("a", "b")) is is_query


def test_the_best_key_finds_one_item_then_leaves_least_to_filter() -> None:
    nodes = [equals("a"), equals("b"), above("c")]
    planner = KeyPlanner(nodes)
    ranks = {
        name: plan.rank(len(plan.rest), is_whole=is_whole)
        for name, plan, is_whole in (
            ("one item", planner.plan(("a",), ("b",)), True),
            ("all three", planner.plan(("a", "b"), ("c",)), False),
            ("equality", planner.plan(("a",), ("b",)), False),
            ("range", planner.plan(("a",), ("c",)), False),
            ("partition", planner.plan(("a",), ("d",)), False),
        )
    }
    assert sorted(ranks, key=lambda name: ranks[name], reverse=True) == [*ranks]
