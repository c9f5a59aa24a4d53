"""Values in PartiQL statements: numbers in the range of Java's `BigDecimal`, and positions in error messages.

The exponent of a `BigDecimal` has 32 bits. Other actions take any exponent and then refuse numbers out of DynamoDB's
range. In a statement, a number whose exponent or scale does not fit is not a number at all. One that almost fits
becomes a small number, because the service adds digits and exponent in 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from isotone.errors import ValidationException
from isotone.expressions.messages import TOO_NESTED, RefusalMessage
from isotone.expressions.partiql import messages
from isotone.limits import NESTING_DEPTH
from isotone.values.attribute_validation import (
    DUPLICATE_NUMBERS,
    AttributeValue,
    canonical_value,
)
from isotone.values.number import NOT_A_NUMBER, OVERFLOW, UNDERFLOW, canonical_number

_parse: Final = re.compile(r"[+-]?([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?").fullmatch
_LEAST: Final = -(2**31)
_MOST: Final = 2**31 - 1
_DIGITS: Final = 10  # digits of an exponent; more do not fit into 32 bits


def is_readable(text: str) -> bool:
    """Whether a decimal with any exponent fits into a `BigDecimal`.

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
    """The number of digits after the decimal point; negative if zeros before the point are not written."""
    return len(match[2] or "") - int(match[3] or 0)


def parameter(value: AttributeValue) -> AttributeValue:
    """The value of a parameter in normal form."""
    try:
        return canonical_value(value)[0]
    except ValidationException:
        for part in _parts(value):
            for text in _numbers(part):
                if (wrong := _wrong_number(text)) is not None:
                    raise ValidationException(wrong) from None
        raise


class LiteralPlace(NamedTuple):
    """The position of a value inside a literal (`root.name[3]`, in some messages `root.name.3`), and its level."""

    path: str
    dotted: str
    level: int

    def scalar(self, value: AttributeValue) -> AttributeValue:
        """A scalar in normal form. A refusal shows its position."""
        try:
            return canonical_value(value)[0]
        except ValidationException:
            if (wrong := _wrong(value)) is not None:
                raise RefusalMessage(messages.UNDER, message=wrong, key=self.path) from None
            raise

    def elements(self, count: int) -> list[LiteralPlace]:
        """The positions of the elements of a list at this position."""
        below = [self._below(f"[{at}]", f".{at}") for at in range(count)]
        self._check_level(below)
        return below

    def members(self, names: Sequence[str]) -> dict[str, LiteralPlace]:
        """The positions of the members of a map at this position."""
        below = {name: self._below(f".{name}", f".{name}") for name in names}
        self._check_level([*below.values()])
        return below

    def _below(self, step: str, dotted: str) -> LiteralPlace:
        return LiteralPlace(self.path + step, self.dotted + dotted, self.level + 1)

    def _check_level(self, below: list[LiteralPlace]) -> None:
        if self.level == NESTING_DEPTH:
            key = (below[0] if below else self).path
            raise RefusalMessage(messages.UNDER, message=TOO_NESTED, key=key)


ROOT: Final = LiteralPlace("root", "root", 1)


def _wrong(part: AttributeValue) -> str | None:
    """The error in the numbers of a scalar or a number set, if any."""
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


def _parts(value: AttributeValue) -> Iterator[AttributeValue]:
    """The scalars and sets inside a value."""
    if type(value) is not dict or len(value) != 1:
        return
    ((code, content),) = value.items()
    if code not in ("L", "M"):
        yield value
    elif isinstance(content, dict):
        for part in content.values():
            yield from _parts(part)
    elif isinstance(content, list):
        for part in content:
            yield from _parts(part)
