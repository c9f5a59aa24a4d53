"""What is taken over from a table that exists, what is not, and how a request is put into normal form."""

from __future__ import annotations

from typing import Any

import isotone
from isotone.schema.deployable import deployable, deployable_of, make
from isotone.tables.definition import TableDefinition, read_definition

KEY = [{"AttributeName": "id", "KeyType": "HASH"}]
DEFINED = [{"AttributeName": "id", "AttributeType": "S"}]
REQUEST: dict[str, Any] = {
    "TableName": "orders",
    "AttributeDefinitions": DEFINED,
    "KeySchema": KEY,
    "BillingMode": "PAY_PER_REQUEST",
}


def test_settings_that_change_nothing_are_left_out() -> None:
    noisy = {
        **REQUEST,
        "LocalSecondaryIndexes": [],
        "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
        "OnDemandThroughput": {"MaxReadRequestUnits": -1},
        "StreamSpecification": {"StreamEnabled": False},
        "SSESpecification": {"Enabled": False},
        "TableClass": "STANDARD",
        "DeletionProtectionEnabled": False,
        "Tags": [],
        "TimeToLiveSpecification": {"Enabled": False, "AttributeName": "expires"},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": False},
    }
    assert deployable(noisy).definition == REQUEST
    provisioned = deployable({**REQUEST, "BillingMode": None})
    assert provisioned.definition["BillingMode"] == "PROVISIONED"


def test_equal_tables_have_equal_requests() -> None:
    one = {
        **REQUEST,
        "AttributeDefinitions": [{"AttributeName": "at", "AttributeType": "N"}, *DEFINED],
        "KeySchema": [{"AttributeName": "at", "KeyType": "RANGE"}, *KEY],
        "Tags": [{"Key": "b", "Value": "2"}, {"Key": "a", "Value": "1"}],
        "SSESpecification": {"Enabled": True},
        "ResourcePolicy": '{ "Version": "2012-10-17" }',
    }
    other = {
        **REQUEST,
        "AttributeDefinitions": [*DEFINED, {"AttributeName": "at", "AttributeType": "N"}],
        "KeySchema": [*KEY, {"AttributeName": "at", "KeyType": "RANGE"}],
        "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}],
        "SSESpecification": {"Enabled": True, "SSEType": "KMS"},
        "ResourcePolicy": '{"Version":"2012-10-17"}',
    }
    assert deployable(one) == deployable(other)
    assert list(deployable(one).definition) == list(deployable(other).definition)


def test_everything_that_is_deployed_is_taken_over() -> None:
    table = deployable(
        {
            **REQUEST,
            "DeletionProtectionEnabled": True,
            "OnDemandThroughput": {"MaxReadRequestUnits": 9},
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
            "Tags": [{"Key": "team", "Value": "shop"}],
            "ResourcePolicy": (
                '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*",'
                '"Action":"dynamodb:GetItem","Resource":"*"}]}'
            ),
            "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "expires"},
            "PointInTimeRecoverySpecification": {
                "PointInTimeRecoveryEnabled": True,
                "RecoveryPeriodInDays": 7,
            },
        }
    )
    with isotone.open(":memory:") as database:
        assert make(database, table) == []
        definition = read_definition(database, "orders")
    assert definition is not None
    assert deployable_of(definition) == (table, [])


def test_what_is_not_taken_over_is_said() -> None:
    described = {
        **REQUEST,
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "Replicas": [{"RegionName": "eu-west-1"}],
        "WarmThroughput": {"ReadUnitsPerSecond": 50_000, "WriteUnitsPerSecond": 4_000},
    }
    definition = TableDefinition(
        described, kinesis_streams=("arn:stream",), denied=("ListTagsOfResource",)
    )
    table, notes = deployable_of(definition)
    assert table.definition == REQUEST
    assert notes == [
        "orders: tags: ListTagsOfResource is denied, so it is not known",
        "orders: the Kinesis stream arn:stream: add it to the result yourself",
        "orders: the replica in eu-west-1: add it to the result yourself",
        "orders: warm throughput of 50,000 read and 4,000 write units: it grows with use, "
        "and a new table pays for it; add it to the result if you want it",
    ]


def test_a_saved_definition_without_a_period_has_the_longest() -> None:
    definition = TableDefinition({**REQUEST}, has_recovery=True)
    table, _ = deployable_of(definition)
    assert table.definition["PointInTimeRecoverySpecification"] == {
        "PointInTimeRecoveryEnabled": True
    }
