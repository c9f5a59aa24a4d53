"""Buckets at an S3 endpoint, against a server that checks signatures, and against moto's."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backends.s3_server import ACCESS_KEY, SECRET_KEY, S3Server, md5, s3_server
from tests.effort import examples

import isotone
from isotone import S3, Credentials, Retries, Timeouts
from isotone.errors import NoCredentials, UsageError
from isotone.exchange import s3 as semantics
from isotone.exchange.objects import (
    Bucket,
    ObjectStoreClosed,
    ObjectStoreError,
    ObjectStoreUnavailable,
    StoredObject,
)
from isotone.exchange.s3 import S3Buckets

MOTO = Path(__file__).parents[2] / ".peers/moto/bin/moto_server"
CREDENTIALS = Credentials(ACCESS_KEY, SECRET_KEY)
QUICK = Retries(attempts=4, base=0.001)
BUCKET = Bucket("bucket")


_OPEN: list[S3Buckets] = []


def buckets_at(url: str, **options: Any) -> S3Buckets:
    given = {"credentials": CREDENTIALS, "retries": QUICK, **options}
    buckets = S3Buckets(S3(url, **given).client())
    _OPEN.append(buckets)
    return buckets


def buckets_of(server: S3Server, **options: Any) -> S3Buckets:
    return buckets_at(server.url, **options)


@pytest.fixture(autouse=True)
def _close_all() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server("bucket") as running:
        yield running


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges and parts of ten bytes."""
    for name in ("RANGE", "PART", "WHOLE"):
        monkeypatch.setattr(semantics, name, 10)


def test_what_is_put_is_listed_and_read(server: S3Server) -> None:
    buckets = buckets_of(server)
    for key in ("a/1", "a/2", "b"):
        assert buckets.put(BUCKET, key, key.encode()) == md5(key.encode())
    assert buckets.list(BUCKET, "a/") == [StoredObject("a/1", 3), StoredObject("a/2", 3)]
    with buckets.open(BUCKET, "a/2") as file:
        assert file.read() == b"a/2"


@settings(max_examples=examples(30), deadline=None)
@given(
    keys=st.sets(st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1), max_size=7)
)
def test_any_key_is_signed_listed_and_read(keys: set[str]) -> None:
    keys = {key for key in keys if not key.startswith("/") and "\x7f" not in key}
    with s3_server("bucket", page=2) as server:
        buckets = buckets_of(server)
        for key in keys:
            buckets.put(BUCKET, key, key.encode())
        expected = sorted(StoredObject(key, len(key.encode())) for key in keys)
        assert buckets.list(BUCKET, "") == expected
        for key in keys:
            with buckets.open(BUCKET, key) as file:
                assert file.read().decode() == key
        buckets.close()


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 25])
@pytest.mark.parametrize("has_ranges", [True, False])
def test_an_object_is_read_in_ranges_and_written_in_parts(
    small: None, size: int, has_ranges: bool
) -> None:
    content = bytes(range(size))
    with s3_server("bucket", has_ranges=has_ranges) as server:
        buckets = buckets_of(server)
        tag = buckets.put(BUCKET, "key", content)
        assert server.buckets["bucket"]["key"] == content
        assert tag.endswith(f"-{-(-size // 10)}") == (size > 10)
        with buckets.open(BUCKET, "key") as file:
            assert file.read(3) + file.read() == content
            assert file.read() == b""
        assert not server.uploads


def test_an_object_that_is_replaced_while_it_is_read(small: None, server: S3Server) -> None:
    buckets = buckets_of(server)
    server.buckets["bucket"]["key"] = b"first" * 5
    with buckets.open(BUCKET, "key") as file:
        assert file.read(10) == b"firstfirst"
        server.buckets["bucket"]["key"] = b"other" * 5
        with pytest.raises(ObjectStoreError) as raised:
            file.read(10)
    assert raised.value.code == "S3PreconditionFailed"


def test_an_upload_that_fails_leaves_no_parts(small: None, server: S3Server) -> None:
    buckets = buckets_of(server)
    server.faults = [200, 200, 400]  # the second part is refused
    with pytest.raises(ObjectStoreError, match=r"Try again"):
        buckets.put(BUCKET, "key", bytes(25))
    assert server.requests[-1][0] == "DELETE"
    assert server.uploads == {}
    assert "key" not in server.buckets["bucket"]


