"""HTTP messages of both remote backends: requests, replies, and the errors that replies stand for.

The length and the CRC-32 of every answer are checked. A wrong one counts as a failed connection, so the request is
retried.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Final

import httptools
import msgspec

from isotone import errors
from isotone.backends.interface import Request, Response, as_text, with_token
from isotone.backends.signing import Signer
from isotone.crc import crc32
from isotone.errors import ApiError, ConnectionFailed
from isotone.values.plain_json import plain

_encode: Final = msgspec.json.Encoder().encode
_NO_MEMBERS: Final = b"{}"  # TagResource and UntagResource answer without a body
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode

# Errors about the time of a signature. The service's time is then taken from the answer's Date header.
_SKEWED: Final = frozenset(("RequestExpired", "RequestTimeTooSkewed"))
_SKEWED_SIGNATURE: Final = ("Signature expired", "Signature not yet current")
_TOLERATED_SKEW: Final = 60.0  # seconds; a smaller difference cannot have caused the error
# Statuses below 500 that a proxy may send and that are worth a retry.
_RETRYABLE: Final = frozenset((200, 408, 425, 429))


def encode_request(operation: str, request: Request) -> bytes:
    """Encode a request as JSON, with a token for a transaction."""
    request = with_token(operation, as_text(request))
    try:
        return _encode(request)
    except (TypeError, UnicodeEncodeError, RecursionError):
        return _encode(plain(request))


class HttpCodec:
    """Encodes requests to one host, and decodes its answers."""

    __slots__ = ("_get_head", "_head", "_signer")

    def __init__(self, host: str, signer: Signer, *, compressed: bool) -> None:
        accepted = "gzip" if compressed else "identity"
        head = f"HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: {accepted}\r\nUser-Agent: isotone\r\n"
        self._head = f"POST / {head}"
        self._get_head = head
        self._signer = signer

    def message(self, operation: str, body: bytes) -> bytes:
        """A complete, signed HTTP request."""
        signed = self._signer.headers(operation, body)
        return f"{self._head}{signed}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def get(self, path: str) -> bytes:
        """A complete HTTP GET request, which needs no signature."""
        return f"GET {path} {self._get_head}\r\n".encode()

    def answer(self, reply: HttpReply) -> Response:
        """The response in a reply; raises `ApiError` for an error, `ConnectionFailed` for a damaged reply."""
        body = reply.content
        try:
            answer = _decode(body or _NO_MEMBERS) if reply.status == 200 else _decode(body)
        except msgspec.MsgspecError:
            raise _not_json(reply) from None
        if reply.status == 200:
            return answer
        raise self._record_skew(error_of(answer, reply.status), reply)

    def _record_skew(self, error: ApiError, reply: HttpReply) -> Exception:
        """The error to raise. If this machine's clock caused it, records the skew, and makes the request be retried."""
        skew = reply.skew(self._signer.now())
        if not _is_about_time(error) or skew is None or abs(skew) < _TOLERATED_SKEW:
            return error
        self._signer.skew = skew
        return ConnectionFailed(
            f"this machine's clock is {-skew:.0f} s off: {error.message}", sent=False
        )


def _is_about_time(error: ApiError) -> bool:
    """Whether an error is about the signature's time. A wrong key has the same code, but another message."""
    return error.code in _SKEWED or (
        error.code == "InvalidSignatureException" and error.message.startswith(_SKEWED_SIGNATURE)
    )


class HttpReply:
    """An HTTP response being received; call `feed` until it is `complete`."""

    __slots__ = ("_parser", "_parts", "complete", "headers", "keep_alive", "status")

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self.complete: bool = False
        self.headers: dict[bytes, bytes] = {}
        self.keep_alive: bool = True
        self.status: int = 0

    def feed(self, data: bytes) -> None:
        """Parse the next bytes; raises `ConnectionFailed` if they are not HTTP."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise ConnectionFailed(f"the answer is not HTTP: {error}") from None

    @property
    def body(self) -> bytes:
        """The body as received, possibly compressed."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    @property
    def content(self) -> bytes:
        """The decompressed body; raises `ConnectionFailed` if its checksum or its compression is wrong."""
        body = self.body
        expected = self.headers.get(b"x-amz-crc32")
        if expected is not None and expected != b"%d" % crc32(body):
            raise ConnectionFailed("the answer was damaged on its way: its CRC-32 does not match")
        if self.headers.get(b"content-encoding") == b"gzip":
            try:
                return gzip.decompress(body)
            except (OSError, EOFError, zlib.error) as error:
                raise ConnectionFailed(f"the answer's compression is damaged: {error}") from None
        return body

    def skew(self, now: float) -> float | None:
        """Seconds by which the sender's clock is ahead of `now`, from the Date header; None without one."""
        date = self.headers.get(b"date")
        if date is None:
            return None
        try:
            return parsedate_to_datetime(date.decode("latin-1")).timestamp() - now
        except ValueError:
            return None

    # Called by httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.keep_alive = self._parser.should_keep_alive()
        self.complete = True


def _not_json(reply: HttpReply) -> Exception:
    """The error for an answer that is not JSON: usually a proxy's. Retried if that may help."""
    said = f"status {reply.status} and {reply.body[:200]!r}"
    if reply.status >= 500 or reply.status in _RETRYABLE:
        return ConnectionFailed(f"the answer is not a DynamoDB response: {said}")
    return errors.UsageError(f"the server is not DynamoDB: {said}; check the address")


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
    """The class of an error code; created for codes that `isotone.errors` does not define."""
    known = getattr(errors, code, None)
    if isinstance(known, type) and issubclass(known, ApiError):
        return known
    return type(code, (ApiError,), {"__doc__": "An error of the service that answered."})
