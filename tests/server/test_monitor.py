"""What operators see: health, metrics, the access log; and the budget for bodies."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.docs.pages import page
from tests.server.exposition_reader import read, values
from tests.server.fakes import FakeService, headers_of, request_bytes
from tests.server.signing import write_credentials
from tests.server.test_connection import answers

import isotone
from isotone.engine import health as health_of
from isotone.server import running_server
from isotone.server.exposition import MetricFamily, MetricSample, text
from isotone.server.monitor import _is_on_this_machine
from isotone.server.response import PlainResponse

TABLE: dict[str, Any] = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
SECRET = "not-for-operators"


def ask(url: str, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=10)) as connection:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


def call(url: str, operation: str, body: bytes = b"{}") -> int:
    return ask(url, "POST", "/", body, **headers_of(operation))[0]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[isotone.Database]:
    with isotone.open(tmp_path / "seen.db", durability="none") as database:
        database.execute("CreateTable", TABLE)
        yield database


def test_requests_are_counted(database):
    item = b'{"TableName": "tab", "Item": {"p": {"S": "%b"}}}' % SECRET.encode()
    with running_server(database) as url:
        for _ in range(3):
            assert call(url, "PutItem", item) == 200
        for _ in range(16):
            assert call(url, "ListTables") == 200
        assert call(url, "GetItem", b'{"TableName": "nowhere", "Key": {"p": {"S": "x"}}}') == 400
        assert call(url, "Sing") == 400
        status, shown = ask(url, "GET", "/metrics")
    assert status == 200
    assert SECRET not in shown
    found = values(shown)
    name = "isotone_request_duration_seconds"
    assert found[name + '_count{action="PutItem"}'] == 3
    assert found[name + '_bucket{action="PutItem",le="+Inf"}'] == 3
    assert found[name + '_sum{action="PutItem"}'] > 0
    assert found['isotone_requests_total{action="ListTables"}'] == 16
    assert found[name + '_count{action="ListTables"}'] == 16
    assert found['isotone_requests_total{action="GetItem"}'] == 1
    assert found['isotone_errors_total{action="GetItem",error="ResourceNotFoundException"}'] == 1
    assert found['isotone_errors_total{action="Sing",error="UnknownOperationException"}'] == 1
    assert found["isotone_write_group_size_sum"] == 3
    assert found["isotone_tables"] == 1
    assert found["isotone_connections"] == 1
    assert found["isotone_wal_bytes"] > 0
    buckets = [value for key, value in found.items() if key.startswith(name + '_bucket{action="P')]
    assert buckets == sorted(buckets)


def test_units_are_counted_over_all_requests(database):
    item = b'{"TableName": "tab", "Item": {"p": {"S": "%b"}}}' % (b"x" * 1500)
    with running_server(database) as url:
        for _ in range(2):
            assert call(url, "PutItem", item) == 200
        assert call(url, "Scan", b'{"TableName": "tab"}') == 200
        found = values(ask(url, "GET", "/metrics")[1])
    labels = '{region="us-east-1",table="tab",index=""}'
    assert found[f"isotone_consumed_write_units_total{labels}"] == 4
    assert found[f"isotone_consumed_read_units_total{labels}"] == 0.5


def test_each_metric_is_on_the_page_with_its_type(database):
    with running_server(database) as url:
        families = read(ask(url, "GET", "/metrics")[1])
    lines = page("docs/operations.md").section("Metrics").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `")]
    documented = {name: row[2].strip() for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    assert documented == {name: family.kind for name, family in families.items()}


def test_a_server_with_credentials_names_tables_only_with_the_option(database, tmp_path):
    users = write_credentials(tmp_path / "users.json", ann={})
    call_of_program = {"TableName": "tab", "Item": {"p": {"S": "x"}}}
    for shown in (False, True):
        with running_server(database, credentials=users, metrics_for_all=shown) as url:
            database.execute("PutItem", call_of_program)
            assert ('table="tab"' in ask(url, "GET", "/metrics")[1]) is shown


class SlowToMeasure(FakeService):
    """A service whose series take until `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()

    def series(self) -> list[Any]:
        self.begun.set()
        assert self.go.wait(10)
        return super().series()


def test_a_long_scrape_delays_no_other_request():
    service = SlowToMeasure()
    with running_server(service) as url, dial(url) as sock:
        scrape = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        sock.sendall(scrape + request_bytes("GetItem"))  # whose answer waits for the scrape's
        assert service.begun.wait(10)
        assert call(url, "PutItem") == 200
        assert service.reads == []
        service.go.set()
        (_, metrics), (status, _) = answers(sock, 2)
        assert values(metrics.decode())["isotone_tables"] == 3
        assert status == 200


def test_a_scrape_that_fails_is_a_500(caplog):
    service = FakeService()
    service.of_tables = [("isotone_unheard_of", (), 1.0)]
    with running_server(service) as url:
        assert ask(url, "GET", "/metrics")[0] == 500
        service.of_tables = []
        assert ask(url, "GET", "/metrics")[0] == 200
    assert "the metrics could not be made" in caplog.text


def test_labels_and_help_are_escaped():
    label, meaning = 'a"b\\c\nd', "one\ntwo\\"
    family = MetricFamily(
        "isotone_x_total", "counter", meaning, [MetricSample(1.5, (("action", label),))]
    )
    found = read(text([family]).decode())["isotone_x_total"]
    assert found.samples == {("isotone_x_total", frozenset([("action", label)])): 1.5}
    assert found.help == r"one\ntwo\\"


def test_large_numbers_are_exact():
    family = MetricFamily("isotone_x", "gauge", "Bytes.", [MetricSample(2.0**49 + 1)])
    assert values(text([family]).decode()) == {"isotone_x": 2.0**49 + 1}


def test_requests_that_are_refused_at_the_door_are_counted():
    with running_server(FakeService()) as url:
        unsigned = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": "DynamoDB_20120810.GetItem",
        }
        for _ in range(3):
            assert ask(url, "POST", "/", b"{}", **unsigned)[0] == 400
        found = values(ask(url, "GET", "/metrics")[1])
    assert found['isotone_requests_total{action="refused"}'] == 3
    assert found['isotone_request_duration_seconds_count{action="refused"}'] == 3
    error = "MissingAuthenticationTokenException"
    assert found[f'isotone_errors_total{{action="refused",error="{error}"}}'] == 3


def test_invented_actions_share_a_series():
    with running_server(FakeService()) as url:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as sock:
            for number in range(300):
                name = "X" + "".join(chr(97 + int(digit)) for digit in str(number))
                sock.sendall(request_bytes(name))
                answers(sock, 1)
        actions = re.findall(r'requests_total\{action="(\w+)"', ask(url, "GET", "/metrics")[1])
    assert "other" in actions
    assert len(actions) < 150


def test_other_machines_see_no_metrics():
    assert _is_on_this_machine(("127.0.0.1", 5))
    assert _is_on_this_machine(("::1", 5, 0, 0))
    assert not _is_on_this_machine(("192.168.1.7", 5))
    assert not _is_on_this_machine("")


def test_admission_guards_these_paths_too(database):
    with running_server(database) as url:
        for path in ("/metrics", "/healthz"):
            assert ask(url, "GET", path)[0] == 200
            assert ask(url, "GET", path, Host="evil.example")[0] == 403
            assert ask(url, "GET", path, Origin="http://evil.example")[0] == 403
            assert ask(url, "POST", path)[0] == 404


def test_health_has_a_reason(database, monkeypatch):
    with running_server(database) as url:
        assert ask(url, "GET", "/healthz") == (200, "ok\n")
        monkeypatch.setattr(health_of, "_LEAST_ROOM", 1 << 62)
        status, reason = ask(url, "GET", "/healthz")
        assert status == 503
        assert "the disk has" in reason
        monkeypatch.undo()
        database.close()
        status, reason = ask(url, "GET", "/healthz")
        assert status == 503
        assert "closed" in reason
        assert read(ask(url, "GET", "/metrics")[1])  # what was counted is still there


def test_a_file_that_another_process_writes_is_healthy(database):
    from isotone.storage.sqlite import SQLiteStore

    other = SQLiteStore(database.engine.store.path, durability="none")
    with other.transaction(), running_server(database) as url:
        began = time.monotonic()
        assert ask(url, "GET", "/healthz") == (200, "ok\n")
        assert time.monotonic() - began < 2
    other.close()


def test_the_access_log_has_a_line_for_each_request(caplog):
    with caplog.at_level(logging.INFO, "isotone.access"):
        with running_server(FakeService(), access_log=True) as url:
            call(url, "GetItem", SECRET.encode())
            call(url, "PutItem", b'{"a":1}')
            call(url, "Nonsense")
        lines = [record.message for record in caplog.records if record.name == "isotone.access"]
    assert [line.split()[1:3] for line in lines] == [
        ["GetItem", "200"],
        ["PutItem", "200"],
        ["Nonsense", "400"],
    ]
    assert [line.split()[3] == "-" for line in lines] == [False, False, True]
    assert lines[2].endswith("UnknownOperationException")
    assert SECRET not in caplog.text


# The budget for bodies


def dial(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=5)


def held(url: str) -> float:
    return values(ask(url, "GET", "/metrics")[1])["isotone_bodies_bytes"]


def until(wanted: Any, url: str) -> float:
    deadline = time.monotonic() + 5
    while not wanted(held(url)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return held(url)


def test_bodies_over_the_budget_are_refused_with_retry_after():
    body = b"x" * 1_000_000
    with running_server(FakeService(), body_budget=1_500_000) as url:
        with dial(url) as first, dial(url) as second:
            first.sendall(request_bytes("GetItem", body)[:-10])
            assert until(lambda size: size > 900_000, url) > 900_000
            second.sendall(request_bytes("GetItem", body)[:-900_000])
            head = second.recv(65536)
            assert head.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nRetry-After: 1\r\n" in head
            first.sendall(body[-10:])
            assert answers(first, 1)[0][0] == 200
            assert until(lambda size: size == 0, url) == 0
            assert call(url, "GetItem", body) == 200
        found = values(ask(url, "GET", "/metrics")[1])
    assert found["isotone_refused_bodies_total"] == 1


class HeldService(FakeService):
    """A service that answers no read while it is held."""

    def send(self, operation: str, body: bytes, region: str = "") -> bytes:
        self.hold.wait(5)
        return super().send(operation, body, region)


def test_an_answer_does_not_release_the_body_that_is_arriving():
    service = HeldService()
    service.hold.clear()
    with running_server(service) as url, dial(url) as sock:
        body = b"x" * 1_000_000
        sock.sendall(request_bytes("GetItem", body) + request_bytes("GetItem", body)[:-10])
        assert until(lambda size: size > 1_900_000, url) > 1_900_000
        service.hold.set()
        assert answers(sock, 1)[0][0] == 200
        assert 500_000 < held(url) < 1_000_000
        sock.sendall(body[-10:])
        assert answers(sock, 1)[0][0] == 200
        assert until(lambda size: size == 0, url) == 0


def test_a_body_in_chunks_is_counted_as_it_comes():
    with running_server(FakeService(), body_budget=300_000) as url, dial(url) as sock:
        sock.sendall(request_bytes("GetItem", b"", Transfer_Encoding="chunked"))
        chunk = b"%x\r\n%b\r\n" % (50_000, b"y" * 50_000)
        try:
            for _ in range(10):
                sock.sendall(chunk)
                time.sleep(0.02)
        except ConnectionError:
            pass
        assert until(lambda size: size == 0, url) == 0
        found = values(ask(url, "GET", "/metrics")[1])
    assert found["isotone_refused_bodies_total"] == 1


def test_the_body_of_a_visit_is_held_until_it_is_answered():
    async def answer(visit: Any) -> PlainResponse:
        return PlainResponse(200, b"seen")

    def pages(visit: Any) -> Any:
        return answer if visit.path == b"/page" else None

    with running_server(FakeService(), pages=pages) as url, dial(url) as sock:
        body = b"x" * 400_000
        sock.sendall(
            b"POST /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\n\r\n" + body
        )
        assert answers(sock, 1)[0][0] == 200
        assert until(lambda size: size == 0, url) == 0  # the connection is still open


def test_a_body_is_held_no_longer_than_until_its_large_answer_is_sent():
    with running_server(FakeService()) as url, dial(url) as sock:
        body = b'"big%b20000000"' % (b" " * 400_000)
        sock.sendall(request_bytes("GetItem", body))
        ((status, answer),) = answers(sock, 1)
        assert (status, len(answer)) == (200, 20_000_002)
        assert until(lambda size: size == 0, url) == 0  # the connection is still open


@pytest.mark.parametrize("end", ["whole", "cut"])
def test_nothing_is_held_in_the_end(end):
    with running_server(FakeService(), body_budget=100_000_000) as url:
        for operation in ("GetItem", "PutItem", "Nonsense"):
            with dial(url) as sock:
                request = request_bytes(operation, b'"%b"' % (b"x" * 400_000))
                sock.sendall(request if end == "whole" else request[:-5])
                if end == "whole":
                    sock.sendall(request + request_bytes(operation))
                    answers(sock, 3)
        assert until(lambda size: size == 0, url) == 0
