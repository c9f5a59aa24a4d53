"""The databases that a comparison asks: each answers a raw request with (status, body)."""

from __future__ import annotations

import json
from typing import Any, Protocol, Self

import msgspec

import isotone
from isotone.errors import ApiError

Answer = tuple[int, dict[str, Any]]
Request = dict[str, Any] | bytes


class RawApi(Protocol):
    """Anything that answers raw DynamoDB requests."""

    def ask(self, operation: str, request: Request) -> Answer: ...


class Isotone:
    """Our own database, without a socket; in memory, if no file is named."""

    def __init__(self, path: str = ":memory:") -> None:
        self._database = isotone.open(path)

    def ask(self, operation: str, request: Request) -> Answer:
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        try:
            return 200, json.loads(self._database.send(operation, body) or b"{}")
        except ApiError as error:
            return error.status, json.loads(msgspec.json.encode(error.body()))
        except Exception as error:  # noqa: BLE001 - a defect of ours is an answer to compare, too
            return 500, {"__type": f"#{type(error).__name__}", "message": f"DEFECT {error}"}

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def drop_tables(side: RawApi) -> None:
    """Leave the side without any table."""
    for name in side.ask("ListTables", {})[1].get("TableNames", []):
        side.ask("UpdateTable", {"TableName": name, "DeletionProtectionEnabled": False})
        side.ask("DeleteTable", {"TableName": name})
