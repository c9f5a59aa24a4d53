"""The interface of storage: named ordered maps from bytes to bytes, and transactions.

A *tree* is one ordered map. Its keys compare as unsigned bytes; the layer above knows what they mean. Two stores
implement this interface, `MemoryStore` and `SQLiteStore`. They must differ only in speed and in what survives a
power cut.

Ownership and concurrency: a store belongs to one `Engine`, which holds a lock and calls it from one thread at a
time. The caller may keep the bytes that it returns. An iterator from `range` is valid until the next write to the
store; the caller finishes or drops it before that.

Transactions nest. The outermost `with store.transaction():` commits if its block ends without an exception, and
rolls back if it ends with one; an inner one keeps or undoes only its own part. A write outside any transaction is
a programming error and raises `UsageError`. Once the outermost block has ended, the work is as durable as the
store's durability says. If the commit fails, the work has been rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from isotone.errors import DamagedItem, StorageCorrupt, UsageError

BUSY_TIMEOUT: Final = 5.0
"""Seconds to wait for a lock that another process holds, unless told."""

DescribeDamage = Callable[[str, bytes | None], DamagedItem]
"""Makes the exception for damage of a tree's entry; its key is None where it cannot be read."""

OnDamage = Callable[[DamagedItem], object]
"""Called with each damage that a read meets."""


class TreePart(NamedTuple):
    """The keys `low <= key < high` of a tree, and the pages of the file that they are on, as far as is known."""

    low: bytes = b""
    high: bytes | None = None
    pages: Sequence[int] = ()


class StoreTransaction(AbstractContextManager["StoreTransaction"], Protocol):
    """The result of `with store.transaction() as transaction:`."""

    def rollback(self) -> None:
        """Undo this transaction's work at the end of its block, without an exception."""


