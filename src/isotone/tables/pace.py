"""How fast a job reads and writes: within a budget of capacity units, and slower when the service throttles.

    pace = Pace(units_per_second=200)
    response = pace.execute(backend, "Scan", request)     # waits, sends, counts its units; retries if throttled

Requests are paid for after they were answered, when their units are known. Several threads may share a pace: together
they stay within its budget. A throttled request lowers the rate at once by a third; it rises again by a tenth a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from isotone.backends.interface import Backend, Request, Response
from isotone.backends.request_retries import is_retryable
from isotone.errors import ApiError, ConnectionFailed, IsotoneError, StorageBusy, UsageError
from isotone.tables.retries import SLOWED

PATIENCE: Final = 300.0  # seconds without any progress after which a job gives up
_SLOWER: Final = 2 / 3
_FASTER: Final = 1.1  # each second
_WINDOW: Final = 5.0  # seconds over which the present rate is measured


class Stopped(IsotoneError):
    """The job ended early, because its `stop` was set."""

    def __init__(self) -> None:
        super().__init__("the job was stopped before its end")


class Pace:
    """A rate of capacity units a second that several threads share; without a budget, as fast as the service allows.

    `stop` ends every wait with `Stopped`.
    """

    def __init__(
        self,
        units_per_second: float | None = None,
        *,
        stop: threading.Event | None = None,
        patience: float = PATIENCE,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if units_per_second is not None and not units_per_second > 0:
            raise UsageError(
                f"{units_per_second!r} units a second would move nothing; give a number above 0"
            )
        self.budget = units_per_second
        self.units = 0.0
        self._stop = stop or threading.Event()
        self._patience = patience
        self._now = now
        self._rate = units_per_second  # None: not bounded
        self._lock = threading.Lock()
        self._free_at = now()  # when all units so far are paid for
        self._recent_since = now()
        self._recent = 0.0
        self._raised_at = now()

    @property
    def rate(self) -> float | None:
        """The units a second that are allowed now; None if there is no bound."""
        return self._rate

    def execute(self, backend: Backend, operation: str, request: Request) -> Response:
        """Send a request within the budget, again while the service throttles or does not answer.

        Raises the last error after `patience` seconds of failures, and `Stopped`.
        """
        return self.send(lambda: backend.execute(operation, request))

    def send(
        self,
        send: Callable[[], Response],
        cost: Callable[[Response], float] = lambda response: units_of(response) or 0.0,
    ) -> Response:
        """`execute` for any function that sends a request and returns the response, and one that knows its units."""
        attempt, failing_since = 0, 0.0
        while True:
            self.wait()
            try:
                response = send()
            except (ApiError, ConnectionFailed, StorageBusy) as error:
                if not (is_retryable(error) or isinstance(error, StorageBusy)):
                    raise
                attempt += 1
                if attempt == 1:
                    failing_since = self._now()
                elif self._now() - failing_since > self._patience:
                    raise
                self.throttled(attempt)
            else:
                self.spend(cost(response))
                return response

    def wait(self) -> None:
        """Wait until the units that were spent are paid for."""
        seconds = self.seconds_owed()
        if seconds > 0:
            self._sleep(seconds)
        elif self._stop.is_set():
            raise Stopped

    def seconds_owed(self) -> float:
        """How long to wait until the units that were spent are paid for; 0 or less if they are."""
        with self._lock:
            return 0.0 if self._rate is None else self._free_at - self._now()

    def spend(self, units: float) -> None:
        """Count units that a response has cost; later requests wait for them."""
        with self._lock:
            now = self._now()
            self.units += units
            self._measure(units, now)
            self._recover(now)
            if self._rate is not None:
                self._free_at = max(self._free_at, now - 1.0) + units / self._rate

    def throttled(self, attempt: int) -> None:
        """Slow down, because the service refused some or all of attempt 1, 2, …; and pause."""
        with self._lock:
            now = self._now()
            seconds = max(now - self._recent_since, 0.1)
            measured = self._recent / seconds
            present = measured if self._rate is None else min(self._rate, measured or self._rate)
            self._rate = max(present * _SLOWER, 1.0)
            self._raised_at = now
        self._sleep(SLOWED.pause(attempt).seconds)

    def affordable(self, units_each: float, most: int, shared_by: int = 1) -> int:
        """How many items of `units_each` a request may have, so that it costs at most a second of the budget."""
        if self.budget is None or units_each <= 0:
            return most
        return max(1, min(most, int(self.budget / shared_by / units_each)))

    def _measure(self, units: float, now: float) -> None:
        if now - self._recent_since > _WINDOW:
            self._recent /= 2
            self._recent_since = now - _WINDOW / 2
        self._recent += units

    def _recover(self, now: float) -> None:
        """Raise a rate that was lowered, up to the budget, or until it bounds nothing any more."""
        if self._rate is None or self._rate == self.budget or now - self._raised_at < 1.0:
            return
        rate = self._rate * _FASTER ** min(now - self._raised_at, 10.0)
        self._raised_at = now
        if self.budget is not None:
            self._rate = min(rate, self.budget)
        else:
            measured = self._recent / max(now - self._recent_since, 0.1)
            self._rate = None if rate > 10 * max(measured, 1.0) else rate

    def _sleep(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Stopped


def units_of(response: Mapping[str, Any]) -> float | None:
    """The capacity units that a response reports; None if it reports none."""
    consumed = response.get("ConsumedCapacity")
    if not consumed:
        return None
    entries = [consumed] if isinstance(consumed, dict) else consumed
    return sum(float(each.get("CapacityUnits") or 0.0) for each in entries)
