"""Compares two states of a table, and stores the differences, in the order of the keys, in a database file of its own.

Both sides are read once, in order. Differences are numbered and stored in chunks, so that a page can be read from any
number on: of all differences, of one kind, or of those with one changed attribute. Nothing is held in memory. An entry
has only the key; the items are read from the snapshots, or from a copy of the current items.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from isotone.backends.embedded import Database
from isotone.errors import UsageError
from isotone.moving import KeyDifference, Progress, Stopped
from isotone.moving.ordered_comparing import OrderedItem, ordered_differences
from isotone.tables.batches import BatchWriter, put
from isotone.tables.definition import TableDefinition
from isotone.tables.description import read_description
from isotone.tables.pace import Pace
from isotone.tables.progress import Meter
from isotone.values.types import Item
from isotone.workbench.snapshot_taking import keys_alone

NOW: Final = "now"
"""The table in a comparison's own file that has the current items: the differing ones, or all."""

KINDS: Final = ("added", "removed", "changed")
ALL: Final = "all"

_LISTS: Final = "lists"
_ENTRIES_A_CHUNK: Final = 64
_NUMBERS_A_CHUNK: Final = 1000
_LONG_NAME: Final = 200
_ATTRIBUTES: Final = 24  # attributes whose changes have a list of their own
_CHUNKS_WRITTEN: Final = 25  # chunks that are written at once
_ITEMS_WRITTEN: Final = 500
_BYTES_WRITTEN: Final = 4 << 20


class Side(NamedTuple):
    """One state of the table, and where it is stored. `table` is None if the table did not exist."""

    database: Database
    table: str | None

    def item(self, key: Item) -> Item | None:
        """An item in this state."""
        if self.table is None:
            return None
        request = {"TableName": self.table, "Key": key}
        return self.database.execute("GetItem", request).get("Item")


class DifferenceRow(NamedTuple):
    """One difference: its number, its kind, and both items."""

    number: int
    kind: str
    key: Item
    before: Item | None
    after: Item | None


