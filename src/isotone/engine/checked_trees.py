"""What the consistency check verifies in each kind of tree: items, index entries, counts, stream records, backups.

    read         the problems of each entry of a part of the tree; in `TreeFindings`, what is to be compared in the end
    conclude     the problems of the whole tree: its counts, and how many entries it should have
    look_again   the problems of the entries of a part that are in buckets that differ

Parts can be read in any order and by several processes; their findings are added up. No entry is looked up while a tree
is read, so pages are read only in key order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from isotone.engine import damage, history, streams
from isotone.engine.backups import Backup
from isotone.engine.engine import Engine
from isotone.engine.entry_digests import EntryDigests, bucket_of
from isotone.engine.index_entries import IndexEntry, TableIndex
from isotone.engine.layout import Keyspace, body_of, item_of, size_of
from isotone.engine.stream_records import last_sequence, position_of, unpack
from isotone.engine.streams import Stream, StreamShard
from isotone.engine.table_indexes import ExpiryIndex, StoredTable
from isotone.errors import DamagedItem
from isotone.text_table import pluralized
from isotone.values.attribute_validation import Item

Entries = Iterator[tuple[bytes, bytes]]
Suspects = Mapping[str, frozenset[int]]
"""The buckets of each index in which the entries are not the expected ones."""


class TreeFindings:
    """The findings in one or several parts of a tree.

    `first` is the first key of a part, `following` the first key after it; None if there is none. `is_whole` is False
    if the tree could not be read to its end. `expected` has the entries that the items should have in each index.
    """

    __slots__ = (
        "entries",
        "expected",
        "first",
        "following",
        "is_whole",
        "items",
        "problems",
        "size",
    )

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.is_whole: bool = True
        self.first: bytes | None = None
        self.following: bytes | None = None
        self.items: int = 0
        self.size: int = 0
        self.entries: EntryDigests | None = None
        self.expected: dict[str, EntryDigests] = {}

    def add(self, other: TreeFindings) -> None:
        """Add the findings of another part."""
        self.problems += other.problems
        self.is_whole = self.is_whole and other.is_whole
        self.items += other.items
        self.size += other.size
        if other.entries is not None:
            self.entries = self.entries or EntryDigests()
            self.entries.add_all(other.entries)
        for tree, digests in other.expected.items():
            self.expected.setdefault(tree, EntryDigests()).add_all(digests)


FoundIn = Callable[[str], TreeFindings | None]
"""The findings in a tree; None if they are not known."""


class CheckedTree:
    """A tree with any contents: reading it verifies the checksums."""

    def __init__(self, tree: str, table: str | None = None) -> None:
        self.tree = tree
        self.table = table

    def read(self, entries: Entries, found: TreeFindings) -> Iterator[str]:
        for _ in entries:
            pass
        return iter(())

    def conclude(self, found_in: FoundIn) -> Iterator[str]:
        return iter(())

    def look_again(self, entries: Entries, suspects: Suspects) -> Iterator[str]:
        return iter(())


class CheckedItems(CheckedTree):
    """The items of a table: each has its stored size and is under its own key, and their count is right."""

    def __init__(self, engine: Engine, table: StoredTable) -> None:
        super().__init__(table.tree, table.name)
        self._engine = engine
        self._table = table
        self._role = damage.roles([table])[table.tree]
        self._indexes = [index for index in table.indexes if index.filled]

    def read(self, entries: Entries, found: TreeFindings) -> Iterator[str]:
        found.expected = {index.tree: EntryDigests() for index in self._indexes}
        wanted = [(index.entry, found.expected[index.tree].add) for index in self._indexes]
        key_of = self._table.keyspace.key
        for key, record in entries:
            held = damage.item_in(record)
            if held is None:
                yield str(damage.describe(self._role, "", self.tree, key))
                continue
            item, size = held
            recorded = size_of(record)
            found.items += 1
            found.size += recorded
            if size != recorded:
                yield f"{self._named(item)}: its recorded size is {recorded}, but it has {pluralized(size, 'byte')}"
            if key_of(item) != key:
                yield f"{self._named(item)}: it is stored under a key that is not its own"
            for entry_of, add in wanted:
                entry = entry_of(item, key, record)
                if entry is not None:
                    add(entry.key, entry.record)

    def _named(self, item: Item) -> str:
        return f"table {self._table.name}, item {self._table.schema.key_of(item)}"

    def conclude(self, found_in: FoundIn) -> Iterator[str]:
        found = found_in(self.tree)
        number, total = self._engine.counts.of(self.tree)
        if found is not None and (number, total) != (found.items, found.size):
            yield (
                f"table {self._table.name}: its count is {pluralized(number, 'item')} of {pluralized(total, 'byte')}, "
                f"but there are {pluralized(found.items, 'readable item')} of {pluralized(found.size, 'byte')}"
            )

    def look_again(self, entries: Entries, suspects: Suspects) -> Iterator[str]:
        indexes = [index for index in self._indexes if index.tree in suspects]
        for key, record in entries:
            held = damage.item_in(record)
            if held is None:
                continue
            for index in indexes:
                entry = index.entry(held[0], key, record)
                if entry is None or bucket_of(entry.key, entry.record) not in suspects[index.tree]:
                    continue
                if not self._is_there(index.tree, entry):
                    yield f"{self._named(held[0])}: its entry in {_named(index)} is missing or outdated"

    def _is_there(self, tree: str, entry: IndexEntry) -> bool:
        """Whether an index has an entry. A damaged entry counts: it is reported when its tree is read."""
        try:
            return self._engine.store.get(tree, entry.key) == entry.record
        except DamagedItem:
            return True


class CheckedEntries(CheckedTree):
    """The entries of an index: exactly those of the table's items, and their count is right."""

    def __init__(self, engine: Engine, table: StoredTable, index: TableIndex) -> None:
        super().__init__(index.tree, table.name)
        self._engine = engine
        self._table = table
        self._index = index
        self._role = damage.roles([table])[index.tree]

    def read(self, entries: Entries, found: TreeFindings) -> Iterator[str]:
        found.entries = EntryDigests()
        add = found.entries.add
        for key, record in entries:
            add(key, record)
        return iter(())

    def conclude(self, found_in: FoundIn) -> Iterator[str]:
        found, items = found_in(self.tree), found_in(self._table.tree)
        if found is None or found.entries is None or items is None:
            return
        there, expected = found.entries.count, items.expected[self.tree].count
        number, _ = self._engine.counts.of(self.tree)
        entries = pluralized(there, "readable entry", "readable entries")
        where, index = f"table {self._table.name}", _named(self._index)
        if there != expected:
            yield f"{where}: {index} has {entries} instead of {expected}"
        if number != there:
            yield f"{where}: the count of {index} is {number}, but it has {entries}"

    def suspects(self, found_in: FoundIn) -> frozenset[int]:
        """The buckets in which the entries are not those that the items should have."""
        found, items = found_in(self.tree), found_in(self._table.tree)
        if found is None or found.entries is None or items is None:
            return frozenset()
        return found.entries.differing(items.expected[self.tree])

    def look_again(self, entries: Entries, suspects: Suspects) -> Iterator[str]:
        buckets = suspects[self.tree]
        for key, record in entries:
            if bucket_of(key, record) in buckets:
                yield from self._problem(key, record)

    def _problem(self, key: bytes, record: bytes) -> Iterator[str]:
        """The problem of an entry that no item should have. An outdated entry is reported with its item."""
        where = f"table {self._table.name}: {_named(self._index)} has an entry"
        item_key = self._item_key(key, record)
        if item_key is None:
            yield f"{where} that is of no item: its key is {key.hex()}"
            return
        own = self._table.keyspace.key(item_key)
        try:
            stored = self._engine.store.get(self._table.tree, own)
        except DamagedItem:
            return  # reported when its tree is read
        held = None if stored is None else damage.item_in(stored)
        if stored is None:
            yield f"{where} of item {item_key}, which does not exist"
        elif held is not None:
            entry = self._index.entry(held[0], own, stored)
            if entry is None or entry.key != key:
                yield f"{where} of item {item_key} that the item does not have"

    def _item_key(self, key: bytes, record: bytes) -> Item | None:
        if isinstance(self._index, ExpiryIndex):
            return self._table.keyspace.item_key(body_of(record))
        return damage.item_key(self._role, key)


