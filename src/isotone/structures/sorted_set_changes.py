"""Changes of a sorted set, for `sorted_set`: scores are set, added to, removed and popped, and the set expires.

A change reads members, decides their new scores, and writes them on the condition that the members are unchanged;
otherwise it starts again. So no increment is lost, and no member is popped twice. Up to a hundred members change in one
transaction; in a set with ranks, one. On an engine without transactions, each member changes by a conditional write. A
plain increment of a set without ranks is one update without a read.

Each member stores the time when the set expires. A set with a fixed time gets it from its constructor. Otherwise an
item stores it, and writers read it before and after a write: if it changed meanwhile, the writer updates its members.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple

from isotone.errors import (
    ConditionFailed,
    Contended,
    IsotoneError,
    NotFound,
    ValidationException,
)
from isotone.model import Calls, Change, Steps, Transaction, capabilities_of
from isotone.structures.exact_numbers import added, plain
from isotone.structures.ranking import ranking_key
from isotone.structures.sorted_set_ranges import EVERY_SCORE, ScoreRange, Slice
from isotone.structures.sorted_set_reads import (
    Members,
    Scored,
    SortedSetExpiry,
    SortedSetMember,
)
from isotone.structures.waits_and_retries import retry_on_conflict
from isotone.tables.retries import READ_THEN_WRITE

Decide = Callable[[str, Decimal | None], Decimal | None]
"""Returns the new score of a member, given its current one; None stands for no member."""
Progress = Callable[[int], None]

_CHANGES_TOGETHER: Final = 100  # members that one transaction changes
_BATCH: Final = 10_000  # keys that the ranking gets at once


class ScoreChange(NamedTuple):
    """A member's score before and after; None stands for no member."""

    member: str
    before: Decimal | None
    after: Decimal | None

    @property
    def has_effect(self) -> bool:
        return self.before != self.after

    @property
    def is_removal(self) -> bool:
        return self.before is not None and self.after is None

    def ranking_keys(self) -> tuple[str | None, str | None]:
        """The key that leaves the ranking, and the key that enters it."""
        member, before, after = self
        return (
            None if before is None else ranking_key(before, member),
            None if after is None else ranking_key(after, member),
        )


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """The changes of one set's members."""

    members: Members

    def change(self, members: Iterable[str], decide: Decide) -> Steps[list[ScoreChange]]:
        """Give each member the score that `decide` returns; returns all changes, including those without effect."""
        done: list[ScoreChange] = []
        together = self.members.ranking is None and (yield from self._has_transactions())
        at_once = _CHANGES_TOGETHER if together else 1
        for part in in_parts(list(dict.fromkeys(members)), at_once):
            attempt = partial(self._attempt, part, decide)
            if self.members.ranking is None:
                what = f"members of {self.members.name!r}"
                changing = retry_on_conflict(attempt, what, "try again later")
            else:
                changing = self.members.ranking.settle(attempt)
            changes, expiry = yield from changing
            if self.members.is_expirable:
                yield from self._update_stamps([c.member for c in changes if c.has_effect], expiry)
            done += changes
        if self.members.is_expirable and any(change.is_removal for change in done):
            yield from self._delete_expiry_if_empty()
        return done

    def remove(self, members: Iterable[str], scores: ScoreRange = EVERY_SCORE) -> Steps[int]:
        """Remove members with scores in a range; returns how many."""

        def unless_outside(member: str, score: Decimal | None) -> Decimal | None:
            return None if score is None or score in scores else score

        changes = yield from self.change(members, unless_outside)
        return sum(change.is_removal for change in changes)

    def add(self, member: str, amount: Decimal) -> Steps[Decimal]:
        """Add to a score, which starts at 0; returns the sum. One write, if only the score changes."""
        if self.members.ranking is None and not self.members.has_expired():
            expiry = yield from self.members.expiry()
            changes = [SortedSetMember.score.add(amount), *self._stamp_of(expiry)]
            key = self.members.key_of(member)
            try:
                item = yield from self.members.calls.upsert(self.members.kind, *changes, **key)
            except ValidationException:
                pass  # the sum cannot be stored: the code below raises an error that says so
            else:
                yield from self._update_stamps([member], expiry)
                return plain(item.score)
        (change,) = yield from self.change([member], lambda _, score: plus(score, amount))
        assert change.after is not None
        return change.after

    def pop(self, count: int, *, reverse: bool) -> Steps[list[Scored]]:
        """Remove and return the members with the lowest or highest scores; no two callers get the same member."""
        popped: list[Scored] = []
        try:
            for attempt in range(1, READ_THEN_WRITE.attempts + 1):
                before, part = len(popped), Slice(0, count - len(popped))
                seen = yield from self.members.at(part, reverse=reverse)
                for group in in_parts(
                    seen, _CHANGES_TOGETHER if self.members.ranking is None else 1
                ):
                    popped += yield from self.take(group)
                if len(popped) == before + len(seen):
                    return popped
                yield READ_THEN_WRITE.pause(attempt)
            raise Contended(
                f"others changed the first members of {self.members.name!r} during each of "
                f"{READ_THEN_WRITE.attempts} attempts; try again later"
            )
        except IsotoneError:
            if popped:
                return popped  # they are already removed, so the caller must get them
            raise

    def take(self, seen: Sequence[Scored]) -> Steps[list[Scored]]:
        """Remove the members that still have the given scores."""
        scores = dict(seen)

        def unless_changed(member: str, score: Decimal | None) -> Decimal | None:
            return None if score == scores[member] else score

        changes = yield from self.change(scores, unless_changed)
        gone = {(change.member, change.before) for change in changes if change.is_removal}
        return [
            member for member in seen if member in gone
        ]  # a member that moved may be listed twice

    def replace(self, scores: Mapping[str, Decimal]) -> Steps[int]:
        """Replace all members of the set; removes an expiry that commands set. Returns the number of members."""
        if self.members.is_expirable:
            yield from self._keep_expiry(None)
        present = yield from self.members.all()
        members = {*scores, *(member for member, _ in present)}
        yield from self.change(sorted(members), lambda member, _: scores.get(member))
        if self.members.is_expirable:
            yield from self._stamp(scores, None)
        return len(scores)

    def _attempt(
        self, members: Sequence[str], decide: Decide
    ) -> Steps[tuple[list[ScoreChange], datetime | None]]:
        """Read, decide and write; returns the changes, and when the set expires."""
        expiry = (
            (yield from self.members.expiry())
            if self.members.is_expirable
            else self.members.expires_at
        )
        before = yield from self.members.scores(members)
        changes = [
            ScoreChange(member, score, decide(member, score))
            for member, score in zip(members, before, strict=True)
        ]
        effective = [change for change in changes if change.before != change.after]
        if not effective or self.members.has_expired():
            return changes, expiry
        if self.members.ranking is None and not (yield from self._has_transactions()):
            for change in effective:  # a ranked set has one: `change` passes members one by one
                yield from self._write(self.members.calls, change, expiry)
        else:
            tx = self.members.calls.transaction()
            for change in effective:
                self._write(tx, change, expiry)
                if self.members.ranking is not None:
                    leaving, entering = change.ranking_keys()
                    yield from self.members.ranking.change(tx, leaving=leaving, entering=entering)
            yield from tx.commit()
        return changes, expiry

    def _has_transactions(self) -> Steps[bool]:
        return (yield from capabilities_of(self.members.calls.engine)).transactions

    def _write(self, to: Transaction | Calls, change: ScoreChange, expiry: datetime | None) -> Any:
        """A conditional write: `to` is the calls, which return its steps, or a transaction, which collects it."""
        member, before, after = change
        if before is None:
            assert after is not None
            return to.create(self.members.new(member, after, expiry))
        key, as_read = self.members.key_of(member), SortedSetMember.score == before
        if after is None:
            return to.delete(self.members.kind, when=as_read, **key)
        changes = [SortedSetMember.score.set(after), *self._stamp_of(expiry)]
        return to.update(self.members.kind, *changes, when=as_read, **key)

    # The whole set

    def fill(
        self, members: Iterable[SortedSetMember], progress: Progress | None
    ) -> Steps[tuple[int, int]]:
        """Write members, and rebuild the ranks of all members; returns the numbers of both."""
        if self.members.ranking is None:
            return (yield from self.members.calls.put_many(members)), 0
        written = 0
        batches: Iterator[list[str]] | None = None

        def batch() -> Steps[list[str]]:
            nonlocal written, batches
            if batches is None:  # from now on no other writer changes ranks
                written = yield from self.members.calls.put_many(members)
                batches = in_parts((yield from self._ranking_keys()), _BATCH)
            return next(batches, [])

        ranked = yield from self.members.ranking.rebuild(batch, progress=progress)
        return written, ranked

    def _ranking_keys(self) -> Steps[list[str]]:
        """The ranking keys of all members, in order; some hundred bytes of memory for each."""
        keys: list[str] = []
        for query in self.members.queries():
            traversal = self.members.calls.traverse(query)
            while not traversal.is_over:
                items = yield from traversal.step()
                keys += (ranking_key(item.score, item.member) for item in items)
        keys.sort()
        return keys

    # Expiry

    def expire(self, expiry: datetime | None) -> Steps[None]:
        """Store the new expiry for later writers, then write it to the present members."""
        yield from self._keep_expiry(expiry)
        present = yield from self.members.all()
        yield from self._stamp([member for member, _ in present], expiry)
        if not present:
            yield from self._delete_expiry_if_empty()  # the last member was removed meanwhile

    def _keep_expiry(self, expiry: datetime | None) -> Steps[None]:
        if expiry is None:
            yield from self.members.calls.delete(self.members.expiry_kind, name=self.members.name)
        else:
            yield from self.members.calls.put(
                self.members.expiry_kind(name=self.members.name, gone_at=expiry)
            )

    def _delete_expiry_if_empty(self) -> Steps[None]:
        """Delete the stored expiry of a set without members, so that the next set of this name has none."""
        expiry = yield from self.members.expiry()
        if expiry is None or not (yield from self.members.is_empty()):
            return
        with contextlib.suppress(ConditionFailed):  # another writer has set a new expiry
            as_read = SortedSetExpiry.gone_at == expiry
            yield from self.members.calls.delete(
                self.members.expiry_kind, when=as_read, name=self.members.name
            )
        present = yield from self.members.all()
        yield from self._stamp([member for member, _ in present], None)

    def _stamp(self, members: Iterable[str], expiry: datetime | None) -> Steps[None]:
        """Write the expiry to members. One write each."""
        for member in members:
            try:
                yield from self.members.calls.update(
                    self.members.kind, *self._stamp_of(expiry), **self.members.key_of(member)
                )
            except NotFound:
                continue  # removed meanwhile
        yield from self._update_stamps(members, expiry)

    def _update_stamps(self, members: Iterable[str], expiry: datetime | None) -> Steps[None]:
        """Update members that were written while the expiry changed."""
        if members and self.members.is_expirable:
            now = yield from self.members.expiry()
            if now != expiry:
                yield from self._stamp(members, now)

    def _stamp_of(self, expiry: datetime | None) -> list[Change]:
        has_expiry = self.members.is_expirable or self.members.expires_at is not None
        return [SortedSetMember.gone_at.set(expiry)] if has_expiry else []


def plus(score: Decimal | None, amount: Decimal) -> Decimal:
    """The exact sum; raises `OutOfRange` if it cannot be stored."""
    return plain(added(score or Decimal(0), amount))


def in_parts(whole: Sequence[Any], size: int) -> Iterator[Any]:
    """A sequence in pieces of at most some size."""
    for first in range(0, len(whole), size):
        yield whole[first : first + size]
