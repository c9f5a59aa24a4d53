"""Where the members of a sorted set are, and how they are read: by member, by score, by bytes.

A member is an item. Its sort key is the member as it is, so that members lie in the order of their
bytes; its score is a number, on a local index, so that it can be added to by the database itself and read
consistently. A set has one partition, or `shards` of them: a member's is found by its hash, and what is
asked of the whole set is asked of each partition and merged.

Every read here is consistent. What is read comes sorted by score, then by the member's bytes. The index
does not promise the second: where a range is cut off between members of one score, these are looked at.

The index knows what is next, but not how many came before: whatever counts here reads what it counts. In a
set with ranks, a ranking (a tree of counts) knows, and is asked instead: it reads a few items.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple

from isotone.errors import InvalidCursor, UsageError
from isotone.model import (
    Attr,
    Calls,
    Condition,
    Entity,
    Index,
    Key,
    Pattern,
    Query,
    Steps,
    expires,
    field,
    raw,
)
from isotone.structures.ranking import (
    Ranking,
    after_score,
    before_score,
    ranking_key,
    read_ranking_key,
)
from isotone.structures.sorted_set.bounds import EVERY_SCORE, EVERYTHING, ScoreRange, Window, plain
from isotone.structures.sorted_set.expiry import Expiry

Compare = Callable[[Any, Any], Condition]

MOST_SHARDS: Final = 1000
INDEX: Final = "by_score"
SCORE: Final = "score"

_STRIDE: Final = 100  # items that are read at once while members of one score are looked for


class SortedSetMember(Entity):
    """A member of a sorted set, with its score."""

    name: Attr[str] = field()
    shard: Attr[int] = field(max=MOST_SHARDS - 1, alert=None)
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
    """The members of one set."""

    def __init__(
        self,
        calls: Calls,
        kind: type[SortedSetMember],
        name: str,
        shards: int,
        expiry: Expiry,
        ranking: Ranking | None,
    ) -> None:
        if not 1 <= shards <= MOST_SHARDS:
            raise UsageError(f"a sorted set has 1 to {MOST_SHARDS} shards, not {shards}")
        self.kind = kind
        self.name = name
        self._calls = calls
        self._shards = shards
        self._expiry = expiry
        self._ranking = ranking

    # One by one

    def key_of(self, member: str) -> dict[str, Any]:
        """The fields of a member's primary key."""
        if not isinstance(member, str):
            raise UsageError(
                f"{member!r} is no member: members are texts, so write str({member!r})"
            )
        raw_bytes = member.encode("utf-8", "surrogatepass")
        return {"name": self.name, "shard": zlib.crc32(raw_bytes) % self._shards, "member": member}

    def scores(self, members: Iterable[str]) -> Steps[list[Decimal | None]]:
        """The score of each, None for what is no member. Reads one item each, a hundred to a request."""
        keys = [self.key_of(member) for member in members]
        if len(keys) == 1:
            found = [(yield from self._calls.get(self.kind, consistent=True, **keys[0]))]
        else:
            found = yield from self._calls.get_many(self.kind, keys, consistent=True)
        return [None if each is None else plain(each.score) for each in found]

    # By score

    def by_score(
        self, scores: ScoreRange, *, reverse: bool = False
    ) -> Iterator[Query[SortedSetMember]]:
        """The members with these scores, in each shard."""
        if scores.is_empty:
            return iter(())
        field, (low, high) = SortedSetMember.score, scores
        bounds = [field >= low] if low != EVERY_SCORE.low else []
        bounds += [field <= high] if high != EVERY_SCORE.high else []
        return self._in_each_shard(self.kind.by_score, bounds, reverse)

    def between(
        self, scores: ScoreRange, window: Window = EVERYTHING, *, reverse: bool = False
    ) -> Steps[list[Scored]]:
        """The members with these scores.

        Reads, in each shard, up to the window's end and one more; where that one has the score of the last,
        up to twice as many more as have it.
        """
        found: list[Scored] = []
        for shard, query in enumerate(self.by_score(scores, reverse=reverse)):
            found += yield from self._first(query, window.end, shard, reverse)
        found.sort(key=_by_score_and_member, reverse=reverse)
        return found[window.first : window.end]

    def _first(
        self, query: Query[SortedSetMember], wanted: int | None, shard: int, reverse: bool
    ) -> Steps[list[Scored]]:
        """The first members of a shard by score and bytes, and maybe some more of the last one's score."""
        if not wanted:
            return (yield from self._up_to(query, wanted))
        found = yield from self._up_to(query, wanted + 1)
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
        by_score = self._query(self.kind.by_score, shard, [SortedSetMember.score == score])
        by_bytes = self._query(self.kind.primary, shard, reverse=reverse)
        indexed = self._calls.traverse(by_score.page_size(_STRIDE))
        spelt = self._calls.traverse(by_bytes.page_size(_STRIDE))
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

    # By their bytes

    def spelt(
        self, low: str, high: str, window: Window = EVERYTHING, *, reverse: bool = False
    ) -> Steps[list[Scored]]:
        """The members between two bounds as Redis writes them: `"[a"`, `"(a"`, `"-"`, `"+"`.

        Reads, in each shard, up to the window's end.
        """
        found: list[Scored] = []
        for query in self._by_bytes(low, high, reverse=reverse):
            found += yield from self._up_to(query, window.end)
        found.sort(reverse=reverse)  # by the member, as texts compare by their UTF-8 bytes
        return found[window.first : window.end]

    def all(self) -> Steps[list[Scored]]:
        """All members, by their bytes: no change of a score has one seen twice, or not at all."""
        return (yield from self.spelt("-", "+"))

    def count_spelt(self, low: str, high: str) -> Steps[int]:
        """How many members lie between two bounds; reads them."""
        return (yield from self._counted(self._by_bytes(low, high)))

    def scan(self, cursor: str, size: int) -> Steps[tuple[list[Scored], str | None]]:
        """The next members in the order of shards and bytes, and where to go on; "" is the beginning.

        What is a member all the time is seen once, whatever comes and goes in between.
        """
        shard, _, rest = cursor.partition(".")
        if cursor and not (shard.isdecimal() and int(shard) < self._shards):
            raise InvalidCursor(f"{cursor!r} is no cursor of this set; begin again with 0")
        if self._expiry.is_over():
            return [], None
        at = int(shard or 0)
        query = self._query(self.kind.primary, at)
        page = yield from self._calls.page(query, size=size, cursor=rest or None)
        found = list(map(_scored, page.items))
        if page.cursor is not None:
            return found, f"{at}.{page.cursor}"
        return found, f"{at + 1}." if at + 1 < self._shards else None

    def is_empty(self) -> Steps[bool]:
        """Whether there is no member. Reads one item of each shard until there is one."""
        for query in self._by_bytes():
            if (yield from self._calls.first(query)) is not None:
                return False
        return True

    def _by_bytes(
        self, low: str = "-", high: str = "+", *, reverse: bool = False
    ) -> Iterator[Query[SortedSetMember]]:
        bounds = [*_member_bound(low, ge, gt), *_member_bound(high, le, lt)]
        if low == "+" or high == "-":
            return iter(())
        return self._in_each_shard(self.kind.primary, bounds, reverse)

    # By rank

    def size(self) -> Steps[int]:
        """How many members there are."""
        if self._ranking is None or self._expiry.is_over():
            return (yield from self.count(EVERY_SCORE))
        return (yield from self._ranking.size())

    def count(self, scores: ScoreRange) -> Steps[int]:
        """How many members have scores in a range."""
        if self._ranking is None or scores.is_empty or self._expiry.is_over():
            return (yield from self._counted(self.by_score(scores)))
        low, high = before_score(scores.low), after_score(scores.high)
        return (yield from self._ranking.count(low, high))

    def rank(self, place: Scored, *, reverse: bool) -> Steps[int | None]:
        """How many members stand before one, or behind it; None where it has another score by now."""
        if self._ranking is not None:
            found = yield from self._ranking.place(ranking_key(place.score, place.member))
            return None if found is None else found[reverse]
        nearer, is_nearer = f"({place.score}", gt if reverse else lt
        bounds = (nearer, "inf") if reverse else ("-inf", nearer)
        rank = yield from self.count(ScoreRange.of(*bounds))
        for query in self.by_score(ScoreRange(place.score, place.score)):
            tied = yield from self._calls.all(query.select(SortedSetMember.member))
            rank += sum(is_nearer(each.member, place.member) for each in tied)
        return rank

    def at(self, window: Window, *, reverse: bool = False) -> Steps[list[Scored]]:
        """The members in some places, counted from the least, or from the greatest."""
        if self._ranking is None or self._expiry.is_over():
            return (yield from self.between(EVERY_SCORE, window, reverse=reverse))
        count = window.length
        if count is None:
            count = max(0, (yield from self._ranking.size()) - window.first)
        keys = yield from self._ranking.at(window.first, count, reverse=reverse)
        return [Scored(found.member, found.score) for found in map(read_ranking_key, keys)]

    def pick(self, places: Sequence[int]) -> Steps[list[Scored]]:
        """The members in single places."""
        if self._ranking is None:
            found = yield from self.at(Window(0, max(places, default=-1) + 1))
            return [found[place] for place in places if place < len(found)]
        picked: list[Scored] = []
        for place in places:
            picked += yield from self.at(Window(place, 1))
        return picked

    # All shards

    def _in_each_shard(
        self, pattern: Pattern[SortedSetMember], bounds: Sequence[Condition], reverse: bool
    ) -> Iterator[Query[SortedSetMember]]:
        """A range in each shard; none where the set has expired, which then is not read."""
        if not self._expiry.is_over():
            for shard in range(self._shards):
                yield self._query(pattern, shard, bounds, reverse=reverse)

    def _query(
        self,
        pattern: Pattern[SortedSetMember],
        shard: int,
        bounds: Sequence[Condition] = (),
        *,
        reverse: bool = False,
    ) -> Query[SortedSetMember]:
        place = SortedSetMember.name == self.name, SortedSetMember.shard == shard
        query = pattern.where(*place, *bounds).consistent()
        return query.reversed() if reverse else query

    def _up_to(self, query: Query[SortedSetMember], wanted: int | None) -> Steps[list[Scored]]:
        if wanted == 0:
            return []
        limited = query if wanted is None else query.limit(wanted)
        return list(map(_scored, (yield from self._calls.all(limited))))

    def _counted(self, queries: Iterable[Query[SortedSetMember]]) -> Steps[int]:
        total = 0
        for query in queries:
            total += yield from self._calls.count(query)
        return total


def _scored(item: SortedSetMember) -> Scored:
    return Scored(item.member, plain(item.score))  # not every engine drops zeros at the end


def _by_score_and_member(each: Scored) -> tuple[Decimal, str]:
    return each.score, each.member  # texts compare by code points, which is by their UTF-8 bytes


def _member_bound(bound: str, closed: Compare, opened: Compare) -> list[Condition]:
    if bound in ("-", "+"):
        return []
    if not isinstance(bound, str) or bound[:1] not in ("[", "("):
        raise UsageError(
            f'{bound!r} is no bound of members; write "[{bound}" to include it, "({bound}" to '
            'leave it out, or "-" and "+" for the ends'
        )
    return [(closed if bound[0] == "[" else opened)(SortedSetMember.member, bound[1:])]
