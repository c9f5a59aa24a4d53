# ruff: noqa: A002 - arguments have the names that redis-py gives them
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

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from isotone.errors import UsageError
from isotone.model import Pause, Steps
from isotone.structures.operation import S, operation
from isotone.structures.sorted_set.bounds import EXACT, Number, score_of
from isotone.structures.sorted_set.changing import SortedSetWriter
from isotone.structures.sorted_set.members import Scored
from isotone.structures.sorted_set.reading import Cast, shaped

Keys = Iterable["SortedSet[Any]"]
Sets = Keys | Mapping["SortedSet[Any]", Number]
"""Several sets; a mapping says by what each one's scores are multiplied."""
Popped = tuple[str, str, Decimal] | None
"""The set's name, a member and its score, or nothing."""

Scores = dict[str, Decimal]
"""A set as it was read: members and their scores."""

_AGGREGATES: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "SUM": EXACT.add,
    "MIN": min,
    "MAX": max,
}

_FIRST_PAUSE: Final = 0.01  # seconds between two looks at an empty set; doubled each time
_LONGEST_PAUSE: Final = 0.5


class SortedSet(SortedSetWriter[S]):
    """A sorted set in a table.

    `ranked`: ranks and counts by score take a few reads, and each change of a score a transaction.
    `shards`: over how many partitions members are spread. `expires`: when the whole set does; True lets
    `expire` and `persist` say it. All three belong to the set: give the same wherever it is used.
    """

    # Several sets to take from

    @operation
    def zmpop(
        self, keys: Keys = (), min: bool = False, max: bool = False, count: int = 1
    ) -> Steps[list[Any] | None]:
        """Take members out of the first set that has any, this one before `keys`: `[name, members]`."""
        return (yield from self._mpop(self._and(keys), count, reverse=_is_last(min, max)))

    @operation
    def bzpopmin(self, keys: Keys = (), timeout: float = 0) -> Steps[Popped]:
        """`(name, member, score)` of what `zpopmin` brings, as soon as one of the sets has something.

        None after `timeout` seconds; 0 waits for ever. Looks again after pauses that grow to half a second.
        """
        return _alone((yield from self._await(timeout, keys, 1, reverse=False)))

    @operation
    def bzpopmax(self, keys: Keys = (), timeout: float = 0) -> Steps[Popped]:
        """The same from the other end."""
        return _alone((yield from self._await(timeout, keys, 1, reverse=True)))

    @operation
    def bzmpop(
        self, timeout: float, keys: Keys = (), min: bool = False, max: bool = False, count: int = 1
    ) -> Steps[list[Any] | None]:
        """What `zmpop` brings, as soon as one of the sets has something; None after `timeout` seconds."""
        return (yield from self._await(timeout, keys, count, reverse=_is_last(min, max)))

    def _await(
        self, timeout: float, keys: Keys, count: int, *, reverse: bool
    ) -> Steps[list[Any] | None]:
        """Look until there is something, or so many seconds have passed; 0 is for ever."""
        if timeout < 0:
            raise UsageError(f"timeout={timeout} is below 0; 0 waits for ever")
        sets, began, waited, pause = self._and(keys), self.now(), 0.0, _FIRST_PAUSE
        while True:
            found = yield from self._mpop(sets, count, reverse=reverse)
            left = timeout - max(waited, self.now() - began)  # clocks may be set back
            if found is not None or (timeout and left <= 0):
                return found
            nap = min(pause, left) if timeout else pause
            yield Pause(nap)
            waited, pause = waited + nap, min(pause * 2, _LONGEST_PAUSE)

    def _mpop(self, sets: Sets, count: int, *, reverse: bool) -> Steps[list[Any] | None]:
        if count < 1:
            raise UsageError(f"{count} members cannot be popped; give 1 or more")
        for each in self._checked(sets):
            found = yield from each._writer.pop(count, reverse=reverse)
            if found:
                return [each.name, shaped(found, True)]
        return None

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
        joined = _union((yield from self._read(self._and(keys))), aggregate)
        return shaped(_in_order(joined), withscores, score_cast_func)

    @operation
    def zinter(
        self, keys: Sets, aggregate: str | None = None, withscores: bool = False
    ) -> Steps[list[Any]]:
        """The members of this set and all of `keys`. Reads all."""
        joined = _intersection((yield from self._read(self._and(keys))), aggregate)
        return shaped(_in_order(joined), withscores)

    @operation
    def zdiff(self, keys: Keys, withscores: bool = False) -> Steps[list[Any]]:
        """The members of this set that are in none of `keys`. Reads all."""
        rest = _difference((yield from self._read(self._and(keys))))
        return shaped(_in_order(rest), withscores)

    @operation
    def zintercard(self, keys: Keys, limit: int = 0) -> Steps[int]:
        """How many members this set and all of `keys` share, counted up to `limit`. Reads all."""
        if limit < 0:
            raise UsageError(f"limit={limit} is below 0, which is no limit")
        shared = len(_intersection((yield from self._read(self._and(keys)))))
        return min(shared, limit) if limit else shared

    @operation
    def zunionstore(self, keys: Sets, aggregate: str | None = None) -> Steps[int]:
        """Make this set the union of others; how many members it has.

        Reads all of them and this set; writes 1 for each member that changes, a hundred together.
        """
        return (yield from self._replace(_union((yield from self._read(keys)), aggregate)))

    @operation
    def zinterstore(self, keys: Sets, aggregate: str | None = None) -> Steps[int]:
        """Make this set the intersection of others."""
        joined = _intersection((yield from self._read(keys)), aggregate)
        return (yield from self._replace(joined))

    @operation
    def zdiffstore(self, keys: Keys) -> Steps[int]:
        """Make this set what the first of others has and the rest has not."""
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
        """Make this set a range of another one; how many members it has."""
        (source,) = self._checked([name])
        found = yield from source._range(
            start, end, offset, num, desc=desc, byscore=byscore, bylex=bylex
        )
        return (yield from self._replace(dict(found)))

    def _replace(self, scores: Mapping[str, Decimal]) -> Steps[int]:
        storable = {member: score_of(score) for member, score in scores.items()}
        return (yield from self._writer.replace(storable))

    def _and(self, keys: Sets) -> Sets:
        """This set before others; where these have weights, its own is 1 unless it is among them."""
        if isinstance(keys, Mapping):
            return keys if self in keys else {self: 1, **keys}
        return [self, *keys]

    def _read(self, keys: Sets) -> Steps[list[Scores]]:
        """The sets as they are now, with scores multiplied."""
        sets = self._checked(keys)
        if not sets:
            raise UsageError("give one sorted set or more")
        found: list[Scores] = []
        for each in sets:
            scores = dict((yield from each._members.all()))
            if isinstance(keys, Mapping):
                weight = score_of(keys[each])
                scores = {member: EXACT.multiply(scores[member], weight) for member in scores}
            found.append(scores)
        return found

    def _checked(self, keys: Keys) -> list[SortedSet[Any]]:
        sets = list(keys)
        for each in sets:
            if not isinstance(each, SortedSet) or each.store is not self.store:
                raise UsageError(f"{each!r} is no sorted set of the same store")
        return sets

    def __repr__(self) -> str:
        return f"SortedSet({self.name!r})"


