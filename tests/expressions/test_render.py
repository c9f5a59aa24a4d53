"""Trees to text and back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given
from msgspec import Struct
from tests.expressions.trees import (
    conditions,
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
    Truth,
    UpdateNode,
    ValueRef,
)
from isotone.expressions.parser import parse_condition, parse_projection, parse_update
from isotone.expressions.render import Writer


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


def put_in_place(node: Any, writer: Writer) -> Any:
    """A tree with what its placeholders stand for."""
    if isinstance(node, tuple):
        return tuple(put_in_place(each, writer) for each in node)
    if isinstance(node, NameRef):
        return writer.names[node.name]
    if isinstance(node, ValueRef):
        return Literal(writer.values[node.name])
    if not isinstance(node, Struct):
        return node
    return type(node)(
        *[put_in_place(getattr(node, name), writer) for name in node.__struct_fields__]
    )


@given(conditions(literals, paths()))
def test_literals_and_odd_names_become_placeholders(tree: Any) -> None:
    writer = Writer()
    written = parse_condition(writer.text(tree))
    assert put_in_place(written, writer) == tree
    assert all(re.fullmatch("#n[0-9]+", name) for name in writer.names)
    assert all(re.fullmatch(":v[0-9]+", name) for name in writer.values)
    assert len(set(writer.names.values())) == len(writer.names)


def test_what_is_written_means_the_same() -> None:
    tree = Comparison("=", Path(("abort", "x y", "abort", 2)), Literal({"N": "1"}))
    writer = Writer()
    text = writer.text(tree)
    assert text == "#n0.#n1.#n0[2] = :v0"
    assert writer.names == {"#n0": "abort", "#n1": "x y"}
    assert writer.values == {":v0": {"N": "1"}}
    item = {"abort": {"M": {"x y": {"M": {"abort": {"L": [{"S": ""}, {"S": ""}, {"N": "1"}]}}}}}}
    assert condition(text, writer.names).matches(item, writer.values)


def test_the_expressions_of_a_request_share_their_placeholders() -> None:
    writer = Writer()
    path = Path(("abort",))
    assert writer.text(UpdateNode((Set(path, Literal({"N": "1"})),))) == "SET #n0 = :v0"
    assert writer.text(Comparison("<", path, Literal({"N": "2"}))) == "#n0 < :v1"
    assert writer.names == {"#n0": "abort"}
    assert writer.values == {":v0": {"N": "1"}, ":v1": {"N": "2"}}


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
        Comparison("=", Truth(Call("attribute_exists", (Path(("a",)),))), ValueRef(":v")),
        UpdateNode((Set(Path(("a.b",)), ValueRef(":v")), Remove(Path((NameRef("#a"),))))),
    ],
)
def test_what_no_text_says_is_refused(tree: Any) -> None:
    with pytest.raises(UsageError):
        render(tree)
