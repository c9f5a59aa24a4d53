"""Pagination of Query and Scan: where a page ends (Limit, 1 MB), LastEvaluatedKey, ExclusiveStartKey, segments.

The service's rules: a page ends after `Limit` items, or when it has read more than 1 MB, both counted before the
filter. A page that ended early has a position (`last`); a page that reached the end of the range has none.

A page of many small items is read in parts (`RecordReader.read` called repeatedly); other threads may read and write
between them. Each part is a snapshot, and no item is read twice. The page as a whole is not a snapshot, as on the
service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from operator import itemgetter

import msgspec

from isotone import limits
from isotone.codec import segment_range
from isotone.effort import LARGE_PIECE, give_way
from isotone.engine.engine import Engine
from isotone.engine.layout import (
    SIZE_BYTES,
    Bounds,
    body_of,
    encode_item,
    item_of,
    size_of,
    total_size,
)
from isotone.engine.table_indexes import SecondaryIndex, StoredTable
from isotone.values.attribute_validation import Item

_body: Callable[[bytes], bytes] = itemgetter(
    slice(SIZE_BYTES, None)
)  # faster than a loop of slices
_QUICK_RECORDS = 100  # records that are filtered or projected within some milliseconds
_QUICK_NODES = 5000  # nodes of a filter, over all those records
_QUICK_SIZE = 16 * limits.KB  # bytes of those records
_QUICK_COPIES = 2000  # records that are copied unchanged within some milliseconds
_PART = 2000  # records that are read at once, within some milliseconds
_FETCHED_PART = 200  # the same, if each record must be fetched from the table


class OrderedSource:
    """A table or one of its indexes, readable in key order.

    `key_names` are the attributes that identify an entry: the index's keys, then the table's.
    """

    __slots__ = ("engine", "index", "key_names", "keyspace", "table", "tree")

    def __init__(
        self, engine: Engine, table: StoredTable, index: SecondaryIndex | None = None
    ) -> None:
        self.engine = engine
        self.table = table
        self.index = index
        entries = table if index is None else index
        self.tree = entries.tree
        self.keyspace = entries.keyspace
        self.key_names = entries.key_names

    def is_current(self) -> bool:
        """Whether the table and its index still have the same definitions."""
        table = self.engine.catalog.tables.get(self.table.name)
        if table is None or self.index is None:
            return table is not None and table.tree == self.tree
        index = table.index(self.index.name)
        return index is not None and index.tree == self.tree

    def last_key(self, record: bytes) -> Item:
        """The `LastEvaluatedKey` of a record."""
        item = item_of(record)
        return {name: item[name] for name in self.key_names}

    def position(self, start: Item) -> bytes:
        """The key of the entry that a `LastEvaluatedKey` identifies."""
        key = self.table.keyspace.key(start)
        return key if self.index is None else self.index.key(start, key)

    def records(
        self,
        bounds: Bounds,
        start: bytes | None = None,
        *,
        reverse: bool = False,
        expected: int | None = None,
    ) -> Iterator[Sequence[bytes]]:
        """The records within bounds, from just after `start`, in key order or in reverse, in sequences; at most
        `expected`, if given.
        """
        low, high = bounds
        if start is not None:
            if reverse:
                high = start if high is None else min(high, start)
            else:
                low = max(low, start + b"\x00")
        if high is not None and low >= high:
            # a read, so that other processes' commits are noticed
            self.engine.store.get(self.tree, low)
            return iter(())
        return self.engine.store.values(self.tree, low, high, reverse=reverse, expected=expected)

    def whole_item(self, record: bytes) -> bytes:
        """The table's record of an index entry's item. Reads one item."""
        key = self.table.keyspace.key(item_of(record))
        return self.engine.store.get(self.table.tree, key) or record


def segment_bounds(segment: int | None, total: int | None) -> Bounds:
    """The part of a table or index that one worker of a parallel Scan reads."""
    if segment is None or total is None:
        return b"", None
    return segment_range(segment, total)


class RangePage(msgspec.Struct):
    """The result of reading a range. `size` is the bytes read (an upper bound unless the reader is `sizing`), `last`
    the record at which it stopped.

    `items` are in JSON. `records` are not items yet: `RecordReader.evaluate` converts them, which may take more than
    some milliseconds if `is_long`. `reached` is the record after which the page continues, if it has not been read
    completely.
    """

    records: list[bytes] = []
    items: list[bytes] = []
    count: int = 0
    scanned: int = 0
    size: int = 0
    last: bytes | None = None
    reached: bytes | None = None
    is_long: bool = False


class RecordReader(msgspec.Struct, frozen=True, gc=False):
    """How to read and convert the records of a page.

    `expand` turns an index entry's record into the full item (for a local index that lacks attributes); `matches` is
    the filter, `project` reduces the item to the projection, `counting` returns no items. `effort` is the number of
    nodes in the filter. `sizing`: the caller needs the exact size of the page.
    """

    limit: int | None = None
    expand: Callable[[bytes], bytes] | None = None
    matches: Callable[[Item], bool] | None = None
    project: Callable[[Item], Item] | None = None
    counting: bool = False
    effort: int = 0
    sizing: bool = True

    def page(self, stored: Iterator[Sequence[bytes]]) -> RangePage:
        """Read one page of these records, and convert them to items."""
        page = self.read(stored, part=limits.QUERY_PAGE)
        self.evaluate(page)
        return page

    def read(
        self,
        stored: Iterator[Sequence[bytes]],
        page: RangePage | None = None,
        *,
        part: int | None = None,
    ) -> RangePage:
        """Read the first or the next part of a page: everything that needs the store. If `reached` is set, more parts
        follow.
        """
        if page is None:
            page = RangePage()
        if part is None:
            part = _PART if self.expand is None else _FETCHED_PART
        records, size, is_part = _read(stored, page, self.limit, part, self.sizing)
        page.reached = records[-1] if is_part else None
        page.scanned += len(records)
        page.size = size
        if not is_part and (page.scanned == self.limit or size > limits.QUERY_PAGE):
            page.last = records[-1]
        if self.expand is not None:
            records = [self.expand(record) for record in records]
        page.records = page.records + records if page.records else records
        if self.matches is None and self.project is None:
            page.is_long = page.scanned > _QUICK_COPIES or is_part
        else:
            page.is_long = (
                page.scanned > _QUICK_RECORDS
                or page.scanned * self.effort > _QUICK_NODES
                or size > _QUICK_SIZE
            )
        return page

    def evaluate(self, page: RangePage) -> None:
        """Convert the records of a page to items. Parses an item only if the filter or projection needs it.

        Uses neither the store nor the engine, so any thread may call it without the engine's lock.
        """
        records = page.records
        if self.matches is None:
            if self.counting:
                page.count = page.scanned
                return
            if self.project is None:
                items = list(map(_body, records))
            else:
                items = [encode_item(self.project(_parsed(record))) for record in records]
        else:
            items = self._matching(records, self.matches)
        page.count = len(items)
        if not self.counting:
            page.items = items

    def _matching(self, records: list[bytes], matches: Callable[[Item], bool]) -> list[bytes]:
        """The items that pass the filter, as they appear in the response."""
        items = []
        for record in records:
            item = _parsed(record)
            if matches(item):
                shown = None if self.project is None else encode_item(self.project(item))
                items.append(shown or body_of(record))
        return items


def _parsed(record: bytes) -> Item:
    item = item_of(record)
    if len(record) > LARGE_PIECE:
        give_way()
    return item


def _read(
    stored: Iterator[Sequence[bytes]], page: RangePage, limit: int | None, part: int, sizing: bool
) -> tuple[list[bytes], int, bool]:
    """The next records of a page, their size, and whether the page continues after them.

    An item is never larger than its JSON. So exact sizes do not matter while the records have less than 1 MB, unless
    the caller needs the size.
    """
    records: list[bytes] = []
    size = page.size
    # No record is empty, so the page cannot hold more than this, even without a limit.
    wanted = (limit or limits.QUERY_PAGE) - page.scanned
    is_part = part < wanted
    left = part if is_part else wanted
    for found in stored:
        left -= len(found)
        if left < 0:
            found = found[:left]
        total = total_size(found) if sizing else sum(map(len, found))
        if size + total > limits.QUERY_PAGE and not sizing:
            sizing = True
            size, total = total_size(page.records) + total_size(records), total_size(found)
        if size + total > limits.QUERY_PAGE:
            sizes = accumulate(map(size_of, found), initial=size)
            fitting = sum(1 for so_far in islice(sizes, len(found)) if so_far <= limits.QUERY_PAGE)
            size += total_size(found[:fitting])
            return [*records, *found[:fitting]], size, False
        records += found
        size += total
        if left <= 0:
            return records, size, is_part
    return records, size, False
