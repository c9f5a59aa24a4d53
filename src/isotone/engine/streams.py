"""DynamoDB Streams: enabling and disabling, shards, shard splits, and trimming after 24 hours.

A stream records the changes of a table for 24 hours (`stream_records`). It is identified by its table and its label,
the time at which it was enabled. It remains when it is disabled or its table is deleted.

Each shard has a range of the hashes of partition keys, so all changes of an item are in one shard, in order. Sequence
numbers count the records of one stream over all shards. Closing a shard takes a number, too, so a child begins after
everything in its parent.

As on the service, a shard is closed after some hours and replaced by one child, or by two children with half of the
hashes each if the stream has received many records. A reader must finish a shard before it reads its children.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice, pairwise, takewhile
from typing import Final

import msgspec

from isotone import limits
from isotone.engine.engine import STREAMS, Engine
from isotone.engine.stream_records import (
    last_sequence,
    next_sequence,
    position_of,
    record_key,
    time_of,
)
from isotone.engine.table_schema import KeySchema, Policy, StreamSchema, StreamView, TableSchema
from isotone.storage.interface import OnDamage

HASHES: Final = 1 << 16  # a shard is a range of the first two bytes of a key
SHARD_LIFETIME: Final = 4 * 3600  # seconds that a shard stays open
SHARD_RECORDS: Final = 100_000  # average records per shard above which a stream's shards are split
OPEN_SHARDS: Final = 16  # a stream with this many open shards does not split any more
SLICE: Final = 500  # records dropped in one transaction


class Stream(msgspec.Struct, frozen=True):
    """One stream. Times are in seconds; `disabled` is None while the stream is enabled."""

    table: str
    label: str
    view: StreamView
    tree: str
    keys: KeySchema
    created: float
    disabled: float | None = None
    policy: Policy | None = None


class StreamShard(msgspec.Struct, frozen=True):
    """Records whose hash is in `low <= hash < high`, with sequence numbers from `first` on.

    A closed shard has `last`, a sequence number after all its records, and the time at which it was `closed`.
    Records up to `trimmed` have been dropped.
    """

    number: int
    id: str
    low: int
    high: int
    first: int
    created: float
    parent: str | None = None
    last: int | None = None
    closed: float | None = None
    trimmed: int = 0


_encode = msgspec.json.Encoder().encode
_stream = msgspec.json.Decoder(Stream).decode
_shard = msgspec.json.Decoder(StreamShard).decode


# Streams


def enable(engine: Engine, schema: TableSchema, view: StreamView) -> TableSchema:
    """Start a new stream for a table; the caller saves the returned schema."""
    now, label = _new_label(engine, schema.name)
    tree = engine.catalog.new_tree("s")
    engine.store.create_tree(tree)
    stream = Stream(schema.name, label, view, tree, schema.keys, now)
    save(engine, stream)
    opened = [
        _open(engine, stream, hashes, now) for hashes in _divided(0, HASHES, engine.stream_shards)
    ]
    return msgspec.structs.replace(schema, stream=recording(stream, opened))


def disable(engine: Engine, schema: TableSchema) -> TableSchema:
    """Disable a table's stream, which remains readable; the caller saves the returned schema."""
    assert schema.stream is not None
    stream = find(engine, schema.name, schema.stream.label)
    assert stream is not None
    now = engine.clock.now()
    for shard in open_shards(engine, stream):
        close(engine, stream, shard, now)
    ended = msgspec.structs.replace(stream, disabled=now)
    save(engine, ended)
    return msgspec.structs.replace(schema, stream=recording(stream, []))


def save(engine: Engine, stream: Stream) -> None:
    """Record a new or changed stream."""
    engine.store.put(STREAMS, _stream_key(stream.table, stream.label), _encode(stream))


def find(engine: Engine, table: str, label: str) -> Stream | None:
    """The stream of a table with a label."""
    stored = engine.store.get(STREAMS, _stream_key(table, label))
    return None if stored is None else _stream(stored)


