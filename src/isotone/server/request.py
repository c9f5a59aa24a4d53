"""Decodes HTTP requests: path, Content-Type, X-Amz-Target, region; UnknownOperationException; answers CORS preflights.

A request is checked in the order of the real service: method and path, content type, body encoding, target,
signature. The first check that fails determines the answer:

    a header twice that must be single      400, empty
    not POST, another path or content type  404 with a line of XML
    a body over 16 MB                       413, empty
    no target                               UnknownOperationException
    no signature, or an incomplete one      MissingAuthenticationToken-, IncompleteSignatureException
    everything else                         a `ServiceCall` for the service, which checks the action and the JSON

Nearly all requests differ only in their body. `read` has a fast path that recognises these by a few
comparisons, and leaves all others to `_read_carefully`, which checks the rules one by one.

With credentials, `read_verified` verifies the signature before the body is decompressed or decoded.

Hashing, decompressing and parsing a large body take long: then a connection calls `read` in a thread.

A client writes its header names the same way in every request. `HeaderNames`, cached by the tuple of all names, has the
client's spelling of the headers that matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from isotone.errors import (
    ApiError,
    UnknownOperationException,
)
from isotone.server.auth import parse_signature, signature_error
from isotone.server.compression import BODY_LIMIT, decompressed, wanted_coding
from isotone.server.process_messages import HEALTH_PATH, HOT_KEYS_PATH, METRICS_PATH, QUERIES_PATH
from isotone.server.response import (
    BAD_REQUEST,
    JSON_1_0,
    LOCAL_NODES,
    NOT_FOUND,
    ORDINARY,
    TOO_LARGE,
    WRAPPED_JSON,
    HttpRefusal,
    PlainResponse,
    ResponseStyle,
)
from isotone.values.request_body import parsed_body

_CACHE_SIZE: Final = 512  # entries of each cache; a limit, because clients choose them

_TARGET: Final = re.compile(rb"DynamoDB(?:Streams)?_20120810\.([A-Za-z]+)")
_CONTENT_TYPES: Final = {JSON_1_0: ORDINARY, b"application/json": WRAPPED_JSON}
_SIGNATURE_DIGITS: Final = 64
_WHOLE_SIGNATURE: Final = re.compile(
    rb"AWS4-\S+ Credential=[^,=]+, ?SignedHeaders=[^,=]+, ?Signature=[0-9a-f]{64}"
)
_FAULTS: Final = b"/faults"
_LOCAL_NODES: Final = b"/localnodes"  # where clients of a cluster find its nodes
_PREFLIGHT_MAX_AGE: Final = b"172800"


class HeaderNames(msgspec.Struct, frozen=True):
    """One client's spelling of the headers that matter; b"" for those that it does not send."""

    host: bytes  # b"" also if the head needs further checks: Origin, Expect, or a repeated header
    target: bytes
    content_type: bytes
    content_length: bytes
    accept_encoding: bytes
    authorization: bytes
    expect: bytes
    is_coded: bool  # has Content-Encoding: the body is compressed, or in signed chunks
    ordinary: bool  # has all headers that the fast path needs, and none that it does not handle, such as Upgrade
    lower: tuple[bytes, ...]  # all names in lower case, in order; empty if one is repeated


_NEEDED: Final = frozenset([b"x-amz-target", b"content-type", b"authorization"])
SINGLE_HEADERS: Final = frozenset(
    [
        b"host",
        b"origin",
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"date",
        b"transfer-encoding",
        b"x-amz-content-sha256",
        b"x-amz-date",
        b"x-amz-security-token",
        b"x-amz-target",
    ]
)
"""Headers that a request may have only once, because a second one would be ambiguous."""


class Caller(NamedTuple):
    """The sender of a request: the key of the signature, its user if it was verified, and the address."""

    access_key_id: str
    user: str | None
    source: str
    secure: bool  # over TLS


class ServiceCall(msgspec.Struct, frozen=True, gc=False):
    """A request for the service, and the style of its response."""

    operation: str
    body: bytes
    style: ResponseStyle
    region: str = ""  # of the signature; empty if it has none
    caller: Caller | None = None  # with credentials, or an audit log
    trace: object | None = None  # with OpenTelemetry, the trace context of the headers


class MonitorRequest(NamedTuple):
    """A request for a page of the server's `Monitor`."""

    path: str


_OF_OPERATORS: Final = {
    path.encode(): MonitorRequest(path)
    for path in (HEALTH_PATH, METRICS_PATH, HOT_KEYS_PATH, QUERIES_PATH)
}

Decoded: TypeAlias = ServiceCall | MonitorRequest | PlainResponse | HttpRefusal
"""A call of the service, a request for a page, or the response to a request that is for neither."""

