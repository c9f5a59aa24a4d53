"""A sample of a table's items, in the order of each of its keys: the basis of estimates and drawings.

A sample is the description of a table and the first items of a scan. If it has all items, the entries of every index
are known, too: an item with all key attributes of an index has an entry, with the projected attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from isotone.inference import existing_table
from isotone.model import Steps
from isotone.tables.description import IndexDescription, KeyDescription, TableDescription
from isotone.tables.sample import sample_items
from isotone.values.size import item_size
from isotone.values.types import AttributeValue, Item, sort_key

DEFAULT_SAMPLE = 1000


@dataclass(frozen=True)
class TableSample:
    """A table, and its first items in the order of a scan. `units` is the cost of reading them."""

    shape: TableDescription
    items: tuple[Item, ...]
    is_whole: bool
    units: float = 0.0

    @property
    def count(self) -> int:
        """The number of items of the table, as far as known."""
        return len(self.items) if self.is_whole else max(self.shape.item_count, len(self.items))

    @cached_property
    def item_bytes(self) -> float:
        """The average size of an item in bytes."""
        if self.items:
            return sum(map(item_size, self.items)) / len(self.items)
        return self.shape.size / self.shape.item_count if self.shape.item_count else 0.0

    def entries(self, index: str | None) -> list[Item]:
        """The entries of the table or an index for the sampled items, with only the projected attributes."""
        if index is None:
            return [*self.items]
        shape = self.shape.index(index)
        return [
            entry for item in self.items if (entry := entry_of(self.shape, shape, item)) is not None
        ]

    def has_all_of(self, index: str | None, partition: tuple[AttributeValue, ...]) -> bool:
        """Whether all items of a collection are in the sample.

        A scan reads the collections of a table one after the other, so at most the last one is incomplete. A local
        index has the same collections. The items of a global index's collection may be anywhere in the table.
        """
        if self.is_whole:
            return True
        if index is not None and self.shape.index(index).kind == "global":
            return False
        its = tuple(map(sort_key, partition))
        return its in self._collections and its != self.last_collection

    @property
    def last_collection(self) -> tuple[Any, ...] | None:
        """The table's partition at which the sample ends, which may have more items; None if the sample is complete."""
        return (
            partition_of(self.shape.key, self.items[-1])
            if self.items and not self.is_whole
            else None
        )

    @cached_property
    def _collections(self) -> dict[tuple[Any, ...], list[Item]]:
        return collections(self.shape.key, self.items)

    def in_order(self, index: str | None) -> list[Item]:
        """The entries by partition, then in the order of the sort key."""
        return in_order(self.shape, index, self.entries(index))


def read_sample(table: str, most: int) -> Steps[TableSample]:
    """Describe a table and scan up to `most` of its items (0: none)."""
    shape = yield from existing_table(table)
    read = yield from sample_items(table, most)
    return TableSample(shape, tuple(read.items), read.is_whole, read.units)


def basis_of(response: Any) -> str:
    """The source of measured units, in words; says so if the engine reports none."""
    reports = "ConsumedCapacity" in response
    return "as the engine reports" if reports else "the engine does not report units"


def projected(shape: TableDescription, index: IndexDescription) -> frozenset[str] | None:
    """The attributes that an index projects; None for all."""
    if index.projection == "ALL":
        return None
    names = {part.name for key in (shape.key, index.key) for part in key.parts}
    if index.projection != "KEYS_ONLY":
        names |= set(index.projection)
    return frozenset(names)


def entry_of(shape: TableDescription, index: IndexDescription, item: Item | None) -> Item | None:
    """The entry of an item in an index; None if it has none."""
    if item is None or not has_key(index.key, item):
        return None
    kept = projected(shape, index)
    if kept is None:
        return item
    return {name: value for name, value in item.items() if name in kept}


def has_key(key: KeyDescription, item: Item) -> bool:
    """Whether an item has all attributes of a key, with the right types."""
    return all(part.type in item.get(part.name, ()) for part in key.parts)


def place(key: KeyDescription, item: Item) -> tuple[Any, ...]:
    """A sortable position of an item by a key; within a partition it sorts like the items."""
    return tuple(sort_key(item[part.name]) for part in key.parts)


def in_order(shape: TableDescription, index: str | None, entries: Sequence[Item]) -> list[Item]:
    """Entries of the table or an index by partition, then in the order of the sort key."""
    key, table = shape.key_of(index), shape.key
    return sorted(entries, key=lambda entry: (place(key, entry), place(table, entry)))


def partition_of(key: KeyDescription, item: Item) -> tuple[Any, ...]:
    """Identifies the collection of an item by a key."""
    return tuple(sort_key(item[part.name]) for part in key.partition)


def collections(key: KeyDescription, entries: Sequence[Item]) -> dict[tuple[Any, ...], list[Item]]:
    """Entries grouped by collection, in the given order."""
    found: dict[tuple[Any, ...], list[Item]] = {}
    for entry in entries:
        found.setdefault(partition_of(key, entry), []).append(entry)
    return found
