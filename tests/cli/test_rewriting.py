"""`isotone rewrite`: changes a table, says what it did, and takes it back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run

import isotone as package

MODULE = """
from isotone import Attr, Entity, Global, Index, Key, Table, field


class Order(Entity, table=Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})):
    number: Attr[int] = field(max=99)
    total: Attr[int] = field(max=999)
    primary = Key("ORDER", number).sort("ORDER")
    by_total = Index("GSI1", "ORDERS").sort(total)


class OldOrder(Entity, table=Table("shop"), tag="Order"):
    number: Attr[int] = field(max=99)
    total: Attr[str] = field()
    primary = Key("ORDER", number).sort("ORDER")


def to_number(item):
    return {**item, "total": int(item["total"])}


table = Order.__schema__.table
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory with a module of entities, and a file with the items of the former program."""
    name = f"orders_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module = __import__(name)
    with package.connect("shop.db") as store:
        store.create_tables(module.table)
        for number in range(5):
            store.put(module.OldOrder(number=number, total=str(number)))
    yield name
    sys.modules.pop(name, None)


def test_a_rewrite_and_its_undo(site: str, isotone: Run) -> None:
    change = ["--change", f"{site}:to_number"]
    trial = isotone("rewrite", f"{site}:Order", "shop.db", "--dry-run", *change)
    assert trial.code == 0
    assert trial.out.startswith("Order: 5 of 5 items would be rewritten\n  5 invalid\n")
    assert "total: '0' → 0" in trial.out
    done = isotone("rewrite", f"{site}:Order", "shop.db", "--yes", "--undo-log", "log", *change)
    assert (done.code, done.err) == (0, "")
    assert done.out == "Order: 5 of 5 items rewritten\n  5 invalid\n"
    assert isotone("verify", f"{site}:Order", "shop.db").code == 0
    again = isotone("rewrite", f"{site}:table", "shop.db", "--yes", "--json", "--segments", 2)
    assert json.loads(again.out)["Order"]["rewritten"] == 0
    undone = isotone("rewrite", "--undo", "log", "shop.db", "--yes")
    assert (undone.code, undone.out.split(",")[0]) == (0, "6 items restored")
    assert isotone("verify", f"{site}:Order", "shop.db").code == 1
    assert (
        json.loads(isotone("rewrite", "--undo", "log", "shop.db", "--yes", "--json").out)["unmade"]
        == 6
    )


def test_items_that_are_left_exit_with_1(site: str, isotone: Run) -> None:
    code, out, _ = isotone("rewrite", f"{site}:Order", "shop.db", "--yes")
    assert code == 1
    assert "5 invalid" in out
    assert "not rewritten: Order {'PK': 'ORDER#00', 'SK': 'ORDER'}" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["{site}:Order", "shop.db"], "give --yes"),
        (["shop.db"], "give MODULE and ADDRESS"),
        (["{site}:Order", "none.db", "--yes"], "there is no file none.db"),
        (["{site}:Nothing", "shop.db", "--yes"], "has no 'Nothing'"),
        (["{site}:Order", "shop.db", "--yes", "--change", "upgrade"], "write MODULE:NAME"),
        (["{site}:Order", "shop.db", "--yes", "--change", "{site}:table"], "not a function"),
        (["--undo", "none", "shop.db", "--yes"], "there is no undo log none"),
    ],
)
def test_wrong_command_lines_exit_with_2(
    site: str, isotone: Run, words: list[str], text: str
) -> None:
    code, out, err = isotone("rewrite", *(word.format(site=site) for word in words))
    assert (code, out) == (2, "")
    assert text in err


@pytest.mark.parametrize(
    "words",
    [["--dry-run"], ["--undo-log", "new"], ["--segments", "2"], ["--units-per-second", "9"]],
)
def test_an_undo_takes_no_option_of_a_rewrite(site: str, isotone: Run, words: list[str]) -> None:
    """With --dry-run it would write, although it was told not to."""
    change = ["--change", f"{site}:to_number"]
    isotone("rewrite", f"{site}:Order", "shop.db", "--yes", "--undo-log", "log", *change)
    code, out, err = isotone("rewrite", "--undo", "log", "shop.db", "--yes", *words)
    assert (code, out) == (2, "")
    assert f"{words[0]} is for a rewrite" in err
    assert isotone("rewrite", "--undo", "log", site, "shop.db", "--yes").code == 2
    assert isotone("verify", f"{site}:Order", "shop.db").code == 0, "an item was restored"


@pytest.mark.skipif(os.name == "nt", reason="Windows needs a permission for symbolic links")
def test_an_undo_log_that_cannot_be_written_exits_with_2(site: str, isotone: Run) -> None:
    """1 would say that items were left as they are."""
    Path("log").symlink_to("nowhere/log")
    words = ["rewrite", f"{site}:Order", "shop.db", "--change", f"{site}:to_number", "--yes"]
    assert isotone(*words, "--undo-log", "log") == (
        2,
        "",
        "isotone: log: No such file or directory\n",
    )


@pytest.mark.parametrize("options", [["--dry-run"], ["--yes"]])
def test_a_table_with_another_key_is_reported(
    site: str, isotone: Run, tmp_path: Path, options: list[str]
) -> None:
    file = tmp_path / "other.db"
    assert isotone("create", file, "shop", "customer", "placed_at").code == 0
    item = '{"customer": "ann", "placed_at": "2026-01-01"}'
    assert isotone("put", file, "shop", item).code == 0
    assert isotone("rewrite", f"{site}:Order", file, *options) == (
        2,
        "",
        "isotone: table 'shop' has the key customer, placed_at, but is declared with PK, SK; "
        "correct the declaration, or give it the name of another table\n",
    )


def test_rewrite_asks_at_a_terminal(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal:
        answer = "n"

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return f"{self.answer}\n"

    monkeypatch.setattr(sys, "stdin", Terminal())
    code, _, err = isotone("rewrite", f"{site}:OldOrder", "shop.db")
    assert (code, "rewrite OldOrder in shop.db? [y/N]" in err) == (2, True)
    monkeypatch.setattr(Terminal, "answer", "y")
    assert isotone("rewrite", f"{site}:OldOrder", "shop.db").code == 0


def test_an_interruption_continues(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(package.Store, "rewrite", interrupt)
        code, _, err = isotone("rewrite", f"{site}:Order", "shop.db", "--yes")
    assert (code, "the same command continues" in err) == (130, True)
