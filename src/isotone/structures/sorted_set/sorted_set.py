"""Sorted sets: members with scores, always in the order of the scores, with the commands of Redis.

    trending = SortedSet(store, "trending:2013-04-19")
    trending.create_table()
    trending.incr("song:1", 1)
    trending.zadd({"song:2": 0.3, "song:3": 0.7})
    trending.zrange(0, 19, desc=True, withscores=True)

Names, arguments and results are redis-py's, without the key that comes first there: the set is the object.
Scores are exact decimals. A command that combines several sets takes them as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from isotone.errors import UsageError
from isotone.model.steps import Pause, Steps
from isotone.structures.operation import S, operation
from isotone.structures.sorted_set import combining
from isotone.structures.sorted_set.bounds import Number, score_of
from isotone.structures.sorted_set.changing import out, removed
from isotone.structures.sorted_set.expiry import NO_SET, allows
from isotone.structures.sorted_set.loading import SortedSetLoader
from isotone.structures.sorted_set.members import Scored
from isotone.structures.sorted_set.reading import Cast, names_of, shaped

Sets = Iterable["SortedSet[Any]"] | Mapping["SortedSet[Any]", Number]
"""Several sets; a mapping says by what each one's scores are multiplied."""

_FIRST_PAUSE: Final = 0.01  # seconds between two looks at an empty set; doubled each time
_LONGEST_PAUSE: Final = 0.5


