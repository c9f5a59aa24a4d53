"""Signatures are compared with those of botocore, which knows nothing of ours."""

from __future__ import annotations

import datetime as dt
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.backends.credentials import Credentials, fixed
from isotone.backends.signing import CONTENT_TYPE, TARGET, Signer

KEYS = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", min_size=16, max_size=20)
SECRETS = st.text("abcdefXYZ0123456789+/", min_size=1, max_size=40)


def botocore_signature(
    credentials: Credentials, region: str, host: str, operation: str, body: bytes, now: float
) -> dict[str, str]:
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as Theirs

    request = AWSRequest("POST", f"https://{host}/", data=body)
    request.headers["Content-Type"] = CONTENT_TYPE
    request.headers["X-Amz-Target"] = TARGET + operation
    instant = dt.datetime.fromtimestamp(now, dt.UTC).replace(tzinfo=None)
    with mock.patch.object(auth, "get_current_datetime", return_value=instant):
        auth.SigV4Auth(Theirs(*credentials), "dynamodb", region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


def our_headers(signer: Signer, operation: str, body: bytes) -> dict[str, str]:
    lines = signer.headers(operation, body).split("\r\n")
    assert lines.pop() == ""
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


@given(
    access_key=KEYS,
    secret_key=SECRETS,
    token=st.none() | SECRETS,
    region=st.sampled_from(["eu-west-1", "us-gov-west-1"]),
    host=st.sampled_from(["dynamodb.eu-west-1.amazonaws.com", "localhost:8000"]),
    operation=st.sampled_from(["GetItem", "TransactWriteItems"]),
    body=st.binary(),
    now=st.integers(0, 4_000_000_000),
)
def test_signatures_are_those_of_botocore(
    access_key: str,
    secret_key: str,
    token: str | None,
    region: str,
    host: str,
    operation: str,
    body: bytes,
    now: int,
) -> None:
    credentials = Credentials(access_key, secret_key, token)
    theirs = botocore_signature(credentials, region, host, operation, body, now)
    ours = our_headers(Signer(fixed(credentials), region, host, lambda: now), operation, body)
    assert ours["authorization"] == theirs["authorization"]
    assert ours["x-amz-date"] == theirs["x-amz-date"]
    assert ours.get("x-amz-security-token") == theirs.get("x-amz-security-token")


def test_a_new_day_and_new_keys_derive_anew() -> None:
    now = [0.0]
    current = [Credentials("A" * 16, "one")]
    signer = Signer(lambda: current[0], "eu-west-1", "localhost", lambda: now[0])

    def fresh() -> str:
        return Signer(fixed(current[0]), "eu-west-1", "localhost", lambda: now[0]).headers(
            "Scan", b""
        )

    first = signer.headers("Scan", b"")
    now[0] = 86_400.0
    assert signer.headers("Scan", b"") == fresh() != first
    current[0] = Credentials("A" * 16, "two", "token")
    assert signer.headers("Scan", b"") == fresh()


def test_time_is_corrected_by_the_skew() -> None:
    signer = Signer(fixed(Credentials("A", "b")), "eu-west-1", "localhost", lambda: 0.0)
    assert "X-Amz-Date: 19700101T000000Z" in signer.headers("Scan", b"")
    signer.skew = 3600.0
    assert "X-Amz-Date: 19700101T010000Z" in signer.headers("Scan", b"")
