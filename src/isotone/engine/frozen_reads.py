"""Tables as they are at one moment, read from end to end while others write: a page at a time, in the order of keys.

A file is read in one read transaction of SQLite's, over a connection of its own. Nothing is written to it, so a killed
process leaves nothing; until the read ends, the file's log grows. A database in memory is read by views, which end with
the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from isotone.engine import items, views
from isotone.engine.engine import Engine
from isotone.engine.layout import body_of, size_of, size_prefix
from isotone.engine.table_indexes import StoredTable
from isotone.errors import ResourceNotFoundException, UsageError

ITEMS: Final = 2000  # of a page, at most
_BYTES: Final = 4 << 20
_ITEMS_LOCKED: Final = 500  # that are read from memory while its lock is held

Entry: TypeAlias = tuple[bytes, bytes, int]
"""The bytes that an item sorts by in its table, its DynamoDB JSON, and its size."""

PagesOf: TypeAlias = Callable[[str], Iterator[list[Entry]]]
"""The name of a table → its items, page by page in the order of a Scan."""


@contextmanager
def in_file(engine: Engine, names: Sequence[str]) -> Iterator[PagesOf]:
    """Read tables of an engine that nobody else uses: its lock is held for the length of the block."""
    with engine.reading:
        tables = _tables(engine, names)

        def pages(name: str) -> Iterator[list[Entry]]:
            return _pages(engine.store.range(tables[name].tree, b"", None))

        yield pages


@contextmanager
def in_memory(engine: Engine, names: Sequence[str]) -> Iterator[PagesOf]:
    """Read tables in memory. Each page takes the lock for some milliseconds, and writers go on in between."""
    with engine.writing:
        opened = {
            name: views.open_table(engine, table, f"reader:{name}")
            for name, table in _tables(engine, names).items()
        }

    def pages(name: str) -> Iterator[list[Entry]]:
        last = False
        while not last:
            with engine.writing:
                records, last = views.read(engine, opened[name], _ITEMS_LOCKED)
            yield from _pages(records)

    try:
        yield pages
    finally:
        with engine.writing:
            for view in opened.values():
                views.close(engine, view)


def add(engine: Engine, name: str, entries: Sequence[Entry]) -> None:
    """Put entries of a table with the same keys, in their order, into one that has none of them and nothing but items."""
    (table,) = _tables(engine, [name]).values()
    new = [(key, size_prefix(size) + json) for key, json, size in entries]
    has_more = table.indexes or table.stream or table.history or table.replication
    if has_more or not items.add(engine, table, new):
        raise UsageError(
            f"table {name!r} takes entries only if it has none of them, no index, no expiry, no stream, "
            "no point-in-time recovery and no replica"
        )


def _tables(engine: Engine, names: Sequence[str]) -> dict[str, StoredTable]:
    known = engine.catalog.tables
    for name in names:
        if name not in known:
            raise ResourceNotFoundException(
                f"Requested resource not found: Table: {name} not found"
            )
    return {name: known[name] for name in names}


def _pages(records: Iterable[tuple[bytes, bytes]]) -> Iterator[list[Entry]]:
    """Records in pages of bounded size."""
    page: list[Entry] = []
    size = 0
    for key, record in records:
        page.append((key, body_of(record), size_of(record)))
        size += len(record)
        if len(page) == ITEMS or size > _BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page
