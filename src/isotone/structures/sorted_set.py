# ruff: noqa: A002 - arguments have the names that redis-py gives them
"""Sorted sets: members with scores, in their order; a method for each command of Redis (zadd with nx, gt; zpopmin …).

    trending = SortedSet(store, "trending:2013-04-19")
    trending.create_table()
    trending.incr("song:1", 1)
    trending.zadd({"song:2": 0.3, "song:3": 0.7})
    trending.zrange(0, 19, desc=True, withscores=True)

Methods have the names, arguments and results of redis-py, without its first argument, the key. Scores are exact
decimals. A command that combines several sets takes them as objects. Ranks come from `ranking` if the set has them,
otherwise from a count of the entries before (`sorted_set_reads`).

Costs are for a set of n members. "Reads k" means k items; a consistent read takes a unit for each 4 KB, and one
request returns up to 1 MB. With shards, every command that is not about single members queries each shard.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

from isotone import model
from isotone.errors import UsageError
from isotone.model import Local, Query, Steps, Table
from isotone.structures.exact_numbers import EXACT, Number, score_of
from isotone.structures.ranking import Ranking
from isotone.structures.sorted_set_changes import MemberChanges, Progress, plus
from isotone.structures.sorted_set_ranges import Range, ScoreRange, TextRange
from isotone.structures.sorted_set_reads import (
    INDEX,
    MOST_SHARDS,
    SCORE,
    Members,
    Scored,
    SortedSetExpiry,
    SortedSetMember,
    by_score,
)
from isotone.structures.structure import Batches, S, Structure, iteration, operation
from isotone.structures.time_windows import instant
from isotone.structures.waits_and_retries import poll

Cast = Callable[[Decimal], Any]
Cursor = str | Literal[0]
Keys = Iterable["SortedSet[Any]"]
Sets = Keys | Mapping["SortedSet[Any]", Number]
"""Several sets; a mapping gives the factor for each set's scores."""
Popped = tuple[str, str, Decimal] | None
"""The set's name, a member and its score; None if all sets are empty."""
Scores = dict[str, Decimal]
"""A set that was read: members and their scores."""

_AGGREGATES: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "SUM": EXACT.add,
    "MIN": min,
    "MAX": max,
    "COUNT": EXACT.add,  # each score is 1, or its set's factor
}
_MOST_REPEATED: Final = 1_000_000  # members that one zrandmember returns, if they may repeat
_PAGE: Final = 100  # members of a scan, by default
_LONGEST_POLL: Final = 0.5  # seconds between two polls of an empty set


