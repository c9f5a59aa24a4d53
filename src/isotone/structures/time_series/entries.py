"""What a time series keeps: points, the list of buckets that have any, and roll-ups.

TIME_SERIES#readings#sensor:1#2026-01-11T00:00:00Z#00          POINT#2026-01-11T16:20:00.000000Z#
TIME_SERIES_BUCKETS#readings#sensor:1                          BUCKET#2026-01-11T00:00:00Z
TIME_SERIES_ROLL_UP#readings#sensor:1#60#2026-01-11T00:00:00Z#00   ROLL_UP#2026-01-11T16:20:00Z
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from isotone.model import Attr, Entity, Key, expires, field, raw
from isotone.structures.exact import added

MOST_SHARDS: Final = 100


class TimeSeriesPoint(Entity):
    """A value at an instant; `id` tells those of one instant apart."""

    name: Attr[str] = field()
    series: Attr[str] = field()
    bucket: Attr[datetime] = field(precision="seconds")
    shard: Attr[int] = field(max=MOST_SHARDS - 1, alert=None)
    at: Attr[datetime] = field()
    id: Attr[str] = field()
    value: Attr[Decimal] = field()
    gone_at: Attr[datetime | None] = expires(default=None)

    primary = Key("TIME_SERIES", name, series, bucket, shard).sort("POINT", at, id)  # noqa: A003

    @property
    def summary(self) -> Summary:
        """What it comes to by itself."""
        return Summary(self.at, timedelta(0), 1, self.value, self.value, self.value)


class TimeSeriesBucket(Entity):
    """Says that a series has points in a bucket."""

    name: Attr[str] = field()
    series: Attr[str] = field()
    bucket: Attr[datetime] = field(precision="seconds")
    length: Attr[int] = field(description="of the bucket, in seconds")
    shards: Attr[int] = field()
    gone_at: Attr[datetime | None] = expires(default=None)

    primary = Key("TIME_SERIES_BUCKETS", name, series).sort("BUCKET", bucket)


class TimeSeriesRollUp(Entity):
    """What the points of a window come to; `every` is its length in seconds."""

    name: Attr[str] = field()
    series: Attr[str] = field()
    every: Attr[int] = field()
    bucket: Attr[datetime] = field(precision="seconds")
    shard: Attr[int] = field(max=MOST_SHARDS - 1, alert=None)
    start: Attr[datetime] = field(precision="seconds")
    count: Attr[int] = field()
    total: Attr[Decimal] = field()
    lowest: Attr[Decimal] = field()
    highest: Attr[Decimal] = field()
    changes: Attr[int] = field(default=0, description="counted on with every change, from anywhere")
    gone_at: Attr[datetime | None] = expires(default=None)

    primary = Key("TIME_SERIES_ROLL_UP", name, series, raw(every), bucket, shard).sort(
        "ROLL_UP", start
    )

    @property
    def summary(self) -> Summary:
        """What callers see of it."""
        every = timedelta(seconds=self.every)
        return Summary(self.start, every, self.count, self.total, self.lowest, self.highest)


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
    def range(self) -> tuple[Decimal, Decimal]:
        """The lowest and the highest value, of something."""
        assert self.lowest is not None
        assert self.highest is not None
        return self.lowest, self.highest

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


def gathered(found: Iterable[Summary], every: timedelta, start: datetime) -> list[Summary]:
    """Windows of a longer span, counted from `start`, of shorter ones."""
    joined: dict[datetime, Summary] = {}
    for each in found:
        begin = start + (each.start - start) // every * every
        joined[begin] = joined.get(begin, Summary(begin, every)).joined(each)
    return list(joined.values())


def filled(
    found: Iterable[Summary], every: timedelta, start: datetime, end: datetime
) -> list[Summary]:
    """All windows of a span, also those without points."""
    known = {each.start: each for each in found}
    number = max(0, -(-(end - start) // every))
    starts = (start + every * place for place in range(number))
    return [known.get(each) or Summary(each, every) for each in starts]
