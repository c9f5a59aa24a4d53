"""Whom a server answers: its hosts, and the pages that may use it."""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.fakes import headers_of, request_bytes
from tests.test_authority import DISGUISED, parsed

from isotone.errors import UsageError
from isotone.server import running_server
from isotone.server.admission import Admission, admission_for

PAGE = "http://evil.example"
PREFLIGHT = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "x-amz-target,authorization",
}


def ask(url, headers, *, method="POST", path="/", body=b"{}"):
    """The status, the headers and the body of an answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def is_refused(answer):
    status, headers, body = answer
    assert "Access-Control-Allow-Origin" not in headers
    return status == 403 and json.loads(body)["__type"].endswith("#AccessDeniedException")


def nothing_reached(service):
    return (service.reads, service.groups) == ([], [])


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "10.0.0.1", "localhost.evil.example", ""]
)
@pytest.mark.parametrize("operation", ["PutItem", "GetItem"])
def test_a_host_that_is_not_this_machine_is_refused(url, service, host, operation):
    answer = ask(url, headers_of(operation, Host=host))
    assert is_refused(answer)
    assert nothing_reached(service)
    if host == "evil.example:8000":
        assert "--allow-host evil.example" in json.loads(answer[2])["Message"]


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:1",
        "localhost.:8000",
        "dynamodb.localhost",
        "127.0.0.1:8000",
        "127.8.8.8",
        "[::1]:80",
    ],
)
def test_the_names_of_this_machine_are_answered(url, host):
    for _ in range(2):  # the second time by recognition
        assert ask(url, headers_of("GetItem", Host=host))[0] == 200


def test_a_known_host_does_not_let_another_one_in(url, service):
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=5) as sock:
        sock.sendall(
            request_bytes("GetItem", b"1") + request_bytes("GetItem", b"2", Host="evil.example")
        )
        received = b""
        while data := sock.recv(65536):
            received += data
    assert received.count(b"HTTP/1.1 200") == 1
    assert received.count(b"HTTP/1.1 403") == 1
    assert service.reads == [("GetItem", b"1")]


def test_a_request_without_a_host_is_malformed(url, service):
    bare = request_bytes("PutItem").replace(b"Host: localhost\r\n", b"")
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=5) as sock:
        sock.sendall(bare)
        assert sock.recv(100).startswith(b"HTTP/1.1 400")
    assert nothing_reached(service)


def test_two_host_headers_are_refused(url, service):
    twice = request_bytes("PutItem").replace(
        b"Host: localhost\r\n", b"Host: localhost\r\nhost: evil.example\r\n"
    )
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=5) as sock:
        sock.sendall(twice)
        assert sock.recv(100)[9:12] in (b"400", b"403")
    assert nothing_reached(service)


@pytest.mark.parametrize("origin", [PAGE, "null", "https://127.0.0.1", "http://localhost:3000", ""])
@pytest.mark.parametrize("operation", ["PutItem", "GetItem"])
def test_a_page_of_another_origin_is_refused(url, service, origin, operation):
    assert is_refused(ask(url, headers_of(operation, Origin=origin)))
    assert nothing_reached(service)


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
@pytest.mark.parametrize("path", ["/", "/faults", "/?X-Amz-Target=DynamoDB_20120810.PutItem"])
def test_a_post_that_browsers_send_without_asking_is_refused(url, service, content_type, path):
    assert is_refused(ask(url, {"Origin": PAGE, "Content-Type": content_type}, path=path))
    assert nothing_reached(service)


def test_a_preflight_is_refused(url):
    assert is_refused(ask(url, PREFLIGHT, method="OPTIONS", body=None))


@pytest.mark.parametrize("origin", ["http://localhost:3000", "HTTP://LOCALHOST:3000", "*"])
def test_a_page_of_an_allowed_origin_is_answered(service, origin):
    page = {"Origin": "http://localhost:3000"}
    with running_server(service, allow_origins=[origin]) as url:
        status, headers, _ = ask(url, PREFLIGHT | page, method="OPTIONS", body=None)
        assert status == 200
        assert headers["Access-Control-Allow-Origin"] == page["Origin"]
        assert headers["Access-Control-Allow-Headers"] == "x-amz-target,authorization"
        assert headers["Vary"] == "Origin"
        status, headers, body = ask(url, headers_of("GetItem", **page))
        assert (status, body) == (200, b'{"GetItem":{}}')
        assert headers["Access-Control-Allow-Origin"] == page["Origin"]
        if origin != "*":
            assert is_refused(ask(url, headers_of("GetItem", Origin="http://localhost:3001")))
        assert is_refused(ask(url, headers_of("GetItem", Host="evil.example", **page)))


@pytest.mark.parametrize("name", ["Private", "Local"])
@pytest.mark.parametrize("allowed", [(), (PAGE,), ("*",)])
def test_a_preflight_for_a_private_network_is_always_refused(service, allowed, name):
    wanted = {f"Access-Control-Request-{name}-Network": "true"}
    with running_server(service, allow_origins=allowed) as url:
        _, headers, _ = answer = ask(url, PREFLIGHT | wanted, method="OPTIONS", body=None)
        assert is_refused(answer)
        assert f"Access-Control-Allow-{name}-Network" not in headers


@pytest.mark.parametrize("allowed", ["db.internal", "DB.internal.", "*"])
def test_an_allowed_host_is_answered(service, allowed):
    with running_server(service, allow_hosts=[allowed]) as url:
        assert ask(url, headers_of("GetItem", Host="db.internal:8000"))[0] == 200
        assert ask(url, headers_of("GetItem", Host="localhost"))[0] == 200
        other = ask(url, headers_of("GetItem", Host="other.internal"))
        assert other[0] == 200 if allowed == "*" else is_refused(other)


def test_the_health_page_is_not_shown_to_other_pages(url):
    assert ask(url, {}, method="GET", body=None)[0] == 200
    assert is_refused(ask(url, {"Origin": PAGE}, method="GET", body=None))
    assert is_refused(ask(url, {"Host": "evil.example"}, method="GET", body=None))


@pytest.mark.parametrize(
    ("address", "bound", "hosts", "answered", "refused"),
    [
        ("127.0.0.1", "127.0.0.1", [], ["localhost", "127.0.0.1"], ["db", "10.0.0.1"]),
        ("laptop", "127.0.1.1", [], ["laptop", "LAPTOP:8000", "127.0.1.1"], ["laptop2"]),
        ("::1", "::1", [], ["[::1]:8000"], ["[::2]:8000"]),
        ("0.0.0.0", "0.0.0.0", [], ["db", "evil.example", "10.0.0.1"], []),
        ("0.0.0.0", "0.0.0.0", ["db"], ["db:1", "localhost"], ["evil.example", "10.0.0.1"]),
    ],
)
def test_the_hosts_follow_from_the_address(address, bound, hosts, answered, refused):
    admission = admission_for(address, bound, hosts=hosts)
    for host in answered:
        assert admission.refusal({b"host": host.encode()}) is None
    for host in refused:
        assert admission.refusal({b"host": host.encode()}) is not None


@pytest.mark.parametrize(
    "origin", ["localhost:3000", "http://localhost:3000/", "http://", "https", ""]
)
def test_what_is_no_origin_is_reported(origin):
    with pytest.raises(UsageError, match="is not an origin; write"):
        Admission(origins=[origin])


def is_here(address):
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


HEADER = st.binary(max_size=30) | st.lists(
    st.sampled_from(
        [b"[", b"]", b"::1", b"localhost", b"db", b"evil.com", b".", b":", b"80", b"#", b"@"]
    ),
    max_size=6,
).map(b"".join)


@given(HEADER, st.none() | HEADER)
def test_only_this_machine_is_admitted_whatever_is_sent(host, origin):
    headers = {b"host": host} | ({} if origin is None else {b"origin": origin})
    admitted = Admission(["db"]).refusal(headers) is None
    assert not (admitted and origin is not None)
    if admitted:
        name = parsed(host.decode("latin-1"))
        assert name is not None
        assert name in ("db", "localhost") or name.endswith(".localhost") or is_here(name)


@pytest.mark.parametrize(
    "host", sorted({*DISGUISED} - {"localhost\n", " localhost", "evil.com\x00.localhost"})
)
def test_a_host_that_only_looks_like_this_machine_reaches_nothing(url, service, host):
    message = request_bytes("PutItem").replace(
        b"Host: localhost", b"Host: " + host.encode("latin-1")
    )
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=5) as sock:
        sock.sendall(message)
        assert sock.recv(100)[9:12] in (b"400", b"403")
    assert nothing_reached(service)


@pytest.mark.parametrize("host", ["[::1]evil.com", "evil.com#.localhost", "[::1"])
def test_a_page_with_such_a_name_is_not_one_of_this_server(host):
    for admission in (Admission(), Admission(["db"])):
        page = {b"host": host.encode(), b"origin": f"http://{host}".encode()}
        assert admission.refusal(page) is not None


@pytest.mark.parametrize("host", ["http://db", "db/", "a b", "db#x", "[::1]x", "*.db"])
def test_an_allowed_host_must_be_one(host):
    with pytest.raises(UsageError, match="is not the name of a host; write"):
        admission_for("127.0.0.1", "127.0.0.1", hosts=[host])


def test_what_is_remembered_of_hosts_is_bounded():
    admission = Admission()
    for number in range(2000):
        assert admission.refusal({b"host": b"%d" % number}) is None
    assert len(admission.known_hosts) == 512
