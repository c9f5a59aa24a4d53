"""Physical keys: one for each item, in the order of the sort key."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from isotone import limits
from isotone.engine.layout import Keyspace, hold_equal_items, pack, size_prefix, total_size
from isotone.engine.table_schema import KeyPart, KeySchema
from isotone.expressions import KeyRange, equal
from isotone.values.size import item_size

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


VALUES = st.recursive(
    st.sampled_from([{"S": "ab"}, {"S": "ba"}, {"N": "12"}, {"N": "21"}, {"BOOL": True}]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda values: {"L": values}),
        st.dictionaries(st.sampled_from("xy"), inner).map(lambda values: {"M": values}),
        st.permutations(["ab", "ba", "c"]).map(lambda members: {"SS": members}),
    ),
    max_leaves=6,
)
ITEMS = st.dictionaries(st.sampled_from("abc"), VALUES)


@given(ITEMS, ITEMS, st.data())
def test_records_hold_equal_items_in_any_order(one, other, data):
    shuffled = dict(data.draw(st.permutations(list(one.items()))))
    assert hold_equal_items(pack(one, item_size(one)), pack(shuffled, item_size(shuffled)))
    records = pack(one, item_size(one)), pack(other, item_size(other))
    assert hold_equal_items(*records) == equal({"M": one}, {"M": other})


@given(st.lists(st.integers(1, limits.ITEM_SIZE)))
def test_sizes_add_up(sizes: list[int]) -> None:
    assert total_size([size_prefix(size) + b"{}" for size in sizes]) == sum(sizes)
