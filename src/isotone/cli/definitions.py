"""Files that define tables, as a command opens them: a database in memory with these tables and their sample items."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence

from isotone.backends.interface import Backend
from isotone.cli.database import MEMORY, connect
from isotone.errors import ApiError, UsageError
from isotone.schema.deployable import DeployableTable, make
from isotone.schema.formats import ReadTables, defines_tables, read_file
from isotone.tables.description import table_names


def add_parameter_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--parameter`."""
    parser.add_argument(
        "--parameter",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a parameter of a template, or a variable of Terraform; may be repeated",
    )


def parameters_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The parameters by their names."""
    found: dict[str, str] = {}
    for text in arguments.parameter:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--parameter {text!r} has no value; write --parameter Stage=prod")
        if name in found:
            raise UsageError(f"--parameter {name} is given twice")
        found[name] = value
    return found


@contextlib.contextmanager
def connect_to_tables(arguments: argparse.Namespace) -> Iterator[Backend]:
    """The database of a command, or one with the tables of a file that defines some, for a `with` block."""
    parameters = parameters_of(arguments)
    if not defines_tables(arguments.source):
        if parameters:
            raise UsageError(f"{arguments.source} is a database, and has no parameters")
        with connect(arguments.source) as backend:
            yield backend
        return
    with connect(MEMORY) as backend:
        arguments.defined = read_definitions(arguments.source, parameters, backend)
        yield backend


def read_definitions(path: str, parameters: Mapping[str, str], backend: Backend) -> ReadTables:
    """Read a file and make its tables, so that the database has said whether they are valid; prints notes."""
    found = read_file(path, parameters)
    print_notes(found.notes)
    for table in found.tables:
        try:
            refused = make(backend, table)
        except ApiError as error:
            raise UsageError(f"{path}: table {table.name}: {error.message or error.code}") from None
        print_notes([f"{path}: table {table.name}: {each}" for each in refused])
    return found


def print_notes(notes: Sequence[str]) -> None:
    """Print notes on standard error."""
    for note in notes:
        sys.stderr.write(f"note: {' '.join(note.split())}\n")


def attributes_of(arguments: argparse.Namespace, name: str) -> dict[str, str]:
    """The types of attributes outside of keys that a file defines for a table."""
    defined: ReadTables | None = getattr(arguments, "defined", None)
    tables: Sequence[DeployableTable] = defined.tables if defined is not None else ()
    return next((table.attributes for table in tables if table.name == name), {})


def only_table(arguments: argparse.Namespace) -> str:
    """The name of the only table; raises `UsageError` with all names if there are more."""
    names = table_names(arguments.connection)
    if len(names) == 1:
        return names[0]
    raise UsageError(f"which table? The tables are: {', '.join(names) or 'none'}")
