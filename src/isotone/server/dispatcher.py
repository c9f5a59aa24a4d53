"""Runs requests: small writes of one event-loop turn as one group, all others immediately.

A write is acknowledged once it is on disk, and a sync costs the same for one write as for a hundred. So all
writes of items that arrive in one turn of the event loop, on any connection, are committed as one group and
answered after the commit. While a group commits, the next one accumulates in the socket buffers: the busier the
server, the larger the groups.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from isotone.errors import ApiError, ConnectionFailed, InternalServerError, IsotoneError
from isotone.server.request import Call

Result = bytes | ApiError | ConnectionFailed
"""What a request is answered with. `ConnectionFailed` breaks the connection: a fault that a test ordered."""

Answer = Callable[[Result], None]
"""Delivers a result to its connection. It must not raise: the rest of the group waits for it."""

Address = tuple[str, int]
"""The host and the port of a node."""

log = logging.getLogger("isotone.server")


class Service(Protocol):
    """What the server needs from a database; `backends.embedded.Database` implements it."""

    def send(self, operation: str, body: bytes) -> bytes: ...

    def send_many(self, requests: Sequence[tuple[str, bytes]]) -> Sequence[Result]: ...

    def is_grouped(self, operation: str) -> bool: ...

    def in_region(self, name: str) -> Service:
        """What answers the requests that are signed for a region."""

    def start_maintenance(self) -> None: ...

    def close(self) -> None: ...


class Dispatcher:
    """Runs calls on one service, on the thread of one event loop."""

    def __init__(
        self, service: Service, loop: asyncio.AbstractEventLoop, nodes: Sequence[Address] = ()
    ) -> None:
        self._service = service
        self._nodes = nodes
        self._loop = loop
        self._is_grouped = service.is_grouped
        self._logs_requests = log.isEnabledFor(logging.DEBUG)
        self._group: list[tuple[Call, Answer]] = []

    def local_nodes(self, own: Address) -> bytes:
        """The answer to `GET /localnodes`: the nodes of the cluster, or this one alone, in JSON.

        As in ScyllaDB's Alternator they are addresses without a port, if all nodes have the same.
        """
        nodes = self._nodes or (own,)
        if all(port == own[1] for _, port in nodes):
            return msgspec.json.encode([host for host, _ in nodes])
        shown = [(f"[{host}]" if ":" in host else host, port) for host, port in nodes]
        return msgspec.json.encode([f"{host}:{port}" for host, port in shown])

    def submit(self, call: Call, answer: Answer) -> Result | None:
        """The result of a request; None for a grouped one, whose result the commit passes to `answer`."""
        if self._logs_requests:
            log.debug("%s, %d bytes", call.operation, len(call.body))
        if self._is_grouped(call.operation):
            if not self._group:
                self._loop.call_soon(self.commit)
            self._group.append((call, answer))
            return None
        return self.run(call)

    def run(self, call: Call) -> Result:
        """Run a call now."""
        try:
            return self._service.in_region(call.region).send(call.operation, call.body)
        except (ApiError, ConnectionFailed) as error:
            return error
        except Exception as error:  # noqa: BLE001 - an error must not end the connection
            return _logged_failure(error, call.operation)

    def commit(self) -> None:
        """Run the waiting writes as one group, and answer them."""
        group, self._group = self._group, []
        if not group:
            return
        by_region: dict[str, list[tuple[Call, Answer]]] = {}
        for entry in group:
            by_region.setdefault(entry[0].region, []).append(entry)
        for region, part in by_region.items():
            self._commit_in(region, part)

    def _commit_in(self, region: str, group: list[tuple[Call, Answer]]) -> None:
        requests = [(call.operation, call.body) for call, _ in group]
        results: Sequence[Result]
        try:
            results = self._service.in_region(region).send_many(requests)
        except ApiError as error:
            results = [error] * len(group)
        except Exception as error:  # noqa: BLE001 - what was committed is unknown, so all requests fail
            operations = sorted({operation for operation, _ in requests})
            results = [_logged_failure(error, ", ".join(operations))] * len(group)
        for (_, answer), result in zip(group, results, strict=True):
            answer(result)


class ThreadedDispatcher(Dispatcher):
    """Runs each call in a thread, so that one which waits delays no other."""

    def submit(self, call: Call, answer: Answer) -> Result | None:
        """None: the answer comes later."""
        self._loop.run_in_executor(None, self._run_and_answer, call, answer)
        return None

    def _run_and_answer(self, call: Call, answer: Answer) -> None:
        self._loop.call_soon_threadsafe(answer, self.run(call))


def _logged_failure(error: Exception, operation: str) -> InternalServerError:
    """Log an unexpected error; returns its answer. The message of an `IsotoneError` (a full disk) is passed on."""
    if isinstance(error, IsotoneError):
        log.error("%s failed: %s", operation, error)
        return InternalServerError(str(error))
    log.error("%s failed unexpectedly", operation, exc_info=error)
    return InternalServerError(
        "The server encountered an internal error trying to fulfill the request."
    )
