"""The members of a sorted set: where they are stored, how they are read, and how they change.

A member is an item. Its sort key is the member's text, so members are stored in the order of their bytes. Its
score is a number and the key of a local index, so the database can add to it, and the index can be read
consistently. A set has one partition, or `shards` of them: the hash of a member selects its shard, and what
concerns the whole set is asked of each shard and merged.

Every read is consistent and sorted by score, then by the member's bytes. The index promises only the first. So
if a limit falls between members of one score, all of these are read.

The index knows what is next, but not how many came before, so counting reads what it counts. A set with ranks
asks its ranking instead, a tree of counts, and reads a few items.

A change is read, decided, and written on the condition that what was read is unchanged; otherwise it is decided
again. So no increment is lost, and no member is popped twice. Up to a hundred members change in one transaction;
in a set with ranks, one. A plain increment of a set without ranks needs none of that: the database adds.

Each member carries the time when the set expires. A set with a fixed time gets it from its constructor. Otherwise
an item keeps it, which writers read before and after: one that crossed a change stamps its members again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from operator import gt, lt
from typing import Any, Final, NamedTuple

from isotone.errors import (
    ConditionFailed,
    Contended,
    IsotoneError,
    NotFound,
    UsageError,
    ValidationException,
)
from isotone.model import (
    CONTENTION,
    Attr,
    Calls,
    Change,
    Entity,
    Index,
    Key,
    Query,
    Steps,
    Transaction,
    expires,
    field,
    raw,
)
from isotone.structures.exact_numbers import EXACT, added, plain
from isotone.structures.ranking import (
    Ranking,
    after_score,
    before_score,
    ranking_key,
    read_ranking_key,
)
from isotone.structures.sharding import shard_of
from isotone.structures.sorted_set_ranges import (
    EVERY_SCORE,
    EVERY_TEXT,
    Range,
    RankRange,
    ScoreRange,
    Slice,
    TextRange,
    matcher,
)
from isotone.structures.waits_and_retries import retry_on_conflict

Decide = Callable[[str, Decimal | None], Decimal | None]
"""From a member and its score to the score that it gets; None is not a member."""
Progress = Callable[[int], None]
Scores = dict[str, Decimal]
"""A set that was read: members and their scores."""

MOST_SHARDS: Final = 1000
INDEX: Final = "by_score"
SCORE: Final = "score"

_AGGREGATES: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "SUM": EXACT.add,
    "MIN": min,
    "MAX": max,
    "COUNT": EXACT.add,  # of scores that are 1 each, or the factor of their set
}
_STRIDE: Final = 100  # items that are read at once while members of one score are looked for
_AT_ONCE: Final = 100  # members that one transaction changes
_POP_ATTEMPTS: Final = 60
_BATCH: Final = 10_000  # keys that are given to the ranking at once


class SortedSetMember(Entity):
    """A member of a sorted set, with its score."""

    name: Attr[str] = field()
    shard: Attr[int] = field(max=MOST_SHARDS - 1, alert=None)
    member: Attr[str] = field()
    score: Attr[Decimal] = field(default=Decimal(0), name=SCORE)
    gone_at: Attr[datetime | None] = expires(default=None)

    primary = Key("SORTED_SET", name, shard).sort("MEMBER", raw(member))
    by_score = Index(INDEX, "SORTED_SET", name, shard).sort(score)


class SortedSetExpiry(Entity):
    """When a sorted set expires; deleted together with it."""

    name: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary = Key("SORTED_SET_EXPIRY", name).sort("SORTED_SET_EXPIRY")


class Scored(NamedTuple):
    """A member and its score."""

    member: str
    score: Decimal


class ScoreChange(NamedTuple):
    """A member's score before and after; None is not a member."""

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
class Members:
    """The members of one set.

    `expires_at` is the set's fixed time; `is_expirable` tells that commands set it instead.
    """

    calls: Calls
    kind: type[SortedSetMember]
    expiry_kind: type[SortedSetExpiry]
    name: str
    shards: int
    ranking: Ranking | None
    expires_at: datetime | None
    is_expirable: bool

    def key_of(self, member: str) -> dict[str, Any]:
        """The fields of a member's primary key."""
        if not isinstance(member, str):
            instead = f"{member!r}.decode()" if isinstance(member, bytes) else f"str({member!r})"
            raise UsageError(
                f"{member!r} cannot be a member: members are texts, so write {instead}"
            )
        if type(member) is not str:
            member = str.__str__(member)  # of an enum, its value
        shard = shard_of(member, self.shards) if self.shards > 1 else 0
        return {"name": self.name, "shard": shard, "member": member}

    def new(self, member: str, score: Decimal, expiry: datetime | None) -> SortedSetMember:
        """A member's entity."""
        values = {**self.key_of(member), "score": score, "gone_at": expiry}
        return self.kind.from_trusted(values)

    def has_expired(self) -> bool:
        """Whether the fixed time has come: then the set is empty, and nothing is added."""
        return (
            self.expires_at is not None
            and self.expires_at.timestamp() // 1 <= self.calls.clock.now()
        )

    # Reading one by one

    def score(self, member: str) -> Steps[Decimal | None]:
        """The score of a member, None if it is not one. Reads 1."""
        item = yield from self.calls.get(self.kind, consistent=True, **self.key_of(member))
        return None if item is None else plain(item.score)

    def scores(self, members: Sequence[str]) -> Steps[list[Decimal | None]]:
        """The scores of several members. Reads one item each, a hundred to a request."""
        if len(members) == 1:
            return [(yield from self.score(members[0]))]
        keys = map(self.key_of, members)
        items = yield from self.calls.get_many(self.kind, keys, consistent=True)
        return [None if item is None else plain(item.score) for item in items]

    # Ranges

    def read(self, wanted: Range) -> Steps[list[Scored]]:
        """The members in a range, in its order.

        Reads, in each shard, up to the slice's end, and by score one more. If that one has the score of the
        last, reads up to twice as many more as have it.
        """
        within, part, reverse = wanted.within, wanted.part, wanted.reverse
        if isinstance(within, RankRange):
            return (yield from self._by_rank(within, reverse=reverse))
        is_by_score = isinstance(within, ScoreRange)
        members: list[Scored] = []
        for shard, query in enumerate(self.queries(within, reverse=reverse)):
            if is_by_score:
                members += yield from self._first(query, part.end, shard, reverse)
            else:
                members += yield from self._up_to(query, part.end)
        members.sort(key=_by_score if is_by_score else None, reverse=reverse)
        return members[part.first : part.end]

    def all(self) -> Steps[list[Scored]]:
        """All members, by their bytes: a change of a score never has one seen twice, or not at all."""
        return self.read(Range(EVERY_TEXT))

    def count(self, within: ScoreRange | TextRange) -> Steps[int]:
        """The number of members in a range. Reads them; by score, with ranks, O(log n)."""
        if self.ranking is None or isinstance(within, TextRange):
            return self._counted(within)
        if within.is_empty or self.has_expired():
            return self._counted(within)
        return self.ranking.count(before_score(within.low), after_score(within.high))

    def queries(
        self, within: ScoreRange | TextRange = EVERY_SCORE, *, reverse: bool = False
    ) -> Iterator[Query[SortedSetMember]]:
        """The members in a range in each shard; none if the set has expired, which then is not read."""
        if within.is_empty or self.has_expired():
            return
        for shard in range(self.shards):
            yield self._query(shard, within, reverse=reverse)

    def _query(
        self, shard: int, within: ScoreRange | TextRange = EVERY_TEXT, *, reverse: bool = False
    ) -> Query[SortedSetMember]:
        """The members of a shard in a range of scores, by the index, or of texts, by the table."""
        if isinstance(within, ScoreRange):
            pattern, bounds = self.kind.by_score, within.conditions(SortedSetMember.score)
        else:
            pattern, bounds = self.kind.primary, within.conditions(SortedSetMember.member)
        partition = SortedSetMember.name == self.name, SortedSetMember.shard == shard
        query = pattern.where(*partition, *bounds).consistent()
        return query.reversed() if reverse else query

    def _up_to(self, query: Query[SortedSetMember], wanted: int | None) -> Steps[list[Scored]]:
        if wanted == 0:
            return []
        limited = query if wanted is None else query.limit(wanted)
        return list(map(_scored, (yield from self.calls.all(limited))))

    def _counted(self, within: ScoreRange | TextRange) -> Steps[int]:
        total = 0
        for query in self.queries(within):
            total += yield from self.calls.count(query)
        return total

    def _first(
        self, query: Query[SortedSetMember], wanted: int | None, shard: int, reverse: bool
    ) -> Steps[list[Scored]]:
        """The first members of a shard in order, and maybe more with the last one's score."""
        if not wanted:
            return (yield from self._up_to(query, wanted))
        members = yield from self._up_to(query, wanted + 1)
        if len(members) <= wanted or members[wanted].score != members[wanted - 1].score:
            return members[:wanted]
        score = members[wanted].score
        kept = [member for member in members if member.score != score]
        return kept + (yield from self._tied(score, wanted - len(kept), shard, reverse))

    def _tied(self, score: Decimal, wanted: int, shard: int, reverse: bool) -> Steps[list[Scored]]:
        """All members of a shard with one score, or at least the first of them by their bytes.

        The index has just these, in some order; the table has all members by their bytes. Which way is
        shorter cannot be known, so both are read in turns until one ends.
        """
        by_score = self._query(shard, ScoreRange(score, score))
        by_bytes = self._query(shard, reverse=reverse)
        indexed = self.calls.traverse(by_score.page_size(_STRIDE))
        in_table = self.calls.traverse(by_bytes.page_size(_STRIDE))
        all_tied: list[Scored] = []
        first_tied: list[Scored] = []
        while True:
            all_tied += map(_scored, (yield from indexed.step()))
            if indexed.is_over:
                return all_tied
            passed = map(_scored, (yield from in_table.step()))
            first_tied += (member for member in passed if member.score == score)
            if in_table.is_over or len(first_tied) >= wanted:
                return first_tied

    # All, page by page

    def scan(
        self, cursor: str, size: int, match: str | None
    ) -> Steps[tuple[list[Scored], str | None]]:
        """The next members in the order of shards and bytes, and the next cursor; "" is the beginning.

        Reads one shard after the other until it has read `size` members.
        """
        matches = matcher(match)
        of = {"scan": self.name, "shards": self.shards}
        shard, rest = self.calls.unseal(cursor, **of) if cursor else (0, None)
        if self.has_expired():
            return [], None
        members: list[Scored] = []
        for at in range(shard, self.shards):
            page = yield from self.calls.page(self._query(at), size=size, cursor=rest)
            members += [_scored(item) for item in page.items if matches(item.member)]
            if page.cursor is not None:
                return members, self.calls.seal([at, page.cursor], **of)
            size, rest = size - len(page.items), None
            if size == 0 and at + 1 < self.shards:
                return members, self.calls.seal([at + 1, None], **of)
        return members, None

    def is_empty(self) -> Steps[bool]:
        """Whether there is no member. Reads one item of each shard until there is one."""
        for query in self.queries(EVERY_TEXT):
            if (yield from self.calls.first(query)) is not None:
                return False
        return True

    # By rank

    def size(self) -> Steps[int]:
        """The number of members."""
        if self.ranking is None or self.has_expired():
            return self._counted(EVERY_SCORE)
        return self.ranking.size()

    def count_before(self, member: str, score: Decimal, *, reverse: bool) -> Steps[int]:
        """The number of members before one with this score, or after it. Reads them."""
        beyond, is_beyond = f"({score}", gt if reverse else lt
        bounds = (beyond, "inf") if reverse else ("-inf", beyond)
        rank = yield from self.count(ScoreRange.of(*bounds))
        for query in self.queries(ScoreRange(score, score)):
            tied = yield from self.calls.all(query.select(SortedSetMember.member))
            rank += sum(is_beyond(item.member, member) for item in tied)
        return rank

    def at(self, part: Slice, *, reverse: bool = False) -> Steps[list[Scored]]:
        """The members of some ranks, counted from the least score, or from the greatest."""
        if self.ranking is None or self.has_expired():
            return (yield from self.read(Range(EVERY_SCORE, part, reverse)))
        count = part.length
        if count is None:
            count = max(0, (yield from self.ranking.size()) - part.first)
        keys = yield from self.ranking.at(part.first, count, reverse=reverse)
        return [Scored(member, score) for score, member in map(read_ranking_key, keys)]

    def _by_rank(self, ranks: RankRange, *, reverse: bool) -> Steps[list[Scored]]:
        """From one rank to another; negative ranks count from the other end."""
        first, last = ranks
        if first < 0 and last < 0:
            part = Slice(-last - 1, max(0, last - first + 1))
            return (yield from self.at(part, reverse=not reverse))[::-1]
        if first < 0:
            first = max(0, first + (yield from self.size()))
        if last < 0:
            members = yield from self.at(Slice(first), reverse=reverse)
            return members[: last + 1] if last < -1 else members
        return (yield from self.at(Slice(first, max(0, last - first + 1)), reverse=reverse))

    def pick(self, ranks: Sequence[int]) -> Steps[list[Scored]]:
        """The members of single ranks."""
        if self.ranking is None:
            members = yield from self.at(Slice(0, max(ranks, default=-1) + 1))
            return [members[rank] for rank in ranks if rank < len(members)]
        picked: list[Scored] = []
        for rank in ranks:
            picked += yield from self.at(Slice(rank, 1))
        return picked

    # Changing

    def change(self, members: Iterable[str], decide: Decide) -> Steps[list[ScoreChange]]:
        """Give each member the score that is decided from its own; returns all changes, also without effect."""
        done: list[ScoreChange] = []
        at_once = _AT_ONCE if self.ranking is None else 1
        for part in in_parts(list(dict.fromkeys(members)), at_once):
            attempt = partial(self._attempt, part, decide)
            if self.ranking is None:
                what = f"members of {self.name!r}"
                changing = retry_on_conflict(attempt, what, "try again later")
            else:
                changing = self.ranking.settle(attempt)
            changes, expiry = yield from changing
            if self.is_expirable:
                yield from self._stamp_again([c.member for c in changes if c.has_effect], expiry)
            done += changes
        if self.is_expirable and any(change.is_removal for change in done):
            yield from self._forget_expiry_if_empty()
        return done

    def remove(self, members: Iterable[str], scores: ScoreRange = EVERY_SCORE) -> Steps[int]:
        """Remove members that have such scores; the number of them."""

        def unless_outside(member: str, score: Decimal | None) -> Decimal | None:
            return None if score is None or score in scores else score

        changes = yield from self.change(members, unless_outside)
        return sum(change.is_removal for change in changes)

    def add(self, member: str, amount: Decimal) -> Steps[Decimal]:
        """Add to a score, which starts at 0; returns the sum. One write, if nothing but the score changes."""
        if self.ranking is None and not self.has_expired():
            expiry = yield from self.expiry()
            changes = [SortedSetMember.score.add(amount), *self._stamp_of(expiry)]
            key = self.key_of(member)
            try:
                item = yield from self.calls.upsert(self.kind, *changes, **key)
            except ValidationException:
                pass  # the sum cannot be stored: below, adding raises an error that says so
            else:
                yield from self._stamp_again([member], expiry)
                return plain(item.score)
        (change,) = yield from self.change([member], lambda _, score: plus(score, amount))
        assert change.after is not None
        return change.after

    def pop(self, count: int, *, reverse: bool) -> Steps[list[Scored]]:
        """Remove the members with the least scores, or the greatest; nobody else gets the same."""
        popped: list[Scored] = []
        try:
            for attempt in range(1, _POP_ATTEMPTS + 1):
                before, part = len(popped), Slice(0, count - len(popped))
                seen = yield from self.at(part, reverse=reverse)
                for group in in_parts(seen, _AT_ONCE if self.ranking is None else 1):
                    popped += yield from self.take(group)
                if len(popped) == before + len(seen):
                    return popped
                yield CONTENTION.pause(attempt)
            raise Contended(
                f"others changed the first members of {self.name!r} during each of {_POP_ATTEMPTS} "
                "attempts; try again later"
            )
        except IsotoneError:
            if popped:
                return popped  # they are out of the set, so the caller must get them
            raise

    def take(self, seen: Sequence[Scored]) -> Steps[list[Scored]]:
        """Remove those members that still have the scores with which they were seen."""
        scores = dict(seen)

        def unless_changed(member: str, score: Decimal | None) -> Decimal | None:
            return None if score == scores[member] else score

        changes = yield from self.change(scores, unless_changed)
        gone = {(change.member, change.before) for change in changes if change.is_removal}
        return [member for member in seen if member in gone]  # one that moved may be seen twice

    def replace(self, scores: Mapping[str, Decimal]) -> Steps[int]:
        """Make these members the whole set, without an expiry from commands; the number of them."""
        if self.is_expirable:
            yield from self._keep_expiry(None)
        present = yield from self.all()
        members = {*scores, *(member for member, _ in present)}
        yield from self.change(sorted(members), lambda member, _: scores.get(member))
        if self.is_expirable:
            yield from self._stamp(scores, None)
        return len(scores)

    def _attempt(
        self, members: Sequence[str], decide: Decide
    ) -> Steps[tuple[list[ScoreChange], datetime | None]]:
        """Read, decide and write; the changes, and when the set then expired."""
        expiry = (yield from self.expiry()) if self.is_expirable else self.expires_at
        before = yield from self.scores(members)
        changes = [
            ScoreChange(member, score, decide(member, score))
            for member, score in zip(members, before, strict=True)
        ]
        effective = [change for change in changes if change.before != change.after]
        if effective and not self.has_expired():
            tx = self.calls.transaction()
            for change in effective:
                self._write(tx, change, expiry)
                if self.ranking is not None:
                    leaving, entering = change.ranking_keys()
                    yield from self.ranking.change(tx, leaving=leaving, entering=entering)
            yield from tx.commit()
        return changes, expiry

    def _write(self, tx: Transaction, change: ScoreChange, expiry: datetime | None) -> None:
        member, before, after = change
        if before is None:
            assert after is not None
            tx.create(self.new(member, after, expiry))
            return
        key, as_read = self.key_of(member), SortedSetMember.score == before
        if after is None:
            tx.delete(self.kind, when=as_read, **key)
        else:
            changes = [SortedSetMember.score.set(after), *self._stamp_of(expiry)]
            tx.update(self.kind, *changes, when=as_read, **key)

    # The whole set

    def fill(
        self, members: Iterable[SortedSetMember], progress: Progress | None
    ) -> Steps[tuple[int, int]]:
        """Write members, and rebuild the ranks of all that there are; the numbers of both."""
        if self.ranking is None:
            return (yield from self.calls.put_many(members)), 0
        written = 0
        batches: Iterator[list[str]] | None = None

        def batch() -> Steps[list[str]]:
            nonlocal written, batches
            if batches is None:  # from now on nobody else changes ranks
                written = yield from self.calls.put_many(members)
                batches = in_parts((yield from self._ranking_keys()), _BATCH)
            return next(batches, [])

        ranked = yield from self.ranking.rebuild(batch, progress=progress)
        return written, ranked

    def _ranking_keys(self) -> Steps[list[str]]:
        """The ranking keys of all members, in order. Holds them in memory, some hundred bytes each."""
        keys: list[str] = []
        for query in self.queries():
            traversal = self.calls.traverse(query)
            while not traversal.is_over:
                items = yield from traversal.step()
                keys += (ranking_key(item.score, item.member) for item in items)
        keys.sort()
        return keys

    # Expiry

    def expiry(self) -> Steps[datetime | None]:
        """When the set expires, None for never. Reads 1 if commands can change it."""
        if not self.is_expirable:
            return self.expires_at
        item = yield from self.calls.get(self.expiry_kind, consistent=True, name=self.name)
        return None if item is None else item.gone_at

    def expire(self, expiry: datetime | None) -> Steps[None]:
        """Tell all later writers when the set expires, then stamp the members that there are."""
        yield from self._keep_expiry(expiry)
        present = yield from self.all()
        yield from self._stamp([member for member, _ in present], expiry)
        if not present:
            yield from self._forget_expiry_if_empty()  # the last member was removed meanwhile

    def _keep_expiry(self, expiry: datetime | None) -> Steps[None]:
        if expiry is None:
            yield from self.calls.delete(self.expiry_kind, name=self.name)
        else:
            yield from self.calls.put(self.expiry_kind(name=self.name, gone_at=expiry))

    def _forget_expiry_if_empty(self) -> Steps[None]:
        """A set without members does not exist: the next one of its name starts without an expiry."""
        expiry = yield from self.expiry()
        if expiry is None or not (yield from self.is_empty()):
            return
        with contextlib.suppress(ConditionFailed):  # others have set another time
            as_read = SortedSetExpiry.gone_at == expiry
            yield from self.calls.delete(self.expiry_kind, when=as_read, name=self.name)
        present = yield from self.all()
        yield from self._stamp([member for member, _ in present], None)

    def _stamp(self, members: Iterable[str], expiry: datetime | None) -> Steps[None]:
        """Write the expiry onto members. One write each."""
        for member in members:
            try:
                yield from self.calls.update(
                    self.kind, *self._stamp_of(expiry), **self.key_of(member)
                )
            except NotFound:
                continue  # removed meanwhile
        yield from self._stamp_again(members, expiry)

    def _stamp_again(self, members: Iterable[str], expiry: datetime | None) -> Steps[None]:
        """Bring members up to date that were written while the expiry changed."""
        if members and self.is_expirable:
            now = yield from self.expiry()
            if now != expiry:
                yield from self._stamp(members, now)

    def _stamp_of(self, expiry: datetime | None) -> list[Change]:
        has_expiry = self.is_expirable or self.expires_at is not None
        return [SortedSetMember.gone_at.set(expiry)] if has_expiry else []


