"""`isotone serve` as a process of its own, the way its users start it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

STOP_SECONDS = 20


@dataclass
class ServerProcess:
    """A server that runs, and where."""

    process: subprocess.Popen[str]
    url: str

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def kill(self) -> None:
        """SIGKILL: the process has no time to do anything at all."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)


def start_server(
    file: Path | None = None,
    *arguments: str,
    port: int = 0,
    prepare: Callable[[], None] | None = None,
    stderr: IO[str] | None = None,
) -> ServerProcess:
    """Start a server on a file, or on memory, and wait until it says that it is ready.

    `prepare` runs in the new process before the server does.
    """
    command = [sys.executable, "-m", "isotone", "serve", "--port", str(port), *arguments]
    if file is not None:
        command.append(str(file))
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, preexec_fn=prepare
    )
    assert process.stdout is not None
    announced = process.stdout.readline()
    found = re.search(r"http://\S+", announced)
    if found is None:
        process.kill()
        raise AssertionError(f"the server did not start: {announced or process.wait()!r}")
    return ServerProcess(process, found[0])


@contextmanager
def server_process(file: Path | None = None, *arguments: str, port: int = 0) -> Iterator[str]:
    """Serve while the block runs; gives the URL. The server must stop cleanly at the end."""
    server = start_server(file, *arguments, port=port)
    try:
        yield server.url
        assert server.stop() == 0
    finally:
        if server.process.poll() is None:
            server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
