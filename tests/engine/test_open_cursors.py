"""A page that ends early gives its cursor back before another thread can use the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import isotone

QUERY = {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}


@pytest.mark.parametrize(("operation", "members"), [("Query", QUERY), ("Scan", {})])
def test_a_cursor_is_closed_before_the_lock_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, members: dict[str, Any]
) -> None:
    with isotone.open(tmp_path / "a.db", durability="process") as database:
        database.execute(
            "CreateTable",
            {
                "TableName": "tab",
                "AttributeDefinitions": [
                    {"AttributeName": "p", "AttributeType": "S"},
                    {"AttributeName": "s", "AttributeType": "N"},
                ],
                "KeySchema": [
                    {"AttributeName": "p", "KeyType": "HASH"},
                    {"AttributeName": "s", "KeyType": "RANGE"},
                ],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        for number in range(9):
            item = {"p": {"S": "a"}, "s": {"N": str(number)}}
            database.execute("PutItem", {"TableName": "tab", "Item": item})
        engine = database.engine
        events: list[str] = []
        original = engine.store.values

        def watched(*args: Any, **options: Any) -> Iterator[Any]:
            try:
                yield from original(*args, **options)
            finally:
                events.append("closed")

        class Watched:
            def __init__(self, block: Any) -> None:
                self.block = block

            def __enter__(self) -> None:
                self.block.__enter__()

            def __exit__(self, *raised: Any) -> None:
                events.append("released")
                self.block.__exit__(*raised)

            def acquire(self, blocking: bool = True) -> bool:
                return bool(self.block.acquire(blocking))

            def _is_owned(self) -> bool:
                return bool(self.block._is_owned())

            def release(self) -> None:
                events.append("released")
                self.block.release()

        monkeypatch.setattr(engine, "lock", Watched(engine.lock))
        monkeypatch.setattr(engine, "reading", Watched(engine.reading))
        monkeypatch.setattr(type(engine.store), "values", lambda self, *a, **o: watched(*a, **o))
        database.execute(operation, {"TableName": "tab", "Limit": 3, **members})
        monkeypatch.undo()
    assert events[:2] == ["closed", "released"]