def known(
    engine: Engine, table: str | None = None, *, on_damage: OnDamage | None = None
) -> Iterator[Stream]:
    """All streams, or those of one table, ordered by table and label; `on_damage` is that of `Store.range`."""
    low = b"s" if table is None else _stream_key(table, "")
    high = b"t" if table is None else low[:-1] + b"\x01"
    entries = engine.store.range(STREAMS, low, high, on_damage=on_damage)
    return (_stream(stored) for _, stored in entries)


def recording(stream: Stream, opened: list[StreamShard]) -> StreamSchema:
    """The part of a table's schema for a stream with these open shards."""
    return StreamSchema(
        stream.label,
        stream.view,
        stream.tree,
        shards=tuple(shard.number for shard in opened),
        lows=tuple(shard.low for shard in opened),
    )


def _drop(engine: Engine, stream: Stream) -> None:
    """Remove a stream that has no shards left."""
    engine.store.delete(STREAMS, _stream_key(stream.table, stream.label))
    engine.store.drop_tree(stream.tree)
    engine.counts.drop(stream.tree)


def _new_label(engine: Engine, table: str) -> tuple[float, str]:
    """The current time as a label that no earlier stream of the table has."""
    milliseconds = int(round(engine.clock.now(), 3) * 1000)
    while find(engine, table, _label(milliseconds)) is not None:
        milliseconds += 1
    return milliseconds / 1000, _label(milliseconds)


