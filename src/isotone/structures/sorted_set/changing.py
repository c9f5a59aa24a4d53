# ruff: noqa: A002 - arguments have the names that redis-py gives them
"""The commands of a sorted set that change it: redis-py's, without the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from isotone.errors import UsageError
from isotone.model import Query, Steps
from isotone.model.declaring import table as tables
from isotone.structures.operation import S, operation
from isotone.structures.ranking import Ranking
from isotone.structures.sorted_set.bounds import EVERY_SCORE, Number, ScoreRange, plus, score_of
from isotone.structures.sorted_set.expiry import Expires, Expiry, SortedSetExpiry, allows, zoned
from isotone.structures.sorted_set.members import INDEX, SCORE, Members, Scored, SortedSetMember
from isotone.structures.sorted_set.reading import SortedSetReader, names_of, shaped
from isotone.structures.sorted_set.writing import Progress, Writer


def layout(name: str = "sorted_sets") -> tables.Table:
    """A table in which sorted sets can live."""
    return tables.Table(name, indexes={INDEX: tables.Local(tables.Number(SCORE))})


SORTED_SETS = layout()


class SortedSetWriter(SortedSetReader[S]):
    """A sorted set, to be read and changed."""

    layout = staticmethod(layout)

    def __init__(
        self,
        store: S,
        name: str,
        *,
        table: tables.Table | None = None,
        ranked: bool = False,
        shards: int = 1,
        expires: Expires = None,
    ) -> None:
        super().__init__(store, table or SORTED_SETS)
        if ranked and expires is True:
            raise UsageError(
                "a set with ranks cannot expire by command: the ranking would not; give a datetime"
            )
        self.name = name
        self.entries = self.kept(SortedSetMember)
        self.ranking: Ranking | None = None
        if ranked:
            self.ranking = Ranking(self.calls, self.table, f"SORTED_SET#{name}")
        self._expiry = Expiry(self.calls, self.kept(SortedSetExpiry), name, expires)
        self._members = Members(self.calls, self.entries, name, shards, self._expiry, self.ranking)
        self._writer = Writer(self.calls, self._members, self._expiry, self.ranking)

    def queries(self) -> list[Query[SortedSetMember]]:
        """The members in the order of their scores, in each shard: for a store to page, load or show."""
        return list(self._members.by_score(EVERY_SCORE))

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
        """Give members scores; how many are new, with `ch` how many are new or changed.

        `nx` only adds, `xx` only changes, `gt` and `lt` change only to greater and lesser scores. `incr`
        adds to the one score that is given; its result is the sum, None where an option forbade it.
        Reads and writes 1 for each member. A hundred members change together, or none; with ranks, each
        by itself.
        """
        for fault, is_found in (
            ("zadd wants one member or more", not mapping),
            ("zadd takes nx or xx, not both", nx and xx),
            ("zadd takes one of nx, gt and lt", (gt and lt) or (nx and (gt or lt))),
            ("with incr, zadd takes one member", incr and len(mapping) != 1),
        ):
            if is_found:
                raise UsageError(fault)
        scores = {member: score_of(score) for member, score in mapping.items()}
        if incr and not (nx or xx or gt or lt):
            ((member, amount),) = scores.items()
            return (yield from self._writer.add(member, amount))

        def decide(member: str, before: Decimal | None) -> Decimal | None:
            after = plus(before, scores[member]) if incr else scores[member]
            if before is None:
                return None if xx else after
            return before if nx or (gt and after <= before) or (lt and after >= before) else after

        changes = yield from self._writer.change(scores, decide)
        if incr:
            ((_, before, after),) = changes
            return None if after == before and (nx or gt or lt) else after
        return sum(each.after != each.before and (ch or each.before is None) for each in changes)

    @operation
    def zincrby(self, amount: Number, value: str) -> Steps[Decimal]:
        """Add to the score of a member, which begins with 0; the sum.

        One atomic write, and nothing read. With ranks, a transaction.
        """
        return (yield from self._writer.add(value, score_of(amount)))

    @operation
    def incr(self, member: str, by: Number = 1) -> Steps[Decimal]:
        """The same as `zincrby(by, member)`."""
        return (yield from self._writer.add(member, score_of(by)))

    # Taking away

    @operation
    def zrem(self, *values: str) -> Steps[int]:
        """Take members out; how many there were. Reads and writes 1 for each."""
        if not values:
            raise UsageError("zrem wants one member or more")
        return (yield from self._writer.remove(values))

    @operation
    def zremrangebyrank(self, min: int, max: int) -> Steps[int]:
        """Take out the members of some ranks. Reads as `zrange` does; writes 1 for each."""
        found = yield from self._by_rank(min, max, reverse=False)
        return len((yield from self._writer.take(found)))

    @operation
    def zremrangebyscore(self, min: Number, max: Number) -> Steps[int]:
        """Take out the members with scores in a range. Reads 2 and writes 1 for each."""
        scores = ScoreRange.of(min, max)
        found = yield from self._members.between(scores)
        return (yield from self._writer.remove(names_of(found), scores))

    @operation
    def zremrangebylex(self, min: str, max: str) -> Steps[int]:
        """Take out the members between two texts. Reads 2 and writes 1 for each."""
        found = yield from self._members.spelt(min, max)
        return (yield from self._writer.remove(names_of(found)))

    @operation
    def zpopmin(self, count: int | None = None) -> Steps[list[tuple[str, Decimal]]]:
        """Take out the members with the least scores, and give them; nobody else gets the same.

        Reads 2 and writes 1 for each. Where it fails after some were taken out, it gives these.
        """
        return shaped((yield from self._pop(count, reverse=False)), True)

    @operation
    def zpopmax(self, count: int | None = None) -> Steps[list[tuple[str, Decimal]]]:
        """Take out the members with the greatest scores, the greatest first."""
        return shaped((yield from self._pop(count, reverse=True)), True)

    def _pop(self, count: int | None, *, reverse: bool) -> Steps[list[Scored]]:
        if count is not None and count < 0:
            raise UsageError(f"{count} members cannot be popped; give 0 or more")
        return (yield from self._writer.pop(1 if count is None else count, reverse=reverse))

    # The whole set

    @operation
    def load(
        self,
        scores: Mapping[str, Number] | Iterable[tuple[str, Number]],
        *,
        progress: Progress | None = None,
    ) -> Steps[int]:
        """Give many members their scores, in batches; how many there were. Writes 1 for each.

        Faster than `zadd` where there are ranks, which it makes anew at the end: until then, whoever reads
        or changes them gets `RankingIncomplete`. Interrupted, it is run again. Not for a set that others
        change at the same time.
        """
        pairs = scores.items() if isinstance(scores, Mapping) else scores
        moment = yield from self._expiry.moment()
        members = (
            self.entries(**self._members.key_of(member), score=score_of(score), gone_at=moment)
            for member, score in pairs
        )
        loaded, _ = yield from self._writer.fill(members, progress)
        return loaded

    @operation
    def rerank(self, *, progress: Progress | None = None) -> Steps[int]:
        """Make the ranks anew from the scores; how many members there are.

        For a set that was without ranks so far, or whose items were written by hand. Reads all, writes an
        item for some thirty members. While it goes on, whoever reads or changes ranks gets
        `RankingIncomplete`. Interrupted, it is run again. `progress` is called with the number of members.
        """
        if self.ranking is None:
            raise UsageError("a set without ranks has none to make anew; give it ranked=True")
        _, ranked = yield from self._writer.fill((), progress)
        return ranked

    @operation
    def delete(self) -> Steps[int]:
        """Take all members out; 1 where there were any, else 0. Reads 2 and writes 1 for each.

        Of a set with ranks that has expired, it removes the ranking.
        """
        if self.ranking is not None and self._expiry.is_over():
            yield from self.ranking.clear()
        removed = yield from self._writer.remove(names_of((yield from self._members.all())))
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
        """Have the whole set expire in so many seconds; whether there is a set, and the options allow it.

        For a set that was made with `expires=True`. Reads all, writes 1 for each member.
        """
        span = time if isinstance(time, timedelta) else timedelta(seconds=time)
        moment = datetime.fromtimestamp(self.now(), UTC) + span
        return (yield from self._expire(moment, nx=nx, xx=xx, gt=gt, lt=lt))

    @operation
    def expireat(
        self,
        when: datetime,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> Steps[bool]:
        """Have the whole set expire at a moment."""
        return (yield from self._expire(zoned(when), nx=nx, xx=xx, gt=gt, lt=lt))

    @operation
    def persist(self) -> Steps[bool]:
        """Have the set expire no more; whether it would have. Reads all, writes 1 for each member."""
        self._expiry.check()
        if (yield from self._expiry.moment()) is None:
            return False
        yield from self._writer.expire(None)
        return True

    @operation
    def ttl(self) -> Steps[int]:
        """Seconds until the set expires; -1 where it does not, -2 where there is none. Reads 1 or 2."""
        if (yield from self._members.is_empty()):
            return -2
        moment = yield from self._expiry.moment()
        return -1 if moment is None else round(moment.timestamp() - self.now())

    def _expire(self, moment: datetime, **options: bool) -> Steps[bool]:
        self._expiry.check()
        moment = moment.replace(microsecond=0)  # as it is stored
        is_allowed = allows((yield from self._expiry.moment()), moment, **options)
        if not is_allowed or (yield from self._members.is_empty()):
            return False
        if moment.timestamp() <= self.now():
            yield from self._writer.remove(names_of((yield from self._members.all())))
        else:
            yield from self._writer.expire(moment)
        return True
