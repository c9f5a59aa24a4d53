"""On-demand and system backups: the items of a table at one instant, in a separate tree, with the table's schema.

The backup of a small table is complete when it is created. A larger table is copied in the background from a view of
the table (`views`), so writers continue, and the backup contains none of their writes.

Deleting a table with point-in-time recovery makes a system backup: the backup takes over the table's tree, so it costs
nothing. It expires after 35 days.

    b · id               the backup
    x · time (8) · id    when a system backup expires
"""

from __future__ import annotations

import os
from typing import Final, Literal

import msgspec

from isotone import limits
from isotone.engine import views
from isotone.engine.engine import BACKUPS, Engine
from isotone.engine.history import milliseconds
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import TableSchema

SLICE: Final = 500  # items copied in one transaction
_OWNER: Final = "backup"


class Backup(msgspec.Struct, frozen=True):
    """One backup. While it is being made, `view` has what is still to be copied."""

    id: str
    name: str
    type: Literal["USER", "SYSTEM"]
    table: TableSchema
    tree: str
    created: float
    items: int
    size: int
    expires: float | None = None
    view: str | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Backup).decode


def create(engine: Engine, table: StoredTable, name: str) -> Backup:
    """Begin a backup of a table's present state, and copy its first slice."""
    tree = engine.catalog.new_tree("b")
    engine.store.create_tree(tree)
    created = milliseconds(engine.clock.now())
    identity = _new_id(created)
    view = views.open_table(engine, table, f"{_OWNER}:{identity}")
    items, size = engine.counts.of(table.tree)
    backup = Backup(
        identity, name, "USER", table.schema, tree, created / 1000, items, size, view=view
    )
    save(engine, backup)
    _copy(engine, backup)
    return backup


def keep_deleted(engine: Engine, table: StoredTable) -> None:
    """Make a system backup of a table that is being deleted: it takes over the table's tree."""
    created = milliseconds(engine.clock.now())
    items, size = engine.counts.of(table.tree)
    backup = Backup(
        _new_id(created),
        f"{table.name}$DeletedTableBackup",
        "SYSTEM",
        table.schema,
        table.tree,
        created / 1000,
        items,
        size,
        expires=created / 1000 + limits.SYSTEM_BACKUP_LIFETIME,
    )
    save(engine, backup)
    engine.store.put(BACKUPS, _expiry_key(backup), b"")
    engine.counts.drop(table.tree)


def find(engine: Engine, identity: str) -> Backup | None:
    """A backup by its id."""
    stored = engine.store.get(BACKUPS, b"b" + identity.encode())
    return None if stored is None else _decode(stored)


def known(engine: Engine) -> list[Backup]:
    """All backups, oldest first."""
    return [_decode(stored) for _, stored in engine.store.range(BACKUPS, b"b", b"c")]


def delete(engine: Engine, backup: Backup) -> None:
    """Delete a complete backup that no restore is reading."""
    engine.store.delete(BACKUPS, b"b" + backup.id.encode())
    if backup.expires is not None:
        engine.store.delete(BACKUPS, _expiry_key(backup))
    engine.store.drop_tree(backup.tree)


def save(engine: Engine, backup: Backup) -> None:
    engine.store.put(BACKUPS, b"b" + backup.id.encode(), _encode(backup))


def _new_id(created: int) -> str:
    """An id in the service's form, sorted by time: milliseconds, then a random part."""
    return f"{created:014d}-{os.urandom(4).hex()}"


def _expiry_key(backup: Backup) -> bytes:
    assert backup.expires is not None
    return b"x" + milliseconds(backup.expires).to_bytes(8, "big") + backup.id.encode()


# Maintenance: copies, and drops expired backups


def pending(engine: Engine) -> bool:
    """Whether a backup is being made, or will expire."""
    with engine.reading:
        return views.owned(engine, _OWNER) is not None or _next_expiry(engine) is not None


def step(engine: Engine) -> bool:
    """Copy a slice of a backup, or drop an expired one; False if there is nothing to do."""
    with engine.reading:
        if views.owned(engine, _OWNER) is None and _expired(engine) is None:
            return False
    with engine.writing:
        view = views.owned(engine, _OWNER)
        if view is not None:
            backup = find(engine, view.owner.partition(":")[2])
            assert backup is not None
            _copy(engine, backup)
            return True
        expired = _expired(engine)
        if expired is not None:
            delete(engine, expired)
    return expired is not None


def _copy(engine: Engine, backup: Backup) -> None:
    assert backup.view is not None
    page = views.read(engine, backup.view, SLICE)
    for key, record in page.records:
        engine.store.put(backup.tree, key, record)
    if page.last:
        views.close(engine, backup.view)
        save(engine, msgspec.structs.replace(backup, view=None))


def _next_expiry(engine: Engine) -> bytes | None:
    entry = next(engine.store.range(BACKUPS, b"x", b"y"), None)
    return None if entry is None else entry[0]


def _expired(engine: Engine) -> Backup | None:
    """An expired backup that no restore is reading."""
    key = _next_expiry(engine)
    if key is None or int.from_bytes(key[1:9], "big") > milliseconds(engine.clock.now()):
        return None
    backup = find(engine, key[9:].decode())
    assert backup is not None
    return None if views.is_read(engine, backup.tree) else backup
