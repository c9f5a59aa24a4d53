"""Instants: their bytes, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from isotone.codec.readable import EpochInstant, Instant
from isotone.errors import MalformedKey, OutOfRange, UsageError

WINTER = datetime(2020, 1, 11, tzinfo=UTC)
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("codec", "value", "text"),
    [
        (Instant(), WINTER, "2020-01-11T00:00:00.000000Z"),
        (Instant("milliseconds"), WINTER, "2020-01-11T00:00:00.000Z"),
        (Instant("seconds"), WINTER, "2020-01-11T00:00:00Z"),
        (Instant(), datetime(2020, 1, 11, 2, tzinfo=EAST), "2020-01-11T00:00:00.000000Z"),
        (Instant(), datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
        (Instant(), datetime.max.replace(tzinfo=UTC), "9999-12-31T23:59:59.999999Z"),
        (Instant().descending(), WINTER, "7979-98-88T99:99:99.999999Z"),
        (Instant("seconds").descending(), WINTER, "7979-98-88T99:99:99Z"),
        (EpochInstant("seconds"), WINTER, "001578700800"),
        (EpochInstant("milliseconds"), WINTER, "001578700800000"),
        (EpochInstant("microseconds"), WINTER, "001578700800000000"),
        (EpochInstant("seconds").descending(), WINTER, "998421299199"),
    ],
)
def test_texts(codec: Any, value: datetime, text: str) -> None:
    assert codec.encode(value) == text
    assert codec.decode(text) == value
    assert codec.decode(text).tzinfo is UTC


def test_an_hour_that_comes_twice_is_two_instants() -> None:
    zone = ZoneInfo("Europe/Berlin")
    first = datetime(2020, 10, 25, 2, 30, tzinfo=zone)
    again = first.replace(fold=1)
    assert first == again, "which is how Python compares within one zone"
    assert Instant("seconds").encode(first) == "2020-10-25T00:30:00Z"
    assert Instant("seconds").encode(again) == "2020-10-25T01:30:00Z"


@pytest.mark.parametrize("codec", [Instant(), EpochInstant()])
def test_a_naive_datetime_is_refused_with_the_reason(codec: Any) -> None:
    with pytest.raises(
        UsageError, match="2020-01-11T00:00:00 has no time zone, so it does not identify"
    ):
        codec.encode(datetime(2020, 1, 11))


@pytest.mark.parametrize("codec", [Instant("milliseconds"), EpochInstant("milliseconds")])
def test_what_is_finer_than_the_precision_is_refused(codec: Any) -> None:
    with pytest.raises(OutOfRange, match="finer than milliseconds, the declared precision"):
        codec.encode(WINTER.replace(microsecond=1))


@pytest.mark.parametrize("value", ["May 26, 1988", "2020-01-11", 1578700800, date(2020, 1, 11)])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="holds datetime"):
        Instant().encode(value)


def test_what_has_no_year_in_utc_is_refused() -> None:
    with pytest.raises(OutOfRange, match="outside the years 1 to 9999"):
        Instant().encode(datetime(1, 1, 1, tzinfo=EAST))


def test_what_is_before_the_epoch_is_not_counted() -> None:
    with pytest.raises(OutOfRange, match="before 1970"):
        EpochInstant().encode(datetime(1969, 12, 31, tzinfo=UTC))


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-11T00:00:00Z",
        "2020-01-11T00:00:00.000000",
        "2020-01-11T00:00:00.000000+00:00",
        "2020-01-11 00:00:00.000000Z",
        "2020-13-11T00:00:00.000000Z",
        "May 26, 1988",
        "",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="an instant in microseconds, such as 1970-01-01T"):
        Instant().decode(text)


@pytest.mark.parametrize("text", ["1578700800", "253402300800", "00157870080x"])
def test_other_numbers_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="seconds since 1970"):
        EpochInstant().decode(text)


@pytest.mark.parametrize("kind", [Instant, EpochInstant])
def test_other_precisions_are_refused(kind: Any) -> None:
    with pytest.raises(UsageError, match="'minutes' is not a precision"):
        kind("minutes")


def test_fewer_digits_end_sooner() -> None:
    codec = EpochInstant("seconds", 10)
    latest = datetime(2286, 11, 20, 17, 46, 39, tzinfo=UTC)
    assert codec.encode(latest) == "9999999999"
    assert (codec.width, codec.after(latest)) == (10, None)
    with pytest.raises(OutOfRange, match="10000000000 does not fit"):
        codec.encode(latest + timedelta(seconds=1))


@pytest.mark.parametrize(("digits", "message"), [(-1, "not -1"), (13, "declare at most 12")])
def test_digits_that_cannot_be_meant(digits: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        EpochInstant("seconds", digits)
