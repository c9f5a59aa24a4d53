"""Vector indexes with boto3, whose newest service model knows them: over HTTP, and inside a mock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import boto3
import pytest
from tests.service_model import newest_client, newest_session

from isotone.testing import mock_aws

INDEX: dict[str, Any] = {
    "IndexName": "by_mood",
    "VectorAttribute": {"AttributeName": "mood"},
    "SearchSchema": [
        {"AttributeName": "genre", "SearchSchemaElementType": "HASH"},
        {"AttributeName": "year", "SearchSchemaElementType": "INLINE_FILTER"},
    ],
    "Dimensions": 3,
    "DistanceFunction": "COSINE",
    "Projection": {"ProjectionType": "ALL"},
}
TYPES = [
    {"AttributeName": "genre", "AttributeType": "S"},
    {"AttributeName": "year", "AttributeType": "N"},
]


@pytest.fixture(params=["http", "mock"])
def client(request: pytest.FixtureRequest, account: None) -> Iterator[Any]:
    if request.param == "http":
        url = request.getfixturevalue("url")
        client = newest_client(boto3.Session(), endpoint_url=url)
        yield client
        client.close()
    else:
        with mock_aws():
            yield newest_client(boto3.Session())


def song(name: str, *mood: float, **more: Any) -> dict[str, Any]:
    return {"id": {"S": name}, "mood": {"L": numbers(*mood)}, "genre": {"S": "pop"}, **more}


def numbers(*floats: float) -> list[dict[str, str]]:
    return [{"N": str(each)} for each in floats]


def create(client: Any, name: str, **more: Any) -> dict[str, Any]:
    created = client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "id", "AttributeType": "S"},
            *more.pop("types", []),
        ],
        **more,
    )
    description: dict[str, Any] = created["TableDescription"]
    return description


def found(client: Any, table: str, *mood: float, **more: Any) -> dict[str, float]:
    answer = client.search_vectors(
        TableName=table,
        IndexName="by_mood",
        SearchVector=numbers(*mood),
        TopK=10,
        **{
            "SearchConditionExpression": "genre = :genre",
            "ExpressionAttributeValues": {":genre": {"S": "pop"}},
            **more,
        },
    )
    return {result["Item"]["id"]["S"]: result["Score"] for result in answer["SearchResults"]}


def test_an_index_from_its_birth_to_its_end(client: Any, name: str) -> None:
    created = create(client, name, types=TYPES, VectorIndexes=[INDEX])
    assert created["VectorIndexes"][0]["IndexArn"].endswith(f":table/{name}/index/by_mood")
    written = client.put_item(
        TableName=name, Item=song("a", 1, 0, 0, year={"N": "1"}), ReturnConsumedCapacity="INDEXES"
    )
    assert written["ConsumedCapacity"]["VectorIndexes"] == {
        "by_mood": {"VectorWriteRequestBytes": 1024.0}
    }
    client.put_item(TableName=name, Item=song("b", 0, 1, 0, year={"N": "2"}))
    client.put_item(TableName=name, Item=song("c", -1, 0, 0))
    assert found(client, name, 2, 0, 0) == {"a": 0.0, "b": 1.0, "c": 2.0}
    assert found(
        client,
        name,
        2,
        0,
        0,
        SearchConditionExpression="genre = :genre AND #y = :year",
        ExpressionAttributeNames={"#y": "year"},
        ExpressionAttributeValues={":genre": {"S": "pop"}, ":year": {"N": "2"}},
    ) == {"b": 1.0}
    answer = client.search_vectors(
        TableName=name,
        IndexName="by_mood",
        SearchVector=numbers(0, 1, 0),
        TopK=1,
        SearchConditionExpression="genre = :genre",
        ExpressionAttributeValues={":genre": {"S": "pop"}},
        ProjectionExpression="id, mood",
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["SearchResults"] == [
        {"Item": {"id": {"S": "b"}, "mood": {"L": numbers(0, 1, 0)}}, "Score": 0.0}
    ]
    assert answer["ConsumedCapacity"] == {"VectorSearchRequestBytes": 1024.0}
    with pytest.raises(client.exceptions.ClientError, match="Invalid size for parameter mood"):
        client.put_item(TableName=name, Item=song("d", 1, 0))
    client.update_table(TableName=name, VectorIndexUpdates=[{"Delete": {"IndexName": "by_mood"}}])
    with pytest.raises(client.exceptions.ClientError, match="does not have the specified index"):
        found(client, name, 1, 1, 1)


def test_an_index_is_added_to_a_table_with_items(client: Any, name: str) -> None:
    create(client, name)
    for number in range(600):
        client.put_item(TableName=name, Item=song(f"{number}", number, 1, 0))
    client.update_table(
        TableName=name, AttributeDefinitions=TYPES, VectorIndexUpdates=[{"Create": INDEX}]
    )
    for _ in range(400):
        (described,) = client.describe_table(TableName=name)["Table"]["VectorIndexes"]
        if described["IndexStatus"] == "ACTIVE":
            break
        time.sleep(0.05)
    assert described["ItemCount"] == 600
    assert list(found(client, name, 1000, 1, 0))[:3] == ["599", "598", "597"]


def test_a_resource_writes_decimals(client: Any, name: str) -> None:
    """A vector in an item of boto3's resource is a list of Decimal."""
    create(client, name, types=TYPES, VectorIndexes=[INDEX])
    if client.meta.endpoint_url.startswith("http://"):
        session, options = (
            newest_session(boto3.Session()),
            {"endpoint_url": client.meta.endpoint_url},
        )
    else:
        session, options = newest_session(boto3.Session()), {}
    table = session.resource("dynamodb", **options).Table(name)
    mood = [Decimal("0.25"), Decimal(1), Decimal("-2")]
    table.put_item(Item={"id": "a", "genre": "pop", "mood": mood})
    assert found(client, name, 0.25, 1, -2) == {"a": 0.0}
    answer = table.meta.client.search_vectors(
        TableName=name,
        IndexName="by_mood",
        SearchVector=mood,
        TopK=1,
        SearchConditionExpression="genre = :genre",
        ExpressionAttributeValues={":genre": "pop"},
        ProjectionExpression="mood",
    )
    assert answer["SearchResults"][0]["Item"] == {"mood": mood}
