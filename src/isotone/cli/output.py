"""Items on a terminal: as a table, as a JSON array, as one JSON object a line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from isotone.cli.notation import item_text, value_text
from isotone.text_table import aligned, cell, printable
from isotone.values.types import AttributeValue, Item

_SAMPLE: Final = 200  # items that decide on columns and their widths


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


def _write_table(items: Iterable[Item], first: Sequence[str]) -> None:
    for batch in _batches(items, _SAMPLE):
        columns = _columns(batch, first)
        rows = [[_cell(item.get(name)) for name in columns] for item in batch]
        numbers = {
            place
            for place, name in enumerate(columns)
            if all("N" in item[name] for item in batch if name in item)
        }
        print(aligned([printable(name) for name in columns], rows, right=numbers))


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
    return cell(value["S"] if "S" in value else value_text(value))
