"""How structures wait, poll and retry. Every pause of a structure is yielded here.

Three policies cover all of them: `backoff` between failed attempts, `poll_intervals` between checks for
other processes' work, and `retry_on_conflict` for a read and a conditional write.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from isotone.clock import Clock
from isotone.errors import Contended, WriteRefused
from isotone.model import Pause, Steps

R = TypeVar("R")

ATTEMPTS: Final = 200
_STEEPEST: Final = 4  # attempts after which the bound stays, or newcomers would always win
_SHORTEST_POLL: Final = 0.001  # seconds: a loop of looks must not keep the database busy
_FIRST_POLL: Final = 0.05


def wait(seconds: float) -> Steps[None]:
    """Pause for some seconds, whatever the operation's deadline: waiting is not retrying."""
    yield Pause(seconds)


def jitter(attempt: int, *, first: float, longest: float) -> float:
    """Seconds to wait after failed attempt 0, 1, …: random, up to a bound that doubles ("full jitter").

    So clients that failed together do not come back together.
    """
    return random.uniform(0, min(longest, first * 2.0 ** min(attempt, 30)))


def backoff(attempt: int, *, steepest: int = 30) -> Steps[None]:
    """Pause after attempt 0, 1, … that another writer overtook; the operation's deadline ends it.

    `steepest` is the attempt from which on the pause grows no more.
    """
    seconds = jitter(min(attempt, steepest), first=0.005, longest=0.5)
    yield Pause(seconds, attempt + 1)


def retry_on_conflict(attempt: Callable[[], Steps[R]], what: str, advice: str) -> Steps[R]:
    """Optimistic read-modify-write: run `attempt` again while its write is refused.

    Raises `Contended` after too many attempts.
    """
    for number in range(ATTEMPTS):
        try:
            return (yield from attempt())
        except WriteRefused:
            if number < ATTEMPTS - 1:
                yield from backoff(number, steepest=_STEEPEST)
    raise Contended(f"others wrote {what} during each of {ATTEMPTS} attempts; {advice}")


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
