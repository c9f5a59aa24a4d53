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

from dataclasses import dataclass
from typing import TypeAlias

from isotone.values.types import AttributeValue


@dataclass(frozen=True, slots=True)
class NameRef:
    """`#name`, to be looked up in ExpressionAttributeNames."""

    name: str


@dataclass(frozen=True, slots=True)
class Path:
    """A document path such as `a.#b[3]`."""

    elements: tuple[str | int | NameRef, ...]


@dataclass(frozen=True, slots=True)
class ValueRef:
    """`:name`, to be looked up in ExpressionAttributeValues."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that the tree carries itself; it has no place in a text."""

    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its operands: a condition by itself, or an operand."""

    function: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left + right` or `left - right`, in a SET action."""

    operator: str
    left: Operand
    right: Operand


Operand: TypeAlias = Path | ValueRef | Literal | Call | Arithmetic


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right` with one of `= <> < <= > >=`."""

    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Between:
    """`operand BETWEEN low AND high`, both bounds included."""

    operand: Operand
    low: Operand
    high: Operand


@dataclass(frozen=True, slots=True)
class In:
    """`operand IN (choice, …)`."""

    operand: Operand
    choices: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """`NOT operand`."""

    operand: ConditionNode


@dataclass(frozen=True, slots=True)
class And:
    """All of two or more conditions."""

    operands: tuple[ConditionNode, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of two or more conditions."""

    operands: tuple[ConditionNode, ...]


ConditionNode: TypeAlias = Comparison | Between | In | Call | Not | And | Or


@dataclass(frozen=True, slots=True)
class Set:
    """`path = value` in the SET section."""

    path: Path
    value: Operand


@dataclass(frozen=True, slots=True)
class Remove:
    """A path in the REMOVE section."""

    path: Path


@dataclass(frozen=True, slots=True)
class Add:
    """`path value` in the ADD section."""

    path: Path
    value: Operand


@dataclass(frozen=True, slots=True)
class Delete:
    """`path value` in the DELETE section."""

    path: Path
    value: Operand


Action: TypeAlias = Set | Remove | Add | Delete


@dataclass(frozen=True, slots=True)
class UpdateNode:
    """The actions of an update expression, section after section as written."""

    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class ProjectionNode:
    """The paths of a projection expression, as written."""

    paths: tuple[Path, ...]


Node: TypeAlias = ConditionNode | UpdateNode | ProjectionNode | Operand | Action
