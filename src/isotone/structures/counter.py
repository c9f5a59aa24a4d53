"""Counters for many concurrent writers (`Counter`, `ShardedCounter`), and numbers in sequence (`Sequence`).

A counter is one item, or several shards of which each writer picks one at random: an item takes a thousand
writes a second, and n shards take n thousand. Adding is one atomic update, so nothing is read and no
increment is lost.

    visits = Counter(store, "visits")
    visits.add()          # 1
    visits.add(41)        # 42
    visits.reset()        # 42, and it starts again at 0

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
from typing import ClassVar, Final

from typing_extensions import TypeVar

from isotone.errors import AlreadyExists, TransactionFailed, UsageError, WriteRefused
from isotone.model import Attr, Change, Entity, Key, Steps, Table, expires, field
from isotone.structures.argument_checks import require_positive
from isotone.structures.structure import S, Structure, operation
from isotone.structures.waits_and_retries import retry_on_conflict

E = TypeVar("E", bound=Entity)

COUNTERS: Final = Table("counters")
_MAX_SHARDS: Final = 1000


class CounterShard(Entity):
    """A counter, or one shard of it; each has its own partition."""

    counter: Attr[str] = field()
    shard: Attr[int] = field(max=_MAX_SHARDS - 1, alert=None)
    total: Attr[int] = field(default=0)
    resets: Attr[int] = field(default=0)
    gone_at: Attr[datetime | None] = expires(default=None)

    primary: ClassVar[Key] = Key("COUNTER", counter, shard).sort("COUNTER")


class CounterToken(Entity):
    """A token of `add_once` that was used."""

    counter: Attr[str] = field()
    token: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary: ClassVar[Key] = Key("COUNTER_TOKEN", counter, token).sort("COUNTER_TOKEN")


class SequenceState(Entity):
    """The last number of a sequence."""

    sequence: Attr[str] = field()
    given: Attr[int] = field(default=0)

    primary: ClassVar[Key] = Key("SEQUENCE", sequence).sort("SEQUENCE")


class _AnyCounter(Structure[S]):
    """The base of counters with any number of shards."""

    def __init__(self, store: S, name: str, shards: int, table: Table | None) -> None:
        super().__init__(store, table or COUNTERS)
        if not 1 <= shards <= _MAX_SHARDS:
            raise UsageError(f"shards must be 1 to {_MAX_SHARDS}, not {shards}")
        self.name = name
        self.shards = shards
        self.expires: float | None = None
        self._kind = self.bind(CounterShard)
        self._tokens = self.bind(CounterToken)

    @staticmethod
    def layout(name: str = "counters") -> Table:
        """A table for counters and sequences."""
        return Table(name)

    @operation
    def value(self) -> Steps[int]:
        """The counter's value. Cost: a consistent read of each shard, a hundred to a request."""
        return _sum((yield from self._read()))

    @operation
    def add_once(self, token: str, by: int = 1, *, remember: float = 86_400) -> Steps[bool]:
        """Add, unless this token was used before; returns whether it was added.

        However often it is repeated, after lost responses or crashes, it counts once. The token is kept for
        `remember` seconds. Cost: a transaction of two writes, at twice the price.
        """
        require_positive(remember=remember)
        gone_at = self._expiry(remember)
        tx = self.calls.transaction()
        tx.create(self._tokens(counter=self.name, token=token, gone_at=gone_at))
        tx.upsert(self._kind, *self._changes(by), counter=self.name, shard=self._any_shard())
        try:
            yield from tx.commit()
        except TransactionFailed as failed:
            if isinstance(failed.reason_of(self._tokens), AlreadyExists):
                return False
            raise
        return True

    @operation
    def reset(self) -> Steps[int]:
        """Set the counter to 0; returns its previous value.

        A concurrent addition is counted either in that value or in the counter afterwards. Cost: a consistent
        read of each shard, and unless they are 0, a transaction of a write and a check.
        """
        return (
            yield from retry_on_conflict(
                self._reset, f"to counter {self.name!r}", "try again later"
            )
        )

    def _reset(self) -> Steps[int]:
        """Subtract the sum from the first shard, unless another reset has done so since the read."""
        shards = yield from self._read()
        total = _sum(shards)
        if not total:
            return 0
        tx = self.calls.transaction()
        changes = CounterShard.total.add(-total), CounterShard.resets.add(1)
        if shards[0] is None:
            as_read = CounterShard.resets.missing()
            tx.upsert(self._kind, *changes, when=as_read, counter=self.name, shard=0)
        else:  # fails if the counter has expired since the read
            as_read = CounterShard.resets == shards[0].resets
            tx.update(self._kind, *changes, when=as_read, counter=self.name, shard=0)
        # The check makes it a transaction, which is applied once even if it is sent twice.
        never = CounterToken.gone_at.missing()
        tx.check(self._tokens, never, counter=self.name, token=uuid.uuid4().hex)
        yield from tx.commit()
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
        if self.expires is not None:  # set by the first addition only
            changes.append(CounterShard.gone_at.set_default(self._expiry(self.expires)))
        return changes

    def _expiry(self, seconds: float) -> datetime:
        """The time in `seconds` seconds, rounded up: expiry has a resolution of one second."""
        return datetime.fromtimestamp(math.ceil(self.now() + seconds), UTC)

    def _any_shard(self) -> int:
        return random.randrange(self.shards)


