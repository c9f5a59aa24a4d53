"""Both remote backends against a server that misbehaves, and against Isotone's own."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import multiprocessing
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from tests.backends.scripted import answer, refusal, scripted_server, with_checksum

import isotone
from isotone.backends.async_remote import AsyncRemote
from isotone.backends.endpoint import Timeouts, endpoint_of
from isotone.backends.remote import Remote
from isotone.backends.request_retries import Retries
from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    ConnectionFailed,
    ProvisionedThroughputExceededException,
    ResourceNotFoundException,
    UsageError,
)
from isotone.server import running_server

OK = answer({"TableNames": ["t"]})
FOUND = {"TableNames": ["t"]}
QUICK = Retries(attempts=4, base=0.001)

Ask = Callable[..., dict[str, Any]]
Client = Callable[..., Ask]


class _AwaitedRemote:
    """An `AsyncRemote` on an event loop of its own, called from here."""

    def __init__(self, url: str, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.remote = AsyncRemote(endpoint_of(url), **options)

    def execute(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        return self.loop.run_until_complete(self.remote.execute(operation, request))

    def close(self) -> None:
        self.remote.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    opened: list[Remote | _AwaitedRemote] = []

    def make(url: str, **options: Any) -> Ask:
        options.setdefault("retries", QUICK)
        remote = (
            Remote(endpoint_of(url), **options)
            if request.param == "sync"
            else _AwaitedRemote(url, **options)
        )
        opened.append(remote)
        return remote.execute

    yield make
    for remote in opened:
        remote.close()


# What goes out and comes in


def test_a_request_is_signed_json(client: Client) -> None:
    with scripted_server(OK) as server:
        assert client(server.url)("ListTables", {"Limit": 3}) == FOUND
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST / HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"X-Amz-Target: DynamoDB_20120810.ListTables\r\n" in head
    assert b"Authorization: AWS4-HMAC-SHA256 Credential=" in head
    assert json.loads(body) == {"Limit": 3}


def test_a_refusal_is_raised_by_its_name(client: Client) -> None:
    body = {
        "__type": "x#ConditionalCheckFailedException",
        "message": "no",
        "Item": {"a": {"S": "b"}},
    }
    with (
        scripted_server(answer(body, status=400)) as server,
        pytest.raises(ConditionalCheckFailedException, match="no") as raised,
    ):
        client(server.url)("PutItem", {})
    assert raised.value.members == {"Item": {"a": {"S": "b"}}}
    assert len(server.requests) == 1


def test_an_error_that_isotone_never_answers(client: Client) -> None:
    with (
        scripted_server(refusal("UnrecognizedClientException", "who?")) as server,
        pytest.raises(ApiError, match=r"who\?") as raised,
    ):
        client(server.url)("PutItem", {})
    assert raised.value.code == "UnrecognizedClientException"


def test_a_compressed_answer(client: Client) -> None:
    packed = gzip.compress(json.dumps(FOUND).encode())
    with scripted_server(answer(raw=packed, headers=["Content-Encoding: gzip"])) as server:
        assert client(server.url)("ListTables", {}) == FOUND


def test_an_answer_in_chunks(client: Client) -> None:
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'7\r\n{"Table\r\nd\r\nNames":["t"]}\r\n0\r\n\r\n'
    )
    with scripted_server(chunked) as server:
        assert client(server.url)("ListTables", {}) == FOUND


# Connections


def test_a_connection_is_kept(client: Client) -> None:
    with scripted_server(OK, OK, OK) as server:
        ask = client(server.url)
        assert [ask("ListTables", {}) for _ in range(3)] == [FOUND] * 3
    assert server.connections == 1


def test_a_connection_that_the_server_ends_is_not_used_again(client: Client) -> None:
    last = answer(FOUND, headers=["Connection: close"])
    with scripted_server(last, last) as server:
        ask = client(server.url)
        assert [ask("ListTables", {}) for _ in range(2)] == [FOUND] * 2
    assert server.connections == 2


def test_a_connection_that_was_closed_behind_our_back(client: Client) -> None:
    with isotone.open() as database:
        with running_server(database) as url:
            ask = client(url, retries=Retries.none())
            assert ask("ListTables", {}) == {"TableNames": []}
            address = url
        port = int(address.rpartition(":")[2])
        time.sleep(0.05)
        with running_server(database, port=port) as url:
            assert url == address
            assert ask("ListTables", {}) == {"TableNames": []}


def test_nobody_answers(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(
        ConnectionFailed, match=rf"cannot connect to http://127.0.0.1:{port}.*serve"
    ):
        client(f"http://127.0.0.1:{port}")("ListTables", {})


def test_threads_do_not_share_a_connection() -> None:
    with (
        isotone.open() as database,
        running_server(database) as url,
        Remote(endpoint_of(url)) as remote,
    ):
        names = [f"table{number}" for number in range(40)]

        def describe(name: str) -> str:
            with pytest.raises(ResourceNotFoundException) as raised:
                remote.execute("DescribeTable", {"TableName": name})
            return raised.value.message

        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(describe, names))
    assert all(name in text for name, text in zip(names, said, strict=True))


def test_tasks_do_not_share_a_connection() -> None:
    async def ask_all(url: str) -> list[Any]:
        remote = AsyncRemote(endpoint_of(url))
        asked = [remote.execute("DescribeTable", {"TableName": f"table{n}"}) for n in range(40)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        remote.close()
        await asyncio.sleep(0)
        return answers

    with isotone.open() as database, running_server(database) as url:
        answers = asyncio.run(ask_all(url))
    assert all(f"table{number}" in answer.message for number, answer in enumerate(answers))


def test_a_second_loop_opens_its_own_connections() -> None:
    loops = [asyncio.new_event_loop() for _ in range(2)]
    with scripted_server(OK, OK) as server:
        remote = AsyncRemote(endpoint_of(server.url))
        for loop in loops:
            assert loop.run_until_complete(remote.execute("ListTables", {})) == FOUND
        remote.close()
    for loop in loops:
        loop.run_until_complete(asyncio.sleep(0))  # connections end by their own loop
        loop.close()
    assert server.connections == 2


def test_loops_of_several_threads_share_no_connection() -> None:
    everyone = threading.Barrier(4, timeout=30)

    def talk(remote: AsyncRemote, name: str) -> list[str]:
        async def ask() -> list[str]:
            said = []
            for number in range(20):
                try:
                    await remote.execute("DescribeTable", {"TableName": f"{name}{number}"})
                except ResourceNotFoundException as error:
                    said.append(error.message)
            everyone.wait()
            remote.close()  # of other loops, too, whatever is idle there
            everyone.wait()  # which end their connections in their next turn
            await asyncio.sleep(0)
            return said

        return asyncio.run(ask())

    with isotone.open() as database, running_server(database) as url:
        remote = AsyncRemote(endpoint_of(url), retries=Retries.none())
        with ThreadPoolExecutor(4) as pool:
            names = ["ann", "bob", "cat", "dan"]
            found = list(pool.map(talk, [remote] * 4, names))
    for name, said in zip(names, found, strict=True):
        assert [f"{name}{number}" in text for number, text in enumerate(said)] == [True] * 20


def test_a_cancelled_request_leaves_no_answer_behind() -> None:
    async def talk(url: str) -> dict[str, Any]:
        remote = AsyncRemote(endpoint_of(url))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(remote.execute("ListTables", {}), 0.05)
        found = await remote.execute("ListTables", {})
        remote.close()
        await asyncio.sleep(0)
        return found

    with scripted_server(None, OK) as server:
        assert asyncio.run(talk(server.url)) == FOUND
    assert server.connections == 2


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # of forking beside a thread, from 3.12 on
def test_a_forked_child_opens_its_own_connections() -> None:
    with scripted_server(OK, OK, OK) as server, Remote(endpoint_of(server.url)) as remote:
        assert remote.execute("ListTables", {}) == FOUND
        child = multiprocessing.get_context("fork").Process(
            target=remote.execute, args=("ListTables", {})
        )
        child.start()
        child.join()
        assert child.exitcode == 0
        assert remote.execute("ListTables", {}) == FOUND
    assert server.connections == 2


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that nobody trusts yet, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", made]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


def test_tls(
    client: Client, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    for name in ("AWS_CA_BUNDLE", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    packed = gzip.compress(json.dumps(FOUND).encode())
    answers = [OK, answer(raw=packed, headers=["Content-Encoding: gzip"]), OK]
    with scripted_server(*answers, tls=tls) as server:
        ask = client(server.url)
        assert [ask("ListTables", {}) for _ in range(3)] == [FOUND] * 3
    assert server.connections == 1
    assert b"Accept-Encoding: gzip" in server.requests[0]


def test_a_certificate_that_nobody_trusts(client: Client, certificate: tuple[Path, Path]) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    with scripted_server(OK, tls=tls) as server:
        ask = client(server.url, retries=Retries.none())
        with pytest.raises(ConnectionFailed, match=r"TLS connection .*certificate"):
            ask("ListTables", {})
    assert server.requests == []


# Trouble


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(b"", id="closed without an answer"),
        pytest.param(OK[:-3] + b"Connection: close", id="closed within the answer"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\nConnection: close", id="not HTTP"),
        pytest.param(with_checksum(FOUND, error=1), id="damaged"),
        pytest.param(answer(raw=b"x", headers=["Content-Encoding: gzip"]), id="badly compressed"),
        pytest.param(refusal("ThrottlingException"), id="throttled"),
        pytest.param(refusal("ProvisionedThroughputExceededException"), id="over capacity"),
        pytest.param(refusal("InternalServerError", status=500), id="server error"),
        pytest.param(answer(raw=b"<html>", status=503), id="proxy"),
        pytest.param(answer(raw=b"<html>", status=429), id="proxy with a limit"),
    ],
)
def test_passing_trouble_is_repeated(client: Client, trouble: bytes) -> None:
    with scripted_server(trouble, trouble, with_checksum(FOUND)) as server:
        assert client(server.url)("ListTables", {}) == FOUND
    assert len(server.requests) == 3


def test_repeating_ends(client: Client) -> None:
    throttled = refusal("ProvisionedThroughputExceededException", "slow down")
    with (
        scripted_server(*[throttled] * 9) as server,
        pytest.raises(ProvisionedThroughputExceededException, match="slow down"),
    ):
        client(server.url)("PutItem", {})
    assert len(server.requests) == QUICK.attempts


def test_a_refusal_is_not_repeated(client: Client) -> None:
    with (
        scripted_server(answer(raw=b"<html>", status=404)) as server,
        pytest.raises(UsageError, match="check the address"),
    ):
        client(server.url)("ListTables", {})
    assert len(server.requests) == 1


def test_silence_ends_with_a_time_out(client: Client) -> None:
    timeouts = Timeouts(read=0.05)
    with scripted_server(None, OK) as server:
        assert client(server.url, timeouts=timeouts)("ListTables", {}) == FOUND
    with (
        scripted_server(None) as server,
        pytest.raises(ConnectionFailed, match=r"gave no answer for 0\.05 s"),
    ):
        client(server.url, timeouts=timeouts, retries=Retries.none())("ListTables", {})


def test_a_slow_answer_may_take_longer_than_the_time_out_in_all(client: Client) -> None:
    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            for start in range(0, len(OK), 10):
                connection.sendall(OK[start : start + 10])
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        ask = client(url, timeouts=Timeouts(read=0.15), retries=Retries.none())
        assert ask("ListTables", {}) == FOUND
        thread.join()


Get = Callable[[str, str, float], bytes]


def _get(url: str, path: str, within: float) -> bytes:
    with Remote(endpoint_of(url), timeouts=Timeouts(read=3)) as remote:
        return remote.get(path, within).content


def _get_awaited(url: str, path: str, within: float) -> bytes:
    async def program() -> bytes:
        remote = AsyncRemote(endpoint_of(url), timeouts=Timeouts(read=3))
        try:
            return (await remote.get(path, within)).content
        finally:
            remote.close()

    return asyncio.run(program())


@pytest.mark.parametrize("get", [_get, _get_awaited])
@pytest.mark.parametrize("pause", [0.01, None])
def test_a_get_ends_in_time_whatever_the_server_sends(get: Get, pause: float | None) -> None:
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not over.wait(pause):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        began = time.monotonic()
        try:
            with pytest.raises(ConnectionFailed, match=r"did not end its answer within 0\.2 s"):
                get(f"http://127.0.0.1:{listener.getsockname()[1]}", "/x", 0.2)
            assert time.monotonic() - began < 2
        finally:
            over.set()
            thread.join(5)  # it still waits if nobody connected


def test_a_get_in_time_leaves_the_time_out_as_it_was() -> None:
    with (
        scripted_server(OK, OK) as server,
        Remote(endpoint_of(server.url), timeouts=Timeouts(read=30)) as remote,
    ):
        assert remote.get("/x", 5.0).status == 200
        (connection,) = remote._pool._idle
        assert connection._socket.gettimeout() == 30
        assert remote.get("/x").status == 200


def test_a_connection_that_takes_too_long_says_so() -> None:
    endpoint = endpoint_of("http://localhost:8000")
    for error in (TimeoutError(), TimeoutError("timed out")):
        assert "(timed out)" in str(endpoint.unreachable(error))


def test_a_transaction_keeps_its_token(client: Client) -> None:
    with scripted_server(b"", answer()) as server:
        client(server.url)("TransactWriteItems", {"TransactItems": []})
    tokens = [
        json.loads(each.partition(b"\r\n\r\n")[2])["ClientRequestToken"] for each in server.requests
    ]
    assert len(tokens) == 2
    assert len(set(tokens)) == 1


def test_a_wrong_clock_is_corrected(client: Client) -> None:
    ahead = time.time() + 3600
    late = refusal(
        "InvalidSignatureException", "Signature expired", Date=formatdate(ahead, usegmt=True)
    )
    with scripted_server(late, OK, OK) as server:
        ask = client(server.url)
        assert ask("ListTables", {}) == FOUND
        assert ask("ListTables", {}) == FOUND
    assert len(server.requests) == 3
    hour = time.strftime("X-Amz-Date: %Y%m%dT%H", time.gmtime(ahead + 1)).encode()
    assert [hour in request for request in server.requests] == [False, True, True]


def test_a_wrong_signature_is_not_repeated(client: Client) -> None:
    now = formatdate(time.time(), usegmt=True)
    with (
        scripted_server(refusal("InvalidSignatureException", "wrong key", Date=now)) as server,
        pytest.raises(ApiError, match="wrong key"),
    ):
        client(server.url)("ListTables", {})


def test_waits_are_those_of_the_retries() -> None:
    waited: list[float] = []
    retries = Retries(attempts=5, base=0.1, longest=0.3, random=lambda: 0.5)
    throttled = refusal("ThrottlingException")
    with (
        scripted_server(throttled, throttled, throttled, OK) as server,
        Remote(endpoint_of(server.url), retries=retries, sleep=waited.append) as remote,
    ):
        remote.execute("ListTables", {})
    assert waited == [0.05, 0.1, 0.15]


def test_a_large_request_and_answer(client: Client) -> None:
    with isotone.open() as database, running_server(database) as url:
        ask = client(url)
        ask(
            "CreateTable",
            {
                "TableName": "big",
                "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        item = {"k": {"S": "1"}, "v": {"S": "é" * 150_000}}
        ask("PutItem", {"TableName": "big", "Item": item})
        assert ask("GetItem", {"TableName": "big", "Key": {"k": {"S": "1"}}})["Item"] == item


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    with scripted_server(OK) as server, Remote(endpoint_of(server.url)) as remote:
        remote.execute("ListTables", {})
    assert threading.active_count() <= before + 1
