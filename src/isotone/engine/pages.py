"""One page of a Query or Scan: what is read, what is kept, and where the next page starts.

The service's rules: a page ends after `Limit` items have been read, or when what it has read passes
1 MB, both counted before the filter. Whoever ended early says where (`last`); who came to the end of
the range does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from isotone import limits
from isotone.engine.record import body_of, item_of, size_of
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
        page = Page()
        plain = not (self.expand or self.matches or self.project or self.counting)
        limit, room = self.limit or -1, limits.QUERY_PAGE
        scanned = size = 0
        keep = page.items.append
        for _, record in entries:
            scanned += 1
            size += size_of(record)
            if plain:
                keep(msgspec.Raw(body_of(record)))
            else:
                self._take(page, record)
            if scanned == limit or size > room:
                page.last = record
                break
        page.scanned, page.size = scanned, size
        if plain:
            page.count = scanned
        return page

    def _take(self, page: Page, record: bytes) -> None:
        if self.expand is not None:
            record = self.expand(record)
        item = None
        if self.matches is not None:
            item = item_of(record)
            if not self.matches(item):
                return
        page.count += 1
        if self.counting:
            return
        if self.project is None:
            page.items.append(msgspec.Raw(body_of(record)))
        else:
            page.items.append(msgspec.Raw(_encode(self.project(item or item_of(record)))))


_encode = msgspec.json.Encoder().encode
