"""The output of commands: `--format` (table, json, jsonl), widths of a terminal; the live line that `progress` fills."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from shutil import get_terminal_size
from typing import Final, Self

from isotone.text_table import aligned, cell, printable
from isotone.values.notation import item_text, value_text
from isotone.values.types import AttributeValue, Item

_SAMPLE: Final = 200  # items from which the columns and their widths are chosen
_ERASE: Final = "\r\x1b[K"  # erases the current line
_EVERY: Final = 0.5  # seconds between two updates of a live line


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the argument that chooses the format of items."""
    parser.add_argument(
        "--format",
        choices=tuple(_WRITERS),
        default="table",
        help="a table (the default), a JSON array, or one JSON object a line",
    )


def write_items(items: Iterable[Item], form: str, first: Sequence[str] = ()) -> None:
    """Print items as they arrive; `first` names the attributes that come first in a table."""
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
    """The columns: those of `first` that occur, then the others in order of occurrence."""
    seen = dict.fromkeys(name for item in items for name in item)
    return list(dict.fromkeys([name for name in first if name in seen] + list(seen)))


def _cell(value: AttributeValue | None) -> str:
    if value is None:
        return ""
    return cell(value["S"] if "S" in value else value_text(value))


class LiveLine:
    """Shows the progress of a command in one line of standard error; nothing if standard error is not a terminal.

    The line is erased at the end of a `with` block.
    """

    def __init__(self, *, silent: bool = False) -> None:
        self._is_silent = silent or not sys.stderr.isatty()
        self._shown = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: object, *, at_once: bool = False) -> None:
        """Replace the text, at most twice a second unless `at_once`."""
        now = time.monotonic()
        if self._is_silent or (now - self._shown < _EVERY and not at_once):
            return
        self._shown = now
        width = get_terminal_size().columns - 1  # a wrapped line could not be erased
        sys.stderr.write(_ERASE + str(text)[:width])
        sys.stderr.flush()

    def clear(self) -> None:
        """Erase the line."""
        if not self._is_silent:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
