"""Work that is done once for each key, however often it is asked for.

    payments = Idempotency(store, "payments")
    receipt = payments.once(order.id, lambda: charge(order), payload=order.total, result=Receipt)

The first call writes that it has begun, runs the function, and writes what came out; a later one is given
that. An attempt that fails may be tried again; one that dies may be when its lease is over.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from typing import Any, Final, ParamSpec, TypeVar, cast, overload

from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    InProgress,
    LeaseLost,
    PayloadDiffers,
    UsageError,
)
from isotone.model import (
    AsyncStore,
    Attr,
    Collected,
    Entity,
    Key,
    Pause,
    Steps,
    Store,
    Table,
    expires,
    field,
)
from isotone.structures import payloads
from isotone.structures.arguments import require_non_negative, require_positive, validated
from isotone.structures.operation import S, Structure, operation
from isotone.structures.renewing import Leased
from isotone.structures.waiting import pauses

P = ParamSpec("P")
R = TypeVar("R")

IDEMPOTENCY: Final = Table("idempotency")
_LONGEST_PAUSE: Final = 1.0  # seconds between two looks
_NOT_AWAITED: Final = (
    "over a Store nothing is awaited: give a function that is not async, or make the Idempotency with an "
    "AsyncStore"
)


class IdempotencyRecord(Entity):
    """What is known of a key: that somebody is at it, or what came out."""

    scope: Attr[str] = field()
    key: Attr[str] = field()
    attempt: Attr[str] = field()
    until: Attr[datetime] = field()
    done: Attr[bool] = field(default=False)
    fingerprint: Attr[str] = field(default="")
    result: Attr[str | None] = field(default=None)
    gone_at: Attr[datetime] = expires()

    primary = Key("IDEMPOTENCY", scope, key).sort("IDEMPOTENCY")


@dataclass
class _Attempt:
    """What a call has found or begun, and the result, which is read as a type."""

    record: IdempotencyRecord
    kind: Any
    result: Any = None


class Idempotency(Structure[S]):
    """Keys of one kind of work, each to be done once.

    `lease` is for how many seconds nobody else begins what an attempt has begun: longer than the work can
    take. One that has died is taken over `skew` seconds later: by so much the clocks of the machines may
    differ. `remember` is for how many a result is kept.
    """

    def __init__(
        self,
        store: S,
        scope: str,
        *,
        lease: float = 60.0,
        remember: float = 86_400.0,
        skew: float = 1.0,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or IDEMPOTENCY)
        require_positive(lease=lease, remember=remember)
        require_non_negative(skew=skew)
        self.scope = scope
        self.lease = lease
        self.remember = remember
        self.skew = skew
        self._kind = self.kept(IdempotencyRecord)

    @staticmethod
    def layout(name: str = "idempotency") -> Table:
        """A table in which the keys can live."""
        return Table(name)

    @overload
    def once(
        self: Idempotency[Store],
        key: str,
        function: Callable[[], R],
        *,
        payload: Any = ...,
        result: Any = ...,
        wait: float = ...,
    ) -> R: ...
    @overload
    def once(
        self: Idempotency[AsyncStore],
        key: str,
        function: Callable[[], Awaitable[R]],
        *,
        payload: Any = ...,
        result: Any = ...,
        wait: float = ...,
    ) -> Coroutine[Any, Any, R]: ...
    @validated
    def once(
        self,
        key: str,
        function: Callable[[], Any],
        *,
        payload: Any = None,
        result: Any = Any,
        wait: float = 0.0,
    ) -> Any:
        """Call the function, unless that was done for the key; its result, now or then.

        What another key would have to be used for is told by `payload`. An earlier result is read as the type
        `result`, or as what the function is annotated to return. Where another attempt has not ended, it is
        waited for so many seconds.
        Cost: two writes the first time, one that is refused for each repetition. Raises `InProgress`,
        `PayloadDiffers`, `LeaseLost` where the function took longer than the lease and another attempt has
        begun, and whatever the function raises: then it may be tried again.
        """
        self._check(function)
        attempt = _Attempt(self._record(key, payload), payloads.kind_of(function, result))
        begin, end = partial(self._begin, attempt, wait), partial(self._end, attempt)
        leased: Any = Leased(self.store, begin, end, None, 0)
        return (_awaited if isinstance(self.store, AsyncStore) else _waited)(leased, function)

    @validated
    def each(
        self,
        key: Callable[..., str],
        *,
        payload: Callable[..., Any] | None = None,
        wait: float = 0.0,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorate a function, or over an `AsyncStore` an async one: it runs once for each key.

        `key` gives the key of a call's arguments; `payload` what must be the same each time, all the arguments
        but `self` unless it is said. An earlier result is read as the type that the function says it returns.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            if not callable(function):
                raise UsageError(
                    f"each(key) decorates a function, not {function!r}: @x.each(lambda …: …)"
                )
            self._check(function)
            is_awaited = isinstance(self.store, AsyncStore)
            if is_awaited and not payloads.is_async(function, inspect.unwrap(function)):
                raise UsageError(f"over an AsyncStore {function!r} has to be async")
            kind = payloads.kind_of(function)
            told = payload or partial(payloads.arguments, inspect.signature(function))
            once = cast("Any", self).once

            def perform(*args: P.args, **kwargs: P.kwargs) -> Any:
                call = partial(function, *args, **kwargs)
                same = told(*args, **kwargs)
                return once(key(*args, **kwargs), call, payload=same, result=kind, wait=wait)

            async def perform_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await perform(*args, **kwargs)

            return wraps(function)(cast("Any", perform_async if is_awaited else perform))

        return decorate

    @validated
    def settle(
        self, together: Collected, key: str, *, payload: Any = None, result: Any = None
    ) -> None:
        """Have a transaction of the same database say that the key is done: its writes are made once.

        Where that was so before, the transaction fails, with `AlreadyExists` in this place.
        """
        record = self._record(key, payload)
        together.create(record.replace(done=True, result=payloads.written(result)))

    @operation
    def forget(self, key: str) -> Steps[bool]:
        """Let the work be done again; whether anything was known of the key. Cost: one write."""
        was = yield from self.calls.delete(self._kind, scope=self.scope, key=key)
        return was is not None

    # An attempt

    def _check(self, function: Callable[..., Any]) -> None:
        """Over a `Store` nothing is awaited."""
        if isinstance(self.store, Store) and payloads.is_async(function):
            raise UsageError(_NOT_AWAITED)

    def _begin(self, attempt: _Attempt, wait: float) -> Steps[_Attempt]:
        """Begin an attempt, or find what came out of one."""
        waited, mine = 0.0, attempt.record
        for nap in pauses(_LONGEST_PAUSE):
            found = yield from self._claim(mine)
            if found.done or found.attempt == mine.attempt:
                break
            if waited >= wait:
                raise InProgress(
                    f"{self.scope} {mine.key!r} is being done since less than {self.lease:g} seconds; try again "
                    f"after {found.until}, or give wait=…",
                    found.attempt,
                    found.until,
                )
            yield Pause(min(nap, wait - waited))
            waited += nap
        attempt.record = found
        if found.done:
            attempt.result = payloads.result_of(found.result, attempt.kind)
        return attempt

    def _claim(self, mine: IdempotencyRecord) -> Steps[IdempotencyRecord]:
        """Write the record of an attempt; it, or the one that stands in its way."""
        gone_at = self._after(self.lease + self.skew + self.remember)
        mine = mine.replace(until=self._after(self.lease), gone_at=gone_at)
        try:
            return (yield from self.calls.create(mine))
        except AlreadyExists as refused:
            found: IdempotencyRecord = refused.current
        if found.fingerprint != mine.fingerprint:
            raise PayloadDiffers(
                f"{self.scope} {mine.key!r} was asked for before with another payload; give another "
                "request another key"
            )
        if found.attempt == mine.attempt or found.until > self._after(-self.skew):
            return found
        as_seen = IdempotencyRecord.attempt == found.attempt
        as_seen &= IdempotencyRecord.until == found.until  # which its end would have changed
        try:
            return (yield from self.calls.put(mine, when=as_seen))
        except ConditionFailed as refused:
            return refused.current or found

    def _end(self, attempt: _Attempt, failure: BaseException | None) -> Steps[None]:
        """Keep the result; where that cannot be, it is said after it was noted that the work is done."""
        record, kept, unkept = attempt.record, None, None
        if record.done:
            return
        mine = IdempotencyRecord.attempt == record.attempt
        if failure is not None:  # others may begin at once
            yield from self.calls.delete(self._kind, when=mine, scope=self.scope, key=record.key)
            return
        try:
            kept = payloads.to_keep(attempt.result, attempt.kind)
        except Exception as error:  # noqa: BLE001 - of the result's own code: the work is done all the same
            unkept = error
        until = self._after(self.remember)
        done = record.replace(done=True, result=kept, until=until, gone_at=until)
        try:
            yield from self.calls.put(done, when=mine)
        except ConditionFailed:
            raise LeaseLost(
                f"{self.scope} {record.key!r} was done, but took longer than its lease of {self.lease:g} "
                "seconds, and another attempt has begun: give a longer lease"
            ) from None
        if unkept is not None:
            raise unkept

    def _record(self, key: str, payload: Any) -> IdempotencyRecord:
        until, attempt = self._after(self.remember), uuid.uuid4().hex
        same = payloads.fingerprint_of(payload)
        return self._kind(
            scope=self.scope, key=key, attempt=attempt, fingerprint=same, until=until, gone_at=until
        )

    def _after(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC) + timedelta(seconds=seconds)


def _waited(leased: Leased[_Attempt, None, Store], function: Callable[[], Any]) -> Any:
    with leased as attempt:
        if not attempt.record.done:
            attempt.result = function()
            if inspect.isawaitable(attempt.result):
                if inspect.iscoroutine(attempt.result):
                    attempt.result.close()
                raise UsageError(_NOT_AWAITED)
    return attempt.result


async def _awaited(leased: Leased[_Attempt, None, AsyncStore], function: Callable[[], Any]) -> Any:
    async with leased as attempt:
        if not attempt.record.done:
            result = function()
            attempt.result = await result if inspect.isawaitable(result) else result
    return attempt.result
