"""Items: writes, reads, batches, transactions, statements, and the streams of their changes."""

from __future__ import annotations

from typing import Any

from tests.operations.session.player import (
    FULL,
    METRICS,
    START,
    STREAM,
    UNLESS,
    VALUES,
    Player,
    Request,
    indexed,
    n,
    s,
    vector,
)

from isotone.testing import Faults


def single_writes(play: Player) -> None:
    indexed(play)
    one = {"TableName": "tab", "Key": {"p": s("a"), "s": n(1)}}
    play("PutItem", TableName="tab", Item=FULL, **METRICS)
    play("PutItem", TableName="tab", Item={**FULL, "x": n(1)}, ReturnValues="ALL_OLD", **METRICS)
    refused = "ConditionalCheckFailedException"
    play.refused(refused, "PutItem", TableName="tab", Item=FULL, **UNLESS)
    play("PutItem", TableName="tab", Item={**FULL, "x": n(1)}, **legacy(n(1), n(7)))
    play.refused(refused, "PutItem", TableName="tab", Item=FULL, **legacy(n(6), n(7)))
    for kind in ("ALL_NEW", "UPDATED_OLD"):
        play(
            "UpdateItem",
            **one,
            UpdateExpression="SET #x = :x, g = :g REMOVE m",
            ConditionExpression="attribute_exists(p)",
            ExpressionAttributeNames={"#x": "x"},
            ExpressionAttributeValues={":x": n(2), ":g": s("h")},
            ReturnValues=kind,
            **METRICS,
        )
    play.refused(refused, "UpdateItem", **one, UpdateExpression="REMOVE g", **UNLESS)
    updates = {
        "x": {"Value": n(3), "Action": "ADD"},
        "z": {"Action": "DELETE"},
        "w": {"Value": n(4), "Action": "PUT"},
    }
    more = {**legacy(n(2), n(7)), "ReturnValues": "UPDATED_NEW"}
    play("UpdateItem", **one, AttributeUpdates=updates, **more)
    play.refused(refused, "UpdateItem", **one, AttributeUpdates=updates, **legacy(n(1), n(8)))
    play.refused(refused, "DeleteItem", **one, **UNLESS)
    play.refused(refused, "DeleteItem", **one, **legacy(n(1), n(8)))
    play("GetItem", **one)
    play("DeleteItem", **one, ReturnValues="ALL_OLD", **legacy(n(5), n(7)), **METRICS)
    play("PutItem", TableName="tab", Item={**FULL, "x": n(9)})
    play("DeleteItem", **one, ReturnValues="ALL_OLD", **UNLESS)


def legacy(x: Any, other: Any) -> Request:
    """A condition that is true if `x` is this value, whatever `other` is."""
    return {
        "Expected": {
            "x": {"ComparisonOperator": "EQ", "AttributeValueList": [x]},
            "w": {"ComparisonOperator": "EQ", "AttributeValueList": [other]},
        },
        "ConditionalOperator": "OR",
    }


def legacy_expectations(play: Player) -> None:
    play.table()
    play("PutItem", TableName="tab", Item={**VALUES, "x": n(1)})
    one = {"TableName": "tab", "Key": {"p": s("a"), "s": n(1)}}
    for name, value, exists in (("x", n(1), True), ("w", None, False)):
        expected: Request = {name: {"Exists": exists} | ({"Value": value} if value else {})}
        updates = {"y": {"Value": n(4), "Action": "PUT"}}
        play("UpdateItem", **one, AttributeUpdates=updates, Expected=expected)
        play("PutItem", TableName="tab", Item={**VALUES, "x": n(1)}, Expected=expected)
    play("DeleteItem", **one, Expected={"w": {"Exists": False}})
    play("PutItem", TableName="tab", Item={**VALUES, "x": n(1)})
    play("DeleteItem", **one, Expected={"x": {"Value": n(1), "Exists": True}})


