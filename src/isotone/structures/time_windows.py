"""Windows of time: quarters of an hour, hours, business days, weeks, months, and other regular spans.

A business day starts at a time of day in a zone, for example at 4 am in New York, and ends when the next one starts; so
it has 23 or 25 hours when the clocks change. Windows shorter than a day are counted from its start by elapsed time, not
by the wall clock. So none is missing or repeated, and the last one ends with the day. Windows of whole days start on a
Monday, counted from the first one of the calendar.

    2022-08-13#2     the third quarter of an hour (they count from 0) of the day 2022-08-13, which is the
                     calendar day unless `day_starts` sets another start
    2022-08-13#14    its fifteenth hour
    2022-08-13       the day; of several days, the first
    2022-W32         the week that begins on its Monday
    2022-08          the month
    ALL              all time
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final, Literal

from isotone.errors import UsageError

Every = timedelta | Literal["quarter-hour", "hour", "day", "week", "month", "all time"]
"""The length of windows: any length below a day, or any number of whole days."""

_NAMED: Final = {
    "quarter-hour": timedelta(minutes=15),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": timedelta(days=31),
    "all time": None,
}
_SAME: Final = {_NAMED[name]: name for name in ("quarter-hour", "hour", "day")}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = timedelta(days=1)
_INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Window:
    """A labelled span of time from `start` (included) to `end` (not included), in UTC."""

    label: str
    start: datetime
    end: datetime


ALL_TIME: Final = Window("ALL", datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def instant(moment: datetime) -> datetime:
    """The same time; raises `UsageError` if it has no time zone."""
    if not isinstance(moment, datetime):
        raise UsageError(f"{moment!r} is not a datetime; write datetime(…, tzinfo=UTC)")
    if moment.tzinfo is None:
        raise UsageError(f"{moment} is naive; give it a time zone: datetime(…, tzinfo=UTC)")
    return moment


def written(length: object) -> str:
    """A duration as source code: `timedelta(days=1)`."""
    return repr(length).removeprefix("datetime.")


def floor(moment: datetime, length: timedelta) -> datetime:
    """The start of the span that contains a time; spans are counted from 1970, in UTC."""
    return _EPOCH + (instant(moment) - _EPOCH) // length * length


def _named(every: Every, day_starts: time, zone: tzinfo) -> str:
    """A description of the windows: length, start of the day, and zone, if it has a name."""
    words: str = every if isinstance(every, str) else _SAME.get(every, str(every))
    if words == "all time":
        return words
    if day_starts != time(0):
        words += f" from {day_starts}"
    where = str(zone) if isinstance(zone, timezone) else getattr(zone, "key", None)
    return words if where in (None, "UTC") else f"{words} in {where}"


class Windows:
    """The windows of one length; finds the window that contains a time.

    >>> from zoneinfo import ZoneInfo
    >>> quarters = Windows("quarter-hour", day_starts=time(4), zone=ZoneInfo("America/New_York"))
    >>> quarters.at(datetime(2022, 8, 13, 8, 31, tzinfo=UTC)).label   # 4:31 in New York
    '2022-08-13#2'
    """

    def __init__(
        self, every: Every = "all time", *, day_starts: time = time(0), zone: tzinfo = UTC
    ) -> None:
        length = _NAMED.get(every) if isinstance(every, str) else every
        if not isinstance(length, timedelta) and every != "all time":
            raise UsageError(
                f"{every!r} is not a window; use one of {', '.join(_NAMED)}, or a timedelta"
            )
        if length is not None and (length <= timedelta(0) or (length > _DAY and length % _DAY)):
            raise UsageError(
                f"a window of {length} is not a whole number of days; give whole days, or any length below a day"
            )
        if not isinstance(zone, tzinfo):
            raise UsageError(f"zone={zone!r} is not a time zone; give ZoneInfo('America/New_York')")
        if not isinstance(day_starts, time):
            raise UsageError(f"day_starts={day_starts!r} is not a time of day; give time(4)")
        if day_starts.tzinfo is not None:
            raise UsageError("day_starts must not have a zone; give it as zone=")
        self.every = every
        self.name: str = _named(every, day_starts, zone)
        self.length: timedelta | None = length
        self.day_starts = day_starts
        self.zone = zone

    def at(self, moment: datetime) -> Window:
        """The window that contains a time; raises `UsageError` for a naive datetime."""
        instant(moment)
        if self.length is None:
            return ALL_TIME
        day = self.business_date(moment)
        return self._of_days(day) if self.length >= _DAY else self._within(day, moment)

    def before(self, window: Window) -> Window | None:
        """The window before a window; None for all time."""
        return None if window is ALL_TIME else self.at(window.start - _INSTANT)

    def last(self, number: int, moment: datetime) -> list[Window]:
        """The window that contains a time, then those before it: `number` windows."""
        windows = [self.at(moment)]
        while len(windows) < number and (earlier := self.before(windows[-1])) is not None:
            windows.append(earlier)
        return windows

    def business_date(self, moment: datetime) -> date:
        """The date of the business day that contains a time."""
        day = instant(moment).astimezone(self.zone).date()
        while self._begin(day) > moment:
            # Twice where a zone has skipped the day before, as Samoa did in 2011.
            day -= _DAY
        return day

    def day(self, day: date) -> Window:
        """The business day of a date."""
        return Window(day.isoformat(), self._begin(day), self._begin(day + _DAY))

    def _begin(self, day: date) -> datetime:
        # In UTC, because Python compares and subtracts times of one zone by the wall clock.
        return datetime.combine(day, self.day_starts, tzinfo=self.zone).astimezone(UTC)

    def _of_days(self, day: date) -> Window:
        assert self.length is not None
        days = self.length.days
        first = date.fromordinal(day.toordinal() - (day.toordinal() - 1) % days)
        after, label = first + self.length, first.isoformat()
        if self.every == "week":
            year, week, _ = first.isocalendar()
            label = f"{year}-W{week:02}"
        elif self.every == "month":
            first = day.replace(day=1)
            after, label = (first + self.length).replace(day=1), f"{first:%Y-%m}"
        return Window(label, self._begin(first), self._begin(after))

    def _within(self, day: date, moment: datetime) -> Window:
        assert self.length is not None
        begin, end = self._begin(day), self._begin(day + _DAY)
        number = (moment.astimezone(UTC) - begin) // self.length
        start = begin + number * self.length
        return Window(f"{day}#{number}", start, min(start + self.length, end))
