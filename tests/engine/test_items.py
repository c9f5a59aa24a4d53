"""One item at a time, with what is counted of it: in its table, its indexes and its collection."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone.engine.items import collection_size
from isotone.values.size import item_size

BY_L: dict[str, Any] = {
    "IndexName": "by-l",
    "KeySchema": key_schema("p", "l"),
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}
writes = st.tuples(
    st.sampled_from(["put", "update", "delete"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["1", "2", "3"]),
    st.one_of(st.none(), st.sampled_from(["x", "yy"])),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(writes, max_size=20))
def test_counts_and_collections_are_those_of_the_items(
    actions: list[tuple[str, str, str, str | None]],
) -> None:
    with isotone.open(":memory:") as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table(keys="p s", types={"l": "S"}, LocalSecondaryIndexes=[BY_L])
        for action, partition, sort, local in actions:
            carry_out(ask, action, {"p": {"S": partition}, "s": {"S": sort}}, local)
        items = ask("Scan", TableName="tab")["Items"]
        described = ask("DescribeTable", TableName="tab")["Table"]
        assert described["ItemCount"] == len(items)
        assert described["TableSizeBytes"] == sum(map(item_size, items))
        (index,) = described["LocalSecondaryIndexes"]
        assert index["ItemCount"] == sum("l" in item for item in items)
        sizes: Counter[str] = Counter()
        for item in items:
            sizes[item["p"]["S"]] += item_size(item)
        table = database.engine.catalog.tables["tab"]
        for partition in ("a", "b"):
            prefix = table.keyspace.prefix([{"S": partition}])
            assert collection_size(database.engine, table, prefix) == sizes[partition]
        assert database.check() == []


def carry_out(ask: Asker, action: str, key: dict[str, Any], local: str | None) -> None:
    more = {} if local is None else {"l": {"S": local}}
    if action == "put":
        ask("PutItem", TableName="tab", Item={**key, **more, "n": {"N": "1"}})
    elif action == "delete":
        ask("DeleteItem", TableName="tab", Key=key)
    elif local is None:
        ask("UpdateItem", TableName="tab", Key=key, UpdateExpression="REMOVE l, n")
    else:
        ask(
            "UpdateItem",
            TableName="tab",
            Key=key,
            UpdateExpression="SET l = :l",
            ExpressionAttributeValues={":l": more["l"]},
        )
