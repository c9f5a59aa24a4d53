"""Clients that read slowly get the whole answer; clients that read nothing are dropped."""

from __future__ import annotations

import contextlib
import socket
import time
from urllib.parse import urlsplit

import pytest
from tests.server.fakes import FakeService, request_bytes

from isotone.server import running_server
from isotone.server.connection import ConnectionTimeouts

HASTY = ConnectionTimeouts(head=0.2, request=0.2, idle=0.5, stalled=1.0, closing=0.2, sweep=0.05)
SIZE = 12_000_000


class Large(FakeService):
    """Answers every read with many bytes."""

    def send(self, operation: str, body: bytes, region: str = "") -> bytes:
        return b'{"x":"' + b"x" * SIZE + b'"}'


def dial(url: str) -> socket.socket:
    """A connection whose kernel buffer is small, so that the server sees how slowly it reads."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    sock.settimeout(5)
    parts = urlsplit(url)
    sock.connect((parts.hostname, parts.port))
    return sock


def read_slowly(sock: socket.socket, seconds: float) -> int:
    """The bytes that arrive until the server hangs up or all are there, read over this many seconds."""
    received, pause = 0, seconds / (SIZE / 65536)
    while received < SIZE and (data := sock.recv(65536)):
        received += len(data)
        time.sleep(pause)
    return received


@pytest.mark.parametrize("ending", [{}, {"Connection": "close"}])
def test_a_slow_reader_gets_the_whole_answer(ending):
    with running_server(Large(), timeouts=HASTY) as url, dial(url) as sock:
        sock.sendall(request_bytes("GetItem", **ending))
        assert read_slowly(sock, 2.0) >= SIZE


def test_a_client_that_reads_nothing_is_dropped():
    with running_server(Large(), timeouts=HASTY) as url, dial(url) as sock:
        sock.sendall(request_bytes("GetItem"))
        time.sleep(2.5)
        received = 0
        with contextlib.suppress(ConnectionError):
            received = read_slowly(sock, 0)
        assert received < SIZE
