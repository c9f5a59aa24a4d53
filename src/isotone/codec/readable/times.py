"""Days and times inside a key, in ISO 8601, as a count since the epoch, or in a declared pattern.

    Day()                        2020-01-11                   descending 7979-98-88
    TimeOfDay()                  16:20:00.000000              descending 83:79:99.999999
    Span()                       a timedelta in microseconds: 0, then 20 digits
    Instant()                    2020-01-11T00:00:00.000000Z  descending 7979-98-88T99:99:99.999999Z
    Instant("seconds")           2020-01-11T00:00:00Z
    EpochInstant("seconds")      001578700800
    EpochInstant("seconds", 10)  1578700800, up to the year 2286
    Written("%Y-%m-%d %H:%M:%S") 2020-01-11 00:00:00
    Written("%Y%m%d", day=True)  20200111

Instants have one width and one zone, UTC, so that texts sort as they do. A naive datetime is refused,
because it does not identify an instant. So is one that is finer than the declared precision, because the rest
would be lost. Descending, each digit is its difference from nine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar, Final, Literal

from isotone.codec.readable.digits import complement
from isotone.codec.readable.interface import Directed, malformed, wrong_type
from isotone.codec.readable.numbers import Integer, Natural, whole
from isotone.errors import MalformedKey, OutOfRange, UsageError

Precision = Literal["seconds", "milliseconds", "microseconds"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime.max.replace(tzinfo=UTC)
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_TICKS: Final[dict[str, int]] = {"seconds": 1_000_000, "milliseconds": 1_000, "microseconds": 1}
_DAY: Final = timedelta(days=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_MIDNIGHT: Final = datetime(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class Day(Directed):
    """A date.

    >>> Day().encode(date(2020, 1, 11)), Day().descending().encode(date(2020, 1, 11))
    ('2020-01-11', '7979-98-88')
    """

    width: ClassVar[int] = 10

    def encode(self, value: date) -> str:
        text = _day_of(value).isoformat()
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

    def samples(self) -> tuple[str, ...]:
        return tuple(map(self.encode, (date.min, date(1970, 1, 1), date.max)))


@dataclass(frozen=True, slots=True)
class TimeOfDay(Directed):
    """A time without a date or a zone, in microseconds.

    >>> TimeOfDay().encode(time(16, 20))
    '16:20:00.000000'
    """

    width: ClassVar[int] = 15

    def encode(self, value: time) -> str:
        text = _time_of(value).isoformat(timespec="microseconds")
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

    def samples(self) -> tuple[str, ...]:
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
            raise wrong_type(value, "timedelta")
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

    def samples(self) -> tuple[str, ...]:
        return self._number.samples()


@dataclass(frozen=True, slots=True)
class Instant(Directed):
    """An aware datetime in the years 1 to 9999; decoded in UTC.

    >>> Instant("seconds").encode(datetime(2020, 1, 11, tzinfo=UTC))
    '2020-01-11T00:00:00Z'
    """

    precision: Precision = "microseconds"
    width: int = field(init=False, repr=False, compare=False)
    shaped_by: ClassVar[tuple[str, ...]] = ("precision",)
    _tick: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tick = _tick(self.precision)
        object.__setattr__(self, "_tick", tick)
        object.__setattr__(self, "width", len(_text(EPOCH, self.precision)))

    def encode(self, value: datetime) -> str:
        text = _text(_checked(value, self._tick, self.precision), self.precision)
        return text if self.ascending else complement(text)

    def decode(self, text: str) -> datetime:
        plain = text if self.ascending else complement(text)
        try:
            instant = datetime.fromisoformat(plain)
            if instant.tzinfo is UTC and self.encode(instant) == text:
                return instant
        except ValueError:
            pass
        raise malformed(text, f"an instant in {self.precision}, such as {self.encode(EPOCH)}")

    def before(self, value: datetime) -> datetime | None:
        utc, step = _utc_of(value), timedelta(microseconds=self._tick)
        return utc - step if utc - _EARLIEST >= step else None

    def after(self, value: datetime) -> datetime | None:
        utc, step = _utc_of(value), timedelta(microseconds=self._tick)
        return utc + step if _LATEST - utc >= step else None

    def nearest(self, value: datetime) -> tuple[datetime | None, datetime | None]:
        utc = _utc_of(value)
        below = utc.replace(microsecond=utc.microsecond // self._tick * self._tick)
        return below, below if below == utc else self.after(below)

    def samples(self) -> tuple[str, ...]:
        latest = _LATEST.replace(microsecond=999_999 // self._tick * self._tick)
        return tuple(map(self.encode, (_EARLIEST, EPOCH, latest)))


@dataclass(frozen=True, slots=True)
class EpochInstant(Directed):
    """An aware datetime from 1970 on, as the zero-padded number of units since the epoch.

    Without `digits`, it has enough for the year 9999.

    >>> EpochInstant("seconds").encode(datetime(2020, 1, 11, tzinfo=UTC))
    '001578700800'
    >>> EpochInstant("milliseconds", 13).encode(datetime(2020, 1, 11, tzinfo=UTC))
    '1578700800000'
    """

    unit: Precision = "seconds"
    digits: int = 0
    width: int = field(init=False, repr=False, compare=False)
    shaped_by: ClassVar[tuple[str, ...]] = ("unit", "width")
    _tick: timedelta = field(init=False, repr=False, compare=False)
    _number: Natural = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tick = timedelta(microseconds=_tick(self.unit))
        greatest = (_LATEST - EPOCH) // tick
        if whole(self.digits) < 0:
            raise UsageError(f"the digits of an EpochInstant must be 0 or more, not {self.digits}")
        if self.digits:
            greatest = min(greatest, 10**self.digits - 1)
        if self.digits > len(str(greatest)):
            raise UsageError(
                f"{self.digits} digits of {self.unit} exceed the year 9999; declare at most "
                f"{len(str(greatest))}"
            )
        number = Natural(greatest, ascending=self.ascending)
        object.__setattr__(self, "_tick", tick)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "width", number.width)

    def encode(self, value: datetime) -> str:
        instant = _checked(value, _TICKS[self.unit], self.unit)
        if instant < EPOCH:
            raise OutOfRange(
                f"{value} is before 1970, where this component begins to count: declare an Instant"
            )
        return self._number.encode((instant - EPOCH) // self._tick)

    def decode(self, text: str) -> datetime:
        try:
            return EPOCH + self._number.decode(text) * self._tick
        except MalformedKey:
            raise malformed(text, f"a number of {self.unit} since 1970") from None

    def before(self, value: datetime) -> datetime | None:
        utc = _utc_of(value)
        return utc - self._tick if utc - EPOCH >= self._tick else None

    def after(self, value: datetime) -> datetime | None:
        utc = _utc_of(value)
        latest = EPOCH + self._number.maximum * self._tick
        return utc + self._tick if latest - utc >= self._tick else None

    def nearest(self, value: datetime) -> tuple[datetime | None, datetime | None]:
        since = _utc_of(value) - EPOCH
        below, _ = self._number.nearest(since // self._tick)
        _, above = self._number.nearest(-(-since // self._tick))
        return self._instant(below), self._instant(above)

    def _instant(self, number: int | None) -> datetime | None:
        return None if number is None else EPOCH + number * self._tick

    def samples(self) -> tuple[str, ...]:
        return self._number.samples()


# Each directive, the most significant first: its attribute, its digits, and the unit that it
# counts.
_DIRECTIVES: Final = {
    "Y": ("year", 4, timedelta()),
    "m": ("month", 2, timedelta()),
    "d": ("day", 2, timedelta(days=1)),
    "H": ("hour", 2, timedelta(hours=1)),
    "M": ("minute", 2, timedelta(minutes=1)),
    "S": ("second", 2, timedelta(seconds=1)),
    "f": ("microsecond", 6, timedelta(microseconds=1)),
}
_SIGNIFICANCE: Final = "".join(_DIRECTIVES)
_DIRECTIVE: Final = re.compile("%(.?)")
_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f#$\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Written(Directed):
    """An aware datetime, or with `day` a date, in a pattern of `strftime` directives.

    The directives go from years to microseconds, in this order and without a gap, and include at least
    years, months and days: only then do texts sort as their values do. Any text may be between them.
    Instants are in UTC.

    >>> Written("%Y-%m-%d %H:%M:%S").encode(datetime(2020, 1, 11, tzinfo=UTC))
    '2020-01-11 00:00:00'
    """

    pattern: str
    day: bool = False
    width: int = field(init=False, repr=False, compare=False)
    shaped_by: ClassVar[tuple[str, ...]] = ("pattern", "day")
    _form: str = field(init=False, repr=False, compare=False)
    _reads: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _finer: dict[str, Any] = field(init=False, repr=False, compare=False)
    _unit: timedelta = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named = _DIRECTIVE.findall(self.pattern)  # "" for a % at the end
        directives = "".join(named)
        greatest = 3 if self.day else len(_SIGNIFICANCE)
        is_gapless = _SIGNIFICANCE.startswith(directives) and all(named)
        if not (is_gapless and 3 <= len(directives) <= greatest):
            raise UsageError(_no_pattern(self.pattern, greatest))
        if _FORBIDDEN.search(self.pattern):
            raise UsageError(
                f"the pattern {self.pattern!r} contains #, $ or a control character; leave it out"
            )
        set_ = object.__setattr__
        set_(self, "_form", _DIRECTIVE.sub(_format_of, re.sub("[{}]", r"\g<0>\g<0>", self.pattern)))
        set_(self, "_reads", re.compile(_reading(self.pattern)))
        names = [name for name, *_ in _DIRECTIVES.values()][len(directives) :]
        set_(self, "_finer", {} if self.day else dict.fromkeys(names, 0))
        set_(self, "_unit", _DIRECTIVES[directives[-1]][2])
        set_(self, "width", len(self._form.format(EPOCH)))

    def encode(self, value: Any) -> str:
        known = self._checked(value)
        if known.replace(**self._finer) != known:
            raise OutOfRange(
                f"{value} is finer than the declared pattern {self.pattern!r}: declare a finer one, or "
                "round the value"
            )
        text = self._form.format(known)
        return text if self.ascending else complement(text)

    def _checked(self, value: Any) -> date:
        return _day_of(value) if self.day else _utc_of(value)

    def decode(self, text: str) -> Any:
        match = self._reads.fullmatch(text if self.ascending else complement(text))
        if match is not None:
            numbers = [int(group) for group in match.groups()]
            try:
                return date(*numbers) if self.day else datetime(*numbers, tzinfo=UTC)  # type: ignore[misc, arg-type] # as many as the pattern has
            except ValueError:
                pass
        raise malformed(text, f"of the form {self.pattern!r}, such as {self.samples()[1]}")

    def before(self, value: Any) -> Any:
        known = self._checked(value)
        return known - self._unit if known - self._edge(date.min) >= self._unit else None

    def after(self, value: Any) -> Any:
        known = self._checked(value)
        return known + self._unit if self._edge(date.max) - known >= self._unit else None

    def nearest(self, value: Any) -> tuple[Any, Any]:
        known = self._checked(value)
        below = known.replace(**self._finer)
        return below, below if below == known else self.after(below)

    def _edge(self, edge: date) -> Any:
        """The first or the last possible value."""
        if self.day:
            return edge
        whole = datetime.min if edge == date.min else datetime.max
        return whole.replace(tzinfo=UTC, **self._finer)

    def samples(self) -> tuple[str, ...]:
        middle = EPOCH.date() if self.day else EPOCH
        edges = self._edge(date.min), middle, self._edge(date.max)
        return tuple(map(self.encode, edges))


def _format_of(directive: re.Match[str]) -> str:
    name, digits, _ = _DIRECTIVES[directive[1]]
    return f"{{0.{name}:0{digits}}}"


def _reading(pattern: str) -> str:
    """The regular expression that matches the texts of a pattern."""
    texts = _DIRECTIVE.split(pattern)
    expressions = [
        f"([0-9]{{{_DIRECTIVES[text][1]}}})" if place % 2 else re.escape(text)
        for place, text in enumerate(texts)
    ]
    return "".join(expressions)


def _no_pattern(pattern: str, greatest: int) -> str:
    order = "".join(f"%{each}" for each in _SIGNIFICANCE[:greatest])
    return (
        f"{pattern!r} does not sort: a pattern has the directives {order} in this order, at least the "
        "first three and without a gap; declare any other form as a str field with raw(…)"
    )


# Values


def _day_of(value: Any) -> date:
    """A date that is not a datetime. Raises `UsageError` for anything else."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise wrong_type(value, "date")


