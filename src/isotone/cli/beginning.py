"""`isotone new`: writes a module to begin with, from a file of access patterns, or from questions at a terminal."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from keyword import iskeyword
from pathlib import Path
from typing import Final

from isotone.cli.modules import check_hides_nothing
from isotone.cli.program import Command, naming
from isotone.errors import UsageError
from isotone.inference import BegunModule, PatternAnswer, PatternFile, begin, read_patterns
from isotone.output_paths import OutputPath, check_outputs, check_regular, write_text
from isotone.text_table import pluralized

Ask = Callable[[str], str]
"""Asks a question, and returns the line that is typed."""

# A module that was written before begins so; that of isotone model begins otherwise.
_BEGINS: Final = b'"""Begun from '
_TABLE: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="the module to write, such as shop.py")
    patterns = "read entities and access patterns from this file, instead of asking for them"
    add("--from", metavar="PATTERNS", dest="patterns", help=patterns)
    add("--table", metavar="NAME", help="the table's name, by default that of the module")
    add("--force", action="store_true", help="replace a module that this command wrote")


def _run(arguments: argparse.Namespace) -> int:
    output = OutputPath("FILE", arguments.file, begins=(_BEGINS,))
    table = arguments.table or Path(arguments.file).stem
    _check_names(arguments.file, table)
    if Path(arguments.file).exists() and not arguments.force:
        raise UsageError(
            f"{arguments.file} exists; --force replaces a module that this command wrote"
        )
    check_outputs(output, inputs={"--from": arguments.patterns})
    if arguments.patterns is not None:
        begun = begin(_patterns_of(arguments.patterns), table)
    elif sys.stdin.isatty():
        begun = begin(asked(_typed), table)
    else:
        raise UsageError(
            "there is no terminal to ask at; give a file of access patterns: "
            f"isotone new {arguments.file} --from patterns.txt"
        )
    with naming(output.path):
        write_text(output, begun.source)
    for line in _summary(begun, arguments.file):
        print(line)
    return 0


def _check_names(file: str, table: str) -> None:
    path = Path(file)
    if path.suffix != ".py" or not path.stem.isidentifier() or iskeyword(path.stem):
        raise UsageError(f"{file} is no name of a module; give one such as shop.py")
    check_hides_nothing(file)
    if not _TABLE.fullmatch(table):
        raise UsageError(
            f"{table!r} is no name of a table, which has 3 to 255 letters, digits, _, - and .; give --table NAME"
        )


def _patterns_of(path: str) -> PatternFile:
    check_regular(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a text in UTF-8") from None
    return read_patterns(text, path)


def _summary(begun: BegunModule, file: str) -> list[str]:
    lines = [f"{each.pattern.text}: {_answer(each)}" for each in begun.answers]
    module, folder = Path(file).stem, Path(file).parent
    where = "" if folder == Path() else f", in {folder}"
    patterns = pluralized(len(begun.answers), "access pattern")
    return [
        *lines,
        f"{file} has {patterns}; next{where}: isotone design {module}, isotone lint {module}",
    ]


def _answer(answer: PatternAnswer) -> str:
    return f"{answer.key}{answer.direction and f', with {answer.direction}'}"


# Questions


def _typed(question: str) -> str:
    try:
        return input(question)
    except EOFError:
        raise UsageError("the input has ended before the questions; nothing was written") from None


def asked(ask: Ask) -> PatternFile:
    """The entities and patterns that somebody types: each answer is checked when it is given, and asked for again."""
    print("Which kinds of items are there? An empty line ends each list.")
    lines: list[str] = []
    while (added := _entity(lines, ask)) is not None:
        lines.append(added)
    print(
        "How are they read? By which fields, and in which order: Order of status by placed_at desc"
    )
    while (added := _checked(lines, ask, "read: ", "{}")) is not None:
        lines.append(added)
    return read_patterns("\n".join(lines))


def _entity(lines: list[str], ask: Ask) -> str | None:
    """The line of one more entity; None if there are no more."""
    name = _checked(lines, ask, "kind of item, such as Order: ", "{}(id;)", returns_line=False)
    if name is None:
        return None
    parent = _parent(lines, ask, name)
    within = f" within its {parent.name}" if parent is not None else ""
    inherited = "" if parent is None else ", ".join(parent.written) + ", "
    identity = _checked(
        lines,
        ask,
        f"  what identifies it{within}, such as number: int <= 99_999: ",
        f"{name}({inherited}{{}};)",
        returns_line=False,
        is_needed=True,
    )
    before = f"{name}({inherited}{identity}; "
    others = _checked(
        lines,
        ask,
        "  what else it has, such as status: OPEN|PAID, placed_at: datetime: ",
        before + "{})",
        returns_line=False,
    )
    return f"{before}{others or ''})"


class _Parent:
    """An entity that another one belongs to, and the fields of its key as they are written."""

    def __init__(self, lines: list[str], name: str) -> None:
        self.name = name
        line = next(each for each in lines if each.startswith(f"{name}("))
        self.written = [
            each.strip() for each in line.partition("(")[2].partition(";")[0].split(",")
        ]


def _parent(lines: list[str], ask: Ask, name: str) -> _Parent | None:
    """The entity that this one belongs to, if there are some."""
    known = list(read_patterns("\n".join(lines)).entities) if lines else []
    while known:
        typed = ask(f"  what {name} belongs to, of {', '.join(known)}: ").strip()
        if not typed:
            return None
        if typed in known:
            return _Parent(lines, typed)
        print(f"  there is no {typed!r}")
    return None


def _checked(
    lines: list[str],
    ask: Ask,
    question: str,
    form: str,
    *,
    returns_line: bool = True,
    is_needed: bool = False,
) -> str | None:
    """What is typed, once it makes a good line in a form; None for an empty line. A wrong one is said, and asked for again."""
    while True:
        typed = ask(question).strip()
        if not typed and not is_needed:
            return None
        line = form.replace("{}", typed)
        try:
            read_patterns("\n".join([*lines, line]))
        except UsageError as error:
            print(f"  {str(error).partition(': ')[2] or error}")
        else:
            return line if returns_line else typed


DEFINITIONS: Final = {
    "new": Command(
        """\
Write a module to begin with: a table, its entities and their access patterns. It asks for them at a terminal, or reads a
file. In such a file, each line is an entity or a pattern:

  Customer(customer_id; name, email)
  Order(customer_id, number: int <= 99_999; status: OPEN|PAID|SHIPPED, placed_at: datetime, total: decimal)

  Order of Customer by number desc
  Order of status by placed_at

Before the semicolon are the fields that identify an entity. Types are text (the default), int, decimal, bool, datetime,
date, uuid, ulid, and choices. A number in a key needs its greatest value. A field with ? may be missing. After # are comments.

No file is overwritten without --force, and then only one that this command has written.""",
        examples="""
isotone new shop.py                            asks
isotone new shop.py --from patterns.txt
isotone new shop.py --from patterns.txt --table shop-dev --force
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
