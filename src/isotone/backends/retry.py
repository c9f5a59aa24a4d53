"""When a request that failed is sent again, and after how long.

The wait before attempt n is random between nothing and a bound that doubles each time ("full jitter"),
so that clients that were throttled together do not come back together.

A write whose answer was lost may have been done. Like AWS's SDKs, Isotone sends it again: a put or a
delete comes to the same, a transaction carries a token by which the service knows it. An update that
adds to a number may count twice; `Retries.none()` leaves that decision to the caller.
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
    StorageBusy,
    StorageFull,
)

_THROTTLED: Final = frozenset(
    (
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TransactionInProgressException",
    )
)


# What an operation may also wait out, though the request alone is not worth repeating at once.
_TRANSIENT: Final = (
    BatchIncomplete,
    Contended,
    DeadlineExceeded,
    LimitExceededException,  # by which streams throttle
    StorageBusy,
    StorageFull,
)


def is_retryable(error: Exception) -> bool:
    """Whether the same request may succeed a moment later: no answer, or too many requests."""
    if isinstance(error, ApiError):
        return error.code in _THROTTLED or error.status >= 500
    return isinstance(error, ConnectionFailed)


def is_transient(error: Exception) -> bool:
    """Whether the same call may succeed later: a retryable request, a full batch, a busy or full file."""
    return is_retryable(error) or isinstance(error, _TRANSIENT)


@dataclass(frozen=True, slots=True)
class Retries:
    """How failed requests are repeated.

    `attempts` counts all of them, the first included. The upper bound of the waits starts at `base`
    seconds, doubles, and stops at `longest`. All attempts of a request together take `within` seconds at
    most, or what the deadline of the store's call has left.

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
        """Every failure is the caller's to handle."""
        return cls(attempts=1)

    def delay(self, attempt: int, error: Exception, deadline: float | None = None) -> float | None:
        """Seconds to wait after the failure of attempt 1, 2, …; None where it is final.

        A wait that would end after the deadline, in seconds of `time.monotonic`, is final, too.
        """
        if attempt >= self.attempts or not is_retryable(error):
            return None
        delay = float(self.random() * min(self.longest, self.base * 2 ** (attempt - 1)))
        if deadline is not None and time.monotonic() + delay > deadline:
            return None
        return delay
