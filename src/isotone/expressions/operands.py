"""Operands compiled: functions from an item and the values to an attribute value, or None for "missing".

An operand never changes what it reads. Functions of update expressions raise where the item does not
have what they need, in the words the service uses while it updates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from isotone.errors import ValidationException
from isotone.expressions import refusals
from isotone.expressions.names import ValueMap
from isotone.expressions.nodes import Arithmetic, Call, Literal, Operand, Path, ValueRef
from isotone.expressions.paths import lookup
from isotone.expressions.relations import size
from isotone.values import number
from isotone.values.types import AttributeValue, Item

Evaluate: TypeAlias = Callable[[Item, ValueMap], AttributeValue | None]
Compute: TypeAlias = Callable[[Item, ValueMap], AttributeValue]


def compile_operand(operand: Operand) -> Evaluate:
    """The function of an operand of a condition."""
    return _COMPILERS[type(operand)](operand)


def compile_value(operand: Operand) -> Compute:
    """The function of an operand of an update, which raises where there is no value."""
    if isinstance(operand, ValueRef):
        name = operand.name
        return lambda item, values: values[name]
    evaluate = compile_operand(operand)

    def compute(item: Item, values: ValueMap) -> AttributeValue:
        value = evaluate(item, values)
        if value is None:
            raise ValidationException(refusals.MISSING)
        return value

    return compute


def _path(path: Path) -> Evaluate:
    elements: Any = path.elements
    if len(elements) == 1:
        name = elements[0]
        return lambda item, values: item.get(name)
    find = lookup(elements)
    return lambda item, values: find(item)


def _value_ref(reference: ValueRef) -> Evaluate:
    name = reference.name
    return lambda item, values: values[name]


def _literal(literal: Literal) -> Evaluate:
    value = literal.value
    return lambda item, values: value


def _call(call: Call) -> Evaluate:
    return _FUNCTIONS[call.function](*call.operands)


def _size(operand: Operand) -> Evaluate:
    evaluate = compile_operand(operand)

    def measure(item: Item, values: ValueMap) -> AttributeValue | None:
        value = evaluate(item, values)
        return None if value is None else size(value)

    return measure


def _if_not_exists(path: Operand, otherwise: Operand) -> Evaluate:
    find, default = compile_operand(path), compile_value(otherwise)

    def choose(item: Item, values: ValueMap) -> AttributeValue:
        # The default must have a value even where it is not needed.
        second = default(item, values)
        first = find(item, values)
        return second if first is None else first

    return choose


def _list_append(first: Operand, second: Operand) -> Evaluate:
    left, right = compile_value(first), compile_value(second)

    def append(item: Item, values: ValueMap) -> AttributeValue:
        one = _content(left(item, values), "L")
        return {"L": one + _content(right(item, values), "L")}

    return append


def _arithmetic(node: Arithmetic) -> Evaluate:
    left, right = compile_value(node.left), compile_value(node.right)
    combine = _ARITHMETIC[node.operator]

    def compute(item: Item, values: ValueMap) -> AttributeValue:
        one = _content(left(item, values), "N")
        return {"N": combine(one, _content(right(item, values), "N"))}

    return compute


def _content(value: AttributeValue, code: str) -> Any:
    if code not in value:
        raise ValidationException(refusals.WRONG_TYPE)
    return value[code]


_ARITHMETIC: Final = {"+": number.add, "-": number.subtract}
_FUNCTIONS: Final[dict[str, Callable[..., Evaluate]]] = {
    "size": _size,
    "if_not_exists": _if_not_exists,
    "list_append": _list_append,
}
_COMPILERS: Final[dict[type, Callable[[Any], Evaluate]]] = {
    Path: _path,
    ValueRef: _value_ref,
    Literal: _literal,
    Call: _call,
    Arithmetic: _arithmetic,
}
