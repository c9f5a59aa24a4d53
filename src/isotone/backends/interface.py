"""`Backend`, `AsyncBackend`: the seam between library and engine; `InThread`: an AsyncStore's calls to a file.

A backend executes one action of the DynamoDB API at a time. The model builds requests and reads responses; it cannot
tell an embedded file from Amazon's service. Engines know nothing about the model.

Requests and responses are DynamoDB JSON as Python dicts and lists: attribute values in wire form
(`{"N": "10"}`, `{"B": "<base64>"}`), times as seconds since the epoch. Expressions in a request may be trees
(`isotone.expressions.nodes`). A database in this process executes trees directly; a backend that sends
requests elsewhere calls `as_text` and `with_token` first. A backend must not change the request. The caller may change the
response. Errors of the API are raised as the `isotone.errors.ApiError` of their name.

A backend that stores items as JSON may also have a method `read_json`, with the parameters of `execute`. It returns the
items of a Query or a Scan as JSON (`msgspec.Raw`), and the model decodes them straight into entities.

`AsyncBackend` is the same interface with an async method. `InThread` makes one from any `Backend`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, Protocol

import msgspec

from isotone.errors import ApiError, UsageError
from isotone.expressions import Writer

Request = Mapping[str, Any]
Response = dict[str, Any]


_EXPRESSIONS: Final = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)


def as_text(request: Request) -> Request:
    """The request with expression trees rendered as text; the request itself if it has none.

    >>> from isotone.expressions.nodes import Comparison, Literal, Path
    >>> as_text({"FilterExpression": Comparison("=", Path(("kind",)), Literal({"S": "a"}))})
    {'FilterExpression': 'kind = :v0', 'ExpressionAttributeValues': {':v0': {'S': 'a'}}}
    """
    if "TransactItems" in request:
        entries = [
            {action: as_text(members) for action, members in entry.items()}
            for entry in request["TransactItems"]
        ]
        return {**request, "TransactItems": entries}
    if "RequestItems" in request:  # of a BatchGetItem, or the lists of writes of a BatchWriteItem
        tables = {
            table: as_text(entry) if isinstance(entry, Mapping) else entry
            for table, entry in request["RequestItems"].items()
        }
        return {**request, "RequestItems": tables}
    trees = {
        name: request[name]
        for name in _EXPRESSIONS
        if name in request and not isinstance(request[name], str)
    }
    if not trees:
        return request
    writer = Writer()
    texts = {name: writer.text(tree) for name, tree in trees.items()}
    rendered = {**request, **texts}
    if writer.names:
        rendered["ExpressionAttributeNames"] = writer.names
    if writer.values:
        rendered["ExpressionAttributeValues"] = writer.values
    return rendered


def with_token(operation: str, request: Request) -> Request:
    """The request; a transaction gets a token, so that a retry after a lost answer does not execute it twice."""
    if operation != "TransactWriteItems" or "ClientRequestToken" in request:
        return request
    return {**request, "ClientRequestToken": os.urandom(16).hex()}


class Backend(Protocol):
    """Anything that answers the DynamoDB API."""

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Answer one action, such as `("GetItem", {"TableName": …, "Key": …})`.

        A backend that retries stops at the deadline, which is a time of `time.monotonic`.
        """


class AsyncBackend(Protocol):
    """A `Backend` whose answers are awaited."""

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Answer one action."""


class Native:
    """The base of Isotone's own backends, which take expression trees and deadlines.

    With `takes_json`, the items of a request may be in JSON (`msgspec.Raw`).
    """

    __slots__ = ()
    takes_json: ClassVar[bool] = False


class Transport(Protocol):
    """Sends request bytes and returns response bytes: the wire form of the API, without a socket."""

    def send(self, operation: str, body: bytes) -> bytes:
        """Execute one action, JSON to JSON; raises the service's error as an `ApiError`."""


class OverTransport(Native):
    """The `Backend` of a `Transport`: JSON out, JSON back."""

    __slots__ = ("_send",)
    takes_json = True

    def __init__(self, send: Callable[[str, bytes], bytes]) -> None:
        self._send = send

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        try:
            text = with_token(operation, as_text(request))
            answer = self._send(operation, msgspec.json.encode(text))
        except ApiError as error:
            # An error may contain items that are still JSON, for clients.
            error.members = msgspec.json.decode(msgspec.json.encode(error.members))
            raise
        response: Response = msgspec.json.decode(answer or b"{}")
        return response


class Plain(Native):
    """The `Backend` of a user's object with `execute(operation, request)`."""

    __slots__ = ("_execute",)

    def __init__(self, execute: Callable[[str, Request], Response]) -> None:
        self._execute = execute

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        return self._execute(operation, with_token(operation, as_text(request)))


class AsyncPlain(Native):
    """The `AsyncBackend` of a user's object with `async execute(operation, request)`."""

    __slots__ = ("_execute",)

    def __init__(self, execute: Callable[[str, Request], Awaitable[Response]]) -> None:
        self._execute = execute

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        return await self._execute(operation, with_token(operation, as_text(request)))


def json_reads(backend: Backend) -> Callable[..., Response]:
    """Its `read_json`; `execute` if it has none."""
    found: Callable[..., Response] = getattr(backend, "read_json", backend.execute)
    return found


def async_json_reads(backend: AsyncBackend) -> Callable[..., Awaitable[Response]]:
    """Its `read_json`; `execute` if it has none."""
    found: Callable[..., Awaitable[Response]] = getattr(backend, "read_json", backend.execute)
    return found


class InEventLoop(Native):
    """An `AsyncBackend` that calls a `Backend` directly, for backends that never block."""

    __slots__ = ("_execute", "_read_json")

    def __init__(self, backend: Backend) -> None:
        self._execute = backend.execute
        self._read_json = json_reads(backend)

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        return self._execute(operation, request)

    async def read_json(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        return self._read_json(operation, request)


class InThread(Native):
    """An `AsyncBackend` that calls a `Backend` in a worker thread, so that it never blocks the event loop."""

    __slots__ = ("_backend",)

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        import asyncio  # at the top it would be a tenth of the start-up time

        return await asyncio.to_thread(self._backend.execute, operation, request, deadline)

    async def read_json(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        import asyncio

        return await asyncio.to_thread(json_reads(self._backend), operation, request, deadline)


class Tape(Native):
    """A backend for tests: returns prepared answers, and records the requests in `asked`.

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
        """Return the next answer, or raise it if it is an error; raises `UsageError` if none is left."""
        self.asked.append((operation, as_text(request)))
        try:
            answer = next(self._answers)
        except StopIteration:
            raise UsageError(
                f"the tape has no answer left for {operation}, call {len(self.asked)}; give it more"
            ) from None
        if isinstance(answer, ApiError):
            raise answer
        return answer
