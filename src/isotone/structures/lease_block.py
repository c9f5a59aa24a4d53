"""A `with` block that holds a lease: acquires it, renews it in the background, and ends it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from isotone.daemon import Daemon
from isotone.errors import IsotoneError, LeaseLost, UsageError
from isotone.model import AsyncStore, Steps, Store
from isotone.structures.structure import S

T = TypeVar("T")
R = TypeVar("R")
"""The result of `__exit__`: True if the block's error was handled and must not be raised, or None."""


def renewal_interval(lease: float) -> float:
    """Seconds between two renewals of a lease: a third of it, so that a failed renewal can be repeated in time."""
    return lease / 3


class LeaseBlock(Generic[T, R, S]):
    """`with block as it:` over a `Store`, `async with` over an `AsyncStore`.

    `begin` takes the lease, of `lease` seconds. `renew` runs in a thread or a task, every `every` seconds, by default
    every third of the lease; it stops at `LeaseLost`, and other errors of the store are retried. `end` gets the block's
    error, or None. If `end` also fails, the block's error is raised, with the other one as its context. A block without
    `renew` needs no `lease`.
    """

    def __init__(
        self,
        store: S,
        begin: Callable[[], Steps[T]],
        end: Callable[[BaseException | None], Steps[R]],
        renew: Callable[[], Steps[object]] | None = None,
        lease: float = 0.0,
        every: float | None = None,
    ) -> None:
        self._store = store
        self._begin = begin
        self._end = end
        self._renew = renew
        self._every = renewal_interval(lease) if every is None else every
        if renew is not None and not 0 < self._every < lease:
            raise UsageError(
                f"every={self._every:g} does not renew a lease of {lease:g} seconds in time; give less than "
                "the lease, and more than 0"
            )
        self._over = threading.Event()
        self._thread: Daemon | None = None
        self._task: asyncio.Task[None] | None = None

    # In a thread

    def __enter__(self: LeaseBlock[T, R, Store]) -> T:
        self._check_store(Store, "with", "async with")
        begun = self._store.run(self._begin())
        if self._renew is not None:
            self._over.clear()
            self._thread = Daemon(self._keep, "renewing", end=self._over.set)
        return begun

    def __exit__(self: LeaseBlock[T, R, Store], *raised: Any) -> R:
        try:
            self._over.set()
            if self._thread is not None:
                self._thread.join()
        finally:  # even if a signal interrupts the join
            result = self._store.run(self._finish(raised[1]))
        return result

    def _keep(self: LeaseBlock[T, R, Store]) -> None:
        while not self._over.wait(self._every) and self._store.run(self._try_renew()):
            pass

    # In a task

    async def __aenter__(self: LeaseBlock[T, R, AsyncStore]) -> T:
        self._check_store(AsyncStore, "async with", "with")
        try:
            begun = await self._store.run(self._begin())
        except asyncio.CancelledError as cancelled:  # the lease may have been taken
            await _shielded(self._store.run(self._finish(cancelled)))
            raise
        if self._renew is not None:
            self._task = asyncio.create_task(self._keep_async())
        return begun

    async def __aexit__(self: LeaseBlock[T, R, AsyncStore], *raised: Any) -> R:
        return await _shielded(self._finish_async(raised[1]))

    async def _finish_async(self: LeaseBlock[T, R, AsyncStore], error: BaseException | None) -> R:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        return await self._store.run(self._finish(error))

    async def _keep_async(self: LeaseBlock[T, R, AsyncStore]) -> None:
        await asyncio.sleep(self._every)
        while await self._store.run(self._try_renew()):
            await asyncio.sleep(self._every)

    # Shared by both

    def _try_renew(self) -> Steps[bool]:
        """Renew the lease; False if there is nothing left to renew."""
        assert self._renew is not None
        try:
            yield from self._renew()
        except (LeaseLost, UsageError):  # UsageError: the block itself has ended the lease
            return False
        except IsotoneError:  # the store may not respond: the next attempt is still in time
            pass
        return True

    def _finish(self, error: BaseException | None) -> Steps[R]:
        try:
            return (yield from self._end(error))
        except IsotoneError:
            if error is None:
                raise
            raise error  # noqa: B904 - the block's error; the other one is its context

    def _check_store(self, kind: type[Store | AsyncStore], statement: str, other: str) -> None:
        if not isinstance(self._store, kind):
            raise UsageError(
                f"use `{other}`, not `{statement}`, with a structure over {type(self._store).__name__}"
            )


async def _shielded(work: Coroutine[Any, Any, T]) -> T:
    """Await work to its end even when cancelled; the cancellation is raised after it."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as again:
            cancelled = again
    if cancelled is not None and not task.cancelled():
        task.exception()  # asyncio warns about errors that are never retrieved
        raise cancelled
    return task.result()
