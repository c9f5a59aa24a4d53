"""The boto3 and aioboto3 clients of pytest's fixtures, connected to the database of the running test.

Creating a boto3 client takes milliseconds, so one client and one resource serve the whole test session;
only their database changes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from typing import Any, Final

from isotone.errors import UsageError

try:
    import boto3
except ImportError:
    raise UsageError("this fixture needs boto3: pip install 'isotone[boto3]'") from None

from isotone.testing.attachment import RequestAnswerer, attach

_NO_CREDENTIALS: Final = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}


class FixtureClients:
    """A boto3 client and resource that are connected to one database after another."""

    def __init__(self, region: str) -> None:
        self._session = boto3.Session(region_name=region, **_NO_CREDENTIALS)
        self._databases: list[RequestAnswerer] = []
        attach(self._session, self)

    @cached_property
    def client(self) -> Any:
        return self._session.client("dynamodb")

    @cached_property
    def resource(self) -> Any:
        return self._session.resource("dynamodb")

    @contextmanager
    def to(self, database: RequestAnswerer) -> Iterator[None]:
        """Send all requests to a database inside the block."""
        self._databases.append(database)
        try:
            yield
        finally:
            self._databases.pop()

    def send(self, operation: str, body: bytes) -> bytes:
        if not self._databases:
            raise UsageError(
                f"{operation} was called on a client of the fixtures dynamodb_client or "
                "dynamodb_resource after its test; ask for the fixture in each test"
            )
        return self._databases[-1].send(operation, body)


@asynccontextmanager
async def aio_client(database: RequestAnswerer, region: str) -> AsyncIterator[Any]:
    """An aiobotocore client on a database."""
    try:
        from aiobotocore.session import get_session
    except ImportError:
        raise _no_aioboto3() from None
    session = get_session()
    async with session.create_client("dynamodb", region, **_NO_CREDENTIALS) as client:
        attach(client, database)
        yield client


@asynccontextmanager
async def aio_resource(database: RequestAnswerer, region: str) -> AsyncIterator[Any]:
    """An aioboto3 resource on a database."""
    try:
        import aioboto3
    except ImportError:
        raise _no_aioboto3() from None
    session = aioboto3.Session(region_name=region, **_NO_CREDENTIALS)
    async with session.resource("dynamodb") as resource:
        attach(resource, database)
        yield resource


def _no_aioboto3() -> UsageError:
    return UsageError("this fixture needs aioboto3: pip install 'isotone[aioboto3]'")
