"""Tables and their settings: indexes, units, tags, policies, expiry, Kinesis, insights, auto-scaling."""

from __future__ import annotations

import json
from typing import Final

from tests.operations.session.player import (
    AWAY,
    FULL,
    INCLUDE,
    KEY,
    KINESIS,
    MOST,
    NO_SCALING,
    START,
    STREAM,
    UNITS,
    VALUES,
    WARM,
    Player,
    Request,
    index,
    n,
    s,
    scaled,
    scaling,
    search,
    tab,
    types_of,
    vectors,
)

POLICY: Final = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::000000000000:user/ann"},
                "Action": "dynamodb:GetItem",
                "Resource": "arn:aws:dynamodb:us-east-1:000000000000:table/tab",
            }
        ],
    }
)


def tables(play: Player) -> None:
    play.table(
        types={"g": "S", "l": "S"},
        LocalSecondaryIndexes=[index("local", "p l", Projection=INCLUDE)],
        GlobalSecondaryIndexes=[
            index(
                "global", "g", Projection=INCLUDE, ProvisionedThroughput=UNITS, WarmThroughput=WARM
            )
        ],
        BillingMode="PROVISIONED",
        ProvisionedThroughput=UNITS,
        StreamSpecification=STREAM,
        SSESpecification=KEY,
        Tags=[{"Key": "owner", "Value": "ann"}],
        TableClass="STANDARD_INFREQUENT_ACCESS",
        DeletionProtectionEnabled=True,
        WarmThroughput=WARM,
        ResourcePolicy=POLICY,
    )
    play.work()
    arn = play("DescribeTable", TableName="tab")["Table"]["TableArn"]
    play("PutItem", TableName="tab", Item=FULL)
    play("PutItem", TableName="tab", Item={**FULL, "s": n(2), "l": s("m"), "z": s("other")})
    for name in ("local", "global"):
        more: Request = {} if name == "local" else {"ExpressionAttributeValues": {":v": s("g")}}
        more = more or {"ExpressionAttributeValues": {":v": s("a")}}
        condition = "p = :v" if name == "local" else "g = :v"
        play("Query", TableName="tab", IndexName=name, KeyConditionExpression=condition, **more)
    play("ListTagsOfResource", ResourceArn=arn)
    play("GetResourcePolicy", ResourceArn=arn)
    play.refused("ValidationException", "DeleteTable", TableName="tab")
    play("UpdateTable", TableName="tab", DeletionProtectionEnabled=False)
    play("UpdateTable", TableName="tab", TableClass="STANDARD")
    play("UpdateTable", TableName="tab", SSESpecification={"Enabled": False})
    play("UpdateTable", TableName="tab", StreamSpecification={"StreamEnabled": False})
    play("DeleteTable", TableName="tab")
    play.refused("ResourceNotFoundException", "DescribeTable", TableName="tab")


def on_demand_tables(play: Player) -> None:
    play.table(
        types={"g": "S"},
        GlobalSecondaryIndexes=[index("global", "g", OnDemandThroughput=MOST)],
        OnDemandThroughput=MOST,
    )
    play.refused("ResourceInUseException", "CreateTable", **tab())
    for name in ("one", "two"):
        play.table(name)
    play("ListTables")
    first = play("ListTables", Limit=2)["LastEvaluatedTableName"]
    play("ListTables", ExclusiveStartTableName=first)
    play("DescribeTable", TableName="tab")
    most = {"MaxReadRequestUnits": 7, "MaxWriteRequestUnits": 8}
    warm = {"ReadUnitsPerSecond": 20_000, "WriteUnitsPerSecond": 8_000}
    play(
        "UpdateTable",
        TableName="tab",
        OnDemandThroughput=most,
        WarmThroughput=warm,
        GlobalSecondaryIndexUpdates=[
            {
                "Update": {
                    "IndexName": "global",
                    "OnDemandThroughput": most,
                    "WarmThroughput": warm,
                }
            }
        ],
    )
    play("DescribeTable", TableName="tab")
    play(
        "UpdateTable",
        TableName="tab",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=UNITS,
        GlobalSecondaryIndexUpdates=[
            {"Update": {"IndexName": "global", "ProvisionedThroughput": UNITS}}
        ],
    )
    play.clock.advance(60)
    play(
        "UpdateTable",
        TableName="tab",
        ProvisionedThroughput={"ReadCapacityUnits": 9, "WriteCapacityUnits": 9},
    )
    play.clock.advance(60)
    play("UpdateTable", TableName="tab", ProvisionedThroughput=UNITS)
    play("DescribeTable", TableName="tab")
    play("UpdateTable", TableName="tab", BillingMode="PAY_PER_REQUEST")
    play("UpdateTable", TableName="tab", StreamSpecification=STREAM, SSESpecification=KEY)
    play(
        "UpdateTable",
        TableName="one",
        StreamSpecification={**STREAM, "StreamViewType": "KEYS_ONLY"},
    )
    play("DescribeTable", TableName="tab")
    play("DescribeTable", TableName="one")


