"""Parses ranges and patterns in Redis's notation: ranks, `(1` and `+inf` for scores, `[a` for members, `song:*`.

    Range.of(0, -1)                                        all members, by rank
    Range.of("(1", "+inf", byscore=True, offset=0, num=10) the first ten with scores above 1
    Range.of("+", "[b", bylex=True, desc=True)             from the last text down to "b"
    matcher("song:[12]")                                   "song:1" and "song:2"

Nothing here reads or writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple

from isotone.errors import UsageError
from isotone.model import Attr, Condition
from isotone.structures.exact_numbers import GREATEST, LEAST, SMALLEST, Number, decimal_of

# Ranges


class RankRange(NamedTuple):
    """The ranks from `first` to `last`, both included; -1 is the last member."""

    first: int
    last: int

    @classmethod
    def of(cls, first: Any, last: Any) -> RankRange:
        return cls(_whole(first), _whole(last))


class ScoreRange(NamedTuple):
    """The scores from `low` to `high`, both included."""

    low: Decimal = LEAST
    high: Decimal = GREATEST

    @classmethod
    def of(cls, low: Number, high: Number) -> ScoreRange:
        """The range between bounds as Redis writes them: `1`, `"(1"`, `"-inf"`.

        A bound may have more digits than a score.

        >>> ScoreRange.of("(1", "2." + "9" * 50).high
        Decimal('2.9999999999999999999999999999999999999')
        """
        (lowest, without_low), (highest, without_high) = _score_bound(low), _score_bound(high)
        down_to = _least_score(highest.copy_negate(), without_high)
        return cls(_least_score(lowest, without_low), _UPWARDS.minus(down_to))

    @property
    def is_empty(self) -> bool:
        return self.low > self.high

    def conditions(self, field: Attr[Decimal]) -> list[Condition]:
        """The conditions on a field that holds the score."""
        from_low = [field >= self.low] if self.low != LEAST else []
        return from_low + ([field <= self.high] if self.high != GREATEST else [])

    def __contains__(self, score: object) -> bool:
        assert isinstance(score, Decimal)
        return self.low <= score <= self.high


class TextRange(NamedTuple):
    """The texts between two bounds as Redis writes them: `"[a"` includes `a`, `"(a"` excludes it."""

    low: str = "-"
    high: str = "+"

    @classmethod
    def of(cls, low: str, high: str) -> TextRange:
        return cls(_text_bound(low), _text_bound(high))

    @property
    def is_empty(self) -> bool:
        return self.low == "+" or self.high == "-"

    def conditions(self, field: Attr[str]) -> list[Condition]:
        """The conditions on a field that holds the text."""
        bounds = ((self.low, ge, gt), (self.high, le, lt))
        return [
            (closed if bound[0] == "[" else opened)(field, bound[1:])
            for bound, closed, opened in bounds
            if bound not in ("-", "+")
        ]


class Slice(NamedTuple):
    """Part of an ordered range: up to `length` members, from number `first` on; None stands for all that follow."""

    first: int = 0
    length: int | None = None

    @classmethod
    def of(cls, offset: int | None, num: int | None) -> Slice:
        """Convert Redis's LIMIT: a negative number is no limit, and a negative offset selects nothing."""
        if (offset is None) != (num is None):
            raise UsageError("offset and num go together: give both, or neither")
        if offset is None or num is None:
            return cls()
        if offset < 0:
            return cls(0, 0)
        return cls(offset, None if num < 0 else num)

    @property
    def end(self) -> int | None:
        """How many members to read: 0 for nothing, None for all."""
        return self.first + self.length if self.length else self.length


EVERY_SCORE: Final = ScoreRange()
EVERY_TEXT: Final = TextRange()
EVERYTHING: Final = Slice()


