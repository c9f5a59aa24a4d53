"""Vector indexes: which items have an entry, and the bytes of an entry (packed 32-bit floats and projected attributes).

key      like that of a secondary index on the partition attribute; without one, the item's own key
record   size (4 bytes) · the vector, 4 bytes for each dimension (IEEE 754, little-endian) · JSON of the item

The JSON has the projected attributes without the vector. The size is what the service charges: the vector, its
attribute's name, and the rest by the rules for items.

The index is sparse: an item has an entry if its vector has the right dimensions, its partition attribute is present,
and no attribute of the search schema has another type. Writes refuse all other faults, so they occur only in items that
are older than the index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter, mul
from struct import Struct
from typing import Any, Final, TypeAlias

import msgspec

from isotone import limits
from isotone.codec import HASH_SIZE, after
from isotone.engine.index_entries import IndexEntry
from isotone.engine.layout import SIZE_BYTES, Bounds, Keyspace, encode_item, item_of, size_prefix
from isotone.engine.table_schema import KeyPart, KeySchema, TableSchema, VectorSchema
from isotone.expressions import equal
from isotone.values.attribute_validation import AttributeValue, Item
from isotone.values.number import canonical_number
from isotone.values.size import item_size, text_size, value_size

Floats: TypeAlias = Sequence[float]
FLOAT_BYTES: Final = 4
_number: Final = itemgetter("N")
_FLOAT: Final = Struct("<f")

Labels: TypeAlias = tuple[str | None, ...]
"""The values of an entry's filter attributes, in the order of the search schema; None for a missing one."""


# As exact as fsum, and faster, but missing in Python 3.11. Products of 32-bit floats are exact.
_sumprod: Callable[[Floats, Floats], float] | None = getattr(math, "sumprod", None)


def dot(one: Floats, two: Floats) -> float:
    """The dot product of vectors of 32-bit floats, rounded once."""
    return math.fsum(map(mul, one, two)) if _sumprod is None else _sumprod(one, two)


