"""Time series: points in the order of time, with exact roll-ups.

A series is divided into buckets of time, each a separate partition, so none grows without bound. Points
are read by range, in either direction. Each point is written with its roll-ups (count, sum, lowest and
highest value of its minute, hour and day) in one transaction: a point that is sent twice is stored once and
counted once.

    readings = TimeSeries(store, "readings")
    readings.add("sensor:1", 21.5)
    readings.chart("sensor:1", yesterday, now, at_most=200)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from isotone.errors import UsageError
from isotone.model import Stats, Steps, Table
from isotone.structures import time_series_roll_ups as roll_ups
from isotone.structures.argument_checks import require_non_negative
from isotone.structures.sharding import MergeOrder, Position, Stream, merged
from isotone.structures.structure import Batches, S, Structure, iteration, operation
from isotone.structures.time_series_points import (
    FIRST,
    LAST,
    MAX_SHARDS,
    Point,
    SeriesDeclaration,
    Span,
    Summary,
    TimeSeriesBucket,
    TimeSeriesPoint,
    TimeSeriesRollUp,
    fill_gaps,
    regroup,
)
from isotone.structures.time_windows import floor, instant, written

TIME_SERIES: Final = Table("time-series")
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
FOR_EVER: Final[Mapping[timedelta, timedelta | None]] = {MINUTE: None, HOUR: None, DAY: None}
_SECOND: Final = timedelta(seconds=1)
_CHUNK: Final = 250  # points that an iteration reads at once
_ORDER: Final[MergeOrder[TimeSeriesPoint]] = MergeOrder(
    position=lambda point: (point.at.isoformat(timespec="microseconds"), point.id),
    fields=lambda position: {
        "at": datetime.fromisoformat(position[0]),
        "id": position[1],
    },
)


class TimeSeries(Structure[S]):
    """Series of points with the same layout.

    - `bucket`: the length of time of one partition.
    - `keep`: how long points are kept; by default forever.
    - `roll_ups`: the length of each resolution, and how long it is kept (None: forever).
    - `shards`: partitions of each bucket, if one series has more points than a partition accepts.
    """

    def __init__(
        self,
        store: S,
        name: str,
        *,
        bucket: timedelta = DAY,
        keep: timedelta | None = None,
        roll_ups: Mapping[timedelta, timedelta | None] = FOR_EVER,
        shards: int = 1,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or TIME_SERIES)
        if roll_ups:
            self.require("transactions", "give roll_ups={}, and aggregate the points when you read")
        self.name = name
        if not 1 <= shards <= MAX_SHARDS:
            raise UsageError(f"shards must be 1 to {MAX_SHARDS}, not {shards}")
        self.plan: SeriesDeclaration = SeriesDeclaration(
            calls=self.calls,
            points=self.bind(TimeSeriesPoint),
            buckets=self.bind(TimeSeriesBucket),
            summaries=self.bind(TimeSeriesRollUp),
            name=name,
            bucket=_whole_seconds(bucket, "a bucket"),
            keep=_kept_for(keep, "keep"),
            roll_ups=_resolutions(roll_ups),
            shards=shards,
        )

    @staticmethod
    def layout(name: str = "time-series") -> Table:
        """A table for time series; any table with two strings as its primary key can be used."""
        return Table(name)

    # Adding and correcting points

    @operation
    def add(
        self,
        series: str,
        value: int | float | Decimal,
        *,
        at: datetime | None = None,
        id: str = "",  # noqa: A002 - as users call it
    ) -> Steps[bool]:
        """Add a point; returns False if it exists, or is older than points are kept.

        `id` distinguishes points of the same instant. Cost: one transaction of the point and its roll-ups; also a
        read of the roll-ups, if they are not in this object's cache or need a wider range.
        """
        point = Point(value, at or self.plan.now(), id)
        return (yield from roll_ups.add(self.plan, series, [point])) == 1

    @operation
    def add_many(self, series: str, points: Iterable[Point]) -> Steps[int]:
        """Add points of a series; returns how many were new. After an interruption, run it again.

        Cost: a transaction for about ninety points of a bucket.
        """
        return (yield from roll_ups.add(self.plan, series, points))

    @operation
    def replace(
        self,
        series: str,
        value: int | float | Decimal,
        *,
        at: datetime,
        id: str = "",  # noqa: A002 - as users call it
    ) -> Steps[bool]:
        """Change a point's value, and its roll-ups; returns whether it existed.

        Cost: a read of the point and of its roll-ups, and one transaction of them. If it was the lowest
        or the highest of a window, a read of all points of that window and shard.
        """
        point = self.plan.point(series, Point(value, at, id))
        return (yield from roll_ups.correct(self.plan, point, point.value))

    @operation
    def remove(
        self,
        series: str,
        *,
        at: datetime,
        id: str = "",  # noqa: A002 - as users call it
    ) -> Steps[bool]:
        """Delete a point, and update its roll-ups; returns whether it existed. Cost: as `replace`."""
        point = self.plan.point(series, Point(0, at, id))
        return (yield from roll_ups.correct(self.plan, point, None))

    @operation
    def back_fill(
        self,
        series: str,
        every: timedelta,
        *,
        source: timedelta | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        progress: roll_ups.Progress | None = None,
    ) -> Steps[int]:
        """Compute the roll-ups of a resolution that was added later; returns how many were written.

        First declare the resolution in every process that adds points; they may continue to add. Each window
        with all its points is recounted, or summed up from `source`, a complete finer resolution. Windows
        that are already right are not written, so it can be run again. `progress` is called with the time up
        to which it is done (pass it as `start` to continue) and the number of windows written.

        Cost: a consistent read of the points, and a write for each window, at twice the price.
        Raises `Contended` if points are added to a window faster than it is read.
        """
        self._check_kept(every)
        if source is not None:
            self._check_kept(source)
            if source >= every or every % source:
                raise UsageError(f"windows of {source} do not add up to those of {every}")
        return roll_ups.back_fill(self.plan, series, every, source, start, end, progress)

    # Reading points

    @operation
    def latest(self, series: str) -> Steps[Point | None]:
        """The newest point; None if there is none. Cost: two reads, one more for each shard."""
        points = yield from _Walk(self.plan, series, newest_first=True).take(1)
        return points[0] if points else None

    @iteration
    def points(
        self,
        series: str,
        start: datetime = FIRST,
        end: datetime = LAST,
        *,
        newest_first: bool = False,
    ) -> Batches[Point]:
        """The points from `start` on and before `end`: `for`, or `async for`.

        Cost: a read of each point (with shards, of some points twice) and of an item for each bucket.
        """
        walk = _Walk(self.plan, series, start, end, newest_first)
        while not walk.is_over:
            yield walk.next_chunk(_CHUNK, -(-_CHUNK // self.plan.shards))

    @operation
    def page(
        self,
        series: str,
        start: datetime = FIRST,
        end: datetime = LAST,
        *,
        size: int = 100,
        newest_first: bool = False,
        cursor: str | None = None,
    ) -> Steps[PointPage]:
        """A page of exactly `size` points, fewer only at the end.

        Cost: an item for each point, times the shards, and one for each bucket. Raises `InvalidCursor`.
        """
        if size < 1:
            raise UsageError(f"size must be 1 or more, not {size}")
        walk = _Walk(self.plan, series, start, end, newest_first)
        of = {
            "series": [self.plan.name, series, newest_first, self.plan.shards],
            "span": [floor(at, timedelta(microseconds=1)).isoformat() for at in (start, end)],
        }
        if cursor:
            bucket, walk.positions = self.calls.unseal(cursor, **of)
            walk.bucket = datetime.fromisoformat(bucket)
        points = yield from walk.take(size)
        following = None
        if walk.bucket is not None and not walk.is_over:
            following = self.calls.seal([walk.bucket.isoformat(), walk.positions], **of)
        return PointPage(points, following, walk.stats)

    # Reading roll-ups

    @operation
    def summaries(
        self,
        series: str,
        every: timedelta,
        start: datetime,
        end: datetime,
        *,
        fill: bool = False,
    ) -> Steps[list[Summary]]:
        """The summaries of a resolution, from the window of `start` on; with `fill`, including empty ones.

        Cost: an item for each window of each shard, and a query for each 1,440 windows.
        """
        return (yield from self._summaries(series, every, start, end, fill=fill))

    @operation
    def chart(
        self, series: str, start: datetime, end: datetime, *, at_most: int = 500, fill: bool = True
    ) -> Steps[list[Summary]]:
        """The summaries of a span in at most `at_most` windows of equal length.

        It uses the finest resolution with no more windows than that and kept for as long. If none is coarse
        enough, several windows are joined. Cost: as `summaries`.
        """
        if at_most < 1 or instant(start) >= instant(end):
            raise UsageError("a chart has one window or more, of a span that ends after it starts")
        every = self._resolution(start, end, at_most)
        begin = floor(start, every)
        windows = -(-(end - begin) // every)
        length = every * -(-windows // at_most)
        summaries = yield from self._summaries(series, every, begin, end, fill=False)
        joined = regroup(summaries, length, begin)
        return fill_gaps(joined, length, begin, end) if fill else joined

    @operation
    def gaps(
        self,
        series: str,
        every: timedelta,
        start: datetime,
        end: datetime,
        *,
        at_least: timedelta | None = None,
    ) -> Steps[list[tuple[datetime, datetime]]]:
        """The spans of whole windows without points that are at least `at_least` long. Cost: as `summaries`."""
        if at_least is not None:
            require_non_negative(at_least=at_least.total_seconds())
        spans: list[tuple[datetime, datetime]] = []
        for window in (yield from self._summaries(series, every, start, end, fill=True)):
            if window.count:
                continue
            begin = window.start
            if spans and spans[-1][1] == begin:
                begin = spans.pop()[0]
            spans.append((begin, window.start + every))
        if at_least is None:
            return spans
        return [(begin, over) for begin, over in spans if over - begin >= at_least]

    # Steps

    def _summaries(
        self, series: str, every: timedelta, start: datetime, end: datetime, *, fill: bool
    ) -> Steps[list[Summary]]:
        self._check_kept(every)
        begin, end = floor(start, every), instant(end)
        summaries = yield from self._stored(series, every, (begin, end))
        return fill_gaps(summaries, every, begin, end) if fill else summaries

    def _stored(self, series: str, every: timedelta, span: Span) -> Steps[list[Summary]]:
        """The summaries that begin in a span, in order; windows without points are left out."""
        yield from self.plan.check_series(series)
        parts: list[Summary] = []
        for shard in self.plan.shards_of(series):
            for query in shard.roll_ups(every, span):
                parts += [roll_up.summary for roll_up in (yield from self.calls.all(query))]
        return sorted(regroup(parts, every, span[0]), key=lambda summary: summary.start)

    def _resolution(self, start: datetime, end: datetime, at_most: int) -> timedelta:
        """The finest resolution kept since `start` with few enough windows; else the coarsest."""
        if not self.plan.roll_ups:
            raise UsageError(f"{self.plan.name!r} keeps no roll-ups; read its points")
        now = self.plan.now()
        kept = [
            every
            for every, keep in self.plan.roll_ups.items()
            if keep is None or start >= now - keep
        ]
        for every in kept:
            if -(-(end - floor(start, every)) // every) <= at_most:
                return every
        return (kept or list(self.plan.roll_ups))[-1]

    def _check_kept(self, every: timedelta) -> None:
        if every not in self.plan.roll_ups:
            known = ", ".join(map(written, self.plan.roll_ups)) or "nothing"
            raise UsageError(
                f"{self.plan.name!r} has no roll-ups of {written(every)}, but of {known}; declare them with "
                "roll_ups="
            )


@dataclass(frozen=True, slots=True)
class PointPage:
    """A page of points in order; `cursor` is None at the end, `stats` is the cost of the read."""

    items: list[Point]
    cursor: str | None
    stats: Stats

    def __iter__(self) -> Iterator[Point]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(slots=True)
class _Walk:
    """A read in progress of the points from `start` on and before `end`, in either direction.

    Its position is a bucket, and a position in each of its shards; `bucket` is None before the start.
    """

    plan: SeriesDeclaration
    series: str
    start: datetime = FIRST
    end: datetime = LAST
    newest_first: bool = False
    bucket: datetime | None = None
    positions: Sequence[Position] = ()
    is_over: bool = False
    stats: Stats = field(default_factory=Stats)

    def take(self, size: int) -> Steps[list[Point]]:
        """The next `size` points, fewer only at the end.

        Cost: `size` items of each shard of each bucket that is touched, and one for each bucket.
        """
        points: list[Point] = []
        while not self.is_over and len(points) < size:
            points += yield from self.next_chunk(size - len(points))
        return points

    def next_chunk(self, size: int, of_each: int | None = None) -> Steps[list[Point]]:
        """Up to `size` points of a bucket. Cost: `size` items of each shard, or `of_each`."""
        if self.bucket is None:
            yield from self._enter_next()
        if self.is_over:
            return []
        page = yield from merged(
            self.plan.calls,
            self._streams(),
            _ORDER,
            size,
            positions=self.positions,
            descending=self.newest_first,
            of_each=of_each,
        )
        self.stats, self.positions = self.stats + page.stats, page.positions
        if page.is_over:
            yield from self._enter_next()
        return [Point(point.value, point.at, point.id) for point in page.items]

    def _streams(self) -> list[Stream[TimeSeriesPoint]]:
        assert self.bucket is not None
        streams: list[Stream[TimeSeriesPoint]] = []
        for shard in self.plan.shards_of(self.series):
            query = shard.points(self.bucket, (self.start, self.end))
            query = query.reversed() if self.newest_first else query
            streams.append((query, shard.place(self.bucket)))
        return streams

    def _enter_next(self) -> Steps[None]:
        """Move to the next bucket with points, if there is one."""
        start, end = self.start, self.end
        if self.bucket is not None and self.newest_first:
            end = self.bucket
        elif self.bucket is not None:
            start = self.bucket + self.plan.bucket
        query = self.plan.buckets_of(self.series, start, end)
        following = yield from self.plan.calls.first(
            query.reversed() if self.newest_first else query
        )
        self.is_over, self.positions = following is None, ()
        self.bucket = self.bucket if following is None else self.plan.check_layout(following).bucket


def _whole_seconds(length: timedelta, what: str) -> timedelta:
    if not isinstance(length, timedelta) or length < _SECOND or length % _SECOND:
        raise UsageError(f"{what} must be a timedelta of whole seconds, not {written(length)}")
    return length


def _kept_for(length: timedelta | None, what: str) -> timedelta | None:
    if length is not None and (not isinstance(length, timedelta) or length <= timedelta(0)):
        raise UsageError(
            f"{what} must be a timedelta above 0, or None for ever, not {written(length)}"
        )
    return length


def _resolutions(
    roll_ups: Mapping[timedelta, timedelta | None],
) -> dict[timedelta, timedelta | None]:
    """The roll-ups, the finest first."""
    lengths = sorted(_whole_seconds(every, "the length of a roll-up") for every in roll_ups)
    return {
        every: _kept_for(roll_ups[every], f"what roll_ups= has for {written(every)}")
        for every in lengths
    }
