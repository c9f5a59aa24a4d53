"""All sample tables, and the functions that fill them with the same data each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from isotone import ManualClock, Store, Table, connect
from isotone.backends.interface import Backend
from isotone.demo import filtering, github, sorting, structured
from isotone.tables.description import table_names
from isotone.workbench.designs import DesignPart, DesignSource

_BEGIN: Final = datetime(2026, 1, 5, 8, tzinfo=UTC)

Fill = Callable[[Store, ManualClock], None]

SAMPLES: Final[Sequence[tuple[Table, Fill]]] = (
    *sorting.SAMPLES,
    *github.SAMPLES,
    *filtering.SAMPLES,
    *structured.SAMPLES,
)


def tables() -> list[Table]:
    """The tables of all chapters: their entities name what the workbench shows."""
    return [table for table, _ in SAMPLES]


def design() -> DesignSource:
    """The designs of the tables, each by itself, those with the most entities first."""
    modelled = sorted(tables(), key=lambda table: -len(table.entities))
    parts = {table.name: DesignPart((table,)) for table in modelled}
    return DesignSource("the sample tables", parts)


def load(backend: Backend) -> None:
    """Create the sample tables that do not exist yet, with their items."""
    clock = ManualClock(_BEGIN)
    existing = set(table_names(backend))
    with connect(backend, clock=clock, report=None) as store:
        for table, fill in SAMPLES:
            if table.name not in existing:
                store.create_tables(table)
                fill(store, clock)
