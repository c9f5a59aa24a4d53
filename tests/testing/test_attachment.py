from __future__ import annotations

import asyncio
from typing import Any

import aioboto3
import boto3
import botocore.session
import pytest
from aiobotocore.session import get_session

import isotone
from isotone.errors import InternalServerError, ProvisionedThroughputExceededException, UsageError
from isotone.testing import attachment
from isotone.testing.attachment import attach

TABLE: dict[str, Any] = {
    "TableName": "music",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
REGION = "us-east-1"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def database() -> Any:
    with isotone.open() as database:
        database.client().create_table(**TABLE)
        yield database


def of_boto3_session(database: Any) -> Any:
    session = boto3.Session(region_name=REGION)
    attach(session, database)
    return session.client("dynamodb")


def of_boto3_client(database: Any) -> Any:
    client = boto3.Session(region_name=REGION).client("dynamodb")
    attach(client, database)
    return client


def of_boto3_resource(database: Any) -> Any:
    resource = boto3.Session(region_name=REGION).resource("dynamodb")
    attach(resource, database)
    return resource.meta.client


def of_botocore_session(database: Any) -> Any:
    session = botocore.session.Session()
    attach(session, database)
    return session.create_client("dynamodb", REGION)


@pytest.mark.parametrize(
    "connect", [of_boto3_session, of_boto3_client, of_boto3_resource, of_botocore_session]
)
def test_attaches_to(connect: Any, database: Any) -> None:
    assert connect(database).list_tables()["TableNames"] == ["music"]


def test_attaches_to_asynchronous_clients_and_sessions(database: Any) -> None:
    async def tables() -> list[Any]:
        found = []
        async with get_session().create_client("dynamodb", REGION) as client:
            attach(client, database)
            found.append((await client.list_tables())["TableNames"])
        session = aioboto3.Session(region_name=REGION)
        attach(session, database)
        async with session.resource("dynamodb") as dynamodb:
            found.append([table.name async for table in dynamodb.tables.all()])
        return found

    assert asyncio.run(tables()) == [["music"], ["music"]]


def test_two_clients_talk_to_two_databases(database: Any) -> None:
    with isotone.open() as empty:
        first, second = of_boto3_client(database), of_boto3_client(empty)
        assert first.list_tables()["TableNames"] == ["music"]
        assert second.list_tables()["TableNames"] == []


def test_detaches(database: Any) -> None:
    client = boto3.Session(region_name=REGION).client("dynamodb")
    with attach(client, database):
        assert client.list_tables()["TableNames"] == ["music"]
    with pytest.raises(botocore.exceptions.NoCredentialsError):
        client.list_tables()


def test_refuses_to_choose_between_two_databases(database: Any) -> None:
    client = of_boto3_session(database)
    both = pytest.raises(UsageError, match="two databases are attached")
    with isotone.open() as other, attach(client, other), both:
        client.list_tables()
    assert client.list_tables()["TableNames"] == ["music"]


def test_pages_with_boto3s_paginator(database: Any) -> None:
    client = of_boto3_client(database)
    for n in range(5):
        client.put_item(TableName="music", Item={"pk": {"S": str(n)}})
    pages = client.get_paginator("scan").paginate(
        TableName="music", PaginationConfig={"PageSize": 2}
    )
    assert sorted(item["pk"]["S"] for page in pages for item in page["Items"]) == list("01234")


def test_botocore_retries_what_it_would_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    failures = [InternalServerError("once"), ProvisionedThroughputExceededException("twice")]

    class Flaky:
        def send(self, operation: str, body: bytes) -> bytes:
            if failures:
                raise failures.pop()
            return b'{"TableNames":[]}'

    answer = of_boto3_client(Flaky()).list_tables()
    assert answer["ResponseMetadata"]["RetryAttempts"] == 2
    assert failures == []


@pytest.mark.parametrize("stranger", [None, "dynamodb", isotone.Client(lambda *_: b"")])
def test_refuses_strangers(stranger: Any, database: Any) -> None:
    with pytest.raises(UsageError, match="client, resource or session"):
        attach(stranger, database)


def test_aiobotocore_finds_the_headers_where_its_older_versions_look():
    answer = attachment.response_awaitably("http://here", 200, b"{}", "text/xml")
    assert answer.raw.raw_headers == [(b"Content-Type", b"text/xml")]
