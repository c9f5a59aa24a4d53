"""Windows of time against what calendars and clocks say, on days of 23, 24 and 25 hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import UsageError
from isotone.structures import Windows
from isotone.structures.time_windows import ALL_TIME, Every

NEW_YORK = ZoneInfo("America/New_York")
ZONES = [UTC, NEW_YORK, ZoneInfo("Europe/Brussels"), ZoneInfo("Asia/Kathmandu")]
ZONES += [ZoneInfo("Australia/Lord_Howe"), ZoneInfo("America/Sao_Paulo")]

moments = st.datetimes(datetime(2015, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
starts = st.sampled_from([time(0), time(4), time(2, 30), time(23, 59)])
lengths: st.SearchStrategy[Every] = st.sampled_from(
    [
        *("quarter-hour", "hour", "day", "week", "month"),
        *(timedelta(minutes=7), timedelta(hours=5), timedelta(days=3), timedelta(days=7)),
    ]
)


@given(moments, lengths, starts, st.sampled_from(ZONES))
def test_windows_follow_one_another_without_gap_or_overlap(
    moment: datetime, every: Every, day_starts: time, zone: ZoneInfo
) -> None:
    windows = Windows(every, day_starts=day_starts, zone=zone)
    window = windows.at(moment)
    assert window.start <= moment < window.end
    assert windows.at(window.start) == windows.at(window.end - timedelta(microseconds=1)) == window
    after, before = windows.at(window.end), windows.before(window)
    assert before is not None
    assert (after.start, before.end) == (window.end, window.start)
    assert len({before.label, window.label, after.label}) == 3


@given(moments, st.sampled_from(ZONES))
def test_a_business_day_is_from_four_to_four_by_the_clock(moment: datetime, zone: ZoneInfo) -> None:
    windows = Windows("day", day_starts=time(4), zone=zone)
    clock = moment.astimezone(zone).replace(tzinfo=None)
    expected = (clock - timedelta(hours=4)).date()
    assert windows.business_date(moment) == expected
    assert windows.at(moment) == windows.day(expected)
    assert windows.at(moment).label == expected.isoformat()


@pytest.mark.parametrize(
    ("day", "hours"),
    # Clocks go forward on Sunday 2022-03-13 and back on Sunday 2022-11-06, at 2 am, in Saturday's business.
    [(date(2022, 3, 12), 23), (date(2022, 3, 13), 24), (date(2022, 11, 5), 25)],
)
def test_days_on_which_the_clock_is_changed(day: date, hours: int) -> None:
    windows = Windows("quarter-hour", day_starts=time(4), zone=NEW_YORK)
    whole = windows.day(day)
    assert whole.end - whole.start == timedelta(hours=hours)
    found, at = [], whole.start
    while at < whole.end:
        window = windows.at(at)
        found.append(window.label)
        at = window.end
    assert found == [f"{day}#{number}" for number in range(hours * 4)]


@pytest.mark.parametrize("hour", range(48))
@pytest.mark.parametrize("day_starts", [time(0), time(4)])
def test_a_day_that_a_zone_has_skipped_is_in_no_window(hour: int, day_starts: time) -> None:
    windows = Windows("day", day_starts=day_starts, zone=ZoneInfo("Pacific/Apia"))
    moment = datetime(2011, 12, 29, 14, tzinfo=UTC) + timedelta(hours=hour)
    window = windows.at(moment)
    assert window.start <= moment < window.end
    assert window.label != "2011-12-30"


def test_labels() -> None:
    at = datetime(2022, 8, 13, 0, 31, tzinfo=UTC)  # a Saturday
    assert Windows("quarter-hour").at(at).label == "2022-08-13#2"
    assert Windows("hour").at(at).label == "2022-08-13#0"
    assert Windows("day").at(at).label == "2022-08-13"
    assert Windows("week").at(at).label == "2022-W32"
    assert Windows("month").at(at).label == "2022-08"
    whole = Windows("month", day_starts=time(4)).at(datetime(2024, 2, 1, 3, 59, tzinfo=UTC))
    assert (whole.label, whole.end) == ("2024-01", datetime(2024, 2, 1, 4, tzinfo=UTC))
    assert Windows(timedelta(weeks=1)).at(at).label == "2022-08-08"
    assert Windows(timedelta(minutes=10)).at(at).label == "2022-08-13#3"
    assert Windows().at(at) == ALL_TIME
    four = Windows("quarter-hour", day_starts=time(4))
    assert four.at(at).label == "2022-08-12#82"


def test_names() -> None:
    new_york = ZoneInfo("America/New_York")
    for windows, name in [
        (Windows(), "all time"),
        (Windows(zone=new_york, day_starts=time(4)), "all time"),
        (Windows("day"), "day"),
        (Windows(timedelta(days=1), zone=ZoneInfo("UTC")), "day"),
        (Windows(timedelta(weeks=1)), "7 days, 0:00:00"),  # its labels are others than of weeks
        (Windows("week", zone=timezone(timedelta(hours=2))), "week in UTC+02:00"),
        (
            Windows("day", day_starts=time(4), zone=new_york),
            "day from 04:00:00 in America/New_York",
        ),
    ]:
        assert windows.name == name


def test_the_last_windows() -> None:
    at = datetime(2022, 8, 13, 0, 31, tzinfo=UTC)
    found = [each.label for each in Windows("quarter-hour").last(4, at)]
    assert found == ["2022-08-13#2", "2022-08-13#1", "2022-08-13#0", "2022-08-12#95"]
    assert Windows().last(4, at) == [ALL_TIME]


def test_what_is_refused() -> None:
    wrong: list[Any] = ["fortnight", 60, None, ["day"]]
    for every in wrong:
        with pytest.raises(UsageError, match="is not a window"):
            Windows(every)
    with pytest.raises(UsageError, match="is not a time zone"):
        Windows("day", zone="America/New_York")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is not a time of day"):
        Windows("day", day_starts=4)  # type: ignore[arg-type]
    moments: list[Any] = [1767268800, "2026-01-01", date(2026, 1, 1)]
    for moment in moments:
        with pytest.raises(UsageError, match="is not a datetime"):
            Windows("day").at(moment)
    with pytest.raises(UsageError, match="is not a whole number of days"):
        Windows(timedelta(hours=36))
    with pytest.raises(UsageError, match="is not a whole number of days"):
        Windows(timedelta(0))
    with pytest.raises(UsageError, match="must not have a zone"):
        Windows("day", day_starts=time(4, tzinfo=UTC))
    with pytest.raises(UsageError, match="naive"):
        Windows("day").at(datetime(2022, 8, 13))
