"""Roll-ups of a resolution that was added later, against a recount, while points come, go and change."""

from __future__ import annotations

import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import LONG, examples
from tests.intercepted_backend import WRITES, InterceptedBackend, once, refuse_after
from tests.structures.interleaving import Interleaved
from tests.structures.measuring import Measured
from tests.structures.test_time_series import NOW, Known, recount

import isotone
from isotone import ManualClock, Store
from isotone.errors import ConnectionFailed, Contended, UsageError
from isotone.model import Steps
from isotone.structures import Point, TimeSeries, waits_and_retries
from isotone.structures import time_series_roll_ups as roll_ups
from isotone.structures.time_series import DAY, HOUR, MINUTE
from isotone.tables.retries import RetryPolicy

WEEK = 7 * DAY
FINE = timedelta(seconds=90)


def known(series: TimeSeries) -> Known:
    return {(each.at, each.id): Decimal(each.value) for each in series.points("s")}


def check(series: TimeSeries, *resolutions: timedelta) -> None:
    start, end = NOW - 4 * WEEK, NOW + 4 * WEEK
    for every in resolutions:
        expected = recount(known(series), every, start, end)
        assert series.summaries("s", every, start, end) == expected


points = st.builds(
    Point,
    st.integers(-50, 50),
    st.integers(-90_000, 90_000).map(lambda each: NOW + timedelta(seconds=each)),
    st.sampled_from(["", "b"]),
)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from([MINUTE, timedelta(hours=7), DAY]),
    st.sampled_from([1, 3]),
    st.sampled_from([MINUTE, FINE, HOUR, WEEK]),
    st.lists(points, max_size=40),
    st.lists(points, max_size=10),
    st.randoms(),
)
def test_a_back_fill_is_what_a_recount_gives(
    bucket: timedelta,
    shards: int,
    every: timedelta,
    before: list[Point],
    after: list[Point],
    chance: random.Random,
) -> None:
    with isotone.connect(clock=ManualClock(NOW)) as store:
        options: dict[str, Any] = {"bucket": bucket, "shards": shards}
        first = TimeSeries(store, "readings", roll_ups={DAY: None}, **options)
        series = TimeSeries(store, "readings", roll_ups={DAY: None, every: None}, **options)
        series.create_table()
        first.add_many("s", before)
        series.add_many("s", after)  # so that some windows are begun, and lack what came before
        for each in chance.sample(before, len(before) // 4):
            series.remove("s", at=each.at, id=each.id)
        told: list[tuple[datetime, int]] = []
        written = series.back_fill("s", every, progress=lambda *each: told.append(each))
        assert [each[0] for each in told] == sorted({each[0] for each in told})
        assert written == (told[-1][1] if told else 0)
        check(series, DAY, every)
        assert series.back_fill("s", every) == 0
        series.add_many("s", [Point(99, each.at, "late") for each in before])
        check(series, DAY, every)


@pytest.mark.parametrize("seed", range(25 if LONG else 4))
def test_a_back_fill_is_exact_while_others_write(seed: int) -> None:
    chance = random.Random(seed)
    shards = chance.choice([1, 2])
    with isotone.connect(clock=ManualClock(NOW)) as store:
        first = TimeSeries(store, "readings", roll_ups={DAY: None}, shards=shards)
        of = {HOUR: None, DAY: None}
        several = [TimeSeries(store, "readings", roll_ups=of, shards=shards) for _ in range(3)]
        first.create_table()
        at = [NOW + timedelta(minutes=7 * number) for number in range(40)]
        first.add_many("s", [Point(chance.randrange(50), each) for each in at])

        def writer(series: TimeSeries, mine: random.Random) -> Steps[None]:
            for number in range(25):
                name = f"{mine.random()}" if number % 2 else ""
                point = Point(Decimal(mine.randrange(50)), mine.choice(at), name)
                what = mine.choice(["add", "add", "replace", "remove"])
                if what == "add":
                    yield from roll_ups.add(series.plan, "s", [point])
                else:
                    place = series.plan.point("s", point)
                    value = place.value if what == "replace" else None
                    yield from roll_ups.correct(series.plan, place, value)

        plan = several[0].plan
        tasks: list[Steps[Any]] = [
            writer(each, random.Random(seed + number)) for number, each in enumerate(several)
        ]
        tasks += [roll_ups.back_fill(plan, "s", HOUR, None, None, None, None) for _ in range(2)]
        Interleaved(store, tasks).run(seed)
        check(several[0], HOUR, DAY)
        assert several[0].back_fill("s", HOUR) == 0


def test_threads_add_meanwhile(store: Store, table_name: str) -> None:
    table = TimeSeries.layout(table_name)
    first = TimeSeries(store, "readings", roll_ups={}, table=table)
    series = [TimeSeries(store, "readings", roll_ups={MINUTE: None}, table=table) for _ in range(3)]
    first.create_table()
    at = [NOW + timedelta(seconds=13 * number) for number in range(60)]
    first.add_many("s", [Point(number, each) for number, each in enumerate(at)])

    def work(number: int) -> None:
        if number == 7:
            series[0].back_fill("s", MINUTE)
        else:
            series[number % 3].add("s", number, at=at[number], id="x")

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(60)))
    check(series[0], MINUTE)