Read = Callable[[bytes, bytes, Mapping[bytes, bytes], HeaderNames, bytes], Decoded]
"""Decodes a request: `read`, or a function that also verifies its signature."""


class Received(NamedTuple):
    """A request as it arrived: the arguments of a reader."""

    method: bytes
    url: bytes
    headers: Mapping[bytes, bytes]
    header_names: HeaderNames
    body: bytes


Note = Callable[[Decoded, Received], Decoded]
"""Called with a decoded request, on the event loop; returns the request that replaces it."""

Verify = Callable[[bytes, bytes, dict[bytes, bytes], bytes], tuple[Caller, str, bytes]]
"""Returns the caller of a request, its region, and its body without chunk signatures. Raises the service's error.

It may change the headers, whose names are in lower case."""


_operations: dict[bytes, str] = {}
_regions: dict[bytes, str] = {}  # by an Authorization header without the digits of the signature


class _KnownHeaderNames(dict[tuple[bytes, ...], HeaderNames]):
    """The `HeaderNames` of all clients, by the tuple of all header names of a request."""

    def __missing__(self, names: tuple[bytes, ...]) -> HeaderNames:
        if len(self) >= _CACHE_SIZE:
            self.clear()
        learned = self[names] = _learn(names)
        return learned


known_header_names: Final = _KnownHeaderNames()


def _learn(names: tuple[bytes, ...]) -> HeaderNames:
    by_lower = {name.lower(): name for name in names}
    find = by_lower.get
    dated = b"x-amz-date" in by_lower or b"date" in by_lower
    careful = not by_lower.keys().isdisjoint((b"origin", b"content-encoding", b"upgrade"))
    complete = by_lower.keys() >= _NEEDED
    repeated = len(by_lower) < len(names)
    matters = repeated or b"origin" in by_lower or b"expect" in by_lower
    return HeaderNames(
        host=b"" if matters else find(b"host", b""),
        target=find(b"x-amz-target", b""),
        content_type=find(b"content-type", b""),
        content_length=find(b"content-length", b""),
        accept_encoding=find(b"accept-encoding", b""),
        authorization=find(b"authorization", b""),
        expect=find(b"expect", b""),
        is_coded=b"content-encoding" in by_lower,
        ordinary=complete and dated and not careful and not repeated,
        lower=() if repeated else tuple(by_lower),
    )


def read(
    method: bytes,
    url: bytes,
    headers: Mapping[bytes, bytes],
    header_names: HeaderNames,
    body: bytes,
) -> Decoded:
    """Decode a request: a call of the service, a page, or a refusal."""
    if (
        header_names.ordinary
        and url == b"/"
        and method == b"POST"
        and headers[header_names.content_type] == JSON_1_0
        and (
            not header_names.accept_encoding or headers[header_names.accept_encoding] == b"identity"
        )
    ):
        operation = _operations.get(headers[header_names.target])
        if operation is not None:
            authorization = headers[header_names.authorization]
            # Only its last 64 digits change between requests.
            region = _regions.get(authorization[:-_SIGNATURE_DIGITS])
            if region is None:
                region = _signed_region(authorization)
            if region is not None:
                return ServiceCall(operation, body, ORDINARY, region)
    lowered = by_lower_name(headers)
    if lowered is None:
        return BAD_REQUEST
    return _read_carefully(method, url, lowered, body)


def read_verified(
    method: bytes,
    url: bytes,
    headers: Mapping[bytes, bytes],
    header_names: HeaderNames,
    body: bytes,
    verify: Verify,
) -> Decoded:
    """Verify the signature of a request, and decode it as `read` does."""
    if header_names.lower:
        lowered = dict(zip(header_names.lower, headers.values(), strict=True))
        if (
            header_names.ordinary
            and url == b"/"
            and method == b"POST"
            and lowered.get(b"content-type") == JSON_1_0
            and lowered.get(b"accept-encoding", b"identity") == b"identity"
        ):
            operation = _operations.get(lowered.get(b"x-amz-target", b""))
            if operation is not None:
                try:
                    caller, region, body = verify(method, url, lowered, body)
                except ApiError as error:
                    return HttpRefusal(error, ORDINARY)
                return ServiceCall(operation, body, ORDINARY, region, caller)
        return _read_carefully(method, url, lowered, body, verify)
    careful = by_lower_name(headers)
    if careful is None:
        return BAD_REQUEST
    return _read_carefully(method, url, careful, body, verify)


def _signed_region(authorization: bytes) -> str | None:
    """The region of an Authorization header, cached; None if the header is incomplete."""
    if _WHOLE_SIGNATURE.fullmatch(authorization) is None:
        return None
    region = _region({b"authorization": authorization}, b"")
    if len(_regions) < _CACHE_SIZE:
        _regions[authorization[:-_SIGNATURE_DIGITS]] = region
    return region


