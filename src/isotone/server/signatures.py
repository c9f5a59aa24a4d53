"""Verifies AWS Signature Version 4: headers, presigned URLs, aws-chunked, clock skew, tokens (InvalidSignatureException).

A signature covers the method, the path, the query, the headers that it names, and the body as it was sent. `Host` and
every `X-Amz-*` header of the request must be among the named ones, so that nobody can add one on the way. Its time may differ
from the server's by fifteen minutes; a presigned URL is valid for as long as it says. Within that time a request can be
replayed: only TLS prevents others from reading it.

    parsed      the parts of the signature, cached by the Authorization header without its last 64 digits
    key         an access key of a user, with its session token if it has one
    time        of `X-Amz-Date`, or of `Date`
    signature   of the canonical request, compared in constant time

The error messages are those of the service.
"""

from __future__ import annotations

import calendar
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from isotone.clock import Clock
from isotone.errors import (
    ApiError,
    ExpiredTokenException,
    IncompleteSignatureException,
    InvalidSignatureException,
    UnrecognizedClientException,
)
from isotone.server.auth import QUERY_PARTS, signature_error
from isotone.server.users import AccessKey, Login

ALGORITHM: Final = "AWS4-HMAC-SHA256"
SKEW: Final = 15 * 60
"""Seconds by which the time of a signature may differ from the server's."""

_SERVICE: Final = "dynamodb"
_TERMINATOR: Final = "aws4_request"
_ASYMMETRIC: Final = "AWS4-ECDSA-P256-SHA256"
_LONGEST: Final = 7 * 24 * 3600  # the largest X-Amz-Expires, in seconds
_CACHE_SIZE: Final = 512  # entries of each cache; a limit, because clients choose them
_SIGNATURE_DIGITS: Final = 64
_EMPTY_HASH: Final = hashlib.sha256(b"").hexdigest().encode()

_QUERY_PARTS: Final = frozenset(part.encode() for part in QUERY_PARTS)

_UNSIGNED: Final = b"UNSIGNED-PAYLOAD"
_CHUNKED: Final = b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
_CHUNK_ALGORITHM: Final = b"AWS4-HMAC-SHA256-PAYLOAD"
# The longest line before a chunk.
_CHUNK_LINE: Final = 8 + len(b";chunk-signature=") + _SIGNATURE_DIGITS

UNKNOWN_KEY: Final = "The security token included in the request is invalid."
_MISMATCH: Final = (
    "The request signature we calculated does not match the signature you provided. "
    "Check your AWS Secret Access Key and signing method. "
    "Consult the service documentation for details."
)

FindKey = Callable[[str], Login | None]
"""Finds the user and the key of an access key id; None if there is none."""


class Verified(NamedTuple):
    """A request with a right signature: its user and key, its region, and its body without chunk signatures."""

    login: Login
    region: str
    body: bytes
    in_chunks: bool


class _SignatureForm(NamedTuple):
    """The parts of a signature that are the same in the client's next request."""

    access_key_id: str
    day: str
    region: str
    scope: str
    signed: tuple[bytes, ...]  # the names of headers, in order
    template: bytes  # the canonical request of a POST to / without a query


