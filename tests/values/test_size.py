from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.values.number import canonical_number
from isotone.values.size import binary_size, item_size, number_size, value_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 1),
        ("1", 2),
        ("-1", 3),
        ("12", 2),
        ("123", 3),
        ("1234", 3),
        ("100", 2),
        ("1000", 2),
        ("1.5", 3),
        ("0.5", 2),
        ("0.05", 2),
        ("0.005", 2),
        ("-12.34", 4),
        ("10.01", 3),
        ("9" * 38, 20),
        ("-" + "9" * 38, 21),
        ("1" + "0" * 125, 2),
        ("0." + "0" * 129 + "1", 2),
    ],
)
def test_numbers(text: str, size: int) -> None:
    assert number_size(text) == size


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-130, 87))
def test_a_number_is_as_large_as_its_digits_in_base_100(coefficient: int, exponent: int) -> None:
    number = Decimal((coefficient < 0, [int(c) for c in str(abs(coefficient))], exponent))
    scaled = abs(coefficient) * 10 ** (exponent % 2)
    while scaled and scaled % 100 == 0:
        scaled //= 100
    pairs = 0
    while scaled:
        scaled //= 100
        pairs += 1
    assert number_size(canonical_number(str(number))) == 1 + pairs + (coefficient < 0)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": ""}, 0),
        ({"S": "abc"}, 3),
        ({"S": "ü€😀"}, 2 + 3 + 4),
        ({"B": ""}, 0),
        ({"B": "YQ=="}, 1),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"SS": ["a", "bc", "ü"]}, 5),
        ({"NS": ["1", "-1"]}, 5),
        ({"BS": ["YQ==", "YWI="]}, 3),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"NULL": True}]}, 3 + 3 + 2),
        ({"M": {}}, 3),
        ({"M": {"k": {"S": "ab"}}}, 3 + 3 + 1),
        ({"M": {"k": {"L": [{"N": "1"}]}}}, 3 + 1 + 1 + (3 + 1 + 2)),
    ],
)
def test_values(value: dict[str, Any], size: int) -> None:
    assert value_size(value) == size


def test_an_item_counts_its_names() -> None:
    assert item_size({"id": {"S": "a"}, "größe": {"N": "10"}}) == 3 + 7 + 2


@given(st.binary())
def test_binary_counts_raw_bytes(raw: bytes) -> None:
    assert binary_size(b64encode(raw).decode()) == len(raw)


_NUMBERS = st.integers(-(10**37), 10**37).map(lambda number: canonical_number(str(number)))
_BINARIES = st.binary(max_size=20).map(lambda data: b64encode(data).decode())
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.builds(lambda text: {"S": text}, st.text(max_size=20)),
        st.builds(lambda number: {"N": number}, _NUMBERS),
        st.builds(lambda data: {"B": data}, _BINARIES),
        st.sampled_from([{"NULL": True}, {"BOOL": False}, {"SS": ["", "ü"]}, {"NS": ["0", "1"]}]),
    ),
    lambda inner: st.one_of(
        st.builds(lambda values: {"L": values}, st.lists(inner, max_size=4)),
        st.builds(lambda members: {"M": members}, st.dictionaries(st.text(), inner, max_size=4)),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=5), _VALUES, max_size=4))
def test_no_item_is_larger_than_its_json(item: dict[str, Any]) -> None:
    assert item_size(item) <= len(msgspec.json.encode(item))
