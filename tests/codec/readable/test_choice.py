"""Choices and flags: their bytes, and what is refused."""

from __future__ import annotations

from enum import Enum, IntEnum, StrEnum
from typing import Any

import pytest

from isotone.codec.readable import Choice, Flag
from isotone.errors import MalformedKey, OutOfRange, UsageError


class Status(StrEnum):
    PLACED = "placed"
    SHIPPED = "shipped"


class Level(IntEnum):
    HIGH = 3
    LOW = 1


class Mark(Enum):
    CROSS = ("x", 1)


STATUS = Choice(("PLACED", "SHIPPED", "CANCELLED"))


@pytest.mark.parametrize(
    ("codec", "value", "text"),
    [
        (STATUS, "PLACED", "0_PLACED"),
        (STATUS, "CANCELLED", "2_CANCELLED"),
        (STATUS.descending(), "PLACED", "9_PLACED"),
        (STATUS.descending(), "CANCELLED", "7_CANCELLED"),
        (Choice(("PLACED", "SHIPPED"), digits=2), "SHIPPED", "01_SHIPPED"),
        (Choice(("PLACED", "SHIPPED"), digits=2).descending(), "SHIPPED", "98_SHIPPED"),
        (Choice(tuple("abcdefghijk")), "a", "00_a"),
        (Choice(tuple(Status)), Status.SHIPPED, "1_shipped"),
        (Choice(tuple(Level)), Level.HIGH, "0_HIGH"),
        (Choice(tuple(Mark)), Mark.CROSS, "0_CROSS"),
        (Choice((1, 10)), 10, "1_10"),
        (Choice(("a#b", "in work")), "a#b", "0_a$hb"),
        (Choice(("a#b", "in work")), "in work", "1_in$_work"),
        (Flag(), False, "0"),
        (Flag(), True, "1"),
        (Flag().descending(), False, "1"),
        (Flag().descending(), True, "0"),
    ],
)
def test_texts(codec: Any, value: Any, text: str) -> None:
    assert codec.encode(value) == text
    assert codec.decode(text) is value or codec.decode(text) == value


def test_a_string_stands_for_the_member_that_it_equals() -> None:
    assert Choice(tuple(Status)).encode("shipped") == "1_shipped"
    assert Choice(tuple(Status)).decode("1_shipped") is Status.SHIPPED


def test_values_that_are_added_leave_the_others_as_they_are() -> None:
    longer = Choice((*STATUS.values, "RETURNED"))
    assert [longer.encode(value) for value in STATUS.values] == list(STATUS.samples())


@pytest.mark.parametrize("value", ["LOST", "placed", 0, None, ["PLACED"]])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(OutOfRange, match="not one of the declared values: 'PLACED', 'SHIPPED'"):
        STATUS.encode(value)


@pytest.mark.parametrize("text", ["PLACED", "1_PLACED", "0_PLACED ", "00_PLACED", "", "0_"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="one of 0_PLACED, 1_SHIPPED, 2_CANCELLED"):
        STATUS.decode(text)


@pytest.mark.parametrize(
    ("values", "digits", "message"),
    [
        ((), 0, "at least one"),
        (("a", "a"), 0, "no value twice"),
        ((1, True), 0, "no value twice"),
        (tuple("abcdefghijk"), 1, "11 values need 2 digits, not 1"),
    ],
)
def test_declarations_that_cannot_be_meant(values: Any, digits: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Choice(values, digits)


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_flag_is_a_bool(value: Any) -> None:
    with pytest.raises(UsageError, match="holds bool"):
        Flag().encode(value)


@pytest.mark.parametrize("text", ["", "2", "true", "01"])
def test_a_flag_is_one_digit(text: str) -> None:
    with pytest.raises(MalformedKey):
        Flag().decode(text)
