"""DynamoDB's numbers: 38 digits as text, never floats; range checks, sum and difference (`a - b`), normal form.

The normal form is how DynamoDB prints a number: plain notation with no exponent, no plus sign, no
leading and no trailing zeros, and one zero, `0`. Two numbers are equal exactly when their normal forms
are the same text.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import Final

from isotone import limits
from isotone.errors import ValidationException

NOT_A_NUMBER: Final = "The parameter cannot be converted to a numeric value"
TOO_MANY_DIGITS: Final = "Attempting to store more than 38 significant digits in a Number"
OVERFLOW: Final = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW: Final = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)

# Any decimal in normal form that is short enough to have at most 38 digits.
_is_plain: Final = re.compile(
    r"0|-?[1-9][0-9]{0,37}|-?(?:0|[1-9][0-9]{0,17})\.[0-9]{0,18}[1-9]"
).fullmatch
_parse: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)0*([0-9]+))?").fullmatch
# The service stores exponents in an `int`. Exponents with more digits are out of range anyway.
_EXPONENT_DIGITS: Final = 10
_INT: Final = 2**31

# A sum spans at most 126 digits before the point and 168 after it, so this context never rounds.
_EXACT: Final = Context(prec=300)


def canonical_number(text: str) -> str:
    """The normal form of a number in a request; the same object if it already is.

    >>> canonical_number("+01.50e1")
    '15'

    Raises `ValidationException` for anything that DynamoDB does not accept as a number.
    """
    if _is_plain(text):
        return text
    normal = _normal_form(text)
    return text if normal == text else normal


def canonical_decimal(number: Decimal | int) -> str:
    """The normal form of a Python number; its zero may have any exponent. Raises as `canonical_number` does."""
    return canonical_number(str(number)) if number else "0"


def _normal_form(text: str) -> str:
    sign, unpadded, scale = _parts(text)
    digits = unpadded.rstrip("0")
    point = len(unpadded) - scale
    _check_range(point - 1, len(digits))
    if not digits:
        return "0"
    plain = _place_point(digits, point)
    return "-" + plain if sign == "-" else plain


def _parts(text: str) -> tuple[str, str, int]:
    """The sign, the significant digits, and how many of them follow the decimal point.

    Zero has one digit, so that its exponent is range-checked like any other number's.
    """
    if not text:
        raise ValidationException(NOT_A_NUMBER)
    match = _parse(text)
    if match is None or not (match[2] or match[3]):
        raise _not_a_number(text)
    sign, whole, fraction, direction, exponent = match.groups("")
    shift = int(exponent[: _EXPONENT_DIGITS + 1] or 0)
    scale = len(fraction) + (shift if direction == "-" else -shift)
    return sign, (whole + fraction).lstrip("0") or "0", scale


def _not_a_number(text: str) -> ValidationException:
    return ValidationException(f"{NOT_A_NUMBER}: {text}")


def check_as_int(text: str) -> None:
    """Refuse a number with the messages of the older actions, which compute its magnitude in an `int`.

    An exponent that does not fit into an `int` is therefore not a number, and one close to its limit overflows.

    >>> check_as_int("1e2147483647")
    Traceback (most recent call last):
    isotone.errors.ValidationException: Number underflow. Attempting to store a number with magnitude smaller than supported range
    """
    _, digits, scale = _parts(text)
    exponent = len(_parse(text)[3] or "") - scale  # type: ignore[index] # `_parts` has matched it
    if not (-_INT <= exponent < _INT and -_INT <= scale < _INT):
        raise _not_a_number(text)
    magnitude = (len(digits) - scale + _INT) % (2 * _INT) - _INT
    _check_range(magnitude - 1, len(digits.rstrip("0")))


def _check_range(magnitude: int, digits: int) -> None:
    """Refuse a number by the exponent of its first digit, then by its count of digits."""
    if magnitude > limits.NUMBER_MAX_EXPONENT:
        raise ValidationException(OVERFLOW)
    if magnitude < limits.NUMBER_MIN_EXPONENT:
        raise ValidationException(UNDERFLOW)
    if digits > limits.NUMBER_DIGITS:
        raise ValidationException(TOO_MANY_DIGITS)


def _place_point(digits: str, point: int) -> str:
    """Write digits in plain notation, with the decimal point after the first `point` of them."""
    if point <= 0:
        return "0." + "0" * -point + digits
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def add(augend: str, addend: str) -> str:
    """The exact sum of two normal numbers, in normal form.

    Raises `ValidationException` if the sum has more than 38 digits or is out of range. DynamoDB never rounds.
    """
    if "." in augend or "." in addend:
        return canonical_decimal(_EXACT.add(Decimal(augend), Decimal(addend)))
    return canonical_number(str(int(augend) + int(addend)))


def subtract(minuend: str, subtrahend: str) -> str:
    """The exact difference of two normal numbers, in normal form; raises as `add` does."""
    if "." in minuend or "." in subtrahend:
        return canonical_decimal(_EXACT.subtract(Decimal(minuend), Decimal(subtrahend)))
    return canonical_number(str(int(minuend) - int(subtrahend)))
