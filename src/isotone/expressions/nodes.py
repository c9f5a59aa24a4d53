"""Expression trees (AST): the node classes, walks, the top-level attributes that a tree names, placeholders.

The parser makes trees from text, and the model makes them directly. Nodes are immutable values and
compare by content. Five rules hold for all of them.

- A path element is a `str` (an attribute's own name), a `NameRef` (a `#placeholder`, which `resolve`
  replaces) or an `int` (an index into a list).
- The key in a `MemberPath` is data. `lift` replaces it with a `ValueRef` as the last element of a `Path`, so that an
  expression for the members of a map is compiled once, not for each key.
- A `ValueRef` is a `:placeholder`. A `Literal` contains its value; only trees built by code have literals,
  and `lift` replaces them with `ValueRef`s.
- `And` and `Or` have two operands or more, in the order written.
- A tree may contain what DynamoDB refuses: `rules` checks which functions and operands are allowed where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from isotone.values.types import AttributeValue


class NameRef(msgspec.Struct, frozen=True, tag=True):
    """`#name`, to be looked up in ExpressionAttributeNames."""

    name: str


class Path(msgspec.Struct, frozen=True, tag=True):
    """A document path such as `a.#b[3]`."""

    elements: tuple[str | int | NameRef | ValueRef, ...]


class MemberPath(Path, frozen=True, tag="Path"):
    """The path to the member of a map at the top of an item: the attribute, and the key."""


class ValueRef(msgspec.Struct, frozen=True, tag=True):
    """`:name`, to be looked up in ExpressionAttributeValues."""

    name: str


class Literal(msgspec.Struct, frozen=True, tag=True):
    """A value inside the tree."""

    value: AttributeValue


class Call(msgspec.Struct, frozen=True, tag=True):
    """A function and its operands, as a condition or as an operand."""

    function: str
    operands: tuple[Operand, ...]


class Arithmetic(msgspec.Struct, frozen=True, tag=True):
    """`left + right` or `left - right`, in a SET action."""

    operator: str
    left: Operand
    right: Operand


class Truth(msgspec.Struct, frozen=True, tag=True):
    """A condition used as an operand; its value is a boolean. Only PartiQL has it."""

    condition: ConditionNode


Operand: TypeAlias = Path | ValueRef | Literal | Call | Arithmetic | Truth


class Comparison(msgspec.Struct, frozen=True, tag=True):
    """`left operator right` with one of `= <> < <= > >=`."""

    operator: str
    left: Operand
    right: Operand


class Between(msgspec.Struct, frozen=True, tag=True):
    """`operand BETWEEN low AND high`, both bounds included."""

    operand: Operand
    low: Operand
    high: Operand


class In(msgspec.Struct, frozen=True, tag=True):
    """`operand IN (choice, …)`."""

    operand: Operand
    choices: tuple[Operand, ...]


class Not(msgspec.Struct, frozen=True, tag=True):
    """`NOT operand`."""

    operand: ConditionNode


class And(msgspec.Struct, frozen=True, tag=True):
    """AND of two or more conditions."""

    operands: tuple[ConditionNode, ...]


class Or(msgspec.Struct, frozen=True, tag=True):
    """OR of two or more conditions."""

    operands: tuple[ConditionNode, ...]


ConditionNode: TypeAlias = Comparison | Between | In | Call | Not | And | Or


class Set(msgspec.Struct, frozen=True, tag=True):
    """`path = value` in the SET section."""

    path: Path
    value: Operand


class Remove(msgspec.Struct, frozen=True, tag=True):
    """A path in the REMOVE section."""

    path: Path


class Add(msgspec.Struct, frozen=True, tag=True):
    """`path value` in the ADD section."""

    path: Path
    value: Operand


class Delete(msgspec.Struct, frozen=True, tag=True):
    """`path value` in the DELETE section."""

    path: Path
    value: Operand


Action: TypeAlias = Set | Remove | Add | Delete


class UpdateNode(msgspec.Struct, frozen=True, tag=True):
    """The actions of an update expression, in written order of the sections."""

    actions: tuple[Action, ...]


class ProjectionNode(msgspec.Struct, frozen=True, tag=True):
    """The paths of a projection expression, as written."""

    paths: tuple[Path, ...]


Node: TypeAlias = ConditionNode | UpdateNode | ProjectionNode | Operand | Action

ResolvedPath: TypeAlias = tuple[str | int | ValueRef, ...]
Tree = TypeVar("Tree", bound=Node)


class References(NamedTuple):
    """The placeholders and the attribute names that a tree refers to.

    `nested` are the attributes with paths into them.
    """

    names: frozenset[str]
    values: frozenset[str]
    attributes: frozenset[str]
    nested: frozenset[str]


def references(nodes: Sequence[Node]) -> References:
    """The references of the nodes of a tree. O(nodes)."""
    paths = [node.elements for node in nodes if isinstance(node, Path)]
    named: list[Any] = [path for path in paths if type(path[0]) is str]
    return References(
        frozenset([e.name for path in paths for e in path if type(e) is NameRef]),
        frozenset([node.name for node in nodes if type(node) is ValueRef]),
        frozenset([path[0] for path in named]),
        frozenset([path[0] for path in named if path[1:]]),
    )


def walk_up(*trees: Node) -> list[Any]:
    """All nodes of trees, children before parents, in written order. O(nodes)."""
    found, pending = [], [*trees]
    while pending:
        node = pending.pop()
        found.append(node)
        get_parts = PARTS[type(node)]
        if get_parts is not None:
            pending += get_parts(node)
    found.reverse()
    return found


PARTS: Final[dict[type, Callable[[Any], tuple[Any, ...]] | None]] = {
    Path: None,
    MemberPath: None,
    ValueRef: None,
    Literal: None,
    Call: attrgetter("operands"),
    Arithmetic: attrgetter("left", "right"),
    Truth: lambda node: (node.condition,),
    Comparison: attrgetter("left", "right"),
    Between: attrgetter("operand", "low", "high"),
    In: lambda node: (node.operand, *node.choices),
    Not: lambda node: (node.operand,),
    And: attrgetter("operands"),
    Or: attrgetter("operands"),
    Set: attrgetter("path", "value"),
    Remove: lambda node: (node.path,),
    Add: attrgetter("path", "value"),
    Delete: attrgetter("path", "value"),
    UpdateNode: attrgetter("actions"),
    ProjectionNode: attrgetter("paths"),
}
"""For each node type, the direct children in written order; None if it has none."""


def resolve(tree: Tree, names: Mapping[str, str] | None) -> Tree:
    """The tree with each `#placeholder` replaced by its name; the same tree if there are no names. O(nodes).

    Placeholders without a name remain; `rules` refuses them later.
    """
    return _resolved(tree, names) if names else tree


def _resolved(node: Any, names: Mapping[str, str]) -> Any:
    if isinstance(node, NameRef):
        return names.get(node.name, node)
    if isinstance(node, tuple):
        return tuple(map(_resolved, node, repeat(names)))
    if not isinstance(node, msgspec.Struct):
        return node
    members = map(_resolved, map(getattr, repeat(node), node.__struct_fields__), repeat(names))
    return type(node)(*members)


Values: TypeAlias = dict[str, AttributeValue]


def filled(node: Any, values: Mapping[str, AttributeValue]) -> Any:
    """The tree with each `ValueRef` replaced by its value: the reverse of `lift`. O(nodes)."""
    if isinstance(node, ValueRef):
        return Literal(values[node.name])
    if isinstance(node, tuple):
        return tuple(map(filled, node, repeat(values)))
    if not isinstance(node, msgspec.Struct):
        return node
    members = map(filled, map(getattr, repeat(node), node.__struct_fields__), repeat(values))
    return type(node)(*members)


def lift(tree: Tree, values: Values) -> Tree:
    """The tree with each `Literal` replaced by a `ValueRef`, whose value is added to `values`. O(nodes).

    The expressions of one request share `values`. A lifted tree is hashable, so it can be the cache key of a compiled
    expression.

    >>> values = {}
    >>> lift(Comparison("=", Path(("name",)), Literal({"S": "Ann"})), values)
    Comparison(operator='=', left=Path(elements=('name',)), right=ValueRef(name=':v0'))
    >>> values
    {':v0': {'S': 'Ann'}}
    """
    step = _LIFT[type(tree)]
    return tree if step is None else step(tree, values)


# Every request of the model is lifted. So each step looks up the function of its parts itself instead of calling
# `lift`, and paths and placeholders, the most frequent parts, need no call.


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
    operands = node.operands
    if operands[0] is operands[-1]:  # a function with one operand
        if type(operands[0]) is Path:
            return node
        if type(operands[0]) is MemberPath:
            return Call(node.function, (_lift_key(operands[0], values),))
    lifted = _lift_all(operands, values)
    return node if lifted is node.operands else Call(node.function, lifted)


def _lift_not(node: Not, values: Values) -> Not:
    step = _LIFT[type(node.operand)]
    lifted = node.operand if step is None else step(node.operand, values)
    return node if lifted is node.operand else Not(lifted)


def _lift_truth(node: Truth, values: Values) -> Truth:
    lifted = lift(node.condition, values)
    return node if lifted is node.condition else Truth(lifted)


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
    actions = node.actions
    for action in actions:
        if type(action.path) is MemberPath:
            actions = _with_lifted_keys(actions, values)
            break
    lifted = _lift_all(actions, values)
    return node if lifted is node.actions else UpdateNode(lifted)


def _with_lifted_keys(actions: tuple[Action, ...], values: Values) -> tuple[Action, ...]:
    """The actions with lifted keys; unchanged if two would have the same path, so that they are refused later."""
    if len({action.path.elements[:2] for action in actions}) < len(actions):
        return actions
    lifted: list[Action] = []
    for action in actions:
        path = action.path
        if type(path) is MemberPath:
            path = _lift_key(path, values)
            action = Remove(path) if type(action) is Remove else type(action)(path, action.value)  # type: ignore[union-attr, call-arg] # all others have a value
        lifted.append(action)
    return tuple(lifted)


def _lift_key(path: MemberPath, values: Values) -> Path:
    attribute, key = path.elements
    name = f":v{len(values)}"
    values[name] = {"S": key}
    return Path((attribute, ValueRef(name)))


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
    MemberPath: None,
    ValueRef: None,
    Literal: _lift_literal,
    Call: _lift_call,
    Arithmetic: _lift_pair,
    Truth: _lift_truth,
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


def conjuncts(node: ConditionNode) -> Iterator[ConditionNode]:
    """The conditions that must all be true, including those in nested ANDs."""
    if isinstance(node, And):
        for operand in node.operands:
            yield from conjuncts(operand)
    else:
        yield node
