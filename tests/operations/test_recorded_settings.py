"""Kinesis destinations, Contributor Insights and auto-scaling: recorded, checked, described, kept in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone.server import running_server

KINESIS = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
OTHER = "arn:aws:kinesis:us-east-1:000000000000:stream/others"
INDEX: dict[str, Any] = {
    "types": {"g": "S"},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_g",
            "KeySchema": key_schema("g", "p"),
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}
SCALING: dict[str, Any] = {"MinimumUnits": 5, "MaximumUnits": 50}
TARGET: dict[str, Any] = {
    "ScalingPolicyUpdate": {
        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70, "ScaleInCooldown": 60}
    }
}
PROVISIONED: dict[str, Any] = {
    "BillingMode": "PROVISIONED",
    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
}


@pytest.fixture(params=["memory", "file"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Asker]:
    clock = isotone.ManualClock()
    path = ":memory:" if request.param == "memory" else tmp_path / "file.db"
    with isotone.open(path, clock=clock, durability="none") as database:
        yield Asker(database, clock)
        assert database.check() == []


# Kinesis


def kinesis(ask: Asker) -> list[tuple[str, str, str]]:
    described = ask("DescribeKinesisStreamingDestination", TableName="tab")
    assert described["TableName"] == "tab"
    return [
        (
            each["StreamArn"].rpartition("/")[2],
            each["DestinationStatus"],
            each["ApproximateCreationDateTimePrecision"],
        )
        for each in described["KinesisDataStreamDestinations"]
    ]


def test_a_destination_is_enabled_changed_and_disabled(ask: Asker) -> None:
    ask.table()
    assert kinesis(ask) == []
    where = {"TableName": "tab", "StreamArn": KINESIS}
    assert ask("EnableKinesisStreamingDestination", **where) == {
        **where,
        "DestinationStatus": "ENABLING",
        "EnableKinesisStreamingConfiguration": {},
    }
    assert kinesis(ask) == [("changes", "ACTIVE", "MILLISECOND")]
    micro = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    changed = ask(
        "UpdateKinesisStreamingDestination", UpdateKinesisStreamingConfiguration=micro, **where
    )
    assert changed["DestinationStatus"] == "UPDATING"
    assert kinesis(ask) == [("changes", "ACTIVE", "MICROSECOND")]
    gone = ask("DisableKinesisStreamingDestination", **where)
    assert gone["DestinationStatus"] == "DISABLING"
    assert kinesis(ask) == [("changes", "DISABLED", "MICROSECOND")]
    ask("EnableKinesisStreamingDestination", TableName="tab", StreamArn=OTHER)
    assert [each[:2] for each in kinesis(ask)] == [("changes", "DISABLED"), ("others", "ACTIVE")]


def test_a_destination_must_be_in_the_state_that_a_change_needs(ask: Asker) -> None:
    ask.table()
    where = {"TableName": "tab", "StreamArn": KINESIS}
    micro = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    update = {"UpdateKinesisStreamingConfiguration": micro, **where}
    for action, request, word in (
        ("DisableKinesisStreamingDestination", where, "ACTIVE to perform DISABLE"),
        ("UpdateKinesisStreamingDestination", update, "ACTIVE to perform UPDATE"),
    ):
        refused = ask.refused(action, **request)
        assert (refused.code, word in refused.message) == ("ValidationException", True)
    ask("EnableKinesisStreamingDestination", **where)
    for arn in (KINESIS, OTHER):
        refused = ask.refused("EnableKinesisStreamingDestination", TableName="tab", StreamArn=arn)
        assert "must be DISABLED" in refused.message
    ask("UpdateKinesisStreamingDestination", **update)
    refused = ask.refused("UpdateKinesisStreamingDestination", **update)
    assert "already set to the desired value of MICROSECOND" in refused.message
    refused = ask.refused("UpdateKinesisStreamingDestination", **where)
    assert refused.code == "ValidationException"
    refused = ask.refused("EnableKinesisStreamingDestination", TableName="tab", StreamArn="x" * 40)
    assert refused.code == "ValidationException"
    missing = ask.refused("DescribeKinesisStreamingDestination", TableName="none")
    assert missing.code == "ResourceNotFoundException"


# Contributor Insights


def insights(ask: Asker, **more: Any) -> dict[str, Any]:
    return ask("DescribeContributorInsights", TableName="tab", **more)


def test_insights_of_tables_and_indexes_are_apart(ask: Asker) -> None:
    ask.table(**INDEX)
    off = {"TableName": "tab", "ContributorInsightsStatus": "DISABLED"}
    assert insights(ask) == off
    changed = ask("UpdateContributorInsights", TableName="tab", ContributorInsightsAction="ENABLE")
    assert changed["ContributorInsightsStatus"] == "ENABLING"
    described = insights(ask)
    assert described["ContributorInsightsStatus"] == "ENABLED"
    assert described["ContributorInsightsMode"] == "ACCESSED_AND_THROTTLED_KEYS"
    names = [rule.split("-")[1] for rule in described["ContributorInsightsRuleList"]]
    assert names == ["PKC", "PKT"]
    assert insights(ask, IndexName="by_g") == {**off, "IndexName": "by_g"}
    ask(
        "UpdateContributorInsights",
        TableName="tab",
        IndexName="by_g",
        ContributorInsightsAction="ENABLE",
        ContributorInsightsMode="THROTTLED_KEYS",
    )
    rules = insights(ask, IndexName="by_g")["ContributorInsightsRuleList"]
    assert [rule.split("-")[1] for rule in rules] == ["PKT", "SKT"]
    ask("UpdateContributorInsights", TableName="tab", ContributorInsightsAction="DISABLE")
    assert insights(ask)["ContributorInsightsStatus"] == "DISABLED"
    assert insights(ask)["ContributorInsightsRuleList"] == []


def test_insights_of_what_is_missing_are_refused(ask: Asker) -> None:
    ask.table(**INDEX)
    for request in ({"TableName": "none"}, {"TableName": "tab", "IndexName": "none"}):
        for action, more in (
            ("DescribeContributorInsights", {}),
            ("UpdateContributorInsights", {"ContributorInsightsAction": "ENABLE"}),
        ):
            assert ask.refused(action, **request, **more).code == "ResourceNotFoundException"
    for bad in ({"MaxResults": 0}, {"MaxResults": 101}, {"NextToken": "?"}):
        assert ask.refused("ListContributorInsights", **bad).code == "ValidationException"


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_pages_of_insights_miss_and_repeat_nothing(ask: Asker, size: int) -> None:
    for name in ("bbb", "aaa", "ccc", "ddd"):
        ask.table(name, **INDEX)
        for index in ({}, {"IndexName": "by_g"}):
            if name != "ddd":
                ask(
                    "UpdateContributorInsights",
                    TableName=name,
                    ContributorInsightsAction="ENABLE",
                    **index,
                )
    found: list[tuple[str, str]] = []
    more: dict[str, Any] = {}
    while True:
        page = ask("ListContributorInsights", MaxResults=size, **more)
        summaries = page["ContributorInsightsSummaries"]
        assert len(summaries) <= size
        found += [(each["TableName"], each.get("IndexName", "")) for each in summaries]
        if "NextToken" not in page:
            break
        more = {"NextToken": page["NextToken"]}
    assert found == [(name, index) for name in ("aaa", "bbb", "ccc") for index in ("", "by_g")]
    one = ask("ListContributorInsights", TableName="bbb")["ContributorInsightsSummaries"]
    assert [each["TableName"] for each in one] == ["bbb", "bbb"]


# Auto-scaling


def replica(ask: Asker) -> dict[str, Any]:
    described = ask("DescribeTableReplicaAutoScaling", TableName="tab")
    (found,) = described["TableAutoScalingDescription"]["Replicas"]
    return dict(found)


def provisioned(ask: Asker) -> None:
    index = {**INDEX["GlobalSecondaryIndexes"][0]}
    index["ProvisionedThroughput"] = PROVISIONED["ProvisionedThroughput"]
    ask.table(**{**INDEX, "GlobalSecondaryIndexes": [index]}, **PROVISIONED)


def test_scaling_is_recorded_for_reads_writes_and_indexes(ask: Asker) -> None:
    provisioned(ask)
    off = {"AutoScalingDisabled": True, "ScalingPolicies": []}
    assert replica(ask)["ReplicaProvisionedWriteCapacityAutoScalingSettings"] == off
    updated = ask(
        "UpdateTableReplicaAutoScaling",
        TableName="tab",
        ProvisionedWriteCapacityAutoScalingUpdate={**SCALING, **TARGET},
        GlobalSecondaryIndexUpdates=[
            {"IndexName": "by_g", "ProvisionedWriteCapacityAutoScalingUpdate": SCALING}
        ],
        ReplicaUpdates=[
            {
                "RegionName": "us-east-1",
                "ReplicaProvisionedReadCapacityAutoScalingUpdate": SCALING,
                "ReplicaGlobalSecondaryIndexUpdates": [
                    {"IndexName": "by_g", "ProvisionedReadCapacityAutoScalingUpdate": SCALING}
                ],
            }
        ],
    )["TableAutoScalingDescription"]
    assert updated["TableStatus"] == "UPDATING"
    found = replica(ask)
    writes = found["ReplicaProvisionedWriteCapacityAutoScalingSettings"]
    assert (writes["MinimumUnits"], writes["MaximumUnits"]) == (5, 50)
    (policy,) = writes["ScalingPolicies"]
    assert policy == {
        "PolicyName": "DynamoDBWriteCapacityUtilization:table/tab",
        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70, "ScaleInCooldown": 60},
    }
    (index,) = found["GlobalSecondaryIndexes"]
    assert index["ProvisionedReadCapacityAutoScalingSettings"]["MaximumUnits"] == 50
    assert index["ProvisionedWriteCapacityAutoScalingSettings"]["MaximumUnits"] == 50
    for change, bounds in (({"MaximumUnits": 60}, (5, 60)), ({"MinimumUnits": 60}, (60, 60))):
        ask(
            "UpdateTableReplicaAutoScaling",
            TableName="tab",
            ProvisionedWriteCapacityAutoScalingUpdate=change,
        )
        writes = replica(ask)["ReplicaProvisionedWriteCapacityAutoScalingSettings"]
        assert (writes["MinimumUnits"], writes["MaximumUnits"]) == bounds
    ask(
        "UpdateTableReplicaAutoScaling",
        TableName="tab",
        ProvisionedWriteCapacityAutoScalingUpdate={"AutoScalingDisabled": True},
    )
    assert replica(ask)["ReplicaProvisionedWriteCapacityAutoScalingSettings"] == off


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"MinimumUnits": 5}, "ValidationException"),
        ({"MinimumUnits": 6, "MaximumUnits": 5}, "ValidationException"),
        (
            {
                **SCALING,
                "ScalingPolicyUpdate": {
                    "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 91}
                },
            },
            "ValidationException",
        ),
    ],
)
def test_scaling_must_have_bounds_and_a_target(
    ask: Asker, change: dict[str, Any], code: str
) -> None:
    provisioned(ask)
    refused = ask.refused(
        "UpdateTableReplicaAutoScaling",
        TableName="tab",
        ProvisionedWriteCapacityAutoScalingUpdate=change,
    )
    assert refused.code == code


def test_scaling_needs_the_table_its_replica_its_index_and_provisioned_capacity(
    ask: Asker,
) -> None:
    action = "UpdateTableReplicaAutoScaling"
    writes = {"ProvisionedWriteCapacityAutoScalingUpdate": SCALING}
    assert ask.refused(action, TableName="tab", **writes).code == "ResourceNotFoundException"
    provisioned(ask)
    index = [{"IndexName": "none", **writes}]
    refused = ask.refused(action, TableName="tab", GlobalSecondaryIndexUpdates=index)
    assert refused.code == "ResourceNotFoundException"
    elsewhere = [
        {"RegionName": "eu-west-1", "ReplicaProvisionedReadCapacityAutoScalingUpdate": SCALING}
    ]
    refused = ask.refused(action, TableName="tab", ReplicaUpdates=elsewhere)
    assert refused.code == "ValidationException"
    ask.table("demand")
    assert ask.refused(action, TableName="demand", **writes).code == "ValidationException"


def test_settings_over_http_with_boto3_and_after_the_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    with isotone.open(path) as database, running_server(database) as url:
        client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
        client.create_table(
            TableName="tab",
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            KeySchema=key_schema("p"),
            **PROVISIONED,
        )
        client.enable_kinesis_streaming_destination(TableName="tab", StreamArn=KINESIS)
        client.update_contributor_insights(TableName="tab", ContributorInsightsAction="ENABLE")
        client.update_table_replica_auto_scaling(
            TableName="tab", ProvisionedWriteCapacityAutoScalingUpdate={**SCALING, **TARGET}
        )
    with isotone.open(path) as database:
        ours = database.client()
        sent = ours.describe_kinesis_streaming_destination(TableName="tab")
        assert sent["KinesisDataStreamDestinations"][0]["DestinationStatus"] == "ACTIVE"
        insight = ours.describe_contributor_insights(TableName="tab")
        assert insight["ContributorInsightsStatus"] == "ENABLED"
        scaled = ours.describe_table_replica_auto_scaling(TableName="tab")
        (found,) = scaled["TableAutoScalingDescription"]["Replicas"]
        assert found["ReplicaProvisionedWriteCapacityAutoScalingSettings"]["MinimumUnits"] == 5
