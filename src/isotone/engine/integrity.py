"""The consistency check: items are stored under their keys, and indexes, counts and streams are right.

It reads every entry once and keeps none, so it needs little memory for a file of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from isotone.engine import backups, history, streams, views
from isotone.engine.engine import SYSTEM_TREES, Engine, is_of_region
from isotone.engine.layout import Keyspace, item_of, size_of
from isotone.engine.stream_records import last_sequence, position_of, unpack
from isotone.engine.streams import HASHES, Shard, Stream
from isotone.engine.table_indexes import Table
from isotone.values.size import item_size

Progress = Callable[[str, int], None]
"""Called with a table's name and the number of items checked so far."""

_EVERY = 10_000


def check(engine: Engine, progress: Progress | None = None) -> list[str]:
    """The problems, one message each; empty if there are none. Reads every item and every index entry.

    Reads a snapshot, so other processes may continue to write.
    """
    with engine.reading:
        problems = list(engine.store.check())
        problems.extend(_unknown_trees(engine))
        for table in (*engine.catalog, *engine.catalog.creating.values()):
            problems.extend(_check_table(engine, table, progress))
        problems.extend(_check_cached_vectors(engine))
        problems.extend(_check_streams(engine))
        problems.extend(_check_backups(engine))
    return problems


def _unknown_trees(engine: Engine) -> Iterator[str]:
    known = {*SYSTEM_TREES, *(stream.tree for stream in streams.known(engine))}
    for table in (*engine.catalog, *engine.catalog.creating.values()):
        known.update(table.trees)
    for view in views.opened(engine):
        known.update(views.trees(view))
    known.update(backup.tree for backup in backups.known(engine))
    there = {tree for tree in engine.store.trees() if not is_of_region(tree)}
    for tree in sorted(there - known):
        yield f"tree {tree} belongs to no table"
    for tree in sorted(known - there):
        yield f"tree {tree} is missing"


def _check_table(engine: Engine, table: Table, progress: Progress | None) -> Iterator[str]:
    items = size = 0
    complete = [index for index in table.indexes if index.filled]
    expected = {index.tree: 0 for index in complete}
    for key, record in engine.store.range(table.tree, b"", None):
        items += 1
        size += size_of(record)
        item = item_of(record)
        where = f"table {table.name}, item {table.schema.key_of(item)}"
        if item_size(item) != size_of(record):
            yield f"{where}: its recorded size is {size_of(record)}, but it has {item_size(item)} bytes"
        if table.keyspace.key(item) != key:
            yield f"{where}: it is stored under a key that is not its own"
        for index in complete:
            entry = index.entry(item, key, record)
            if entry is None:
                continue
            expected[index.tree] += 1
            if engine.store.get(index.tree, entry.key) != entry.record:
                yield f"{where}: its entry in {index.tree} is missing or outdated"
        if progress is not None and items % _EVERY == 0:
            progress(table.name, items)
    yield from _check_counts(engine, table, items, size, expected)
    yield from _check_history(engine, table)
    if progress is not None:
        progress(table.name, items)


def _check_counts(
    engine: Engine, table: Table, items: int, size: int, expected: dict[str, int]
) -> Iterator[str]:
    if engine.counts.of(table.tree) != (items, size):
        yield (
            f"table {table.name}: its count is {engine.counts.of(table.tree)}, "
            f"but there are {items} items of {size} bytes"
        )
    for tree, count in expected.items():
        there = sum(1 for _ in engine.store.range(tree, b"", None))
        if there != count:
            yield f"table {table.name}: index {tree} has {there} entries instead of {count}"
        if engine.counts.of(tree)[0] != there:
            yield (
                f"table {table.name}: the count of index {tree} is "
                f"{engine.counts.of(tree)[0]}, but it has {there} entries"
            )


def _check_cached_vectors(engine: Engine) -> Iterator[str]:
    """The problems of vectors in memory: each is that of the entry, and no entry is missing."""
    for tree, rows in engine.vectors.kept():
        stored = {
            key: rows.index.vector_of(record)
            for key, record in engine.store.range(tree, rows.low, rows.high)
        }
        if dict(zip(rows.keys, rows.packed(), strict=True)) != stored:
            yield f"vector index {tree}: the vectors in memory are not those of its entries"


def _check_history(engine: Engine, table: Table) -> Iterator[str]:
    """The problems of a table's history: each record in it is an item with the key that it is kept for."""
    if table.history is None:
        return
    for position, value in engine.store.range(table.history, b"", None):
        change = history.change_in(position, value)
        if change.old and table.keyspace.key(item_of(change.old)) != change.key:
            yield f"table {table.name}: its history has an item under a key that is not its own"


def _check_backups(engine: Engine) -> Iterator[str]:
    """The problems of backups: a complete one has the items of which it was made."""
    there = set(engine.store.trees())
    for backup in backups.known(engine):
        if backup.view is None and backup.tree in there:
            yield from _check_backup(engine, backup)


def _check_backup(engine: Engine, backup: backups.Backup) -> Iterator[str]:
    sizes = [size_of(record) for _, record in engine.store.range(backup.tree, b"", None)]
    if (len(sizes), sum(sizes)) != (backup.items, backup.size):
        yield (
            f"backup {backup.name} of table {backup.table.name} has {len(sizes)} items of {sum(sizes)} "
            f"bytes instead of {backup.items} of {backup.size}"
        )


def _check_streams(engine: Engine) -> Iterator[str]:
    """The problems of a stream: its open shards cover all hashes once, and each record is in its shard."""
    there = set(engine.store.trees())
    for stream in streams.known(engine):
        where = f"stream {stream.label} of table {stream.table}"
        problems = [*_check_shards(engine, stream)]
        if stream.tree in there:
            problems += _check_records(engine, stream)
        yield from (f"{where}: {problem}" for problem in problems)


def _check_shards(engine: Engine, stream: Stream) -> Iterator[str]:
    opened = streams.open_shards(engine, stream)
    if stream.disabled is not None:
        if opened:
            yield f"it is disabled, but {len(opened)} shards are open"
        return
    bounds = [0, *(shard.high for shard in opened)]
    if bounds != [*(shard.low for shard in opened), HASHES]:
        yield "its open shards do not cover all hashes exactly once"
    table = engine.catalog.tables.get(stream.table)
    recording = None if table is None else table.stream
    expected = streams.recording(stream, opened)
    if recording is None or (recording.shards, recording.lows) != (expected.shards, expected.lows):
        yield "its table lists other shards than the open ones"
    elif recording != expected:
        yield "it is enabled, but its table writes to another stream"


def _check_records(engine: Engine, stream: Stream) -> Iterator[str]:
    shards = {shard.number: shard for shard in streams.shards(engine, stream)}
    keyspace = Keyspace(stream.keys)
    latest = last_sequence(engine, stream.tree)
    for where, value in engine.store.range(stream.tree, b"", None):
        number, sequence = position_of(where)
        shard = shards.get(number)
        if shard is None:
            yield f"record {sequence} is in shard {number}, which does not exist"
        elif not shard.first <= sequence <= (shard.last or latest) or sequence <= shard.trimmed:
            yield f"record {sequence} is outside the sequence numbers of shard {number}"
        elif not _is_of(shard, keyspace.key(msgspec.json.decode(unpack(value).keys))):
            yield f"record {sequence} is in shard {number}, but its key belongs in another shard"


def _is_of(shard: Shard, key: bytes) -> bool:
    return shard.low <= int.from_bytes(key[:2], "big") < shard.high
