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
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from isotone.errors import ApiError, UsageError

Request = Mapping[str, Any]
Response = dict[str, Any]


class Backend(Protocol):
    """Anything that answers the DynamoDB API."""

    def execute(self, operation: str, request: Request) -> Response:
        """Answer one action, such as `("GetItem", {"TableName": …, "Key": …})`."""


class InProcess:
    """The `Backend` of a database in this process: a function from request bytes to response bytes.

    >>> InProcess(lambda operation, body: b'{"TableNames":[]}').execute("ListTables", {})
    {'TableNames': []}
    """

    __slots__ = ("_execute",)

    def __init__(self, execute: Callable[[str, bytes], bytes]) -> None:
        self._execute = execute

    def execute(self, operation: str, request: Request) -> Response:
        try:
            answer = self._execute(operation, msgspec.json.encode(request))
        except ApiError as error:
            # Items in an error's members are JSON still, as they would be on their way to a client.
            error.members = msgspec.json.decode(msgspec.json.encode(error.members))
            raise
        response: Response = msgspec.json.decode(answer)
        return response


class AsyncBackend(Protocol):
    """A `Backend` whose answers are awaited."""

    async def execute(self, operation: str, request: Request) -> Response:
        """Answer one action."""


class InThread:
    """An `AsyncBackend` that asks a `Backend` in a worker thread, so that waiting blocks no event loop."""

    __slots__ = ("_backend",)

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def execute(self, operation: str, request: Request) -> Response:
        return await asyncio.to_thread(self._backend.execute, operation, request)


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

    def execute(self, operation: str, request: Request) -> Response:
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