class Counter(_AnyCounter[S]):
    """A number that many writers add to.

    With `expires`, it starts again at 0 that long after its first addition; later additions do not extend it.

        >>> likes = Counter(store, "likes")
        >>> created = likes.create_table()
        >>> likes.add(3), likes.add(), likes.value()
        (3, 4, 4)
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
            seconds = expires.total_seconds()
            require_positive(expires=seconds)
            self.expires: float | None = seconds

    @operation
    def add(self, by: int = 1) -> Steps[int]:
        """Add (a negative number subtracts); returns the new value.

        The store retries a write if its response is lost, which may count twice; `add_once` never does. Cost:
        one write, two if the counter had expired.
        """
        return (yield from self._add(by))


class ShardedCounter(_AnyCounter[S]):
    """A counter for more writes than one item accepts; a read adds up its shards.

    The number of shards may grow, but must not shrink. A `Counter` can be changed to a `ShardedCounter`.

        >>> orders = ShardedCounter(store, "orders", 20)
        >>> created = orders.create_table()
        >>> orders.add(3); orders.add()
        >>> orders.value()
        4
    """

    def __init__(
        self, store: S, name: str, shards: int = 10, *, table: Table | None = None
    ) -> None:
        super().__init__(store, name, shards, table)

    @operation
    def add(self, by: int = 1) -> Steps[None]:
        """Add (a negative number subtracts) in a random shard. Cost: one write.

        The store retries a write if its response is lost, which may count twice; `add_once` never does.
        """
        yield from self._add(by)


class Sequence(Structure[S]):
    """Numbers 1, 2, 3 …, each returned once.

    With a `block`, `next()` reserves that many numbers with one write and returns them from memory. The
    numbers of several processes are then not in the order of time, and the numbers that a process has not
    used when it ends are lost.
    """

    def __init__(self, store: S, name: str, *, block: int = 1, table: Table | None = None) -> None:
        super().__init__(store, table or COUNTERS)
        self.name = name
        self.block: int = _positive(block)
        self._kind = self.bind(SequenceState)
        self._reserved: deque[int] = deque()
        self._process = os.getpid()

    @staticmethod
    def layout(name: str = "counters") -> Table:
        """A table for counters and sequences."""
        return _AnyCounter.layout(name)

    @operation
    def next(self) -> Steps[int]:
        """The next number, unique to the caller. Cost: one write, or one for each block.

        Lost responses and crashes leave gaps; `assign` leaves none.
        """
        if self._process != os.getpid():  # after a fork: the reserved numbers are the parent's
            self._reserved, self._process = deque(), os.getpid()
        with contextlib.suppress(IndexError):
            return self._reserved.popleft()
        first, *others = yield from self._reserve(self.block)
        self._reserved.extend(others)
        return first

    @operation
    def reserve(self, count: int) -> Steps[range]:
        """`count` consecutive numbers, unique to the caller. Cost: one write."""
        return (yield from self._reserve(_positive(count)))

    @operation
    def last(self) -> Steps[int]:
        """The last number that was returned, 0 before the first. Cost: a consistent read."""
        return (yield from self._last())

    @operation
    def assign(self, make: Callable[[int], E]) -> Steps[E]:
        """Create the entity that `make` returns for the next number, in one transaction with the sequence.

        So every number has its entity, without gaps. Cost: a consistent read and a transaction of two
        writes, both again if another caller was faster. Raises the errors of `create`, and `Contended` if
        other callers were faster in each of many attempts.
        """
        attempt = functools.partial(self._assign, make)
        made = yield from retry_on_conflict(
            attempt, f"to sequence {self.name!r}", "try again later"
        )
        if isinstance(made, WriteRefused):
            raise made
        return made

    def _assign(self, make: Callable[[int], E]) -> Steps[E | WriteRefused]:
        """The entity with the next number, or the error that refused it."""
        last = yield from self._last()
        entity = make(last + 1)
        tx = self.calls.transaction()
        if last:
            counted = SequenceState.given.set(last + 1)
            unchanged = SequenceState.given == last
            tx.update(self._kind, counted, when=unchanged, sequence=self.name)
        else:
            tx.create(self._kind(sequence=self.name, given=1))
        tx.create(entity)
        try:
            yield from tx.commit()
        except TransactionFailed as failed:
            if failed.reason_of(self._kind) is not None:
                raise  # another caller was faster
            return failed.failures[0].reason
        return entity

    def _reserve(self, count: int) -> Steps[range]:
        change = SequenceState.given.add(count)
        after = yield from self.calls.upsert(self._kind, change, sequence=self.name)
        return range(after.given - count + 1, after.given + 1)

    def _last(self) -> Steps[int]:
        state = yield from self.calls.get(self._kind, consistent=True, sequence=self.name)
        return 0 if state is None else state.given


def _sum(shards: Iterable[CounterShard | None]) -> int:
    return sum(shard.total for shard in shards if shard is not None)


def _positive(count: int) -> int:
    if count < 1:
        raise UsageError(f"count must be 1 or more, not {count}")
    return count
