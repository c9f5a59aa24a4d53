"""A sheet of access patterns as a text table, as CSV, Markdown and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from isotone.advisor.simulation.partitions import READS, WRITES, PartitionLoad
from isotone.text_table import aligned

if TYPE_CHECKING:
    from isotone.design.sheet import PatternSheet, SheetPlace, SheetRow

COLUMNS: Final = (
    "pattern",
    "key",
    "order",
    "index",
    "items",
    "of",
    "units",
    "a second",
    "cost a month",
    "hottest key",
)
"""The columns of a sheet that people read."""
NUMBERS: Final = frozenset({4, 5, 6, 7, 8, 9})
"""The columns that are aligned at the right."""


_LEAST: Final = 0.0001  # a smaller number is as good as none


def text_of(sheet: PatternSheet) -> str:
    """The sheet as a table for a terminal, with what is hot below."""
    rows = [cells_of(row) for row in sheet.rows]
    lines = [aligned(COLUMNS, rows, right=NUMBERS), "", *summary_of(sheet)]
    return "\n".join(lines)


def markdown_of(sheet: PatternSheet) -> str:
    """The sheet as a table of Markdown, with what is hot below."""
    rule = ["---:" if at in NUMBERS else "---" for at in range(len(COLUMNS))]
    rows = [COLUMNS, rule, *(cells_of(row) for row in sheet.rows)]
    lines = ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows]
    return "\n".join([*lines, "", *(f"- {line}" for line in summary_of(sheet))])


def csv_of(sheet: PatternSheet) -> str:
    """One line for each access pattern, numbers without rounding."""
    out = io.StringIO()
    members = [_members(row) for row in sheet.rows]
    writer = csv.DictWriter(out, list(members[0]) if members else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(members)
    return out.getvalue().rstrip("\n")


def json_of(sheet: PatternSheet) -> str:
    """The whole sheet."""
    return json.dumps(as_dict(sheet), indent=2)


def as_dict(sheet: PatternSheet) -> dict[str, Any]:
    """The whole sheet as JSON values."""
    return {
        "entities": dict(sheet.entities),
        "patterns": [_members(row) for row in sheet.rows],
        "places": [
            {**_without_load(asdict(place)), **_load(place.hottest)} for place in sheet.places
        ],
        "cost_a_month": sheet.cost,
        "currency": sheet.prices.currency,
        "region": sheet.prices.region,
        "prices_of": sheet.prices.as_of,
        "page": sheet.page,
        "times_the_sample": sheet.factor,
    }


FORMATS: Final[Mapping[str, Callable[[PatternSheet], str]]] = {
    "text": text_of,
    "csv": csv_of,
    "markdown": markdown_of,
    "json": json_of,
}
"""How a sheet is written, by name."""


def _members(row: SheetRow) -> dict[str, Any]:
    return {
        "pattern": row.name,
        "operation": row.operation,
        "table": row.table,
        "index": row.index or "",
        "key": row.key,
        "order": row.order,
        "items": row.items,
        "in_collection": row.in_collection,
        "units": row.units,
        "calls_a_second": row.rate,
        "units_a_second": row.units_a_second,
        "cost_a_month": row.cost,
        **_load(row.hottest),
    }


def _load(load: PartitionLoad) -> dict[str, Any]:
    return {
        "hottest_reads": load.reads,
        "hottest_writes": load.writes,
        "is_hot": load.use > 1,
    }


def _without_load(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name != "hottest"}


def cells_of(row: SheetRow) -> list[str]:
    """A row as it is read: numbers with the digits that count."""
    return [
        row.name,
        row.key if row.operation in ("get", "query") else "",
        row.order,
        row.index or "",
        _number(row.items),
        _number(row.in_collection) if row.operation == "query" else "",
        _number(row.units),
        _number(row.units_a_second),
        f"{row.cost:,.2f}",
        _hottest(row),
    ]


def _hottest(row: SheetRow | SheetPlace) -> str:
    load = row.hottest
    parts = [
        f"{_number(units)} {kind}"
        for units, kind in ((load.reads, "reads"), (load.writes, "writes"))
        if units
    ]
    return ", ".join(parts) + (" HOT" if row.is_hot else "")


def _number(value: float) -> str:
    """A number with two or three digits that count."""
    if 0 < value < _LEAST:
        return f"<{_LEAST}"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def _bytes(size: float) -> str:
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
        if size >= 10**power:
            return f"{size / 10**power:,.3g} {unit}"
    return f"{size:,.0f} bytes"


def summary_of(sheet: PatternSheet) -> list[str]:
    """What is below the table: items, storage, the cost of a month, and what is hot."""
    prices = sheet.prices
    counts = ", ".join(f"{_number(count)} {name}" for name, count in sheet.entities.items())
    stored = sum(place.cost for place in sheet.places)
    size = sum(place.size for place in sheet.places)
    lines = [
        f"items: {counts}",
        f"storage: {_bytes(size)} in tables and indexes, {stored:,.2f} {prices.currency} a month",
        f"in all: {sheet.cost:,.2f} {prices.currency} a month on demand in {prices.region}, at the prices of {prices.as_of}",
    ]
    if sheet.factor > 1:
        lines.append(f"forecast from a sample that is {sheet.factor:,} times smaller")
    lines += [
        f"hot: {place}: one key gets {_hottest(place).removesuffix(' HOT')} a second, and a partition serves "
        f"{READS:,.0f} read and {WRITES:,.0f} write units"
        for place in sheet.places
        if place.is_hot
    ]
    return lines


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