def reads(play: Player) -> None:
    indexed(play)
    for number in range(1, 5):
        play("PutItem", TableName="tab", Item={**FULL, "s": n(number), "l": s(f"l{number}")})
    one = {"TableName": "tab", "Key": {"p": s("a"), "s": n(1)}}
    costs = {"ReturnConsumedCapacity": "INDEXES"}
    play("GetItem", **one, ConsistentRead=True, **costs)
    play("GetItem", **one, AttributesToGet=["b"])
    play("GetItem", **one, ProjectionExpression="#m.l", ExpressionAttributeNames={"#m": "m"})
    condition = {
        "KeyConditionExpression": "#p = :p AND s > :s",
        "FilterExpression": "l <> :l",
        "ExpressionAttributeNames": {"#p": "p"},
        "ExpressionAttributeValues": {":p": s("a"), ":s": n(1), ":l": s("l3")},
    }
    play(
        "Query", TableName="tab", **condition, ScanIndexForward=False, ConsistentRead=True, **costs
    )
    play("Query", TableName="tab", **condition, Select="COUNT")
    play("Query", TableName="tab", **condition, ProjectionExpression="b, ss")
    page = play("Query", TableName="tab", **condition, Limit=1, **costs)
    play("Query", TableName="tab", **condition, ExclusiveStartKey=page["LastEvaluatedKey"])
    legacy_key = {
        "p": {"ComparisonOperator": "EQ", "AttributeValueList": [s("a")]},
        "s": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [n(1), n(3)]},
    }
    play(
        "Query",
        TableName="tab",
        KeyConditions=legacy_key,
        QueryFilter=legacy_filter(),
        ConditionalOperator="OR",
        AttributesToGet=["s", "z"],
    )
    of_index = {"ExpressionAttributeValues": {":g": s("g")}, "KeyConditionExpression": "g = :g"}
    play("Query", TableName="tab", IndexName="global", **of_index, **costs)
    of_local = {"ExpressionAttributeValues": {":p": s("a")}, "KeyConditionExpression": "p = :p"}
    play("Query", TableName="tab", IndexName="local", **of_local, **costs)
    play("Scan", TableName="tab", ConsistentRead=True, **costs)
    page = play("Scan", TableName="tab", Limit=2)
    play("Scan", TableName="tab", ExclusiveStartKey=page["LastEvaluatedKey"])
    play("Scan", TableName="tab", IndexName="local", Select="COUNT", **costs)
    for segment in range(2):
        play("Scan", TableName="tab", Segment=segment, TotalSegments=2)
    play(
        "Scan",
        TableName="tab",
        FilterExpression="#l = :l",
        ProjectionExpression="s",
        ExpressionAttributeNames={"#l": "l"},
        ExpressionAttributeValues={":l": s("l2")},
    )
    play(
        "Scan",
        TableName="tab",
        ScanFilter=legacy_filter(),
        ConditionalOperator="OR",
        AttributesToGet=["s"],
    )


def legacy_filter() -> Request:
    return {
        "l": {"ComparisonOperator": "EQ", "AttributeValueList": [s("l2")]},
        "z": {"ComparisonOperator": "CONTAINS", "AttributeValueList": [s("q")]},
    }


def vector_searches(play: Player) -> None:
    indexed(play)
    for number in range(1, 4):
        place = {"s": n(number), "y": n(number % 2), "v": vector(number, number)}
        play("PutItem", TableName="tab", Item={**FULL, **place})
    play(
        "SearchVectors",
        TableName="tab",
        IndexName="near",
        SearchVector=[n(1), n(1)],
        TopK=1,
        SearchConditionExpression="#g = :g AND y = :y",
        ProjectionExpression="p, s, z",
        ExpressionAttributeNames={"#g": "g"},
        ExpressionAttributeValues={":g": s("g"), ":y": n(1)},
        ReturnConsumedCapacity="INDEXES",
    )


