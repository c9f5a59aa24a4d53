"""Commands that run long jobs: a line of progress, and Ctrl-C, after which the same command continues.

The first Ctrl-C lets a job end where it can be continued, the second one ends it at once.
"""

from __future__ import annotations

import argparse
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from isotone.cli.output import LiveLine
from isotone.cli.program import INTERRUPTED, complain


class Job(NamedTuple):
    """What a job is given by its command: where it shows its progress, and what stops it."""

    show: Callable[[object], None]
    stop: threading.Event

    @property
    def is_stopped(self) -> bool:
        """Whether there was a Ctrl-C."""
        return self.stop.is_set()


def add_state_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of a command that can be continued."""
    add = parser.add_argument
    state = "where to keep the state of the job; by default in the user's folder for states"
    add("--state", metavar="FILE", help=state)
    add("--restart", action="store_true", help="forget the state of an interrupted run")


def add_result_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that say what is printed."""
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


@contextmanager
def running_job(arguments: argparse.Namespace) -> Iterator[Job]:
    """Show progress, and let the first Ctrl-C stop the job, while it runs in the block."""
    stop = threading.Event()
    logger, once = logging.getLogger("isotone"), _Once(logging.WARNING)
    logger.addHandler(once)
    try:
        with LiveLine(silent=arguments.quiet) as line, _stopped_by_interrupt(stop):
            yield Job(line.show, stop)
    finally:
        logger.removeHandler(once)


class _Once(logging.Handler):
    """Prints each warning of the database once: a full disk refuses thousands of writes for one reason."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._said:
            self._said.add(text)
            complain(text)


def interrupted(state: Path | None, reason: str = "") -> int:
    """Say how an interrupted job is continued, or the reason why it cannot be; returns the exit code."""
    if state is None:
        complain(f"interrupted; nothing remembers where it was{reason}")
    else:
        complain(f"interrupted; the same command continues where it was ({state})")
    return INTERRUPTED


@contextmanager
def _stopped_by_interrupt(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C inside the block set an event, and the second one raise `KeyboardInterrupt`."""

    def interrupt(_: int, __: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    try:
        before = signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
