"""Steps: the requests and pauses of an operation, the back-off between attempts, and the deadline of its retries.

An operation is a generator that yields a `Call` for each request and is sent the response; its return
value is the result. To wait, it yields a `Pause` (a throttled batch, a table that is being created)
and is sent an empty response when the time is over; to have several operations run at the same time, it
yields them `Together` (the segments of a scan). So there is one implementation of each operation, and
`Store.run` and `AsyncStore.run` are two thin ways to execute it.

    def describe(name: str) -> Steps[str]:
        response = yield Call("DescribeTable", {"TableName": name})
        return response["Table"]["TableStatus"]

One deadline runs through all retries of an operation. It begins with the first pause of a series of failed
attempts; the backend gets it with each request, so that its own retries share it.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar, final

from msgspec import Struct

from isotone.backends.engines import Engine
from isotone.backends.interface import Capabilities, Request, Response
from isotone.backends.request_retries import full_jitter
from isotone.errors import (
    Contended,
    DeadlineExceeded,
    IsotoneError,
    ResourceNotFoundException,
    TransactionConflictException,
    ValidationException,
)

R = TypeVar("R")


@final
class Call(Struct, frozen=True, gc=False):
    """One request to the backend. With `json_items`, the response's Items may be in JSON (`msgspec.Raw`)."""

    operation: str
    request: Request
    json_items: bool = False


@final
class Pause(Struct, frozen=True, gc=False):
    """Seconds to wait before the next request.

    `attempt` counts failed attempts since the last progress: 1, 2, … for a pause before a retry, which
    the deadline ends, and 0 for waiting until something is ready.
    """

    seconds: float
    attempt: int = 0


@final
@dataclass(frozen=True, slots=True)
class Together:
    """Operations to run at the same time; the one that yields it goes on when all have ended.

    They return nothing, and share what they change with the operation that made them. If one of them fails, the
    others are still run to their end, and the first error is raised.
    """

    operations: tuple[Steps[None], ...]


@final
@dataclass(frozen=True, slots=True)
class Recognise:
    """Find out what the engine is, unless it is known."""

    engine: Engine


Steps = Generator[Call | Pause | Together | Recognise, Response, R]
Batches = Generator[Steps[list[R]], list[R], None]
"""An operation with results in batches: it yields steps that read a batch, and is sent their results."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often to try, and how long to pause in between: up to `first` seconds, doubled up to `longest`."""

    attempts: int
    first: float
    longest: float

    def pause(self, attempt: int) -> Pause:
        """The pause after failed attempt 1, 2, …"""
        return Pause(full_jitter(attempt, first=self.first, longest=self.longest), attempt)


CONTENTION: Final = Backoff(attempts=12, first=0.005, longest=0.5)
"""For writes that lost a race."""
THROTTLING: Final = Backoff(attempts=10, first=0.1, longest=10.0)
"""For batches of which the service processed nothing."""


def capabilities_of(engine: Engine) -> Steps[Capabilities]:
    """What the engine can do. Asks a server once, if its address does not say what it is."""
    if engine.known is None:
        yield Recognise(engine)
    return engine.capabilities


def write_when_free(call: Call) -> Steps[Response]:
    """Send a write of one item, again while a transaction holds that item."""
    for attempt in range(1, CONTENTION.attempts + 1):
        try:
            return (yield call)
        except TransactionConflictException:
            yield CONTENTION.pause(attempt)
    raise Contended(
        f"transactions held the item of {call.operation} during each of {CONTENTION.attempts} attempts; "
        "try again later"
    )


def poll_pauses() -> Iterator[Pause]:
    """Pauses between checks whether something is ready: from 0.05 s, doubled, up to 5 s."""
    seconds = 0.05
    while True:
        yield Pause(seconds)
        seconds = min(seconds * 2, 5.0)


class Deadline:
    """The time limit for each series of failed attempts of one operation; it starts at the first retry."""

    __slots__ = ("_seconds", "_until")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None

    def until(self) -> float | None:
        """The time by which the backend's own retries of a request must end; None if there is no limit.

        After the limit, an operation that goes on has made progress: `passed_by` would have ended it.
        """
        if self._until is None or time.monotonic() > self._until:
            return None
        return self._until

    def passed_by(self, pause: Pause) -> DeadlineExceeded | None:
        """The error to raise if a retry after the pause would start too late; None otherwise."""
        if pause.attempt == 0:
            return None
        now = time.monotonic()
        if pause.attempt == 1 or self._until is None:
            self._until = now + self._seconds
        if now + pause.seconds <= self._until:
            return None
        return DeadlineExceeded(
            f"gave up after {pause.attempt} attempts: {self._seconds:g} seconds for retries are used up; "
            "try again later, or connect with a longer deadline="
        )


_OTHER_KEY: Final = "The provided key element does not match the schema"
_ABOUT_TABLES: Final = frozenset({"DescribeTable", "DeleteTable", "UpdateTable"})


def with_hint(error: IsotoneError, call: Call) -> IsotoneError:
    """The error with AWS's message, and a hint if that message does not say what to do."""
    names = _table_names(call.request)
    if call.operation in _ABOUT_TABLES or not names:
        return error
    if isinstance(error, ResourceNotFoundException):
        error.hint = (
            f"table {names} or its index does not exist; create it with store.create_tables(…), or with "
            "create_table() of a structure"
        )
    elif isinstance(error, ValidationException) and _OTHER_KEY in error.message:
        error.hint = f"table {names} has other keys than declared; store.differences(…) lists the differences"
    return error


def _table_names(request: Request) -> str:
    """The tables that a request names, for a message."""
    names = {request.get("TableName"), *request.get("RequestItems", ())}
    for entry in request.get("TransactItems", ()):
        names.update(members.get("TableName") for members in entry.values())
    return " or ".join(repr(name) for name in sorted(filter(None, names)))
