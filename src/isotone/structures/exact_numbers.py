"""Exact numbers: up to 38 digits, added without rounding; `OutOfRange` for those that do not fit.

    exact(0.1, "a score")               Decimal("0.1"), as the float is printed
    score_of("1e3")                     Decimal("1000"), from any type that a score can have

Nothing here reads or writes.
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, Subnormal
from typing import Final

from isotone.errors import OutOfRange, UsageError

Number = int | float | Decimal | str
"""The types of a score; a float means its printed value."""

EXACT: Final = Context(prec=400)
"""Adds and multiplies any two numbers without rounding."""

# The numbers of DynamoDB: 38 digits, from 1E-130 to 9.99…E+125.
_STORED: Final = Context(
    prec=38, Emin=-130, Emax=125, traps=[Inexact, InvalidOperation, Overflow, Subnormal]
)
SMALLEST: Final = Decimal("1E-130")
"""The smallest positive number."""
GREATEST: Final = Decimal("9" * 38 + "E+88")
LEAST: Final = GREATEST.copy_negate()  # the unary minus would round


def exact(value: object, what: str) -> Decimal:
    """A number as it is stored. Raises `OutOfRange`, and `UsageError` for anything that is not a number."""
    if isinstance(value, str):
        raise UsageError(f"{value!r} is a str, and {what} is an int, a float or a Decimal")
    return _finite(value, what)


def score_of(value: Number) -> Decimal:
    """A score from a caller's value, which may also be a str.

    >>> score_of(0.1), score_of("1e3")
    (Decimal('0.1'), Decimal('1000'))
    """
    return plain(_finite(value, "a score"))


def added(one: Decimal, other: Decimal) -> Decimal:
    """The sum of two numbers; raises `OutOfRange` if it cannot be stored exactly."""
    try:
        return _STORED.add(one, other)
    except (Inexact, InvalidOperation, Overflow, Subnormal):
        what = f"the sum of {one:g} and {other:g}" if other else f"{one:g}"
        raise OutOfRange(
            f"{what} cannot be stored exactly: a number has 38 digits, and lies between 1E-130 and 1E+126; "
            "give it fewer digits"
        ) from None


def plain(number: Decimal) -> Decimal:
    """The same number without an exponent and without trailing zeros.

    >>> plain(Decimal("10.0")), plain(Decimal("1E+1"))
    (Decimal('10'), Decimal('10'))
    """
    return Decimal(f"{number.normalize(EXACT):f}")


def _finite(value: object, what: str) -> Decimal:
    number = decimal_of(value, what)
    if not number.is_finite():
        raise UsageError(f"{value!r} cannot be {what}: only a finite number can")
    return added(number, Decimal(0))


def decimal_of(value: object, what: str) -> Decimal:
    """Any number as a `Decimal`, including infinite ones; raises `UsageError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, Number):
        kind = type(value).__name__
        raise UsageError(f"{value!r} is a {kind}, and {what} is an int, a float or a Decimal")
    if isinstance(value, float):
        value = float.__repr__(value)  # numpy's floats have a repr with their type
    try:
        return Decimal(value)
    except InvalidOperation:
        raise UsageError(f"{value!r} is not a number") from None
