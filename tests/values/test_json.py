from __future__ import annotations

import enum
from collections import OrderedDict
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import UsageError, ValidationException
from isotone.values.attribute_validation import canonical_value
from isotone.values.json import (
    from_wire,
    item_from_wire,
    item_to_wire,
    to_wire,
)

members = (
    st.text(max_size=5),
    st.integers(-(10**30), 10**30).map(Decimal),
    st.binary(max_size=5),
)
python_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        *members,
        *(st.sets(member, min_size=1, max_size=4) for member in members),
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(python_values)
def test_round_trip(value: Any) -> None:
    wire = to_wire(value)
    assert from_wire(wire) == value
    assert canonical_value(wire)[0] is wire


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        ("a", {"S": "a"}),
        (7, {"N": "7"}),
        (Decimal("1.50E+2"), {"N": "150"}),
        (True, {"BOOL": True}),
        (None, {"NULL": True}),
        (b"\x00\xff", {"B": "AP8="}),
        (bytearray(b"a"), {"B": "YQ=="}),
        (memoryview(b"a"), {"B": "YQ=="}),
        ({"a"}, {"SS": ["a"]}),
        (frozenset([1]), {"NS": ["1"]}),
        ({b"a"}, {"BS": ["YQ=="]}),
        ((1, "a"), {"L": [{"N": "1"}, {"S": "a"}]}),
        (OrderedDict(a=1), {"M": {"a": {"N": "1"}}}),
        (enum.IntEnum("Size", "S M").M, {"N": "2"}),
        (enum.StrEnum("Colour", "RED").RED, {"S": "red"}),
        (enum.Enum("Mixed", {"A": "a"}, type=str).A, {"S": "a"}),
    ],
)
def test_python_to_wire(value: Any, wire: dict[str, Any]) -> None:
    assert to_wire(value) == wire


def test_items() -> None:
    item = {"id": "a", "n": Decimal(1)}
    wire = {"id": {"S": "a"}, "n": {"N": "1"}}
    assert item_to_wire(item) == wire
    assert item_from_wire(wire) == item


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.5, r"float, which is not exact; use Decimal\('1.5'\)"),
        ([1, {"a": 2.5}], "float"),
        (set(), "at least one member"),
        ({"a", 1}, "only strings, only numbers or only bytes"),
        ({("a",)}, "only strings"),
        (object(), "of type object, which has no counterpart"),
    ],
)
def test_what_has_no_counterpart_is_refused(value: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        to_wire(value)


@pytest.mark.parametrize("number", [Decimal("NaN"), Decimal("Infinity"), 10**126, 10**38 + 1])
def test_numbers_that_do_not_fit_are_refused(number: Any) -> None:
    with pytest.raises(ValidationException):
        to_wire(number)
