"""Checksums (CRC) of entries: a read that meets damaged data notices it.

Each row of a tree has two CRCs: `key_sum` covers its key, and `row_sum` its key and value. Both include the tree's
name. So an entry cannot pass for one of another tree, nor a value for that of another key, and a key can be checked
alone.

    a get that finds    checks the value, with the key that was asked for: SQLite may have found another
    a get that misses   checks the keys next to the gap: if a key has changed, it is next to where it should be
    a range             checks keys, values, their order, and the keys next to both ends

A row of format 1 has no checksums until the upgrade reaches it (`file_upgrade`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import gt, lt
from struct import Struct
from typing import Any, Final

from isotone.crc import crc32

KeyValue = tuple[bytes, bytes]
"""A key and its value."""

SUM_SIZE: Final = 4
CHUNK: Final = 128  # rows that are checked together
FIRST: Final = 2
CHUNK_SIZE: Final = 64 * 1024  # bytes of such rows, as far as known before they are read
_ASSUMED_SIZE: Final = 4096  # bytes of a row before any was read

_packed = Struct("<I").pack

UNREADABLE: Final = b"\0"
"""Marks an entry that was damaged before it got a checksum: no bytes have this checksum."""


class Sums:
    """The checksums of one tree.

    A sum is the CRC of its bytes, starting from `start`, XOR the tree's number, in little-endian order. Continuing a
    CRC over such a sum always gives `start` again, whatever came before (the residue of CRCs). So a sequence of rows,
    each followed by its sum, has the CRC `start`, and one call checks many rows. A single change in them always changes
    the CRC.
    """

    __slots__ = ("_number", "row_size", "start")

    def __init__(self, tree: str) -> None:
        self._number = crc32(tree.encode())
        self.start: int = crc32(self._number.to_bytes(4, "little"))
        self.row_size: int = _ASSUMED_SIZE  # average of the rows that were read last

    def first_count(self, expected: int | None) -> int:
        """How many rows to read first if the caller takes `expected` rows, or all rows if that is None."""
        most = CHUNK if expected is None else min(CHUNK, expected)
        return max(1, min(most, CHUNK_SIZE // self.row_size))

    def of(self, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        """The sum of a key, and the sum of the key with its value."""
        number = self._number
        so_far = crc32(key, self.start)
        return _packed(so_far ^ number), _packed(crc32(value, so_far) ^ number)

    def cells(self, entries: Iterable[KeyValue]) -> list[bytes]:
        """The key, value and both sums of each entry, in one list."""
        start, number = self.start, self._number  # `of`, inlined
        cells: list[bytes] = []
        for key, value in entries:
            so_far = crc32(key, start)
            row_sum = crc32(value, so_far) ^ number
            cells += (key, value, _packed(so_far ^ number), _packed(row_sum))
        return cells

    def hold(self, *parts: Any) -> bool:
        """Whether the last part is the sum of those before it. Parts of a damaged row can be numbers, texts or None."""
        try:
            return crc32(b"".join(parts), self.start) == self.start and len(parts[-1]) == SUM_SIZE
        except TypeError:
            return False

    def size_of_sound(self, cells: list[Any]) -> int | None:
        """The total bytes of these rows; None if one of them is damaged."""
        try:
            joined = b"".join(cells)
        except TypeError:  # a damaged part that is no longer bytes
            return None
        return len(joined) if crc32(joined, self.start) == self.start else None

    def holds(self, row: Sequence[Any], reached: bytes | None) -> bool:
        """Whether one row, from its key to its sum, is intact. A row without a sum is, if its key is from `reached` on:
        the upgrade has not got there.
        """
        key = row[0]
        if row[-1] is None:
            return reached is not None and type(key) is bytes and key >= reached
        return self.hold(*row)

    def damaged(
        self, rows: Iterator[tuple[Any, ...]], reached: bytes | None, high: bytes | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """The damaged rows (by `holds`), up to the first sound row with a key from `high` on."""
        while chunk := list(islice(rows, CHUNK)):
            if self.size_of_sound([*chain.from_iterable(chunk)]) is None:
                yield from (row for row in chunk if not self.holds(row, reached))
            if high is not None and self.holds(chunk[-1], reached) and chunk[-1][0] >= high:
                return


def are_in_order(keys: Sequence[bytes], *, after: bytes | None, reverse: bool) -> bool:
    """Whether keys rise, or fall if `reverse`, and continue after `after`."""
    if after is not None and (keys[0] >= after if reverse else keys[0] <= after):
        return False
    return all(map(gt if reverse else lt, keys, islice(keys, 1, None)))


def next_count(count: int, size: int) -> int:
    """How many rows to read next, after `count` rows with `size` bytes: eight times as many, or fewer if rows are
    large.
    """
    return max(1, min(CHUNK, 8 * count, CHUNK_SIZE * count // size))
