"""The order of scalar values: numbers by value, strings by UTF-8 bytes, binary by unsigned bytes.

Values of different types have no order; nor have booleans, nulls, sets, lists and maps.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from isotone.errors import UsageError
from isotone.values.types import AttributeValue


def _string_key(text: str) -> str:
    # Python compares strings by code point, and UTF-8 keeps the order of code points.
    return text


_SORT_KEYS: Final[dict[str, Callable[[str], Any]]] = {
    "S": _string_key,
    "N": Decimal,
    "B": a2b_base64,
}

ORDERED_TYPES: Final = frozenset(_SORT_KEYS)


def sort_key(value: AttributeValue) -> Any:
    """A Python object that compares with those of the same type as the values do.

    >>> sorted([{"N": "10"}, {"N": "9"}], key=sort_key)
    [{'N': '9'}, {'N': '10'}]
    """
    ((code, content),) = value.items()
    try:
        return _SORT_KEYS[code](content)
    except KeyError:
        raise UsageError(f"values of type {code} have no order; only S, N and B have") from None


def compare(left: AttributeValue, right: AttributeValue) -> int:
    """Negative, zero or positive, as `left` sorts before, with or after `right`.

    Raises `UsageError` where the types differ or have no order.
    """
    if left.keys() != right.keys():
        raise UsageError(f"{left} and {right} are of different types, which have no order")
    if left == right:
        return 0
    return -1 if sort_key(left) < sort_key(right) else 1
