"""Every command with words that it cannot use, in each of its places and options: one sentence and exit code 1, or 2.

`ISOTONE_LONG=1` tries each word in each place; the short form three of them, by turns.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest
from tests.effort import LONG

import isotone
from isotone.cli.program import COMMANDS, parser_of, run

BAD_WORDS = [
    "",
    " ",
    "\n",
    "\udcff",
    "a\0b",
    "é",
    "n" * 5000,
    "[" * 100_000,
    '{"a":' * 50_000,
    "-",
    "-1",
    "1e999",
    "99999999999999999999",
    "nan",
    "=",
    "'",
    ":N",
    "id:X",
    "id=1 2",
    "garbage",
    "folder",
    "empty",
    "missing",
    "@missing",
    "@folder",
    "@garbage",
    "@half.jsonl",
    "broken:X",
    "missing:X",
    "localhost:99999",
    "http://",
    "http://[::1",
    "dynamodb://",
    "azure-table://",
    "://",
]

# A good command line of each command that ends by itself.
GOOD = {
    "user": ["add", "ann"],
    "tables": ["d.db"],
    "describe": ["d.db", "Orders"],
    "create": ["d.db", "New", "id"],
    "put": ["d.db", "Orders", '{"id": "1"}'],
    "get": ["d.db", "Orders", "1"],
    "query": ["d.db", "Orders", "id=1"],
    "scan": ["d.db", "Orders"],
    "delete": ["d.db", "Orders", "1"],
    "sql": ["d.db", "SELECT * FROM Orders"],
    "explain": ["d.db", "Orders", "id=1"],
    "call": ["d.db", "GetItem", "{}"],
    "top": ["http://127.0.0.1:9"],  # where nobody listens
    "model": ["d.db", "Orders"],
    "schema": ["d.db"],
    "shell": ["d.db"],
    "new": ["new.py", "--from", "missing"],
    "lint": ["d.db"],
    "verify": ["missing:Order", "d.db"],
    "rewrite": ["missing:Order", "d.db"],
    "simulate": ["missing:Order"],
    "seed": ["missing:Order", "d.db"],
    "design": ["missing:Order"],
    "apply": ["missing:Order", "d.db"],
    "copy": ["d.db", "new.db"],
    "diff": ["d.db", "d.db"],
    "export": ["d.db", "Orders", "out.jsonl"],
    "import": ["items.jsonl", "d.db", "Orders"],
    "backup": ["d.db", "backup.db"],
    "restore": ["d.db", "restored.db"],
    "compact": ["d.db"],
    "repair": ["d.db", "repaired.db"],
}
NOT_TRIED = {"serve", "demo", "mcp", "workbench", "worker"}  # they would go on
PRINT_WHAT_IS_WRONG = {"check", "completion", "doctor", "version"}  # or take no words


def lines(name: str, first_word: int) -> Iterator[list[str]]:
    """The command lines of a command in which one word is bad."""
    words = cycle(BAD_WORDS)
    next(islice(words, first_word, first_word), None)
    good = GOOD[name]
    options = [
        action.option_strings[0]
        for action in parser_of(name)._actions
        if action.option_strings and action.nargs != 0
    ]
    for _ in range(len(BAD_WORDS) if LONG else 3):
        for place in range(len(good)):
            yield [name, *good[:place], next(words), *good[place + 1 :]]
        for option in options:
            yield [name, *good, f"{option}={next(words)}"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys, "path", [*sys.path])
    with isotone.open("d.db", durability="none") as database:
        database.client().create_table(
            TableName="Orders",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        database.client().put_item(TableName="Orders", Item={"id": {"S": "1"}})
    Path("garbage").write_bytes(os.urandom(5000))
    Path("empty").touch()
    Path("folder").mkdir()
    Path("items.jsonl").write_text('{"id": "1"}\n')
    Path("half.jsonl").write_text('{"id": "1"}\n{"id": 2\n')
    Path("broken.py").write_text("raise ValueError('broken')\n")
    return tmp_path


def test_every_command_is_tried() -> None:
    assert {*GOOD, *NOT_TRIED, *PRINT_WHAT_IS_WRONG} == set(COMMANDS)


@pytest.mark.parametrize("name", GOOD)
def test_a_bad_word_is_reported_in_a_sentence(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in lines(name, 7 * list(GOOD).index(name) % len(BAD_WORDS)):
        try:
            code = run(words)
        except SystemExit as leaving:  # of argparse
            code = int(str(leaving.code))
        told = capsys.readouterr().err
        shown = ascii([word[:40] for word in words])  # half a surrogate pair cannot be reported
        assert code in (0, 1, 2), shown
        assert "Traceback" not in told or "ValueError('broken')" in told, shown
        if code == 1 and "broken:X" not in words:
            assert told.startswith("isotone: "), (shown, ascii(told[:500]))
            assert told.count("\n") == 1, (shown, ascii(told[:500]))
            assert len(told) < 12_000, shown
