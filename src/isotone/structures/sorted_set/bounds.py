"""What a caller of a sorted set writes, and what it means: scores, bounds, windows and patterns.

    score_of(0.1)                       Decimal("0.1"), as the float is seen, not as it is stored
    ScoreRange.of("(1", "+inf")         above 1
    Window.of(20, 10)                   ten from the twenty-first on
    matcher("song:*")                   Redis's patterns

Nothing here reads or writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from isotone.errors import UsageError
from isotone.structures.exact import added, stored

Number = int | float | Decimal | str
"""What a score can be given as; a float counts as it is printed."""

EXACT: Final = Context(prec=400)
"""Adds and multiplies any two scores without rounding."""

_UPWARDS: Final = Context(prec=38, Emin=-130, Emax=125, rounding=ROUND_CEILING, traps=[])
_SMALLEST: Final = Decimal("1E-130")
_GREATEST: Final = Decimal("9" * 38 + "E+88")
_LEAST: Final = _GREATEST.copy_negate()  # a minus sign would round


def score_of(value: Number) -> Decimal:
    """The exact decimal that a caller sees; raises `UsageError` for what is no score.

    >>> score_of(0.1), score_of("1e3")
    (Decimal('0.1'), Decimal('1000'))
    """
    number = _decimal(value)
    if not number.is_finite():
        raise UsageError(f"{value!r} is no score: scores are finite; infinities are bounds only")
    return plain(stored(number))


def plus(score: Decimal | None, amount: Decimal) -> Decimal:
    """The exact sum; raises `OutOfRange` where it could not be stored."""
    return plain(added(score or Decimal(0), amount))


def plain(number: Decimal) -> Decimal:
    """The number as it is printed without an exponent and without zeros at its end.

    >>> plain(Decimal("10.0")), plain(Decimal("1E+1"))
    (Decimal('10'), Decimal('10'))
    """
    return Decimal(f"{number.normalize(EXACT):f}")


def _decimal(value: Number) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, Number):
        raise UsageError(f"{value!r} is a {type(value).__name__}, and a score is a number")
    if isinstance(value, float):
        value = float.__repr__(value)  # numpy's floats name their type too
    try:
        return Decimal(value)
    except InvalidOperation:
        raise UsageError(f"{value!r} is not a number") from None


class ScoreRange(NamedTuple):
    """The scores from one to another, with both."""

    low: Decimal = _LEAST
    high: Decimal = _GREATEST

    @classmethod
    def of(cls, low: Number, high: Number) -> ScoreRange:
        """From bounds as Redis writes them (`1`, `"(1"`, `"-inf"`), which need be no scores themselves.

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
    """The number of a bound, and whether it is not itself included."""
    is_open = isinstance(bound, str) and bound.startswith("(")
    number = _decimal(str(bound)[1:] if is_open else bound)
    if number.is_nan():
        raise UsageError(f"{bound!r} is no bound of a range of scores")
    return number, is_open


def _least_score(bound: Decimal, is_above: bool) -> Decimal:
    """The least score from a number on, or above it; infinite where there is none."""
    score = _UPWARDS.plus(bound)
    if is_above and score == bound:
        score = _UPWARDS.next_plus(score)
    if score and score.copy_abs() < _SMALLEST:
        score = _SMALLEST if score > 0 else Decimal(0)
    return max(score, _LEAST)


class Window(NamedTuple):
    """Some of an ordered range: up to `length` from `first` on, None for all that follow."""

    first: int = 0
    length: int | None = None

    @classmethod
    def of(cls, offset: int | None, num: int | None) -> Window:
        """From Redis's LIMIT, where a negative number is no limit, and a negative offset nothing."""
        if (offset is None) != (num is None):
            raise UsageError("an offset and a number go together: give both, or neither")
        if offset is None or num is None:
            return cls()
        if offset < 0:
            return cls(0, 0)
        return cls(offset, None if num < 0 else num)

    @property
    def end(self) -> int | None:
        """How many have to be read to see it: 0 to see nothing, None to see all."""
        return self.first + self.length if self.length else self.length


EVERYTHING: Final = Window()

_PIECE: Final = re.compile(
    r"\[(?P<negated>\^?)(?P<inside>(?:\\.|[^\]\\])*)(?:\]|\Z)|\\(?P<escaped>.)|(?P<other>.)",
    re.DOTALL,
)
_SPAN: Final = re.compile(r"(?:\\(.)|(.))(?:-(?:\\(.)|([^\\])))?", re.DOTALL)


def matcher(pattern: str | None) -> Callable[[str], Any]:
    """Whether a member matches a pattern of Redis's: `*`, `?`, `[a-z]`, `[^a]`, and `\\` before them."""
    if pattern is None:
        return lambda member: True
    return re.compile(_PIECE.sub(_regular, pattern), re.DOTALL).fullmatch


def _regular(piece: re.Match[str]) -> str:
    if piece["inside"] is not None:
        return _class(piece["negated"], piece["inside"])
    if piece["escaped"] is not None:
        return re.escape(piece["escaped"])
    return {"*": ".*", "?": "."}.get(piece["other"], re.escape(piece["other"]))


def _class(negated: str, inside: str) -> str:
    """Characters in brackets; an empty class has no member."""
    spans = []
    for found in _SPAN.finditer(inside):
        first = found[1] or found[2]
        low, high = sorted((first, found[3] or found[4] or first))
        spans.append(f"{re.escape(low)}-{re.escape(high)}")
    if not spans:
        return "." if negated else r"(?!)"
    return f"[{negated}{''.join(spans)}]"
