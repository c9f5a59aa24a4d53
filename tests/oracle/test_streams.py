"""Random histories of writes leave the same records in the stream here and in DynamoDB Local.

What is compared is each item's own sequence of records, since shards and their count are each side's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.endpoints import Isotone, RawApi
from tests.oracle.grammar import Value, items
from tests.oracle.local import Endpoint
from tests.oracle.scripts import n, s
from tests.oracle.test_random import asked

TABLE: dict[str, Any] = {
    "TableName": "streamed",
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "s", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "s", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
VIEWS = ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES")
Write = tuple[str, str, dict[str, Value]]

writes = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "set", "remove", "delete"]), st.sampled_from("123"), items
    ),
    min_size=1,
    max_size=8,
)
histories = st.lists(st.tuples(st.sampled_from(["single", "transaction"]), writes), max_size=6)


@pytest.fixture(scope="module")
def sides(theirs: Endpoint, ours: Isotone) -> Iterator[list[RawApi]]:
    yield [theirs, ours]
    for side in (theirs, ours):
        side.ask("DeleteTable", {"TableName": "streamed"})


@asked
@given(view=st.sampled_from(VIEWS), history=histories)
def test_records(sides: list[RawApi], view: str, history: list[tuple[str, list[Write]]]) -> None:
    seen = []
    for side in sides:
        side.ask("DeleteTable", {"TableName": "streamed"})
        specification = {"StreamEnabled": True, "StreamViewType": view}
        made = side.ask("CreateTable", {**TABLE, "StreamSpecification": specification})
        outcomes = [status for kind, group in history for status in perform(side, kind, group)]
        seen.append((outcomes, records(side, made[1]["TableDescription"]["LatestStreamArn"])))
    assert seen[0] == seen[1]


def perform(side: RawApi, kind: str, group: list[Write]) -> Iterator[int]:
    """Write, one by one or the last write of each item in one transaction; the statuses."""
    if kind == "single":
        for write in group:
            ((name, request),) = action(*write).items()
            yield side.ask(f"{name}Item", request)[0]
        return
    last = {number: (verb, number, attributes) for verb, number, attributes in group}
    entries = [action(*write) for write in last.values()]
    yield side.ask("TransactWriteItems", {"TransactItems": entries})[0]


def action(verb: str, number: str, attributes: dict[str, Value]) -> dict[str, dict[str, Any]]:
    key = {"p": s("key" + number), "s": n(number)}
    if verb == "put":
        return {"Put": {"TableName": "streamed", "Item": {**attributes, **key}}}
    if verb == "delete":
        return {"Delete": {"TableName": "streamed", "Key": key}}
    names = {f"#{place}": name for place, name in enumerate(attributes)}
    update: dict[str, Any] = {
        "TableName": "streamed",
        "Key": key,
        "UpdateExpression": "REMOVE nothing",
    }
    if names:
        parts = [f"{each} = :{each[1:]}" if verb == "set" else each for each in names]
        update["UpdateExpression"] = f"{verb.upper()} {', '.join(parts)}"
        update["ExpressionAttributeNames"] = names
    if verb == "remove" or not names:
        # DynamoDB Local creates an item for an update that only removes; see `known`.
        update["ConditionExpression"] = "attribute_exists(p)"
    if names and verb == "set":
        values = attributes.values()
        update["ExpressionAttributeValues"] = {f":{i}": value for i, value in enumerate(values)}
    return {"Update": update}


def records(side: RawApi, arn: str) -> dict[str, list[Any]]:
    """What each item's records say, in order, without what is each side's own."""
    described = side.ask("DescribeStream", {"StreamArn": arn})[1]["StreamDescription"]
    found: dict[str, list[Any]] = {}
    for shard in described["Shards"]:
        request = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        answer = side.ask("GetShardIterator", {"StreamArn": arn, **request})[1]
        position = answer["ShardIterator"]
        while position:
            page = side.ask("GetRecords", {"ShardIterator": position, "Limit": 3})[1]
            for record in page["Records"]:
                found.setdefault(str(record["dynamodb"]["Keys"]), []).append(plain(record))
            position = page.get("NextShardIterator") if page["Records"] else None
    return found


def plain(record: dict[str, Any]) -> Any:
    change = {
        name: value
        for name, value in record["dynamodb"].items()
        if name not in ("SequenceNumber", "ApproximateCreationDateTime")
    }
    kept = ("eventName", "eventVersion", "eventSource")
    return unordered({**{name: record[name] for name in kept}, **change})


def unordered(value: Any) -> Any:
    """Members of sets in one order. DynamoDB Local writes an empty list or map as `{}` in a record."""
    if value in ({"L": []}, {"M": {}}):
        return {}
    if isinstance(value, dict):
        return {
            name: sorted(each) if name in ("SS", "NS", "BS") else unordered(each)
            for name, each in value.items()
        }
    return [unordered(each) for each in value] if isinstance(value, list) else value
