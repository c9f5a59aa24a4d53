"""Global tables: delivers writes to a table's replicas in other regions, in order, after the replication lag.

Without a lag, a write is delivered in its own transaction, just before the commit. With a lag, or while delivery is
paused, entries wait in the outbox, which is part of the file. Maintenance delivers them in slices when they are due, in
this process or a later one. All of them are delivered before the group of replicas changes. A delivered write is applied
if its stamp is greater than that of the item there, so replicas agree whatever the order of arrival.

Applied writes update indexes, history and the replica's own stream like any write. They are not sent on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from isotone.engine import items, replica_log, streams
from isotone.engine.engine import Engine
from isotone.engine.layout import item_of, size_of
from isotone.engine.replica_log import Stamp
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import Replication, TableSchema

SLICE: Final = 500  # writes delivered, or items copied, in one transaction
_SOONEST: Final = 0.01  # seconds between two checks of an outbox


def deliver(engine: Engine) -> bool:
    """Deliver a slice of what is due, in the open transaction; False if nothing was."""
    home = engine.home
    home.has_undelivered = False
    delivered = 0
    for source, table in _replicated(home):
        if replica_log.count(source, table):
            assert table.replication is not None
            for region in table.replication.regions:
                if region != source.region:
                    delivered += _deliver_to(source, table, region)
    return delivered > 0


def deliver_all(engine: Engine, name: str) -> None:
    """Deliver all that waits of a table, whatever the lag, in the open transaction: its group is about to change.

    A region that leaves takes no write with it, a new one is copied from a table that has them all, and one that comes back
    gets none of an earlier time.
    """
    for source, table in _replicated(engine.home):
        assert table.replication is not None
        for region in table.replication.regions:
            if table.name == name and region != source.region:
                waiting = list(replica_log.waiting(source, table, region))
                _send(source, table, region, waiting)


def _deliver_to(source: Engine, table: StoredTable, region: str) -> int:
    due = list(islice(_due(source, table, region), SLICE))
    _send(source, table, region, due)
    return len(due)


def _send(
    source: Engine, table: StoredTable, region: str, due: list[replica_log.OutboundWrite]
) -> None:
    """Apply writes in a region, and take them from the outbox."""
    if not due:
        return
    target = source.regions.get(region)
    replica = None if target is None else target.catalog.tables.get(table.name)
    if target is not None and replica is not None and replica.replication is not None:
        with target.writing:
            for entry in due:
                _apply(target, replica, entry.key, entry.record, Stamp(entry.time, source.region))
    replica_log.forget(source, table, due)


def _due(source: Engine, table: StoredTable, region: str) -> Iterator[replica_log.OutboundWrite]:
    """The entries that are due, oldest first."""
    home, replication = source.home, table.replication
    assert replication is not None
    is_strong = replication.consistency == "STRONG"
    if home.replication_paused and not is_strong:
        return
    now = replica_log.now(source)
    lag = 0 if is_strong else int(home.replication_lag * 1_000_000)
    for entry in replica_log.waiting(source, table, region):
        # One that was sent more than the lag after now is due, too: the clock was set back since.
        if now - lag < entry.sent <= now + lag:
            return
        yield entry


def _apply(engine: Engine, table: StoredTable, key: bytes, record: bytes, stamp: Stamp) -> None:
    """Apply another region's write, unless a later write of the item happened here."""
    if not replica_log.wins(engine, table, key, stamp):
        return
    old = engine.store.get(table.tree, key)
    if record:
        items.put(engine, table, key, old, None, item_of(record), size_of(record), stamp=stamp)
    elif old is not None:
        items.delete(engine, table, key, old, stamp=stamp)
    else:
        replica_log.record(engine, table, key, b"", stamp)


def _replicated(home: Engine) -> list[tuple[Engine, StoredTable]]:
    return [
        (engine, table)
        for engine in list(home.regions.values())  # other threads may open regions
        for table in engine.catalog.having("replication")
    ]


# Maintenance


