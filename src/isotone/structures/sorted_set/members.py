"""Where the members of a sorted set are, and how they are read: by member, by score, by bytes.

A member is an item. Its sort key is the member as it is, so that members lie in the order of their
bytes; its score is a number, on a local index, so that it can be added to by the database itself and read
consistently. A set has one partition, or `shards` of them: a member's is found by its hash, and what is
asked of the whole set is asked of each partition and merged.

Every read here is consistent. What is read comes sorted by score, then by the member's bytes. The index
does not promise the second: where a range is cut off between members of one score, these are looked at.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from isotone.errors import InvalidCursor, UsageError
from isotone.model.calls import Calls
from isotone.model.declaring.components import raw
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.fields import Attr, expires, field
from isotone.model.declaring.keys import Index, Key
from isotone.model.entity import Entity
from isotone.model.reading.patterns import Pattern, Query
from isotone.model.steps import Steps
from isotone.structures.sorted_set.bounds import (
    EVERYTHING,
    MemberRange,
    ScoreRange,
    Window,
    plain,
)

MOST_SHARDS: Final = 1000
INDEX: Final = "by_score"
SCORE: Final = "score"

_STRIDE: Final = 100  # items that are read at once while members of one score are looked for

EVERY_SCORE: Final = ScoreRange(None, None)
EVERY_MEMBER: Final = MemberRange(None, None)


class SortedSetMember(Entity):
    """A member of a sorted set, with its score."""

    name: Attr[str] = field()
    shard: Attr[int] = field(max=MOST_SHARDS - 1, alert=1)
    member: Attr[str] = field()
    score: Attr[Decimal] = field(default=Decimal(0), name=SCORE)
    gone_at: Attr[datetime | None] = expires(default=None)

    primary = Key("SORTED_SET", name, shard).sort("MEMBER", raw(member))
    by_score = Index(INDEX, "SORTED_SET", name, shard).sort(score)


class Scored(NamedTuple):
    """A member and its score."""

    member: str
    score: Decimal


class Members:
    """The members of one set, to be read; `is_over` tells whether all of it has expired."""

    def __init__(
        self,
        calls: Calls,
        kind: type[SortedSetMember],
        name: str,
        shards: int,
        is_over: Callable[[], bool],
    ) -> None:
        if not 1 <= shards <= MOST_SHARDS:
            raise UsageError(f"a sorted set has 1 to {MOST_SHARDS} shards, not {shards}")
        self._calls = calls
        self._is_over = is_over
        self.kind = kind
        self.name = name
        self.shards = shards

    # One by one

    def key_of(self, member: str) -> dict[str, Any]:
        """The fields of a member's primary key."""
        if not isinstance(member, str):
            raise UsageError(
                f"{member!r} is no member: members are texts, so write str({member!r})"
            )
        raw_bytes = member.encode("utf-8", "surrogatepass")
        return {"name": self.name, "shard": zlib.crc32(raw_bytes) % self.shards, "member": member}

    def scores(self, members: Iterable[str]) -> Steps[list[Decimal | None]]:
        """The score of each, None for what is no member. Reads one item each, a hundred to a request."""
        keys = [self.key_of(member) for member in members]
        if len(keys) == 1:
            found = [(yield from self._calls.get(self.kind, consistent=True, **keys[0]))]
        else:
            found = yield from self._calls.get_many(self.kind, keys, consistent=True)
        return [None if each is None else plain(each.score) for each in found]

    # By score

    def between(
        self, scores: ScoreRange, window: Window = EVERYTHING, *, reverse: bool = False
    ) -> Steps[list[Scored]]:
        """The members with these scores.

        Reads, in each shard, up to the window's end and one more; where that one has the score of the last,
        up to twice as many more as have it.
        """
        found: list[Scored] = []
        if window.length == 0:
            return found
        for shard, query in enumerate(self.by_score(scores)):
            directed = _directed(query, reverse)
            if window.end is None:
                found += map(_scored, (yield from self._calls.all(directed)))
            else:
                found += yield from self._first(window.end, shard, directed, reverse)
        found.sort(key=_by_score_and_member, reverse=reverse)
        return found[window.first : window.end]

    def count_between(self, scores: ScoreRange) -> Steps[int]:
        """How many members have these scores; reads them."""
        return (yield from self._counted(self.by_score(scores)))

    def count_before(self, place: Scored) -> Steps[int]:
        """How many members stand before a place; reads them, and all of the same score."""
        lower = yield from self.count_between(ScoreRange(None, place.score, without_high=True))
        return lower + sum(member < place.member for member in (yield from self._of(place.score)))

    def count_behind(self, place: Scored) -> Steps[int]:
        """How many members stand behind a place; reads them, and all of the same score."""
        higher = yield from self.count_between(ScoreRange(place.score, None, without_low=True))
        return higher + sum(member > place.member for member in (yield from self._of(place.score)))

    def _of(self, score: Decimal) -> Steps[list[str]]:
        """All members with one score."""
        found: list[str] = []
        for query in self.by_score(ScoreRange(score, score)):
            tied = yield from self._calls.all(query.select(SortedSetMember.member))
            found += (each.member for each in tied)
        return found

    def _first(
        self, wanted: int, shard: int, query: Query[SortedSetMember], reverse: bool
    ) -> Steps[list[Scored]]:
        """The first members of a shard by score and bytes, and maybe some more of the last one's score."""
        found = list(map(_scored, (yield from self._calls.all(query.limit(wanted + 1)))))
        if len(found) <= wanted or found[wanted].score != found[wanted - 1].score:
            return found[:wanted]
        score = found[wanted].score
        kept = [each for each in found if each.score != score]
        return kept + (yield from self._tied(score, wanted - len(kept), shard, reverse))

    def _tied(self, score: Decimal, wanted: int, shard: int, reverse: bool) -> Steps[list[Scored]]:
        """All members of a shard with one score, or at least the first of them by their bytes.

        The index has just these in some order, the table all members by their bytes. Which way is shorter
        cannot be known, so it goes both, in turns, until one has arrived.
        """
        by_score = self.by_score(ScoreRange(score, score))[shard].page_size(_STRIDE)
        by_bytes = _directed(self._by_member(EVERY_MEMBER)[shard], reverse).page_size(_STRIDE)
        indexed, spelt = self._calls.traverse(by_score), self._calls.traverse(by_bytes)
        all_tied: list[Scored] = []
        first_tied: list[Scored] = []
        while True:
            all_tied += map(_scored, (yield from indexed.step()))
            if indexed.is_over:
                return all_tied
            passed = map(_scored, (yield from spelt.step()))
            first_tied += (each for each in passed if each.score == score)
            if spelt.is_over or len(first_tied) >= wanted:
                return first_tied

    def by_score(self, scores: ScoreRange) -> list[Query[SortedSetMember]]:
        """The members with these scores, in each shard."""
        return self._queries(self.kind.by_score, SortedSetMember.score, scores.closed())

    # By their bytes

    def spelt(
        self, members: MemberRange, window: Window = EVERYTHING, *, reverse: bool = False
    ) -> Steps[list[Scored]]:
        """The members between two texts. Reads, in each shard, up to the window's end."""
        found: list[Scored] = []
        if window.length == 0:
            return found
        for query in self._by_member(members):
            directed = _directed(query, reverse)
            wanted = directed if window.end is None else directed.limit(window.end)
            found += map(_scored, (yield from self._calls.all(wanted)))
        found.sort(key=_by_bytes, reverse=reverse)
        return found[window.first : window.end]

    def count_spelt(self, members: MemberRange) -> Steps[int]:
        """How many members lie between two texts; reads them."""
        return (yield from self._counted(self._by_member(members)))

    def scan(self, cursor: str, size: int) -> Steps[tuple[list[Scored], str | None]]:
        """The next members in the order of shards and bytes, and where to go on; "" is the beginning.

        What is a member all the time is seen once, whatever comes and goes in between.
        """
        shard, _, rest = cursor.partition(".")
        if cursor and not (shard.isdecimal() and int(shard) < self.shards):
            raise InvalidCursor(f"{cursor!r} is no cursor of this set; begin again with 0")
        if self._is_over():
            return [], None
        at = int(shard or 0)
        query = self._by_member(EVERY_MEMBER)[at]
        page = yield from self._calls.page(query, size=size, cursor=rest or None)
        found = list(map(_scored, page.items))
        if page.cursor is not None:
            return found, f"{at}.{page.cursor}"
        return found, f"{at + 1}." if at + 1 < self.shards else None

    def _by_member(self, members: MemberRange) -> list[Query[SortedSetMember]]:
        return self._queries(self.kind.primary, SortedSetMember.member, members)

    # All shards

    def is_empty(self) -> Steps[bool]:
        """Whether there is no member. Reads one item of each shard until there is one."""
        for query in self._by_member(EVERY_MEMBER):
            if (yield from self._calls.first(query)) is not None:
                return False
        return True

    def _queries(
        self,
        pattern: Pattern[SortedSetMember],
        field: Attr[Any],
        bounds: ScoreRange | MemberRange,
    ) -> list[Query[SortedSetMember]]:
        """The range in each shard; none where nothing can be in it, which then is not read."""
        if bounds.is_empty or self._is_over():
            return []
        conditions = list(_conditions(field, bounds))
        return [
            pattern.where(
                SortedSetMember.name == self.name, SortedSetMember.shard == shard, *conditions
            ).consistent()
            for shard in range(self.shards)
        ]

    def _counted(self, queries: Sequence[Query[SortedSetMember]]) -> Steps[int]:
        total = 0
        for query in queries:
            total += yield from self._calls.count(query)
        return total


def _conditions(field: Attr[Any], bounds: ScoreRange | MemberRange) -> Iterator[Condition]:
    if bounds.low is not None:
        yield field > bounds.low if bounds.without_low else field >= bounds.low
    if bounds.high is not None:
        yield field < bounds.high if bounds.without_high else field <= bounds.high


def _directed(query: Query[SortedSetMember], reverse: bool) -> Query[SortedSetMember]:
    return query.newest_first() if reverse else query.oldest_first()


def _scored(item: SortedSetMember) -> Scored:
    return Scored(item.member, plain(item.score))  # not every engine drops zeros at the end


def _by_score_and_member(each: Scored) -> tuple[Decimal, str]:
    return each.score, each.member  # texts compare by code points, which is by their UTF-8 bytes


def _by_bytes(each: Scored) -> str:
    return each.member
