"""How a board lies in its table, and how it is read: first ones, neighbours, ranks.

A board is one partition, or several (shards) over which members are spread by a hash of their names. Each
has its entries in order; what is first of all is merged from what is first in each. A cursor holds the
place in every shard behind which the next page begins, so that nothing is read twice.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, Final

from isotone.errors import InvalidCursor
from isotone.model.calls import Calls
from isotone.model.patterns import Query
from isotone.model.reading import Page
from isotone.model.stats import Stats
from isotone.model.steps import Steps
from isotone.structures.leaderboard_entry import (
    Best,
    Digits,
    Entry,
    Numbering,
    Standing,
    Standings,
    Ties,
)

_FROM_THE_BEGINNING: Final = None
_AT_THE_END: Final = False
Behind = tuple[str, str] | bool | None
"""Where a shard is read on: behind an entry of this order and place; not at all; from the beginning."""


@dataclass(frozen=True, slots=True)
class Board:
    """Where the entries of a board are; `has_groups` where its partitions have names of their own."""

    name: str
    entries: type[Any]
    has_groups: bool
    shards: int
    best: Best
    ties: Ties
    digits: Digits

    def key(self, member: str, place: str) -> dict[str, Any]:
        """The fields of a member's primary key."""
        shard = zlib.crc32(member.encode()) % self.shards
        return {**self.group(shard), "place": place}

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

    def score_text(self, entry: Entry) -> str:
        """The score of an entry as it is written in its order."""
        return entry.order[len(entry.window) + 1 :]

    def standing(self, rank: int, entry: Entry) -> Standing:
        """What readers see of an entry."""
        score = self.digits.score(self.score_text(entry))
        return Standing(rank, entry.member, score, entry.total, entry.count)

    @property
    def identity(self) -> dict[str, Any]:
        """What a cursor is bound to."""
        table = self.entries.__schema__.table.name
        return {"table": table, "board": self.name, "shards": self.shards, "best": self.best}


