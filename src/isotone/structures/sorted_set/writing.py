"""How the members of a sorted set change: read, decided, and written on the condition of what was read.

A change that somebody overtook is decided anew with what is there then, so no increment is lost and no
member popped twice. Up to a hundred members change in one transaction, in a set with ranks one. A plain
increment of a set without ranks needs none of that: the database adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from isotone.errors import Contended, IsotoneError, NotFound, ValidationException, WriteRefused
from isotone.model import Calls, Steps, Transaction, pause_after
from isotone.model.declaring import changes as kinds
from isotone.structures.ranking import Ranking, ranking_key
from isotone.structures.sorted_set.bounds import EVERY_SCORE, ScoreRange, Window, plain, plus
from isotone.structures.sorted_set.expiry import Expiry
from isotone.structures.sorted_set.members import Members, Scored, SortedSetMember

R = TypeVar("R")
Decide = Callable[[str, Decimal | None], Decimal | None]
"""From a member and its score to the score that it is to have; None is no member."""
Progress = Callable[[int], None]

_AT_ONCE: Final = 100  # members that one transaction changes
_ATTEMPTS: Final = 60  # of a change that others overtake
_BATCH: Final = 10_000  # keys that are given to the ranking at once


class Change(NamedTuple):
    """A member's score before and after; None where it is no member."""

    member: str
    before: Decimal | None
    after: Decimal | None

    @property
    def has_effect(self) -> bool:
        return self.before != self.after

    @property
    def takes_out(self) -> bool:
        return self.before is not None and self.after is None

    def keys(self) -> Iterator[str | None]:
        """The key that leaves a ranking, and the one that enters it."""
        for score in (self.before, self.after):
            yield None if score is None else ranking_key(score, self.member)