def batches(play: Player) -> None:
    indexed(play)
    puts = [{"PutRequest": {"Item": {**FULL, "s": n(number)}}} for number in range(4)]
    play("BatchWriteItem", RequestItems={"tab": puts}, **METRICS)
    keys = [{"p": s("a"), "s": n(number)} for number in range(4)]
    costs = {"ReturnConsumedCapacity": "INDEXES"}
    wanted = {
        "Keys": keys,
        "ConsistentRead": True,
        "ProjectionExpression": "#b, s",
        "ExpressionAttributeNames": {"#b": "b"},
    }
    play("BatchGetItem", RequestItems={"tab": wanted}, **costs)
    wanted = {"Keys": keys, "AttributesToGet": ["s"]}
    play("BatchGetItem", RequestItems={"tab": wanted})
    faults = Faults(seed=1)
    faults.leave_unprocessed(0.5)
    with faults.on(play.database):
        play("BatchGetItem", RequestItems={"tab": {**wanted, "ConsistentRead": True}})
        names = {"ProjectionExpression": "#b", "ExpressionAttributeNames": {"#b": "b"}}
        play("BatchGetItem", RequestItems={"tab": {"Keys": keys, **names}})
        deletes = [{"DeleteRequest": {"Key": key}} for key in keys[:2]]
        for _ in range(3):
            play("BatchWriteItem", RequestItems={"tab": [*deletes, *puts[2:]]}, **METRICS)
    play("Scan", TableName="tab")


def transactions(play: Player) -> None:
    indexed(play)
    conditions = {
        "ConditionExpression": "attribute_not_exists(#x) OR #x < :x",
        "ExpressionAttributeNames": {"#x": "x"},
        "ExpressionAttributeValues": {":x": n(5)},
    }

    def write(**more: Any) -> list[Any]:
        shown = {"TableName": "tab", "ReturnValuesOnConditionCheckFailure": "ALL_OLD", **more}
        keys = [{"p": s("a"), "s": n(number)} for number in range(4)]
        return [
            {"ConditionCheck": {**conditions, **shown, "Key": keys[0]}},
            {"Put": {**conditions, **shown, "Item": {**FULL, "s": n(1)}}},
            {
                "Update": {
                    **conditions,
                    **shown,
                    "Key": keys[2],
                    "UpdateExpression": "SET #x = if_not_exists(#x, :x)",
                }
            },
            {"Delete": {**conditions, **shown, "Key": keys[3]}},
        ]

    for number in (0, 3):
        play("PutItem", TableName="tab", Item={**FULL, "s": n(number)})
    token = {"ClientRequestToken": "once"}
    play("TransactWriteItems", TransactItems=write(), **METRICS, **token)
    play("TransactWriteItems", TransactItems=write(), **METRICS, **token)
    reads_ = [
        {
            "Get": {
                "TableName": "tab",
                "Key": {"p": s("a"), "s": n(number)},
                "ProjectionExpression": "#b, s",
                "ExpressionAttributeNames": {"#b": "b"},
            }
        }
        for number in (0, 7)
    ]
    play("TransactGetItems", TransactItems=reads_, ReturnConsumedCapacity="INDEXES")
    for number in range(4):
        play("PutItem", TableName="tab", Item={**FULL, "s": n(number), "x": n(7)})
    play.refused("TransactionCanceledException", "TransactWriteItems", TransactItems=write())


