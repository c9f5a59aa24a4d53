"""Filling a new index from the items that are already there, a slice at a time.

From the moment an index is recorded every write keeps it; the backfill walks the table in key order
and adds what is missing. Each slice is a transaction of its own, so that other work goes on between
slices, and progress is in the store, so that any process that has the file open can go on with it.
"""

from __future__ import annotations

from itertools import islice

import msgspec

from isotone.engine.engine import PROGRESS, Engine
from isotone.engine.indexes import Index
from isotone.engine.items import move_entry
from isotone.engine.record import item_of
from isotone.engine.table import Table

SLICE = 250  # items looked at in one transaction


class _Progress(msgspec.Struct, array_like=True):
    table: str
    reached: bytes = b""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Progress).decode


def begin(engine: Engine, table: str, tree: str) -> None:
    """Record that a tree must be filled from a table."""
    engine.store.create_tree(tree)
    engine.store.put(PROGRESS, tree.encode(), _encode(_Progress(table)))


def cancel(engine: Engine, tree: str) -> None:
    """Record that a tree need not be filled any more."""
    engine.store.delete(PROGRESS, tree.encode())


def pending(engine: Engine) -> bool:
    """Whether there is anything left to fill."""
    with engine.reading:
        return next(engine.store.range(PROGRESS, b"", None), None) is not None


def step(engine: Engine) -> bool:
    """Fill one slice of one index; False where there was nothing to do. Looks at 250 items."""
    if not pending(engine):
        return False
    with engine.writing:
        found = next(engine.store.range(PROGRESS, b"", None), None)
        if found is None:
            return False
        tree, progress = found[0].decode(), _decode(found[1])
        table = engine.catalog.table(progress.table)
        index = next(index for index in table.indexes if index.tree == tree)
        reached = _fill(engine, table, index, progress.reached)
        if reached is None:
            _finish(engine, table, tree)
        else:
            progress.reached = reached
            engine.store.put(PROGRESS, tree.encode(), _encode(progress))
    return True


def _fill(engine: Engine, table: Table, index: Index, reached: bytes) -> bytes | None:
    slice_ = list(islice(engine.store.range(table.tree, reached, None), SLICE))
    for key, record in slice_:
        entry = index.entry(item_of(record), key, record)
        if entry is not None and engine.store.get(index.tree, entry.key) is None:
            move_entry(engine, index, None, entry)
    return slice_[-1][0] + b"\x00" if len(slice_) == SLICE else None


def _finish(engine: Engine, table: Table, tree: str) -> None:
    cancel(engine, tree)
    schema = table.schema
    if schema.ttl is not None and schema.ttl.tree == tree:
        filled = msgspec.structs.replace(schema.ttl, filled=True)
        engine.catalog.save(msgspec.structs.replace(schema, ttl=filled))
        return
    indexes = tuple(
        msgspec.structs.replace(index, status="ACTIVE") if index.tree == tree else index
        for index in schema.indexes
    )
    engine.catalog.save(msgspec.structs.replace(schema, indexes=indexes))


def is_filling(engine: Engine, tree: str) -> bool:
    """Whether an index still lacks entries of items that were there before it."""
    return engine.store.get(PROGRESS, tree.encode()) is not None
