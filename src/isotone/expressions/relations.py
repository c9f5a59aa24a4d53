"""How two values relate, and what can be measured of one: the meaning of operators and functions.

All take values in canonical form. None of them knows about missing attributes; `predicate` does.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from isotone.values.types import AttributeValue

Relation: TypeAlias = Callable[[AttributeValue, AttributeValue], bool]

# A Python object of the same order, for each type that has an order. Python's order of strings is that
# of code points, which is that of UTF-8 bytes.
SORT_KEYS: Final[dict[str, Callable[[Any], Any]]] = {"S": str, "N": Decimal, "B": a2b_base64}


def type_of(value: AttributeValue) -> str:
    """The type code of a value."""
    (code,) = value
    return code


def equal(left: AttributeValue, right: AttributeValue) -> bool:
    """Deep equality; sets are equal whatever the order of their members. O(size)."""
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


def less(left: AttributeValue, right: AttributeValue) -> bool:
    """Whether left sorts before right; False where the two are of different or unordered types."""
    code = type_of(left)
    if code not in right or code not in SORT_KEYS:
        return False
    key = SORT_KEYS[code]
    return bool(key(left[code]) < key(right[code]))


def less_or_equal(left: AttributeValue, right: AttributeValue) -> bool:
    """Whether left sorts before right or with it; False as for `less`."""
    code = type_of(left)
    if code not in right or code not in SORT_KEYS:
        return False
    key = SORT_KEYS[code]
    return bool(key(left[code]) <= key(right[code]))


def greater(left: AttributeValue, right: AttributeValue) -> bool:
    """`less` the other way round."""
    return less(right, left)


def greater_or_equal(left: AttributeValue, right: AttributeValue) -> bool:
    """`less_or_equal` the other way round."""
    return less_or_equal(right, left)


ORDERINGS: Final[dict[str, Relation]] = {
    "<": less,
    "<=": less_or_equal,
    ">": greater,
    ">=": greater_or_equal,
}


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
    found = _CONTAINMENT.get(code)
    return found is not None and found(value[code], part)


def _in_set(member_code: str) -> Callable[[Any, AttributeValue], bool]:
    return lambda members, part: member_code in part and part[member_code] in members


_CONTAINMENT: Final[dict[str, Callable[[Any, AttributeValue], bool]]] = {
    "S": lambda text, part: "S" in part and part["S"] in text,
    "B": lambda text, part: "B" in part and a2b_base64(part["B"]) in a2b_base64(text),
    "SS": _in_set("S"),
    "NS": _in_set("N"),
    "BS": _in_set("B"),
    "L": lambda elements, part: any(equal(element, part) for element in elements),
}


def size(value: AttributeValue) -> AttributeValue | None:
    """The number that `size` gives for a value; None for a number, a boolean and a null."""
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