@pytest.mark.parametrize("faults", [[503], [500, "close", 429]])
def test_a_request_that_fails_is_sent_again(server: S3Server, faults: list[int | str]) -> None:
    buckets = buckets_of(server)
    server.faults = [*faults]
    buckets.put(BUCKET, "key", b"content")
    assert server.buckets["bucket"] == {"key": b"content"}
    assert len(server.requests) == len(faults) + 1


def test_errors_have_s3s_codes_and_messages(server: S3Server) -> None:
    buckets = buckets_of(server)
    server.denied.add("mine")
    for bucket, code, message in (
        ("none", "S3NoSuchBucket", "The specified bucket does not exist"),
        ("mine", "S3AccessDenied", "Access Denied"),
    ):
        with pytest.raises(ObjectStoreError) as raised:
            buckets.list(Bucket(bucket), "")
        assert (raised.value.code, raised.value.message) == (code, message)
        assert not isinstance(raised.value, ObjectStoreUnavailable)
    with pytest.raises(ObjectStoreError, match="key does not exist"):
        buckets.open(BUCKET, "none")
    server.faults = [503] * 4
    with pytest.raises(ObjectStoreUnavailable) as raised:
        buckets.put(BUCKET, "key", b"")
    assert raised.value.code == "S3SlowDown"


def test_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    buckets = buckets_at(url)
    with pytest.raises(ObjectStoreUnavailable, match="cannot connect") as raised:
        buckets.list(BUCKET, "")
    assert raised.value.code == "S3ServiceUnavailable"


def test_owner_and_encryption_are_sent(server: S3Server) -> None:
    bucket = Bucket("bucket", "123456789012", "KMS", "key-1")
    buckets_of(server).put(bucket, "key", b"")
    sent = server.headers[-1]
    assert sent["x-amz-expected-bucket-owner"] == "123456789012"
    assert sent["x-amz-server-side-encryption"] == "aws:kms"
    assert sent["x-amz-server-side-encryption-aws-kms-key-id"] == "key-1"


def test_a_token_and_a_region_are_signed(server: S3Server) -> None:
    credentials = Credentials(ACCESS_KEY, SECRET_KEY, "token")
    buckets_of(server, credentials=credentials, region="eu-west-3").put(BUCKET, "key", b"")
    assert server.headers[-1]["x-amz-security-token"] == "token"
    assert "/eu-west-3/s3/" in server.headers[-1]["authorization"]


def test_a_bucket_with_a_host_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server("bucket", "other") as server:
        server.virtual_host = server.url.removeprefix("http://")
        connect = socket.create_connection
        monkeypatch.setattr(
            socket,
            "create_connection",
            lambda address, *more: connect(("127.0.0.1", address[1]), *more),
        )
        buckets = buckets_of(server, addressing_style="virtual")
        for bucket in ("bucket", "other"):
            buckets.put(Bucket(bucket), "a b/c", bucket.encode())
            assert buckets.list(Bucket(bucket), "") == [StoredObject("a b/c", len(bucket))]
        assert server.headers[-1]["host"] == f"other.{server.virtual_host}"
        assert server.requests[0][1] == "/a%20b/c"


@pytest.mark.parametrize(
    ("url", "bucket", "host", "path"),
    [
        ("https://s3.eu-west-1.amazonaws.com", "b1", "b1.s3.eu-west-1.amazonaws.com", "/k"),
        ("https://s3.eu-west-1.amazonaws.com", "b.1", "s3.eu-west-1.amazonaws.com", "/b.1/k"),
        ("https://s3.amazonaws.com", "b1", "b1.s3.amazonaws.com", "/k"),
        ("https://s3.cn-north-1.amazonaws.com.cn", "b1", "b1.s3.cn-north-1.amazonaws.com.cn", "/k"),
        ("https://minio.example:9000/", "b1", "minio.example:9000", "/b1/k"),
        ("http://[::1]:9000", "b1", "[::1]:9000", "/b1/k"),
    ],
)
def test_addresses(url: str, bucket: str, host: str, path: str) -> None:
    client = S3(url, credentials=CREDENTIALS).client()
    address, found = client._place(bucket, "k")
    assert (address.authority, found) == (host, path)