def _time_of(value: Any) -> time:
    if not isinstance(value, time):
        raise wrong_type(value, "time")
    if value.tzinfo is not None:
        raise UsageError(
            f"{value!r} has a time zone, and without a date it does not identify an instant: give a time "
            "without a zone, or declare a datetime"
        )
    return value


def _moved(value: time, by: timedelta) -> time:
    return (datetime.combine(_MIDNIGHT, value) + by).time()


def _utc_of(value: Any) -> datetime:
    """The same instant in UTC. Raises `UsageError` for anything but an aware datetime."""
    if not isinstance(value, datetime):
        raise wrong_type(value, "datetime")
    if value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise UsageError(
            f"{value.isoformat()} has no time zone, so it does not identify an instant: give it one, "
            "such as .replace(tzinfo=UTC)"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise OutOfRange(
            f"{value.isoformat()} is outside the years 1 to 9999 in UTC, which a key can hold"
        ) from None


def _checked(value: datetime, tick: int, precision: str) -> datetime:
    utc = _utc_of(value)
    if utc.microsecond % tick:
        raise OutOfRange(
            f"{value.isoformat()} is finer than {precision}, the declared precision: "
            "declare a finer one, or round the value"
        )
    return utc


def _text(utc: datetime, precision: Precision) -> str:
    return utc.isoformat(timespec=precision)[: -len("+00:00")] + "Z"


def _tick(precision: str) -> int:
    if precision not in _TICKS:
        raise UsageError(f"{precision!r} is not a precision; use one of {', '.join(_TICKS)}")
    return _TICKS[precision]
