"""The items of a time series: points, their buckets, and roll-ups, with their keys and expiry.

TIME_SERIES#readings#sensor:1#2026-01-11T00:00:00Z#00          POINT#2026-01-11T16:20:00.000000Z#
TIME_SERIES_BUCKETS#readings#sensor:1                          BUCKET#2026-01-11T00:00:00Z
TIME_SERIES_ROLL_UP#readings#sensor:1#60#2026-01-11T00:00:00Z#00   ROLL_UP#2026-01-11T16:20:00Z
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Final, NamedTuple

from isotone.errors import UsageError
from isotone.model import Attr, Calls, Condition, Entity, Key, Query, Steps, expires, field, raw
from isotone.structures.exact_numbers import added, exact
from isotone.structures.sharding import shard_of
from isotone.structures.time_windows import floor, written

MAX_SHARDS: Final = 100
PER_BUCKET: Final = 1440  # roll-ups of a resolution in a partition: a day of minutes
FIRST: Final = datetime(2, 1, 1, tzinfo=UTC)  # its bucket, too, begins within the calendar
LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
_MAX_SEEN: Final = 8192  # cached roll-ups, buckets and series
_MICROSECOND: Final = timedelta(microseconds=1)

Fields = dict[str, Any]
"""Fields of an entity by name."""
Span = tuple[datetime, datetime]
"""From one instant on, and before another."""


class TimeSeriesPoint(Entity):
    """A value at an instant; `id` distinguishes points of one instant."""

    name: Attr[str] = field()
    series: Attr[str] = field()
    bucket: Attr[datetime] = field(precision="seconds")
    shard: Attr[int] = field(max=MAX_SHARDS - 1, alert=None)
    at: Attr[datetime] = field()
    id: Attr[str] = field()
    value: Attr[Decimal] = field()
    gone_at: Attr[datetime | None] = expires(default=None)

    primary: ClassVar[Key] = Key("TIME_SERIES", name, series, bucket, shard).sort("POINT", at, id)  # noqa: A003

    @property
    def summary(self) -> Summary:
        """The summary of this point alone."""
        return Summary(self.at, timedelta(0), 1, self.value, self.value, self.value)


class TimeSeriesBucket(Entity):
    """A bucket in which a series has points."""

    name: Attr[str] = field()
    series: Attr[str] = field()
    bucket: Attr[datetime] = field(precision="seconds")
    length: Attr[int] = field(description="of the bucket, in seconds")
    shards: Attr[int] = field()
    gone_at: Attr[datetime | None] = expires(default=None)

    primary: ClassVar[Key] = Key("TIME_SERIES_BUCKETS", name, series).sort("BUCKET", bucket)


class TimeSeriesRollUp(Entity):
    """The summary of a window's points; `every` is its length in seconds."""

    name: Attr[str] = field()
    series: Attr[str] = field()
    every: Attr[int] = field()
    bucket: Attr[datetime] = field(precision="seconds")
    shard: Attr[int] = field(max=MAX_SHARDS - 1, alert=None)
    start: Attr[datetime] = field(precision="seconds")
    count: Attr[int] = field()
    total: Attr[Decimal] = field()
    lowest: Attr[Decimal] = field()
    highest: Attr[Decimal] = field()
    revision: Attr[int] = field(default=0, name="changes", description="starts at a random number")
    gone_at: Attr[datetime | None] = expires(default=None)

    primary: ClassVar[Key] = Key(
        "TIME_SERIES_ROLL_UP", name, series, raw(every), bucket, shard
    ).sort("ROLL_UP", start)

    @property
    def summary(self) -> Summary:
        """The roll-up in the form for callers."""
        every = timedelta(seconds=self.every)
        return Summary(self.start, every, self.count, self.total, self.lowest, self.highest)


