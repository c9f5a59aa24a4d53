"""Decimal digits of a fixed width, and how they are turned round.

The complement of a digit is its difference from nine, so the complement of a zero-padded number is
the zero-padded difference from the largest of its width: 00157 becomes 99842. Punctuation stands.
A signed number begins with `0`, or with `-` before the complement of its magnitude: `-` sorts below
the digits, and a greater magnitude has the lesser complement.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from isotone.errors import MalformedKey, UsageError

V = TypeVar("V")

COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")


def complement(text: str) -> str:
    """Every digit replaced by its difference from nine; twice is nothing."""
    return text.translate(COMPLEMENT)


def signed(digits: str, negative: bool) -> str:
    """Padded digits with a sign that sorts."""
    return "-" + complement(digits) if negative else "0" + digits


def unsigned(text: str) -> tuple[str, bool]:
    """The padded digits of a text that `signed` made, and whether it is negative."""
    return (complement(text[1:]), True) if text[:1] == "-" else (text[1:], False)


def whole(value: Any) -> int:
    """An int as it is. Raises `UsageError` for anything else, bool among it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise UsageError(
        f"{value!r} is a {type(value).__name__}, and this component of a key holds int"
    )


def malformed(text: str, expected: str) -> MalformedKey:
    """The error for a text that the codec never writes."""
    return MalformedKey(f"{text!r} is not {expected}")


def is_digits(text: str, width: int) -> bool:
    """Whether the text is exactly that many of the digits 0 to 9."""
    return len(text) == width and text.isascii() and text.isdigit()


def enclosed(value: V, low: V, high: V) -> tuple[V | None, V | None]:
    """The values of a range that are next to a value, not above it and not below."""
    below: Any = value  # of a type that has an order
    return (
        None if below < low else min(below, high),
        None if below > high else max(below, low),
    )
