"""Connections over real sockets: order, keep-alive, limits, and peers that misbehave."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
import zlib
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.server.fakes import headers_of, request_bytes

from isotone.server.compression import BODY_LIMIT
from isotone.server.connection import HEAD_LIMIT
from isotone.server.response import ordinary


def dial(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=5)


def post(url, operation, body=b"{}", **others):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request("POST", "/", body, headers_of(operation, **others))
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def answers(sock: socket.socket, number: int) -> list[tuple[int, bytes]]:
    """Status and body of the next answers."""
    stream = sock.makefile("rb")
    found = []
    for _ in range(number):
        status = int(stream.readline().split()[1])
        length = 0
        while (line := stream.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        found.append((status, stream.read(length)))
    return found


def is_over(sock: socket.socket) -> bool:
    """Whether the server has hung up (what it still says is thrown away)."""
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def test_a_request_is_answered(url, service):
    response, body = post(url, "GetItem", b'{"Key":{}}')
    assert (response.status, body) == (200, b'{"GetItem":{"Key":{}}}')
    assert response.headers["x-amz-crc32"] == str(zlib.crc32(body))
    assert service.reads == [("GetItem", b'{"Key":{}}')]


def test_a_connection_is_kept(url):
    with dial(url) as sock:
        for number in range(3):
            sock.sendall(request_bytes("GetItem", b"%d" % number))
            assert answers(sock, 1) == [(200, b'{"GetItem":%d}' % number)]


def test_errors_do_not_end_a_connection(url):
    with dial(url) as sock:
        for body, status in [(b'"explode"', 500), (b"1", 200)]:
            for operation in ("GetItem", "PutItem"):
                sock.sendall(request_bytes(operation, body))
                assert answers(sock, 1)[0][0] == status
        sock.sendall(request_bytes("Nonsense"))
        assert answers(sock, 1) == [
            (400, b'{"__type":"com.amazon.coral.service#UnknownOperationException"}')
        ]


def test_pipelined_requests_are_answered_in_order(url, service):
    operations = [
        "GetItem",
        "PutItem",
        "GetItem",
        "UpdateItem",
        "DeleteItem",
        "Query",
        "GetItem",
    ] * 20
    with dial(url) as sock:
        sock.sendall(b"".join(request_bytes(o, b"%d" % n) for n, o in enumerate(operations)))
        expected = [(200, b'{"%b":%d}' % (o.encode(), n)) for n, o in enumerate(operations)]
        assert answers(sock, len(operations)) == expected


class Clock:
    """A clock on which each look takes a second: every turn is over after one request."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("operation", ["Scan", "PutItem", "Nonsense"])
def test_another_connection_is_answered_before_a_burst_is_over(
    url, service, operation, monkeypatch
):
    monkeypatch.setattr("isotone.server.connection.perf_counter", Clock())
    execute = service._answer
    with dial(url) as greedy, dial(url) as modest:

        def answer(performed, body):
            if len(service.order) == 3:  # the burst has begun
                modest.sendall(request_bytes("GetItem", b'"modest"'))
            return execute(performed, body)

        monkeypatch.setattr(service, "_answer", answer)
        greedy.sendall(b"".join(request_bytes(operation, b"%d" % n) for n in range(30)))
        found = answers(greedy, 30)
        assert answers(modest, 1) == [(200, b'{"GetItem":"modest"}')]
    if operation != "Nonsense":
        assert found == [(200, b'{"%b":%d}' % (operation.encode(), n)) for n in range(30)]
    assert "GetItem" in service.order[3:10]
    assert service.order.count(operation) == 30


