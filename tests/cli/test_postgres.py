"""Commands on a database in PostgreSQL: what only reads, or is refused, makes nothing there."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.test_no_overwriting import MODULE
from tests.postgres_server import needs_postgres, shared

import isotone as package
from isotone.cli.mcp import _source
from isotone.cli.program import parser_of
from isotone.mcp.tools import AssistantTools
from isotone.postgres_address import address_of

pytestmark = needs_postgres


@pytest.fixture
def module(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module with entities, in the current folder, where `shop.db` is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"postgres_module_{tmp_path.name.replace('-', '_')}"
    Path(f"{name}.py").write_text(MODULE)
    Path("rows.jsonl").write_text('{"customer": "ann", "placed_at": "x"}\n')
    yield name
    sys.modules.pop(name, None)


def has_schema(address: str) -> bool:
    name = address_of(address).schema
    found = shared().execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{name}'")
    return bool(found)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("design MODULE --against NEW", 2),
        ("apply MODULE NEW --dry-run", 1),
        ("verify MODULE NEW", 2),
        ("copy shop.db NEW --dry-run", 0),
        ("copy shop.db NEW Nothing", 1),
        ("copy shop.db NEW Orders=T", 1),
        ("import rows.jsonl NEW T --key customer", 1),
        ("import rows.jsonl NEW Orders --key nothing", 1),
        ("create NEW T id", 1),
        ("create NEW Orders id id", 1),
        ("seed MODULE NEW --table-prefix a/b", 2),
        ("doctor NEW", 0),
    ],
)
def test_what_writes_nothing_makes_no_schema(
    isotone: Run, module: str, line: str, code: int
) -> None:
    address = shared().new_address()
    words = line.replace("MODULE", module).split()
    outcome = isotone(*(address if word == "NEW" else word for word in words))
    assert outcome.code == code, outcome.err
    assert not has_schema(address)


def test_the_first_write_makes_it(isotone: Run, module: str) -> None:
    for line in (
        "copy shop.db NEW",
        "import rows.jsonl NEW Orders --key customer",
        "apply MODULE NEW --yes",
        "create NEW Orders id",
    ):
        address = shared().new_address()
        words = line.replace("MODULE", module).split()
        outcome = isotone(*(address if word == "NEW" else word for word in words))
        assert outcome.code == 0, outcome.err
        with package.open(address) as database:
            assert database.execute("ListTables", {})["TableNames"] != []


def test_a_report_of_a_database(isotone: Run) -> None:
    address = shared().new_address()
    assert "has no Isotone database" in isotone("doctor", address).out
    assert isotone("create", address, "Orders", "id").code == 0
    report = isotone("doctor", address).out
    assert "it opens; isotone check looks for damage" in report
    assert "no such file" not in report


class Terminal(io.StringIO):
    """Standard input as a terminal, at which these lines are typed."""

    def isatty(self) -> bool:
        return True


def test_no_output_shows_a_password(
    isotone: Run, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = shared().new_address()
    address = new.replace("://isotone@", "://isotone:hunter2@")
    assert address != new
    live = ("copy", "shop.db", address, "--live", "--state", "live.json")
    source = ("copy", address, "new.db", "Orders", "--live", "--state", "out.json")
    for typed, words in (
        ("", (*live, "--until-caught-up")),
        ("", (*live, "--cut-over", "--yes")),
        ("", (*source, "--until-caught-up")),
        ("n\n", (*source, "--cut-over")),
        ("", ("seed", module, address)),
        ("n\n", ("rewrite", module, address)),
        ("tables\n", ("shell", address)),
        ("", ("check", address)),
        ("", ("doctor", address)),
        ("", ("export", address, "Orders", "x.jsonl")),
        ("", ("import", "rows.jsonl", address, "Orders", "--json")),
    ):
        monkeypatch.setattr("sys.stdin", Terminal(typed))
        outcome = isotone(*words)
        assert outcome.code == 0 or typed == "n\n", outcome.err
        assert "hunter2" not in outcome.out + outcome.err, words


def test_an_assistant_gets_no_password(isotone: Run, module: str) -> None:
    address = shared().new_address().replace("://isotone@", "://isotone:hunter2@")
    assert isotone("seed", module, address).code == 0
    arguments = parser_of("mcp").parse_args([address, "--model", module])
    with ExitStack() as stack:
        tools = AssistantTools(_source(arguments, stack))
        found = asyncio.run(tools.call("describe_tables", {"table": "shop"}))
        pattern = found["entities"][0]["patterns"][0]
        asked = {"pattern": pattern["name"], "equal": dict.fromkeys(pattern["equal"], "1")}
        answer = asyncio.run(tools.call("read_pattern", asked))
    assert address_of(address).shown in answer["program"]
    assert "hunter2" not in str((found, answer))