def pending(engine: Engine) -> bool:
    """Whether writes wait for delivery, or items to be copied. Reads the store; the caller holds the lock."""
    return any(
        replica_log.count(source, table) or replica_log.copying(source, table)
        for source, table in _replicated(engine.home)
    )


def is_wanted(engine: Engine) -> bool:
    """Whether any table has replicas."""
    return bool(_replicated(engine.home))


def step(engine: Engine) -> bool:
    """Deliver and copy a slice; False if there was nothing to do."""
    home = engine.home
    with home.reading:
        if not _replicated(home) or not pending(home):
            return False
    with home.writing:
        return deliver(home) | _copy(home)


def delay(engine: Engine) -> float | None:
    """The seconds until something may be due; None if nothing waits."""
    home = engine.home
    if home.replication_paused or not _replicated(home):
        return None
    if not home.replication_lag:
        with home.reading:
            if not pending(home):
                return None
    return min(max(home.replication_lag / 10, _SOONEST), 1.0)


# Replicas


def members(engine: Engine, schema: TableSchema) -> Iterator[tuple[Engine, TableSchema]]:
    """The table in each region that has it, this one first."""
    yield engine, schema
    if schema.replication is None:
        return
    for region in schema.replication.regions:
        member = engine.regions.get(region)
        table = None if member is None else member.catalog.tables.get(schema.name)
        if member is not None and member is not engine and table is not None:
            yield member, table.schema


def create(engine: Engine, schema: TableSchema, region: str, replication: Replication) -> None:
    """Create an empty replica of a table in a region, and begin to copy the items to it.

    `replication` is the group's state including the new region; the caller has saved it in all other regions.
    """
    target = engine.open_region(region)
    with target.writing:
        new = target.catalog.new_tree
        replica = msgspec.structs.replace(
            schema,
            tree=new("t"),
            indexes=tuple(
                msgspec.structs.replace(index, tree=new("i"), status="ACTIVE")
                for index in schema.indexes
            ),
            vectors=tuple(
                msgspec.structs.replace(index, tree=new("i"), status="ACTIVE")
                for index in schema.vectors
            ),
            ttl=schema.ttl and msgspec.structs.replace(schema.ttl, tree=new("x"), filled=True),
            stream=None,
            replication=own_trees(target, replication),
        )
        table = target.catalog.save(replica)
        for tree in table.trees:
            target.store.create_tree(tree)
        if schema.stream is not None and schema.stream.shards:
            target.catalog.save(streams.enable(target, replica, schema.stream.view))
    replica_log.set_copied(engine, engine.catalog.tables[schema.name], region, b"")
    _copy(engine.home)


def own_trees(engine: Engine, replication: Replication) -> Replication:
    """The group's state with separate trees for a region; the caller creates them."""
    new = engine.catalog.new_tree
    return msgspec.structs.replace(replication, stamps=new("m"), outbox=new("q"))


def _copy(home: Engine) -> bool:
    """Copy a slice of items to each new replica; False if there are none."""
    copied = False
    for source, table in _replicated(home):
        for region, reached in replica_log.copying(source, table).items():
            copied = True
            target = source.regions.get(region)
            replica = None if target is None else target.catalog.tables.get(table.name)
            assert table.replication is not None
            if target is None or replica is None or region not in table.replication.regions:
                replica_log.set_copied(source, table, region, None)
                continue
            records = list(islice(source.store.range(table.tree, reached, None), SLICE))
            with target.writing:
                # Items from before the replica do not appear in its stream.
                silent = StoredTable(msgspec.structs.replace(replica.schema, stream=None))
                for key, record in records:
                    stamp = replica_log.stamp_of(source, table, key)
                    if target.store.get(
                        replica.tree, key
                    ) is None and stamp >= replica_log.stamp_of(target, replica, key):
                        item, size = item_of(record), size_of(record)
                        items.put(target, silent, key, None, None, item, size, stamp=stamp)
            last = len(records) < SLICE
            replica_log.set_copied(
                source, table, region, None if last else records[-1][0] + b"\x00"
            )
    return copied
