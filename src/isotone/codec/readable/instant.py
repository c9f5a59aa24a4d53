"""Points in time: aware datetimes as UTC in ISO 8601, or as a number since the epoch.

    Instant()                  2020-01-11T00:00:00.000000Z
    Instant("milliseconds")    2020-01-11T00:00:00.000Z
    Instant("seconds")         2020-01-11T00:00:00Z
    Instant().descending()     7979-98-88T99:99:99.999999Z    every digit is its difference from nine
    EpochInstant("seconds")    001578700800
    EpochInstant("seconds", 10)  1578700800                   to the year 2286

One width and one zone for all, so that texts sort as the instants do. A naive datetime names no
instant and is refused, and so is one that is finer than the precision, because its rest would be lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from isotone.codec.readable.digits import complement, malformed, whole
from isotone.codec.readable.interface import Directed
from isotone.codec.readable.natural import Natural
from isotone.errors import MalformedKey, OutOfRange, UsageError

Precision = Literal["seconds", "milliseconds", "microseconds"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime.max.replace(tzinfo=UTC)
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_TICK: Final[dict[str, int]] = {"seconds": 1_000_000, "milliseconds": 1_000, "microseconds": 1}


@dataclass(frozen=True, slots=True)
class Instant(Directed):
    """An aware datetime in the years 1 to 9999; it comes back in UTC.

    >>> Instant("seconds").encode(datetime(2020, 1, 11, tzinfo=UTC))
    '2020-01-11T00:00:00Z'
    """

    precision: Precision = "microseconds"
    width: int = field(init=False, repr=False, compare=False)
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
        utc, step = utc_of(value), timedelta(microseconds=self._tick)
        return utc - step if utc - _EARLIEST >= step else None

    def after(self, value: datetime) -> datetime | None:
        utc, step = utc_of(value), timedelta(microseconds=self._tick)
        return utc + step if _LATEST - utc >= step else None

    def around(self, value: datetime) -> tuple[datetime | None, datetime | None]:
        utc = utc_of(value)
        below = utc.replace(microsecond=utc.microsecond // self._tick * self._tick)
        return below, below if below == utc else self.after(below)

    def specimens(self) -> tuple[str, ...]:
        latest = _LATEST.replace(microsecond=999_999 // self._tick * self._tick)
        return tuple(map(self.encode, (_EARLIEST, EPOCH, latest)))


@dataclass(frozen=True, slots=True)
class EpochInstant(Directed):
    """An aware datetime from 1970 on, as the zero-padded number of units since the epoch.

    Without `digits` there are enough for the year 9999.

    >>> EpochInstant("seconds").encode(datetime(2020, 1, 11, tzinfo=UTC))
    '001578700800'
    >>> EpochInstant("milliseconds", 13).encode(datetime(2020, 1, 11, tzinfo=UTC))
    '1578700800000'
    """

    unit: Precision = "seconds"
    digits: int = 0
    width: int = field(init=False, repr=False, compare=False)
    _tick: timedelta = field(init=False, repr=False, compare=False)
    _number: Natural = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tick = timedelta(microseconds=_tick(self.unit))
        greatest = (_LATEST - EPOCH) // tick
        if whole(self.digits) < 0:
            raise UsageError(f"an EpochInstant has a number of digits, not {self.digits}")
        if self.digits:
            greatest = min(greatest, 10**self.digits - 1)
        if self.digits > len(str(greatest)):
            raise UsageError(
                f"{self.digits} digits of {self.unit} go beyond the year 9999; declare at most "
                f"{len(str(greatest))}"
            )
        number = Natural(greatest, ascending=self.ascending)
        object.__setattr__(self, "_tick", tick)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "width", number.width)

    def encode(self, value: datetime) -> str:
        instant = _checked(value, _TICK[self.unit], self.unit)
        if instant < EPOCH:
            raise OutOfRange(
                f"{value} is before 1970, and this component counts from there: declare an Instant"
            )
        return self._number.encode((instant - EPOCH) // self._tick)

    def decode(self, text: str) -> datetime:
        try:
            return EPOCH + self._number.decode(text) * self._tick
        except MalformedKey:
            raise malformed(text, f"a number of {self.unit} since 1970") from None

    def before(self, value: datetime) -> datetime | None:
        utc = utc_of(value)
        return utc - self._tick if utc - EPOCH >= self._tick else None

    def after(self, value: datetime) -> datetime | None:
        utc = utc_of(value)
        latest = EPOCH + self._number.maximum * self._tick
        return utc + self._tick if latest - utc >= self._tick else None

    def around(self, value: datetime) -> tuple[datetime | None, datetime | None]:
        since = utc_of(value) - EPOCH
        below, _ = self._number.around(since // self._tick)
        _, above = self._number.around(-(-since // self._tick))
        return self._instant(below), self._instant(above)

    def _instant(self, number: int | None) -> datetime | None:
        return None if number is None else EPOCH + number * self._tick

    def specimens(self) -> tuple[str, ...]:
        return self._number.specimens()


def utc_of(value: Any) -> datetime:
    """The same instant in UTC. Raises `UsageError` for what names none."""
    if not isinstance(value, datetime):
        raise UsageError(
            f"{value!r} is a {type(value).__name__}, and this component of a key holds datetime"
        )
    if value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise UsageError(
            f"{value.isoformat()} has no time zone, so it names no instant and has no place in "
            "the order: give it one, such as .replace(tzinfo=UTC)"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise OutOfRange(
            f"{value.isoformat()} is outside of the years 1 to 9999 in UTC, which a key can hold"
        ) from None


def _checked(value: datetime, tick: int, precision: str) -> datetime:
    utc = utc_of(value)
    if utc.microsecond % tick:
        raise OutOfRange(
            f"{value.isoformat()} is finer than {precision}, the declared precision: "
            "declare a finer one, or round the value"
        )
    return utc


def _text(utc: datetime, precision: Precision) -> str:
    return utc.isoformat(timespec=precision)[: -len("+00:00")] + "Z"


def _tick(precision: str) -> int:
    if precision not in _TICK:
        raise UsageError(f"{precision!r} is no precision; there are {', '.join(_TICK)}")
    return _TICK[precision]
