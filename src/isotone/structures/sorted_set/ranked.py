"""The members of a set with ranks: a ranking, which is a tree of counts, knows who is the how-manyth.

Every change of a score brings the ranking up to date in its own transaction, one member at a time. In
return, ranks and counts read a few items, whatever the set's size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from isotone.model.steps import Steps
from isotone.model.writing.transactions import Transaction
from isotone.structures.ranking.keys import (
    after_score,
    before_score,
    ranking_key,
    read_ranking_key,
)
from isotone.structures.ranking.ranking import Ranking
from isotone.structures.sorted_set.bounds import EVERY_SCORE, ScoreRange, Window
from isotone.structures.sorted_set.members import (
    Change,
    Members,
    Scored,
    SortedSetMember,
    in_parts,
)

R = TypeVar("R")

_BATCH: Final = 10_000  # keys that are given to the ranking at once


class RankedMembers(Members):
    """The members of one set, whose order is also in a ranking."""

    members_at_once = 1
    adds_blindly = False

    def __init__(self, ranking: Ranking, *given: Any) -> None:
        super().__init__(*given)
        self._ranking = ranking

    # By rank

    def size(self) -> Steps[int]:
        return 0 if self._expiry.is_over() else (yield from self._ranking.size())

    def count(self, scores: ScoreRange) -> Steps[int]:
        if scores.is_empty or self._expiry.is_over():
            return 0
        low, high = before_score(scores.low), after_score(scores.high)
        return (yield from self._ranking.count(low, high))

    def rank(self, place: Scored, *, reverse: bool) -> Steps[int | None]:
        found = yield from self._ranking.place(ranking_key(place.score, place.member))
        if found is None:
            return None
        before, behind = found
        return behind if reverse else before

    def at(self, window: Window, *, reverse: bool) -> Steps[list[Scored]]:
        count = window.length
        if count is None:
            count = max(0, (yield from self.size()) - window.first)
        if self._expiry.is_over():
            return []
        keys = yield from self._ranking.at(window.first, count, reverse=reverse)
        return [Scored(found.member, found.score) for found in map(read_ranking_key, keys)]

    def pick(self, places: Sequence[int]) -> Steps[list[Scored]]:
        found: list[Scored] = []
        for place in places:
            found += yield from self.at(Window(place, 1), reverse=False)
        return found

    # Changing

    def settle(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        return (yield from self._ranking.settle(attempt))

    def note(self, together: Transaction, change: Change) -> Steps[None]:
        leaving, entering = (
            None if score is None else ranking_key(score, change.member)
            for score in (change.before, change.after)
        )
        yield from self._ranking.change(together, leaving=leaving, entering=entering)

    def fill(
        self, members: Iterable[SortedSetMember], progress: Callable[[int], None] | None
    ) -> Steps[tuple[int, int]]:
        """Write members, and make the ranking anew from all that there are."""
        written = 0
        batches: Iterator[list[str]] | None = None

        def batch() -> Steps[list[str]]:
            nonlocal written, batches
            if batches is None:  # from now on nobody else changes ranks
                written = yield from self._calls.put_many(members)
                batches = in_parts((yield from self._keys()), _BATCH)
            return next(batches, [])

        ranked = yield from self._ranking.rebuild(batch, progress=progress)
        return written, ranked

    def _keys(self) -> Steps[list[str]]:
        """The ranking keys of all members, in order. Holds them in memory, some hundred bytes each."""
        keys: list[str] = []
        for query in self.by_score(EVERY_SCORE):
            found = self._calls.traverse(query)
            while not found.is_over:
                keys += (ranking_key(each.score, each.member) for each in (yield from found.step()))
        keys.sort()
        return keys