def added_indexes(play: Player) -> None:
    play.table()
    play("PutItem", TableName="tab", Item=FULL)
    play("PutItem", TableName="tab", Item={**FULL, "s": n(2), "z": s("other")})
    types = types_of("p s:N g y:N")
    play(
        "UpdateTable",
        TableName="tab",
        AttributeDefinitions=[{"AttributeName": a, "AttributeType": t} for a, t in types.items()],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": index(
                    "global", "g", Projection=INCLUDE, OnDemandThroughput=MOST, WarmThroughput=WARM
                )
            }
        ],
    )
    play("DescribeTable", TableName="tab")
    play.work()
    play("DescribeTable", TableName="tab")
    play("Scan", TableName="tab", IndexName="global")
    play(
        "UpdateTable",
        TableName="tab",
        AttributeDefinitions=[{"AttributeName": a, "AttributeType": t} for a, t in types.items()],
        VectorIndexUpdates=[{"Create": vectors()}],
    )
    play("DescribeTable", TableName="tab")
    play.work()
    play("DescribeTable", TableName="tab")
    search(play, "tab")
    play("UpdateTable", TableName="tab", VectorIndexUpdates=[{"Delete": {"IndexName": "near"}}])
    delete = [{"Delete": {"IndexName": "global"}}]
    play("UpdateTable", TableName="tab", GlobalSecondaryIndexUpdates=delete)
    play("DescribeTable", TableName="tab")
    play.table("units", BillingMode="PROVISIONED", ProvisionedThroughput=UNITS)
    play(
        "UpdateTable",
        TableName="units",
        AttributeDefinitions=[{"AttributeName": a, "AttributeType": t} for a, t in types.items()],
        GlobalSecondaryIndexUpdates=[{"Create": index("by_g", "g", ProvisionedThroughput=UNITS)}],
    )
    play("DescribeTable", TableName="units")


def account(play: Player) -> None:
    play("DescribeLimits")
    play("DescribeEndpoints")


def tags_and_policies(play: Player) -> None:
    arn = play.table()["TableDescription"]["TableArn"]
    tags = [{"Key": f"key-{number}", "Value": f"value-{number}"} for number in range(12)]
    play("TagResource", ResourceArn=arn, Tags=tags)
    play("ListTagsOfResource", ResourceArn=arn)
    play("UntagResource", ResourceArn=arn, TagKeys=["key-0", "key-1", "key-2"])
    play("ListTagsOfResource", ResourceArn=arn)
    play.refused("PolicyNotFoundException", "GetResourcePolicy", ResourceArn=arn)
    put = {"ResourceArn": arn, "Policy": POLICY, "ConfirmRemoveSelfResourceAccess": True}
    play("PutResourcePolicy", **put, ExpectedRevisionId="NO_POLICY")
    revision = play("GetResourcePolicy", ResourceArn=arn)["RevisionId"]
    play.refused("PolicyNotFoundException", "PutResourcePolicy", **put, ExpectedRevisionId="1")
    play("PutResourcePolicy", **put, ExpectedRevisionId=revision)
    wrong = {"ResourceArn": arn, "ExpectedRevisionId": "1"}
    play.refused("PolicyNotFoundException", "DeleteResourcePolicy", **wrong)
    play("DeleteResourcePolicy", ResourceArn=arn, ExpectedRevisionId=revision)


