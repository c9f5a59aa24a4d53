"""Series with retention, while time goes on, agree with a list of what was accepted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.effort import examples

import isotone
from isotone import ManualClock
from isotone.structures import Point, Summary, TimeSeries
from isotone.structures.time_series import HOUR, MINUTE

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEEP = timedelta(hours=2)
ROLL_UPS = {MINUTE: timedelta(minutes=40), HOUR: timedelta(hours=6), 6 * HOUR: None}

values = st.integers(-9, 9).map(Decimal)
delays = st.integers(0, 180).map(lambda minutes: timedelta(minutes=minutes, seconds=minutes % 7))


class Series(RuleBasedStateMachine):
    """Two objects of one time series, each with what it keeps in mind, and one over several shards."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock(NOW)
        self.store = isotone.connect(clock=self.clock)
        kept = {"keep": KEEP, "roll_ups": ROLL_UPS, "bucket": HOUR}
        self.pair = [TimeSeries(self.store, "one", **kept) for _ in range(2)]  # type: ignore[arg-type]
        self.sharded = TimeSeries(self.store, "sharded", shards=3, **kept)  # type: ignore[arg-type]
        self.sharded.create_table()
        self.points: dict[datetime, Decimal] = {}
        self.windows: dict[tuple[timedelta, datetime], list[Decimal]] = {}

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)

    def is_kept(self, end: datetime, keep: timedelta | None) -> bool:
        return keep is None or end + keep > self.now

    def take(self, point: Point) -> bool:
        """Whether a point counts; then it is noted, and what it adds to."""
        if not self.is_kept(point.at, KEEP) or point.at in self.points:
            return False
        self.points[point.at] = Decimal(point.value)
        for every, keep in ROLL_UPS.items():
            start = EPOCH + (point.at - EPOCH) // every * every
            if self.is_kept(start + every, keep):
                self.windows.setdefault((every, start), []).append(Decimal(point.value))
        return True

    @rule(minutes=st.integers(1, 50))
    def wait(self, minutes: int) -> None:
        self.clock.advance(timedelta(minutes=minutes))

    @rule(value=values, delay=delays, which=st.integers(0, 1))
    def add(self, value: Decimal, delay: timedelta, which: int) -> None:
        at = self.now - delay
        counts = self.take(Point(value, at))
        for series in (self.pair[which], self.sharded):
            assert series.add("s", value, at=at) == counts

    @rule(points=st.lists(st.tuples(values, delays), max_size=6), which=st.integers(0, 1))
    def add_many(self, points: list[tuple[Decimal, timedelta]], which: int) -> None:
        found = [Point(value, self.now - delay) for value, delay in points]
        number = sum([self.take(point) for point in found])
        for series in (self.pair[which], self.sharded):
            assert series.add_many("s", found) == number

    @rule()
    def look(self) -> None:
        self.check()

    def check(self) -> None:
        """What is kept is there, and nothing else."""
        expected = [
            Point(value, at) for at, value in sorted(self.points.items()) if self.is_kept(at, KEEP)
        ]
        start, end = NOW - 9 * HOUR, self.now + 9 * HOUR
        for series in (self.pair[0], self.sharded):
            assert list(series.points("s")) == expected
            assert series.latest("s") == (expected[-1] if expected else None)
            for every, keep in ROLL_UPS.items():
                assert series.summaries("s", every, start, end) == [
                    Summary(begin, every, len(of), sum(of, Decimal(0)), min(of), max(of))
                    for (length, begin), of in sorted(self.windows.items())
                    if length == every and self.is_kept(begin + every, keep)
                ]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            with self.store:
                self.check()


Series.TestCase.settings = settings(
    max_examples=examples(25), stateful_step_count=20, deadline=None
)
TestSeries = Series.TestCase
