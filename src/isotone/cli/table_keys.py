"""The keys by which a command can read a table's items, and the types of the values that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from isotone.backends.interface import Backend
from isotone.errors import UsageError
from isotone.values.notation import scalar
from isotone.values.types import AttributeValue, Item


@dataclass(frozen=True, slots=True)
class Keys:
    """The key of a table, or of one of its indexes."""

    index: str | None
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    types: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return self.partition + self.sort

    def value(self, name: str, word: str) -> AttributeValue:
        """A word of the command line as the value of a key attribute."""
        return scalar(word, self.types[name])

    def __str__(self) -> str:
        return " · ".join(f"{name} ({self.types[name]})" for name in self.names)


class Table(NamedTuple):
    """A table's own key, and those of its indexes."""

    name: str
    keys: Keys
    indexes: tuple[Keys, ...]

    def keys_of(self, index: str | None) -> Keys:
        """The keys of an index, or of the table. Raises `UsageError` for an unknown index."""
        if index is None:
            return self.keys
        for keys in self.indexes:
            if keys.index == index:
                return keys
        known = ", ".join(str(keys.index) for keys in self.indexes) or "none"
        raise UsageError(f"table {self.name} has no index {index}; its indexes: {known}")

    def key_from(self, words: Sequence[str]) -> Item:
        """The key of one item, from values in order, or `name=value` in any order."""
        names = self.keys.names
        if len(words) != len(names):
            raise UsageError(
                f"a key of table {self.name} has {len(names)} "
                f"value{'s' if len(names) > 1 else ''}: {self.keys}; you gave {len(words)}"
            )
        pairs = [word.partition("=") for word in words]
        if sorted(name.strip() for name, _, _ in pairs) == sorted(names):
            return {name.strip(): self.keys.value(name.strip(), word) for name, _, word in pairs}
        return {name: self.keys.value(name, word) for name, word in zip(names, words, strict=True)}


def table_of(connection: Backend, name: str) -> Table:
    """A table's keys. Raises `UsageError` with a list of all tables if it does not exist."""
    from isotone.errors import ResourceNotFoundException

    try:
        described = connection.execute("DescribeTable", {"TableName": name})["Table"]
    except ResourceNotFoundException:
        known = ", ".join(table_names(connection)) or "none; isotone create makes one"
        raise UsageError(f"there is no table {name}; tables here: {known}") from None
    return described_table(described)


def described_table(described: dict[str, Any]) -> Table:
    """The keys in the description of a table."""
    types = {a["AttributeName"]: a["AttributeType"] for a in described["AttributeDefinitions"]}
    indexes = [
        *described.get("LocalSecondaryIndexes", ()),
        *described.get("GlobalSecondaryIndexes", ()),
    ]
    return Table(
        described["TableName"],
        _keys(described, types),
        tuple(_keys(index, types) for index in indexes),
    )


def table_names(connection: Backend) -> list[str]:
    """The names of all tables, in order."""
    names: list[str] = []
    request: dict[str, Any] = {}
    while True:
        page = connection.execute("ListTables", request)
        names += page["TableNames"]
        if "LastEvaluatedTableName" not in page:
            return names
        request = {"ExclusiveStartTableName": page["LastEvaluatedTableName"]}


def _keys(described: dict[str, Any], types: dict[str, str]) -> Keys:
    def of_kind(kind: str) -> tuple[str, ...]:
        parts = described["KeySchema"]
        return tuple(part["AttributeName"] for part in parts if part["KeyType"] == kind)

    return Keys(described.get("IndexName"), of_kind("HASH"), of_kind("RANGE"), types)
