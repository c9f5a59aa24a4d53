"""Evaluates operands and functions (size, contains, if_not_exists, list_append, + and -), and compares two values.

An operand compiles to a function of the item and the request's values, which returns an attribute value, or None if
there is none. It never changes the item. The functions of update expressions raise if the item lacks something that
they need. All values are in canonical form.
"""

from __future__ import annotations

import operator
import threading
from binascii import a2b_base64
from collections.abc import Callable, Hashable, Iterator, Mapping, Set
from typing import Any, Final, TypeAlias

from isotone.errors import ValidationException
from isotone.expressions import messages
from isotone.expressions.nodes import (
    Arithmetic,
    Call,
    Literal,
    MemberPath,
    Operand,
    Path,
    ResolvedPath,
    ValueRef,
)
from isotone.values import number
from isotone.values.types import SORT_KEYS, AttributeValue, Item

ValueMap: TypeAlias = Mapping[str, AttributeValue]
Evaluate: TypeAlias = Callable[[Item, ValueMap], AttributeValue | None]
Compute: TypeAlias = Callable[[Item, ValueMap], AttributeValue]
Relation: TypeAlias = Callable[[AttributeValue, AttributeValue], bool]


def compile_operand(operand: Operand) -> Evaluate:
    """The function that evaluates an operand of a condition."""
    return _COMPILERS[type(operand)](operand)


def compile_value(operand: Operand) -> Compute:
    """The function that evaluates an operand of an update; it raises if there is no value."""
    if isinstance(operand, ValueRef):
        name = operand.name
        return lambda item, values: values[name]
    evaluate = compile_operand(operand)

    def compute(item: Item, values: ValueMap) -> AttributeValue:
        value = evaluate(item, values)
        if value is None:
            raise ValidationException(messages.MISSING)
        return value

    return compute


def _path(path: Path) -> Evaluate:
    elements: Any = path.elements
    if len(elements) == 1:
        name = elements[0]
        return lambda item, values: item.get(name)
    if type(elements[-1]) is ValueRef:
        return _member(*elements)
    find = lookup(elements)
    return lambda item, values: find(item)


def _member(attribute: str, key: ValueRef) -> Evaluate:
    """The member of a map, with a key from the request's values."""
    name = key.name

    def find(item: Item, values: ValueMap) -> AttributeValue | None:
        members = item.get(attribute)
        return (
            None if members is None or "M" not in members else members["M"].get(values[name]["S"])
        )

    return find


def lookup(path: ResolvedPath) -> Callable[[Item], AttributeValue | None]:
    """The function that finds the value at a path in an item, or None. O(elements) per call.

    A path enters maps by name and lists by index. Other values have nothing inside.
    """
    elements: Any = path  # names are resolved by now, and `_member` looks up keys
    first, *rest = elements

    def find(item: Item) -> AttributeValue | None:
        value = item.get(first)
        for element in rest:
            if value is None:
                return None
            if isinstance(element, str):
                value = value["M"].get(element) if "M" in value else None
            else:
                members = value.get("L", ())
                value = members[element] if element < len(members) else None
        return value

    return find


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
        # DynamoDB demands a valid default even if it is not needed.
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
        raise ValidationException(messages.WRONG_TYPE)
    return value[code]


_ARITHMETIC: Final = {"+": number.add, "-": number.subtract}
_FUNCTIONS: Final[dict[str, Callable[..., Evaluate]]] = {
    "size": _size,
    "if_not_exists": _if_not_exists,
    "list_append": _list_append,
}
_COMPILERS: Final[dict[type, Callable[[Any], Evaluate]]] = {
    Path: _path,
    MemberPath: _path,
    ValueRef: _value_ref,
    Literal: _literal,
    Call: _call,
    Arithmetic: _arithmetic,
}


# Comparing and measuring values


def type_of(value: AttributeValue) -> str:
    """The type code of a value."""
    (code,) = value
    return code


def equal(left: AttributeValue, right: AttributeValue) -> bool:
    """Deep equality; the order of a set's members does not matter. O(size)."""
    if left == right:
        return True
    code = type_of(left)
    same = _DEEP_EQUALITY.get(code)
    return same is not None and code in right and same(left[code], right[code])


def _same_members(left: list[str], right: list[str]) -> bool:
    return len(left) == len(right) and set(left) == set(right)


def _same_list(left: list[AttributeValue], right: list[AttributeValue]) -> bool:
    return len(left) == len(right) and all(map(equal, left, right))


def _same_map(left: dict[str, AttributeValue], right: dict[str, AttributeValue]) -> bool:
    return left.keys() == right.keys() and all(equal(left[name], right[name]) for name in left)


_DEEP_EQUALITY: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "SS": _same_members,
    "NS": _same_members,
    "BS": _same_members,
    "L": _same_list,
    "M": _same_map,
}


DEEP_TYPES: Final = frozenset(_DEEP_EQUALITY)
"""The types whose values can be equal although the Python values differ."""


