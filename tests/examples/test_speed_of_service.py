"""Scenario 18 against a naive recount of the generated cars."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from tests.examples.printed import FOLDER, Printed

import isotone
from isotone.structures import Windows

Example = Callable[[str], Printed]
NAME = "18_speed_of_service"
MIDNIGHT = datetime(2022, 8, 13, 4, tzinfo=UTC)  # in New York, in summer
FOUR = MIDNIGHT + timedelta(hours=4)


def _program() -> Any:
    spec = importlib.util.spec_from_file_location("speed_of_service", FOLDER / f"{NAME}.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


PROGRAM = _program()
CARS = PROGRAM.generated()


def cars(begin: datetime, end: datetime, store_id: str | None = None) -> list[Any]:
    return [car for car in CARS if begin <= car.at < end and store_id in (None, car.store_id)]


def seconds(of: list[Any]) -> int:
    return sum(car.menu1 + car.menu2 + car.qmenu1 + car.qmenu2 + car.window for car in of)


def board(begin: datetime) -> list[tuple[int, str, int, int]]:
    """Rank, store, average and number of cars of a quarter of an hour."""
    of: dict[str, list[Any]] = {}
    for car in cars(begin, begin + timedelta(minutes=15)):
        of.setdefault(car.store_id, []).append(car)
    averages = {store: int(seconds(found) / len(found) + 0.5) for store, found in of.items()}
    return sorted(
        (1 + sum(other < average for other in averages.values()), store, average, len(of[store]))
        for store, average in averages.items()
    )


def lines(of: list[tuple[int, str, int, int]]) -> list[str]:
    return [f"{rank:>2}  {store}  {average} s  {count} cars" for rank, store, average, count in of]


def test_raw_rows_are_in_the_order_of_time_and_lane(example: Example) -> None:
    rows = example(NAME).section("Cars of store 000001 at midnight").rows
    keys = [row["SK"] for row in rows]
    assert keys[:2] == ["2022-08-13 00:00:00#LANE1", "2022-08-13 00:00:00#LANE2"]
    assert keys == sorted(keys)
    assert {row["PK"] for row in rows} == {"000001"}
    midnight = datetime(2022, 8, 13, tzinfo=UTC)
    assert len(keys) == len(cars(midnight, midnight + timedelta(minutes=9), "000001"))


def test_fifteen_minutes_are_one_range(example: Example) -> None:
    begin = MIDNIGHT + timedelta(minutes=30)
    found = cars(begin, begin + timedelta(minutes=15), "000001")
    assert example(NAME).section("Fifteen minutes").lines == [
        f"{len(found)} items read, {len(found)} cars",
        f"from order to delivery: {seconds(found) / len(found):.1f} s",
    ]


def test_a_business_day_is_one_range(example: Example) -> None:
    found = cars(FOUR, FOUR + timedelta(days=1), "000001")
    assert len(found) < len(cars(FOUR - timedelta(days=1), FOUR + timedelta(days=2), "000001"))
    assert example(NAME).section("The file of 2022-08-13").lines == [
        "above 2022-08-13 08:00:00#, below 2022-08-14 08:00:00",
        f"{len(found)} items read, {len(found)} cars",
        f"from order to delivery: {seconds(found) / len(found):.1f} s",
    ]


@pytest.mark.parametrize(("day", "hours"), [(date(2022, 3, 12), 23), (date(2022, 11, 5), 25)])
def test_the_file_of_a_day_on_which_the_clock_is_changed(day: date, hours: int) -> None:
    whole = Windows("day", day_starts=time(4), zone=PROGRAM.NEW_YORK).day(day)
    begin = datetime.combine(day, time(4), PROGRAM.NEW_YORK).astimezone(UTC)
    end = datetime.combine(day + timedelta(days=1), time(4), PROGRAM.NEW_YORK).astimezone(UTC)
    assert (whole.start, whole.end, end - begin) == (begin, end, timedelta(hours=hours))
    seconds = {"menu1": 1, "menu2": 2, "qmenu1": 3, "qmenu2": 4, "window": 5}
    with isotone.connect() as store:
        store.create_tables(PROGRAM.cars)
        every = timedelta(minutes=10)
        at = [begin + number * every for number in range(-6, hours * 6 + 6)]
        store.put_many(
            PROGRAM.Car(store_id=store_id, at=each, lane=lane, **seconds)
            for store_id in ("000001", "000002")
            for each in at
            for lane in ("LANE1", "LANE2")
        )
        page = store.page(PROGRAM.between("000001", whole.start, whole.end), size=1000)
    assert page.stats.scanned == len(page) == hours * 6 * 2
    assert [each.at for each in page] == [each for each in at[6:-6] for _ in range(2)]
    assert PROGRAM.average(page) == "15.0 s"


def test_the_ten_fastest_are_the_first_ten_entries(example: Example) -> None:
    section = example(NAME).section("The ten fastest stores of quarter 2022-08-13#2")
    expected = board(MIDNIGHT + timedelta(minutes=30))[:10]
    rows = [dict(row) for row in _table(section)]
    assert [(row["GSI1PK"], row["GSI1SK"], row["member"]) for row in rows] == [
        ("LEADERBOARD", f"2022-08-13#2#{average:06}", store) for _, store, average, _ in expected
    ]
    assert section.lines[-1] == "10 items read, 1 request"
    averages = [average for _, _, average, _ in expected]
    assert len(set(averages)) < 10, "there is a tie, and nobody is overwritten"


def _table(section: Any) -> list[dict[str, str]]:
    return type(section)(section.heading, section.lines[:-1]).rows  # type: ignore[no-any-return]


def test_one_partition_and_four_answer_alike(example: Example) -> None:
    printed = example(NAME)
    expected = lines(board(MIDNIGHT + timedelta(minutes=30)))
    assert printed.section("Their ranks").lines == expected[:10]
    assert printed.section("The same from four partitions").lines == [
        *expected[:10],
        "at most 40 items read: True, 4 requests",
    ]
    assert printed.section("The next ten").lines == expected[10:20]


def test_the_next_quarter_begins_anew(example: Example) -> None:
    later, former = example(NAME).section("In the next quarter").lines
    assert later.startswith("2022-08-13#3: ")
    stores = len(board(MIDNIGHT + timedelta(minutes=30)))
    moved = int(later.split()[1])
    assert moved > 0
    assert former == f"2022-08-13#2: {stores - moved} stores"
