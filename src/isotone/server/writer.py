"""The writer (--workers): the process that executes the writes of all fronts, and background work (TTL, streams).

It uses the same `Dispatcher` as a server of one process: writes that arrive together, from any fronts, are one commit.
Operations that begin with a slash bypass it: `/healthz` is the writer's own state; for `/metrics`, `/hotkeys` and `/queries`
the writer asks all fronts and adds up their answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from isotone.server import process_control as orders
from isotone.server.dispatcher import Dispatcher, Service, ThreadedDispatcher
from isotone.server.exposition import MetricFamily
from isotone.server.gathering import Gathering, all_families, all_hot_keys, packed
from isotone.server.lanes import use_lanes
from isotone.server.listener import ServerOptions
from isotone.server.monitor import Monitor
from isotone.server.process_channel import Channel, OnOutcome
from isotone.server.process_control import Order
from isotone.server.process_messages import (
    HEALTH_PATH,
    HOT_KEYS_PATH,
    METRICS_PATH,
    QUERIES_PATH,
    Request,
)
from isotone.server.request import ServiceCall
from isotone.server.response import ORDINARY

_WAIT_FOR_FRONTS: Final = 10.0  # seconds that a stopping writer waits for its last front


class WriterProcess:
    """The role of the writer."""

    def __init__(
        self, service: Service, ends: Sequence[socket.socket], options: ServerOptions
    ) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._service = service
        self._ends = ends
        self._monitor = Monitor(service, loop, lambda: 0, body_budget=0)
        make = ThreadedDispatcher if options.get("threaded") else Dispatcher
        self._dispatcher = make(service, loop, metrics=self._monitor.metrics)
        if (keeper := options.get("lanes")) is not None:
            use_lanes(self._dispatcher, service, keeper, options.get("workers", 1))
        self._fronts: set[Channel] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._no_front_left = asyncio.Event()

    async def begin(self) -> None:
        for end in self._ends:
            await self._open(end)
        self._service.measure()
        self._service.start_maintenance()

    def handle(self, order: Order) -> None:
        if order.kind == orders.CHANNEL and order.end is not None:
            task = self._loop.create_task(self._open(order.end))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def end(self) -> None:
        """Wait until all fronts have closed their channels, and close the database."""
        if self._fronts:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._no_front_left.wait(), _WAIT_FOR_FRONTS)
        self._dispatcher.run_group()
        self._dispatcher.stop()
        self._monitor.stop()
        for channel in list(self._fronts):
            channel.close()
        self._service.close()

    async def _open(self, end: socket.socket) -> None:
        channel = Channel(self._serve, self._lost)
        await channel.open(end)
        self._fronts.add(channel)

    def _lost(self, channel: Channel) -> None:
        self._fronts.discard(channel)
        if not self._fronts:
            self._no_front_left.set()

    def _serve(self, channel: Channel, request: Request) -> None:
        answer = partial(channel.answer, request.number)
        operation = request.operation
        if operation.startswith("/"):
            return self._answer_for_server(operation, request.body, answer)
        call = ServiceCall(operation, request.body, ORDINARY, request.region)
        outcome = self._dispatcher.submit(call, answer)
        if outcome is not None:
            answer(outcome)
        return None

    def _answer_for_server(self, path: str, body: bytes, answer: OnOutcome) -> None:
        """Answer a front with the health, the metrics or the hot keys of the whole server."""
        if path == HEALTH_PATH:
            answer(self._service.health().encode(errors="replace"))
        elif path == HOT_KEYS_PATH:
            self._gather(path, body, lambda parts: answer(all_hot_keys(parts)))
        elif path == QUERIES_PATH:
            self._gather(path, body, lambda parts: answer(self._service.served(parts)))
        elif path == METRICS_PATH:
            self._gather(path, body, partial(self._measure, bool(body), answer))

    def _gather(self, path: str, body: bytes, then: Callable[[list[bytes]], object]) -> None:
        gathering = Gathering(len(self._fronts), then)
        for channel in list(self._fronts):
            channel.ask(path, body, "", gathering.take)

    def _measure(self, of_tables: bool, answer: OnOutcome, parts: list[bytes]) -> None:
        """Measure the writer's own metrics, and answer with the sum of those and the fronts' (`parts`)."""

        def add(own: list[MetricFamily]) -> None:
            answer(packed(all_families(own, parts)))

        self._monitor.measure(of_tables, add)
