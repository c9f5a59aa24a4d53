"""The seam between the library and whatever engine keeps its data.

A backend takes one action of the DynamoDB API and answers it. The model above makes requests and reads
responses and cannot tell an embedded file from Amazon's service; the engines below never hear of models.

Requests and responses are DynamoDB JSON as Python's own containers: attribute values in wire form
(`{"N": "10"}`, `{"B": "<base64>"}`), times as seconds since the epoch. A backend does not change the
request it was given, and the caller may keep and change the response. An answer of the API that is an
error is raised as the `isotone.errors.ApiError` of its name.

Whoever runs the model asynchronously takes an `AsyncBackend`, the same method awaited. `InThread` makes
one from any `Backend`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from isotone.errors import ApiError, Unsupported, UsageError

Request = Mapping[str, Any]
Response = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do. All of it is true of DynamoDB; other engines lack some.

    What an engine cannot do is refused where a table or a structure that needs it is made.

    >>> ALTERNATOR = Capabilities(transactions=False, streams=False)
    """

    transactions: bool = True
    streams: bool = True
    expiry: bool = True
    local_indexes: bool = True

    def require(self, needs: Iterable[str], what: str) -> None:
        """Raise `Unsupported` that names what is missing of the needs (names of fields of this class)."""
        missing = [need for need in needs if not getattr(self, need)]
        if missing:
            raise Unsupported(
                f"{what} needs {' and '.join(missing).replace('_', ' ')}, which this engine does not have; "
                "use another engine, or connect with other capabilities="
            )


DYNAMODB: Final = Capabilities()


class Backend(Protocol):
    """Anything that answers the DynamoDB API."""

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Answer one action, such as `("GetItem", {"TableName": …, "Key": …})`.

        A backend that repeats failed requests stops at the deadline, in seconds of `time.monotonic`.
        """


class AsyncBackend(Protocol):
    """A `Backend` whose answers are awaited."""

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Answer one action."""


class Transport(Protocol):
    """Request bytes to response bytes: the wire form of the API, without a socket."""

    def execute(self, operation: str, body: bytes) -> bytes:
        """Answer one action, JSON to JSON; raises `ApiError` as the service would answer it."""


class InProcess:
    """The `Backend` of a `Transport`, such as a database in this process."""

    __slots__ = ("_execute",)

    def __init__(self, execute: Callable[[str, bytes], bytes]) -> None:
        self._execute = execute

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        try:
            answer = self._execute(operation, msgspec.json.encode(request))
        except ApiError as error:
            # Items in an error's members are JSON still, as they would be on their way to a client.
            error.members = msgspec.json.decode(msgspec.json.encode(error.members))
            raise
        response: Response = msgspec.json.decode(answer)
        return response


class Plain:
    """The `Backend` of an object of the user's with `execute(operation, request)`."""

    __slots__ = ("_execute",)

    def __init__(self, execute: Callable[[str, Request], Response]) -> None:
        self._execute = execute

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        return self._execute(operation, request)


class AsyncPlain:
    """The `AsyncBackend` of an object of the user's with `async execute(operation, request)`."""

    __slots__ = ("_execute",)

    def __init__(self, execute: Callable[[str, Request], Awaitable[Response]]) -> None:
        self._execute = execute

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        return await self._execute(operation, request)


class AtOnce:
    """An `AsyncBackend` of a `Backend` that never waits."""

    __slots__ = ("_execute",)

    def __init__(self, backend: Backend) -> None:
        self._execute = backend.execute

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        return self._execute(operation, request)


class InThread:
    """An `AsyncBackend` that calls a `Backend` in a worker thread, so that waiting blocks no event loop."""

    __slots__ = ("_backend",)

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        return await asyncio.to_thread(self._backend.execute, operation, request, deadline)


class Tape:
    """A backend that plays back answers prepared for it and remembers what it was asked.

    >>> tape = Tape([{"Item": {"pk": {"S": "a"}}}])
    >>> tape.execute("GetItem", {"TableName": "t", "Key": {"pk": {"S": "a"}}})
    {'Item': {'pk': {'S': 'a'}}}
    >>> tape.asked
    [('GetItem', {'TableName': 't', 'Key': {'pk': {'S': 'a'}}})]
    """

    __slots__ = ("_answers", "asked")

    def __init__(self, answers: Iterable[Response | ApiError] = ()) -> None:
        self._answers = iter(answers)
        self.asked: list[tuple[str, Request]] = []

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Give the next answer; raises it where it is an error, `UsageError` when none is left."""
        self.asked.append((operation, request))
        try:
            answer = next(self._answers)
        except StopIteration:
            raise UsageError(
                f"the tape has no answer left for {operation}, call {len(self.asked)}; give it more"
            ) from None
        if isinstance(answer, ApiError):
            raise answer
        return answer
