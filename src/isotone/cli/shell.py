"""`isotone shell`: the same commands at a prompt, on one open database.

A line is a command of `isotone` without its FILE_OR_URL. Two words exist only here: `use TABLE`, after
which a command without a table's name means that one, and `exit`. Lines may also come from a pipe.

A SQL statement may have several lines: it must never run without the conditions that its later lines add. `;` ends it,
an empty line, the next command, or the end of a pipe. At a prompt a SELECT ends with its line, as it changes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from isotone.backends.interface import Backend
from isotone.cli.database import MEMORY, connect
from isotone.cli.program import COMMANDS, Command, command_of, parser_of, print_error
from isotone.error_text import error_text
from isotone.errors import IsotoneError, UsageError
from isotone.postgres_address import hidden
from isotone.tables.description import table_names

_BARE_JSON: Final = re.compile(r"""(?P<words>[^'"#{\[]*\s)(?P<json>[{\[].*[}\]])\s*""")
# The words that begin a SQL statement; `delete` alone is a command.
_BARE_SQL: Final = re.compile(
    r"\s*(SELECT\s|INSERT\s+INTO\s|UPDATE\s|FROM\s|DELETE\s+FROM\s).*", re.IGNORECASE | re.DOTALL
)
_SQL_WRITE: Final = re.compile(r"\s*(INSERT|UPDATE|FROM|DELETE)\s", re.IGNORECASE)
_PROMPT: Final = "isotone> "
_PROMPT_WITHIN: Final = "   ...> "
_HISTORY: Final = 1000
_LEAVE: Final = frozenset({"exit", "quit", "\\q"})
# `create` names a table that does not exist yet.
_TABLELESS: Final = frozenset({"tables", "call", "create", "sql"})
_NOT_HERE: Final = frozenset({"workbench"})  # it runs until it is stopped
_HELP: Final = """\
  use TABLE   the table of the commands that follow without one
  SELECT …    a SQL statement (also INSERT, UPDATE, DELETE FROM), as with the command sql;
              one that writes ends with ; or an empty line
  help        this; COMMAND --help explains a command
  exit        leave (also Ctrl-D)
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="FILE_OR_URL",
        nargs="?",
        default=MEMORY,
        help="a database file, created if it does not exist, or the address of a server",
    )


def _run(arguments: argparse.Namespace) -> int:
    with connect(arguments.source, create=True) as connection:
        shell = Shell(connection)
        if sys.stdin.isatty():
            print(f"{hidden(arguments.source)}: help lists the commands, exit leaves")
            with _line_editing(shell.complete):
                return shell.run(_typed_lines(shell), is_typed=True)
        return shell.run(line.rstrip("\n") for line in sys.stdin)


class Shell:
    """Runs commands on one connection, with the table in use."""

    def __init__(self, connection: Backend) -> None:
        self._connection = connection
        self._table: str | None = None
        self._statement = ""  # the lines so far of a statement that goes on

    @property
    def is_within_statement(self) -> bool:
        """Whether a statement was begun that no line has ended."""
        return bool(self._statement)

    def drop_statement(self) -> None:
        """Forget the lines of a statement that goes on."""
        self._statement = ""

    def run(self, lines: Iterator[str], *, is_typed: bool = False) -> int:
        """Run lines until the end or `exit`; returns 1 if any line failed. `is_typed`: a person waits for each result."""
        failed = False
        for line in lines:
            for command in self._ended_by(line, is_typed=is_typed):
                failed = not self.run_line(command) or failed
            if line.strip() in _LEAVE and not self._statement:
                break
        if self._statement:
            failed = not self.run_line(self._statement) or failed
        return int(failed)

    def _ended_by(self, line: str, *, is_typed: bool) -> Iterator[str]:
        """The commands and statements that this line ends."""
        if self._statement and line.strip() and not self._begins(line):
            self._statement += f"\n{line}"
        else:
            if self._statement:
                yield self._taken()
            if not _BARE_SQL.fullmatch(line):
                if line.strip() not in _LEAVE:
                    yield line
                return
            self._statement = line
        is_read = not _SQL_WRITE.match(self._statement)
        if self._statement.rstrip().endswith(";") or (is_typed and is_read):
            yield self._taken()

    def _begins(self, line: str) -> bool:
        """Whether a line begins a command or a statement, and so cannot continue one."""
        word = line.split(maxsplit=1)[0]
        if word.startswith("#"):
            return True
        return word in {*self._commands(), "use", "help", *_LEAVE} or bool(
            _BARE_SQL.fullmatch(line)
        )

    def _taken(self) -> str:
        statement, self._statement = self._statement, ""
        return statement

    def run_line(self, line: str) -> bool:
        """Run one line; returns whether it succeeded. Errors are printed, not raised."""
        try:
            words = split_line(line)
            return not words or self._run(words[0], words[1:]) == 0
        except BrokenPipeError:
            raise  # nobody reads what the next commands print
        except (IsotoneError, OSError, UnicodeError, RecursionError) as error:
            print_error(error_text(error, unnamed="standard input or output"))
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
        return False

    def complete(self, text: str, state: int) -> str | None:
        """readline's protocol: the word number `state` that begins with the text."""
        words = [*self._commands(), "use", "help", "exit"]
        with contextlib.suppress(IsotoneError):
            words += table_names(self._connection)
        matching = [word + " " for word in words if word.startswith(text)]
        return matching[state] if state < len(matching) else None

    def _run(self, name: str, words: list[str]) -> int:
        if name == "help":
            for command in self._commands():
                print(f"  {command:<10}{COMMANDS[command].summary}")
            print(_HELP, end="")
            return 0
        if name == "use":
            return self._use(words)
        if name not in self._commands():
            raise UsageError(f"there is no command {name!r} here; help lists them")
        arguments = self._parse(name, words)
        if arguments is None:
            return 2
        arguments.connection = self._connection
        return command_of(name).run(arguments)

    def _use(self, words: list[str]) -> int:
        known = table_names(self._connection)
        if len(words) != 1 or words[0] not in known:
            raise UsageError(f"use takes one of these tables: {', '.join(known) or 'none yet'}")
        self._table = words[0]
        return 0

    def _parse(self, name: str, words: list[str]) -> argparse.Namespace | None:
        """The arguments; None if the parser has printed an error or the help."""
        if self._table and name not in _TABLELESS and "--help" not in words and "-h" not in words:
            named = next((word for word in words if not word.startswith("-")), None)
            if named not in table_names(self._connection):
                words = [self._table, *words]
        try:
            return parser_of(name, inside_shell=True).parse_args(words)
        except SystemExit:
            return None

    @staticmethod
    def _commands() -> list[str]:
        return [name for name, entry in COMMANDS.items() if entry.opens and name not in _NOT_HERE]


def split_line(line: str) -> list[str]:
    """The words of a line, split like in a shell; but SQL, and JSON at the end of the line, need no quotes.

    >>> split_line('put Orders {"customer": "ann"}')
    ['put', 'Orders', '{"customer": "ann"}']
    >>> split_line("SELECT * FROM Orders WHERE customer = 'ann'")
    ['sql', "SELECT * FROM Orders WHERE customer = 'ann'"]
    """
    if _BARE_SQL.fullmatch(line):
        return ["sql", line.strip()]
    bare = _BARE_JSON.fullmatch(line)
    try:
        if bare is not None:
            return [*shlex.split(bare["words"]), bare["json"]]
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise UsageError(f"{error}: {line.strip()}") from None


def _typed_lines(shell: Shell) -> Iterator[str]:
    while True:
        try:
            yield input(_PROMPT_WITHIN if shell.is_within_statement else _PROMPT)
        except EOFError:
            print()
            shell.drop_statement()  # it may lack its conditions
            return
        except KeyboardInterrupt:
            print()  # Ctrl-C at the prompt drops the line, as shells do
            shell.drop_statement()


@contextlib.contextmanager
def _line_editing(complete: Callable[[str, int], str | None]) -> Iterator[None]:
    """Enable history and completion, if Python was built with readline."""
    if sys.platform == "win32":  # the Windows console has a history of its own
        yield
        return
    try:
        import readline
    except ImportError:
        yield
        return
    history = _history_file()
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(_HISTORY)
    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n")
    # The readline of macOS is libedit, whose bindings have another syntax.
    libedit: Any = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "isotone" / "history"


DEFINITIONS: Final = {
    "shell": Command(
        """\
Open a database and type commands: tables, describe, query, get, put and so on, without FILE_OR_URL.

Without a source, it opens an empty database in memory. History and completion need Python's readline.""",
        examples="""
isotone shell shop.db
isotone shell http://localhost:8000
echo 'query Orders customer=ann' | isotone shell shop.db
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
