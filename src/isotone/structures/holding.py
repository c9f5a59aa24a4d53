"""Holding a lock for a block of code, and renewing it meanwhile."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, cast

from isotone.errors import IsotoneError, UsageError
from isotone.model.async_store import AsyncStore
from isotone.model.store import Store
from isotone.structures.operation import S
from isotone.structures.renewing import Renewing

if TYPE_CHECKING:
    from isotone.structures.lock import Lock


class Holding(Generic[S]):
    """`with lock.held():` or `async with lock.held():`, for once."""

    def __init__(self, lock: Lock[S], timeout: float, wait: float, every: float) -> None:
        if not 0 < every < lock.lease:
            raise UsageError(
                f"a lease of {lock.lease:g} seconds has to be renewed before it is over, not every {every:g}"
            )
        self._lock = lock
        self._timeout = timeout
        self._wait = wait
        self._renewing = Renewing(cast("Any", lock).renew, every, lambda: lock.is_held)

    def __enter__(self: Holding[Store]) -> Lock[Store]:
        if isinstance(self._lock.store, AsyncStore):
            raise UsageError("a lock over an AsyncStore is held by `async with`")
        self._lock.acquire(self._timeout, wait=self._wait)
        self._renewing.start()
        return self._lock

    def __exit__(
        self: Holding[Store],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._renewing.stop()
        try:
            self._lock.release()
        except IsotoneError:  # what the block raised comes first; the lease runs out by itself
            if kind is None:
                raise

    async def __aenter__(self: Holding[AsyncStore]) -> Lock[AsyncStore]:
        if not isinstance(self._lock.store, AsyncStore):
            raise UsageError("a lock over a Store is held by `with`")
        await self._lock.acquire(self._timeout, wait=self._wait)
        self._renewing.start_task()
        return self._lock

    async def __aexit__(
        self: Holding[AsyncStore],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._renewing.stop_task()
        try:
            await self._lock.release()
        except IsotoneError:  # what the block raised comes first; the lease runs out by itself
            if kind is None:
                raise
