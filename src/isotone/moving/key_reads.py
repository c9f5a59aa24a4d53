"""Reads the items of some keys, consistently."""

from __future__ import annotations

from typing import Any

from isotone.backends.interface import Backend
from isotone.tables.pace import Pace
from isotone.values.types import Item


def read_items(backend: Backend, table: str, keys: list[Item], pace: Pace) -> list[Item]:
    """The items with these keys that exist, read consistently; at most 100 keys."""
    found: list[Item] = []
    wanted: dict[str, Any] = {table: {"Keys": keys, "ConsistentRead": True}}
    attempt = 0
    while wanted:
        request = {"RequestItems": wanted, "ReturnConsumedCapacity": "TOTAL"}
        response = pace.execute(backend, "BatchGetItem", request)
        items = response.get("Responses", {}).get(table, [])
        found += items
        wanted = response.get("UnprocessedKeys") or {}
        attempt = 0 if items else attempt + 1
        if wanted and attempt:
            pace.throttled(attempt)
    return found
