"""Which streams there are, and their shards.

A stream is known by its table and its label, the instant at which it was enabled. Its shards divide the
hashes of partition keys among them. Sequence numbers count the records of one stream, over all shards;
closing a shard takes one too, so that a child begins after everything in its parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from typing import Final

import msgspec

from isotone.engine.engine import STREAMS, Engine
from isotone.engine.schema import KeySchema, StreamSchema, StreamView, TableSchema

HASHES: Final = 1 << 16  # a shard is a range of the first two bytes of a key
_FIRST_SHARDS: Final = 4


class Stream(msgspec.Struct, frozen=True):
    """One stream; times are in seconds, `disabled` is None while it records."""

    table: str
    label: str
    view: StreamView
    tree: str
    keys: KeySchema
    created: float
    disabled: float | None = None


class Shard(msgspec.Struct, frozen=True):
    """Records whose hash is in `low <= hash < high`, with sequence numbers from `first` on.

    A closed shard has `last`, which is above all of its records, and the time at which it was `closed`.
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
_shard = msgspec.json.Decoder(Shard).decode


def enable(engine: Engine, schema: TableSchema, view: StreamView) -> TableSchema:
    """Begin a new stream for a table; the caller saves the schema that comes back."""
    now, label = _new_label(engine, schema.name)
    tree = engine.catalog.new_tree("s")
    engine.store.create_tree(tree)
    stream = Stream(schema.name, label, view, tree, schema.keys, now)
    engine.store.put(STREAMS, _stream_key(schema.name, label), _encode(stream))
    width = HASHES // _FIRST_SHARDS
    ranges = [(low, low + width) for low in range(0, HASHES, width)]
    opened = [_open(engine, stream, each, now) for each in ranges]
    recording = StreamSchema(label, view, tree)
    return msgspec.structs.replace(schema, stream=taking(recording, opened))


def disable(engine: Engine, schema: TableSchema) -> TableSchema:
    """End a table's stream, which stays readable; the caller saves the schema that comes back."""
    assert schema.stream is not None
    stream = find(engine, schema.name, schema.stream.label)
    assert stream is not None
    now = engine.clock.now()
    for shard in open_shards(engine, stream):
        close(engine, stream, shard, now)
    ended = msgspec.structs.replace(stream, disabled=now)
    engine.store.put(STREAMS, _stream_key(stream.table, stream.label), _encode(ended))
    return msgspec.structs.replace(schema, stream=taking(schema.stream, []))


def find(engine: Engine, table: str, label: str) -> Stream | None:
    """The stream of a table with a label."""
    stored = engine.store.get(STREAMS, _stream_key(table, label))
    return None if stored is None else _stream(stored)


def streams(engine: Engine, table: str | None = None) -> Iterator[Stream]:
    """All streams, or those of one table, in the order of tables and labels."""
    low = b"s" if table is None else _stream_key(table, "")
    high = b"t" if table is None else low[:-1] + b"\x01"
    return (_stream(stored) for _, stored in engine.store.range(STREAMS, low, high))


def drop(engine: Engine, stream: Stream) -> None:
    """Forget a stream that has no shards any more."""
    engine.store.delete(STREAMS, _stream_key(stream.table, stream.label))
    engine.store.drop_tree(stream.tree)
    engine.counts.drop(stream.tree)


def shards(engine: Engine, stream: Stream) -> list[Shard]:
    """The shards of a stream, the oldest first."""
    low = _shard_key(stream, 0)
    high = b"h" + stream.tree.encode() + b"\x01"
    return [_shard(stored) for _, stored in engine.store.range(STREAMS, low, high)]


def open_shards(engine: Engine, stream: Stream) -> list[Shard]:
    """The shards that still take records, in the order of their hashes."""
    found = [shard for shard in shards(engine, stream) if shard.last is None]
    return sorted(found, key=lambda shard: shard.low)


def shard(engine: Engine, stream: Stream, number: int) -> Shard | None:
    """One shard by its number."""
    stored = engine.store.get(STREAMS, _shard_key(stream, number))
    return None if stored is None else _shard(stored)


def save_shard(engine: Engine, stream: Stream, shard: Shard) -> None:
    """Record what has become of a shard."""
    engine.store.put(STREAMS, _shard_key(stream, shard.number), _encode(shard))


def forget_shard(engine: Engine, stream: Stream, shard: Shard) -> None:
    """Drop a shard of which every record has been dropped."""
    engine.store.delete(STREAMS, _shard_key(stream, shard.number))


def close(engine: Engine, stream: Stream, shard: Shard, now: float) -> None:
    """Let a shard take no more records."""
    last = next_sequence(engine, stream.tree)
    save_shard(engine, stream, msgspec.structs.replace(shard, last=last, closed=now))


def replace(engine: Engine, stream: Stream, shard: Shard, parts: int, now: float) -> list[Shard]:
    """Close a shard and divide its hashes among so many children."""
    close(engine, stream, shard, now)
    bounds = [shard.low + (shard.high - shard.low) * part // parts for part in range(parts + 1)]
    return [_open(engine, stream, each, now, shard.id) for each in pairwise(bounds)]


def taking(recording: StreamSchema, opened: list[Shard]) -> StreamSchema:
    """What a table's schema says of its stream when these shards take the records."""
    return msgspec.structs.replace(
        recording,
        shards=tuple(shard.number for shard in opened),
        lows=tuple(shard.low for shard in opened),
    )


def next_sequence(engine: Engine, tree: str) -> int:
    """Take the next sequence number of a stream, in the open transaction.

    The numbers taken are counted where the items of tables are: written once a transaction, however
    many there are, and undone with it.
    """
    engine.counts.add(tree, 1, 0)
    return engine.counts.of(tree)[0]


def last_sequence(engine: Engine, tree: str) -> int:
    """The latest sequence number that was taken; 0 before the first."""
    return engine.counts.of(tree)[0]


def _open(
    engine: Engine, stream: Stream, hashes: tuple[int, int], now: float, parent: str | None = None
) -> Shard:
    first = last_sequence(engine, stream.tree) + 1
    newest = next(
        engine.store.range(
            STREAMS, _shard_key(stream, 0), _shard_key(stream, 2**32 - 1), reverse=True
        ),
        None,
    )
    number = 1 if newest is None else _shard(newest[1]).number + 1
    shard = Shard(number, _shard_id(stream, number, now), *hashes, first, now, parent)
    save_shard(engine, stream, shard)
    return shard


def _shard_id(stream: Stream, number: int, now: float) -> str:
    """An id as the service makes them: the time in milliseconds, and something to tell apart."""
    name = f"{stream.table}/{stream.label}/{number}".encode()
    return f"shardId-{int(now * 1000):020d}-{blake2b(name, digest_size=4).hexdigest()}"


def _new_label(engine: Engine, table: str) -> tuple[float, str]:
    """Now, as a label that no earlier stream of the table has."""
    milliseconds = int(round(engine.clock.now(), 3) * 1000)
    while find(engine, table, _label(milliseconds)) is not None:
        milliseconds += 1
    return milliseconds / 1000, _label(milliseconds)


def _label(milliseconds: int) -> str:
    """The label of a stream: the instant at which it was enabled."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}"


def _stream_key(table: str, label: str) -> bytes:
    return b"s" + table.encode() + b"\x00" + label.encode()


def _shard_key(stream: Stream, number: int) -> bytes:
    return b"h" + stream.tree.encode() + b"\x00" + number.to_bytes(4, "big")
