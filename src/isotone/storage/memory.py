"""In-memory storage (`MemoryStore`): for each tree, a dict for lookups and a sorted list of keys for ranges.

Transactions are an undo log: each write records what it replaced, and a rollback restores that, newest first. So
beginning a transaction costs nothing, and a rollback costs as much as the writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice, tee
from typing import Final, NoReturn

import msgspec
from sortedcontainers import SortedList

from isotone.errors import StorageError, UsageError
from isotone.storage.interface import (
    ABANDONED,
    CLOSED,
    NO_TRANSACTION,
    TRANSACTION_IN_SNAPSHOT,
    DescribeDamage,
    NoSuchTree,
    OnDamage,
    TreePart,
    checked_tree_name,
    damaged_entry,
    existing_tree,
)

_CHUNK: Final = 128  # values in one sequence


class MemoryStore:
    """Ordered trees that live as long as the process.

    >>> store = MemoryStore()
    >>> with store.transaction():
    ...     store.create_tree("fruit")
    ...     store.put("fruit", b"pear", b"green")
    ...     store.put("fruit", b"apple", b"red")
    >>> list(store.range("fruit", b"", None))
    [(b'apple', b'red'), (b'pear', b'green')]
    """

    __slots__ = ("_open", "_trees", "describe_damage")
    exclusive = True
    read_only = False
    busy_timeout: float = 0.0
    needs_snapshots = False
    reads_together = False

    def __init__(self) -> None:
        self._trees: dict[str, _Tree] = {}
        self._open = _OpenBlocks()
        self.describe_damage: DescribeDamage = damaged_entry  # never called

    def transaction(self, *, wait: bool = True, synced: bool = True) -> _MemoryTransaction:
        """Begin a transaction, or a nested one; it never waits. O(1); a rollback is O(writes undone)."""
        return _MemoryTransaction(self._open)

    def reading_together(
        self, attempts: Sequence[Callable[[], object]]
    ) -> AbstractContextManager[None]:
        """Do nothing: there are no round trips."""
        return nullcontext()

    def queue(self) -> AbstractContextManager[Callable[[float], object]]:
        """Never needed: no transaction waits."""
        return nullcontext(time.sleep)

    def reader(self) -> None:
        """None: there is only one connection to memory."""

    def abandon(self) -> None:
        """Roll back everything that is open. O(n log n) in the size of the store."""
        replaced = self._open.replaced
        undone = {entry.branch for entry in replaced if isinstance(entry, _ReplacedEntry)}
        # The interruption may have happened in the middle of a change to some sorted keys.
        for branch in undone.union(self._trees.values()):
            branch.keys = SortedList()
        self._open.undo_to(0)
        for branch in self._trees.values():
            branch.keys = SortedList(branch.values)
        self._open.transactions = self._open.snapshots = 0

    def snapshot(self) -> AbstractContextManager[None]:
        """Does nothing: no other process can write, so all reads see one moment. O(1).

        As in every store, a transaction cannot begin inside a snapshot.
        """
        return _MemorySnapshot(self._open)

    def create_tree(self, tree: str) -> None:
        """Create an empty tree. O(1)."""
        self._require_transaction()
        if checked_tree_name(tree) in self._trees:
            raise existing_tree(tree)
        self._open.replaced.append(_ReplacedTree(self._trees, tree, None))
        self._trees[tree] = _Tree()

    def drop_tree(self, tree: str) -> None:
        """Delete a tree and its entries. O(1)."""
        self._require_transaction()
        try:
            self._open.replaced.append(_ReplacedTree(self._trees, tree, self._trees[tree]))
        except KeyError:
            raise NoSuchTree(tree) from None
        del self._trees[tree]

    def trees(self) -> list[str]:
        """The names of all trees, sorted."""
        return sorted(self._trees)

    def get(self, tree: str, key: bytes) -> bytes | None:
        """The value at a key, or None. O(1)."""
        try:
            return self._trees[tree].values.get(key)
        except KeyError:
            raise NoSuchTree(tree) from None

    def put(self, tree: str, key: bytes, value: bytes) -> None:
        """Set the value at a key. O(log n) for a new key, O(1) for an existing one."""
        try:
            branch = self._trees[tree]
        except KeyError:
            raise NoSuchTree(tree) from None
        blocks = self._open
        if not blocks.transactions:
            raise UsageError(NO_TRANSACTION)
        values = branch.values
        previous = values.get(key)
        blocks.replaced.append(_ReplacedEntry(branch, key, previous))
        values[key] = value
        if previous is None:
            branch.keys.add(key)

    def add(self, tree: str, entries: Sequence[tuple[bytes, bytes]]) -> int:
        """Put the entries whose keys do not exist, and return how many. O(log n) for each."""
        new = 0
        for key, value in entries:
            if self.get(tree, key) is None:
                self.put(tree, key, value)
                new += 1
        return new

    def delete(self, tree: str, key: bytes) -> None:
        """Remove a key, if it exists. O(log n)."""
        self._require_transaction()
        try:
            branch = self._trees[tree]
        except KeyError:
            raise NoSuchTree(tree) from None
        removed = branch.values.get(key)
        if removed is not None:
            self._open.replaced.append(_ReplacedEntry(branch, key, removed))
            del branch.values[key]
            branch.keys.remove(key)

    def range(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries with `low <= key < high` in order. O(log n), then O(1) per entry."""
        try:
            branch = self._trees[tree]
        except KeyError:
            raise NoSuchTree(tree) from None
        keys, twins = tee(branch.keys.irange(low, high, inclusive=(True, False), reverse=reverse))
        return zip(keys, map(branch.values.__getitem__, twins), strict=True)

    def values(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        expected: int | None = None,
    ) -> Iterator[Sequence[bytes]]:
        """The values of a range, in sequences. O(log n), then O(1) per entry."""
        try:
            branch = self._trees[tree]
        except KeyError:
            raise NoSuchTree(tree) from None
        keys = branch.keys.irange(low, high, inclusive=(True, False), reverse=reverse)
        values = map(branch.values.__getitem__, keys)
        count = _CHUNK if expected is None else min(_CHUNK, expected)
        return iter(lambda: list(islice(values, count)), [])

    def changed_elsewhere(self) -> bool:
        """False: no other process can write here."""
        return False

    def has_seen_changes(self) -> bool:
        return False

    def is_current(self) -> bool:
        """True: no other process can write here."""
        return True

    def is_upgrading(self) -> bool:
        """False: there is no older format in memory."""
        return False

    def upgrade(self, is_sound: Callable[[str, bytes, bytes], bool]) -> bool:
        """Do nothing: there is no older format in memory."""
        return False

    def check(self) -> list[str]:
        """The trees whose dict and sorted keys disagree. O(n log n)."""
        return [
            f"tree {name}: the sorted keys are not the keys of its {len(branch.values)} values"
            for name, branch in sorted(self._trees.items())
            if list(branch.keys) != sorted(branch.values)
        ]

    def check_structure(self, trees: Sequence[str] | None = None) -> list[str]:
        """Same as `check`: there is nothing else to check in memory."""
        return self.check()

    def check_keys(self, tree: str, part: TreePart) -> Iterator[Exception]:
        """Yields nothing: keys in memory have no checksums."""
        return iter(())

    def parts(self, trees: Sequence[str], pages: int) -> dict[str, list[TreePart]]:
        """One part for each tree."""
        return {tree: [TreePart()] for tree in trees}

    def background(self) -> AbstractContextManager[None]:
        """Does nothing: commits in memory have no checkpoints."""
        return nullcontext()

    def sync(self) -> None:
        """Does nothing: there is no disk."""

    def close(self) -> None:
        """Drop everything; any later use raises `UsageError`."""
        self._trees = _Closed()
        self._open.replaced.clear()

    def _require_transaction(self) -> None:
        if not self._open.transactions:
            raise UsageError(NO_TRANSACTION)


