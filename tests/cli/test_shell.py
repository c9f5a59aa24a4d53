"""Commands at a prompt."""

from __future__ import annotations

import io
import json

import pytest

from isotone.cli.database import connect
from isotone.cli.program import COMMANDS
from isotone.cli.shell import Shell, _typed_lines, split_line
from isotone.errors import UsageError


@pytest.fixture
def shell(isotone, shop, monkeypatch):
    """Runs lines as if they came from a pipe."""

    def run(*lines):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
        return isotone("shell", shop)

    return run


def test_commands_work_without_their_source(shell, isotone, shop):
    commands = (
        "tables",
        "describe Orders",
        "get Orders ann 2026-01-01",
        "query Orders customer=ann",
    )
    outcome = shell(*commands)
    alone = [isotone(words.split()[0], shop, *words.split()[1:]).out for words in commands]
    assert outcome == (0, "".join(alone), "")


def test_a_table_in_use_is_meant(shell, isotone, shop):
    expected = isotone("get", shop, "Orders", "ann", "2026-01-01").out
    assert shell("use Orders", "get ann 2026-01-01").out == expected
    assert shell("use Orders", "get Orders ann 2026-01-01").out == expected
    assert "use takes one of these tables: Orders" in shell("use Nope").err


def test_json_needs_no_quotes(shell):
    outcome = shell(
        'put Orders {"customer": "bob", "placed_at": "1", "note": "it\'s"}',
        "get Orders bob 1 --line",
    )
    assert json.loads(outcome.out)["note"] == "it's"


def test_failures_are_reported_and_the_shell_continues(shell):
    outcome = shell(
        "nonsense", "get Orders", 'get "Orders', "scan Nope", "get Orders ann no", "tables"
    )
    assert outcome.code == 1
    assert "there is no command 'nonsense' here" in outcome.err
    assert "No closing quotation" in outcome.err
    assert "there is no table Nope" in outcome.err
    assert "no such item" in outcome.err
    assert "Orders" in outcome.out


def test_no_command_ends_the_shell(shell, tmp_path):
    (tmp_path / "latin1.json").write_bytes(b"\xff\xfe")
    lines = [*COMMANDS, f"put Orders @{tmp_path}/none.json", f"put Orders @{tmp_path}/latin1.json"]
    outcome = shell(*(line for line in lines), "get Orders ann 2026-01-01 --line")
    assert outcome.code == 1
    assert "none.json: No such file or directory" in outcome.err
    assert json.loads(outcome.out.splitlines()[-1])["customer"] == "ann"


def test_lines_that_say_nothing(shell):
    assert shell("", "   ", "# a remark", "exit", "nonsense") == (0, "", "")


def test_help(shell):
    out = shell("help", "query --help").out
    assert "use TABLE" in out
    assert "usage: query" in out
    assert "serve" not in out.split("usage:")[0]


def test_wrong_arguments_are_explained_in_one_sentence(shell):
    assert shell("scan Orders --limit x", "scan Orders --nope") == (
        1,
        "",
        "isotone: argument --limit: invalid int value: 'x'; scan --help explains the command\n"
        "isotone: unrecognized arguments: --nope; scan --help explains the command\n",
    )


def test_memory_when_no_source_is_given(isotone, monkeypatch):
    monkeypatch.setattr(
        "sys.stdin", io.StringIO('create Tab id\nput Tab {"id": "a"}\nget Tab a --line\n')
    )
    assert isotone("shell") == (0, 'table Tab was created\n{"id": "a"}\n', "")


