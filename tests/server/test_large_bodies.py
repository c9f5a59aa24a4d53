"""What takes long to hash, to decompress, to parse or to compress is done in a thread, while the server serves others."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.server import signing
from tests.server.exposition_reader import values
from tests.server.fakes import FakeService, request_bytes
from tests.server.test_connection import answers
from tests.server.test_monitor import ask, dial, held, until

import isotone
from isotone.server import compression, request, response, running_server, signatures
from isotone.server.compression import BODY_LIMIT, decompressed

LARGE = 1_000_000
BODY = b"{}" + b" " * (2 * LARGE)


class Held:
    """Work on large contents waits until `go` is set."""

    def __init__(self, patch: Callable[[Any, str, Any], None]) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        patch(signatures, "hashlib", SimpleNamespace(sha256=self._sha256))
        patch(request, "parsed_body", self._parsed_body)
        patch(
            compression,
            "zlib",
            SimpleNamespace(error=zlib.error, compress=zlib.compress, decompressobj=self._inflate),
        )

    def pass_by(self, size: int) -> None:
        if size > LARGE:
            self.begun.set()
            assert self.go.wait(10)

    def _sha256(self, content: bytes) -> Any:
        self.pass_by(len(content))
        return hashlib.sha256(content)

    def _parsed_body(self, body: bytes, shape: Any) -> Any:
        self.pass_by(len(body))
        return json.loads(body)

    def _inflate(self, wbits: int) -> Any:
        return _Inflate(zlib.decompressobj(wbits), self)


class _Inflate:
    def __init__(self, inner: Any, held: Held) -> None:
        self._inner, self._held, self._size = inner, held, 0

    def decompress(self, piece: bytes, most: int) -> bytes:
        part: bytes = self._inner.decompress(piece, most)
        self._size += len(part)
        self._held.pass_by(self._size)
        return part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    found = Held(monkeypatch.setattr)
    yield found
    found.go.set()


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        yield database


@pytest.fixture(params=["signed", "compressed", "unsigned"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def url(database: isotone.Database, kind: str, tmp_path: Path) -> Iterator[str]:
    users = signing.write_credentials(tmp_path / "users.json", ann={})
    clock = isotone.ManualClock(signing.NOW.timestamp())
    with running_server(
        database,
        credentials=users if kind == "signed" else None,
        clock=clock,
        audit_log=tmp_path / "audit.log",
    ) as url:
        yield url


def made(kind: str, url: str, body: bytes) -> bytes:
    """A request of a kind as it travels."""
    if kind == "compressed":
        return request_bytes("ListTables", zlib.compress(body, wbits=31), Content_Encoding="gzip")
    if kind == "unsigned":
        return request_bytes("ListTables", body, Authorization="none")
    host = urlsplit(url).netloc
    _, _, headers, _ = signing.signed(body, host=host)
    head = b"".join(b"%b: %b\r\n" % header for header in headers.items())
    return b"POST / HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)


def test_others_are_served_while_a_large_body_is_read(hold: Held, url: str, kind: str) -> None:
    expected = 400 if kind == "unsigned" else 200
    with dial(url) as one, dial(url) as other:
        one.sendall(made(kind, url, BODY) + made(kind, url, b'{"Limit": 7}'))
        assert hold.begun.wait(10)
        other.sendall(made(kind, url, b"{}"))
        assert answers(other, 1)[0][0] == expected
        hold.go.set()
        (status, answer), (following, _) = answers(one, 2)
    assert (status, following) == (expected, expected)
    if kind == "unsigned":
        assert b"MissingAuthenticationTokenException" in answer


def test_a_client_that_does_not_wait_gets_nothing_and_leaves_nothing(
    hold: Held, url: str, kind: str, tmp_path: Path
) -> None:
    with dial(url) as sock:
        sock.sendall(made(kind, url, BODY))
        assert hold.begun.wait(10)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
    with dial(url) as sock:
        assert until(lambda size: size == 0, url) == 0
        hold.go.set()
        sock.sendall(made(kind, url, b"{}"))
        answers(sock, 1)
        assert held(url) == 0
    lines = (tmp_path / "audit.log").read_text().splitlines()
    assert len(lines) == 1


@pytest.mark.parametrize("kind", ["signed"], indirect=True)
def test_a_large_body_with_a_wrong_signature_is_refused(url: str, tmp_path: Path) -> None:
    with dial(url) as sock:
        sock.sendall(made("signed", url, BODY)[:-1] + b"x")
        ((status, answer),) = answers(sock, 1)
    assert status == 400
    assert b"InvalidSignatureException" in answer
    (line,) = (tmp_path / "audit.log").read_text().splitlines()
    assert json.loads(line)["error"] == "InvalidSignatureException"


@pytest.mark.parametrize("kind", ["compressed"], indirect=True)
def test_a_small_body_that_becomes_too_large_is_refused(url: str, kind: str) -> None:
    with dial(url) as sock:
        sock.sendall(made(kind, url, bytes(BODY_LIMIT + 1)))
        assert answers(sock, 1)[0][0] == 413


@pytest.mark.parametrize("kind", ["signed"], indirect=True)
def test_the_time_to_read_a_body_is_part_of_the_duration(hold: Held, url: str) -> None:
    with dial(url) as sock:
        sock.sendall(made("signed", url, BODY))
        assert hold.begun.wait(10)
        time.sleep(0.2)
        hold.go.set()
        answers(sock, 1)
        found = values(ask(url, "GET", "/metrics")[1])
    assert found['isotone_request_duration_seconds_sum{action="ListTables"}'] >= 0.2


# Answers


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_others_are_served_while_a_large_answer_is_compressed(
    monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    begun, go = threading.Event(), threading.Event()

    def held_back(coding: bytes, body: bytes) -> bytes:
        if len(body) > LARGE:
            begun.set()
            assert go.wait(10)
        return compression.compressed(coding, body)

    monkeypatch.setattr(response, "compressed", held_back)
    with running_server(FakeService()) as url, dial(url) as one, dial(url) as other:
        large = request_bytes(operation, b'"big 2000000"', Accept_Encoding="gzip")
        one.sendall(large + request_bytes(operation))
        assert begun.wait(10)
        other.sendall(request_bytes("GetItem"))
        assert answers(other, 1) == [(200, b'{"GetItem":{}}')]
        go.set()
        (status, answer), following = answers(one, 2)
    assert status == 200
    assert zlib.decompress(answer, wbits=31) == b'"' + b"x" * 2_000_000 + b'"'
    assert following == (200, b'{"%b":{}}' % operation.encode())


def test_an_answer_that_cannot_be_compressed_is_a_500(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(coding: bytes, body: bytes) -> bytes:
        raise MemoryError

    monkeypatch.setattr(response, "compressed", fails)
    with running_server(FakeService()) as url, dial(url) as sock:
        sock.sendall(request_bytes("GetItem", b'"big 2000000"', Accept_Encoding="gzip"))
        assert answers(sock, 1)[0][0] == 500
    assert "a request could not be answered" in caplog.text


# Compressed bodies


@pytest.mark.parametrize("service", ["bounded", "unbounded"])
def test_what_decompression_adds_to_a_body_counts_for_the_budget(
    database: isotone.Database, service: str
) -> None:
    served = database if service == "bounded" else FakeService()
    with running_server(served, body_budget=1_000_000) as url, dial(url) as sock:
        for size, expected in ((900_000, 200), (2_000_000, 503), (900_000, 200)):
            sock.sendall(made("compressed", url, b"{}" + b" " * size))
            assert answers(sock, 1)[0][0] == expected
        found = values(ask(url, "GET", "/metrics")[1])
    assert found["isotone_refused_bodies_total"] == 1
    assert found["isotone_bodies_bytes"] == 0


# Compressed bodies of many members


def test_what_follows_a_member_is_not_copied_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []

    class Noted:
        def __init__(self, wbits: int) -> None:
            self._inner = zlib.decompressobj(wbits)

        def decompress(self, piece: bytes, most: int) -> bytes:
            sizes.append(len(piece))
            return self._inner.decompress(piece, most)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    monkeypatch.setattr(compression, "zlib", SimpleNamespace(error=zlib.error, decompressobj=Noted))
    members = [zlib.compress(b"%d," % number, wbits=31) for number in range(20_000)]
    content = b"".join(b"%d," % number for number in range(20_000))
    assert decompressed(b"gzip", b"".join(members)) == content
    assert max(sizes) <= 64 * 1024
