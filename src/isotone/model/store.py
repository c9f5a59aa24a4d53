"""The store: entities in and out of whatever answers the DynamoDB API."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from isotone.backends import opening
from isotone.backends.interface import Backend
from isotone.backends.opening import Target
from isotone.model import tables as table_steps
from isotone.model.entity import Entity
from isotone.model.steps import Call, Steps, run
from isotone.model.table import Table

E = TypeVar("E", bound=Entity)
R = TypeVar("R")


def connect(target: Target = opening.MEMORY, **options: Unpack[opening.Options]) -> Store:
    """The store at an address: `"shop.db"`, `":memory:"`, `"http://localhost:8000"`, …"""
    backend, close = opening.open_backend(target, **options)
    return Store(backend, close)


class Store:
    """Entities in and out of one backend."""

    def __init__(self, backend: Backend, close: Any = None) -> None:
        self.backend = backend
        self._close = close

    def create_tables(self, *tables: Table) -> list[str]:
        """Make the tables that are missing, with their indexes; the names of those made."""
        return self._run(table_steps.create_tables(tables))

    def put(self, entity: Entity) -> None:
        """Write an entity."""
        schema = entity.__schema__
        item = schema.to_item(entity.__dict__)
        self._run(_one("PutItem", {"TableName": schema.table.name, "Item": item}))

    def get(self, kind: type[E], **key: Any) -> E | None:
        """Read an entity by its primary key."""
        schema = kind.__schema__
        request = {"TableName": schema.table.name, "Key": schema.primary_key(key)}
        item = self._run(_one("GetItem", request)).get("Item")
        return None if item is None else schema.from_item(item)  # type: ignore[return-value]

    def _run(self, steps: Steps[R]) -> R:
        return run(steps, self.backend)

    def close(self) -> None:
        """Close what the store opened."""
        if self._close is not None:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _one(operation: str, request: dict[str, Any]) -> Steps[dict[str, Any]]:
    response = yield Call(operation, request)
    return response
