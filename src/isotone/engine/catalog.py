"""Caches the tables' definitions, and notices when another process has changed them (schema version)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from isotone.engine.consumed_units import TableUnits, UnitsByTable
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import TableSchema
from isotone.errors import StorageCorrupt
from isotone.storage.interface import OrderedStore

CATALOG: Final = "catalog"

_VERSION: Final = b"\x00version"
_CHANGES: Final = b"\x00changes"
_TREES: Final = b"\x00trees"
_FIRST_NAME: Final = b"\x01"

_MOST_CHANGES: Final = 64  # kept in the store; a process that missed more reads all tables again

_Changes: TypeAlias = tuple[tuple[bytes, str], ...]
"""Catalog versions, oldest first, each with the table that it changed, or an empty name."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(TableSchema).decode
_encode_changes = msgspec.msgpack.Encoder().encode
_decode_changes = msgspec.msgpack.Decoder(_Changes).decode

Feature = Literal["expiry", "history", "policy", "replication"]

_HAVE: Final[dict[Feature, Callable[[TableSchema], bool]]] = {
    "expiry": lambda schema: schema.ttl is not None,
    "history": lambda schema: schema.history is not None,
    "policy": lambda schema: schema.policy is not None,
    "replication": lambda schema: schema.replication is not None,
}


