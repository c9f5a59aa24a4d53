"""Reads of a sorted set: its items, scores, ranges by score, by text and by rank (negative, too), ties, scans.

A member is an item. Its sort key is the member's text, so members are stored in the order of their bytes. Its score is
a number and the key of a local index, so the database can add to it, and the index can be read consistently. A set has
one partition, or `shards` of them: the hash of a member selects its shard. Reads of the whole set query each shard and
merge the results.

Every read is consistent and sorted by score, then by the member's bytes. The index sorts by score only. So if a limit
falls between members with equal scores, all of these are read (`_tied`).

An index cannot tell how many entries come before one, so counting reads all of them. A set with ranks reads a few items
of its ranking instead, a tree of counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from operator import gt, lt
from typing import Any, ClassVar, Final, NamedTuple

from isotone.errors import RankingIncomplete, UsageError
from isotone.model import (
    Attr,
    Calls,
    Entity,
    Index,
    Key,
    Query,
    Steps,
    expires,
    field,
    raw,
)
from isotone.structures.exact_numbers import plain
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
from isotone.tables.retries import STALE_READS, RetryNeeded

MOST_SHARDS: Final = 1000
INDEX: Final = "by_score"
SCORE: Final = "score"

_TIE_PAGE: Final = 100  # items that are read at once to find members with equal scores


class SortedSetMember(Entity):
    """A member of a sorted set, with its score."""

    name: Attr[str] = field()
    shard: Attr[int] = field(max=MOST_SHARDS - 1, alert=None)
    member: Attr[str] = field()
    score: Attr[Decimal] = field(default=Decimal(0), name=SCORE)
    gone_at: Attr[datetime | None] = expires(default=None)

    primary: ClassVar[Key] = Key("SORTED_SET", name, shard).sort("MEMBER", raw(member))
    by_score: ClassVar[Index] = Index(INDEX, "SORTED_SET", name, shard).sort(score)


class SortedSetExpiry(Entity):
    """When a sorted set expires; deleted together with it."""

    name: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary: ClassVar[Key] = Key("SORTED_SET_EXPIRY", name).sort("SORTED_SET_EXPIRY")


class Scored(NamedTuple):
    """A member and its score."""

    member: str
    score: Decimal


@dataclass(frozen=True, slots=True)
class Members:
    """Reads the members of one set.

    `expires_at` is a fixed time; with `is_expirable`, commands set the time.
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
                f"{member!r} cannot be a member: members are strings, so write {instead}"
            )
        if type(member) is not str:
            member = str.__str__(member)  # turns a member of a str enum into its value
        shard = shard_of(member, self.shards) if self.shards > 1 else 0
        return {"name": self.name, "shard": shard, "member": member}

    def new(self, member: str, score: Decimal, expiry: datetime | None) -> SortedSetMember:
        """A member's entity."""
        values = {**self.key_of(member), "score": score, "gone_at": expiry}
        return self.kind.from_trusted(values)

    def has_expired(self) -> bool:
        """Whether the fixed time is over: then the set is empty, and nothing can be added."""
        return (
            self.expires_at is not None
            and self.expires_at.timestamp() // 1 <= self.calls.clock.now()
        )

    # Reading one by one

    def score(self, member: str) -> Steps[Decimal | None]:
        """The score of a member, or None. Reads 1."""
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

        Reads up to the slice's end in each shard, and by score one item more. If that item has the same score as the
        last one, reads up to twice as many more as have this score.
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
        members.sort(key=by_score if is_by_score else None, reverse=reverse)
        return members[part.first : part.end]

    def all(self) -> Steps[list[Scored]]:
        """All members, by their bytes. A change of a score meanwhile neither repeats nor hides a member."""
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
        """A query for the range in each shard; none if the set has expired."""
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
        """The first members of a shard in order, perhaps with more that have the last one's score."""
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

        The index has exactly these, in some order; the table has all members by their bytes. It is unknown which read
        is shorter, so both are read in turns until one ends.
        """
        by_score = self._query(shard, ScoreRange(score, score))
        by_bytes = self._query(shard, reverse=reverse)
        indexed = self.calls.traverse(by_score.page_size(_TIE_PAGE))
        in_table = self.calls.traverse(by_bytes.page_size(_TIE_PAGE))
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

    def rank(self, member: str, *, reverse: bool) -> Steps[tuple[int, Decimal] | None]:
        """The number of members before a member, or after it, and its score; None if there is no such member.

        With ranks, reads the score and the path in the ranking; otherwise the score and the members before.
        """
        return STALE_READS.run(
            partial(self._rank, member, reverse),
            lambda attempts: RankingIncomplete(
                f"{member!r} was not found among the ranks of {self.name!r} in {attempts} attempts: try again "
                "if its score changes all the time; if it was written by other means, rerank() gives it a rank"
            ),
        )

    def _rank(self, member: str, reverse: bool) -> Steps[tuple[int, Decimal] | None]:
        score = yield from self.score(member)
        if score is None:
            return None
        if self.ranking is None:
            return (yield from self._count_before(member, score, reverse=reverse)), score
        place = yield from self.ranking.place_once(ranking_key(score, member))
        if place is None:
            raise RetryNeeded  # the score has changed meanwhile
        return place.greater if reverse else place.smaller, score

    def _count_before(self, member: str, score: Decimal, *, reverse: bool) -> Steps[int]:
        """The number of members before a member with this score, or after it. Reads them."""
        beyond, is_beyond = f"({score}", gt if reverse else lt
        bounds = (beyond, "inf") if reverse else ("-inf", beyond)
        rank = yield from self.count(ScoreRange.of(*bounds))
        for query in self.queries(ScoreRange(score, score)):
            tied = yield from self.calls.all(query.select(SortedSetMember.member))
            rank += sum(is_beyond(item.member, member) for item in tied)
        return rank

    def at(self, part: Slice, *, reverse: bool = False) -> Steps[list[Scored]]:
        """The members from one rank on, counted from the lowest score or from the highest."""
        if self.ranking is None or self.has_expired():
            return (yield from self.read(Range(EVERY_SCORE, part, reverse)))
        count = part.length
        if count is None:
            count = max(0, (yield from self.ranking.size()) - part.first)
        keys = yield from self.ranking.at(part.first, count, reverse=reverse)
        return [Scored(member, score) for score, member in map(read_ranking_key, keys)]

    def _by_rank(self, ranks: RankRange, *, reverse: bool) -> Steps[list[Scored]]:
        """The members from one rank to another; negative ranks count from the other end."""
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
        """The members with these ranks."""
        if self.ranking is None:
            members = yield from self.at(Slice(0, max(ranks, default=-1) + 1))
            return [members[rank] for rank in ranks if rank < len(members)]
        picked: list[Scored] = []
        for rank in ranks:
            picked += yield from self.at(Slice(rank, 1))
        return picked

    # Expiry

    def expiry(self) -> Steps[datetime | None]:
        """When the set expires, None for never. Reads 1 if commands can change it."""
        if not self.is_expirable:
            return self.expires_at
        item = yield from self.calls.get(self.expiry_kind, consistent=True, name=self.name)
        return None if item is None else item.gone_at


def by_score(member: Scored) -> tuple[Decimal, str]:
    """Sorts by score, then by bytes: Python compares texts by code points, which is the order of their UTF-8 bytes."""
    return member.score, member.member


def _scored(item: SortedSetMember) -> Scored:
    return Scored(item.member, plain(item.score))  # some engines keep trailing zeros
