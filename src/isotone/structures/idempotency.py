"""Idempotent work: done once for each key, however often it is requested; `InProgress`, `PayloadDiffers`.

    payments = Idempotency(store, "payments")
    receipt = payments.once(order.id, lambda: charge(order), payload=order.total, result=Receipt)

The first call records that it began, runs the function, and records the result. Later calls return that
result. After a failed attempt the work can be repeated at once; after a crash, when the lease has expired.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import partial, wraps
from typing import Any, ClassVar, Final, ParamSpec, TypeVar, cast, overload

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
    Entity,
    Key,
    Steps,
    Store,
    Table,
    Transaction,
    expires,
    field,
)
from isotone.structures import idempotency_results as results
from isotone.structures.argument_checks import require_non_negative, require_positive, validated
from isotone.structures.lease_block import LeaseBlock
from isotone.structures.structure import S, Structure, operation
from isotone.structures.waits_and_retries import poll

P = ParamSpec("P")
R = TypeVar("R")

IDEMPOTENCY: Final = Table("idempotency")
_LONGEST_POLL: Final = 1.0  # seconds between two checks
_NOT_AWAITED: Final = (
    "a Store cannot await; give a function that is not async, or use an AsyncStore"
)


class IdempotencyRecord(Entity):
    """A key, with an attempt in progress or its result."""

    scope: Attr[str] = field()
    key: Attr[str] = field()
    attempt: Attr[str] = field()
    until: Attr[datetime] = field()
    done: Attr[bool] = field(default=False)
    fingerprint: Attr[str] = field(default="")
    result: Attr[str | None] = field(default=None)
    gone_at: Attr[datetime] = expires()

    primary: ClassVar[Key] = Key("IDEMPOTENCY", scope, key).sort("IDEMPOTENCY")


@dataclass
class _CallAttempt:
    """An attempt made by a call, or an earlier attempt with its result; and the type of the result."""

    record: IdempotencyRecord
    kind: Any
    result: Any = None


class Idempotency(Structure[S]):
    """The keys of one kind of work; the work of each key is done once.

    - `lease`: seconds for which an attempt excludes others. It must be longer than the work takes.
    - `remember`: seconds for which a result is kept.
    - `skew`: seconds by which the machines' clocks may differ. An attempt that died is replaced that long
      after its lease.

        >>> payments = Idempotency(store, "payments")
        >>> created = payments.create_table()
        >>> [payments.once("order:157", lambda: "receipt 7") for attempt in range(2)]
        ['receipt 7', 'receipt 7']
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
        self._kind = self.bind(IdempotencyRecord)

    @staticmethod
    def layout(name: str = "idempotency") -> Table:
        """A table for keys and results."""
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
        """Call the function, unless the key is done; returns the result of this call or the earlier one.

        `payload` must be equal in every call with the key. An earlier result is read as the type
        `result`, or as the function's annotated return type. If another attempt is in progress, the call
        waits up to `wait` seconds for it.

        Cost: two writes the first time, one refused write for each repetition. Raises `InProgress`,
        `PayloadDiffers`, `LeaseLost` if the function took longer than the lease and another attempt began, and
        the function's own errors: then it can be called again.
        """
        self._check(function)
        attempt = _CallAttempt(self._record(key, payload), results.kind_of(function, result))
        begin, end = partial(self._begin, attempt, wait), partial(self._end, attempt)
        block: Any = LeaseBlock(self.store, begin, end)
        return (_run_async if isinstance(self.store, AsyncStore) else _run)(block, function)

    @validated
    def each(
        self,
        key: Callable[..., str],
        *,
        payload: Callable[..., Any] | None = None,
        wait: float = 0.0,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorate a function (async over an `AsyncStore`) to run once for each key.

        `key` returns the key for a call's arguments, `payload` the value that must be equal each time: all
        arguments but `self`, unless given. An earlier result is read as the annotated return type.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            if not callable(function):
                raise UsageError(
                    f"each(key) decorates a function, not {function!r}; write @x.each(lambda …: …)"
                )
            self._check(function)
            is_awaited = isinstance(self.store, AsyncStore)
            if is_awaited and not results.is_async(function, inspect.unwrap(function)):
                raise UsageError(f"over an AsyncStore {function!r} must be async")
            kind = results.kind_of(function)
            compared = payload or partial(results.arguments, inspect.signature(function))
            once = cast("Any", self).once

            def perform(*args: P.args, **kwargs: P.kwargs) -> Any:
                call = partial(function, *args, **kwargs)
                same = compared(*args, **kwargs)
                return once(key(*args, **kwargs), call, payload=same, result=kind, wait=wait)

            async def perform_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await perform(*args, **kwargs)

            return wraps(function)(cast("Any", perform_async if is_awaited else perform))

        return decorate

    @validated
    def settle(self, tx: Transaction, key: str, *, payload: Any = None, result: Any = None) -> None:
        """Mark the key as done in a transaction of the same database, so that its writes happen once.

        If the key exists, the transaction fails with `AlreadyExists` for this write.
        """
        record = self._record(key, payload)
        tx.create(record.replace(done=True, result=results.written(result)))

    @operation
    def forget(self, key: str) -> Steps[bool]:
        """Forget a key, so its work is done again; returns whether the key existed. Cost: one write."""
        was = yield from self.calls.delete(self._kind, scope=self.scope, key=key)
        return was is not None

    # Steps of an attempt

    def _check(self, function: Callable[..., Any]) -> None:
        if isinstance(self.store, Store) and results.is_async(function):
            raise UsageError(_NOT_AWAITED)

    def _begin(self, attempt: _CallAttempt, wait: float) -> Steps[_CallAttempt]:
        """Begin the attempt, or take over an earlier result."""
        mine = attempt.record
        record = yield from poll(
            partial(self._claim, mine),
            lambda record: record.done or record.attempt == mine.attempt,
            timeout=wait,
            longest=_LONGEST_POLL,
            clock=self.calls.clock,
        )
        if record.done:
            attempt.result = results.result_of(record.result, attempt.kind)
        elif record.attempt != mine.attempt:
            raise InProgress(
                f"{self.scope} {mine.key!r} is in progress, for less than {self.lease:g} seconds; try again "
                f"after {record.until}, or give wait=…",
                record.attempt,
                record.until,
            )
        attempt.record = record
        return attempt

    def _claim(self, mine: IdempotencyRecord) -> Steps[IdempotencyRecord]:
        """Write the record of an attempt; returns it, or the record that prevented it."""
        gone_at = self.after(self.lease + self.skew + self.remember)
        mine = mine.replace(until=self.after(self.lease), gone_at=gone_at)
        try:
            return (yield from self.calls.create(mine))
        except AlreadyExists as refused:
            other: IdempotencyRecord = refused.current
        if other.fingerprint != mine.fingerprint:
            raise PayloadDiffers(
                f"{self.scope} {mine.key!r} was used before with another payload; use another key for "
                "another request"
            )
        if other.attempt == mine.attempt or other.until > self.after(-self.skew):
            return other
        kind = IdempotencyRecord
        # A finished attempt would have changed the time.
        unchanged = (kind.attempt == other.attempt) & (kind.until == other.until)
        try:
            return (yield from self.calls.put(mine, when=unchanged))
        except ConditionFailed as refused:
            return refused.current or other

    def _end(self, attempt: _CallAttempt, failure: BaseException | None) -> Steps[None]:
        """Record the result. If it cannot be stored, record that the work is done, then raise."""
        record, stored, refusal = attempt.record, None, None
        if record.done:
            return
        mine = IdempotencyRecord.attempt == record.attempt
        if failure is not None:  # so that another attempt can begin at once
            yield from self.calls.delete(self._kind, when=mine, scope=self.scope, key=record.key)
            return
        try:
            stored = results.storable(attempt.result, attempt.kind)
        except Exception as error:  # noqa: BLE001 - the result's own code may raise anything
            refusal = error
        until = self.after(self.remember)
        done = record.replace(done=True, result=stored, until=until, gone_at=until)
        try:
            yield from self.calls.put(done, when=mine)
        except ConditionFailed:
            raise LeaseLost(
                f"{self.scope} {record.key!r} took longer than its lease of {self.lease:g} seconds, and "
                "another attempt has begun; give a longer lease"
            ) from None
        if refusal is not None:
            raise refusal

    def _record(self, key: str, payload: Any) -> IdempotencyRecord:
        until, attempt = self.after(self.remember), uuid.uuid4().hex
        same = results.fingerprint_of(payload)
        return self._kind(
            scope=self.scope, key=key, attempt=attempt, fingerprint=same, until=until, gone_at=until
        )


def _run(block: LeaseBlock[_CallAttempt, None, Store], function: Callable[[], Any]) -> Any:
    with block as attempt:
        if not attempt.record.done:
            attempt.result = function()
            if inspect.isawaitable(attempt.result):
                if inspect.iscoroutine(attempt.result):
                    attempt.result.close()
                raise UsageError(_NOT_AWAITED)
    return attempt.result


async def _run_async(
    block: LeaseBlock[_CallAttempt, None, AsyncStore], function: Callable[[], Any]
) -> Any:
    async with block as attempt:
        if not attempt.record.done:
            result = function()
            attempt.result = await result if inspect.isawaitable(result) else result
    return attempt.result
