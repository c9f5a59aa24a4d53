"""Runs long commands (--state, --restart): Ctrl-C stops one so that the same command continues it.

The first Ctrl-C lets a job end where it can be continued; the second one ends it at once.
"""

from __future__ import annotations

import argparse
import logging
import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from isotone.cli.program import INTERRUPTED, print_error
from isotone.cli.progress import ProgressOutput, add_progress_argument, progress_output
from isotone.errors import IsotoneError
from isotone.tables.jobs import Job
from isotone.tables.pace import Stopped

_A_MOMENT: Final = 1.0  # seconds that a warning is held back, in case the job ends


def add_state_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that can be continued."""
    add = parser.add_argument
    state = "where to keep the state of the job; by default in the user's folder for states"
    add("--state", metavar="FILE", help=state)
    add("--restart", action="store_true", help="forget the state of an interrupted run")


def add_result_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose what is printed."""
    add_progress_argument(parser)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


@contextmanager
def running_job(
    command: str, arguments: argparse.Namespace
) -> Iterator[tuple[Job[Any], ProgressOutput]]:
    """A job, and the output for its progress; inside the block the first Ctrl-C stops the job."""
    job: Job[Any] = Job()
    logger, warnings = logging.getLogger("isotone"), _Warnings(logging.WARNING)
    job.watch(warnings.print_older)
    logger.addHandler(warnings)
    try:
        with progress_output(command, arguments) as output, _stopped_by_interrupt(job.stop):
            yield job, output
    except Stopped:  # before there was a state to continue
        raise KeyboardInterrupt from None
    except IsotoneError as error:
        warnings.forget(str(error))
        raise
    finally:
        logger.removeHandler(warnings)
        warnings.print_all()


class _Warnings(logging.Handler):
    """Prints each warning of the database once: a full disk can refuse thousands of writes.

    A warning is held back for a moment: if the job ends meanwhile, its error may say the same.
    """

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._seen: set[str] = set()
        self._waiting: dict[str, float] = {}  # with the time of each

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._seen:
            self._seen.add(text)
            self._waiting[text] = time.monotonic()

    def print_older(self, _: object) -> None:
        """Print the warnings that have been held back long enough."""
        self._print_until(time.monotonic() - _A_MOMENT)

    def print_all(self) -> None:
        """Print the remaining warnings."""
        self._print_until(math.inf)

    def forget(self, reason: str) -> None:
        """Drop the warnings with this reason, because the error of the command contains it."""
        with self._guard():
            self._waiting = {
                text: at for text, at in self._waiting.items() if not reason or reason not in text
            }

    def _print_until(self, latest: float) -> None:
        with self._guard():
            due = [text for text, at in self._waiting.items() if at <= latest]
            for text in due:
                del self._waiting[text]
        for text in due:
            print_error(text)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """The lock that the logging package holds while it calls `emit`."""
        self.acquire()
        try:
            yield
        finally:
            self.release()


def interrupted(state: Path | None, reason: str = "") -> int:
    """Print how an interrupted job is continued, or why it cannot be; returns the exit code."""
    if state is None:
        print_error(f"interrupted; nothing remembers where it was{reason}")
    else:
        print_error(f"interrupted; the same command continues where it was ({state})")
    return INTERRUPTED


@contextmanager
def _stopped_by_interrupt(stop: threading.Event) -> Iterator[None]:
    """Inside the block, the first Ctrl-C sets an event, and the second one raises `KeyboardInterrupt`."""

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
