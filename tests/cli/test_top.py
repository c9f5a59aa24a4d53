"""`isotone top`: the most expensive queries of a server, in a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.server.test_queries import fill, workload

import isotone
from isotone.cli.program import run
from isotone.cli.top import shape_of
from isotone.server import running_server
from isotone.workbench import server_pages


@pytest.fixture
def url() -> Iterator[str]:
    with isotone.open() as database:
        fill(database)
        with running_server(database) as url:
            with isotone.connect(url, engine="isotone") as store:
                for action, request in workload():
                    store.backend.execute(action, request)
            yield url


def test_it_prints_the_most_expensive_first(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", url, "--once", "--rows", "3"]) == 0
    title, header, _, *rows = capsys.readouterr().out.splitlines()
    assert "by units" in title
    assert header.split() == ["units", "calls", "read", "dropped", "p99", "query"]
    assert len(rows) == 4
    assert "Scan orders" in "\n".join(rows[:3])
    assert rows[-1] == "and 4 more"


def test_it_sorts_as_asked(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", url, "--json", "--sort", "dropped"]) == 0
    found = json.loads(capsys.readouterr().out)["queries"]
    dropped = [each["read"] - each["returned"] for each in found]
    assert dropped == sorted(dropped, reverse=True)
    assert found[0]["shape"].startswith(("Scan orders: filter", "SELECT * FROM orders"))
    assert run(["top", url, "--once", "--sort", "dropped"]) == 0
    _, _, _, first, *_ = capsys.readouterr().out.splitlines()
    assert f" {dropped[0]:,} " in first  # as they are sorted by it


def test_a_transaction_is_shown_by_its_parts() -> None:
    names = ("table", "index", "key", "filter", "update", "condition", "projection", "statement")
    parts = "Put orders; Update customers SET orders = ?"
    query = dict.fromkeys(names, "") | {"action": "TransactWriteItems", "parts": parts}
    assert shape_of(query) == f"TransactWriteItems: {parts}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["shop.db"], "is not the address of a server"),
        (["http://localhost:1"], "does not answer"),
        (["http://localhost:1", "--rows", "0"], "shows nothing"),
        (["http://localhost:1", "--every", "0"], "is not a time"),
        (["http://localhost:1", "--every", "inf"], "is not a time"),
    ],
)
def test_what_it_cannot_show_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["top", *words]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b'{"queries": null}', "/queries is not what this version of Isotone reads: "),
        (200, b'{"seconds": 1, "queries": [{"action": "Scan"}]}', "/queries is not what this version of Isotone reads: "),
        (200, b'{"queries": [', "/queries is not what this version of Isotone reads: "),
        (500, b"out of order", "/queries does not answer: status 500"),
        (404, b"", " has no /queries: "),
    ],
)  # fmt: skip
def test_the_page_of_another_server_is_refused_in_a_sentence(
    status: int, body: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert run(["top", url, "--once"]) == 1
        server.shutdown()
    assert capsys.readouterr().err.startswith(f"isotone: {url}{message}")


def test_an_answer_without_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(200):  # it ends after ten seconds, so that the test does
                    self.wfile.write(b"x" * 100)
                    time.sleep(0.05)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setattr(server_pages, "_WITHIN", 0.3)
    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert run(["top", url, "--once"]) == 1
        server.shutdown()
    error = capsys.readouterr().err
    assert error == (
        f"isotone: {url}/queries does not answer: {url} did not end its answer within 0.3 s\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_ends_the_live_table(url: str) -> None:
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "isotone", "top", url, "--every", "0.1"]
    environment = {**os.environ, "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(command, stdout=its, stderr=subprocess.PIPE, env=environment)
    os.close(its)
    shown = b""
    deadline = time.monotonic() + 30
    while shown.count(b"by units") < 3:
        assert time.monotonic() < deadline
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    os.close(ours)
    assert (process.returncode, complaint) == (0, b"")
    assert b"Scan orders" in shown
