"""Numbers as they are printed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.codec.readable import RawText, Template, Unpadded
from isotone.errors import MalformedKey, OutOfRange, Unanswerable, UsageError


@given(st.integers())
def test_a_number_is_read_back(number: int) -> None:
    assert Unpadded(signed=True).decode(Unpadded(signed=True).encode(number)) == number
    assert Unpadded(signed=True).encode(number) == str(number)


@pytest.mark.parametrize("text", ["", "007", "-0", "-", "+1", "1.0", "1_000", " 1", "٣", "-7"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="not a number without zeros before it"):
        Unpadded().decode(text)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (-1, OutOfRange, "-1 does not fit.*declare a minimum"),
        ("1", UsageError, "'1' is a str"),
        (True, UsageError, "True is a bool"),
    ],
)
def test_what_does_not_fit_is_refused(value: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Unpadded().encode(value)


def test_there_is_no_order_to_turn_round() -> None:
    with pytest.raises(UsageError, match=r"leave desc\(…\) out"):
        Unpadded().descending()


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_a_range_is_refused(operator: Any) -> None:
    with pytest.raises(Unanswerable, match="use = or begins_with"):
        Template(["USER", Unpadded()]).select([], operator, [9])
    with pytest.raises(Unanswerable, match="use = or begins_with"):
        Template(["USER", RawText(), Unpadded()]).select([], operator, ["a"])
