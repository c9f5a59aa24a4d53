"""A block in which a message of a queue is handled: acknowledged at its end, given back where it raises."""

from __future__ import annotations

import contextlib
import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, cast

from isotone.errors import IsotoneError, LeaseLost
from isotone.model.async_store import AsyncStore
from isotone.model.store import Store
from isotone.structures.operation import S
from isotone.structures.queue.entities import Message
from isotone.structures.renewing import Renewing

if TYPE_CHECKING:
    from isotone.structures.queue.queue import Queue

_LOGGER: Final = logging.getLogger("isotone.queue")


class Handling(Generic[S]):
    """`with queue.handling(message):` or `async with queue.handling(message):`."""

    def __init__(self, queue: Queue[S], message: Message, *, keep: bool) -> None:
        self._queue = queue
        self._message = message
        self._renewing: Renewing | None = None
        if keep:
            extend = cast("Any", queue).extend
            self._renewing = Renewing(lambda: extend(message), queue.hold / 3, lambda: True)

    def __enter__(self: Handling[Store]) -> Message:
        if self._renewing is not None:
            self._renewing.start()
        return self._message

    def __exit__(
        self: Handling[Store],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._renewing is not None:
            self._renewing.stop()
        if error is None:
            self._queue.acknowledge(self._message)
            return False
        delay, reason = self._failed(error)
        with contextlib.suppress(self._lesser(error)):
            self._queue.give_back(self._message, delay=delay, reason=reason)
        return isinstance(error, Exception)

    async def __aenter__(self: Handling[AsyncStore]) -> Message:
        if self._renewing is not None:
            self._renewing.start_task()
        return self._message

    async def __aexit__(
        self: Handling[AsyncStore],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._renewing is not None:
            await self._renewing.stop_task()
        if error is None:
            await self._queue.acknowledge(self._message)
            return False
        delay, reason = self._failed(error)
        with contextlib.suppress(self._lesser(error)):
            await self._queue.give_back(self._message, delay=delay, reason=reason)
        return isinstance(error, Exception)

    def _lesser(self, error: BaseException) -> type[IsotoneError]:
        """What giving back may raise without being told: nothing comes before an interruption.

        Somebody else has a lost message, and any other comes back when its claim runs out.
        """
        return LeaseLost if isinstance(error, Exception) else IsotoneError

    def _failed(self, error: BaseException) -> tuple[float, str]:
        """When to try again, and why; an interruption is not the message's fault, so it need not wait."""
        if not isinstance(error, Exception):
            return 0.0, f"interrupted by {type(error).__name__}"
        attempts = self._message.attempts
        _LOGGER.warning(
            "attempt %d at message %s of %r failed",
            attempts,
            self._message.id,
            self._queue.name,
            exc_info=error,
        )
        return self._queue.retry_after(attempts), f"{type(error).__name__}: {error}"
