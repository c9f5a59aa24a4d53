"""Global tables: last-writer-wins stamps (later time, then greater region), and the outbox of writes to other regions.

    stamps   item key                             → time in µs (8) · region
    outbox   region · 0 · number (8)              → time sent in µs (8) · stamp time (8) · length of key (4) · key · record
             0 · region                           → the key that the copy of a new replica has reached

A stamp orders the writes of an item over all regions: the later time wins, and of equal times the greater region. A
local write always gets a later stamp than the write it replaces. The stamp of a deleted item stays, so that an older
write that arrives late does not bring the item back. An outbox entry without a record is a deletion.

All of this is written in the transaction of the write; `replication` delivers the outbox.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from isotone.engine.engine import Engine
from isotone.engine.table_indexes import StoredTable
from isotone.values.attribute_validation import Item
from isotone.values.size import item_size

_TIME: Final = struct.Struct(">Q")
_HEAD: Final = struct.Struct(">QQI")
_MICROSECONDS: Final = 1_000_000
LEGACY: Final = "2017.11.29"
CURRENT: Final = "2019.11.21"


class Stamp(NamedTuple):
    """When and where an item was last written; the greater stamp wins."""

    time: int
    region: str


NEVER: Final = Stamp(0, "")


class OutboundWrite(NamedTuple):
    """A write to send: its key in the outbox, its time of sending, the time of its stamp, and the item's key and
    record.
    """

    outbox_key: bytes
    sent: int
    time: int
    key: bytes
    record: bytes


def stamp_of(engine: Engine, table: StoredTable, key: bytes) -> Stamp:
    """The stamp of an item's last write; `NEVER` if it was not written since the table has replicas."""
    assert table.replication is not None
    stored = engine.store.get(table.replication.stamps, key)
    if stored is None:
        return NEVER
    return Stamp(int.from_bytes(stored[:8], "big"), stored[8:].decode())


def wins(engine: Engine, table: StoredTable, key: bytes, stamp: Stamp) -> bool:
    """Whether a write of another region wins over the last write in this region."""
    return stamp > stamp_of(engine, table, key)


def next_stamp(engine: Engine, table: StoredTable, key: bytes) -> Stamp:
    """The stamp for a local write now."""
    return Stamp(max(now(engine), stamp_of(engine, table, key).time + 1), engine.region)


def now(engine: Engine) -> int:
    """The time in microseconds."""
    return int(engine.clock.now() * _MICROSECONDS)


def shown(table: StoredTable, item: Item, size: int, stamp: Stamp) -> tuple[Item, int]:
    """An item as version 2017.11.29 shows it: with the attributes of replication."""
    assert table.replication is not None
    if table.replication.version != LEGACY:
        return item, size
    seconds, rest = divmod(stamp.time, _MICROSECONDS)
    text = f"{seconds}.{rest:06d}".rstrip("0").rstrip(".")
    item = {
        **item,
        "aws:rep:deleting": {"BOOL": False},
        "aws:rep:updatetime": {"N": text},
        "aws:rep:updateregion": {"S": stamp.region},
    }
    return item, item_size(item)


def record(engine: Engine, table: StoredTable, key: bytes, record: bytes, stamp: Stamp) -> None:
    """Record the stamp of a write; a local write is also sent to the other regions. `record` is empty for a deletion."""
    replication = table.replication
    assert replication is not None
    stamped = _TIME.pack(stamp.time) + stamp.region.encode()
    engine.store.put(replication.stamps, key, stamped)
    if stamp.region != engine.region:
        return
    entry = _HEAD.pack(now(engine), stamp.time, len(key)) + key + record
    for region in replication.regions:
        if region != engine.region:
            # In the count of an outbox, the items are the waiting entries, and the size is the last number.
            engine.counts.add(replication.outbox, 1, 1)
            number = engine.counts.of(replication.outbox)[1]
            outbox_key = _outbox(region) + _TIME.pack(number)
            engine.store.put(replication.outbox, outbox_key, entry)
    engine.home.has_undelivered = True


def waiting(engine: Engine, table: StoredTable, region: str) -> Iterator[OutboundWrite]:
    """The writes that a region has not received yet, in order."""
    assert table.replication is not None
    low = _outbox(region)
    for outbox_key, value in engine.store.range(table.replication.outbox, low, low[:-1] + b"\x01"):
        sent, time, length = _HEAD.unpack_from(value)
        key_end = _HEAD.size + length
        yield OutboundWrite(outbox_key, sent, time, value[_HEAD.size : key_end], value[key_end:])


def forget(engine: Engine, table: StoredTable, entries: list[OutboundWrite]) -> None:
    """Remove entries that have been sent."""
    assert table.replication is not None
    for entry in entries:
        engine.store.delete(table.replication.outbox, entry.outbox_key)
    engine.counts.add(table.replication.outbox, -len(entries), 0)


def count(engine: Engine, table: StoredTable) -> int:
    """How many writes are waiting to be sent to any region."""
    return 0 if table.replication is None else engine.counts.of(table.replication.outbox)[0]


# The copy of a new replica


def set_copied(engine: Engine, table: StoredTable, region: str, key: bytes | None) -> None:
    """Record the key that the copy to a region has reached; None when all items are copied."""
    assert table.replication is not None
    if key is None:
        engine.store.delete(table.replication.outbox, b"\x00" + region.encode())
    else:
        engine.store.put(table.replication.outbox, b"\x00" + region.encode(), key)


def copying(engine: Engine, table: StoredTable) -> dict[str, bytes]:
    """The regions that items are still being copied to, with the keys reached."""
    if table.replication is None:
        return {}
    copied = engine.store.range(table.replication.outbox, b"\x00", b"\x01")
    return {outbox_key[1:].decode(): key for outbox_key, key in copied}


def _outbox(region: str) -> bytes:
    return region.encode() + b"\x00"
