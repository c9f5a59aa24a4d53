"""How fast a job reads and writes: within a budget of capacity units, and more slowly when it is throttled.

    pace = Pace(units_per_second=200)
    response = pace.execute(backend, "Scan", request)     # waits, sends, counts its units; retries if throttled

A request's units are known, and counted, once it is answered; later requests wait for them. Several threads may share a
pace: together they stay within its budget. A throttled request lowers the rate at once by a third; it rises again by a
tenth a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from isotone.backends.interface import Backend, Request, Response
from isotone.backends.request_retries import is_retryable
from isotone.errors import ApiError, ConnectionFailed, IsotoneError, StorageBusy, UsageError
from isotone.tables.retries import PACED

STALL_TIMEOUT: Final = 300.0  # seconds without progress before a job gives up
_SLOWER: Final = 2 / 3
_FASTER: Final = 1.1  # each second
_WINDOW: Final = 5.0  # seconds over which the current rate is measured


class Stopped(IsotoneError):
    """The job ended early, because its `stop` was set."""

    def __init__(self) -> None:
        super().__init__("the job was stopped before its end")


class Pace:
    """Limits the capacity units per second of several threads; without a budget, only when the service throttles.

    `stop` ends every wait with `Stopped`.
    """

    def __init__(
        self,
        units_per_second: float | None = None,
        *,
        stop: threading.Event | None = None,
        stall_timeout: float = STALL_TIMEOUT,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if units_per_second is not None and not units_per_second > 0:
            raise UsageError(
                f"{units_per_second!r} units a second would move nothing; give a number above 0"
            )
        self.budget = units_per_second
        self.units: float = 0.0
        self._stop = stop or threading.Event()
        self._stall_timeout = stall_timeout
        self._now = now
        self._rate = units_per_second  # None: no limit
        self._lock = threading.Lock()
        self._free_at = now()  # when the units spent so far are within the budget
        self._recent_since = now()
        self._recent = 0.0
        self._raised_at = now()

    @property
    def rate(self) -> float | None:
        """The units per second that are allowed now; None if there is no limit."""
        return self._rate

    def execute(self, backend: Backend, operation: str, request: Request) -> Response:
        """Send a request within the budget; retries while the service throttles or does not answer.

        Raises the last error after `stall_timeout` seconds of failures, and `Stopped`.
        """
        return self.send(lambda: backend.execute(operation, request))

    def send(
        self,
        send: Callable[[], Response],
        cost: Callable[[Response], float] = lambda response: units_of(response) or 0.0,
    ) -> Response:
        """`execute` for any function that sends a request; `cost` returns the units of its response."""
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
                elif self._now() - failing_since > self._stall_timeout:
                    raise
                self.throttled(attempt)
            else:
                self.spend(cost(response))
                return response

    def wait(self) -> None:
        """Wait until the budget allows another request."""
        seconds = self.seconds_owed()
        if seconds > 0:
            self._sleep(seconds)
        elif self._stop.is_set():
            raise Stopped

    def seconds_owed(self) -> float:
        """How long to wait until the budget allows another request; 0 or less if it does now."""
        with self._lock:
            return 0.0 if self._rate is None else self._free_at - self._now()

    def spend(self, units: float) -> None:
        """Count the units of a response; later requests wait for them."""
        with self._lock:
            now = self._now()
            self.units += units
            self._measure(units, now)
            self._recover(now)
            if self._rate is not None:
                self._free_at = max(self._free_at, now - 1.0) + units / self._rate

    def throttled(self, attempt: int) -> None:
        """Slow down and pause, because the service refused all or part of a request; `attempt` counts from 1."""
        with self._lock:
            now = self._now()
            seconds = max(now - self._recent_since, 0.1)
            measured = self._recent / seconds
            present = measured if self._rate is None else min(self._rate, measured or self._rate)
            self._rate = max(present * _SLOWER, 1.0)
            self._raised_at = now
        self._sleep(PACED.pause(attempt).seconds)

    def affordable(self, units_each: float, most: int, shared_by: int = 1) -> int:
        """How many items of `units_each` a request may have to cost at most one second of the budget."""
        if self.budget is None or units_each <= 0:
            return most
        return max(1, int(min(most, self.budget / shared_by / units_each)))

    def _measure(self, units: float, now: float) -> None:
        if now - self._recent_since > _WINDOW:
            self._recent /= 2
            self._recent_since = now - _WINDOW / 2
        self._recent += units

    def _recover(self, now: float) -> None:
        """Raise a lowered rate again, up to the budget; without one, until it no longer limits anything."""
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
