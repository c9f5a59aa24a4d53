"""Physical layout: keys of items and entries, records, which item fits an index, whether two records hold equal items.

    table entry   hash(partition) · partition · sort
    index entry   hash(partition parts) · partition parts · sort parts · table partition · table sort

This file decides which components a key has, and in which order; `codec.key_bytes` encodes each component.

Each component delimits itself and sorts like its value. So a Scan returns items in hash order, a parallel segment is a
range of hashes, an item collection is one contiguous range, and entries with equal index keys are neighbours.

A record is the item's size in four bytes, then its DynamoDB JSON. The size follows DynamoDB's rules, and is stored so
that it need not be computed again. The JSON is canonical and is spliced into responses unchanged, so an item that no
expression touches is never parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from struct import Struct
from typing import TypeAlias
from zlib import adler32

import msgspec

from isotone import limits
from isotone.codec import (
    HASH_SIZE,
    after,
    decode_components,
    encode_text,
    encoder_for,
    partition_prefix,
    prefix_range,
)
from isotone.engine.table_schema import KeyPart, KeySchema
from isotone.errors import MalformedKey
from isotone.expressions import KeyRange, equal
from isotone.values.attribute_validation import AttributeValue, Item
from isotone.values.size import value_size

Bounds: TypeAlias = tuple[bytes, bytes | None]
"""`low <= key < high`; None means the end of the tree."""

SHORT = limits.SORT_KEY_SIZE // 4
"""Keys with up to this many characters are within all size limits, in any encoding."""


class Keyspace:
    """The physical keys of one table or index."""

    __slots__ = (
        "_components",
        "_of_contents",
        "_partition",
        "_sort",
        "_text_names",
        "_text_sort",
        "is_text",
        "length",
        "names",
        "partition_names",
        "parts",
        "schema",
        "sort_names",
    )

    def __init__(self, schema: KeySchema) -> None:
        self.schema: KeySchema = schema
        self.parts: tuple[KeyPart, ...] = schema.parts
        self.partition_names: tuple[str, ...] = tuple(part.name for part in schema.partition)
        self.sort_names: tuple[str, ...] = tuple(part.name for part in schema.sort)
        self.names: tuple[str, ...] = self.partition_names + self.sort_names
        self.length: int = len(self.names)
        self._partition = [_component(part, limits.PARTITION_KEY_SIZE) for part in schema.partition]
        self._sort = [_component(part, limits.SORT_KEY_SIZE) for part in schema.sort]
        self._components = self._partition + self._sort
        self._of_contents = [_OF_CONTENT[part.type] for part in schema.parts]
        is_simple = len(self._partition) == 1 and len(self._sort) < 2
        self.is_text: bool = is_simple and all(part.type == "S" for part in schema.parts)
        self._text_names = self.names if self.is_text else ()
        self._text_sort = schema.sort[0].name if self.is_text and schema.sort else None

    def plain_key(self, item: Mapping[str, AttributeValue]) -> bytes | None:
        """The key of an item if it has only short strings, as most keys do; None otherwise. Values may be unvalidated."""
        if not self._text_names:
            return None
        try:
            value = item[self._text_names[0]]
            (_,) = value
            text = value["S"]
            if type(text) is not str or not text or len(text) > SHORT:
                return None
            key = partition_prefix(encode_text(text))
            if self._text_sort is None:
                return key
            value = item[self._text_sort]
            (_,) = value
            text = value["S"]
            if type(text) is not str or not text or len(text) > SHORT:
                return None
        except (KeyError, TypeError, ValueError):
            return None
        return key + encode_text(text)

    def accepts(self, item: Mapping[str, AttributeValue]) -> bool:
        """Whether those key attributes that an item has are of the right type, neither empty nor too long."""
        for name, kind, _, limit in self._components:
            value = item.get(name)
            if value is not None and (
                kind not in value
                or not value[kind]
                or (len(value[kind]) > SHORT and value_size(value) > limit)
            ):
                return False
        return True

    def fits(self, item: Mapping[str, AttributeValue]) -> bool:
        """Whether an item has every key attribute with the right type, neither empty nor too long."""
        for name, kind, _, limit in self._components:
            value = item.get(name)
            text = None if value is None else value.get(kind)
            if value is None or not text:
                return False
            if len(text) > SHORT and value_size(value) > limit:
                return False
        return True

    def key(self, item: Mapping[str, AttributeValue]) -> bytes:
        """The key of an item that fits."""
        plain = self.plain_key(item) if self._text_names else None
        if plain is not None:
            return plain
        head = b"".join([encode(item[name][kind]) for name, kind, encode, _ in self._partition])
        tail = b"".join([encode(item[name][kind]) for name, kind, encode, _ in self._sort])
        return partition_prefix(head) + tail

    def key_of(self, contents: Sequence[bytes]) -> bytes | None:
        """The key of an item from the contents of its key attributes, in normal form; None if they may not fit."""
        if self._text_names:
            # Long contents, which might be too long, are treated as not fitting.
            if not 0 < len(contents[0]) <= SHORT:
                return None
            key = partition_prefix(b"\x20" + contents[0] + b"\x00")
            if self._text_sort is None:
                return key
            return key + b"\x20" + contents[1] + b"\x00" if 0 < len(contents[1]) <= SHORT else None
        if min(map(len, contents)) and max(map(len, contents)) <= SHORT:
            parts = [encode(text) for encode, text in zip(self._of_contents, contents, strict=True)]
            count = len(self._partition)
            return partition_prefix(b"".join(parts[:count])) + b"".join(parts[count:])
        item = {
            name: {kind: content.decode()}
            for (name, kind, _, _), content in zip(self._components, contents, strict=True)
        }
        return self.key(item) if self.fits(item) else None

    def item_key(self, key: bytes) -> Item | None:
        """The attributes in the key of a table or an index entry; None if it is not such a key."""
        try:
            values = decode_components(key[HASH_SIZE:])
        except MalformedKey:
            return None
        if [next(iter(value)) for value in values[: self.length]] != [
            part.type for part in self.schema.parts
        ]:
            return None
        return dict(zip(self.names, values, strict=False))

    def prefix(self, partition: Sequence[AttributeValue]) -> bytes:
        """The prefix of all keys of an item collection."""
        if self._text_names:
            return partition_prefix(encode_text(partition[0]["S"]))
        components = zip(partition, self._partition, strict=True)
        return partition_prefix(
            b"".join([encode(value[kind]) for value, (_, kind, encode, _) in components])
        )

    def bounds(self, keys: KeyRange) -> Bounds:
        """The range `[low, high)` of entries that a key condition selects."""
        base = self.prefix(keys.partition)
        for value, (_, kind, encode, _) in zip(keys.equal, self._sort, strict=False):
            base += encode(value[kind])
        if keys.operator is None:
            return base, after(base)
        if keys.operator == "begins_with":
            low, high = prefix_range(keys.operands[0])
            return base + low, base + high
        _, kind, encode, _ = self._sort[len(keys.equal)]
        ends = [base + encode(operand[kind]) for operand in keys.operands]
        return _BOUNDS[keys.operator](base, ends)


_encode_number: Callable[[str], bytes] = encoder_for("N")
_encode_binary: Callable[[str], bytes] = encoder_for("B")


def _text_of(content: bytes) -> bytes:
    """The component of a text without control characters."""
    return b"\x20" + content + b"\x00"


@lru_cache(maxsize=1024)
def _number_of(content: bytes) -> bytes:
    return _encode_number(content.decode())


_OF_CONTENT: dict[str, Callable[[bytes], bytes]] = {
    "S": _text_of,
    "N": _number_of,
    "B": lambda content: _encode_binary(content.decode()),
}
"""From an attribute's content in JSON (without escapes) to its component."""