def test_a_burst_in_turns_is_answered_in_order_whatever_it_asks(url, service, monkeypatch):
    monkeypatch.setattr("isotone.server.connection.perf_counter", Clock())
    operations = ["GetItem", "PutItem", "Nonsense", "GetItem", "UpdateItem", "Query"] * 20
    with dial(url) as sock:
        burst = [request_bytes(o, b"%d" % n) for n, o in enumerate(operations)]
        sock.sendall(b"".join(burst) + b"no request\r\n\r\n")
        sock.shutdown(socket.SHUT_WR)
        found = answers(sock, len(operations) + 1)
        assert [status for status, _ in found[:-1]] == [
            400 if operation == "Nonsense" else 200 for operation in operations
        ]
        assert found[-1][0] == 400
        assert is_over(sock)
    assert service.order == operations


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_an_answer_of_a_burst_that_cannot_be_made_ends_its_own_connection(
    url, operation, monkeypatch, caplog
):
    def broken(body):
        if body.endswith(b":3}"):
            raise RuntimeError("no words for this")
        return ordinary(body)

    monkeypatch.setattr("isotone.server.connection.perf_counter", Clock())
    monkeypatch.setattr("isotone.server.connection.ordinary", broken)
    with dial(url) as sock:
        sock.sendall(b"".join(request_bytes(operation, b"%d" % n) for n in range(6)))
        assert [status for status, _ in answers(sock, 4)] == [200, 200, 200, 500]
        assert is_over(sock)
    assert "no words for this" in caplog.text


def test_a_read_comes_after_the_write_before_it(url, service):
    with dial(url) as sock:
        sock.sendall(request_bytes("PutItem") + request_bytes("GetItem") + request_bytes("PutItem"))
        answers(sock, 3)
    assert service.order == ["PutItem", "GetItem", "PutItem"]


def test_writes_from_many_connections_are_committed_together(url, service):
    socks = [dial(url) for _ in range(8)]
    try:
        for sock in socks:
            sock.sendall(request_bytes("GetItem"))
            answers(sock, 1)
        service.hold.clear()
        socks[0].sendall(request_bytes("PutItem", b"0"))
        time.sleep(0.1)  # the first group holds the loop; the others gather
        for number, sock in enumerate(socks[1:], 1):
            sock.sendall(request_bytes("PutItem", b"%d" % number))
        service.hold.set()
        for number, sock in enumerate(socks):
            assert answers(sock, 1) == [(200, b'{"PutItem":%d}' % number)]
    finally:
        for sock in socks:
            sock.close()
    assert sum(len(group) for group in service.groups) == 8
    assert len(service.groups) <= 3


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_request_may_come_in_pieces(url, size):
    request = request_bytes("PutItem", b'{"a":"' + b"x" * 300 + b'"}')
    with dial(url) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(request), size):
            sock.sendall(request[start : start + size])
        assert answers(sock, 1)[0][0] == 200


def test_a_body_may_come_in_chunks(url):
    head = request_bytes("GetItem", Transfer_Encoding="chunked").removesuffix(b"{}")
    with dial(url) as sock:
        sock.sendall(head + b"1\r\n[\r\n3;name=value\r\n1,2\r\n1\r\n]\r\n0\r\n\r\n")
        assert answers(sock, 1) == [(200, b'{"GetItem":[1,2]}')]


def test_a_request_with_expect_gets_100_continue(url):
    head = request_bytes("GetItem", b"123", Expect="100-continue").removesuffix(b"123")
    with dial(url) as sock:
        sock.sendall(head)
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"123")
        assert answers(sock, 1) == [(200, b'{"GetItem":123}')]


@pytest.mark.parametrize("waits", [True, False])
def test_a_request_with_expect_behind_a_write_gets_its_100_continue(url, service, waits):
    head = request_bytes("GetItem", b"123", Expect="100-continue").removesuffix(b"123")
    service.hold.clear()
    with dial(url) as sock, sock.makefile("rb") as stream:
        sock.sendall(request_bytes("PutItem", b"1") + head + (b"" if waits else b"123"))
        time.sleep(0.1)
        service.hold.set()
        if waits:
            while (line := stream.readline()) != b'{"PutItem":1}HTTP/1.1 100 Continue\r\n':
                assert line
            sock.sendall(b"123")
        while (line := stream.readline()) != b"HTTP/1.1 200 OK\r\n":
            assert b"100 Continue" not in line
        sock.sendall(request_bytes("GetItem", b"4", Connection="close"))
        assert stream.read().endswith(b'{"GetItem":4}')


