"""The service manager is told that the server is ready, once it accepts connections."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from isotone.server.service_manager import notify

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no systemd on Windows")


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> socket.socket:
    """The manager's end of the socket."""
    path = str(tmp_path / "notify")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.bind(path)
    listening.settimeout(20)
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    return listening


def test_a_state_reaches_the_manager(manager: socket.socket) -> None:
    with manager:
        notify(b"READY=1")
        assert manager.recv(100) == b"READY=1"


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_a_socket_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"isotone-test-{threading.get_ident()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name)
        notify(b"READY=1")
        assert manager.recv(100) == b"READY=1"


def test_without_a_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify(b"READY=1")


def test_a_server_says_that_it_is_ready(manager: socket.socket) -> None:
    with manager:
        command = [sys.executable, "-m", "isotone", "serve", "--port", "0", "--quiet"]
        with subprocess.Popen(command) as process:
            try:
                assert manager.recv(100) == b"READY=1"
            finally:
                process.terminate()
