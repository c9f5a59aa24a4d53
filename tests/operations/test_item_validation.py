"""Keys of requests and key conditions: what fits a table, and AWS's words for what does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from tests.engine.test_layout import MIXED, NUMBERS, TEXTS, text, texts

from isotone.errors import ValidationException
from isotone.expressions import KeyRange
from isotone.operations.item_validation import check_key_condition, requested_key


@given(texts, texts)
def test_a_requested_key_is_where_the_item_lies(p: str, s: str) -> None:
    item = {"p": text(p), "s": text(s)}
    assert requested_key(TEXTS, item) == (TEXTS.key(item), item)
    assert requested_key(TEXTS, {"s": text(s), "p": text(p)})[0] == TEXTS.key(item)


def test_a_requested_number_is_where_the_item_lies_however_it_is_written() -> None:
    written = {"p": {"N": "1.0"}, "s": {"N": "+1e1"}}
    canonical = {"p": {"N": "1"}, "s": {"N": "10"}}
    assert requested_key(NUMBERS, written) == (NUMBERS.key(canonical), canonical)


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
        requested_key(TEXTS, key)
    assert refused.value.message == words


def test_the_longest_keys_are_keys() -> None:
    requested_key(TEXTS, {"p": text("x" * 2048), "s": text("é" * 512)})


def test_each_operand_is_judged_by_the_attribute_that_it_is_compared_with() -> None:
    partition = (text("a"), {"N": "1"})
    check_key_condition(MIXED, KeyRange(partition, (), "BETWEEN", (text("x"), text("y"))))
    check_key_condition(MIXED, KeyRange(partition, (text("x"),), "<", ({"N": "1"},)))
    for wrong in (
        KeyRange(partition, (), "BETWEEN", (text("x"), {"N": "1"})),
        KeyRange(partition, (text("x"),), "<", (text("1"),)),
        KeyRange((text("a"), text("1")), (), None, ()),
    ):
        with pytest.raises(ValidationException, match="Condition parameter type does not match"):
            check_key_condition(MIXED, wrong)
