"""Requests of people without a key, or with another one, over a socket: none reaches the database."""

from __future__ import annotations

import json
import os
import signal
import socket
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.credentials import Credentials
from tests.sdks.server_process import start_server
from tests.server.fakes import FakeService, request_bytes
from tests.server.signing import ANN, signed, write_credentials

from isotone.clock import ManualClock
from isotone.errors import UsageError
from isotone.server import running_server


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    return write_credentials(tmp_path / "users.json", ann={}, bob={})


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC))


@pytest.fixture
def url(service: FakeService, credentials: Path, clock: ManualClock) -> Iterator[str]:
    with running_server(service, credentials=credentials, clock=clock) as url:
        yield url


def wire(request: tuple[bytes, bytes, dict[bytes, bytes], bytes], *extra: bytes) -> bytes:
    """A signed request as it travels, with more lines in its head."""
    method, url, headers, body = request
    lines = [b"%b: %b" % each for each in headers.items()]
    lines += [*extra, b"Content-Length: %d" % len(body)]
    return b"%b %b HTTP/1.1\r\n%b\r\n\r\n%b" % (method, url, b"\r\n".join(lines), body)


def fresh(body: bytes = b"{}", clock: ManualClock | None = None, **options: Any) -> Any:
    moment = datetime.now(UTC) if clock is None else clock.utc
    return signed(body, moment=moment, host="localhost", **options)


def exchange(url: str, data: bytes) -> tuple[int, dict[str, Any]]:
    """The status and the JSON of the first answer; {} if it has none."""
    address = urlsplit(url).hostname, urlsplit(url).port
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    head, _, rest = received.partition(b"\r\n\r\n")
    body = rest.partition(b"HTTP/1.1")[0]
    return int(head.split(b" ")[1]), json.loads(body) if body.startswith(b"{") else {}


def nothing_reached(service: FakeService) -> bool:
    return (service.reads, service.groups) == ([], [])


@pytest.mark.parametrize("in_query", [False, True])
def test_a_right_signature_is_served(url: str, service: FakeService, in_query: bool) -> None:
    for body in (b"{}", b'{"Limit":1}'):
        assert exchange(url, wire(fresh(body, in_query=in_query))) == (
            200,
            {"ListTables": json.loads(body)},
        )
    assert service.reads == [("ListTables", b"{}"), ("ListTables", b'{"Limit":1}')]


def test_an_invented_signature(url: str, service: FakeService) -> None:
    for operation in ("PutItem", "ListTables"):
        status, answer = exchange(url, request_bytes(operation))
        assert status == 400
        assert answer["__type"] == "com.amazon.coral.service#UnrecognizedClientException"
    assert nothing_reached(service)


def test_no_signature(url: str, service: FakeService) -> None:
    method, path, headers, body = fresh()
    del headers[b"authorization"]
    status, answer = exchange(url, wire((method, path, headers, body)))
    assert (status, answer["__type"]) == (
        400,
        "com.amazon.coral.service#MissingAuthenticationTokenException",
    )
    assert nothing_reached(service)


@pytest.mark.parametrize("body", [b'{"\xff":1}', b"[" * 200_000, b"\x1f\x8b" + b"\0" * 99, b""])
def test_a_body_is_not_looked_at_before_its_signature(
    url: str, service: FakeService, body: bytes
) -> None:
    """Neither decompressed nor decoded: garbage gets the error of the signature."""
    request = fresh(body, credentials=Credentials("ISOTANN", "wrong"))
    status, answer = exchange(url, wire(request, b"Content-Encoding: gzip"))
    assert (status, answer["__type"]) == (400, "com.amazon.coral.service#InvalidSignatureException")
    assert nothing_reached(service)


def test_a_secret_of_somebody_else(url: str, service: FakeService) -> None:
    request = fresh(credentials=Credentials("ISOTANN", "a secret of bob"))
    assert exchange(url, wire(request))[0] == 400
    assert nothing_reached(service)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"DynamoDB_20120810.ListTables", b"DynamoDB_20120810.DeleteTable"),
        (b"/eu-west-1/", b"/us-east-1/"),
        (b"ISOTANN", b"ISOTBOB"),
        (b"localhost", b"127.0.0.1"),
    ],
)
def test_a_request_that_was_changed(url: str, service: FakeService, old: bytes, new: bytes) -> None:
    data = wire(fresh())
    assert old in data
    assert exchange(url, data.replace(old, new))[0] == 400
    assert nothing_reached(service)


def test_another_body(url: str, service: FakeService) -> None:
    method, path, headers, _ = fresh(b'{"Limit":1}')
    assert exchange(url, wire((method, path, headers, b'{"Limit":2}')))[0] == 400
    assert nothing_reached(service)


def test_a_body_that_is_compressed_on_the_way(url: str, service: FakeService) -> None:
    method, path, headers, body = fresh(b'{"Limit":1}')
    compressed = zlib.compress(body, wbits=31)
    request = method, path, headers, compressed
    assert exchange(url, wire(request, b"Content-Encoding: gzip"))[0] == 400
    assert nothing_reached(service)