def test_completion_knows_commands_and_tables(shop):
    with connect(str(shop)) as connection:
        shell = Shell(connection)
        assert shell.complete("Ord", 0) == "Orders "
        assert shell.complete("Ord", 1) is None
        assert {shell.complete("de", 0), shell.complete("de", 1)} == {"describe ", "delete "}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("tables # all", ["tables"]),
        ("query T 'a > 5'", ["query", "T", "a > 5"]),
        ('put T {"a": "b c"}  ', ["put", "T", '{"a": "b c"}']),
        ("""put T '{"a": 1}' --new""", ["put", "T", '{"a": 1}', "--new"]),
        ("call ListTables {}", ["call", "ListTables", "{}"]),
        ("FROM T WHERE a = 'x' SET b = 1", ["sql", "FROM T WHERE a = 'x' SET b = 1"]),
    ],
)
def test_words_of_a_line(line, words):
    assert split_line(line) == words


def test_a_quote_that_does_not_end():
    with pytest.raises(UsageError, match="No closing quotation"):
        split_line("get 'a")


UPDATE = "UPDATE Orders SET note = 'new' WHERE customer = 'ann' AND placed_at = '2026-01-01'"


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((UPDATE, "  AND note = 'other'"), 1),
        ((UPDATE, "  AND note = 'other';", "tables"), 1),
        ((UPDATE, "AND note = 'other'", "", "tables"), 1),
        ((UPDATE, "AND note = 'other'", "tables"), 1),
        ((UPDATE, "AND note = 'other'", UPDATE.replace("ann", "bob")), 1),
        (("UPDATE Orders", "SET note = 'new'", "WHERE customer = 'ann'", "AND placed_at = '1'"), 1),
        (
            (
                "DELETE FROM Orders WHERE customer = 'ann'",
                " AND placed_at = '2026-01-01' AND x = 1",
            ),
            1,
        ),
        (
            (
                "DELETE FROM Orders",
                "WHERE customer = 'ann' AND placed_at = '2026-01-01'",
                "AND x = 1",
            ),
            1,
        ),
    ],
)
def test_a_statement_of_several_lines_never_runs_without_its_conditions(
    shell, isotone, shop, lines, code
):
    before = isotone("get", shop, "Orders", "ann", "2026-01-01").out
    outcome = shell(*lines)
    assert outcome.code == code
    assert "ConditionalCheckFailedException" in outcome.err
    assert isotone("get", shop, "Orders", "ann", "2026-01-01").out == before


def test_statements_end_with_their_lines_or_later(shell, isotone, shop):
    assert shell(UPDATE, "get Orders ann 2026-01-01 --line").code == 0
    outcome = shell("SELECT *", "FROM Orders;", UPDATE, "# a remark", "exit", "nonsense")
    assert outcome.code == 1  # `SELECT *` alone, and `FROM` begins a statement of its own
    outcome = shell(
        "INSERT INTO Orders VALUE {", " 'customer': 'cid',", " 'placed_at': '1'", "}", "exit"
    )
    assert outcome.code == 0, outcome.err
    assert isotone("get", shop, "Orders", "cid", "1", "--line").code == 0


def test_a_typed_statement_that_writes_waits_for_its_end(shop, capsys, monkeypatch):
    """Ctrl-C and Ctrl-D drop it; a SELECT runs at once."""
    prompts: list[str] = []

    def typed(*answers):
        given = iter(answers)

        def answer(prompt):
            prompts.append(prompt)
            line = next(given)
            if isinstance(line, type):
                raise line
            return line

        monkeypatch.setattr("builtins.input", answer)
        with connect(shop) as connection:
            shell = Shell(connection)
            assert shell.run(_typed_lines(shell), is_typed=True) == 0
        return capsys.readouterr().out

    assert "new" not in typed(UPDATE, KeyboardInterrupt, UPDATE, EOFError)
    shown = "SELECT note FROM Orders WHERE customer = 'ann'"
    assert "new" not in typed(shown, EOFError)
    assert "done" in typed(UPDATE + ";", EOFError)
    assert "done" in typed(UPDATE, "", EOFError)
    assert "new" in typed(shown, "exit")
    assert prompts[:4] == ["isotone> ", "   ...> ", "isotone> ", "   ...> "]