def test_what_was_interrupted_continues(memory: Store) -> None:
    days = {DAY: None}
    TimeSeries(memory, "readings", roll_ups=days).create_table()
    first = TimeSeries(memory, "readings", roll_ups=days)
    first.add_many("s", [Point(n, NOW + timedelta(hours=n)) for n in range(200)])
    of = {HOUR: None, DAY: None}
    broken = isotone.connect(
        InterceptedBackend(memory.backend, refuse_after(4, ConnectionFailed("the cable is out"))),
        clock=ManualClock(NOW),
    )
    told: list[tuple[datetime, int]] = []
    with pytest.raises(ConnectionFailed):
        TimeSeries(broken, "readings", roll_ups=of).back_fill(
            "s", HOUR, progress=lambda *each: told.append(each)
        )
    midnight = NOW.replace(hour=0)
    assert [until for until, _ in told] == [midnight + n * DAY for n in range(1, 5)]
    assert told[-1][1] == 16 + 3 * 24
    series = TimeSeries(memory, "readings", roll_ups=of)
    check(series, DAY)
    assert series.back_fill("s", HOUR, end=told[-1][0]) == 0  # that is done
    assert series.back_fill("s", HOUR, start=told[-1][0]) == 200 - told[-1][1]
    assert series.back_fill("nothing", HOUR) == 0
    check(series, HOUR)


def test_what_is_not_whole_any_more_stays_as_it_is(memory: Store, clock: ManualClock) -> None:
    keep = timedelta(hours=5)
    first = TimeSeries(memory, "readings", keep=keep, roll_ups={MINUTE: keep})
    first.create_table()
    first.add_many("s", [Point(1, NOW - timedelta(minutes=30 * n)) for n in range(9)])
    clock.advance(timedelta(hours=2, minutes=45))  # what was before 5:45 is gone
    of = {MINUTE: keep, HOUR: timedelta(hours=3)}
    series = TimeSeries(memory, "readings", keep=keep, roll_ups=of)
    assert series.back_fill("s", HOUR, start=NOW - DAY) == 2
    hours = series.summaries("s", HOUR, NOW - DAY, NOW + DAY)
    assert [(each.start.hour, each.count) for each in hours] == [
        (7, 2),
        (8, 1),
    ]  # that of 6 is over
    lasting = TimeSeries(memory, "readings", keep=keep, roll_ups={MINUTE: keep, HOUR: None})
    assert lasting.back_fill("s", HOUR) == 1
    hours = series.summaries("s", HOUR, NOW - DAY, NOW + DAY)
    assert [(each.start.hour, each.count) for each in hours] == [(6, 2), (7, 2), (8, 1)]


def test_a_back_fill_sums_roll_ups_that_outlive_their_points(
    memory: Store, clock: ManualClock
) -> None:
    days = {DAY: None}
    first = TimeSeries(memory, "readings", keep=DAY, roll_ups=days, shards=2)
    first.create_table()
    expected: Known = {}
    for number in range(30):
        expected[NOW + number * DAY, ""] = Decimal(number)
        first.add("s", number)
        clock.advance(timedelta(days=1))
    both = {DAY: None, WEEK: None}
    series = TimeSeries(memory, "readings", keep=DAY, roll_ups=both, shards=2)
    assert series.back_fill("s", WEEK, start=NOW) == 0  # there are no points of whole weeks
    start, end = NOW - WEEK, NOW + 6 * WEEK
    weeks = recount(expected, WEEK, start, end)
    assert series.add("s", 100)
    expected[NOW + 30 * DAY, ""] = Decimal(100)
    weeks = recount(expected, WEEK, start, end)
    assert series.back_fill("s", WEEK, source=DAY, start=NOW) > 0
    assert series.summaries("s", WEEK, start, end) == weeks
    assert series.back_fill("s", WEEK, source=DAY, start=NOW) == 0


