from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run

MODULE = """
from datetime import datetime
from typing import Literal
from isotone import Attr, Entity, Key, Table, field

orders = Table("linted_orders")


class Order(Entity, table=orders):
    customer: Attr[str] = field()
    ordered_at: Attr[datetime] = field()
    status: Attr[Literal["PLACED", "SHIPPED"]] = field()

    primary = Key("CUSTOMER", customer).sort(ordered_at, status){comment}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "linted_shop", raising=False)
    write(tmp_path)
    return tmp_path


def write(folder: Path, comment: str = "") -> None:
    text = MODULE.replace("{comment}", comment)
    (folder / "linted_shop.py").write_text(text, encoding="utf-8")


def test_a_module_with_a_finding(isotone: Run, here: Path) -> None:
    code, out, err = isotone("lint", "linted_shop")
    assert (code, err) == (1, "")
    assert out.startswith("linted_shop.py:14: ISO105 Order.primary sorts by ordered_at before")
    assert isotone("lint", "linted_shop:Order").code == 1


@pytest.mark.usefixtures("here")
def test_selected_and_ignored_codes(isotone: Run) -> None:
    assert isotone("lint", "linted_shop", "--select", "ISO2,ISO3").code == 0
    assert isotone("lint", "linted_shop", "--ignore", "ISO105").code == 0
    assert isotone("lint", "linted_shop", "--select", "ISO1").code == 1


def test_a_suppression_in_the_code(isotone: Run, here: Path) -> None:
    write(here, "  # isotone: ignore[ISO105] always read whole")
    assert isotone("lint", "linted_shop") == (0, "no findings, 1 suppressed in linted_orders\n", "")


def test_the_configuration_of_a_project(isotone: Run, here: Path) -> None:
    config = '[tool.isotone.lint.ignore]\nISO105 = "always read whole"\n'
    (here / "pyproject.toml").write_text(config, encoding="utf-8")
    assert isotone("lint", "linted_shop").code == 0
    (here / "pyproject.toml").write_text('[tool.isotone.lint]\nselct = ["ISO1"]', encoding="utf-8")
    code, _, err = isotone("lint", "linted_shop")
    assert code == 2
    assert "'selct' is not a setting of lint" in err


def test_the_data_of_a_file(isotone: Run, shop: Path, here: Path) -> None:
    assert isotone("lint", shop) == (0, "no findings in Orders\n", "")
    for day in range(1, 29):
        item = f'{{"customer": "bob", "placed_at": "{day:02}/02/2026", "status": "OPEN"}}'
        isotone("put", shop, "Orders", item)
    code, out, _ = isotone("lint", shop, "--table", "Orders")
    assert code == 1
    assert "Orders placed_at: ISO104" in out
    code, out, _ = isotone("lint", "linted_shop", shop)  # the file has not its table
    assert "ISO105" in out


@pytest.mark.usefixtures("here")
def test_forms(isotone: Run) -> None:
    told = json.loads(isotone("lint", "linted_shop", "--format", "json").out)
    assert told["findings"][0]["code"] == "ISO105"
    sarif = json.loads(isotone("lint", "linted_shop", "--format", "sarif").out)
    assert sarif["runs"][0]["results"][0]["ruleId"] == "ISO105"


def test_a_code_is_explained(isotone: Run) -> None:
    code, out, _ = isotone("lint", "--explain", "iso105")
    assert code == 0
    assert out.startswith("ISO105: a component with many values before one with few")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a module, a file or an address"),
        (["nothing_here"], "there is no module 'nothing_here'"),
        (["linted_shop.py"], "there is no module 'linted_shop.py' in {here}; write linted_shop"),
        (["missing.db"], "does not exist"),
        (["linted_shop", "missing.db"], "does not exist"),
        (["http://localhost:1", "other.db"], "a module comes before it"),
        (["linted_shop", "--select", "X"], "'X' is not a code of lint"),
        (["linted_shop", "--engine", "mars"], "'mars' is not an engine"),
        (["linted_shop", "--sample", "0"], "--sample must be at least 1"),
        (["--explain", "ISO9"], "'ISO9' is not a code of lint"),
    ],
)
def test_what_cannot_run(isotone: Run, here: Path, words: list[str], message: str) -> None:
    code, out, err = isotone("lint", *words)
    assert (code, out) == (2, "")
    assert message.format(here=here) in err
