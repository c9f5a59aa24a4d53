"""The rules of expressions beyond the grammar: refused operands, function arguments, and reserved words as names.

DynamoDB first checks the words of an expression in written order, then each operator and function, innermost first, and
last the number of operators. The second step needs the values, so it returns a list of checks: functions of
ExpressionAttributeValues that raise a `RefusalMessage` or return nothing. `path_tree` refuses paths that overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Final, TypeAlias

import msgspec

from isotone.expressions import messages
from isotone.expressions.messages import RefusalMessage, path_text
from isotone.expressions.nodes import (
    PARTS,
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
    Operand,
    Or,
    Path,
    ResolvedPath,
    Set,
    Truth,
    ValueRef,
)
from isotone.expressions.operands import ORDERINGS, ValueMap, less, type_of
from isotone.expressions.tokenizer import is_reserved
from isotone.limits import EXPRESSION_OPERATORS, IN_OPERANDS, LIST_INDEX, PATH_DEPTH
from isotone.values.types import SORT_KEYS, TYPE_CODES, AttributeValue

OperandCheck: TypeAlias = Callable[[ValueMap], None]
Constant: TypeAlias = Callable[[ValueMap], AttributeValue]
Refuse: TypeAlias = Callable[[str], RefusalMessage]
Checks: TypeAlias = list[OperandCheck]
Rule: TypeAlias = Callable[[Any, Checks], None]

# Functions

# The places in which a function may be used.
CONDITION: Final = "condition"  # alone, as a condition
OPERAND: Final = "operand"  # as an operand in a condition
VALUE: Final = "value"  # as the whole value of a SET action
INNER: Final = "inner"  # as an operand within the value of a SET action

IN_UPDATES: Final = frozenset({VALUE, INNER})

# The types that an operand may have if the request contains its value; None allows any.
_TEXTS: Final = frozenset({"S", "B"})
_LISTS: Final = frozenset({"L"})
_SIZED: Final = frozenset({"S", "B", "SS", "NS", "BS", "L", "M"})
_ORDERED: Final = frozenset(SORT_KEYS)
_NUMBERS: Final = frozenset({"N"})
_SETS: Final = frozenset({"SS", "NS", "BS"})


class Function(msgspec.Struct, frozen=True):
    """The places in which a function may be used, and the types of its operands.

    `needs_path`: the first operand must be a path. `needs_distinct`: if the first operand is a path, no other operand
    may be the same path.
    """

    places: frozenset[str]
    operands: tuple[frozenset[str] | None, ...]
    needs_path: bool = False
    needs_distinct: bool = False


FUNCTIONS: Final = {
    "attribute_exists": Function(frozenset({CONDITION}), (None,), needs_path=True),
    "attribute_not_exists": Function(frozenset({CONDITION}), (None,), needs_path=True),
    "attribute_type": Function(
        frozenset({CONDITION}), (None, frozenset({"S"})), needs_distinct=True
    ),
    "begins_with": Function(frozenset({CONDITION}), (_TEXTS, _TEXTS), needs_distinct=True),
    "contains": Function(frozenset({CONDITION}), (None, None), needs_distinct=True),
    "size": Function(frozenset({OPERAND}), (_SIZED,)),
    "if_not_exists": Function(IN_UPDATES, (None, None), needs_path=True, needs_distinct=True),
    "list_append": Function(frozenset({VALUE}), (_LISTS, _LISTS)),
}


# Words

_PLACES_BELOW: Final[dict[type, str]] = {
    And: CONDITION,
    Or: CONDITION,
    Not: CONDITION,
    Truth: CONDITION,
    Set: VALUE,
    Arithmetic: INNER,
}


def check_words(tree: Node, *, written: bool) -> None:
    """Refuse unknown and misplaced functions, indexes out of range and, in a text, reserved words.

    `written`: the tree comes from a text.
    """
    pending: list[tuple[Any, str]] = [(tree, CONDITION)]
    while pending:
        node, place = pending.pop()
        kind = type(node)
        if kind is Path or kind is MemberPath:
            _check_elements(node, written=written)
        elif kind is Call:
            _check_place(node, place)
        get_parts = PARTS[kind]
        if get_parts is not None:
            below = _PLACES_BELOW.get(kind) or (INNER if place in IN_UPDATES else OPERAND)
            pending += [(part, below) for part in get_parts(node)[::-1]]


def _check_elements(path: Path, *, written: bool) -> None:
    for element in path.elements:
        if type(element) is int:
            if element > LIST_INDEX:
                raise RefusalMessage(messages.INDEX_TOO_BIG, index=element)
        elif written and type(element) is str and is_reserved(element):
            raise RefusalMessage(messages.RESERVED, word=element)


def _check_place(call: Call, place: str) -> None:
    function = FUNCTIONS.get(call.function)
    if function is None:
        raise RefusalMessage(messages.UNKNOWN_FUNCTION, function=call.function)
    if place not in function.places:
        for_updates = not function.places.isdisjoint(IN_UPDATES)
        raise RefusalMessage(_MISPLACED[for_updates, place in IN_UPDATES], function=call.function)


# By whether the function belongs in update expressions, and whether it stands in one.
_MISPLACED: Final = {
    (False, False): messages.FUNCTION_MISPLACED,
    (False, True): messages.FUNCTION_NOT_IN_UPDATE,
    (True, False): messages.FUNCTION_NOT_IN_CONDITION,
    (True, True): messages.FUNCTION_MISPLACED,
}

# Operands


def add_checks(nodes: Iterable[Any], checks: Checks, most_operators: float) -> None:
    """Append the checks of nodes in DynamoDB's order. Names must be resolved. O(nodes).

    Raises if an expression with these nodes is wrong for any values, after it has appended the checks that come before.
    """
    operators = 0
    for node in nodes:
        kind = type(node)
        if kind in _OPERATORS:
            operators += 1
        elif kind is And or kind is Or:
            operators += len(node.operands) - 1
        if kind in _RULES:
            _RULES[kind](node, checks)
    # DynamoDB stops counting at the first operator beyond the limit.
    if operators > most_operators:
        raise RefusalMessage(messages.TOO_MANY_OPERATORS, count=EXPRESSION_OPERATORS + 1)


_OPERATORS: Final = frozenset({Comparison, Between, In, Not, Call, Arithmetic})


def resolved_path(path: Path) -> ResolvedPath:
    """The elements of a path. Refuses a path that is too long or has an undefined name."""
    if len(path.elements) > PATH_DEPTH:
        raise RefusalMessage(messages.PATH_TOO_DEEP, depth=len(path.elements))
    for element in path.elements:
        if type(element) is NameRef:
            raise RefusalMessage(messages.NAME_UNDEFINED, name=element.name)
    return path.elements  # type: ignore[return-value] # all names are defined


def constant(operand: Operand) -> Constant | None:
    """The function that returns an operand's value, if the request contains it; None for other operands."""
    match operand:
        case ValueRef(name):
            return itemgetter(name)
        case Literal(value):
            return lambda values: value
    return None


