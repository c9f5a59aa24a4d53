"""A table at run time (`StoredTable`) and its indexes: the entry of an item, what is projected.

Local and global indexes are sparse: an item without the index's key attributes has no entry. A table with a TimeToLive attribute has one
more index, the expiry index, which only the TTL sweep reads.
"""

from __future__ import annotations

from operator import itemgetter

from isotone.codec import HASH_SIZE, encode_number
from isotone.engine.consumed_units import TableUnits, Units
from isotone.engine.index_entries import IndexEntry, TableIndex
from isotone.engine.layout import SIZE_BYTES, Keyspace, hold_equal_items, pack
from isotone.engine.table_schema import (
    IndexSchema,
    Replication,
    StreamSchema,
    TableSchema,
    TimeToLive,
)
from isotone.engine.vector_index import StoredVectorIndex
from isotone.values.attribute_validation import Item
from isotone.values.size import item_size


class SecondaryIndex:
    """A local or global secondary index."""

    searched = False

    __slots__ = (
        "_kept",
        "_key_of",
        "_names",
        "filled",
        "key_names",
        "keyspace",
        "kind",
        "name",
        "schema",
        "tree",
        "units",
    )

    def __init__(self, schema: IndexSchema, table: TableSchema, units: Units | None = None) -> None:
        self.schema: IndexSchema = schema
        self.units: Units | None = units
        self.name: str = schema.name
        self.kind = schema.kind
        self.tree: str = schema.tree
        self.filled: bool = schema.status != "CREATING"
        self.keyspace: Keyspace = Keyspace(schema.keys)
        self.key_names: tuple[str, ...] = tuple(dict.fromkeys(schema.keys.names + table.keys.names))
        self._kept = projected_names(schema, table)
        self._names = tuple(sorted(self._kept or ()))
        self._key_of = itemgetter(*schema.keys.names)

    def entry(self, item: Item, key: bytes, record: bytes) -> IndexEntry | None:
        keyspace = self.keyspace
        own = keyspace.plain_key(item) if keyspace.is_text else None
        if own is None:
            if not keyspace.fits(item):
                return None
            own = keyspace.key(item)
        if self._kept is not None:
            record = self._projected_record(item)
        return IndexEntry(own + key[HASH_SIZE:], record)

    def old_entry(
        self, old_item: Item, key: bytes, old: bytes, item: Item, entry: IndexEntry | None
    ) -> IndexEntry | None:
        try:
            is_same_key = entry is not None and self._key_of(item) == self._key_of(old_item)
        except KeyError:
            return None
        if entry is None or not is_same_key:
            return self.entry(old_item, key, old)
        # Most writes do not change the keys of an index, so the new entry reuses the old key.
        return IndexEntry(
            entry.key, old if self._kept is None else self._projected_record(old_item)
        )

    def key(self, item: Item, key: bytes) -> bytes:
        """The key of an item's entry. The item fits, and is stored at `key` in its table."""
        return self.keyspace.key(item) + key[HASH_SIZE:]

    def are_equal(self, before: IndexEntry, after: IndexEntry) -> bool:
        """Whether entries differ only in the order of attributes or of set members."""
        return before.key == after.key and hold_equal_items(before.record, after.record)

    def _projected_record(self, item: Item) -> bytes:
        projected = self._projected(item)
        return pack(projected, item_size(projected))

    def _projected(self, item: Item) -> Item:
        # In a fixed order, so that equal entries have equal bytes.
        return {name: item[name] for name in self._names if name in item}

    def covers(self, names: frozenset[str]) -> bool:
        """Whether entries contain all these attributes."""
        return self._kept is None or names <= self._kept

    def missing(self, names: frozenset[str]) -> list[str]:
        """Which of these attributes the entries lack."""
        return [] if self._kept is None else sorted(names - self._kept)

    def entry_size(self, item: Item, size: int) -> int:
        """The size of an item's entry, by the size of the item; 0 if it has no entry."""
        if not self.keyspace.fits(item):
            return 0
        return size if self._kept is None else item_size(self._projected(item))


