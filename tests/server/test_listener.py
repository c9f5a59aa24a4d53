"""Addresses, and stopping cleanly."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
from tests.programs import python
from tests.server.fakes import request_bytes

from isotone.errors import UsageError
from isotone.server import check_options, running_server, serve
from isotone.server.listener import Listener


def dial(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=5)


def test_port_0_is_a_free_port(service):
    with running_server(service) as one, running_server(service) as other:
        assert one != other
        assert not one.endswith(":0")
    assert service.closed == 0


def test_a_port_in_use_is_reported_in_one_sentence(service):
    with running_server(service) as url:
        port = urlsplit(url).port
        assert port is not None
        with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 is in use"):
            serve(service, port=port)
    assert service.closed == 1


@pytest.mark.parametrize("port", [70_000, -1])
def test_an_impossible_address_is_reported(service, port):
    with pytest.raises(UsageError, match="cannot listen on"), running_server(service, port=port):
        pass


def test_no_client_is_served_after_a_shutdown(service):
    with running_server(service) as url, dial(url) as sock:
        sock.sendall(request_bytes("GetItem"))
        sock.recv(1000)
    with pytest.raises(ConnectionError):
        dial(url)


def test_what_was_received_is_answered_before_the_end(service):
    received = []
    with running_server(service) as url:
        sock = dial(url)
        service.hold.clear()
        sock.sendall(request_bytes("PutItem") + request_bytes("GetItem"))
        time.sleep(0.05)
        threading.Timer(0.1, service.hold.set).start()
    while data := sock.recv(65536):
        received.append(data)
    sock.close()
    assert b"".join(received).count(b"HTTP/1.1 200 OK") == 2


def test_a_connection_between_accept_and_its_first_event(service):
    """The loop makes the protocol in one turn and tells it of its transport in a later one."""

    async def story():
        listener = Listener(service)
        await listener.start("127.0.0.1", 0)
        early = listener._new_connection()
        listener._sweep()
        began = time.monotonic()
        await listener.stop()
        assert time.monotonic() - began < 1
        transport = FakeTransport()
        early.connection_made(transport)
        assert transport.closed

    asyncio.run(story())


class FakeTransport(asyncio.Transport):
    closed = False

    def close(self):
        self.closed = True


def test_a_keyword_that_is_no_option_is_refused_before_anything_is_closed(service):
    with pytest.raises(TypeError, match="no option acces_log"):
        serve(service, port=0, acces_log=True)
    with (
        pytest.raises(TypeError, match="no option acces_log"),
        running_server(service, acces_log=1),
    ):
        pass
    with pytest.raises(TypeError, match="no option acces_log"):
        check_options(port=0, acces_log=True)
    assert service.closed == 0


def test_help_names_the_options_of_a_server():
    for function in serve, running_server:
        assert {"credentials", "tls_cert", "timeouts"} <= inspect.signature(
            function
        ).parameters.keys()


PROGRAM = """
import sys, time
from isotone.server import serve
from tests.server.fakes import FakeService
class Slow(FakeService):
    def send_many(self, requests, region=""):
        time.sleep(0.5 if requests[0][1] == b"1" else 0)
        return super().send_many(requests, region)
    def close(self):
        print("closed", flush=True)
        time.sleep(float(sys.argv[1]))
serve(Slow(), port=0, ready=lambda url: print(url, flush=True))
"""


@pytest.fixture
def start():
    """Starts a serving process; gives it and its URL."""
    running = []

    def start(slow_close: float = 0):
        process = python("-c", PROGRAM, slow_close)
        running.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_cleanly(start, number):
    process, url = start()
    with dial(url) as sock:
        sock.sendall(request_bytes("PutItem", b"1"))
        time.sleep(0.1)
        process.send_signal(number)
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 OK")
    assert process.wait(5) == 0
    assert process.stdout.read() == "closed\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_a_second_signal_ends_at_once(start):
    process, _ = start(slow_close=30)
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "closed\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) == -signal.SIGTERM