def plus(score: Decimal | None, amount: Decimal) -> Decimal:
    """The exact sum; raises `OutOfRange` if it cannot be stored."""
    return plain(added(score or Decimal(0), amount))


def _by_score(member: Scored) -> tuple[Decimal, str]:
    """Sorts by score, then by bytes: texts compare by code points, which is by their UTF-8 bytes."""
    return member.score, member.member


def in_parts(whole: Sequence[Any], size: int) -> Iterator[Any]:
    """A sequence in pieces of at most some size."""
    for first in range(0, len(whole), size):
        yield whole[first : first + size]


def _scored(item: SortedSetMember) -> Scored:
    return Scored(item.member, plain(item.score))  # not every engine drops trailing zeros


# Sets in memory


def ordered(scores: Scores) -> list[Scored]:
    """Members by score, then by bytes."""
    return sorted((Scored(*pair) for pair in scores.items()), key=_by_score)


def union(sets: Sequence[Scores], aggregate: str | None = None) -> Scores:
    """All members of any of the sets, with the SUM, MIN or MAX of their scores; COUNT as of scores that count."""
    join = _AGGREGATES.get((aggregate or "SUM").upper())
    if join is None:
        raise UsageError(f"aggregate is SUM, MIN, MAX or COUNT, not {aggregate!r}")
    joined: Scores = {}
    for scores in sets:
        for member, score in scores.items():
            joined[member] = join(joined[member], score) if member in joined else score
    return joined


def intersection(sets: Sequence[Scores], aggregate: str | None = None) -> Scores:
    """The members of all sets, with the SUM, MIN or MAX of their scores."""
    shared = set(sets[0]).intersection(*sets[1:])
    return union([{member: scores[member] for member in shared} for scores in sets], aggregate)


def difference(sets: Sequence[Scores]) -> Scores:
    """The members of the first set that are in none of the others."""
    others = set().union(*sets[1:])
    return {member: score for member, score in sets[0].items() if member not in others}
