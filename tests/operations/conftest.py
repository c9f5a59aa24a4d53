"""A database in memory (or in PostgreSQL) with a clock that the test moves, and calls that must succeed or fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from tests.postgres_server import database_address

import isotone
from isotone.backends import embedded
from isotone.errors import ApiError

Call = Callable[..., dict[str, Any]]


class Asker:
    """Calls actions of one database: `ask("PutItem", TableName=…)` gives the answer or raises."""

    def __init__(self, database: isotone.Database, clock: isotone.ManualClock) -> None:
        self.database = database
        self.clock = clock

    def __call__(self, operation: str, **request: Any) -> dict[str, Any]:
        answer = self.database.send(operation, self.body(**request))
        return msgspec.json.decode(answer or b"{}", type=dict[str, Any])

    def body(self, **request: Any) -> bytes:
        """A request as it is sent."""
        return msgspec.json.encode(request)

    def refused(self, operation: str, **request: Any) -> ApiError:
        """The error that the request earns."""
        with pytest.raises(ApiError) as caught:
            self(operation, **request)
        return caught.value

    def table(self, name: str = "tab", keys: str = "p", **more: Any) -> None:
        """Make a table; `keys` is like "p" or "p s:N", string where no type is given."""
        definitions = dict(part.partition(":")[::2] for part in keys.split())
        names = list(definitions)
        types = {**definitions, **more.pop("types", {})}
        self(
            "CreateTable",
            TableName=name,
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": kind or "S"}
                for name, kind in types.items()
            ],
            KeySchema=key_schema(*names),
            **{"BillingMode": "PAY_PER_REQUEST", **more},
        )


def key_schema(partition: str, sort: str | None = None) -> list[dict[str, str]]:
    schema = [{"AttributeName": partition, "KeyType": "HASH"}]
    return schema if sort is None else [*schema, {"AttributeName": sort, "KeyType": "RANGE"}]


@pytest.fixture
def ask() -> Iterator[Asker]:
    clock = isotone.ManualClock()
    with isotone.open(database_address(), clock=clock, stream_shards=4) as database:
        yield Asker(database, clock)
        assert database.check() == []


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Background work is done by `finish_maintenance` only."""
    monkeypatch.setattr(embedded.Database, "_wake_if_wanted", lambda _: None)
