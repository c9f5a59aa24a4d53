"""Takes a snapshot: copies the items of tables into a new Isotone file.

A database in this process is read as of one moment (`Database.frozen`). Any other engine is scanned with consistent
reads, several segments at once: each item is as of the moment when it was read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from isotone.backends import embedded
from isotone.backends.interface import Backend
from isotone.errors import UsageError
from isotone.moving import Progress, Stopped
from isotone.tables.batches import BatchWriter, put
from isotone.tables.definition import TableDefinition, read_definition
from isotone.tables.description import read_description, table_names
from isotone.tables.pace import Pace
from isotone.tables.progress import Meter
from isotone.tables.scan import Segment, pages, pages_together
from isotone.workbench.snapshot_folder import SnapshotTable

_SEGMENTS: Final = 4  # of a table elsewhere
_ITEMS_A_PAGE: Final = 500
_MAPPED: Final = 32 << 20

Report = Callable[[Progress], object]
CopiedPage = tuple[int, float]
"""A number of items, and the units for reading them."""


def is_moment(backend: Backend) -> bool:
    """Whether a snapshot of this engine is as of one moment."""
    return hasattr(backend, "frozen")


def take(
    backend: Backend, names: Sequence[str], file: Path, report: Report, stop: threading.Event
) -> dict[str, SnapshotTable]:
    """Copy tables into a new file; returns their descriptions. Raises `Stopped` when `stop` is set."""
    definitions = [_definition(backend, name) for name in names]
    with open_file(file) as copy:
        copied = copy_tables(backend, {each.name: each for each in definitions}, copy, report, stop)
    return {
        each.name: SnapshotTable(each, *found)
        for each, found in zip(definitions, copied, strict=True)
    }


def open_file(file: Path) -> embedded.Database:
    """Open a database file that is written once, or read; a power cut may lose it until it is synced."""
    return embedded.open(file, durability="none", memory_map=_MAPPED)


def copy_tables(
    backend: Backend,
    definitions: dict[str, TableDefinition],
    copy: embedded.Database,
    report: Report,
    stop: threading.Event,
) -> list[tuple[int, int, str]]:
    """Create tables in `copy`, and copy their items; returns the numbers of items and bytes, and the copies' identities."""
    meter = Meter(
        "snapshot", "", of_items=sum(each.table.item_count for each in definitions.values())
    )
    sources = {definition.name: name for name, definition in definitions.items()}
    for name, definition in definitions.items():
        copy.execute("CreateTable", keys_alone(definition, name))
    with _copying(backend, list(sources), copy, stop) as copied:
        for source, name in sources.items():
            meter.table = source
            for items, units in copied(source, name):
                meter.add(items, read_units=units)
                report(meter.progress())
                if stop.is_set():
                    raise Stopped
    report(meter.progress(is_over=True))
    return [_described(copy, name) for name in definitions]


def keys_alone(definition: TableDefinition, name: str) -> dict[str, Any]:
    """The request that creates a table with these keys only: no index, no expiry, no stream."""
    key = definition.table.key
    return {"TableName": name, **key.request, "BillingMode": "PAY_PER_REQUEST"}


def _definition(backend: Backend, name: str) -> TableDefinition:
    found = read_definition(backend, name)
    if found is None:
        raise UsageError(f"there is no table {name!r}; it may have been deleted meanwhile")
    return found


def _described(copy: embedded.Database, name: str) -> tuple[int, int, str]:
    table = read_description(copy, name)
    return table.item_count, table.size, table.identity


def check_is_of(copy: embedded.Database, tables: dict[str, SnapshotTable]) -> None:
    """Raise `UsageError` if a file does not have the tables, and the numbers of items, that its description has."""
    found = {name: _described(copy, name) for name in table_names(copy)}
    is_same = found.keys() == tables.keys() and all(
        items == tables[name].items and tables[name].identity in ("", identity)
        for name, (items, _, identity) in found.items()
    )
    if not is_same:
        raise UsageError(
            "the file of this snapshot is not the one of its description: it was exchanged or damaged; put both files back"
        )


@contextmanager
def _copying(
    backend: Backend, names: Sequence[str], copy: embedded.Database, stop: threading.Event
) -> Iterator[Callable[[str, str], Iterator[CopiedPage]]]:
    """A function that copies one of these tables to another name, page by page."""
    frozen = getattr(backend, "frozen", None)
    if frozen is None:
        yield lambda source, name: _scanned(backend, source, copy, name, stop)
        return
    with frozen(names) as pages_of:

        def added(source: str, name: str) -> Iterator[CopiedPage]:
            for page in pages_of(source):
                copy.add_frozen(name, page)
                yield len(page), 0.0

        yield added


def _scanned(
    backend: Backend,
    source: str,
    copy: embedded.Database,
    name: str,
    stop: threading.Event,
) -> Iterator[CopiedPage]:
    """Copy a table, several segments in parallel."""
    writer = BatchWriter(copy, name, Pace())
    segments = [Segment(source, number, _SEGMENTS) for number in range(_SEGMENTS)]
    read = partial(pages, backend, pace=Pace(stop=stop), items_a_page=_ITEMS_A_PAGE)
    for _, page in pages_together(segments, read):
        writer.write([put(item) for item in page.items])
        yield len(page.items), page.units
