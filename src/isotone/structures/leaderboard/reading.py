"""How a board is read: first ones, neighbours, ranks.

A board is one partition, or several (shards) over which members are spread by a hash of their names. Each
has its entries in order; what is first of all is merged from what is first in each. A cursor holds the
place in every shard behind which the next page begins, so that nothing is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from typing import Final, overload

from isotone.errors import InvalidCursor
from isotone.model.calls import Calls
from isotone.model.reading.stats import Stats
from isotone.model.steps import Steps
from isotone.structures.leaderboard.board import Board, Rankings
from isotone.structures.leaderboard.entry import Entry, Ties
from isotone.structures.merging import Behind, Marks, Merged, Stream, merged
from isotone.structures.ranking.keys import after_score, before_score
from isotone.structures.windows import Window

_MARKS: Final[Marks[Entry]] = Marks(
    of=lambda entry: (entry.order, entry.place),
    fields=lambda mark: {"order": mark[0], "place": mark[1]},
)


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
        return (yield from self._page(window, size, (), Numbering(self._board.ties)))

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
        found = yield from self._merged(window, size, behind)
        items = [self._seen(numbering.next(each.order), each) for each in found.items]
        cursor = None
        if not found.is_over:
            state = [window, numbering.taken, numbering.rank, numbering.order, found.behind]
            cursor = self._calls.seal(state, **self._board.identity)
        return Standings(window, items, cursor, found.stats)

    def _merged(
        self, window: str, size: int, behind: Sequence[Behind], *, best_first: bool = True
    ) -> Steps[Merged[Entry]]:
        board, streams = self._board, []
        for shard in range(board.shards):
            query = board.query(shard, window)
            streams.append(Stream(query if best_first else query.reversed(), board.group(shard)))
        descending = (board.best == "highest") == best_first
        return (
            yield from merged(
                self._calls, streams, _MARKS, size, behind=behind, descending=descending
            )
        )

    # Ranks

    def rank(self, entry: Entry) -> Steps[int]:
        """The rank of an entry. Cost: that of a count of all that are better."""
        board, text = self._board, self._board.score_text(entry)
        if self._rankings is not None and board.ties == "standard":
            score = board.ranked_score(entry)
            return 1 + (yield from self._rankings.of(entry.window).rank(before_score(score)))
        better = board.digits.better(text, board.best)
        if better is None:
            return 1
        if board.ties == "dense":
            return 1 + (yield from self._count_scores(entry.window, better))
        return 1 + (yield from self._count(entry.window, better))

    def count(self, window: str) -> Steps[int]:
        """How many there are. Cost: a read of all of them; of a ranking, of one item."""
        if self._rankings is not None:
            return (yield from self._rankings.of(window).size())
        return (yield from self._count(window))

    def _count_equal(self, entry: Entry) -> Steps[int]:
        """How many have the score of an entry."""
        if self._rankings is not None:
            score = self._board.ranked_score(entry)
            ranking = self._rankings.of(entry.window)
            return (yield from ranking.count(before_score(score), after_score(score)))
        text = self._board.score_text(entry)
        return (yield from self._count(entry.window, (text, text)))

    def _count(self, window: str, between: tuple[str, str] | None = None) -> Steps[int]:
        """How many entries there are, all or between two scores."""
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
        here = [_MARKS.of(entry)] * self._board.shards
        behind = yield from self._merged(entry.window, number, here)
        ahead = yield from self._merged(entry.window, number, here, best_first=False)
        near = [*reversed(ahead.items), entry, *behind.items]
        # The index may still have the member where it was, or have it where it is by now.
        rows = [each for each in near if each is entry or each.member != entry.member]
        numbering = yield from self._numbering(rows)
        return [self._seen(numbering.next(each.order), each) for each in rows]

    def _numbering(self, rows: Sequence[Entry]) -> Steps[Numbering]:
        """What ranks the rows, which begin somewhere on the board."""
        first = rows[0]
        rank = yield from self.rank(first)
        equal = len(list(takewhile(lambda each: each.order == first.order, rows)))
        before = 0  # entries that stand before the first row, with its score
        if equal < len(rows) and self._board.ties == "standard":
            before = (yield from self._count_equal(first)) - equal
        return Numbering(self._board.ties, rank - 1 + before, rank, first.order)
