"""The hash that a table's keys begin with, and the ranges of it that parallel scans divide among them.

The hash is the 64-bit BLAKE2b digest of the components of the partition key. It need not be free of
collisions, because those components follow it; it need only spread keys evenly, so that segments are
of one size, and scatter neighbours, so that nobody comes to rely on the order of a Scan.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

HASH_SIZE: Final = 8
_HASHES: Final = 1 << 8 * HASH_SIZE
_empty_hash: Final = blake2b(digest_size=HASH_SIZE).copy  # faster than to set one up each time


def partition_hash(encoded: bytes) -> bytes:
    """The eight bytes that come before the components of a partition key."""
    digest = _empty_hash()
    digest.update(encoded)
    return digest.digest()


def partition_prefix(encoded: bytes) -> bytes:
    """What all keys of one item collection begin with: the hash, then the components."""
    digest = _empty_hash()
    digest.update(encoded)
    return digest.digest() + encoded


def segment_range(segment: int, total: int) -> tuple[bytes, bytes | None]:
    """Between which keys, `low <= key < high`, a segment of a scan lies; None is the end of the table.

    The segments of one total hold every key once, and are as equal as hashes allow.
    """
    low = (segment * _HASHES // total).to_bytes(HASH_SIZE)
    if segment + 1 == total:
        return low, None
    return low, ((segment + 1) * _HASHES // total).to_bytes(HASH_SIZE)
