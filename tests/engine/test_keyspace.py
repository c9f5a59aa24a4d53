"""Physical keys: one for each item, in the order of the sort key, and in AWS's words when there is none."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.engine.keyspace import Keyspace
from isotone.engine.schema import KeyPart, KeySchema
from isotone.errors import ValidationException
from isotone.expressions import KeyRange

SIMPLE = Keyspace(KeySchema((KeyPart("p", "S"),)))
TEXTS = Keyspace(KeySchema((KeyPart("p", "S"),), (KeyPart("s", "S"),)))
BYTES = Keyspace(KeySchema((KeyPart("p", "S"),), (KeyPart("s", "B"),)))
NUMBERS = Keyspace(KeySchema((KeyPart("p", "N"),), (KeyPart("s", "N"),)))
MIXED = Keyspace(
    KeySchema((KeyPart("a", "S"), KeyPart("b", "N")), (KeyPart("c", "S"), KeyPart("d", "N")))
)

characters = st.sampled_from(["\x00", "\x01", "\x02", "a", "b", "é", "\U0010ffff"])
texts = st.lists(characters, min_size=1, max_size=3).map("".join)


def text(value: str) -> dict[str, str]:
    return {"S": value}


def binary(value: bytes) -> dict[str, str]:
    return {"B": base64.b64encode(value).decode()}


@given(texts, texts, texts, texts)
def test_keys_are_equal_exactly_when_the_attributes_are(p: str, s: str, q: str, t: str) -> None:
    first, second = (
        TEXTS.key({"p": text(partition), "s": text(sort)}) for partition, sort in ((p, s), (q, t))
    )
    assert (first == second) == ((p, s) == (q, t))


@given(texts, texts, texts)
def test_an_item_collection_is_in_the_order_of_its_sort_key(p: str, s: str, t: str) -> None:
    first, second = (TEXTS.key({"p": text(p), "s": text(sort)}) for sort in (s, t))
    assert (first < second) == (s.encode() < t.encode())


@given(texts, texts)
def test_a_requested_key_is_where_the_item_lies(p: str, s: str) -> None:
    item = {"p": text(p), "s": text(s)}
    assert TEXTS.requested_key(item) == (TEXTS.key(item), item)
    assert TEXTS.requested_key({"s": text(s), "p": text(p)})[0] == TEXTS.key(item)


def test_a_requested_number_is_where_the_item_lies_however_it_is_written() -> None:
    written = {"p": {"N": "1.0"}, "s": {"N": "+1e1"}}
    canonical = {"p": {"N": "1"}, "s": {"N": "10"}}
    assert NUMBERS.requested_key(written) == (NUMBERS.key(canonical), canonical)


OPERATORS = {
    "<": lambda value, low, high: value < low,
    "<=": lambda value, low, high: value <= low,
    ">": lambda value, low, high: value > low,
    ">=": lambda value, low, high: value >= low,
    "BETWEEN": lambda value, low, high: low <= value <= high,
    "begins_with": lambda value, low, high: value.startswith(low),
}
# The bytes that the encoding escapes, the highest, and some between.
raws = st.lists(st.sampled_from([0, 1, 2, 0x7F, 0xFE, 0xFF]), min_size=1, max_size=4).map(bytes)


@given(
    raws,
    st.sampled_from(sorted(OPERATORS)),
    st.tuples(raws, raws).map(sorted),
)
def test_bounds_hold_what_the_condition_selects(
    value: bytes, operator: str, ends: list[bytes]
) -> None:
    low, high = ends
    operands = (binary(low), binary(high)) if operator == "BETWEEN" else (binary(low),)
    bounds = BYTES.bounds(KeyRange((text("p"),), (), operator, operands))
    key = BYTES.key({"p": text("p"), "s": binary(value)})
    assert bounds[1] is not None
    inside = bounds[0] <= key < bounds[1]
    assert inside == OPERATORS[operator](value, low, high)
    other = BYTES.key({"p": text("q"), "s": binary(value)})
    assert not bounds[0] <= other < bounds[1]


@given(texts, st.integers(-2, 2), texts, st.integers(-2, 2), st.integers(-2, 2))
def test_bounds_of_a_range_behind_an_equal_sort_attribute(
    c: str, d: int, wanted: str, low: int, high: int
) -> None:
    low, high = sorted((low, high))
    partition = (text("a"), {"N": "1"})
    bounds = MIXED.bounds(
        KeyRange(partition, (text(wanted),), "BETWEEN", ({"N": str(low)}, {"N": str(high)}))
    )
    key = MIXED.key({"a": text("a"), "b": {"N": "1"}, "c": text(c), "d": {"N": str(d)}})
    assert bounds[1] is not None
    assert (bounds[0] <= key < bounds[1]) == (c == wanted and low <= d <= high)


MISMATCH = "The provided key element does not match the schema"
EMPTY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute "
    "cannot contain an empty string value. Key: "
)
INVALID = "One or more parameter values were invalid: "


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ({}, MISMATCH),
        ({"p": text("a")}, MISMATCH),
        ({"p": text("a"), "s": {"N": "1"}}, MISMATCH),
        ({"p": text("a"), "t": text("a")}, MISMATCH),
        ({"p": text("a"), "s": text("a"), "t": text("a")}, MISMATCH),
        ({"p": text("a"), "s": text("")}, EMPTY + "s"),
        ({"p": text(""), "s": text("a")}, EMPTY + "p"),
        (
            {"p": text("x" * 2049), "s": text("a")},
            INVALID + "Size of hashkey has exceeded the maximum size limit of2048 bytes",
        ),
        (
            {"p": text("a"), "s": text("é" * 513)},
            INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
        ),
    ],
)
def test_what_is_no_key_is_refused(key: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationException) as refused:
        TEXTS.requested_key(key)
    assert refused.value.message == words


def test_the_longest_keys_are_keys() -> None:
    TEXTS.requested_key({"p": text("x" * 2048), "s": text("é" * 512)})


def test_each_operand_is_judged_by_the_attribute_that_it_is_compared_with() -> None:
    partition = (text("a"), {"N": "1"})
    MIXED.check_condition(KeyRange(partition, (), "BETWEEN", (text("x"), text("y"))))
    MIXED.check_condition(KeyRange(partition, (text("x"),), "<", ({"N": "1"},)))
    for wrong in (
        KeyRange(partition, (), "BETWEEN", (text("x"), {"N": "1"})),
        KeyRange(partition, (text("x"),), "<", (text("1"),)),
        KeyRange((text("a"), text("1")), (), None, ()),
    ):
        with pytest.raises(ValidationException, match="Condition parameter type does not match"):
            MIXED.check_condition(wrong)
