"""Background work in slices: index fills, expiry (TTL), streams, tokens, backups, restores, history, replication.

Items expire as on the service: an item may still be read for a while after its expiry; the attribute must be
a number of seconds; an item that expired more than five years ago is taken for a mistake and not deleted.
"""

from __future__ import annotations

from itertools import islice

from isotone import limits
from isotone.codec import encode_number
from isotone.engine import (
    backfill,
    backups,
    history,
    items,
    replication,
    restores,
    streams,
    transaction_tokens,
)
from isotone.engine.engine import Engine
from isotone.engine.layout import body_of
from isotone.engine.table_indexes import Table

EXPIRY_SLICE = 100  # expired items of a table that are deleted in one transaction
EXPIRY_INTERVAL = 1.0  # seconds between checks for expired items
IDLE_INTERVAL = 5.0  # seconds between checks for work that another process left


def is_wanted(engine: Engine) -> bool:
    """Whether there is an index to fill, a backup or a restore, a replica, or anything that expires or is trimmed."""
    return replication.is_wanted(engine) or any(map(_is_wanted, list(engine.home.regions.values())))


def _is_wanted(engine: Engine) -> bool:
    return (
        bool(_expiring(engine))
        or backfill.pending(engine)
        or streams.exist(engine)
        or history.exists(engine)
        or backups.pending(engine)
        or restores.pending(engine)
    )


def step(engine: Engine) -> float:
    """Do one slice of the work that is due in each region; returns the seconds after which to call again."""
    if replication.step(engine):
        return 0.0
    delay = min([_step(each) for each in list(engine.home.regions.values())])
    delivery = replication.delay(engine)
    return delay if delivery is None else min(delay, delivery)


def _step(engine: Engine) -> float:
    if backfill.step(engine):
        return 0.0
    if sweep(engine) >= EXPIRY_SLICE:
        return 0.0
    if streams.maintain(engine) or history.trim(engine):
        return 0.0
    if backups.step(engine) or restores.step(engine):
        return 0.0
    transaction_tokens.forget_old(engine)
    return EXPIRY_INTERVAL if _expiring(engine) else IDLE_INTERVAL


def finish(engine: Engine) -> None:
    """Do all work that is due now."""
    while step(engine) == 0.0:
        pass


def sweep(engine: Engine) -> int:
    """Delete up to 100 expired items of each table, and return how many were deleted."""
    with engine.reading:
        tables = [table for table in _expiring(engine) if _expired(engine, table, 1)]
    return sum(_sweep(engine, table.name) for table in tables)


def _expiring(engine: Engine) -> list[Table]:
    """The tables whose items can expire."""
    return [table for table in engine.catalog if table.schema.ttl is not None]


def _sweep(engine: Engine, name: str) -> int:
    with engine.writing:
        table = engine.catalog.tables.get(name)
        if table is None or table.schema.ttl is None:
            return 0
        expired = _expired(engine, table, EXPIRY_SLICE)
        for key in expired:
            items.delete(engine, table, key, engine.store.get(table.tree, key), expired=True)
        return len(expired)


def _expired(engine: Engine, table: Table, most: int) -> list[bytes]:
    """The keys of expired items, the longest expired first. Reads only what it returns."""
    assert table.schema.ttl is not None
    now = int(engine.clock.now())
    low = encode_number(str(max(0, now - limits.TTL_OLDEST)))
    entries = engine.store.range(table.schema.ttl.tree, low, encode_number(str(now)))
    return [body_of(record) for _, record in islice(entries, most)]
