"""Trees back to text: for every tree that a text can say, `parse(render(tree)) == tree`.

Names that need a placeholder and literal values have no place in a text. `extract` moves them into
ExpressionAttributeNames and ExpressionAttributeValues, and what remains can be rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from isotone.errors import UsageError
from isotone.expressions.nodes import (
    Action,
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
    Node,
    Not,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    UpdateNode,
    ValueRef,
)
from isotone.expressions.reserved import is_reserved
from isotone.expressions.tokens import is_word
from isotone.values.types import AttributeValue

_Tree = TypeVar("_Tree", bound=Node)


def render(tree: Node) -> str:
    """The text of a tree. O(nodes). Raises `UsageError` for what no text says; see `extract`."""
    return _RENDERERS[type(tree)](tree)


@dataclass(frozen=True, slots=True)
class Extracted(Generic[_Tree]):
    """A tree that can be rendered, with the placeholders that it uses."""

    tree: _Tree
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, AttributeValue] = field(default_factory=dict)


def extract(tree: _Tree) -> Extracted[_Tree]:
    """Put placeholders (`#n0`, `:v0`, …) where a tree has literals and names that a text cannot say. O(nodes).

    The tree must not use such placeholders already.
    """
    names: dict[str, str] = {}
    values: dict[str, AttributeValue] = {}
    return Extracted(_extracted(tree, names, values), names, values)


def _extracted(node: Any, names: dict[str, str], values: dict[str, AttributeValue]) -> Any:
    if isinstance(node, Path):
        return Path(tuple(_placeholder(element, names) for element in node.elements))
    if isinstance(node, Literal):
        reference = f":v{len(values)}"
        values[reference] = node.value
        return ValueRef(reference)
    if isinstance(node, tuple):
        return tuple(_extracted(each, names, values) for each in node)
    kind: Any = type(node)
    members = _members(kind)
    if members is None:
        return node
    return kind(*[_extracted(getattr(node, name), names, values) for name in members])


@lru_cache(maxsize=256)
def _members(kind: type) -> tuple[str, ...] | None:
    """The members of a kind of node, in the order in which it takes them; None for what is no node."""
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else None


def _placeholder(element: str | int | NameRef, names: dict[str, str]) -> str | int | NameRef:
    if not isinstance(element, str) or _can_be_written(element):
        return element
    for reference, name in names.items():
        if name == element:
            return NameRef(reference)
    reference = f"#n{len(names)}"
    names[reference] = element
    return NameRef(reference)


def _can_be_written(name: str) -> bool:
    return is_word(name) and not is_reserved(name)


def _path(path: Path) -> str:
    first, *rest = path.elements
    return _name(first) + "".join(map(_further, rest))


def _further(element: str | int | NameRef) -> str:
    return f"[{element}]" if isinstance(element, int) else f".{_name(element)}"


def _name(element: str | int | NameRef) -> str:
    if isinstance(element, NameRef):
        return element.name
    if isinstance(element, str) and _can_be_written(element):
        return element
    raise UsageError(
        f"{element!r} cannot be written as a name in an expression; extract() gives it a placeholder"
    )


def _literal(literal: Literal) -> str:
    raise UsageError(
        f"{literal.value} cannot be written in an expression; extract() gives it a placeholder"
    )


def _call(call: Call) -> str:
    return f"{call.function}({_joined(call.operands)})"


def _binary(node: Comparison | Arithmetic) -> str:
    return f"{render(node.left)} {node.operator} {render(node.right)}"


def _between(node: Between) -> str:
    return f"{render(node.operand)} BETWEEN {render(node.low)} AND {render(node.high)}"


def _in(node: In) -> str:
    return f"{render(node.operand)} IN ({_joined(node.choices)})"


def _not(node: Not) -> str:
    return f"NOT {_grouped(node.operand, And | Or)}"


def _and(node: And) -> str:
    return " AND ".join(_grouped(operand, And | Or) for operand in node.operands)


def _or(node: Or) -> str:
    return " OR ".join(_grouped(operand, Or) for operand in node.operands)


def _grouped(node: Node, loose: Any) -> str:
    """A condition in parentheses where it would otherwise fall apart."""
    return f"({render(node)})" if isinstance(node, loose) else render(node)


def _joined(nodes: Sequence[Node]) -> str:
    return ", ".join(map(render, nodes))


def _update(node: UpdateNode) -> str:
    """Sections as they follow each other; a section that comes twice would not parse."""
    sections: list[str] = []
    previous: type[Action] | None = None
    for action in node.actions:
        if type(action) is previous:
            sections[-1] += f", {render(action)}"
        else:
            sections.append(f"{_KEYWORDS[type(action)]} {render(action)}")
        previous = type(action)
    return " ".join(sections)


def _projection(node: ProjectionNode) -> str:
    return _joined(node.paths)


_KEYWORDS: Final[dict[type, str]] = {Set: "SET", Remove: "REMOVE", Add: "ADD", Delete: "DELETE"}
_RENDERERS: Final[dict[type, Callable[[Any], str]]] = {
    Path: _path,
    ValueRef: lambda node: node.name,
    Literal: _literal,
    Call: _call,
    Arithmetic: _binary,
    Comparison: _binary,
    Between: _between,
    In: _in,
    Not: _not,
    And: _and,
    Or: _or,
    Set: lambda node: f"{render(node.path)} = {render(node.value)}",
    Remove: lambda node: render(node.path),
    Add: lambda node: f"{render(node.path)} {render(node.value)}",
    Delete: lambda node: f"{render(node.path)} {render(node.value)}",
    UpdateNode: _update,
    ProjectionNode: _projection,
}
