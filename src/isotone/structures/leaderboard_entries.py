"""The items of a leaderboard: its entries, the text form of their scores, and their keys.

The index has a score with a fixed number of digits, so that texts sort like numbers: the average 186.6
seconds with six digits is `000187`. A score below zero starts with a minus, and its digits count from the lowest
score, so -187 is `-999812`. The exact sum and count are stored beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal

from isotone.errors import OutOfRange, UsageError
from isotone.model import (
    Attr,
    Calls,
    Entity,
    Index,
    Key,
    Query,
    Steps,
    Table,
    expires,
    field,
    raw,
    version,
)
from isotone.structures.exact_numbers import added
from isotone.structures.ranking import Ranking, ranking_key
from isotone.structures.sharding import shard_of
from isotone.structures.structure import bind_entity
from isotone.structures.time_windows import ALL_TIME, Window
from isotone.structures.waits_and_retries import retry_on_conflict

Score = Literal["sum", "average", "best", "last"]
Best = Literal["highest", "lowest"]
Ties = Literal["standard", "dense"]

_REMEMBERED: Final = 8  # windows whose rankings are cached


class Entry(Entity):
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


class LeaderboardEntry(Entry):
    """An entry of a table's only board, in the partition `LEADERBOARD`."""

    primary = Key("LEADERBOARD").sort(raw(Entry.place))
    by_score = Index("GSI1", "LEADERBOARD").sort(raw(Entry.order))


class NamedLeaderboardEntry(Entry):
    """An entry of a board with a name, or with shards."""

    primary = Key("LEADERBOARD", raw(Entry.group)).sort(raw(Entry.place))
    by_score = Index("GSI1", "LEADERBOARD", raw(Entry.group)).sort(raw(Entry.order))


class LeaderboardToken(Entity):
    """Records that an event was counted for a member."""

    board: Attr[str] = field()
    token: Attr[str] = field()
    member: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary = Key("LEADERBOARD_TOKEN", board, token, member).sort("LEADERBOARD_TOKEN")


class LeaderboardOptions(Entity):
    """The options with which a board was declared."""

    board: Attr[str] = field()
    options: Attr[str] = field(description="in words, as in each entry")
    shards: Attr[int] = field()

    primary = Key("LEADERBOARD_OPTIONS", board).sort("LEADERBOARD_OPTIONS")


def entry_kind(name: str, shards: int) -> type[Entry]:
    """The kind of a board's entries: with a name or shards, these are in their keys."""
    return NamedLeaderboardEntry if name or shards > 1 else LeaderboardEntry


def group_of(name: str, shard: int, shards: int) -> dict[str, Any]:
    """The field that selects a partition; none for a table's only board with one partition."""
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
                "give the board more digits="
            )
        return self._written(units)

    def score(self, text: str) -> Decimal:
        """The score of a text."""
        is_below_zero = text.startswith("-")
        return Decimal(f"-{self._written(-self._units(text))}" if is_below_zero else text)

    def better(self, text: str, best: Best) -> tuple[str, str] | None:
        """The least and the greatest text of the better scores; None if there are none."""
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


