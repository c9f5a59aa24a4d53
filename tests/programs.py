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
import types
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Self

from isotone.operations.action import ACTIONS

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
        *sorted({f"isotone.operations.{action.module}" for action in ACTIONS.values()}),
        "isotone.operations.checks.orders",
    ]
)
_ROOT = str(Path(__file__).parents[1])  # where `tests` is imported from


def python(
    *words: object,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[Any] | None = subprocess.DEVNULL,
    stdout: int | IO[Any] | None = subprocess.PIPE,
    stderr: int | IO[Any] | None = None,
) -> Command | subprocess.Popen[str]:
    """Start Python with a file, `-c CODE` or `-m MODULE`, and words, as `subprocess.Popen` would, but forked."""
    told = [os.fspath(word) if isinstance(word, Path) else str(word) for word in words]
    if _METHOD != "forkserver":
        streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        return subprocess.Popen([sys.executable, *told], cwd=cwd, env=env, text=True, **streams)
    return Command(
        told, os.fspath(cwd or Path.cwd()), dict(env or os.environ), stdin, stdout, stderr
    )


def isotone(*words: object, **options: Any) -> Command | subprocess.Popen[str]:
    """Start `python -m isotone` with these words; the options are those of `python`."""
    return python("-m", "isotone", *words, **options)


def together(path: str | Path, *arguments: str, processes: int) -> list[str]:
    """What so many processes of a program print, which run at the same time."""
    running = [python(path, *arguments, number) for number in range(processes)]
    printed = [each.communicate(timeout=120)[0] for each in running]
    assert [each.returncode for each in running] == [0] * processes
    return printed


class Command:
    """Python in a forked process, with what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        words: Sequence[str],
        cwd: str,
        environment: dict[str, str],
        stdin: int | IO[Any] | None,
        stdout: int | IO[Any] | None,
        stderr: int | IO[Any] | None,
    ) -> None:
        self.stdin, own_in = _stream(stdin, 0)
        self.stdout, own_out = _stream(stdout, 1)
        self.stderr, own_err = _stream(stderr, 2)
        own = (own_in, own_out, own_err)
        self._process = CONTEXT.Process(target=_run, args=(words, cwd, environment, own))
        self._process.start()
        for each in own:
            each.close()
        self.pid: int = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
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
            raise subprocess.TimeoutExpired("python", timeout or 0)
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
        if self.stdin is not None and not self.stdin.closed:
            self.stdin.close()
        self.wait(timeout)
        for thread in threads:
            thread.join()
        return printed["out"], printed["err"]


def _stream(wanted: int | IO[Any] | None, own: int) -> tuple[IO[str] | None, Connection]:
    """The end of a pipe that is used here, if there is one, and what the process has as its stream `own`."""
    if wanted == subprocess.PIPE:
        reading, writing = os.pipe()
        if own == 0:
            return os.fdopen(writing, "w", encoding="utf-8"), Connection(reading, writable=False)
        return os.fdopen(reading, encoding="utf-8"), Connection(writing, readable=False)
    if wanted == subprocess.DEVNULL:
        return None, Connection(os.open(os.devnull, os.O_RDWR))
    if isinstance(wanted, int):
        raise AssertionError(f"{wanted} is neither PIPE nor DEVNULL")
    return None, Connection(os.dup(own if wanted is None else wanted.fileno()))


def _run(
    words: list[str], cwd: str, environment: dict[str, str], streams: tuple[Connection, ...]
) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    first = str(Path(words[0]).parent) if words[0][0] != "-" else cwd
    sys.path[:0] = [first, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.path.append(_ROOT)
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        elif words[0] == "-c":
            sys.argv = ["-c", *words[2:]]
            sys.modules["__main__"] = module = types.ModuleType("__main__")
            exec(compile(words[1], "<string>", "exec"), vars(module))
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    finally:
        sys.stdout.flush()