class Verifier:
    """Verifies requests of the users whose keys `find_key` knows, in any thread."""

    def __init__(self, find_key: FindKey, clock: Clock) -> None:
        self._find_key = find_key
        self._now = clock.now
        self._forms: dict[tuple[bytes, tuple[bytes, ...]], _SignatureForm] = {}
        self._derived: dict[
            tuple[str, str, str], bytes
        ] = {}  # by secret, day, region: another thread may still use an old secret

    def use(self, find_key: FindKey) -> None:
        """Look up keys with another function from now on."""
        self._find_key = find_key
        self._derived.clear()

    def verify(
        self,
        method: bytes,
        url: bytes,
        headers: Mapping[bytes, bytes],
        body: bytes,
        *,
        secure: bool,
    ) -> Verified:
        """Verify a request. Raises the service's error. Names of headers are in lower case.

        `secure`: the connection is encrypted, so the body may be unsigned.
        """
        path, _, query = url.partition(b"?")
        authorization = headers.get(b"authorization", b"")
        pairs = _pairs(query) if query else []
        if authorization and not any(name in _QUERY_PARTS for name, _ in pairs):
            form = self._header_form(authorization, headers)
            signature = authorization[-_SIGNATURE_DIGITS:]
            stamp = _stamp(headers)
            token = headers.get(b"x-amz-security-token")
            expires = None
        else:
            form, named = _query_form(headers, query, pairs)
            signature = named[b"X-Amz-Signature"]
            stamp = named[b"X-Amz-Date"].decode("latin-1")
            token = named.get(b"X-Amz-Security-Token", headers.get(b"x-amz-security-token"))
            expires = _lifetime(named.get(b"X-Amz-Expires"))
            pairs = [pair for pair in pairs if pair[0] != b"X-Amz-Signature"]
        login = self._login(form, token)
        self._check_time(stamp, form.day, expires)
        payload = _payload_hash(headers, body, secure=secure)
        canonical = form.template % (*[headers[name] for name in form.signed], payload)
        if url != b"/" or method != b"POST" or _has_blanks(canonical):
            canonical = _canonical(method, path, pairs, headers, form.signed, payload)
        text = _string_to_sign(stamp, form.scope, canonical)
        secret = self._signing_key(form, login.key)
        expected = hmac.digest(secret, text, "sha256").hex().encode()
        if not hmac.compare_digest(expected, signature):
            raise _mismatch(canonical, text)
        in_chunks = payload == _CHUNKED
        if in_chunks:
            body = _unchunked(body, headers, _Seed(secret, stamp, form.scope, expected))
        return Verified(login, form.region, body, in_chunks)

    def _header_form(self, authorization: bytes, headers: Mapping[bytes, bytes]) -> _SignatureForm:
        """The parts in an Authorization header, cached: all but the signature stays the same for a day."""
        lead = authorization[:-_SIGNATURE_DIGITS], tuple(headers)
        form = self._forms.get(lead)
        if form is None:
            form = _parsed(authorization, headers)
            if len(self._forms) >= _CACHE_SIZE:
                self._forms.clear()
            self._forms[lead] = form
        return form

    def _login(self, form: _SignatureForm, token: bytes | None) -> Login:
        login = self._find_key(form.access_key_id)
        if login is None:
            raise UnrecognizedClientException(UNKNOWN_KEY)
        key = login.key
        wanted = key.session_token or ""
        if not hmac.compare_digest(wanted.encode(), token or b""):
            raise UnrecognizedClientException(UNKNOWN_KEY)
        if key.expires is not None and key.expires.timestamp() <= self._now():
            raise ExpiredTokenException("The security token included in the request is expired")
        return login

    def _check_time(self, stamp: str, day: str, expires: int | None) -> None:
        signed_at = _seconds(stamp)
        if stamp[:8] != day:
            raise InvalidSignatureException(
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date "
                f"from HTTP: '{day}' != '{stamp[:8]}', from '{stamp}'."
            )
        now = int(self._now())
        if expires is not None and signed_at + expires < now:
            raise InvalidSignatureException(
                f"Signature expired: {stamp} is now earlier than {_iso(now - expires)} "
                f"({_iso(now)} - {expires} s.)"
            )
        if expires is None and signed_at < now - SKEW:
            raise InvalidSignatureException(
                f"Signature expired: {stamp} is now earlier than {_iso(now - SKEW)} "
                f"({_iso(now)} - {SKEW // 60} min.)"
            )
        if signed_at > now + SKEW:
            raise InvalidSignatureException(
                f"Signature not yet current: {stamp} is still later than {_iso(now + SKEW)} "
                f"({_iso(now)} + {SKEW // 60} min.)"
            )

    def _signing_key(self, form: _SignatureForm, key: AccessKey) -> bytes:
        """The signing key of a day and a region, cached."""
        wanted = key.secret_access_key, form.day, form.region
        known = self._derived.get(wanted)
        if known is None:
            known = derived_key(key.secret_access_key, form.day, form.region)
            if len(self._derived) >= _CACHE_SIZE:
                self._derived.clear()
            self._derived[wanted] = known
        return known


