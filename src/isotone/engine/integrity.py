"""The consistency check: nothing is damaged, items are under their keys, and indexes, counts and streams are right.

It reads every entry once and keeps none, so it needs little memory for a file of any size. Damage does not end it: it is
one more problem, and the check goes on with the next entry or, where a tree cannot be read on, with the next tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from isotone.engine import backups, damage, history, streams, views
from isotone.engine.engine import SYSTEM_TREES, Engine, is_of_region
from isotone.engine.index_entries import Entry
from isotone.engine.layout import Keyspace, item_of, size_of
from isotone.engine.stream_records import last_sequence, position_of, unpack
from isotone.engine.streams import HASHES, Shard, Stream
from isotone.engine.table_indexes import Table
from isotone.errors import DamagedItem, StorageCorrupt
from isotone.storage.interface import NoSuchTree, Store
from isotone.text_table import counted
from isotone.values.size import item_size

Progress = Callable[[str, int], None]
"""Called with a table's name and the number of items checked so far."""

_EVERY = 10_000


def check(engine: Engine, progress: Progress | None = None) -> list[str]:
    """The problems, one message each; empty if there are none. Reads every item and every index entry.

    Reads a snapshot, so other processes may continue to write.
    """
    with engine.reading:
        found = _Check(engine, progress)
        # An entry is damaged once, also if both of its checksums say so.
        return list(dict.fromkeys(found.but_damage(found.problems())))


def check_entries(store: Store) -> list[str]:
    """The problems of a store whose tables are not known: of its structure, and of each entry. Reads everything."""
    problems = store.check()

    def note(error: DamagedItem) -> None:
        problems.append(str(error))

    for tree in store.trees():
        try:
            for _ in store.range(tree, b"", None, on_damage=note):
                pass
        except StorageCorrupt as error:
            problems.append(str(error))
    return problems


class _Check:
    """One run over a region of a database. `damage` has what was met where the structure could still be followed."""

    def __init__(self, engine: Engine, progress: Progress | None) -> None:
        self.engine = engine
        self.progress = progress
        self.damage: list[str] = []
        self.read: set[str] = set()

    def problems(self) -> Iterator[str]:
        engine = self.engine
        yield from self.but_damage(map(self._finding, engine.store.check()))
        yield from self.but_damage(_unknown_trees(self))
        for table in (*engine.catalog, *engine.catalog.creating.values()):
            yield from self.but_damage(_check_table(self, table))
        yield from self.but_damage(_check_cached_vectors(self))
        yield from self.but_damage(_check_streams(self))
        yield from self.but_damage(_check_backups(self))
        for tree in engine.store.trees():
            if tree not in self.read and not is_of_region(tree):
                yield from self.but_damage(_check_entries(self, tree))

    def entries(self, tree: str) -> Iterator[tuple[bytes, bytes]]:
        """The sound entries of a tree; the others are noted."""
        self.read.add(tree)
        return self.engine.store.range(tree, b"", None, on_damage=self._note)

    def _note(self, error: StorageCorrupt) -> None:
        self.damage.append(self._finding(error))

    def _finding(self, problem: StorageCorrupt | str) -> str:
        if isinstance(problem, NoSuchTree):
            return self.missing(problem.tree)
        return damage.finding(problem, getattr(self.engine.store, "path", ""))

    def missing(self, tree: str) -> str:
        """The problem of a tree that is not there."""
        return f"{self.holder(tree)} is missing"

    def holder(self, tree: str) -> str:
        """The table or the index that is in a tree."""
        catalog = self.engine.catalog
        return damage.holder(damage.roles([*catalog, *catalog.creating.values()]).get(tree), tree)

    def but_damage(self, problems: Iterator[str]) -> Iterator[str]:
        """The problems that one part finds, up to where the file itself cannot be read on."""
        try:
            for problem in problems:
                yield problem
                yield from self._noted()
        except StorageCorrupt as error:
            self._note(error)
        yield from self._noted()

    def _noted(self) -> list[str]:
        noted, self.damage = self.damage, []
        return noted


def _check_entries(check: _Check, tree: str) -> Iterator[str]:
    """Read a tree of which nothing is known but the checksums."""
    for _ in check.entries(tree):
        pass
    return iter(())


def _unknown_trees(check: _Check) -> Iterator[str]:
    engine = check.engine
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
        yield check.missing(tree)


