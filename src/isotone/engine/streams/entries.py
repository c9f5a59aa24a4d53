"""How a record lies in its stream's tree.

    key     shard number (4 bytes) · sequence number (8 bytes)
    value   time in ms (8) · event (1) · size (4) · length of keys (4) · length of new image (4)
            · keys · new image · old image, each as DynamoDB JSON; an image that is not kept is empty

An entry is read without parsing what is in it: keys and images are spliced into answers as they are.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

INSERT: Final = 0
MODIFY: Final = 1
REMOVE: Final = 2
EXPIRE: Final = 3  # a removal by the expiry of the item

_KEY: Final = struct.Struct(">IQ")
_HEAD: Final = struct.Struct(">QBIII")


class Entry(NamedTuple):
    """One record. `size` is what its keys and images take by DynamoDB's accounting."""

    time: int
    event: int
    size: int
    keys: bytes
    new: bytes
    old: bytes


def pack(entry: Entry) -> bytes:
    """The value of an entry."""
    time, event, size, keys, new, old = entry
    return _HEAD.pack(time, event, size, len(keys), len(new)) + keys + new + old


def unpack(value: bytes) -> Entry:
    """The entry in a value."""
    time, event, size, keys_length, new_length = _HEAD.unpack_from(value)
    new_at = _HEAD.size + keys_length
    old_at = new_at + new_length
    return Entry(
        time, event, size, value[_HEAD.size : new_at], value[new_at:old_at], value[old_at:]
    )


def time_of(value: bytes) -> int:
    """When the change was made, in milliseconds."""
    return int.from_bytes(value[:8], "big")


def key(shard: int, sequence: int) -> bytes:
    """Where the record of a sequence number lies."""
    return _KEY.pack(shard, sequence)


def place(key: bytes) -> tuple[int, int]:
    """The shard and the sequence number in a key."""
    shard, sequence = _KEY.unpack(key)
    return shard, sequence
