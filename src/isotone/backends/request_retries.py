"""Retries of a failed HTTP request (`Retries`): which errors are retried, the delays with jitter, and when to give up.

Nothing here sleeps. `remote` and `async_remote` ask `Attempts` for the delay after a failed request, and sleep.

All delays come from `full_jitter`, including the pauses of the model and the structures (`tables.retries`).

A write whose answer was lost may have been executed. Like AWS's SDKs, Isotone retries it: a repeated put or
delete has the same effect, and a transaction carries a token that prevents a second execution. An update
that adds to a number may count twice; with `Retries.none()` the caller decides.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from isotone.errors import (
    ApiError,
    BatchIncomplete,
    ConnectionFailed,
    Contended,
    DeadlineExceeded,
    LimitExceededException,
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    StorageBusy,
    StorageFull,
    ThrottlingException,
)

THROTTLES: Final = (
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    ThrottlingException,
)
"""The errors of a throttling table; after such an error, nothing of a batch was processed."""

_RETRYABLE: Final = frozenset(
    (
        *(error.__name__ for error in THROTTLES),
        "ReplicatedWriteConflictException",
        "ThrottledException",
        "Throttling",
        "TransactionInProgressException",
    )
)


_MOST_DOUBLINGS: Final = 30  # doubling a float forever would overflow


# Errors after which a call may succeed later, though the request is not retried at once.
_TRANSIENT: Final = (
    BatchIncomplete,
    Contended,
    DeadlineExceeded,
    LimitExceededException,  # the throttling error of streams
    StorageBusy,
    StorageFull,
)


def full_jitter(
    attempt: int,
    *,
    first: float,
    longest: float,
    random: Callable[[], float] = random.random,
) -> float:
    """Seconds to wait after attempt 1, 2, … failed: random, up to a bound that doubles from `first` to `longest`.

    So clients that failed together do not retry together.

    >>> [full_jitter(attempt, first=0.05, longest=0.3, random=lambda: 1.0) for attempt in (1, 2, 3, 4)]
    [0.05, 0.1, 0.2, 0.3]
    """
    return random() * min(longest, first * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS))


def is_retryable(error: Exception) -> bool:
    """Whether the same request may succeed a moment later: no answer, or too many requests."""
    if isinstance(error, ApiError):
        return error.code in _RETRYABLE or error.status >= 500
    return isinstance(error, ConnectionFailed)


def is_transient(error: Exception) -> bool:
    """Whether the same call may succeed later: a retryable request, a full batch, a busy or full file."""
    return is_retryable(error) or isinstance(error, _TRANSIENT)


@dataclass(frozen=True, slots=True)
class Retries:
    """How failed requests are retried.

    `attempts` includes the first. The bound of the delays starts at `base` seconds and doubles up to `longest`. All
    attempts of a request together take at most `within` seconds, and end by the deadline of the store's call.

    >>> Retries(attempts=3).delay(3, ConnectionFailed("no")) is None
    True
    """

    attempts: int = 10
    base: float = 0.05
    longest: float = 5.0
    within: float = 60.0
    random: Callable[[], float] = random.random

    @classmethod
    def none(cls) -> Retries:
        """No retries: every error is raised."""
        return cls(attempts=1)

    def delay(self, attempt: int, error: Exception, deadline: float | None = None) -> float | None:
        """Seconds to wait after attempt 1, 2, … failed; None if it should not be retried.

        Also None if the wait would end after the deadline, which is a time of `time.monotonic`.
        """
        if attempt >= self.attempts or not is_retryable(error):
            return None
        delay = self.wait(attempt)
        if deadline is not None and time.monotonic() + delay > deadline:
            return None
        return delay

    def wait(self, attempt: int) -> float:
        """Seconds to wait after attempt 1, 2, … failed, whatever the error."""
        return full_jitter(attempt, first=self.base, longest=self.longest, random=self.random)

    def begin(self, deadline: float | None = None) -> Attempts:
        """Start counting the attempts of a request; its time ends after `within`, and at `deadline` if there is one."""
        end = time.monotonic() + self.within
        return Attempts(self, end if deadline is None else min(end, deadline))


class Attempts:
    """Counts the failed attempts of one request, and marks the errors that follow a lost answer.

    >>> attempts = Retries(attempts=2, random=lambda: 1.0).begin()
    >>> lost = ConnectionFailed("the connection broke")
    >>> attempts.delay(lost), attempts.delay(lost)
    (0.05, None)
    """

    __slots__ = ("_deadline", "_failed", "_is_answer_lost", "_retries")

    def __init__(self, retries: Retries, deadline: float) -> None:
        self._retries = retries
        self._deadline = deadline
        self._failed = 0
        self._is_answer_lost = False

    @property
    def is_over(self) -> bool:
        """Whether the time of the request has ended."""
        return time.monotonic() > self._deadline

    def delay(self, error: Exception) -> float | None:
        """Seconds to wait before the next attempt; None if there is none, and the error must be raised."""
        self._failed += 1
        if isinstance(error, ApiError) and error.status < 500:
            error.follows_lost_answer = self._is_answer_lost
        elif getattr(error, "sent", True):
            self._is_answer_lost = True
        return self._retries.delay(self._failed, error, self._deadline)
