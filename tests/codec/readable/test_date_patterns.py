"""Days and instants in forms that patterns tell."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from isotone.codec.readable import Written
from isotone.errors import MalformedKey, OutOfRange, UsageError

TEA = datetime(2020, 1, 11, 16, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("codec", "value", "text"),
    [
        (Written("%Y-%m-%d %H:%M:%S"), TEA, "2020-01-11 16:20:00"),
        (Written("%Y-%m-%dT%H:%M:%S+00:00"), TEA, "2020-01-11T16:20:00+00:00"),
        (Written("%Y%m%dT%H%MZ"), TEA, "20200111T1620Z"),
        (Written("%Y%m%d"), datetime(2020, 1, 11, tzinfo=UTC), "20200111"),
        (Written("%Y%m%d", day=True), date(2020, 1, 11), "20200111"),
        (Written("{%Y/%m/%d}", day=True), date(1, 1, 1), "{0001/01/01}"),
        (Written("%Y%m%d", day=True).descending(), date(2020, 1, 11), "79799888"),
    ],
)
def test_forms(codec: Written, value: Any, text: str) -> None:
    assert codec.encode(value) == text
    assert codec.decode(text) == value
    assert codec.width == len(text)


def test_instants_are_in_utc() -> None:
    there = timezone(timedelta(hours=2))
    assert Written("%Y%m%d%H").encode(datetime(2020, 1, 1, 1, tzinfo=there)) == "2019123123"


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "%Y",
        "%Y-%m",
        "%d.%m.%Y",
        "%m/%d/%Y",
        "%Y%m%d%M",
        "%y%m%d",
        "%Y%m%d%H%M%S%f%z",
        "%Y%m%d%%",
        "%Y%m%d%",
        "%Y-%m-%d %",
    ],
)
def test_what_does_not_sort_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="does not sort: a pattern has the directives %Y%m%d"):
        Written(pattern)


@pytest.mark.parametrize("pattern", ["%Y%m%d#%H", "$%Y%m%d", "%Y%m%d\n"])
def test_what_closes_ranges_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="contains #"):
        Written(pattern)


def test_a_day_has_no_hours() -> None:
    with pytest.raises(UsageError, match="does not sort"):
        Written("%Y%m%d%H", day=True)


@pytest.mark.parametrize(
    ("codec", "value", "kind", "message"),
    [
        (Written("%Y%m%d"), TEA, OutOfRange, "finer than the declared pattern '%Y%m%d'"),
        (Written("%Y%m%d"), date(2020, 1, 1), UsageError, "holds datetime"),
        (Written("%Y%m%d", day=True), TEA, UsageError, "holds date"),
        (Written("%Y%m%d"), datetime(2020, 1, 1), UsageError, "no time zone"),
    ],
)
def test_what_does_not_fit_is_refused(
    codec: Written, value: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        codec.encode(value)


@pytest.mark.parametrize("text", ["20200230", "2020-1-1", "2020011", "202001011", "٢٠٢٠٠١٠١"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="of the form '%Y%m%d', such as 19700101"):
        Written("%Y%m%d", day=True).decode(text)


def test_neighbours() -> None:
    hours, days = Written("%Y%m%d%H"), Written("%Y%m%d", day=True)
    assert hours.after(TEA.replace(minute=0)) == datetime(2020, 1, 11, 17, tzinfo=UTC)
    assert hours.before(datetime(1, 1, 1, tzinfo=UTC)) is None
    assert hours.after(datetime(9999, 12, 31, 23, tzinfo=UTC)) is None
    assert (days.before(date.min), days.after(date.max)) == (None, None)
    assert days.before(date(2020, 3, 1)) == date(2020, 2, 29)
