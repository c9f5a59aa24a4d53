"""Retries of an operation: how often it is repeated, after which pauses, until which deadline (`DeadlineExceeded`).

Every loop that repeats an attempt takes one of five policies:

    CONTENTION        one write or transaction that met another one
    READ_THEN_WRITE   a read, and a write that depends on it
    STALE_READS       the same, based on cached reads
    THROTTLING        batches that the service processed no part of
    PACED             the same, in a job that waits for throughput

Loops may be nested: `RetryPolicy.run` counts the retries that an attempt makes inside as its own. So the outermost
loop bounds how often anything is repeated, and counts of attempts are never multiplied.

One deadline runs through all retries of an operation. It begins with the first pause of a series of failed
attempts; the backend gets it with each request, so that its own retries (`backends/request_retries`) share it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from isotone.backends.interface import Response
from isotone.backends.request_retries import full_jitter
from isotone.errors import Contended, DeadlineExceeded, TransactionConflictException
from isotone.tables.steps import Call, Pause, Steps

R = TypeVar("R")


class RetryNeeded(Exception):
    """Raised by an attempt that must be repeated."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try, and how long to pause in between: first up to `first` seconds, then doubled up to `longest`.

    After each of the first `at_once` failures, `run` repeats the attempt without a pause.
    """

    attempts: int
    first: float
    longest: float
    at_once: int = 0

    def pause(self, attempt: int) -> Pause:
        """The pause after failed attempt 1, 2, …"""
        return Pause(full_jitter(attempt, first=self.first, longest=self.longest), attempt)

    def run(
        self,
        attempt: Callable[[], Steps[R]],
        gave_up: Callable[[int], Exception],
        *,
        lost: type[Exception] | tuple[type[Exception], ...] = RetryNeeded,
        note: Callable[[Exception], object] | None = None,
    ) -> Steps[R]:
        """Repeat an attempt while it raises `lost`. Pauses inside the attempt count as failed attempts here.

        `note` is called with each such error. After the last attempt, raises `gave_up(number of attempts)`.
        """
        failed = pauses = 0
        error: Exception | None = None
        while True:
            steps = attempt()
            try:
                step = next(steps)
                while True:
                    if step.__class__ is Pause and step.attempt:
                        failed += 1
                        if failed >= self.attempts:
                            steps.close()
                            break
                        pauses += 1
                        step = Pause(step.seconds, pauses)
                    try:
                        response = yield step
                    except BaseException as raised:  # noqa: BLE001 - whatever it is, it is the attempt's
                        step = steps.throw(raised)
                    else:
                        step = steps.send(response)
            except StopIteration as end:
                result: R = end.value
                return result
            except lost as raised:
                error = raised
                failed += 1
                if note is not None:
                    note(raised)
            if failed >= self.attempts:
                raise gave_up(self.attempts) from error
            if failed > self.at_once:
                pauses += 1
                yield Pause(self.pause(failed - self.at_once).seconds, pauses)


CONTENTION: Final = RetryPolicy(attempts=12, first=0.005, longest=0.5)
"""For a write or a transaction that lost a race."""
READ_THEN_WRITE: Final = RetryPolicy(attempts=200, first=0.005, longest=0.08)
"""For a read and a write that depends on it. Many short pauses: with long ones, newer callers would always win."""
STALE_READS: Final = RetryPolicy(attempts=100, first=0.005, longest=0.5, at_once=3)
"""For attempts that rely on cached reads: after a failure, they read again, which usually suffices."""
THROTTLING: Final = RetryPolicy(attempts=10, first=0.1, longest=10.0)
"""For batches that the service processed no part of."""
PACED: Final = RetryPolicy(attempts=60, first=0.05, longest=10.0)
"""For requests of a job, whose pace also slows down when it is throttled (`tables/pace`)."""


def write_when_free(call: Call) -> Steps[Response]:
    """Send a write of one item, again while a transaction holds that item."""

    def attempt() -> Steps[Response]:
        return (yield call)

    return CONTENTION.run(
        attempt,
        lambda attempts: Contended(
            f"transactions held the item of {call.operation} during each of {attempts} attempts; "
            "try again later"
        ),
        lost=TransactionConflictException,
    )


def poll_pauses() -> Iterator[Pause]:
    """Pauses between checks whether something is ready: from 0.05 s, doubled, up to 5 s."""
    seconds = 0.05
    while True:
        yield Pause(seconds)
        seconds = min(seconds * 2, 5.0)


class Deadline:
    """A time limit for each series of failed attempts of one operation; it starts at the first retry."""

    __slots__ = ("_seconds", "_until")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None

    def until(self) -> float | None:
        """When the backend's own retries of a request must end; None if there is no limit, or if it is over.

        An operation that still runs after the limit has made progress, or `passed_by` would have ended it.
        """
        if self._until is None or time.monotonic() > self._until:
            return None
        return self._until

    def passed_by(self, pause: Pause) -> DeadlineExceeded | None:
        """The error to raise if a retry after the pause would start too late; None otherwise."""
        if pause.attempt == 0:
            return None
        now = time.monotonic()
        if pause.attempt == 1 or self._until is None:
            self._until = now + self._seconds
        if now + pause.seconds <= self._until:
            return None
        return DeadlineExceeded(
            f"gave up after {pause.attempt} attempts: {self._seconds:g} seconds for retries are used up; "
            "try again later, or connect with a longer deadline="
        )
