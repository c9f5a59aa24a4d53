"""Pages of a Query or Scan: where one ends (Limit, 1 MB), where the next one starts, parallel segments.

The service's rules: a page ends after `Limit` items have been read, or when it has read more
than 1 MB, both counted before the filter. A page that ended early has the position (`last`); a page that
reached the end of the range does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, chain, islice

import msgspec

from isotone import limits
from isotone.codec import segment_range
from isotone.engine.engine import Engine
from isotone.engine.layout import (
    SIZE_BYTES,
    Bounds,
    body_of,
    encode_item,
    item_of,
    size_of,
    unpack_size,
)
from isotone.engine.table_indexes import SecondaryIndex, Table
from isotone.values.attribute_validation import Item

Entries = Iterable[tuple[bytes, bytes]]

_QUICK_RECORDS = 100  # that are filtered or cut down in at most some milliseconds
_QUICK_SIZE = 16 * limits.KB  # bytes of them
_QUICK_COPIES = 2000  # records that are copied as they are in some milliseconds
_FIRST_CHUNK = 8  # records read before their size is known


class Source:
    """A table, or one of its indexes, that can be read in order.

    `key_names` are the attributes that identify an entry: the index's keys, then the table's.
    """

    __slots__ = ("engine", "index", "key_names", "keyspace", "table", "tree")

    def __init__(self, engine: Engine, table: Table, index: SecondaryIndex | None = None) -> None:
        self.engine = engine
        self.table = table
        self.index = index
        entries = table if index is None else index
        self.tree = entries.tree
        self.keyspace = entries.keyspace
        self.key_names = entries.key_names

    def last_key(self, record: bytes) -> Item:
        """The `LastEvaluatedKey` of a record."""
        item = item_of(record)
        return {name: item[name] for name in self.key_names}

    def position(self, start: Item) -> bytes:
        """The key of the entry that a `LastEvaluatedKey` names."""
        key = self.table.keyspace.key(start)
        return key if self.index is None else self.index.key(start, key)

    def entries(
        self, bounds: Bounds, start: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries within bounds, from just after `start`, in key order or in reverse."""
        low, high = bounds
        if start is not None:
            if reverse:
                high = start if high is None else min(high, start)
            else:
                low = max(low, start + b"\x00")
        if high is not None and low >= high:
            return iter(())
        return self.engine.store.range(self.tree, low, high, reverse=reverse)

    def whole_item(self, record: bytes) -> bytes:
        """The table's record of the item of an index entry. Reads one item."""
        key = self.table.keyspace.key(item_of(record))
        return self.engine.store.get(self.table.tree, key) or record


def segment_bounds(segment: int | None, total: int | None) -> Bounds:
    """The part of a table or index that one worker of a parallel scan reads."""
    if segment is None or total is None:
        return b"", None
    return segment_range(segment, total)


class Page(msgspec.Struct):
    """The result of reading a range. `size` is the bytes read, `last` the record at which it stopped.

    `records` are those that are not items yet: `Reader.evaluate` makes items of them, which may take more than some
    milliseconds if `is_long`.
    """

    records: list[bytes] = []
    items: list[msgspec.Raw] = []
    count: int = 0
    scanned: int = 0
    size: int = 0
    last: bytes | None = None
    is_long: bool = False


class Reader(msgspec.Struct, frozen=True, gc=False):
    """How to convert the entries of a page.

    `expand` turns an entry's record into the item's own (for a local index that lacks attributes);
    `matches` is the filter, `project` cuts the item down, `counting` keeps no items at all.
    """

    limit: int | None = None
    expand: Callable[[bytes], bytes] | None = None
    matches: Callable[[Item], bool] | None = None
    project: Callable[[Item], Item] | None = None
    counting: bool = False

    def page(self, entries: Entries) -> Page:
        """Read one page, and make items of it."""
        page = self.read(entries)
        self.evaluate(page)
        return page

    def read(self, entries: Entries) -> Page:
        """Read the records of one page: all that needs the store."""
        records, size = _read(iter(entries), self.limit)
        scanned = len(records)
        is_full = scanned == self.limit or size > limits.QUERY_PAGE
        last = records[-1] if is_full else None
        if self.expand is not None:
            records = [self.expand(record) for record in records]
        if self.matches is None and self.project is None:
            is_long = scanned > _QUICK_COPIES
        else:
            is_long = scanned > _QUICK_RECORDS or size > _QUICK_SIZE
        return Page(records, [], 0, scanned, size, last, is_long)

    def evaluate(self, page: Page) -> None:
        """Make items of the records of a page. Parses an item only if the filter or projection needs it.

        It uses neither the store nor the engine, so any thread may do it, without the engine's lock.
        """
        records = page.records
        if self.matches is None:
            if self.counting:
                page.count = page.scanned
                return
            if self.project is None:
                items = [msgspec.Raw(record[SIZE_BYTES:]) for record in records]
            else:
                items = [msgspec.Raw(encode_item(self.project(item_of(one)))) for one in records]
        else:
            items = self._matching(records, self.matches)
        page.count = len(items)
        if not self.counting:
            page.items = items

    def _matching(self, records: list[bytes], matches: Callable[[Item], bool]) -> list[msgspec.Raw]:
        """The items that pass the filter, in the form of the response."""
        items = []
        for record in records:
            item = item_of(record)
            if matches(item):
                shown = None if self.project is None else encode_item(self.project(item))
                items.append(msgspec.Raw(shown or body_of(record)))
        return items


def _read(entries: Iterator[tuple[bytes, bytes]], limit: int | None) -> tuple[list[bytes], int]:
    """The records of one page, and their size in bytes.

    Reads in chunks; a chunk has as many records as fit if they are as large as those read so far.
    """
    records: list[bytes] = []
    size = 0
    wanted = limit or limits.QUERY_PAGE  # more cannot fit, because no record is empty
    chunk = min(wanted, _FIRST_CHUNK)
    while chunk:
        read = [record for _, record in islice(entries, chunk)]
        total = sum(chain.from_iterable(map(unpack_size, read)))
        if size + total > limits.QUERY_PAGE:
            sizes = accumulate(map(size_of, read), initial=size)
            fitting = sum(1 for before in islice(sizes, len(read)) if before <= limits.QUERY_PAGE)
            return records + read[:fitting], size + sum(map(size_of, read[:fitting]))
        records += read
        size += total
        if len(read) < chunk:
            break
        chunk = min(wanted - len(records), 1 + (limits.QUERY_PAGE - size) * len(records) // size)
    return records, size
