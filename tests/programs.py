"""Processes for tests of what several do to one file, and of what is left of one that is killed.

Each is forked from a server that has imported the library and has opened nothing, so that it starts in
milliseconds. Where there is no such server (Windows), each is a Python of its own. How the program itself
starts, `tests/cli` tries by `python -m isotone`.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Self

_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
CONTEXT: Any = multiprocessing.get_context(_METHOD)
CONTEXT.set_forkserver_preload(
    [
        *(
            "isotone.cli.program",
            "isotone.cli.serving",
            "isotone.cli.worker",
            "isotone.cli.copying",
        ),
        *("isotone.server", "isotone.backends.embedded", "isotone.workbench", "uvloop"),
        *("isotone.model.connecting", "tests.structures.processes"),
    ]
)


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


def isotone(
    *words: object,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[Any] | None = subprocess.PIPE,
    stderr: int | IO[Any] | None = None,
) -> Command | subprocess.Popen[str]:
    """Start `python -m isotone` with these words, as `subprocess.Popen` would, but forked."""
    told = [os.fspath(word) if isinstance(word, Path) else str(word) for word in words]
    if _METHOD != "forkserver":
        command = [sys.executable, "-m", "isotone", *told]
        return subprocess.Popen(command, cwd=cwd, env=env, stdout=stdout, stderr=stderr, text=True)
    return Command(told, os.fspath(cwd or Path.cwd()), dict(env or os.environ), stdout, stderr)


class Command:
    """The program in a forked process, with what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        words: Sequence[str],
        cwd: str,
        environment: dict[str, str],
        stdout: int | IO[Any] | None,
        stderr: int | IO[Any] | None,
    ) -> None:
        self.stdout, out = _stream(stdout, 1)
        self.stderr, err = _stream(stderr, 2)
        arguments = (words, cwd, environment, out, err)
        self._process = CONTEXT.Process(target=_run_isotone, args=arguments)
        self._process.start()
        out.close()
        err.close()
        self.pid: int = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    @property
    def returncode(self) -> int | None:
        """0 if it went well, negative if it was killed, None while it runs."""
        code: int | None = self._process.exitcode
        return code

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("isotone", timeout or 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it has printed until it ended."""
        printed = {"out": "", "err": ""}

        def read(name: str, stream: IO[str]) -> None:
            with stream:
                printed[name] = stream.read()

        streams = {"out": self.stdout, "err": self.stderr}
        threads = [
            threading.Thread(target=read, args=each, daemon=True)
            for each in streams.items()
            if each[1] is not None and not each[1].closed
        ]
        for thread in threads:
            thread.start()
        self.wait(timeout)
        for thread in threads:
            thread.join()
        return printed["out"], printed["err"]


def _stream(wanted: int | IO[Any] | None, own: int) -> tuple[IO[str] | None, Connection]:
    """What is to be read here, if anything, and what the process writes to."""
    if wanted == subprocess.PIPE:
        reading, writing = os.pipe()
        return os.fdopen(reading, encoding="utf-8"), Connection(writing, readable=False)
    if wanted == subprocess.DEVNULL:
        return None, Connection(os.open(os.devnull, os.O_WRONLY), readable=False)
    if isinstance(wanted, int):
        raise AssertionError(f"{wanted} is neither PIPE nor DEVNULL")
    return None, Connection(os.dup(own if wanted is None else wanted.fileno()), readable=False)


def _run_isotone(
    words: list[str], cwd: str, environment: dict[str, str], out: Connection, err: Connection
) -> None:
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    out.close()
    err.close()
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:0] = [cwd, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = ["isotone", *words]
    try:
        runpy.run_module("isotone", run_name="__main__", alter_sys=True)
    finally:
        sys.stdout.flush()