class OrderedStore(Protocol):
    """Named ordered maps of bytes, with nested transactions."""

    exclusive: bool
    """Whether no other process can write here, so that what was read may be cached."""

    describe_damage: DescribeDamage
    """What a read raises for damage. The owner of the store replaces it: it knows what an entry is."""

    read_only: bool
    """Whether nothing can be written, because the file or its folder cannot."""

    busy_timeout: float
    """Seconds to wait while another process writes."""

    def transaction(self, *, wait: bool = True, synced: bool = True) -> StoreTransaction:
        """Begin a transaction for writing, or a nested one inside the open one.

        Raises `StorageBusy` if another process writes for longer than `busy_timeout`; without `wait`, at once.
        A commit that is not `synced` survives the death of the process at once, and a power cut as soon as a later one is
        synced. It is for work that is done again after one. A nested transaction is synced as the outermost one.
        """

    def abandon(self) -> None:
        """Undo everything that is open, and end every snapshot.

        For code that catches what a signal handler raised (`KeyboardInterrupt`). Python can raise it before the
        first line of an `__exit__`: then the block has ended, but its transaction has not.
        """

    def snapshot(self) -> AbstractContextManager[None]:
        """Make all reads inside the block see one moment, whatever other processes write.

        Inside a transaction this changes nothing. A transaction cannot begin inside a snapshot, because its
        reads might be outdated; that raises `UsageError`.
        """

    def create_tree(self, tree: str) -> None:
        """Create an empty tree, named `[a-z0-9_]+`. It must not exist."""

    def drop_tree(self, tree: str) -> None:
        """Delete a tree and its entries. It must exist."""

    def trees(self) -> list[str]:
        """The names of all trees, sorted."""

    def get(self, tree: str, key: bytes) -> bytes | None:
        """The value at a key, or None. O(log n). Raises `NoSuchTree` for an unknown tree.

        Raises `DamagedItem` for a value that is not as it was written, and for a key that may be missing because a
        key next to it has changed.
        """

    def put(self, tree: str, key: bytes, value: bytes) -> None:
        """Set the value at a key. O(log n)."""

    def add(self, tree: str, entries: Sequence[tuple[bytes, bytes]]) -> int:
        """Put the entries whose keys do not exist, and return how many. Fastest in the order of keys."""

    def delete(self, tree: str, key: bytes) -> None:
        """Remove a key, if it exists. O(log n)."""

    def range(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries with `low <= key < high` in order of key, or in reverse order.

        `high=None` means the end. Lazy: it reads hardly more entries than the caller takes. Raises `DamagedItem` for
        one that is not as it was written; with `on_damage` it calls that instead, and goes on with the next one. It
        raises in any case where the order of the tree is damaged.
        """

    def values(
        self,
        tree: str,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool = False,
        expected: int | None = None,
    ) -> Iterator[Sequence[bytes]]:
        """The values of the entries that `range` gives, in the same order, in sequences: for a caller who takes many of them.

        `expected` is how many the caller takes at most, if that is known. No sequence is empty.
        """

    def changed_elsewhere(self) -> bool:
        """Whether another process has committed since the last call (always False in memory).

        Inside a snapshot or a transaction, it considers commits before that began.
        """

    def is_current(self) -> bool:
        """Whether no read since `changed_elsewhere` has met another process's commit (always True in memory).

        Reads without a snapshot may each see another moment. If it is True after them, they saw the same.
        """

    def check(self) -> list[str]:
        """What is wrong with the store's own structure and its keys, one message each; empty if nothing is."""

    def check_structure(self, trees: Sequence[str] | None = None) -> list[str]:
        """What is wrong with the structure alone, of the whole store or of some trees."""

    def check_keys(self, tree: str, part: TreePart) -> Iterator[Exception]:
        """The exception for each damaged key of a part. A range does not notice all of them, a read at a gap does."""

    def parts(self, trees: Sequence[str], pages: int) -> dict[str, list[TreePart]]:
        """Parts of about so many pages each, for each tree in the order of its keys. Together they have all possible keys."""

    def is_upgrading(self) -> bool:
        """Whether entries that an older Isotone wrote still lack their checksums. O(1)."""

    def upgrade(self, is_sound: Callable[[str, bytes, bytes], bool]) -> bool:
        """Give a slice of such entries their checksums, in the open transaction; False if there are none left.

        `is_sound` says of a tree, a key and a value whether they are what they should be. One that is not was
        damaged before, and counts as damaged from then on.
        """

    def background(self) -> AbstractContextManager[None]:
        """For work in the background: its commits leave out what the end of the block does for all of them.

        The end of the block may wait for the disk. It needs no lock, so the caller must hold none there.
        """

    def sync(self) -> None:
        """Make what was committed without being synced survive a power cut. Waits for the disk, and needs no lock."""

    def close(self) -> None:
        """Release files and memory. Closing twice does nothing."""


class NoSuchTree(StorageCorrupt, KeyError):
    """The tree does not exist: it was dropped, or the file is damaged."""

    def __init__(self, tree: str) -> None:
        super().__init__(
            f"tree {tree} is missing: the file is damaged, or the table was deleted meanwhile"
        )
        self.tree = tree


ABANDONED: Final = "this transaction was abandoned and rolled back; begin it again"
CLOSED: Final = "the store is closed; open it again to use it"
NOT_BYTES: Final = "keys and values must be bytes"
NO_TRANSACTION: Final = "a write needs an open transaction: with store.transaction(): ..."
TRANSACTION_IN_SNAPSHOT: Final = (
    "a transaction cannot begin inside a snapshot; end the snapshot first"
)

_TREE_NAME: Final = re.compile(r"[a-z0-9_]+")


def checked_tree_name(tree: str) -> str:
    """The name, if it is valid. Raises `UsageError` for anything but lower-case letters, digits and `_`."""
    if not _TREE_NAME.fullmatch(tree):
        raise UsageError(f"{tree!r} cannot name a tree; use lower-case letters, digits and _")
    return tree


def existing_tree(tree: str) -> UsageError:
    """The error for creating a tree that exists."""
    return UsageError(f"the tree {tree!r} already exists; drop it before creating it again")


def damaged_entry(tree: str, key: bytes | None) -> DamagedItem:
    """The error for a damaged entry, where only the tree is known."""
    which = "an entry" if key is None else f"entry {key.hex()}"
    return DamagedItem(f"{which} of tree {tree} is damaged")