class DifferenceCounts(msgspec.Struct):
    """The counts of a comparison. `attributes` has the number of items in which each attribute changed."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    before: int = 0
    after: int = 0
    attributes: dict[str, int] = {}

    @property
    def all(self) -> int:
        """The number of differing items."""
        return self.added + self.removed + self.changed

    @property
    def same(self) -> int:
        """The number of items that are equal on both sides."""
        return self.before - self.removed - self.changed


class _DifferenceKey(msgspec.Struct, array_like=True):
    kind: str
    key: dict[str, Any]


class _Chunk(NamedTuple):
    """A part of a list; it is written when it is full."""

    number: int
    entries: list[Any]


_encode: Final = msgspec.json.Encoder().encode
_entries: Final = msgspec.json.Decoder(list[_DifferenceKey]).decode
_numbers: Final = msgspec.json.Decoder(list[int]).decode


class SnapshotComparison:
    """The differences between two states of a table, in a file of its own (`database`)."""

    def __init__(self, database: Database, definition: TableDefinition) -> None:
        self.counts: DifferenceCounts = DifferenceCounts()
        self.key_names: tuple[str, ...] = definition.table.key.names
        self._database = database
        self._definition = definition
        self._before = self._after = Side(database, None)
        self._writer = BatchWriter(database, _LISTS, Pace())
        self._open: dict[str, _Chunk] = {}
        self._chunks: list[Item] = []
        database.execute("CreateTable", _LISTS_TABLE)

    def run(
        self,
        before: Side,
        after: Side,
        report: Callable[[Progress], object],
        stop: threading.Event,
        *,
        keep_after: bool = False,
    ) -> None:
        """Compare both sides. With `keep_after`, copy the differing items of `after`, which may be written to."""
        kept = _Kept(self._database, self._definition) if keep_after else None
        self._before = before
        self._after = after if kept is None else Side(self._database, NOW)
        meter = Meter("compare", self._definition.name, of_items=_items(before) + _items(after))

        def noted(pages: Iterator[list[OrderedItem]], side: str) -> Iterator[OrderedItem]:
            for page in pages:
                setattr(self.counts, side, getattr(self.counts, side) + len(page))
                meter.add(len(page))
                report(meter.progress())
                if stop.is_set():
                    raise Stopped
                yield from page

        with _frozen(before) as mine, _frozen(after) as theirs:
            found = ordered_differences(
                noted(mine, "before"), noted(theirs, "after"), self.key_names
            )
            for difference in found:
                self._add(difference)
                if kept is not None and difference.target is not None:
                    kept.add(difference.target)
        for name, chunk in self._open.items():
            self._write(name, chunk)
        self._open = {}
        self._flush()
        if kept is not None:
            kept.flush()

    # Writing

    def _add(self, found: KeyDifference) -> None:
        kind = _kind_of(found)
        number = self.counts.all
        setattr(self.counts, kind, getattr(self.counts, kind) + 1)
        self._append(ALL, _DifferenceKey(kind, found.key), _ENTRIES_A_CHUNK)
        self._append(kind, number, _NUMBERS_A_CHUNK)
        if kind == "changed":
            counts = self.counts.attributes
            for name in found.attributes:
                if name in counts or len(counts) < _ATTRIBUTES:
                    counts[name] = counts.get(name, 0) + 1
                    self._append(f"={name}", number, _NUMBERS_A_CHUNK)

    def _append(self, name: str, entry: Any, size: int) -> None:
        chunk = self._open.setdefault(name, _Chunk(0, []))
        chunk.entries.append(entry)
        if len(chunk.entries) == size:
            self._write(name, chunk)
            self._open[name] = _Chunk(chunk.number + 1, [])

    def _write(self, name: str, chunk: _Chunk) -> None:
        text = _encode(chunk.entries).decode()
        self._chunks.append({**_chunk_key(name, chunk.number), "entries": {"S": text}})
        if len(self._chunks) == _CHUNKS_WRITTEN:
            self._flush()

    def _flush(self) -> None:
        self._writer.write([put(item) for item in self._chunks])
        self._chunks = []

    # Reading

    def size_of(self, name: str) -> int:
        """The number of differences in a list: all, one kind, or with a changed attribute (`=NAME`)."""
        if name == ALL or name in KINDS:
            size: int = getattr(self.counts, name)
            return size
        return self.counts.attributes.get(name.removeprefix("="), 0)

    def numbers(self, name: str, at: int, count: int) -> list[int]:
        """Part of a list, as numbers among all differences."""
        count = min(count, self.size_of(name) - at)
        if count <= 0:
            return []
        if name == ALL:
            return list(range(at, at + count))
        found: list[int] = []
        for chunk in range(at // _NUMBERS_A_CHUNK, (at + count - 1) // _NUMBERS_A_CHUNK + 1):
            found += _numbers(self._chunk(name, chunk))
        start = at % _NUMBERS_A_CHUNK
        return found[start : start + count]

    def rows(self, numbers: Sequence[int]) -> Iterator[DifferenceRow]:
        """Differences by number, one after the other, because their items may be large."""
        chunks: dict[int, list[_DifferenceKey]] = {}
        for number in numbers:
            if not 0 <= number < self.counts.all:
                raise UsageError(f"there is no difference {number}; there are {self.counts.all}")
            chunk, place = divmod(number, _ENTRIES_A_CHUNK)
            if chunk not in chunks:
                chunks = {chunk: _entries(self._chunk(ALL, chunk))}
            entry = chunks[chunk][place]
            before = None if entry.kind == "added" else self._before.item(entry.key)
            after = None if entry.kind == "removed" else self._after.item(entry.key)
            yield DifferenceRow(number, entry.kind, entry.key, before, after)

    def find(self, name: str, text: str, at: int, most: int) -> int | None:
        """The position in a list, from `at` on, of the first key that contains a text; None if none of `most` does."""
        end = min(self.size_of(name), at + most)
        for start in range(at, end, _NUMBERS_A_CHUNK):
            numbers = self.numbers(name, start, min(_NUMBERS_A_CHUNK, end - start))
            loaded, entries = -1, list[_DifferenceKey]()
            for place, number in enumerate(numbers):
                chunk, within = divmod(number, _ENTRIES_A_CHUNK)
                if chunk != loaded:
                    loaded, entries = chunk, _entries(self._chunk(ALL, chunk))
                values = entries[within].key.values()
                if any(text in next(iter(value.values())).lower() for value in values):
                    return start + place
        return None

    def _chunk(self, name: str, number: int) -> str:
        request = {"TableName": _LISTS, "Key": _chunk_key(name, number)}
        found = self._database.execute("GetItem", request).get("Item")
        return "[]" if found is None else str(found["entries"]["S"])


_LISTS_TABLE: Final = {
    "TableName": _LISTS,
    "KeySchema": [
        {"AttributeName": "list", "KeyType": "HASH"},
        {"AttributeName": "chunk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "list", "AttributeType": "S"},
        {"AttributeName": "chunk", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


def _chunk_key(name: str, number: int) -> Item:
    # A name has up to 64 KB, a partition key 2 KB.
    text = name if len(name) < _LONG_NAME else blake2b(name.encode(), digest_size=16).hexdigest()
    return {"list": {"S": text}, "chunk": {"N": str(number)}}


class _Kept:
    """Copies the current items that differ into the comparison's file."""

    def __init__(self, database: Database, definition: TableDefinition) -> None:
        database.execute("CreateTable", keys_alone(definition, NOW))
        self._writer = BatchWriter(database, NOW, Pace())
        self._items: list[msgspec.Raw] = []
        self._size = 0

    def add(self, item: Item) -> None:
        """Copy an item."""
        json = _encode(item)
        self._items.append(msgspec.Raw(json))
        self._size += len(json)
        if len(self._items) == _ITEMS_WRITTEN or self._size > _BYTES_WRITTEN:
            self.flush()

    def flush(self) -> None:
        """Write the remaining items."""
        self._writer.write([put(item) for item in self._items])
        self._items, self._size = [], 0


def _kind_of(found: KeyDifference) -> str:
    if found.source is None:
        return "added"
    return "removed" if found.target is None else "changed"


def _items(side: Side) -> int:
    if side.table is None:
        return 0
    return read_description(side.database, side.table).item_count


@contextmanager
def _frozen(side: Side) -> Iterator[Iterator[list[OrderedItem]]]:
    """The pages of a snapshot of one side."""
    if side.table is None:
        yield iter(())
        return
    with side.database.frozen([side.table]) as pages_of:
        yield pages_of(side.table)
