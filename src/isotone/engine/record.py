"""How an item lies in a tree: four bytes of size, then its DynamoDB JSON.

The size is the item's by DynamoDB's accounting, kept so that reading it costs nothing. The JSON is
canonical and is spliced into responses as it is: an item that no expression touches is never parsed.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from isotone.values.attributes import Item

_encode: Callable[[Item], bytes] = msgspec.json.Encoder().encode
_decode: Callable[[bytes | memoryview], Item] = msgspec.json.Decoder(dict[str, dict]).decode  # type: ignore[type-arg]

SIZE_BYTES = 4


def pack(item: Item, size: int) -> bytes:
    """The record of an item."""
    return size.to_bytes(SIZE_BYTES, "big") + _encode(item)


def size_of(record: bytes) -> int:
    """The item's size by DynamoDB's accounting."""
    return int.from_bytes(record[:SIZE_BYTES], "big")


def body_of(record: bytes) -> bytes:
    """The item's DynamoDB JSON."""
    return record[SIZE_BYTES:]


def item_of(record: bytes) -> Item:
    """The item itself, parsed."""
    return _decode(record[SIZE_BYTES:])
