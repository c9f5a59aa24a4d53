"""What the tests of the model share: a database in memory that remembers the requests it was sent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.oracle import local

import isotone
from isotone.backends.interface import InProcess, Request, Response
from isotone.clock import ManualClock
from isotone.model.steps import run

START = datetime(2026, 1, 1, tzinfo=UTC)


class Desk:
    """A backend, its clock, and the operations that it was asked for.

    `before[operation]` is called once, before the next request of that operation is answered.
    """

    def __init__(self, backend: InProcess, clock: ManualClock) -> None:
        self.backend = backend
        self.clock = clock
        self.asked: list[tuple[str, Request]] = []
        self.before: dict[str, Any] = {}

    def execute(self, operation: str, request: Request) -> Response:
        interrupt = self.before.pop(operation, None)
        if interrupt is not None:
            interrupt()
        self.asked.append((operation, request))
        return self.backend.execute(operation, request)

    def do(self, steps: Any) -> Any:
        """Run the steps of a library call."""
        return run(steps, self)

    def operations(self, steps: Any) -> list[str]:
        """The operations of a library call."""
        self.asked.clear()
        run(steps, self)
        return [operation for operation, _ in self.asked]

    def item(self, entity: Any) -> Any:
        """The item of an entity, as it is stored."""
        schema = entity.__schema__
        key = schema.primary_key(entity.__dict__)
        request = {"TableName": schema.table.name, "Key": key, "ConsistentRead": True}
        return self.backend.execute("GetItem", request).get("Item")


@pytest.fixture
def desk() -> Iterator[Desk]:
    clock = ManualClock(START)
    with isotone.open(":memory:", clock=clock) as database:
        yield Desk(InProcess(database.execute), clock)


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[str]:
    """Amazon's own DynamoDB Local, where the oracle's tests are asked for."""
    if not os.environ.get("ISOTONE_ORACLE") or not local.is_here():
        pytest.skip("set ISOTONE_ORACLE=1 and fetch DynamoDB Local to run this")
    with local.DynamoDBLocal() as server:
        yield server.url