def _label(milliseconds: int) -> str:
    """The label of a stream: the time at which it was enabled."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}"


def _stream_key(table: str, label: str) -> bytes:
    return b"s" + table.encode() + b"\x00" + label.encode()


# Shards


def shards(engine: Engine, stream: Stream) -> list[StreamShard]:
    """The shards of a stream, oldest first."""
    low = _shard_key(stream, 0)
    high = b"h" + stream.tree.encode() + b"\x01"
    return [_shard(stored) for _, stored in engine.store.range(STREAMS, low, high)]


def open_shards(engine: Engine, stream: Stream) -> list[StreamShard]:
    """The open shards, ordered by hash."""
    opened = [shard for shard in shards(engine, stream) if shard.last is None]
    return sorted(opened, key=lambda shard: shard.low)


def shard(engine: Engine, stream: Stream, number: int) -> StreamShard | None:
    """One shard by its number."""
    stored = engine.store.get(STREAMS, _shard_key(stream, number))
    return None if stored is None else _shard(stored)


def _open(
    engine: Engine, stream: Stream, hashes: tuple[int, int], now: float, parent: str | None = None
) -> StreamShard:
    first = last_sequence(engine, stream.tree) + 1
    low, high = _shard_key(stream, 0), _shard_key(stream, 2**32 - 1)
    newest = next(engine.store.range(STREAMS, low, high, reverse=True), None)
    number = 1 if newest is None else _shard(newest[1]).number + 1
    shard = StreamShard(number, _shard_id(stream, number, now), *hashes, first, now, parent)
    _save(engine, stream, shard)
    return shard


def close(engine: Engine, stream: Stream, shard: StreamShard, now: float) -> None:
    """Close a shard for new records."""
    last = next_sequence(engine, stream.tree)
    _save(engine, stream, msgspec.structs.replace(shard, last=last, closed=now))


def _split(
    engine: Engine, stream: Stream, shard: StreamShard, parts: int, now: float
) -> list[StreamShard]:
    """Close a shard and divide its hashes among a number of children."""
    close(engine, stream, shard, now)
    ranges = _divided(shard.low, shard.high, parts)
    return [_open(engine, stream, hashes, now, shard.id) for hashes in ranges]


def _divided(low: int, high: int, parts: int) -> Iterator[tuple[int, int]]:
    """Split a range of hashes into equal parts."""
    return pairwise(low + (high - low) * part // parts for part in range(parts + 1))


def _save(engine: Engine, stream: Stream, shard: StreamShard) -> None:
    engine.store.put(STREAMS, _shard_key(stream, shard.number), _encode(shard))


def _shard_id(stream: Stream, number: int, now: float) -> str:
    """An id in the service's form: the time in milliseconds, then eight digits.

    The number makes ids sort in the order of opening, so that a list of shards has the same order in every run.
    """
    name = f"{stream.table}/{stream.label}".encode()
    digits = f"{number & 0xFFFF:04x}{blake2b(name, digest_size=2).hexdigest()}"
    return f"shardId-{int(now * 1000):020d}-{digits}"


def _shard_key(stream: Stream, number: int) -> bytes:
    return b"h" + stream.tree.encode() + b"\x00" + number.to_bytes(4, "big")


# Maintenance: replace shards, and drop records after a day


def exist(engine: Engine) -> bool:
    """Whether there is any stream."""
    with engine.reading:
        return next(known(engine), None) is not None


def maintain(engine: Engine) -> bool:
    """Do a slice of the work that is due; False if there was none."""
    with engine.reading:
        due = any(_is_due(engine, stream) for stream in known(engine))
    if not due:
        return False
    with engine.writing:
        done = [_keep_up(engine, stream) for stream in list(known(engine))]
    return any(done)


def _is_due(engine: Engine, stream: Stream) -> bool:
    all_shards = shards(engine, stream)
    opened = [shard for shard in all_shards if shard.last is None]
    return _parts(engine, stream, opened) > 0 or any(
        _is_over(engine, shard) or _old(engine, stream, shard, 1) for shard in all_shards
    )


def _keep_up(engine: Engine, stream: Stream) -> bool:
    rolled = _roll(engine, stream)
    trimmed = [_trim(engine, stream, shard) for shard in shards(engine, stream)]
    if not shards(engine, stream):
        _drop(engine, stream)
        return True
    return rolled or any(trimmed)


def _roll(engine: Engine, stream: Stream) -> bool:
    """Replace the open shards of a stream, if they have been open long enough."""
    opened = open_shards(engine, stream)
    parts = _parts(engine, stream, opened)
    if not parts:
        return False
    now = engine.clock.now()
    children = [child for shard in opened for child in _split(engine, stream, shard, parts, now)]
    schema = engine.catalog.tables[stream.table].schema
    engine.catalog.save(msgspec.structs.replace(schema, stream=recording(stream, children)))
    return True


def _parts(engine: Engine, stream: Stream, opened: list[StreamShard]) -> int:
    """How many children should replace each open shard now; 0 if it may stay open."""
    if not opened:
        return 0
    begun = min(shard.first for shard in opened)
    taken = last_sequence(engine, stream.tree) - begun
    if taken >= SHARD_RECORDS * len(opened):
        return 2 if 2 * len(opened) <= OPEN_SHARDS else 1
    oldest = min(shard.created for shard in opened)
    return int(engine.clock.now() - oldest >= SHARD_LIFETIME)


def _trim(engine: Engine, stream: Stream, shard: StreamShard) -> bool:
    """Drop records that are too old, and then closed shards without records."""
    old = _old(engine, stream, shard, SLICE)
    for key in old:
        engine.store.delete(stream.tree, key)
    if old:
        trimmed = position_of(old[-1])[1]
        _save(engine, stream, msgspec.structs.replace(shard, trimmed=trimmed))
        return True
    if _is_over(engine, shard) and next(_entries(engine, stream, shard), None) is None:
        engine.store.delete(STREAMS, _shard_key(stream, shard.number))
        return True
    return False


def _old(engine: Engine, stream: Stream, shard: StreamShard, most: int) -> list[bytes]:
    """The keys of the records that are too old, oldest first."""
    before = _horizon(engine) * 1000
    oldest = islice(_entries(engine, stream, shard), most)
    return [key for key, _ in takewhile(lambda entry: time_of(entry[1]) <= before, oldest)]


def _entries(engine: Engine, stream: Stream, shard: StreamShard) -> Iterator[tuple[bytes, bytes]]:
    low, high = record_key(shard.number, 0), record_key(shard.number + 1, 0)
    return engine.store.range(stream.tree, low, high, on_damage=engine.log_damage)


def _is_over(engine: Engine, shard: StreamShard) -> bool:
    """Whether a shard was closed so long ago that all of its records are too old."""
    return shard.closed is not None and shard.closed <= _horizon(engine)


def _horizon(engine: Engine) -> float:
    return engine.clock.now() - limits.STREAM_RETENTION
