"""With --workers: the process that answers the requests for web pages (the workbench) of all fronts.

One process answers them all, because a page's jobs live in memory. The first request for a page starts it. Each front
decides by itself which requests are for a page, and forwards those.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any, Final, Protocol

import msgspec

from isotone.server import process_control as orders
from isotone.server.dispatcher import FrontService
from isotone.server.pages import PageHandler, PageRequest, Pages, response_of
from isotone.server.process_channel import Channel, OnOutcome, Outcome
from isotone.server.process_control import Order
from isotone.server.process_messages import Request
from isotone.server.response import BROKEN, PlainResponse

PAGE_PATH: Final = "/page"

_encode: Final = msgspec.msgpack.Encoder().encode
_page_request: Final = msgspec.msgpack.Decoder(PageRequest).decode
_response: Final = msgspec.msgpack.Decoder(PlainResponse).decode


class PagesProcess:
    """The role of the process with the pages. `end` is its first channel; further fronts connect by orders."""

    def __init__(self, service: FrontService, pages: Pages, end: socket.socket) -> None:
        self._service = service
        self._pages = pages
        self._first = end
        self._loop = asyncio.get_running_loop()
        self._channels: set[Channel] = set()
        self._running: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        await self._open(self._first)

    def handle(self, order: Order) -> None:
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
        channel.answer(request.number, await answered(self._pages, request.body))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)


async def answered(pages: Pages, body: bytes) -> bytes:
    """The response to a forwarded request for a page, as bytes."""
    request = _page_request(body)
    handler = pages(request)
    return _encode(BROKEN if handler is None else await response_of(request, handler))


class AsksProcess(Protocol):
    """A connection to another process; `take` is called on the running event loop with what comes of a request."""

    def ask(self, operation: str, body: bytes, region: str, take: OnOutcome) -> None: ...


def forwarded(pages: Pages, link: AsksProcess) -> Pages:
    """The same pages for a front: it decides which requests are for a page, and sends those to the other process."""

    async def answer(request: PageRequest) -> PlainResponse:
        answered: asyncio.Future[PlainResponse] = asyncio.get_running_loop().create_future()

        def take(outcome: Outcome) -> None:
            if not answered.done():  # the request may have been cancelled
                answered.set_result(_response(outcome) if isinstance(outcome, bytes) else BROKEN)

        link.ask(PAGE_PATH, _encode(request), "", take)
        return await answered

    def handler(request: PageRequest) -> PageHandler | None:
        return None if pages(request) is None else answer

    return handler
