"""Conditions on one attribute are joined into the one that DynamoDB takes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.model.reading.key_bounds import Restriction, hull, intersection, lies_before

TEXTS = st.text(alphabet="a#b￿\ud7ff\ue000😀\U0010ffff", max_size=4)
OPERATORS = ["=", "<", "<=", ">", ">=", "between", "begins_with"]


def holds(restriction: Restriction, text: str) -> bool:
    """What DynamoDB and the reader make of a string, spelt out."""
    operands = [operand["S"] for operand in restriction.operands]
    tests: dict[str, Any] = {
        "=": lambda: text == operands[0],
        "<": lambda: text < operands[0],
        "<=": lambda: text <= operands[0],
        ">": lambda: text > operands[0],
        ">=": lambda: text >= operands[0],
        "between": lambda: operands[0] <= text <= operands[1],
        "begins_with": lambda: text.startswith(operands[0]),
    }
    return bool(tests[restriction.operator]()) and text not in restriction.excluded


@st.composite
def restrictions(draw: st.DrawFn) -> Restriction:
    operator = draw(st.sampled_from(OPERATORS))
    operands = draw(st.lists(TEXTS, min_size=2, max_size=2).map(sorted))
    count = 2 if operator == "between" else 1
    return Restriction("k", operator, tuple({"S": each} for each in operands[:count]))


@given(restrictions(), restrictions(), st.lists(TEXTS, max_size=20))
def test_an_intersection_holds_what_both_hold(
    one: Restriction, other: Restriction, texts: list[str]
) -> None:
    joined = intersection(one, other)
    for text in [*texts, *(each["S"] for each in one.operands + other.operands)]:
        meant = holds(one, text) and holds(other, text)
        assert (joined is not None and holds(joined, text)) == meant
    if joined is not None and joined.operator == "between":
        assert joined.operands[0]["S"] <= joined.operands[1]["S"]


@given(restrictions(), restrictions(), st.lists(TEXTS, max_size=20))
def test_a_hull_holds_both_and_what_lies_between(
    one: Restriction, other: Restriction, texts: list[str]
) -> None:
    joined = hull(one, other)
    for text in texts:
        if holds(one, text) or holds(other, text):
            assert joined is None or holds(joined, text)


@given(restrictions(), restrictions(), TEXTS, TEXTS)
def test_what_lies_before_is_below(
    one: Restriction, other: Restriction, low: str, high: str
) -> None:
    if lies_before(one, other) and holds(one, low) and holds(other, high):
        assert low < high


def test_two_open_bounds_become_one_between_without_its_ends() -> None:
    joined = intersection(
        Restriction("k", ">", ({"N": "9"},)), Restriction("k", "<", ({"N": "10"},))
    )
    assert joined == Restriction("k", "between", ({"N": "9"}, {"N": "10"}), frozenset({"9", "10"}))


@pytest.mark.parametrize(("low", "high"), [("10", "9"), ("9", "9")])
def test_nothing_lies_between_bounds_that_cross(low: str, high: str) -> None:
    assert Decimal(low) >= Decimal(high)
    bounds = Restriction("k", ">=", ({"N": low},)), Restriction("k", "<", ({"N": high},))
    assert intersection(*bounds) is None


def test_bytes_are_compared_as_bytes() -> None:
    # base64 of ff and of 00ff: the texts sort the other way round
    joined = intersection(
        Restriction("k", ">=", ({"B": "AP8="},)), Restriction("k", "<=", ({"B": "/w=="},))
    )
    assert joined == Restriction("k", "between", ({"B": "AP8="}, {"B": "/w=="}))


def test_a_prefix_that_nothing_is_above_has_no_end() -> None:
    joined = hull(
        Restriction("k", "begins_with", ({"B": "//8="},)), Restriction("k", "=", ({"B": "AA=="},))
    )
    assert joined == Restriction("k", ">=", ({"B": "AA=="},))
