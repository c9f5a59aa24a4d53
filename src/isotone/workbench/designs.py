"""The page Design: a model's diagram, the sheet of its access patterns, its collections, lint's findings.

What belongs together is a part: a module, or one of many sample tables. A sheet is computed again for the sizes that are
typed on the page.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, NamedTuple

from isotone.advisor.collection_svg import drawn_svg
from isotone.advisor.drawing import draw
from isotone.advisor.lint import LintFinding, Settings, lint
from isotone.design import DesignDiagram, SampleData, SheetRequest, diagram_of
from isotone.design.diagram_svg import Hues
from isotone.design.plan import tables_of
from isotone.design.sheet import PatternSheet, smaller_sample
from isotone.design.sheet_text import COLUMNS, cells_of, csv_of, markdown_of, summary_of
from isotone.errors import IsotoneError, UsageError
from isotone.model import Entity, Store, Table
from isotone.tables.threads import in_thread

_ITEMS: Final = 6  # of a collection that are drawn
_COLLECTIONS: Final = 3  # of a table or an index
_SAMPLE: Final = 20_000  # items that are read for it, so that a sample is read whole

Answer = dict[str, Any]
Target = Table | type[Entity]


class DesignPart(NamedTuple):
    """What is designed together. `linted` is what lint checks, if that is more: a module with its queries."""

    targets: tuple[Target, ...]
    linted: tuple[Any, ...] = ()

    @property
    def tables(self) -> list[Table]:
        """The tables of the targets."""
        return tables_of(self.targets)


class DesignSource(NamedTuple):
    """The designs of a workbench: its parts by name, and what sheets are asked for at first.

    `is_live`: the page follows a module that is being edited; then there is no part until it can be loaded.
    """

    name: str
    parts: Mapping[str, DesignPart]
    asked: SheetRequest = SheetRequest()
    is_live: bool = False
    settings: Settings = Settings()


class Designs:
    """The calls for the designs of one workbench; `connected` is the store with the data that is drawn."""

    def __init__(self, source: DesignSource | None, connected: Callable[[], Store]) -> None:
        self._source = source
        self._connected = connected

    async def design(self, given: Mapping[str, Any]) -> Answer:
        """The design of `{"part"}`, or of the first; None if there is none."""
        if self._source is None or not self._source.parts:
            return {"design": None}
        return {"design": await in_thread(self._design, self._source, given.get("part"))}

    async def sheet(self, given: Mapping[str, Any]) -> Answer:
        """The sheet of `{"part"}` for the sizes that are typed: `items`, `per`, `rates`, `reads`, `writes`."""
        if self._source is None:
            raise UsageError("this workbench has no design")
        _, part = _part(self._source, given.get("part"))
        asked = self._source.asked.with_typed(given)
        # A name of another version of the module may still be in the address of the page.
        making = partial(asked.sheet, *part.targets, ignore_unknown=True)
        return _sheet(await in_thread(making))

    def _design(self, source: DesignSource, name: Any) -> Answer:
        name, part = _part(source, name)
        report = lint(*(part.linted or part.targets), settings=source.settings)
        diagram = diagram_of(*part.targets, findings=report.findings)
        drawings, undrawn = self._drawings(part.tables, diagram)
        return {
            "name": source.name,
            "part": name,
            "parts": list(source.parts),
            "tables": [table.name for table in part.tables],
            "diagram": diagram.svg(),
            "plain_diagram": diagram_of(*part.targets).svg(),
            "findings": [_finding(each) for each in report.findings],
            "drawings": drawings,
            "undrawn": undrawn,
            **_sizes(part, source.asked),
        }

    def _drawings(
        self, tables: Sequence[Table], diagram: DesignDiagram
    ) -> tuple[list[Answer], str]:
        """The collections of the tables and indexes, in the colours of the diagram; and why some are not drawn."""
        drawings: list[Answer] = []
        reasons = []
        for table, drawn in zip(tables, diagram.tables, strict=True):
            hues = Hues(drawn)
            try:
                drawing = draw(
                    self._connected(),
                    table,
                    items=_ITEMS,
                    collections=_COLLECTIONS,
                    sample=_SAMPLE,
                )
            except IsotoneError as error:
                reasons.append(str(error))
                continue
            drawings += [
                {
                    "table": view.table,
                    "index": view.index,
                    "svg": drawn_svg((view,), "", fields=hues.fields, kinds=hues.entities),
                }
                for view in drawing.views
            ]
        return drawings, " ".join(reasons)


def _part(source: DesignSource, name: Any) -> tuple[str, DesignPart]:
    """The part with a name; the first without one, or if another version of the module had it."""
    if not source.parts:
        raise UsageError(f"{source.name} cannot be loaded")
    first = next(iter(source.parts))
    found = name if isinstance(name, str) and name in source.parts else first
    return found, source.parts[found]


def _finding(finding: LintFinding) -> Answer:
    """A finding with its level, and the line that it is about."""
    place = finding.place
    linecache.checkcache(place.file)
    text = linecache.getline(place.file, place.line).strip()  # none of a file that is gone
    return asdict(finding) | {"level": finding.level, "text": text}


def _sizes(part: DesignPart, asked: SheetRequest) -> Answer:
    """The sizes that can be typed, with what is asked for now; and why there can be no sample."""
    try:
        sample = asked.sample.known_to(part.targets)
        smaller = smaller_sample(part.targets, sample).of(sample)
        entities = list(SampleData(part.targets, smaller).of.values())
    except UsageError as error:
        return {"entities": [], "unsampled": str(error), "asked": _asked(asked)}
    return {
        "entities": [
            {
                "name": each.name,
                "parent": None if each.owner is None else each.owner.name,
                "is_grouped": bool(each.group_fields),
            }
            for each in entities
        ],
        "unsampled": "",
        "asked": _asked(asked),
    }


def _asked(asked: SheetRequest) -> Answer:
    return {
        "items": {name: f"{count}" for name, count in asked.sample.items.items()},
        "per": {child: several.text for (child, _), several in asked.sample.per.items()},
        "rates": {name: f"{rate:g}" for name, rate in asked.rates.items()},
        "reads": f"{asked.reads:g}",
        "writes": f"{asked.writes:g}",
    }


def _sheet(sheet: PatternSheet) -> Answer:
    return {
        "columns": list(COLUMNS),
        "rows": [
            {
                "name": row.name,
                "table": row.table,
                "cells": cells_of(row),
                "rate": row.rate,
                "is_hot": row.is_hot,
            }
            for row in sheet.rows
        ],
        "entities": dict(sheet.entities),
        "summary": summary_of(sheet),
        "csv": csv_of(sheet),
        "markdown": markdown_of(sheet),
    }
