"""A lock that processes on many machines agree on: owner, lease, and a fencing token.

    lock = Lock(store, "nightly-report")
    with lock:                          # async with, over an AsyncStore
        write(report, fence=lock.fence)

There is one item for a lock. Whoever has it must renew it within its lease; otherwise others may take it.
Each acquisition gets a greater number, the fencing token: what is guarded can refuse one that is less than
the greatest it has seen, and so an owner that has lost its lease without knowing it.
"""

from __future__ import annotations

import os
import socket
import uuid
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Self

from isotone.errors import ConditionFailed, LeaseLost, Locked, UsageError
from isotone.model import (
    AsyncStore,
    Attr,
    Condition,
    Entity,
    Key,
    Pause,
    Steps,
    Store,
    Table,
    field,
    version,
)
from isotone.structures.arguments import require_non_negative, require_positive, validated
from isotone.structures.operation import S, Structure, operation
from isotone.structures.renewing import Leased
from isotone.structures.waiting import pauses

LOCKS: Final = Table("locks")


class LockState(Entity):
    """A lock; it stays when it is released, because its fence must go on rising."""

    lock: Attr[str] = field()
    holder: Attr[str | None] = field(default=None)
    owner: Attr[str | None] = field(default=None)
    until: Attr[datetime | None] = field(default=None)
    lease: Attr[float] = field(default=0.0)
    fence: Attr[int] = field(default=0)
    revision: Attr[int] = version()

    primary = Key("LOCK", lock).sort("LOCK")


class LockHolder(NamedTuple):
    """Who has a lock: as it calls itself, until when unless it renews, and with which fencing token."""

    owner: str
    until: datetime
    fence: int


