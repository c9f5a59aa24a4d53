"""What a database is, said as simply as can be: dicts and sorting. Slow, and obviously right.

Tables here have a string partition key `p` and a number sort key `s`; a global index over `g` (string)
and `n` (number), and a local index over `n`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

Item = dict[str, Any]
Key = tuple[str, Decimal]

SCHEMA: dict[str, Any] = {
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "s", "AttributeType": "N"},
        {"AttributeName": "g", "AttributeType": "S"},
        {"AttributeName": "n", "AttributeType": "N"},
    ],
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "s", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "global",
            "KeySchema": [
                {"AttributeName": "g", "KeyType": "HASH"},
                {"AttributeName": "n", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "p", "KeyType": "HASH"},
                {"AttributeName": "n", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}

# The attributes that make the key of each thing that can be queried, and what its entries carry.
SOURCES: dict[str | None, tuple[str, str]] = {
    None: ("p", "s"),
    "global": ("g", "n"),
    "local": ("p", "n"),
}
PROJECTED = {"global": {"p", "s", "g", "n"}}

COMPARISONS: dict[str, Callable[[Decimal, list[Decimal]], bool]] = {
    "=": lambda value, bounds: value == bounds[0],
    "<": lambda value, bounds: value < bounds[0],
    "<=": lambda value, bounds: value <= bounds[0],
    ">": lambda value, bounds: value > bounds[0],
    ">=": lambda value, bounds: value >= bounds[0],
    "BETWEEN": lambda value, bounds: bounds[0] <= value <= bounds[1],
}


def number(value: dict[str, str]) -> Decimal:
    return Decimal(value["N"])


class Model:
    """One table as a dict."""

    def __init__(self) -> None:
        self.items: dict[Key, Item] = {}

    def key(self, item: Item) -> Key:
        return item["p"]["S"], number(item["s"])

    def get(self, key: Item) -> Item | None:
        return copy.deepcopy(self.items.get(self.key(key)))

    def put(self, item: Item) -> None:
        self.items[self.key(item)] = copy.deepcopy(item)

    def delete(self, key: Item) -> None:
        self.items.pop(self.key(key), None)

    def set(self, key: Item, name: str, value: Any) -> None:
        item = self.items.setdefault(self.key(key), copy.deepcopy(key))
        item[name] = copy.deepcopy(value)

    def remove(self, key: Item, name: str) -> None:
        if self.key(key) in self.items:
            self.items[self.key(key)].pop(name, None)

    def query(
        self, index: str | None, partition: str, operator: str | None, bounds: list[Decimal]
    ) -> list[Item]:
        """The matching items in ascending order; those with equal keys in any order."""
        hash_name, range_name = SOURCES[index]
        found = [
            item
            for item in self.entries(index)
            if item[hash_name]["S"] == partition
            and (operator is None or COMPARISONS[operator](number(item[range_name]), bounds))
        ]
        return sorted(found, key=lambda item: number(item[range_name]))

    def entries(self, index: str | None) -> Iterable[Item]:
        """The items that an index has, cut down to what it carries."""
        names = SOURCES[index]
        kept = PROJECTED.get(index or "")
        for item in self.items.values():
            if all(name in item for name in names):
                yield {name: value for name, value in item.items() if kept is None or name in kept}