@dataclass(frozen=True, slots=True)
class Board:
    """A board's options and entities, with their keys, queries and rankings."""

    calls: Calls
    entries: type[Any]
    tokens: type[LeaderboardToken]
    declarations: type[LeaderboardOptions]
    name: str
    score: Score
    best: Best
    ties: Ties
    digits: Digits
    keeps_history: bool
    expire_after: timedelta | None
    shards: int
    is_ranked: bool
    options: str
    """The options in words: all objects of the board must have the same."""
    _rankings: dict[str, Ranking] = dataclass_field(default_factory=dict)
    _checked: set[str] = dataclass_field(default_factory=set)
    """The options, once they are known to be those of the stored board."""

    def now(self) -> datetime:
        """The time by the store's clock."""
        return datetime.fromtimestamp(self.calls.clock.now(), UTC)

    # Keys

    def key(self, member: str, window: Window) -> dict[str, Any]:
        """The fields of the primary key of a member's entry."""
        if not isinstance(member, str) or not member:
            raise UsageError(f"{member!r} cannot be a member: give a text of one character or more")
        place = f"{window.label}#{member}" if self.keeps_history else member
        return {**self.group(shard_of(member, self.shards)), "place": place}

    def group(self, shard: int) -> dict[str, Any]:
        """The field that selects a partition; none for a table's only board with one partition."""
        return group_of(self.name, shard, self.shards)

    def query(
        self, shard: int, window: str, between: tuple[str, str] | None = None
    ) -> Query[Entry]:
        """The entries of a window in one shard, the best first; all, or those between two scores."""
        groups = [Entry.group == group for group in self.group(shard).values()]
        which = Entry.order.begins_with(f"{window}#")
        if between is not None:
            which = Entry.order.between(*(f"{window}#{score}" for score in between))
        query: Query[Entry] = self.entries.by_score.where(*groups, which)
        return query if self.best == "lowest" else query.reversed()

    @property
    def identity(self) -> dict[str, Any]:
        """What a cursor belongs to."""
        return {
            "table": self.table.name,
            "board": self.name,
            "shards": self.shards,
            "best": self.best,
        }

    # Options

    def declare(self) -> Steps[None]:
        """Store the options of a new board, or check that they are the stored ones.

        Reads one item, the first time. Raises `UsageError` if the board has other options, and members. This is for
        what entries cannot tell: with other shards, or in another window, there seem to be none.
        """
        what = f"the options of the board {self.name!r}"
        yield from retry_on_conflict(self._declare, what, "try again later")

    def _declare(self) -> Steps[None]:
        stored = yield from self.check_options()
        if self.options in self._checked:
            return
        new = self.declarations(board=self.name, options=self.options, shards=self.shards)
        if stored is None:
            yield from self.calls.create(new)
        else:
            as_read = LeaderboardOptions.options == stored.options
            yield from self.calls.put(new, when=as_read)
        self._checked.add(self.options)

    def check_options(self) -> Steps[LeaderboardOptions | None]:
        """Check the options as `declare` does, without storing any; returns those of another, empty board."""
        if self.options in self._checked:
            return None
        stored = yield from self.calls.get(self.declarations, consistent=True, board=self.name)
        if stored is not None and stored.options == self.options:
            self._checked.add(self.options)
        elif stored is not None and (yield from self._has_entries(stored.shards)):
            raise self._refusal(stored.options)
        return stored

    def _has_entries(self, shards: int) -> Steps[bool]:
        """Whether a board of this name, with so many shards, has any entry."""
        kind: Any = bind_entity(self.table, entry_kind(self.name, shards))
        for shard in range(shards):
            group = [Entry.group == value for value in group_of(self.name, shard, shards).values()]
            query = kind.primary.where(*group).consistent()
            if (yield from self.calls.first(query)) is not None:
                return True
        return False

    def _refusal(self, options: str) -> UsageError:
        board = f"the board {self.name!r}" if self.name else "the board without a name"
        return UsageError(
            f"{board} in table {self.table.name!r} has the options ({options}), not ({self.options}); give "
            "this one another name, or the same options"
        )

    @property
    def table(self) -> Table:
        return self.declarations.__schema__.table

    # Entries

    def find(self, member: str, window: Window) -> Steps[Entry | None]:
        """A member's entry; without history, that of its newest window."""
        key = self.key(member, window)
        entry: Entry | None = yield from self.calls.get(self.entries, consistent=True, **key)
        if entry is None:
            yield from self.check_options()
            return None
        return self.checked(entry)

    def checked(self, entry: Entry) -> Entry:
        """The entry; raises `UsageError` if it was written with other options under the same name."""
        if entry.options != self.options:
            raise self._refusal(entry.options)
        return entry

    def gone_at(self, window: Window, at: datetime) -> datetime | None:
        """When an entry of a window expires, if its newest event was at `at`."""
        if self.expire_after is None:
            return None
        return (at if window is ALL_TIME else window.end) + self.expire_after

    def is_over(self, window: Window, at: datetime) -> bool:
        """Whether such an entry has expired."""
        gone_at = self.gone_at(window, at)
        return gone_at is not None and gone_at <= self.now()

    def score_text(self, entry: Entry) -> str:
        """The text of an entry's score."""
        return entry.order[len(entry.window) + 1 :]

    def score_of(self, entry: Entry) -> Decimal:
        """An entry's score, rounded as in the ranking."""
        return self.digits.score(self.score_text(self.checked(entry)))

    # Ranks

    def ranking(self, window: str, *, renewed: bool = False) -> Ranking:
        """The ranking of a window, cached; with `renewed`, one without cached nodes."""
        ranking = None if renewed else self._rankings.get(window)
        if ranking is None:
            ranking = Ranking(self.calls, self.table, f"LEADERBOARD#{self.name}#{window}")
            if len(self._rankings) >= _REMEMBERED:
                self._rankings.clear()
            self._rankings[window] = ranking
        return ranking

    def ranked_score(self, entry: Entry) -> Decimal:
        """An entry's score in its ranking, where the best is the smallest."""
        score = self.score_of(entry)
        return score if self.best == "lowest" or not score else score.copy_negate()

    def ranking_key(self, entry: Entry) -> str:
        """An entry's key in the ranking of its window."""
        return ranking_key(self.ranked_score(entry), entry.member)
