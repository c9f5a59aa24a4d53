"""The commands of a sorted set that change it: redis-py's, without the key.

What is changed is read first, and written on the condition that it is still so; a change that others
overtake is decided anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from isotone.errors import UsageError
from isotone.model.declaring.table import Table
from isotone.model.steps import Steps
from isotone.structures.operation import S, operation
from isotone.structures.sorted_set.bounds import MemberRange, Number, ScoreRange, score_of
from isotone.structures.sorted_set.expiry import Expires
from isotone.structures.sorted_set.members import Scored
from isotone.structures.sorted_set.order import Change
from isotone.structures.sorted_set.reading import SortedSetReader, names_of, shaped
from isotone.structures.sorted_set.writing import Writer, plus


class SortedSetWriter(SortedSetReader[S]):
    """A sorted set, to be read and changed."""

    def __init__(
        self,
        store: S,
        name: str,
        *,
        table: Table | None = None,
        ranked: bool = False,
        shards: int = 1,
        expires: Expires = None,
    ) -> None:
        super().__init__(store, name, table=table, ranked=ranked, shards=shards, expires=expires)
        self._writer = Writer(self.calls, self._members, self._order, self._expiry)

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
        _check_options(mapping, nx, xx, incr, gt, lt)
        scores = {member: score_of(score) for member, score in mapping.items()}
        if incr and not (nx or xx or gt or lt):
            (member,) = scores
            return (yield from self._writer.add(member, scores[member]))
        allows = _allowed(nx=nx, xx=xx, gt=gt, lt=lt)

        def wanted(member: str, before: Decimal | None) -> Decimal:
            return plus(before, scores[member]) if incr else scores[member]

        def decide(member: str, before: Decimal | None) -> Decimal | None:
            after = wanted(member, before)
            return after if allows(before, after) else before

        changes = yield from self._writer.change(scores, decide)
        if incr:
            after = wanted(changes[0].member, changes[0].before)
            return after if allows(changes[0].before, after) else None
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
        return removed((yield from self._writer.change(values, out)))

    @operation
    def zremrangebyrank(self, min: int, max: int) -> Steps[int]:  # noqa: A002
        """Take out the members of some ranks. Reads as `zrange` does; writes 1 for each."""
        found = yield from self._by_rank(min, max, reverse=False)
        return len((yield from self._writer.take(found)))

    @operation
    def zremrangebyscore(self, min: Number, max: Number) -> Steps[int]:  # noqa: A002
        """Take out the members with scores in a range. Reads 2 and writes 1 for each."""
        scores = ScoreRange.of(min, max)
        found = yield from self._members.between(scores)

        def unless_moved(member: str, score: Decimal | None) -> Decimal | None:
            return None if score is None or score in scores else score

        return removed((yield from self._writer.change(names_of(found), unless_moved)))

    @operation
    def zremrangebylex(self, min: str, max: str) -> Steps[int]:  # noqa: A002
        """Take out the members between two texts. Reads 2 and writes 1 for each."""
        found = yield from self._members.spelt(MemberRange.of(min, max))
        return removed((yield from self._writer.change(names_of(found), out)))

    @operation
    def zpopmin(self, count: int | None = None) -> Steps[list[tuple[str, Decimal]]]:
        """Take out the members with the least scores, and give them; nobody else gets the same.

        Reads 2 and writes 1 for each.
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


def _check_options(
    mapping: Mapping[str, Number], nx: bool, xx: bool, incr: bool, gt: bool, lt: bool
) -> None:
    faults = {
        "zadd wants one member or more": not mapping,
        "zadd takes nx or xx, not both": nx and xx,
        "zadd takes one of nx, gt and lt": (gt and lt) or (nx and (gt or lt)),
        "with incr, zadd takes one member": incr and len(mapping) != 1,
    }
    for fault, is_found in faults.items():
        if is_found:
            raise UsageError(fault)


Allows = Callable[[Decimal | None, Decimal], bool]
"""Whether a score may become another one."""


def _allowed(*, nx: bool, xx: bool, gt: bool, lt: bool) -> Allows:
    """What ZADD's options allow; a member that is not there has no score."""

    def allows(before: Decimal | None, after: Decimal) -> bool:
        if before is None:
            return not xx
        return not (nx or (gt and after <= before) or (lt and after >= before))

    return allows


def out(member: str, score: Decimal | None) -> None:
    """Decides that a member goes."""


def removed(changes: Iterable[Change]) -> int:
    """How many members went."""
    return sum(each.before is not None and each.after is None for each in changes)
