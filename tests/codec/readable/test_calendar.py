"""Days, times and spans: their bytes, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from isotone.codec.readable import Day, Span, TimeOfDay
from isotone.errors import MalformedKey, UsageError


@pytest.mark.parametrize(
    ("codec", "value", "text"),
    [
        (Day(), date(2020, 1, 11), "2020-01-11"),
        (Day(), date(1, 1, 1), "0001-01-01"),
        (Day().descending(), date(2020, 1, 11), "7979-98-88"),
        (TimeOfDay(), time(16, 20), "16:20:00.000000"),
        (TimeOfDay(), time(23, 59, 59, 999_999), "23:59:59.999999"),
        (TimeOfDay().descending(), time(16, 20), "83:79:99.999999"),
        (Span(), timedelta(hours=1), "000000000003600000000"),
        (Span(), timedelta(0), "000000000000000000000"),
        (Span(), timedelta(microseconds=-1), "-99999999999999999998"),
        (Span().descending(), timedelta(hours=1), "-99999999996399999999"),
        (Span(), timedelta.min, "-13600000086399999999"),
    ],
)
def test_texts(codec: Any, value: Any, text: str) -> None:
    assert codec.encode(value) == text
    assert codec.decode(text) == value


@pytest.mark.parametrize(
    ("codec", "value", "message"),
    [
        (Day(), datetime(2020, 1, 11, tzinfo=UTC), "holds date"),
        (Day(), "2020-01-11", "holds date"),
        (TimeOfDay(), "16:20", "holds time"),
        (TimeOfDay(), time(16, 20, tzinfo=UTC), "has a time zone"),
        (Span(), 3600, "holds timedelta"),
    ],
)
def test_other_types_are_refused(codec: Any, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        codec.encode(value)


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        (Day(), "20200111"),
        (Day(), "2020-W02-6"),
        (Day(), "2020-02-30"),
        (Day().descending(), "2020-01-11"),
        (TimeOfDay(), "16:20"),
        (TimeOfDay(), "16:20:00.000000Z"),
        (TimeOfDay(), "24:00:00.000000"),
        (Span(), "3600"),
    ],
)
def test_other_texts_are_refused(codec: Any, text: str) -> None:
    with pytest.raises(MalformedKey):
        codec.decode(text)
