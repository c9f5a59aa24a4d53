"""Isotone's client and boto3's own, asked the same of two equal databases, answer alike."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import botocore.exceptions
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone.testing.attachment import attach

TABLE: dict[str, Any] = {
    "TableName": "music",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "B"},
    ],
    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
}
ITEM = {
    "pk": {"S": "a"},
    "sk": {"B": b"\x00\xff"},
    "B": {"M": {"B": {"B": b""}, "BS": {"BS": [b"x", b"y"]}}},
    "n": {"N": "1e2"},
    "when": {"L": [{"NULL": True}, {"BOOL": False}, {"SS": ["s"]}]},
}
KEY = {"pk": ITEM["pk"], "sk": ITEM["sk"]}

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("create_table", TABLE),
    ("create_table", TABLE),
    ("describe_table", {"TableName": "music"}),
    ("describe_table", {"TableName": "films"}),
    ("list_tables", {}),
    ("describe_limits", {}),
    ("describe_time_to_live", {"TableName": "music"}),
    ("put_item", {"TableName": "music", "Item": ITEM, "ReturnConsumedCapacity": "TOTAL"}),
    ("put_item", {"TableName": "music", "Item": ITEM, "ReturnValues": "ALL_OLD"}),
    ("get_item", {"TableName": "music", "Key": KEY}),
    ("get_item", {"TableName": "music", "Key": {**KEY, "sk": {"B": b"none"}}}),
    ("get_item", {"TableName": "music", "Key": {"pk": {"S": "a"}}}),
    ("get_item", {"TableName": "music", "Key": {"pk": "a"}}),
    ("get_item", {"TableName": "music"}),
    (
        "put_item",
        {
            "TableName": "music",
            "Item": ITEM,
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    ),
    (
        "transact_write_items",
        {
            "TransactItems": [
                {"Put": {"TableName": "music", "Item": {**KEY, "sk": {"B": b"2"}}}},
                {
                    "ConditionCheck": {
                        "TableName": "music",
                        "Key": KEY,
                        "ConditionExpression": "attribute_not_exists(pk)",
                        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    }
                },
            ]
        },
    ),
    ("batch_get_item", {"RequestItems": {"music": {"Keys": [KEY]}}}),
    (
        "query",
        {
            "TableName": "music",
            "KeyConditionExpression": "pk = :a AND begins_with(sk, :b)",
            "ExpressionAttributeValues": {":a": {"S": "a"}, ":b": {"B": b"\x00"}},
            "Limit": 1,
        },
    ),
    ("scan", {"TableName": "music", "Limit": 1}),
    ("scan", {"TableName": "music", "FilterExpression": "nonsense ="}),
    ("delete_item", {"TableName": "music", "Key": KEY, "ReturnValues": "ALL_OLD"}),
    ("describe_continuous_backups", {"TableName": "music"}),
    (
        "update_continuous_backups",
        {
            "TableName": "music",
            "PointInTimeRecoverySpecification": {
                "PointInTimeRecoveryEnabled": True,
                "RecoveryPeriodInDays": 3,
            },
        },
    ),
    ("describe_continuous_backups", {"TableName": "music"}),
    (
        "restore_table_to_point_in_time",
        {
            "SourceTableName": "music",
            "TargetTableName": "again",
            "RestoreDateTime": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        },
    ),
    (
        "restore_table_to_point_in_time",
        {
            "SourceTableName": "music",
            "TargetTableName": "again",
            "UseLatestRestorableTime": True,
            "ProvisionedThroughputOverride": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 8},
        },
    ),
    ("restore_table_to_point_in_time", {"SourceTableName": "music", "RestoreDateTime": "soon"}),
    ("create_backup", {"TableName": "films", "BackupName": "copy"}),
    ("create_backup", {"TableName": "music", "BackupName": "no"}),
    ("list_backups", {"TimeRangeLowerBound": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)}),
    ("describe_backup", {"BackupArn": "a" * 40}),
    ("delete_backup", {"BackupArn": "a"}),
    ("delete_table", {"TableName": "music"}),
]


BOTO3 = boto3.Session(
    region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
).client("dynamodb")


@pytest.fixture
def pair() -> Iterator[tuple[Any, Any]]:
    clock = isotone.ManualClock(1_700_000_000.25)
    ours, theirs = isotone.open(clock=clock), isotone.open(clock=clock)
    with ours, theirs, attach(BOTO3, theirs):
        yield ours.client(), BOTO3


def outcome(client: Any, method: str, request: dict[str, Any]) -> Any:
    """What a call returns or raises, without what names the one call."""
    try:
        response = getattr(client, method)(**request)
    except botocore.exceptions.ClientError as error:
        response = error.response
        response["text"] = str(error)
        response["operation"] = error.operation_name
    except botocore.exceptions.ParamValidationError as error:
        return str(error)
    metadata = response.pop("ResponseMetadata")
    assert metadata.keys() == {"RequestId", "HTTPStatusCode", "HTTPHeaders", "RetryAttempts"}
    response.get("Table", response.get("TableDescription", {})).pop("TableId", None)
    return response, metadata["HTTPStatusCode"], metadata["RetryAttempts"]


def test_answers_as_boto3_does(pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    for method, request in CALLS:
        assert outcome(ours, method, request) == outcome(theirs, method, request), method


text = st.text(max_size=3)
scalars = (
    st.builds(lambda v: {"S": v}, text)
    | st.builds(lambda v: {"N": str(v)}, st.integers())
    | st.builds(lambda v: {"B": v}, st.binary(max_size=3))
    | st.builds(lambda v: {"BOOL": v}, st.booleans())
    | st.just({"NULL": True})
    | st.builds(lambda v: {"BS": sorted(v)}, st.sets(st.binary(max_size=3), min_size=1, max_size=3))
)
names = st.sampled_from(["B", "BS", "S", "M", "Item", "CreationDateTime"])
values = st.recursive(
    scalars,
    lambda inner: (
        st.builds(lambda v: {"L": v}, st.lists(inner, max_size=3))
        | st.builds(lambda v: {"M": v}, st.dictionaries(names, inner, max_size=3))
    ),
    max_leaves=8,
)


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(names, values, max_size=4))
def test_any_item_comes_back_as_from_boto3(attributes: dict[str, Any]) -> None:
    item = {"pk": {"S": "a"}, **attributes}
    table = {
        **TABLE,
        "KeySchema": TABLE["KeySchema"][:1],
        "AttributeDefinitions": TABLE["AttributeDefinitions"][:1],
    }
    with isotone.open() as database:
        ours, theirs = database.client(), BOTO3
        with attach(theirs, database):
            theirs.create_table(**table)
            theirs.put_item(TableName="music", Item=item)
            request = {"TableName": "music", "Key": {"pk": {"S": "a"}}}
            stored = ours.get_item(**request)["Item"]
            assert stored == theirs.get_item(**request)["Item"]
            assert (
                ours.put_item(TableName="music", Item=stored, ReturnValues="ALL_OLD")["Attributes"]
                == stored
                == ours.scan(TableName="music")["Items"][0]
            )
