"""One request and its answer as bytes, without a socket: what both remote backends share.

A server closes idle connections when it pleases. The end can be seen before a request is lost to it: there is
something to read though nothing was requested (`is_quiet`).

An answer is verified first: its length, and its CRC-32, which the service computes over the bytes that it sends.
A damaged one counts as a failed connection, and the request is sent again.
"""

from __future__ import annotations

import gzip
import select
import zlib
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Final
from uuid import uuid4

import httptools
import msgspec

from isotone import errors
from isotone.backends.interface import Request, Response, as_text
from isotone.backends.signing import Signer
from isotone.errors import ApiError, ConnectionFailed

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode

# Refusals of the signature's time, after which the service's own time is taken from its answer.
_SKEWED: Final = frozenset(("RequestExpired", "RequestTimeTooSkewed"))
_SKEWED_SIGNATURE: Final = ("Signature expired", "Signature not yet current")
_TOLERATED_SKEW: Final = 60.0  # seconds of difference that cannot be the reason of a refusal
# What a proxy answers in place of DynamoDB, and what may be otherwise a moment later.
_PASSING: Final = frozenset((200, 408, 425, 429))


def encode_request(operation: str, request: Request) -> bytes:
    """A request's JSON. A transaction gets a token, so that sending it twice does it once."""
    request = as_text(request)
    if operation == "TransactWriteItems" and "ClientRequestToken" not in request:
        request = {**request, "ClientRequestToken": str(uuid4())}
    return _encode(request)


class Conversation:
    """What requests to one host have in common."""

    __slots__ = ("_head", "_signer")

    def __init__(self, host: str, signer: Signer, *, compressed: bool) -> None:
        accepted = "gzip" if compressed else "identity"
        self._head = (
            f"POST / HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: {accepted}\r\n"
            "User-Agent: isotone\r\n"
        )
        self._signer = signer

    def message(self, operation: str, body: bytes) -> bytes:
        """A whole signed HTTP request."""
        signed = self._signer.headers(operation, body)
        return f"{self._head}{signed}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def answer(self, reply: Reply) -> Response:
        """The response in a reply; raises the `ApiError` or `ConnectionFailed` that it is instead."""
        body = _checked(reply)
        try:
            answer = _decode(body)
        except msgspec.MsgspecError:
            raise _not_json(reply) from None
        if reply.status == 200:
            return answer
        raise self._noting_skew(error_of(answer, reply.status), reply)

    def _noting_skew(self, error: ApiError, reply: Reply) -> Exception:
        """A refusal that this machine's clock is the reason of is as good as a lost answer."""
        skew = reply.skew(self._signer)
        if not _is_about_time(error) or skew is None or abs(skew) < _TOLERATED_SKEW:
            return error
        self._signer.skew = skew
        return ConnectionFailed(f"this machine's clock is {-skew:.0f} s off: {error.message}")


def _is_about_time(error: ApiError) -> bool:
    """Whether a refusal may be this machine's clock's fault; a wrong key has the same code, and other words."""
    return error.code in _SKEWED or (
        error.code == "InvalidSignatureException" and error.message.startswith(_SKEWED_SIGNATURE)
    )


class Reply:
    """An HTTP response that is being received; `feed` it until it is `complete`."""

    __slots__ = ("_parser", "_parts", "complete", "headers", "keep_alive", "status")

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self.complete = False
        self.headers: dict[bytes, bytes] = {}
        self.keep_alive = True
        self.status = 0

    def feed(self, data: bytes) -> None:
        """Take in the next bytes; raises `ConnectionFailed` for what is not HTTP."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise ConnectionFailed(f"the answer is not HTTP: {error}") from None

    @property
    def body(self) -> bytes:
        """The body as it was sent."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def skew(self, signer: Signer) -> float | None:
        """How far the sender's clock is ahead of this machine's, by the answer's date."""
        date = self.headers.get(b"date")
        if date is None:
            return None
        try:
            return parsedate_to_datetime(date.decode("latin-1")).timestamp() - signer.now()
        except ValueError:
            return None

    # What httptools calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.keep_alive = self._parser.should_keep_alive()
        self.complete = True


def _checked(reply: Reply) -> bytes:
    """The body, once its checksum was compared and its compression undone."""
    body = reply.body
    expected = reply.headers.get(b"x-amz-crc32")
    if expected is not None and expected != b"%d" % zlib.crc32(body):
        raise ConnectionFailed("the answer was damaged on its way: its CRC-32 does not match")
    if reply.headers.get(b"content-encoding") == b"gzip":
        try:
            return gzip.decompress(body)
        except (OSError, EOFError, zlib.error) as error:
            raise ConnectionFailed(f"the answer's compression is damaged: {error}") from None
    return body


def _not_json(reply: Reply) -> Exception:
    """A proxy's or load balancer's own answer, mostly: worth another try where it is about a moment."""
    said = f"status {reply.status} and {reply.body[:200]!r}"
    if reply.status >= 500 or reply.status in _PASSING:
        return ConnectionFailed(f"the answer is no DynamoDB response: {said}")
    return errors.UsageError(f"what answers is no DynamoDB: {said}; check the address")


def error_of(answer: Mapping[str, Any], status: int) -> ApiError:
    """The error that a response body describes, as the class of its name."""
    members = dict(answer)
    code = str(members.pop("__type", "")).rpartition("#")[2] or f"Status{status}"
    message = str(members.pop("message", None) or members.pop("Message", None) or "")
    members.pop("Message", None)
    error = error_class(code)(message, **members)
    if error.status != status:
        error.__dict__["status"] = status
    return error


@cache
def error_class(code: str) -> type[ApiError]:
    """The class of an error code; one is made for a code that Isotone itself never answers."""
    known = getattr(errors, code, None)
    if isinstance(known, type) and issubclass(known, ApiError):
        return known
    return type(code, (ApiError,), {"__doc__": "An error of the service that answered."})


# Idle connections

LONGEST_IDLE: Final = 20.0  # seconds; routers in between may drop a connection without notice


def is_quiet(descriptor: int) -> bool:
    """Whether a socket is open with nothing to read."""
    if descriptor < 0:
        return False
    if not hasattr(select, "poll"):  # Windows, whose select has no limit on descriptors
        return not select.select((descriptor,), (), (), 0)[0]
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)