def statements(play: Player) -> None:
    indexed(play)
    costs = {"ReturnConsumedCapacity": "INDEXES"}
    for number in range(1, 4):
        play("PutItem", TableName="tab", Item={**FULL, "s": n(number)})
    select = 'SELECT * FROM "tab" WHERE p = ?'
    parameters = {"Parameters": [s("a")]}
    play("ExecuteStatement", Statement=select, **parameters, ConsistentRead=True, **costs)
    page = play("ExecuteStatement", Statement=select, **parameters, Limit=1)
    next_ = {"NextToken": page["NextToken"]}
    play("ExecuteStatement", Statement=select, **parameters, **next_)
    scan = {"Statement": 'SELECT * FROM "tab"', "Limit": 1}
    play("ExecuteStatement", **scan)
    update = "UPDATE \"tab\" SET x = 1 WHERE p = 'a' AND s = 1 RETURNING ALL NEW *"
    play("ExecuteStatement", Statement=update, **costs)
    failing = "UPDATE \"tab\" SET x = 1 WHERE p = 'a' AND s = 1 AND x = 7"
    shown = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    refused = "ConditionalCheckFailedException"
    play.refused(refused, "ExecuteStatement", Statement=failing, **shown)
    one = {"Statement": 'SELECT * FROM "tab" WHERE p = ? AND s = ?', "Parameters": [s("a"), n(1)]}
    two = {**one, "Parameters": [s("a"), n(2)], "ConsistentRead": True}
    play("BatchExecuteStatement", Statements=[one, two], **costs)
    writes = [
        {"Statement": failing, **shown},
        {"Statement": "UPDATE \"tab\" SET x = 1 WHERE p = 'a' AND s = 3"},
    ]
    play("BatchExecuteStatement", Statements=writes, **costs)
    play("ExecuteTransaction", TransactStatements=[one], **costs)
    changes = [
        {"Statement": "UPDATE \"tab\" SET x = ? WHERE p = 'a' AND s = 1", "Parameters": [n(2)]},
        {"Statement": "DELETE FROM \"tab\" WHERE p = 'a' AND s = 2"},
    ]
    token = {"ClientRequestToken": "once"}
    play("ExecuteTransaction", TransactStatements=changes, **token, **costs)
    play("ExecuteTransaction", TransactStatements=changes, **token, **costs)
    transaction = [{"Statement": failing, **shown}]
    cancelled = "TransactionCanceledException"
    play.refused(cancelled, "ExecuteTransaction", TransactStatements=transaction)


def streams(play: Player) -> None:
    play.table("other", StreamSpecification=STREAM)
    play.table(StreamSpecification=STREAM)
    arn = play("DescribeTable", TableName="tab")["Table"]["LatestStreamArn"]
    play("PutItem", TableName="tab", Item=VALUES)
    play.clock.advance(10)
    play("PutItem", TableName="tab", Item={**VALUES, "x": n(1)})
    play("DeleteItem", TableName="tab", Key={"p": s("a"), "s": n(1)})
    ttl = {"Enabled": True, "AttributeName": "until"}
    play("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=ttl)
    play("PutItem", TableName="tab", Item={**VALUES, "until": n(int(START) + 20)})
    play.clock.advance(60)
    play.work()
    play("ListStreams", TableName="tab")
    last = play("ListStreams", Limit=1)["LastEvaluatedStreamArn"]
    play("ListStreams", ExclusiveStartStreamArn=last)
    described = play("DescribeStream", StreamArn=arn)["StreamDescription"]
    shard = {"StreamArn": arn, "ShardId": described["Shards"][0]["ShardId"]}
    kinds: list[Request] = [
        {"ShardIteratorType": "TRIM_HORIZON"},
        {"ShardIteratorType": "LATEST"},
        {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": START + 5},
    ]
    found: list[Any] = []
    for kind in kinds:
        at = play("GetShardIterator", **shard, **kind)["ShardIterator"]
        found += play("GetRecords", ShardIterator=at)["Records"]
        play("GetRecords", ShardIterator=at, Limit=1)
    number = {"SequenceNumber": found[1]["dynamodb"]["SequenceNumber"]}
    for place in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
        play("GetShardIterator", **shard, ShardIteratorType=place, **number)
    play.clock.advance(5 * 3600)
    play.work()
    play("PutItem", TableName="tab", Item=VALUES)
    first = play("DescribeStream", StreamArn=arn, Limit=1)["StreamDescription"]
    after = first["LastEvaluatedShardId"]
    play("DescribeStream", StreamArn=arn, ExclusiveStartShardId=after)
    children = {"Type": "CHILD_SHARDS", "ShardId": after}
    play("DescribeStream", StreamArn=arn, ShardFilter=children)
    play("UpdateTable", TableName="tab", StreamSpecification={"StreamEnabled": False})
    play("DescribeStream", StreamArn=arn)