class SortedSet(Structure[S]):
    """A sorted set in a table.

    `ranked`: ranks and counts by score take a few reads, but each change of a score is a transaction.
    `shards`: the number of partitions of the members. `expires`: when the whole set expires; with True,
    `expire` and `persist` set it. All three belong to the set: use the same values everywhere.

        >>> trending = SortedSet(store, "trending")
        >>> created = trending.create_table()
        >>> added = trending.zadd({"song:1": 1, "song:2": 3, "song:3": 2})
        >>> trending.zrevrange(0, 1)
        ['song:2', 'song:3']
    """

    def __init__(
        self,
        store: S,
        name: str,
        *,
        table: Table | None = None,
        ranked: bool = False,
        shards: int = 1,
        expires: datetime | bool | None = None,
    ) -> None:
        super().__init__(store, table or SORTED_SETS)
        if ranked:
            self.require(
                "transactions", "leave out ranked=True: zrank then counts the members before"
            )
        if ranked and expires is True:
            raise UsageError(
                "a set with ranks cannot take expires=True, because the ranks would not expire; give a datetime"
            )
        if not 1 <= shards <= MOST_SHARDS:
            raise UsageError(f"shards must be 1 to {MOST_SHARDS}, not {shards}")
        self.name = name
        self.entries: type[SortedSetMember] = self.bind(SortedSetMember)
        self.ranking: Ranking | None = (
            Ranking(self.calls, self.table, f"SORTED_SET#{name}") if ranked else None
        )
        self._members = Members(
            calls=self.calls,
            kind=self.entries,
            expiry_kind=self.bind(SortedSetExpiry),
            name=name,
            shards=shards,
            ranking=self.ranking,
            expires_at=instant(expires) if isinstance(expires, datetime) else None,
            is_expirable=expires is True,
        )
        self._changes = MemberChanges(self._members)

    @staticmethod
    def layout(name: str = "sorted_sets") -> Table:
        """A table for sorted sets; any table with these keys and this index works."""
        return Table(name, indexes={INDEX: Local(model.Number(SCORE))})

    def __repr__(self) -> str:
        return f"SortedSet({self.name!r})"

    def queries(self) -> list[Query[SortedSetMember]]:
        """A query for the members by score in each shard, for `page`, `load` or `show` of a store."""
        return list(self._members.queries())

    # One member

    @operation
    def zscore(self, value: str) -> Steps[Decimal | None]:
        """The score of a member, or None. Reads 1."""
        return self._members.score(value)

    @operation
    def zmscore(self, members: Sequence[str]) -> Steps[list[Decimal | None]]:
        """The scores of several members. Reads 1 each, a hundred to a request."""
        if not members:
            raise UsageError("zmscore needs at least one member")
        return self._members.scores(members)

    @operation
    def zrank(
        self, value: str, withscore: bool = False, score_cast_func: Cast = Decimal
    ) -> Steps[Any]:
        """The number of members before a member, or None. Reads 1 + those before; with ranks O(log n).

        `withscore`: returns `[rank, score]`, with the score as `score_cast_func` converts it.
        """
        return self._rank(value, withscore, score_cast_func, reverse=False)

    @operation
    def zrevrank(
        self, value: str, withscore: bool = False, score_cast_func: Cast = Decimal
    ) -> Steps[Any]:
        """The number of members after a member, or None. Options and cost as of `zrank`."""
        return self._rank(value, withscore, score_cast_func, reverse=True)

    # Counting

    @operation
    def zcard(self) -> Steps[int]:
        """The number of members. Reads n; with ranks 1."""
        return self._members.size()

    @operation
    def zcount(self, min: Number, max: Number) -> Steps[int]:
        """The number of members with scores in a range; "(1" excludes 1. Reads them; with ranks O(log n)."""
        return self._members.count(ScoreRange.of(min, max))

    @operation
    def zlexcount(self, min: str, max: str) -> Steps[int]:
        """The number of members between two texts, as `zrangebylex` takes them. Reads them."""
        return self._members.count(TextRange.of(min, max))

    # Ranges

    @operation
    def zrange(
        self,
        start: Any,
        end: Any,
        desc: bool = False,
        withscores: bool = False,
        score_cast_func: Cast = Decimal,
        byscore: bool = False,
        bylex: bool = False,
        offset: int | None = None,
        num: int | None = None,
    ) -> Steps[list[Any]]:
        """Members in order, by rank from `start` to `end`, both included; -1 is the last.

        `byscore`, `bylex`: from one score, or text, to another. `desc`: in descending order; the greater
        bound comes first. `offset`, `num`: only part of a range by score or text. `withscores`: returns
        `(member, score)` pairs, with scores as `score_cast_func` converts them.

        By rank, reads up to `end`, and with ranks only the result; otherwise up to `offset + num`.
        """
        if bylex and withscores:
            raise UsageError("withscores cannot be combined with bylex")
        wanted = Range.of(
            start, end, byscore=byscore, bylex=bylex, desc=desc, offset=offset, num=num
        )
        return self._range(wanted, withscores, score_cast_func)

    @operation
    def zrevrange(
        self, start: int, end: int, withscores: bool = False, score_cast_func: Cast = Decimal
    ) -> Steps[list[Any]]:
        """Members by rank, the greatest score first. Options and cost as of `zrange`."""
        return self._range(Range.of(start, end, desc=True), withscores, score_cast_func)

    @operation
    def zrangebyscore(
        self,
        min: Number,
        max: Number,
        start: int | None = None,
        num: int | None = None,
        withscores: bool = False,
        score_cast_func: Cast = Decimal,
    ) -> Steps[list[Any]]:
        """Members with scores in a range; "(1" excludes 1. Reads `start + num` of them, or all.

        `start`, `num`: only `num` members, from the `start`-th on, which counts from 0. `withscores`,
        `score_cast_func`: as of `zrange`.
        """
        wanted = Range.of(min, max, byscore=True, offset=start, num=num)
        return self._range(wanted, withscores, score_cast_func)

    @operation
    def zrevrangebyscore(
        self,
        max: Number,
        min: Number,
        start: int | None = None,
        num: int | None = None,
        withscores: bool = False,
        score_cast_func: Cast = Decimal,
    ) -> Steps[list[Any]]:
        """As `zrangebyscore`, the greatest score first; the greater bound comes first, too."""
        wanted = Range.of(max, min, byscore=True, desc=True, offset=start, num=num)
        return self._range(wanted, withscores, score_cast_func)

    @operation
    def zrangebylex(
        self, min: str, max: str, start: int | None = None, num: int | None = None
    ) -> Steps[list[str]]:
        """Members between two texts, by their bytes, whatever their scores. Reads `start + num`, or all.

        `"[a"` includes the text `a`, `"(a"` excludes it, `"-"` and `"+"` are the ends. `start`, `num`: as
        of `zrangebyscore`.
        """
        return self._range(Range.of(min, max, bylex=True, offset=start, num=num))

    @operation
    def zrevrangebylex(
        self, max: str, min: str, start: int | None = None, num: int | None = None
    ) -> Steps[list[str]]:
        """As `zrangebylex`, the greatest first; the greater bound comes first, too."""
        return self._range(Range.of(max, min, bylex=True, desc=True, offset=start, num=num))

    # Random members, and scans

    @operation
    def zrandmember(self, count: int | None = None, withscores: bool = False) -> Steps[Any]:
        """A random member, or None. Reads n; with ranks O(log n) for each.

        `count`: returns a list of this many distinct members; a negative count returns members that may repeat,
        up to a million.
        `withscores`: returns `(member, score)` pairs.
        """
        if count is None and withscores:
            raise UsageError("withscores needs a count")
        if count is not None and count < -_MOST_REPEATED:
            raise UsageError(
                f"zrandmember({count}) would return {-count:,} members; give {-_MOST_REPEATED} or more, and call it again"
            )
        size = yield from self._members.size()
        if count is not None and count < 0:
            ranks = random.choices(range(size), k=-count) if size else []
        else:
            ranks = random.sample(range(size), min(size, 1 if count is None else count))
        members = yield from self._members.pick(ranks)
        if count is None:
            return members[0].member if members else None
        return _shaped(members, withscores)

    @operation
    def zscan(
        self,
        cursor: Cursor = 0,
        match: str | None = None,
        count: int | None = None,
        score_cast_func: Cast = Decimal,
    ) -> Steps[tuple[Cursor, list[tuple[str, Any]]]]:
        """The next cursor and some members, not ordered by score; cursor 0 starts, and 0 is returned at the end.

        A member that exists from the first call to the last is returned exactly once, whatever else changes.
        `count`: how many to read, 100 by default, in one request for each shard that is read. `match`: drops members
        that do not match a pattern (`*`, `?`, `[a-z]`). `score_cast_func`: converts scores.
        """
        return self._scan(cursor, match, count, score_cast_func)

    @iteration
    def zscan_iter(
        self, match: str | None = None, count: int | None = None, score_cast_func: Cast = Decimal
    ) -> Batches[tuple[str, Any]]:
        """Iterate over all members as `zscan` does. Reads n in total, page by page."""
        cursor: Cursor = 0

        def scan() -> Steps[list[tuple[str, Any]]]:
            nonlocal cursor
            cursor, members = yield from self._scan(cursor, match, count, score_cast_func)
            return members

        yield scan()
        while cursor != 0:
            yield scan()

    # Adding

    @operation
    def zadd(
        self,
        mapping: Mapping[str, Number],
        nx: bool = False,
        xx: bool = False,
        ch: bool = False,
        incr: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> Steps[Any]:
        """Set the scores of members; returns the number of new members. Reads and writes 1 for each.

        `nx`: only adds members. `xx`: only changes scores. `gt`, `lt`: change a score only to a greater, or a
        lesser one. `ch`: the result counts changed members, too. `incr`: adds to the score of the only
        member; the result is the sum, or None if an option prevented it.

        Up to a hundred members change in one transaction; with ranks, each in its own.
        """
        for fault, is_made in (
            ("zadd needs at least one member", not mapping),
            ("zadd takes nx or xx, not both", nx and xx),
            ("zadd takes one of nx, gt and lt", (gt and lt) or (nx and (gt or lt))),
            ("with incr, zadd takes one member", incr and len(mapping) != 1),
        ):
            if is_made:
                raise UsageError(fault)
        scores = {member: score_of(score) for member, score in mapping.items()}
        if incr and not (nx or xx or gt or lt):
            ((member, amount),) = scores.items()
            return (yield from self._changes.add(member, amount))

        def decide(member: str, before: Decimal | None) -> Decimal | None:
            after = plus(before, scores[member]) if incr else scores[member]
            if before is None:
                return None if xx else after
            return before if nx or (gt and after <= before) or (lt and after >= before) else after

        changes = yield from self._changes.change(scores, decide)
        if incr:
            ((_, before, after),) = changes
            return None if after == before and (nx or gt or lt) else after
        return sum(change.has_effect and (ch or change.before is None) for change in changes)

    @operation
    def zincrby(self, amount: Number, value: str) -> Steps[Decimal]:
        """Add to the score of a member, which starts at 0; returns the sum.

        One atomic write, without a read. With ranks, a transaction.
        """
        return self._changes.add(value, score_of(amount))

    @operation
    def incr(self, member: str, by: Number = 1) -> Steps[Decimal]:
        """The same as `zincrby(by, member)`."""
        return self._changes.add(member, score_of(by))

    # Removing

    @operation
    def zrem(self, *values: str) -> Steps[int]:
        """Remove members; returns how many were removed. Reads and writes 1 for each."""
        if not values:
            raise UsageError("zrem needs at least one member")
        return self._changes.remove(values)

    @operation
    def zremrangebyrank(self, min: int, max: int) -> Steps[int]:
        """Remove the members of some ranks. Reads as `zrange` does; writes 1 for each."""
        members = yield from self._members.read(Range.of(min, max))
        return len((yield from self._changes.take(members)))

    @operation
    def zremrangebyscore(self, min: Number, max: Number) -> Steps[int]:
        """Remove the members with scores in a range. Reads 2 and writes 1 for each."""
        scores = ScoreRange.of(min, max)
        members = yield from self._range(Range(scores))
        return (yield from self._changes.remove(members, scores))

    @operation
    def zremrangebylex(self, min: str, max: str) -> Steps[int]:
        """Remove the members between two texts. Reads 2 and writes 1 for each."""
        members = yield from self._range(Range.of(min, max, bylex=True))
        return (yield from self._changes.remove(members))

    @operation
    def zpopmin(self, count: int | None = None) -> Steps[list[tuple[str, Decimal]]]:
        """Remove and return the member with the lowest score; no two callers get the same member.

        `count`: the number of members. Reads 2 and writes 1 for each. If it fails after some were removed, it
        returns these.
        """
        return self._pop(count, reverse=False)

    @operation
    def zpopmax(self, count: int | None = None) -> Steps[list[tuple[str, Decimal]]]:
        """As `zpopmin`, with the highest score first."""
        return self._pop(count, reverse=True)

    @operation
    def zmpop(
        self, keys: Keys = (), min: bool = False, max: bool = False, count: int = 1
    ) -> Steps[list[Any] | None]:
        """Remove and return members of the first set that has any: `[name, members]`, or None.

        This set is tried before `keys`. `min` or `max` says from which end. `count`: the most members to pop.
        """
        return self._pop_any(self._with_others(keys), count, reverse=_from_end(min, max))

    @operation
    def bzpopmin(self, keys: Keys = (), timeout: float = 0) -> Steps[Popped]:
        """Wait until this set or one of `keys` has a member, and pop it: `(name, member, score)`.

        `timeout`: returns None after this many seconds; 0 waits forever. Polls with pauses up to half a second.
        """
        return _single((yield from self._wait(timeout, keys, 1, reverse=False)))

    @operation
    def bzpopmax(self, keys: Keys = (), timeout: float = 0) -> Steps[Popped]:
        """As `bzpopmin`, with the highest score."""
        return _single((yield from self._wait(timeout, keys, 1, reverse=True)))

    @operation
    def bzmpop(
        self, timeout: float, keys: Keys = (), min: bool = False, max: bool = False, count: int = 1
    ) -> Steps[list[Any] | None]:
        """Wait until one of the sets has a member, then as `zmpop`; None after `timeout` seconds."""
        return self._wait(timeout, keys, count, reverse=_from_end(min, max))

    # Several sets

    @operation
    def zunion(
        self,
        keys: Sets,
        aggregate: str | None = None,
        withscores: bool = False,
        score_cast_func: Cast = Decimal,
    ) -> Steps[list[Any]]:
        """The members of this set or any of `keys`, in order. Reads all.

        `keys`: sets, or a mapping of sets to the factors of their scores. `aggregate`: "SUM", "MIN" or "MAX"
        of a member's scores, or "COUNT" of the sets that have it, each by its factor; SUM by default. `withscores`,
        `score_cast_func`: as of `zrange`.
        """
        joined = _union((yield from self._read(self._with_others(keys), aggregate)), aggregate)
        return _shaped(_ordered(joined), withscores, score_cast_func)

    @operation
    def zinter(
        self, keys: Sets, aggregate: str | None = None, withscores: bool = False
    ) -> Steps[list[Any]]:
        """The members of this set and all of `keys`. Reads all. Options as of `zunion`."""
        joined = _intersection(
            (yield from self._read(self._with_others(keys), aggregate)), aggregate
        )
        return _shaped(_ordered(joined), withscores)

    @operation
    def zdiff(self, keys: Keys, withscores: bool = False) -> Steps[list[Any]]:
        """The members of this set that are in none of `keys`. Reads all."""
        rest = _difference((yield from self._read(self._with_others(keys))))
        return _shaped(_ordered(rest), withscores)

    @operation
    def zintercard(self, keys: Keys, limit: int = 0) -> Steps[int]:
        """The number of members that this set and all of `keys` share. Reads all.

        `limit`: the greatest result; 0 means no limit.
        """
        if limit < 0:
            raise UsageError(f"limit={limit} is negative; give 0 for no limit")
        shared = len(_intersection((yield from self._read(self._with_others(keys)))))
        return min(shared, limit) if limit else shared

    @operation
    def zunionstore(self, keys: Sets, aggregate: str | None = None) -> Steps[int]:
        """Make this set the union of others; returns the number of members. Options as of `zunion`.

        Reads all of them and this set; writes 1 for each member that changes, a hundred together.
        """
        return (
            yield from self._replace(_union((yield from self._read(keys, aggregate)), aggregate))
        )

    @operation
    def zinterstore(self, keys: Sets, aggregate: str | None = None) -> Steps[int]:
        """Make this set the intersection of others. Options and cost as of `zunionstore`."""
        return (
            yield from self._replace(
                _intersection((yield from self._read(keys, aggregate)), aggregate)
            )
        )

    @operation
    def zdiffstore(self, keys: Keys) -> Steps[int]:
        """Make this set the members of the first of others that are in none of the rest."""
        return (yield from self._replace(_difference((yield from self._read(keys)))))

    @operation
    def zrangestore(
        self,
        name: SortedSet[Any],
        start: Any,
        end: Any,
        byscore: bool = False,
        bylex: bool = False,
        desc: bool = False,
        offset: int | None = None,
        num: int | None = None,
    ) -> Steps[int]:
        """Make this set a range of another one; returns the number of members. Options as of `zrange`."""
        (source,) = self._checked([name])
        wanted = Range.of(
            start, end, byscore=byscore, bylex=bylex, desc=desc, offset=offset, num=num
        )
        members = yield from source._members.read(wanted)
        return (yield from self._replace(dict(members)))

    # The whole set

    @operation
    def load(
        self,
        scores: Mapping[str, Number] | Iterable[tuple[str, Number]],
        *,
        progress: Progress | None = None,
    ) -> Steps[int]:
        """Write many members in batches; returns how many. Writes 1 for each.

        Faster than `zadd` in a set with ranks, because it rebuilds them once, at the end; until then, readers
        and writers of ranks get `RankingIncomplete`. If it is interrupted, run it again. The set must not be
        changed meanwhile. `progress` is called with the number of ranked members so far.
        """
        pairs = scores.items() if isinstance(scores, Mapping) else scores
        expiry = yield from self._members.expiry()
        items = (self._members.new(member, score_of(score), expiry) for member, score in pairs)
        loaded, _ = yield from self._changes.fill(items, progress)
        return loaded

    @operation
    def rerank(self, *, progress: Progress | None = None) -> Steps[int]:
        """Rebuild the ranks from the scores; returns the number of members.

        For a set that had no ranks, or whose items were written by other means. Reads all, writes an item for
        about thirty members. Readers and writers of ranks get `RankingIncomplete` meanwhile. If it is
        interrupted, run it again. `progress` is called with the number of ranked members so far.
        """
        if self.ranking is None:
            raise UsageError("this set has no ranks to rebuild; create it with ranked=True")
        _, ranked = yield from self._changes.fill((), progress)
        return ranked

    @operation
    def delete(self) -> Steps[int]:
        """Remove all members; returns 1 if there were any, else 0. Reads 2 and writes 1 for each.

        If a set with ranks has expired, it deletes the ranking.
        """
        if self.ranking is not None and self._members.has_expired():
            yield from self.ranking.clear()
        removed = yield from self._changes.remove(_shaped((yield from self._members.all())))
        return int(removed > 0)

    # Expiry

    @operation
    def expire(
        self,
        time: float | timedelta,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> Steps[bool]:
        """Let the whole set expire after a time in seconds; returns whether it was set.

        `nx`: only if it has no expiry. `xx`: only if it has one. `gt`, `lt`: only to a later, or an earlier
        time; no expiry is later than any. For a set with `expires=True`. Reads all, writes 1 for each member.
        """
        span = time if isinstance(time, timedelta) else timedelta(seconds=time)
        return self._expire(datetime.fromtimestamp(self.now(), UTC) + span, nx, xx, gt, lt)

    @operation
    def expireat(
        self,
        when: datetime,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> Steps[bool]:
        """Let the whole set expire at a time. Options and cost as of `expire`."""
        return self._expire(instant(when), nx, xx, gt, lt)

    @operation
    def persist(self) -> Steps[bool]:
        """Remove the expiry; returns whether there was one. Reads all, writes 1 for each member."""
        self._check_expirable()
        if (yield from self._members.expiry()) is None:
            return False
        yield from self._changes.expire(None)
        return True

    @operation
    def ttl(self) -> Steps[int]:
        """Seconds until the set expires; -1 if it does not, -2 if it is empty. Reads 1 or 2."""
        if (yield from self._members.is_empty()):
            return -2
        expiry = yield from self._members.expiry()
        return -1 if expiry is None else round(expiry.timestamp() - self.now())

    # Shared by the commands

    def _rank(self, member: str, withscore: bool, cast: Cast, *, reverse: bool) -> Steps[Any]:
        found = yield from self._members.rank(member, reverse=reverse)
        if found is None:
            return None
        rank, score = found
        return [rank, cast(score)] if withscore else rank

    def _range(
        self, wanted: Range, withscores: bool = False, cast: Cast = Decimal
    ) -> Steps[list[Any]]:
        return _shaped((yield from self._members.read(wanted)), withscores, cast)

    def _scan(
        self, cursor: Cursor, match: str | None, count: int | None, cast: Cast
    ) -> Steps[tuple[Cursor, list[tuple[str, Any]]]]:
        scanning = self._members.scan(str(cursor or ""), count or _PAGE, match)
        members, following = yield from scanning
        return following or 0, _shaped(members, True, cast)

    def _pop(self, count: int | None, *, reverse: bool) -> Steps[list[tuple[str, Decimal]]]:
        if count is not None and count < 0:
            raise UsageError(f"{count} members cannot be popped; give 0 or more")
        popped = yield from self._changes.pop(1 if count is None else count, reverse=reverse)
        return _shaped(popped, True)

    def _pop_any(self, sets: Sets, count: int, *, reverse: bool) -> Steps[list[Any] | None]:
        if count < 1:
            raise UsageError(f"{count} members cannot be popped; give 1 or more")
        for source in self._checked(sets):
            popped = yield from source._changes.pop(count, reverse=reverse)
            if popped:
                return [source.name, _shaped(popped, True)]
        return None

    def _wait(
        self, timeout: float, keys: Keys, count: int, *, reverse: bool
    ) -> Steps[list[Any] | None]:
        if timeout < 0:
            raise UsageError(f"timeout={timeout} is below 0; 0 waits forever")
        sets = self._with_others(keys)
        return poll(
            lambda: self._pop_any(sets, count, reverse=reverse),
            lambda popped: popped is not None,
            timeout=timeout or math.inf,
            longest=_LONGEST_POLL,
            clock=self.calls.clock,
        )

    def _with_others(self, keys: Sets) -> Sets:
        """This set before others; in a mapping, its own factor is 1 unless it is given."""
        if isinstance(keys, Mapping):
            return keys if self in keys else {self: 1, **keys}
        return [self, *keys]

    def _read(self, keys: Sets, aggregate: str | None = None) -> Steps[list[Scores]]:
        """The current members of the sets, with weighted scores; with COUNT, each score is 1."""
        is_count = _aggregate_name(aggregate) == "COUNT"  # raises before anything is read
        sets = self._checked(keys)
        if not sets:
            raise UsageError("give at least one sorted set")
        all_scores: list[Scores] = []
        for source in sets:
            scores = dict((yield from source._members.all()))
            if is_count:
                scores = dict.fromkeys(scores, Decimal(1))
            if isinstance(keys, Mapping):
                weight = score_of(keys[source])
                scores = {member: EXACT.multiply(scores[member], weight) for member in scores}
            all_scores.append(scores)
        return all_scores

    def _replace(self, scores: Scores) -> Steps[int]:
        return self._changes.replace({member: score_of(scores[member]) for member in scores})

    def _checked(self, keys: Keys) -> list[SortedSet[Any]]:
        sets = list(keys)
        for source in sets:
            if not isinstance(source, SortedSet) or source.store is not self.store:
                raise UsageError(f"{source!r} is not a sorted set of the same store")
        return sets

    def _expire(self, expiry: datetime, nx: bool, xx: bool, gt: bool, lt: bool) -> Steps[bool]:
        self._check_expirable()
        if (nx and (xx or gt or lt)) or (gt and lt):
            raise UsageError("nx cannot be combined with xx, gt or lt, nor gt with lt")
        expiry = expiry.replace(microsecond=0)  # the stored precision
        before = yield from self._members.expiry()
        if (
            (nx and before is not None)
            or (xx and before is None)
            or (gt and (before is None or expiry <= before))
            or (lt and before is not None and expiry >= before)
            or (yield from self._members.is_empty())
        ):
            return False
        if expiry.timestamp() <= self.now():
            yield from self._changes.remove(_shaped((yield from self._members.all())))
        else:
            yield from self._changes.expire(expiry)
        return True

    def _check_expirable(self) -> None:
        if not self._members.is_expirable:
            raise UsageError(
                f"{self.name!r} was created "
                + ("to expire at a fixed time" if self._members.expires_at else "never to expire")
                + "; create it with expires=True, in every process, to use this command"
            )


SORTED_SETS: Final = SortedSet.layout()


def _from_end(min: bool, max: bool) -> bool:
    if min is max:
        raise UsageError("give min=True or max=True")
    return max


def _shaped(members: Iterable[Scored], withscores: bool = False, cast: Cast = Decimal) -> list[Any]:
    """The result of a command: the members, or pairs of members and scores."""
    if withscores:
        return [(member, cast(score)) for member, score in members]
    return [member for member, _ in members]


def _single(popped: list[Any] | None) -> Popped:
    if popped is None:
        return None
    name, ((member, score),) = popped
    return name, member, score


# Sets in memory


def _ordered(scores: Scores) -> list[Scored]:
    """Members by score, then by bytes."""
    return sorted((Scored(*pair) for pair in scores.items()), key=by_score)


def _aggregate_name(aggregate: str | None) -> str:
    name = (aggregate or "SUM").upper()
    if name not in _AGGREGATES:
        raise UsageError(f"aggregate is SUM, MIN, MAX or COUNT, not {aggregate!r}")
    return name


def _union(sets: Sequence[Scores], aggregate: str | None = None) -> Scores:
    """All members of any of the sets, with the SUM, MIN or MAX of their scores; COUNT adds scores of 1."""
    join = _AGGREGATES[_aggregate_name(aggregate)]
    joined: Scores = {}
    for scores in sets:
        for member, score in scores.items():
            joined[member] = join(joined[member], score) if member in joined else score
    return joined


def _intersection(sets: Sequence[Scores], aggregate: str | None = None) -> Scores:
    """The members of all sets, with the SUM, MIN or MAX of their scores."""
    shared = set(sets[0]).intersection(*sets[1:])
    return _union([{member: scores[member] for member in shared} for scores in sets], aggregate)


def _difference(sets: Sequence[Scores]) -> Scores:
    """The members of the first set that are in none of the others."""
    others = set().union(*sets[1:])
    return {member: score for member, score in sets[0].items() if member not in others}
