"""A job: what its watchers see while it runs, and how it ended."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

import pytest

from isotone.errors import ConnectionFailed, UsageError
from isotone.tables.jobs import Job
from isotone.tables.pace import Stopped
from isotone.tables.progress import Progress

HALF = Progress("copy", "Orders", 5, of_items=10, read_units=2.0, write_units=3.0)


@dataclass
class Result:
    is_complete: bool


def wait_until_over(job: Job[object]) -> Job[object]:
    until = time.monotonic() + 10
    while job.is_running and time.monotonic() < until:
        time.sleep(0.001)
    return job


def refuse(error: BaseException) -> None:
    raise error


def test_a_job_runs_here_and_has_its_result() -> None:
    job: Job[str] = Job()
    seen: list[Progress] = []
    job.watch(seen.append)
    job.watch(lambda _: seen.append(HALF) if job.is_running else None)

    def work(name: str, *, end: str) -> str:
        job.report(HALF)
        return name + end

    assert job.state == "waiting"
    assert job.run(work, "orders", end=".csv") == "orders.csv"
    assert (job.state, job.result, job.error, job.progress) == ("done", "orders.csv", "", HALF)
    assert seen == [HALF, HALF]


def test_its_status_is_json() -> None:
    job: Job[None] = Job()
    empty = {"items": 0, "of_items": 0, "share": 0.0, "seconds_left": None, "units": 0.0}
    assert job.status() == {"state": "waiting", "fault": "", **empty}
    job.run(job.report, HALF)
    half = {"items": 5, "of_items": 10, "share": 0.5, "seconds_left": None, "units": 5.0}
    assert job.status() == {"state": "done", "fault": "", **half}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (UsageError("there is no table Orders"), "there is no table Orders"),
        (FileNotFoundError(2, "No such file or directory", "a.csv"), "a.csv: No such file or directory"),
        (OSError("no space left"), "no space left"),
        (KeyError("id"), "KeyError: 'id'"),
    ],
)  # fmt: skip
def test_a_failure_is_raised_here_and_is_a_sentence_for_watchers(
    error: Exception, sentence: str
) -> None:
    job: Job[None] = Job()
    with pytest.raises(type(error)):
        job.run(refuse, error)
    assert (job.state, job.error, job.result) == ("failed", sentence, None)


def test_its_sentence_has_the_notes_of_the_error() -> None:
    job: Job[None] = Job()
    error = UsageError("no key")
    error.add_note("table Orders could not be created")
    with pytest.raises(UsageError):
        job.run(refuse, error)
    assert job.error == "no key; table Orders could not be created"


@pytest.mark.parametrize(
    ("is_complete", "is_stopped", "state"),
    [
        (False, True, "stopped"),
        (True, True, "done"),  # the stop came too late
        (False, False, "done"),  # such as a copy that was only planned
    ],
)
def test_a_stop_counts_if_the_result_is_not_complete(
    is_complete: bool, is_stopped: bool, state: str
) -> None:
    job: Job[Result] = Job()
    if is_stopped:
        job.stop.set()
    job.run(Result, is_complete)
    assert job.state == state


def test_work_that_raises_stopped_is_stopped() -> None:
    job: Job[None] = Job()
    with pytest.raises(Stopped):
        job.run(refuse, Stopped())
    assert (job.state, job.error) == ("stopped", "")


def test_several_jobs_run_at_once_and_one_is_stopped() -> None:
    jobs: list[Job[object]] = [Job() for _ in range(3)]
    together = threading.Barrier(len(jobs) + 1, timeout=10)
    go_on = threading.Event()

    def work(job: Job[object]) -> None:
        together.wait()
        while not go_on.is_set():
            if job.stop.wait(0.001):
                raise Stopped

    for each in jobs:
        each.start(work, each)
    together.wait()
    jobs[1].stop.set()
    assert wait_until_over(jobs[1]).state == "stopped"
    assert [each.state for each in jobs] == ["running", "stopped", "running"]
    go_on.set()
    assert [wait_until_over(each).state for each in jobs] == ["done", "stopped", "done"]


def test_a_failure_in_a_thread_is_for_the_watchers_and_a_bug_for_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job: Job[object] = Job()
    job.start(refuse, ConnectionFailed("no answer"))
    assert (wait_until_over(job).state, job.error) == ("failed", "no answer")
    bug: Job[object] = Job()
    with caplog.at_level(logging.ERROR, "isotone.jobs"):
        bug.start(refuse, KeyError("id"))
        assert (wait_until_over(bug).state, bug.error) == ("failed", "KeyError: 'id'")
        until = time.monotonic() + 10
        while not caplog.records and time.monotonic() < until:
            time.sleep(0.001)
    (record,) = caplog.records
    assert record.getMessage() == "a job failed"
    assert record.exc_info is not None
