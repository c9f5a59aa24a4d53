"""Restores a table from a backup or to a point in time (PITR): fills a new table from a view, in slices.

The table is in the catalog from the start with status CREATING, so no request can use it. Each slice writes items with
their index entries and counts, so the last slice only opens the table. A small table is complete when the restore is
created.
"""

from __future__ import annotations

from typing import Final

import msgspec

from isotone.engine import items, views
from isotone.engine.engine import Engine
from isotone.engine.layout import item_of, size_of
from isotone.engine.table_schema import Restored, TableSchema

SLICE: Final = 250  # items restored in one transaction
_OWNER: Final = "restore"


def create(engine: Engine, schema: TableSchema, restored: Restored, view: str) -> TableSchema:
    """Create a table that is filled from a view, and restore its first slice."""
    schema = msgspec.structs.replace(schema, restored=msgspec.structs.replace(restored, view=view))
    table = engine.catalog.save(schema)
    for tree in table.trees:
        engine.store.create_tree(tree)
    _restore(engine, schema.name)
    return schema


def owner(table: str) -> str:
    """The owner of the view that a table is restored from."""
    return f"{_OWNER}:{table}"


def pending(engine: Engine) -> bool:
    """Whether a table is being restored."""
    return bool(engine.catalog.creating)


def step(engine: Engine) -> bool:
    """Restore a slice of a table; False if there is nothing to do."""
    with engine.reading:
        if not engine.catalog.creating:
            return False
    with engine.writing:
        view = views.owned(engine, _OWNER)
        if view is not None:
            _restore(engine, view.owner.partition(":")[2])
    return view is not None


def _restore(engine: Engine, name: str) -> None:
    table = engine.catalog.creating[name]
    restored = table.schema.restored
    assert restored is not None
    assert restored.view is not None
    page = views.read(engine, restored.view, SLICE)
    for key, record in page.records:
        items.put(engine, table, key, None, None, item_of(record), size_of(record))
    if page.last:
        views.close(engine, restored.view)
        done = msgspec.structs.replace(restored, view=None)
        engine.catalog.save(msgspec.structs.replace(table.schema, restored=done))
