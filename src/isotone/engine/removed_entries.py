"""Entries that writes have removed from an index while it is filled: its backfill must not bring them back.

A backfill reads items, sorts their entries, and adds them later. Until then an item may have been changed or deleted. The
write puts its new entry into the index at once, and notes the key of the old one here, in its transaction. The
key of an entry names its item, so a note is about this item alone. After the backfill the notes are deleted.

They are in the tree of the backfills' progress, behind it:     ff · tree · 0 · key of the entry  → nothing
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from isotone.engine.engine import PROGRESS, Engine
from isotone.engine.slices import in_time

FIRST: Final = b"\xff"
"""The first byte of all notes."""
_MOST: Final = 250  # that are read at once


def note(engine: Engine, tree: str, key: bytes) -> None:
    """Record that a write has removed an entry from an index that is not filled yet."""
    engine.store.put(PROGRESS, _prefix(tree) + key, b"")


def between(engine: Engine, tree: str, first: bytes, last: bytes) -> set[bytes]:
    """The keys of the entries that were removed from an index, from the first to the last, both included."""
    prefix = _prefix(tree)
    notes = engine.store.range(PROGRESS, prefix + first, prefix + last + b"\x00")
    return {key[len(prefix) :] for key, _ in notes}


def are_old(engine: Engine) -> bool:
    """Whether there are notes of an index that is filled, or was dropped. The caller holds the lock."""
    return _next_old(engine) is not None


def forget(engine: Engine) -> bool:
    """Delete a slice of such notes; False if there are none."""
    with engine.reading:
        if not are_old(engine):
            return False
    with engine.writing_unsynced:
        tree = _next_old(engine)
        if tree is not None:
            for key in in_time(_notes(engine, tree)):
                engine.store.delete(PROGRESS, key)
    return tree is not None


def _notes(engine: Engine, tree: str) -> list[bytes]:
    low = _prefix(tree)
    return [key for key, _ in islice(engine.store.range(PROGRESS, low, low[:-1] + b"\x01"), _MOST)]


def _next_old(engine: Engine) -> str | None:
    low = FIRST
    while True:
        found = next(engine.store.range(PROGRESS, low, None), None)
        if found is None:
            return None
        tree = found[0][len(FIRST) :].partition(b"\x00")[0]
        if not _is_unfilled(engine, tree.decode()):
            return tree.decode()
        low = FIRST + tree + b"\x01"


def _is_unfilled(engine: Engine, tree: str) -> bool:
    catalog = engine.catalog
    indexes = (
        index
        for table in (*catalog, *catalog.creating.values())
        for index in table.indexes
        if index.tree == tree
    )
    return any(not index.filled for index in indexes)


def _prefix(tree: str) -> bytes:
    return FIRST + tree.encode() + b"\x00"
