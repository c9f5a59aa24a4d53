"""Numbers that are stored as they are, and their sums: never rounded, but refused where they do not fit."""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, Subnormal
from typing import Final

from isotone.errors import OutOfRange, UsageError

# What DynamoDB takes: 38 digits, from 1E-130 to 9.99…E+125.
_STORED: Final = Context(
    prec=38, Emin=-130, Emax=125, traps=[Inexact, InvalidOperation, Overflow, Subnormal]
)


def exact(value: object, what: str) -> Decimal:
    """A number as it is stored; of a float, the digits that Python prints.

    Raises `UsageError` for what is no number or has no place in an order, and `OutOfRange`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        kind = type(value).__name__
        raise UsageError(f"{value!r} is a {kind}, and {what} is an int, a float or a Decimal")
    # numpy's floats name their type too
    found = Decimal(float.__repr__(value) if isinstance(value, float) else value)
    if not found.is_finite():
        raise UsageError(f"{value!r} is not {what}: it has no place in an order")
    return stored(found)


def stored(number: Decimal) -> Decimal:
    """The number, if it can be stored; raises `OutOfRange`."""
    return added(number, Decimal(0))


def added(one: Decimal, other: Decimal) -> Decimal:
    """The sum of two numbers, if it can be stored; raises `OutOfRange`."""
    try:
        return _STORED.add(one, other)
    except (Inexact, InvalidOperation, Overflow, Subnormal):
        what = f"the sum of {one:g} and {other:g}" if other else f"{one:g}"
        raise OutOfRange(
            f"{what} cannot be stored exactly: a number has 38 digits, and lies between 1E-130 and 1E+126; "
            "give it fewer digits"
        ) from None
