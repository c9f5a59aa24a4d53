"""The seam for web pages on the server's own address: what a page is asked for, and who answers.

The server knows no page. `serve(…, pages=…)` takes a function that says who answers a visit; a visit that nobody
answers is a request like any other. Every visit has passed `admission`: its host is allowed, and so is the origin of
the page that sent it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from isotone.server.response import BROKEN, PlainResponse

log: logging.Logger = logging.getLogger("isotone.server")


class Visit(NamedTuple):
    """A request that is not one of the DynamoDB API. Header names are in lower case."""

    method: bytes
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes


Answering = Callable[[Visit], Awaitable[PlainResponse]]
"""Answers a visit, on the event loop: it must not block."""

Pages = Callable[[Visit], Answering | None]
"""Who answers a visit; None if it is for no page."""


class Visited(NamedTuple):
    """A visit and who answers it."""

    visit: Visit
    answering: Answering


class Visits:
    """The visits of one server, on its event loop."""

    def __init__(self, pages: Pages, loop: asyncio.AbstractEventLoop) -> None:
        self._pages = pages
        self._loop = loop
        self._running: set[asyncio.Task[None]] = set()

    def visited(
        self, method: bytes, url: bytes, headers: Mapping[bytes, bytes], body: bytes
    ) -> Visited | None:
        """The visit that a request is; None for a request of the API."""
        return _visited(self._pages, method, url, headers, body)

    def start(self, visited: Visited, answer: Callable[[PlainResponse], None]) -> None:
        """Answer a visit, later."""
        task = self._loop.create_task(_answer(visited, answer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def stop(self) -> None:
        """Cancel the visits that are not answered yet: some wait for what changes."""
        for task in list(self._running):
            task.cancel()


async def _answer(visited: Visited, answer: Callable[[PlainResponse], None]) -> None:
    try:
        page = await answer_of(visited.visit, visited.answering)
    except asyncio.CancelledError:
        answer(BROKEN)
        raise
    answer(page)


async def answer_of(visit: Visit, answering: Answering) -> PlainResponse:
    """The answer to a visit, whatever happens to who answers it."""
    try:
        return await answering(visit)
    except Exception:
        log.exception("a page could not be answered: %s", visit.path.decode("latin-1"))
        return BROKEN


def _visited(
    pages: Pages, method: bytes, url: bytes, headers: Mapping[bytes, bytes], body: bytes
) -> Visited | None:
    path, _, query = url.partition(b"?")
    visit = Visit(
        method, path, query, {name.lower(): value for name, value in headers.items()}, body
    )
    answering = pages(visit)
    return None if answering is None else Visited(visit, answering)
