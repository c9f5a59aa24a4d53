"""The tables that exist, read from the store and kept ready for use.

The record in the store is the truth. Each change gives the catalog a new version, a random one that no
other process can give it too, by which whoever has the same file open learns that what it keeps ready is
old. It learns so as well when its own change was undone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from isotone.engine.schema import TableSchema
from isotone.engine.table import Table
from isotone.errors import ResourceNotFoundException
from isotone.storage.interface import Store

TREE = "catalog"
_VERSION = b"\x00version"
_FIRST_NAME = b"\x01"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(TableSchema).decode


class Catalog:
    """Every table by name."""

    __slots__ = ("_store", "_tables", "_version")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tables: dict[str, Table] = {}
        self._version = b""
        self.refresh()

    def table(self, name: str) -> Table:
        """The table of a name, for reading and writing items."""
        try:
            return self._tables[name]
        except KeyError:
            raise ResourceNotFoundException("Requested resource not found") from None

    def find(self, name: str) -> Table | None:
        return self._tables.get(name)

    def names(self) -> list[str]:
        """All names, in the order of ListTables."""
        return sorted(self._tables)

    def __iter__(self) -> Iterator[Table]:
        return iter(list(self._tables.values()))

    def save(self, schema: TableSchema) -> Table:
        """Record a new or changed table."""
        self._renew_version()
        self._store.put(TREE, schema.name.encode(), _encode(schema))
        table = self._tables[schema.name] = Table(schema)
        return table

    def remove(self, name: str) -> None:
        """Record that a table is no more."""
        self._renew_version()
        self._store.delete(TREE, name.encode())
        del self._tables[name]

    def new_tree(self, kind: str) -> str:
        """A tree name that was never used before, so that no stale reader mistakes one for another."""
        number = int(self._store.get(TREE, b"\x00trees") or b"0") + 1
        self._store.put(TREE, b"\x00trees", str(number).encode())
        return f"{kind}{number}"

    def refresh(self) -> None:
        """Read the tables anew if the store has another version of them. O(1) where it has not."""
        version = self._store.get(TREE, _VERSION) or b""
        if version == self._version:
            return
        schemas = [_decode(record) for _, record in self._store.range(TREE, _FIRST_NAME, None)]
        self._tables = {schema.name: Table(schema) for schema in schemas}
        self._version = version

    def _renew_version(self) -> None:
        self._version = os.urandom(16)
        self._store.put(TREE, _VERSION, self._version)
