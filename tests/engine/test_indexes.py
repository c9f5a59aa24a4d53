"""Index entries: who has one, what is in it, and what an index cannot bear."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operations.conftest import Asker, key_schema

from isotone.engine.layout import Keyspace, item_of, pack, size_of
from isotone.engine.table_indexes import ExpiryIndex, SecondaryIndex
from isotone.engine.table_schema import (
    IndexProjection,
    IndexSchema,
    KeyPart,
    KeySchema,
    TableSchema,
    TimeToLive,
)
from isotone.values.size import item_size

TABLE = TableSchema(
    name="tab",
    id="",
    created=0,
    keys=KeySchema((KeyPart("p", "S"),), (KeyPart("s", "N"),)),
    tree="t1",
    attributes={},
)
GLOBAL_KEYS = KeySchema((KeyPart("g", "S"),), (KeyPart("n", "N"),))


def index_of(projection: IndexProjection, keys: KeySchema = GLOBAL_KEYS) -> SecondaryIndex:
    schema = IndexSchema("by-g", "global", keys, projection, "i1")
    return SecondaryIndex(schema, TABLE)


def entry_of(index: SecondaryIndex, item: dict[str, Any]) -> tuple[bytes, dict[str, Any]] | None:
    table_key = Keyspace(TABLE.keys).key(item)
    entry = index.entry(item, table_key, pack(item, item_size(item)))
    if entry is None:
        return None
    found = item_of(entry.record)
    assert size_of(entry.record) == item_size(found)
    return entry.key, found


ITEM = {
    "p": {"S": "a"},
    "s": {"N": "1"},
    "g": {"S": "x"},
    "n": {"N": "2"},
    "kept": {"BOOL": True},
    "other": {"NULL": True},
}


@pytest.mark.parametrize(
    ("projection", "absent"),
    [
        (IndexProjection("ALL"), set()),
        (IndexProjection("KEYS_ONLY"), {"kept", "other"}),
        (IndexProjection("INCLUDE", ("kept", "missing")), {"other"}),
    ],
)
def test_an_entry_has_the_keys_and_what_is_projected(
    projection: IndexProjection, absent: set[str]
) -> None:
    found = entry_of(index_of(projection), ITEM)
    assert found is not None
    assert found[1] == {name: value for name, value in ITEM.items() if name not in absent}


@pytest.mark.parametrize(
    "value", [None, {"N": "1"}, {"S": ""}, {"S": "x" * 2049}, {"S": "é" * 1025}, {"NULL": True}]
)
def test_an_item_whose_attribute_cannot_be_the_key_has_no_entry(value: dict[str, Any]) -> None:
    item = {name: given for name, given in {**ITEM, "g": value}.items() if given is not None}
    assert entry_of(index_of(IndexProjection()), item) is None


def test_the_longest_key_has_an_entry() -> None:
    assert entry_of(index_of(IndexProjection()), {**ITEM, "g": {"S": "x" * 2048}}) is not None


texts = st.text(alphabet="\x00\x01ab\xff", min_size=1, max_size=3)
entries = st.builds(
    lambda p, s, g, n: {"p": {"S": p}, "s": {"N": str(s)}, "g": {"S": g}, "n": {"N": str(n)}},
    texts,
    st.integers(-9, 9),
    st.sampled_from(["x", "y"]),
    st.integers(-3, 3),
)


@given(st.lists(entries, min_size=2, max_size=8))
def test_entries_of_one_partition_come_in_the_order_of_sort_key_then_table_key(
    items: list[dict[str, Any]],
) -> None:
    index = index_of(IndexProjection("KEYS_ONLY"))
    same = [item for item in items if item["g"] == items[0]["g"]]
    keyed = {}
    for item in same:
        found = entry_of(index, item)
        assert found is not None
        keyed[found[0]] = item

    def order(item: dict[str, Any]) -> tuple[int, bytes, int]:
        return int(item["n"]["N"]), item["p"]["S"].encode(), int(item["s"]["N"])

    in_order = [order(keyed[key]) for key in sorted(keyed)]
    assert in_order == sorted(set(map(order, same)))


numbers = st.sampled_from(["-1", "0", "0.5", "1", "1700000000", "1700000000.5", "9" * 38])


@given(numbers, numbers)
def test_expiries_come_in_the_order_of_time(first: str, second: str) -> None:
    index = ExpiryIndex(TimeToLive("until", "x1"))
    low, high = (index.entry({"until": {"N": text}}, b"key", b"") for text in (first, second))
    assert low is not None
    assert high is not None
    assert (low.key < high.key) == (float(first) < float(second))


@pytest.mark.parametrize("value", [{}, {"until": {"S": "1700000000"}}, {"until": {"NS": ["1"]}}])
def test_only_a_number_is_an_expiry(value: dict[str, Any]) -> None:
    assert ExpiryIndex(TimeToLive("until", "x1")).entry(value, b"key", b"") is None


GLOBAL_INDEX = {
    "IndexName": "by-g",
    "KeySchema": key_schema("g"),
    "Projection": {"ProjectionType": "ALL"},
}
ONE_INVALID = "One or more parameter values were invalid: "
NOT_VALID = "One or more parameter values are not valid. "
REFUSED = [
    (
        {"N": "1"},
        ONE_INVALID + "Type mismatch for Index Key g Expected: S Actual: N IndexName: by-g",
        "One or more parameter values were invalid: Type mismatch for Index Key g "
        "Expected: S Actual: N IndexName: by-g",
    ),
    (
        {"S": ""},
        NOT_VALID
        + "A value specified for a secondary index key is not supported. The AttributeValue "
        "for a key attribute cannot contain an empty string value. IndexName: by-g, IndexKey: g",
        NOT_VALID + "The update expression attempted to update a secondary index key to a value "
        "that is not supported. The AttributeValue for a key attribute cannot contain an empty "
        "string value.",
    ),
    (
        {"S": "x" * 2049},
        ONE_INVALID + "Size of hashkey has exceeded the maximum size limit of2048 bytes",
        "The update expression attempted to update the secondary index key beyond allowed size limits",
    ),
]


@pytest.mark.parametrize(("value", "put", "update"), REFUSED)
def test_what_cannot_be_an_index_key_is_refused(
    ask: Asker, value: dict[str, Any], put: str, update: str
) -> None:
    ask.table(types={"g": "S"}, GlobalSecondaryIndexes=[GLOBAL_INDEX])
    error = ask.refused("PutItem", TableName="tab", Item={"p": {"S": "a"}, "g": value})
    assert (error.code, error.message) == ("ValidationException", put)
    error = ask.refused(
        "UpdateItem",
        TableName="tab",
        Key={"p": {"S": "a"}},
        UpdateExpression="SET g = :g",
        ExpressionAttributeValues={":g": value},
    )
    assert (error.code, error.message) == ("ValidationException", update)
    assert ask("Scan", TableName="tab")["Count"] == 0


def test_an_entry_that_says_the_same_is_not_written_again(ask: Asker) -> None:
    keys_only = {**GLOBAL_INDEX, "Projection": {"ProjectionType": "KEYS_ONLY"}}
    ask.table(types={"g": "S"}, GlobalSecondaryIndexes=[keys_only])
    item = {"p": {"S": "a"}, "g": {"S": "g"}, "x": {"N": "1"}}
    ask("PutItem", TableName="tab", Item=item)
    for changed in (
        dict(reversed(item.items())),
        {**item, "x": {"N": "2"}},
        {name: item[name] for name in ("g", "p")},
    ):
        answer = ask("PutItem", TableName="tab", Item=changed, ReturnConsumedCapacity="INDEXES")
        assert answer["ConsumedCapacity"] == {
            "TableName": "tab",
            "CapacityUnits": 1.0,
            "Table": {"CapacityUnits": 1.0},
        }
    answer = ask(
        "PutItem", TableName="tab", Item={**item, "g": {"S": "h"}}, ReturnConsumedCapacity="TOTAL"
    )
    assert answer["ConsumedCapacity"]["CapacityUnits"] == 3.0  # out of one place, into another