def _path_rule(node: Path, checks: Checks) -> None:
    first, *more = node.elements
    if more or type(first) is NameRef:
        resolved_path(node)


class ValueDefinition(msgspec.Struct, frozen=True):
    """The check that a request defines a value."""

    name: str

    def __call__(self, values: ValueMap) -> None:
        if self.name not in values:
            raise RefusalMessage(messages.VALUE_UNDEFINED, name=self.name)


def _value_rule(node: ValueRef, checks: Checks) -> None:
    checks.append(ValueDefinition(node.name))


def _comparison_rule(node: Comparison, checks: Checks) -> None:
    _check_distinct(node.operator, node.left, node.right)
    if node.operator in ORDERINGS:
        _add_typed(checks, (node.left, node.right), _ORDERED, _refuse_operand(node.operator))


def _between_rule(node: Between, checks: Checks) -> None:
    operands = (node.operand, node.low, node.high)
    _add_typed(checks, operands, _ORDERED, _refuse_operand("BETWEEN"))
    _check_distinct("BETWEEN", node.operand, node.low, node.high)
    get_low, get_high = constant(node.low), constant(node.high)
    if get_low is None or get_high is None:
        return

    def check(values: ValueMap) -> None:
        low, high = get_low(values), get_high(values)
        if low.keys() != high.keys():
            raise RefusalMessage(messages.BOUNDS_TYPES, low=_shown(low), high=_shown(high))
        if less(high, low):
            raise RefusalMessage(messages.BOUNDS_ORDER, low=_shown(low), high=_shown(high))

    checks.append(check)


