"""The types of items and attribute values (S, N, B …), and the order of scalar values.

Numbers sort by value, strings by UTF-8 bytes, binary by unsigned bytes. Values of different types have no
order; neither do booleans, nulls, sets, lists and maps.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Any, Final, TypeAlias

from isotone.errors import UsageError

AttributeValue: TypeAlias = dict[str, Any]
"""A dict whose one key is the type code and whose value is the content as JSON: `{"S": "x"}`, `{"L": [{"N": "1"}]}`."""

Item: TypeAlias = dict[str, AttributeValue]
"""Attribute names and their values."""

TYPE_CODES: Final = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})

SORT_KEYS: Final[dict[str, Callable[[str], Any]]] = {
    "S": str,  # Python compares by code points, which gives the same order as UTF-8 bytes
    "N": Decimal,
    "B": a2b_base64,
}
"""For each ordered type, a function from the content to a Python object that sorts as the value does."""


def sort_key(value: AttributeValue) -> Any:
    """A Python object that compares with others of its type as the values do.

    >>> sorted([{"N": "10"}, {"N": "9"}], key=sort_key)
    [{'N': '9'}, {'N': '10'}]
    """
    ((code, content),) = value.items()
    try:
        return SORT_KEYS[code](content)
    except KeyError:
        raise UsageError(f"values of type {code} have no order; only S, N and B have") from None


def sorted_members(code: str, members: Collection[str]) -> list[str]:
    """The members of a set of this type, ordered by value, which is how sets are stored and returned.

    >>> sorted_members("NS", ["10", "9"])
    ['9', '10']
    """
    if code == "SS":
        return sorted(members)
    if code == "NS" and "." not in "".join(members):
        return sorted(members, key=int)  # twice as fast as Decimal
    return sorted(members, key=SORT_KEYS[code[0]])


def compare(left: AttributeValue, right: AttributeValue) -> int:
    """Negative, zero or positive, if `left` sorts before, with or after `right`.

    Raises `UsageError` if the types differ or have no order.
    """
    if left.keys() != right.keys():
        raise UsageError(f"{left} and {right} are of different types, which have no order")
    if left == right:
        return 0
    return -1 if sort_key(left) < sort_key(right) else 1


def is_same_item(one: Item, other: Item) -> bool:
    """Whether two items have the same values."""
    return one == other or (
        one.keys() == other.keys()
        and all(is_same_value(value, other[name]) for name, value in one.items())
    )


def is_same_value(one: AttributeValue | None, other: AttributeValue | None) -> bool:
    """Whether DynamoDB considers two values equal; the order of a set's members does not matter. None means no value."""
    if one == other:
        return True
    return one is not None and other is not None and _plain(one) == _plain(other)


def _plain(value: AttributeValue) -> tuple[str, Any]:
    ((code, content),) = value.items()
    if code == "N":
        return code, Decimal(content)
    if code in ("SS", "BS"):
        return code, frozenset(content)
    if code == "NS":
        return code, frozenset(map(Decimal, content))
    if code == "L":
        return code, [_plain(each) for each in content]
    if code == "M":
        return code, {name: _plain(each) for name, each in content.items()}
    return code, content
