"""`attach`: connects boto3, aioboto3 or botocore to a database in this process: answers, errors, retries, no socket.

botocore emits the event `before-send` for each request and uses a handler's return value as the
response. `attach` registers such a handler on one client, resource or session. Everything else stays
botocore's own: parameter validation, parsing, retries, events. Requests are not signed, so no
credentials are needed.

The database sees only the request's `X-Amz-Target` header and its body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final, Protocol, Self

import botocore
import msgspec
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError

from isotone.errors import ApiError, ConnectionFailed, UsageError

_SERVICES: Final = ("dynamodb", "dynamodb-streams")
_JSON: Final = "application/x-amz-json-1.0"
_SERIAL: Final = count(1)
HERE: Final = "http://dynamodb.isotone.invalid/"
"""The address of requests to a database: it never resolves, and no other mock matches it."""


class RequestAnswerer(Protocol):
    """`isotone.Database`, or any other object that turns request bytes into response bytes."""

    def send(self, operation: str, body: bytes, /) -> bytes: ...


Respond = Callable[[Any, RequestAnswerer], AWSResponse]


def attach(target: Any, database: RequestAnswerer) -> Attachment:
    """Connect a client, resource or session of boto3, aioboto3 or botocore to a database.

    Attach a session before you create clients from it: they stay attached. A client has one attachment at
    a time; it ends with `detach()`, or with the `with` block.

    Raises `UsageError` for an object that has no botocore events.
    """
    return Attachment(_events(target), database, _responder(target))


class Attachment:
    """Connects botocore's events to a database until `detach()`."""

    __slots__ = ("_database", "_events", "_respond")

    def __init__(self, events: Any, database: RequestAnswerer, respond: Respond) -> None:
        self._events = events
        self._database = database
        self._respond = respond
        for service in _SERVICES:
            events.register_first(f"before-send.{service}", self._send)
            events.register_first(f"choose-signer.{service}", self._choose_signer)

    def detach(self) -> None:
        """Stop answering: the client or session sends its requests to its own endpoint again."""
        for service in _SERVICES:
            self._events.unregister(f"before-send.{service}", self._send)
            self._events.unregister(f"choose-signer.{service}", self._choose_signer)

    def _choose_signer(self, **_: Any) -> Any:
        return botocore.UNSIGNED

    def _send(self, request: Any, **_: Any) -> AWSResponse:
        # botocore calls every handler of the event, even if an earlier one has returned a response.
        if hasattr(request, "isotone_answered"):
            raise UsageError(
                "two databases are attached to one client, or to it and its session; "
                "detach() the first attachment before the second attach()"
            )
        request.isotone_answered = True
        answer = self._respond(request, self._database)
        request.url = HERE  # another mock, such as moto's, matches requests by this address
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()


def respond(request: Any, database: RequestAnswerer) -> AWSResponse:
    """Execute a prepared request of botocore; returns botocore's response."""
    return response(request.url, *_answer(request, database))


def response(url: str, status: int, body: bytes, content_type: str = _JSON) -> AWSResponse:
    """A response as botocore receives it."""
    return AWSResponse(url, status, _headers(content_type), _Content(body, content_type))


def respond_awaitably(request: Any, database: RequestAnswerer) -> AWSResponse:
    """Execute a prepared request of aiobotocore, which awaits the content of the response."""
    return response_awaitably(request.url, *_answer(request, database))


def response_awaitably(
    url: str, status: int, body: bytes, content_type: str = _JSON
) -> AWSResponse:
    """A response as aiobotocore receives it."""
    from aiobotocore.awsrequest import AioAWSResponse

    return AioAWSResponse(url, status, _headers(content_type), _Content(body, content_type))


class _Content:
    """The body of a response, for botocore (`stream`) and aiobotocore (`read`)."""

    __slots__ = ("_body", "raw_headers")

    def __init__(self, body: bytes, content_type: str) -> None:
        self._body = body
        # Where older versions of aiobotocore read the headers.
        self.raw_headers: list[tuple[bytes, bytes]] = [(b"Content-Type", content_type.encode())]

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body


def _answer(request: Any, database: RequestAnswerer) -> tuple[int, bytes]:
    target = request.headers["X-Amz-Target"]
    name = target.decode() if isinstance(target, bytes) else target
    try:
        return 200, database.send(name.rpartition(".")[2], request.body)
    except ApiError as error:
        return error.status, msgspec.json.encode(error.body())
    except ConnectionFailed as error:  # a fault; botocore retries its own kind of error
        raise ConnectionClosedError(endpoint_url=request.url) from error


def _headers(content_type: str) -> dict[str, str]:
    return {"x-amzn-requestid": f"{next(_SERIAL):052d}", "content-type": content_type}


def _events(target: Any) -> Any:
    """The event emitter of a client, of a resource's client, or of a session."""
    holders: tuple[Any, Any] = getattr(_client(target), "meta", None), target
    for holder in holders:
        if hasattr(holder, "events"):
            return holder.events
    if hasattr(target, "get_component"):
        return target.get_component("event_emitter")
    raise UsageError(
        f"attach takes a boto3 or botocore client, resource or session, not {target!r}"
    )


def _client(target: Any) -> Any:
    """The client of a resource; any other object is returned as it is."""
    return getattr(getattr(target, "meta", None), "client", target)


def _responder(target: Any) -> Respond:
    packages = {cls.__module__.partition(".")[0] for cls in type(_client(target)).__mro__}
    return respond_awaitably if packages & {"aiobotocore", "aioboto3"} else respond
