"""What may lie in a table: the largest items, alone and with their entries in local indexes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone.engine.layout import size_of
from isotone.values.size import item_size

KB = 1024
LOCAL_INDEX = {
    "IndexName": "by-l",
    "KeySchema": key_schema("p", "l"),
    "Projection": {"ProjectionType": "ALL"},
}
TOO_LARGE = "Item size has exceeded the maximum allowed size"
TOO_LARGE_UPDATED = "Item size to update has exceeded the maximum allowed size"


def put(ask: Asker, size: int) -> None:
    """Put an item of exactly so many bytes: 2 of the key, 1 of the name, and the rest."""
    ask("PutItem", TableName="tab", Item={"p": {"S": "a"}, "x": {"S": "x" * (size - 3)}})


def test_an_item_has_400_kilobytes_and_no_byte_more(ask: Asker) -> None:
    ask.table()
    put(ask, 400 * KB)
    assert ask("DescribeTable", TableName="tab")["Table"]["TableSizeBytes"] == 400 * KB
    over = {"p": {"S": "a"}, "x": {"S": "x" * (400 * KB - 2)}}
    error = ask.refused("PutItem", TableName="tab", Item=over)
    assert (error.code, error.message) == ("ValidationException", TOO_LARGE)
    error = ask.refused(
        "UpdateItem",
        TableName="tab",
        Key={"p": {"S": "a"}},
        UpdateExpression="SET y = :y",
        ExpressionAttributeValues={":y": {"S": ""}},
    )
    assert (error.code, error.message) == ("ValidationException", TOO_LARGE_UPDATED)


@pytest.mark.parametrize(("size", "fits"), [(200 * KB, True), (200 * KB + 1, False)])
def test_an_item_shares_the_limit_with_its_entries_in_local_indexes(
    ask: Asker, size: int, fits: bool
) -> None:
    ask.table(keys="p s", types={"l": "S"}, LocalSecondaryIndexes=[LOCAL_INDEX])
    keys = {name: {"S": "1"} for name in ("p", "s", "l")}  # 6 bytes
    item = {**keys, "x": {"S": "x" * (size - 7)}}
    request: dict[str, Any] = {"TableName": "tab", "Item": item}
    if fits:
        ask("PutItem", **request)
    else:
        assert ask.refused("PutItem", **request).message == TOO_LARGE
        del item["l"]
        ask("PutItem", **request)
        error = ask.refused(
            "UpdateItem",
            TableName="tab",
            Key={"p": keys["p"], "s": keys["s"]},
            UpdateExpression="SET l = :l",
            ExpressionAttributeValues={":l": keys["l"]},
        )
        assert error.message == TOO_LARGE_UPDATED


values = st.recursive(
    st.one_of(
        st.builds(lambda text: {"S": text}, st.text(max_size=4)),
        st.builds(lambda number: {"N": str(number)}, st.integers(-(10**12), 10**12)),
        st.builds(lambda texts: {"SS": texts}, st.sets(st.text(max_size=3), min_size=1).map(list)),
        st.just({"NULL": True}),
    ),
    lambda inner: st.one_of(
        st.builds(lambda values: {"L": values}, st.lists(inner, max_size=3)),
        st.builds(lambda members: {"M": members}, st.dictionaries(st.text(max_size=2), inner)),
    ),
    max_leaves=5,
)
names = st.sampled_from(["a", "b", "é"])


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(names, st.one_of(st.none(), values)), min_size=1, max_size=6))
def test_the_recorded_size_is_the_size_after_any_updates(
    changes: list[tuple[str, dict[str, Any] | None]],
) -> None:
    key = {"p": {"S": "a"}}
    with isotone.open(":memory:") as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table()
        for name, value in changes:
            text = "REMOVE #a" if value is None else "SET #a = :v"
            more = {} if value is None else {"ExpressionAttributeValues": {":v": value}}
            try:
                ask(
                    "UpdateItem",
                    TableName="tab",
                    Key=key,
                    UpdateExpression=text,
                    ExpressionAttributeNames={"#a": name},
                    **more,
                )
            except isotone.errors.ValidationException:
                continue  # an empty name inside of a map
            item = ask("GetItem", TableName="tab", Key=key).get("Item")
            if item is None:  # nothing but removals so far
                continue
            table = database.engine.catalog.tables["tab"]
            record = database.engine.store.get(table.tree, table.keyspace.key(item))
            assert record is not None
            assert size_of(record) == item_size(item)
