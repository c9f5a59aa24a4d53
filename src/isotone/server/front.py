"""A front (--workers): a `Listener` in a process, which executes reads, sends writes to the writer, and stops like one.

A front is the `Listener` of a server of one process, with three differences: the supervisor accepts its connections,
requests that may write go to the writer, and the writer makes `/healthz`, `/metrics` and `/hotkeys` for the whole server.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Unpack

from isotone.errors import InternalServerError
from isotone.server import process_control as orders
from isotone.server.body_budget import BODY_BUDGET, Bodies
from isotone.server.connection import ServerConnection
from isotone.server.dispatcher import Deliver, Dispatcher, FrontService, Result, Service
from isotone.server.exposition import MetricFamily
from isotone.server.gathering import packed, unpacked
from isotone.server.listener import Listener, ServerOptions, admission_of
from isotone.server.monitor import Monitor, health_page, json_page, metrics_page
from isotone.server.pages import Pages
from isotone.server.pages_process import forwarded
from isotone.server.process_channel import Channel, Link, Outcome
from isotone.server.process_control import Order
from isotone.server.process_messages import (
    HEALTH_PATH,
    HOT_KEYS_PATH,
    METRICS_PATH,
    QUERIES_PATH,
    WITH_TABLES,
    Request,
)
from isotone.server.request import ServiceCall
from isotone.server.response import BROKEN, NOT_FOUND, PlainResponse
from isotone.server.shared_counts import SharedBodies, SharedCounts

log: logging.Logger = logging.getLogger("isotone.server")


class FrontDispatcher(Dispatcher):
    """Executes reads, and sends all other requests to the writer; without `reads` it sends all."""

    def __init__(self, service: FrontService, *rest: Any, link: Link, reads: bool) -> None:
        super().__init__(service, *rest)
        self._link = link
        self._is_read = service.is_read if reads else _never

    def submit(self, call: ServiceCall, deliver: Deliver) -> Result | None:
        """The result of a read; None for a request sent to the writer, whose result `deliver` gets later."""
        if self._is_read(call.operation, call.body):
            return super().submit(call, deliver)
        if self._is_watched:
            self._tell(call)
        self._link.ask(call.operation, call.body, call.region, deliver)
        return None


def _never(operation: str, body: bytes) -> bool:
    return False


_PAGES: Final[Mapping[str, Callable[[bytes], PlainResponse]]] = {
    HEALTH_PATH: lambda text: health_page(text.decode()),
    METRICS_PATH: lambda families: metrics_page(unpacked(families)),
    HOT_KEYS_PATH: json_page,
    QUERIES_PATH: json_page,
}
"""Makes each page of the writer's answer."""


class FrontMonitor(Monitor):
    """The counts of a front. The writer makes its pages, from the counts of all fronts."""

    def __init__(self, *rest: Any, link: Link, bodies: SharedBodies, **options: Any) -> None:
        super().__init__(*rest, **options)
        self.bodies: Bodies = bodies
        self._link = link

    def page(
        self, path: str, peer: Any, answer: Callable[[PlainResponse], None]
    ) -> PlainResponse | None:
        """Ask for a page about the whole server."""
        if not self.shows(path, peer):
            return NOT_FOUND
        if path == HEALTH_PATH and not self._link.is_open:
            return health_page("the process that writes is being replaced")

        def take(outcome: Outcome) -> None:
            answer(_PAGES[path](outcome) if isinstance(outcome, bytes) else BROKEN)

        of_tables = path == METRICS_PATH and self.names_tables
        self._link.ask(path, WITH_TABLES if of_tables else b"", "", take)
        return None

    def answer_writer(self, channel: Channel, request: Request) -> None:
        """Answer the writer with this front's hot keys or metrics."""
        if request.operation == HOT_KEYS_PATH:
            hot_keys = self.hot_keys
            error = InternalServerError("this server counts no keys")
            channel.answer(request.number, error if hot_keys is None else hot_keys.json())
        elif request.operation == QUERIES_PATH:
            channel.answer(request.number, self._service.served())
        else:

            def add(families: list[MetricFamily]) -> None:
                channel.answer(request.number, packed(families))

            self.measure(bool(request.body), add)