def derived_key(secret: str, day: str, region: str) -> bytes:
    """The key that signs the requests of one day to one region."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, _SERVICE, _TERMINATOR):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


# The parts of a signature


def _parsed(authorization: bytes, headers: Mapping[bytes, bytes]) -> _SignatureForm:
    incomplete = signature_error(headers)
    if incomplete is not None:
        raise incomplete
    algorithm, _, parameters = authorization.decode("latin-1").partition(" ")
    _check_algorithm(algorithm)
    parts: dict[str, str] = {}
    for parameter in parameters.split(","):
        name, _, value = parameter.strip().partition("=")
        if name in parts:
            raise IncompleteSignatureException(f"Authorization header has '{name}' twice.")
        parts[name] = value
    signature = parts.pop("Signature")
    if not authorization.endswith(b"Signature=" + signature.encode("latin-1")):
        raise IncompleteSignatureException("Authorization header must end with 'Signature'.")
    if len(signature) != _SIGNATURE_DIGITS:
        raise InvalidSignatureException(_MISMATCH)
    return _form(parts["Credential"], parts["SignedHeaders"], headers)


def _query_form(
    headers: Mapping[bytes, bytes], query: bytes, pairs: list[tuple[bytes, bytes]]
) -> tuple[_SignatureForm, dict[bytes, bytes]]:
    """The parts in a query, and the values of its parameters."""
    incomplete = signature_error(headers, query)
    if incomplete is not None:
        raise incomplete
    named = dict(pairs)
    if len(named) < len(pairs):
        raise IncompleteSignatureException("A query-string parameter is there twice.")
    _check_algorithm(named[b"X-Amz-Algorithm"].decode("latin-1"))
    credential, signed = named[b"X-Amz-Credential"], named[b"X-Amz-SignedHeaders"]
    return _form(credential.decode("latin-1"), signed.decode("latin-1"), headers), named


def _check_algorithm(algorithm: str) -> None:
    if algorithm == _ASYMMETRIC:
        raise InvalidSignatureException(
            f"This server does not verify signatures of the algorithm {_ASYMMETRIC} (SigV4a); "
            f"sign with {ALGORITHM}."
        )
    if algorithm != ALGORITHM:
        raise IncompleteSignatureException(
            f"Unsupported signature algorithm '{algorithm}'; sign with {ALGORITHM}."
        )


def _form(credential: str, signed: str, headers: Mapping[bytes, bytes]) -> _SignatureForm:
    parts = credential.split("/")
    if len(parts) < 5:
        raise IncompleteSignatureException(
            "Credential must have exactly 5 slash-delimited elements, "
            f"e.g. keyid/date/region/service/term, got '{credential}'"
        )
    day, region, service, terminator = parts[-4:]
    wrong = ""
    if not region.replace("-", "").isalnum() or not region.isascii():
        wrong += f"Credential should be scoped to a valid region, not '{region}'. "
    if service != _SERVICE:
        wrong += f"Credential should be scoped to correct service: '{_SERVICE}'. "
    if terminator != _TERMINATOR:
        wrong += f"Credential should be scoped with a valid terminator: '{_TERMINATOR}', not '{terminator}'. "
    if wrong:
        raise InvalidSignatureException(wrong)
    names = sorted(signed.encode("latin-1").lower().split(b";"))
    _check_signed(names, headers)
    scope = f"{day}/{region}/{_SERVICE}/{_TERMINATOR}"
    return _SignatureForm("/".join(parts[:-4]), day, region, scope, tuple(names), _template(names))


def _template(names: list[bytes]) -> bytes:
    """The canonical request of a POST to `/` without a query, with `%b` for the values of headers and the body's hash."""
    lines = b"".join(b"%b:%%b\n" % name.replace(b"%", b"%%") for name in names)
    return b"POST\n/\n\n%b\n%b\n%%b" % (lines, b";".join(names).replace(b"%", b"%%"))


