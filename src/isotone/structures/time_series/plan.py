"""How a time series was declared: where its points and roll-ups lie, and for how long they are kept."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from isotone.model.calls import Calls
from isotone.model.declaring.conditions import Condition
from isotone.model.reading.patterns import Query
from isotone.structures.exact import exact
from isotone.structures.merging import shard_of
from isotone.structures.time_series.entries import (
    Point,
    Summary,
    TimeSeriesBucket,
    TimeSeriesPoint,
    TimeSeriesRollUp,
)
from isotone.structures.windows import floor

PER_BUCKET: Final = 1440  # roll-ups of a resolution in a partition: a day of minutes
FIRST: Final = datetime(2, 1, 1, tzinfo=UTC)  # their buckets begin and end in the calendar
LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
_INSTANT: Final = timedelta(microseconds=1)

Fields = dict[str, Any]
"""Some fields of an entity by their names."""


@dataclass(frozen=True, slots=True)
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

    # Points

    def point(self, series: str, given: Point) -> TimeSeriesPoint:
        """A point as it is stored, in the shard that follows from what identifies it."""
        at = floor(given.at, _INSTANT)
        shard = shard_of(f"{at.isoformat()}#{given.id}", self.shards)
        value = exact(given.value, "the value of a point", floats=True)
        gone_at = None if self.keep is None else at + self.keep
        place = self.place_of_points(series, floor(at, self.bucket), shard)
        return self.points(**place, at=at, id=given.id, value=value, gone_at=gone_at)

    def place_of_points(self, series: str, bucket: datetime, shard: int) -> Fields:
        """The fields of the partition of some points."""
        return {"name": self.name, "series": series, "bucket": bucket, "shard": shard}

    def points_of(self, place: Fields, start: datetime, end: datetime) -> Query[TimeSeriesPoint]:
        """The points of a partition from `start` on and before `end`."""
        at = TimeSeriesPoint.at
        return self.points.primary.where(*_same(TimeSeriesPoint, place), at >= start, at < end)

    def buckets_of(
        self, series: str, start: datetime = FIRST, end: datetime = LAST
    ) -> Query[TimeSeriesBucket]:
        """The buckets that have points, from that of `start` on."""
        kind = TimeSeriesBucket
        which = kind.bucket >= floor(start, self.bucket), kind.bucket < end
        return self.buckets.primary.where(kind.name == self.name, kind.series == series, *which)

    # Roll-ups

    def place_of_roll_ups(
        self, series: str, every: timedelta, shard: int, start: datetime
    ) -> Fields:
        """The fields of the partition in which the roll-up that begins at `start` lies."""
        return {
            "name": self.name,
            "series": series,
            "every": int(every.total_seconds()),
            "bucket": floor(start, every * PER_BUCKET),
            "shard": shard,
        }

    def roll_up_key(self, series: str, every: timedelta, shard: int, start: datetime) -> Fields:
        """The fields of a roll-up's primary key."""
        return {**self.place_of_roll_ups(series, every, shard, start), "start": start}

    def roll_up(self, key: Fields, summary: Summary) -> TimeSeriesRollUp:
        """A roll-up that is to be begun."""
        keep = self.roll_ups[summary.every]
        lowest, highest = summary.range
        return self.summaries(
            **key,
            count=summary.count,
            total=summary.total,
            lowest=lowest,
            highest=highest,
            # From anywhere: it is told from one that was here before, and was taken back.
            changes=random.getrandbits(32),
            gone_at=None if keep is None else summary.start + summary.every + keep,
        )

    def roll_ups_of(
        self, series: str, every: timedelta, shard: int, start: datetime, end: datetime
    ) -> list[Query[TimeSeriesRollUp]]:
        """The roll-ups of a shard that begin in a span: a query for each partition."""
        begin, found = TimeSeriesRollUp.start, []
        bucket = floor(start, every * PER_BUCKET)
        while bucket < end:
            place = self.place_of_roll_ups(series, every, shard, bucket)
            where = *_same(TimeSeriesRollUp, place), begin >= start, begin < end
            found.append(self.summaries.primary.where(*where))
            bucket += every * PER_BUCKET
        return found


def _same(kind: Any, fields: Fields) -> list[Condition]:
    """That an entity has these fields."""
    return [getattr(kind, name) == value for name, value in fields.items()]