@dataclass(frozen=True, slots=True)
class Point:
    """A value at an instant. Points with the same instant and `id` are the same point."""

    value: int | float | Decimal
    at: datetime
    id: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of the points from `start` on, for a window of length `every`."""

    start: datetime
    every: timedelta
    count: int = 0
    total: Decimal = Decimal(0)
    lowest: Decimal | None = None
    highest: Decimal | None = None

    @property
    def range(self) -> tuple[Decimal, Decimal]:
        """The lowest and the highest value, if there are any."""
        assert self.lowest is not None
        assert self.highest is not None
        return self.lowest, self.highest

    @property
    def average(self) -> Decimal | None:
        """The mean value, to 28 digits; None without points."""
        return self.total / self.count if self.count else None

    def joined(self, other: Summary) -> Summary:
        """Both summaries together, with this one's window."""
        lows = [value for value in (self.lowest, other.lowest) if value is not None]
        highs = [value for value in (self.highest, other.highest) if value is not None]
        return Summary(
            self.start,
            self.every,
            self.count + other.count,
            added(self.total, other.total),
            min(lows, default=None),
            max(highs, default=None),
        )


def regroup(summaries: Iterable[Summary], every: timedelta, start: datetime) -> list[Summary]:
    """Summaries joined into windows of length `every`, counted from `start`."""
    joined: dict[datetime, Summary] = {}
    for summary in summaries:
        begin = start + (summary.start - start) // every * every
        joined[begin] = joined.get(begin, Summary(begin, every)).joined(summary)
    return list(joined.values())


