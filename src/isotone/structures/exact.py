"""Exact numbers: stored as given, added without rounding, and refused if they do not fit.

    exact(0.1, "a score")               Decimal("0.1"), as the float is printed
    score_of("1e3")                     Decimal("1000"), from whatever can be a score
    ScoreRange.of("(1", "+inf")         above 1

Nothing here reads or writes.
"""

from __future__ import annotations

from decimal import (
    ROUND_CEILING,
    Context,
    Decimal,
    Inexact,
    InvalidOperation,
    Overflow,
    Subnormal,
)
from typing import Final, NamedTuple

from isotone.errors import OutOfRange, UsageError

Number = int | float | Decimal | str
"""What a score can be given as; a float counts as it is printed."""

EXACT: Final = Context(prec=400)
"""Adds and multiplies any two numbers without rounding."""

# The numbers of DynamoDB: 38 digits, from 1E-130 to 9.99…E+125.
_STORED: Final = Context(
    prec=38, Emin=-130, Emax=125, traps=[Inexact, InvalidOperation, Overflow, Subnormal]
)
_UPWARDS: Final = Context(prec=38, Emin=-130, Emax=125, rounding=ROUND_CEILING, traps=[])
_SMALLEST: Final = Decimal("1E-130")
_GREATEST: Final = Decimal("9" * 38 + "E+88")
_LEAST: Final = _GREATEST.copy_negate()  # a minus sign would round


def exact(value: object, what: str) -> Decimal:
    """A number as it is stored; raises `UsageError` for anything else, and `OutOfRange`."""
    if isinstance(value, str):
        raise UsageError(f"{value!r} is a str, and {what} is an int, a float or a Decimal")
    return _finite(value, what)


def score_of(value: Number) -> Decimal:
    """A score as a caller sees it; a str is accepted, too.

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
    number = _decimal(value, what)
    if not number.is_finite():
        raise UsageError(
            f"{value!r} cannot be {what}: it is not finite, so it has no place in an order"
        )
    return added(number, Decimal(0))


def _decimal(value: object, what: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, Number):
        kind = type(value).__name__
        raise UsageError(f"{value!r} is a {kind}, and {what} is an int, a float or a Decimal")
    if isinstance(value, float):
        value = float.__repr__(value)  # numpy's floats name their type, too
    try:
        return Decimal(value)
    except InvalidOperation:
        raise UsageError(f"{value!r} is not a number") from None


class ScoreRange(NamedTuple):
    """The scores from one to another, both included."""

    low: Decimal = _LEAST
    high: Decimal = _GREATEST

    @classmethod
    def of(cls, low: Number, high: Number) -> ScoreRange:
        """The range between bounds as Redis writes them: `1`, `"(1"`, `"-inf"`.

        A bound may have more digits than a score.

        >>> ScoreRange.of("(1", "2." + "9" * 50).high
        Decimal('2.9999999999999999999999999999999999999')
        """
        (lowest, without_low), (highest, without_high) = _bound(low), _bound(high)
        down_to = _least_score(highest.copy_negate(), without_high)
        return cls(_least_score(lowest, without_low), _UPWARDS.minus(down_to))

    @property
    def is_empty(self) -> bool:
        return self.low > self.high

    def __contains__(self, score: object) -> bool:
        assert isinstance(score, Decimal)
        return self.low <= score <= self.high


EVERY_SCORE: Final = ScoreRange()


def _bound(bound: Number) -> tuple[Decimal, bool]:
    """The number of a bound, and whether it is excluded."""
    is_open = isinstance(bound, str) and bound.startswith("(")
    number = _decimal(str(bound)[1:] if is_open else bound, "a bound of scores")
    if number.is_nan():
        raise UsageError(f"{bound!r} cannot be a bound of scores")
    return number, is_open


def _least_score(bound: Decimal, is_above: bool) -> Decimal:
    """The least score from a number on, or above it; infinite if there is none."""
    score = _UPWARDS.plus(bound)
    if is_above and score == bound:
        score = _UPWARDS.next_plus(score)
    if score and score.copy_abs() < _SMALLEST:
        score = _SMALLEST if score > 0 else Decimal(0)
    return max(score, _LEAST)