class SortedSet(SortedSetLoader[S]):
    """A sorted set in a table.

    `ranked`: ranks and counts by score take a few reads, and each change of a score a transaction.
    `shards`: over how many partitions members are spread. `expires`: when the whole set does; True lets
    `expire` and `persist` say it. All three belong to the set: give the same wherever it is used.
    """

    # Several sets to take from

    @operation
    def zmpop(
        self,
        keys: Iterable[SortedSet[Any]] = (),
        min: bool = False,  # noqa: A002
        max: bool = False,  # noqa: A002
        count: int = 1,
    ) -> Steps[list[Any] | None]:
        """Take members out of the first set that has any, this one before `keys`: `[name, members]`."""
        return (yield from self._mpop(keys, min, max, count))

    @operation
    def bzpopmin(
        self, keys: Iterable[SortedSet[Any]] = (), timeout: float = 0
    ) -> Steps[tuple[str, str, Decimal] | None]:
        """`(name, member, score)` of what `zpopmin` brings, as soon as one of the sets has something.

        None after `timeout` seconds; 0 waits for ever. Looks again after pauses that grow to half a second.
        """
        return (yield from self._wait(keys, timeout, reverse=False))

    @operation
    def bzpopmax(
        self, keys: Iterable[SortedSet[Any]] = (), timeout: float = 0
    ) -> Steps[tuple[str, str, Decimal] | None]:
        """The same from the other end."""
        return (yield from self._wait(keys, timeout, reverse=True))

    @operation
    def bzmpop(
        self,
        timeout: float,
        keys: Iterable[SortedSet[Any]] = (),
        min: bool = False,  # noqa: A002
        max: bool = False,  # noqa: A002
        count: int = 1,
    ) -> Steps[list[Any] | None]:
        """What `zmpop` brings, as soon as one of the sets has something; None after `timeout` seconds."""
        others = list(keys)
        found: list[Any] | None = yield from _until(
            timeout, lambda: self._mpop(others, min, max, count)
        )
        return found

    def _mpop(
        self, keys: Iterable[SortedSet[Any]], least: bool, greatest: bool, count: int
    ) -> Steps[list[Any] | None]:
        if least is greatest:
            raise UsageError("say which end: min=True or max=True")
        if count < 1:
            raise UsageError(f"{count} members cannot be popped; give 1 or more")
        for each in self._with(keys):
            found = yield from each._writer.pop(count, reverse=greatest)
            if found:
                return [each.name, shaped(found, True)]
        return None

    def _wait(
        self, keys: Iterable[SortedSet[Any]], timeout: float, *, reverse: bool
    ) -> Steps[tuple[str, str, Decimal] | None]:
        others = list(keys)
        found = yield from _until(timeout, lambda: self._mpop(others, not reverse, reverse, 1))
        if found is None:
            return None
        name, ((member, score),) = found
        return name, member, score

    # Several sets

    @operation
    def zunion(
        self,
        keys: Sets,
        aggregate: str | None = None,
        withscores: bool = False,
        score_cast_func: Cast = Decimal,
    ) -> Steps[list[Any]]:
        """The members of this set or any of `keys`, with their scores' SUM, MIN or MAX. Reads all."""
        sets = yield from self._weighed(self._and_others(keys))
        joined = combining.union(sets, combining.aggregate_of(aggregate))
        return shaped(_in_order(joined), withscores, score_cast_func)

    @operation
    def zinter(
        self, keys: Sets, aggregate: str | None = None, withscores: bool = False
    ) -> Steps[list[Any]]:
        """The members of this set and all of `keys`. Reads all."""
        sets = yield from self._weighed(self._and_others(keys))
        joined = combining.intersection(sets, combining.aggregate_of(aggregate))
        return shaped(_in_order(joined), withscores)

    @operation
    def zdiff(self, keys: Iterable[SortedSet[Any]], withscores: bool = False) -> Steps[list[Any]]:
        """The members of this set that are in none of `keys`. Reads all."""
        sets = yield from self._weighed(self._and_others(list(keys)))
        return shaped(_in_order(combining.difference(sets)), withscores)

    @operation
    def zintercard(self, keys: Iterable[SortedSet[Any]], limit: int = 0) -> Steps[int]:
        """How many members this set and all of `keys` share, counted up to `limit`. Reads all."""
        if limit < 0:
            raise UsageError(f"limit={limit} is below 0, which is no limit")
        sets = yield from self._weighed(self._and_others(list(keys)))
        shared = len(combining.intersection(sets, min))
        return min(shared, limit) if limit else shared

    @operation
    def zunionstore(self, keys: Sets, aggregate: str | None = None) -> Steps[int]:
        """Make this set the union of others; how many members it has.

        Reads all of them and this set; writes 1 for each member that changes, a hundred together.
        """
        sets = yield from self._weighed(keys)
        return (yield from self._replace(combining.union(sets, combining.aggregate_of(aggregate))))

    @operation
    def zinterstore(self, keys: Sets, aggregate: str | None = None) -> Steps[int]:
        """Make this set the intersection of others."""
        sets = yield from self._weighed(keys)
        joined = combining.intersection(sets, combining.aggregate_of(aggregate))
        return (yield from self._replace(joined))

    @operation
    def zdiffstore(self, keys: Iterable[SortedSet[Any]]) -> Steps[int]:
        """Make this set what the first of others has and the rest has not."""
        sets = yield from self._weighed(list(keys))
        return (yield from self._replace(combining.difference(sets)))

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
        """Make this set a range of another one; how many members it has."""
        (source,) = self._of_one_store([name])
        found = yield from source._range(start, end, desc, byscore, bylex, offset, num)
        return (yield from self._replace(dict(found)))

    def _replace(self, scores: Mapping[str, Decimal]) -> Steps[int]:
        storable = {member: score_of(score) for member, score in scores.items()}
        return (yield from self._writer.replace(storable))

    def _with(self, keys: Iterable[SortedSet[Any]]) -> list[SortedSet[Any]]:
        return [self, *self._of_one_store(keys)]

    def _and_others(self, keys: Sets) -> Sets:
        """This set before others; where these have weights, its own is 1 unless it is among them."""
        if isinstance(keys, Mapping):
            return keys if self in keys else {self: 1, **keys}
        return [self, *keys]

    def _weighed(self, keys: Sets) -> Steps[list[combining.Scores]]:
        """The sets as they are now, with scores multiplied."""
        weights = keys if isinstance(keys, Mapping) else None
        sets = self._of_one_store(keys)
        if not sets:
            raise UsageError("give one sorted set or more")
        found: list[combining.Scores] = []
        for each in sets:
            scores: combining.Scores = dict((yield from each._all()))
            weight = None if weights is None else score_of(weights[each])
            found.append(scores if weight is None else combining.weighed(scores, weight))
        return found

    def _of_one_store(self, keys: Iterable[SortedSet[Any]]) -> list[SortedSet[Any]]:
        sets = list(keys)
        for each in sets:
            if not isinstance(each, SortedSet) or each.store is not self.store:
                raise UsageError(f"{each!r} is no sorted set of the same store")
        return sets

    # The whole set

    @operation
    def delete(self) -> Steps[int]:
        """Take all members out; 1 where there were any, else 0. Reads 2 and writes 1 for each.

        Of a set with ranks that has expired, it removes the ranking.
        """
        if self._expiry.is_over():
            yield from self._order.clear()
        found = yield from self._all()
        changes = yield from self._writer.change(names_of(found), out)
        return int(removed(changes) > 0)

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
        moment = self._expiry.after(time)
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
        return (yield from self._expire(when, nx=nx, xx=xx, gt=gt, lt=lt))

    @operation
    def persist(self) -> Steps[bool]:
        """Have the set expire no more; whether it would have. Reads all, writes 1 for each member."""
        self._expiry.check()
        if (yield from self._expiry.moment()) is None:
            return False
        yield from self._move_expiry(None)
        return True

    @operation
    def ttl(self) -> Steps[int]:
        """Seconds until the set expires; -1 where it does not, -2 where there is none. Reads 1 or 2."""
        if (yield from self._members.is_empty()):
            return NO_SET
        return self._expiry.seconds_left((yield from self._expiry.moment()))

    def _expire(self, moment: datetime, **options: bool) -> Steps[bool]:
        self._expiry.check()
        is_allowed = allows((yield from self._expiry.moment()), moment, **options)
        if not is_allowed or (yield from self._members.is_empty()):
            return False
        if self._expiry.seconds_left(moment) <= 0:
            yield from self._writer.change(names_of((yield from self._all())), out)
        else:
            yield from self._move_expiry(moment)
        return True

    def _move_expiry(self, moment: datetime | None) -> Steps[None]:
        """Tell whoever writes from now on, then stamp what is there."""
        yield from self._expiry.keep(moment)
        yield from self._writer.stamp(names_of((yield from self._all())), moment)

    def __repr__(self) -> str:
        return f"SortedSet({self.name!r})"


def _in_order(scores: Mapping[str, Decimal]) -> list[Scored]:
    return sorted(
        (Scored(*each) for each in scores.items()), key=lambda each: (each.score, each.member)
    )


def _until(timeout: float, look: Callable[[], Steps[Any]]) -> Steps[Any]:
    """Look until there is something, or so many seconds have passed; 0 is for ever."""
    waited, pause = 0.0, _FIRST_PAUSE
    while True:
        found = yield from look()
        if found is not None or (timeout and waited >= timeout):
            return found
        length = min(pause, timeout - waited) if timeout else pause
        yield Pause(length)
        waited, pause = waited + length, min(pause * 2, _LONGEST_PAUSE)
