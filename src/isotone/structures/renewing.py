"""Renewing a lease in the background, by a thread or by a task, until it is lost or no longer needed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from isotone.errors import IsotoneError, LeaseLost


class Renewing:
    """Calls `renew` every so many seconds, as long as `is_alive()`.

    A renewal that gets no answer is tried again, while there is time; one that comes too late is the last.
    """

    def __init__(
        self, renew: Callable[[], Any], every: float, is_alive: Callable[[], bool]
    ) -> None:
        self._renew = renew
        self._every = every
        self._is_alive = is_alive
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="renewing a lease", daemon=True)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Renew in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Renew no longer; when this returns, no renewal is under way."""
        self._stop.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self._renew()
            except LeaseLost:
                return
            except IsotoneError:
                if not self._is_alive():
                    return

    def start_task(self) -> None:
        """Renew in a task of the running loop; `renew` is awaited."""
        self._task = asyncio.create_task(self._keep_async())

    async def stop_task(self) -> None:
        """Renew no longer."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _keep_async(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._renew()
            except LeaseLost:
                return
            except IsotoneError:
                if not self._is_alive():
                    return
