"""How a board is read: first ones, neighbours, ranks.

A board is one partition, or several (shards) over which members are spread by a hash of their names. Each
has its entries in order; what is first of all is merged from what is first in each. A cursor holds the
place in every shard behind which the next page begins, so that nothing is read twice.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, takewhile
from typing import Final, overload

from isotone.errors import InvalidCursor
from isotone.model.calls import Calls
from isotone.model.patterns import Query
from isotone.model.reading import Page
from isotone.model.stats import Stats
from isotone.model.steps import Steps
from isotone.structures.leaderboard_board import Board, Rankings
from isotone.structures.leaderboard_entry import Entry, Ties
from isotone.structures.ranking_keys import after_score, before_score
from isotone.structures.windows import Window

_FROM_THE_BEGINNING: Final = None
_AT_THE_END: Final = False
Behind = tuple[str, str] | bool | None
"""Where a shard is read on: behind an entry of this order and place; not at all; from the beginning."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a member stands: `score` is what is ranked, `total` and `count` are exact."""

    rank: int
    member: str
    score: Decimal
    total: Decimal
    count: int


@dataclass(frozen=True, slots=True)
class Standings(Sequence[Standing]):
    """Some members in their order; `cursor` is None where nothing follows, `stats` is what was read."""

    window: str
    items: list[Standing]
    cursor: str | None
    stats: Stats

    @overload
    def __getitem__(self, place: int) -> Standing: ...
    @overload
    def __getitem__(self, place: slice) -> list[Standing]: ...
    def __getitem__(self, place: int | slice) -> Standing | list[Standing]:
        return self.items[place]

    def __iter__(self) -> Iterator[Standing]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Numbering:
    """The ranks of members that come one after the other.

    After `taken` members, of whom the last had this rank and this order.
    """

    def __init__(self, ties: Ties, taken: int = 0, rank: int = 0, order: str = "") -> None:
        self._ties = ties
        self.taken = taken
        self.rank = rank
        self.order = order

    def next(self, order: str) -> int:
        """The rank of the next one: that of the last where both have the same score."""
        self.taken += 1
        if order != self.order:
            self.rank = self.taken if self._ties == "standard" else self.rank + 1
            self.order = order
        return self.rank


class LeaderboardReading:
    """The steps that read a board."""

    def __init__(self, calls: Calls, board: Board, rankings: Rankings | None) -> None:
        self._calls = calls
        self._board = board
        self._rankings = rankings

    def standing(self, member: str, window: Window) -> Steps[Standing | None]:
        """Where a member stands in a window; None where it is not there."""
        entry = yield from self._find(member, window)
        return None if entry is None else self._seen((yield from self.rank(entry)), entry)

    def around(self, member: str, window: Window, number: int) -> Steps[list[Standing]]:
        """A member between its neighbours; nothing where it is not there."""
        entry = yield from self._find(member, window)
        return [] if entry is None else (yield from self._around(entry, number))

    def _find(self, member: str, window: Window) -> Steps[Entry | None]:
        key = self._board.key(member, window)
        found: Entry | None = yield from self._calls.get(
            self._board.entries, consistent=True, **key
        )
        return found if found is not None and found.window == window.label else None

    def _seen(self, rank: int, entry: Entry) -> Standing:
        score = self._board.digits.score(self._board.score_text(entry))
        return Standing(rank, entry.member, score, entry.total, entry.count)

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
        items = [self._seen(numbering.next(each.order), each) for _, each in taken]
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
        if self._rankings is not None:
            ranking = self._rankings.of(window)
            if between is None:
                return (yield from ranking.size())
            low, high = map(self._board.digits.score, between)
            return (yield from ranking.count(before_score(low), after_score(high)))
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

    def _around(self, entry: Entry, number: int) -> Steps[list[Standing]]:
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
        return [self._seen(numbering.next(each.order), each) for each in rows]

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
