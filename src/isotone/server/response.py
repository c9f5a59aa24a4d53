"""HTTP responses as DynamoDB's: headers, crc32, x-amzn-RequestId, CORS, errors; empty bodies of refusals (400, 413, 503).

Each response has a unique id (`x-amzn-RequestId`) and the CRC-32 of its body after compression
(`x-amz-crc32`), which the SDKs verify.
"""

from __future__ import annotations

import os
import time
from itertools import count
from typing import Final, NamedTuple

import msgspec

from isotone.crc import crc32
from isotone.errors import ApiError, ConnectionFailed
from isotone.server.compression import COMPRESSED_FROM, compressed

JSON_1_0: Final = b"application/x-amz-json-1.0"

_REASONS: Final = {
    200: b"OK",
    302: b"Found",
    304: b"Not Modified",
    400: b"Bad Request",
    403: b"Forbidden",
    404: b"Not Found",
    408: b"Request Timeout",
    413: b"Request Entity Too Large",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
}
_CORS_HEADERS: Final = (
    (b"Vary", b"Origin"),
    (
        b"Access-Control-Expose-Headers",
        b"x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,x-amzn-ErrorMessage,Date",
    ),
)

# A request id has 52 characters: 10 for this process, 16 for the request, and a constant suffix of 26.
# The 16 digits count from a random number, and stay 16 for 8 * 10**15 requests.
_ALPHABET: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUV"
_REQUEST_ID: Final = b"%b%%dVV4KQNSO5AEMVJF66Q9ASUAAJG" % bytes(
    _ALPHABET[byte & 31] for byte in os.urandom(10)
)
_next_number = count(10**15 + int.from_bytes(os.urandom(6))).__next__


def _count_from_elsewhere() -> None:
    global _next_number
    _next_number = count(10**15 + int.from_bytes(os.urandom(6))).__next__


if hasattr(os, "register_at_fork"):  # a forked process starts from another random number
    os.register_at_fork(after_in_child=_count_from_elsewhere)

_ORDINARY_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nServer: Server\r\nDate: %b\r\nContent-Type: application/x-amz-json-1.0\r\n"
    b"Content-Length: %d\r\nConnection: keep-alive\r\n"
    b"x-amzn-RequestId: " + _REQUEST_ID + b"\r\nx-amz-crc32: %d\r\n\r\n%b"
)
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"

Header = tuple[bytes, bytes]
_encode = msgspec.json.Encoder().encode


class ResponseStyle(NamedTuple):
    """The encoding of one response."""

    content_type: bytes = JSON_1_0
    wrapped: bool = False  # inside {"Output": …, "Version": "1.0"}
    cors: bytes = b""  # the origin of the page that may read it
    coding: bytes = b""  # gzip or deflate; none if empty


ORDINARY: Final = ResponseStyle()
WRAPPED_JSON: Final = ResponseStyle(content_type=b"application/json", wrapped=True)


class PlainResponse(NamedTuple):
    """A response that is not DynamoDB JSON."""

    status: int
    body: bytes = b""
    cors: bytes = b""  # as in `ResponseStyle`
    headers: tuple[Header, ...] = ()


class HttpRefusal(NamedTuple):
    """An error of a request that never reached the service."""

    error: ApiError
    style: ResponseStyle


LOCAL_NODES: Final = PlainResponse(200)  # a placeholder: `Dispatcher.local_nodes` makes the body
NOT_FOUND: Final = PlainResponse(404, b"<UnknownOperationException/>\n")
TOO_LARGE: Final = PlainResponse(413)
BAD_REQUEST: Final = PlainResponse(400)
HEAD_TOO_LARGE: Final = PlainResponse(400)
BROKEN: Final = PlainResponse(500)
TIMED_OUT: Final = PlainResponse(408)
OVERLOADED: Final = PlainResponse(503)
TOO_MANY_BODIES: Final = PlainResponse(503, headers=((b"Retry-After", b"1"),))


class _DateHeader:
    """The Date header, formatted once a second and independent of the locale."""

    __slots__ = ("second", "text")

    def __init__(self) -> None:
        self.second = 0
        self.text = b""

    def now(self) -> bytes:
        second = int(time.time())
        if second != self.second:
            self.renew(second)
        return self.text

    def renew(self, second: int) -> None:
        now = time.gmtime(second)
        day, month = _DAYS[now.tm_wday], _MONTHS[3 * now.tm_mon - 3 : 3 * now.tm_mon]
        clock = time.strftime("%H:%M:%S", now)
        self.text = f"{day}, {now.tm_mday:02} {month} {now.tm_year} {clock} GMT".encode()
        self.second = second


_date: Final = _DateHeader()
http_date: Final = _date.now


def request_id() -> bytes:
    """A new unique response id."""
    return _REQUEST_ID % _next_number()


def ordinary(body: bytes) -> bytes:
    """The response that nearly all clients get, on a connection that stays open."""
    date, second = _date, int(time.time())  # as `now` does, without a call
    if second != date.second:
        date.renew(second)
    return _ORDINARY_HEAD % (date.text, len(body), _next_number(), crc32(body), body)


def render(
    style: ResponseStyle,
    result: bytes | ApiError | ConnectionFailed | PlainResponse,
    keep_alive: bool = True,
) -> bytes:
    """The response to a request: the service's bytes, its error, or a page; empty for `ConnectionFailed`."""
    if style is ORDINARY and keep_alive and type(result) is bytes:
        return ordinary(result)
    if isinstance(result, ConnectionFailed):
        return b""
    page = result if isinstance(result, PlainResponse) else encoded(style, result)
    lines = [
        (b"Server", b"Server"),
        (b"Date", http_date()),
        *page.headers,
        (b"Content-Length", b"%d" % len(page.body)),
        (b"Connection", b"keep-alive" if keep_alive else b"close"),
        (b"x-amzn-RequestId", request_id()),
        (b"x-amz-crc32", b"%d" % crc32(page.body)),
        *(((b"Access-Control-Allow-Origin", page.cors), *_CORS_HEADERS) if page.cors else ()),
    ]
    head = b"".join(b"%b: %b\r\n" % line for line in lines)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (page.status, _REASONS[page.status], head, page.body)


def encoded(style: ResponseStyle, result: bytes | ApiError) -> PlainResponse:
    """The service's bytes, or its error, in the style that the client wants; compresses a large one."""
    status = 200
    if isinstance(result, ApiError):
        status, result = result.status, _encode(result.body())
    if style.wrapped:
        result = b'{"Output":%b,"Version":"1.0"}' % (result or b"null")
    headers: tuple[Header, ...] = ((b"Content-Type", style.content_type),)
    if style.coding and len(result) >= COMPRESSED_FROM:
        result = compressed(style.coding, result)
        headers = (*headers, (b"Content-Encoding", style.coding))
    return PlainResponse(status, result, style.cors, headers)
