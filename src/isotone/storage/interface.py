"""The storage interface (`OrderedStore`): named ordered maps from bytes to bytes, and nested transactions.

A *tree* is one ordered map. Its keys compare as unsigned bytes; only the layer above knows what they mean. Three stores
implement this interface, `MemoryStore`, `SQLiteStore` and `PostgresStore`. They may differ only in speed, and in what
survives a power cut.

Ownership and concurrency: a store belongs to one `Engine`, which holds a lock and calls it from one thread at a time.
The caller may keep returned bytes. An iterator from `range` is valid until the next write to the store; the caller must
finish or drop it before that.

Transactions nest. The outermost `with store.transaction():` commits if its block ends without an exception, and rolls
back otherwise; an inner one keeps or undoes only its own part. A write outside any transaction is a programming error
and raises `UsageError`. Once the outermost block has ended, the work is as durable as the store's durability promises.
If the commit fails, the work has been rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from isotone.errors import DamagedItem, StorageCorrupt, UsageError

BUSY_TIMEOUT: Final = 5.0
"""Seconds to wait for a lock of another process, by default."""

DescribeDamage = Callable[[str, bytes | None], DamagedItem]
"""Makes the exception for a damaged entry of a tree; its key is None if it cannot be read."""

OnDamage = Callable[[DamagedItem], object]
"""Called with each damaged entry that a read finds."""


class TreePart(NamedTuple):
    """The keys `low <= key < high` of a tree, and the file's pages that they are on, as far as known."""

    low: bytes = b""
    high: bytes | None = None
    pages: Sequence[int] = ()


class StoreTransaction(AbstractContextManager["StoreTransaction"], Protocol):
    """The result of `with store.transaction() as transaction:`."""

    def rollback(self) -> None:
        """Roll back this transaction at the end of its block, without an exception."""


