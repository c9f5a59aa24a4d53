"""How a board is read: first ones, neighbours, ranks.

A board is one partition, or several (shards) over which members are spread by a hash of their names. Each
has its entries in order; what is first of all is merged from what is first in each. A cursor holds the
place in every shard behind which the next page begins, and what rank has been given last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from typing import Final, NamedTuple, overload

from isotone.errors import InvalidCursor
from isotone.model import Stats, Steps
from isotone.structures.leaderboard.board import Board
from isotone.structures.leaderboard.entry import Entry
from isotone.structures.merging import Behind, Marks, Merged, Stream, merged
from isotone.structures.ranking import after_score, before_score

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


class Place(NamedTuple):
    """How far one has come on a board: behind so many, the last of whom had this rank and this order."""

    taken: int = 0
    rank: int = 0
    order: str = ""


def page(board: Board, window: str | None, size: int, cursor: str | None) -> Steps[Standings]:
    """The best of a window, or those behind a cursor. Cost: a query of `size` items for each shard."""
    place, behind = Place(), list[Behind]()
    if cursor is not None:
        of, *state, behind = board.calls.unseal(cursor, **board.identity)
        if window not in (None, of):
            raise InvalidCursor(f"the cursor belongs to window {of}, not to {window}")
        window, place = of, Place(*state)
    assert window is not None
    found = yield from _merged(board, window, size, behind)
    items, place = _numbered(board, found.items, place)
    further = None
    if not found.is_over:
        further = board.calls.seal([window, *place, found.behind], **board.identity)
    return Standings(window, items, further, found.stats)


def standing(board: Board, entry: Entry) -> Steps[Standing]:
    """Where an entry stands. Cost: that of its rank."""
    place = Place(0, (yield from rank(board, entry)), entry.order)
    (found,), _ = _numbered(board, [entry], place)
    return found


def around(board: Board, entry: Entry, number: int) -> Steps[list[Standing]]:
    """An entry between its neighbours. Cost: two queries of `number` items for each shard, and a rank."""
    here = [_MARKS.of(entry)] * board.shards
    behind = yield from _merged(board, entry.window, number, here)
    ahead = yield from _merged(board, entry.window, number, here, best_first=False)
    near = [*reversed(ahead.items), entry, *behind.items]
    # The index may still have the member where it was, or have it where it is by now.
    rows = [each for each in near if each is entry or each.member != entry.member]
    found, _ = _numbered(board, rows, (yield from _before(board, rows)))
    return found


def _before(board: Board, rows: Sequence[Entry]) -> Steps[Place]:
    """The place before some rows, which begin anywhere on the board."""
    first = rows[0]
    first_rank = yield from rank(board, first)
    equal = len(list(takewhile(lambda each: each.order == first.order, rows)))
    ahead = 0  # entries before the first row, with its score
    if equal < len(rows) and board.ties == "standard":
        ahead = (yield from _count_equal(board, first)) - equal
    return Place(first_rank - 1 + ahead, first_rank, first.order)


def _numbered(board: Board, entries: Iterable[Entry], place: Place) -> tuple[list[Standing], Place]:
    """The standings of entries that follow a place, and the place behind them."""
    found = []
    for entry in entries:
        rank, taken = place.rank, place.taken + 1
        if entry.order != place.order:
            rank = taken if board.ties == "standard" else rank + 1
        place = Place(taken, rank, entry.order)
        score = board.score_of(entry)
        found.append(Standing(rank, entry.member, score, entry.total, entry.count))
    return found, place


def _merged(
    board: Board, window: str, size: int, behind: Sequence[Behind], *, best_first: bool = True
) -> Steps[Merged[Entry]]:
    streams: list[Stream[Entry]] = []
    for shard in range(board.shards):
        query = board.query(shard, window)
        streams.append((query if best_first else query.reversed(), board.group(shard)))
    descending = (board.best == "highest") == best_first
    return merged(board.calls, streams, _MARKS, size, behind=behind, descending=descending)


# How many there are


def rank(board: Board, entry: Entry) -> Steps[int]:
    """The rank of an entry. Cost: a read of all that are better; of a ranking, an item for each level."""
    if board.is_ranked and board.ties == "standard":
        score = board.ranked_score(entry)
        return 1 + (yield from board.ranking(entry.window).rank(before_score(score)))
    better = board.digits.better(board.score_text(entry), board.best)
    if better is None:
        return 1
    if board.ties == "dense":
        return 1 + (yield from _count_scores(board, entry.window, better))
    return 1 + (yield from _count(board, entry.window, better))


def count(board: Board, window: str) -> Steps[int]:
    """How many there are. Cost: a read of all of them; of a ranking, of one item."""
    if board.is_ranked:
        return (yield from board.ranking(window).size())
    return (yield from _count(board, window))


def _count_equal(board: Board, entry: Entry) -> Steps[int]:
    """How many have the score of an entry."""
    if board.is_ranked:
        score = board.ranked_score(entry)
        ranking = board.ranking(entry.window)
        return (yield from ranking.count(before_score(score), after_score(score)))
    text = board.score_text(entry)
    return (yield from _count(board, entry.window, (text, text)))


def _count(board: Board, window: str, between: tuple[str, str] | None = None) -> Steps[int]:
    """How many entries there are, all or between two scores."""
    found = 0
    for shard in range(board.shards):
        found += yield from board.calls.count(board.query(shard, window, between))
    return found


def _count_scores(board: Board, window: str, between: tuple[str, str]) -> Steps[int]:
    scores: set[str] = set()
    for shard in range(board.shards):
        query = board.query(shard, window, between).select(Entry.order)
        scores.update(each.order for each in (yield from board.calls.all(query)))
    return len(scores)
