"""Which templates could write one and the same key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codec.readable.kinds import KINDS

from isotone.codec.readable import (
    Choice,
    Day,
    FixedPoint,
    Flag,
    Hex,
    Instant,
    Integer,
    Ksuid,
    Natural,
    RawText,
    Template,
    Text,
    Ulid,
    Uuid,
)
from isotone.errors import MalformedKey

STATUS = Choice(("PLACED", "SHIPPED"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["ORDER", Text()], ["ORDERS", Text()]),
        (["ORDER", Text()], ["ORDER", Text(), "ITEM", Text()]),
        (["ORDER", Text()], ["ORDER"]),
        (["ORDER", Text(), "ITEM"], ["ORDER", Text(), "NOTE"]),
        ([Day()], [Instant()]),
        ([Natural(99)], [Natural(999)]),
        ([Natural(99)], [STATUS]),
        ([STATUS], [Choice(("RETURNED", "LOST"))]),
        ([Uuid()], [Ksuid()]),
        ([Ksuid()], [Instant()]),
        ([Natural(999)], [Hex()]),
        ([FixedPoint(99, 2)], [Natural(99_999)]),
        (["ORDER", RawText()], ["ORDER"]),
        (["ORDER", RawText()], ["ORDERS", RawText()]),
        ([RawText("upper")], ["order", Text()]),
        ([Text("upper")], ["order"]),
    ],
)
def test_apart(one: list[Any], other: list[Any]) -> None:
    assert Template(one).is_ambiguous_with(Template(other)) is None
    assert Template(other).is_ambiguous_with(Template(one)) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["ORDER", Text()], ["ORDER", Text()]),
        (["ORDER", Text()], ["ORDER", "META"]),
        (["ORDER", Text()], ["ORDER", Natural(99)]),
        (["ORDER", Text()], [Text(), Day()]),
        (["ORDER#X"], ["ORDER", "X"]),
        (["ORDER", RawText()], ["ORDER", Text(), "ITEM", Natural(99)]),
        ([RawText()], [RawText().descending()]),
        ([RawText("upper")], ["ORDER", Text("upper")]),
        (["", RawText()], ["#TEAM", Text()]),
        ([Natural(99)], [Natural(50).descending()]),
        ([Natural(999_999)], [Integer(-99_999, 99_999)]),
        ([Natural(9)], [Flag()]),
        ([Natural(9999)], [Hex()]),
        ([Natural(10**26 - 1)], [Ulid()]),
        ([Natural(10**27 - 1)], [Ksuid()]),
        ([Text().descending()], [Hex().descending()]),
        ([STATUS], [Choice(("PLACED", "SENT"))]),
        ([Instant()], [Text()]),
        ([Text("upper")], [Text("lower")]),
    ],
)
def test_ambiguous(one: list[Any], other: list[Any]) -> None:
    for left, right in ((Template(one), Template(other)), (Template(other), Template(one))):
        reason = left.is_ambiguous_with(right)
        assert reason is not None
        words, key = reason.split(" could both write the key ")
        assert words == f"{left} and {right}"
        for template in (left, right):
            template.parse(eval(key))


parts = st.lists(
    st.sampled_from(["A", "", "a#b", "00"]) | st.sampled_from(KINDS), min_size=1, max_size=3
).filter(
    lambda found: (
        not any(not isinstance(part, str) and part.codec.takes_the_rest for part in found[:-1])
    )
)


@settings(max_examples=300)
@given(one=parts, other=parts, data=st.data())
def test_a_key_that_is_read_by_both_makes_them_ambiguous(
    one: list[Any], other: list[Any], data: st.DataObject
) -> None:
    templates = [
        Template([part if isinstance(part, str) else part.codec for part in each])
        for each in (one, other)
    ]
    values = [data.draw(part.values) for part in one if not isinstance(part, str)]
    try:
        templates[1].parse(templates[0].render(values))
    except MalformedKey:
        return
    assert templates[0].is_ambiguous_with(templates[1])
    assert templates[1].is_ambiguous_with(templates[0])