class OrderedStore(Protocol):
    """Named ordered maps of bytes, with nested transactions."""

    exclusive: bool
    """Whether no other process can write here, so that reads may be cached."""

    describe_damage: DescribeDamage
    """Makes the exception for a damaged entry. The owner of the store replaces it, because it knows what the entry
    means.
    """

    read_only: bool
    """Whether nothing can be written, because the file or its folder is read-only."""

    busy_timeout: float
    """Seconds to wait while another process is writing."""

    needs_snapshots: bool
    """Whether every read must be in a snapshot: it notices there that a file which was opened as unchanging has changed."""

    def transaction(self, *, wait: bool = True, synced: bool = True) -> StoreTransaction:
        """Begin a write transaction, or a nested one inside the open one.

        Raises `StorageBusy` if another process writes for longer than `busy_timeout`, or at once without `wait`. A
        commit that is not `synced` survives the death of the process, but survives a power cut only once a later commit
        is synced. It is for work that can be repeated. A nested transaction is synced like the outermost one.
        """

    reads_together: bool
    """Whether `reading_together` saves round trips to a server; otherwise it does nothing."""

    def reading_together(
        self, attempts: Sequence[Callable[[], object]]
    ) -> AbstractContextManager[None]:
        """Fetch together what some functions read, each of which the caller calls inside the block.

        Before that, each is called up to its first unknown read, or its first write, where a `TakesLong` ends it. So a
        function must not change anything before it writes.
        """

    def queue(self) -> AbstractContextManager[Callable[[float], object]]:
        """For a thread that got `StorageBusy`: inside the block, the function waits for some seconds, or until it is the
        turn of this store. It needs no lock of the caller. The next `transaction` without `wait` takes the turn.
        """

    def reader(self) -> OrderedStore | None:
        """Another store over the same file, which another thread may read while this one is in use; None if there is
        none, as in memory. It sees what this one has committed. Raises if it cannot be opened.
        """

    def abandon(self) -> None:
        """Roll back everything that is open, and end every snapshot.

        For code that catches an exception from a signal handler (`KeyboardInterrupt`). Python can raise it before the
        first line of an `__exit__`: then the block has ended, but its transaction has not.
        """

    def snapshot(self) -> AbstractContextManager[None]:
        """Make all reads inside the block see the same moment, whatever other processes write.

        Inside a transaction this changes nothing. A transaction cannot begin inside a snapshot, because its reads might
        be outdated; trying raises `UsageError`.
        """

    def create_tree(self, tree: str) -> None:
        """Create an empty tree with a name `[a-z0-9_]+`. It must not exist."""

    def drop_tree(self, tree: str) -> None:
        """Delete a tree and its entries. It must exist."""

    def trees(self) -> list[str]:
        """The names of all trees, sorted."""

    def get(self, tree: str, key: bytes) -> bytes | None:
        """The value at a key, or None. O(log n). Raises `NoSuchTree` for an unknown tree.

        Raises `DamagedItem` for a value that is not as written, and for a missing key if a key next to it has changed,
        since that may be the key.
        """

    def put(self, tree: str, key: bytes, value: bytes) -> None:
        """Set the value at a key. O(log n)."""

    def add(self, tree: str, entries: Sequence[tuple[bytes, bytes]]) -> int:
        """Put the entries whose keys do not exist, and return how many. Fastest in key order."""

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
        """The entries with `low <= key < high` in key order, or in reverse order.

        `high=None` means the end. Lazy: it reads hardly more entries than the caller takes. Raises `DamagedItem` for an
        entry that is not as written. With `on_damage`, it passes the damage to that and continues with the next entry.
        If the order of the tree is damaged, it always raises.
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
        """The values of a `range`, in the same order, in sequences: for callers that take many of them.

        `expected` is the most values that the caller will take, if known. No sequence is empty.
        """

    def changed_elsewhere(self) -> bool:
        """Whether another process has committed since the last call (always False in memory).

        Inside a snapshot or a transaction, only commits from before its beginning count.
        """

    def has_seen_changes(self) -> bool:
        """The same as `changed_elsewhere`, for a caller that has just read: it reads nothing itself."""

    def is_current(self) -> bool:
        """Whether no read since `changed_elsewhere` has seen another process's commit (always True in memory).

        Reads without a snapshot may each see a different moment. If this is True after them, they saw the same one.
        """

    def check(self) -> list[str]:
        """Problems in the store's own structure and keys, one message each; empty if there are none."""

    def check_structure(self, trees: Sequence[str] | None = None) -> list[str]:
        """Problems in the structure alone, of the whole store or of some trees."""

    def check_keys(self, tree: str, part: TreePart) -> Iterator[Exception]:
        """The exception for each damaged key of a part. A range does not notice all of them; a read that misses a key
        does.
        """

    def parts(self, trees: Sequence[str], pages: int) -> dict[str, list[TreePart]]:
        """Parts of about `pages` pages each, for each tree in key order. Together they cover all possible keys."""

    def is_upgrading(self) -> bool:
        """Whether entries written by an older Isotone still lack checksums. O(1)."""

    def upgrade(self, is_sound: Callable[[str, bytes, bytes], bool]) -> bool:
        """Give a slice of such entries their checksums, in the open transaction; False if none remain.

        `is_sound(tree, key, value)` tells whether an entry is as it should be. An unsound one was damaged before, and
        counts as damaged from then on.
        """

    def background(self) -> AbstractContextManager[None]:
        """For background work: commits inside the block skip the checkpoint, and the end of the block makes one for
        all.

        The end of the block may wait for the disk. It needs no lock, so the caller must not hold any.
        """

    def sync(self) -> None:
        """Make unsynced commits survive a power cut. Waits for the disk, and needs no lock."""

    def close(self) -> None:
        """Release files and memory. Closing twice is allowed."""


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
    """The name, if valid. Raises `UsageError` for anything but lower-case letters, digits and `_`."""
    if not _TREE_NAME.fullmatch(tree):
        raise UsageError(f"{tree!r} cannot name a tree; use lower-case letters, digits and _")
    return tree


def existing_tree(tree: str) -> UsageError:
    """The error for creating a tree that already exists."""
    return UsageError(f"the tree {tree!r} already exists; drop it before creating it again")


def damaged_entry(tree: str, key: bytes | None) -> DamagedItem:
    """The error for a damaged entry if only the tree is known."""
    which = "an entry" if key is None else f"entry {key.hex()}"
    return DamagedItem(f"{which} of tree {tree} is damaged")
