"""What the engine caches of its store: the tables, and the counts of each tree."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from isotone.engine.consumed_units import UnitsByTable
from isotone.engine.table_indexes import Table
from isotone.engine.table_schema import TableSchema
from isotone.errors import StorageCorrupt
from isotone.storage.interface import Store

CATALOG: Final = "catalog"
COUNTS: Final = "counts"

_VERSION: Final = b"\x00version"
_TREES: Final = b"\x00trees"
_FIRST_NAME: Final = b"\x01"
_COUNT: Final = struct.Struct(">qq")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(TableSchema).decode


class Catalog:
    """The tables by name, read from the store and kept ready for use.

    The record in the store is authoritative. Each change gives the catalog a new random version. A
    process that reads a version other than its own reads the tables again: another process made a
    change, or its own change was undone.

    `tables` can be used; `creating` are tables that are still being restored or
    imported, which only descriptions show. `units` are the counters of what requests consume, if somebody counts.
    """

    __slots__ = ("_policies_in", "_store", "_version", "creating", "tables", "units")

    def __init__(self, store: Store) -> None:
        self._store = store
        self.tables: dict[str, Table] = {}
        self.creating: dict[str, Table] = {}
        self.units: UnitsByTable | None = None
        self._version = b""
        self._policies_in = b"", False  # a version, and whether a table has a policy in it
        self.refresh()

    def __iter__(self) -> Iterator[Table]:
        return iter(list(self.tables.values()))

    def save(self, schema: TableSchema) -> Table:
        """Record a new or changed table."""
        self._renew_version()
        self._store.put(CATALOG, schema.name.encode(), _encode(schema))
        return self._keep(schema)

    def remove(self, name: str) -> None:
        """Record that a table was deleted."""
        self._renew_version()
        self._store.delete(CATALOG, name.encode())
        self.tables.pop(name, None)
        self.creating.pop(name, None)
        if self.units is not None:
            self.units.forget(name)

    def clear(self) -> None:
        """Record that there are no tables. The names of their trees are not used again."""
        number = self._store.get(CATALOG, _TREES)
        self._store.drop_tree(CATALOG)
        self._store.create_tree(CATALOG)
        if number is not None:
            self._store.put(CATALOG, _TREES, number)
        self._renew_version()
        self.tables, self.creating = {}, {}
        self._forget_units_of_others()

    def count_units(self, counted: bool) -> None:
        """Count from now on what requests consume of each table, or end that."""
        self.units = UnitsByTable() if counted else None
        for table in [*self.tables.values(), *self.creating.values()]:
            self._keep(table.schema)

    @property
    def has_policies(self) -> bool:
        """Whether a table has a policy. O(1) until a table changes."""
        version, known = self._policies_in
        if version != self._version:
            known = any(table.schema.policy is not None for table in self.tables.values())
            self._policies_in = self._version, known
        return known

    def find(self, name: str) -> Table | None:
        """A table in any state."""
        return self.tables.get(name) or self.creating.get(name)

    def new_tree(self, kind: str) -> str:
        """A tree name that was never used before, so that stale readers cannot confuse two trees."""
        number = int(self._store.get(CATALOG, _TREES) or b"0") + 1
        self._store.put(CATALOG, _TREES, str(number).encode())
        return f"{kind}{number}"

    def refresh(self) -> None:
        """Read the tables again if the store has another version of them. O(1) if it has not."""
        version = self._store.get(CATALOG, _VERSION) or b""
        if version == self._version:
            return
        self.tables, self.creating = {}, {}
        for name, record in self._store.range(CATALOG, _FIRST_NAME, None):
            try:
                self._keep(_decode(record))
            except (msgspec.MsgspecError, ValueError, LookupError) as error:
                # Older files have no checksums, so damage can come as far as this.
                shown = name.decode(errors="replace")
                raise StorageCorrupt(
                    f"the definition of table {shown!r} is damaged: `isotone check` reads the rest, and "
                    "`isotone repair` saves it"
                ) from error
        self._version = version
        self._forget_units_of_others()

    def _forget_units_of_others(self) -> None:
        if self.units is not None:
            self.units.keep_only(self.tables.keys() | self.creating.keys())

    def _keep(self, schema: TableSchema) -> Table:
        table = Table(schema, None if self.units is None else self.units.of(schema))
        self.tables.pop(schema.name, None)
        self.creating.pop(schema.name, None)
        (self.creating if schema.is_creating else self.tables)[schema.name] = table
        return table

    def _renew_version(self) -> None:
        self._version = os.urandom(16)
        self._store.put(CATALOG, _VERSION, self._version)


class Counts:
    """Items and bytes of every tree, kept in the same transaction as the items.

    Changes are collected here and written once, just before the transaction commits: a group of a hundred
    writes to one table costs one update of its count.
    """

    __slots__ = ("_changed", "_known", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, list[int]] = {}
        self._changed: dict[str, list[int]] = {}

    def add(self, tree: str, items: int, size: int) -> None:
        """Record a change, as part of the open transaction."""
        try:
            known = self._known[tree]
        except KeyError:
            known = self._load(tree)
        self._changed[tree] = known
        if items or size:
            known[0] += items
            known[1] += size
            known[2] = True

    def of(self, tree: str) -> tuple[int, int]:
        """The items and the bytes in a tree."""
        items, size, _ = self._known.get(tree) or self._load(tree)
        return items, size

    def drop(self, tree: str) -> None:
        """Forget a tree that is being dropped."""
        self._known.pop(tree, None)
        self._changed.pop(tree, None)
        self._store.delete(COUNTS, tree.encode())

    def flush(self) -> None:
        """Write the changed counts; called before the commit."""
        for tree, counts in self._changed.items():
            items, size, is_new = counts
            if is_new:
                self._store.put(COUNTS, tree.encode(), _COUNT.pack(items, size))
                counts[2] = False
        self._changed.clear()

    @property
    def changed(self) -> bool:
        """Whether the open transaction has changes that are not yet written."""
        return bool(self._changed)

    def forget(self) -> None:
        """Forget counts that may be outdated: another process has written, or a transaction was undone."""
        self._known.clear()
        self._changed.clear()

    def _load(self, tree: str) -> list[int]:
        stored = self._store.get(COUNTS, tree.encode())
        known = [0, 0, False] if stored is None else [*_COUNT.unpack(stored), False]
        self._known[tree] = known
        return known
