"""Trees to text and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from tests.expressions.trees import (
    conditions,
    items,
    literals,
    paths,
    projections,
    updates,
    value_refs,
)

from isotone.errors import UsageError
from isotone.expressions import condition, render
from isotone.expressions.nodes import (
    Action,
    Call,
    Comparison,
    Literal,
    NameRef,
    Path,
    Remove,
    Set,
    UpdateNode,
    ValueRef,
)
from isotone.expressions.parser import parse_condition, parse_projection, parse_update
from isotone.expressions.render import extract


@given(conditions(value_refs, paths(with_references=True)))
def test_a_condition_survives(tree: Any) -> None:
    assert parse_condition(render(tree)) == tree


def nests_list_append(action: Action) -> bool:
    value = getattr(action, "value", None)
    operands = value.operands if isinstance(value, Call) else ()
    return any(isinstance(each, Call) and each.function == "list_append" for each in operands)


@given(updates(value_refs, paths(with_references=True)))
def test_an_update_survives(tree: Any) -> None:
    assume(not any(map(nests_list_append, tree.actions)))
    assert parse_update(render(tree)) == tree


@given(projections(paths(with_references=True)))
def test_a_projection_survives(tree: Any) -> None:
    assert parse_projection(render(tree)) == tree


@given(conditions(literals, paths()), items)
def test_literals_and_odd_names_become_placeholders(tree: Any, item: Any) -> None:
    extracted = extract(tree)
    text = render(extracted.tree)
    assert parse_condition(text) == extracted.tree
    assert all(name.startswith("#n") for name in extracted.names)
    assert all(name.startswith(":v") for name in extracted.values)


def test_what_is_extracted_means_the_same() -> None:
    tree = Comparison("=", Path(("abort", "x y", "abort", 2)), Literal({"N": "1"}))
    extracted = extract(tree)
    assert extracted.names == {"#n0": "abort", "#n1": "x y"}
    assert extracted.values == {":v0": {"N": "1"}}
    assert render(extracted.tree) == "#n0.#n1.#n0[2] = :v0"
    item = {"abort": {"M": {"x y": {"M": {"abort": {"L": [{"S": ""}, {"S": ""}, {"N": "1"}]}}}}}}
    made = condition(render(extracted.tree), extracted.names)
    assert made.matches(item, extracted.values)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a=:v", "a = :v"),
        ("(a = :v) and ((b = :v) OR c = :v)", "a = :v AND (b = :v OR c = :v)"),
        ("not(a = :v)", "NOT a = :v"),
        ("not(a = :v or b = :v)", "NOT (a = :v OR b = :v)"),
        ("a in(:v,:w)", "a IN (:v, :w)"),
        ("a between :v and :w", "a BETWEEN :v AND :w"),
        ("contains(a.b [ 0 ],:v)", "contains(a.b[0], :v)"),
    ],
)
def test_conditions_are_written_plainly(text: str, canonical: str) -> None:
    assert render(parse_condition(text)) == canonical


def test_updates_are_written_in_sections() -> None:
    text = "set a=:v,b=a+:w remove c,d add e :v delete f :w"
    assert render(parse_update(text)) == "SET a = :v, b = a + :w REMOVE c, d ADD e :v DELETE f :w"


@pytest.mark.parametrize(
    "tree",
    [
        Path(("abort",)),
        Path(("a", "x y")),
        Path(("_a",)),
        Path(("",)),
        Literal({"N": "1"}),
        Comparison("=", Path(("a",)), Literal({"N": "1"})),
        UpdateNode((Set(Path(("a.b",)), ValueRef(":v")), Remove(Path((NameRef("#a"),))))),
    ],
)
def test_what_no_text_says_is_refused(tree: Any) -> None:
    with pytest.raises(UsageError):
        render(tree)
