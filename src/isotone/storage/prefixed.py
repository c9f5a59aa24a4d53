"""A store for each further region inside the main store: the trees whose names begin with a prefix.

Regions therefore share one file, one lock and one transaction, and the layers above do not see the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from isotone.storage.interface import (
    DescribeDamage,
    OnDamage,
    OrderedStore,
    StoreTransaction,
    TreePart,
)


class PrefixedStore:
    """The trees of `whole` whose names begin with `prefix`. Closing it does nothing: `whole` stays open."""

    __slots__ = (
        "_prefix",
        "_whole",
        "busy_timeout",
        "describe_damage",
        "exclusive",
        "needs_snapshots",
        "read_only",
        "reads_together",
    )

    def __init__(self, whole: OrderedStore, prefix: str) -> None:
        self._whole = whole
        self._prefix = prefix
        self.exclusive: bool = whole.exclusive
        self.read_only: bool = whole.read_only
        self.busy_timeout: float = whole.busy_timeout
        self.needs_snapshots: bool = whole.needs_snapshots
        self.reads_together: bool = whole.reads_together
        self.describe_damage: DescribeDamage = whole.describe_damage

    def transaction(self, *, wait: bool = True, synced: bool = True) -> StoreTransaction:
        return self._whole.transaction(wait=wait, synced=synced)

    def reading_together(
        self, attempts: Sequence[Callable[[], object]]
    ) -> AbstractContextManager[None]:
        return self._whole.reading_together(attempts)

    def queue(self) -> AbstractContextManager[Callable[[float], object]]:
        return self._whole.queue()

    def reader(self) -> None:
        """None: a reader of the whole store has these trees, too."""

    def abandon(self) -> None:
        self._whole.abandon()

    def snapshot(self) -> AbstractContextManager[None]:
        return self._whole.snapshot()

    def create_tree(self, tree: str) -> None:
        self._whole.create_tree(self._prefix + tree)

    def drop_tree(self, tree: str) -> None:
        self._whole.drop_tree(self._prefix + tree)

    def trees(self) -> list[str]:
        start = len(self._prefix)
        return [tree[start:] for tree in self._whole.trees() if tree.startswith(self._prefix)]

    def get(self, tree: str, key: bytes) -> bytes | None:
        return self._whole.get(self._prefix + tree, key)

    def put(self, tree: str, key: bytes, value: bytes) -> None:
        self._whole.put(self._prefix + tree, key, value)

    def add(self, tree: str, entries: Sequence[tuple[bytes, bytes]]) -> int:
        return self._whole.add(self._prefix + tree, entries)

    def delete(self, tree: str, key: bytes) -> None:
        self._whole.delete(self._prefix + tree, key)

    def range(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        return self._whole.range(
            self._prefix + tree, low, high, reverse=reverse, on_damage=on_damage
        )

    def values(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        expected: int | None = None,
    ) -> Iterator[Sequence[bytes]]:
        return self._whole.values(
            self._prefix + tree, low, high, reverse=reverse, expected=expected
        )

    def changed_elsewhere(self) -> bool:
        return self._whole.changed_elsewhere()

    def has_seen_changes(self) -> bool:
        return self._whole.has_seen_changes()

    def is_current(self) -> bool:
        return self._whole.is_current()

    def check(self) -> list[str]:
        return []

    def check_structure(self, trees: Sequence[str] | None = None) -> list[str]:
        """The structure of these trees only; the whole store is checked separately."""
        if trees is None:
            return []
        return self._whole.check_structure([self._prefix + tree for tree in trees])

    def check_keys(self, tree: str, part: TreePart) -> Iterator[Exception]:
        return self._whole.check_keys(self._prefix + tree, part)

    def parts(self, trees: Sequence[str], pages: int) -> dict[str, list[TreePart]]:
        found = self._whole.parts([self._prefix + tree for tree in trees], pages)
        return {tree: found[self._prefix + tree] for tree in trees}

    def is_upgrading(self) -> bool:
        return False

    def upgrade(self, is_sound: Callable[[str, bytes, bytes], bool]) -> bool:
        """Do nothing: the upgrade of the whole store includes this part."""
        return False

    def background(self) -> AbstractContextManager[None]:
        return self._whole.background()

    def sync(self) -> None:
        self._whole.sync()

    def close(self) -> None:
        """Do nothing: the whole store is closed by its owner."""
