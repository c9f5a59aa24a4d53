"""What a caller of a sorted set writes, and what it means: scores, bounds, ranks and patterns.

    score_of(0.1)                       Decimal("0.1"), as the float is seen, not as it is stored
    ScoreRange.of("(1", "+inf")         above 1
    MemberRange.of("[a", "(b")          from "a" up to, not including, "b"
    Window.of(-3, -1)                   the last three
    matcher("song:*")                   Redis's patterns

Nothing here reads or writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from isotone.errors import OutOfRange, UsageError

Number = int | float | Decimal | str
"""What a score can be given as; a float counts as it is printed."""

EXACT: Final = Context(prec=400)
"""Adds and multiplies any two scores without rounding."""

_DIGITS: Final = 38
_LEAST_EXPONENT, _GREATEST_EXPONENT = -130, 125
_STORED: Final = Context(prec=_DIGITS, Emin=_LEAST_EXPONENT, Emax=_GREATEST_EXPONENT)
_SMALLEST: Final = Decimal((0, (1,), _LEAST_EXPONENT))


def score_of(value: Number) -> Decimal:
    """The exact decimal that a caller sees; raises `UsageError` for what is no finite number.

    >>> score_of(0.1), score_of("1e3")
    (Decimal('0.1'), Decimal('1000'))
    """
    number = _decimal(value)
    if not number.is_finite():
        raise UsageError(f"{value!r} is no score: scores are finite; infinities are bounds only")
    return storable(number)


def storable(number: Decimal) -> Decimal:
    """The number in plain form; raises `OutOfRange` where DynamoDB has no such number."""
    if not number:
        return Decimal(0)
    digits = bytes(number.as_tuple().digits).strip(b"\0")
    if len(digits) > _DIGITS or not _LEAST_EXPONENT <= number.adjusted() <= _GREATEST_EXPONENT:
        raise OutOfRange(
            f"{number} is no score: DynamoDB's numbers have up to {_DIGITS} digits, "
            f"from 1E{_LEAST_EXPONENT} to below 1E+{_GREATEST_EXPONENT + 1}"
        )
    return plain(number)


def plain(number: Decimal) -> Decimal:
    """The number as it is printed without an exponent and without zeros at its end.

    >>> plain(Decimal("10.0")), plain(Decimal("1E+1"))
    (Decimal('10'), Decimal('10'))
    """
    return Decimal(f"{number.normalize(EXACT):f}")


def above(score: Decimal) -> Decimal:
    """The least score above one: there is one, because scores have so many digits at the most."""
    found = _STORED.next_plus(score)
    if found.copy_abs() >= _SMALLEST:
        return found
    return Decimal(0) if score < 0 else _SMALLEST


def _decimal(value: Number) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):
        return Decimal(float.__repr__(value))  # numpy's floats name their type too
    if isinstance(value, int | str) and not isinstance(value, bool):
        try:
            return Decimal(value)
        except InvalidOperation:
            raise UsageError(f"{value!r} is not a number") from None
    raise UsageError(f"{value!r} is a {type(value).__name__}, and a score is a number")


class ScoreRange(NamedTuple):
    """Scores between two bounds; None is no bound."""

    low: Decimal | None
    high: Decimal | None
    without_low: bool = False
    without_high: bool = False
    is_empty: bool = False

    @classmethod
    def of(cls, low: Number, high: Number) -> ScoreRange:
        """From bounds as Redis writes them: `1`, `"(1"`, `"-inf"`."""
        (lowest, without_low), (highest, without_high) = _bound(low), _bound(high)
        is_empty = lowest == Decimal("Infinity") or highest == Decimal("-Infinity")
        return cls(
            storable(lowest) if lowest.is_finite() else None,
            storable(highest) if highest.is_finite() else None,
            without_low,
            without_high,
            is_empty,
        )

    def closed(self) -> ScoreRange:
        """The same range with bounds that are included, which is what one read of an order can have."""
        low, high = self.low, self.high
        if self.without_low and low is not None:
            low = above(low)
        if self.without_high and high is not None:
            high = above(high.copy_negate()).copy_negate()  # a minus sign would round
        is_beyond = any(bound is not None and bound.is_infinite() for bound in (low, high))
        return ScoreRange(low, high, is_empty=self.is_empty or is_beyond)

    def __contains__(self, score: object) -> bool:
        assert isinstance(score, Decimal)
        above = self.low is None or (score > self.low if self.without_low else score >= self.low)
        below = self.high is None or (
            score < self.high if self.without_high else score <= self.high
        )
        return above and below and not self.is_empty


def _bound(bound: Number) -> tuple[Decimal, bool]:
    """The number of a bound, and whether it is not itself included."""
    is_open = isinstance(bound, str) and bound.startswith("(")
    number = _decimal(bound[1:] if is_open else bound)  # type: ignore[index]
    if number.is_nan():
        raise UsageError(f"{bound!r} is no bound of a range of scores")
    if number and number.adjusted() > _GREATEST_EXPONENT:
        number = Decimal("Infinity").copy_sign(number)  # no score lies beyond
    return number, is_open


class MemberRange(NamedTuple):
    """Members between two bounds, by their bytes; None is no bound."""

    low: str | None
    high: str | None
    without_low: bool = False
    without_high: bool = False
    is_empty: bool = False

    @classmethod
    def of(cls, low: str, high: str) -> MemberRange:
        """From bounds as Redis writes them: `"[a"`, `"(a"`, `"-"`, `"+"`."""
        (lowest, without_low), (highest, without_high) = _member(low), _member(high)
        return cls(lowest, highest, without_low, without_high, low == "+" or high == "-")


def _member(bound: str) -> tuple[str | None, bool]:
    if bound in ("-", "+"):
        return None, False
    if not isinstance(bound, str) or bound[:1] not in ("[", "("):
        raise UsageError(
            f'{bound!r} is no bound of members; write "[{bound}" to include it, "({bound}" to '
            'leave it out, or "-" and "+" for the ends'
        )
    return bound[1:], bound[0] == "("


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
        """How many have to be read to see it."""
        return None if self.length is None else self.first + self.length


EVERYTHING: Final = Window()

_CLASS: Final = re.compile(r"\[(\^?)((?:\\.|[^\]\\])*)(?:\]|$)", re.DOTALL)


def matcher(pattern: str | None) -> Callable[[str], Any]:
    """Whether a member matches a pattern of Redis's: `*`, `?`, `[a-z]`, `[^a]`, and `\\` before them."""
    if pattern is None:
        return lambda member: True
    return re.compile(_regular(pattern), re.DOTALL).fullmatch


def _regular(pattern: str) -> str:
    parts, at = [], 0
    while at < len(pattern):
        character, found = pattern[at], _CLASS.match(pattern, at)
        if found is not None:
            parts.append(_class(found[1], found[2]))
            at = found.end()
            continue
        if character == "\\" and at + 1 < len(pattern):
            at += 1
            parts.append(re.escape(pattern[at]))
        else:
            parts.append({"*": ".*", "?": "."}.get(character, re.escape(character)))
        at += 1
    return "".join(parts)


def _class(negated: str, inside: str) -> str:
    """Characters in brackets; an empty class has no member."""
    members = []
    for found in re.finditer(r"(?:\\(.)|(.))(?:-(?:\\(.)|([^\\])))?", inside, re.DOTALL):
        first, last = found[1] or found[2], found[3] or found[4]
        low, high = sorted((first, last or first))
        members.append(f"{re.escape(low)}-{re.escape(high)}")
    if not members:
        return "." if negated else r"(?!)"
    return f"[{negated}{''.join(members)}]"
