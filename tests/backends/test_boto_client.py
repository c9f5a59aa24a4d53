"""Real boto3 clients, attached to a database in the process, as backends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import isotone
from isotone.backends.boto_client import AsyncBotoClient, BotoClient
from isotone.backends.opening import open_async_backend, open_backend
from isotone.errors import (
    ConditionalCheckFailedException,
    ConnectionFailed,
    ResourceNotFoundException,
    TransactionCanceledException,
)
from isotone.testing import attach

boto3 = pytest.importorskip("boto3")

TABLE = {
    "TableName": "music",
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "B"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ITEM = {
    "k": {"B": "AAH/"},
    "all": {"L": [{"BS": ["AA==", "AQ=="]}, {"M": {"B": {"S": "not binary"}}}, {"N": "1.5"}]},
}


@pytest.fixture
def client() -> Iterator[Any]:
    with isotone.open() as database:
        made = boto3.client("dynamodb", region_name="eu-west-1")
        with attach(made, database):
            yield made


def test_items_go_and_come_back_in_wire_form(client: Any) -> None:
    backend = open_backend(client).backend
    assert isinstance(backend, BotoClient)
    backend.execute("CreateTable", TABLE)
    request = {"TableName": "music", "Item": ITEM}
    assert backend.execute("PutItem", request) == {}
    assert request == {"TableName": "music", "Item": ITEM}
    found = backend.execute("GetItem", {"TableName": "music", "Key": {"k": {"B": "AAH/"}}})
    assert found == {"Item": ITEM}


def test_times_are_seconds(client: Any) -> None:
    described = open_backend(client).backend.execute("CreateTable", TABLE)["TableDescription"]
    assert isinstance(described["CreationDateTime"], float)


def test_errors_are_those_of_the_api(client: Any) -> None:
    backend = open_backend(client).backend
    with pytest.raises(ResourceNotFoundException, match="Table: music not found"):
        backend.execute("DescribeTable", {"TableName": "music"})
    backend.execute("CreateTable", TABLE)
    put = {
        "TableName": "music",
        "Item": ITEM,
        "ConditionExpression": "attribute_not_exists(k)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    backend.execute("PutItem", put)
    with pytest.raises(ConditionalCheckFailedException) as raised:
        backend.execute("PutItem", put)
    assert raised.value.members["Item"] == ITEM
    with pytest.raises(TransactionCanceledException) as cancelled:
        backend.execute("TransactWriteItems", {"TransactItems": [{"Put": put}]})
    (reason,) = cancelled.value.members["CancellationReasons"]
    assert (reason["Code"], reason["Item"]) == ("ConditionalCheckFailed", ITEM)


def test_a_resource_is_its_client(client: Any) -> None:
    with isotone.open() as database:
        resource = boto3.resource("dynamodb", region_name="eu-west-1")
        with attach(resource, database):
            assert open_backend(resource).backend.execute("ListTables", {}) == {"TableNames": []}


def test_an_aioboto3_client_is_awaited() -> None:
    aioboto3 = pytest.importorskip("aioboto3")

    async def talk(database: isotone.Database) -> None:
        async with aioboto3.Session().client("dynamodb", region_name="eu-west-1") as client:
            with attach(client, database):
                backend = open_async_backend(client).backend
                assert isinstance(backend, AsyncBotoClient)
                await backend.execute("CreateTable", TABLE)
                await backend.execute("PutItem", {"TableName": "music", "Item": ITEM})
                key = {"TableName": "music", "Key": {"k": {"B": "AAH/"}}}
                assert await backend.execute("GetItem", key) == {"Item": ITEM}
                with pytest.raises(ResourceNotFoundException):
                    await backend.execute("DescribeTable", {"TableName": "other"})

    with isotone.open() as database:
        asyncio.run(talk(database))


def test_a_connection_that_fails_is_reported_as_of_any_backend() -> None:
    from botocore.config import Config

    made = boto3.client(
        "dynamodb",
        region_name="eu-west-1",
        endpoint_url="http://127.0.0.1:1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(retries={"total_max_attempts": 1}),
    )
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:1"):
        open_backend(made).backend.execute("ListTables", {})


def test_streams_are_reached_through_a_client_beside_the_given_one(client: Any) -> None:
    backend = open_backend(client).backend
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    backend.execute("CreateTable", {**TABLE, "StreamSpecification": stream})
    backend.execute("PutItem", {"TableName": "music", "Item": ITEM})
    (listed,) = backend.execute("ListStreams", {"TableName": "music"})["Streams"]
    where = {"StreamArn": listed["StreamArn"]}
    shards = backend.execute("DescribeStream", where)["StreamDescription"]["Shards"]
    found = []
    for shard in shards:
        start = {**where, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        position = backend.execute("GetShardIterator", start)["ShardIterator"]
        found += backend.execute("GetRecords", {"ShardIterator": position})["Records"]
    assert [record["dynamodb"]["NewImage"] for record in found] == [ITEM]