def _region(headers: Mapping[bytes, bytes], query: bytes) -> str:
    signature = parse_signature(headers, query)
    return "" if signature is None else signature.region


def _read_carefully(
    method: bytes,
    url: bytes,
    headers: dict[bytes, bytes],
    body: bytes,
    verify: Verify | None = None,
) -> Decoded:
    path, _, query = url.partition(b"?")
    if path == _FAULTS and verify is None:  # an operation of servers with --faults
        return ServiceCall(f"{method.decode()} {path.decode()}", body, ORDINARY)
    if method != b"POST" or path != b"/":
        return _other_method(method, path, headers)
    style = _style(headers)
    if style is None:
        return NOT_FOUND._replace(cors=headers.get(b"origin", b""))
    caller, region = None, ""
    try:
        if verify is not None:
            operation = _operation(headers.get(b"x-amz-target", b""))
            caller, region, body = verify(method, url, headers, body)
        body = decompressed(headers.get(b"content-encoding", b""), body)
        if len(body) > BODY_LIMIT:
            return TOO_LARGE
        if verify is None:
            operation = _operation(headers.get(b"x-amz-target", b""))
            region = _claimed_region(headers, query, body)
    except ApiError as error:
        return HttpRefusal(error, style)
    return ServiceCall(operation, body, style, region, caller)


def _claimed_region(headers: Mapping[bytes, bytes], query: bytes, body: bytes) -> str:
    """The region of a complete signature, which is not verified. Raises the error of an incomplete one."""
    refused = signature_error(headers, query)
    if refused is not None:
        if body:
            parsed_body(
                body, dict[str, msgspec.Raw]
            )  # the service checks this before the signature
        raise refused
    return _region(headers, query)


def _other_method(
    method: bytes, path: bytes, headers: Mapping[bytes, bytes]
) -> PlainResponse | MonitorRequest:
    cors = headers.get(b"origin", b"")
    if method == b"GET" and path == b"/":
        host = headers.get(b"host", b"").partition(b":")[0]
        region = host.split(b".")[1] if host.startswith(b"dynamodb.") else b"us-east-1"
        return PlainResponse(200, b"healthy: dynamodb.%b.amazonaws.com " % region, cors)
    if method == b"GET" and path == _LOCAL_NODES:
        return LOCAL_NODES
    if method == b"GET" and path in _OF_OPERATORS:
        return _OF_OPERATORS[path]
    if method == b"OPTIONS" and cors:
        return PlainResponse(200, b"", cors, _preflight(headers))
    return NOT_FOUND._replace(cors=cors)


def _preflight(headers: Mapping[bytes, bytes]) -> tuple[tuple[bytes, bytes], ...]:
    """The headers that answer a CORS preflight: `admission` has allowed the origin, so it may send what it asks for."""
    asked = (
        (b"Access-Control-Allow-Headers", headers.get(b"access-control-request-headers")),
        (b"Access-Control-Allow-Methods", headers.get(b"access-control-request-method")),
        (b"Access-Control-Max-Age", _PREFLIGHT_MAX_AGE),
    )
    return tuple((name, value) for name, value in asked if value is not None)


def _style(headers: Mapping[bytes, bytes]) -> ResponseStyle | None:
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    style = _CONTENT_TYPES.get(content_type)
    if style is None:
        return None
    coding = wanted_coding(headers.get(b"accept-encoding", b""))
    return style._replace(cors=headers.get(b"origin", b""), coding=coding)


def operation_of(headers: Mapping[bytes, bytes]) -> str | None:
    """The action that the headers name, in any case; None if they name none."""
    target = next(
        (value for name, value in headers.items() if name.lower() == b"x-amz-target"), b""
    )
    match = _TARGET.fullmatch(target)
    return None if match is None else match[1].decode()


def _operation(target: bytes) -> str:
    operation = _operations.get(target)
    if operation is not None:
        return operation
    match = _TARGET.fullmatch(target)
    if match is None:
        raise UnknownOperationException()
    operation = match[1].decode()
    if len(_operations) < _CACHE_SIZE:
        _operations[target] = operation
    return operation


def by_lower_name(headers: Mapping[bytes, bytes]) -> dict[bytes, bytes] | None:
    """The headers by their names in lower case; None if one of `SINGLE_HEADERS` is repeated."""
    lowered: dict[bytes, bytes] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in lowered:
            if lower in SINGLE_HEADERS:
                return None
            value = lowered[lower] + b"," + value
        lowered[lower] = value
    return lowered
