"""Stream lag: for each shard, the age of the oldest record that nobody has read.

A record counts as read once a GetRecords of this process has returned it to any reader. What other processes read from the
same file is not known, nor what was read before this one began to watch, so only records from then on count.

A reader starts a shard after it has finished its parent, or skipped it. So a shard is finished if any of its descendants has
been read.
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
"""Streams that are looked at; each costs a few reads."""

_MOST_WATCHED: Final = 4096  # streams whose positions are kept


class Watched(msgspec.Struct):
    """Where the readers of a stream are: the number after the last record that was read, by shard.

    A shard that nobody has read counts from `begun` on.
    """

    begun: int = 0
    positions: dict[int, int] = msgspec.field(default_factory=dict)


def watch(engine: Engine) -> None:
    """Notice from now on what is read from the streams of a region."""
    with engine.reading:
        engine.watched_streams = {
            stream.tree: Watched(last_sequence(engine, stream.tree) + 1)
            for stream in _enabled(engine)
        }


def note(engine: Engine, stream: Stream, shard: StreamShard, following: int | None) -> None:
    """A reader got the records of a shard before `following`; None: all of a closed one."""
    known = engine.watched_streams
    if known is None:
        return
    watched = known[stream.tree] = known.pop(stream.tree, Watched())
    if len(known) > _MOST_WATCHED:
        del known[next(iter(known))]  # the one that was read the longest time ago
    end = (shard.last or 0) + 1 if following is None else following
    watched.positions[shard.number] = max(end, watched.positions.get(shard.number, 0))


def lags(engine: Engine) -> list[tuple[str, str, float]]:
    """The lag of each shard that is open, or has records that nobody has read: table, shard, seconds.

    Of the first `MOST_STREAMS` enabled streams, by their tables' names.
    """
    found: list[tuple[str, str, float]] = []
    known = engine.watched_streams
    if known is None:
        return found
    with engine.reading:
        enabled = list(islice(_enabled(engine), MOST_STREAMS))
    for stream in enabled:  # each by itself, so that requests need not wait for all of them
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
    """The shards without those that are finished, and forgets the positions of shards that are gone."""
    known = streams.shards(engine, stream)
    numbers = {shard.number for shard in known}
    for number in watched.positions.keys() - numbers:
        del watched.positions[number]
    begun: set[str | None] = set()  # shards of which a child has been read
    unfinished = []
    for shard in reversed(known):
        if shard.number in watched.positions or shard.id in begun:
            begun.add(shard.parent)
        if shard.id not in begun:
            unfinished.append(shard)
    return reversed(unfinished)


def _time_at(engine: Engine, stream: Stream, shard: StreamShard, start: int) -> int | None:
    """When the first record from a number on was made, in milliseconds; None if there is none."""
    low, high = record_key(shard.number, start), record_key(shard.number + 1, 0)
    first = next(engine.store.range(stream.tree, low, high, on_damage=engine.log_damage), None)
    return None if first is None else time_of(first[1])
