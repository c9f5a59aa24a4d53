"""Runs a server that must not outlive the process that started it, however that ends.

    python tests/guard.py COMMAND…

The guard's standard input is a pipe from that process. When the pipe closes, because the process ended or was killed, the
guard ends the command; so it does on SIGTERM. It exits with the status of the command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Any

PATIENCE = 10.0  # seconds until a command that does not end is killed


def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command under a guard of this process; the options are those of `Popen`. To end it, terminate the guard."""
    return subprocess.Popen(
        [sys.executable, "-S", __file__, *command], stdin=subprocess.PIPE, **options
    )


class _Guard:
    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._is_ending = threading.Event()

    def run(self, command: list[str]) -> int:
        # Ctrl-C reaches the whole group: the process that was started says when to end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: self._is_ending.set())
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            preexec_fn=_default_signals if os.name == "posix" else None,
        )
        for watch in (self._watch_input, self._end_child):
            threading.Thread(target=watch, daemon=True).start()
        status = self._child.wait()
        return status if status >= 0 else 128 - status

    def _watch_input(self) -> None:
        os.read(0, 1)
        self._is_ending.set()

    def _end_child(self) -> None:
        assert self._child is not None
        self._is_ending.wait()
        self._child.terminate()
        try:
            self._child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._child.kill()


def _default_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    os._exit(_Guard().run(sys.argv[1:]))  # without waiting for the thread that reads
