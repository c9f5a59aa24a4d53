"""What differs between a set with ranks and one without: who knows which member is the how-manyth.

`ByIndex` asks the index of scores, which knows what is next but not how many came before: ranks and counts
read what they count. `ByRanking` asks a tree of counts (`ranking`), which every change of a score has to
bring up to date in its own transaction: ranks and counts read a few items, whatever the set's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, NamedTuple, Protocol, TypeVar

from isotone.errors import Contended, WriteRefused
from isotone.model.steps import Steps
from isotone.model.writing.carrying import pause_after
from isotone.model.writing.transactions import Transaction
from isotone.structures.ranking.keys import (
    HIGHEST,
    LOWEST,
    after_score,
    before_score,
    ranking_key,
    read_ranking_key,
)
from isotone.structures.ranking.ranking import Ranking
from isotone.structures.sorted_set.bounds import ScoreRange, Window
from isotone.structures.sorted_set.members import EVERY_SCORE, Members, Scored

R = TypeVar("R")

ATTEMPTS: Final = 60  # of a change that others overtake


def contended(members: Members) -> Contended:
    """The error of who was overtaken all the time."""
    return Contended(
        f"others changed members of {members.name!r} during each of {ATTEMPTS} attempts; "
        "try again later"
    )


class Change(NamedTuple):
    """A member's score before and after; None where it is no member."""

    member: str
    before: Decimal | None
    after: Decimal | None


class Order(Protocol):
    """What knows the order of a set's members."""

    members_at_once: int
    """How many members one transaction can change."""
    adds_blindly: bool
    """Whether a score can be added to without anything else changing."""

    def settle(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        """Run an attempt to change members until none overtakes it."""

    def note(self, together: Transaction, change: Change) -> Steps[None]:
        """Add to the transaction of a change whatever else follows from it."""

    def size(self) -> Steps[int]:
        """How many members there are."""

    def count(self, scores: ScoreRange) -> Steps[int]:
        """How many members have scores in a range."""

    def before(self, place: Scored) -> Steps[int | None]:
        """How many members stand before one; None where it is known to have another score by now."""

    def behind(self, place: Scored) -> Steps[int | None]:
        """How many members stand behind one; None where it is known to have another score by now."""

    def at(self, window: Window, *, reverse: bool) -> Steps[list[Scored]]:
        """The members in some places, counted from the least, or from the greatest."""

    def pick(self, places: Sequence[int]) -> Steps[list[Scored]]:
        """The members in single places."""

    def clear(self) -> Steps[None]:
        """Remove what is kept of an order that nobody needs any more."""


class ByIndex:
    """The order of a set without ranks."""

    members_at_once = 100
    adds_blindly = True

    def __init__(self, members: Members) -> None:
        self._members = members

    def settle(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        for number in range(ATTEMPTS):
            try:
                return (yield from attempt())
            except WriteRefused:
                yield pause_after(number)
        raise contended(self._members)

    def note(self, together: Transaction, change: Change) -> Steps[None]:
        yield from ()

    def size(self) -> Steps[int]:
        return (yield from self._members.count_between(EVERY_SCORE))

    def count(self, scores: ScoreRange) -> Steps[int]:
        return (yield from self._members.count_between(scores))

    def before(self, place: Scored) -> Steps[int]:
        return (yield from self._members.count_before(place))

    def behind(self, place: Scored) -> Steps[int]:
        return (yield from self._members.count_behind(place))

    def at(self, window: Window, *, reverse: bool) -> Steps[list[Scored]]:
        return (yield from self._members.between(EVERY_SCORE, window, reverse=reverse))

    def pick(self, places: Sequence[int]) -> Steps[list[Scored]]:
        if not places:
            return []
        found = yield from self._members.between(EVERY_SCORE, Window(0, max(places) + 1))
        return [found[place] for place in places if place < len(found)]

    def clear(self) -> Steps[None]:
        yield from ()


class ByRanking:
    """The order of a set with ranks; `is_over` tells whether the whole set has expired."""

    members_at_once = 1
    adds_blindly = False

    def __init__(self, ranking: Ranking, is_over: Callable[[], bool]) -> None:
        self._ranking = ranking
        self._is_over = is_over

    def settle(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        return (yield from self._ranking.settle(attempt))

    def note(self, together: Transaction, change: Change) -> Steps[None]:
        leaving, entering = (
            None if score is None else ranking_key(score, change.member)
            for score in (change.before, change.after)
        )
        yield from self._ranking.change(together, leaving=leaving, entering=entering)

    def size(self) -> Steps[int]:
        return 0 if self._is_over() else (yield from self._ranking.size())

    def count(self, scores: ScoreRange) -> Steps[int]:
        low = LOWEST
        if scores.low is not None:
            low = (after_score if scores.without_low else before_score)(scores.low)
        high = HIGHEST
        if scores.high is not None:
            high = (before_score if scores.without_high else after_score)(scores.high)
        if scores.is_empty or low >= high or self._is_over():
            return 0
        return (yield from self._ranking.count(low, high))

    def before(self, place: Scored) -> Steps[int | None]:
        found = yield from self._ranking.place(ranking_key(place.score, place.member))
        return None if found is None else found[0]

    def behind(self, place: Scored) -> Steps[int | None]:
        found = yield from self._ranking.place(ranking_key(place.score, place.member))
        return None if found is None else found[1]

    def at(self, window: Window, *, reverse: bool) -> Steps[list[Scored]]:
        if self._is_over():
            return []
        count = window.length
        if count is None:
            count = max(0, (yield from self._ranking.size()) - window.first)
        keys = yield from self._ranking.at(window.first, count, reverse=reverse)
        return [Scored(found.member, found.score) for found in map(read_ranking_key, keys)]

    def pick(self, places: Sequence[int]) -> Steps[list[Scored]]:
        found: list[Scored] = []
        for place in places:
            found += yield from self.at(Window(place, 1), reverse=False)
        return found

    def clear(self) -> Steps[None]:
        yield from self._ranking.clear()
