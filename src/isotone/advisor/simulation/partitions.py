"""Models how DynamoDB's partitions serve a load, according to its documentation.

A partition serves 3,000 read units and 1,000 write units a second, and stores 10 GB. A key is in one partition, by a
hash. When several keys make a partition too busy, DynamoDB gives them partitions of their own after some minutes
(adaptive capacity); a single key cannot be divided. Unused provisioned capacity of the last 300 seconds is kept for a
burst; it lifts the limit of the table, not that of a partition.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

READS: Final = 3000.0
"""Read units per second that one partition serves."""
WRITES: Final = 1000.0
"""Write units per second that one partition serves."""
PARTITION_BYTES: Final = 10 * 10**9
FIRST: Final = 4
"""Partitions of a new table on demand: it serves 12,000 read units or 4,000 write units a second at once."""


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """Units per second."""

    reads: float = 0.0
    writes: float = 0.0

    def __add__(self, other: PartitionLoad) -> PartitionLoad:
        return PartitionLoad(self.reads + other.reads, self.writes + other.writes)

    def __mul__(self, factor: float) -> PartitionLoad:
        return PartitionLoad(self.reads * factor, self.writes * factor)

    @property
    def use(self) -> float:
        """The load relative to one partition's limit; above 1 the partition throttles."""
        return max(self.reads / READS, self.writes / WRITES)

    @property
    def beyond(self) -> PartitionLoad:
        """The load above the limit of one partition."""
        return PartitionLoad(max(self.reads - READS, 0.0), max(self.writes - WRITES, 0.0))

    @property
    def units(self) -> float:
        return self.reads + self.writes


def number_of(load: PartitionLoad, stored: float) -> int:
    """The partitions of an on-demand table with this evenly spread load and this many bytes."""
    by_load = load.reads / READS + load.writes / WRITES
    return max(FIRST, math.ceil(by_load), math.ceil(stored / PARTITION_BYTES))


def partition_of(key: str, partitions: int) -> int:
    """The partition of a key: each partition has an equal range of hash values."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") * partitions >> 64


def placed(
    keys: Sequence[tuple[str, PartitionLoad]], rest: PartitionLoad, partitions: int
) -> list[PartitionLoad]:
    """The load of each partition: known keys are placed by their hash, the rest is spread evenly."""
    loads = [rest * (1 / partitions)] * partitions
    for key, load in keys:
        at = partition_of(key, partitions)
        loads[at] += load
    return loads