def fill_gaps(
    summaries: Iterable[Summary], every: timedelta, start: datetime, end: datetime
) -> list[Summary]:
    """All windows of a span, including those without points."""
    known = {summary.start: summary for summary in summaries}
    number = max(0, -(-(end - start) // every))
    starts = (start + every * place for place in range(number))
    return [known.get(begin) or Summary(begin, every) for begin in starts]


@dataclass(frozen=True, slots=True, eq=False)
class SeriesDeclaration:
    """The declaration of a time series, its entities in its table, and their keys."""

    calls: Calls
    points: type[TimeSeriesPoint]
    buckets: type[TimeSeriesBucket]
    summaries: type[TimeSeriesRollUp]
    name: str
    bucket: timedelta
    keep: timedelta | None
    roll_ups: Mapping[timedelta, timedelta | None]
    shards: int
    seen: dict[object, tuple[Decimal, Decimal] | None] = attribute(default_factory=dict)
    """Cache: series whose layout was checked, listed buckets, and the last known ranges of roll-ups."""

    def now(self) -> datetime:
        """The time by the store's clock."""
        return datetime.fromtimestamp(self.calls.clock.now(), UTC)

    def has_expired(self, end: datetime, keep: timedelta | None) -> bool:
        """Whether something that ends at an instant has expired."""
        return keep is not None and end + keep <= self.now()

    def point(self, series: str, given: Point) -> TimeSeriesPoint:
        """A point in its stored form; its instant and id select the shard."""
        if not isinstance(given, Point) or not isinstance(given.at, datetime):
            raise UsageError(
                f"{given!r} is not a point; give Point(value, at), as in Point(21.5, datetime(…, tzinfo=UTC))"
            )
        at = floor(given.at, _MICROSECOND)
        shard = Shard(self, series, shard_of(f"{at.isoformat()}#{given.id}", self.shards))
        value = exact(given.value, "the value of a point")
        gone_at = None if self.keep is None else at + self.keep
        place = shard.place(floor(at, self.bucket))
        return self.points(**place, at=at, id=given.id, value=value, gone_at=gone_at)

    def buckets_of(
        self, series: str, start: datetime = FIRST, end: datetime = LAST
    ) -> Query[TimeSeriesBucket]:
        """The buckets with points, from the bucket of `start` on."""
        kind = TimeSeriesBucket
        which = kind.bucket >= floor(start, self.bucket), kind.bucket < end
        return self.buckets.primary.where(kind.name == self.name, kind.series == series, *which)

    def listing(self, series: str, bucket: datetime) -> TimeSeriesBucket:
        """The item that lists a bucket."""
        gone_at = None if self.keep is None else bucket + self.bucket + self.keep
        length = int(self.bucket.total_seconds())
        return self.buckets(
            name=self.name,
            series=series,
            bucket=bucket,
            length=length,
            shards=self.shards,
            gone_at=gone_at,
        )

    def check_layout(self, listed: TimeSeriesBucket) -> TimeSeriesBucket:
        """The bucket; raises `UsageError` if it was written with a different layout."""
        length = timedelta(seconds=listed.length)
        if (length, listed.shards) == (self.bucket, self.shards):
            return listed
        raise UsageError(
            f"{listed.series!r} of {self.name!r} has points in buckets of {written(length)} over shards="
            f"{listed.shards}, and here it is declared with {written(self.bucket)} over shards={self.shards}; "
            "declare it the same everywhere, or give this one another name"
        )

    def check_series(self, series: str) -> Steps[None]:
        """Check the layout of a series by its newest bucket. Reads one item, the first time."""
        if series not in self.seen:
            newest = yield from self.calls.first(self.buckets_of(series).reversed())
            if newest is not None:
                self.check_layout(newest)
                self.remember({series: None})

    def remember(self, seen: Mapping[object, tuple[Decimal, Decimal] | None]) -> None:
        """Add to the cache, which is emptied when it is full."""
        if len(self.seen) > _MAX_SEEN:
            self.seen.clear()
        self.seen.update(seen)

    def shards_of(self, series: str) -> list[Shard]:
        """The shards of a series."""
        return [Shard(self, series, number) for number in range(self.shards)]


class Shard(NamedTuple):
    """A shard of a series."""

    plan: SeriesDeclaration
    series: str
    number: int

    def place(self, bucket: datetime) -> Fields:
        """The partition of a bucket's points, as fields."""
        named = {"name": self.plan.name, "series": self.series}
        return {**named, "bucket": bucket, "shard": self.number}

    def points(self, bucket: datetime, span: Span) -> Query[TimeSeriesPoint]:
        """The points of a span in one of its buckets."""
        at = TimeSeriesPoint.at
        which = *_equal(TimeSeriesPoint, self.place(bucket)), at >= span[0], at < span[1]
        return self.plan.points.primary.where(*which)

    def roll_ups(self, every: timedelta, span: Span) -> list[Query[TimeSeriesRollUp]]:
        """The roll-ups that begin in a span: a query for each partition."""
        begin, queries = TimeSeriesRollUp.start, []
        bucket = floor(span[0], every * PER_BUCKET)
        while bucket < span[1]:
            partition = {**self.place(bucket), "every": int(every.total_seconds())}
            same = _equal(TimeSeriesRollUp, partition)
            query = self.plan.summaries.primary.where(*same, begin >= span[0], begin < span[1])
            queries.append(query)
            bucket += every * PER_BUCKET
        return queries

    def key(self, every: timedelta, start: datetime) -> Fields:
        """The fields of a roll-up's primary key."""
        place = self.place(floor(start, every * PER_BUCKET))
        return {**place, "every": int(every.total_seconds()), "start": start}

    def roll_up(self, summary: Summary) -> TimeSeriesRollUp:
        """A new roll-up."""
        lowest, highest = summary.range
        keep = self.plan.roll_ups[summary.every]
        return self.plan.summaries(
            **self.key(summary.every, summary.start),
            count=summary.count,
            total=summary.total,
            lowest=lowest,
            highest=highest,
            # Random, so that it differs from the revision of a deleted roll-up of the same window.
            revision=random.getrandbits(32),
            gone_at=None if keep is None else summary.start + summary.every + keep,
        )


def _equal(kind: Any, fields: Fields) -> list[Condition]:
    """Conditions that an entity has these fields."""
    return [getattr(kind, name) == value for name, value in fields.items()]
