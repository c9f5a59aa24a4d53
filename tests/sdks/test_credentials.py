"""Clients against a server that verifies signatures: a right key passes, a wrong one gets the service's error."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import aioboto3
import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tests.sdks import orders, test_aws_sdk, test_javascript
from tests.sdks.install import HOW, JAVASCRIPT, aws_command
from tests.sdks.server_process import start_server

from isotone.cli.database import connect
from isotone.errors import ApiError
from isotone.server.users import AccessKey, User, changing_users, new_key


@dataclass(frozen=True)
class Guarded:
    """A server with two users: one has a key for good, the other one with a session token."""

    url: str
    lasting: AccessKey
    temporary: AccessKey


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder: Path = tmp_path_factory.mktemp("guarded")
    lasting, temporary = new_key(), new_key(timedelta(hours=1))
    with changing_users(folder / "users.json") as users:
        users["ann"] = User(keys=[lasting])
        users["ci"] = User(keys=[temporary])
    complaints = folder / "log"
    with (
        complaints.open("w") as log,
        start_server(None, "--credentials", str(folder / "users.json"), stderr=log) as server,
    ):
        yield Guarded(server.url, lasting, temporary)
        assert server.stop() == 0
    assert complaints.read_text() == ""


Use = Callable[[AccessKey], None]


@pytest.fixture
def use(account: None, monkeypatch: pytest.MonkeyPatch) -> Use:
    """Puts a key into the environment."""

    def put(key: AccessKey) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key.access_key_id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key.secret_access_key)
        if key.session_token:
            monkeypatch.setenv("AWS_SESSION_TOKEN", key.session_token)

    return put


def wrong(key: AccessKey) -> AccessKey:
    return AccessKey(access_key_id=key.access_key_id, secret_access_key="a wrong secret")


def stranger() -> AccessKey:
    return AccessKey(access_key_id="AKIAIOSFODNN7EXAMPLE", secret_access_key="any")


CODES = [
    (wrong, "InvalidSignatureException"),
    (lambda key: stranger(), "UnrecognizedClientException"),
]


def boto3_client(url: str, service: str = "dynamodb") -> Any:
    """A client of a session of its own: the default session keeps the first keys that it finds."""
    config = Config(retries={"mode": "standard"})
    return boto3.Session().client(service, endpoint_url=url, config=config)


@pytest.mark.parametrize("kind", ["lasting", "temporary"])
def test_boto3(guarded: Guarded, use: Use, name: str, kind: str) -> None:
    use(getattr(guarded, kind))
    client = boto3_client(guarded.url)
    client.create_table(**orders.definition(name))
    for item in orders.ORDERS:
        client.put_item(TableName=name, Item=orders.wire_item(item))
    assert client.scan(TableName=name, Select="COUNT")["Count"] == len(orders.ORDERS)
    client.delete_table(TableName=name)


@pytest.mark.parametrize(("other", "code"), CODES)
def test_boto3_with_a_wrong_key(guarded: Guarded, use: Use, other: Any, code: str) -> None:
    use(other(guarded.lasting))
    with pytest.raises(ClientError) as refused:
        boto3_client(guarded.url).list_tables()
    assert refused.value.response["Error"]["Code"] == code
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_boto3_compresses_what_it_signs(guarded: Guarded, use: Use) -> None:
    use(guarded.lasting)
    client = boto3_client(guarded.url)

    def compress(request: Any, **_: Any) -> None:
        request.data = gzip.compress(request.data)
        request.headers["Content-Encoding"] = "gzip"

    client.meta.events.register_first("before-sign.dynamodb.ListTables", compress)
    assert "TableNames" in client.list_tables(Limit=1)


def test_streams_with_boto3(guarded: Guarded, use: Use) -> None:
    use(guarded.lasting)
    assert boto3_client(guarded.url, "dynamodbstreams").list_streams()["Streams"] == []


@pytest.mark.parametrize("kind", ["lasting", "temporary"])
def test_aioboto3(guarded: Guarded, use: Use, kind: str) -> None:
    use(getattr(guarded, kind))

    async def story() -> None:
        async with aioboto3.Session().client("dynamodb", endpoint_url=guarded.url) as client:
            calls = (client.list_tables(Limit=each) for each in range(1, 30))
            assert all("TableNames" in answer for answer in await asyncio.gather(*calls))

    asyncio.run(story())


@pytest.mark.parametrize(("other", "code"), CODES)
def test_aioboto3_with_a_wrong_key(guarded: Guarded, use: Use, other: Any, code: str) -> None:
    use(other(guarded.lasting))

    async def story() -> None:
        async with aioboto3.Session().client("dynamodb", endpoint_url=guarded.url) as client:
            with pytest.raises(ClientError, match=code):
                await client.list_tables()

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["lasting", "temporary"])
def test_isotone(guarded: Guarded, use: Use, kind: str) -> None:
    use(getattr(guarded, kind))
    with connect(guarded.url) as connection:
        assert "TableNames" in connection.execute("ListTables", {})


@pytest.mark.parametrize(("other", "code"), CODES)
def test_isotone_with_a_wrong_key(guarded: Guarded, use: Use, other: Any, code: str) -> None:
    use(other(guarded.lasting))
    with connect(guarded.url) as connection:
        with pytest.raises(ApiError) as refused:
            connection.execute("ListTables", {})
        assert refused.value.code == code


COMMAND = aws_command()


@pytest.mark.skipif(COMMAND is None, reason=f"the AWS CLI is not installed; {HOW}")
def test_the_aws_cli(guarded: Guarded, use: Use) -> None:
    def listed() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*(COMMAND or ()), "dynamodb", "list-tables"],
            env={**os.environ, "AWS_ENDPOINT_URL_DYNAMODB": guarded.url, "AWS_PAGER": ""},
            capture_output=True,
            text=True,
            check=False,
        )

    use(guarded.temporary)
    done = listed()
    assert done.returncode == 0, done.stderr
    for other, code in CODES:
        use(other(guarded.temporary))
        assert code in listed().stderr


@pytest.mark.skipif(test_javascript.NODE is None, reason="there is no node")
@pytest.mark.skipif(
    not (JAVASCRIPT / "node_modules").exists(), reason=f"the JavaScript SDK is not installed; {HOW}"
)
class TestJavaScript:
    @pytest.mark.parametrize("kind", ["lasting", "temporary"])
    def test_the_suite(self, guarded: Guarded, use: Use, kind: str) -> None:
        use(getattr(guarded, kind))
        test_javascript.test_the_suite_in_javascript(guarded.url)

    @pytest.mark.parametrize(("other", "code"), CODES)
    def test_a_wrong_key(self, guarded: Guarded, use: Use, other: Any, code: str) -> None:
        use(other(guarded.lasting))
        program = (
            'const { createRequire } = require("node:module");'
            "const sdk = createRequire(`${process.env.ISOTONE_JS}/`)('@aws-sdk/client-dynamodb');"
            "const client = new sdk.DynamoDBClient({ endpoint: process.env.ISOTONE_URL });"
            "client.send(new sdk.ListTablesCommand({})).then(console.log, e => console.log(e.name));"
        )
        done = subprocess.run(
            [str(test_javascript.NODE), "-e", program],
            env={**os.environ, "ISOTONE_URL": guarded.url, "ISOTONE_JS": str(JAVASCRIPT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.strip() == code, done.stderr


@pytest.mark.skipif(
    not test_aws_sdk.PYTHON.exists(), reason=f"aws-sdk-dynamodb is not installed; {HOW}"
)
def test_aws_sdk_dynamodb(guarded: Guarded, use: Use, name: str) -> None:
    use(guarded.lasting)
    test_aws_sdk.test_the_story(guarded.url, name)