def _shown(value: AttributeValue) -> str:
    ((code, content),) = value.items()
    return f"AttributeValue: {{{code}:{content}}}"


def _in_rule(node: In, checks: Checks) -> None:
    if len(node.choices) > IN_OPERANDS:
        raise RefusalMessage(messages.TOO_MANY_CHOICES, count=len(node.choices))
    _check_distinct("IN", node.operand, *node.choices)


def _call_rule(node: Call, checks: Checks) -> None:
    function = FUNCTIONS[node.function]
    if len(node.operands) != len(function.operands):
        raise RefusalMessage(
            messages.OPERAND_COUNT, operator=node.function, count=len(node.operands)
        )
    first, *others = node.operands
    if function.needs_path and not isinstance(first, Path):
        raise RefusalMessage(messages.NEEDS_PATH, operator=node.function)
    if function.needs_distinct:
        _check_distinct(node.function, first, *others)
    for operand, types in zip(node.operands, function.operands, strict=True):
        if types is not None:
            _add_typed(checks, (operand,), types, _refuse_operand(node.function))
    if node.function == "attribute_type":
        checks.append(_type_name_check(others[0]))


def _type_name_check(operand: Operand) -> OperandCheck:
    get = constant(operand)
    if get is None:
        # The type must come from the request. If it comes from the item, DynamoDB's message lists all types.
        raise _refuse_operand("attribute_type")(messages.ALL_TYPES)

    def check(values: ValueMap) -> None:
        name = get(values)["S"]
        if name not in TYPE_CODES:
            raise RefusalMessage(messages.UNKNOWN_TYPE, type=name)

    return check


def _arithmetic_rule(node: Arithmetic, checks: Checks) -> None:
    _add_typed(checks, (node.left, node.right), _NUMBERS, _refuse_operand(node.operator))


def _add_rule(node: Add, checks: Checks) -> None:
    _add_typed(checks, (node.value,), _SETS | _NUMBERS, _refuse_action("ADD"))


def _delete_rule(node: Delete, checks: Checks) -> None:
    _add_typed(checks, (node.value,), _SETS, _refuse_action("DELETE"))


def _check_distinct(operator: str, first: Operand, *others: Operand) -> None:
    if isinstance(first, Path) and first in others:
        path: Any = first.elements
        raise RefusalMessage(messages.NOT_DISTINCT, operator=operator, path=path_text(path))


def _add_typed(
    checks: Checks, operands: Iterable[Operand], allowed: frozenset[str], refuse: Refuse
) -> None:
    """Check that operands have allowed types, as far as their types are known without the item."""
    for operand in operands:
        get = constant(operand)
        if get is not None:
            checks.append(_type_check(get, allowed, refuse))
        elif isinstance(operand, Call) and operand.function == "size" and "N" not in allowed:
            raise refuse("N")
        elif isinstance(operand, Truth) and "BOOL" not in allowed:
            raise refuse("BOOL")


def _type_check(get: Constant, allowed: frozenset[str], refuse: Refuse) -> OperandCheck:
    def check(values: ValueMap) -> None:
        code = type_of(get(values))
        if code not in allowed:
            raise refuse(code)

    return check


def _refuse_operand(operator: str) -> Refuse:
    return lambda code: RefusalMessage(messages.OPERAND_TYPE, operator=operator, type=code)


def _refuse_action(action: str) -> Refuse:
    return lambda code: RefusalMessage(
        messages.ACTION_TYPE, action=action, type=messages.LONG_TYPE_NAMES[code]
    )


_RULES: Final[dict[type, Rule]] = {
    Path: _path_rule,
    MemberPath: _path_rule,
    ValueRef: _value_rule,
    Comparison: _comparison_rule,
    Between: _between_rule,
    In: _in_rule,
    Call: _call_rule,
    Arithmetic: _arithmetic_rule,
    Add: _add_rule,
    Delete: _delete_rule,
}
