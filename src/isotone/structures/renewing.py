"""A block in which something is leased: renewed in the background while it runs, and given up at its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from isotone.errors import IsotoneError, LeaseLost, UsageError
from isotone.model import AsyncStore, Steps, Store
from isotone.structures.operation import S

T = TypeVar("T")
R = TypeVar("R")
"""What a block's end says: that an error is settled by it, or nothing."""


class Leased(Generic[T, R, S]):
    """`with leased as it:` over a `Store`, `async with` over an `AsyncStore`.

    `begin` takes the lease. `renew` is repeated `every` so many seconds, by a thread or a task, until it raises
    `LeaseLost`; where it fails otherwise, it is tried again. `end` is told what the block raised, and says
    whether that is settled by it. Where it fails as well, what the block raised comes first.
    """

    def __init__(
        self,
        store: S,
        begin: Callable[[], Steps[T]],
        end: Callable[[BaseException | None], Steps[R]],
        renew: Callable[[], Steps[object]] | None,
        every: float,
    ) -> None:
        self._store = store
        self._begin = begin
        self._end = end
        self._renew = renew
        self._every = every
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    # In a thread

    def __enter__(self: Leased[T, R, Store]) -> T:
        self._must_be_over(Store, "with")
        begun = self._store.run(self._begin())
        if self._renew is not None:
            self._over.clear()
            self._thread = threading.Thread(target=self._keep, name="renewing", daemon=True)
            self._thread.start()
        return begun

    def __exit__(self: Leased[T, R, Store], *raised: Any) -> R:
        try:
            self._over.set()
            if self._thread is not None:
                self._thread.join()
        finally:  # also where somebody interrupts the waiting
            is_settled = self._store.run(self._ended(raised[1]))
        return is_settled

    def _keep(self: Leased[T, R, Store]) -> None:
        while not self._over.wait(self._every) and self._store.run(self._renewed()):
            pass

    # In a task

    async def __aenter__(self: Leased[T, R, AsyncStore]) -> T:
        self._must_be_over(AsyncStore, "async with")
        try:
            begun = await self._store.run(self._begin())
        except asyncio.CancelledError as cancelled:  # it may have begun unseen
            await to_its_end(self._store.run(self._ended(cancelled)))
            raise
        if self._renew is not None:
            self._task = asyncio.create_task(self._keep_async())
        return begun

    async def __aexit__(self: Leased[T, R, AsyncStore], *raised: Any) -> R:
        return await to_its_end(self._end_async(raised[1]))

    async def _end_async(self: Leased[T, R, AsyncStore], error: BaseException | None) -> R:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        return await self._store.run(self._ended(error))

    async def _keep_async(self: Leased[T, R, AsyncStore]) -> None:
        await asyncio.sleep(self._every)
        while await self._store.run(self._renewed()):
            await asyncio.sleep(self._every)

    # In both

    def _renewed(self) -> Steps[bool]:
        """Renew it; whether that is worth to be repeated."""
        assert self._renew is not None
        try:
            yield from self._renew()
        except (LeaseLost, UsageError):  # the latter: the block has given it up by itself
            return False
        except IsotoneError:  # no answer, maybe: there is time left
            pass
        return True

    def _ended(self, error: BaseException | None) -> Steps[R]:
        try:
            return (yield from self._end(error))
        except IsotoneError:
            if error is None:
                raise
            raise error  # noqa: B904 - that of the block, with the other one as its context

    def _must_be_over(self, kind: type[Store | AsyncStore], statement: str) -> None:
        if not isinstance(self._store, kind):
            other = "async with" if statement == "with" else "with"
            raise UsageError(
                f"what is over {type(self._store).__name__} is held by `{other}`, not by `{statement}`"
            )


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await something that is not to be left half done: a cancellation takes effect behind it."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as again:
            cancelled = again
    if cancelled is not None and not task.cancelled():
        task.exception()  # looked at: the loop would complain of one that nobody has seen
        raise cancelled
    return task.result()
