"""Background work in slices: deletes expired items (TTL, `userIdentity`), fills indexes, restores, trims streams.

Items expire as on the service. An item can still be read for a while after its expiry; the attribute must be a number
of seconds; an item that expired more than five years ago is considered a mistake and is not deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Final

from isotone import limits
from isotone.codec import encode_number
from isotone.engine import (
    backfill,
    backups,
    damage,
    history,
    items,
    replication,
    restores,
    streams,
    transaction_tokens,
)
from isotone.engine.engine import Engine
from isotone.engine.layout import body_of
from isotone.engine.table_indexes import StoredTable
from isotone.errors import DamagedItem, StorageCorrupt

EXPIRY_SLICE = 100  # expired items of one table that are deleted in one transaction
EXPIRY_INTERVAL = 1.0  # seconds between checks for expired items
LOOK_INTERVAL = 0.05  # seconds between checks of an index that another worker fills
_SHORT = 0.01  # the same, for a caller with nothing else to do
IDLE_INTERVAL = 5.0  # seconds between checks for work that another process left


def is_wanted(engine: Engine) -> bool:
    """Whether there is an index to fill, a backup or restore to copy, a replica, or anything that expires or is
    trimmed.
    """
    return replication.is_wanted(engine) or any(map(_is_wanted, list(engine.home.regions.values())))


def _is_wanted(engine: Engine) -> bool:
    return (
        _is_upgrading(engine)
        or bool(engine.catalog.having("expiry"))
        or backfill.pending(engine)
        or streams.exist(engine)
        or history.exists(engine)
        or backups.pending(engine)
        or restores.pending(engine)
    )


def step(engine: Engine) -> float:
    """Do one slice of the work that is due in each region; returns the seconds until the next call."""
    with engine.home.store.background():
        return _step_of_all(engine)


def _step_of_all(engine: Engine) -> float:
    corrupt: list[StorageCorrupt] = []
    if _is_busy(replication.step, engine, corrupt):
        return 0.0
    delay = min([_step(each, corrupt) for each in list(engine.home.regions.values())])
    delivery = replication.delay(engine)
    delay = delay if delivery is None else min(delay, delivery)
    if corrupt and delay > 0.0:
        raise corrupt[0]
    return delay


def _step(engine: Engine, corrupt: list[StorageCorrupt]) -> float:
    if any(_is_busy(work, engine, corrupt) for work in _WORK):
        return 0.0
    if _is_busy(backfill.is_leased, engine, corrupt):
        return LOOK_INTERVAL
    return EXPIRY_INTERVAL if engine.catalog.having("expiry") else IDLE_INTERVAL


def _is_busy(work: Callable[[Engine], bool], engine: Engine, corrupt: list[StorageCorrupt]) -> bool:
    """Do a slice of one kind of work, or look for it; returns whether there is more. Corrupt data is logged and does
    not block other work.
    """
    try:
        return work(engine)
    except DamagedItem as error:
        engine.log_damage(error)
    except StorageCorrupt as error:
        corrupt.append(error)
    return False


def finish(engine: Engine) -> None:
    """Do all work that is due now, and wait for indexes that other workers fill."""
    while True:
        unfilled = _count_unfilled(engine)
        delay = step(engine)
        if not delay:
            continue
        if _is_filling(engine):
            time.sleep(_SHORT)
        elif _count_unfilled(engine) >= unfilled:
            return
        # Otherwise another worker has filled an index during this step, which may have looked for expired items before.


def _count_unfilled(engine: Engine) -> int:
    """How many regions have an index that is not filled. A step reports what is corrupt."""
    regions = list(engine.home.regions.values())
    return sum(_is_busy(backfill.pending, each, []) for each in regions)


def _is_filling(engine: Engine) -> bool:
    return any(map(backfill.is_leased, list(engine.home.regions.values())))


def upgrade(engine: Engine) -> bool:
    """Add checksums to a slice of the entries that an older Isotone wrote; False if there are none."""
    if not _is_upgrading(engine):
        return False
    with engine.writing:
        known: dict[str, damage.Role | None] = {}

        def is_sound(tree: str, key: bytes, value: bytes) -> bool:
            if tree not in known:
                known[tree] = engine.role_of(tree)[1]
            return damage.is_sound(known[tree], key, value)

        return engine.store.upgrade(is_sound)


def _is_upgrading(engine: Engine) -> bool:
    with engine.reading:
        return engine.store.is_upgrading()


def sweep(engine: Engine) -> int:
    """Delete up to 100 expired items of each table (TTL); returns how many were deleted."""
    with engine.reading:
        expiring = engine.catalog.having("expiry")
        tables = [table for table in expiring if _expired(engine, table, 1)]
    return sum(_sweep(engine, table.name) for table in tables)


def _sweep(engine: Engine, name: str) -> int:
    tree, key = "", b""
    try:
        with engine.writing:
            table = engine.catalog.tables.get(name)
            if table is None or table.schema.ttl is None:
                return 0
            tree = table.tree
            expired = _expired(engine, table, EXPIRY_SLICE)
            for key in expired:
                items.delete(engine, table, key, engine.store.get(tree, key), expired=True)
            return len(expired)
    except DamagedItem as error:
        if not key:
            raise
        engine.log_damage(error)
        engine.skipped.add((tree, key))
        return EXPIRY_SLICE  # the slice was rolled back; repeat it without this item


def _expired(engine: Engine, table: StoredTable, most: int) -> list[bytes]:
    """The keys of expired items, longest expired first. Reads only what it returns."""
    assert table.schema.ttl is not None
    now = int(engine.clock.now())
    low = encode_number(str(max(0, now - limits.TTL_OLDEST)))
    entries = engine.store.range(
        table.schema.ttl.tree, low, encode_number(str(now)), on_damage=engine.log_damage
    )
    keys = (body_of(record) for _, record in entries)
    return list(islice((key for key in keys if (table.tree, key) not in engine.skipped), most))


_WORK: Final[tuple[Callable[[Engine], bool], ...]] = (
    backfill.step,
    lambda engine: sweep(engine) >= EXPIRY_SLICE,
    streams.maintain,
    history.trim,
    backups.step,
    restores.step,
    upgrade,
    transaction_tokens.forget_old,
)
