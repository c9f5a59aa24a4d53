"""Work that is done once for each key, however often it is asked for.

    payments = Idempotency(store, "payments")
    receipt = payments.once(order.id, lambda: charge(order), payload=order.total, result=Receipt)

The first call writes that it has begun, runs the function, and writes what came out; a later one is given
that. An attempt that fails may be tried again; one that dies may be when its lease is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, ParamSpec, TypeVar, cast, overload

from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    InProgress,
    IsotoneError,
    LeaseLost,
    PayloadDiffers,
    UsageError,
)
from isotone.model.async_store import AsyncStore
from isotone.model.declaring.fields import Attr, expires, field
from isotone.model.declaring.keys import Key
from isotone.model.declaring.table import Table
from isotone.model.entity import Entity
from isotone.model.steps import Pause, Steps
from isotone.model.store import Store
from isotone.model.writing.transactions import Collected
from isotone.structures.operation import S, Structure, operation
from isotone.structures.payloads import fingerprint_of, result_of, returned, written
from isotone.structures.renewing import to_its_end
from isotone.structures.waiting import pauses

P = ParamSpec("P")
R = TypeVar("R")

IDEMPOTENCY: Final = Table("idempotency")
_LONGEST_PAUSE: Final = 1.0  # seconds between two looks


class IdempotencyRecord(Entity):
    """What is known of a key: that somebody is at it, or what came out."""

    scope: Attr[str] = field()
    key: Attr[str] = field()
    attempt: Attr[str] = field()
    until: Attr[datetime] = field()
    done: Attr[bool] = field(default=False)
    fingerprint: Attr[str | None] = field(default=None)
    result: Attr[str | None] = field(default=None)
    gone_at: Attr[datetime] = expires()

    primary = Key("IDEMPOTENCY", scope, key).sort("IDEMPOTENCY")


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

        What another key would have to be used for is told by `payload`. `result` is the type as which an
        earlier result is read. Where another attempt has not ended, it is waited for so many seconds.
        Cost: two writes the first time, one that is refused for each repetition. Raises `InProgress`,
        `PayloadDiffers`, `LeaseLost` where the function took longer than the lease and another attempt has
        begun, and whatever the function raises: then it may be tried again.
        """
        attempt = self._record(key, fingerprint_of(payload))
        go = self._awaited if isinstance(self.store, AsyncStore) else self._waited
        return go(attempt, wait, function, result)

    def each(
        self,
        key: Callable[..., str],
        *,
        payload: Callable[..., Any] | None = None,
        wait: float = 0.0,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorate a function, or over an `AsyncStore` an async one: it runs once for each key.

        `key` gives the key of a call's arguments; `payload` what must be the same each time, all the arguments
        unless it is said. An earlier result is read as the type that the function says it returns.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            result = returned(function)
            once = cast("Any", self).once

            @functools.wraps(function)
            def perform(*args: P.args, **kwargs: P.kwargs) -> Any:
                told = (args, kwargs) if payload is None else payload(*args, **kwargs)
                call = functools.partial(function, *args, **kwargs)
                return once(key(*args, **kwargs), call, payload=told, result=result, wait=wait)

            return perform

        return decorate

    def settle(
        self, together: Collected, key: str, *, payload: Any = None, result: Any = None
    ) -> None:
        """Have a transaction of the same database say that the key is done: its writes are made once.

        Where that was so before, the transaction fails, with `AlreadyExists` in this place.
        """
        record = self._record(key, fingerprint_of(payload))
        kept, until = written(result), self._after(self.remember)
        together.create(record.replace(done=True, result=kept, until=until, gone_at=until))

    @operation
    def forget(self, key: str) -> Steps[bool]:
        """Let the work be done again; whether anything was known of the key. Cost: one write."""
        was = yield from self.calls.delete(self._kind, scope=self.scope, key=key)
        return was is not None

    # An attempt

    def _waited(
        self, attempt: IdempotencyRecord, wait: float, function: Callable[[], Any], kind: Any
    ) -> Any:
        run: Any = self.store.run
        record = run(self._begin(attempt, wait))
        if record.done:
            return result_of(record.result, kind)
        try:
            result = function()
        except BaseException:
            run(self._give_up(record))
            raise
        run(self._finish(record, result))
        return result

    async def _awaited(
        self, attempt: IdempotencyRecord, wait: float, function: Callable[[], Any], kind: Any
    ) -> Any:
        run: Any = self.store.run
        try:
            record = await run(self._begin(attempt, wait))
        except asyncio.CancelledError:
            await to_its_end(run(self._give_up(attempt)))  # it may have begun unseen
            raise
        if record.done:
            return result_of(record.result, kind)
        try:
            result = function()
            if inspect.isawaitable(result):
                result = await result
        except BaseException:
            await to_its_end(run(self._give_up(record)))
            raise
        await to_its_end(run(self._finish(record, result)))
        return result

    def _begin(self, attempt: IdempotencyRecord, wait: float) -> Steps[IdempotencyRecord]:
        """The record of an attempt of ours, or one with a result."""
        waited = 0.0
        for nap in pauses(_LONGEST_PAUSE):
            found = yield from self._claim(attempt.replace(**self._times()))
            if found.done or found.attempt == attempt.attempt:
                break
            if waited >= wait:
                raise InProgress(
                    f"{self.scope} {attempt.key!r} is being done since less than {self.lease:g} seconds; try again "
                    f"after {found.until}, or give wait=…",
                    found.attempt,
                    found.until,
                )
            yield Pause(min(nap, wait - waited))
            waited += nap
        return found

    def _claim(self, record: IdempotencyRecord) -> Steps[IdempotencyRecord]:
        """Begin an attempt; its record, or the one that stands in its way."""
        try:
            return (yield from self.calls.create(record))
        except AlreadyExists as refused:
            found: IdempotencyRecord = refused.current
        if found.fingerprint != record.fingerprint:
            raise PayloadDiffers(
                f"{self.scope} {record.key!r} was asked for before with another payload; give another "
                "request another key"
            )
        is_over = found.until.timestamp() + self.skew <= self.now()
        if found.attempt == record.attempt or not is_over:
            return found
        as_seen = IdempotencyRecord.attempt == found.attempt
        as_seen &= IdempotencyRecord.until == found.until  # which its end would have changed
        try:
            return (yield from self.calls.put(record, when=as_seen))
        except ConditionFailed as refused:
            return refused.current or found

    def _finish(self, record: IdempotencyRecord, result: Any) -> Steps[None]:
        """Keep the result. Where it cannot be kept, that is said after it was noted that the work is done."""
        kept: str | None = None
        unkept: UsageError | None = None
        try:
            kept = written(result)
        except UsageError as error:
            unkept = error
        until = self._after(self.remember)
        changes = [
            IdempotencyRecord.done.set(True),
            IdempotencyRecord.result.set(kept),
            IdempotencyRecord.until.set(until),
            IdempotencyRecord.gone_at.set(until),
        ]
        mine = IdempotencyRecord.attempt == record.attempt
        try:
            yield from self.calls.update(
                self._kind, *changes, when=mine, scope=record.scope, key=record.key
            )
        except ConditionFailed:
            raise LeaseLost(
                f"{self.scope} {record.key!r} was done, but took longer than its lease of {self.lease:g} "
                "seconds, and another attempt has begun: give a longer lease"
            ) from None
        if unkept is not None:
            raise unkept

    def _give_up(self, record: IdempotencyRecord) -> Steps[None]:
        """Let another attempt begin at once; without an answer, when the lease is over."""
        mine = IdempotencyRecord.attempt == record.attempt
        with contextlib.suppress(IsotoneError):
            yield from self.calls.delete(self._kind, when=mine, scope=record.scope, key=record.key)

    def _record(self, key: str, fingerprint: str | None) -> IdempotencyRecord:
        return self._kind(
            scope=self.scope,
            key=key,
            attempt=uuid.uuid4().hex,
            fingerprint=fingerprint,
            **self._times(),
        )

    def _times(self) -> dict[str, Any]:
        gone_at = self._after(self.lease + self.skew + self.remember)
        return {"until": self._after(self.lease), "gone_at": gone_at}

    def _after(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC) + timedelta(seconds=seconds)
