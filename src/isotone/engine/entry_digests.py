"""Compares an index with its table in the consistency check: sums of hashes in buckets, a few kilobytes for any size.

The check reads the table in its order and adds up the expected entries, then reads the index in its order and adds up
the actual ones. Sums do not depend on the order, so several processes can compute parts of them, and nothing is looked
up. Each entry is in a bucket by its digest. If an entry is missing, outdated or superfluous, the sums of its bucket
differ, and the check looks up only the entries of that bucket.

Digests have 64 bits (BLAKE2b). The chance that a difference in a bucket goes unnoticed is one in 2⁵⁴.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

_SIZE: Final = 8
_BUCKETS: Final = 1024


class EntryDigests:
    """The digests of any number of entries. An entry is a key and its record."""

    __slots__ = ("count", "sums")

    def __init__(self) -> None:
        self.count: int = 0
        self.sums: dict[int, int] = {}

    def add(self, key: bytes, record: bytes) -> None:
        """Add an entry."""
        self.count += 1
        digest = _digest(key, record)
        bucket = digest % _BUCKETS
        self.sums[bucket] = self.sums.get(bucket, 0) + digest

    def add_all(self, others: EntryDigests) -> None:
        """Add the entries of others."""
        self.count += others.count
        for bucket, amount in others.sums.items():
            self.sums[bucket] = self.sums.get(bucket, 0) + amount

    def differing(self, others: EntryDigests) -> frozenset[int]:
        """The buckets whose entries differ."""
        buckets = self.sums.keys() | others.sums.keys()
        return frozenset(each for each in buckets if self.sums.get(each) != others.sums.get(each))


def bucket_of(key: bytes, record: bytes) -> int:
    """The bucket of an entry."""
    return _digest(key, record) % _BUCKETS


def _digest(key: bytes, record: bytes) -> int:
    # The size of the key marks where the record begins.
    return int.from_bytes(blake2b(key + record, digest_size=_SIZE).digest()) ^ len(key)