_NO_SIZE = bytes(SIZE_BYTES)


class ExpiryIndex:
    """Items with a TTL, ordered by expiry. The body of a record is the item's key."""

    searched = False

    __slots__ = ("attribute", "filled", "tree")

    def __init__(self, ttl: TimeToLive) -> None:
        self.attribute: str = ttl.attribute
        self.tree: str = ttl.tree
        self.filled: bool = ttl.filled

    def entry(self, item: Item, key: bytes, record: bytes) -> IndexEntry | None:
        text = item.get(self.attribute, {}).get("N")
        if text is None:
            return None
        return IndexEntry(encode_number(text) + key, _NO_SIZE + key)

    def old_entry(
        self, old_item: Item, key: bytes, old: bytes, item: Item, entry: IndexEntry | None
    ) -> IndexEntry | None:
        return self.entry(old_item, key, old)


def projected_names(index: IndexSchema, table: TableSchema) -> frozenset[str] | None:
    """The attributes that an index's entries contain; None for all."""
    if index.projection.kind == "ALL":
        return None
    names = frozenset(index.keys.names) | frozenset(table.keys.names)
    return names | frozenset(index.projection.names)


class StoredTable:
    """A table's keyspace and indexes. Immutable: a changed schema makes a new `StoredTable`.

    `units` counts consumed capacity; None while nobody counts.
    """

    __slots__ = (
        "collections",
        "history",
        "indexes",
        "key_names",
        "keyspace",
        "local",
        "name",
        "replication",
        "schema",
        "secondary",
        "stream",
        "tree",
        "units",
        "vectors",
    )

    def __init__(self, schema: TableSchema, units: TableUnits | None = None) -> None:
        self.schema: TableSchema = schema
        self.units: TableUnits | None = units
        self.name: str = schema.name
        self.tree: str = schema.tree
        self.keyspace: Keyspace = Keyspace(schema.keys)
        self.key_names: tuple[str, ...] = self.keyspace.names
        self.secondary: tuple[SecondaryIndex, ...] = tuple(
            SecondaryIndex(index, schema, None if units is None else units.of_index(index))
            for index in schema.indexes
            if index.status != "DELETING"
        )
        self.local: tuple[SecondaryIndex, ...] = tuple(
            index for index in self.secondary if index.kind == "local"
        )
        expiry = () if schema.ttl is None else (ExpiryIndex(schema.ttl),)
        self.vectors: tuple[StoredVectorIndex, ...] = tuple(
            StoredVectorIndex(index, schema)
            for index in schema.vectors
            if index.status != "DELETING"
        )
        self.indexes: tuple[TableIndex, ...] = (*self.secondary, *self.vectors, *expiry)
        self.stream: StreamSchema | None = (
            schema.stream if schema.stream and schema.stream.shards else None
        )
        self.collections: str | None = schema.tree + "_collections" if self.local else None
        self.history: str | None = schema.history
        self.replication: Replication | None = schema.replication

    def index(self, name: str) -> SecondaryIndex | None:
        """A secondary index by its name."""
        return next((index for index in self.secondary if index.name == name), None)

    def vector_index(self, name: str) -> StoredVectorIndex | None:
        """A vector index by its name."""
        return next((index for index in self.vectors if index.name == name), None)

    def weight(self, item: Item, size: int) -> int:
        """The size that counts towards the item size limit: the item and its entries in local indexes."""
        return size + sum([index.entry_size(item, size) for index in self.local])

    @property
    def trees(self) -> list[str]:
        """Every tree that belongs to this table."""
        trees = [self.tree, *(index.tree for index in self.indexes)]
        if self.replication is not None:
            trees += [self.replication.stamps, self.replication.outbox]
        return [*trees, *(tree for tree in (self.collections, self.history) if tree is not None)]
