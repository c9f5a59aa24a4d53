"""Reading a shard in order, a page at a time.

The service's rules: a page has at most 1,000 records and 1 MB. One that reached the end of a closed
shard has nothing after it; in an open shard there is always a next page, which may be empty.
"""

from __future__ import annotations

from typing import NamedTuple

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.streams.entries import Entry, key, place, unpack
from isotone.engine.streams.registry import Shard, Stream


class Page(NamedTuple):
    """Records with their sequence numbers, and where the next page begins, if there can be one."""

    records: list[tuple[int, Entry]]
    next: int | None


def page(engine: Engine, stream: Stream, shard: Shard, start: int, limit: int | None) -> Page:
    """The records of a shard from a sequence number on. Reads at most one record that it leaves."""
    most = limit or limits.STREAM_RECORDS
    records: list[tuple[int, Entry]] = []
    size = 0
    low, high = key(shard.number, start), key(shard.number + 1, 0)
    for where, value in engine.store.range(stream.tree, low, high):
        entry = unpack(value)
        size += entry.size
        if len(records) == most or (records and size > limits.STREAM_PAGE):
            return Page(records, records[-1][0] + 1)
        records.append((place(where)[1], entry))
    if shard.last is not None:
        return Page(records, None)
    return Page(records, records[-1][0] + 1 if records else start)
