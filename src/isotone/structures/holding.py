"""Holding a lock for a block of code, and renewing it meanwhile: by a thread, or by a task."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Generic

from isotone.errors import IsotoneError, LeaseLost, UsageError
from isotone.model.async_store import AsyncStore
from isotone.model.store import Store
from isotone.structures.operation import S

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
        self._every = every
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    # Waiting

    def __enter__(self: Holding[Store]) -> Lock[Store]:
        if isinstance(self._lock.store, AsyncStore):
            raise UsageError("a lock over an AsyncStore is held by `async with`")
        self._lock.acquire(self._timeout, wait=self._wait)
        self._thread = threading.Thread(target=self._keep, name="renewing a lock", daemon=True)
        self._thread.start()
        return self._lock

    def _keep(self: Holding[Store]) -> None:
        while not self._stop.wait(self._every):
            try:
                self._lock.renew()
            except LeaseLost:
                return
            except IsotoneError:  # no answer; there is time for another attempt, or there is none
                if not self._lock.is_held:
                    return

    def __exit__(
        self: Holding[Store],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        self._stop.set()
        self._thread.join()
        try:
            self._lock.release()
        except LeaseLost:
            if kind is None:
                raise

    # Awaiting

    async def __aenter__(self: Holding[AsyncStore]) -> Lock[AsyncStore]:
        if not isinstance(self._lock.store, AsyncStore):
            raise UsageError("a lock over a Store is held by `with`")
        await self._lock.acquire(self._timeout, wait=self._wait)
        self._task = asyncio.create_task(self._keep_async())
        return self._lock

    async def _keep_async(self: Holding[AsyncStore]) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._lock.renew()
            except LeaseLost:
                return
            except IsotoneError:
                if not self._lock.is_held:
                    return

    async def __aexit__(
        self: Holding[AsyncStore],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        try:
            await self._lock.release()
        except LeaseLost:
            if kind is None:
                raise