def test_the_region_is_that_of_amazons_host() -> None:
    for url, region in (
        ("https://s3.eu-west-1.amazonaws.com", "eu-west-1"),
        ("https://s3.amazonaws.com", "us-east-1"),
        ("https://s3.dualstack.eu-west-1.amazonaws.com", "eu-west-1"),
    ):
        assert S3(url, credentials=CREDENTIALS).client()._signer._region == region


@pytest.mark.parametrize("url", ["s3://bucket", "http://", "http://a/b", "http://u:p@a", "ftp://a"])
def test_a_url_that_is_no_endpoint(url: str) -> None:
    with pytest.raises(UsageError, match="is not an S3 endpoint; write a folder") as raised:
        isotone.open(s3=url)
    assert "u:p" not in str(raised.value)


def test_amazon_needs_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("isotone.backends.credentials.botocore_session", lambda _: None)
    with pytest.raises(NoCredentials):
        isotone.open(s3="https://s3.eu-west-1.amazonaws.com")


def test_closing_ends_a_request_that_hangs(server: S3Server) -> None:
    buckets = buckets_of(server, timeouts=Timeouts(read=30))
    server.faults = ["hang"]
    raised: list[BaseException] = []

    def put() -> None:
        try:
            buckets.put(BUCKET, "key", b"")
        except ObjectStoreClosed as error:
            raised.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    while not server.requests:
        time.sleep(0.01)
    buckets.close()
    thread.join(10)
    assert not thread.is_alive()
    assert len(raised) == 1
    with pytest.raises(ObjectStoreClosed):
        buckets.list(BUCKET, "")


def test_a_clock_that_is_wrong_is_corrected(server: S3Server) -> None:
    from tests.backends.scripted import answer, scripted_server

    text = b"<Error><Code>RequestTimeTooSkewed</Code><Message>Too late</Message></Error>"
    dated = ["Date: Wed, 01 Jan 2020 00:00:00 GMT"]
    refused = answer(status=403, raw=text, headers=dated)
    with scripted_server(refused, answer(raw=b"", headers=["ETag: a"])) as scripted:
        buckets = buckets_at(scripted.url)
        assert buckets.put(BUCKET, "key", b"") == "a"
    assert b"x-amz-date: 2020" in scripted.requests[1]
    with scripted_server(refused, refused, refused) as scripted:
        buckets = buckets_at(scripted.url)
        with pytest.raises(ObjectStoreError, match="Too late"):
            buckets.put(BUCKET, "key", b"")
    assert len(scripted.requests) == 2


@pytest.mark.skipif(not MOTO.exists(), reason="moto's server is not installed under .peers")
def test_the_same_on_motos_server(small: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [MOTO, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{url}/moto-api/")
        urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT")).close()
        buckets = buckets_at(url)
        for key in ("a b+c%/é", "empty"):
            buckets.put(BUCKET, key, b"ten bytes." if key != "empty" else b"")
        assert buckets.list(BUCKET, "") == [StoredObject("a b+c%/é", 10), StoredObject("empty", 0)]
        with buckets.open(BUCKET, "empty") as file:
            assert file.read() == b""
        with pytest.raises(ObjectStoreError) as raised:
            buckets.list(Bucket("none"), "")
        assert raised.value.code == "S3NoSuchBucket"
    finally:
        process.terminate()
        process.wait()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "moto's server did not start"
            time.sleep(0.1)


# An endpoint that answers oddly


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: dict[bytes, bytes] = field(default_factory=dict)


class Answering:
    """A sender that gives prepared answers, one after the other."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)

    def send(self, *_: Any) -> Answer:
        return self._answers.pop(0)

    def close(self) -> None:
        """Nothing is open."""


def test_an_endpoint_that_stops_giving_ranges_doubles_nothing() -> None:
    first = Answer(206, b"0123456789", {b"etag": b"x", b"content-range": b"bytes 0-9/15"})
    buckets = S3Buckets(Answering(first, Answer(200, b"0123456789abcde")))
    with buckets.open(BUCKET, "key") as file:
        assert file.read() == b"0123456789abcde"


@pytest.mark.parametrize("token", ["", "again"])
def test_a_list_that_does_not_say_how_it_continues_ends(token: str) -> None:
    page = f"<List><IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken></List>"
    buckets = S3Buckets(Answering(*[Answer(200, page.encode())] * 3))
    with pytest.raises(ObjectStoreError, match="does not say how it goes on"):
        buckets.list(BUCKET, "")
