"""Days, times of day, and lengths of time.

Day()          2020-01-11           .descending()   7979-98-88
TimeOfDay()    16:20:00.000000      .descending()   83:79:99.999999
Span()         a timedelta in microseconds, as `Integer` writes it: 0, then 20 digits
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, ClassVar, Final

from isotone.codec.readable.digits import complement, malformed
from isotone.codec.readable.integer import Integer
from isotone.codec.readable.interface import Directed
from isotone.errors import MalformedKey, UsageError

_DAY: Final = timedelta(days=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_MIDNIGHT: Final = datetime(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class Day(Directed):
    """A date in ISO 8601.

    >>> Day().encode(date(2020, 1, 11)), Day().descending().encode(date(2020, 1, 11))
    ('2020-01-11', '7979-98-88')
    """

    width: ClassVar[int] = 10

    def encode(self, value: date) -> str:
        text = day_of(value).isoformat()
        return text if self.ascending else complement(text)

    def decode(self, text: str) -> date:
        try:
            day = date.fromisoformat(text if self.ascending else complement(text))
            if self.encode(day) == text:
                return day
        except ValueError:
            pass
        raise malformed(text, f"a day, such as {self.encode(date(1970, 1, 1))}")

    def before(self, value: date) -> date | None:
        return value - _DAY if value > date.min else None

    def after(self, value: date) -> date | None:
        return value + _DAY if value < date.max else None

    def specimens(self) -> tuple[str, ...]:
        return tuple(map(self.encode, (date.min, date(1970, 1, 1), date.max)))


@dataclass(frozen=True, slots=True)
class TimeOfDay(Directed):
    """A time without a date or a zone, in microseconds.

    >>> TimeOfDay().encode(time(16, 20))
    '16:20:00.000000'
    """

    width: ClassVar[int] = 15

    def encode(self, value: time) -> str:
        text = _time(value).isoformat(timespec="microseconds")
        return text if self.ascending else complement(text)

    def decode(self, text: str) -> time:
        try:
            moment = time.fromisoformat(text if self.ascending else complement(text))
            if self.encode(moment) == text:
                return moment
        except ValueError:
            pass
        raise malformed(text, f"a time of day, such as {self.encode(time(16, 20))}")

    def before(self, value: time) -> time | None:
        return _moved(value, -_MICROSECOND) if value > time.min else None

    def after(self, value: time) -> time | None:
        return _moved(value, _MICROSECOND) if value < time.max else None

    def specimens(self) -> tuple[str, ...]:
        return tuple(map(self.encode, (time.min, time(12), time.max)))


_MICROSECONDS: Final = Integer(timedelta.min // _MICROSECOND, timedelta.max // _MICROSECOND)
_DESCENDING: Final = _MICROSECONDS.descending()


@dataclass(frozen=True, slots=True)
class Span(Directed):
    """A timedelta of either sign.

    >>> Span().encode(timedelta(hours=1))
    '000000000003600000000'
    """

    width: ClassVar[int] = _MICROSECONDS.width

    def encode(self, value: timedelta) -> str:
        if not isinstance(value, timedelta):
            raise _wrong(value, "timedelta")
        return self._number.encode(value // _MICROSECOND)

    def decode(self, text: str) -> timedelta:
        try:
            return self._number.decode(text) * _MICROSECOND
        except MalformedKey:
            raise malformed(text, "a timedelta: a sign and 20 digits of microseconds") from None

    @property
    def _number(self) -> Integer:
        return _MICROSECONDS if self.ascending else _DESCENDING

    def before(self, value: timedelta) -> timedelta | None:
        return value - _MICROSECOND if value > timedelta.min else None

    def after(self, value: timedelta) -> timedelta | None:
        return value + _MICROSECOND if value < timedelta.max else None

    def specimens(self) -> tuple[str, ...]:
        return self._number.specimens()


def day_of(value: Any) -> date:
    """A date that is no datetime. Raises `UsageError` for anything else."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise _wrong(value, "date")


def _time(value: Any) -> time:
    if not isinstance(value, time):
        raise _wrong(value, "time")
    if value.tzinfo is not None:
        raise UsageError(
            f"{value!r} has a time zone, and without a date there is no instant that it could be "
            "ordered by: give a time without one, or declare a datetime"
        )
    return value


def _moved(value: time, by: timedelta) -> time:
    return (datetime.combine(_MIDNIGHT, value) + by).time()


def _wrong(value: Any, expected: str) -> UsageError:
    return UsageError(
        f"{value!r} is a {type(value).__name__}, and this component of a key holds {expected}"
    )
