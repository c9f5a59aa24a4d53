"""A distributed lock: an owner, `held(every=…)` renews its lease, a fencing token; raises `Locked` and `LeaseLost`.

    lock = Lock(store, "nightly-report")
    with lock:                          # async with, over an AsyncStore
        write(report, fence=lock.fence)

A lock is one item. Its owner must renew it within the lease, or others may take it; a `with` block renews it in the
background (`lease_block`). Each acquisition gets a greater number, the fencing token. The guarded resource can refuse a
token below the greatest that it has seen, which stops an owner that has lost its lease without noticing.

The end of a lease is stored by the owner's clock. While it holds the lock, the owner also measures the lease by
monotonic time: if the clock were set back, an expired lease would look valid.

A request may take long, so each time is taken on the safe side of it. An owner counts its lease from before the write.
Another that measures how long the item has not changed (`trust_clocks=False`) begins after the read that showed the
revision, and ends before the read that shows it again.
"""

from __future__ import annotations

import os
import socket
import uuid
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, NamedTuple, Self

from isotone.clock import monotonic_of
from isotone.errors import ConditionFailed, LeaseLost, Locked, UsageError
from isotone.model import (
    AsyncStore,
    Attr,
    Condition,
    Entity,
    Key,
    Steps,
    Store,
    Table,
    field,
    version,
)
from isotone.structures.argument_checks import require_non_negative, require_positive, validated
from isotone.structures.lease_block import LeaseBlock
from isotone.structures.structure import S, Structure, operation
from isotone.structures.waits_and_retries import poll

LOCKS: Final = Table("locks")


class LockState(Entity):
    """A lock. The item remains after a release, because its fence must keep rising."""

    lock: Attr[str] = field()
    holder: Attr[str | None] = field(default=None)
    owner: Attr[str | None] = field(default=None)
    until: Attr[datetime | None] = field(default=None)
    lease: Attr[float] = field(default=0.0)
    fence: Attr[int] = field(default=0)
    revision: Attr[int] = version()

    primary: ClassVar[Key] = Key("LOCK", lock).sort("LOCK")


class LockHolder(NamedTuple):
    """The owner of a lock, the end of its lease, and the fencing token."""

    owner: str
    until: datetime
    fence: int


