"""How often and how fast structures retry after a conflict with another writer, poll for one, and wait.

Three policies cover all of them: `CONFLICTS` for a read and conditional writes that depend on it
(`retry_on_conflict`, if it is one), `CONTENTION` of the model for attempts at a ranking that another writer overtook,
and `poll_intervals` between checks for other processes' work.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from isotone.clock import Clock
from isotone.errors import Contended, WriteRefused
from isotone.model import Backoff, Pause, Steps

R = TypeVar("R")

CONFLICTS: Final = Backoff(attempts=200, first=0.005, longest=0.08)
"""Many attempts with short pauses: after long ones, newcomers would always win."""
_SHORTEST_POLL: Final = 0.001  # seconds: a loop of looks must not keep the database busy
_FIRST_POLL: Final = 0.05


def wait(seconds: float) -> Steps[None]:
    """Pause for some seconds, whatever the operation's deadline: waiting is not retrying."""
    yield Pause(seconds)


def retry_on_conflict(attempt: Callable[[], Steps[R]], what: str, advice: str) -> Steps[R]:
    """Optimistic read-modify-write: run `attempt` again while its write is refused.

    Raises `Contended` after too many attempts.
    """
    for number in range(1, CONFLICTS.attempts + 1):
        try:
            return (yield from attempt())
        except WriteRefused:
            if number < CONFLICTS.attempts:
                yield CONFLICTS.pause(number)
    raise Contended(f"others wrote {what} during each of {CONFLICTS.attempts} attempts; {advice}")


def poll_intervals(longest: float) -> Iterator[float]:
    """Seconds between checks: doubled with each, with jitter, up to the longest."""
    longest = max(longest, _SHORTEST_POLL)
    interval = min(_FIRST_POLL, longest)
    while True:
        yield random.uniform(interval / 2, interval)
        interval = min(interval * 2, longest)


def poll(
    look: Callable[[], Steps[R]],
    is_final: Callable[[R], bool],
    *,
    timeout: float,
    longest: float,
    clock: Clock,
) -> Steps[R]:
    """Check until a result is final or the timeout is over; returns the last result.

    `longest` bounds the pause between two looks. Time counts by the clock and by the pauses, whichever is
    more.
    """
    began, paused = clock.now(), 0.0
    for interval in poll_intervals(longest):
        result = yield from look()
        left = timeout - max(paused, clock.now() - began)
        if is_final(result) or left <= 0:
            return result
        yield from wait(min(left, interval))
        paused += interval
    raise AssertionError("intervals never end")
