"""An in-memory cache of vectors, so that the next search of the same partition reads nothing.

A partition is cached as rows: the keys, and all vectors in one array. Every change of an index entry changes the row
too (`replace`), inside the transaction and under the engine's lock, which searches also hold. Anything that makes the
engine drop its cached state (a commit of another process, a rollback) empties the cache.

It has at most `CACHE_SIZE` bytes; the partitions that were searched least recently are dropped first.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

from sortedcontainers import SortedDict

from isotone.engine.index_entries import IndexEntry
from isotone.engine.layout import Bounds
from isotone.engine.vector_index import FLOAT_BYTES, Labels, StoredVectorIndex, dot

CACHE_SIZE: Final = 256 * 1024 * 1024
_ROW_SIZE: Final = 250  # approximate bytes of a row besides its vector


class Rows:
    """The vectors of a range of index entries, in no particular order.

    `squares` are the squared lengths of the vectors, empty until `vector_scores` needs them.
    """

    __slots__ = (
        "_row_of_key",
        "_width",
        "high",
        "index",
        "keys",
        "labels",
        "low",
        "squares",
        "vectors",
    )

    def __init__(self, index: StoredVectorIndex, bounds: Bounds) -> None:
        self.index: StoredVectorIndex = index
        self.low: bytes
        self.high: bytes | None
        self.low, self.high = bounds
        self.keys: list[bytes] = []
        self.vectors: bytearray = bytearray()
        self.labels: list[Labels] = []
        self.squares: array[float] = array("d")
        self._row_of_key: dict[bytes, int] | None = None
        self._width = FLOAT_BYTES * index.schema.dimensions

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def size(self) -> int:
        """The approximate memory of the rows."""
        return len(self.vectors) + _ROW_SIZE * len(self.keys)

    def add(self, key: bytes, record: bytes) -> None:
        """Append a row."""
        self.keys.append(key)
        self.vectors += self.index.vector_of(record)
        if self.index.schema.filters:
            self.labels.append(self.index.labels(record))

    def vector(self, row: int) -> bytes:
        """The packed vector of a row."""
        return bytes(self.vectors[row * self._width : (row + 1) * self._width])

    def packed(self) -> Iterator[bytes]:
        """All packed vectors."""
        return map(self.vector, range(len(self.keys)))

    def put(self, key: bytes, record: bytes) -> None:
        """Set the row of a key."""
        row_of_key = self._index_of_keys()
        measured = bool(self.squares)
        row = row_of_key.setdefault(key, len(self.keys))
        if row == len(self.keys):
            self.add(key, record)
            self.squares.extend([0.0] if measured else [])
        else:
            self._set(row, self.index.vector_of(record))
            if self.labels:
                self.labels[row] = self.index.labels(record)
        if measured:
            floats = self.index.floats(self.vector(row))
            self.squares[row] = dot(floats, floats)

    def remove(self, key: bytes) -> None:
        """Remove the row of a key, if there is one; the last row takes its place."""
        row_of_key = self._index_of_keys()
        row = row_of_key.pop(key, None)
        if row is None:
            return
        last = len(self.keys) - 1
        if row != last:
            row_of_key[self.keys[last]] = row
            self._set(row, self.vector(last))
        del self.vectors[last * self._width :]
        columns: tuple[Any, ...] = (self.keys, self.labels, self.squares)
        for column in filter(None, columns):
            column[row] = column[last]
            del column[last:]

    def _set(self, row: int, vector: bytes) -> None:
        self.vectors[row * self._width : (row + 1) * self._width] = vector

    def _index_of_keys(self) -> dict[bytes, int]:
        if self._row_of_key is None:
            self._row_of_key = {key: row for row, key in enumerate(self.keys)}
        return self._row_of_key


class VectorCache:
    """The rows of the most recently searched partitions."""

    __slots__ = ("_latest", "_most", "_trees")

    def __init__(self, most: int = CACHE_SIZE) -> None:
        self._most = most
        self._trees: dict[str, SortedDict] = {}
        self._latest: OrderedDict[tuple[str, bytes], Rows] = OrderedDict()

    def find(self, tree: str, low: bytes) -> Rows | None:
        """The rows of the partition that begins at a key."""
        rows = self._latest.get((tree, low))
        if rows is not None:
            self._latest.move_to_end((tree, low))
        return rows

    def fits(self, rows: Rows) -> bool:
        """Whether the cache has room for these rows."""
        return rows.size <= self._most

    def keep(self, tree: str, rows: Rows) -> None:
        """Cache the rows of a whole partition."""
        self._trees.setdefault(tree, SortedDict())[rows.low] = rows
        self._latest[tree, rows.low] = rows
        total = sum(each.size for each in self._latest.values())
        while total > self._most:
            (old_tree, low), dropped = next(iter(self._latest.items()))
            total -= dropped.size
            self._drop(old_tree, low)

    def replace(self, tree: str, before: IndexEntry | None, after: IndexEntry | None) -> None:
        """Change the rows as the entries change. O(log n) in the number of cached partitions."""
        if tree not in self._trees:
            return
        if before is not None and (after is None or after.key != before.key):
            self._change(tree, before.key, None)
        if after is not None:
            self._change(tree, after.key, after.record)

    def _change(self, tree: str, key: bytes, record: bytes | None) -> None:
        kept = self._trees.get(tree, SortedDict())
        at = kept.bisect_right(key) - 1
        if at < 0:
            return
        low, rows = kept.peekitem(at)
        if rows.high is not None and key >= rows.high:
            return
        try:
            if record is None:
                rows.remove(key)
            else:
                rows.put(key, record)
        except BufferError:  # something still uses the array, so it cannot grow
            self._drop(tree, low)

    def _drop(self, tree: str, low: bytes) -> None:
        del self._latest[tree, low]
        del self._trees[tree][low]
        if not self._trees[tree]:
            del self._trees[tree]

    def forget_tree(self, tree: str) -> None:
        """Drop an index that is being deleted."""
        for low in list(self._trees.get(tree, ())):
            self._drop(tree, low)

    def forget(self) -> None:
        """Drop everything: another process has written, or a transaction was rolled back."""
        self._trees.clear()
        self._latest.clear()

    def kept(self) -> list[tuple[str, Rows]]:
        """All cached rows with their trees, for the consistency check."""
        return [(tree, rows) for (tree, _), rows in self._latest.items()]
