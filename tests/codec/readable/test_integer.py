"""Signed integers: their bytes, and what is refused."""

from __future__ import annotations

import pytest

from isotone.codec.readable import Integer
from isotone.errors import MalformedKey, OutOfRange, UsageError

BALANCE = Integer(-99_999, 99_999)


@pytest.mark.parametrize(
    ("codec", "value", "text"),
    [
        (BALANCE, -99_999, "-00000"),
        (BALANCE, -157, "-99842"),
        (BALANCE, -5, "-99994"),
        (BALANCE, -1, "-99998"),
        (BALANCE, 0, "000000"),
        (BALANCE, 157, "000157"),
        (BALANCE.descending(), 157, "-99842"),
        (BALANCE.descending(), 0, "000000"),
        (BALANCE.descending(), -157, "000157"),
        (Integer(-7, 1000), -7, "-9992"),
        (Integer(-7, 1000), 1000, "01000"),
    ],
)
def test_texts(codec: Integer, value: int, text: str) -> None:
    assert codec.encode(value) == text
    assert codec.decode(text) == value


@pytest.mark.parametrize("value", [-100_000, 100_000])
def test_what_does_not_fit_is_refused(value: int) -> None:
    with pytest.raises(OutOfRange, match=f"{value} does not fit: .* -99999 to 99999; declare"):
        BALANCE.encode(value)
    with pytest.raises(OutOfRange):
        BALANCE.descending().encode(value)


@pytest.mark.parametrize("text", ["-99999", "100000", "+00001", "00001", "", "-", "0000 1"])
def test_other_texts_are_refused(text: str) -> None:
    """Among them the negative zero, -99999."""
    with pytest.raises(MalformedKey):
        BALANCE.decode(text)


def test_bounds_are_in_order() -> None:
    with pytest.raises(
        UsageError, match="minimum of an Integer must be below its maximum, not 3 and 3"
    ):
        Integer(3, 3)


def test_the_share_of_the_maximum() -> None:
    assert [Integer(-10, 1000).share(value) for value in (-5, 0, 300)] == [0, 0, 0.3]
    assert Integer(-10, 0).share(-9) == Integer(-10, -5).share(-6) == 0
    assert Integer(5, 10).share(7) == 0.7
    assert Integer(0, 10).share(0) == 0
