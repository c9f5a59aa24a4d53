"""Time series: points in the order of time, with roll-ups that are right at every moment.

A series is cut into buckets of time, each a partition of its own, so that none grows without bound, and its
points are found by range in either direction. With each point its roll-ups are written (how many, the sum,
the lowest and the highest of its minute, hour and day), in the same transaction: a point that is sent twice
is stored once and counted once.

    readings = TimeSeries(store, "readings")
    readings.add("sensor:1", 21.5)
    readings.chart("sensor:1", yesterday, now, at_most=200)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from isotone.errors import UsageError
from isotone.model import Steps, Table
from isotone.structures.operation import Batches, S, Structure, iteration, operation
from isotone.structures.time_series import correcting, reading, writing
from isotone.structures.time_series.entries import (
    MOST_SHARDS,
    Point,
    Summary,
    TimeSeriesBucket,
    TimeSeriesPoint,
    TimeSeriesRollUp,
    filled,
    gathered,
)
from isotone.structures.time_series.plan import FIRST, LAST, Plan
from isotone.structures.time_series.reading import PointPage, Walk
from isotone.structures.windows import floor, instant, written

TIME_SERIES: Final = Table("time-series")
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
FOR_EVER: Final[Mapping[timedelta, timedelta | None]] = {MINUTE: None, HOUR: None, DAY: None}
_SECOND: Final = timedelta(seconds=1)
_AT_ONCE: Final = 250  # points that an iteration reads


class TimeSeries(Structure[S]):
    """Series of points, all kept in the same way.

    `bucket`: how much time goes into one partition. `keep`: how long points are kept; for ever, unless it
    is given. `roll_ups`: the length of each resolution, and for how long it is kept. `shards`: over how
    many partitions each bucket is spread, where one series has more points than a partition takes.
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
        self.name = name
        if not 1 <= shards <= MOST_SHARDS:
            raise UsageError(f"a time series has 1 to {MOST_SHARDS} shards, not {shards}")
        self.plan = Plan(
            calls=self.calls,
            points=self.kept(TimeSeriesPoint),
            buckets=self.kept(TimeSeriesBucket),
            summaries=self.kept(TimeSeriesRollUp),
            name=name,
            bucket=_whole_seconds(bucket, "a bucket"),
            keep=_kept_for(keep, "keep"),
            roll_ups=_resolutions(roll_ups),
            shards=shards,
        )

    @staticmethod
    def layout(name: str = "time-series") -> Table:
        """A table for time series; any with two strings as its primary key will do."""
        return Table(name)

    # Writing

    @operation
    def add(
        self,
        series: str,
        value: int | float | Decimal,
        *,
        at: datetime | None = None,
        id: str = "",  # noqa: A002 - the word that users know
    ) -> Steps[bool]:
        """Add a point; whether it was counted.

        It was not where the point is there already, or is older than points are kept. Points of the same
        instant are told apart by `id`. Cost: one transaction of the point and its roll-ups; a read of them
        before, where they are new to this object or have to be widened.
        """
        point = Point(value, at or self.plan.now(), id)
        return (yield from writing.add(self.plan, series, [point])) == 1

    @operation
    def add_many(self, series: str, points: Iterable[Point]) -> Steps[int]:
        """Add many points of a series; how many were counted.

        Cost: a transaction for each ninety points or so of a bucket. Interrupted, it is run again: what
        was added is not added again.
        """
        return (yield from writing.add(self.plan, series, points))

    @operation
    def replace(
        self,
        series: str,
        value: int | float | Decimal,
        *,
        at: datetime,
        id: str = "",  # noqa: A002 - the word that users know
    ) -> Steps[bool]:
        """Give a point another value, in its roll-ups too; whether it was there.

        Cost: a read of the point and of its roll-ups, and one transaction of them. Where it was the lowest
        or the highest of a window, a read of all points of that window and shard.
        """
        point = self.plan.point(series, Point(value, at, id))
        return (yield from correcting.correct(self.plan, point, point.value))

    @operation
    def remove(
        self,
        series: str,
        *,
        at: datetime,
        id: str = "",  # noqa: A002 - the word that users know
    ) -> Steps[bool]:
        """Take a point back, out of its roll-ups too; whether it was there. Cost: that of `replace`."""
        point = self.plan.point(series, Point(0, at, id))
        return (yield from correcting.correct(self.plan, point, None))

    @operation
    def back_fill(
        self,
        series: str,
        every: timedelta,
        *,
        source: timedelta | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        progress: correcting.Progress | None = None,
    ) -> Steps[int]:
        """Make the roll-ups of a resolution that was added after its points; how many were written.

        While points are added: first have all who add them know the resolution. Each window of which all
        points are kept is counted anew, or summed up from `source`, a finer resolution that is complete.
        Run again, it writes what is still wrong: nothing, after the end. `progress` is told up to where it
        is done, with which as `start` it goes on, and how many were written.

        Cost: a consistent read of the points, and a write for each window, at twice the price.
        Raises `Contended` where points come into a window faster than it is read.
        """
        self._check_kept(every)
        if source is not None:
            self._check_kept(source)
            if source >= every or every % source:
                raise UsageError(f"windows of {source} do not add up to those of {every}")
        return (
            yield from correcting.back_fill(self.plan, series, every, source, start, end, progress)
        )

    # Points

    @operation
    def latest(self, series: str) -> Steps[Point | None]:
        """The newest point; None where there is none. Cost: two reads, one more for each shard."""
        found = yield from Walk(self.plan, series, newest_first=True).some(1)
        return found[0] if found else None

    @iteration
    def points(
        self,
        series: str,
        start: datetime = FIRST,
        end: datetime = LAST,
        *,
        newest_first: bool = False,
    ) -> Batches[Point]:
        """The points from `start` on and before `end`, one after the other, read as they are wanted.

        Cost: each point, over shards some of them twice, and an item for each bucket.
        """
        walk = Walk(self.plan, series, start, end, newest_first)
        while not walk.is_over:
            yield walk.part(_AT_ONCE, -(-_AT_ONCE // self.plan.shards))

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
        """Exactly so many points, fewer only at the end, and the cursor behind them.

        Cost: an item for each point, times the shards, and one for each bucket. Raises `InvalidCursor`.
        """
        if size < 1:
            raise UsageError(f"a page of size {size} has no place for anything; give 1 or more")
        walk = Walk(self.plan, series, start, end, newest_first)
        of = {
            "series": [self.plan.name, series, newest_first, self.plan.shards],
            "span": [floor(each, timedelta(microseconds=1)).isoformat() for each in (start, end)],
        }
        if cursor is not None:
            bucket, walk.behind = self.calls.unseal(cursor, **of)
            walk.bucket = datetime.fromisoformat(bucket)
        found = yield from walk.some(size)
        further = None
        if walk.bucket is not None and not walk.is_over:
            further = self.calls.seal([walk.bucket.isoformat(), walk.behind], **of)
        return PointPage(found, further, walk.stats)

    # Roll-ups

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
        """What the windows of a resolution come to, from the one that `start` lies in; with `fill` also the empty.

        Cost: an item for each window of each shard, and a query for each 1,440 windows.
        """
        return (yield from self._summaries(series, every, start, end, fill=fill))

    @operation
    def chart(
        self, series: str, start: datetime, end: datetime, *, at_most: int = 500, fill: bool = True
    ) -> Steps[list[Summary]]:
        """A span in at most so many windows of equal length, whatever is kept of it.

        Of the finest resolution that has no more windows than that in the span and is kept for as long; of
        several windows together, where none is as coarse. Cost: that of `summaries`.
        """
        if at_most < 1 or instant(start) >= instant(end):
            raise UsageError("a chart has one window or more, of a span that ends after it starts")
        every = self._resolution(start, end, at_most)
        begin = floor(start, every)
        windows = -(-(end - begin) // every)
        length = every * -(-windows // at_most)
        found = yield from self._summaries(series, every, begin, end, fill=False)
        joined = gathered(found, length, begin)
        return filled(joined, length, begin, end) if fill else joined

    @operation
    def gaps(
        self, series: str, every: timedelta, start: datetime, end: datetime
    ) -> Steps[list[tuple[datetime, datetime]]]:
        """When there was nothing: the spans of whole windows without a point. Cost: that of `summaries`."""
        found: list[tuple[datetime, datetime]] = []
        for each in (yield from self._summaries(series, every, start, end, fill=True)):
            if each.count:
                continue
            begin, reach = each.start, each.start + every
            if found and found[-1][1] == begin:
                begin = found.pop()[0]
            found.append((begin, reach))
        return found

    def _summaries(
        self, series: str, every: timedelta, start: datetime, end: datetime, *, fill: bool
    ) -> Steps[list[Summary]]:
        self._check_kept(every)
        begin, end = floor(start, every), instant(end)
        found = yield from reading.summaries(self.plan, series, every, (begin, end))
        return filled(found, every, begin, end) if fill else found

    def _resolution(self, start: datetime, end: datetime, at_most: int) -> timedelta:
        """The finest resolution that is kept since `start` with few enough windows; else the coarsest."""
        if not self.plan.roll_ups:
            raise UsageError(f"no roll-ups are kept of {self.plan.name!r}; read its points")
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
                f"{self.plan.name!r} has no roll-ups of {written(every)}, but of {known}; it is roll_ups= "
                "that says which are kept"
            )


def _whole_seconds(length: timedelta, what: str) -> timedelta:
    if not isinstance(length, timedelta) or length < _SECOND or length % _SECOND:
        raise UsageError(f"{what} is a timedelta of whole seconds, not {written(length)}")
    return length


def _kept_for(length: timedelta | None, what: str) -> timedelta | None:
    if length is not None and (not isinstance(length, timedelta) or length <= timedelta(0)):
        raise UsageError(f"{what} is a timedelta above 0, or None for ever, not {written(length)}")
    return length


def _resolutions(
    roll_ups: Mapping[timedelta, timedelta | None],
) -> dict[timedelta, timedelta | None]:
    """The roll-ups, the finest first."""
    lengths = sorted(_whole_seconds(each, "the length of a roll-up") for each in roll_ups)
    return {
        each: _kept_for(roll_ups[each], f"what roll_ups= has for {written(each)}")
        for each in lengths
    }
