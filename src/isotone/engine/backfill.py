"""The backfill of a new index: its entries for the existing items, written a slice at a time.

From the moment an index is recorded, every write keeps it up to date; the backfill walks the table in
key order and adds the missing entries. Each slice is a separate transaction, so other work continues
between slices. The progress is in the store, so any process that has the file open can continue.
"""

from __future__ import annotations

from itertools import islice

import msgspec

from isotone.engine.engine import PROGRESS, Engine
from isotone.engine.index_entries import Index
from isotone.engine.items import replace_entry
from isotone.engine.layout import item_of
from isotone.engine.table_indexes import Table
from isotone.engine.table_schema import IndexOrVector

SLICE = 250  # items read in one transaction


class _Progress(msgspec.Struct, array_like=True):
    table: str
    reached: bytes = b""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Progress).decode


def begin(engine: Engine, table: str, tree: str) -> None:
    """Create the tree of a new index, and record that it must be filled."""
    engine.store.create_tree(tree)
    engine.store.put(PROGRESS, tree.encode(), _encode(_Progress(table)))


def drop(engine: Engine, tree: str) -> None:
    """Drop a tree of a table, even while it is being filled."""
    engine.store.drop_tree(tree)
    engine.counts.drop(tree)
    engine.vectors.forget_tree(tree)
    engine.store.delete(PROGRESS, tree.encode())


def is_filling(engine: Engine, tree: str) -> bool:
    """Whether an index still lacks entries of items that are older than it."""
    return engine.store.get(PROGRESS, tree.encode()) is not None


def pending(engine: Engine) -> bool:
    """Whether any index is still being filled."""
    with engine.reading:
        return next(engine.store.range(PROGRESS, b"", None), None) is not None


def step(engine: Engine) -> bool:
    """Fill one slice of one index; False if there is nothing to do. Reads up to 250 items."""
    if not pending(engine):
        return False
    with engine.writing:
        first = next(engine.store.range(PROGRESS, b"", None), None)
        if first is None:
            return False
        tree, progress = first[0].decode(), _decode(first[1])
        table = engine.catalog.tables[progress.table]
        index = next(index for index in table.indexes if index.tree == tree)
        reached = _fill(engine, table, index, progress.reached)
        if reached is None:
            finish(engine, table, tree)
        else:
            progress.reached = reached
            engine.store.put(PROGRESS, tree.encode(), _encode(progress))
    return True


def _fill(engine: Engine, table: Table, index: Index, reached: bytes) -> bytes | None:
    entries = engine.store.range(table.tree, reached, None, on_damage=engine.log_damage)
    records = list(islice(entries, SLICE))
    for key, record in records:
        entry = index.entry(item_of(record), key, record)
        if entry is not None and engine.store.get(index.tree, entry.key) is None:
            replace_entry(engine, index, None, entry)
    return records[-1][0] + b"\x00" if len(records) == SLICE else None


def finish(engine: Engine, table: Table, tree: str) -> None:
    """Record that every item that belongs in an index has its entry."""
    engine.store.delete(PROGRESS, tree.encode())
    schema = table.schema
    if schema.ttl is not None and schema.ttl.tree == tree:
        filled = msgspec.structs.replace(schema.ttl, filled=True)
        engine.catalog.save(msgspec.structs.replace(schema, ttl=filled))
        return
    indexes = tuple(_active(index) if index.tree == tree else index for index in schema.indexes)
    vectors = tuple(_active(index) if index.tree == tree else index for index in schema.vectors)
    engine.catalog.save(msgspec.structs.replace(schema, indexes=indexes, vectors=vectors))


def _active(index: IndexOrVector) -> IndexOrVector:
    return msgspec.structs.replace(index, status="ACTIVE")
