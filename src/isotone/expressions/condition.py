"""Evaluates ConditionExpression and FilterExpression: compiles a tree to a function of an item and the values.

A comparison with a missing attribute is false, except `<>`, which is true; `NOT` inverts either. An item
that does not exist counts as an item without attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeAlias

from isotone.expressions.expression import (
    COMPILED,
    Expression,
    NameMap,
    unchecked,
)
from isotone.expressions.messages import HOW_LONG, TOO_LONG
from isotone.expressions.nodes import (
    And,
    Between,
    Call,
    Comparison,
    ConditionNode,
    In,
    Literal,
    Node,
    Not,
    Operand,
    Or,
    Path,
    Truth,
    ValueRef,
)
from isotone.expressions.operands import (
    DEEP_TYPES,
    ORDERINGS,
    Evaluate,
    Relation,
    ValueMap,
    begins_with,
    compile_operand,
    contains,
    equal,
    less_or_equal,
    searching_often,
)
from isotone.expressions.parser import parse_condition
from isotone.values.types import AttributeValue, Item

Matches: TypeAlias = Callable[[Item, ValueMap], bool]

_FEW: Final = 8  # operands of AND or OR; up to so many, evaluating a duplicate costs little
_LONG_IN: Final = 8  # from this many values on, a look-up table is worth building for each request


class CompiledCondition(Expression):
    """A condition or filter that can be applied to any item.

    `matches(item, values)` returns whether it is true. It evaluates only the operands that it needs.
    """

    PARAMETER: ClassVar[str] = "ConditionExpression"
    TOO_LONG: ClassVar[str] = TOO_LONG + HOW_LONG

    __slots__ = ("_tree", "has_long_in", "matches")

    @staticmethod
    def parse(text: str) -> ConditionNode:
        return parse_condition(text)

    def _compile(self, tree: ConditionNode, nodes: list[Node]) -> None:
        sound = self._gather(nodes)
        self.matches: Matches = _compile(tree) if sound else unchecked
        if self.searches > 1:
            self.matches = searching_often(self.matches)
        long = any(isinstance(node, In) and len(node.choices) >= _LONG_IN for node in nodes)
        self.has_long_in: bool = sound and long
        self._tree = tree if self.has_long_in else None

    def compiled_with(self, values: ValueMap) -> Matches:
        """The condition with a look-up table for each long IN, for the values of one request. O(nodes)."""
        if self._tree is None:
            return self.matches
        matches = _compile(_with_constants(self._tree, values))
        return searching_often(matches) if self.searches > 1 else matches


def condition(
    source: str | ConditionNode,
    names: NameMap | None = None,
    parameter: str = CompiledCondition.PARAMETER,
) -> CompiledCondition:
    """The condition of a text or a lifted tree. O(length) the first time, then cached."""
    compiled: CompiledCondition = COMPILED[
        CompiledCondition, source, tuple(names.items()) if names else (), parameter
    ]
    return compiled


def _with_constants(node: Any, values: ValueMap) -> Any:
    """The tree in which the choices of each IN are values instead of placeholders."""
    if isinstance(node, In):
        choices = tuple(
            Literal(values[choice.name]) if isinstance(choice, ValueRef) else choice
            for choice in node.choices
        )
        return In(node.operand, choices)
    if isinstance(node, Not):
        return Not(_with_constants(node.operand, values))
    if isinstance(node, (And, Or)):
        return type(node)(tuple(_with_constants(each, values) for each in node.operands))
    return node


def _compile(node: ConditionNode) -> Matches:
    return _COMPILERS[type(node)](node)


def _operand(node: Operand) -> Evaluate:
    if not isinstance(node, Truth):
        return compile_operand(node)
    matches = _compile(node.condition)
    return lambda item, values: {"BOOL": matches(item, values)}


def _comparison(node: Comparison) -> Matches:
    relation = _RELATIONS[node.operator]
    if isinstance(node.left, Path) and isinstance(node.right, ValueRef):
        matches = _attribute_related(node.left, node.right.name, relation)
    else:
        matches = _related(_operand(node.left), _operand(node.right), relation)
    if node.operator == "<>":  # also true if an operand has no value
        return lambda item, values: not matches(item, values)
    return matches


def _attribute_related(path: Path, reference: str, relation: Relation) -> Matches:
    """An attribute and a value of the request: what most conditions compare, so its operands take no calls."""
    name: Any
    name, *inner = path.elements
    if inner:
        return _related(_operand(path), _operand(ValueRef(reference)), relation)

    def matches(item: Item, values: ValueMap) -> bool:
        value = item.get(name)
        return value is not None and relation(value, values[reference])

    return matches


def _related(left: Evaluate, right: Evaluate, relation: Relation) -> Matches:
    def matches(item: Item, values: ValueMap) -> bool:
        one = left(item, values)
        if one is None:
            return False
        two = right(item, values)
        return two is not None and relation(one, two)

    return matches


def _between(node: Between) -> Matches:
    operand = _operand(node.operand)
    above = _related(_operand(node.low), operand, less_or_equal)
    below = _related(operand, _operand(node.high), less_or_equal)
    return lambda item, values: above(item, values) and below(item, values)


def _in(node: In) -> Matches:
    operand = _operand(node.operand)
    constants = [choice.value for choice in node.choices if isinstance(choice, Literal)]
    if len(constants) == len(node.choices):
        return _in_constants(operand, constants)
    choices = [_operand(choice) for choice in node.choices]

    def matches(item: Item, values: ValueMap) -> bool:
        value = operand(item, values)
        if value is None:
            return False
        others = (choice(item, values) for choice in choices)
        return any(other is not None and equal(value, other) for other in others)

    return matches


def _in_constants(operand: Evaluate, constants: list[AttributeValue]) -> Matches:
    """Equality with one of many constants. A scalar takes one look-up, since its normal form is unique."""
    scalars = {
        (code, content)
        for constant in constants
        for code, content in constant.items()
        if code not in DEEP_TYPES
    }
    others = [constant for constant in constants if not DEEP_TYPES.isdisjoint(constant)]

    def matches(item: Item, values: ValueMap) -> bool:
        value = operand(item, values)
        if value is None:
            return False
        ((code, content),) = value.items()
        if code in DEEP_TYPES:
            return any(equal(value, other) for other in others)
        return (code, content) in scalars

    return matches


def _call(node: Call) -> Matches:
    return _FUNCTIONS[node.function](*node.operands)


def _attribute_exists(path: Path) -> Matches:
    name: Any
    name, *inner = path.elements
    if not inner and type(name) is str:
        return lambda item, values: name in item
    find = _operand(path)
    return lambda item, values: find(item, values) is not None


def _attribute_not_exists(path: Path) -> Matches:
    name: Any
    name, *inner = path.elements
    if not inner and type(name) is str:
        return lambda item, values: name not in item
    find = _operand(path)
    return lambda item, values: find(item, values) is None


def _has_type(value: dict[str, Any], name: dict[str, Any]) -> bool:
    return name.get("S") in value


def _function(relation: Relation) -> Callable[..., Matches]:
    return lambda first, second: _related(_operand(first), _operand(second), relation)


def _not(node: Not) -> Matches:
    if isinstance(node.operand, Not):
        return _compile(node.operand.operand)
    matches = _compile(node.operand)
    return lambda item, values: not matches(item, values)


def _distinct(operands: tuple[ConditionNode, ...]) -> tuple[ConditionNode, ...]:
    """The operands without duplicates, each at its first place. Trees with literals are not hashable, and keep all."""
    try:
        return tuple(dict.fromkeys(operands))
    except TypeError:
        return operands


def _and(node: And) -> Matches:
    count = len(node.operands)
    if count == 2:
        one, two = map(_compile, node.operands)
        return lambda item, values: one(item, values) and two(item, values)
    operands = node.operands if count <= _FEW else _distinct(node.operands)
    parts = [_compile(operand) for operand in operands]

    def matches(item: Item, values: ValueMap) -> bool:
        for part in parts:  # noqa: SIM110 - `all` would cost a generator
            if not part(item, values):
                return False
        return True

    return matches


def _or(node: Or) -> Matches:
    count = len(node.operands)
    if count == 2:
        one, two = map(_compile, node.operands)
        return lambda item, values: one(item, values) or two(item, values)
    operands = node.operands if count <= _FEW else _distinct(node.operands)
    parts = [_compile(operand) for operand in operands]

    def matches(item: Item, values: ValueMap) -> bool:
        for part in parts:  # noqa: SIM110 - `any` would cost a generator
            if part(item, values):
                return True
        return False

    return matches


_RELATIONS: Final[dict[str, Relation]] = {"=": equal, "<>": equal, **ORDERINGS}
_FUNCTIONS: Final[dict[str, Callable[..., Matches]]] = {
    "attribute_exists": _attribute_exists,
    "attribute_not_exists": _attribute_not_exists,
    "attribute_type": _function(_has_type),
    "begins_with": _function(begins_with),
    "contains": _function(contains),
}
_COMPILERS: Final[dict[type, Callable[[Any], Matches]]] = {
    Comparison: _comparison,
    Between: _between,
    In: _in,
    Call: _call,
    Not: _not,
    And: _and,
    Or: _or,
}
