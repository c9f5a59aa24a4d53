"""How many items each tree holds and how many bytes, kept in the same transaction as the items.

A change is collected here and written once, just before the transaction commits: a group of a hundred
writes to one table pays for one update of its count.
"""

from __future__ import annotations

import struct

from isotone.storage.interface import Store

TREE = "counts"
_FORMAT = struct.Struct(">qq")


class Counts:
    """Items and bytes of every tree."""

    __slots__ = ("_changed", "_known", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, list[int]] = {}
        self._changed: set[str] = set()

    def add(self, tree: str, items: int, size: int) -> None:
        """Note a change; it is part of the open transaction."""
        self._changed.add(tree)
        known = self._known.get(tree) or self._load(tree)
        known[0] += items
        known[1] += size

    def of(self, tree: str) -> tuple[int, int]:
        """The items and the bytes in a tree."""
        items, size = self._known.get(tree) or self._load(tree)
        return items, size

    def drop(self, tree: str) -> None:
        """Forget a tree that is being dropped."""
        self._known.pop(tree, None)
        self._changed.discard(tree)
        self._store.delete(TREE, tree.encode())

    def flush(self) -> None:
        """Write what has changed; called before the commit."""
        for tree in self._changed:
            self._store.put(TREE, tree.encode(), _FORMAT.pack(*self._known[tree]))
        self._changed.clear()

    @property
    def changed(self) -> bool:
        """Whether the open transaction has changes that are not yet written."""
        return bool(self._changed)

    def forget(self) -> None:
        """Read everything anew: another process has written, or a transaction was undone."""
        self._known.clear()
        self._changed.clear()

    def _load(self, tree: str) -> list[int]:
        stored = self._store.get(TREE, tree.encode())
        known = [0, 0] if stored is None else list(_FORMAT.unpack(stored))
        self._known[tree] = known
        return known
