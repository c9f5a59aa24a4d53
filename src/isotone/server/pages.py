"""Web pages on the server's own address, such as the workbench: which requests are for a page, and what answers them.

The server itself has no pages. `serve(…, pages=…)` takes a function from a request to the handler of its page, or to
None: then the request is one of the DynamoDB API. Requests for pages have passed `admission`: their Host and Origin are
allowed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from isotone.server.response import BROKEN, PlainResponse

log: logging.Logger = logging.getLogger("isotone.server")


class PageRequest(NamedTuple):
    """A request that may be for a page. Header names are in lower case."""

    method: bytes
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes


PageHandler = Callable[[PageRequest], Awaitable[PlainResponse]]
"""Answers a request for a page. It runs on the event loop, so it must not block."""

Pages = Callable[[PageRequest], PageHandler | None]
"""The handler of a request; None if it is not for a page."""


class RoutedPageRequest(NamedTuple):
    """A request for a page, and its handler."""

    request: PageRequest
    handler: PageHandler


class PageRequests:
    """The requests for pages of one server, on its event loop."""

    def __init__(self, pages: Pages, loop: asyncio.AbstractEventLoop) -> None:
        self._pages = pages
        self._loop = loop
        self._running: set[asyncio.Task[None]] = set()

    def routed(
        self, method: bytes, url: bytes, headers: Mapping[bytes, bytes], body: bytes
    ) -> RoutedPageRequest | None:
        """A request with its handler; None for a request of the DynamoDB API."""
        return _routed(self._pages, method, url, headers, body)

    def start(self, routed: RoutedPageRequest, answer: Callable[[PlainResponse], None]) -> None:
        """Run the handler, and pass its response to `answer` later."""
        task = self._loop.create_task(_answer(routed, answer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def stop(self) -> None:
        """Cancel the requests that are not answered yet: some wait for a change of a table."""
        for task in list(self._running):
            task.cancel()


async def _answer(routed: RoutedPageRequest, answer: Callable[[PlainResponse], None]) -> None:
    try:
        page = await response_of(routed.request, routed.handler)
    except asyncio.CancelledError:
        answer(BROKEN)
        raise
    answer(page)


async def response_of(request: PageRequest, handler: PageHandler) -> PlainResponse:
    """The handler's response; `BROKEN` (500) if it raises."""
    try:
        return await handler(request)
    except Exception:  # a fault of one page is a 500 for its visitor, not the end of the server
        log.exception("a page could not be answered: %s", request.path.decode("latin-1"))
        return BROKEN


def _routed(
    pages: Pages, method: bytes, url: bytes, headers: Mapping[bytes, bytes], body: bytes
) -> RoutedPageRequest | None:
    path, _, query = url.partition(b"?")
    request = PageRequest(
        method, path, query, {name.lower(): value for name, value in headers.items()}, body
    )
    handler = pages(request)
    return None if handler is None else RoutedPageRequest(request, handler)
