"""Hypothesis strategies for trees and values of the expression language."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

from isotone.expressions.nodes import (
    Add,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Delete,
    In,
    Literal,
    NameRef,
    Not,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    UpdateNode,
    ValueRef,
)

COMPARATORS = ["=", "<>", "<", "<=", ">", ">="]
NAMES = ["a", "b", "c", "Zulu_9"]

numbers = st.sampled_from(["0", "1", "-1", "2.5", "10", "9", "-10.25", "1" + "0" * 30])
scalars = st.one_of(
    st.builds(lambda text: {"S": text}, st.text("abé😀\uffff", max_size=3)),
    st.builds(lambda text: {"N": text}, numbers),
    st.builds(lambda data: {"B": b64encode(data).decode()}, st.binary(max_size=3)),
    st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    st.just({"NULL": True}),
)
sets = st.one_of(
    st.builds(lambda m: {"SS": m}, st.lists(st.sampled_from("abc"), min_size=1, unique=True)),
    st.builds(lambda m: {"NS": m}, st.lists(numbers, min_size=1, unique=True)),
    st.builds(
        lambda m: {"BS": m},
        st.lists(st.sampled_from(["", "YQ==", "Yg=="]), min_size=1, unique=True),
    ),
)
attribute_values = st.recursive(
    scalars | sets,
    lambda inner: st.one_of(
        st.builds(lambda e: {"L": e}, st.lists(inner, max_size=3)),
        st.builds(lambda m: {"M": m}, st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)),
    ),
    max_leaves=6,
)
items = st.dictionaries(st.sampled_from(NAMES), attribute_values, max_size=4)

# Items whose attributes have types that one may count on: number, list, map and set.
_number = st.builds(lambda text: {"N": text}, numbers)
_strings = st.lists(st.sampled_from("abc"), min_size=1, unique=True).map(lambda m: {"SS": m})
_list = st.lists(_number, max_size=4).map(lambda e: {"L": e})
_shape = {"a": _number, "b": _list, "Zulu_9": _strings}
_map = st.fixed_dictionaries({}, optional=_shape).map(lambda m: {"M": m})
documents = st.fixed_dictionaries({**_shape, "c": _map}) | st.fixed_dictionaries(
    {}, optional={**_shape, "c": _map}
)

names = st.sampled_from(NAMES)
indexes = st.integers(0, 3)


def paths(with_references: bool = False) -> st.SearchStrategy[Path]:
    name: st.SearchStrategy[Any] = names
    if with_references:
        name = names | st.sampled_from(["#n", "#_1"]).map(NameRef)
    further = st.lists(name | indexes, max_size=2)
    return st.builds(lambda first, rest: Path((first, *rest)), name, further)


value_refs = st.sampled_from([":v", ":w", ":9_x"]).map(ValueRef)
literals = attribute_values.map(Literal)
number_literals = _number.map(Literal)
list_literals = _list.map(Literal)
set_literals = _strings.map(Literal)


def operands(
    leaves: st.SearchStrategy[Any], path: st.SearchStrategy[Path]
) -> st.SearchStrategy[Any]:
    return st.one_of(path, leaves, st.builds(lambda p: Call("size", (p,)), path))


def conditions(
    leaves: st.SearchStrategy[Any], path: st.SearchStrategy[Path]
) -> st.SearchStrategy[Any]:
    """Condition trees as the grammar has them, with `leaves` where values stand."""
    operand = operands(leaves, path)
    several = st.lists(operand, min_size=1, max_size=3).map(tuple)
    simple = st.one_of(
        st.builds(Comparison, st.sampled_from(COMPARATORS), operand, operand),
        st.builds(Between, operand, operand, operand),
        st.builds(In, operand, several),
        st.builds(
            lambda function, p: Call(function, (p,)),
            st.sampled_from(["attribute_exists", "attribute_not_exists"]),
            path,
        ),
        st.builds(
            lambda function, p, other: Call(function, (p, other)),
            st.sampled_from(["begins_with", "contains"]),
            operand,
            operand,
        ),
    )
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            inner.map(Not),
            st.lists(inner, min_size=2, max_size=3).map(tuple).map(And),
            st.lists(inner, min_size=2, max_size=3).map(tuple).map(Or),
        ),
        max_leaves=6,
    )


def set_values(
    leaves: st.SearchStrategy[Any], path: st.SearchStrategy[Path]
) -> st.SearchStrategy[Any]:
    leaf = path | leaves
    default = st.builds(lambda p, other: Call("if_not_exists", (p, other)), path, leaf)
    operand = leaf | default
    return st.one_of(
        operand,
        st.builds(Arithmetic, st.sampled_from("+-"), operand, operand),
        st.builds(lambda x, y: Call("list_append", (x, y)), operand, operand),
    )


def updates(
    leaves: st.SearchStrategy[Any], path: st.SearchStrategy[Path]
) -> st.SearchStrategy[UpdateNode]:
    """Update trees as the grammar has them; their paths may overlap."""
    return sections(
        st.builds(Set, path, set_values(leaves, path)),
        st.builds(Remove, path),
        st.builds(Add, path, leaves),
        st.builds(Delete, path, leaves),
    )


def sections(*actions: st.SearchStrategy[Any]) -> st.SearchStrategy[UpdateNode]:
    """Some of each kind of action, in this order or in the reverse."""
    several = [st.lists(action, max_size=2) for action in actions]
    ordered = st.tuples(*several) | st.tuples(*several[::-1])
    return ordered.map(
        lambda found: UpdateNode(tuple(action for section in found for action in section))
    ).filter(lambda update: bool(update.actions))


def _collide(one: Path, other: Path) -> bool:
    """Whether one of two paths holds the other, or they differ in the kind of a value on the way."""
    for left, right in zip(one.elements, other.elements, strict=False):
        if left != right:
            return type(left) is not type(right)
    return True


def apart(update: UpdateNode) -> UpdateNode:
    """An update without the actions whose paths the service refuses beside the paths of others."""
    kept: list[Any] = []
    for action in update.actions:
        if not any(_collide(action.path, other.path) for other in kept):
            kept.append(action)
    return UpdateNode(tuple(kept))


def _sampled(*found: tuple[str | int, ...]) -> st.SearchStrategy[Path]:
    return st.sampled_from(found).map(Path)


def fitting_updates() -> st.SearchStrategy[UpdateNode]:
    """Updates that `documents` have what it takes for, more often than not."""
    number = _sampled(("a",), ("c", "a"), ("b", 0), ("b", 1))
    numeric = number | number_literals
    listed = _sampled(("b",), ("c", "b")) | list_literals
    strings = _sampled(("Zulu_9",), ("c", "Zulu_9"))
    target = _sampled(
        ("d",), ("c", "d"), ("b", 2), ("b", 3), ("b", 7), ("c", "b", 1), ("c", "b", 9)
    )
    value = st.one_of(
        numeric,
        st.builds(Arithmetic, st.sampled_from("+-"), numeric, numeric),
        st.builds(lambda p, other: Call("if_not_exists", (p, other)), target, numeric),
        st.builds(lambda x, y: Call("list_append", (x, y)), listed, listed),
    )
    return sections(
        st.builds(Set, target | number, value),
        st.builds(Remove, target | strings | number),
        st.builds(Add, number, number_literals) | st.builds(Add, strings, set_literals),
        st.builds(Delete, strings, set_literals),
    ).map(apart)


def projections(path: st.SearchStrategy[Path]) -> st.SearchStrategy[ProjectionNode]:
    return st.lists(path, min_size=1, max_size=4).map(lambda found: ProjectionNode(tuple(found)))
