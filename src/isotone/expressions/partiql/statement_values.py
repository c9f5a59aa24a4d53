"""How statements read values: numbers into Java's `BigDecimal`, and literals with the place of what is wrong.

The exponent of a `BigDecimal` has 32 bits. Other actions take any exponent and refuse what is out of DynamoDB's range.
In statements, a number whose exponent or scale does not fit is no number at all, and one that almost fits is taken for a
small one, because the service adds its digits to its exponent in 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from isotone.errors import ValidationException
from isotone.expressions.messages import TOO_NESTED, Refusal
from isotone.expressions.partiql import messages
from isotone.limits import NESTING_DEPTH
from isotone.values.attribute_validation import (
    DUPLICATE_NUMBERS,
    TOO_DEEP,
    AttributeValue,
    canonical_value,
)
from isotone.values.number import NOT_A_NUMBER, OVERFLOW, UNDERFLOW, canonical_number

_parse: Final = re.compile(r"[+-]?([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?").fullmatch
_LEAST: Final = -(2**31)
_MOST: Final = 2**31 - 1
_DIGITS: Final = 10  # of an exponent, beyond which it does not fit


def is_readable(text: str) -> bool:
    """Whether a decimal of any exponent fits.

    >>> is_readable("1e2147483647"), is_readable("1.5e-2147483647")
    (True, False)
    """
    match = _parse(text)
    if match is None or not match[3]:
        return True
    if len(match[3].lstrip("+-0")) > _DIGITS:
        return False
    return _LEAST <= int(match[3]) <= _MOST and _scale(match) <= _MOST


def _scale(match: re.Match[str]) -> int:
    """How many digits are behind the point; below zero for those before it that are not written."""
    return len(match[2] or "") - int(match[3] or 0)


def parameter(value: AttributeValue) -> AttributeValue:
    """The value of a parameter in normal form."""
    try:
        return canonical_value(value)[0]
    except ValidationException:
        for _, part in _parts(value, "root"):
            for text in _numbers(part):
                if (wrong := _wrong_number(text)) is not None:
                    raise ValidationException(wrong) from None
        raise


def literal(value: AttributeValue) -> AttributeValue:
    """The value of a literal in normal form. A refusal names the place of the wrong value in it."""
    try:
        return canonical_value(value)[0]
    except ValidationException as error:
        if error.message == TOO_DEEP:
            raise Refusal(messages.UNDER, message=TOO_NESTED, key=_too_deep(value)) from None
        for key, part in _parts(value, "root"):
            if (wrong := _wrong(part)) is not None:
                raise Refusal(messages.UNDER, message=wrong, key=key) from None
        raise


def _wrong(part: AttributeValue) -> str | None:
    """What is wrong with the numbers of a value without parts."""
    for text in _numbers(part):
        if (wrong := _wrong_number(text)) is not None:
            return wrong
    try:
        canonical_value(part)
    except ValidationException as error:
        if error.message != DUPLICATE_NUMBERS:
            raise
        return messages.DUPLICATES.format(members=", ".join(part["NS"]))
    return None


def _wrong_number(text: str) -> str | None:
    try:
        canonical_number(text)
    except ValidationException as error:
        match = _parse(text)
        if match is None:
            return error.message
        if not is_readable(text):
            return f"{NOT_A_NUMBER}: {text}"
        digits = ((match[1] or "") + (match[2] or "")).lstrip("0") or "0"
        wraps = error.message == OVERFLOW and len(digits) - _scale(match) >= _MOST
        return UNDERFLOW if wraps else error.message
    return None


def _numbers(value: AttributeValue) -> list[str]:
    ((code, content),) = value.items()
    if code == "NS":
        return [member for member in content if type(member) is str]
    return [content] if code == "N" and type(content) is str else []


def _parts(value: AttributeValue, key: str) -> Iterator[tuple[str, AttributeValue]]:
    """The values in a value that have no parts, each with its place: `root.name[3]`. Only what is one value."""
    if type(value) is not dict or len(value) != 1:
        return
    for below, part in _below(value, key):
        yield from _parts(part, below)
    if value.keys().isdisjoint("LM"):
        yield key, value


def _below(value: AttributeValue, key: str) -> Iterator[tuple[str, AttributeValue]]:
    ((code, content),) = value.items()
    if code == "L" and type(content) is list:
        yield from ((f"{key}[{at}]", part) for at, part in enumerate(content))
    elif code == "M" and type(content) is dict:
        yield from ((f"{key}.{name}", part) for name, part in content.items())


def _too_deep(value: AttributeValue) -> str:
    """The place of the first value in a list or map that is one level too deep, or of that one if it is empty."""
    pending = [("root", value, 1)]
    while pending:
        key, part, depth = pending.pop()
        below = [*_below(part, key)]
        if depth == NESTING_DEPTH and not part.keys().isdisjoint("LM"):
            return below[0][0] if below else key
        pending += reversed([(place, inner, depth + 1) for place, inner in below])
    return "root"
