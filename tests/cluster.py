"""A cluster for tests: several `isotone serve` processes on one file, which can be killed one by one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final, Self

from tests.oracle.local import free_port
from tests.programs import Command, isotone

SECONDS: Final = 30


class Cluster:
    """Servers of one file, each with the list of all, from `with` to the end of its block."""

    def __init__(self, file: Path, nodes: int = 3, hosts: tuple[str, ...] = ()) -> None:
        self.file = file
        port = free_port()
        given = [(host, port) for host in hosts]
        self.nodes = given or [("127.0.0.1", free_port()) for _ in range(nodes)]
        self._processes: list[Command | subprocess.Popen[str]] = []

    @property
    def url(self) -> str:
        """Its address, for programs that may use all that Isotone's own servers can do."""
        return f"alternator://{self._listed}?engine=isotone"

    @property
    def _listed(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.nodes)

    def __enter__(self) -> Self:
        for host, port in self.nodes:
            options = ["--host", host, "--port", str(port), "--localnodes", self._listed]
            self._processes.append(
                isotone("serve", self.file, "--quiet", *options, stderr=subprocess.PIPE)
            )
        try:
            for host, port in self.nodes:
                _wait_for(host, port)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def kill(self, number: int) -> None:
        """End one server as a power cut would."""
        self._processes[number].kill()
        self._processes[number].wait(SECONDS)

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.communicate(timeout=SECONDS)


def _wait_for(host: str, port: int) -> None:
    import socket
    import time

    until = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection((host, port), 1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
