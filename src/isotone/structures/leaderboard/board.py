"""How a board lies in its table: partitions, keys, the queries of a window, and where its ranks are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from isotone.errors import UsageError
from isotone.model import Calls, Query, Steps
from isotone.structures.leaderboard.entry import Best, Digits, Entry, LeaderboardToken, Score, Ties
from isotone.structures.merging import shard_of
from isotone.structures.ranking import Ranking, ranking_key
from isotone.structures.windows import ALL_TIME, Window

_REMEMBERED: Final = 8  # windows of which the way to the leaves of their rankings is kept in mind


@dataclass(frozen=True, slots=True)
class Board:
    """What a board was declared as, its entities in its table, and the calls of its store."""

    calls: Calls
    entries: type[Any]
    tokens: type[LeaderboardToken]
    name: str
    score: Score
    best: Best
    ties: Ties
    digits: Digits
    keeps_history: bool
    expire_after: timedelta | None
    shards: int
    is_ranked: bool
    kind: str
    """What it was declared as, as far as its entries have to be of the same."""
    _rankings: dict[str, Ranking] = field(default_factory=dict)

    def now(self) -> datetime:
        """The time by the store's clock."""
        return datetime.fromtimestamp(self.calls.clock.now(), UTC)

    # Keys

    def key(self, member: str, window: Window) -> dict[str, Any]:
        """The fields of the primary key of a member's entry; raises `UsageError` for what is no name."""
        if not isinstance(member, str) or not member:
            raise UsageError(
                f"{member!r} names no member: a name is a text of one character or more"
            )
        place = f"{window.label}#{member}" if self.keeps_history else member
        return {**self.group(shard_of(member, self.shards)), "place": place}

    def group(self, shard: int) -> dict[str, Any]:
        """The field that tells partitions apart, where there are several."""
        if self.shards > 1:
            return {"group": f"{self.name}#{shard}"}
        return {"group": self.name} if self.name else {}

    def query(
        self, shard: int, window: str, between: tuple[str, str] | None = None
    ) -> Query[Entry]:
        """The entries of a window in one shard, the best first; all, or those between two scores."""
        groups = [Entry.group == group for group in self.group(shard).values()]
        which = Entry.order.begins_with(f"{window}#")
        if between is not None:
            which = Entry.order.between(*(f"{window}#{score}" for score in between))
        found: Query[Entry] = self.entries.by_score.where(*groups, which)
        return found if self.best == "lowest" else found.reversed()

    @property
    def identity(self) -> dict[str, Any]:
        """What a cursor is bound to."""
        table = self.entries.__schema__.table.name
        return {"table": table, "board": self.name, "shards": self.shards, "best": self.best}

    # Entries

    def find(self, member: str, window: Window) -> Steps[Entry | None]:
        """The entry under a member's key; without history, of whichever window it has come to."""
        key = self.key(member, window)
        found: Entry | None = yield from self.calls.get(self.entries, consistent=True, **key)
        return None if found is None else self.own(found)

    def own(self, entry: Entry) -> Entry:
        """The entry; raises `UsageError` where it is that of another board under the same name."""
        if entry.kind == self.kind:
            return entry
        whose = f"the board {self.name!r}" if self.name else "the board without a name"
        raise UsageError(
            f"{whose} in table {self.entries.__schema__.table.name!r} is kept by ({entry.kind}), and not by "
            f"({self.kind}); give this one a name of its own, or declare it as elsewhere"
        )

    def gone_at(self, window: Window, at: datetime) -> datetime | None:
        """When an entry of a window expires, whose newest event was at an instant."""
        if self.expire_after is None:
            return None
        return (at if window is ALL_TIME else window.end) + self.expire_after

    def is_over(self, window: Window, at: datetime) -> bool:
        """Whether an entry of a window, whose newest event was at an instant, has expired."""
        gone_at = self.gone_at(window, at)
        return gone_at is not None and gone_at <= self.now()

    def score_text(self, entry: Entry) -> str:
        """The score of an entry as it is written in its order."""
        return entry.order[len(entry.window) + 1 :]

    def score_of(self, entry: Entry) -> Decimal:
        """The score of an entry as it is ranked."""
        return self.digits.score(self.score_text(self.own(entry)))

    # Ranks

    def ranking(self, window: str, *, afresh: bool = False) -> Ranking:
        """The ranking of a window, which remembers the way to its leaves; or one that has to find it again."""
        found = None if afresh else self._rankings.get(window)
        if found is None:
            table = self.entries.__schema__.table
            found = Ranking(self.calls, table, f"LEADERBOARD#{self.name}#{window}")
            if len(self._rankings) >= _REMEMBERED:
                self._rankings.clear()
            self._rankings[window] = found
        return found

    def ranked_score(self, entry: Entry) -> Decimal:
        """The score of an entry as its ranking has it: the best is the smallest."""
        score = self.score_of(entry)
        return score if self.best == "lowest" or not score else score.copy_negate()

    def ranking_key(self, entry: Entry) -> str:
        """The key of an entry in the ranking of its window."""
        return ranking_key(self.ranked_score(entry), entry.member)
