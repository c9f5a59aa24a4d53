"""Time series against a list of points that is counted anew for every question."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.programs import CONTEXT
from tests.structures.measuring import Measured
from tests.structures.processes import add_points

import isotone
from isotone import Attr, Entity, Key, ManualClock, Store
from isotone.errors import InvalidCursor, OutOfRange, UsageError
from isotone.server import running_server
from isotone.structures import Point, Summary, TimeSeries
from isotone.structures.sharding import shard_of
from isotone.structures.time_series import DAY, HOUR, MINUTE

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)  # the time of the fixtures' clock
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Known = dict[tuple[datetime, str], Decimal]


def recount(known: Known, every: timedelta, start: datetime, end: datetime) -> list[Summary]:
    """All windows of a span that have points."""
    windows: dict[datetime, list[Decimal]] = {}
    for (at, _), value in known.items():
        windows.setdefault(EPOCH + (at - EPOCH) // every * every, []).append(value)
    first = EPOCH + (start - EPOCH) // every * every
    return [
        Summary(begin, every, len(found), sum(found, Decimal(0)), min(found), max(found))
        for begin, found in sorted(windows.items())
        if first <= begin < end
    ]


def inside(known: Known, start: datetime, end: datetime) -> list[Point]:
    return [
        Point(value, at, name) for (at, name), value in sorted(known.items()) if start <= at < end
    ]


seconds = st.integers(-90_000, 90_000) | st.integers(-120, 120)
moments = seconds.map(lambda each: NOW + timedelta(seconds=each))
values = st.decimals(-50, 50, places=1) | st.integers(-50, 50)
points = st.builds(Point, values, moments, st.sampled_from(["", "b", "a#1"]))
options = st.fixed_dictionaries(
    {
        "bucket": st.sampled_from([timedelta(minutes=1), timedelta(hours=7), DAY]),
        "shards": st.sampled_from([1, 3]),
        "roll_ups": st.sampled_from(
            [{MINUTE: None, HOUR: None, DAY: None}, {timedelta(seconds=90): None}]
        ),
    }
)


@settings(max_examples=examples(80), deadline=None)
@given(options, st.lists(points, max_size=40), st.lists(moments, min_size=2, max_size=2), st.data())
def test_a_time_series_is_what_a_recount_gives(
    options: dict[str, Any], found: list[Point], span: list[datetime], data: st.DataObject
) -> None:
    start, end = sorted(span)
    with isotone.connect(clock=ManualClock(NOW)) as store:
        series = TimeSeries(store, "readings", **options)
        series.create_table()
        known: Known = {}
        while found:
            number = data.draw(st.integers(1, len(found)))
            some, found = found[:number], found[number:]
            fresh = {}
            for each in some:
                if (each.at, each.id) not in known:
                    fresh.setdefault((each.at, each.id), Decimal(each.value))
            if len(some) == 1:
                (one,) = some
                assert series.add("s", one.value, at=one.at, id=one.id) == bool(fresh)
            else:
                assert series.add_many("s", some) == len(fresh)
            known |= fresh
        check(series, known, start, end, data)


def check(
    series: TimeSeries, known: Known, start: datetime, end: datetime, data: st.DataObject
) -> None:
    expected = inside(known, start, end)
    assert list(series.points("s", start, end)) == expected
    assert list(series.points("s", start, end, newest_first=True)) == expected[::-1]
    newest_first = data.draw(st.booleans())
    paged, cursor = [], None
    while True:
        size = data.draw(st.integers(1, 5))
        page = series.page("s", start, end, size=size, newest_first=newest_first, cursor=cursor)
        paged += page.items
        cursor = page.cursor
        assert len(page) == size or cursor is None
        if cursor is None:
            break
    assert paged == (expected[::-1] if newest_first else expected)
    everything = inside(known, EPOCH, NOW + timedelta(days=9))
    assert series.latest("s") == (everything[-1] if everything else None)
    for every in series.plan.roll_ups:
        assert series.summaries("s", every, start, end) == recount(known, every, start, end)
    every = max(series.plan.roll_ups)
    full = series.summaries("s", every, start, end, fill=True)
    assert [each for each in full if each.count] == recount(known, every, start, end)
    assert all(one.start + every == other.start for one, other in pairwise(full))


def test_a_time_series_is_the_same_on_every_backend(store: Store, table_name: str) -> None:
    chance, known = random.Random(20), {}
    series = TimeSeries(store, "readings", shards=2, table=TimeSeries.layout(table_name))
    series.create_table()
    for number in range(50):
        at = NOW + timedelta(seconds=chance.randrange(-200_000, 1))
        known[at, ""] = Decimal(chance.randrange(1000)) / 10
        assert series.add("s", known[at, ""], at=at)
        if number % 5 == 0:
            assert not series.add("s", 1, at=at)
    start = NOW - timedelta(days=3)
    assert list(series.points("s", start, NOW + DAY)) == inside(known, start, NOW + DAY)
    for every in (MINUTE, HOUR, DAY):
        assert series.summaries("s", every, start, NOW + DAY) == recount(
            known, every, start, NOW + DAY
        )
    assert series.latest("s") == inside(known, start, NOW + DAY)[-1]


# Retention


def test_what_is_too_old_goes_and_is_not_counted(memory: Store, clock: ManualClock) -> None:
    keep = {MINUTE: timedelta(hours=2), HOUR: timedelta(days=2), DAY: None}
    series = TimeSeries(memory, "readings", keep=timedelta(hours=1), roll_ups=keep)
    series.create_table()
    assert series.add("s", 1)
    assert not series.add("s", 2, at=NOW - timedelta(hours=1))
    clock.advance(timedelta(hours=1))
    assert series.latest("s") is None
    assert list(series.points("s")) == []
    assert not series.add(
        "s", 1, at=NOW
    )  # as it was sent before: what is gone cannot be counted twice
    end = NOW + timedelta(days=1)
    assert len(series.summaries("s", MINUTE, NOW, end)) == 1
    clock.advance(timedelta(hours=1, minutes=1))
    assert series.summaries("s", MINUTE, NOW, end) == []
    assert len(series.summaries("s", HOUR, NOW, end)) == 1
    clock.advance(timedelta(days=3))
    assert series.summaries("s", HOUR, NOW, end) == []
    assert [each.total for each in series.summaries("s", DAY, NOW, end)] == [1]
    assert series.add("s", 5)
    assert {each.every for each in series.chart("s", NOW, NOW + DAY, at_most=2000)} == {DAY}


def test_a_roll_up_that_is_gone_is_not_begun_again(memory: Store, clock: ManualClock) -> None:
    series = TimeSeries(memory, "readings", roll_ups={MINUTE: MINUTE, DAY: None})
    series.create_table()
    assert series.add("s", 1)
    clock.advance(timedelta(minutes=3))
    assert series.add("s", 2, at=NOW + timedelta(seconds=1))
    clock.set(NOW)
    minutes = [each.count for each in series.summaries("s", MINUTE, NOW, NOW + HOUR)]
    assert minutes in ([1], [])  # as it was, or deleted by the database
    assert [each.count for each in series.summaries("s", DAY, NOW, NOW + HOUR)] == [2]


# Resolutions and gaps


def test_a_chart_has_as_many_windows_as_asked_for(memory: Store) -> None:
    series = TimeSeries(memory, "readings")
    series.create_table()
    known = {(NOW + timedelta(minutes=7 * number), ""): Decimal(number) for number in range(500)}
    series.add_many("s", [Point(value, at) for (at, _), value in known.items()])
    for end, at_most, every, number in [
        (timedelta(hours=8), 500, MINUTE, 480),
        (timedelta(hours=8), 100, HOUR, 8),
        (timedelta(days=2), 100, HOUR, 48),
        (timedelta(days=2), 10, DAY, 3),
        (timedelta(days=2), 2, 2 * DAY, 2),
        (timedelta(days=2), 1, 3 * DAY, 1),
    ]:
        chart = series.chart("s", NOW, NOW + end, at_most=at_most)
        assert {each.every for each in chart} == {every}
        assert len(chart) == number
        begin, reach = chart[0].start, chart[-1].start + every
        assert begin <= NOW < begin + every
        assert NOW + end <= reach
        inner = inside(known, begin, reach)
        assert sum(each.count for each in chart) == len(inner)
        assert sum(each.total for each in chart) == sum(Decimal(each.value) for each in inner)
    assert series.chart("nothing", NOW, NOW + DAY, fill=False) == []
    average = series.chart("s", NOW, NOW + DAY, at_most=1)[0].average
    assert average is not None


def test_gaps(memory: Store) -> None:
    series = TimeSeries(memory, "readings")
    series.create_table()
    for hours in (1, 2, 5):
        series.add("s", 1, at=NOW + timedelta(hours=hours, minutes=30))
    eight = NOW.hour
    gaps = series.gaps("s", HOUR, NOW, NOW + timedelta(hours=8))
    assert [(begin.hour - eight, end.hour - eight) for begin, end in gaps] == [
        (0, 1),
        (3, 5),
        (6, 8),
    ]
    long = series.gaps("s", HOUR, NOW, NOW + timedelta(hours=8), at_least=2 * HOUR)
    assert [(begin.hour - eight, end.hour - eight) for begin, end in long] == [(3, 5), (6, 8)]
    assert series.gaps("s", HOUR, NOW, NOW + timedelta(hours=8), at_least=3 * HOUR) == []
    with pytest.raises(UsageError, match="at_least"):
        series.gaps("s", HOUR, NOW, NOW + timedelta(hours=8), at_least=-HOUR)


# Buckets


def test_empty_buckets_cost_nothing(memory: Store) -> None:
    series = TimeSeries(memory, "readings", bucket=MINUTE, roll_ups={})
    series.create_table()
    for days in (0, 400, 800):
        series.add("s", days, at=NOW - timedelta(days=days))
    page = series.page("s", newest_first=True, size=3)
    assert [each.value for each in page] == [0, 400, 800]
    assert page.stats.scanned == 3
    partitions = {
        item["PK"]["S"]
        for item in memory.backend.execute("Scan", {"TableName": "time-series"})["Items"]
        if item["SK"]["S"].startswith("POINT")
    }
    assert len(partitions) == 3


def test_the_stored_form(memory: Store) -> None:
    series = TimeSeries(memory, "readings", roll_ups={MINUTE: None})
    series.create_table()
    series.add("sensor:1", Decimal("21.5"), id="x")
    items = memory.backend.execute("Scan", {"TableName": "time-series"})["Items"]
    assert {(item["PK"]["S"], item["SK"]["S"]) for item in items} == {
        ("_keys", "_keys"),
        (
            "TIME_SERIES#readings#sensor:1#2027-01-15T00:00:00Z#00",
            "POINT#2027-01-15T08:00:00.000000Z#x",
        ),
        ("TIME_SERIES_BUCKETS#readings#sensor:1", "BUCKET#2027-01-15T00:00:00Z"),
        (
            "TIME_SERIES_ROLL_UP#readings#sensor:1#60#2027-01-15T00:00:00Z#00",
            "ROLL_UP#2027-01-15T08:00:00Z",
        ),
    }


# Corrections

names = st.sampled_from(["", "b"])
minutes = st.integers(0, 90).map(lambda each: NOW + timedelta(minutes=each))
corrections = st.tuples(
    st.sampled_from(["add", "add", "replace", "remove"]), values, minutes, names, st.integers(0, 1)
)


@settings(max_examples=examples(150), deadline=None)
@given(options, st.lists(corrections, max_size=40))
def test_corrections_are_what_a_recount_gives(
    options: dict[str, Any], found: list[tuple[str, Decimal, datetime, str, int]]
) -> None:
    with isotone.connect(clock=ManualClock(NOW)) as store:
        pair = [TimeSeries(store, "readings", **options) for _ in range(2)]
        pair[0].create_table()
        known: Known = {}
        for what, value, at, name, which in found:
            is_there = (at, name) in known
            if what == "add":
                assert pair[which].add("s", value, at=at, id=name) != is_there
                known.setdefault((at, name), Decimal(value))
            elif what == "replace":
                assert pair[which].replace("s", value, at=at, id=name) == is_there
                known |= {(at, name): Decimal(value)} if is_there else {}
            else:
                assert pair[which].remove("s", at=at, id=name) == is_there
                known.pop((at, name), None)
        end = NOW + timedelta(hours=2)
        assert list(pair[0].points("s")) == inside(known, NOW, end)
        for every in pair[0].plan.roll_ups:
            assert pair[0].summaries("s", every, NOW, end) == recount(known, every, NOW, end)


def test_what_an_object_has_in_mind_is_not_relied_on_after_a_correction(memory: Store) -> None:
    one, other = (TimeSeries(memory, "readings") for _ in range(2))
    one.create_table()
    for second, value in enumerate((-5, 0, 5)):
        one.add("s", value, at=NOW + timedelta(seconds=second))
    other.remove("s", at=NOW)
    other.remove("s", at=NOW + timedelta(seconds=2))
    one.add("s", -3, at=NOW + timedelta(seconds=3))
    one.add("s", 3, at=NOW + timedelta(seconds=4))
    (day,) = other.summaries("s", DAY, NOW, NOW + HOUR)
    assert (day.count, day.total, day.lowest, day.highest) == (3, 0, -3, 3)


def test_threads_correct_and_add_at_once(store: Store, table_name: str) -> None:
    table = TimeSeries.layout(table_name)
    series = [TimeSeries(store, "readings", table=table) for _ in range(3)]
    series[0].create_table()
    series[0].add_many("s", [Point(n, NOW + timedelta(seconds=n)) for n in range(20)])

    def work(number: int) -> None:
        mine, at = series[number % 3], NOW + timedelta(seconds=number % 20)
        if number % 4 == 0:
            mine.remove("s", at=at)
        elif number % 4 == 1:
            mine.replace("s", number * 7 % 60 - 30, at=at)
        else:
            mine.add("s", number * 7 % 60 - 30, at=at, id=str(number % 3))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, random.Random(5).sample(range(60), 60)))
    known = {(each.at, each.id): Decimal(each.value) for each in series[0].points("s")}
    for every in (MINUTE, HOUR, DAY):
        found = series[0].summaries("s", every, NOW, NOW + DAY)
        assert found == recount(known, every, NOW, NOW + DAY)


def test_an_extreme_of_a_window_that_is_half_gone_is_not_corrected(
    memory: Store, clock: ManualClock
) -> None:
    series = TimeSeries(memory, "readings", keep=HOUR, roll_ups={DAY: None})
    series.create_table()
    for number in (5, 1, 9, 4):
        series.add("s", number)
        clock.advance(timedelta(minutes=25))
    with pytest.raises(UsageError, match="have expired"):
        series.remove("s", at=NOW + timedelta(minutes=50))
    assert series.remove("s", at=NOW + timedelta(minutes=75))
    (day,) = series.summaries("s", DAY, NOW, NOW + HOUR)
    assert (day.count, day.total, day.lowest, day.highest) == (3, 15, 1, 9)


def test_points_of_all_the_calendar_are_read(memory: Store) -> None:
    series = TimeSeries(memory, "readings")
    series.create_table()
    for year in (1000, 1969, 9998):
        assert series.add("s", year, at=datetime(year, 12, 31, tzinfo=UTC))
    assert [each.value for each in series.points("s")] == [1000, 1969, 9998]
    assert [each.value for each in series.page("s", newest_first=True)] == [9998, 1969, 1000]
    assert series.latest("s") == Point(Decimal(9998), datetime(9998, 12, 31, tzinfo=UTC))


def test_what_cannot_be_stored_exactly_is_refused(memory: Store) -> None:
    series = TimeSeries(memory, "readings")
    series.create_table()
    for value in (Decimal("1e200"), Decimal("1e-140"), Decimal("1." + "1" * 40)):
        with pytest.raises(OutOfRange, match="stored exactly"):
            series.add("s", value)
    with pytest.raises(OutOfRange, match="the sum of"):
        series.add_many("s", [Point(Decimal("1e60"), NOW), Point(Decimal("1e-60"), NOW, "b")])
    assert list(series.points("s")) == []


def test_corrections_of_many_digits_are_exact(memory: Store) -> None:
    series = TimeSeries(memory, "readings", roll_ups={DAY: None})
    series.create_table()
    large = 10**37 + 1
    for number, value in enumerate((0, large, 2 * large)):
        series.add("s", value, at=NOW + timedelta(seconds=number))
    assert series.replace("s", large + 1, at=NOW + timedelta(seconds=1))
    (day,) = series.summaries("s", DAY, NOW, NOW + HOUR)
    assert day.total == 3 * 10**37 + 4
    assert series.remove("s", at=NOW + timedelta(seconds=1))
    (day,) = series.summaries("s", DAY, NOW, NOW + HOUR)
    assert day.total == 2 * 10**37 + 2


# Writers at once


def totals(series: TimeSeries, every: timedelta) -> tuple[int, Decimal]:
    found = series.summaries("s", every, NOW - 9 * DAY, NOW + 9 * DAY)
    return sum(each.count for each in found), sum((each.total for each in found), Decimal(0))


def test_all_shards_may_be_in_use(memory: Store) -> None:
    """Nothing grows towards the last of them: no headroom is reported."""
    series = TimeSeries(memory, "readings", shards=100, bucket=HOUR, roll_ups={HOUR: None})
    series.create_table()
    points = [Point(1, NOW, str(number)) for number in range(1000)]
    assert series.add_many("s", points) == 1000  # warnings are errors here
    shards = {shard_of(f"{NOW.isoformat()}#{point.id}", 100) for point in points}
    assert max(shards) == 99


@pytest.mark.parametrize("shards", [1, 4])
def test_threads_count_every_point_once(store: Store, table_name: str, shards: int) -> None:
    table = TimeSeries.layout(table_name)
    series = [TimeSeries(store, "readings", shards=shards, table=table) for _ in range(2)]
    series[0].create_table()
    values = [(number, NOW + timedelta(seconds=number % 40)) for number in range(40)] * 2
    random.Random(3).shuffle(values)
    with ThreadPoolExecutor(6) as pool:
        added = list(
            pool.map(
                lambda each: series[each[0] % 2].add("s", each[0] * 7 % 41 - 20, at=each[1]), values
            )
        )
    assert sum(added) == 40
    known = {
        (NOW + timedelta(seconds=number), ""): Decimal(number * 7 % 41 - 20) for number in range(40)
    }
    for every in (MINUTE, HOUR, DAY):
        assert series[0].summaries("s", every, NOW, NOW + DAY) == recount(
            known, every, NOW, NOW + DAY
        )


def test_writers_that_are_killed_and_run_again_count_once(tmp_path: Path) -> None:
    path = str(tmp_path / "series.db")
    with isotone.connect(path) as store:
        series = TimeSeries(store, "readings")
        series.create_table()
        for _ in range(2):
            writers = [CONTEXT.Process(target=add_points, args=(path, NOW)) for _ in range(2)]
            for writer in writers:
                writer.start()
            deadline = time.monotonic() + 30
            before = totals(series, DAY)[0]
            while totals(series, DAY)[0] < before + 100 and time.monotonic() < deadline:
                time.sleep(0.02)
            for writer in writers:
                if writer.pid is not None:
                    os.kill(writer.pid, signal.SIGKILL)
                writer.join()
            written = [int(each.value) for each in series.points("s")]
            assert totals(series, MINUTE) == (len(written), sum(written))
        last = CONTEXT.Process(target=add_points, args=(path, NOW))
        last.start()
        last.join()
        assert last.exitcode == 0
        assert [each.value for each in series.points("s")] == list(range(2000))
        for every in (MINUTE, HOUR, DAY):
            assert totals(series, every) == (2000, sum(range(2000)))


@pytest.mark.parametrize("kind", ["memory", "file", "http"])
def test_a_time_series_is_awaited_over_an_async_store(kind: str, tmp_path: Path) -> None:
    async def program(address: str) -> list[int | float | Decimal]:
        async with isotone.aconnect(address) as store:
            series = TimeSeries(store, "readings")
            await series.create_table()
            at = [NOW + timedelta(hours=7 * number) for number in range(9)]
            await asyncio.gather(
                *(series.add("s", place, at=each) for place, each in enumerate(at))
            )
            assert (await series.latest("s")) == Point(Decimal(8), at[-1])
            days = await series.summaries("s", DAY, NOW, at[-1])
            assert sum(each.count for each in days) == 9
            fine = TimeSeries(store, "readings", roll_ups={6 * HOUR: None})
            assert await fine.back_fill("s", 6 * HOUR) == 9
            return [each.value async for each in series.points("s", newest_first=True)]

    with isotone.open() as database, running_server(database) as url:
        address = {"memory": ":memory:", "file": str(tmp_path / "series.db"), "http": url}[kind]
        assert asyncio.run(program(address)) == list(range(8, -1, -1))


# Cursors, refusals, neighbours


def test_a_cursor_belongs_to_its_read(memory: Store) -> None:
    series = TimeSeries(memory, "readings")
    series.create_table()
    for number in range(9):
        series.add("s", number, at=NOW + timedelta(hours=9 * number))
    page = series.page("s", size=4)
    assert page.cursor is not None
    assert [each.value for each in series.page("s", size=9, cursor=page.cursor)] == [4, 5, 6, 7, 8]
    wrong: list[dict[str, Any]] = [
        {"series": "t"},
        {"newest_first": True},
        {"start": NOW},
        {"cursor": page.cursor[:-2] + "AA"},
    ]
    for each in wrong:
        with pytest.raises(InvalidCursor):
            series.page(**{"series": "s", "cursor": page.cursor, **each})


def test_what_is_refused(memory: Store) -> None:
    series = TimeSeries(memory, "readings", roll_ups={MINUTE: None})
    series.create_table()
    values: list[Any] = [float("nan"), float("inf"), True, "7", None]
    for value in values:
        with pytest.raises(UsageError):
            series.add("s", value)
    with pytest.raises(UsageError, match="naive"):
        series.add("s", 1, at=datetime(2027, 1, 15))
    with pytest.raises(
        UsageError,
        match=r"no roll-ups of timedelta\(seconds=3600\), but of timedelta\(seconds=60\);",
    ):
        series.summaries("s", HOUR, NOW, NOW + DAY)
    with pytest.raises(UsageError, match="ends after"):
        series.chart("s", NOW, NOW)
    with pytest.raises(UsageError, match="size must be 1 or more, not 0"):
        series.page("s", size=0)
    wrong: list[dict[str, Any]] = [
        {"shards": 0},
        {"shards": 101},
        {"bucket": timedelta(milliseconds=1)},
        {"bucket": "day"},
        {"keep": -DAY},
        {"keep": timedelta(0)},
        {"keep": 30},
        {"roll_ups": {HOUR: -DAY}},
        {"roll_ups": {HOUR: timedelta(0)}},
        {"roll_ups": {HOUR: "day"}},
        {"roll_ups": {"hour": None}},
        {"roll_ups": [HOUR]},
    ]
    for options in wrong:
        with pytest.raises(UsageError, match=next(iter(options))[:7].replace("_", ".")):
            TimeSeries(memory, "readings", **options)
    points: list[Any] = [(1, NOW), 1, {"value": 1}, "1", Point(NOW, 1)]  # type: ignore[arg-type]
    for point in points:
        with pytest.raises(UsageError, match=r"is not a point; give Point\(value, at\)"):
            series.add_many("s", [point])
    naive = datetime(2027, 1, 15)
    for start, end in ((naive, NOW), (NOW, naive)):
        with pytest.raises(UsageError, match="naive"):
            series.chart("s", start, end)
        with pytest.raises(UsageError, match="naive"):
            series.gaps("s", MINUTE, start, end)
        with pytest.raises(UsageError, match="naive"):
            series.summaries("s", MINUTE, start, end)
    assert series.latest("s") is None
    assert series.add("s", 0.1) and series.add("s", 0.2, id="b")  # noqa: PT018
    assert series.summaries("s", MINUTE, NOW, NOW + DAY)[0].total == Decimal("0.3")


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ({}, {"shards": 4}),
        ({"shards": 4}, {}),
        ({}, {"bucket": HOUR}),
        ({"bucket": HOUR}, {}),
        ({}, {"bucket": 7 * DAY}),
    ],
)
def test_points_that_would_lie_elsewhere_are_refused(
    memory: Store, first: dict[str, Any], other: dict[str, Any]
) -> None:
    """A time series that is declared with other buckets or shards would count points a second time."""
    series = TimeSeries(memory, "readings", **first)
    series.create_table()
    assert series.add("s", 1, at=NOW - 10 * DAY)
    assert series.add("s", 1)
    wrong = TimeSeries(memory, "readings", **other)
    calls: list[Callable[[], object]] = [
        lambda: wrong.add("s", 1),
        lambda: wrong.add("s", 2, at=NOW + DAY),
        lambda: wrong.latest("s"),
        lambda: list(wrong.points("s")),
        lambda: wrong.page("s"),
        lambda: wrong.back_fill("s", HOUR),
        lambda: wrong.summaries("s", HOUR, NOW, NOW + DAY),
        lambda: wrong.chart("s", NOW, NOW + DAY),
        lambda: wrong.gaps("s", HOUR, NOW, NOW + DAY),
        lambda: wrong.replace("s", 2, at=NOW),
        lambda: wrong.remove("s", at=NOW),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="declare it the same everywhere"):
            call()
    assert [each.value for each in series.points("s")] == [1, 1]
    assert series.summaries("s", DAY, NOW, NOW + DAY)[0].count == 1
    assert wrong.add("t", 1)
    assert wrong.replace("t", 2, at=NOW)


def test_a_time_series_shares_a_table(memory: Store) -> None:
    table = TimeSeries.layout("shared")

    class Sensor(Entity, table=table):
        name: Attr[str] = isotone.field()
        primary = Key("SENSOR", name).sort("SENSOR")

    one, other = (TimeSeries(memory, name, table=table) for name in ("a", "b"))
    one.create_table()
    memory.put(Sensor(name="s"))
    assert one.add("s", 1)
    assert other.add("s", 2)
    assert one.add("s#2", 3)
    assert [each.value for each in one.points("s")] == [1]
    assert [each.value for each in other.points("s")] == [2]
    assert memory.get(Sensor, name="s") == Sensor(name="s")


def test_what_it_costs() -> None:
    """The figures of the page's table, with three resolutions and one shard, then two."""
    with isotone.open() as database, isotone.connect(database) as inner:
        measured = Measured(inner.backend)
        store = isotone.connect(measured, clock=ManualClock(NOW))
        series = TimeSeries(store, "readings")
        series.create_table()
        measured.take()
        for number, (value, expected) in enumerate(
            [
                (5, (3, 1 + 1 + 3, 3)),  # the first of all
                (9, (3, 1 + 3, 2)),  # wider
                (7, (0, 1 + 3, 1)),  # between what was seen
                (5, (0, 1 + 3, 1)),
            ]
        ):
            series.add("s", value, at=NOW + timedelta(seconds=number))
            assert measured.take() == expected
        series.add_many("s", [Point(6, NOW + timedelta(seconds=10 + n)) for n in range(40)])
        assert measured.take() == (0, 40 + 3, 1)
        series.replace("s", 8, at=NOW + timedelta(seconds=2))
        assert measured.take() == (1 + 3, 1 + 3, 2 + 3)
        series.replace("s", 5, at=NOW + timedelta(seconds=1))  # it was the highest
        assert measured.take() == (1 + 3 + 3 * (1 + 44), 1 + 3, 2 + 3 + 3 * 2)
        assert series.latest("s") is not None
        assert measured.take() == (1 + 1, 0, 2)
        page = series.page("s", size=20)
        assert (measured.take(), page.stats.scanned) == ((1 + 20, 0, 2), 20)
        assert len(list(series.points("s"))) == 44
        assert measured.take() == (1 + 44, 0, 3)
        series.add_many("s", [Point(6, NOW + timedelta(minutes=n)) for n in range(1, 50)])
        measured.take()
        assert len(series.summaries("s", MINUTE, NOW, NOW + HOUR)) == 50
        assert measured.take() == (50, 0, 1)

        sharded = TimeSeries(store, "sharded", shards=2)
        sharded.add_many("s", [Point(n, NOW + timedelta(seconds=n)) for n in range(100)])
        measured.take()
        assert sharded.latest("s") == Point(Decimal(99), NOW + timedelta(seconds=99))
        assert measured.take() == (1 + 2, 0, 1 + 2)
        sharded.page("s", size=10)
        assert measured.take() == (1 + 10 * 2, 0, 1 + 2)
        sharded.summaries("s", HOUR, NOW, NOW + DAY)
        assert measured.take() == (2, 0, 2)
        sharded.add_many("s", [Point(n, NOW + timedelta(seconds=n)) for n in range(100, 1500)])
        for newest_first in (False, True):
            measured.take()
            found = [each.value for each in sharded.points("s", newest_first=newest_first)]
            assert found == list(range(1500))[:: -1 if newest_first else 1]
            read, _, requests = measured.take()
            assert read <= 1 + 1500 * 1.2
            assert requests <= 2 + 2 * 1500 / 125 * 1.2
