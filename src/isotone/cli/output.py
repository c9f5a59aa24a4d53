"""Items on a terminal: as a table, as a JSON array, as one JSON object a line."""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from isotone.cli.notation import item_text, value_text
from isotone.values.types import AttributeValue, Item

_WIDEST_CELL: Final = 48
_SAMPLE: Final = 200  # items that decide on columns and their widths
_WIDE: Final = frozenset("WF")


def add_format(parser: argparse.ArgumentParser) -> None:
    """The argument that chooses the form."""
    parser.add_argument(
        "--format",
        choices=tuple(_WRITERS),
        default="table",
        help="a table (the default), a JSON array, or one JSON object a line",
    )


def write_items(items: Iterable[Item], form: str, first: Sequence[str] = ()) -> None:
    """Print items as they come; `first` names the attributes that a table shows first."""
    _WRITERS[form](items, first)


def rows_text(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: set[int]) -> str:
    """Aligned columns under a header; `right` has the numbers of those aligned to the right."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(_width, column)) for column in columns]
    lines = [_line(header, widths, right), "  ".join("─" * width for width in widths)]
    return "\n".join(lines + [_line(row, widths, right) for row in rows])


def _write_table(items: Iterable[Item], first: Sequence[str]) -> None:
    for batch in _batches(items, _SAMPLE):
        columns = _columns(batch, first)
        rows = [[_cell(item.get(name)) for name in columns] for item in batch]
        numbers = {
            place
            for place, name in enumerate(columns)
            if all("N" in item[name] for item in batch if name in item)
        }
        print(rows_text([_shown(name) for name in columns], rows, right=numbers))


def _write_json(items: Iterable[Item], _: Sequence[str]) -> None:
    separator = "[\n"
    for item in items:
        sys.stdout.write(separator + "  " + item_text(item))
        separator = ",\n"
    sys.stdout.write("[]\n" if separator == "[\n" else "\n]\n")


def _write_lines(items: Iterable[Item], _: Sequence[str]) -> None:
    for item in items:
        sys.stdout.write(item_text(item) + "\n")


_WRITERS: Final[dict[str, Callable[[Iterable[Item], Sequence[str]], None]]] = {
    "table": _write_table,
    "json": _write_json,
    "jsonl": _write_lines,
}


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    batch: list[Item] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _columns(items: Sequence[Item], first: Sequence[str]) -> list[str]:
    """The first ones that occur, then the others in the order in which they occur."""
    seen = dict.fromkeys(name for item in items for name in item)
    return list(dict.fromkeys([name for name in first if name in seen] + list(seen)))


def _cell(value: AttributeValue | None) -> str:
    if value is None:
        return ""
    text = _shown(value["S"] if "S" in value else value_text(value))
    return text if _width(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 1] + "…"


def _shown(text: str) -> str:
    """The text with control characters escaped."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _width(text: str) -> int:
    """The cells that a text takes on a terminal."""
    return sum(
        0
        if unicodedata.combining(char)
        else 2
        if unicodedata.east_asian_width(char) in _WIDE
        else 1
        for char in text
    )


def _line(cells: Sequence[str], widths: Sequence[int], right: set[int]) -> str:
    padded = []
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        padding = " " * (width - _width(cell))
        padded.append(padding + cell if place in right else cell + padding)
    return "  ".join(padded).rstrip()
