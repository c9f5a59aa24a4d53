"""Decides when a server executes a request: a read at once, writes in groups (group commit), a long request in a lane.

A write is acknowledged once it is on disk, and a sync costs the same for one write as for a hundred. So all item writes that
arrive in one turn of the event loop, on any connection, are committed as one group and answered after the commit. While a
group commits, the next one accumulates in the socket buffers: the busier the server, the larger the groups.

While another process writes to the file, a group waits for it in a thread, and the writes that arrive meanwhile become the
next group. Reads continue.

Long requests run in another process (`lanes`), or in a thread if there are none. The service recognizes them by their action
and size, or raises `TakesLong` before it has changed anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec

from isotone.daemon import Daemon
from isotone.errors import (
    ApiError,
    ConnectionFailed,
    InternalServerError,
    IsotoneError,
    StorageBusy,
    TakesLong,
)
from isotone.server.exposition import Labels
from isotone.server.metrics import Metrics
from isotone.server.request import ServiceCall

if TYPE_CHECKING:  # most servers have no users
    from isotone.server.policies import PolicyQuery

Result = bytes | ApiError | ConnectionFailed
"""The result of a request. `ConnectionFailed` breaks the connection: a fault that a test ordered."""

Results = Sequence[bytes | Exception]
"""The result of each request of a group; `TakesLong` for one that must run in a lane or a thread."""

OnRequest = Callable[[str, bytes, str], object]
"""Called with the action, the body and the region of a request before it runs."""

Deliver = Callable[[Result], None]
"""Delivers a result to its connection. It must not raise, because the rest of the group comes after it."""

Requests = Sequence[tuple[str, bytes]]
"""Actions, each with its body."""

T = TypeVar("T")

Address = tuple[str, int]
"""The host and the port of a node."""

LARGE_BODY: Final = 64 * 1024  # bytes of a body that take a millisecond to decode
_SHORT_BODY: Final = 1024  # bytes; a request of this size is never long by its body
# Bytes of a group's writes; with more, the rest waits until other requests were served.
_LARGE_GROUP: Final = 128 * 1024

log: logging.Logger = logging.getLogger("isotone.server")


class Service(Protocol):
    """What the server needs from a database; `backends.embedded.Database` implements it."""

    def send(self, operation: str, body: bytes, region: str = "") -> bytes:
        """The response to a request that is signed for a region."""

    def send_many(self, requests: Requests, region: str = "") -> Results:
        """The results of requests to a region, which are committed together."""

    def health(self) -> str:
        """Why the service cannot read or write now; empty if it can."""

    def gauges(self) -> Mapping[str, float]:
        """The service's metrics without labels, by their Prometheus names."""

    def measure(self) -> None:
        """Start to count what `series` returns."""

    def series(self) -> Iterable[tuple[str, Labels, float]]:
        """The service's metrics of each table: Prometheus name, labels, value."""

    def served(self, others: Sequence[bytes] = ()) -> bytes:
        """What requests have cost since `measure`, by their shape, as JSON; `others` are the same of other processes."""

    def allow_waiting(self, allowed: bool) -> None:
        """Whether calls of this thread may take long.

        If not, they raise `StorageBusy` at once while another process writes, and `TakesLong` before a long computation.
        """

    def is_grouped(self, operation: str, body: bytes) -> bool: ...

    def is_long(self, operation: str, body: bytes) -> bool:
        """Whether a request takes long by its action and its bytes; others may still raise `TakesLong`."""

    @property
    def account(self) -> str:
        """The account in ARNs."""

    def accesses(self, operation: str, body: bytes, region: str = "") -> Sequence[PolicyQuery]:
        """The permissions that a request to a region needs. Raises the service's error for a malformed request."""

    def has_policies(self, operation: str, region: str = "") -> bool:
        """Whether the policy of a resource may forbid a request even to an unlimited user."""

    def start_maintenance(self) -> None: ...

    def close(self) -> None: ...


