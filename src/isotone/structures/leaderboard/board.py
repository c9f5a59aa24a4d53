"""How a board lies in its table: partitions, keys, the queries of a window, and where its ranks are kept."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from isotone.errors import UsageError
from isotone.model.calls import Calls
from isotone.model.declaring.table import Table
from isotone.model.reading.patterns import Query
from isotone.structures.leaderboard.entry import Best, Digits, Entry, LeaderboardToken, Score, Ties
from isotone.structures.ranking.keys import ranking_key
from isotone.structures.ranking.ranking import Ranking
from isotone.structures.windows import ALL_TIME, Window, Windows

_REMEMBERED: Final = 8  # windows of which the way to the leaves of their rankings is kept in mind


@dataclass(frozen=True, slots=True)
class Board:
    """What a board was declared as; `has_groups` where its partitions have names of their own."""

    name: str
    entries: type[Any]
    tokens: type[LeaderboardToken]
    has_groups: bool
    score: Score
    best: Best
    ties: Ties
    digits: Digits
    windows: Windows
    keeps_history: bool
    expire_after: timedelta | None
    shards: int

    # Keys

    def key(self, member: str, window: Window) -> dict[str, Any]:
        """The fields of the primary key of a member's entry; raises `UsageError` for what is no name."""
        place = f"{window.label}#{member}" if self.keeps_history else member
        return {**self.group(zlib.crc32(_bytes_of(member)) % self.shards), "place": place}

    def group(self, shard: int) -> dict[str, Any]:
        """The field that tells partitions apart, where there are several."""
        if not self.has_groups:
            return {}
        return {"group": self.name if self.shards == 1 else f"{self.name}#{shard}"}

    def query(
        self, shard: int, window: str, between: tuple[str, str] | None = None
    ) -> Query[Entry]:
        """The entries of a window in one shard, the best first; all, or those between two scores."""
        groups = [Entry.group == group for group in self.group(shard).values()]
        prefix = f"{window}#"
        which = (
            Entry.order.begins_with(prefix)
            if between is None
            else Entry.order.between(prefix + between[0], prefix + between[1])
        )
        found: Query[Entry] = self.entries.by_score.where(*groups, which)
        return found if self.best == "lowest" else found.reversed()

    # Entries

    def gone_at(self, window: Window, at: datetime) -> datetime | None:
        """When an entry of a window expires, whose newest event was at an instant."""
        if self.expire_after is None:
            return None
        return (at if window is ALL_TIME else window.end) + self.expire_after

    def score_text(self, entry: Entry) -> str:
        """The score of an entry as it is written in its order."""
        return entry.order[len(entry.window) + 1 :]

    def ranked_score(self, entry: Entry) -> Decimal:
        """The score of an entry as its ranking has it: the best is the smallest."""
        score = self.digits.score(self.score_text(entry))
        return score if self.best == "lowest" else 0 - score

    def ranking_key(self, entry: Entry) -> str:
        """The key of an entry in the ranking of its window."""
        return ranking_key(self.ranked_score(entry), entry.member)

    @property
    def identity(self) -> dict[str, Any]:
        """What a cursor is bound to."""
        table = self.entries.__schema__.table.name
        return {"table": table, "board": self.name, "shards": self.shards, "best": self.best}


class Rankings:
    """The rankings of the windows of a board; each object remembers the way to its leaves."""

    def __init__(self, calls: Calls, table: Table, name: str) -> None:
        self._make: Callable[[str], Ranking] = lambda window: Ranking(
            calls, table, f"LEADERBOARD#{name}#{window}"
        )
        self._known: OrderedDict[str, Ranking] = OrderedDict()

    def of(self, window: str) -> Ranking:
        """The ranking of a window."""
        found = self._known.pop(window, None) or self._make(window)
        self._known[window] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    def unknown(self, window: str) -> Ranking:
        """The ranking of a window as one who has never seen it sees it."""
        return self._make(window)

    def forget(self, window: str) -> None:
        """Look at a ranking anew: something in the way to its leaves has changed."""
        self._known.pop(window, None)


def _bytes_of(member: str) -> bytes:
    if not isinstance(member, str) or not member:
        raise UsageError(f"{member!r} names no member: a name is a text of one character or more")
    try:
        return member.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{member!r} names no member: half of a surrogate pair is no text"
        ) from None
