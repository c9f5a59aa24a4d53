"""Order and round trip against a definition of order that knows nothing of bytes."""

from __future__ import annotations

from base64 import b64decode, b64encode
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.codec import (
    after,
    decode,
    decode_key,
    descending,
    encode_key_value,
    encode_number,
    prefix_range,
)
from isotone.errors import StorageCorrupt, UsageError
from isotone.values.number import canonical_number

Value = dict[str, Any]


def number(coefficient: int, exponent: int) -> Value:
    digits = [int(digit) for digit in str(abs(coefficient))]
    plain = Decimal((coefficient < 0, digits, exponent))
    return {"N": canonical_number(f"{plain:f}")}


def fits(coefficient: int, exponent: int) -> bool:
    return not coefficient or -130 <= len(str(abs(coefficient))) - 1 + exponent <= 125


numbers = (
    (
        st.tuples(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-168, 125))
        | st.tuples(st.integers(-200, 200), st.integers(-4, 4))
        | st.tuples(st.integers(-10, 10), st.integers(-130, 125))
    )
    .filter(lambda pair: fits(*pair))
    .map(lambda pair: number(*pair))
)
texts = st.text(max_size=6) | st.text("\x00\x01\x02aé\U0010ffff\uffff", max_size=6)
strings = texts.map(lambda text: {"S": text})
raw_bytes = st.binary(max_size=6) | st.lists(st.sampled_from([0, 1, 2, 254, 255])).map(bytes)
binaries = raw_bytes.map(lambda raw: {"B": b64encode(raw).decode()})
values = numbers | strings | binaries
pairs = st.one_of(
    st.tuples(numbers, numbers), st.tuples(strings, strings), st.tuples(binaries, binaries)
)


def meaning(value: Value) -> Any:
    """What a value stands for, in a Python type that sorts as DynamoDB does."""
    ((code, content),) = value.items()
    if code == "N":
        return Decimal(content)
    return b64decode(content) if code == "B" else [ord(character) for character in content]


def order(left: Any, right: Any) -> int:
    return (left > right) - (left < right)


def encode(*key: Value) -> bytes:
    return b"".join(map(encode_key_value, key))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ({"S": ""}, "20 00"),
        ({"S": "a"}, "20 61 00"),
        ({"S": "a\x00b"}, "20 61 01 01 62 00"),
        ({"S": "\x01"}, "20 01 02 00"),
        ({"S": "é€😀"}, "20 c3a9 e282ac f09f9880 00"),
        ({"B": ""}, "30 00"),
        ({"B": "AP8="}, "30 01 01 ff 00"),
        ({"N": "0"}, "11"),
        ({"N": "7"}, "12 80 0e"),
        ({"N": "-7"}, "10 7f f1"),
    ],
)
def test_bytes(value: Value, encoded: str) -> None:
    assert encode(value) == bytes.fromhex(encoded)
    assert descending(encode(value)) == bytes(255 - byte for byte in bytes.fromhex(encoded))


@given(pairs)
def test_one_component_sorts_like_its_value(pair: tuple[Value, Value]) -> None:
    left, right = pair
    expected = order(meaning(left), meaning(right))
    assert order(encode(left), encode(right)) == expected
    assert order(descending(encode(left)), descending(encode(right))) == -expected


@given(st.lists(st.tuples(pairs, st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_tuples_sort_component_by_component(
    columns: list[tuple[tuple[Value, Value], bool, bool]],
) -> None:
    keys = [b"", b""]
    expected = 0
    for (left, right), same, reverse in columns:
        row = (left, left if same else right)
        for side, value in enumerate(row):
            component = encode(value)
            keys[side] += descending(component) if reverse else component
        difference = order(meaning(row[0]), meaning(row[1]))
        expected = expected or (-difference if reverse else difference)
    assert order(*keys) == expected


@given(values, values)
def test_no_component_begins_another(left: Value, right: Value) -> None:
    if left != right:
        for form in (bytes, descending):
            assert not form(encode(left)).startswith(form(encode(right)))


@given(st.lists(st.tuples(values, st.booleans()), max_size=5), st.binary(max_size=8))
def test_keys_read_back(components: list[tuple[Value, bool]], head: bytes) -> None:
    key = head
    for value, reverse in components:
        key += descending(encode(value)) if reverse else encode(value)
    assert decode_key(key, len(head)) == tuple(value for value, _ in components)


@given(values, values)
def test_reading_one_component_stops_where_it_ends(value: Value, other: Value) -> None:
    assert decode(encode(value, other)) == (value, len(encode(value)))


@given(values, st.lists(values, max_size=2), pairs)
def test_after_lies_between_what_begins_so_and_what_does_not(
    value: Value, more: list[Value], pair: tuple[Value, Value]
) -> None:
    for form in (bytes, descending):
        assert (
            form(encode(value)) <= form(encode(value)) + encode(*more) < after(form(encode(value)))
        )
    left, right = pair
    if meaning(left) < meaning(right):
        assert after(encode(left)) <= encode(right)
        assert after(descending(encode(right))) <= descending(encode(left))


def test_after_is_the_smallest() -> None:
    assert after(b"\x20a\x00") == b"\x20a\x01"
    assert after(b"\x20a\xff\xff") == b"\x20b"


@given(st.tuples(texts, texts), st.booleans())
def test_prefix_of_strings(pair: tuple[str, str], extend: bool) -> None:
    prefix, text = pair
    text = prefix + text if extend else text
    low, high = prefix_range({"S": prefix})
    assert (low <= encode({"S": text}) < high) == text.startswith(prefix)
    assert not low <= encode({"B": b64encode(text.encode()).decode()}) < high


@given(st.tuples(raw_bytes, raw_bytes), st.booleans())
def test_prefix_of_binary(pair: tuple[bytes, bytes], extend: bool) -> None:
    prefix, raw = pair
    raw = prefix + raw if extend else raw
    low, high = prefix_range({"B": b64encode(prefix).decode()})
    assert (low <= encode({"B": b64encode(raw).decode()}) < high) == raw.startswith(prefix)


def test_small_numbers_are_short() -> None:
    assert max(len(encode_number(str(n))) for n in range(-9999, 10000)) == 4


def test_types_without_a_place_in_a_key() -> None:
    with pytest.raises(UsageError, match="type BOOL"):
        encode_key_value({"BOOL": True})
    with pytest.raises(UsageError, match="type N has no beginning"):
        prefix_range({"N": "1"})


@pytest.mark.parametrize(
    "damaged", [b"\x00", b"\x20a", b"\x20\xc3\x00", b"\xcf\x00", b"\x30", b"\x40"]
)
def test_damage(damaged: bytes) -> None:
    with pytest.raises(StorageCorrupt):
        decode_key(damaged)


@given(
    st.binary(max_size=12)
    | st.lists(st.sampled_from(b"\x10\x11\x12\x20\x30\x00\x01\x80\x02")).map(bytes)
)
def test_any_bytes_are_a_key_or_damage(data: bytes) -> None:
    try:
        decode_key(data)
    except StorageCorrupt:
        return