class Catalog:
    """The tables by name, cached from the store.

    The records in the store are authoritative. Each change gives the catalog a new random version, and the store keeps
    the latest versions, each with the name of the changed table. When a process finds another version than its own,
    either other processes made changes, or its own changes were rolled back. It looks for the last version that both
    lists contain, and reads the tables changed since on either side. If there is none, it reads all tables. Older
    versions of Isotone do not update the list, so a list that does not end with the current version is ignored.

    `tables` are usable. `creating` are tables that are still being restored or imported; only descriptions show them.
    `units` counts the capacity that requests consume, if enabled.
    """

    __slots__ = ("_changes", "_has_own_units", "_having", "_store", "creating", "tables", "units")

    def __init__(self, store: OrderedStore) -> None:
        self._store = store
        self._changes: _Changes = ()
        self.units: UnitsByTable | None = None
        self._has_own_units = True
        self._forget_all()
        self.refresh()

    def __iter__(self) -> Iterator[StoredTable]:
        return iter(list(self.tables.values()))

    def save(self, schema: TableSchema) -> StoredTable:
        """Record a new or changed table."""
        self._changes = self._note(schema.name)
        self._store.put(CATALOG, schema.name.encode(), _encode(schema))
        return self._keep(schema)

    def remove(self, name: str) -> None:
        """Record that a table was deleted."""
        self._changes = self._note(name)
        self._store.delete(CATALOG, name.encode())
        self._drop(name)

    def touch(self) -> None:
        """Record a change of the database that belongs to no table: every process looks for regions again."""
        self._note("")

    def clear(self) -> None:
        """Record that there are no tables. The names of their trees are never used again."""
        number = self._store.get(CATALOG, _TREES)
        self._store.drop_tree(CATALOG)
        self._store.create_tree(CATALOG)
        if number is not None:
            self._store.put(CATALOG, _TREES, number)
        self._changes = self._note("")
        self._forget_all()
        self._forget_units_of_others()

    def count_units(self, counted: bool) -> None:
        """Start or stop counting the capacity that requests consume on each table."""
        self._count_in(UnitsByTable() if counted else None)

    def share_units(self, units: UnitsByTable | None) -> None:
        """Count in the counters of the engine whose reader this catalog belongs to; it decides which are forgotten."""
        if self.units is not units:
            self._has_own_units = False
            self._count_in(units)

    def _count_in(self, units: UnitsByTable | None) -> None:
        self.units = units
        for table in [*self.tables.values(), *self.creating.values()]:
            self._keep(table.schema)

    def having(self, feature: Feature) -> list[StoredTable]:
        """The tables with a feature, which maintenance and permissions need all the time. O(tables with it)."""
        return list(self._having[feature].values())

    @property
    def has_policies(self) -> bool:
        """Whether a table has a policy. O(1)."""
        return bool(self._having["policy"])

    def find(self, name: str) -> StoredTable | None:
        """A table in any state."""
        return self.tables.get(name) or self.creating.get(name)

    def new_tree(self, kind: str) -> str:
        """A new tree name that was never used, so that no stale reader mistakes another tree for its own."""
        number = int(self._store.get(CATALOG, _TREES) or b"0") + 1
        self._store.put(CATALOG, _TREES, str(number).encode())
        return f"{kind}{number}"

    def refresh(self) -> bool:
        """Read the changed tables if the store has another version; returns whether it has. O(1) plus O(changed
        tables).
        """
        version = self._store.get(CATALOG, _VERSION) or b""
        if self._changes and version == self._changes[-1][0]:
            return False
        stored = self._stored_changes(version)
        names = _changed_since(self._changes, stored)
        if names is None:
            self._read_all()
        else:
            for name in names:
                self._read(name)
        self._changes = stored
        return True

    def is_as_stored(self) -> bool:
        """Whether the store has no other version. One lookup."""
        return bool(self._changes) and self._store.get(CATALOG, _VERSION) == self._changes[-1][0]

    def _read_all(self) -> None:
        self._forget_all()
        for name, record in self._store.range(CATALOG, _FIRST_NAME, None):
            self._keep(_schema(name, record))
        self._forget_units_of_others()

    def _read(self, name: str) -> None:
        key = name.encode()
        record = self._store.get(CATALOG, key)
        if record is None:
            self._drop(name)
        else:
            self._keep(_schema(key, record))

    def _forget_all(self) -> None:
        self.tables: dict[str, StoredTable] = {}
        self.creating: dict[str, StoredTable] = {}
        self._having: dict[Feature, dict[str, StoredTable]] = {feature: {} for feature in _HAVE}

    def _forget_units_of_others(self) -> None:
        if self.units is not None and self._has_own_units:
            self.units.keep_only(self.tables.keys() | self.creating.keys())

    def _keep(self, schema: TableSchema) -> StoredTable:
        table = StoredTable(schema, self._units_of(schema))
        self._take_out(schema.name)
        if schema.is_creating:
            self.creating[schema.name] = table
            return table
        self.tables[schema.name] = table
        for feature, has in _HAVE.items():
            if has(schema):
                self._having[feature][schema.name] = table
        return table

    def _units_of(self, schema: TableSchema) -> TableUnits | None:
        if self.units is None:
            return None
        return self.units.of(schema) if self._has_own_units else self.units.counters(schema.name)

    def _drop(self, name: str) -> None:
        self._take_out(name)
        if self.units is not None and self._has_own_units:
            self.units.forget(name)

    def _take_out(self, name: str) -> None:
        for tables in (self.tables, self.creating, *self._having.values()):
            tables.pop(name, None)

    def _note(self, name: str) -> _Changes:
        """Record a new version and the table that it changed, and drop the oldest; returns the versions."""
        before = self._stored_changes(self._store.get(CATALOG, _VERSION) or b"")
        version = os.urandom(16)
        changes = (*before[-_MOST_CHANGES:], (version, name))
        self._store.put(CATALOG, _VERSION, version)
        self._store.put(CATALOG, _CHANGES, _encode_changes(changes))
        return changes

    def _stored_changes(self, version: bytes) -> _Changes:
        """The known versions up to the current one, which comes last."""
        record = self._store.get(CATALOG, _CHANGES)
        if record is not None:
            changes = _decode_changes(record)
            if changes and changes[-1][0] == version:
                return changes
        return ((version, ""),)


def _changed_since(known: _Changes, stored: _Changes) -> set[str] | None:
    """The tables that differ between two states, by their version lists; None if no version is in both."""
    positions = {version: position for position, (version, _) in enumerate(stored)}
    for position in reversed(range(len(known))):
        common = positions.get(known[position][0])
        if common is not None:
            changes = known[position + 1 :] + stored[common + 1 :]
            return {name for _, name in changes if name}
    return None


def _schema(name: bytes, record: bytes) -> TableSchema:
    try:
        return _decode(record)
    except (msgspec.MsgspecError, ValueError, LookupError) as error:
        # Older files have no checksums, so damage can get this far undetected.
        shown = name.decode(errors="replace")
        raise StorageCorrupt(
            f"the definition of table {shown!r} is damaged: `isotone check` reads the rest, and "
            "`isotone repair` saves it"
        ) from error
