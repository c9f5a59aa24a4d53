"""The interface of all kinds of index (local, global, TTL, vector): the entry that an item has in it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from isotone.values.attribute_validation import Item


class IndexEntry(msgspec.Struct, frozen=True, gc=False):
    """One index entry: its physical key and its record."""

    key: bytes
    record: bytes


class TableIndex(Protocol):
    """An index of any kind. Each item that belongs in it has one entry."""

    tree: str
    filled: bool
    """Whether every item that belongs in it has its entry; False until its backfill has ended."""
    searched: bool
    """Whether it is a vector index, whose vectors are cached in memory for searches."""

    def entry(self, item: Item, key: bytes, record: bytes) -> IndexEntry | None:
        """The entry of an item that is stored at `key` as `record`; None if it has none."""

    def old_entry(
        self, old_item: Item, key: bytes, old: bytes, item: Item, entry: IndexEntry | None
    ) -> IndexEntry | None:
        """The entry of `old_item`, which `item` replaces at `key`. `entry` is the entry of `item`."""