def expiry(play: Player) -> None:
    play.table()
    play("DescribeTimeToLive", TableName="tab")
    specification = {"Enabled": True, "AttributeName": "until"}
    play("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
    play("DescribeTimeToLive", TableName="tab")
    play("PutItem", TableName="tab", Item={**VALUES, "until": n(int(START) + 5)})
    play.clock.advance(60)
    play.work()
    play("Scan", TableName="tab")


def kinesis(play: Player) -> None:
    play.table()
    destination = {"TableName": "tab", "StreamArn": KINESIS}
    precision = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    play(
        "EnableKinesisStreamingDestination",
        **destination,
        EnableKinesisStreamingConfiguration=precision,
    )
    play("DescribeKinesisStreamingDestination", TableName="tab")
    play(
        "UpdateKinesisStreamingDestination",
        **destination,
        UpdateKinesisStreamingConfiguration={"ApproximateCreationDateTimePrecision": "MILLISECOND"},
    )
    play("DescribeKinesisStreamingDestination", TableName="tab")
    play(
        "DisableKinesisStreamingDestination",
        **destination,
        EnableKinesisStreamingConfiguration=precision,
    )
    play("DescribeKinesisStreamingDestination", TableName="tab")


def insights(play: Player) -> None:
    for name in ("tab", "tac"):
        play.table(name, types={"g": "S"}, GlobalSecondaryIndexes=[index("global", "g")])
    for more in ({}, {"IndexName": "global"}):
        play(
            "UpdateContributorInsights",
            TableName="tab",
            ContributorInsightsAction="ENABLE",
            ContributorInsightsMode="THROTTLED_KEYS",
            **more,
        )
        play("DescribeContributorInsights", TableName="tab", **more)
    play("UpdateContributorInsights", TableName="tac", ContributorInsightsAction="ENABLE")
    token = play("ListContributorInsights", MaxResults=1)["NextToken"]
    play("ListContributorInsights", NextToken=token)
    play("ListContributorInsights", TableName="tac")
    play("UpdateContributorInsights", TableName="tac", ContributorInsightsAction="DISABLE")
    play("DescribeContributorInsights", TableName="tac")


def auto_scaling(play: Player) -> None:
    units = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS}
    by_g = index("global", "g", ProvisionedThroughput=UNITS)
    play.table(types={"g": "S"}, GlobalSecondaryIndexes=[by_g], StreamSpecification=STREAM, **units)
    play("UpdateTableReplicaAutoScaling", **scaled(scaling(4)))
    play("UpdateTable", TableName="tab", ReplicaUpdates=[{"Create": {"RegionName": AWAY}}])
    play(
        "UpdateTableReplicaAutoScaling",
        **scaled(scaling(5)),
        ReplicaUpdates=[
            {
                "RegionName": AWAY,
                "ReplicaGlobalSecondaryIndexUpdates": [
                    {
                        "IndexName": "global",
                        "ProvisionedReadCapacityAutoScalingUpdate": scaling(6),
                    }
                ],
                "ReplicaProvisionedReadCapacityAutoScalingUpdate": scaling(7),
            }
        ],
    )
    play("DescribeTableReplicaAutoScaling", TableName="tab")
    play("UpdateTableReplicaAutoScaling", **scaled(NO_SCALING))
    play(
        "UpdateTableReplicaAutoScaling",
        TableName="tab",
        ReplicaUpdates=[
            {
                "RegionName": AWAY,
                "ReplicaGlobalSecondaryIndexUpdates": [
                    {
                        "IndexName": "global",
                        "ProvisionedReadCapacityAutoScalingUpdate": NO_SCALING,
                    }
                ],
                "ReplicaProvisionedReadCapacityAutoScalingUpdate": NO_SCALING,
            }
        ],
    )
    play("DescribeTableReplicaAutoScaling", TableName="tab")