def _check_table(check: _Check, table: Table) -> Iterator[str]:
    role = damage.roles([table])[table.tree]
    items = size = 0
    complete = [index for index in table.indexes if index.filled]
    expected = {index.tree: 0 for index in complete}
    for key, record in check.entries(table.tree):
        if not damage.is_readable(record):
            yield str(damage.describe(role, "", table.tree, key))
            continue
        items += 1
        size += size_of(record)
        item = item_of(record)
        where = f"table {table.name}, item {table.schema.key_of(item)}"
        if item_size(item) != size_of(record):
            yield f"{where}: its recorded size is {size_of(record)}, but it has {counted(item_size(item), 'byte')}"
        if table.keyspace.key(item) != key:
            yield f"{where}: it is stored under a key that is not its own"
        for index in complete:
            entry = index.entry(item, key, record)
            if entry is None:
                continue
            expected[index.tree] += 1
            yield from _check_entry(check, index.tree, entry, where)
        if check.progress is not None and items % _EVERY == 0:
            check.progress(table.name, items)
    yield from _check_counts(check, table, items, size, expected)
    yield from _check_history(check, table)
    if check.progress is not None:
        check.progress(table.name, items)


def _check_entry(check: _Check, tree: str, entry: Entry, where: str) -> Iterator[str]:
    """The problem of an index entry, if it has one. A damaged one is met when its tree is read."""
    try:
        if check.engine.store.get(tree, entry.key) != entry.record:
            index = check.holder(tree).partition(": ")[2] or tree
            yield f"{where}: its entry in {index} is missing or outdated"
    except DamagedItem:
        pass


def _check_counts(
    check: _Check, table: Table, items: int, size: int, expected: dict[str, int]
) -> Iterator[str]:
    engine = check.engine
    if engine.counts.of(table.tree) != (items, size):
        number, total = engine.counts.of(table.tree)
        yield (
            f"table {table.name}: its count is {counted(number, 'item')} of {counted(total, 'byte')}, "
            f"but there are {counted(items, 'readable item')} of {counted(size, 'byte')}"
        )
    for index in table.indexes:
        if index.tree not in expected:
            continue
        name = getattr(index, "name", None)
        text = "its index for expiry" if name is None else f"index {name}"
        there, count = sum(1 for _ in check.entries(index.tree)), expected[index.tree]
        if there != count:
            yield f"table {table.name}: {text} has {counted(there, 'readable entry', 'readable entries')} instead of {count}"
        if engine.counts.of(index.tree)[0] != there:
            yield (
                f"table {table.name}: the count of {text} is "
                f"{engine.counts.of(index.tree)[0]}, but it has {counted(there, 'readable entry', 'readable entries')}"
            )


def _check_cached_vectors(check: _Check) -> Iterator[str]:
    """The problems of vectors in memory: each is that of the entry, and no entry is missing."""
    engine = check.engine
    for tree, rows in engine.vectors.kept():
        stored = {
            key: rows.index.vector_of(record)
            for key, record in engine.store.range(tree, rows.low, rows.high)
        }
        if dict(zip(rows.keys, rows.packed(), strict=True)) != stored:
            yield f"{check.holder(tree)}: the vectors in memory are not those of its entries"


def _check_history(check: _Check, table: Table) -> Iterator[str]:
    """The problems of a table's history: each record in it is an item with the key that it is kept for."""
    if table.history is None:
        return
    for position, value in check.entries(table.history):
        change = history.change_in(position, value)
        if change.old and table.keyspace.key(item_of(change.old)) != change.key:
            yield f"table {table.name}: its history has an item under a key that is not its own"


def _check_backups(check: _Check) -> Iterator[str]:
    """The problems of backups: a complete one has the items of which it was made."""
    engine = check.engine
    there = set(engine.store.trees())
    for backup in backups.known(engine):
        if backup.view is None and backup.tree in there:
            yield from _check_backup(check, backup)


def _check_backup(check: _Check, backup: backups.Backup) -> Iterator[str]:
    sizes = [size_of(record) for _, record in check.entries(backup.tree)]
    if (len(sizes), sum(sizes)) != (backup.items, backup.size):
        yield (
            f"backup {backup.name} of table {backup.table.name} has {len(sizes)} readable items of {sum(sizes)} "
            f"bytes instead of {backup.items} of {backup.size}"
        )


def _check_streams(check: _Check) -> Iterator[str]:
    """The problems of a stream: its open shards cover all hashes once, and each record is in its shard."""
    engine = check.engine
    there = set(engine.store.trees())
    for stream in streams.known(engine):
        where = f"stream {stream.label} of table {stream.table}"
        for problem in _check_shards(engine, stream):
            yield f"{where}: {problem}"
        if stream.tree in there:
            for problem in _check_records(check, stream):
                yield f"{where}: {problem}"


def _check_shards(engine: Engine, stream: Stream) -> Iterator[str]:
    opened = streams.open_shards(engine, stream)
    if stream.disabled is not None:
        if opened:
            yield f"it is disabled, but {counted(len(opened), 'shard')} {'is' if len(opened) == 1 else 'are'} open"
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


def _check_records(check: _Check, stream: Stream) -> Iterator[str]:
    engine = check.engine
    shards = {shard.number: shard for shard in streams.shards(engine, stream)}
    keyspace = Keyspace(stream.keys)
    latest = last_sequence(engine, stream.tree)
    for where, value in check.entries(stream.tree):
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
