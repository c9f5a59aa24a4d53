"""Trees whose literals became placeholders: they mean the same, and the same as their text."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from tests.expressions.trees import (
    conditions,
    documents,
    fitting_updates,
    items,
    literals,
    paths,
    projections,
    updates,
    value_refs,
)

from isotone.errors import ValidationException
from isotone.expressions import (
    CompiledCondition,
    Writer,
    condition,
    key_condition,
    lift,
    projection,
    update,
)
from isotone.expressions.nodes import (
    And,
    Call,
    Comparison,
    In,
    Literal,
    MemberPath,
    Not,
    Path,
    ProjectionNode,
    Remove,
    Set,
    Truth,
    UpdateNode,
    ValueRef,
)
from isotone.values.types import AttributeValue, Item

ONE: AttributeValue = {"N": "1"}
TWO: AttributeValue = {"N": "2"}
A = Path(("a",))


def outcome(function: Any, *arguments: Any) -> Any:
    """What a call returns, or how the service refuses it."""
    try:
        return function(*arguments)
    except ValidationException as refused:
        return f"refused: {refused.message}"


def from_tree(tree: Any, make: Any) -> tuple[Any, dict[str, AttributeValue]]:
    values: dict[str, AttributeValue] = {}
    return make(lift(tree, values)), values


def from_text(tree: Any, make: Any) -> tuple[Any, dict[str, AttributeValue]]:
    writer = Writer()
    text = writer.text(tree)
    return make(text, writer.names), writer.values


@given(conditions(literals, paths()), items)
def test_a_lifted_condition_means_what_its_text_means(tree: Any, item: Item) -> None:
    def ask(make: Any) -> bool:
        compiled, values = make(tree, condition)
        compiled.check(values)
        return bool(compiled.matches(item, values))

    assert outcome(ask, from_tree) == outcome(ask, from_text)


@given(conditions(literals, paths()), items)
def test_a_condition_that_is_an_operand_is_lifted(tree: Any, item: Item) -> None:
    compared = Comparison("=", Truth(tree), Literal({"BOOL": True}))

    def ask(node: Any, values: dict[str, AttributeValue]) -> bool:
        made = CompiledCondition.from_node(node)
        made.check(values)
        return made.matches(item, values)

    values: dict[str, AttributeValue] = {}
    lifted = lift(compared, values)
    assert outcome(ask, lifted, values) == outcome(ask, compared, {})


@given(fitting_updates(), documents)
def test_a_lifted_update_means_what_its_text_means(tree: Any, item: Item) -> None:
    def apply(make: Any) -> Any:
        compiled, values = make(tree, update)
        compiled.check(values)
        return (
            compiled.apply(item, values),
            compiled.project(item, values),
            compiled.attributes_written,
            compiled.values_used,
        )

    assert outcome(apply, from_tree) == outcome(apply, from_text)


def with_keys(tree: Any) -> Any:
    """The tree whose paths to members of maps have keys in them, as the model makes them for dicts."""
    if isinstance(tree, tuple):
        return tuple(map(with_keys, tree))
    if isinstance(tree, Path):
        is_member = len(tree.elements) == 2 and isinstance(tree.elements[1], str)
        return MemberPath(tree.elements) if is_member else tree
    if not isinstance(tree, msgspec.Struct) or isinstance(tree, Literal):
        return tree
    return type(tree)(*[with_keys(getattr(tree, each)) for each in tree.__struct_fields__])


@given(conditions(literals, paths()), items)
def test_keys_in_a_condition_mean_what_names_mean(tree: Any, item: Item) -> None:
    def ask(node: Any) -> bool:
        compiled, values = from_tree(node, condition)
        compiled.check(values)
        return bool(compiled.matches(item, values))

    assert outcome(ask, with_keys(tree)) == outcome(ask, tree)
    assert outcome(from_text, with_keys(tree), condition) == outcome(from_text, tree, condition)


@given(fitting_updates(), documents)
def test_keys_in_an_update_mean_what_names_mean(tree: Any, item: Item) -> None:
    def apply(node: Any) -> Any:
        compiled, values = from_tree(node, update)
        compiled.check(values)
        return (
            compiled.apply(item, values),
            compiled.project(item, values),
            compiled.attributes_written,
            compiled.size and compiled.size.with_values(values),
        )

    assert outcome(apply, with_keys(tree)) == outcome(apply, tree)


M_X, M_Y = MemberPath(("m", "x")), MemberPath(("m", "y"))


@pytest.mark.parametrize(
    ("make", "trees"),
    [
        (condition, [Call("attribute_exists", (each,)) for each in (M_X, M_Y)]),
        (update, [UpdateNode((Set(each, Literal(ONE)),)) for each in (M_X, M_Y)]),
        (
            update,
            [
                UpdateNode((Remove(M_X), Set(M_Y, Literal(ONE)))),
                UpdateNode((Remove(M_Y), Set(M_X, Literal(TWO)))),
            ],
        ),
    ],
)
def test_expressions_that_differ_in_keys_are_compiled_once(make: Any, trees: Any) -> None:
    first, second = (make(lift(tree, {})) for tree in trees)
    assert first is second


def test_an_update_of_one_member_twice_is_refused() -> None:
    tree = UpdateNode((Set(M_X, Literal(ONE)), Remove(MemberPath(("m", "x")))))
    with pytest.raises(ValidationException, match="overlap"):
        update(lift(tree, {}))


@given(projections(paths()), items)
def test_a_projection_tree_means_what_its_text_means(tree: Any, item: Item) -> None:
    def project(make: Any) -> Any:
        return make(tree, projection)[0].project(item)

    assert outcome(project, from_tree) == outcome(project, from_text)


@given(conditions(literals, paths()))
def test_a_lifted_key_condition_means_what_its_text_means(tree: Any) -> None:
    def resolve(make: Any) -> Any:
        compiled, values = make(tree, key_condition)
        compiled.check(values)
        return compiled.resolve(values, ("a",), ("b",))

    assert outcome(resolve, from_tree) == outcome(resolve, from_text)


@given(conditions(literals, paths()) | updates(literals, paths()))
def test_lifting_numbers_the_values_as_writing_does(tree: Any) -> None:
    writer = Writer()
    writer.text(tree)
    values: dict[str, AttributeValue] = {}
    lifted = lift(tree, values)
    assert values == writer.values
    assert Writer().text(lifted) == Writer().text(tree)


@given(conditions(value_refs, paths()) | updates(value_refs, paths()))
def test_a_tree_without_literals_is_returned_as_it_is(tree: Any) -> None:
    values: dict[str, AttributeValue] = {}
    assert lift(tree, values) is tree
    assert not values


@given(updates(literals, paths()))
def test_parts_without_literals_are_shared(tree: UpdateNode) -> None:
    lifted = lift(tree, {})
    assume(lifted is not tree)
    for before, after in zip(tree.actions, lifted.actions, strict=True):
        assert after.path is before.path
        if isinstance(before, Remove):
            assert after is before


def test_the_expressions_of_a_request_share_their_values() -> None:
    values: dict[str, AttributeValue] = {}
    tree = UpdateNode((Set(A, Literal(ONE)),))
    assert lift(tree, values) == UpdateNode((Set(A, ValueRef(":v0")),))
    assert lift(Not(Comparison("<", A, Literal(TWO))), values) == Not(
        Comparison("<", A, ValueRef(":v1"))
    )
    assert lift(In(A, (Literal(ONE), A, Literal(TWO))), values) == In(
        A, (ValueRef(":v2"), A, ValueRef(":v3"))
    )
    assert values == {":v0": ONE, ":v1": TWO, ":v2": ONE, ":v3": TWO}


@pytest.mark.parametrize(
    ("make", "tree"),
    [
        (condition, Comparison("=", A, Literal(ONE))),
        (key_condition, Comparison("=", A, Literal(ONE))),
        (update, UpdateNode((Set(A, Literal(ONE)),))),
        (projection, ProjectionNode((A,))),
    ],
)
def test_equal_trees_are_compiled_once(make: Any, tree: Any) -> None:
    assert make(lift(tree, {})) is make(lift(tree, {}))


def test_a_tree_names_its_attributes_freely() -> None:
    tree = And((Comparison("=", Path(("abort",)), ValueRef(":v0")), Call("size", (A,))))
    compiled = condition(tree.operands[0])
    assert compiled.matches({"abort": ONE}, {":v0": ONE})
    with pytest.raises(ValidationException, match="not allowed to be used this way"):
        condition(tree)


def test_a_tree_is_refused_with_its_parameter() -> None:
    tree = Call("nothing", (A,))
    with pytest.raises(ValidationException, match="Invalid FilterExpression: Invalid function"):
        condition(tree, None, "FilterExpression")


def test_a_tree_may_be_no_longer_than_a_text() -> None:
    condition(Comparison("=", Path(("b" * 4092,)), A))
    with pytest.raises(ValidationException, match="expression size: 4097"):
        condition(Comparison("=", Path(("b" * 4093,)), A))
