"""`isotone check`: whether a file is what it should be."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Final

from isotone.errors import StorageCorrupt, UsageError

SUMMARY: Final = """\
Verify a file: its structure, that each item lies where its key says, that each index is complete, that
the counts are true. Reads everything once and changes nothing.

Exits with 0 where all is well; otherwise prints what is wrong, and exits with 1."""
EXAMPLES: Final = """
isotone check shop.db
isotone check shop.db --quiet && cp shop.db backup.db
"""

_PROGRESS_EVERY: Final = 0.5  # seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the database file")
    parser.add_argument("--quiet", action="store_true", help="print problems only")


def run(arguments: argparse.Namespace) -> int:
    if not Path(arguments.file).exists():
        raise UsageError(f"there is no file {arguments.file}")
    progress = _Progress(silent=arguments.quiet or not sys.stderr.isatty())
    try:
        problems = _check(arguments.file, progress)
    except StorageCorrupt as error:
        problems = [str(error)]
    progress.clear()
    for problem in problems:
        print(problem)
    if problems:
        print(f"{arguments.file}: {len(problems)} problem{'' if len(problems) == 1 else 's'}")
        return 1
    if not arguments.quiet:
        print(f"{arguments.file}: all is well ({progress.items:,} items)")
    return 0


def _check(path: str, progress: _Progress) -> list[str]:
    from isotone.backends import embedded

    with embedded.open(path) as database:
        return database.check(progress)


class _Progress:
    """A line on a terminal that says how far the check is."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self._shown = time.monotonic()
        self._tables: dict[str, int] = {}

    @property
    def items(self) -> int:
        return sum(self._tables.values())

    def __call__(self, table: str, items: int) -> None:
        self._tables[table] = items
        now = time.monotonic()
        if not self._silent and now - self._shown >= _PROGRESS_EVERY:
            self._shown = now
            sys.stderr.write(f"\r\x1b[K{table}: {items:,} items")
            sys.stderr.flush()

    def clear(self) -> None:
        if not self._silent:
            sys.stderr.write("\r\x1b[K")
