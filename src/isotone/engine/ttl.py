"""Expiry: items whose TimeToLive attribute lies in the past are deleted, soon but not at once.

As on the service, an item may be read for a while after its time; the attribute must be a number of
seconds; one that lies more than five years back is taken for a mistake and left alone.
"""

from __future__ import annotations

from itertools import islice

from isotone import limits
from isotone.codec import encode_number
from isotone.engine import items
from isotone.engine.engine import Engine
from isotone.engine.record import body_of
from isotone.engine.table import Table

SLICE = 100  # items deleted in one transaction


def watched(engine: Engine) -> list[Table]:
    """The tables whose items can expire."""
    return [table for table in engine.catalog if table.schema.ttl is not None]


def sweep(engine: Engine) -> int:
    """Delete up to 100 expired items of each table; how many there were."""
    with engine.reading:
        tables = [table for table in watched(engine) if _expired(engine, table, 1)]
    return sum(_sweep(engine, table.name) for table in tables)


def _sweep(engine: Engine, name: str) -> int:
    with engine.writing:
        table = engine.catalog.find(name)
        if table is None or table.schema.ttl is None:
            return 0
        expired = _expired(engine, table, SLICE)
        for key in expired:
            items.delete(engine, table, key, engine.store.get(table.tree, key), expired=True)
        return len(expired)


def _expired(engine: Engine, table: Table, most: int) -> list[bytes]:
    """The keys of expired items, the longest expired first. Reads no more than it returns."""
    assert table.schema.ttl is not None
    now = int(engine.clock.now())
    low = encode_number(str(max(0, now - limits.TTL_OLDEST)))
    entries = engine.store.range(table.schema.ttl.tree, low, encode_number(str(now)))
    return [body_of(record) for _, record in islice(entries, most)]
