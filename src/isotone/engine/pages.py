"""Pagination of Query and Scan: where a page ends (Limit, 1 MB), LastEvaluatedKey, ExclusiveStartKey, segments.

The service's rules: a page ends after `Limit` items, or when it has read more than 1 MB, both counted before the
filter. A page that ended early has a position (`last`); a page that reached the end of the range has none.

A page is one snapshot. A caller that must not be held for long reads `briefly`: no more records than take some
milliseconds, and the page says whether it `is_long`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from operator import itemgetter

import msgspec

from isotone import limits
from isotone.codec import segment_range
from isotone.engine.engine import Engine
from isotone.engine.layout import (
    SIZE_BYTES,
    Bounds,
    Keyspace,
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
_QUICK_FETCHES = 200  # the same, if each record must be fetched from the table


class OrderedSource:
    """A table or one of its indexes, readable in key order.

    `key_names` are the attributes that identify an entry: the index's keys, then the table's.
    """

    __slots__ = ("engine", "index", "key_names", "keyspace", "table", "tree")

    def __init__(
        self, engine: Engine, table: StoredTable, index: SecondaryIndex | None = None
    ) -> None:
        self.engine: Engine = engine
        self.table: StoredTable = table
        self.index: SecondaryIndex | None = index
        entries = table if index is None else index
        self.tree: str = entries.tree
        self.keyspace: Keyspace = entries.keyspace
        self.key_names: tuple[str, ...] = entries.key_names

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

    `items` are in JSON. `records` are not items yet: `RecordReader.evaluate` converts them. To read all of the page, or to
    convert it, takes more than some milliseconds if it `is_long`.
    """

    records: list[bytes] = []
    items: list[bytes] = []
    count: int = 0
    scanned: int = 0
    size: int = 0
    last: bytes | None = None
    is_long: bool = False


class RecordReader(msgspec.Struct, frozen=True, gc=False):
    """How to read and convert the records of a page.

    `expand` turns an index entry's record into the full item (for a local index that lacks attributes); `matches` is
    the filter, `project` reduces the item to the projection, `counting` returns no items. `nodes` is the number of
    nodes in the filter. `sizing`: the caller needs the exact size of the page.
    """

    limit: int | None = None
    expand: Callable[[bytes], bytes] | None = None
    matches: Callable[[Item], bool] | None = None
    project: Callable[[Item], Item] | None = None
    counting: bool = False
    nodes: int = 0
    sizing: bool = True

    def page(self, stored: Iterator[Sequence[bytes]]) -> RangePage:
        """Read one page of these records, and convert them to items."""
        page = self.read(stored)
        self.evaluate(page)
        return page

    def read(
        self, stored: Iterator[Sequence[bytes]], *, limit: int | None = None, briefly: bool = False
    ) -> RangePage:
        """Read a page: everything that needs the store. `limit` replaces that of the reader.

        If it is to be read `briefly`, and `is_long`, it is not complete.
        """
        if limit is None:
            limit = self.limit
        converts = self.matches is not None or self.project is not None
        quick = _QUICK_RECORDS if converts else _QUICK_COPIES
        if self.expand is not None:
            quick = min(quick, _QUICK_FETCHES)
        wanted = limit or limits.QUERY_PAGE
        is_cut = briefly and quick < wanted
        records, size = _read(stored, quick + 1 if is_cut else wanted, self.sizing)
        page = RangePage()
        page.scanned = count = len(records)
        page.size = size
        page.is_long = count > quick or (
            converts and (count * self.nodes > _QUICK_NODES or size > _QUICK_SIZE)
        )
        if count == limit or size > limits.QUERY_PAGE:
            page.last = records[-1]
        page.records = records
        if self.expand is not None and not (briefly and page.is_long):
            page.records = [self.expand(record) for record in records]
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
                items = [encode_item(self.project(item_of(record))) for record in records]
        else:
            items = self._matching(records, self.matches)
        page.count = len(items)
        if not self.counting:
            page.items = items

    def _matching(self, records: list[bytes], matches: Callable[[Item], bool]) -> list[bytes]:
        """The items that pass the filter, as they appear in the response."""
        items = []
        for record in records:
            item = item_of(record)
            if matches(item):
                shown = None if self.project is None else encode_item(self.project(item))
                items.append(shown or body_of(record))
        return items


def _read(stored: Iterator[Sequence[bytes]], wanted: int, sizing: bool) -> tuple[list[bytes], int]:
    """The records of a page, at most `wanted`, and their size.

    An item is never larger than its JSON. So exact sizes do not matter while the records have less than 1 MB, unless
    the caller needs the size.
    """
    records: list[bytes] = []
    size = 0
    # No record is empty, so a page cannot hold more than 1 MB of them, even without a limit.
    left = wanted
    for found in stored:
        left -= len(found)
        if left < 0:
            found = found[:left]
        total = total_size(found) if sizing else sum(map(len, found))
        if size + total > limits.QUERY_PAGE and not sizing:
            sizing = True
            size, total = total_size(records), total_size(found)
        if size + total > limits.QUERY_PAGE:
            sizes = accumulate(map(size_of, found), initial=size)
            fitting = sum(1 for so_far in islice(sizes, len(found)) if so_far <= limits.QUERY_PAGE)
            size += total_size(found[:fitting])
            return [*records, *found[:fitting]], size
        records += found
        size += total
        if left <= 0:
            break
    return records, size