def _ordering(holds: Callable[[Any, Any], bool]) -> Relation:
    """An order comparison; False for values of different types and for types without an order."""

    def compare(left: AttributeValue, right: AttributeValue) -> bool:
        ((code, content),) = left.items()
        key = SORT_KEYS.get(code)
        return key is not None and code in right and holds(key(content), key(right[code]))

    return compare


ORDERINGS: Final[dict[str, Relation]] = {
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
}
less: Final = ORDERINGS["<"]
less_or_equal: Final = ORDERINGS["<="]


def begins_with(value: AttributeValue, prefix: AttributeValue) -> bool:
    """Whether a string or binary value begins with another of the same type."""
    if "S" in value:
        return "S" in prefix and value["S"].startswith(prefix["S"])
    if "B" in value:
        return "B" in prefix and a2b_base64(value["B"]).startswith(a2b_base64(prefix["B"]))
    return False


def contains(value: AttributeValue, part: AttributeValue) -> bool:
    """Whether part is a substring, a member of a set, or equal to an element of a list."""
    code = type_of(value)
    holds = _CONTAINMENT.get(code)
    return holds is not None and holds(value[code], part)


def _in_set(member_code: str) -> Callable[[Any, AttributeValue], bool]:
    def holds(members: list[str], part: AttributeValue) -> bool:
        if member_code not in part:
            return False
        return part[member_code] in (_members_of(members, frozenset) or members)

    return holds


class _Searched(threading.local):
    """The long lists and sets that this thread has searched in one item; None if it does not remember them.

    The first search of a list or set reads it from end to end. Later searches are look-ups: O(1) after O(size).
    """

    known: dict[int, Set[Hashable] | None] | None = None


_searched: Final = _Searched()


def searching_often(
    matches: Callable[[Item, ValueMap], bool],
) -> Callable[[Item, ValueMap], bool]:
    """Wraps a condition that searches the same lists and sets of an item repeatedly, for different values."""

    def remembering(item: Item, values: ValueMap) -> bool:
        _searched.known = {}
        try:
            return matches(item, values)
        finally:
            _searched.known = None

    return remembering


def _members_of(
    members: list[Any], hashable: Callable[[list[Any]], Set[Hashable]]
) -> Set[Hashable] | None:
    """The members of a long list or set for look-ups; None if it is short or searched for the first time."""
    known = _searched.known
    if known is None or len(members) < _LONG:
        return None
    place = id(members)  # the item or the request keeps it alive during the evaluation
    if place not in known:
        known[place] = None
        return None
    found = known[place]
    if found is None:
        found = known[place] = hashable(members)
    return found


def _elements(elements: list[AttributeValue]) -> set[Hashable]:
    """The elements of a list, in the form of `_unordered`."""
    found: set[Hashable] = set()
    for part in _slices(elements):
        contents = [pair for element in part for pair in element.items()]
        found.update([pair for pair in contents if pair[0] not in DEEP_TYPES])
        found.update([_unordered(pair) for pair in contents if pair[0] in DEEP_TYPES])
    return found


def _slices(elements: list[AttributeValue]) -> Iterator[list[AttributeValue]]:
    """Slices of a list. Python takes less than a millisecond for one; other threads can run between them."""
    for start in range(0, len(elements), _SLICE):
        yield elements[start : start + _SLICE]


def _unordered(typed: tuple[str, Any]) -> Hashable:
    """A hashable form that is the same for all equal values, and for no others."""
    code, content = typed
    if code == "L":
        return code, tuple(_unordered(*each.items()) for each in content)
    if code == "M":
        return code, frozenset((name, _unordered(*each.items())) for name, each in content.items())
    return code, frozenset(content) if code in _DEEP_EQUALITY else content


_LONG: Final = 100  # from this many members on, a look-up is worth building
_SLICE: Final = 5000  # elements that take a fraction of a millisecond to search


def _is_element(elements: list[AttributeValue], part: AttributeValue) -> bool:
    """Whether an element of a list equals a value."""
    known = _members_of(elements, _elements)
    if known is not None:
        return _unordered(*part.items()) in known
    if len(elements) <= _SLICE:
        if part in elements:
            return True
    elif any(part in some for some in _slices(elements)):
        return True
    code = type_of(part)
    same = _DEEP_EQUALITY.get(code)
    if same is None:
        return False
    return any(code in element and same(element[code], part[code]) for element in elements)


_CONTAINMENT: Final[dict[str, Callable[[Any, AttributeValue], bool]]] = {
    "S": lambda text, part: "S" in part and part["S"] in text,
    "B": lambda text, part: "B" in part and a2b_base64(part["B"]) in a2b_base64(text),
    "SS": _in_set("S"),
    "NS": _in_set("N"),
    "BS": _in_set("B"),
    "L": _is_element,
}


def size(value: AttributeValue) -> AttributeValue | None:
    """The result of the function `size`; None for numbers, booleans and nulls."""
    code = type_of(value)
    measure = _SIZES.get(code)
    return None if measure is None else {"N": str(measure(value[code]))}


def _text_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


_SIZES: Final[dict[str, Callable[[Any], int]]] = {
    "S": _text_length,
    "B": lambda text: len(a2b_base64(text)),
    "SS": len,
    "NS": len,
    "BS": len,
    "L": len,
    "M": len,
}
