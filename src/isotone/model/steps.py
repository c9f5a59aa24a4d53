"""Calls without I/O: what a library call asks of its backend, one request after the other.

A library call is a generator that yields a `Call` for each request and is sent the response; what it
returns is the result. So there is one implementation, and two thin ways to run it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeVar

from isotone.backends.interface import AsyncBackend, Backend, Request, Response
from isotone.errors import ApiError

R = TypeVar("R")


class Call(NamedTuple):
    """One request to the backend."""

    operation: str
    request: Request


Steps = Generator[Call, Response, R]


def run(steps: Steps[R], backend: Backend) -> R:
    """Run a library call to its end; an API error is raised where the call made its request."""
    try:
        call = next(steps)
        while True:
            try:
                response = backend.execute(*call)
            except ApiError as error:
                call = steps.throw(error)
            else:
                call = steps.send(response)
    except StopIteration as end:
        result: R = end.value
        return result


async def run_async(steps: Steps[R], backend: AsyncBackend) -> R:
    """`run`, with answers that are awaited."""
    try:
        call = next(steps)
        while True:
            try:
                response = await backend.execute(*call)
            except ApiError as error:
                call = steps.throw(error)
            else:
                call = steps.send(response)
    except StopIteration as end:
        result: R = end.value
        return result
