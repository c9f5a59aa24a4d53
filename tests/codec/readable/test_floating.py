"""Doubles: their bytes, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from isotone.codec.readable import Float
from isotone.errors import MalformedKey, OutOfRange, UsageError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-math.inf, "000fffffffffffff"),
        (-1.0, "400fffffffffffff"),
        (-5e-324, "7ffffffffffffffe"),
        (0.0, "8000000000000000"),
        (5e-324, "8000000000000001"),
        (1.0, "bff0000000000000"),
        (2.0, "c000000000000000"),
        (math.inf, "fff0000000000000"),
    ],
)
def test_texts(value: float, text: str) -> None:
    assert Float().encode(value) == text
    assert Float().decode(text) == value


def test_descending() -> None:
    assert Float().descending().encode(1.0) == "400fffffffffffff"
    assert Float().descending().decode("400fffffffffffff") == 1.0


def test_both_zeros_are_one() -> None:
    assert Float().encode(-0.0) == Float().encode(0.0)
    with pytest.raises(MalformedKey):
        Float().decode("7fffffffffffffff")


def test_ints_that_are_floats() -> None:
    assert Float().encode(2) == Float().encode(2.0)
    with pytest.raises(OutOfRange, match="9007199254740993 is not exact as a float"):
        Float().encode(2**53 + 1)
    with pytest.raises(OutOfRange, match="is not exact as a float"):
        Float().encode(10**400)


def test_nan_is_refused() -> None:
    with pytest.raises(OutOfRange, match="NaN has no place in the order"):
        Float().encode(math.nan)
    with pytest.raises(MalformedKey):
        Float().decode("fff8000000000000")


@pytest.mark.parametrize("value", ["1", True, None])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="holds float"):
        Float().encode(value)


@pytest.mark.parametrize("text", ["", "BFF0000000000000", "bff000000000000", "0xbff00000000000"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey):
        Float().decode(text)
