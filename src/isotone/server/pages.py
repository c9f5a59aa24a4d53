"""The seam for web pages on the server's own address: what a page is asked for, and who answers.

The server knows no page. `serve(…, pages=…)` takes a function that says who answers a visit; a visit that nobody
answers is a request like any other. Every visit has passed `admission`: its host is allowed, and so is the origin of
the page that sent it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from isotone.server.response import Page


class Visit(NamedTuple):
    """A request that is not one of the DynamoDB API. Header names are in lower case."""

    method: bytes
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes


Answering = Callable[[Visit], Awaitable[Page]]
"""Answers a visit, on the event loop: it must not block."""

Pages = Callable[[Visit], Answering | None]
"""Who answers a visit; None if it is for no page."""


class Visited(NamedTuple):
    """A visit and who answers it."""

    visit: Visit
    answering: Answering


def visited(
    pages: Pages, method: bytes, url: bytes, headers: Mapping[bytes, bytes], body: bytes
) -> Visited | None:
    """The visit that a request is; None for a request of the API."""
    path, _, query = url.partition(b"?")
    visit = Visit(
        method, path, query, {name.lower(): value for name, value in headers.items()}, body
    )
    answering = pages(visit)
    return None if answering is None else Visited(visit, answering)
