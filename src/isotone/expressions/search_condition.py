"""SearchConditionExpression: a conjunction of `attribute = value`, each on a different attribute of a search schema."""

from __future__ import annotations

from typing import ClassVar, Final

from isotone.expressions import messages
from isotone.expressions.expression import COMPILED, Expression, NameMap
from isotone.expressions.messages import RefusalMessage
from isotone.expressions.nodes import (
    Comparison,
    ConditionNode,
    Literal,
    Node,
    Not,
    Or,
    Path,
    ValueRef,
    conjuncts,
)
from isotone.expressions.operands import ValueMap
from isotone.expressions.parser import parse_condition
from isotone.expressions.rules import Constant, constant
from isotone.values.types import AttributeValue


class SearchCondition(Expression):
    """A search condition; `resolve` applies it to values."""

    PARAMETER: ClassVar[str] = "SearchConditionExpression"

    __slots__ = ("_equalities",)

    @staticmethod
    def parse(text: str) -> ConditionNode:
        return parse_condition(text)

    def _compile(self, tree: ConditionNode, nodes: list[Node]) -> None:
        self._gather(nodes)
        self._equalities: dict[str, Constant] = {}
        for node in conjuncts(tree):
            attribute, value = _equality(node)
            if attribute in self._equalities:
                raise RefusalMessage(messages.SEARCH_TWICE)
            self._equalities[attribute] = value

    def resolve(self, values: ValueMap) -> dict[str, AttributeValue]:
        """The value that each attribute must have."""
        return {attribute: get(values) for attribute, get in self._equalities.items()}


def search_condition(source: str | ConditionNode, names: NameMap | None = None) -> SearchCondition:
    """The search condition of a text or a lifted tree. O(length) the first time, then cached."""
    compiled: SearchCondition = COMPILED[
        SearchCondition, source, tuple(names.items()) if names else (), SearchCondition.PARAMETER
    ]
    return compiled


def _equality(node: ConditionNode) -> tuple[str, Constant]:
    if type(node) in _OPERATORS:
        raise RefusalMessage(messages.SEARCH_OPERATOR, operator=_OPERATORS[type(node)])
    if isinstance(node, Comparison) and node.operator == "=":
        for path, value in ((node.left, node.right), (node.right, node.left)):
            if isinstance(path, Path) and isinstance(value, ValueRef | Literal):
                return _attribute(path), _constant(value)
    raise RefusalMessage(messages.SEARCH_COMPARATOR)


def _attribute(path: Path) -> str:
    attribute, *rest = map(str, path.elements)
    if rest:
        raise RefusalMessage(messages.SEARCH_NESTED_PATH)
    return attribute


def _constant(operand: ValueRef | Literal) -> Constant:
    value = constant(operand)
    assert value is not None
    return value


_OPERATORS: Final[dict[type, str]] = {Or: "OR", Not: "NOT"}
