"""Parses signatures: access key and region; refuses absent ones (MissingAuthenticationToken, IncompleteSignature).

Without --credentials a server does not verify signatures: any access key works. But it refuses unsigned and incompletely
signed requests with AWS's error messages, so a client that does not sign fails as it would on AWS. `signatures` verifies.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from isotone.errors import (
    ApiError,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
)

_SCHEME: Final = "AWS4-"
_HEADER_PARTS: Final = ("Credential", "Signature", "SignedHeaders")
QUERY_PARTS: Final = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
)


class Signature(NamedTuple):
    """The parts of an AWS signature, from the Authorization header or from the query of a presigned URL."""

    access_key: str
    date: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str


def parse_signature(headers: Mapping[bytes, bytes], query: bytes = b"") -> Signature | None:
    """The signature of a request, or None if it is missing or incomplete. Header names are in lower case."""
    parts = _header_parts(headers.get(b"authorization", b"").decode("latin-1"))
    if not parts:
        parts = {name.removeprefix("X-Amz-"): value for name, value in _query_parts(query).items()}
    scope = parts.get("Credential", "").split("/")
    if len(scope) < 5 or not parts.get("Signature"):
        return None
    return Signature(
        access_key="/".join(scope[:-4]),
        date=scope[-4],
        region=scope[-3],
        service=scope[-2],
        signed_headers=tuple(parts.get("SignedHeaders", "").split(";")),
        signature=parts["Signature"],
    )


def signature_error(headers: Mapping[bytes, bytes], query: bytes = b"") -> ApiError | None:
    """The service's error for a missing or incomplete signature; None if the request is signed."""
    authorization = headers.get(b"authorization", b"").decode("latin-1").strip()
    in_query = _query_parts(query)
    if authorization and "X-Amz-Algorithm" in in_query:
        return InvalidSignatureException(
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
        )
    if in_query:
        return _query_error(in_query)
    if not authorization.startswith(_SCHEME):
        return MissingAuthenticationTokenException("Request is missing Authentication Token")
    return _header_error(authorization, dated=b"x-amz-date" in headers or b"date" in headers)


def _header_error(authorization: str, *, dated: bool) -> ApiError | None:
    present = _header_parts(authorization)
    missing = [
        f"Authorization header requires '{part}' parameter."
        for part in _HEADER_PARTS
        if not present.get(part)
    ]
    if not dated:
        missing.append(
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
        )
    if not missing:
        return None
    digest = b64encode(hashlib.sha256(authorization.encode("latin-1")).digest()).decode()
    missing.append(f"(Hashed with SHA-256 and encoded with Base64) Authorization={digest}")
    return IncompleteSignatureException(" ".join(missing))


def _query_error(present: Mapping[str, str]) -> ApiError | None:
    missing = [
        f"AWS query-string parameters must include '{part}'."
        for part in QUERY_PARTS
        if not present.get(part)
    ]
    if not missing:
        return None
    return IncompleteSignatureException(
        " ".join([*missing, "Re-examine the query-string parameters."])
    )


def _header_parts(authorization: str) -> dict[str, str]:
    _, _, parameters = authorization.partition(" ")
    pairs = (parameter.strip().partition("=") for parameter in parameters.split(","))
    return {name: value for name, separator, value in pairs if separator}


def _query_parts(query: bytes) -> dict[str, str]:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return {name: value for name, value in pairs if name in QUERY_PARTS}
