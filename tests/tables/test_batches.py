"""Batches that a database in this process cannot write: the reason is raised, not tried again for minutes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from isotone.backends.interface import Request, Response
from isotone.errors import InternalServerError, StorageFull
from isotone.tables.batches import BatchWriter, put
from isotone.tables.pace import Pace


class _FullDatabase:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def send_many(self, requests: Sequence[tuple[str, bytes]]) -> list[Exception]:
        self.calls.append("send_many")
        return [InternalServerError("the disk is full")] * len(requests)

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        self.calls.append("execute")
        raise StorageFull("the disk is full")


def test_a_full_disk_ends_a_write_at_once() -> None:
    database = _FullDatabase()
    writer = BatchWriter(database, "Orders", Pace())
    with pytest.raises(StorageFull, match="the disk is full"):
        writer.write([put({"id": {"S": str(number)}}) for number in range(100)])
    assert database.calls == ["send_many", "execute"]
