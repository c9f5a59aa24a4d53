"""Calls without I/O: what a library call asks of its backend, one request after the other.

A library call is a generator that yields a `Call` for each request and is sent the response; what it
returns is the result. It yields a `Pause` where it wants to wait (a throttled batch, a table that is
being made) and is sent an empty response when the time is over. So there is one implementation, and two
thin ways to run it.

    def describe(name: str) -> Steps[str]:
        response = yield Call("DescribeTable", {"TableName": name})
        return response["Table"]["TableStatus"]
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from typing import Final, NamedTuple, TypeVar

from isotone.backends import retry
from isotone.backends.interface import AsyncBackend, Backend, Request, Response
from isotone.errors import (
    BatchIncomplete,
    IsotoneError,
    LimitExceededException,
    ResourceNotFoundException,
    StorageBusy,
    StorageFull,
    ValidationException,
)

R = TypeVar("R")


class Call(NamedTuple):
    """One request to the backend."""

    operation: str
    request: Request


class Pause(NamedTuple):
    """Seconds to wait before the next request."""

    seconds: float


Steps = Generator[Call | Pause, Response, R]

# Streams are throttled by this name.
_PASSING: Final = (BatchIncomplete, LimitExceededException, StorageBusy, StorageFull)
_OTHER_KEY: Final = "The provided key element does not match the schema"
_ABOUT_TABLES: Final = frozenset({"DescribeTable", "DeleteTable", "UpdateTable"})


def run(steps: Steps[R], backend: Backend) -> R:
    """Run a library call to its end; an error is raised where the call made its request."""
    execute = backend.execute
    try:
        step = next(steps)
        while True:
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                step = steps.send({})
                continue
            try:
                response = execute(*step)
            except IsotoneError as error:
                step = steps.throw(_explained(error, step))
            else:
                step = steps.send(response)
    except StopIteration as end:
        result: R = end.value
        return result


async def run_async(steps: Steps[R], backend: AsyncBackend) -> R:
    """`run`, with answers and pauses that are awaited."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                step = steps.send({})
                continue
            try:
                response = await backend.execute(*step)
            except IsotoneError as error:
                step = steps.throw(_explained(error, step))
            else:
                step = steps.send(response)
    except StopIteration as end:
        result: R = end.value
        return result


def is_passing(error: Exception) -> bool:
    """Whether the same call may succeed a moment later: no answer, too many requests, a busy file."""
    return retry.is_passing(error) or isinstance(error, _PASSING)


def _explained(error: IsotoneError, call: Call) -> IsotoneError:
    """The error, in AWS's words, with a hint where these leave a newcomer alone."""
    names = _tables_of(call.request)
    if call.operation in _ABOUT_TABLES or not names:
        return error
    if isinstance(error, ResourceNotFoundException):
        error.hint = (
            f"table {names} is not there, or an index of it; "
            "store.create_tables(…) makes it, or create_table() of a structure"
        )
    elif isinstance(error, ValidationException) and _OTHER_KEY in error.message:
        error.hint = (
            f"table {names} was made with other keys than are declared; "
            "store.differences(…) tells which"
        )
    return error


def _tables_of(request: Request) -> str:
    """The tables that a request is about, for a message."""
    names = {request.get("TableName"), *request.get("RequestItems", ())}
    for entry in request.get("TransactItems", ()):
        names.update(members.get("TableName") for members in entry.values())
    return " or ".join(repr(each) for each in sorted(filter(None, names)))
