"""A table at work: its schema with everything that is derived from it, made once and shared."""

from __future__ import annotations

from isotone import limits
from isotone.engine.indexes import PUT, UPDATE, ExpiryIndex, Index, SecondaryIndex
from isotone.engine.keyspace import Keyspace
from isotone.engine.schema import TableSchema
from isotone.errors import ValidationException
from isotone.values.attributes import Item

LOCAL_COLLECTIONS = "_collections"


class Table:
    """One table's keyspace and indexes. Immutable: a changed schema makes a new `Table`."""

    __slots__ = (
        "by_name",
        "collections",
        "indexes",
        "keyspace",
        "name",
        "schema",
        "secondary",
        "stream",
        "tree",
    )

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self.name = schema.name
        self.tree = schema.tree
        self.keyspace = Keyspace(schema.keys)
        self.secondary = tuple(
            SecondaryIndex(index, schema, self.keyspace)
            for index in schema.indexes
            if index.status != "DELETING"
        )
        self.by_name = {index.name: index for index in self.secondary}
        expiry = () if schema.ttl is None else (ExpiryIndex(schema.ttl),)
        self.indexes: tuple[Index, ...] = self.secondary + expiry
        has_local = any(index.kind == "local" for index in self.secondary)
        self.stream = schema.stream if schema.stream and schema.stream.shards else None
        self.collections = schema.tree + LOCAL_COLLECTIONS if has_local else None

    def check_item(self, item: Item, size: int) -> None:
        """Refuse an item that cannot lie in this table or in one of its indexes."""
        self.keyspace.check_item(item)
        for index in self.secondary:
            index.check(item, PUT)
        self._check_size(item, size, "Item size has exceeded the maximum allowed size")

    def check_updated(self, item: Item, size: int) -> None:
        """Refuse what an update made of an item, if it cannot lie in this table or in an index."""
        for index in self.secondary:
            index.check(item, UPDATE)
        self._check_size(item, size, "Item size to update has exceeded the maximum allowed size")

    def _check_size(self, item: Item, size: int, words: str) -> None:
        if self.collections is not None:
            # The limit holds for an item together with its entries in the local indexes.
            size += sum(
                index.entry_size(item, size) for index in self.secondary if index.kind == "local"
            )
        if size > limits.ITEM_SIZE:
            raise ValidationException(words)

    def index(self, name: str) -> SecondaryIndex:
        """A secondary index that can be read."""
        found = self.by_name.get(name)
        if found is None:
            raise ValidationException(f"The table does not have the specified index: {name}")
        if found.schema.status == "CREATING":
            raise ValidationException(
                f"Cannot read from backfilling global secondary index: {name}"
            )
        return found

    @property
    def trees(self) -> list[str]:
        """Every tree that belongs to this table."""
        trees = [self.tree, *(index.tree for index in self.indexes)]
        return trees if self.collections is None else [*trees, self.collections]
