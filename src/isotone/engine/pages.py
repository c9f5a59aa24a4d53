"""Pages of a Query or Scan: where one ends (Limit, 1 MB), its LastEvaluatedKey, where the next starts, segments.

The service's rules: a page ends after `Limit` items have been read, or when it has read more
than 1 MB, both counted before the filter. A page that ended early has the position (`last`); a page that
reached the end of the range does not.

A page of many small items is read in parts (`RecordReader.read` again), between which others may read and write. Each part is
of one moment, and none is read twice; as on the service, the page as a whole is of no one moment.
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
_QUICK_RECORDS = 100  # that are filtered or cut down in at most some milliseconds
_QUICK_NODES = 5000  # of a filter, evaluated for all records together
_QUICK_SIZE = 16 * limits.KB  # bytes of them
_QUICK_COPIES = 2000  # records that are copied as they are in some milliseconds
_PART = 2000  # records that are read at once, in some milliseconds
_FETCHED_PART = 200  # the same, if each is fetched from the table


class OrderedSource:
    """A table, or one of its indexes, that can be read in order.

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
        """Whether the table and its index are still those that they were."""
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
        """The key of the entry that a `LastEvaluatedKey` names."""
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
        """The records within bounds, from just after `start`, in key order or in reverse, in sequences; `expected` at most, if given."""
        low, high = bounds
        if start is not None:
            if reverse:
                high = start if high is None else min(high, start)
            else:
                low = max(low, start + b"\x00")
        if high is not None and low >= high:
            self.engine.store.get(self.tree, low)  # reads, so that commits of others are noticed
            return iter(())
        return self.engine.store.values(self.tree, low, high, reverse=reverse, expected=expected)

    def whole_item(self, record: bytes) -> bytes:
        """The table's record of the item of an index entry. Reads one item."""
        key = self.table.keyspace.key(item_of(record))
        return self.engine.store.get(self.table.tree, key) or record


def segment_bounds(segment: int | None, total: int | None) -> Bounds:
    """The part of a table or index that one worker of a parallel scan reads."""
    if segment is None or total is None:
        return b"", None
    return segment_range(segment, total)


class RangePage(msgspec.Struct):
    """The result of reading a range. `size` is the bytes read (at most, if the reader is not `sizing`), `last` the record at
    which it stopped.

    `items` are in JSON. `records` are those that are not items yet: `RecordReader.evaluate` makes items of them, which may take more than some
    milliseconds if `is_long`. `reached` is the record after which the page goes on, if not all of it has been read.
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
    """How to convert the records of a page.

    `expand` turns an entry's record into the item's own (for a local index that lacks attributes);
    `matches` is the filter, `project` cuts the item down, `counting` keeps no items at all.
    `effort` is how many nodes the filter has. `sizing` is whether anybody asks for the exact size of the page.
    """

    limit: int | None = None
    expand: Callable[[bytes], bytes] | None = None
    matches: Callable[[Item], bool] | None = None
    project: Callable[[Item], Item] | None = None
    counting: bool = False
    effort: int = 0
    sizing: bool = True

    def page(self, stored: Iterator[Sequence[bytes]]) -> RangePage:
        """Read one page of these records, and make items of it."""
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
        """Read a part of a page, the first or the next: all that needs the store. More follow if it has `reached` one."""
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
        """Make items of the records of a page. Parses an item only if the filter or projection needs it.

        It uses neither the store nor the engine, so any thread may do it, without the engine's lock.
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
        """The items that pass the filter, in the form of the response."""
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
    """Records of a page from where it is on; its size with them; whether the page goes on after them.

    An item is never larger than its JSON. So as long as the records have less than 1 MB, their exact sizes do not matter
    unless somebody asks for them.
    """
    records: list[bytes] = []
    size = page.size
    # Without a limit: more cannot fit, because no record is empty.
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