@pytest.mark.parametrize("which", ["replace", "back_fill"])
def test_a_roll_up_that_was_taken_back_is_not_taken_for_the_next_one(
    memory: Store, which: str
) -> None:
    of = {HOUR: None}
    series = TimeSeries(memory, "readings", roll_ups=of)
    series.create_table()
    TimeSeries(memory, "readings", roll_ups={}).add("s", 7, at=NOW + timedelta(minutes=2))
    series.add("s", 5)

    def meddle() -> None:
        series.remove("s", at=NOW + timedelta(minutes=2))
        series.remove("s", at=NOW)
        series.add_many("s", [Point(5, NOW), Point(1, NOW + timedelta(minutes=1))])

    late = isotone.connect(
        InterceptedBackend(memory.backend, once(meddle, WRITES)), clock=ManualClock(NOW)
    )
    if which == "replace":
        assert TimeSeries(late, "readings", roll_ups=of).replace("s", 9, at=NOW)
    else:
        TimeSeries(late, "readings", roll_ups=of).back_fill("s", HOUR)
    check(series, HOUR)


def test_a_window_that_never_rests(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        waits_and_retries, "READ_THEN_WRITE", RetryPolicy(attempts=5, first=0.0, longest=0.0)
    )
    TimeSeries(memory, "readings", roll_ups={MINUTE: None}).create_table()
    first = TimeSeries(memory, "readings", roll_ups={MINUTE: None})
    first.add_many("s", [Point(n, NOW + timedelta(minutes=n)) for n in range(90)])
    of = {MINUTE: None, DAY: None}
    series = TimeSeries(memory, "readings", roll_ups=of)

    numbers = itertools.count()

    def add(operation: str, request: Any) -> None:
        """A point comes with every reading of points."""
        if operation == "Query" and "POINT" in str(request):
            series.add("s", 1, id=f"{next(numbers)}")

    restless = isotone.connect(InterceptedBackend(memory.backend, add), clock=ManualClock(NOW))
    hot = TimeSeries(restless, "readings", roll_ups=of)
    with pytest.raises(Contended, match="source="):
        hot.back_fill("s", DAY)
    hot.back_fill("s", DAY, source=MINUTE)
    check(series, MINUTE, DAY)


def test_what_is_refused(memory: Store) -> None:
    series = TimeSeries(memory, "readings", roll_ups={MINUTE: None, FINE: None, HOUR: None})
    series.create_table()
    with pytest.raises(UsageError, match=r"no roll-ups of timedelta\(days=1\)"):
        series.back_fill("s", DAY)
    for source in (FINE, HOUR):
        with pytest.raises(UsageError, match="do not add up"):
            series.back_fill("s", MINUTE, source=source)
    series.add("s", 1)
    for option in ("start", "end"):
        with pytest.raises(UsageError, match="naive"):
            series.back_fill("s", MINUTE, **{option: datetime(2027, 1, 1)})  # type: ignore[arg-type]


def test_what_it_costs() -> None:
    with isotone.open() as database, isotone.connect(database) as inner:
        measured = Measured(inner.backend)
        store = isotone.connect(measured, clock=ManualClock(NOW))
        first = TimeSeries(store, "readings", roll_ups={})
        first.create_table()
        midnight = NOW.replace(hour=0)
        first.add_many("s", [Point(n, midnight + timedelta(minutes=10 * n)) for n in range(144)])
        series = TimeSeries(store, "readings", roll_ups={HOUR: None})
        measured.take()
        assert series.back_fill("s", HOUR) == 24
        # The ends of the list of buckets; the bucket, its points and no roll-ups; and the end.
        assert measured.take() == (2 + 1 + 1 + 144, 24, 2 + 1 + 3 + 1)
        assert series.back_fill("s", HOUR) == 0
        assert measured.take() == (2 + 1 + 1 + 144 + 24, 0, 2 + 1 + 3)