def _check_signed(names: list[bytes], headers: Mapping[bytes, bytes]) -> None:
    """Refuse a signature without `Host` or an `X-Amz-*` header of the request, or with a header that is absent."""
    if b"host" not in names:
        raise InvalidSignatureException(
            "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
        )
    for name in headers:
        if name.startswith(b"x-amz-") and name not in names:
            raise InvalidSignatureException(
                f"'{name.decode('latin-1')}' must be a 'SignedHeader' in the AWS Authorization."
            )
    for name in names:
        if name not in headers:
            raise InvalidSignatureException(
                f"The signed header '{name.decode('latin-1')}' is not in the request."
            )


# Time


def _stamp(headers: Mapping[bytes, bytes]) -> str:
    """The time of a request in the basic form of ISO 8601."""
    given = headers.get(b"x-amz-date")
    if given is not None:
        return given.decode("latin-1")
    text = headers.get(b"date", b"").decode("latin-1")
    try:
        return _iso(int(parsedate_to_datetime(text).timestamp()))
    except (ValueError, OverflowError):
        return text


@lru_cache(maxsize=64)
def _seconds(stamp: str) -> int:
    try:
        if len(stamp) != 16 or not stamp.isascii():
            raise ValueError
        return calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise IncompleteSignatureException(
            f"Date must be in ISO-8601 'basic format'. Got '{stamp}'. "
            "See http://en.wikipedia.org/wiki/ISO_8601"
        ) from None


def _iso(seconds: int) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))


def _lifetime(text: bytes | None) -> int | None:
    """The seconds of X-Amz-Expires."""
    if text is None:
        return None
    if len(text) > 6 or not text.isdigit() or not 1 <= int(text) <= _LONGEST:
        raise IncompleteSignatureException(
            f"X-Amz-Expires must be a number of seconds from 1 to {_LONGEST}, "
            f"not '{text[:40].decode('latin-1')}'."
        )
    return int(text)


# The canonical request


def _pairs(query: bytes) -> list[tuple[bytes, bytes]]:
    """The parameters of a query, decoded."""
    pairs = []
    for parameter in query.split(b"&"):
        if parameter:
            name, _, value = parameter.partition(b"=")
            pairs.append((unquote_to_bytes(name), unquote_to_bytes(value)))
    return pairs


def _canonical(
    method: bytes,
    path: bytes,
    pairs: list[tuple[bytes, bytes]],
    headers: Mapping[bytes, bytes],
    signed: tuple[bytes, ...],
    payload: bytes,
) -> bytes:
    lines = []
    for name in signed:
        value = headers[name]
        if b"  " in value or b"\t" in value:
            value = b" ".join(value.split())
        lines.append(b"%b:%b\n" % (name, value.strip()))
    if path != b"/":
        path = _canonical_path(path)
    query = _canonical_query(pairs) if pairs else b""
    return b"%b\n%b\n%b\n%b\n%b\n%b" % (
        method,
        path,
        query,
        b"".join(lines),
        b";".join(signed),
        payload,
    )


def _has_blanks(canonical: bytes) -> bool:
    """Whether values of headers may have blanks that the canonical form removes."""
    return b"  " in canonical or b"\t" in canonical or b" \n" in canonical or b": " in canonical


def _canonical_path(path: bytes) -> bytes:
    """A path without `.`, `..` and empty segments, encoded once more than it was sent."""
    segments: list[bytes] = []
    for segment in path.split(b"/"):
        if segment == b"..":
            if segments:
                segments.pop()
        elif segment not in (b"", b"."):
            segments.append(segment)
    end = b"/" if segments and path.endswith(b"/") else b""
    whole = b"/" + b"/".join(segments) + end
    return quote_from_bytes(whole, safe="/~").encode()


