"""Interceptors: functions between a caller and the database, which see every request however it arrives.

A database takes requests as dicts (`execute`), as JSON (`send`) and in groups (`send_many`). An `Interceptor` gets all
of them as dicts, and decides what is executed and what is answered. A malformed request goes to the database, which
refuses it as the service does: an interceptor may rely on the members and their types. This module is loaded only when
a database is intercepted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from isotone.backends.interface import Request, Response
from isotone.errors import ApiError, ConnectionFailed
from isotone.values.request_body import parsed_body

Proceed = Callable[[str, Request], Response]
"""Executes a request."""


class Interceptor(Protocol):
    """Answers requests, by executing them or in any other way."""

    def execute(self, operation: str, request: Request, proceed: Proceed) -> Response:
        """Answer a caller that does not retry, such as a store; expressions may be trees."""

    def send(self, operation: str, request: Request, proceed: Proceed) -> Response:
        """Answer a caller that retries itself, as an SDK does."""


class Intercepted:
    """An API whose requests go through an interceptor. It has the methods of `operations.api.Api`.

    An interceptor may take any time, whatever its caller waits for.
    """

    def __init__(self, api: Any, interceptor: Interceptor) -> None:
        self.engine: Any = api.engine
        self.served: Any = api.served
        """The counts of requests by their shape; what an interceptor answers is not counted."""
        self._api = api
        self._interceptor = interceptor

    def execute(
        self, operation: str, request: Request, *, json_items: bool = False
    ) -> dict[str, Any]:
        proceed: Proceed = partial(self._api.execute, json_items=json_items)
        if not self._api.is_well_formed(operation, request):
            return proceed(operation, request)
        return self._interceptor.execute(operation, request, proceed)

    def send(self, operation: str, body: bytes) -> bytes:
        if not self.is_well_formed(operation, body):
            answer: bytes = self._api.send(operation, body)  # refuses it
            return answer
        request = parsed_body(body, dict[str, Any])
        return msgspec.json.encode(self._interceptor.send(operation, request, self._api.execute))

    def is_well_formed(self, operation: str, request: bytes | Request) -> bool:
        """Whether a request has the members of its action, with valid types and values."""
        is_well_formed: bool = self._api.is_well_formed(operation, request)
        return is_well_formed

    def set_raises_if_long(self, wanted: bool) -> None:
        """Do nothing: a request of an interceptor takes as long as it wants."""

    def is_long(self, operation: str, body: bytes) -> bool:
        """False: its caller waits for each request."""
        return False

    def has_policies(self, operation: str) -> bool:
        """Whether the policy of a table or a stream may forbid a request."""
        has: bool = self._api.has_policies(operation)
        return has

    def accesses(self, operation: str, body: bytes) -> Sequence[Any]:
        """The permissions that a request needs; an interceptor does not change them."""
        needed: Sequence[Any] = self._api.accesses(operation, body)
        return needed

    def writes(self, operation: str, body: bytes) -> bool:
        """False, so that each request is answered by itself."""
        return False

    def send_many(
        self, requests: Sequence[tuple[str, bytes]]
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
