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

from typing import TypeAlias

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
