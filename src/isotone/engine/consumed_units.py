"""Counts consumed capacity units (isotone_consumed_…_units_total), by table and index, since counting began.

A table and its indexes hold their own counters (`units`), so a request needs no look-up to add to them; None while
counting is off. Writes add under the engine's lock, reads without it, since several threads may read: adding to an attribute is atomic
between threads if the statement calls no function.

The number of counters is limited. `MOST_TABLES` tables have their own; all others share one. The shared one also takes
over what deleted tables and indexes have consumed, so the sum of all counters never falls.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from isotone import limits
from isotone.engine.layout import size_of
from isotone.values.size import read_units, write_units

if TYPE_CHECKING:
    from isotone.engine.index_entries import IndexEntry
    from isotone.engine.table_indexes import SecondaryIndex
    from isotone.engine.table_schema import IndexSchema, TableSchema
    from isotone.engine.vector_index import StoredVectorIndex

MOST_TABLES: Final = 500
OTHERS: Final = "(other)"
"""Replaces the table's name for the shared counter; no table can have this name."""

_WRITE_UNIT: Final = limits.WRITE_UNIT


class Spent:
    """What the requests of a thread have consumed, read and returned, for those who take the difference."""

    __slots__ = ("read", "returned", "units")

    def __init__(self) -> None:
        self.units: float = 0.0
        self.read: int = 0
        self.returned: int = 0

    def add_items(self, read: int, returned: int) -> None:
        """Count items that were read, and those of them that no filter has dropped."""
        self.read += read
        self.returned += returned


class _PerThread(threading.local):
    """Looked up once and then used: each look-up takes longer than what is counted."""

    def __init__(self) -> None:
        self.spent: Spent = Spent()


per_thread: Final = _PerThread()


class Units:
    """What was read from and written to a table without its indexes, or to one index."""

    __slots__ = ("read_units", "write_units")

    def __init__(self) -> None:
        self.read_units: float = 0.0
        self.write_units: float = 0.0

    def absorb(self, other: Units) -> None:
        self.add(other.read_units, other.write_units)

    def add(self, read_units: float, write_units: float) -> None:
        self.read_units += read_units
        self.write_units += write_units


class TableUnits(Units):
    """The consumption of a table and its indexes. `factor` is 2 in transactions."""

    __slots__ = ("indexes",)

    def __init__(self) -> None:
        super().__init__()
        self.indexes: dict[str, Units] = {}

    def read(
        self, size: int, *, consistent: bool, index: SecondaryIndex | None = None, factor: int = 1
    ) -> None:
        """Count one read of some bytes from the table or an index."""
        units = self if index is None else index.units
        assert units is not None
        consumed = read_units(size, consistent) * factor
        units.read_units += consumed
        per_thread.spent.units += consumed

    def write(self, old_size: int, new_size: int, factor: int = 1) -> None:
        """Count a write of an item, by the larger of its old and new sizes."""
        size = old_size if old_size > new_size else new_size
        consumed = factor if size <= _WRITE_UNIT else write_units(size) * factor
        units: Units = self
        units.write_units += consumed
        per_thread.spent.units += consumed

    def write_entry(
        self,
        index: SecondaryIndex | StoredVectorIndex,
        before: IndexEntry | None,
        after: IndexEntry | None,
        factor: int = 1,
    ) -> None:
        """Count a change of an index entry. Vector indexes are charged by bytes, not units, and are not counted."""
        if index.units is not None:
            consumed = entry_units(before, after) * factor
            index.units.write_units += consumed
            per_thread.spent.units += consumed

    def of_index(self, index: IndexSchema) -> Units:
        """The counters of an index."""
        return self.indexes.setdefault(index.name, Units())


def entry_units(before: IndexEntry | None, after: IndexEntry | None) -> float:
    """The units for a change of an index entry: two writes if its key changes, otherwise one."""
    if before is not None and after is not None and before.key == after.key:
        old, new = before.record, after.record
        # a record is longer than the item's size
        if len(old) <= _WRITE_UNIT and len(new) <= _WRITE_UNIT:
            return 1.0
        return write_units(max(size_of(old), size_of(new)))
    return sum(write_units(size_of(entry.record)) for entry in (before, after) if entry)


class _Shared(TableUnits):
    """One set of counters that many tables and their indexes share."""

    __slots__ = ()

    def of_index(self, index: IndexSchema) -> Units:
        return self


class UnitsByTable:
    """The counters of all tables of a region."""

    __slots__ = ("_by_name", "_others")

    def __init__(self) -> None:
        self._by_name: dict[str, TableUnits] = {}
        self._others = _Shared()

    def of(self, schema: TableSchema) -> TableUnits:
        """The counters of a table. Counters of indexes that it no longer has are added to the shared ones."""
        found = self.counters(schema.name)
        if found is self._others:
            return found
        for name in found.indexes.keys() - {index.name for index in schema.indexes}:
            self._others.absorb(found.indexes.pop(name))
        return found

    def forget(self, name: str) -> None:
        """A table was deleted: add its counters to the shared ones."""
        gone = self._by_name.pop(name, None)
        if gone is not None:
            for units in (gone, *gone.indexes.values()):
                self._others.absorb(units)

    def keep_only(self, names: set[str]) -> None:
        """Forget all tables but these."""
        for name in self._by_name.keys() - names:
            self.forget(name)

    def counters(self, name: str) -> TableUnits:
        """The counters of a table, whatever indexes it has."""
        if name not in self._by_name and len(self._by_name) >= MOST_TABLES:
            return self._others
        return self._by_name.setdefault(name, TableUnits())

    def add(self, table: str, index: str, read_units: float, write_units: float) -> None:
        """Add what another process has counted; a table or an index that is not there counts as one of the others."""
        of_table = self._by_name.get(table)
        units = of_table.indexes.get(index) if of_table is not None and index else of_table
        (units or self._others).add(read_units, write_units)

    def __iter__(self) -> Iterator[tuple[str, str, Units]]:
        """Yield every consumer: table, index ("" for the table itself), and its counters."""
        for name, table in [*self._by_name.items(), (OTHERS, self._others)]:
            if table.read_units or table.write_units:
                yield name, "", table
            for index, units in list(table.indexes.items()):
                if units.read_units or units.write_units:
                    yield name, index, units
