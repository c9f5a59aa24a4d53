"""`isotone serve` as a process of its own, forked where it can be (`tests/programs.py`)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self
from urllib.parse import urlsplit

from tests.programs import Command, isotone

STOP_SECONDS = 20
WORKERS: Final = os.environ.get("ISOTONE_WORKERS", "")
"""How many fronts each served file has, unless a test says it: `ISOTONE_WORKERS=2 pytest tests/sdks`."""


@dataclass
class ServerProcess:
    """A server that runs, and where. It has ended when the block of a `with` has."""

    process: Command | subprocess.Popen[str]
    url: str

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def processes(self) -> list[int]:
        """The process that was started, and then those that it has started, in their order (Linux)."""
        root = self.process.pid
        found = Path(f"/proc/{root}/task/{root}/children").read_text().split()
        return [root, *sorted(map(int, found))]

    def kill(self) -> None:
        """SIGKILL: the process has no time to do anything at all. Nothing, if it has ended."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)


def start_server(
    file: Path | str | None = None,
    *arguments: str,
    port: int = 0,
    wrapper: Sequence[str] = (),
    prepare: Callable[[], None] | None = None,
    stderr: IO[str] | None = None,
) -> ServerProcess:
    """Start a server on a file, an address or memory, and wait until it says that it is ready.

    `prepare` runs in the new process before the server does; `wrapper` is a command that runs it.
    """
    words = ["serve", "--port", str(port), *arguments]
    if file is not None:
        words.append(str(file))
        if WORKERS and "--workers" not in arguments:
            words += ["--workers", WORKERS]
    process: Command | subprocess.Popen[str]
    if wrapper or prepare is not None:
        command = [*wrapper, sys.executable, "-m", "isotone", *words]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, preexec_fn=prepare
        )
    else:
        process = isotone(*words, stderr=stderr)
    assert process.stdout is not None
    announced = process.stdout.readline()
    found = re.search(r"https?://\S+", announced)
    if found is None:
        process.kill()
        raise AssertionError(f"the server did not start: {announced or process.wait()!r}")
    return ServerProcess(process, found[0])


@contextmanager
def server_process(file: Path) -> Iterator[str]:
    """Serve a file while the block runs; gives the URL. The server must never have complained."""
    complaints = file.with_suffix(".log")
    with complaints.open("w") as log, start_server(file, stderr=log) as server:
        yield server.url
        assert server.stop() == 0
    assert complaints.read_text() == ""
