"""The streams client gives what boto3's gives on the same database, and refuses what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ParamValidationError

import isotone
from isotone.server import running_server
from isotone.testing import attach, mock_dynamodb

SECRETS = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
TABLE: Any = {
    "TableName": "music",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "B"}],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open(clock=isotone.ManualClock()) as opened:
        client = opened.client()
        client.create_table(**TABLE)
        client.put_item(TableName="music", Item={"p": {"B": b"\x00"}, "aTime": {"BS": [b"\xff"]}})
        yield opened


def consume(client: Any) -> tuple[list[Any], list[Any]]:
    """Everything that a client can say of its streams; the answers without their metadata, and records."""
    answers = [client.list_streams(TableName="music")]
    arn = answers[0]["Streams"][0]["StreamArn"]
    answers.append(client.describe_stream(StreamArn=arn))
    records = []
    for shard in answers[1]["StreamDescription"]["Shards"]:
        answer = client.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )
        page = client.get_records(ShardIterator=answer["ShardIterator"], Limit=10)
        records += page["Records"]
        answers += [answer, page]
    for answer in answers:
        assert answer.pop("ResponseMetadata")["HTTPStatusCode"] == 200
    return answers, records


def test_the_answers_are_botos(database: isotone.Database) -> None:
    theirs = boto3.client("dynamodbstreams", region_name="us-east-1", **SECRETS)
    with attach(theirs, database):
        answers, records = consume(theirs)
    assert consume(database.streams_client()) == (answers, records)
    (record,) = records
    assert record["dynamodb"]["Keys"] == {"p": {"B": b"\x00"}}
    assert record["dynamodb"]["NewImage"]["aTime"] == {"BS": [b"\xff"]}
    assert record["dynamodb"]["ApproximateCreationDateTime"].timestamp() == 1_700_000_000
    theirs.close()


def test_boto_talks_to_a_server(database: isotone.Database) -> None:
    with running_server(database) as url:
        theirs = boto3.client(
            "dynamodbstreams", region_name="us-east-1", endpoint_url=url, **SECRETS
        )
        assert consume(theirs) == consume(database.streams_client())
        theirs.close()


def test_the_mock_has_streams() -> None:
    with mock_dynamodb():
        tables = boto3.client("dynamodb", region_name="eu-west-1")
        tables.create_table(**TABLE)
        tables.put_item(TableName="music", Item={"p": {"B": b"1"}})
        streams = boto3.client("dynamodbstreams", region_name="eu-west-1")
        _, records = consume(streams)
        assert [(each["eventName"], each["awsRegion"]) for each in records] == [
            ("INSERT", "eu-west-1")
        ]


def test_errors_are_botos(database: isotone.Database) -> None:
    client = database.streams_client()
    with pytest.raises(client.exceptions.ResourceNotFoundException) as caught:
        client.describe_stream(
            StreamArn="arn:aws:dynamodb:us-east-1:000000000000:table/tab/stream/2026-01-01T00:00:00.000"
        )
    assert isinstance(caught.value, ClientError)
    assert isinstance(caught.value, isotone.errors.ResourceNotFoundException)
    assert client.exceptions.TrimmedDataAccessException.__name__ in repr(
        client.exceptions.from_code("TrimmedDataAccessException")
    )
    with pytest.raises(AttributeError):
        client.exceptions.ConditionalCheckFailedException  # noqa: B018


def test_has_neither_paginators_nor_waiters(database: isotone.Database) -> None:
    client = database.streams_client()
    assert not client.can_paginate("get_records")
    assert client.waiter_names == []
    with pytest.raises(ValueError, match="Operation cannot be paginated: get_records"):
        client.get_paginator("get_records")
    with pytest.raises(ValueError, match="Waiter does not exist: table_exists"):
        client.get_waiter("table_exists")


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("list_streams", {"TableName": "a", "Limit": 0}),
        ("describe_stream", {"StreamArn": "x", "ShardFilter": {"Kind": 1}}),
        ("get_shard_iterator", {"StreamArn": "x" * 40, "SequenceNumber": "1"}),
        ("get_records", {"ShardIterator": ""}),
        ("get_records", {"Shard": 1}),
    ],
)
def test_bad_parameters_are_refused_in_botos_words(
    database: isotone.Database, method: str, request_: dict[str, Any]
) -> None:
    theirs = boto3.client("dynamodbstreams", region_name="us-east-1", **SECRETS)
    with pytest.raises(ParamValidationError) as expected:
        theirs._make_api_call(theirs.meta.method_to_api_mapping[method], request_)
    with pytest.raises(ParamValidationError) as caught:
        getattr(database.streams_client(), method)(**request_)
    assert str(caught.value) == str(expected.value)
    theirs.close()


def test_the_streams_client_looks_like_botos(database: isotone.Database) -> None:
    theirs = boto3.client("dynamodbstreams", region_name="us-east-1", **SECRETS)
    ours = database.streams_client()
    assert ours.meta.method_to_api_mapping == theirs.meta.method_to_api_mapping
    assert ours.meta.endpoint_url == theirs.meta.endpoint_url
    assert not ours.can_paginate("list_streams")
    theirs.close()


def test_a_remote_backend_asks_for_streams(database: isotone.Database) -> None:
    with running_server(database) as url, isotone.connect(url) as store:
        answer = store.backend.execute("ListStreams", {"TableName": "music"})
        assert [each["TableName"] for each in answer["Streams"]] == ["music"]
