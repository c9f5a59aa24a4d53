"""Which templates could write one and the same key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codec.readable.kinds import KINDS, Kind
from tests.effort import examples

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
    Unpadded,
    Uuid,
    Written,
    overlap,
)
from isotone.errors import MalformedKey, UsageError

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
        not any(not isinstance(part, str) and part.codec.open_ended for part in found[:-1])
    )
)


@settings(max_examples=examples(300))
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


def by_hand(*parts: Any, separator: str) -> Template:
    return Template(parts, separator)


NAME = RawText(until="_")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (by_hand("USER", NAME, separator="_"), by_hand("USERS", NAME, separator="_")),
        (by_hand("USER", NAME, separator="_"), by_hand("USER", NAME, "POST", NAME, separator="_")),
        (by_hand("ORDER", Unpadded(), separator="_"), by_hand("ORDER", "META", separator="_")),
        (by_hand("ORDER", Unpadded(), separator="_"), by_hand("ORDER", Natural(99), separator="#")),
        (by_hand("USER", Unpadded(), separator=""), by_hand("USER", Day(), separator="")),
        (by_hand("D", Unpadded(), separator="1"), by_hand("D101", separator="#")),
        (by_hand("ORDER", Day(), separator="-"), by_hand("ORDER", "META", separator="-")),
        (
            by_hand("a", RawText(), "b", separator="::"),
            by_hand("a", RawText(), "c", separator="::"),
        ),
        (
            by_hand("a", RawText(until="::"), separator="::"),
            by_hand("a", RawText(), "b", RawText(), separator="::"),
        ),
        (by_hand("USER", NAME, separator="_"), by_hand("ORDER", Text(), separator="#")),
        (by_hand("USER", Unpadded(), separator=""), by_hand("USERNAME", separator="")),
        (by_hand("USER", Unpadded(), separator=""), by_hand("USER", Text(), separator="#")),
        (by_hand("v0_", RawText(), separator=""), by_hand("v", Natural(9), "-", separator="")),
        (
            by_hand("D", Written("%Y%m%d", day=True), separator="_"),
            by_hand("D", Written("%Y-%m-%d", day=True), separator="_"),
        ),
        (by_hand("D", Instant("seconds"), separator=":"), by_hand("D", Day(), separator=":")),
        (by_hand(Uuid(), separator="-"), by_hand(Ksuid(), separator="-")),
        (
            by_hand("A", RawText(until=":"), separator=":"),
            by_hand("A:", RawText(), ":b", separator=""),
        ),
    ],
)
def test_apart_by_hand(one: Template, other: Template) -> None:
    assert one.is_ambiguous_with(other) is None
    assert other.is_ambiguous_with(one) is None


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (by_hand("USER", NAME, separator="_"), by_hand("USER_1", separator="#"), "'USER_1'"),
        (
            by_hand("USER", NAME, separator="_"),
            by_hand("USER", "META", separator="_"),
            "'USER_META'",
        ),
        (
            by_hand("USER", RawText(), separator="_"),
            by_hand("USER", NAME, "POST", NAME, separator="_"),
            "'USER_x_POST_x'",
        ),
        (
            by_hand("u:", RawText(), separator=""),
            by_hand("u:", RawText(), ":p:", RawText(), separator=""),
            "'u::p:'",
        ),
        (by_hand("D", Unpadded(), separator="1"), by_hand("D110", separator="#"), "'D110'"),
        (
            by_hand("D", Natural(99), separator="-"),
            by_hand("D-", Natural(50), separator=""),
            "'D-00'",
        ),
        (
            by_hand("D", Natural(20), separator="-"),
            by_hand("D-", Hex(), separator=""),
            "'D-00'",
        ),
    ],
)
def test_ambiguous_by_hand(one: Template, other: Template, words: str) -> None:
    for left, right in ((one, other), (other, one)):
        reason = left.is_ambiguous_with(right)
        assert reason == f"{left} and {right} could both write the key {words}"


def test_what_may_be_apart_but_does_not_look_so_is_refused() -> None:
    reason = Template(["D", STATUS], "-").is_ambiguous_with(Template(["D-0_S", RawText()], ""))
    assert reason == "the forms of D-{Choice} and D-0_S{RawText} do not distinguish their keys"


def test_a_component_that_holds_the_separator_is_not_one_piece() -> None:
    one = Template(["D", Day(), RawText(until="-")], "-")
    other = Template(["D", RawText(), Natural(99), Natural(99), RawText(until="-")], "-")
    assert one.reads("D-2020-01-11-x")
    assert other.reads("D-2020-01-11-x")
    assert one.is_ambiguous_with(other)


separators = st.sampled_from(["_", "::", "", "-", "#", "a", ":-"])
some = st.lists(
    st.sampled_from(["A", "A_", "a", "00", "1-", ":"])
    | st.sampled_from([*KINDS, Kind("unpadded", Unpadded(), st.integers(0, 20))]),
    min_size=1,
    max_size=3,
)


@settings(max_examples=examples(300), deadline=None)
@given(forms=st.tuples(some, some), joined=st.tuples(separators, separators), data=st.data())
def test_a_key_that_is_read_by_both_makes_them_ambiguous_by_hand(
    forms: tuple[list[Any], list[Any]], joined: tuple[str, str], data: st.DataObject
) -> None:
    try:
        one, other = (
            Template([part if isinstance(part, str) else part.codec for part in each], separator)
            for each, separator in zip(forms, joined, strict=True)
        )
        values = [data.draw(part.values) for part in forms[0] if not isinstance(part, str)]
        other.parse(one.render(values))
    except (UsageError, MalformedKey):
        return
    assert one.is_ambiguous_with(other)
    assert other.is_ambiguous_with(one)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=20)
@given(data=st.data())
def test_a_shape_admits_what_is_written(kind: Kind, data: st.DataObject) -> None:
    text = kind.codec.encode(data.draw(kind.values))
    shape = overlap._shape_of_codec(kind.codec)
    assert overlap._common_text(shape, [overlap._Step(frozenset(each)) for each in text]) == text
