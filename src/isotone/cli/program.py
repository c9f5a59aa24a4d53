"""The `isotone` program: finds the command, parses its command line, prints errors, and returns the exit code.

0    success         1    failure; one sentence on standard error says why
2    a wrong command line        130  interrupted

A wrong command line is one that the parser refuses. A value that is refused later, such as the name of a missing table,
is a failure. Commands that return 1 for findings (diff, lint, model, verify, rewrite) return 2 for every failure, and so
does `schema`.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TextIO

from isotone.error_text import error_text
from isotone.errors import IsotoneError, UsageError

if TYPE_CHECKING:
    from isotone.backends.interface import Backend

WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130
_LONGEST: Final = 10_000  # characters of an error


class Command(NamedTuple):
    """A command, as its module declares it.

    `connect`: how it opens FILE_OR_URL, if not as a database that exists.
    """

    summary: str
    examples: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    connect: Callable[[argparse.Namespace], AbstractContextManager[Backend]] | None = None


class CommandEntry(NamedTuple):
    """A line of `isotone --help`, and the module of the command.

    `opens`: the command's first argument is FILE_OR_URL; in the shell it is left out. `failure` is its exit code for a
    failure: 2, where 1 says that something was found.
    """

    module: str
    summary: str
    opens: bool = False
    failure: int = 1


_MEMORY: Final = ":memory:"
_IN_MEMORY: Final = (
    "serve",
    "demo",
    "mcp",
    "shell",
    "workbench",
)  # commands that run until they are stopped
_PLACES: Final = (
    "source",
    "target",
    "address",
    "file",
    "backup",
)  # arguments that may name a database

COMMANDS: Final = {
    "serve": CommandEntry("serving", "serve a file, or memory, to any AWS SDK over HTTP"),
    "demo": CommandEntry("serving", "serve sample tables to play with"),
    "user": CommandEntry("users", "add and remove those who may use a server"),
    "tables": CommandEntry(
        "tables", "list tables with their keys, indexes, counts and sizes", opens=True
    ),
    "describe": CommandEntry("tables", "show one table: keys, indexes, settings", opens=True),
    "create": CommandEntry("tables", "create a table", opens=True),
    "put": CommandEntry("items", "write items, given as JSON", opens=True),
    "get": CommandEntry("items", "read one item by its key", opens=True),
    "query": CommandEntry("reading", "read items in order of their sort key", opens=True),
    "scan": CommandEntry("reading", "read a whole table, item by item", opens=True),
    "delete": CommandEntry("items", "delete one item by its key", opens=True),
    "sql": CommandEntry("statements", "run SQL statements, with their plan and cost", opens=True),
    "explain": CommandEntry(
        "explaining", "show what a query or a request reads and costs", opens=True
    ),
    "top": CommandEntry("top", "show the most expensive queries of a server"),
    "call": CommandEntry("items", "send any request of the DynamoDB API", opens=True),
    "new": CommandEntry("beginning", "write a module to begin with, from access patterns"),
    "model": CommandEntry(
        "modelling", "write the Python module that models a table", opens=True, failure=2
    ),
    "schema": CommandEntry(
        "schemas", "write tables for CloudFormation, CDK, Terraform and others", failure=2
    ),
    "workbench": CommandEntry("workbench", "show and edit tables in the browser", opens=True),
    "mcp": CommandEntry("mcp", "let a coding assistant read tables, and ask what they cost"),
    "shell": CommandEntry("shell", "type these commands at a prompt"),
    "worker": CommandEntry("worker", "call handlers with each change of a table"),
    "lint": CommandEntry("linting", "find what will hurt in a model or a table", failure=2),
    "verify": CommandEntry(
        "verifying", "find items that are not what a program would write", failure=2
    ),
    "rewrite": CommandEntry("rewriting", "bring items to what a program writes now", failure=2),
    "seed": CommandEntry("seeding", "fill tables with sample data of a model", failure=2),
    "design": CommandEntry(
        "designing", "show what access patterns cost, or what a live table lacks", failure=2
    ),
    "apply": CommandEntry("applying", "make live tables what a model declares", failure=2),
    "simulate": CommandEntry("simulating", "forecast load, hot keys and cost of a workload"),
    "copy": CommandEntry(
        "copying", "copy tables from one engine to another, also while they change"
    ),
    "diff": CommandEntry(
        "copying", "compare tables of two engines, and show what differs", failure=2
    ),
    "export": CommandEntry("item_files", "write a table's items to a file or a folder"),
    "import": CommandEntry("item_files", "write the items of a file or a folder into a table"),
    "backup": CommandEntry("backups", "copy a file while it is in use"),
    "restore": CommandEntry("backups", "make a database of a backup"),
    "compact": CommandEntry("backups", "give a file's free space back to the disk"),
    "check": CommandEntry("checking", "verify a file: structure, indexes, counts"),
    "repair": CommandEntry("checking", "save what a damaged file has into a new one"),
    "doctor": CommandEntry("doctor", "print what a bug report needs"),
    "completion": CommandEntry("completion", "print the script that completes words in a shell"),
    "version": CommandEntry("checking", "print versions"),
}

_INTRODUCTION: Final = """\
usage: isotone COMMAND [ARGUMENTS]

DynamoDB inside a file, in memory, or over HTTP.
"""
_FIRST_STEPS: Final = """\
first steps:
  isotone demo                                             sample tables on a free port
  isotone create shop.db Orders customer placed_at         a table in a new file
  isotone put shop.db Orders '{"customer": "ann", "placed_at": "2026-01-11", "total": 12.5}'
  isotone query shop.db Orders customer=ann
  isotone serve shop.db                                    the same file for boto3 and others

