"""Processes for tests of what several do to one file.

Each is forked from a server that has imported the library and has opened nothing, so that it starts in
milliseconds. Where there is no such server (Windows), each is a Python of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
CONTEXT: Any = multiprocessing.get_context(_METHOD)
CONTEXT.set_forkserver_preload(["isotone.model.connecting", "tests.structures.processes"])


class Program:
    """A program of Python that runs in a process: `stdout` is what it prints."""

    def __init__(self, path: str | Path, *arguments: str) -> None:
        reading, writing = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_run, args=(str(path), arguments, writing))
        self._process.start()
        writing.close()
        self.stdout = os.fdopen(os.dup(reading.fileno()), encoding="utf-8")
        reading.close()

    def kill(self) -> None:
        self._process.kill()

    def finish(self, timeout: float = 120) -> str:
        """The rest of what it prints, until it has ended."""
        with self.stdout:
            printed = self.stdout.read()
        self._process.join(timeout)
        return printed

    @property
    def returncode(self) -> int | None:
        """0 if it went well, negative if it was killed, None while it runs."""
        code: int | None = self._process.exitcode
        return code


def _run(path: str, arguments: tuple[str, ...], writing: Connection) -> None:
    os.dup2(writing.fileno(), 1)
    writing.close()
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.argv = [path, *arguments]
    runpy.run_path(path, run_name="__main__")
    sys.stdout.flush()


def together(path: str | Path, *arguments: str, processes: int) -> list[str]:
    """What so many processes of a program print, which run at the same time."""
    running = [Program(path, *arguments, str(number)) for number in range(processes)]
    printed = [each.finish() for each in running]
    assert [each.returncode for each in running] == [0] * processes
    return printed
