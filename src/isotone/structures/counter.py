"""Counters that many writers add to at once, and sequences that number things.

A counter is one item, or several of which each writer adds to one at random: an item takes a thousand
writes a second, so as many shards take as many thousands. Adding is one update that the database makes
atomically, so nothing is read and no increment is lost.

    visits = Counter(store, "visits")
    visits.add()          # 1
    visits.add(41)        # 42
    visits.reset()        # 42, and it begins anew

    invoices = Sequence(store, "invoices")
    invoices.next()       # 1
    invoices.reserve(10)  # range(2, 12)
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import random
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from typing_extensions import TypeVar

from isotone.errors import AlreadyExists, TransactionFailed, UsageError, WriteRefused
from isotone.model import Attr, Change, Entity, Key, Steps, Table, expires, field
from isotone.structures.arguments import require_positive
from isotone.structures.operation import S, Structure, operation
from isotone.structures.retries import retry_on_conflict

E = TypeVar("E", bound=Entity)

COUNTERS: Final = Table("counters")
_MOST_SHARDS: Final = 1000


class CounterShard(Entity):
    """A counter, or a part of one; each is a partition of its own."""

    counter: Attr[str] = field()
    shard: Attr[int] = field(max=_MOST_SHARDS - 1, alert=None)
    total: Attr[int] = field(default=0)
    resets: Attr[int] = field(default=0)
    gone_at: Attr[datetime | None] = expires(default=None)

    primary = Key("COUNTER", counter, shard).sort("COUNTER")


class CounterToken(Entity):
    """Says that something was counted already."""

    counter: Attr[str] = field()
    token: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary = Key("COUNTER_TOKEN", counter, token).sort("COUNTER_TOKEN")


class SequenceState(Entity):
    """How many numbers a sequence has given."""

    sequence: Attr[str] = field()
    given: Attr[int] = field(default=0)

    primary = Key("SEQUENCE", sequence).sort("SEQUENCE")


class _Counting(Structure[S]):
    """What a counter has, however many items it is made of."""

    def __init__(self, store: S, name: str, shards: int, table: Table | None) -> None:
        super().__init__(store, table or COUNTERS)
        if not 1 <= shards <= _MOST_SHARDS:
            raise UsageError(f"a counter has 1 to {_MOST_SHARDS} shards, not {shards}")
        self.name = name
        self.shards = shards
        self.expires: float | None = None
        self._kind = self.kept(CounterShard)
        self._tokens = self.kept(CounterToken)

    @staticmethod
    def layout(name: str = "counters") -> Table:
        """A table in which counters and sequences can live."""
        return Table(name)

    @operation
    def value(self) -> Steps[int]:
        """What was counted by now. Cost: a consistent read of each shard, a hundred to a request."""
        return _sum((yield from self._read()))

    @operation
    def add_once(self, token: str, by: int = 1, *, remember: float = 86_400) -> Steps[bool]:
        """Add, unless it was done with this token before; whether it was done now.

        However often it is repeated, after lost answers or crashes, it counts once, for as many seconds as
        the token is remembered. Cost: a transaction of two writes, which is four.
        """
        require_positive(remember=remember)
        gone_at = self._after(remember)
        together = self.calls.transaction()
        together.create(self._tokens(counter=self.name, token=token, gone_at=gone_at))
        together.upsert(self._kind, *self._changes(by), counter=self.name, shard=self._any_shard())
        try:
            yield from together.commit()
        except TransactionFailed as failed:
            if isinstance(failed.failures.get(0), AlreadyExists):
                return False
            raise
        return True

    @operation
    def reset(self) -> Steps[int]:
        """Begin at 0 again, and give what was counted until then.

        What others add meanwhile is in what is given, or in what the counter has afterwards: never in both,
        never in neither. Cost: a consistent read of each shard, and unless they are 0, a transaction of a write
        and a check.
        """
        return (
            yield from retry_on_conflict(
                self._reset, f"to counter {self.name!r}", "try again later"
            )
        )

    def _reset(self) -> Steps[int]:
        """Take away what was counted, from the first shard, unless another reset did since that was read."""
        shards = yield from self._read()
        total = _sum(shards)
        if not total:
            return 0
        together = self.calls.transaction()
        changes = CounterShard.total.add(-total), CounterShard.resets.add(1)
        if shards[0] is None:
            as_read = CounterShard.resets.missing()
            together.upsert(self._kind, *changes, when=as_read, counter=self.name, shard=0)
        else:  # and it has not expired since
            as_read = CounterShard.resets == shards[0].resets
            together.update(self._kind, *changes, when=as_read, counter=self.name, shard=0)
        # A transaction is made once, though it may be sent twice; a write by itself would be made again.
        never = CounterToken.gone_at.missing()
        together.check(self._tokens, never, counter=self.name, token=uuid.uuid4().hex)
        yield from together.commit()
        return total

    def _read(self) -> Steps[list[CounterShard | None]]:
        keys = [{"counter": self.name, "shard": shard} for shard in range(self.shards)]
        return self.calls.get_many(self._kind, keys, consistent=True)

    def _add(self, by: int) -> Steps[int]:
        shard = self._any_shard()
        after = yield from self.calls.upsert(
            self._kind, *self._changes(by), counter=self.name, shard=shard
        )
        return after.total

    def _changes(self, by: int) -> list[Change]:
        changes = [CounterShard.total.add(by)]
        if self.expires is not None:  # by the first addition, which those after it leave
            changes.append(CounterShard.gone_at.set_default(self._after(self.expires)))
        return changes

    def _after(self, seconds: float) -> datetime:
        """So much later, and never sooner: what expires does so to the second."""
        return datetime.fromtimestamp(math.ceil(self.now() + seconds), UTC)

    def _any_shard(self) -> int:
        return random.randrange(self.shards)


class Counter(_Counting[S]):
    """A number that everybody adds to.

    One that `expires` is gone so long after its first addition, which later ones do not put off, and begins at 0.
    """

    def __init__(
        self,
        store: S,
        name: str,
        *,
        expires: timedelta | None = None,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, name, 1, table)
        if expires is not None:
            self.expires = expires.total_seconds()
            require_positive(expires=self.expires)

    @operation
    def add(self, by: int = 1) -> Steps[int]:
        """Add, or take away, and give what the counter has then. Cost: one write, two where it had expired.

        A write whose answer was lost is sent again by the store, and may so count twice; `add_once` does not.
        """
        return (yield from self._add(by))


class ShardedCounter(_Counting[S]):
    """A counter for more writes than one item takes: reading it adds its shards up.

    The number of shards may grow, never shrink; a `Counter` may become one.
    """

    def __init__(
        self, store: S, name: str, shards: int = 10, *, table: Table | None = None
    ) -> None:
        super().__init__(store, name, shards, table)

    @operation
    def add(self, by: int = 1) -> Steps[None]:
        """Add, or take away, in a shard at random. Cost: one write.

        A write whose answer was lost is sent again by the store, and may so count twice; `add_once` does not.
        """
        yield from self._add(by)


class Sequence(Structure[S]):
    """Numbers 1, 2, 3 …, each given once.

    With a `block`, `next()` takes so many numbers at once and gives them one by one from memory: one
    write for a block. Then each process has numbers of its own, which are not in the order of time among
    processes, and what it has not given when it ends is never given.
    """

    def __init__(self, store: S, name: str, *, block: int = 1, table: Table | None = None) -> None:
        super().__init__(store, table or COUNTERS)
        self.name = name
        self.block = _positive(block)
        self._kind = self.kept(SequenceState)
        self._reserved: deque[int] = deque()
        self._process = os.getpid()

    layout = staticmethod(_Counting.layout)

    @operation
    def next(self) -> Steps[int]:
        """The next number, which nobody else gets. Cost: one write, or one for each block.

        A number whose answer is lost, or whose taker dies, is missing: `assign` leaves no gap.
        """
        if self._process != os.getpid():  # forked: what was reserved is our parent's
            self._reserved, self._process = deque(), os.getpid()
        with contextlib.suppress(IndexError):
            return self._reserved.popleft()
        first, *others = yield from self._reserve(self.block)
        self._reserved.extend(others)
        return first

    @operation
    def reserve(self, count: int) -> Steps[range]:
        """So many numbers in a row, for the caller alone. Cost: one write."""
        return (yield from self._reserve(_positive(count)))

    @operation
    def last(self) -> Steps[int]:
        """The last number that was given, 0 before the first. Cost: a consistent read."""
        return (yield from self._last())

    @operation
    def assign(self, make: Callable[[int], E]) -> Steps[E]:
        """Create the entity that `make` gives for the next number, in one transaction with the sequence.

        So no number is ever without its entity: no gaps, whatever fails. Cost: a consistent read and a
        transaction of two writes, again where another was faster. Raises what `create` raises, and
        `Contended` where others were faster in each of many attempts.
        """
        attempt = functools.partial(self._assign, make)
        made = yield from retry_on_conflict(
            attempt, f"to sequence {self.name!r}", "try again later"
        )
        if isinstance(made, WriteRefused):
            raise made
        return made

    def _assign(self, make: Callable[[int], E]) -> Steps[E | WriteRefused]:
        """The entity with the next number, or why it cannot be created."""
        last = yield from self._last()
        entity = make(last + 1)
        together = self.calls.transaction()
        if last:
            counted = SequenceState.given.set(last + 1)
            unchanged = SequenceState.given == last
            together.update(self._kind, counted, when=unchanged, sequence=self.name)
        else:
            together.create(self._kind(sequence=self.name, given=1))
        together.create(entity)
        try:
            yield from together.commit()
        except TransactionFailed as failed:
            if 0 in failed.failures:
                raise  # another was faster
            return failed.failures[1]
        return entity

    def _reserve(self, count: int) -> Steps[range]:
        change = SequenceState.given.add(count)
        after = yield from self.calls.upsert(self._kind, change, sequence=self.name)
        return range(after.given - count + 1, after.given + 1)

    def _last(self) -> Steps[int]:
        state = yield from self.calls.get(self._kind, consistent=True, sequence=self.name)
        return 0 if state is None else state.given


def _sum(shards: Iterable[CounterShard | None]) -> int:
    return sum(each.total for each in shards if each is not None)


def _positive(count: int) -> int:
    if count < 1:
        raise UsageError(f"a sequence gives 1 number or more at once, not {count}")
    return count
