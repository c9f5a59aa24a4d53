"""Decimals of a declared scale: their bytes, and what is refused."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import pytest

from isotone.codec.readable import FixedPoint
from isotone.errors import MalformedKey, OutOfRange, UsageError

PRICE = FixedPoint(99_999, 2)
CHANGE = FixedPoint(99_999, 2, signed=True)


@pytest.mark.parametrize(
    ("codec", "value", "text"),
    [
        (PRICE, "12.5", "00012.50"),
        (PRICE, "0", "00000.00"),
        (PRICE, "-0", "00000.00"),
        (PRICE, "1E+3", "01000.00"),
        (PRICE, "0.010000", "00000.01"),
        (PRICE, "99999", "99999.00"),
        (PRICE.descending(), "12.5", "99987.49"),
        (CHANGE, "12.5", "000012.50"),
        (CHANGE, "-12.5", "-99987.49"),
        (CHANGE, "-0.00", "000000.00"),
        (CHANGE.descending(), "12.5", "-99987.49"),
        (CHANGE.descending(), "-12.5", "000012.50"),
        (CHANGE.descending(), "0", "000000.00"),
        (FixedPoint(Decimal("99999.99"), 2), "99999.99", "99999.99"),
        (FixedPoint(Decimal("0.5"), 3), "0.125", "0.125"),
        (FixedPoint(150, 0), "150", "150"),
    ],
)
def test_texts(codec: FixedPoint, value: str, text: str) -> None:
    assert codec.encode(Decimal(value)) == text
    assert codec.decode(text) == Decimal(value)


def test_ints_are_decimals() -> None:
    assert PRICE.encode(7) == "00007.00"


@pytest.mark.parametrize(
    ("codec", "value", "message"),
    [
        (PRICE, "99999.01", "holds 0 to 99999; declare a larger maximum or a sign"),
        (PRICE, "-0.01", "holds 0 to 99999"),
        (CHANGE, "-99999.01", "holds -99999 to 99999; declare a larger maximum, and"),
        (PRICE, "NaN", "NaN does not fit"),
        (PRICE, "Infinity", "Infinity does not fit"),
        (PRICE, "12.505", "12.505 has more decimal places than the 2 that were declared"),
        (PRICE, "1E-999999", "more decimal places"),
    ],
)
def test_what_does_not_fit_is_refused(codec: FixedPoint, value: str, message: str) -> None:
    with pytest.raises(OutOfRange, match=message):
        codec.encode(Decimal(value))


def test_the_caller_s_context_changes_nothing() -> None:
    with localcontext() as context:
        context.prec = 2
        assert FixedPoint(10**12, 4).encode(Decimal("123456789.1234")) == "0000123456789.1234"
        assert FixedPoint(10**6, 2, signed=True).encode(Decimal("-123456.78")) == "-9876543.21"


@pytest.mark.parametrize("value", [1.5, "1", True, None])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="holds Decimal"):
        PRICE.encode(value)


@pytest.mark.parametrize(
    "text", ["12.50", "00012.5", "00012.500", "0001250", "00012,50", "0.0012.50", "", "1E3     "]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey):
        PRICE.decode(text)


def test_a_negative_zero_is_no_text() -> None:
    with pytest.raises(MalformedKey):
        CHANGE.decode("-99999.99")


@pytest.mark.parametrize(
    ("maximum", "scale", "message"),
    [
        (0, 2, "above 0"),
        (Decimal("Infinity"), 2, "above 0"),
        (1.5, 2, "above 0"),
        (10, -1, "0 or more"),
        (Decimal("9.999"), 2, "9.999 has more decimal places"),
    ],
)
def test_declarations_that_cannot_be_meant(maximum: Any, scale: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        FixedPoint(maximum, scale)


def test_the_share_of_the_maximum() -> None:
    assert FixedPoint(100, 2).share(Decimal(30)) == 0.3
    assert FixedPoint(100, 2, signed=True).share(Decimal(-30)) == 0.3
    assert FixedPoint(Decimal("0.5"), 2).share(0) == 0
