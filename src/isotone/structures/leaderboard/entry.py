"""What a leaderboard keeps of a member, and how scores are written in its index.

A score stands in the index with a fixed number of digits, so that texts sort as numbers do: the average
186.6 seconds of six digits is `000187`. Below zero a minus comes first, and the digits say how far it is
from the lowest score there is, so -187 is `-999812`. What is kept beside it is exact: the sum and the count.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from isotone.errors import OutOfRange
from isotone.model import Attr, Entity, Index, Key, expires, field, raw, version
from isotone.structures.exact import added

Score = Literal["sum", "average", "best", "last"]
Best = Literal["highest", "lowest"]
Ties = Literal["standard", "dense"]


class Entry(Entity):
    """A member in a window, or in the newest window that it was seen in."""

    group: Attr[str | None] = field(default=None, description="the board's name, and its partition")
    place: Attr[str] = field(description="the member, behind its window where history is kept")
    kind: Attr[str] = field(description="what the board was declared as that it has to stay")
    member: Attr[str] = field()
    window: Attr[str] = field()
    began: Attr[datetime | None] = field(default=None)
    order: Attr[str] = field(description="the window and the score, as they sort")
    total: Attr[Decimal] = field(description="the sum; the score, of the best and of the last")
    count: Attr[int] = field()
    at: Attr[datetime] = field(description="when the newest event was")
    revision: Attr[int] = version()
    mark: Attr[str] = field(
        default="", description="of the write, by which its writer knows it again"
    )
    until: Attr[datetime | None] = expires(default=None)


class LeaderboardEntry(Entry):
    """An entry of a table's only board, in the partition `LEADERBOARD`."""

    primary = Key("LEADERBOARD").sort(raw(Entry.place))
    by_score = Index("GSI1", "LEADERBOARD").sort(raw(Entry.order))


class NamedLeaderboardEntry(Entry):
    """An entry of a board with a name, or of one over several partitions."""

    primary = Key("LEADERBOARD", raw(Entry.group)).sort(raw(Entry.place))
    by_score = Index("GSI1", "LEADERBOARD", raw(Entry.group)).sort(raw(Entry.order))


class LeaderboardToken(Entity):
    """Says that an event was counted already for a member."""

    board: Attr[str] = field()
    token: Attr[str] = field()
    member: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary = Key("LEADERBOARD_TOKEN", board, token, member).sort("LEADERBOARD_TOKEN")


@dataclass(frozen=True, slots=True)
class Tally:
    """What events come to: of sums and averages the sum and the count, else a single value."""

    total: Decimal
    count: int
    at: datetime


def joined(one: Tally, other: Tally, score: Score, best: Best) -> Tally:
    """Two tallies as one; the first is the older one, and stays where both are as good."""
    if score == "last":
        return other if other.at >= one.at else one
    if score == "best":
        is_better = other.total > one.total if best == "highest" else other.total < one.total
        return other if is_better else one
    return Tally(added(one.total, other.total), one.count + other.count, max(one.at, other.at))


@dataclass(frozen=True, slots=True)
class Digits:
    """How a score is written: so many digits before the point, and so many behind it.

    >>> digits = Digits(3, 2)
    >>> digits.text(Fraction(2, 3)), digits.text(Decimal("-0.01")), digits.score("-999.98")
    ('000.67', '-999.98', Decimal('-0.01'))
    """

    whole: int
    scale: int

    def text(self, score: Fraction | Decimal) -> str:
        """The score, rounded half up; raises `OutOfRange` for one that does not fit."""
        units = (Fraction(score) * 10**self.scale * 2 + 1) // 2
        if abs(units) > self._most:
            raise OutOfRange(
                f"the score {Decimal(units).scaleb(-self.scale):g} does not fit into {self.whole} digits; "
                "give the board more digits="
            )
        return self._written(units)

    def score(self, text: str) -> Decimal:
        """The score of a text."""
        is_below_zero = text.startswith("-")
        return Decimal(f"-{self._written(-self._units(text))}" if is_below_zero else text)

    def better(self, text: str, best: Best) -> tuple[str, str] | None:
        """The least and the greatest text of the scores that are better; None where none is."""
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
