"""When a request that failed is sent again, and after how long.

The wait before attempt n is random between nothing and a bound that doubles each time ("full jitter"),
so that clients that were throttled together do not come back together.

A write whose answer was lost may have been done. Like AWS's SDKs, Isotone sends it again: a put or a
delete comes to the same, a transaction carries a token by which the service knows it. An update that
adds to a number may count twice; `Retries.none()` leaves that decision to the caller.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from isotone.errors import ApiError, ConnectionFailed

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


def is_throttled(error: Exception) -> bool:
    """Whether the service refused a request only because there were too many."""
    return isinstance(error, ApiError) and error.code in _THROTTLED


def is_passing(error: Exception) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, ApiError):
        return error.code in _THROTTLED or error.status >= 500
    return isinstance(error, ConnectionFailed)


@dataclass(frozen=True, slots=True)
class Retries:
    """How patiently failed requests are repeated.

    `attempts` counts all of them, the first included; the waits' bound starts at `base` seconds,
    doubles, and stops at `longest`.

    >>> Retries(attempts=3).delay(3, ConnectionFailed("no")) is None
    True
    """

    attempts: int = 10
    base: float = 0.05
    longest: float = 5.0
    random: Callable[[], float] = random.random

    @classmethod
    def none(cls) -> Retries:
        """Every failure is the caller's to handle."""
        return cls(attempts=1)

    def delay(self, attempt: int, error: Exception) -> float | None:
        """Seconds to wait after the failure of attempt 1, 2, …; None where it is final."""
        if attempt >= self.attempts or not is_passing(error):
            return None
        return float(self.random() * min(self.longest, self.base * 2 ** (attempt - 1)))