class LeaderboardReading:
    """The steps that read a board."""

    def __init__(self, calls: Calls, board: Board) -> None:
        self._calls = calls
        self._board = board

    def first(self, window: str, size: int) -> Steps[Standings]:
        """The best of a window. Cost: a query of `size` items for each shard."""
        behind: list[Behind] = [_FROM_THE_BEGINNING] * self._board.shards
        return (yield from self._page(window, size, behind, Numbering(self._board.ties)))

    def further(self, cursor: str, size: int, window: str | None) -> Steps[Standings]:
        """Those behind a cursor; raises `InvalidCursor`."""
        state = self._calls.unseal(cursor, **self._board.identity)
        of, taken, rank, order, behind = state
        if window not in (None, of):
            raise InvalidCursor(f"the cursor belongs to window {of}, not to {window}")
        numbering = Numbering(self._board.ties, taken, rank, order)
        return (yield from self._page(of, size, behind, numbering))

    def _page(
        self, window: str, size: int, behind: Sequence[Behind], numbering: Numbering
    ) -> Steps[Standings]:
        pages: list[Page[Entry] | None] = []
        for shard, place in enumerate(behind):
            query = self._board.query(shard, window)
            over = place is _AT_THE_END
            pages.append(None if over else (yield from self._behind(query, shard, place, size)))
        taken = self._merged([[] if page is None else page.items for page in pages], size)
        items = [self._board.standing(numbering.next(each.order), each) for _, each in taken]
        after = [
            _progress(place, page, [each for its, each in taken if its == shard])
            for shard, (place, page) in enumerate(zip(behind, pages, strict=True))
        ]
        cursor = None
        if any(place is not _AT_THE_END for place in after):
            state = [window, numbering.taken, numbering.rank, numbering.order, after]
            cursor = self._calls.seal(state, **self._board.identity)
        return Standings(window, items, cursor, _sum([page.stats for page in pages if page]))

    def _behind(
        self, query: Query[Entry], shard: int, place: Behind, size: int
    ) -> Steps[Page[Entry]]:
        cursor = None
        if isinstance(place, Sequence):
            values = {**self._board.group(shard), "order": place[0], "place": place[1]}
            cursor = self._calls.cursor_behind(query, **values)
        return (yield from self._calls.page(query, size=size, cursor=cursor))

    def _merged(
        self, streams: Sequence[Sequence[Entry]], size: int, *, best_first: bool = True
    ) -> list[tuple[int, Entry]]:
        """The first of several ordered streams, each with the number of its stream."""
        numbered = [[(shard, each) for each in stream] for shard, stream in enumerate(streams)]
        descending = (self._board.best == "highest") == best_first
        merged = heapq.merge(*numbered, key=_order_of, reverse=descending)
        return list(islice(merged, size))

    # Ranks

    def rank(self, entry: Entry) -> Steps[int]:
        """The rank of an entry. Cost: that of a count of all that are better."""
        better = self._board.digits.range(
            self._board.score_text(entry), self._board.best, better=True
        )
        if better is None:
            return 1
        if self._board.ties == "dense":
            return 1 + (yield from self._count_scores(entry.window, better))
        return 1 + (yield from self.count(entry.window, better))

    def count(self, window: str, between: tuple[str, str] | None = None) -> Steps[int]:
        """How many there are, all or between two scores. Cost: a read of all of them."""
        found = 0
        for shard in range(self._board.shards):
            found += yield from self._calls.count(self._board.query(shard, window, between))
        return found

    def _count_scores(self, window: str, between: tuple[str, str]) -> Steps[int]:
        scores: set[str] = set()
        for shard in range(self._board.shards):
            query = self._board.query(shard, window, between).select(Entry.order)
            scores.update(each.order for each in (yield from self._calls.all(query)))
        return len(scores)

    def around(self, entry: Entry, number: int) -> Steps[list[Standing]]:
        """An entry between its neighbours. Cost: two queries of `number` items for each shard, and a rank."""
        ahead, behind = [], []
        place = (entry.order, entry.place)
        for shard in range(self._board.shards):
            query = self._board.query(shard, entry.window)
            behind.append((yield from self._behind(query, shard, place, number)).items)
            ahead.append((yield from self._behind(query.reversed(), shard, place, number)).items)
        nearest = self._merged(ahead, number, best_first=False)
        rows = [each for _, each in reversed(nearest)]
        rows += [entry, *(each for _, each in self._merged(behind, number))]
        numbering = yield from self._numbering(rows)
        return [self._board.standing(numbering.next(each.order), each) for each in rows]

    def _numbering(self, rows: Sequence[Entry]) -> Steps[Numbering]:
        """What ranks the rows, which begin somewhere on the board."""
        first = rows[0]
        rank = yield from self.rank(first)
        equal = len(list(takewhile(lambda each: each.order == first.order, rows)))
        before = 0  # entries that stand before the first row, with its score
        if equal < len(rows) and self._board.ties == "standard":
            text = self._board.score_text(first)
            before = (yield from self.count(first.window, (text, text))) - equal
        return Numbering(self._board.ties, rank - 1 + before, rank, first.order)


def _order_of(numbered: tuple[int, Entry]) -> tuple[str, str]:
    return numbered[1].order, numbered[1].place


def _progress(place: Behind, page: Page[Entry] | None, taken: Sequence[Entry]) -> Behind:
    """Where a shard is read on, after some of a page were taken."""
    if page is None or (len(taken) == len(page.items) and page.cursor is None):
        return _AT_THE_END
    return (taken[-1].order, taken[-1].place) if taken else place


def _sum(each: Sequence[Stats]) -> Stats:
    return Stats(
        sum(stats.scanned for stats in each),
        sum(stats.returned for stats in each),
        sum(stats.units for stats in each),
        sum(stats.requests for stats in each),
        sum(stats.bytes for stats in each),
    )
