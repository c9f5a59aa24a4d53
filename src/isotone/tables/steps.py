"""`Steps`: an operation as a generator of requests and pauses, which `runners` execute, with or without async.

An operation is a generator that yields a `Call` for each request and is sent the response; its return
value is the result. To wait, it yields a `Pause` (a throttled batch, a table that is being created)
and is sent an empty response when the time is over; to have several operations run at the same time, it
yields them `Together` (the segments of a scan). So there is one implementation of each operation, and
`Store.run` and `AsyncStore.run` are two thin ways to execute it.

    def describe(name: str) -> Steps[str]:
        response = yield Call("DescribeTable", {"TableName": name})
        return response["Table"]["TableStatus"]
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final, TypeVar, final

from msgspec import Struct

from isotone.backends.capabilities import Capabilities
from isotone.backends.engines import EngineIdentity
from isotone.backends.interface import Request, Response
from isotone.errors import IsotoneError, ResourceNotFoundException, ValidationException

R = TypeVar("R")


@final
class Call(Struct, frozen=True, gc=False):
    """One request to the backend. With `may_be_json`, the response's Items may be in JSON (`msgspec.Raw`)."""

    operation: str
    request: Request
    may_be_json: bool = False


@final
class Pause(Struct, frozen=True, gc=False):
    """Seconds to wait before the next request.

    `attempt` counts failed attempts since the last progress: 1, 2, … for a pause before a retry, to which the deadline
    applies; 0 for waiting until something is ready.
    """

    seconds: float
    attempt: int = 0


@final
@dataclass(frozen=True, slots=True)
class Together:
    """Operations to run at the same time; the operation that yields it continues when all have ended.

    They return nothing, and share what they change with the operation that made them. If one of them fails, the
    others are still run to their end, and the first error is raised.
    """

    operations: tuple[Steps[None], ...]


@final
@dataclass(frozen=True, slots=True)
class IdentifyEngine:
    """Determine which engine the backend is, unless it is known."""

    engine: EngineIdentity


Steps = Generator[Call | Pause | Together | IdentifyEngine, Response, R]
Batches = Generator[Steps[list[R]], list[R], None]
"""An operation whose results come in batches: it yields steps that read a batch, and is sent their results."""


def capabilities_of(engine: EngineIdentity) -> Steps[Capabilities]:
    """What the engine can do. Asks the server once, if its address does not identify the engine."""
    if engine.known is None:
        yield IdentifyEngine(engine)
    return engine.capabilities


_OTHER_KEY: Final = "The provided key element does not match the schema"
_ABOUT_TABLES: Final = frozenset({"DescribeTable", "DeleteTable", "UpdateTable"})


def with_hint(error: IsotoneError, call: Call) -> IsotoneError:
    """Add a hint to an error, if AWS's message does not say what to do."""
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
