"""Bytes of keys; order and round trip against a definition of order that knows nothing of bytes."""

from __future__ import annotations

from base64 import b64decode, b64encode
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codec.reader import descending, read_component, read_key

from isotone.codec import (
    after,
    decode_number,
    encode_binary,
    encode_number,
    encode_text,
    encoder_for,
    partition_prefix,
    prefix_range,
    segment_range,
)
from isotone.errors import MalformedKey, UsageError
from isotone.values.number import canonical_number

Value = dict[str, Any]


def number(coefficient: int, exponent: int) -> Value:
    digits = [int(digit) for digit in str(abs(coefficient))]
    plain = Decimal((coefficient < 0, digits, exponent))
    return {"N": canonical_number(f"{plain:f}")}


def fits(coefficient: int, exponent: int) -> bool:
    return -130 <= len(str(abs(coefficient))) - 1 + exponent <= 125


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
    return b"".join(encoder_for(code)(content) for value in key for code, content in value.items())


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


@given(st.lists(st.tuples(values, st.booleans()), max_size=5))
def test_keys_read_back(components: list[tuple[Value, bool]]) -> None:
    key = b""
    for value, reverse in components:
        key += descending(encode(value)) if reverse else encode(value)
    assert read_key(key) == [value for value, _ in components]


@given(values, values)
def test_reading_one_component_stops_where_it_ends(value: Value, other: Value) -> None:
    assert read_component(encode(value, other)) == (value, len(encode(value)))


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
        encoder_for("BOOL")
    with pytest.raises(UsageError, match="type N has no beginning"):
        prefix_range({"N": "1"})


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("0", "11"),
        ("1", "12 80 02"),
        ("5", "12 80 0a"),
        ("10", "12 80 14"),
        ("99", "12 80 c6"),
        ("100", "12 81 02"),
        ("101", "12 81 03 02"),
        ("1234", "12 81 19 44"),
        ("12345", "12 82 03 2f 5a"),
        ("10001", "12 82 03 01 02"),
        ("1700000000", "12 84 22"),
        ("0.5", "12 7f 64"),
        ("0.05", "12 7f 0a"),
        ("0.005", "12 7e 64"),
        ("1.5", "12 80 03 64"),
        ("12.345", "12 80 19 45 64"),
        ("-1", "10 7f fd"),
        ("-1.5", "10 7f fc 9b"),
        ("-100", "10 7e fd"),
        ("1e-130", "12 3f 02"),
        ("1e125", "12 be 14"),
        ("9.9e125", "12 be c6"),
        ("-9.9e125", "10 41 39"),
        ("9" * 38, "12 92" + " c7" * 18 + " c6"),
        ("1" + "2" * 37 + "e1", "12 93 03" + " 2d" * 18 + " 28"),
    ],
)
def test_bytes_of_numbers(text: str, encoded: str) -> None:
    normal = canonical_number(text)
    assert encode_number(normal) == bytes.fromhex(encoded)
    assert decode_number(bytes.fromhex(encoded)) == normal
    assert read_key(bytes.fromhex(encoded)) == [{"N": normal}]


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "12",
        "12 80",
        "12 80 01 02",
        "12 80 01",
        "12 00 02",
        "12 ff 02",
        "12 80" + " 03" * 38 + " 02",
        "12 80 03",
        "12 80 00",
        "12 80 ff c8",
        "12 80 03 c8",
        "12 80 02 02",
        "11 00",
        "10 7f",
        "10 7f fc",
        "ed 7f fd",
        "20 00",
    ],
)
def test_bytes_of_no_number(damaged: str) -> None:
    with pytest.raises(MalformedKey, match="not a number"):
        decode_number(bytes.fromhex(damaged))


@given(numbers)
def test_numbers_are_decoded(value: Value) -> None:
    assert decode_number(encode(value)) == value["N"]


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        ("", ""),
        ("61", "61"),
        ("00", "0101"),
        ("01", "0102"),
        ("02", "02"),
        ("0001", "01010102"),
        ("0100", "01020101"),
        ("ff00ff", "ff0101ff"),
    ],
)
def test_bytes_of_binary_values(raw: str, body: str) -> None:
    assert encode_binary(bytes.fromhex(raw)).hex() == f"30{body}00"


def test_bytes_of_a_partition() -> None:
    # BLAKE2b with a digest of eight bytes, which is not a cut of a longer digest: `b2sum -l 64`.
    key = bytes.fromhex("cee007238b409620") + encode_text("a")
    assert partition_prefix(encode_text("a")) == key


@given(st.integers(1, 1_000_000), st.data())
def test_segments_meet_and_do_not_overlap(total: int, data: st.DataObject) -> None:
    segment = data.draw(st.integers(0, total - 1))
    low, high = segment_range(segment, total)
    assert (low == bytes(8)) == (segment == 0)
    if segment + 1 == total:
        assert high is None
    else:
        assert high == segment_range(segment + 1, total)[0]
        assert low < high


@given(st.binary(), st.integers(1, 50))
def test_each_key_is_in_one_segment(key: bytes, total: int) -> None:
    prefix = partition_prefix(key)
    ranges = [segment_range(segment, total) for segment in range(total)]
    assert sum(low <= prefix and (high is None or prefix < high) for low, high in ranges) == 1


def test_segments_get_even_shares() -> None:
    hashes = [partition_prefix(encode_text(f"user#{i}")) for i in range(8000)]
    for segment in range(8):
        low, high = segment_range(segment, 8)
        share = sum(low <= hash_ and (high is None or hash_ < high) for hash_ in hashes)
        assert 850 < share < 1150
