"""Index entries: what an item looks like in each index, and what changes when the item does.

An index is sparse by nature: an item without the index's key attributes has no entry. The expiry index
of a table with a TimeToLive attribute is one more index, known to nobody but the sweep in `ttl`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from isotone import limits
from isotone.codec import encode_number
from isotone.engine.keyspace import Keyspace
from isotone.engine.record import SIZE_BYTES, pack
from isotone.engine.schema import IndexSchema, KeyPart, TableSchema, TimeToLive
from isotone.errors import ValidationException
from isotone.values.attributes import Item
from isotone.values.size import item_size, value_size


class Entry(NamedTuple):
    """One index entry: its physical key and its record."""

    key: bytes
    record: bytes


class Index(Protocol):
    """Anything that keeps one entry for each item that belongs in it."""

    tree: str
    filled: bool
    """Whether every item that belongs in it has its entry; False until its backfill has ended."""

    def entry(self, item: Item, key: bytes, record: bytes) -> Entry | None:
        """The entry of an item that lies at `key` as `record`, or None where it has none."""


class Refusals(NamedTuple):
    """What is said of an item whose attribute cannot be an index's key: wrong type, empty, too long."""

    type: str
    empty: str
    size: str


PUT = Refusals(
    type="One or more parameter values were invalid: Type mismatch for Index Key {name} "
    "Expected: {type} Actual: {actual} IndexName: {index}",
    empty="One or more parameter values are not valid. A value specified for a secondary index key "
    "is not supported. The AttributeValue for a key attribute cannot contain an empty {kind} value. "
    "IndexName: {index}, IndexKey: {name}",
    size="One or more parameter values were invalid: Size of {key} has exceeded "
    "the maximum size limit of{limit} bytes",
)
UPDATE = Refusals(
    type="The update expression attempted to update the secondary index key to unsupported type",
    empty="One or more parameter values are not valid. The update expression attempted to update "
    "a secondary index key to a value that is not supported. "
    "The AttributeValue for a key attribute cannot contain an empty {kind} value.",
    size="The update expression attempted to update the secondary index key "
    "beyond allowed size limits",
)


class SecondaryIndex:
    """A local or global secondary index."""

    __slots__ = ("_kept", "_names", "filled", "keyspace", "kind", "name", "schema", "table", "tree")

    def __init__(self, schema: IndexSchema, table: TableSchema, keyspace: Keyspace) -> None:
        self.schema = schema
        self.name = schema.name
        self.kind = schema.kind
        self.tree = schema.tree
        self.filled = schema.status != "CREATING"
        self.keyspace = Keyspace(schema.keys)
        self.table = keyspace
        self._kept = projected_names(schema, table)
        self._names = tuple(sorted(self._kept or ()))

    def entry(self, item: Item, key: bytes, record: bytes) -> Entry | None:
        if not self.keyspace.has_key(item):
            return None
        if self._kept is not None:
            item = self._projected(item)
            record = pack(item, item_size(item))
        return Entry(self.keyspace.key(item) + self.table.suffix(item), record)

    def covers(self, names: frozenset[str]) -> bool:
        """Whether entries carry all these attributes."""
        return self._kept is None or names <= self._kept

    def missing(self, names: frozenset[str]) -> list[str]:
        """Which of these attributes the entries do not carry."""
        return [] if self._kept is None else sorted(names - self._kept)

    def entry_size(self, item: Item, size: int) -> int:
        """How many bytes the entry of an item of some size takes; 0 where there is none."""
        if not self.keyspace.has_key(item):
            return 0
        return size if self._kept is None else item_size(self._projected(item))

    def _projected(self, item: Item) -> Item:
        # In one order, whatever the item's: an entry that says the same must be the same.
        return {name: item[name] for name in self._names if name in item}

    def check(self, item: Item, refusals: Refusals) -> None:
        """Refuse an item whose attribute cannot be this index's key."""
        for part in self.schema.keys.parts:
            value = item.get(part.name)
            if value is None:
                continue
            text = value.get(part.type)
            if text is None:
                raise self._refused(refusals.type, part, actual=next(iter(value)))
            if not text:
                raise self._refused(refusals.empty, part)
            if len(text) > limits.SORT_KEY_SIZE // 4:
                self._check_size(item, refusals)

    def _check_size(self, item: Item, refusals: Refusals) -> None:
        for parts, limit, words in (
            (self.schema.keys.partition, limits.PARTITION_KEY_SIZE, "hashkey"),
            (self.schema.keys.sort, limits.SORT_KEY_SIZE, "rangekey"),
        ):
            for part in parts:
                if part.name in item and value_size(item[part.name]) > limit:
                    raise self._refused(refusals.size, part, key=words, limit=limit)

    def _refused(self, words: str, part: KeyPart, **details: object) -> ValidationException:
        kind = "string" if part.type == "S" else "binary"
        return ValidationException(
            words.format(index=self.name, name=part.name, type=part.type, kind=kind, **details)
        )


_NO_SIZE = bytes(SIZE_BYTES)


class ExpiryIndex:
    """Items with an expiry, in the order in which they expire; a record's body is the item's key."""

    __slots__ = ("attribute", "filled", "tree")

    def __init__(self, ttl: TimeToLive) -> None:
        self.attribute = ttl.attribute
        self.tree = ttl.tree
        self.filled = ttl.filled

    def entry(self, item: Item, key: bytes, record: bytes) -> Entry | None:
        text = item.get(self.attribute, {}).get("N")
        if text is None:
            return None
        return Entry(encode_number(text) + key, _NO_SIZE + key)


def projected_names(index: IndexSchema, table: TableSchema) -> frozenset[str] | None:
    """The attributes that an index's entries carry; None means all."""
    if index.projection.kind == "ALL":
        return None
    names = frozenset(index.keys.names) | frozenset(table.keys.names)
    return names | frozenset(index.projection.names)