def test_a_declined_upgrade_with_expect_gets_100_continue_once(url):
    headers = {"Connection": "Upgrade", "Upgrade": "h2c", "Expect": "100-continue"}
    with dial(url) as sock:
        for body in (b"1", b"2"):
            sock.sendall(request_bytes("GetItem", body, **headers).removesuffix(body))
            assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            sock.sendall(body)
            assert answers(sock, 1) == [(200, b'{"GetItem":%b}' % body)]


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_an_answer_that_cannot_be_made_harms_its_own_connection_only(
    url, operation, monkeypatch, caplog
):
    def broken(body):
        if b"poison" in body:
            raise RuntimeError("no words for this")
        return ordinary(body)

    monkeypatch.setattr("isotone.server.connection.ordinary", broken)
    with dial(url) as other, dial(url) as sock:
        sock.sendall(request_bytes(operation, b'"poison"'))
        other.sendall(request_bytes(operation, b'"fine"'))
        assert answers(other, 1)[0][0] == 200
        assert answers(sock, 1)[0][0] == 500
    assert "no words for this" in caplog.text


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_a_connection_is_closed_on_request(url, operation):
    with dial(url) as sock:
        sock.sendall(request_bytes(operation, Connection="close"))
        data = b"".join(iter(lambda: sock.recv(65536), b""))
        assert b"\r\nConnection: close\r\n" in data
        assert data.endswith(b'{"%b":{}}' % operation.encode())


def test_http_1_0_closes_unless_asked_otherwise(url):
    request = request_bytes("GetItem").replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    with dial(url) as sock:
        sock.sendall(request)
        assert is_over(sock)
    kept = request_bytes("GetItem", Connection="keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    with dial(url) as sock:
        for _ in range(2):
            sock.sendall(kept)
            assert answers(sock, 1)[0][0] == 200


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_a_peer_that_has_finished_sending_is_still_answered(url, operation):
    with dial(url) as sock:
        sock.sendall(request_bytes(operation))
        sock.shutdown(socket.SHUT_WR)
        assert answers(sock, 1)[0][0] == 200
        assert is_over(sock)


def test_an_upgrade_is_declined(url):
    with dial(url) as sock:
        for body in (b"1", b"2"):
            request = request_bytes("GetItem", body, Connection="Upgrade", Upgrade="h2c")
            sock.sendall(request + request_bytes("GetItem", b"3"))
            assert [answer for _, answer in answers(sock, 2)] == [
                b'{"GetItem":%b}' % body,
                b'{"GetItem":3}',
            ]
        sock.sendall(b"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answers(sock, 1) == [(400, b"")]


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"HELLO\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nA\x00B: c\r\n\r\n",
    ],
)
def test_malformed_http_ends_its_own_connection_only(url, garbage):
    with dial(url) as other, dial(url) as sock:
        other.sendall(request_bytes("GetItem")[:50])
        sock.sendall(garbage)
        assert answers(sock, 1)[0][0] == 400
        sock.shutdown(socket.SHUT_WR)
        assert is_over(sock)
        other.sendall(request_bytes("GetItem")[50:])
        assert answers(other, 1)[0][0] == 200


def test_malformed_http_after_requests_is_answered_in_its_turn(url):
    with dial(url) as sock:
        sock.sendall(request_bytes("PutItem") + request_bytes("GetItem") + b"garbage\r\n\r\n")
        assert [status for status, _ in answers(sock, 3)] == [200, 200, 400]


