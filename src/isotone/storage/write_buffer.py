"""The writes of an open transaction (`WriteBuffer`): read through, undone in part, sent to a server with the commit.

Each tree that the transaction has touched is a `Branch`: what it has written by key, None for a deleted key. Nested
transactions are marks in an undo log, as in `MemoryStore`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final

import msgspec
from sortedcontainers import SortedList


class _Missing(Enum):
    """A value of its own that checkers of types can tell from others."""

    MISSING = 0


_MISSING: Final = _Missing.MISSING


class Branch:
    """What a transaction has written to one tree. `relation` is its table on the server; None for a tree that it made."""

    __slots__ = ("keys", "relation", "written")

    def __init__(self, relation: str | None) -> None:
        self.relation: str | None = relation
        self.written: dict[bytes, bytes | None] = {}
        self.keys: Any = SortedList()

    def set(self, key: bytes, value: bytes | None) -> None:
        if key not in self.written:
            self.keys.add(key)
        self.written[key] = value

    def unset(self, key: bytes) -> None:
        if key in self.written:
            self.keys.remove(key)
            del self.written[key]

    def through(
        self,
        stored: Iterable[tuple[bytes, bytes]],
        low: bytes,
        high: bytes | None,
        reverse: bool,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Stored entries of a range in order, as they are after what was written."""
        keys = self.keys.irange(low, high, inclusive=(True, False), reverse=reverse)
        written = self.written
        mine: bytes | None = next(keys, None)
        for key, value in stored:
            while mine is not None and (mine > key if reverse else mine < key):
                if (own := written[mine]) is not None:
                    yield mine, own
                mine = next(keys, None)
            if mine == key:
                if (own := written[key]) is not None:
                    yield key, own
                mine = next(keys, None)
            else:
                yield key, value
        while mine is not None:
            if (own := written[mine]) is not None:
                yield mine, own
            mine = next(keys, None)


class _ReplacedValue(msgspec.Struct):
    """What a branch had for a key before a write; `_MISSING` if nothing."""

    branch: Branch
    key: bytes
    before: bytes | _Missing | None


class _ReplacedBranch(msgspec.Struct):
    """The branch that a tree had before it was made or dropped; `_MISSING` if it was untouched."""

    tree: str
    before: Branch | _Missing | None


class WriteBuffer:
    """The branches of an open transaction, and how to undo them to a mark."""

    __slots__ = ("_done", "branches")

    def __init__(self) -> None:
        self.branches: dict[str, Branch | None] = {}
        """By tree; None for a tree that was dropped."""
        self._done: list[_ReplacedValue | _ReplacedBranch] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been written, or all of it undone."""
        return not self._done

    @property
    def mark(self) -> int:
        """The place in the log to which `undo_to` leads back."""
        return len(self._done)

    def set(self, branch: Branch, key: bytes, value: bytes | None) -> None:
        self._done.append(_ReplacedValue(branch, key, branch.written.get(key, _MISSING)))
        branch.set(key, value)

    def replace(self, tree: str, branch: Branch | None) -> None:
        self._done.append(_ReplacedBranch(tree, self.branches.get(tree, _MISSING)))
        self.branches[tree] = branch

    def undo_to(self, mark: int) -> None:
        """Undo all but the first `mark` writes, newest first."""
        done = self._done
        while len(done) > mark:
            last = done[-1]
            if isinstance(last, _ReplacedBranch):
                if last.before is _MISSING:
                    self.branches.pop(last.tree, None)
                else:
                    self.branches[last.tree] = last.before
            elif last.before is _MISSING:
                last.branch.unset(last.key)
            else:
                last.branch.set(last.key, last.before)
            done.pop()