class _Tree:
    """One ordered map."""

    __slots__ = ("keys", "values")

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.keys = SortedList()

    def restore(self, key: bytes, previous: bytes | None) -> None:
        """Set a key to its value before a write; None means that it did not exist."""
        if previous is None:
            self.values.pop(key, None)
            self.keys.discard(key)
            return
        if key not in self.values:
            self.keys.add(key)
        self.values[key] = previous


class _ReplacedEntry(msgspec.Struct):
    """The value that a write replaced, or None if the key did not exist."""

    branch: _Tree
    key: bytes
    previous: bytes | None

    def undo(self) -> None:
        self.branch.restore(self.key, self.previous)


class _ReplacedTree(msgspec.Struct):
    """The tree that was dropped, or None if the tree was created."""

    trees: dict[str, _Tree]
    name: str
    previous: _Tree | None

    def undo(self) -> None:
        if self.previous is None:
            self.trees.pop(self.name, None)
        else:
            self.trees[self.name] = self.previous


class _OpenBlocks:
    """The transactions and snapshots whose blocks have not ended, and the changes to undo."""

    __slots__ = ("replaced", "snapshots", "transactions")

    def __init__(self) -> None:
        self.replaced: list[_ReplacedEntry | _ReplacedTree] = []
        self.transactions: int = 0
        self.snapshots: int = 0

    def undo_to(self, mark: int) -> None:
        """Undo all but the first `mark` changes, newest first."""
        replaced = self.replaced
        while len(replaced) > mark:
            replaced[-1].undo()
            # Last, so that an interruption loses no record; undoing a change twice is harmless.
            replaced.pop()


class _MemoryTransaction:
    __slots__ = ("_blocks", "_level", "_mark", "_rolled_back")

    def __init__(self, blocks: _OpenBlocks) -> None:
        self._blocks = blocks
        self._level = self._mark = 0
        self._rolled_back = False

    def rollback(self) -> None:
        """Roll back this transaction at the end of its block."""
        self._rolled_back = True

    def __enter__(self) -> _MemoryTransaction:
        blocks = self._blocks
        if blocks.snapshots and not blocks.transactions:
            raise UsageError(TRANSACTION_IN_SNAPSHOT)
        self._mark = len(blocks.replaced)
        self._level = blocks.transactions = blocks.transactions + 1
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        blocks = self._blocks
        undo = kind is not None or self._rolled_back
        if not blocks.transactions and not undo:
            raise StorageError(ABANDONED)
        if undo:
            blocks.undo_to(self._mark)
        if blocks.transactions >= self._level:
            blocks.transactions = self._level - 1
        if not blocks.transactions:
            blocks.replaced.clear()


class _MemorySnapshot:
    __slots__ = ("_blocks",)

    def __init__(self, blocks: _OpenBlocks) -> None:
        self._blocks = blocks

    def __enter__(self) -> None:
        self._blocks.snapshots += 1

    def __exit__(self, *_: object) -> None:
        self._blocks.snapshots = max(0, self._blocks.snapshots - 1)


class _Closed(dict[str, _Tree]):
    """Replaces the trees of a closed store, and refuses every access."""

    def __missing__(self, tree: str) -> NoReturn:
        raise UsageError(CLOSED)

    def __iter__(self) -> NoReturn:
        raise UsageError(CLOSED)
