"""Runs requests: reads immediately, the writes of one event-loop turn as one group.

A write is acknowledged once it is on disk, and a sync costs the same for one write as for a hundred. So all
writes that arrive in one turn of the event loop, on any connection, are committed as one group and answered
after the commit. While a group commits, the next one accumulates in the socket buffers: the busier the
server, the larger the groups.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from isotone.errors import ApiError, InternalServerError, IsotoneError
from isotone.server.exchange import Call

Result = bytes | ApiError
Answer = Callable[[Result], None]
"""Delivers a result to its connection. It must not raise: the rest of the group waits for it."""

_IDLE_MAINTENANCE: Final = 1.0  # seconds between checks for background work when there is none
_DATA_OPERATIONS: Final = frozenset(
    {
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "DescribeTable",
        "GetItem",
        "ListTables",
        "PutItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
    }
)

log = logging.getLogger("isotone.server")


class Service(Protocol):
    """What the server needs from a database; `backends.embedded.Database` implements it."""

    def send(self, operation: str, body: bytes) -> bytes: ...

    def send_many(self, requests: Sequence[tuple[str, bytes]]) -> list[bytes | ApiError]: ...

    def is_write(self, operation: str) -> bool: ...

    def maintain(self) -> float | None: ...

    def close(self) -> None: ...


class Dispatcher:
    """Runs calls on one service, on the thread of one event loop."""

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop) -> None:
        self._service = service
        self._loop = loop
        self._is_write = service.is_write
        self._send = service.send
        self._chatty = log.isEnabledFor(logging.DEBUG)
        self._group: list[tuple[Call, Answer]] = []
        self._maintenance: asyncio.TimerHandle | None = None

    def submit(self, call: Call, answer: Answer) -> Result | None:
        """The result of a read; None for a write, whose result the group's commit passes to `answer`."""
        if self._chatty:
            log.debug("%s, %d bytes", call.operation, len(call.body))
        if self._is_write(call.operation):
            if not self._group:
                self._loop.call_soon(self.commit)
            self._group.append((call, answer))
            return None
        try:
            return self._send(call.operation, call.body)
        except ApiError as error:
            return error
        except Exception as error:  # noqa: BLE001 - an error must not end the connection
            return _unexpected(error, call.operation)
        finally:
            if call.operation not in _DATA_OPERATIONS:
                self.maintain_soon()

    def commit(self) -> None:
        """Run the waiting writes as one group, and answer them."""
        group, self._group = self._group, []
        if not group:
            return
        requests = [(call.operation, call.body) for call, _ in group]
        results: Sequence[Result]
        try:
            results = self._service.send_many(requests)
        except Exception as error:  # noqa: BLE001 - what was committed is unknown, so all requests fail
            operations = sorted({operation for operation, _ in requests})
            results = [_unexpected(error, ", ".join(operations))] * len(group)
        for (_, answer), result in zip(group, results, strict=True):
            answer(result)
        if not _DATA_OPERATIONS.issuperset(operation for operation, _ in requests):
            self.maintain_soon()

    def maintain_soon(self) -> None:
        """Check for new background work in the next turn of the event loop."""
        self._maintain_in(0.0)

    def stop_maintenance(self) -> None:
        """Cancel the next check for background work."""
        if self._maintenance is not None:
            self._maintenance.cancel()
            self._maintenance = None

    def _maintain_in(self, seconds: float) -> None:
        self.stop_maintenance()
        self._maintenance = self._loop.call_later(seconds, self._maintain)

    def _maintain(self) -> None:
        try:
            seconds = self._service.maintain()
        except Exception:
            log.exception("background work failed; it will be tried again")
            seconds = None
        self._maintain_in(_IDLE_MAINTENANCE if seconds is None else max(seconds, 0.0))


def _unexpected(error: Exception, operation: str) -> InternalServerError:
    """The answer to an unexpected error. The message of an `IsotoneError` (a full disk) is passed on."""
    if isinstance(error, IsotoneError):
        log.error("%s failed: %s", operation, error)
        return InternalServerError(str(error))
    log.error("%s failed unexpectedly", operation, exc_info=error)
    return InternalServerError(
        "The server encountered an internal error trying to fulfill the request."
    )
