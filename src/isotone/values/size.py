"""Sizes of values and items in bytes, and the capacity units (RCU, WCU) of a read and a write.

The rules are those of AWS's "DynamoDB item sizes and formats": names and strings count their UTF-8 bytes,
binary its raw bytes, null and booleans one byte, sets the sum of their members, lists and maps three bytes and
one more for each element. All functions take values in normal form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from isotone import limits
from isotone.values.types import AttributeValue, Item

COLLECTION_OVERHEAD: Final = 3  # a list or a map, whatever it contains
ELEMENT_OVERHEAD: Final = 1  # each element of a list or a map


def item_size(item: Item) -> int:
    """The size of an item: its names and its values."""
    size = 0
    # A plain loop: maps may have many members, and every write measures them all.
    for name, value in item.items():
        (code,) = value
        size += len(name) if name.isascii() else len(name.encode())
        size += 1 if code in _ONE_BYTE else _SIZES[code](value[code])
    return size


def value_size(value: AttributeValue) -> int:
    """The size of one value, without a name."""
    (code,) = value
    return 1 if code in _ONE_BYTE else _SIZES[code](value[code])


def text_size(text: str) -> int:
    """The length in UTF-8. O(1) for ASCII."""
    return len(text) if text.isascii() else len(text.encode())


def number_size(text: str) -> int:
    """One byte for each pair of digits, one more, and one for a minus sign.

    DynamoDB stores numbers in base 100. Pairs are counted from the decimal point outwards, and pairs of zeros at either
    end do not count: `100` has one pair, `1.5` has two.
    """
    if text == "0":
        return 1
    if text[-1] != "0" and text.isdigit():  # most numbers end here
        return 1 + (len(text) + 1) // 2
    negative = text[0] == "-"
    whole, _, fraction = (text[1:] if negative else text).partition(".")
    pairs = (len(whole) + 1) // 2 + (len(fraction) + 1) // 2
    if not fraction:
        pairs -= (len(whole) - len(whole.rstrip("0"))) // 2
    elif whole == "0":
        pairs -= 1 + (len(fraction) - len(fraction.lstrip("0"))) // 2
    return 1 + pairs + negative


def binary_size(base64: str) -> int:
    """The number of raw bytes in a padded base64 text."""
    return len(base64) // 4 * 3 - base64.count("=", -2)


def _list_size(values: list[AttributeValue]) -> int:
    return COLLECTION_OVERHEAD + sum(value_size(value) + ELEMENT_OVERHEAD for value in values)


def _map_size(members: Item) -> int:
    return COLLECTION_OVERHEAD + item_size(members) + ELEMENT_OVERHEAD * len(members)


_ONE_BYTE: Final = frozenset({"BOOL", "NULL"})
_SIZES: Final[dict[str, Callable[[Any], int]]] = {
    "S": text_size,
    "N": number_size,
    "B": binary_size,
    "SS": lambda members: sum(map(text_size, members)),
    "NS": lambda members: sum(map(number_size, members)),
    "BS": lambda members: sum(map(binary_size, members)),
    "L": _list_size,
    "M": _map_size,
}


# Capacity units


def read_units(size: int, consistent: bool) -> float:
    """The units for reading `size` bytes: one item, or all items of a page together.

    A unit reads 4 KB strongly consistently, or 8 KB eventually consistently. Every read costs at least the minimum,
    even if the item does not exist.

    >>> read_units(4097, consistent=False)
    1.0
    """
    units = max(1, -(-size // limits.READ_UNIT))
    return float(units) if consistent else units / 2


def write_units(size: int) -> float:
    """The units for writing an item of `size` bytes: the larger of the item before and after.

    A unit is 1 KB.
    """
    return float(max(1, -(-size // limits.WRITE_UNIT)))