def _canonical_query(pairs: list[tuple[bytes, bytes]]) -> bytes:
    encoded = sorted(
        (quote_from_bytes(name, safe="~"), quote_from_bytes(value, safe="~"))
        for name, value in pairs
    )
    return "&".join(f"{name}={value}" for name, value in encoded).encode()


def _string_to_sign(stamp: str, scope: str, canonical: bytes) -> bytes:
    digest = hashlib.sha256(canonical).hexdigest()
    return f"{ALGORITHM}\n{stamp}\n{scope}\n{digest}".encode("latin-1")


def _mismatch(canonical: bytes, text: bytes) -> ApiError:
    shown = canonical.decode("utf-8", "replace")
    return InvalidSignatureException(
        f"{_MISMATCH}\n\nThe Canonical String for this request should have been\n'{shown}'\n\n"
        f"The String-to-Sign should have been\n'{text.decode('latin-1')}'\n"
    )


# Bodies


def _payload_hash(headers: Mapping[bytes, bytes], body: bytes, *, secure: bool) -> bytes:
    """The body's line in the canonical request. Where it is the hash of the body, it is checked."""
    stated = headers.get(b"x-amz-content-sha256")
    if stated == _CHUNKED:
        return _CHUNKED
    if stated == _UNSIGNED:
        if not secure:
            raise InvalidSignatureException(
                "UNSIGNED-PAYLOAD leaves the body without protection, so it is taken over TLS only; "
                "sign the body."
            )
        return _UNSIGNED
    actual = hashlib.sha256(body).hexdigest().encode()
    if stated is None or hmac.compare_digest(stated, actual):
        return actual
    if stated.startswith(b"STREAMING-"):
        raise InvalidSignatureException(
            f"This server does not verify bodies of the form {stated.decode('latin-1')}; "
            "sign the whole body, or its chunks without trailers."
        )
    raise InvalidSignatureException(
        "The provided 'x-amz-content-sha256' header does not match what was computed."
    )


class _Seed(NamedTuple):
    """The input of the first chunk's signature."""

    key: bytes
    stamp: str
    scope: str
    signature: bytes


def _unchunked(body: bytes, headers: Mapping[bytes, bytes], seed: _Seed) -> bytes:
    """The content of an `aws-chunked` body. Each chunk's signature also covers the previous signature."""
    head = b"%b\n%b\n%b\n" % (_CHUNK_ALGORITHM, seed.stamp.encode(), seed.scope.encode())
    before, at, chunks = seed.signature, 0, []
    while True:
        end = body.find(b"\r\n", at, at + _CHUNK_LINE + 2)
        size, separator, signature = body[at:end].partition(b";chunk-signature=")
        if end < 0 or not separator or not 1 <= len(size) <= 8 or not _is_hex(size):
            raise IncompleteSignatureException("The body is not in signed chunks (aws-chunked).")
        at = end + 2
        chunk = body[at : at + int(size, 16)]
        text = b"%b%b\n%b\n%b" % (
            head,
            before,
            _EMPTY_HASH,
            hashlib.sha256(chunk).hexdigest().encode(),
        )
        before = hmac.digest(seed.key, text, "sha256").hex().encode()
        if not hmac.compare_digest(before, signature):
            raise InvalidSignatureException(_MISMATCH)
        at += len(chunk) + 2
        if not chunk:
            break
        if len(chunk) != int(size, 16) or body[at - 2 : at] != b"\r\n":
            raise IncompleteSignatureException("The body is not in signed chunks (aws-chunked).")
        chunks.append(chunk)
    content = b"".join(chunks)
    stated = headers.get(b"x-amz-decoded-content-length", b"%d" % len(content))
    if body[at:] or stated != b"%d" % len(content):
        raise IncompleteSignatureException("The body is not as long as its headers say.")
    return content


def _is_hex(text: bytes) -> bool:
    return not text.strip(b"0123456789abcdefABCDEF")