class Lock(Structure[S]):
    """One owner of a lock, or one who wants to be; give each thread and task a Lock of its own.

    `lease` is for how many seconds it is held without being renewed, `owner` what others are told. A lease
    that has run out may be taken over `skew` seconds later: by so much the clocks of the machines may
    differ. Where they cannot be trusted at all, `trust_clocks=False` takes a lock over only after its item
    has not changed for a whole lease, watched by one's own clock.
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
        self.owner = owner or f"{socket.gethostname()}/{os.getpid()}"
        self.skew = skew
        self.trust_clocks = trust_clocks
        self._holder = uuid.uuid4().hex
        self._kind = self.kept(LockState)
        self._process = os.getpid()
        self._fence: int | None = None  # of this hold
        self._until = 0.0
        self._watched: tuple[int, float] | None = None  # the revision that was seen, since when
        self._block = self.held()  # of `with lock:`

    @staticmethod
    def layout(name: str = "locks") -> Table:
        """A table in which locks can live."""
        return Table(name)

    # What is known without asking

    @property
    def is_held(self) -> bool:
        """Whether this owner has the lock for certain: its lease has not run out."""
        self._leave_to_parent()
        return self._fence is not None and self.now() < self._until

    @property
    def fence(self) -> int:
        """The fencing token of this hold, to be sent with whatever is done under it.

        Raises `LeaseLost` where the lease has run out, `UsageError` where the lock was not acquired.
        """
        fence = self._own()
        if not self.is_held:
            raise self._lost()
        return fence

    # Taking and giving

    @operation
    def try_acquire(self) -> Steps[bool]:
        """Take the lock if nobody has it. Cost: a consistent read, and a write where it is free.

        Raises `UsageError` where this very owner has it: it would wait for itself.
        """
        return (yield from self._try()) is None

    @operation
    def acquire(self, timeout: float = 60.0, *, wait: float = 1.0) -> Steps[int]:
        """Take the lock, and give its fencing token; looks again at most `wait` seconds after it last did.

        Raises `Locked` where others have it all the time. Cost: a consistent read for each look, and a write.
        """
        _check_patience(timeout)
        yield from self._acquire(timeout, wait)
        return self._own()

    @operation
    def renew(self) -> Steps[None]:
        """Hold the lock for a whole lease from now. Cost: one write.

        Raises `LeaseLost` where somebody else has taken it over.
        """
        return self._renew()

    @operation
    def release(self) -> Steps[None]:
        """Let others have the lock. Cost: one write.

        Raises `LeaseLost` where somebody else has taken it over: what was done was not guarded to its end.
        """
        return self._release()

    @operation
    def holder(self) -> Steps[LockHolder | None]:
        """Who has the lock, whether or not the lease has run out. Cost: a consistent read."""
        state = yield from self._read()
        return None if state.holder is None else _described(state)

    @validated
    def held(
        self, timeout: float = 60.0, *, wait: float = 1.0, every: float | None = None
    ) -> Leased[Self, None, S]:
        """Acquire the lock for a `with` or `async with` block, and release it at its end.

        In the background it is renewed `every` so many seconds, a third of the lease unless it is said. A
        lock that is lost all the same is not `is_held`, its `fence` raises, and so does the end of the block.
        """
        _check_patience(timeout)
        often = self.lease / 3 if every is None else every
        if not 0 < often < self.lease:
            raise UsageError(
                f"a lease of {self.lease:g} seconds has to be renewed before it is over, not every {often:g}"
            )
        return Leased(
            self.store,
            begin=lambda: self._acquire(timeout, wait),
            end=lambda error: self._release(),
            renew=self._renew,
            every=often,
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

    # How

    def _acquire(self, timeout: float, wait: float) -> Steps[Self]:
        began, waited = self.now(), 0.0
        for nap in pauses(wait):
            other = yield from self._try()
            left = timeout - max(waited, self.now() - began)
            if other is None:
                break
            if left <= 0:
                raise Locked(
                    f"lock {self.name!r} is held by {other.owner} until {other.until}, and was so for "
                    f"{timeout:g} seconds; try again later",
                    other.owner,
                    other.until,
                )
            yield Pause(min(left, nap))
            waited += nap
        return self

    def _try(self) -> Steps[LockHolder | None]:
        """Take the lock; None, or else who has it."""
        self._leave_to_parent()
        now = self.now()
        state = yield from self._read()
        if not self._may_take(state, now):
            return _described(state)
        taken = state.replace(
            holder=self._holder,
            owner=self.owner,
            until=datetime.fromtimestamp(now + self.lease, UTC),
            lease=self.lease,
            fence=state.fence + 1,
        )
        self._fence, self._until = taken.fence, 0.0  # to be released, should there be no answer
        try:
            yield from self.calls.put(taken)  # unless its revision is another one by now
        except ConditionFailed as refused:
            other = refused.current or state
            if (other.holder, other.fence) != (taken.holder, taken.fence):
                self._fence = None
                return _described(other)
            # Ours: only the answer to the first request was lost.
        self._until, self._watched = now + self.lease, None
        return None

    def _read(self) -> Steps[LockState]:
        """The lock as it is; free, and of no revision, where it was never taken."""
        state = yield from self.calls.get(self._kind, consistent=True, lock=self.name)
        return self._kind(lock=self.name) if state is None else state

    def _may_take(self, state: LockState, now: float) -> bool:
        if state.holder is None or state.until is None:
            return True
        if state.holder == self._holder:
            if self.is_held:
                raise UsageError(
                    f"lock {self.name!r} is held by this very Lock already, and would wait for itself; "
                    "release it first, and give each thread and task a Lock of its own"
                )
            return True  # ours, by a request without an answer, or not renewed in time
        if self.trust_clocks:
            return state.until.timestamp() + self.skew <= now
        if self._watched is None or self._watched[0] != state.revision:
            self._watched = (state.revision, now)
        return now - self._watched[1] >= state.lease

    def _renew(self) -> Steps[None]:
        is_mine, until = self._is_mine(), self.now() + self.lease
        change = LockState.until.set(datetime.fromtimestamp(until, UTC))
        try:
            yield from self.calls.update(self._kind, change, when=is_mine, lock=self.name)
        except ConditionFailed:
            self._until = 0.0
            raise self._lost() from None
        self._until = until

    def _release(self) -> Steps[None]:
        fence, is_mine = self._own(), self._is_mine()
        self._until = 0.0  # without an answer it may be free, and releasing is repeated
        changes = [LockState.holder.remove(), LockState.owner.remove(), LockState.until.remove()]
        try:
            yield from self.calls.update(self._kind, *changes, when=is_mine, lock=self.name)
        except ConditionFailed as refused:
            now = refused.current
            if now is None or (now.fence, now.holder) != (fence, None):
                raise self._lost() from None
            # Free with our fence: released by us, but the answer was lost.
        self._fence = None

    def _is_mine(self) -> Condition:
        return (LockState.holder == self._holder) & (LockState.fence == self._own())

    def _leave_to_parent(self) -> None:
        """In a process that was forked, be another owner: what was held is the parent's."""
        if self._process != os.getpid():
            self._process, self._holder, self._fence = os.getpid(), uuid.uuid4().hex, None

    def _own(self) -> int:
        self._leave_to_parent()
        if self._fence is None:
            raise UsageError(
                f"lock {self.name!r} was not acquired by this Lock; call acquire() first"
            )
        return self._fence

    def _lost(self) -> LeaseLost:
        return LeaseLost(
            f"lock {self.name!r} was not renewed within its lease of {self.lease:g} seconds, and may be "
            "somebody else's by now; stop what it guards"
        )


def _check_patience(timeout: float) -> None:
    if not timeout >= 0:
        raise UsageError(
            f"timeout is 0 seconds or more, or float('inf') to wait for as long as it takes: not {timeout}"
        )


def _described(state: LockState) -> LockHolder:
    until = state.until or datetime.now(UTC)
    return LockHolder(state.owner or "somebody who has let it go", until, state.fence)
