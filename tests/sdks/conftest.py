"""One server a test process, and clients that know where it is and nothing of anybody's account."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from tests.sdks import orders
from tests.sdks.server_process import server_process

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server_process(tmp_path_factory.mktemp("served") / "shop.db") as url:
        yield url


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that are nobody's, and no configuration files."""
    settings = {
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_CONFIG_FILE": "/nowhere",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def client(url: str, account: None) -> Iterator[Any]:
    """boto3's low-level client."""
    client = boto3.client("dynamodb", endpoint_url=url, config=Config(retries={"mode": "standard"}))
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    """A name for a table that no other test has."""
    return f"Orders-{next(_numbers)}"


@pytest.fixture
def table(client: Any, name: str) -> str:
    """The name of a table with all orders in it."""
    client.create_table(**orders.definition(name))
    client.get_waiter("table_exists").wait(TableName=name)
    for item in orders.ORDERS:
        client.put_item(TableName=name, Item=orders.wire_item(item))
    return name