class FrontService(Service, Protocol):
    """What a front needs from its database: only the writer's process may write."""

    def is_read(self, operation: str, body: bytes) -> bool:
        """Whether a request changes nothing."""


class GatheringService(FrontService, Protocol):
    """A service whose reads are faster together, because each alone would cost a round trip."""

    def send_reads(self, requests: Requests, region: str = "") -> Results:
        """The results of requests that change nothing, each as if it were alone."""


class LongCalls(Protocol):
    """Runs long calls outside of the event loop's process (`lanes.Lanes`)."""

    def run(self, call: ServiceCall, deliver: Deliver) -> None: ...

    def stop(self) -> None: ...


class Dispatcher:
    """Runs calls on one service, on the thread of one event loop."""

    def __init__(
        self,
        service: Service,
        loop: asyncio.AbstractEventLoop,
        nodes: Sequence[Address] = (),
        metrics: Metrics | None = None,
    ) -> None:
        self._metrics = metrics or Metrics()
        self._groups = self._metrics.groups
        self._service = service
        self._nodes = nodes
        self._loop = loop
        self._on_request: OnRequest | None = None
        self._logs_requests = self._is_watched = log.isEnabledFor(logging.DEBUG)
        self._group: list[tuple[ServiceCall, Deliver]] = []
        self._group_size = 0
        self._long_work: Thread[Any] = Thread(loop, "isotone-long-work")
        self._waiting_calls: Thread[Result] = Thread(loop, "isotone-waiting-calls")
        self._waiting_groups: Thread[Results] = Thread(loop, "isotone-waiting-groups")
        self._waiting = 0  # groups
        self._lanes: LongCalls | None = None
        self._may_wait(False)

    def use_lanes(self, lanes: LongCalls) -> None:
        """Run long requests in lanes from now on."""
        self._lanes = lanes

    def watch(self, on_request: OnRequest | None) -> None:
        """Call a function with each request before it runs; None ends that."""
        self._on_request = on_request
        self._is_watched = self._logs_requests or on_request is not None

    def _tell(self, call: ServiceCall) -> None:
        """Log a request, and pass it to who watches."""
        if self._logs_requests:
            log.debug("%s, %d bytes", call.operation, len(call.body))
        if self._on_request is not None:
            self._on_request(call.operation, call.body, call.region)

    def run_long(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Call `work`, which must not raise, in the thread for long work; pass what it returns to `then` on the event loop."""
        self._long_work.run(work, then)

    def local_nodes(self, own: Address) -> bytes:
        """The response to `GET /localnodes`: the nodes of the cluster, or this one alone, in JSON.

        As in ScyllaDB's Alternator they are addresses without a port; with it if the nodes' ports differ.
        """
        nodes = self._nodes or (own,)
        if all(port == own[1] for _, port in nodes):
            return msgspec.json.encode([host for host, _ in nodes])
        shown = [(f"[{host}]" if ":" in host else host, port) for host, port in nodes]
        return msgspec.json.encode([f"{host}:{port}" for host, port in shown])

    def submit(self, call: ServiceCall, deliver: Deliver) -> Result | None:
        """The result of a request; None for a grouped or a long one, whose result is passed to `deliver` later."""
        if self._is_watched:
            self._tell(call)
        service, operation, body = self._service, call.operation, call.body
        size = len(body)
        if size > _SHORT_BODY and service.is_long(operation, body):
            self._do_long(call, deliver)
            return None
        if service.is_grouped(operation, body):
            if not self._group and not self._waiting:
                self._loop.call_soon(self.run_group)
            self._group.append((call, deliver))
            self._group_size += size
            return None
        try:
            return service.send(operation, body, call.region)
        except TakesLong:
            self._do_long(call, deliver)
            return None
        except StorageBusy:
            self._waiting_calls.run(partial(self.run, call), deliver)
            return None
        except Exception as error:  # noqa: BLE001 - an error must not end the connection
            return logged_failure(error, operation)

    def _do_long(self, call: ServiceCall, deliver: Deliver) -> None:
        """Execute a request in a lane, or in the thread for long work."""
        self._metrics.long_work += 1
        if self._lanes is not None:
            self._lanes.run(call, deliver)
        else:
            self.run_in_thread(call, deliver)

    def run_in_thread(self, call: ServiceCall, deliver: Deliver) -> None:
        """Execute a long request in the thread for long work."""
        self.run_long(partial(self.run, call), deliver)

    def stop(self) -> None:
        """End the threads and the lanes without waiting for their calls."""
        if self._lanes is not None:
            self._lanes.stop()
        for thread in (self._long_work, self._waiting_calls, self._waiting_groups):
            thread.stop()
        self._may_wait(True)

    def run(self, call: ServiceCall) -> Result:
        """Run a call now."""
        try:
            return self._service.send(call.operation, call.body, call.region)
        except Exception as error:  # noqa: BLE001 - an error must not end the connection, or the thread
            return logged_failure(error, call.operation)

    def _may_wait(self, allowed: bool) -> None:
        self._service.allow_waiting(allowed)

    def run_group(self) -> None:
        """Run the collected writes as one group, and answer them, unless an earlier group is waiting."""
        if self._waiting or not self._group:
            return
        group = self._next_group()
        self._groups.add(len(group))
        if len(group) == 1:  # it has one region
            self._run_in_region(group[0][0].region, group)
            return
        by_region: dict[str, list[tuple[ServiceCall, Deliver]]] = {}
        for entry in group:
            by_region.setdefault(entry[0].region, []).append(entry)
        for region, part in by_region.items():
            self._run_in_region(region, part)

    def _next_group(self) -> list[tuple[ServiceCall, Deliver]]:
        """The collected writes, as many as fit into this turn of the event loop; the rest follows in the next one."""
        group = self._group
        if self._group_size <= _LARGE_GROUP or len(group) == 1:
            self._group, self._group_size = [], 0
            return group
        count = size = 0
        for count, (call, _) in enumerate(group):
            if count and size + len(call.body) > _LARGE_GROUP:
                break
            size += len(call.body)
        self._group = group[count:]
        self._group_size -= size
        self._loop.call_soon(self.run_group)
        return group[:count]

    def _run_in_region(self, region: str, group: list[tuple[ServiceCall, Deliver]]) -> None:
        requests = [(call.operation, call.body) for call, _ in group]
        try:
            results = self._results(region, requests)
        except StorageBusy:
            self._waiting += 1
            run = partial(self._results_after_waiting, region, requests)
            self._waiting_groups.run(run, partial(self._answer_later, group))
        else:
            self._answer_all(group, results)

    def _answer_later(self, group: list[tuple[ServiceCall, Deliver]], results: Results) -> None:
        """Answer a group that has waited, and run the writes that were collected meanwhile."""
        self._waiting -= 1
        self._answer_all(group, results)
        self.run_group()

    def _answer_all(self, group: list[tuple[ServiceCall, Deliver]], results: Results) -> None:
        """Answer a group. Its long requests, which it has not executed, start now."""
        for (call, deliver), result in zip(group, results, strict=True):
            if isinstance(result, bytes):
                deliver(result)
            elif isinstance(result, TakesLong):
                self._do_long(call, deliver)
            else:
                deliver(logged_failure(result, call.operation))

    def _results_after_waiting(self, region: str, requests: Requests) -> Results:
        try:
            return self._results(region, requests)
        except StorageBusy as error:
            return _all_failed(requests, error)

    def _results(self, region: str, requests: Requests) -> Results:
        """The results of a group; raises `StorageBusy` if another process is writing and this thread may not wait."""
        try:
            return self._service.send_many(requests, region)
        except StorageBusy:
            raise
        except Exception as error:  # noqa: BLE001 - it is unknown what was committed, so all requests fail
            return _all_failed(requests, error)


def _all_failed(requests: Requests, error: Exception) -> Sequence[Result]:
    operations = sorted({operation for operation, _ in requests})
    return [logged_failure(error, ", ".join(operations))] * len(requests)


class Thread(Generic[T]):
    """A thread that runs calls one after the other, and passes their results on, on the event loop.

    The interpreter's exit waits for the running call, but not for long.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._name = name
        self._calls: SimpleQueue[tuple[Callable[[], T], Callable[[T], None]] | None] = SimpleQueue()
        self._is_running = False

    def run(self, call: Callable[[], T], answer: Callable[[T], None]) -> None:
        """Run a call after those before it; pass what it returns to `answer`."""
        self._calls.put((call, answer))
        if not self._is_running:
            self._is_running = True
            Daemon(self._work, self._name, end=self.stop)

    def stop(self) -> None:
        """End the thread after its current call; drop the calls that wait."""
        with contextlib.suppress(Empty):
            while True:
                self._calls.get_nowait()
        self._calls.put(None)

    def _work(self) -> None:
        while (entry := self._calls.get()) is not None:
            call, answer = entry
            result = call()
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(answer, result)
            del entry, call, answer, result  # frees them before the next call arrives


class GatheringDispatcher(Dispatcher):
    """Runs the reads that arrive in one turn of the event loop together."""

    _service: GatheringService

    def __init__(self, service: GatheringService, *others: Any, **more: Any) -> None:
        super().__init__(service, *others, **more)
        self._reads: list[tuple[ServiceCall, Deliver]] = []

    def submit(self, call: ServiceCall, deliver: Deliver) -> Result | None:
        """None for a read, too: its result is passed to `deliver` at the end of the turn."""
        is_short = len(call.body) <= _SHORT_BODY
        if not is_short or not self._service.is_read(call.operation, call.body):
            return super().submit(call, deliver)
        if self._is_watched:
            self._tell(call)
        if not self._reads:
            self._loop.call_soon(self._run_reads)
        self._reads.append((call, deliver))
        return None

    def _run_reads(self) -> None:
        reads, self._reads = self._reads, []
        by_region: dict[str, list[tuple[ServiceCall, Deliver]]] = {}
        for entry in reads:
            by_region.setdefault(entry[0].region, []).append(entry)
        for region, part in by_region.items():
            requests = [(call.operation, call.body) for call, _ in part]
            try:
                results = self._service.send_reads(requests, region)
            except Exception as error:  # noqa: BLE001 - an error must not end the event loop
                results = _all_failed(requests, error)
            self._answer_all(part, results)


class ThreadedDispatcher(Dispatcher):
    """Runs each call in a thread, for services that wait (`threaded`): no call delays another."""

    def _may_wait(self, allowed: bool) -> None:
        """Do nothing: its calls run in threads, which may wait."""

    def submit(self, call: ServiceCall, deliver: Deliver) -> Result | None:
        """None: the answer comes later."""
        if self._is_watched:
            self._tell(call)
        self._loop.run_in_executor(None, self._run_and_answer, call, deliver)
        return None

    def _run_and_answer(self, call: ServiceCall, deliver: Deliver) -> None:
        self._loop.call_soon_threadsafe(deliver, self.run(call))


def logged_failure(error: Exception, operation: str) -> ApiError | ConnectionFailed:
    """The API error for the exception of a request. Failures of the server are logged.

    The client gets the message of an `IsotoneError` (a full disk), but nothing of an unexpected exception.
    """
    if isinstance(error, ApiError | ConnectionFailed):
        if isinstance(error, ApiError) and error.status >= 500:
            log.error("%s failed: %s", operation, error)
        return error
    if isinstance(error, IsotoneError):
        log.error("%s failed: %s", operation, error)
        return InternalServerError(str(error))
    log.error("%s failed unexpectedly", operation, exc_info=error)
    return InternalServerError(
        "The server encountered an internal error trying to fulfill the request."
    )
