"""Stream records: whether a change writes one, images (view type), bytes, GetRecords pages, the first since a time.

    key     shard number (4 bytes) · sequence number (8 bytes)
    value   time in ms (8) · event (1) · size (4) · length of keys (4) · length of new image (4)
            · keys · new image · old image, each as DynamoDB JSON; an image that is not kept is empty

A record is read without parsing its contents: keys and images are spliced into responses unchanged.

The service's rules: a write that changes nothing writes no record; the order of attributes and of set members does not
count as a change. A record has the images of the stream's view type. A page has at most 1,000 records and 1 MB. After
the last page of a closed shard there is no next page; an open shard always has one, which may be empty.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import Final, NamedTuple

from isotone import limits
from isotone.clock import milliseconds
from isotone.engine.engine import Engine
from isotone.engine.layout import body_of, encode_item, hold_equal_items, item_of, size_of
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import StreamView
from isotone.values.attribute_validation import Item
from isotone.values.size import item_size

INSERT: Final = 0
MODIFY: Final = 1
REMOVE: Final = 2
EXPIRE: Final = 3  # a deletion by TTL

_KEY: Final = struct.Struct(">IQ")
_HEAD: Final = struct.Struct(">QBIII")
_KEEPS_NEW: Final[frozenset[StreamView]] = frozenset({"NEW_IMAGE", "NEW_AND_OLD_IMAGES"})
_KEEPS_OLD: Final[frozenset[StreamView]] = frozenset({"OLD_IMAGE", "NEW_AND_OLD_IMAGES"})


class StreamRecord(NamedTuple):
    """One record. `size` is that of its keys and images by DynamoDB's rules."""

    time: int
    event: int
    size: int
    keys: bytes
    new: bytes
    old: bytes


def record_key(shard: int, sequence: int) -> bytes:
    """The key of a record in the store."""
    return _KEY.pack(shard, sequence)


def position_of(key: bytes) -> tuple[int, int]:
    """The shard and the sequence number of a key."""
    shard, sequence = _KEY.unpack(key)
    return shard, sequence


def pack(record: StreamRecord) -> bytes:
    """The bytes of a record."""
    time, event, size, keys, new, old = record
    return _HEAD.pack(time, event, size, len(keys), len(new)) + keys + new + old


def unpack(value: bytes) -> StreamRecord:
    """The record in these bytes."""
    time, event, size, keys_length, new_length = _HEAD.unpack_from(value)
    new_at = _HEAD.size + keys_length
    old_at = new_at + new_length
    return StreamRecord(
        time, event, size, value[_HEAD.size : new_at], value[new_at:old_at], value[old_at:]
    )


def time_of(value: bytes) -> int:
    """When the change was made, in milliseconds."""
    return int.from_bytes(value[:8], "big")


def next_sequence(engine: Engine, tree: str) -> int:
    """Take the next sequence number of a stream, in the open transaction.

    The counter is stored with the tree counts: it is written once per transaction, however many numbers are taken, and
    rolled back with it.
    """
    engine.counts.add(tree, 1, 0)
    return last_sequence(engine, tree)


def last_sequence(engine: Engine, tree: str) -> int:
    """The latest sequence number taken; 0 before the first."""
    return engine.counts.of(tree)[0]


def record_change(
    engine: Engine,
    table: StoredTable,
    item_key: bytes,
    old: bytes | None,
    new: bytes | None,
    item: Item | None = None,
    *,
    expired: bool = False,
) -> None:
    """Record that an item's record `old` was replaced by `new`; either may be empty.

    Happens in the transaction of the change. `item` is `new` parsed, if the caller has it. Costs one more write.
    """
    stream = table.stream
    assert stream is not None
    item = item_of(new or old or b"") if item is None else item
    if old is not None and new is not None and hold_equal_items(old, new, item):
        return
    keys = table.schema.key_of(item)
    kept_new = new if stream.view in _KEEPS_NEW else None
    kept_old = old if stream.view in _KEEPS_OLD else None
    record = StreamRecord(
        time=milliseconds(engine.clock),
        event=_event(old, new, expired=expired),
        size=item_size(keys) + size_of(kept_new) + size_of(kept_old),
        keys=encode_item(keys),
        new=b"" if kept_new is None else body_of(kept_new),
        old=b"" if kept_old is None else body_of(kept_old),
    )
    shard = stream.shards[bisect_right(stream.lows, int.from_bytes(item_key[:2], "big")) - 1]
    sequence = next_sequence(engine, stream.tree)
    engine.store.put(stream.tree, record_key(shard, sequence), pack(record))


def _event(old: bytes | None, new: bytes | None, *, expired: bool) -> int:
    if new is None:
        return EXPIRE if expired else REMOVE
    return INSERT if old is None else MODIFY


def first_since(engine: Engine, tree: str, shard: int, start: int, time: int) -> int | None:
    """The number of the first record from `time` (ms) or later. Reads from `start` up to it.

    The clock can be set back, so times may fall while numbers rise.
    """
    records = engine.store.range(tree, record_key(shard, start), record_key(shard + 1, 0))
    return next((position_of(where)[1] for where, value in records if time_of(value) >= time), None)


class StreamPage(NamedTuple):
    """Records with their sequence numbers, and the start of the next page, if there can be one."""

    records: list[tuple[int, StreamRecord]]
    next: int | None


def read_page(
    engine: Engine, tree: str, shard: int, start: int, limit: int | None, *, closed: bool
) -> StreamPage:
    """The records of a shard from a sequence number on. Reads at most one record that it does not return."""
    most = limit or limits.STREAM_RECORDS
    records: list[tuple[int, StreamRecord]] = []
    size = 0
    low, high = record_key(shard, start), record_key(shard + 1, 0)
    for where, value in engine.store.range(tree, low, high):
        record = unpack(value)
        size += record.size
        if len(records) == most or (records and size > limits.STREAM_PAGE):
            return StreamPage(records, records[-1][0] + 1)
        records.append((position_of(where)[1], record))
    if closed:
        return StreamPage(records, None)
    return StreamPage(records, records[-1][0] + 1 if records else start)
