"""Whether streams are what they should be: shards divide the hashes, and each record is in its shard."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from isotone.engine.engine import Engine
from isotone.engine.keyspace import Keyspace
from isotone.engine.streams import registry
from isotone.engine.streams.entries import place, unpack
from isotone.engine.streams.registry import HASHES, Shard, Stream


def trees(engine: Engine) -> set[str]:
    """The trees that hold records."""
    return {stream.tree for stream in registry.streams(engine)}


def check(engine: Engine) -> Iterator[str]:
    """What is wrong, in words. Reads every record once."""
    there = set(engine.store.trees())
    for stream in registry.streams(engine):
        where = f"stream {stream.label} of table {stream.table}"
        problems = [*_check_shards(engine, stream)]
        if stream.tree in there:
            problems += _check_records(engine, stream)
        yield from (f"{where}: {problem}" for problem in problems)


def _check_shards(engine: Engine, stream: Stream) -> Iterator[str]:
    opened = registry.open_shards(engine, stream)
    if stream.disabled is not None:
        if opened:
            yield f"is disabled, but {len(opened)} shards are open"
        return
    bounds = [0, *(shard.high for shard in opened)]
    if bounds != [*(shard.low for shard in opened), HASHES]:
        yield "its open shards do not divide the hashes"
    table = engine.catalog.find(stream.table)
    recording = None if table is None else table.stream
    if recording is None or recording != registry.taking(recording, opened):
        yield "its table does not know its open shards"
    elif (recording.label, recording.tree) != (stream.label, stream.tree):
        yield "is enabled, but its table writes to another"


def _check_records(engine: Engine, stream: Stream) -> Iterator[str]:
    shards = {shard.number: shard for shard in registry.shards(engine, stream)}
    keyspace = Keyspace(stream.keys)
    latest = registry.last_sequence(engine, stream.tree)
    for where, value in engine.store.range(stream.tree, b"", None):
        number, sequence = place(where)
        shard = shards.get(number)
        if shard is None:
            yield f"record {sequence} is in shard {number}, which does not exist"
        elif not shard.first <= sequence <= (shard.last or latest) or sequence <= shard.trimmed:
            yield f"record {sequence} is not of shard {number}'s time"
        elif not _is_of(shard, keyspace.key(msgspec.json.decode(unpack(value).keys))):
            yield f"record {sequence} is in shard {number}, but its key belongs in another"


def _is_of(shard: Shard, key: bytes) -> bool:
    return shard.low <= int.from_bytes(key[:2], "big") < shard.high
