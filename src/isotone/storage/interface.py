"""What the database needs of a store: named ordered maps from bytes to bytes, and transactions.

A *tree* is one ordered map. Its keys are compared as unsigned bytes and nothing else; what they mean is
the business of the layer above. Two stores keep this interface, `MemoryStore` and `SQLiteStore`, and
they must be indistinguishable but by speed and by what survives a power cut.

Ownership and concurrency. A store belongs to one `Engine`, which calls it from one thread at a time
(it holds a lock). Bytes that come out may be kept. An iterator from `range` is valid until the next
write to the store; the caller finishes or drops it before.

Transactions nest. The outermost `with store.transaction():` commits when its block ends without an
exception, and is undone when it ends with one; an inner one undoes or keeps its own part only. A write
outside of any transaction is a defect and raises `UsageError`. When the outermost block has ended, the
work is as durable as the store's durability says. When committing fails, the work has been undone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol

from isotone.errors import UsageError


class Transaction(AbstractContextManager["Transaction"], Protocol):
    """What `with store.transaction() as transaction:` gives."""

    def rollback(self) -> None:
        """Undo this transaction's work at the end of its block, without an exception."""


class Store(Protocol):
    """Named ordered maps of bytes, with nested transactions."""

    exclusive: bool
    """Whether nobody else can write here: what was read once stays true until its owner changes it."""

    def transaction(self) -> Transaction:
        """Begin a transaction for writing, or a nested one inside the open one."""

    def abandon(self) -> None:
        """Undo whatever is open and end every snapshot; nothing, where nothing is open.

        For whoever catches what a signal handler has raised (`KeyboardInterrupt`). Python can raise it
        before the first line of an `__exit__`, and then the block has ended and its transaction has not.
        """

    def snapshot(self) -> AbstractContextManager[None]:
        """Make all reads inside the block see one moment, whatever other processes write.

        Inside of a transaction this changes nothing. A transaction cannot begin inside of a snapshot:
        what it had read might be outdated by then. That raises `UsageError`.
        """

    def create_tree(self, tree: str) -> None:
        """Make an empty tree; its name is `[a-z0-9_]+`. It must not exist."""

    def drop_tree(self, tree: str) -> None:
        """Delete a tree with all that it holds. It must exist."""

    def trees(self) -> list[str]:
        """The names of all trees, sorted."""

    def get(self, tree: str, key: bytes) -> bytes | None:
        """The value at a key, or None. O(log n). Raises `NoSuchTree` for an unknown tree."""

    def put(self, tree: str, key: bytes, value: bytes) -> None:
        """Set the value at a key. O(log n)."""

    def delete(self, tree: str, key: bytes) -> None:
        """Remove a key; no error where there is none. O(log n)."""

    def range(
        self, tree: str, low: bytes, high: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries with `low <= key < high` in order of key, or in reverse order.

        `high=None` means to the end. Lazy: reads only as many entries as are taken from it.
        """

    def changed_elsewhere(self) -> bool:
        """Whether another process has committed since this was last asked (always False in memory).

        Inside of a snapshot or a transaction it tells what had been committed when that began.
        """

    def check(self) -> list[str]:
        """What is wrong with the store's own structure, in words; empty where nothing is."""

    def close(self) -> None:
        """Give back files and memory. Closing twice does nothing."""


class NoSuchTree(KeyError):
    """A tree was asked for that does not exist: dropped, or never made."""


ABANDONED: Final = "this transaction was abandoned: nothing of it was kept, begin it again"
CLOSED: Final = "the store is closed; open it again to use it"
NO_TRANSACTION: Final = "a write needs an open transaction: with store.transaction(): ..."
TRANSACTION_IN_SNAPSHOT: Final = "a transaction cannot begin inside of a snapshot; end that first"

_TREE_NAME: Final = re.compile(r"[a-z0-9_]+")


def checked_tree_name(tree: str) -> str:
    """The name itself. Raises `UsageError` for anything but lower-case letters, digits and `_`."""
    if not _TREE_NAME.fullmatch(tree):
        raise UsageError(f"{tree!r} cannot name a tree; use lower-case letters, digits and _")
    return tree


def existing_tree(tree: str) -> UsageError:
    """What to raise where a tree is made that is there already."""
    return UsageError(f"there is a tree {tree!r} already; drop it before making it again")
