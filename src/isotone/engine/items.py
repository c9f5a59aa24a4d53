"""One item at a time: reading it, and writing it together with its index entries and counts."""

from __future__ import annotations

from isotone.engine.engine import Engine
from isotone.engine.indexes import Entry, Index, SecondaryIndex
from isotone.engine.metering import Meter
from isotone.engine.record import item_of, pack, size_of
from isotone.engine.streams.recording import record_change
from isotone.engine.table import Table
from isotone.values.attributes import Item


def read(engine: Engine, table: Table, key: bytes) -> bytes | None:
    """The record at a key. One item read."""
    return engine.store.get(table.tree, key)


def put(
    engine: Engine,
    table: Table,
    key: bytes,
    old: bytes | None,
    item: Item,
    size: int,
    meter: Meter | None = None,
) -> None:
    """Set the item at a key, where the record `old` lies now. The item has been checked."""
    record = pack(item, size)
    engine.store.put(table.tree, key, record)
    old_size = 0 if old is None else size_of(old)
    engine.counts.add(table.tree, 1 if old is None else 0, size - old_size)
    if table.indexes:
        _move_entries(engine, table, key, old, record, item, meter)
    if table.stream is not None:
        record_change(engine, table, key, old, record, item)
    if meter is not None:
        meter.write(old_size, size)


def delete(
    engine: Engine,
    table: Table,
    key: bytes,
    old: bytes | None,
    meter: Meter | None = None,
    *,
    expired: bool = False,
) -> None:
    """Remove the item at a key, where the record `old` lies now; `expired` tells why in the stream."""
    old_size = 0
    if old is not None:
        old_size = size_of(old)
        engine.store.delete(table.tree, key)
        engine.counts.add(table.tree, -1, -old_size)
        if table.indexes:
            _move_entries(engine, table, key, old, None, None, meter)
        if table.stream is not None:
            record_change(engine, table, key, old, None, expired=expired)
    if meter is not None:
        meter.write(old_size, 0)


def _move_entries(
    engine: Engine,
    table: Table,
    key: bytes,
    old: bytes | None,
    record: bytes | None,
    item: Item | None,
    meter: Meter | None,
) -> None:
    old_item = None if old is None else item_of(old)
    for index in table.indexes:
        before = None if old is None or old_item is None else index.entry(old_item, key, old)
        after = None if record is None or item is None else index.entry(item, key, record)
        if before is not None and not index.filled:
            # The backfill may not have come this far.
            before = None if engine.store.get(index.tree, before.key) is None else before
        if before != after:
            move_entry(engine, index, before, after)
            if (
                meter is not None
                and isinstance(index, SecondaryIndex)
                and not _alike(before, after)
            ):
                meter.write_entry(index, before, after)
    if table.collections is not None:
        _resize_collection(engine, table, item or old_item or {}, old, record)


def _alike(before: Entry | None, after: Entry | None) -> bool:
    """Whether entries differ in nothing but the order of their attributes, which costs no unit."""
    return (
        before is not None
        and after is not None
        and before.key == after.key
        and len(before.record) == len(after.record)
        and item_of(before.record) == item_of(after.record)
    )


def move_entry(engine: Engine, index: Index, before: Entry | None, after: Entry | None) -> None:
    """Replace one index entry by another, either of which may be missing."""
    store = engine.store
    if before is not None and (after is None or after.key != before.key):
        store.delete(index.tree, before.key)
    if after is not None:
        store.put(index.tree, after.key, after.record)
    engine.counts.add(
        index.tree,
        (after is not None) - (before is not None),
        (0 if after is None else size_of(after.record))
        - (0 if before is None else size_of(before.record)),
    )


def _resize_collection(
    engine: Engine, table: Table, item: Item, old: bytes | None, record: bytes | None
) -> None:
    """Keep the bytes of an item collection, which a table with local indexes reports."""
    assert table.collections is not None
    change = (0 if record is None else size_of(record)) - (0 if old is None else size_of(old))
    part = table.schema.keys.partition[0]
    prefix = table.keyspace.prefix([item[part.name]])
    size = collection_size(engine, table, prefix) + change
    if size:
        engine.store.put(table.collections, prefix, size.to_bytes(8, "big"))
    else:
        engine.store.delete(table.collections, prefix)


def collection_size(engine: Engine, table: Table, prefix: bytes) -> int:
    """The bytes of the items under one partition key, of a table with local indexes."""
    assert table.collections is not None
    stored = engine.store.get(table.collections, prefix)
    return 0 if stored is None else int.from_bytes(stored, "big")
