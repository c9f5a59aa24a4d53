"""The items of a leaderboard: its entries and tokens, what an event adds to an entry, and the text form of scores.

The index has a score with a fixed number of digits, so that texts sort like numbers: the average 186.6
seconds with six digits is `000187`. A score below zero starts with a minus, and its digits count from the lowest
score, so -187 is `-999812`. The exact sum and count are stored beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal

from isotone.errors import OutOfRange
from isotone.model import Attr, Entity, Index, Key, expires, field, raw, version
from isotone.structures.exact_numbers import added

Score = Literal["sum", "average", "best", "last"]
Best = Literal["highest", "lowest"]


class BoardEntry(Entity):
    """A member in a window, or in the newest window in which it was seen."""

    group: Attr[str | None] = field(default=None, description="the board's name, and its shard")
    place: Attr[str] = field(description="the member; with history, its window and the member")
    options: Attr[str] = field(name="kind", description="the board's options, in words")
    member: Attr[str] = field()
    window: Attr[str] = field()
    began: Attr[datetime | None] = field(default=None)
    order: Attr[str] = field(description="the window and the score, as texts that sort")
    total: Attr[Decimal] = field(description="the sum; of the best and the last, the value")
    count: Attr[int] = field()
    at: Attr[datetime] = field(description="time of the newest event")
    revision: Attr[int] = version()
    mark: Attr[str] = field(default="", description="names the last write, for its writer")
    until: Attr[datetime | None] = expires(default=None)


class LeaderboardEntry(BoardEntry):
    """An entry of a table's only board, in the partition `LEADERBOARD`."""

    primary: ClassVar[Key] = Key("LEADERBOARD").sort(raw(BoardEntry.place))
    by_score: ClassVar[Index] = Index("GSI1", "LEADERBOARD").sort(raw(BoardEntry.order))


class NamedLeaderboardEntry(BoardEntry):
    """An entry of a board with a name, or with shards."""

    primary: ClassVar[Key] = Key("LEADERBOARD", raw(BoardEntry.group)).sort(raw(BoardEntry.place))
    by_score: ClassVar[Index] = Index("GSI1", "LEADERBOARD", raw(BoardEntry.group)).sort(
        raw(BoardEntry.order)
    )


class LeaderboardToken(Entity):
    """Records that an event was counted for a member."""

    board: Attr[str] = field()
    token: Attr[str] = field()
    member: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary: ClassVar[Key] = Key("LEADERBOARD_TOKEN", board, token, member).sort(
        "LEADERBOARD_TOKEN"
    )


def entry_kind(name: str, shards: int) -> type[BoardEntry]:
    """The kind of a board's entries: with a name or shards, these are in their keys."""
    return NamedLeaderboardEntry if name or shards > 1 else LeaderboardEntry


def group_of(name: str, shard: int, shards: int) -> dict[str, Any]:
    """The field that selects a partition; empty for the only board of a table with one partition."""
    if shards > 1:
        return {"group": f"{name}#{shard}"}
    return {"group": name} if name else {}


@dataclass(frozen=True, slots=True)
class Tally:
    """Events added up: for sums and averages the sum and the count, otherwise one value."""

    total: Decimal
    count: int
    at: datetime


def joined(one: Tally, other: Tally, score: Score, best: Best) -> Tally:
    """The sum of two tallies; the first is older, and wins a tie."""
    if score == "last":
        return other if other.at >= one.at else one
    if score == "best":
        is_better = other.total > one.total if best == "highest" else other.total < one.total
        return other if is_better else one
    return Tally(added(one.total, other.total), one.count + other.count, max(one.at, other.at))


@dataclass(frozen=True, slots=True)
class Digits:
    """The text form of scores: `whole` digits before the point, and `scale` after it.

    >>> digits = Digits(3, 2)
    >>> digits.text(Fraction(2, 3)), digits.text(Decimal("-0.01")), digits.score("-999.98")
    ('000.67', '-999.98', Decimal('-0.01'))
    """

    whole: int
    scale: int

    def text(self, score: Fraction | Decimal) -> str:
        """The text of a score, rounded half up; raises `OutOfRange` if it does not fit."""
        units = (Fraction(score) * 10**self.scale * 2 + 1) // 2
        if abs(units) > self._most:
            raise OutOfRange(
                f"the score {Decimal(units).scaleb(-self.scale):g} does not fit into {self.whole} digits; "
                "create the board with more digits="
            )
        return self._written(units)

    def score(self, text: str) -> Decimal:
        """The score of a text."""
        is_below_zero = text.startswith("-")
        return Decimal(f"-{self._written(-self._units(text))}" if is_below_zero else text)

    def better(self, text: str, best: Best) -> tuple[str, str] | None:
        """The lowest and the highest text of all better scores; None if no score is better."""
        units = self._units(text)
        low, high = (-self._most, units - 1) if best == "lowest" else (units + 1, self._most)
        return (self._written(low), self._written(high)) if low <= high else None

    @property
    def _most(self) -> int:
        return int(10 ** (self.whole + self.scale)) - 1

    def _written(self, units: int) -> str:
        text = f"{units if units >= 0 else self._most + units:0{self.whole + self.scale}}"
        text = f"{text[: self.whole]}.{text[self.whole :]}" if self.scale else text
        return text if units >= 0 else f"-{text}"

    def _units(self, text: str) -> int:
        units = int(text.lstrip("-").replace(".", ""))
        return units - self._most if text.startswith("-") else units
