"""`isotone check` and `isotone version`: is a database consistent, and which versions are installed."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import isotone
from isotone.cli.output import LiveLine
from isotone.cli.program import Command
from isotone.errors import StorageCorrupt, UsageError

# check


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the database file")
    parser.add_argument("--quiet", action="store_true", help="print problems only")


def _check(arguments: argparse.Namespace) -> int:
    if not Path(arguments.file).exists():
        raise UsageError(f"the file {arguments.file} does not exist")
    progress = _Progress(LiveLine(silent=arguments.quiet))
    try:
        problems = _problems(arguments.file, progress)
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


def _problems(path: str, progress: _Progress) -> list[str]:
    from isotone.backends import embedded

    with embedded.open(path) as database:
        return database.check(progress)


class _Progress:
    """The progress of a check."""

    def __init__(self, line: LiveLine) -> None:
        self._line = line
        self._tables: dict[str, int] = {}

    @property
    def items(self) -> int:
        return sum(self._tables.values())

    def __call__(self, table: str, items: int) -> None:
        self._tables[table] = items
        self._line.show(f"{table}: {items:,} items")

    def clear(self) -> None:
        self._line.clear()


CHECK: Final = Command(
    """\
Verify a file: its structure, the place of each item, the completeness of each index, and the counts. Reads
everything once and changes nothing.

Exits with 0 if everything is correct. Otherwise it prints each problem and exits with 1.""",
    examples="""
isotone check shop.db
isotone check shop.db --quiet && cp shop.db backup.db
""",
    add_arguments=_check_arguments,
    run=_check,
)


# version

_PACKAGES: Final = ("apsw", "msgspec", "httptools", "uvloop", "sortedcontainers")


def _version_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--short", action="store_true", help="only Isotone's version")


def _version(arguments: argparse.Namespace) -> int:
    if arguments.short:
        print(isotone.__version__)
        return 0
    print(f"isotone {isotone.__version__}")
    print(f"python {sys.version.split()[0]}")
    for name in _PACKAGES:
        print(f"{name} {_version_of(name)}")
    return 0


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


VERSION: Final = Command(
    "Print the versions of Isotone and of the packages it uses.",
    examples="""
isotone version
isotone version --short
""",
    add_arguments=_version_arguments,
    run=_version,
)


DEFINITIONS: Final = {"check": CHECK, "version": VERSION}
