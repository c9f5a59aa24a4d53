"""Runs an example in this process, and takes apart what it prints: sections, and the table in each."""

from __future__ import annotations

import importlib
import io
import sys
import unicodedata
from contextlib import redirect_stdout
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tests.headroom import forget_notices
from tests.programs import CONTEXT

FOLDER = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("[0-9]*.py"))

# Smaller numbers, and forked processes, for what does not depend on the address; one run has those of the example.
FEWER: dict[str, dict[str, Any]] = {
    "04_sortable_ids": {
        "COUNT": 1_000,
        "COUNT_TOGETHER": 100,
        "get_context": lambda _: CONTEXT,
    }
}

Row = dict[str, str]


class Section(NamedTuple):
    """What stands between two empty lines: a heading and what is under it."""

    heading: str
    lines: list[str]

    @property
    def rows(self) -> list[Row]:
        """The table: a dict for each line under the rule."""
        rules = (
            place for place, line in enumerate(self.lines) if set("─") <= set(line) <= set("─ ")
        )
        rule = next(rules)
        spans = _spans(self.lines[rule])
        names = _cells(self.lines[rule - 1], spans)
        return [
            dict(zip(names, _cells(line, spans), strict=True)) for line in self.lines[rule + 1 :]
        ]

    def column(self, name: str) -> list[str]:
        """One column of the table."""
        return [row[name] for row in self.rows]


class Printed(NamedTuple):
    """All that an example prints."""

    text: str

    def section(self, heading: str) -> Section:
        """The section whose heading begins so."""
        for block in self.text.split("\n\n"):
            first, *lines = block.strip().splitlines()
            if first.startswith(heading):
                return Section(first, lines)
        raise AssertionError(f"nothing is printed under {heading!r}:\n{self.text}")


def run(name: str, address: str, *, in_full: bool = False) -> Printed:
    """Run an example's `main` as a process of its own would, at an address; see `FEWER`."""
    forget_notices()
    printed = io.StringIO()
    sys.path.insert(0, str(FOLDER))  # also for the processes that it starts
    sys.modules.pop(name, None)
    try:
        example = importlib.import_module(name)
        if not in_full:
            vars(example).update(FEWER.get(name, {}))
        with redirect_stdout(printed):
            example.main(address)
    finally:
        sys.path.remove(str(FOLDER))
        forget_notices()
    return Printed(printed.getvalue())


def _spans(rule: str) -> list[tuple[int, int]]:
    """Where the columns lie, in cells of a terminal."""
    spans, at = [], 0
    for is_column, run_ in groupby(rule, key="─".__eq__):
        width = len(list(run_))
        if is_column:
            spans.append((at, at + width))
        at += width
    return spans


def _cells(line: str, spans: list[tuple[int, int]]) -> list[str]:
    drawn = "".join(each + "\0" * (unicodedata.east_asian_width(each) in "WF") for each in line)
    return [drawn[begin:end].replace("\0", "").strip() for begin, end in spans]
