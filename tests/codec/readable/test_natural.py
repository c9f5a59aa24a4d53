"""Natural numbers: their bytes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.codec.readable import Natural
from isotone.errors import MalformedKey, OutOfRange, UsageError

ISSUE = Natural(99_999)


@pytest.mark.parametrize(
    ("codec", "value", "text"),
    [
        (ISSUE, 0, "00000"),
        (ISSUE, 2, "00002"),
        (ISSUE, 10, "00010"),
        (ISSUE, 157, "00157"),
        (ISSUE, 99_999, "99999"),
        (ISSUE.descending(), 0, "99999"),
        (ISSUE.descending(), 157, "99842"),
        (ISSUE.descending(), 99_999, "00000"),
        (Natural(99_999_999), 157, "00000157"),
        (Natural(100), 7, "007"),
        (Natural(100).descending(), 100, "899"),
        (Natural(1), 1, "1"),
    ],
)
def test_texts(codec: Natural, value: int, text: str) -> None:
    assert codec.encode(value) == text
    assert codec.decode(text) == value


@pytest.mark.parametrize("codec", [ISSUE, ISSUE.descending()])
def test_what_does_not_fit_is_refused(codec: Natural) -> None:
    with pytest.raises(
        OutOfRange, match=r"100000 does not fit: .* at most 99999; declare a larger"
    ):
        codec.encode(100_000)
    with pytest.raises(
        OutOfRange, match=r"-5 does not fit: .* 0 to 99999; declare a minimum: field\(min"
    ):
        codec.encode(-5)


def test_the_maximum_is_the_limit_and_not_the_width() -> None:
    with pytest.raises(OutOfRange):
        Natural(360).encode(361)
    with pytest.raises(MalformedKey):
        Natural(360).decode("361")


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="holds int"):
        ISSUE.encode(value)


@pytest.mark.parametrize("text", ["", "157", "000157", " 0157", "+0157", "0_157", "٠٠١٥٧", "0015x"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="a number of 5 digits up to 99999"):
        ISSUE.decode(text)


@pytest.mark.parametrize("maximum", [0, -1])
def test_a_maximum_leaves_room(maximum: int) -> None:
    with pytest.raises(UsageError, match="1 or more"):
        Natural(maximum)


def test_the_share_of_the_maximum() -> None:
    assert Natural(1000).share(300) == 0.3
    assert Natural(1000).descending().share(1000) == 1
