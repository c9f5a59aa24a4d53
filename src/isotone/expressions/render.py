"""Renders trees as text again: `parse(render(tree)) == tree` for every tree that a text can express.

A text cannot contain literal values, nor some attribute names. A `Writer` writes placeholders for them (`#n0`, `:v0`,
…) and collects the names and values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

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
    MemberPath,
    NameRef,
    Node,
    Not,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    Truth,
    UpdateNode,
    ValueRef,
)
from isotone.expressions.tokenizer import is_reserved, is_word
from isotone.values.cache import Cache
from isotone.values.types import AttributeValue


def render(tree: Node) -> str:
    """The text of a tree. O(nodes). Raises `UsageError` if it needs placeholders; see `Writer`."""
    writer = Writer()
    text = writer.text(tree)
    for replaced in (*writer.names.values(), *writer.values.values()):
        raise UsageError(
            f"{replaced!r} cannot be written in an expression without a placeholder; use a Writer"
        )
    return text


class Writer:
    """Writes the expressions of one request, which share their placeholders.

    `names` and `values` become its ExpressionAttributeNames and ExpressionAttributeValues. The trees must
    not already contain placeholders of these names.

    >>> writer = Writer()
    >>> writer.text(Comparison("=", Path(("name",)), Literal({"S": "Ann"})))
    '#n0 = :v0'
    >>> writer.names, writer.values
    ({'#n0': 'name'}, {':v0': {'S': 'Ann'}})
    """

    __slots__ = ("_references", "names", "values")

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, AttributeValue] = {}
        self._references: dict[str, str] = {}

    def text(self, tree: Node) -> str:
        """The text of a tree. O(nodes). Raises `UsageError` for nodes that only PartiQL has."""
        return _WRITE[type(tree)](self, tree)

    def _placeholder(self, name: str) -> str:
        """The placeholder for a name that cannot be written."""
        reference = self._references.get(name)
        if reference is None:
            self._references[name] = reference = f"#n{len(self.names)}"
            self.names[reference] = name
        return reference

    def _literal(self, literal: Literal) -> str:
        reference = f":v{len(self.values)}"
        self.values[reference] = literal.value
        return reference

    def _path(self, path: Path) -> str:
        text = self._element(path.elements[0])
        for element in path.elements[1:]:
            text += f"[{element}]" if isinstance(element, int) else f".{self._element(element)}"
        return text

    def _element(self, element: str | int | NameRef | ValueRef) -> str:
        if isinstance(element, NameRef | ValueRef):
            return element.name
        name = str(element)
        return name if _can_be_written[name] else self._placeholder(name)

    def _call(self, call: Call) -> str:
        return f"{call.function}({self._joined(call.operands)})"

    def _binary(self, node: Comparison | Arithmetic) -> str:
        return f"{self.text(node.left)} {node.operator} {self.text(node.right)}"

    def _truth(self, node: Truth) -> str:
        raise UsageError("only a statement compares whether a condition holds with a value")

    def _between(self, node: Between) -> str:
        return f"{self.text(node.operand)} BETWEEN {self.text(node.low)} AND {self.text(node.high)}"

    def _in(self, node: In) -> str:
        return f"{self.text(node.operand)} IN ({self._joined(node.choices)})"

    def _not(self, node: Not) -> str:
        return f"NOT {self._grouped(node.operand, And | Or)}"

    def _and(self, node: And) -> str:
        return " AND ".join([self._grouped(operand, And | Or) for operand in node.operands])

    def _or(self, node: Or) -> str:
        return " OR ".join([self._grouped(operand, Or) for operand in node.operands])

    def _grouped(self, node: Node, loose: Any) -> str:
        """A condition, in parentheses if its type binds less tightly."""
        return f"({self.text(node)})" if isinstance(node, loose) else self.text(node)

    def _joined(self, nodes: Sequence[Node]) -> str:
        return ", ".join([self.text(node) for node in nodes])

    def _set(self, node: Set) -> str:
        return f"{self._path(node.path)} = {self.text(node.value)}"

    def _remove(self, node: Remove) -> str:
        return self._path(node.path)

    def _change(self, node: Add | Delete) -> str:
        return f"{self._path(node.path)} {self.text(node.value)}"

    def _update(self, node: UpdateNode) -> str:
        """The sections in the order of the actions. A text with a repeated section would not parse."""
        text, previous = "", None
        for action in node.actions:
            kind = type(action)
            before = ", " if kind is previous else f"{' ' if text else ''}{_KEYWORDS[kind]} "
            text += before + self.text(action)
            previous = kind
        return text

    def _projection(self, node: ProjectionNode) -> str:
        return self._joined(node.paths)


class PlaceholderWriter(Writer):
    """A `Writer` that uses a placeholder for every name."""

    __slots__ = ()

    def _element(self, element: str | int | NameRef | ValueRef) -> str:
        if isinstance(element, NameRef | ValueRef):
            return element.name
        return self._placeholder(str(element))


_can_be_written: Final[Cache[str, bool]] = Cache(
    lambda name, _: is_word(name) and not is_reserved(name), 1 << 20, entry=150, character=1
)


_KEYWORDS: Final[dict[type[Action], str]] = {
    Set: "SET",
    Remove: "REMOVE",
    Add: "ADD",
    Delete: "DELETE",
}
_WRITE: Final[dict[type, Callable[[Writer, Any], str]]] = {
    Path: Writer._path,
    MemberPath: Writer._path,
    ValueRef: lambda writer, node: node.name,
    Literal: Writer._literal,
    Call: Writer._call,
    Arithmetic: Writer._binary,
    Truth: Writer._truth,
    Comparison: Writer._binary,
    Between: Writer._between,
    In: Writer._in,
    Not: Writer._not,
    And: Writer._and,
    Or: Writer._or,
    Set: Writer._set,
    Remove: Writer._remove,
    Add: Writer._change,
    Delete: Writer._change,
    UpdateNode: Writer._update,
    ProjectionNode: Writer._projection,
}
