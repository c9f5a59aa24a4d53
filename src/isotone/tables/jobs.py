"""Long-running work as a `Job`: its progress, how to stop it, and how it ended.

    job = Job()
    job.watch(show)                                                           # called with each progress
    done = job.run(export_items, …, progress=job.report, stop=job.stop)       # here, or
    job.start(export_items, …, progress=job.report, stop=job.stop)            # in a thread of its own

A terminal runs its job and shows the reports; a page starts one and polls its `status`. Both stop it by `stop`. This
file also has what jobs share: finding the file that continues a job, periodic reports, and checks of numbers.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Any, Final, Generic, Literal, ParamSpec, TypeVar

from isotone.error_text import error_text
from isotone.errors import IsotoneError, UsageError
from isotone.output_paths import STANDARD
from isotone.tables.job_state import JobState, default_path
from isotone.tables.pace import Stopped
from isotone.tables.progress import Meter, Progress, Report

P = ParamSpec("P")
R = TypeVar("R")

_MOST_THREADS: Final = 1000
TICK: Final = 0.2  # seconds between two reports


log: logging.Logger = logging.getLogger("isotone.jobs")


@dataclass(kw_only=True)
class Job(Generic[R]):
    """One job. Its methods may be called from any thread; it runs once.

    `state` is set last, so the other attributes are complete once the job is over. A job is `stopped` if the work
    raised `Stopped`, or if `stop` was set and the result's `is_complete` is false. A stop that comes too late changes
    nothing.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    state: Literal["waiting", "running", "done", "failed", "stopped"] = "waiting"
    progress: Progress | None = None
    result: R | None = None
    error: str = ""
    """Why the job failed, in a sentence."""
    _watchers: list[Report] = field(default_factory=list)

    @property
    def is_running(self) -> bool:
        """Whether the work is under way."""
        return self.state == "running"

    def watch(self, report: Report) -> None:
        """Call a function with each progress, in the thread that reports it."""
        self._watchers.append(report)

    def report(self, progress: Progress) -> None:
        """Record the progress of the work, and pass it to the watchers."""
        self.progress = progress
        for each in self._watchers:
            each(progress)

    def run(self, work: Callable[P, R], /, *arguments: P.args, **options: P.kwargs) -> R:
        """Do the work in this thread, and return its result; raises what it raises."""
        self.state = "running"
        end: Literal["done", "failed", "stopped"] = "failed"
        try:
            self.result = result = work(*arguments, **options)
            is_complete = getattr(result, "is_complete", True)
            end = "stopped" if self.stop.is_set() and not is_complete else "done"
        except Stopped:
            end = "stopped"
            raise
        except BaseException as error:
            self.error = error_text(error)
            raise
        finally:
            self.state = end
        return result

    def start(self, work: Callable[P, R], /, *arguments: P.args, **options: P.kwargs) -> None:
        """Do the work in a thread of its own.

        The thread does not delay the end of the process, so the work must survive being killed."""
        self.state = "running"
        unattended = partial(self._run_unattended, partial(work, *arguments, **options))
        threading.Thread(target=unattended, name="isotone-job", daemon=True).start()

    def status(self) -> dict[str, Any]:
        """The job's progress, as JSON values."""
        state, progress = self.state, self.progress  # the state first: it is set last
        return {
            "state": state,
            "fault": self.error,
            "items": 0 if progress is None else progress.items,
            "of_items": 0 if progress is None else progress.of_items,
            "share": 0.0 if progress is None else progress.share,
            "seconds_left": None if progress is None else progress.seconds_left,
            "units": 0.0 if progress is None else progress.read_units + progress.write_units,
        }

    def _run_unattended(self, work: Callable[[], R]) -> None:
        try:
            self.run(work)
        except (IsotoneError, OSError):
            pass  # the error is in `error`
        except Exception:  # nobody waits for the thread: a fault of ours goes to the log
            log.exception("a job failed")


async def run_async(work: Callable[..., R], *arguments: Any, **options: Any) -> R:
    """Run a job in a thread, for async programs. Cancelling it stops the job, and waits until it has ended."""
    stop = options.setdefault("stop", threading.Event())
    running = asyncio.ensure_future(asyncio.to_thread(partial(work, *arguments, **options)))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([running])
        raise


def state_of(*words: str | None, path: str | PathLike[str] | None) -> JobState:
    """The state of the job with this kind, addresses, files and tables.

    It is stored at `path`, or else in a default file. A word is None for a database in memory, or for standard input or
    output; such a job cannot be continued, so it has no default file.
    """
    job = tuple(word or "an object" for word in words)
    if path is None and None not in words and STANDARD not in words:
        path = default_path(job)
    return JobState(path, job)


def check_number(name: str, value: int | None, of: str) -> None:
    """Raise `UsageError` unless a number of segments or threads is None or at least 1; each is a thread of its own."""
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
    if errors:  # the first one is the cause; the others were only stopped
        raise next((each for each in errors if not isinstance(each, Stopped)), errors[0])


def silent(_: object) -> None:
    """Report nothing."""


class Reporter:
    """Calls a report function with the progress of a job, five times a second."""

    def __init__(self, report: Report, meter: Meter) -> None:
        self._report = report
        self._meter = meter
        self._reported = time.monotonic()

    def tick(self, *, now: bool = False) -> None:
        """Report if it is time, or at once."""
        if now or time.monotonic() - self._reported > TICK:
            self._report(self._meter.progress())
            self._reported = time.monotonic()