class FrontListener(Listener):
    """The listener of a front: the supervisor accepts its connections."""

    def __init__(
        self,
        service: FrontService,
        number: int,
        counts: SharedCounts,
        **options: Unpack[ServerOptions],
    ) -> None:
        self._number = number
        self._counts = counts
        self._front_service = service
        self.link: Link = Link(self._answer_writer)
        self._arriving: set[asyncio.Task[Any]] = set()
        super().__init__(service, **options)
        if self._gate is not None:
            self._gate.share_log(counts.torn_line)

    def _new_monitor(self) -> FrontMonitor:
        options = self._options
        budget = options.get("body_budget", BODY_BUDGET)
        self._own_monitor = FrontMonitor(
            self._service,
            self._loop,
            lambda: len(self._connections),
            link=self.link,
            bodies=SharedBodies(budget, self._counts, self._number),
            body_budget=budget,
            access_log=options.get("access_log", False),
            metrics_for_all=options.get("metrics_for_all", False),
            names_tables=options.get("credentials") is None,
        )
        return self._own_monitor

    def _new_dispatcher(self) -> Dispatcher:
        return FrontDispatcher(
            self._front_service,
            self._loop,
            self._options.get("nodes", ()),
            self._monitor.metrics,
            link=self.link,
            reads=not self._options.get("threaded"),
        )

    def begin(self, host: str, listening: socket.socket) -> None:
        """Start to serve the connections that `take` gets. `listening` is the supervisor's socket."""
        self._admission = admission_of(host, listening, self._options)
        self._begin(listening)

    def take(self, connection: socket.socket) -> None:
        """Serve a connection of a client."""
        connection.setblocking(False)
        task = self._loop.create_task(self._establish(connection))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    async def _establish(self, connection: socket.socket) -> None:
        is_secure = self._certificate is not None
        try:
            await self._loop.connect_accepted_socket(
                self._new_connection,
                connection,
                ssl=self._certificate,
                ssl_handshake_timeout=self._timeouts.head if is_secure else None,
            )
        except OSError as error:  # also an ssl.SSLError of the handshake
            self._counts.end(self._number)
            log.debug("a connection could not be established: %s", error)

    def _is_full(self) -> bool:
        return self._counts.all_served() >= self._most_connections

    def _connected(self, connection: ServerConnection) -> None:
        super()._connected(connection)
        self._counts.set_served(self._number, len(self._connections))

    def _disconnected(self, connection: ServerConnection) -> None:
        super()._disconnected(connection)
        self._counts.set_served(self._number, len(self._connections))
        self._counts.end(self._number)

    def _answer_writer(self, channel: Channel, request: Request) -> None:
        self._own_monitor.answer_writer(channel, request)

    async def stop(self, *grace: float) -> None:
        """Answer received requests, and close every connection and the channel."""
        await super().stop(*grace)
        self.link.close()


class Services(NamedTuple):
    """Open the database in a new process: in a front, in the writer, and in the process with the pages if there is one."""

    front: Callable[[], FrontService]
    writer: Callable[[], Service]
    pages: Callable[[FrontService], Pages] | None = None


class SharedSettings(NamedTuple):
    """What the supervisor passes to every process that it forks."""

    services: Services
    counts: SharedCounts
    host: str
    listening: socket.socket
    options: ServerOptions


class FrontProcess:
    """The role of a front."""

    def __init__(
        self, shared: SharedSettings, number: int, end: socket.socket, control: socket.socket
    ) -> None:
        self._shared = shared
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._service = service = shared.services.front()
        self._pages = Link(lambda *_: None, lambda: orders.send(control, orders.PAGES))
        options = shared.options.copy()
        if shared.services.pages is not None:
            options["pages"] = forwarded(shared.services.pages(service), self._pages)
        self._listener = FrontListener(service, number, shared.counts, **options)
        self._connecting: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        await self._listener.link.connect(self._end)
        self._listener.begin(self._shared.host, self._shared.listening)
        self._shared.listening.close()

    def handle(self, order: Order) -> None:
        if order.kind == orders.RELOAD:
            self._listener.reload()
        elif order.end is None:
            return
        elif order.kind == orders.CONNECTION:
            self._listener.take(order.end)
        elif order.kind == orders.CHANNEL:
            self._connect(self._listener.link, order.end)
        elif order.kind == orders.PAGES:
            self._connect(self._pages, order.end)

    def _connect(self, link: Link, end: socket.socket) -> None:
        task = self._loop.create_task(link.connect(end))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def end(self) -> None:
        await self._listener.stop()
        self._pages.close()
        self._service.close()
