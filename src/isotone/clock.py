"""The time of day, for expiry, tokens and timestamps: `SystemClock`, and `ManualClock` for tests.

All of Isotone reads the time here (except to measure its own work), so a test that passes a `ManualClock` controls the
time everywhere. A clock may be set back or forward. Code that must not notice this, such as a lease, measures time by
`monotonic_of(clock)`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Protocol


class Clock(Protocol):
    """Seconds since the Unix epoch. A clock may also have `monotonic()`, as `time.monotonic` is; see `monotonic_of`."""

    def now(self) -> float: ...


def monotonic_of(clock: Clock) -> Callable[[], float]:
    """Seconds that ignore changes of the clock: its own `monotonic`, or the machine's if it has none."""
    found: Callable[[], float] = getattr(clock, "monotonic", time.monotonic)
    return found


def milliseconds(clock: Clock) -> int:
    """The whole milliseconds since the Unix epoch.

    >>> milliseconds(ManualClock(1_700_000_000.5))
    1700000000500
    """
    return int(clock.now() * 1000)


class SystemClock:
    """The time of the machine.

    >>> isotone.SystemClock().now() > 1_700_000_000
    True
    """

    __slots__ = ()

    now: ClassVar[staticmethod[[], float]] = staticmethod(time.time)
    monotonic: ClassVar[staticmethod[[], float]] = staticmethod(time.monotonic)


class ManualClock:
    """A clock that moves only when a test moves it. `advance` lets time pass; `set` only changes what the clock shows.

    >>> clock = ManualClock(1_700_000_000)
    >>> clock.advance(timedelta(hours=1))
    >>> clock.now()
    1700003600.0
    >>> clock.utc
    datetime.datetime(2023, 11, 14, 23, 13, 20, tzinfo=datetime.timezone.utc)
    """

    __slots__ = ("_now", "_passed")

    def __init__(self, now: float | datetime = 1_700_000_000.0) -> None:
        self._now = self._passed = 0.0
        self.set(now)

    def now(self) -> float:
        """The seconds since the Unix epoch that were set."""
        return self._now

    def monotonic(self) -> float:
        """The seconds that `advance` has added so far."""
        return self._passed

    @property
    def utc(self) -> datetime:
        """The same instant as a datetime in UTC."""
        return datetime.fromtimestamp(self._now, UTC)

    def set(self, now: float | datetime) -> None:
        """Jump to an instant. A naive datetime is refused, because it does not identify one."""
        if isinstance(now, datetime):
            if now.tzinfo is None:
                raise ValueError("ManualClock needs a datetime with a time zone, not a naive one")
            now = now.timestamp()
        self._now = float(now)

    def advance(self, by: float | timedelta) -> None:
        """Move forward by seconds or by a timedelta. A negative step is refused."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else float(by)
        if seconds < 0:
            raise ValueError("ManualClock.advance moves forwards; use set() to go back")
        self._now += seconds
        self._passed += seconds
