"""How an item lies in a tree: four bytes of size, then its DynamoDB JSON.

The size is the item's by DynamoDB's accounting, kept so that reading it costs nothing. The JSON is
canonical and is spliced into responses as it is: an item that no expression touches is never parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

import msgspec

from isotone.values.attributes import Item

_encode: Callable[[Item], bytes] = msgspec.json.Encoder().encode
# Values stay plain dicts: naming their types here would make msgspec check each one again.
_decode: Callable[[bytes | memoryview], Item] = msgspec.json.Decoder(dict[str, dict]).decode  # type: ignore[type-arg] # see above

_SIZE = Struct(">I")
SIZE_BYTES = _SIZE.size
unpack_size: Callable[[bytes], tuple[int]] = _SIZE.unpack_from
"""The size alone in a tuple, for loops that cannot afford `size_of`."""


def pack(item: Item, size: int) -> bytes:
    """The record of an item."""
    return _SIZE.pack(size) + _encode(item)


def size_of(record: bytes) -> int:
    """The item's size by DynamoDB's accounting."""
    return unpack_size(record)[0]


def body_of(record: bytes) -> bytes:
    """The item's DynamoDB JSON."""
    return record[SIZE_BYTES:]


def item_of(record: bytes) -> Item:
    """The item itself, parsed."""
    return _decode(record[SIZE_BYTES:])