isotone COMMAND --help explains a command, with examples.
FILE_OR_URL is a database file, or an address such as http://localhost:8000.
"""


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. The user's errors do not raise."""
    _replace_closed_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        return _guarded(_print_overview)
    name = "version" if words[0] in ("--version", "-V") else words[0]
    if name not in COMMANDS:
        return _unknown(name)
    return _guarded(lambda: _run(name, words[1:]), COMMANDS[name].failure)


def _print_overview() -> int:
    sys.stdout.write(overview())
    return 0


def overview() -> str:
    """The text of `isotone --help`."""
    lines = [f"  {name:<11}{entry.summary}" for name, entry in COMMANDS.items()]
    return "\n".join([_INTRODUCTION, "commands:", *lines, "", _FIRST_STEPS])


class _CommandParser(argparse.ArgumentParser):
    """A parser that reports errors in one sentence without the usage, like all other errors."""

    def error(self, message: str) -> NoReturn:
        print_error(f"{message}{self._near(message)}; {self.prog} --help explains the command")
        self.exit(WRONG_USAGE)

    def _near(self, message: str) -> str:
        """Suggests the option that an unknown one may stand for."""
        from difflib import get_close_matches  # only a wrong command line pays for this import

        _, _, unknown = message.partition("unrecognized arguments: ")
        for word in unknown.split():
            near = get_close_matches(
                word.partition("=")[0], self._option_string_actions, n=1, cutoff=0.75
            )
            if word.startswith("--") and near:
                return f"; did you mean {near[0]}?"
        return ""


def parser_of(name: str, *, inside_shell: bool = False) -> argparse.ArgumentParser:
    """The argument parser of a command; inside the shell the database is already open."""
    command = command_of(name)
    parser = _CommandParser(
        prog=name if inside_shell else f"isotone {name}",
        description=command.summary,
        epilog=_examples(command.examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if COMMANDS[name].opens and not inside_shell:
        parser.add_argument(
            "source",
            metavar="FILE_OR_URL",
            help="a database file, or the address of a server, such as http://localhost:8000",
        )
    command.add_arguments(parser)
    return parser


def command_of(name: str) -> Command:
    """A command; imports its module."""
    with uncollected():
        module = importlib.import_module(f"isotone.cli.{COMMANDS[name].module}")
    command: Command = module.DEFINITIONS[name]
    return command


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage in a block that imports: there is none, and looking for it takes a twentieth of a start."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _examples(text: str) -> str:
    return "examples:\n" + "\n".join("  " + line for line in text.strip().splitlines())


def _run(name: str, words: list[str]) -> int:
    if "\0" in "".join(words):  # possible in the shell, or if a program calls `run`
        raise UsageError("an argument has a NUL character, which no file, table or value may have")
    arguments = parser_of(name).parse_args(words)
    command = command_of(name)
    _check_lasts(name, arguments)
    if not COMMANDS[name].opens:
        return command.run(arguments)
    from isotone.cli.database import connect

    opened = connect(arguments.source) if command.connect is None else command.connect(arguments)
    with opened as arguments.connection:
        return command.run(arguments)


def _check_lasts(name: str, arguments: argparse.Namespace) -> None:
    """Refuse a database in memory for a command that ends: what it has written would end with it."""
    if name not in _IN_MEMORY and _MEMORY in (getattr(arguments, each, "") for each in _PLACES):
        raise UsageError(
            f"{_MEMORY} would be gone when this command ends: give a file, or use isotone shell"
        )


def _guarded(action: Callable[[], int], failure: int = 1) -> int:
    try:
        try:
            code = action()
        except SystemExit:  # argparse has printed the help or an error
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        notes = getattr(interrupt, "__notes__", ())
        if notes:
            print_error("; ".join(("interrupted", *notes)))
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output has closed it
        _discard(sys.stdout)
        return 1
    except (IsotoneError, OSError, UnicodeError, RecursionError) as error:
        print_error(error_text(error, unnamed="standard input or output"))
    else:
        return code
    try:
        sys.stdout.flush()
    except OSError:
        _discard(sys.stdout)
    return failure


def _replace_closed_streams() -> None:
    """Replace a standard stream that the caller has closed by an empty one; Python has None for it."""
    nothing = Path(os.devnull)
    if sys.stdin is None:
        sys.stdin = nothing.open(encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = nothing.open("w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = nothing.open("w", encoding="utf-8")


def _discard(stream: TextIO) -> None:
    """Redirect a stream to nowhere, so that Python does not fail again when it flushes the stream at exit."""
    with contextlib.suppress(OSError):  # a test's stream has no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def naming(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Add the name of the written file to a system error without one, such as that of a full disk.

    None stands for standard output.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and path is not None:
            error.filename = os.fspath(path)
        raise


def print_error(sentence: str) -> None:
    """Print an error or a warning on one line of standard error."""
    from isotone.postgres_address import hidden  # only an error pays for this import

    line = " ".join(hidden(sentence).encode(errors="backslashreplace").decode().splitlines())
    shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
    try:
        sys.stderr.write(f"isotone: {shown}\n")
        sys.stderr.flush()
    except OSError:  # standard error is closed
        _discard(sys.stderr)


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else "isotone --help lists all commands"
    print_error(f"there is no command {name!r}; {hint}")
    return WRONG_USAGE
