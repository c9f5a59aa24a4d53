"""`isotone lint`: finds design problems in a model, or in a table; --select, --ignore, --format, --engine."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import isotone
from isotone.advisor.lint import RULES, LintReport, Settings, lint
from isotone.advisor.lint.catalogue import codes_of
from isotone.advisor.lint.settings import configured, selected
from isotone.cli import modules
from isotone.cli.database import connect, is_address
from isotone.cli.program import Command
from isotone.errors import UsageError

_FOUND: Final = 1
_SAMPLE: Final = 10_000
_FORMS: Final[dict[str, Callable[[LintReport], str]]] = {
    "text": LintReport.text,
    "json": lambda report: json.dumps(report.to_dict(), indent=2, ensure_ascii=False),
    "sarif": lambda report: json.dumps(report.to_sarif(), indent=2, ensure_ascii=False),
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    what = "a module with entities, MODULE:NAME,NAME for some of them; or a file or an address"
    add("what", metavar="MODULE", nargs="?", help=what)
    add("address", metavar="FILE_OR_URL", nargs="?", help="the data of the module's tables")
    add("--table", metavar="NAME", action="append", default=[], help="check only this table")
    add(
        "--select",
        metavar="CODE,…",
        help="check only these codes; ISO1 means all that begin with it",
    )
    add("--ignore", metavar="CODE,…", help="do not show these codes")
    engines = "the engines that the model must run on, such as alternator,azure-table"
    add("--engine", metavar="NAME,…", help=engines)
    add("--format", choices=tuple(_FORMS), default="text", help="the form of the report")
    sample = f"items that are read of each table, by default {_SAMPLE:,}"
    add("--sample", metavar="N", type=int, default=_SAMPLE, help=sample)
    add("--explain", metavar="CODE", help="print what a code means, and how to fix it")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.explain:
        print("\n\n".join(RULES[code].text() for code in sorted(codes_of(arguments.explain))))
        return 0
    report = _report(arguments)
    print(_FORMS[arguments.format](report))
    return _FOUND if report.findings else 0


def _report(arguments: argparse.Namespace) -> LintReport:
    settings = _settings(arguments)
    what, address = arguments.what, arguments.address
    if what is None:
        raise UsageError(
            "name a module, a file or an address; or a code: isotone lint --explain ISO101"
        )
    if arguments.sample < 1:
        raise UsageError("--sample must be at least 1")
    targets: list[Any] = []
    if is_address(what):
        if address is not None:
            raise UsageError(f"{what} is a file or an address; a module comes before it")
        address = what
    else:
        targets = [*_targets(what)]
    targets += arguments.table
    if address is None:
        return lint(*targets, settings=settings)
    with _store(address) as store:
        return lint(*targets, store=store, settings=settings, sample=arguments.sample)


def _targets(text: str) -> Sequence[Any]:
    """The module itself, so that its queries are checked, too; or the names in it that the text lists."""
    if ":" in text:
        return [*modules.targets(text)]
    modules.targets(text)  # raises for a wrong module
    return [modules.load(text)]


@contextlib.contextmanager
def _store(address: str) -> Iterator[isotone.Store]:
    with connect(address) as connection, isotone.connect(connection, check_keys=False) as store:
        yield store


def _settings(arguments: argparse.Namespace) -> Settings:
    """The settings in pyproject.toml, with those of the command line."""
    settings = configured(Path.cwd())
    if arguments.select:
        settings = replace(settings, select=selected(arguments.select.split(",")))
    if arguments.ignore:
        hidden = selected(arguments.ignore.split(","))
        settings = replace(settings, select=settings.select - hidden)
    if arguments.engine:
        settings = replace(settings, engines=tuple(arguments.engine.split(",")))
    return settings


DEFINITIONS: Final = {
    "lint": Command(
        """\
Find design problems in the keys, indexes and fields of a model, and in the data of a table. Each finding has a code, a
place, a reason, its cost, and what to do. Nothing is written.

A module is imported from the current directory first. With FILE_OR_URL, the items of its tables are checked, and what
its queries drop by filters. Without a module, all tables of the file or server are checked.

A comment suppresses a finding on its line:  # isotone: ignore[ISO105] always read whole
[tool.isotone.lint] in pyproject.toml has the settings.

Exits with 0 without findings, with 1 if there are some, and with 2 if it could not run.""",
        examples="""
isotone lint shop                                      the entities of shop.py
isotone lint shop:Order --engine azure-table           one entity, also for another engine
isotone lint shop shop.db                              the same, and the data
isotone lint http://localhost:8000 --table Orders      a table without a model
isotone lint shop --format sarif > lint.sarif          for the code host
isotone lint --explain ISO105
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