def test_a_body_that_was_signed_compressed(url: str, service: FakeService) -> None:
    request = fresh(zlib.compress(b'{"Limit":1}', wbits=31), headers={"Content-Encoding": "gzip"})
    assert exchange(url, wire(request)) == (200, {"ListTables": {"Limit": 1}})


@pytest.mark.parametrize(
    "line",
    [
        b"X-Amz-Target: DynamoDB_20120810.DeleteTable",
        b"x-amz-target: DynamoDB_20120810.ListTables",
        b"Authorization: AWS4-HMAC-SHA256 Credential=ISOTBOB",
        b"Host: evil.example",
        b"X-Amz-Date: 20260101T000000Z",
    ],
)
def test_a_header_that_is_there_twice(url: str, service: FakeService, line: bytes) -> None:
    assert exchange(url, wire(fresh(), line))[0] == 400
    assert nothing_reached(service)


@pytest.mark.parametrize(
    "line",
    [
        b"X-Amz-Security-Token: mine",
        b"X-Amz-Content-Sha256: UNSIGNED-PAYLOAD",
        b"X-Amz-Decoded-Content-Length: 2",
        b"x-amz-anything: new",
    ],
)
def test_a_header_that_is_not_signed(url: str, service: FakeService, line: bytes) -> None:
    status, answer = exchange(url, wire(fresh(), line))
    assert (status, answer["__type"]) == (400, "com.amazon.coral.service#InvalidSignatureException")
    assert "must be a 'SignedHeader'" in answer["message"]
    assert nothing_reached(service)


def test_a_target_that_is_not_signed(url: str, service: FakeService) -> None:
    """The action of a signed request could otherwise be chosen on the way."""
    method, path, headers, body = fresh()
    headers[b"authorization"] = headers[b"authorization"].replace(b";x-amz-target", b"")
    assert exchange(url, wire((method, path, headers, body)))[0] == 400
    assert nothing_reached(service)


@pytest.mark.parametrize("in_query", [False, True])
def test_a_request_is_not_repeated_later(
    url: str, service: FakeService, clock: ManualClock, in_query: bool
) -> None:
    data = wire(fresh(clock=clock, in_query=in_query))
    assert exchange(url, data)[0] == 200
    clock.advance(timedelta(hours=1, seconds=1) if in_query else timedelta(minutes=15, seconds=1))
    status, answer = exchange(url, data)
    assert (status, "Signature expired" in answer["message"]) == (400, True)
    assert len(service.reads) == 1


def test_a_second_request_in_the_same_bytes_needs_its_own_signature(
    url: str, service: FakeService
) -> None:
    exchange(url, wire(fresh()) + request_bytes("PutItem"))
    assert service.reads == [("ListTables", b"{}")]
    assert service.groups == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_reach_nothing(url: str, service: FakeService, method: str) -> None:
    exchange(url, wire(fresh(method=method)))
    assert nothing_reached(service)


@pytest.mark.parametrize("path", ["/faults", "/faults?x=1", "//", "/x"])
def test_other_paths_reach_nothing(url: str, service: FakeService, path: str) -> None:
    assert exchange(url, wire(fresh(target=path)).replace(b"x-amz", b"y-amz"))[0] in (400, 404)
    assert exchange(url, request_bytes("PutItem").replace(b"POST /", b"POST " + path.encode()))[
        0
    ] in (400, 404)
    assert nothing_reached(service)


# Where credentials are needed, and when they are read


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_beyond_this_machine_credentials_are_required(
    service: FakeService, credentials: Path, host: str
) -> None:
    if host == "::" and not socket.has_ipv6:
        pytest.skip("there is no IPv6")
    with (
        pytest.raises(UsageError, match=r"give --credentials FILE .*or --insecure"),
        running_server(service, host),
    ):
        pass
    with running_server(service, host, insecure=True):
        pass
    with running_server(service, host, credentials=credentials):
        pass


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_credentials_are_read_again_on_a_signal(tmp_path: Path) -> None:
    file = write_credentials(tmp_path / "users.json", ann={})
    log = tmp_path / "log"

    def asked(credentials: Credentials) -> int:
        return exchange(server.url, wire(fresh(credentials=credentials)))[0]

    def wait_for(line: str) -> None:
        deadline = datetime.now(UTC) + timedelta(seconds=20)
        while line not in log.read_text():
            assert datetime.now(UTC) < deadline
        log.write_text("")

    bob = Credentials("ISOTBOB", "a secret of bob")
    with (
        log.open("a") as stderr,
        start_server(
            None, "--credentials", str(file), "--log-level", "info", stderr=stderr
        ) as server,
    ):
        assert (asked(ANN), asked(bob)) == (200, 400)
        write_credentials(file, bob={})
        server.process.send_signal(signal.SIGHUP)
        wait_for("1 user")
        assert (asked(ANN), asked(bob)) == (400, 200)
        file.write_text("{")
        server.process.send_signal(signal.SIGHUP)
        wait_for("the credentials stay as they are")
        assert (asked(ANN), asked(bob)) == (400, 200)
        file.chmod(0o644)
        write_credentials(file, ann={}).chmod(0o644)
        server.process.send_signal(signal.SIGHUP)
        wait_for("other users of this machine may read the secrets")
        assert server.stop() == 0
