"""`isotone sql`: the items of a statement, how it ran and what it cost."""

from __future__ import annotations

import io
import json

import pytest

import isotone as package
from isotone.server import running_server

ANN = "SELECT placed_at, total FROM Orders WHERE customer = 'ann'"


def test_items_plan_and_cost(isotone, shop):
    outcome = isotone("sql", shop, f"{ANN} AND placed_at >= '2026-01-04'")
    assert outcome == (
        0,
        "placed_at   total\n"
        "──────────  ─────\n"
        "2026-01-04    4.5\n"
        "2026-01-05    5.5\n"
        '2 items (0.5 units; Query of Orders, customer = "ann", placed_at >= "2026-01-04")\n',
        "",
    )


@pytest.mark.parametrize(
    ("statement", "plan"),
    [
        ("SELECT * FROM Orders", "Scan of Orders"),
        ("SELECT * FROM Orders WHERE total > 3 AND tag = 1", "Scan of Orders, filter on tag total"),
        (
            "SELECT * FROM Orders WHERE customer = 'a' AND placed_at = 'b'",
            'GetItem of Orders, customer = "a", placed_at = "b"',
        ),
        (
            "SELECT * FROM Orders WHERE customer = 'a' AND begins_with(placed_at, 'b') AND n = 1",
            'Query of Orders, customer = "a", placed_at begins_with "b", filter on n',
        ),
        (
            "SELECT * FROM Orders WHERE customer IN ['a', 'b', 'c', 'd']",
            '4 Queries of Orders, customer in "a" "b" "c" …',
        ),
        (
            'SELECT * FROM "Orders"."by_status" WHERE status = \'NEW\'',
            'Query of Orders, index by_status, status = "NEW"',
        ),
        (
            "INSERT INTO Orders VALUE {'customer': 'a', 'placed_at': 'b', 'n': 1}",
            'PutItem in Orders, customer = "a", placed_at = "b"',
        ),
        (
            "UPDATE Orders SET n = 1 WHERE customer = 'a' AND placed_at = 'b' AND n = 2",
            'UpdateItem in Orders, customer = "a", placed_at = "b", condition on n',
        ),
        (
            "DELETE FROM Orders WHERE customer = 'a' AND placed_at = 'b'",
            'DeleteItem in Orders, customer = "a", placed_at = "b"',
        ),
    ],
)
def test_a_plan_is_shown_without_running(isotone, shop, statement, plan):
    before = isotone("scan", shop, "Orders", "--format", "jsonl").out
    assert isotone("sql", shop, statement, "--plan") == (0, f"{plan}\n", "")
    assert isotone("scan", shop, "Orders", "--format", "jsonl").out == before


def test_writes_say_that_they_are_done(isotone, shop):
    insert = "INSERT INTO Orders VALUE {'customer': 'bob', 'placed_at': '1'}"
    assert isotone("sql", shop, insert).out == (
        'done (1 unit; PutItem in Orders, customer = "bob", placed_at = "1")\n'
    )
    assert isotone("sql", shop, insert).err == (
        "isotone: DuplicateItemException: Duplicate primary key exists in table\n"
    )
    delete = "DELETE FROM Orders WHERE customer = 'bob' AND placed_at = '1' RETURNING ALL OLD *"
    assert isotone("sql", shop, delete, "--format", "jsonl").out == (
        '{"customer": "bob", "placed_at": "1"}\n'
    )


def test_parameters(isotone, shop):
    statement = "SELECT total FROM Orders WHERE customer = ? AND total IN [?, ?]"
    outcome = isotone(
        "sql", shop, statement, "--param", "ann", "--param", "1.5", "--param", "3.50", "--format", "jsonl"
    )  # fmt: skip
    assert outcome.out == '{"total": 1.5}\n{"total": 3.5}\n'
    assert "Number of parameters" in isotone("sql", shop, statement).err
    assert (
        "--param belongs to one statement"
        in isotone("sql", shop, f"{ANN}; {ANN}", "--param", "x").err
    )


def test_several_statements_from_a_file_and_standard_input(isotone, shop, tmp_path, monkeypatch):
    text = (
        "INSERT INTO Orders VALUE {'customer': 'b;b', 'placed_at': '1'};  -- the first\n"
        "SELECT customer FROM Orders WHERE customer = 'b;b';\n"
    )
    file = tmp_path / "statements.sql"
    file.write_text(text)
    expected = '{"customer": "b;b"}\n'
    assert isotone("sql", shop, f"@{file}", "--format", "jsonl").out == expected
    monkeypatch.setattr("sys.stdin", io.StringIO(text.partition("\n")[2]))
    assert isotone("sql", shop, "-", "--format", "jsonl").out == expected
    assert "cannot read" in isotone("sql", shop, "@none.sql").err
    assert "there is no statement" in isotone("sql", shop, " ; ").err


def test_pages_are_read_up_to_the_limit(isotone, shop):
    two = isotone("sql", shop, ANN, "--limit", "2")
    assert two.out.endswith('customer = "ann"); there are more: --limit or --all\n')
    assert len(two.out.splitlines()) == 5
    filtered = isotone("sql", shop, f"{ANN} AND total > 2", "--limit", "1", "--format", "jsonl")
    assert filtered.out == '{"placed_at": "2026-01-02", "total": 2.5}\n'
    assert filtered.err == "the first 1 item; --all shows everything\n"
    several = "SELECT * FROM Orders WHERE customer IN ['ann', 'bob']"
    for number in range(20):
        insert = f"INSERT INTO Orders VALUE {{'customer': 'bob', 'placed_at': '{number}'}}"
        isotone("sql", shop, insert)
    found = isotone("sql", shop, several, "--all", "--format", "json")
    assert len(json.loads(found.out)) == 25


def test_what_cannot_run(isotone, shop):
    assert isotone("sql", shop, "SELECT *") == (
        1,
        "",
        "isotone: ValidationException: Statement wasn't well formed, can't be processed: Expected FROM after SELECT list\n",
    )
    assert (
        "there is no table Nope; tables here: Orders"
        in isotone("sql", shop, "SELECT * FROM Nope").err
    )
    for statement in ("DELETE FROM Orders WHERE customer = 'ann'", "DELETE FROM Orders"):
        for more in ((), ("--plan",)):
            assert (
                "mandatory equality on all key attributes"
                in isotone("sql", shop, statement, *more).err
            )
    assert (
        "EXISTS can only be used"
        in isotone("sql", shop, "EXISTS(SELECT * FROM Orders)", "--plan").err
    )
    assert "--limit must be at least 1" in isotone("sql", shop, ANN, "--limit", "0").err


def test_a_server(isotone, shop):
    expected = isotone("sql", shop, ANN)
    with package.open(shop) as database, running_server(database) as url:
        assert isotone("sql", url, ANN) == expected


def test_a_line_of_the_shell_may_be_sql(isotone, shop, monkeypatch):
    statement = f"{ANN} AND placed_at = '2026-01-01'"
    lines = f"use Orders\n{statement}\n  select * FROM Orders WHERE customer = 'it''s'\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    outcome = isotone("shell", shop)
    alone = isotone("sql", shop, statement).out
    assert outcome == (
        0,
        f'{alone}0 items (0.5 units; Query of Orders, customer = "it\'s")\n',
        "",
    )
