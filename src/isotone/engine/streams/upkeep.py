"""What streams need now and then: new shards for old ones, and the end of records that are a day old.

As on the service, a shard is closed after some hours and its one child goes on, or, where a stream has
taken many records, two children with half of the hashes each. Whoever reads a stream must therefore
finish a shard before its children.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Final

import msgspec

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.streams import registry
from isotone.engine.streams.entries import key, place, time_of
from isotone.engine.streams.registry import Shard, Stream

SHARD_LIFETIME: Final = 4 * 3600  # seconds for which a shard takes records
SHARD_RECORDS: Final = (
    100_000  # records after which shards are split, on the average of a stream's shards
)
OPEN_SHARDS: Final = 16  # shards that are not split any more
SLICE: Final = 500  # records dropped in one transaction


def is_wanted(engine: Engine) -> bool:
    """Whether there is any stream."""
    with engine.reading:
        return next(registry.streams(engine), None) is not None


def step(engine: Engine) -> bool:
    """Do a slice of what is due; False where nothing was."""
    with engine.reading:
        due = any(_is_due(engine, stream) for stream in registry.streams(engine))
    if not due:
        return False
    with engine.writing:
        done = [_keep(engine, stream) for stream in list(registry.streams(engine))]
    return any(done)


def _is_due(engine: Engine, stream: Stream) -> bool:
    shards = registry.shards(engine, stream)
    opened = [shard for shard in shards if shard.last is None]
    return _parts(engine, stream, opened) > 0 or any(
        _is_over(engine, shard) or _old(engine, stream, shard, 1) for shard in shards
    )


def _keep(engine: Engine, stream: Stream) -> bool:
    rolled = _roll(engine, stream)
    trimmed = [_trim(engine, stream, shard) for shard in registry.shards(engine, stream)]
    if not registry.shards(engine, stream):
        registry.drop(engine, stream)
        return True
    return rolled or any(trimmed)


def _roll(engine: Engine, stream: Stream) -> bool:
    """Replace the open shards of a stream, if it is time."""
    opened = registry.open_shards(engine, stream)
    parts = _parts(engine, stream, opened)
    if not parts:
        return False
    now = engine.clock.now()
    children = [
        child for shard in opened for child in registry.replace(engine, stream, shard, parts, now)
    ]
    schema = engine.catalog.table(stream.table).schema
    assert schema.stream is not None
    recording = registry.taking(schema.stream, children)
    engine.catalog.save(msgspec.structs.replace(schema, stream=recording))
    return True


def _parts(engine: Engine, stream: Stream, opened: list[Shard]) -> int:
    """How many children each open shard should have now; 0 where it may go on."""
    if not opened:
        return 0
    begun = min(shard.first for shard in opened)
    taken = registry.last_sequence(engine, stream.tree) - begun
    if taken >= SHARD_RECORDS * len(opened):
        return 2 if 2 * len(opened) <= OPEN_SHARDS else 1
    oldest = min(shard.created for shard in opened)
    return int(engine.clock.now() - oldest >= SHARD_LIFETIME)


def _trim(engine: Engine, stream: Stream, shard: Shard) -> bool:
    """Drop records that are too old, and a closed shard that has no others."""
    old = _old(engine, stream, shard, SLICE)
    for each in old:
        engine.store.delete(stream.tree, each)
    if old:
        trimmed = msgspec.structs.replace(shard, trimmed=place(old[-1])[1])
        registry.save_shard(engine, stream, trimmed)
        return True
    if _is_over(engine, shard) and next(_entries(engine, stream, shard), None) is None:
        registry.forget_shard(engine, stream, shard)
        return True
    return False


def _old(engine: Engine, stream: Stream, shard: Shard, most: int) -> list[bytes]:
    """The keys of the oldest records, as far as they are too old."""
    before = _horizon(engine) * 1000
    oldest = islice(_entries(engine, stream, shard), most)
    return [where for where, _ in takewhile(lambda entry: time_of(entry[1]) <= before, oldest)]


def _entries(engine: Engine, stream: Stream, shard: Shard) -> Iterator[tuple[bytes, bytes]]:
    return engine.store.range(stream.tree, key(shard.number, 0), key(shard.number + 1, 0))


def _is_over(engine: Engine, shard: Shard) -> bool:
    """Whether a shard was closed so long ago that all of its records are too old."""
    return shard.closed is not None and shard.closed <= _horizon(engine)


def _horizon(engine: Engine) -> float:
    return engine.clock.now() - limits.STREAM_RETENTION
