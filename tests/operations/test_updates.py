"""Updates that only remove, on items that do not exist; and sets, which are stored in order."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operations.conftest import Asker

KEY = {"p": {"S": "a"}}
SET = {"SS": ["x"]}
REMOVALS: list[dict[str, Any]] = [
    {"UpdateExpression": "REMOVE x"},
    {"UpdateExpression": "REMOVE x.y, z[3]"},
    {"UpdateExpression": "DELETE x :v", "ExpressionAttributeValues": {":v": SET}},
    {"UpdateExpression": "REMOVE z.y DELETE x.y :v", "ExpressionAttributeValues": {":v": SET}},
    {"AttributeUpdates": {"x": {"Action": "DELETE"}}},
    {"AttributeUpdates": {"x": {"Action": "DELETE", "Value": SET}}},
]
CREATIONS: list[dict[str, Any]] = [
    {},
    {"AttributeUpdates": {}},
    {
        "UpdateExpression": "REMOVE x SET y = :v",
        "ExpressionAttributeValues": {":v": {"S": "x"}},
    },
    {"UpdateExpression": "DELETE x :v ADD y :v", "ExpressionAttributeValues": {":v": SET}},
]


def streamed(ask: Asker) -> str:
    """A table with a stream, and the stream's ARN."""
    ask.table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    arn: str = ask("DescribeTable", TableName="tab")["Table"]["LatestStreamArn"]
    return arn


def records(ask: Asker, arn: str) -> int:
    """How many records a stream has."""
    count = 0
    for shard in ask("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]:
        at = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        position = ask("GetShardIterator", StreamArn=arn, **at)["ShardIterator"]
        count += len(ask("GetRecords", ShardIterator=position)["Records"])
    return count


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("returned", ["ALL_NEW", "UPDATED_NEW", "ALL_OLD", "NONE"])
def test_a_removal_does_not_create(ask: Asker, removal: dict[str, Any], returned: str) -> None:
    arn = streamed(ask)
    more = {"ReturnValues": returned, "ReturnConsumedCapacity": "TOTAL"}
    answer = ask("UpdateItem", TableName="tab", Key=KEY, **removal, **more)
    assert answer == {"ConsumedCapacity": {"TableName": "tab", "CapacityUnits": 1.0}}
    assert ask("GetItem", TableName="tab", Key=KEY) == {}
    assert records(ask, arn) == 0


@pytest.mark.parametrize("removal", REMOVALS[:4])
def test_nor_does_it_in_a_transaction(ask: Asker, removal: dict[str, Any]) -> None:
    arn = streamed(ask)
    update = {"TableName": "tab", "Key": KEY, **removal}
    assert ask("TransactWriteItems", TransactItems=[{"Update": update}]) == {}
    assert ask("Scan", TableName="tab")["Count"] == 0
    assert records(ask, arn) == 0


def test_its_condition_is_tested(ask: Asker) -> None:
    ask.table()
    request = {"TableName": "tab", "Key": KEY, "UpdateExpression": "REMOVE x.y"}
    error = ask.refused("UpdateItem", **request, ConditionExpression="attribute_exists(p)")
    assert error.code == "ConditionalCheckFailedException"
    assert ask("UpdateItem", **request, ConditionExpression="attribute_not_exists(p)") == {}


@pytest.mark.parametrize("creation", CREATIONS)
def test_any_other_update_creates(ask: Asker, creation: dict[str, Any]) -> None:
    ask.table()
    answer = ask("UpdateItem", TableName="tab", Key=KEY, **creation, ReturnValues="ALL_NEW")
    assert answer["Attributes"]["p"] == {"S": "a"}
    assert ask("Scan", TableName="tab")["Count"] == 1


def test_sets_are_returned_in_order(ask: Asker) -> None:
    ask.table()
    item = {
        **KEY,
        "ss": {"SS": ["b", "～", "😀", ""]},
        "ns": {"NS": ["10", "9.5", "-1"]},
        "l": {"L": [{"BS": ["/w==", "AAE=", "AA=="]}]},
    }
    ask("PutItem", TableName="tab", Item=item)
    stored = ask("GetItem", TableName="tab", Key=KEY)["Item"]
    assert stored["ss"]["SS"] == ["", "b", "～", "😀"]
    assert stored["ns"]["NS"] == ["-1", "9.5", "10"]
    assert stored["l"]["L"][0]["BS"] == ["AA==", "AAE=", "/w=="]
    answer = ask(
        "UpdateItem",
        TableName="tab",
        Key=KEY,
        UpdateExpression="ADD ss :s, ns :n DELETE l[0] :b",
        ExpressionAttributeValues={
            ":s": {"SS": ["a", "b"]},
            ":n": {"NS": ["100", "2", "-1"]},
            ":b": {"BS": ["AAE="]},
        },
        ReturnValues="ALL_NEW",
    )
    new = answer["Attributes"]
    assert new["ss"]["SS"] == ["", "a", "b", "～", "😀"]
    assert new["ns"]["NS"] == ["-1", "2", "9.5", "10", "100"]
    assert new["l"]["L"][0]["BS"] == ["AA==", "/w=="]
