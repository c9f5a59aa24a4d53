"""The options of a leaderboard: checked, recorded in its table, and turned into keys and queries (`Board`).

All objects of one board must have the same options. Each entry records them in words. One more item does, too, because
a board with another number of shards, or other windows, would find none of the entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Final, Literal

from isotone.errors import UsageError
from isotone.model import Attr, Calls, Entity, Key, Query, Steps, Table, field
from isotone.structures.leaderboard_entries import (
    Best,
    BoardEntry,
    Digits,
    LeaderboardToken,
    Score,
    entry_kind,
    group_of,
)
from isotone.structures.ranking import Ranking, ranking_key
from isotone.structures.sharding import shard_of
from isotone.structures.structure import bind_entity
from isotone.structures.time_windows import ALL_TIME, Window, Windows
from isotone.structures.waits_and_retries import retry_on_conflict

Ties = Literal["standard", "dense"]

AHEAD: Final = timedelta(minutes=5)
_MOST_DIGITS: Final = 38
_MAX_CACHED: Final = 8  # windows whose rankings are cached


class LeaderboardOptions(Entity):
    """The options with which a board was declared."""

    board: Attr[str] = field()
    options: Attr[str] = field(description="in words, as in each entry")
    shards: Attr[int] = field()

    primary: ClassVar[Key] = Key("LEADERBOARD_OPTIONS", board).sort("LEADERBOARD_OPTIONS")


def valid_name(name: str | None) -> str:
    """The name of a board, empty for the only one of a table; raises `UsageError`."""
    if name is not None and (not name or "#" in name):
        raise UsageError(
            f"{name!r} cannot be the name of a board: it has one character or more, and no #"
        )
    return name or ""


@dataclass(frozen=True, slots=True)
class Board:
    """A board with its options: the keys of its entries, its queries and its rankings."""

    calls: Calls
    entries: type[Any]
    tokens: type[LeaderboardToken]
    declarations: type[LeaderboardOptions]
    name: str
    score: Score
    best: Best
    ties: Ties
    windows: Windows
    digits: Digits
    keeps_history: bool
    expire_after: timedelta | None
    ahead: timedelta
    shards: int
    is_ranked: bool
    options: str = dataclass_field(init=False)
    """The options in words."""
    _rankings: dict[str, Ranking] = dataclass_field(default_factory=dict)
    _checked: set[str] = dataclass_field(default_factory=set)
    """The options in words, once they have been compared with the stored ones."""

    def __post_init__(self) -> None:
        digits = self.digits
        for what, least, number in (
            ("shards", 1, self.shards),
            ("digits", 1, digits.whole),
            ("scale", 0, digits.scale),
        ):
            if number < least:
                raise UsageError(f"{what} must be {least} or more, not {number}")
        if digits.whole + digits.scale > _MOST_DIGITS:
            raise UsageError(
                f"a score has at most {_MOST_DIGITS} digits, not {digits.whole} and {digits.scale}"
            )
        if self.expire_after is not None and self.expire_after < timedelta(0):
            raise UsageError(f"expire_after={self.expire_after!r} is before the end of the window")
        if self.is_ranked and self.expire_after is not None and self.windows.length is None:
            raise UsageError("ranks of all time cannot expire; give the board a window")
        object.__setattr__(self, "options", ", ".join(self._in_words()))

    def _in_words(self) -> Iterator[str]:
        """The options in words, except those with their default value."""
        digits = self.digits
        yield self.windows.name
        yield self.best if self.score == "best" else self.score
        yield f"{digits.whole}.{digits.scale} digits"
        others = (
            ("history", self.keeps_history),
            (f"ranked by the {self.best}", self.is_ranked),
            (f"{self.ties} ties", self.ties != "standard"),
            (f"expires after {self.expire_after}", self.expire_after is not None),
            (f"{self.ahead} ahead", self.ahead != AHEAD),
            (f"{self.shards} shards", self.shards > 1),
        )
        yield from (words for words, is_given in others if is_given)

    def now(self) -> datetime:
        """The time by the store's clock."""
        return datetime.fromtimestamp(self.calls.clock.now(), UTC)

    # Keys

    def key(self, member: str, window: Window) -> dict[str, Any]:
        """The fields of the primary key of a member's entry."""
        if not isinstance(member, str) or not member:
            raise UsageError(
                f"{member!r} cannot be a member; give a string of one character or more"
            )
        place = f"{window.label}#{member}" if self.keeps_history else member
        return {**self.group(shard_of(member, self.shards)), "place": place}

    def group(self, shard: int) -> dict[str, Any]:
        """The field that selects a partition; empty for the only board of a table with one partition."""
        return group_of(self.name, shard, self.shards)

    def query(
        self, shard: int, window: str, between: tuple[str, str] | None = None
    ) -> Query[BoardEntry]:
        """The entries of a window in one shard, the best first; all, or those between two scores."""
        groups = [BoardEntry.group == group for group in self.group(shard).values()]
        which = BoardEntry.order.begins_with(f"{window}#")
        if between is not None:
            which = BoardEntry.order.between(*(f"{window}#{score}" for score in between))
        query: Query[BoardEntry] = self.entries.by_score.where(*groups, which)
        return query if self.best == "lowest" else query.reversed()

    @property
    def identity(self) -> dict[str, Any]:
        """Identifies the board in its cursors."""
        return {
            "table": self.table.name,
            "board": self.name,
            "shards": self.shards,
            "best": self.best,
        }

    # Options

    def declare(self) -> Steps[None]:
        """Store the options of a new board, or check that they are the stored ones.

        Reads one item, the first time. Raises `UsageError` if the stored board has other options, and members. Entries
        cannot show this alone: with another number of shards, or other windows, none would be found.
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
        """Check the options as `declare` does, but store none; returns those of another, empty board."""
        if self.options in self._checked:
            return None
        stored = yield from self.calls.get(self.declarations, consistent=True, board=self.name)
        if stored is not None and stored.options == self.options:
            self._checked.add(self.options)
        elif stored is not None and (yield from self._has_entries(stored.shards)):
            raise self._refusal(stored.options)
        return stored

    def _has_entries(self, shards: int) -> Steps[bool]:
        """Whether a board of this name with this number of shards has any entry."""
        kind: Any = bind_entity(self.table, entry_kind(self.name, shards))
        for shard in range(shards):
            group = [
                BoardEntry.group == value for value in group_of(self.name, shard, shards).values()
            ]
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

    def find(self, member: str, window: Window) -> Steps[BoardEntry | None]:
        """A member's entry; without history, that of its newest window."""
        key = self.key(member, window)
        entry: BoardEntry | None = yield from self.calls.get(self.entries, consistent=True, **key)
        if entry is None:
            yield from self.check_options()
            return None
        return self.checked(entry)

    def checked(self, entry: BoardEntry) -> BoardEntry:
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
        """Whether an entry whose newest event was at `at` has expired."""
        gone_at = self.gone_at(window, at)
        return gone_at is not None and gone_at <= self.now()

    def score_text(self, entry: BoardEntry) -> str:
        """The text of an entry's score."""
        return entry.order[len(entry.window) + 1 :]

    def score_of(self, entry: BoardEntry) -> Decimal:
        """An entry's score, rounded as in the ranking."""
        return self.digits.score(self.score_text(self.checked(entry)))

    # Ranks

    def ranking(self, window: str, *, renewed: bool = False) -> Ranking:
        """The ranking of a window, cached; with `renewed`, one without cached nodes."""
        ranking = None if renewed else self._rankings.get(window)
        if ranking is None:
            ranking = Ranking(self.calls, self.table, f"LEADERBOARD#{self.name}#{window}")
            if len(self._rankings) >= _MAX_CACHED:
                self._rankings.clear()
            self._rankings[window] = ranking
        return ranking

    def ranked_score(self, entry: BoardEntry) -> Decimal:
        """An entry's score in its ranking, where the best is the smallest."""
        score = self.score_of(entry)
        return score if self.best == "lowest" or not score else score.copy_negate()

    def ranking_key(self, entry: BoardEntry) -> str:
        """An entry's key in the ranking of its window."""
        return ranking_key(self.ranked_score(entry), entry.member)
