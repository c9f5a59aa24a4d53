"""How many items and bytes each tree has (ItemCount, TableSizeBytes), committed with the items themselves.

Changes are collected here and written once, just before the commit (`flush`): a group of a hundred writes to one table
updates its count once.
"""

from __future__ import annotations

import struct
from typing import Final

from isotone.storage.interface import OrderedStore

COUNTS: Final = "counts"
_COUNT: Final = struct.Struct(">qq")


class TreeCounts:
    """The counts of an open database."""

    __slots__ = ("_changed", "_known", "_store")

    def __init__(self, store: OrderedStore) -> None:
        self._store = store
        self._known: dict[str, list[int]] = {}
        self._changed: dict[str, list[int]] = {}

    def add(self, tree: str, items: int, size: int) -> None:
        """Record a change, as part of the open transaction."""
        try:
            known = self._known[tree]
        except KeyError:
            known = self._load(tree)
        self._changed[tree] = known
        if items or size:
            known[0] += items
            known[1] += size
            known[2] = True

    def of(self, tree: str) -> tuple[int, int]:
        """The items and the bytes in a tree."""
        items, size, _ = self._known.get(tree) or self._load(tree)
        return items, size

    def drop(self, tree: str) -> None:
        """Forget a tree that is being dropped."""
        self._known.pop(tree, None)
        self._changed.pop(tree, None)
        self._store.delete(COUNTS, tree.encode())

    def flush(self) -> None:
        """Write the changed counts; called before the commit."""
        for tree, counts in self._changed.items():
            items, size, is_changed = counts
            if is_changed:
                self._store.put(COUNTS, tree.encode(), _COUNT.pack(items, size))
                counts[2] = False
        self._changed.clear()

    @property
    def changed(self) -> bool:
        """Whether the open transaction has touched a tree since the last flush, even if no count has changed."""
        return bool(self._changed)

    def forget(self) -> None:
        """Forget counts that may be outdated: another process has written, or a transaction was rolled back."""
        self._known.clear()
        self._changed.clear()

    def _load(self, tree: str) -> list[int]:
        stored = self._store.get(COUNTS, tree.encode())
        known = [0, 0, False] if stored is None else [*_COUNT.unpack(stored), False]
        self._known[tree] = known
        return known
