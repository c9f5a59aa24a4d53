"""The trees that expressions parse into, and that code may build without any text.

Nodes are plain values: equal when they say the same, never changed after they are made. Four rules
hold in all of them.

- A path keeps its names as written: a `str` is an attribute's own name, a `NameRef` is a `#placeholder`
  that `names.resolve` replaces, an `int` is an index into a list.
- A `ValueRef` is a `:placeholder`; a `Literal` carries its value, where a tree was built without text.
- `And` and `Or` hold two operands or more, in the order written.
- What the grammar allows is not yet what DynamoDB accepts: `rules` says which operands an operator takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from isotone.values.types import AttributeValue


class NameRef(msgspec.Struct, frozen=True):
    """`#name`, to be looked up in ExpressionAttributeNames."""

    name: str


class Path(msgspec.Struct, frozen=True):
    """A document path such as `a.#b[3]`."""

    elements: tuple[str | int | NameRef, ...]


class ValueRef(msgspec.Struct, frozen=True):
    """`:name`, to be looked up in ExpressionAttributeValues."""

    name: str


class Literal(msgspec.Struct, frozen=True):
    """A value that the tree carries itself; it has no place in a text."""

    value: AttributeValue


class Call(msgspec.Struct, frozen=True):
    """A function and its operands: a condition by itself, or an operand."""

    function: str
    operands: tuple[Operand, ...]


class Arithmetic(msgspec.Struct, frozen=True):
    """`left + right` or `left - right`, in a SET action."""

    operator: str
    left: Operand
    right: Operand


Operand: TypeAlias = Path | ValueRef | Literal | Call | Arithmetic


class Comparison(msgspec.Struct, frozen=True):
    """`left operator right` with one of `= <> < <= > >=`."""

    operator: str
    left: Operand
    right: Operand


class Between(msgspec.Struct, frozen=True):
    """`operand BETWEEN low AND high`, both bounds included."""

    operand: Operand
    low: Operand
    high: Operand


class In(msgspec.Struct, frozen=True):
    """`operand IN (choice, …)`."""

    operand: Operand
    choices: tuple[Operand, ...]


class Not(msgspec.Struct, frozen=True):
    """`NOT operand`."""

    operand: ConditionNode


class And(msgspec.Struct, frozen=True):
    """All of two or more conditions."""

    operands: tuple[ConditionNode, ...]


class Or(msgspec.Struct, frozen=True):
    """Any of two or more conditions."""

    operands: tuple[ConditionNode, ...]


ConditionNode: TypeAlias = Comparison | Between | In | Call | Not | And | Or


class Set(msgspec.Struct, frozen=True):
    """`path = value` in the SET section."""

    path: Path
    value: Operand


class Remove(msgspec.Struct, frozen=True):
    """A path in the REMOVE section."""

    path: Path


class Add(msgspec.Struct, frozen=True):
    """`path value` in the ADD section."""

    path: Path
    value: Operand


class Delete(msgspec.Struct, frozen=True):
    """`path value` in the DELETE section."""

    path: Path
    value: Operand


Action: TypeAlias = Set | Remove | Add | Delete


class UpdateNode(msgspec.Struct, frozen=True):
    """The actions of an update expression, section after section as written."""

    actions: tuple[Action, ...]


class ProjectionNode(msgspec.Struct, frozen=True):
    """The paths of a projection expression, as written."""

    paths: tuple[Path, ...]


Node: TypeAlias = ConditionNode | UpdateNode | ProjectionNode | Operand | Action

Tree = TypeVar("Tree", bound=Node)
Values: TypeAlias = dict[str, AttributeValue]


def lift(tree: Tree, values: Values) -> Tree:
    """The tree with a `ValueRef` in the place of each `Literal`; the values are added to `values`. O(nodes).

    All expressions of one request share `values`. A lifted tree can be hashed, so what is compiled from
    it can be cached.

    >>> values = {}
    >>> lift(Comparison("=", Path(("name",)), Literal({"S": "Ann"})), values)
    Comparison(operator='=', left=Path(elements=('name',)), right=ValueRef(name=':v0'))
    >>> values
    {':v0': {'S': 'Ann'}}
    """
    step = _LIFT[type(tree)]
    return tree if step is None else step(tree, values)


# Lifting is on the way of every request. So each step tests its parts itself, instead of calling `lift`
# for each of them: paths and placeholders, the most frequent parts, cost no call.


def _lift_literal(node: Literal, values: Values) -> ValueRef:
    name = f":v{len(values)}"
    values[name] = node.value
    return ValueRef(name)


def _lift_pair(node: Comparison | Arithmetic, values: Values) -> Comparison | Arithmetic:
    left, right = node.left, node.right
    if (step := _LIFT[type(left)]) is not None:
        left = step(left, values)
    if (step := _LIFT[type(right)]) is not None:
        right = step(right, values)
    if left is node.left and right is node.right:
        return node
    return type(node)(node.operator, left, right)


def _lift_between(node: Between, values: Values) -> Between:
    parts = (node.operand, node.low, node.high)
    lifted = _lift_all(parts, values)
    return node if lifted is parts else Between(*lifted)


def _lift_in(node: In, values: Values) -> In:
    parts = (node.operand, *node.choices)
    lifted = _lift_all(parts, values)
    return node if lifted is parts else In(lifted[0], lifted[1:])


def _lift_call(node: Call, values: Values) -> Call:
    lifted = _lift_all(node.operands, values)
    return node if lifted is node.operands else Call(node.function, lifted)


def _lift_not(node: Not, values: Values) -> Not:
    lifted = lift(node.operand, values)
    return node if lifted is node.operand else Not(lifted)


def _lift_junction(node: And | Or, values: Values) -> And | Or:
    lifted = _lift_all(node.operands, values)
    return node if lifted is node.operands else type(node)(lifted)


def _lift_action(node: Set | Add | Delete, values: Values) -> Set | Add | Delete:
    step = _LIFT[type(node.value)]
    if step is None:
        return node
    lifted = step(node.value, values)
    return node if lifted is node.value else type(node)(node.path, lifted)


def _lift_update(node: UpdateNode, values: Values) -> UpdateNode:
    lifted = _lift_all(node.actions, values)
    return node if lifted is node.actions else UpdateNode(lifted)


def _lift_all(parts: tuple[Any, ...], values: Values) -> tuple[Any, ...]:
    lifted: list[Any] = [*parts]
    changed = False
    for place, part in enumerate(parts):
        if (step := _LIFT[type(part)]) is not None:
            lifted[place] = step(part, values)
            changed = changed or lifted[place] is not part
    return tuple(lifted) if changed else parts


_LIFT: Final[dict[type, Callable[[Any, Values], Any] | None]] = {
    Path: None,
    ValueRef: None,
    Literal: _lift_literal,
    Call: _lift_call,
    Arithmetic: _lift_pair,
    Comparison: _lift_pair,
    Between: _lift_between,
    In: _lift_in,
    Not: _lift_not,
    And: _lift_junction,
    Or: _lift_junction,
    Set: _lift_action,
    Remove: None,
    Add: _lift_action,
    Delete: _lift_action,
    UpdateNode: _lift_update,
    ProjectionNode: None,
}
