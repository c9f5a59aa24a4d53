from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import UsageError
from isotone.values.types import compare, sort_key

SCENARIO = [
    "-1" + "0" * 125,
    "-2",
    "-1.5",
    "0",
    "0." + "0" * 129 + "1",
    "2",
    "10",
    "123456789012345678901234567890.12345678",
]


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def test_numbers_sort_by_value() -> None:
    values = [{"N": text} for text in SCENARIO]
    assert sorted(values[4:] + values[:4], key=sort_key) == values
    for i, left in enumerate(values):
        for j, right in enumerate(values):
            assert sign(compare(left, right)) == sign(i - j)


@given(st.text(), st.text())
def test_strings_sort_by_utf8(a: str, b: str) -> None:
    expected = (a.encode() > b.encode()) - (a.encode() < b.encode())
    assert sign(compare({"S": a}, {"S": b})) == expected


@given(st.binary(), st.binary())
def test_binary_sorts_by_bytes(a: bytes, b: bytes) -> None:
    left, right = ({"B": b64encode(raw).decode()} for raw in (a, b))
    assert sign(compare(left, right)) == (a > b) - (a < b)


def test_no_order_between_types_or_for_documents() -> None:
    with pytest.raises(UsageError, match="different types"):
        compare({"S": "1"}, {"N": "1"})
    with pytest.raises(UsageError, match="type BOOL have no order"):
        compare({"BOOL": True}, {"BOOL": False})
