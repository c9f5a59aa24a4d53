"""A real Redis server as a child process: on loopback, on a free port, in memory alone."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Final, Self

from tests import guard
from tests.oracle.local import free_port

STARTUP_SECONDS: Final = 20.0


def is_here() -> bool:
    """Whether there is a `redis-server` to start, and redis-py to ask it with."""
    try:
        import redis  # noqa: F401
    except ImportError:
        return False
    return shutil.which("redis-server") is not None


class RedisServer:
    """A server of our own, from `with` to the end of its block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    def __enter__(self) -> Self:
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder}
        options |= {"save": "", "appendonly": "no", "daemonize": "no"}
        command = ["redis-server"]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        self._process = guard.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._await()
        return self

    def _await(self) -> None:
        import redis

        assert self._process is not None
        deadline = time.monotonic() + STARTUP_SECONDS
        with redis.Redis("127.0.0.1", self.port) as client:
            while True:
                try:
                    client.ping()
                except redis.ConnectionError:
                    if self._process.poll() is not None or time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)
                else:
                    return

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
