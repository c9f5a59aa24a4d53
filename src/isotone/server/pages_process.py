"""The process that answers visits of web pages, for all fronts: what a page has begun, such as a job, is in one place.

It is started by the first visit. A front decides by itself whether a request is a visit, and passes it on.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from isotone.server import process_control as orders
from isotone.server.dispatcher import FrontService
from isotone.server.pages import Answering, Pages, Visit, answer_of
from isotone.server.process_channel import Channel, Link, Outcome
from isotone.server.process_control import Order
from isotone.server.process_messages import Request
from isotone.server.response import BROKEN, PlainResponse

VISIT: Final = "/visit"

_encode: Final = msgspec.msgpack.Encoder().encode
_visit: Final = msgspec.msgpack.Decoder(Visit).decode
_response: Final = msgspec.msgpack.Decoder(PlainResponse).decode


class PagesProcess:
    """The role of the process with the pages."""

    def __init__(self, service: FrontService, pages: Pages, end: socket.socket) -> None:
        self._service = service
        self._pages = pages
        self._first = end
        self._loop = asyncio.get_running_loop()
        self._channels: set[Channel] = set()
        self._running: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        await self._open(self._first)

    def obey(self, order: Order) -> None:
        if order.kind == orders.PAGES and order.end is not None:
            self._run(self._open(order.end))

    async def end(self) -> None:
        for task in list(self._running):
            task.cancel()
        for channel in list(self._channels):
            channel.close()
        self._service.close()

    async def _open(self, end: socket.socket) -> None:
        channel = Channel(self._serve, self._channels.discard)
        await channel.open(end)
        self._channels.add(channel)

    def _serve(self, channel: Channel, request: Request) -> None:
        self._run(self._answer(channel, request))

    async def _answer(self, channel: Channel, request: Request) -> None:
        visit = _visit(request.body)
        answering = self._pages(visit)
        page = BROKEN if answering is None else await answer_of(visit, answering)
        channel.answer(request.number, _encode(page))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)


def passed_on(pages: Pages, link: Link) -> Pages:
    """Pages that say the same about who answers a visit, and let the other process do it."""

    async def answer(visit: Visit) -> PlainResponse:
        answered: asyncio.Future[PlainResponse] = asyncio.get_running_loop().create_future()

        def take(outcome: Outcome) -> None:
            if not answered.done():  # the visit may have been given up
                answered.set_result(_response(outcome) if isinstance(outcome, bytes) else BROKEN)

        link.ask(VISIT, _encode(visit), "", take)
        return await answered

    def answering(visit: Visit) -> Answering | None:
        return None if pages(visit) is None else answer

    return answering
