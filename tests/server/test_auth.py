"""Signatures: what is read from them, and the service's words for what is missing."""

from __future__ import annotations

import hashlib
from base64 import b64encode

import pytest

from isotone.server.auth import parse_signature, signature_error

WHOLE = (
    b"AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/dynamodb/aws4_request, "
    b"SignedHeaders=host;x-amz-date, Signature=abc123"
)
QUERY = (
    b"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20260101%2Feu-west-1%2Fdynamodb"
    b"%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-SignedHeaders=host&X-Amz-Signature=abc123"
)
DATE = {b"x-amz-date": b"20260101T000000Z"}


@pytest.mark.parametrize(
    ("headers", "query"), [({b"authorization": WHOLE}, b""), ({}, QUERY)], ids=["header", "query"]
)
def test_both_ways_of_signing_are_read(headers, query):
    signature = parse_signature(headers, query)
    assert signature is not None
    assert signature.access_key == "AKID"
    assert signature.date == "20260101"
    assert signature.region == "eu-west-1"
    assert signature.service == "dynamodb"
    assert signature.signature == "abc123"
    assert "host" in signature.signed_headers
    assert signature_error({**headers, **DATE}, query) is None


def test_an_access_key_may_contain_slashes():
    signed = WHOLE.replace(b"AKID/", b"team/AKID/")
    signature = parse_signature({b"authorization": signed})
    assert signature is not None
    assert signature.access_key == "team/AKID"


@pytest.mark.parametrize(
    "authorization", [b"", b"Basic dXNlcg==", b"AWS4-HMAC-SHA256", b"\xff\xfe"]
)
def test_no_signature_is_read_where_there_is_none(authorization):
    assert parse_signature({b"authorization": authorization}) is None


@pytest.mark.parametrize("headers", [{}, {b"authorization": b""}, {b"authorization": b"Bearer x"}])
def test_unsigned_requests_miss_a_token(headers):
    error = signature_error({**headers, **DATE})
    assert error is not None
    assert error.code == "MissingAuthenticationTokenException"
    assert error.message == "Request is missing Authentication Token"


def test_two_signatures_are_one_too_many():
    error = signature_error({b"authorization": WHOLE, **DATE}, QUERY)
    assert error is not None
    assert error.code == "InvalidSignatureException"
    assert error.message == (
        "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
    )


def test_an_empty_signature_header_lacks_everything():
    error = signature_error({b"authorization": b"AWS4-"})
    assert error is not None
    assert error.code == "IncompleteSignatureException"
    digest = b64encode(hashlib.sha256(b"AWS4-").digest()).decode()
    assert error.message == (
        "Authorization header requires 'Credential' parameter. "
        "Authorization header requires 'Signature' parameter. "
        "Authorization header requires 'SignedHeaders' parameter. "
        "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
        f"(Hashed with SHA-256 and encoded with Base64) Authorization={digest}"
    )


@pytest.mark.parametrize("part", ["Credential", "Signature", "SignedHeaders"])
def test_each_missing_part_of_the_header_is_named(part):
    kept = [p for p in WHOLE.decode().split(" ", 1)[1].split(", ") if not p.startswith(part + "=")]
    error = signature_error({b"authorization": ("AWS4-X " + ", ".join(kept)).encode(), **DATE})
    assert error is not None
    assert error.message.startswith(f"Authorization header requires '{part}' parameter. (Hashed")


def test_a_date_header_will_do():
    assert signature_error({b"authorization": WHOLE, b"date": b"Thu, 01 Jan 2026"}) is None
    assert signature_error({b"authorization": WHOLE}) is not None


@pytest.mark.parametrize("part", ["Algorithm", "Credential", "Signature", "SignedHeaders", "Date"])
def test_each_missing_part_of_the_query_is_named(part):
    kept = b"&".join(p for p in QUERY.split(b"&") if not p.startswith(f"X-Amz-{part}=".encode()))
    error = signature_error({}, kept)
    assert error is not None
    assert error.code == "IncompleteSignatureException"
    assert error.message == (
        f"AWS query-string parameters must include 'X-Amz-{part}'. "
        "Re-examine the query-string parameters."
    )
