"""The checksums of entries: damage is noticed by the read that meets it.

Each row of a tree has two CRCs: `key_sum` of the tree's name and the key, and `value_sum` of these and the value. So an
entry does not pass for one of another tree, a value not for that of another key, and a key can be checked alone.

    a get that finds    checks the value, with the key that was asked for: SQLite may have found another
    a get that misses   checks the keys next to the gap: if a key has changed, it is next to where it should be
    a range             checks keys, values, their order, and the keys next to both ends

A row of format 1 has no checksums until the upgrade reaches it (`file_upgrade`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, Final
from zlib import crc32

Entry = tuple[bytes, bytes]
"""A key and its value."""

Row = tuple[bytes, bytes, int | None, int | None]
"""Key, value, and their checksums; anything, if the row is damaged."""

CHUNK: Final = 64  # rows that are checked together
CHUNK_SIZE: Final = 64 * 1024  # bytes of them, as far as can be told before they are read

UNREADABLE: Final = -1
"""A checksum that no bytes have: that of an entry which was damaged before it got one."""


def seed_of(tree: str) -> int:
    """Where the checksums of a tree begin."""
    return crc32(tree.encode())


def are_intact(rows: Sequence[Row], seed: int) -> bool:
    """Whether all of these rows have their checksums."""
    keys, values, key_sums, value_sums = zip(*rows, strict=True)
    try:
        return (
            tuple(map(crc32, keys, repeat(seed))) == key_sums
            and tuple(map(crc32, values, key_sums)) == value_sums
        )
    except TypeError:  # a key or a value that is no longer bytes
        return False


def is_intact(row: Row, seed: int, reached: bytes | None) -> bool:
    """Whether one row has its checksums; from the key `reached` on, an upgrade has not come to it."""
    key, value, key_sum, value_sum = row
    if key_sum is None or value_sum is None:
        return reached is not None and type(key) is bytes and key >= reached
    return is_sum_of(key, key_sum, seed) and is_sum_of(value, value_sum, key_sum)


def is_sum_of(content: Any, checksum: Any, seed: int) -> bool:
    """Whether bytes have a checksum. A changed row can hold anything: numbers, texts, nothing."""
    return type(content) is bytes and crc32(content, seed) == checksum


def are_in_order(entries: Sequence[Entry], *, after: bytes | None, reverse: bool) -> bool:
    """Whether keys rise, or fall, and go on from `after`."""
    first = entries[0][0]
    if after is not None and (first >= after if reverse else first <= after):
        return False
    if len(entries) == 1:
        return True
    keys = [key for key, _ in entries]
    return sorted(keys, reverse=reverse) == keys


def next_size(rows: Sequence[Row]) -> int:
    """How many rows to read after these: more each time, but no more than some bytes."""
    size = sum(len(row[1]) for row in rows)
    return max(1, min(CHUNK, 8 * len(rows), CHUNK_SIZE * len(rows) // (size or 1)))