@dataclass(frozen=True, slots=True)
class Range:
    """A range of members by rank, score or text, in either direction, and the wanted part of it."""

    within: RankRange | ScoreRange | TextRange
    part: Slice = EVERYTHING
    reverse: bool = False

    @classmethod
    def of(
        cls,
        start: Any,
        end: Any,
        *,
        byscore: bool = False,
        bylex: bool = False,
        desc: bool = False,
        offset: int | None = None,
        num: int | None = None,
    ) -> Range:
        """Convert ZRANGE's options. In descending order the greater score or text comes first."""
        part = Slice.of(offset, num)
        if byscore and bylex:
            raise UsageError("give byscore or bylex, not both")
        if byscore or bylex:
            low, high = (end, start) if desc else (start, end)
            within = ScoreRange.of(low, high) if byscore else TextRange.of(low, high)
            return cls(within, part, desc)
        if offset is not None:
            raise UsageError(
                "offset and num need byscore or bylex; for a range by rank, change start and end"
            )
        return cls(RankRange.of(start, end), part, desc)


def _whole(rank: Any) -> int:
    try:
        if isinstance(rank, int | str):
            return int(rank)
    except ValueError:
        pass
    raise UsageError(
        f"{rank!r} is not a rank; ranks are whole numbers, the first is 0, the last -1"
    )


_UPWARDS: Final = Context(prec=38, Emin=-130, Emax=125, rounding=ROUND_CEILING, traps=[])


def _score_bound(bound: Number) -> tuple[Decimal, bool]:
    """The number of a bound, and whether it is excluded."""
    is_open = isinstance(bound, str) and bound.startswith("(")
    number = decimal_of(str(bound)[1:] if is_open else bound, "a bound of scores")
    if number.is_nan():
        raise UsageError(f"{bound!r} cannot be a bound of scores")
    return number, is_open


def _least_score(bound: Decimal, is_above: bool) -> Decimal:
    """The least score that is at least a number, or above it; infinite if there is none."""
    score = _UPWARDS.plus(bound)
    if is_above and score == bound:
        score = _UPWARDS.next_plus(score)
    if score and score.copy_abs() < SMALLEST:
        score = SMALLEST if score > 0 else Decimal(0)
    return max(score, LEAST)


def _text_bound(bound: str) -> str:
    if bound in ("-", "+") or (isinstance(bound, str) and bound[:1] in ("[", "(")):
        return bound
    raise UsageError(
        f'{bound!r} cannot be a bound of members; write "[{bound}" to include it, "({bound}" to '
        'exclude it, or "-" and "+" for the ends'
    )


# Patterns

_PIECE: Final = re.compile(
    r"\[(?P<negated>\^?)(?P<inside>(?:\\.|[^\]\\])*)(?:\]|\Z)|\\(?P<escaped>.)|(?P<other>.)",
    re.DOTALL,
)
_SPAN: Final = re.compile(r"(?:\\(.)|(.))(?:-(?:\\(.)|([^\\])))?", re.DOTALL)


def matcher(pattern: str | None) -> Callable[[str], Any]:
    """A function that matches texts with a Redis pattern: `*`, `?`, `[a-z]`, `[^a]`, and `\\` before them."""
    if pattern is None:
        return lambda member: True
    return re.compile(_PIECE.sub(_regular, pattern), re.DOTALL).fullmatch


def _regular(piece: re.Match[str]) -> str:
    if piece["inside"] is not None:
        return _character_class(piece["negated"], piece["inside"])
    if piece["escaped"] is not None:
        return re.escape(piece["escaped"])
    return {"*": ".*", "?": "."}.get(piece["other"], re.escape(piece["other"]))


def _character_class(negated: str, inside: str) -> str:
    """Characters in brackets; an empty class matches nothing."""
    spans = []
    for span in _SPAN.finditer(inside):
        first = span[1] or span[2]
        low, high = sorted((first, span[3] or span[4] or first))
        spans.append(f"{re.escape(low)}-{re.escape(high)}")
    if not spans:
        return "." if negated else r"(?!)"
    return f"[{negated}{''.join(spans)}]"
