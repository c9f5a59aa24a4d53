"""Stream lag (isotone_stream_lag_seconds): for each shard, the age of the oldest unread record.

A record counts as read once a GetRecords of this process has returned it to any reader. Reads by other processes of the
same file are not known, nor reads from before this process began to watch; so only later records count.

A reader begins a shard after it has finished its parent, or has skipped it. So a shard counts as finished if any of its
descendants has been read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from isotone.engine import streams
from isotone.engine.engine import Engine
from isotone.engine.stream_records import last_sequence, record_key, time_of
from isotone.engine.streams import Stream, StreamShard
from isotone.errors import StorageCorrupt

MOST_STREAMS: Final = 200
"""How many streams are measured; each costs a few reads."""

_MOST_WATCHED: Final = 4096  # streams whose reading positions are kept


class Watched(msgspec.Struct):
    """Reading positions in a stream: for each shard, the number after the last record that was read.

    A shard that nobody has read counts from number `begun` on.
    """

    begun: int = 0
    positions: dict[int, int] = msgspec.field(default_factory=dict)


def watch(engine: Engine) -> None:
    """Start to track reads of a region's streams."""
    with engine.reading:
        engine.watched_streams = {
            stream.tree: Watched(last_sequence(engine, stream.tree) + 1)
            for stream in _enabled(engine)
        }


def note(engine: Engine, stream: Stream, shard: StreamShard, following: int | None) -> None:
    """A reader received the records of a shard before `following`; None means all records of a closed shard.

    The caller needs no lock: each step leaves the positions whole, whatever other threads do between two of them.
    """
    known = engine.watched_streams
    if known is None:
        return
    watched = known.setdefault(stream.tree, Watched())
    known[stream.tree] = known.pop(stream.tree, watched)
    if len(known) > _MOST_WATCHED:
        oldest, *_ = known  # the one that was last read the longest time ago
        known.pop(oldest, None)
    end = (shard.last or 0) + 1 if following is None else following
    watched.positions[shard.number] = max(end, watched.positions.get(shard.number, 0))


def lags(engine: Engine) -> list[tuple[str, str, float]]:
    """The lag of each shard that is open or has unread records: table, shard, seconds.

    Covers the first `MOST_STREAMS` enabled streams by table name.
    """
    found: list[tuple[str, str, float]] = []
    known = engine.watched_streams
    if known is None:
        return found
    with engine.reading:
        enabled = list(islice(_enabled(engine), MOST_STREAMS))
    # the lock is taken for each separately, so that requests do not wait for all of them
    for stream in enabled:
        try:
            with engine.reading:
                watched = known.get(stream.tree) or Watched()
                found += _lags_of(engine, stream, watched)
        except StorageCorrupt as error:
            engine.log_damage(error)
    return found


def _lags_of(engine: Engine, stream: Stream, watched: Watched) -> Iterator[tuple[str, str, float]]:
    now = engine.clock.now()
    for shard in _unfinished(engine, stream, watched):
        start = max(shard.first, watched.positions.get(shard.number, watched.begun))
        oldest = _time_at(engine, stream, shard, start)
        if oldest is not None:
            yield stream.table, shard.id, max(0.0, now - oldest / 1000)
        elif shard.last is None:
            yield stream.table, shard.id, 0.0


def _enabled(engine: Engine) -> Iterator[Stream]:
    known = streams.known(engine, on_damage=engine.log_damage)
    return (stream for stream in known if stream.disabled is None)


def _unfinished(engine: Engine, stream: Stream, watched: Watched) -> Iterator[StreamShard]:
    """The shards that are not finished. Also forgets the positions of shards that no longer exist."""
    known = streams.shards(engine, stream)
    numbers = {shard.number for shard in known}
    for number in set(watched.positions) - numbers:
        watched.positions.pop(number, None)
    begun: set[str | None] = set()  # shards with a child that has been read
    unfinished = []
    for shard in reversed(known):
        if shard.number in watched.positions or shard.id in begun:
            begun.add(shard.parent)
        if shard.id not in begun:
            unfinished.append(shard)
    return reversed(unfinished)


def _time_at(engine: Engine, stream: Stream, shard: StreamShard, start: int) -> int | None:
    """The time (ms) of the first record from a number on; None if there is none."""
    low, high = record_key(shard.number, start), record_key(shard.number + 1, 0)
    first = next(engine.store.range(stream.tree, low, high, on_damage=engine.log_damage), None)
    return None if first is None else time_of(first[1])
