"""The waits of structures: retries after a conflict with another writer, polling for a result, pauses."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from isotone.clock import Clock
from isotone.errors import Contended, WriteRefused
from isotone.model import Pause, Steps
from isotone.tables.retries import READ_THEN_WRITE

R = TypeVar("R")

_SHORTEST_POLL: Final = 0.001  # seconds: shorter pauses would keep the database busy
_FIRST_POLL: Final = 0.05


def wait(seconds: float) -> Steps[None]:
    """Pause for some seconds, whatever the operation's deadline: waiting is not retrying."""
    yield Pause(seconds)


def retry_on_conflict(attempt: Callable[[], Steps[R]], what: str, advice: str) -> Steps[R]:
    """Optimistic read-modify-write: repeats `attempt` while its write is refused.

    Raises `Contended` after too many attempts.
    """
    return READ_THEN_WRITE.run(
        attempt,
        lambda attempts: Contended(
            f"others wrote {what} during each of {attempts} attempts; {advice}"
        ),
        lost=WriteRefused,
    )


def poll_intervals(longest: float) -> Iterator[float]:
    """Seconds between checks: doubled each time, with jitter, up to `longest`."""
    longest = max(longest, _SHORTEST_POLL)
    interval = min(_FIRST_POLL, longest)
    while True:
        yield random.uniform(interval / 2, interval)
        interval = min(interval * 2, longest)


def poll(
    check: Callable[[], Steps[R]],
    is_final: Callable[[R], bool],
    *,
    timeout: float,
    longest: float,
    clock: Clock,
) -> Steps[R]:
    """Check until a result is final or the timeout is over; returns the last result.

    `longest` limits the pause between two checks. Time is measured by the clock or by the sum of the pauses, whichever
    is more.
    """
    began, paused = clock.now(), 0.0
    for interval in poll_intervals(longest):
        result = yield from check()
        left = timeout - max(paused, clock.now() - began)
        if is_final(result) or left <= 0:
            return result
        yield from wait(min(left, interval))
        paused += interval
    raise AssertionError("intervals never end")
