"""Runs the consistency check (`isotone check`) on a file or some of its tables, in one or several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from isotone.engine.checked_trees import TreeFindings
from isotone.engine.engine import Engine
from isotone.engine.integrity import Part, Step, Survey
from isotone.errors import UsageError
from isotone.text_table import pluralized

_LARGE: Final = 64 << 20  # bytes from which on several processes are worth starting
_MOST: Final = 8  # processes, by default


class CheckProgress(NamedTuple):
    """Progress of a check: items read, entries read, and the total number of entries.

    "Entries" are the items and the entries of their indexes.
    """

    items: int
    entries: int
    of_entries: int

    def __str__(self) -> str:
        share = min(self.entries, self.of_entries) * 100 // max(self.of_entries, 1)
        return f"{pluralized(self.items, 'item')}, {share} %"


class Checked(NamedTuple):
    """The result of a check: the problems (none if all is well), and the number of readable items."""

    problems: list[str]
    items: int


Watch = Callable[[CheckProgress], object]


class Checkers(Protocol):
    """Checks the parts of a survey, here or in other processes."""

    def check(
        self, region: str, survey: Survey, parts: Sequence[Part], step: Step
    ) -> Iterator[tuple[Part, TreeFindings]]:
        """Check the parts of a region, and yield the findings of each, in any order."""


def check(
    engine: Engine,
    *,
    tables: Collection[str] = (),
    processes: int | None = None,
    watch: Watch | None = None,
) -> Checked:
    """Check the file of an engine, or some of its tables.

    Without `processes`, a large file gets one process per core, at most eight; a small one is checked in this process,
    as with `processes=1`. Raises `UsageError` for an unknown table, and for less than one process.
    """
    _check_names(engine, tables)
    if processes is not None and processes < 1:
        raise UsageError(f"{processes} processes cannot check a file: give 1 or more")
    path = Path(getattr(engine.store, "path", ""))
    is_large = path.is_file() and path.stat().st_size >= _LARGE
    if processes == 1 or (processes is None and not is_large):
        with engine.reading:
            return _check(engine, tables, watch, _Here())
    from isotone.engine.check_processes import CheckProcesses  # most checks do not need it

    number = processes or min(_cores(), _MOST)
    with CheckProcesses(str(path), number, tables) as others, others.one_snapshot(engine) as is_one:
        return _check(engine, tables, watch, others if is_one else _Here())


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_names(engine: Engine, tables: Collection[str]) -> None:
    regions = list(engine.regions.values())
    for table in tables:
        if all(region.catalog.find(table) is None for region in regions):
            known = sorted({name for region in regions for name in region.catalog.tables})
            raise UsageError(
                f"there is no table {table}: {', '.join(known) or 'none'} can be checked"
            )


def _check(
    engine: Engine, tables: Collection[str], watch: Watch | None, checkers: Checkers
) -> Checked:
    problems: list[str] = []
    items = 0
    progress = _ReadCounter(watch)
    for name, region in list(engine.regions.items()):
        survey = Survey(region, tables)
        for parts in survey.rounds():
            for part, found in checkers.check(name, survey, parts, progress.of(survey, parts)):
                survey.add(part, found)
        problems += survey.problems()
        items += survey.items
    return Checked(problems, items)


class _ReadCounter:
    """Adds up the entries that are read, for the progress."""

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch
        self._items = self._entries = self._of_entries = 0

    def of(self, survey: Survey, parts: Sequence[Part]) -> Step:
        """A function that counts the entries of these parts."""
        self._of_entries += survey.size(parts)

        def step(part: Part, count: int) -> None:
            self._entries += count
            if survey.table_of_items(part) is not None:
                self._items += count
            if self._watch is not None:
                self._watch(CheckProgress(self._items, self._entries, self._of_entries))

        return step


class _Here:
    """Checks in this process."""

    def check(
        self, region: str, survey: Survey, parts: Sequence[Part], step: Step
    ) -> Iterator[tuple[Part, TreeFindings]]:
        return ((part, survey.check(part, step)) for part in parts)