class Lock(Structure[S]):
    """One owner of a lock, or one that wants to be. Give each thread and task its own `Lock`.

    - `lease`: seconds for which the lock is held without being renewed.
    - `owner`: the name that others see; host and process id unless given.
    - `skew`: seconds by which the machines' clocks may differ. A lease is taken over that long after its end.
    - `trust_clocks`: False if clocks may differ by more. Then a lock is taken over only if its item has
      not changed for a whole lease, by this machine's monotonic time: steps of the clock do not count.

        >>> created = Lock(store, "report").create_table()
        >>> with Lock(store, "report") as lock:
        ...     lock.fence
        1
    """

    def __init__(
        self,
        store: S,
        name: str,
        *,
        lease: float = 30.0,
        owner: str | None = None,
        skew: float = 1.0,
        trust_clocks: bool = True,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or LOCKS)
        require_positive(lease=lease)
        require_non_negative(skew=skew)
        self.name = name
        self.lease = lease
        self._owner = owner
        self.skew = skew
        self.trust_clocks = trust_clocks
        self._holder = uuid.uuid4().hex
        self._kind = self.bind(LockState)
        self._process = os.getpid()
        self._fence: int | None = None  # the current acquisition's; None without one
        self._until = 0.0  # the end of the lease, by the owner's time
        self._ends = 0.0  # the same by monotonic time, whatever the clock showed at a renewal
        self._monotonic = monotonic_of(self.calls.clock)
        self._acquired_at = 0.0, 0.0  # by the clock, and by monotonic time
        self._watched: tuple[int, float] | None = None  # a revision, and since when it was known
        self._block = self.held()  # for `with lock:`

    @staticmethod
    def layout(name: str = LOCKS.name) -> Table:
        """A table for locks."""
        return Table(name)

    # Without a request

    @property
    def owner(self) -> str:
        """The name that others see. Unless given, it has this process's id, in a forked process its own."""
        return self._owner or f"{socket.gethostname()}/{os.getpid()}"

    @property
    def is_held(self) -> bool:
        """Whether this owner certainly holds the lock: its lease has not expired."""
        self._detect_fork()
        is_valid = self._time() < self._until and self._monotonic() < self._ends
        return self._fence is not None and is_valid

    @property
    def fence(self) -> int:
        """The fencing token of this acquisition; send it with each write that the lock guards.

        Raises `LeaseLost` if the lease has expired, `UsageError` if the lock was not acquired.
        """
        fence = self._acquired()
        if not self.is_held:
            raise self._lost()
        return fence

    # Operations

    @operation
    def try_acquire(self) -> Steps[bool]:
        """Take the lock if it is free; returns whether it was taken.

        Cost: a consistent read, and a write if it is free. Raises `UsageError` if this `Lock` already
        holds it: it would wait for itself.
        """
        return (yield from self._try()) is None

    @operation
    def acquire(self, timeout: float = 60.0, *, wait: float = 1.0) -> Steps[int]:
        """Take the lock, waiting up to `timeout` seconds; returns the fencing token.

        It checks again after pauses that grow to `wait` seconds. Cost: a consistent read for each check, and a
        write. Raises `Locked` if others hold it all that time.
        """
        _check_timeout(timeout)
        yield from self._acquire(timeout, wait)
        return self._acquired()

    @operation
    def renew(self) -> Steps[None]:
        """Extend the lease to its full length from now. Cost: one write.

        Raises `LeaseLost` if another owner has taken the lock.
        """
        return self._renew()

    @operation
    def release(self) -> Steps[None]:
        """Release the lock. Cost: one write.

        Raises `LeaseLost` if another owner has taken it: the work was not guarded to its end.
        """
        return self._release()

    @operation
    def holder(self) -> Steps[LockHolder | None]:
        """The holder of the lock, even if its lease has expired; None if it is free. Cost: a consistent read."""
        state = yield from self._read()
        return None if state.holder is None else _holder_of(state)

    @validated
    def held(
        self, timeout: float = 60.0, *, wait: float = 1.0, every: float | None = None
    ) -> LeaseBlock[Self, None, S]:
        """Hold the lock for a `with` or `async with` block.

        It is acquired like with `acquire`, renewed in the background every `every` seconds (by default a third
        of the lease), and released at the end. If it is lost nevertheless, `is_held` is False, and `fence`
        and the end of the block raise `LeaseLost`.
        """
        _check_timeout(timeout)
        return LeaseBlock(
            self.store,
            begin=lambda: self._acquire(timeout, wait),
            end=lambda error: self._release(),
            renew=self._renew,
            lease=self.lease,
            every=every,
        )

    def __enter__(self: Lock[Store]) -> Lock[Store]:
        """Hold the lock for a `with` block, as `held()` does."""
        return self._block.__enter__()

    def __exit__(self: Lock[Store], *raised: Any) -> None:
        self._block.__exit__(*raised)

    async def __aenter__(self: Lock[AsyncStore]) -> Lock[AsyncStore]:
        """Hold the lock for an `async with` block, as `held()` does."""
        return await self._block.__aenter__()

    async def __aexit__(self: Lock[AsyncStore], *raised: Any) -> None:
        await self._block.__aexit__(*raised)

    # Steps

    def _acquire(self, timeout: float, wait: float) -> Steps[Self]:
        other = yield from poll(
            self._try,
            lambda other: other is None,
            timeout=timeout,
            longest=wait,
            clock=self.calls.clock,
        )
        if other is not None:
            raise Locked(
                f"lock {self.name!r} was not free within {timeout:g} seconds; {other.owner} holds it until "
                f"{other.until}; try again later",
                other.owner,
                other.until,
            )
        return self

    def _try(self) -> Steps[LockHolder | None]:
        """Take the lock; returns None, or the other holder."""
        self._detect_fork()
        now, monotonic = self.now(), self._monotonic()
        state = yield from self._read()
        if not self._may_take(state, now, monotonic, read_at=self._monotonic()):
            return _holder_of(state)
        taken = state.replace(
            holder=self._holder,
            owner=self.owner,
            until=datetime.fromtimestamp(now + self.lease, UTC),
            lease=self.lease,
            fence=state.fence + 1,
        )
        # Before the request, so that `release` works if its response is lost.
        self._fence, self._until = taken.fence, 0.0
        try:
            yield from self.calls.put(taken)  # refused if its revision has changed
        except ConditionFailed as refused:
            other = refused.current or state
            if (other.holder, other.fence) != (taken.holder, taken.fence):
                self._fence = None
                return _holder_of(other)
            # We hold it: the response to the first request was lost.
        self._acquired_at, self._watched = (now, monotonic), None
        self._until, self._ends = now + self.lease, monotonic + self.lease
        return None

    def _read(self) -> Steps[LockState]:
        """The stored lock; if there is none, a free one without a revision."""
        state = yield from self.calls.get(self._kind, consistent=True, lock=self.name)
        return self._kind(lock=self.name) if state is None else state

    def _time(self) -> float:
        """The owner's time: the clock's, or monotonic time if the clock was set back."""
        clock, monotonic = self._acquired_at
        return max(self.now(), clock + self._monotonic() - monotonic)

    def _may_take(self, state: LockState, now: float, monotonic: float, read_at: float) -> bool:
        """Whether a lock that was read between `monotonic` and `read_at` may be taken."""
        if state.holder is None or state.until is None:
            return True
        if state.holder == self._holder:
            if self.is_held:
                raise UsageError(
                    f"lock {self.name!r} is already held by this Lock, which would wait for itself; "
                    "release it first, and give each thread and task its own Lock"
                )
            return True  # taken by a request whose response was lost, or not renewed in time
        if self.trust_clocks:
            return state.until.timestamp() + self.skew <= now
        if self._watched is None or self._watched[0] != state.revision:
            # Not from before the read: the owner may have renewed while it ran.
            self._watched = (state.revision, read_at)
        return monotonic - self._watched[1] >= state.lease

    def _renew(self) -> Steps[None]:
        is_mine = self._is_mine()
        until, ends = self._time() + self.lease, self._monotonic() + self.lease
        change = LockState.until.set(datetime.fromtimestamp(until, UTC))
        try:
            yield from self.calls.update(self._kind, change, when=is_mine, lock=self.name)
        except ConditionFailed:
            self._until = 0.0
            raise self._lost() from None
        self._until, self._ends = until, ends

    def _release(self) -> Steps[None]:
        fence, is_mine = self._acquired(), self._is_mine()
        # If the response is lost, the lock may be free; `release` can be called again.
        self._until = 0.0
        changes = [LockState.holder.remove(), LockState.owner.remove(), LockState.until.remove()]
        try:
            yield from self.calls.update(self._kind, *changes, when=is_mine, lock=self.name)
        except ConditionFailed as refused:
            now = refused.current
            if now is None or (now.fence, now.holder) != (fence, None):
                raise self._lost() from None
            # It is free and has our fence: we released it, and the response was lost.
        self._fence = None

    def _is_mine(self) -> Condition:
        return (LockState.holder == self._holder) & (LockState.fence == self._acquired())

    def _detect_fork(self) -> None:
        """In a forked process, become another owner: the parent keeps the lock."""
        if self._process != os.getpid():
            self._process, self._holder, self._fence = os.getpid(), uuid.uuid4().hex, None

    def _acquired(self) -> int:
        """The fence of this acquisition; raises `UsageError` if there is none."""
        self._detect_fork()
        if self._fence is None:
            raise UsageError(
                f"lock {self.name!r} was not acquired by this Lock; call acquire() first"
            )
        return self._fence

    def _lost(self) -> LeaseLost:
        return LeaseLost(
            f"lock {self.name!r} was not renewed within its lease of {self.lease:g} seconds, and another "
            "owner may hold it by now; stop the work that it guards"
        )


def _check_timeout(timeout: float) -> None:
    if not timeout >= 0:
        raise UsageError(
            f"timeout={timeout} is not a time to wait; give 0 seconds or more, or float('inf')"
        )


def _holder_of(state: LockState) -> LockHolder:
    until = state.until or datetime.now(UTC)
    return LockHolder(state.owner or "an owner that released it meanwhile", until, state.fence)
