"""Windows of time: quarters of an hour, hours, business days, weeks, and whatever else returns.

A business day begins at a time of day in a zone, say at 4 am in New York, and ends where the next one
begins; so it has 23 or 25 hours where the clock is changed in it. Windows shorter than a day are counted
from its beginning, by the time that passes and not by what clocks show: none is missing, none comes twice,
and the last one is cut off where the day ends. Windows of whole days begin on a Monday, counted from the
first one of the calendar.

    2022-08-13#2     the third quarter of an hour (they count from 0) of the day 2022-08-13, which is that of
                     the calendar unless `day_starts` gives it another beginning
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
"""How often a window begins: any length below a day, or any number of whole days."""

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
    """A span of time by its label: from `start` on, and before `end`, in UTC."""

    label: str
    start: datetime
    end: datetime


ALL_TIME: Final = Window("ALL", datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def instant(moment: datetime) -> datetime:
    """The moment, which has a time zone; raises `UsageError` for one without."""
    if not isinstance(moment, datetime):
        raise UsageError(f"{moment!r} is no instant; give a datetime: datetime(…, tzinfo=UTC)")
    if moment.tzinfo is None:
        raise UsageError(
            f"{moment} is naive, so it names no instant; give it a time zone: datetime(…, tzinfo=UTC)"
        )
    return moment


def written(length: object) -> str:
    """A span of time as one writes it: `timedelta(days=1)`."""
    return repr(length).removeprefix("datetime.")


def floor(moment: datetime, length: timedelta) -> datetime:
    """The beginning of the span in which an instant lies: spans are counted from 1970, in UTC."""
    return _EPOCH + (instant(moment) - _EPOCH) // length * length


def _named(every: Every, day_starts: time, zone: tzinfo) -> str:
    """How often a window begins, when, and where, as far as the zone has a name."""
    words: str = every if isinstance(every, str) else _SAME.get(every, str(every))
    if words == "all time":
        return words
    if day_starts != time(0):
        words += f" from {day_starts}"
    where = str(zone) if isinstance(zone, timezone) else getattr(zone, "key", None)
    return words if where in (None, "UTC") else f"{words} in {where}"


class Windows:
    """Which window an instant lies in.

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
                f"{every!r} is no window; there are {', '.join(_NAMED)}, and timedelta"
            )
        if length is not None and (length <= timedelta(0) or (length > _DAY and length % _DAY)):
            raise UsageError(
                f"a window of {length} does not return with the day; give any length below a day, or "
                "whole days"
            )
        if not isinstance(zone, tzinfo):
            raise UsageError(f"zone={zone!r} is no time zone; give ZoneInfo('America/New_York')")
        if not isinstance(day_starts, time):
            raise UsageError(f"day_starts={day_starts!r} is no time of day; give time(4)")
        if day_starts.tzinfo is not None:
            raise UsageError("day_starts is a time without a zone; the zone is given by zone=")
        self.every = every
        self.name = _named(every, day_starts, zone)
        self.length = length
        self.day_starts = day_starts
        self.zone = zone

    def at(self, moment: datetime) -> Window:
        """The window in which an instant lies; raises `UsageError` for a naive datetime."""
        instant(moment)
        if self.length is None:
            return ALL_TIME
        day = self.business_date(moment)
        return self._of_days(day) if self.length >= _DAY else self._within(day, moment)

    def before(self, window: Window) -> Window | None:
        """The window that ends where this one begins; None before all time."""
        return None if window is ALL_TIME else self.at(window.start - _INSTANT)

    def last(self, number: int, moment: datetime) -> list[Window]:
        """So many windows, the one of the instant first, then those before it."""
        found = [self.at(moment)]
        while len(found) < number and (earlier := self.before(found[-1])) is not None:
            found.append(earlier)
        return found

    def business_date(self, moment: datetime) -> date:
        """The date of the business day in which an instant lies."""
        day = instant(moment).astimezone(self.zone).date()
        return day if self._begin(day) <= moment else day - _DAY

    def day(self, day: date) -> Window:
        """The business day of a date."""
        return Window(day.isoformat(), self._begin(day), self._begin(day + _DAY))

    def _begin(self, day: date) -> datetime:
        # In UTC, because Python compares and subtracts times of one zone by what its clocks show.
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
