"""Calls without I/O: what an operation asks of its backend, one request after the other.

An operation is a generator that yields a `Call` for each request and is sent the response; what it returns
is the result. It yields a `Pause` where it has to wait (a throttled batch, a table that is being created)
and is sent an empty response when the time is over. So there is one implementation of each operation, and
`Store.run` and `AsyncStore.run` are two thin ways to execute it.

    def describe(name: str) -> Steps[str]:
        response = yield Call("DescribeTable", {"TableName": name})
        return response["Table"]["TableStatus"]

One deadline runs through all retries of an operation. It begins with the first pause of a row of failed
attempts; the backend gets it with each request, so that its own retries share it.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Final, NamedTuple, TypeVar

from isotone.backends.interface import Request, Response
from isotone.errors import (
    DeadlineExceeded,
    IsotoneError,
    ResourceNotFoundException,
    ValidationException,
)

R = TypeVar("R")


class Call(NamedTuple):
    """One request to the backend."""

    operation: str
    request: Request


class Pause(NamedTuple):
    """Seconds to wait before the next request.

    `attempt` counts failed attempts since the last progress: 1, 2, … for a pause before a retry, which
    the deadline ends, and 0 for waiting until something is ready.
    """

    seconds: float
    attempt: int = 0


Steps = Generator[Call | Pause, Response, R]
Batches = Generator[Steps[list[R]], list[R], None]
"""An operation that is read bit by bit: it yields steps that read some results, and is sent these."""


class Deadline:
    """Until when the retries of one operation may go on."""

    __slots__ = ("_patience", "until")

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.until: float | None = None

    def allow(self, pause: Pause) -> None:
        """Raise `DeadlineExceeded` where a retry would begin too late."""
        if pause.attempt == 0:
            return
        now = time.monotonic()
        if pause.attempt == 1 or self.until is None:
            self.until = now + self._patience
        elif now + pause.seconds > self.until:
            raise DeadlineExceeded(
                f"{pause.attempt} attempts failed within {self._patience:g} seconds, and no more time is "
                "left; try again later, or connect with a longer deadline="
            )


_OTHER_KEY: Final = "The provided key element does not match the schema"
_ABOUT_TABLES: Final = frozenset({"DescribeTable", "DeleteTable", "UpdateTable"})


def with_hint(error: IsotoneError, call: Call) -> IsotoneError:
    """The error in AWS's words, with a hint where these leave a newcomer alone."""
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
