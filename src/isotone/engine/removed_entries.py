"""Tombstones for a GSI backfill: entries that writes removed during the backfill, which must not bring them back.

A backfill reads items, sorts their entries, and adds them later. Meanwhile an item may be changed or deleted. That
write puts its new entry into the index at once, and in the same transaction notes here the key of the old entry. The
key of an entry includes that of its item, so a note concerns only this item. After the backfill the notes are deleted.

They are stored behind the backfill's progress, in the same tree:
    ff · tree · 0 · key of the entry  → nothing
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from isotone.engine.engine import PROGRESS, Engine
from isotone.engine.slices import in_time

FIRST: Final = b"\xff"
"""The first byte of all notes."""
_MOST: Final = 250  # notes read at once


def note(engine: Engine, tree: str, key: bytes) -> None:
    """Record that a write has removed an entry from an index that is not filled yet."""
    engine.store.put(PROGRESS, _prefix(tree) + key, b"")


def between(engine: Engine, tree: str, first: bytes, last: bytes) -> set[bytes]:
    """The keys of the removed entries of an index, from the first to the last, both inclusive."""
    prefix = _prefix(tree)
    notes = engine.store.range(PROGRESS, prefix + first, prefix + last + b"\x00")
    return {key[len(prefix) :] for key, _ in notes}


def are_old(engine: Engine) -> bool:
    """Whether there are notes of an index that is already filled or dropped. The caller holds the lock."""
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
