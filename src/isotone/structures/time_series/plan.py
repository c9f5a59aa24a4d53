"""How a time series was declared: where its points and roll-ups lie, and for how long they are kept."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from isotone.errors import UsageError
from isotone.model import Calls, Condition, Query
from isotone.structures.exact import exact
from isotone.structures.merging import shard_of
from isotone.structures.time_series.entries import (
    Point,
    Summary,
    TimeSeriesBucket,
    TimeSeriesPoint,
    TimeSeriesRollUp,
)
from isotone.structures.windows import floor, written

PER_BUCKET: Final = 1440  # roll-ups of a resolution in a partition: a day of minutes
FIRST: Final = datetime(2, 1, 1, tzinfo=UTC)  # their buckets begin and end in the calendar
LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
_INSTANT: Final = timedelta(microseconds=1)

Fields = dict[str, Any]
"""Some fields of an entity by their names."""
Span = tuple[datetime, datetime]
"""From one instant on, and before another."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How a time series was declared, its entities in its table, and the calls of its store."""

    calls: Calls
    points: type[TimeSeriesPoint]
    buckets: type[TimeSeriesBucket]
    summaries: type[TimeSeriesRollUp]
    name: str
    bucket: timedelta
    keep: timedelta | None
    roll_ups: Mapping[timedelta, timedelta | None]
    shards: int
    seen: dict[object, tuple[Decimal, Decimal] | None] = field(default_factory=dict)
    """Buckets that are listed, and roll-ups with the values between which they were seen to lie."""

    def now(self) -> datetime:
        """The time by the store's clock."""
        return datetime.fromtimestamp(self.calls.clock.now(), UTC)

    def is_over(self, end: datetime, keep: timedelta | None) -> bool:
        """Whether what ends at an instant is not kept any longer."""
        return keep is not None and end + keep <= self.now()

    def point(self, series: str, given: Point) -> TimeSeriesPoint:
        """A point as it is stored, in the shard that follows from what identifies it."""
        if not isinstance(given, Point) or not isinstance(given.at, datetime):
            raise UsageError(
                f"{given!r} is no point: one is Point(value, at), as in Point(21.5, datetime(…, tzinfo=UTC))"
            )
        at = floor(given.at, _INSTANT)
        shard = Shard(self, series, shard_of(f"{at.isoformat()}#{given.id}", self.shards))
        value = exact(given.value, "the value of a point")
        gone_at = None if self.keep is None else at + self.keep
        place = shard.place(floor(at, self.bucket))
        return self.points(**place, at=at, id=given.id, value=value, gone_at=gone_at)

    def buckets_of(
        self, series: str, start: datetime = FIRST, end: datetime = LAST
    ) -> Query[TimeSeriesBucket]:
        """The buckets that have points, from that of `start` on."""
        kind = TimeSeriesBucket
        which = kind.bucket >= floor(start, self.bucket), kind.bucket < end
        return self.buckets.primary.where(kind.name == self.name, kind.series == series, *which)

    def listing(self, series: str, bucket: datetime) -> TimeSeriesBucket:
        """What says that a series has points in a bucket."""
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

    def own(self, listed: TimeSeriesBucket) -> TimeSeriesBucket:
        """What is listed; raises `UsageError` where its points lie elsewhere than this plan says."""
        length = timedelta(seconds=listed.length)
        if (length, listed.shards) == (self.bucket, self.shards):
            return listed
        raise UsageError(
            f"{listed.series!r} of {self.name!r} has points in buckets of {written(length)} over shards="
            f"{listed.shards}, and here it is declared with {written(self.bucket)} over shards={self.shards}; "
            "declare it as elsewhere, or give this one a name of its own"
        )

    def shards_of(self, series: str) -> list[Shard]:
        """All shards of a series."""
        return [Shard(self, series, number) for number in range(self.shards)]


class Shard(NamedTuple):
    """One of the shards of a series."""

    plan: Plan
    series: str
    number: int

    def place(self, bucket: datetime) -> Fields:
        """The fields of the partition of the points of a bucket."""
        named = {"name": self.plan.name, "series": self.series}
        return {**named, "bucket": bucket, "shard": self.number}

    def points(self, bucket: datetime, span: Span) -> Query[TimeSeriesPoint]:
        """The points of a span in one of its buckets."""
        at = TimeSeriesPoint.at
        which = *_same(TimeSeriesPoint, self.place(bucket)), at >= span[0], at < span[1]
        return self.plan.points.primary.where(*which)

    def roll_ups(self, every: timedelta, span: Span) -> list[Query[TimeSeriesRollUp]]:
        """The roll-ups that begin in a span: a query for each partition."""
        begin, found = TimeSeriesRollUp.start, []
        bucket = floor(span[0], every * PER_BUCKET)
        while bucket < span[1]:
            same = _same(
                TimeSeriesRollUp, {**self.place(bucket), "every": int(every.total_seconds())}
            )
            query = self.plan.summaries.primary.where(*same, begin >= span[0], begin < span[1])
            found.append(query)
            bucket += every * PER_BUCKET
        return found

    def key(self, every: timedelta, start: datetime) -> Fields:
        """The fields of a roll-up's primary key."""
        place = self.place(floor(start, every * PER_BUCKET))
        return {**place, "every": int(every.total_seconds()), "start": start}

    def roll_up(self, summary: Summary) -> TimeSeriesRollUp:
        """A roll-up that is to be begun."""
        lowest, highest = summary.range
        keep = self.plan.roll_ups[summary.every]
        return self.plan.summaries(
            **self.key(summary.every, summary.start),
            count=summary.count,
            total=summary.total,
            lowest=lowest,
            highest=highest,
            # From anywhere: it is told from one that was here before, and was taken back.
            changes=random.getrandbits(32),
            gone_at=None if keep is None else summary.start + summary.every + keep,
        )


def _same(kind: Any, fields: Fields) -> list[Condition]:
    """That an entity has these fields."""
    return [getattr(kind, name) == value for name, value in fields.items()]