class StoredVectorIndex:
    """One vector index of a table."""

    kind = "vector"
    searched = True
    units = None  # it is charged by bytes

    __slots__ = (
        "_filters",
        "_json_start",
        "_keyspace",
        "_labels",
        "_name_size",
        "_names",
        "_vector",
        "filled",
        "name",
        "projected",
        "schema",
        "tree",
    )

    def __init__(self, schema: VectorSchema, table: TableSchema) -> None:
        self.schema: VectorSchema = schema
        self.name: str = schema.name
        self.tree: str = schema.tree
        self.filled: bool = schema.status != "CREATING"
        self.projected: frozenset[str] | None = _projected(schema, table)
        self._names = None if self.projected is None else tuple(sorted(self.projected))
        self._name_size = text_size(schema.attribute)
        self._filters = tuple((part.name, part.type) for part in schema.filters)
        part = schema.partition
        self._keyspace = (
            None if part is None else Keyspace(KeySchema((KeyPart(part.name, part.type),)))
        )
        self._vector = Struct(f"<{schema.dimensions}f")
        self._json_start = SIZE_BYTES + self._vector.size
        self._labels = _labels_decoder(self._filters)

    # Entries

    def vector(self, value: AttributeValue | None) -> bytes | None:
        """The packed floats of a vector attribute; None if it is not a valid vector of this index."""
        elements = None if value is None else value.get("L")
        if elements is None or len(elements) != self.schema.dimensions:
            return None
        try:
            return self._vector.pack(*map(float, map(_number, elements)))
        except (KeyError, OverflowError):
            return None

    @staticmethod
    def is_float(element: AttributeValue) -> bool:
        """Whether a list element is a number within the range of a 32-bit float."""
        try:
            _FLOAT.pack(float(element["N"]))
        except (KeyError, OverflowError):
            return False
        return True

    def entry(self, item: Item, key: bytes, record: bytes) -> IndexEntry | None:
        packed = self.vector(item.get(self.schema.attribute))
        return None if packed is None else self._entry(item, key, packed)

    def old_entry(
        self, old_item: Item, key: bytes, old: bytes, item: Item, entry: IndexEntry | None
    ) -> IndexEntry | None:
        name = self.schema.attribute
        if entry is not None and item.get(name) == old_item.get(name):
            return self._entry(old_item, key, self.vector_of(entry.record))
        return self.entry(old_item, key, old)

    def _entry(self, item: Item, key: bytes, packed: bytes) -> IndexEntry | None:
        if not self._fits(item):
            return None
        if self._keyspace is not None:
            key = self._keyspace.key(item) + key[HASH_SIZE:]
        copied = self._copied(item)
        size = self.vector_size + item_size(copied)
        return IndexEntry(key, size_prefix(size) + packed + encode_item(copied))

    def _fits(self, item: Item) -> bool:
        if self._keyspace is not None and not self._keyspace.fits(item):
            return False
        return all(
            name not in item
            or (kind in item[name] and value_size(item[name]) <= limits.INLINE_FILTER_SIZE)
            for name, kind in self._filters
        )

    def _copied(self, item: Item) -> Item:
        """The projected attributes without the vector."""
        if self._names is None:
            copied = {**item}
            copied.pop(self.schema.attribute, None)
            return copied
        # In a fixed order, so that equal entries have equal bytes.
        return {name: item[name] for name in self._names if name in item}

    def are_equal(self, before: IndexEntry, after: IndexEntry) -> bool:
        """Whether entries differ only in the order of attributes or of set members."""
        return (
            before.key == after.key
            and self.vector_of(before.record) == self.vector_of(after.record)
            and equal({"M": self.item(before.record)}, {"M": self.item(after.record)})
        )

    # Searches

    def bounds(self, partition: AttributeValue | None) -> Bounds:
        """The range of entries that a search considers."""
        if self._keyspace is None or partition is None:
            return b"", None
        low = self._keyspace.prefix([partition])
        return low, after(low)

    def vector_of(self, record: bytes) -> bytes:
        """The packed vector of an entry."""
        return record[SIZE_BYTES : self._json_start]

    def floats(self, packed: bytes) -> tuple[float, ...]:
        """The elements of a packed vector."""
        return self._vector.unpack(packed)

    def pack(self, elements: list[float]) -> bytes:
        """Pack as many floats as the index has dimensions. Raises OverflowError if one is too large."""
        return self._vector.pack(*elements)

    def body_of(self, record: bytes) -> bytes:
        """The JSON of the projected attributes without the vector."""
        return record[self._json_start :]

    def item(self, record: bytes) -> Item:
        """The projected attributes without the vector."""
        return item_of(record[self._json_start - SIZE_BYTES :])

    def whole_item(self, record: bytes) -> Item:
        """The projected attributes, including the vector as stored if the index projects it."""
        item = self.item(record)
        if self.projects_vector:
            floats = self.floats(self.vector_of(record))
            item[self.schema.attribute] = {"L": [{"N": _shortest(each)} for each in floats]}
        return item

    @property
    def vector_size(self) -> int:
        """What the vector and its name add to the size of an entry."""
        return self._vector.size + self._name_size

    @property
    def projects_vector(self) -> bool:
        """Whether searches can return the vector."""
        return self.projected is None or self.schema.attribute in self.schema.projection.names

    def missing(self, names: frozenset[str]) -> list[str]:
        """Which of these attributes searches cannot return."""
        if self.projected is None:
            return []
        kept = self.projected | {self.schema.attribute} if self.projects_vector else self.projected
        return sorted(names - kept)

    def labels(self, record: bytes) -> Labels:
        """The values of the filter attributes of an entry."""
        return self._labels(record[self._json_start :])


def _projected(schema: VectorSchema, table: TableSchema) -> frozenset[str] | None:
    """The attributes that entries contain besides the vector; None for all."""
    if schema.projection.kind == "ALL":
        return None
    searched = {part.name for part in schema.search}
    names = searched.union(table.keys.names, schema.projection.names)
    return frozenset(names - {schema.attribute})


def _labels_decoder(filters: tuple[tuple[str, str], ...]) -> Callable[[bytes], Labels]:
    """A function from an entry's JSON to its labels. Skips all other attributes."""
    members = {f"f{position}": name for position, (name, _) in enumerate(filters)}
    struct = msgspec.defstruct(
        "Labels", [(member, dict[str, Any] | None, None) for member in members], rename=members
    )
    decode = msgspec.json.Decoder(struct).decode
    typed_members = [(member, kind) for member, (_, kind) in zip(members, filters, strict=True)]

    def labels(body: bytes) -> Labels:
        decoded = decode(body)
        values = [(getattr(decoded, member), kind) for member, kind in typed_members]
        return tuple([None if value is None else value[kind] for value, kind in values])

    return labels


def _shortest(value: float) -> str:
    """The shortest decimal that rounds to this 32-bit float."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if _FLOAT.unpack(_rounded(text))[0] == value:
            return canonical_number(text)
    raise AssertionError(f"{value!r} is not a 32-bit float")


def _rounded(text: str) -> bytes:
    try:
        return _FLOAT.pack(float(text))
    except OverflowError:  # with fewer digits, the largest float may round up beyond the range
        return _FLOAT.pack(0.0)