def _named(index: TableIndex) -> str:
    name = getattr(index, "name", None)
    return "its index for expiry" if name is None else f"index {name}"


class CheckedHistory(CheckedTree):
    """A table's history: each record is an item with the key that it was recorded for."""

    def __init__(self, tree: str, table: StoredTable) -> None:
        super().__init__(tree, table.name)
        self._table = table

    def read(self, entries: Entries, found: TreeFindings) -> Iterator[str]:
        key_of = self._table.keyspace.key
        for position, value in entries:
            change = history.change_in(position, value)
            if change.old and key_of(item_of(change.old)) != change.key:
                yield f"table {self._table.name}: its history has an item under a key that is not its own"


class CheckedBackup(CheckedTree):
    """A backup: a complete one has exactly the items of the table at that moment."""

    def __init__(self, backup: Backup) -> None:
        super().__init__(backup.tree, backup.table.name)
        self._backup = backup

    def read(self, entries: Entries, found: TreeFindings) -> Iterator[str]:
        for _, record in entries:
            found.items += 1
            found.size += size_of(record)
        return iter(())

    def conclude(self, found_in: FoundIn) -> Iterator[str]:
        backup, found = self._backup, found_in(self.tree)
        if found is not None and (found.items, found.size) != (backup.items, backup.size):
            yield (
                f"backup {backup.name} of table {backup.table.name} has {found.items} readable items of {found.size} "
                f"bytes instead of {backup.items} of {backup.size}"
            )


class CheckedRecords(CheckedTree):
    """The records of a stream: each is in its shard."""

    def __init__(self, engine: Engine, stream: Stream) -> None:
        super().__init__(stream.tree, stream.table)
        self._engine = engine
        self._stream = stream

    def read(self, entries: Entries, found: TreeFindings) -> Iterator[str]:
        stream = self._stream
        shards = {shard.number: shard for shard in streams.shards(self._engine, stream)}
        key_of = Keyspace(stream.keys).key
        latest = last_sequence(self._engine, stream.tree)
        label = f"stream {stream.label} of table {stream.table}"
        for where, value in entries:
            number, sequence = position_of(where)
            shard = shards.get(number)
            if shard is None:
                yield f"{label}: record {sequence} is in shard {number}, which does not exist"
            elif not shard.first <= sequence <= (shard.last or latest) or sequence <= shard.trimmed:
                yield f"{label}: record {sequence} is outside the sequence numbers of shard {number}"
            elif not _is_of(shard, key_of(msgspec.json.decode(unpack(value).keys))):
                yield f"{label}: record {sequence} is in shard {number}, but its key belongs in another shard"


def _is_of(shard: StreamShard, key: bytes) -> bool:
    return shard.low <= int.from_bytes(key[:2], "big") < shard.high