class Writer:
    """Changes the members of one set."""

    def __init__(
        self, calls: Calls, members: Members, expiry: Expiry, ranking: Ranking | None
    ) -> None:
        self._calls = calls
        self._members = members
        self._expiry = expiry
        self._ranking = ranking
        self._at_once = _AT_ONCE if ranking is None else 1

    # Scores

    def change(self, members: Iterable[str], decide: Decide) -> Steps[list[Change]]:
        """Give each member the score that is decided from its own; what has changed, and what has not."""
        distinct = list(dict.fromkeys(members))
        done: list[Change] = []
        settle = self._settle if self._ranking is None else self._ranking.settle
        for some in in_parts(distinct, self._at_once):
            found, moment = yield from settle(partial(self._attempt, some, decide))
            yield from self._stamp_again([each.member for each in found if each.has_effect], moment)
            done += found
        if any(each.takes_out for each in done):
            yield from self._forget_if_empty()
        return done

    def remove(self, members: Iterable[str], scores: ScoreRange = EVERY_SCORE) -> Steps[int]:
        """Take out members that have such scores; how many there were."""

        def unless_beyond(member: str, score: Decimal | None) -> Decimal | None:
            return None if score is None or score in scores else score

        changes = yield from self.change(members, unless_beyond)
        return sum(each.takes_out for each in changes)

    def add(self, member: str, amount: Decimal) -> Steps[Decimal]:
        """Add to a score, which begins with 0; the sum. One write, where nothing but the score changes."""
        if self._ranking is None and not self._expiry.is_over():
            moment = yield from self._expiry.moment()
            changes = [SortedSetMember.score.add(amount), *self._stamped(moment)]
            key = self._members.key_of(member)
            try:
                written = yield from self._calls.upsert(self._members.kind, *changes, **key)
            except ValidationException:
                pass  # the sum cannot be stored: below it is added with an error in words
            else:
                yield from self._stamp_again([member], moment)
                return plain(written.score)
        (changed,) = yield from self.change([member], lambda _, score: plus(score, amount))
        return plus(changed.before, amount)

    def pop(self, count: int, *, reverse: bool) -> Steps[list[Scored]]:
        """Take out the members with the least scores, or the greatest; nobody else gets the same."""
        popped: list[Scored] = []
        try:
            for number in range(_ATTEMPTS):
                had, window = len(popped), Window(0, count - len(popped))
                seen = yield from self._members.at(window, reverse=reverse)
                for some in in_parts(seen, self._at_once):
                    popped += yield from self.take(some)
                if len(popped) == had + len(seen):
                    return popped
                yield pause_after(number)
            raise self._contended()
        except IsotoneError:
            if popped:
                return popped  # what is out of the set already has to reach the caller
            raise

    def take(self, seen: Sequence[Scored]) -> Steps[list[Scored]]:
        """Take out those members that still have the scores with which they were seen."""
        scores = dict(seen)

        def unless_changed(member: str, score: Decimal | None) -> Decimal | None:
            return None if score == scores[member] else score

        changes = yield from self.change(scores, unless_changed)
        gone = {(each.member, each.before) for each in changes if each.takes_out}
        return [each for each in seen if each in gone]  # who moved in between may be seen twice

    def replace(self, scores: Mapping[str, Decimal]) -> Steps[int]:
        """Make the set one of these members alone, without an expiry that was set; how many they are."""
        if self._expiry.changes:
            yield from self._expiry.keep(None)
        there = yield from self._members.all()
        members = {*scores, *(each.member for each in there)}
        yield from self.change(sorted(members), lambda member, _: scores.get(member))
        if self._expiry.changes:
            yield from self._stamp(scores, None)
        return len(scores)

    def _attempt(
        self, members: Sequence[str], decide: Decide
    ) -> Steps[tuple[list[Change], datetime | None]]:
        """Read, decide and write; what has changed and what has not, and when the set then expired."""
        moment = yield from self._expiry.moment()
        before = yield from self._members.scores(members)
        found = [
            Change(member, score, decide(member, score))
            for member, score in zip(members, before, strict=True)
        ]
        changes = [each for each in found if each.has_effect]
        if changes and not self._expiry.is_over():
            together = self._calls.transaction()
            for change in changes:
                self._write(together, change, moment)
                if self._ranking is not None:
                    leaving, entering = change.keys()
                    yield from self._ranking.change(together, leaving=leaving, entering=entering)
            yield from together.commit()
        return found, moment

    def _write(self, together: Transaction, change: Change, moment: datetime | None) -> None:
        kind, key = self._members.kind, self._members.key_of(change.member)
        if change.before is None:
            assert change.after is not None
            together.create(kind(**key, score=change.after, gone_at=moment))
            return
        as_read = SortedSetMember.score == change.before
        if change.after is None:
            together.delete(kind, when=as_read, **key)
        else:
            changes = [SortedSetMember.score.set(change.after), *self._stamped(moment)]
            together.update(kind, *changes, when=as_read, **key)

    def _settle(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        """Run an attempt to change members until none overtakes it."""
        for number in range(_ATTEMPTS):
            try:
                return (yield from attempt())
            except WriteRefused:
                yield pause_after(number)
        raise self._contended()

    def _contended(self) -> Contended:
        return Contended(
            f"others changed members of {self._members.name!r} during each of {_ATTEMPTS} attempts; "
            "try again later"
        )

    # The whole set

    def fill(
        self, members: Iterable[SortedSetMember], progress: Progress | None
    ) -> Steps[tuple[int, int]]:
        """Write members, and make ranks anew from all that there are; how many of both."""
        if self._ranking is None:
            return (yield from self._calls.put_many(members)), 0
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
        for query in self._members.by_score(EVERY_SCORE):
            found = self._calls.traverse(query)
            while not found.is_over:
                read = yield from found.step()
                keys += (ranking_key(each.score, each.member) for each in read)
        keys.sort()
        return keys

    # Expiry

    def expire(self, moment: datetime | None) -> Steps[None]:
        """Tell whoever writes from now on when the set expires, then stamp what is there."""
        yield from self._expiry.keep(moment)
        there = yield from self._members.all()
        yield from self._stamp([each.member for each in there], moment)
        if not there:
            yield from self._forget_if_empty()  # the last member went in between

    def _stamp(self, members: Iterable[str], moment: datetime | None) -> Steps[None]:
        """Write onto members when the set expires. Cost: a write each."""
        for member in members:
            key, changes = self._members.key_of(member), self._stamped(moment)
            try:
                yield from self._calls.update(self._members.kind, *changes, **key)
            except NotFound:
                continue  # gone in the meantime
        yield from self._stamp_again(members, moment)

    def _stamp_again(self, members: Iterable[str], moment: datetime | None) -> Steps[None]:
        """Bring members up to date that were written while the expiry changed."""
        if members and self._expiry.changes:
            now = yield from self._expiry.moment()
            if now != moment:
                yield from self._stamp(members, now)

    def _stamped(self, moment: datetime | None) -> list[kinds.Change]:
        return [SortedSetMember.gone_at.set(moment)] if self._expiry.is_said else []

    def _forget_if_empty(self) -> Steps[None]:
        """A set without members is no set: what comes next begins without an expiry."""
        moment = (yield from self._expiry.moment()) if self._expiry.changes else None
        if moment is not None and (yield from self._members.is_empty()):
            yield from self._expiry.forget(moment)
            there = yield from self._members.all()
            yield from self._stamp([each.member for each in there], moment=None)


def in_parts(whole: Sequence[Any], size: int) -> Iterator[Any]:
    """A sequence in pieces that are no longer than some size."""
    for first in range(0, len(whole), size):
        yield whole[first : first + size]
