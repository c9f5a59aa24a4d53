"""How a series is read: its points from bucket to bucket, in either direction, and its roll-ups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from isotone.model import Stats, Steps
from isotone.structures.merging import Behind, Marks, Stream, merged, total
from isotone.structures.time_series.entries import Point, Summary, TimeSeriesPoint, gathered
from isotone.structures.time_series.plan import FIRST, LAST, Plan, Span

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


@dataclass(slots=True)
class Walk:
    """A read of points from `start` on and before `end`, in one of the directions.

    It is in a bucket, behind a place in each of its shards; before it begins `bucket` is unknown.
    """

    plan: Plan
    series: str
    start: datetime = FIRST
    end: datetime = LAST
    newest_first: bool = False
    bucket: datetime | None = None
    behind: Sequence[Behind] = ()
    is_over: bool = False
    stats: Stats = field(default_factory=Stats)

    def some(self, size: int) -> Steps[list[Point]]:
        """The next points, so many unless it is over then.

        Cost: `size` items of each shard of each bucket that is touched, and one for each bucket.
        """
        found: list[Point] = []
        while not self.is_over and len(found) < size:
            found += yield from self.part(size - len(found))
        return found

    def part(self, size: int, of_each: int | None = None) -> Steps[list[Point]]:
        """The next points of a bucket, up to so many. Cost: so many of each shard, or `of_each`."""
        if self.bucket is None:
            yield from self._enter_next()
        if self.is_over:
            return []
        found = yield from merged(
            self.plan.calls,
            self._streams(),
            _MARKS,
            size,
            behind=self.behind,
            descending=self.newest_first,
            of_each=of_each,
        )
        self.stats, self.behind = total([self.stats, found.stats]), found.behind
        if found.is_over:
            yield from self._enter_next()
        return [Point(each.value, each.at, each.id) for each in found.items]

    def _streams(self) -> list[Stream[TimeSeriesPoint]]:
        assert self.bucket is not None
        streams: list[Stream[TimeSeriesPoint]] = []
        for shard in self.plan.shards_of(self.series):
            query = shard.points(self.bucket, (self.start, self.end))
            query = query.reversed() if self.newest_first else query
            streams.append((query, shard.place(self.bucket)))
        return streams

    def _enter_next(self) -> Steps[None]:
        """Go on to the next bucket that has points, if there is one."""
        start, end = self.start, self.end
        if self.bucket is not None and self.newest_first:
            end = self.bucket
        elif self.bucket is not None:
            start = self.bucket + self.plan.bucket
        query = self.plan.buckets_of(self.series, start, end)
        following = yield from self.plan.calls.first(
            query.reversed() if self.newest_first else query
        )
        self.is_over, self.behind = following is None, ()
        self.bucket = self.bucket if following is None else self.plan.own(following).bucket


def summaries(plan: Plan, series: str, every: timedelta, span: Span) -> Steps[list[Summary]]:
    """The roll-ups that begin in a span, in order; none for windows without points.

    Cost: an item for each of each shard, and a query for each 1,440 windows of each shard.
    """
    found: list[Summary] = []
    for shard in plan.shards_of(series):
        for query in shard.roll_ups(every, span):
            found += [each.summary for each in (yield from plan.calls.all(query))]
    return sorted(gathered(found, every, span[0]), key=lambda each: each.start)
