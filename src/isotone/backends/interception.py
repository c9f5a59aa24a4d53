"""Functions between a caller and an API: one function from a request to its response, for every way in.

A database takes requests as dicts (`execute`), as JSON (`send`) and in groups (`send_many`). An `Interceptor` sees all
of them as dicts, and decides what is executed and what is answered. Nothing here is loaded or called unless a database
is intercepted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from isotone.backends.interface import Request, Response
from isotone.effort import Wait
from isotone.errors import ApiError, ConnectionFailed, SerializationException
from isotone.values.request_body import read_json

Proceed = Callable[[str, Request], Response]
"""Executes a request."""


class Interceptor(Protocol):
    """Answers requests, by executing them or in any other way."""

    def execute(self, operation: str, request: Request, proceed: Proceed) -> Response:
        """Answer a caller that expects retries to be done, as a store does; expressions may be trees."""

    def send(self, operation: str, request: Request, proceed: Proceed) -> Response:
        """Answer a caller that retries itself, as an SDK does."""


class Intercepted:
    """An API whose requests go through an interceptor: `operations.api.Api`, by its methods.

    An interceptor takes as long as it wants, whatever its caller waits for.
    """

    def __init__(self, api: Any, interceptor: Interceptor) -> None:
        self.engine: Any = api.engine
        self._api = api
        self._interceptor = interceptor

    def execute(
        self, operation: str, request: Request, *, json_items: bool = False
    ) -> dict[str, Any]:
        proceed = partial(self._api.execute, json_items=json_items)
        return self._interceptor.execute(operation, request, proceed)

    def send(self, operation: str, body: bytes, wait: Wait = Wait.FULLY) -> bytes:
        try:
            request = read_json(body, dict[str, Any])
        except SerializationException:
            answer: bytes = self._api.send(operation, body)  # which says what is wrong
            return answer
        return msgspec.json.encode(self._interceptor.send(operation, request, self._api.execute))

    def bound_turns(self, bounded: bool) -> None:
        """Do nothing: no request of an interceptor is postponed."""

    def has_policies(self, operation: str) -> bool:
        """Whether the policy of a table or a stream may forbid a request."""
        has: bool = self._api.has_policies(operation)
        return has

    def accesses(self, operation: str, body: bytes) -> Sequence[Any]:
        """What a request needs permission for, which no interceptor changes."""
        needed: Sequence[Any] = self._api.accesses(operation, body)
        return needed

    def is_grouped(self, operation: str, body: bytes) -> bool:
        """False: each request is answered by itself."""
        return False

    def send_many(
        self, requests: Sequence[tuple[str, bytes]], wait: Wait = Wait.FULLY
    ) -> list[bytes | ApiError | ConnectionFailed]:
        answers: list[bytes | ApiError | ConnectionFailed] = []
        for operation, body in requests:
            try:
                answers.append(self.send(operation, body))
            except (ApiError, ConnectionFailed) as error:
                answers.append(error)
        return answers

    def maintain(self) -> float:
        delay: float = self._api.maintain()
        return delay

    def transfer(self) -> float:
        delay: float = self._api.transfer()
        return delay

    @property
    def can_transfer(self) -> bool:
        can: bool = self._api.can_transfer
        return can

    def finish_maintenance(self) -> None:
        self._api.finish_maintenance()

    def close(self) -> None:
        self._api.close()
