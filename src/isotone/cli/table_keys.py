"""Finds the tables that commands name, and parses the values of their keys."""

from __future__ import annotations

from collections.abc import Sequence

from isotone.backends.interface import Backend
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.tables.description import (
    KeyDescription,
    TableDescription,
    read_description,
    table_names,
)
from isotone.values.notation import scalar
from isotone.values.types import Item


def table_of(connection: Backend, name: str) -> TableDescription:
    """The description of a table. Raises `UsageError` with a list of all tables if it does not exist."""
    try:
        return read_description(connection, name)
    except ResourceNotFoundException:
        known = ", ".join(table_names(connection)) or "none; isotone create makes one"
        raise UsageError(f"there is no table {name}; tables here: {known}") from None


def key_of(table: TableDescription, index: str | None) -> KeyDescription:
    """The key of the index that a command names, or of the table. Raises `UsageError` for an unknown index."""
    if index is None:
        return table.key
    if index not in table.index_names:
        known = ", ".join(table.index_names) or "none"
        raise UsageError(f"table {table.name} has no index {index}; its indexes: {known}")
    return table.index(index).key


def key_from(table: TableDescription, words: Sequence[str]) -> Item:
    """The key of one item, from values in order, or `name=value` in any order."""
    names = table.key.names
    if len(words) != len(names):
        raise UsageError(
            f"a key of table {table.name} has {len(names)} "
            f"value{'s' if len(names) > 1 else ''}: {table.key}; you gave {len(words)}"
        )
    pairs = [word.partition("=") for word in words]
    if sorted(name.strip() for name, _, _ in pairs) == sorted(names):
        given = [(name.strip(), word) for name, _, word in pairs]
    else:
        given = [*zip(names, words, strict=True)]
    return {name: scalar(word, table.types[name]) for name, word in given}
