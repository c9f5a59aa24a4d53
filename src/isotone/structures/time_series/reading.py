"""How a series is read: its points from bucket to bucket, in either direction, and its roll-ups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from isotone.model.calls import Calls
from isotone.model.declaring.conditions import Condition
from isotone.model.reading.stats import Stats
from isotone.model.steps import Steps
from isotone.structures.merging import Behind, Marks, Stream, merged, total
from isotone.structures.time_series.entries import (
    PER_BUCKET,
    Point,
    Summary,
    TimeSeriesBucket,
    TimeSeriesPoint,
    TimeSeriesRollUp,
    floor,
)
from isotone.structures.time_series.writing import Plan

_MARKS: Final[Marks[TimeSeriesPoint]] = Marks(
    of=lambda point: (point.at.isoformat(timespec="microseconds"), point.id),
    fields=lambda mark: {"at": datetime.fromisoformat(mark[0]), "id": mark[1]},
)


@dataclass(frozen=True, slots=True)
class PointPage:
    """Some points in their order; `cursor` is None where nothing follows, `stats` is what was read."""

    items: list[Point]
    cursor: str | None
    stats: Stats

    def __iter__(self) -> Iterator[Point]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class Span:
    """What is read of which series: from `start` on, and before `end`, in one of the directions."""

    series: str
    start: datetime
    end: datetime
    newest_first: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a read of points is: in a bucket, behind a mark in each of its shards."""

    bucket: datetime
    behind: Sequence[Behind] = ()


class TimeSeriesReading:
    """The steps that read a time series."""

    def __init__(self, calls: Calls, plan: Plan) -> None:
        self._calls = calls
        self._plan = plan

    # Points

    def begin(self, span: Span) -> Steps[Place | None]:
        """Where a read begins; None where there is nothing."""
        return (yield from self._next_bucket(span, None))

    def points(
        self, span: Span, place: Place | None, size: int
    ) -> Steps[tuple[list[Point], Place | None, Stats]]:
        """Up to `size` points from a place on, and where the next ones are.

        Cost: `size` items of each shard of each bucket that is touched, and one for each bucket.
        """
        found: list[Point] = []
        spent: list[Stats] = []
        while place is not None and len(found) < size:
            part = yield from merged(
                self._calls,
                self._streams(span, place.bucket),
                _MARKS,
                size - len(found),
                behind=place.behind,
                descending=span.newest_first,
            )
            found += [Point(each.value, each.at, each.id) for each in part.items]
            spent.append(part.stats)
            if part.is_over:
                place = yield from self._next_bucket(span, place.bucket)
            else:
                place = Place(place.bucket, part.behind)
        return found, place, total(spent)

    def _streams(self, span: Span, bucket: datetime) -> list[Stream[TimeSeriesPoint]]:
        plan, kind = self._plan, TimeSeriesPoint
        streams = []
        for shard in range(plan.shards):
            same = plan.point_place(span.series, bucket, shard)
            query = plan.points.primary.where(
                *equal(kind, same), kind.at >= span.start, kind.at < span.end
            )
            streams.append(Stream(query.reversed() if span.newest_first else query, same))
        return streams

    def _next_bucket(self, span: Span, after: datetime | None) -> Steps[Place | None]:
        """The first bucket of a span that has points, or the one behind another."""
        plan, kind = self._plan, TimeSeriesBucket
        low, high = floor(span.start, plan.bucket), span.end
        if after is not None and span.newest_first:
            high = after
        elif after is not None:
            low = after + plan.bucket
        if low >= high:
            return None
        query = plan.buckets.primary.where(
            kind.name == plan.name,
            kind.series == span.series,
            kind.bucket >= low,
            kind.bucket < high,
        )
        found = yield from self._calls.first(query.reversed() if span.newest_first else query)
        return None if found is None else Place(found.bucket)

    # Roll-ups

    def summaries(
        self, series: str, every: timedelta, start: datetime, end: datetime
    ) -> Steps[list[Summary]]:
        """The roll-ups that begin in a span, in order; none for windows without points.

        Cost: an item for each of each shard, and a query for each 1,440 windows of each shard.
        """
        plan, kind = self._plan, TimeSeriesRollUp
        found: dict[datetime, Summary] = {}
        bucket = floor(start, every * PER_BUCKET)
        while bucket < end:
            for shard in range(plan.shards):
                same = plan.roll_up_place(series, every, shard, bucket)
                query = plan.summaries.primary.where(
                    *equal(kind, same), kind.start >= start, kind.start < end
                )
                for each in (yield from self._calls.all(query)):
                    one = _summary(each, every)
                    known = found.get(one.start)
                    found[one.start] = one if known is None else known.joined(one)
            bucket += every * PER_BUCKET
        return [found[start] for start in sorted(found)]


def equal(kind: Any, same: dict[str, Any]) -> list[Condition]:
    """That an entity has these fields."""
    return [getattr(kind, name) == value for name, value in same.items()]


def _summary(each: TimeSeriesRollUp, every: timedelta) -> Summary:
    return Summary(each.start, every, each.count, each.total, each.lowest, each.highest)


def filled(
    found: Sequence[Summary], every: timedelta, start: datetime, end: datetime
) -> list[Summary]:
    """All windows of a span, also those without points."""
    known = {each.start: each for each in found}
    number = max(0, -(-(end - start) // every))
    starts = (start + every * place for place in range(number))
    return [known.get(each) or Summary(each, every) for each in starts]


def gathered(found: Sequence[Summary], every: timedelta, start: datetime) -> list[Summary]:
    """Windows of a longer span, counted from `start`, of shorter ones."""
    joined: dict[datetime, Summary] = {}
    for each in found:
        begin = start + (each.start - start) // every * every
        joined[begin] = joined.get(begin, Summary(begin, every)).joined(each)
    return list(joined.values())
