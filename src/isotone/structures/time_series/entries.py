"""What a time series keeps: points, the list of buckets that have any, and roll-ups.

TIME_SERIES#readings#sensor:1#2026-01-11T00:00:00Z#00          POINT#2026-01-11T16:20:00.000000Z#
TIME_SERIES_BUCKETS#readings#sensor:1                          BUCKET#2026-01-11T00:00:00Z
TIME_SERIES_ROLL_UP#readings#sensor:1#60#2026-01-11T00:00:00Z#00   ROLL_UP#2026-01-11T16:20:00Z
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from isotone.errors import UsageError
from isotone.model.declaring.components import raw
from isotone.model.declaring.fields import Attr, expires, field
from isotone.model.declaring.keys import Key
from isotone.model.entity import Entity
from isotone.structures.exact import added
from isotone.structures.exact import exact as exactly
from isotone.structures.windows import instant

MOST_SHARDS: Final = 100
PER_BUCKET: Final = 1440  # roll-ups of a resolution in a partition: a day of minutes

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


class TimeSeriesPoint(Entity):
    """A value at an instant; `id` tells those of one instant apart."""

    name: Attr[str] = field()
    series: Attr[str] = field()
    bucket: Attr[datetime] = field(precision="seconds")
    shard: Attr[int] = field(max=MOST_SHARDS - 1, alert=1)
    at: Attr[datetime] = field()
    id: Attr[str] = field()
    value: Attr[Decimal] = field()
    gone_at: Attr[datetime | None] = expires(default=None)

    primary = Key("TIME_SERIES", name, series, bucket, shard).sort("POINT", at, id)  # noqa: A003


class TimeSeriesBucket(Entity):
    """Says that a series has points in a bucket."""

    name: Attr[str] = field()
    series: Attr[str] = field()
    bucket: Attr[datetime] = field(precision="seconds")
    gone_at: Attr[datetime | None] = expires(default=None)

    primary = Key("TIME_SERIES_BUCKETS", name, series).sort("BUCKET", bucket)


class TimeSeriesRollUp(Entity):
    """What the points of a window come to; `every` is its length in seconds."""

    name: Attr[str] = field()
    series: Attr[str] = field()
    every: Attr[int] = field()
    bucket: Attr[datetime] = field(precision="seconds")
    shard: Attr[int] = field(max=MOST_SHARDS - 1, alert=1)
    start: Attr[datetime] = field(precision="seconds")
    count: Attr[int] = field()
    total: Attr[Decimal] = field()
    lowest: Attr[Decimal] = field()
    highest: Attr[Decimal] = field()
    changes: Attr[int] = field(default=0, description="how often it was changed")
    gone_at: Attr[datetime | None] = expires(default=None)

    primary = Key("TIME_SERIES_ROLL_UP", name, series, raw(every), bucket, shard).sort(
        "ROLL_UP", start
    )


# What callers give and see


@dataclass(frozen=True, slots=True)
class Point:
    """A value at an instant. What has the same instant and the same `id` is the same point."""

    value: int | float | Decimal
    at: datetime
    id: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """What the points from `start` on, for as long as `every`, come to; nothing where `count` is 0."""

    start: datetime
    every: timedelta
    count: int = 0
    total: Decimal = Decimal(0)
    lowest: Decimal | None = None
    highest: Decimal | None = None

    @property
    def average(self) -> Decimal | None:
        """The mean value, to 28 digits; None of nothing."""
        return self.total / self.count if self.count else None

    def joined(self, other: Summary) -> Summary:
        """Both together, as one of this span."""
        lows = [each for each in (self.lowest, other.lowest) if each is not None]
        highs = [each for each in (self.highest, other.highest) if each is not None]
        return Summary(
            self.start,
            self.every,
            self.count + other.count,
            added(self.total, other.total),
            min(lows, default=None),
            max(highs, default=None),
        )


def exact(value: int | float | Decimal) -> Decimal:
    """A value as it is kept: of a float, the digits that Python prints."""
    return exactly(value, "the value of a point", floats=True)


def floor(moment: datetime, length: timedelta) -> datetime:
    """The beginning of the span in which an instant lies: spans are counted from 1970, in UTC."""
    return _EPOCH + (instant(moment) - _EPOCH) // length * length


def whole_seconds(length: timedelta, what: str) -> timedelta:
    """The length, which is a number of seconds."""
    if length < _SECOND or length % _SECOND:
        raise UsageError(f"{what} is a whole number of seconds, not {length}")
    return length