@settings(
    deadline=None,
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_no_bytes_take_the_server_down(url, noise, cut):
    with dial(url) as sock:
        sock.sendall(request_bytes("PutItem")[:cut] + noise)
        sock.shutdown(socket.SHUT_WR)
        assert is_over(sock)
    assert post(url, "GetItem")[0].status == 200


def test_a_body_that_is_announced_too_large_is_not_waited_for(url):
    head = request_bytes("PutItem").replace(
        b"Content-Length: 2", b"Content-Length: %d" % (BODY_LIMIT + 1)
    )
    with dial(url) as sock:
        sock.sendall(head[:-2])
        assert answers(sock, 1) == [(413, b"")]


def test_a_body_that_grows_too_large_is_cut_off(url):
    head = request_bytes("PutItem", Transfer_Encoding="chunked").removesuffix(b"{}")
    chunk = b"100000\r\n" + bytes(0x100000) + b"\r\n"
    with dial(url) as sock:
        sock.sendall(head)
        for _ in range(18):
            sock.sendall(chunk)
        assert answers(sock, 1) == [(413, b"")]


def test_a_body_of_just_the_limit_is_taken(url, service):
    body = b'"' + b"x" * (BODY_LIMIT - 2) + b'"'
    response, _ = post(url, "PutItem", body)
    assert response.status == 200
    assert service.reads == [("PutItem", body)]  # by itself, in a thread


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
def test_too_many_headers_are_refused(url, end):
    with dial(url) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\n" + b"X: " + b"y" * 17_000 + end)
        assert answers(sock, 1) == [(400, b"")]


def head_of(size: int, kind: str) -> bytes:
    """A request whose request line and headers have so many bytes."""
    request = request_bytes("GetItem", b"7")
    missing = size - len(request) + 1
    if kind == "url":
        return request.replace(b"POST / ", b"POST /?" + b"x" * (missing - 1) + b" ")
    if kind == "one header":
        more = b"X: " + b"y" * (missing - 5) + b"\r\n"
    elif kind == "many headers":
        more = b"".join(b"x%07d: y\r\n" % number for number in range(missing // 13 - 1))
        more += b"z: " + b"y" * (missing - len(more) - 5) + b"\r\n"
    else:  # one header many times
        more = b"x: y\r\n" * (missing // 6 - 1)
        more += b"z: " + b"y" * (missing - len(more) - 5) + b"\r\n"
    return request.replace(b"Host:", more + b"Host:")


@pytest.mark.parametrize("kind", ["url", "one header", "many headers", "the same header"])
@pytest.mark.parametrize("before", [b"", request_bytes("GetItem", b"1")])
def test_a_head_may_have_16_kb_and_not_a_byte_more(url, kind, before):
    pieces = [before] if before else []
    with dial(url) as sock:  # a head of just the limit, in one piece and in several
        whole = head_of(HEAD_LIMIT, kind)
        assert whole.index(b"\r\n\r\n") + 4 == HEAD_LIMIT
        sock.sendall(before + whole)
        sock.sendall(whole[:5000])
        time.sleep(0.02)
        sock.sendall(whole[5000:])
        assert [status for status, _ in answers(sock, len(pieces) + 2)] == [200] * (len(pieces) + 2)
    for size in (HEAD_LIMIT + 1, 20_000, 33_000, 60_000):
        with dial(url) as sock:
            sock.sendall(before + head_of(size, kind) + request_bytes("GetItem", b"8"))
            statuses = [status for status, _ in answers(sock, len(pieces) + 1)]
            assert statuses == [200] * len(pieces) + [400]
            assert is_over(sock)


def test_a_trailer_overrules_no_header(url, service):
    head = request_bytes("GetItem", Transfer_Encoding="chunked").removesuffix(b"{}")
    trailers = b"X-Amz-Target: DynamoDB_20120810.DeleteItem\r\nHost: evil.example\r\nX-New: 1\r\n"
    with dial(url) as sock:
        sock.sendall(head + b"2\r\n{}\r\n0\r\n" + trailers + b"\r\n" + request_bytes("GetItem"))
        assert answers(sock, 2) == [(200, b'{"GetItem":{}}')] * 2
    assert service.order == ["GetItem", "GetItem"]


@pytest.mark.parametrize(
    "name", ["X-Amz-Target", "Authorization", "Content-Length", "Content-Type", "X-Amz-Date"]
)
@pytest.mark.parametrize("spelled", [str, str.lower, str.upper])
def test_a_header_that_decides_may_be_there_once(url, service, name, spelled):
    request = request_bytes("PutItem")
    line = next(each for each in request.split(b"\r\n") if each.startswith(name.encode() + b":"))
    again = spelled(name).encode() + line[len(name) :]
    for twice in (line + b"\r\n" + again, again + b"\r\n" + line):
        with dial(url) as sock:
            sock.sendall(request_bytes("GetItem", b"1") + request.replace(line, twice))
            assert answers(sock, 2) == [(200, b'{"GetItem":1}'), (400, b"")]
            assert is_over(sock)
    assert service.groups == []


def test_other_headers_may_be_there_twice(url):
    twice = request_bytes("GetItem").replace(
        b"Host:", b"Accept-Encoding: br\r\nAccept-Encoding: gzip\r\nHost:"
    )
    large = twice.replace(b"Content-Length: 2", b"Content-Length: 12")[:-2] + b'"big 100000"'
    with dial(url) as sock:
        sock.sendall(large)
        ((status, body),) = answers(sock, 1)
    assert status == 200
    assert len(zlib.decompress(body, wbits=31)) > 100_000


def test_a_peer_that_does_not_read_holds_up_nobody(url):
    with dial(url) as sock:
        sock.sendall(request_bytes("GetItem", b'"big 400000"') * 60)
        assert post(url, "GetItem")[0].status == 200
        for status, body in answers(sock, 60):
            assert (status, len(body)) == (200, 400_002)


def test_a_peer_that_leaves_before_the_answer_is_forgotten(url, service):
    service.hold.clear()
    with dial(url) as sock:
        sock.sendall(request_bytes("PutItem") * 3)
        time.sleep(0.05)
    service.hold.set()
    assert post(url, "GetItem")[0].status == 200
    assert service.groups


def test_a_large_answer_arrives_compressed(url):
    response, body = post(url, "GetItem", b'"big 100000"', Accept_Encoding="gzip")
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.headers["x-amz-crc32"] == str(zlib.crc32(body))
    assert len(json.loads(zlib.decompress(body, wbits=31))) == 100_000


def test_slow_headers_run_out_of_time(hasty_url):
    with dial(hasty_url) as sock:
        started = time.monotonic()
        sock.sendall(b"POST / HTTP/1.1\r\n")
        for _ in range(3):
            time.sleep(0.06)
            sock.sendall(b"X: y\r\n")
        assert answers(sock, 1) == [(408, b"")]
        assert time.monotonic() - started < 2


def test_a_slow_body_runs_out_of_time(hasty_url):
    with dial(hasty_url) as sock:
        sock.sendall(request_bytes("PutItem")[:-1])
        assert answers(sock, 1) == [(408, b"")]
        assert is_over(sock)


def test_an_idle_connection_is_closed(hasty_url):
    with dial(hasty_url) as sock:
        sock.sendall(request_bytes("GetItem"))
        assert answers(sock, 1)[0][0] == 200
        assert is_over(sock)


def test_a_peer_that_never_reads_is_dropped(hasty_url):
    with dial(hasty_url) as sock:
        sock.sendall(request_bytes("GetItem", b'"big 20000000"'))
        time.sleep(2.5)
        received = 0
        with contextlib.suppress(ConnectionError):
            while data := sock.recv(1 << 20):
                received += len(data)
        assert received < 20_000_000


def test_one_connection_too_many_is_turned_away(hasty_url):
    socks = [dial(hasty_url) for _ in range(4)]
    try:
        for sock in socks:
            sock.sendall(request_bytes("GetItem"))
            assert answers(sock, 1)[0][0] == 200
        with dial(hasty_url) as late:
            assert answers(late, 1) == [(503, b"")]
            assert is_over(late)
    finally:
        for sock in socks:
            sock.close()
    time.sleep(0.1)
    assert post(hasty_url, "GetItem")[0].status == 200


def test_many_clients_at_once(url, service):
    def work(worker: int) -> None:
        with dial(url) as sock:
            for number in range(50):
                operation = ("PutItem", "GetItem")[number % 2]
                body = b"%d" % (worker * 1000 + number)
                sock.sendall(request_bytes(operation, body))
                if answers(sock, 1) != [(200, b'{"%b":%b}' % (operation.encode(), body))]:
                    failures.append(worker)

    failures: list[int] = []
    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sum(len(group) for group in service.groups) == 12 * 25


# HEAD


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/localnodes", "/no/such/path"])
def test_head_is_answered_like_get_without_the_body(url, path):
    got, headed = (method_at(url, method, path) for method in ("GET", "HEAD"))
    assert (headed[0], headed[2]) == (got[0], b"")
    assert headed[1].keys() == got[1].keys()
    if path != "/metrics":  # it counts its own requests
        assert int(headed[1]["content-length"]) == len(got[2])


def method_at(url: str, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers in lower case, and every byte after them until the connection ends."""
    with dial(url) as sock:
        sock.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        head, _, body = b"".join(iter(lambda: sock.recv(65536), b"")).partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(status.split()[1]), headers, body


def test_answers_before_a_head_keep_their_bodies(url):
    with dial(url) as sock:
        get = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        sock.sendall(get + get.replace(b"GET", b"HEAD"))
        everything = b"".join(iter(lambda: sock.recv(65536), b""))
    assert everything.count(b"healthy: dynamodb") == 1
    assert everything.count(b"HTTP/1.1 200 OK\r\n") == 2
