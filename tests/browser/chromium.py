"""A real Chromium without a window, a web site of another name for it, and a name that changes its machine.

The browser is the program that `ISOTONE_CHROMIUM` names, or a Chromium or Chrome on the path. Its resolver is told that
every name is this machine, so a test needs no network.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

WAIT_SECONDS = 90
# Chromium's own pages, such as the list under the address line: each window would load them anew, hidden, for half of
# the processor time of a test.
NO_PAGES_OF_ITS_OWN = (
    "--disable-features=AimEnabled,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,WebUIOmniboxPopup"
)
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str | None:
    """The path of a browser; None if there is none."""
    named = os.environ.get("ISOTONE_CHROMIUM")
    return named or next(filter(None, map(shutil.which, _PROGRAMS)), None)


needs_chromium = pytest.mark.skipif(
    chromium() is None,
    reason="there is no Chromium: `apt-get install chromium`, or ISOTONE_CHROMIUM",
)


class Site(ThreadingHTTPServer):
    """A web site with one page. What the page posts to /result is a result; /rebind calls `on_rebind`."""

    daemon_threads = True

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.name = name
        self.page = ""
        self.on_rebind: Callable[[], None] = lambda: None
        self.results: queue.Queue[Any] = queue.Queue()

    @property
    def origin(self) -> str:
        return f"http://{self.name}:{self.server_port}"


class _Page(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self._answer(self.server.page.encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/result":
            self.server.results.put(json.loads(body))
        elif self.path == "/rebind":
            self.server.on_rebind()
        self._answer(b"")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def running_site(name: str) -> Iterator[Site]:
    with Site(name) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()


class Rebinding:
    """A port that leads to one server first, and to another one after `port` is set: a name that is rebound."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.own_port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            back = threading.Thread(target=_pump, args=(server, client))
            back.start()
            _pump(client, server)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def visit(site: Site, script: str, folder: Path, *, at: str | None = None) -> Any:
    """Open a page with this script in the browser; the value that the script returns.

    `at` is the origin by which the browser reaches the site, if it is not the site's own.
    """
    program = chromium()
    assert program is not None
    site.page = _PAGE % (script, json.dumps(site.origin))
    arguments = [
        program,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        NO_PAGES_OF_ITS_OWN,
        f"--user-data-dir={folder}",
        "--host-resolver-rules=MAP * 127.0.0.1",
        "--remote-debugging-port=0",  # keeps it open until it is ended
        f"{at or site.origin}/",
    ]
    with (folder / "chromium.log").open("w") as log:
        browser = subprocess.Popen(arguments, stdout=log, stderr=log, start_new_session=True)
        try:
            return site.results.get(timeout=WAIT_SECONDS)
        finally:
            browser.terminate()
            try:
                browser.wait(20)
            except subprocess.TimeoutExpired:
                browser.kill()
                browser.wait()


_PAGE = """<!doctype html><meta charset=utf-8><title>A page</title><body><script>
const outcome = (promise) => promise.then(
    async (answer) => ({type: answer.type, status: answer.status, text: await answer.text()}),
    (error) => ({type: "error", text: String(error)}));
const after = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
(async () => { %s })().catch((error) => ({failed: String(error)})).then((result) =>
    fetch(%s + "/result", {method: "POST", mode: "no-cors", body: JSON.stringify(result)}));
</script>"""
