# ruff: noqa: A002 - arguments have the names that redis-py gives them
"""The commands of a sorted set that read: redis-py's, without the key.

Costs are for a set of n members. "Reads k" is k items; a consistent read takes a unit for 4 KB of them, and
one request brings up to 1 MB. With shards, whatever is not about one member is asked of each shard.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal

from isotone.errors import RankingIncomplete, UsageError
from isotone.model import Steps, pause_after
from isotone.structures.operation import Batches, S, Structure, iteration, operation
from isotone.structures.sorted_set.bounds import Number, ScoreRange, Window, matcher
from isotone.structures.sorted_set.members import Members, Scored

Cast = Callable[[Decimal], Any]
Cursor = str | Literal[0]

_PAGE = 100  # members of a scan, where nothing is said
_LOOKS = 20  # for the rank of a member whose score others change


class SortedSetReader(Structure[S]):
    """A sorted set, to be read."""

    name: str
    _members: Members

    # One member

    @operation
    def zscore(self, value: str) -> Steps[Decimal | None]:
        """The score of a member, None for what is none. Reads 1."""
        (score,) = yield from self._members.scores([value])
        return score

    @operation
    def zmscore(self, members: Sequence[str]) -> Steps[list[Decimal | None]]:
        """The scores of several members. Reads 1 each, a hundred to a request."""
        if not members:
            raise UsageError("zmscore wants one member or more")
        return (yield from self._members.scores(members))

    @operation
    def zrank(
        self, value: str, withscore: bool = False, score_cast_func: Cast = Decimal
    ) -> Steps[Any]:
        """How many members stand before one; None for what is none. `withscore`: `[rank, score]`.

        Reads 1 + those before; with ranks O(log n).
        """
        return (yield from self._rank(value, withscore, score_cast_func, reverse=False))

    @operation
    def zrevrank(
        self, value: str, withscore: bool = False, score_cast_func: Cast = Decimal
    ) -> Steps[Any]:
        """How many members stand behind one. Reads 1 + those behind; with ranks O(log n)."""
        return (yield from self._rank(value, withscore, score_cast_func, reverse=True))

    def _rank(self, member: str, withscore: bool, cast: Cast, *, reverse: bool) -> Steps[Any]:
        for number in range(_LOOKS):
            (score,) = yield from self._members.scores([member])
            if score is None:
                return None
            rank = yield from self._members.rank(Scored(member, score), reverse=reverse)
            if rank is not None:
                return [rank, cast(score)] if withscore else rank
            yield pause_after(number)  # others have changed the score in between
        raise RankingIncomplete(
            f"{member!r} was not found among the ranks of {self.name!r} in {_LOOKS} looks: try again if it "
            "changes all the time; if it was written by other means, rerank() gives it a rank"
        )

    # How many

    @operation
    def zcard(self) -> Steps[int]:
        """How many members there are. Reads n; with ranks 1."""
        return (yield from self._members.size())

    @operation
    def zcount(self, min: Number, max: Number) -> Steps[int]:
        """How many members have scores in a range. Reads them; with ranks O(log n)."""
        return (yield from self._members.count(ScoreRange.of(min, max)))

    @operation
    def zlexcount(self, min: str, max: str) -> Steps[int]:
        """How many members lie between two texts. Reads them."""
        return (yield from self._members.count_spelt(min, max))

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
        """Members in order, by rank, by score or by their bytes; `(member, score)` pairs `withscores`.

        By rank, reads up to `end`, and with ranks only what it brings; otherwise up to `offset + num`.
        """
        if bylex and withscores:
            raise UsageError("withscores does not go with bylex")
        found = yield from self._range(
            start, end, offset, num, desc=desc, byscore=byscore, bylex=bylex
        )
        return shaped(found, withscores, score_cast_func)

    @operation
    def zrevrange(
        self, start: int, end: int, withscores: bool = False, score_cast_func: Cast = Decimal
    ) -> Steps[list[Any]]:
        """Members by rank, the greatest score first. Reads as `zrange` does."""
        found = yield from self._by_rank(start, end, reverse=True)
        return shaped(found, withscores, score_cast_func)

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
        """Members with scores in a range; "(1" leaves 1 out. Reads `start + num` of them, or all."""
        found = yield from self._range(min, max, start, num, byscore=True)
        return shaped(found, withscores, score_cast_func)

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
        """The same, the greatest score first; note that the greater bound is named first."""
        found = yield from self._range(max, min, start, num, desc=True, byscore=True)
        return shaped(found, withscores, score_cast_func)

    @operation
    def zrangebylex(
        self, min: str, max: str, start: int | None = None, num: int | None = None
    ) -> Steps[list[str]]:
        """Members between two texts, by their bytes, whatever their scores. Reads `start + num`, or all."""
        return names_of((yield from self._range(min, max, start, num, bylex=True)))

    @operation
    def zrevrangebylex(
        self, max: str, min: str, start: int | None = None, num: int | None = None
    ) -> Steps[list[str]]:
        """The same, the greatest first."""
        return names_of((yield from self._range(max, min, start, num, desc=True, bylex=True)))

    def _range(
        self,
        start: Any,
        end: Any,
        offset: int | None,
        num: int | None,
        *,
        desc: bool = False,
        byscore: bool = False,
        bylex: bool = False,
    ) -> Steps[list[Scored]]:
        """What ZRANGE and ZRANGESTORE bring; in descending order, the greater bound is given first."""
        window = Window.of(offset, num)
        low, high = (end, start) if desc else (start, end)
        if byscore and bylex:
            raise UsageError("byscore and bylex exclude each other")
        if byscore:
            scores = ScoreRange.of(low, high)
            return (yield from self._members.between(scores, window, reverse=desc))
        if bylex:
            return (yield from self._members.spelt(low, high, window, reverse=desc))
        if offset is not None:
            raise UsageError("offset and num go with byscore or bylex; a range by rank is a slice")
        return (yield from self._by_rank(start, end, reverse=desc))

    def _by_rank(self, start: int, end: int, *, reverse: bool) -> Steps[list[Scored]]:
        """From one rank to another, both included; negative ranks count from the other end."""
        first, last = _whole(start), _whole(end)
        if first < 0 and last < 0:
            window = Window(-last - 1, max(0, last - first + 1))
            return (yield from self._members.at(window, reverse=not reverse))[::-1]
        if first < 0:
            first = max(0, first + (yield from self._members.size()))
        if last < 0:
            found = yield from self._members.at(Window(first), reverse=reverse)
            return found[: last + 1] if last < -1 else found
        window = Window(first, max(0, last - first + 1))
        return (yield from self._members.at(window, reverse=reverse))

    # Any, and all

    @operation
    def zrandmember(self, count: int | None = None, withscores: bool = False) -> Steps[Any]:
        """Random members: one, or None; a list of `count` distinct ones; of -count that may repeat.

        Reads n; with ranks O(log n) for each.
        """
        if count is None and withscores:
            raise UsageError("withscores goes with a count")
        places = _places((yield from self._members.size()), 1 if count is None else count)
        found = yield from self._members.pick(places)
        if count is None:
            return found[0].member if found else None
        return shaped(found, withscores)

    @operation
    def zscan(
        self,
        cursor: Cursor = 0,
        match: str | None = None,
        count: int | None = None,
        score_cast_func: Cast = Decimal,
    ) -> Steps[tuple[Cursor, list[tuple[str, Any]]]]:
        """Some members, in no order of scores, and the cursor of those that follow; 0 begins and ends.

        What is a member from the first call to the last is seen exactly once, whatever comes and goes.
        Reads `count`, or 100, in one request; `match` drops what it read.
        """
        return (yield from self._scan(cursor, match, count, score_cast_func))

    @iteration
    def zscan_iter(
        self, match: str | None = None, count: int | None = None, score_cast_func: Cast = Decimal
    ) -> Batches[tuple[str, Any]]:
        """All members, as `zscan` brings them. Reads n, as it is asked for more."""
        cursor: Cursor = 0

        def further() -> Steps[list[tuple[str, Any]]]:
            nonlocal cursor
            cursor, found = yield from self._scan(cursor, match, count, score_cast_func)
            return found

        yield further()
        while cursor != 0:
            yield further()

    def _scan(
        self, cursor: Cursor, match: str | None, count: int | None, cast: Cast
    ) -> Steps[tuple[Cursor, list[tuple[str, Any]]]]:
        is_meant = matcher(match)
        found, following = yield from self._members.scan(str(cursor or ""), count or _PAGE)
        meant = [each for each in found if is_meant(each.member)]
        return following or 0, shaped(meant, True, cast)


def _whole(rank: Any) -> int:
    try:
        if isinstance(rank, int | str):
            return int(rank)
    except ValueError:
        pass
    raise UsageError(f"{rank!r} is no rank; ranks are whole numbers, the first is 0, the last -1")


def _places(size: int, count: int) -> list[int]:
    """Random places: distinct ones, or with repetition where the count is negative."""
    if not size:
        return []
    if count < 0:
        return random.choices(range(size), k=-count)
    return random.sample(range(size), min(size, count))


def shaped(found: Iterable[Scored], withscores: bool, cast: Cast = Decimal) -> list[Any]:
    """Members as a caller gets them: alone, or with their scores."""
    if withscores:
        return [(each.member, cast(each.score)) for each in found]
    return names_of(found)


def names_of(found: Iterable[Scored]) -> list[str]:
    """The members alone."""
    return [each.member for each in found]
