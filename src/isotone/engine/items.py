"""Stores or deletes one item with its index entries: where PutItem, UpdateItem, transactions, TTL and replication end.

Its counts, its stream record and its history belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from isotone.engine import removed_entries, replica_log
from isotone.engine.engine import Engine
from isotone.engine.history import keep_old
from isotone.engine.index_entries import IndexEntry, TableIndex
from isotone.engine.layout import item_of, pack, size_of, total_size
from isotone.engine.replica_log import Stamp
from isotone.engine.stream_records import record_change
from isotone.engine.table_indexes import SecondaryIndex, StoredTable
from isotone.engine.vector_index import StoredVectorIndex
from isotone.values.attribute_validation import Item
from isotone.values.size import value_size


class WriteMeter(Protocol):
    """Counts the cost of writes for requests that ask for it."""

    def write(self, old_size: int, new_size: int) -> None:
        """Called with an item's sizes before and after; 0 if there was none."""

    def write_entry(
        self,
        index: SecondaryIndex | StoredVectorIndex,
        before: IndexEntry | None,
        after: IndexEntry | None,
    ) -> None:
        """Called with an index entry before and after."""


_CHARGED: Final = (SecondaryIndex, StoredVectorIndex)
_FLOAT_SIZE: Final = 4


def put(
    engine: Engine,
    table: StoredTable,
    key: bytes,
    old: bytes | None,
    old_item: Item | None,
    item: Item,
    size: int,
    meter: WriteMeter | None = None,
    *,
    stamp: Stamp | None = None,
) -> None:
    """Set the item at a key. The caller has validated it.

    `old` is the current record; `old_item` is the same record parsed, if the caller has it. `stamp` is given for a
    write from another region.
    """
    if table.replication is not None and stamp is None:
        stamp = replica_log.next_stamp(engine, table, key)
        item, size = replica_log.shown(table, item, size, stamp)
    record = pack(item, size)
    engine.store.put(table.tree, key, record)
    old_size = size_of(old)
    engine.counts.add(table.tree, 1 if old is None else 0, size - old_size)
    if table.indexes:
        _update_entries(engine, table, key, old, old_item, record, item, meter)
        if table.collections is not None:
            _resize_collection(engine, table, item, size - old_size)
    if table.stream is not None:
        record_change(engine, table, key, old, record, item)
    if table.history is not None and old != record:
        keep_old(engine, table.history, key, old)
    if stamp is not None:
        replica_log.record(engine, table, key, record, stamp)
    if meter is not None:
        if table.vectors:
            charge(meter, table, old, old_item, item, size)
        else:  # what `charge` does, without another call in each write
            meter.write(old_size, size)


def add(engine: Engine, table: StoredTable, new: Sequence[tuple[bytes, bytes]]) -> bool:
    """Add many records at once, in key order, to a table without a stream or a history.

    Adds all or none; False if a key is taken. The caller fills the indexes later. Costs a tenth of `put`.
    """
    with engine.store.transaction() as attempt:
        if engine.store.add(table.tree, new) < len(new):
            attempt.rollback()
            return False
    engine.counts.add(table.tree, len(new), total_size([record for _, record in new]))
    return True


def delete(
    engine: Engine,
    table: StoredTable,
    key: bytes,
    old: bytes | None,
    old_item: Item | None = None,
    meter: WriteMeter | None = None,
    *,
    expired: bool = False,
    stamp: Stamp | None = None,
) -> None:
    """Delete the item at a key, with `old`, `old_item` and `stamp` as for `put`. `expired` marks a TTL deletion in the
    stream.
    """
    old_size = size_of(old)
    if old is not None:
        engine.store.delete(table.tree, key)
        engine.counts.add(table.tree, -1, -old_size)
        if table.indexes:
            old_item = item_of(old) if old_item is None else old_item
            _update_entries(engine, table, key, old, old_item, None, None, meter)
            if table.collections is not None:
                _resize_collection(engine, table, old_item, -old_size)
        if table.stream is not None:
            record_change(engine, table, key, old, None, expired=expired)
        if table.history is not None:
            keep_old(engine, table.history, key, old)
        if table.replication is not None:
            stamp = stamp or replica_log.next_stamp(engine, table, key)
            replica_log.record(engine, table, key, b"", stamp)
    if meter is not None:
        charge(meter, table, old, old_item, None, 0)


def charge(
    meter: WriteMeter,
    table: StoredTable,
    old: bytes | None,
    old_item: Item | None,
    item: Item | None,
    size: int,
) -> None:
    """Count a write. An indexed vector counts four bytes per dimension, however many digits its numbers have."""
    old_size = size_of(old)
    if table.vectors:
        if old is not None:
            old_size += _vector_difference(table, old_item or item_of(old))
        if item is not None:
            size += _vector_difference(table, item)
    meter.write(old_size, size)


def _vector_difference(table: StoredTable, item: Item) -> int:
    """How many bytes the charge for an item's indexed vectors differs from their real size."""
    difference = 0
    for name, index in {each.schema.attribute: each for each in table.vectors}.items():
        value = item.get(name)
        if value is not None and index.vector(value) is not None:
            difference += _FLOAT_SIZE * index.schema.dimensions - value_size(value)
    return difference


def _update_entries(
    engine: Engine,
    table: StoredTable,
    key: bytes,
    old_record: bytes | None,
    old_item: Item | None,
    new_record: bytes | None,
    new_item: Item | None,
    meter: WriteMeter | None,
) -> None:
    """Update every index entry of an item."""
    if old_record is not None and old_item is None:
        old_item = item_of(old_record)
    for index in table.indexes:
        after = before = None
        if new_item is not None and new_record is not None:
            after = index.entry(new_item, key, new_record)
        if old_item is not None and old_record is not None:
            before = index.old_entry(old_item, key, old_record, new_item or {}, after)
            if before is not None and not index.filled:
                if after is None or after.key != before.key:
                    removed_entries.note(engine, index.tree, before.key)
                # The backfill may not have reached this item.
                if engine.store.get(index.tree, before.key) is None:
                    before = None
        if before != after:
            replace_entry(engine, index, before, after)
            if (
                meter is not None
                and isinstance(index, _CHARGED)
                and not (before and after and index.are_equal(before, after))
            ):
                meter.write_entry(index, before, after)


def replace_entry(
    engine: Engine, index: TableIndex, before: IndexEntry | None, after: IndexEntry | None
) -> None:
    """Replace an index entry with another; either may be None."""
    items = size = 0
    if before is not None:
        items, size = -1, -size_of(before.record)
        if after is None or after.key != before.key:
            engine.store.delete(index.tree, before.key)
    if after is not None:
        items, size = items + 1, size + size_of(after.record)
        engine.store.put(index.tree, after.key, after.record)
    engine.counts.add(index.tree, items, size)
    if index.searched:
        engine.vectors.replace(index.tree, before, after)


def _resize_collection(engine: Engine, table: StoredTable, item: Item, change: int) -> None:
    """Update the size of an item collection, which DynamoDB reports for tables with local indexes."""
    assert table.collections is not None
    prefix = table.keyspace.prefix([item[table.schema.keys.partition[0].name]])
    size = collection_size(engine, table, prefix) + change
    if size:
        engine.store.put(table.collections, prefix, size.to_bytes(8, "big"))
    else:
        engine.store.delete(table.collections, prefix)


def collection_size(engine: Engine, table: StoredTable, prefix: bytes) -> int:
    """The size of the items with a partition key, in a table with local indexes."""
    assert table.collections is not None
    stored = engine.store.get(table.collections, prefix)
    return 0 if stored is None else int.from_bytes(stored, "big")
