"""What surrounds the work of every job: its state file, its reports, its awaited form, and numbers that are checked."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from functools import partial
from os import PathLike
from typing import Any, Final, TypeVar

from isotone.errors import UsageError
from isotone.output_paths import STANDARD
from isotone.tables.job_state import JobState, default_path
from isotone.tables.pace import Stopped
from isotone.tables.progress import Meter, Report

R = TypeVar("R")

_MOST_THREADS: Final = 1000
TICK: Final = 0.2  # seconds between two reports


async def in_thread(job: Callable[..., R], *arguments: Any, **options: Any) -> R:
    """A job for async programs. If it is cancelled, it is stopped, and has ended when this returns."""
    stop = options.setdefault("stop", threading.Event())
    work = asyncio.ensure_future(asyncio.to_thread(partial(job, *arguments, **options)))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([work])
        raise


def state_of(*words: str | None, path: str | PathLike[str] | None) -> JobState:
    """The state of the job that these words name: its kind, and its addresses, files and tables.

    It is in the file at `path`, or else in a default one. Where a word is None, for a database in memory, or is
    standard input or output, nobody could continue the job, so it has no default file.
    """
    job = tuple(word or "an object" for word in words)
    if path is None and None not in words and STANDARD not in words:
        path = default_path(job)
    return JobState(path, job)


def check_number(name: str, value: int | None, of: str) -> None:
    """Raise `UsageError` unless a number of segments or threads is None, or 1 or more; each is a thread of its own."""
    if value is not None and (type(value) is not int or not 1 <= value <= _MOST_THREADS):
        raise UsageError(f"{name}={value!r} is not a number of {of}; give 1 to {_MOST_THREADS}")


def wait_for(
    futures: Collection[Future[None]], stop: threading.Event, report: Callable[[], object]
) -> None:
    """Wait for the threads of a job, and report meanwhile. The first error, or Ctrl-C, stops the others."""
    pending, failed = set(futures), False
    try:
        while pending and not failed:
            done, pending = wait(pending, timeout=TICK)
            report()
            failed = any(each.exception() for each in done)
    finally:
        if pending or failed:
            stop.set()
        wait(futures)
    errors = [error for each in futures if (error := each.exception())]
    if errors:  # those that were only stopped say less
        raise next((each for each in errors if not isinstance(each, Stopped)), errors[0])


def silent(_: object) -> None:
    """Report nothing."""


class Reporter:
    """Reports the progress of a job five times a second."""

    def __init__(self, report: Report, meter: Meter) -> None:
        self._report = report
        self._meter = meter
        self._reported = time.monotonic()

    def tick(self, *, now: bool = False) -> None:
        """Report if it is time, or at once."""
        if now or time.monotonic() - self._reported > TICK:
            self._report(self._meter.progress())
            self._reported = time.monotonic()
