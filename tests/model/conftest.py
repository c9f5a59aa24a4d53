"""What the tests of the model share: a store in memory that remembers the requests it made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.oracle import optional_dynamodb_local

import isotone
from isotone.backends.interface import Request, Response
from isotone.clock import ManualClock

START = datetime(2026, 1, 1, tzinfo=UTC)


class Desk:
    """A store, its clock, and the requests that it made.

    `before[operation]` is called once, before the next request of that operation is answered.
    """

    def __init__(self, database: isotone.Database, clock: ManualClock) -> None:
        self.backend = isotone.connect(database).backend
        self.clock = clock
        self.store = isotone.connect(self, clock=clock)
        self.asked: list[tuple[str, Request]] = []
        self.before: dict[str, Any] = {}

    def execute(self, operation: str, request: Request) -> Response:
        interrupt = self.before.pop(operation, None)
        if interrupt is not None:
            interrupt()
        self.asked.append((operation, request))
        return self.backend.execute(operation, request)

    def operations(self, call: Callable[[], object]) -> list[str]:
        """The operations that a call of the store asks for."""
        self.asked.clear()
        call()
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
        yield Desk(database, clock)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that calls of a store make, which take no time."""
    seconds: list[float] = []
    sleep, ours = time.sleep, threading.get_ident()

    def note(pause: float) -> None:
        if threading.get_ident() == ours:
            seconds.append(pause)
        else:
            sleep(pause)

    monkeypatch.setattr(time, "sleep", note)
    return seconds


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[str]:
    """The address of Amazon's own DynamoDB Local."""
    with optional_dynamodb_local.dynamodb_local() as server:
        yield server.url
