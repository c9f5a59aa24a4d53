"""One page of a Query or Scan: what is read, what is kept, and where the next page starts.

The service's rules: a page ends after `Limit` items have been read, or when what it has read passes
1 MB, both counted before the filter. Whoever ended early says where (`last`); who came to the end of
the range does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

import msgspec

from isotone import limits
from isotone.engine.record import SIZE_BYTES, body_of, item_of, unpack_size
from isotone.values.attributes import Item

Entries = Iterable[tuple[bytes, bytes]]


class Page(msgspec.Struct):
    """The outcome of reading a range. `size` is what was read; `last` the record it stopped at."""

    items: list[msgspec.Raw] = []
    count: int = 0
    scanned: int = 0
    size: int = 0
    last: bytes | None = None


class Reader(msgspec.Struct, frozen=True, gc=False):
    """How a page treats each entry.

    `expand` turns an entry's record into the item's own (for a local index that lacks attributes);
    `matches` is the filter, `project` cuts the item down, `counting` keeps no items at all.
    """

    limit: int | None = None
    expand: Callable[[bytes], bytes] | None = None
    matches: Callable[[Item], bool] | None = None
    project: Callable[[Item], Item] | None = None
    counting: bool = False

    def page(self, entries: Entries) -> Page:
        """Read one page. Touches only what it returns and what its filter rejects."""
        records, size = _read(entries, self.limit)
        scanned = len(records)
        is_full = scanned == self.limit or size > limits.QUERY_PAGE
        last = records[-1] if is_full else None
        if self.counting and self.matches is None:
            return Page([], scanned, scanned, size, last)
        items = self._items(records)
        return Page([] if self.counting else items, len(items), scanned, size, last)

    def _items(self, records: list[bytes]) -> list[msgspec.Raw]:
        """What the filter lets pass, as it is shown."""
        if self.expand is not None:
            records = [self.expand(record) for record in records]
        if self.matches is None:
            if self.project is None:
                return [msgspec.Raw(record[SIZE_BYTES:]) for record in records]
            return [msgspec.Raw(_encode(self.project(item_of(record)))) for record in records]
        items = []
        for record in records:
            item = item_of(record)
            if self.matches(item):
                shown = None if self.project is None else _encode(self.project(item))
                items.append(msgspec.Raw(shown or body_of(record)))
        return items


def _read(entries: Entries, limit: int | None) -> tuple[list[bytes], int]:
    """The records of one page, and how many bytes they are."""
    records: list[bytes] = []
    keep = records.append
    size = 0
    for _, record in islice(entries, limit):
        keep(record)
        size += unpack_size(record)[0]
        if size > limits.QUERY_PAGE:
            break
    return records, size


_encode = msgspec.json.Encoder().encode