_Component = tuple[str, str, Callable[[str], bytes], int]  # name, type, encoder, largest size


def _component(part: KeyPart, limit: int) -> _Component:
    return part.name, part.type, encoder_for(part.type), limit


_BOUNDS: dict[str, Callable[[bytes, list[bytes]], Bounds]] = {
    "<": lambda base, ends: (base, ends[0]),
    "<=": lambda base, ends: (base, after(ends[0])),
    ">": lambda base, ends: (after(ends[0]), after(base)),
    ">=": lambda base, ends: (ends[0], after(base)),
    "BETWEEN": lambda base, ends: (ends[0], after(ends[1])),
}


# Records

_SIZE = Struct(">I")
SIZE_BYTES = _SIZE.size
size_prefix: Callable[[int], bytes] = _SIZE.pack
"""The first bytes of a record, which contain the item's size."""
_unpack_size: Callable[[bytes], tuple[int]] = _SIZE.unpack_from

encode_item: Callable[[Item], bytes] = msgspec.json.Encoder().encode
# Values stay plain dicts: if their types were named here, msgspec would validate each one again.
decode_item: Callable[[bytes], Item] = msgspec.json.Decoder(dict[str, dict]).decode  # type: ignore[type-arg] # untyped on purpose: see above


def pack(item: Item, size: int) -> bytes:
    """The record of an item."""
    return size_prefix(size) + encode_item(item)


def size_of(record: bytes | None) -> int:
    """The item's size by DynamoDB's accounting; 0 if there is no record."""
    return 0 if record is None else _unpack_size(record)[0]


# The bytes of a record's size. No item needs the first.
_second: Callable[[bytes], int] = itemgetter(1)
_third: Callable[[bytes], int] = itemgetter(2)
_fourth: Callable[[bytes], int] = itemgetter(3)


def total_size(records: Sequence[bytes]) -> int:
    """The size of the items of these records.

    Adds up each byte position of the sizes separately, so it creates no integer per record.
    """
    high, middle, low = (
        sum(map(_second, records)),
        sum(map(_third, records)),
        sum(map(_fourth, records)),
    )
    return (high << 16) + (middle << 8) + low


def body_of(record: bytes) -> bytes:
    """The item's DynamoDB JSON."""
    return record[SIZE_BYTES:]


def item_of(record: bytes) -> Item:
    """The item itself, parsed."""
    return decode_item(record[SIZE_BYTES:])


_SUM = 0xFFFF
"""The half of an Adler-32 checksum that is the sum of the bytes modulo 65,521."""


def hold_equal_items(old: bytes, new: bytes, new_item: Item | None = None) -> bool:
    """Whether two records contain equal items. The order of attributes and of set members does not matter.

    Parses only records with the same length and the same sum of bytes, which reordering does not change. `new_item` is
    `new` parsed, if the caller has it.
    """
    if old == new:
        return True
    if len(old) != len(new) or (adler32(old) ^ adler32(new)) & _SUM:
        return False
    return equal({"M": item_of(old)}, {"M": item_of(new) if new_item is None else new_item})
