"""How the members of a sorted set change: read, decided, and written on the condition of what was read.

A change that somebody overtook is decided anew with what is there then, so no increment is lost and no
member popped twice. Up to a hundred members change in one transaction, in a set with ranks one. A plain
increment of a set without ranks needs none of that: the database adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from isotone.errors import NotFound
from isotone.model.calls import Calls
from isotone.model.declaring import changes as kinds
from isotone.model.steps import Steps
from isotone.model.writing.carrying import pause_after
from isotone.model.writing.transactions import Transaction
from isotone.structures.sorted_set.bounds import EXACT, Window, plain, storable
from isotone.structures.sorted_set.expiry import Expiry
from isotone.structures.sorted_set.members import EVERY_SCORE, Members, Scored, SortedSetMember
from isotone.structures.sorted_set.order import ATTEMPTS, Change, Order, contended

Decide = Callable[[str, Decimal | None], Decimal | None]
"""From a member and its score to the score that it is to have; None is no member."""


class Writer:
    """Changes the members of one set."""

    def __init__(self, calls: Calls, members: Members, order: Order, expiry: Expiry) -> None:
        self._calls = calls
        self._members = members
        self._order = order
        self._expiry = expiry

    # Scores

    def change(self, members: Iterable[str], decide: Decide) -> Steps[list[Change]]:
        """Give each member the score that is decided from its own; what has changed, and what has not."""
        distinct = list(dict.fromkeys(members))
        done: list[Change] = []
        for first in range(0, len(distinct), self._order.members_at_once):
            chunk = distinct[first : first + self._order.members_at_once]

            def attempt(chunk: Sequence[str] = chunk) -> Steps[list[Change]]:
                return (yield from self._attempt(chunk, decide))

            done += yield from self._order.settle(attempt)
        if any(each.before is not None and each.after is None for each in done):
            yield from self._forget_if_empty()
        return done

    def add(self, member: str, amount: Decimal) -> Steps[Decimal]:
        """Add to a score, which begins with 0; the sum. One write, where nothing but the score changes."""
        key = self._members.key_of(member)
        if not self._order.adds_blindly or self._expiry.is_over():
            (changed,) = yield from self.change([member], lambda _, score: plus(score, amount))
            return amount if changed.after is None else changed.after
        moment = yield from self._expiry.moment()
        changes = [SortedSetMember.score.add(amount), *self._stamp(moment)]
        written = yield from self._calls.upsert(self._members.kind, *changes, **key)
        yield from self._stamp_again([member], moment)
        return plain(written.score)

    def pop(self, count: int, *, reverse: bool) -> Steps[list[Scored]]:
        """Take out the members with the least scores, or the greatest; nobody else gets the same."""
        popped: list[Scored] = []
        fruitless = 0
        while len(popped) < count:
            window = Window(0, count - len(popped))
            seen = yield from self._order.at(window, reverse=reverse)
            if not seen:
                break
            taken = yield from self.take(seen)
            popped += taken
            fruitless = 0 if taken else fruitless + 1
            if fruitless == ATTEMPTS:
                raise contended(self._members)
            if fruitless:
                yield pause_after(fruitless)
        return popped

    def take(self, seen: Sequence[Scored]) -> Steps[list[Scored]]:
        """Take out those members that still have the scores with which they were seen."""
        scores = dict(seen)

        def unless_changed(member: str, score: Decimal | None) -> Decimal | None:
            return None if score == scores[member] else score

        changes = yield from self.change(scores, unless_changed)
        gone = {each.member for each in changes if each.after is None and each.before is not None}
        return [each for each in seen if each.member in gone]

    def replace(self, scores: dict[str, Decimal]) -> Steps[int]:
        """Make the set one of these members alone, without an expiry that was set; how many they are."""
        yield from self._expiry.forget()
        there = yield from self._members.between(EVERY_SCORE)
        members = {*scores, *(each.member for each in there)}
        yield from self.change(sorted(members), lambda member, _: scores.get(member))
        if self._expiry.changes:
            yield from self.stamp(scores, None)
        return len(scores)

    def _attempt(self, members: Sequence[str], decide: Decide) -> Steps[list[Change]]:
        moment = yield from self._expiry.moment()
        before = yield from self._members.scores(members)
        found = [
            Change(member, score, decide(member, score))
            for member, score in zip(members, before, strict=True)
        ]
        changes = [each for each in found if each.before != each.after]
        if changes and not self._expiry.is_over():
            together = self._calls.transaction()
            for change in changes:
                self._write(together, change, moment)
                yield from self._order.note(together, change)
            yield from together.commit()
            yield from self._stamp_again([each.member for each in changes], moment)
        return found

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
            changes = [SortedSetMember.score.set(change.after), *self._stamp(moment)]
            together.update(kind, *changes, when=as_read, **key)

    # Expiry

    def stamp(self, members: Iterable[str], moment: datetime | None) -> Steps[None]:
        """Write the moment at which the set expires onto members. Cost: a write each."""
        for member in members:
            key, changes = self._members.key_of(member), self._stamp(moment)
            try:
                yield from self._calls.update(self._members.kind, *changes, **key)
            except NotFound:
                continue  # gone in the meantime

    def _stamp(self, moment: datetime | None) -> list[kinds.Change]:
        return [SortedSetMember.gone_at.set(moment)] if self._expiry.is_said else []

    def _stamp_again(self, members: Sequence[str], moment: datetime | None) -> Steps[None]:
        """Bring members up to date that were written while the expiry changed."""
        while self._expiry.changes:
            now = yield from self._expiry.moment()
            if now == moment:
                break
            yield from self.stamp(members, now)
            moment = now

    def _forget_if_empty(self) -> Steps[None]:
        """A set without members is no set: what comes next begins without an expiry."""
        if self._expiry.changes and (yield from self._members.is_empty()):
            yield from self._expiry.forget()


def plus(score: Decimal | None, amount: Decimal) -> Decimal:
    """The exact sum; raises `OutOfRange` where DynamoDB could not store it."""
    return storable(EXACT.add(score or Decimal(0), amount))
