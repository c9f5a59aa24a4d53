"""Snapshot reads: whole tables as they are at one moment, in pages, while others write.

A file is read in one SQLite read transaction over a separate connection. Nothing is written, so a killed process leaves
nothing behind; the file's log grows until the read ends. A database in memory is read through views, which close with
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

ITEMS: Final = 2000  # items in a page, at most
_BYTES: Final = 4 << 20
_ITEMS_LOCKED: Final = 500  # items read from memory while its lock is held

OrderedItem: TypeAlias = tuple[bytes, bytes, int]
"""The bytes that order an item in its table, its DynamoDB JSON, and its size."""

PagesOf: TypeAlias = Callable[[str], Iterator[list[OrderedItem]]]
"""The name of a table → its items in pages, in Scan order."""


@contextmanager
def in_file(engine: Engine, names: Sequence[str]) -> Iterator[PagesOf]:
    """Read tables of an engine that nobody else uses: the block holds its lock throughout."""
    with engine.reading:
        tables = _tables(engine, names)

        def pages(name: str) -> Iterator[list[OrderedItem]]:
            return _pages(engine.store.range(tables[name].tree, b"", None))

        yield pages


@contextmanager
def in_memory(engine: Engine, names: Sequence[str]) -> Iterator[PagesOf]:
    """Read tables in memory. Each page takes the lock for some milliseconds; writers continue in between."""
    with engine.writing:
        opened = {
            name: views.open_table(engine, table, f"reader:{name}")
            for name, table in _tables(engine, names).items()
        }

    def pages(name: str) -> Iterator[list[OrderedItem]]:
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


def add(engine: Engine, name: str, entries: Sequence[OrderedItem]) -> None:
    """Add sorted entries to an empty table with the same keys and no indexes or streams."""
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


def _pages(records: Iterable[tuple[bytes, bytes]]) -> Iterator[list[OrderedItem]]:
    """Records in pages of limited size."""
    page: list[OrderedItem] = []
    size = 0
    for key, record in records:
        page.append((key, body_of(record), size_of(record)))
        size += len(record)
        if len(page) == ITEMS or size > _BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page