def _in_order(scores: Mapping[str, Decimal]) -> list[Scored]:
    return sorted(
        (Scored(*each) for each in scores.items()), key=lambda each: (each.score, each.member)
    )


def _is_last(min: bool, max: bool) -> bool:
    """Which end is meant."""
    if min is max:
        raise UsageError("say which end: min=True or max=True")
    return max


def _alone(popped: list[Any] | None) -> Popped:
    if popped is None:
        return None
    name, ((member, score),) = popped
    return name, member, score


def _union(sets: Sequence[Scores], aggregate: str | None = None) -> dict[str, Decimal]:
    """All members of any of the sets, with the SUM, MIN or MAX of their scores."""
    join = _AGGREGATES.get((aggregate or "SUM").upper())
    if join is None:
        raise UsageError(f"aggregate is SUM, MIN or MAX, not {aggregate!r}")
    joined: dict[str, Decimal] = {}
    for scores in sets:
        for member, score in scores.items():
            joined[member] = join(joined[member], score) if member in joined else score
    return joined


def _intersection(sets: Sequence[Scores], aggregate: str | None = None) -> dict[str, Decimal]:
    """The members of all of the sets."""
    shared = set(sets[0]).intersection(*sets[1:])
    return _union([{member: scores[member] for member in shared} for scores in sets], aggregate)


def _difference(sets: Sequence[Scores]) -> dict[str, Decimal]:
    """The members of the first set that are in none of the others."""
    others = set().union(*sets[1:])
    return {member: score for member, score in sets[0].items() if member not in others}
