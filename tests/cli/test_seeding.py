"""`isotone seed`: fills a file, says what it did, and continues where it was stopped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run

import isotone as package
from isotone.cli import seeding as command
from isotone.design import seeding

MODULE = """
from isotone import Attr, Entity, Key, Table, field

shop = Table("shop")


class Customer(Entity, table=shop):
    customer_id: Attr[str] = field()
    name: Attr[str] = field()
    primary = Key("CUSTOMER", customer_id).sort("CUSTOMER")


class Order(Entity, table=shop):
    customer_id: Attr[str] = field()
    number: Attr[int] = field(max=999)
    primary = Customer.primary.children(customer_id).after("ORDER", number)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory with a module of entities."""
    name = f"seeded_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield name
    sys.modules.pop(name, None)


def test_a_missing_file_is_filled(site: str, isotone: Run) -> None:
    words = ["--items", "Customer=20", "--per", "Customer:Order=3..40", "--seed", 7]
    done = isotone("seed", site, "shop.db", *words, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["entities"]["Customer"] == 20
    assert 60 <= found["entities"]["Order"] <= 800
    assert found["tables"] == ["shop"]
    assert isotone("verify", site, "shop.db").code == 0
    assert isotone("seed", site, "other.db", *words).out == (
        f"20 Customer, {found['entities']['Order']} Order\n"
    )
    assert isotone("diff", "shop.db", "other.db").code == 0


def test_a_table_with_items_needs_add(site: str, isotone: Run) -> None:
    assert isotone("seed", site, "shop.db").code == 0
    code, _, err = isotone("seed", site, "shop.db")
    assert code == 2
    assert err.startswith("isotone: table 'shop' has items; give another target, or --add")
    assert isotone("seed", site, "shop.db", "--add", "--seed", 1).code == 0


def test_an_interrupted_run_continues(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    real = seeding.SeedProgress

    def interrupt(items: int, of_items: int) -> seeding.SeedProgress:
        written.append(items)
        if len(written) == 5:
            raise KeyboardInterrupt
        return real(items, of_items)

    monkeypatch.setattr(seeding, "SeedProgress", interrupt)
    code, _, err = isotone("seed", site, "shop.db")
    assert code == 130
    assert "the same command continues where it was" in err
    assert isotone("seed", site, "shop.db").code == 0
    assert written[0] == 0
    assert min(written[5:]) == written[3] >= 75  # only the batch that was not reported is repeated
    assert isotone("seed", site, "whole.db").code == 0
    assert isotone("diff", "shop.db", "whole.db").code == 0
    assert not list(Path("state").rglob("seed-*.json"))


def test_another_model_does_not_continue(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(75, patch)
        assert isotone("seed", site, "shop.db").code == 130
    module = sys.modules.pop(site)
    assert module.Order
    Path(f"{site}.py").write_text(
        MODULE
        + """

class Note(Entity, table=shop):
    number: Attr[int] = field(max=999)
    primary = Key("NOTES").sort("NOTE", number)
"""
    )
    code, _, err = isotone("seed", site, "shop.db")
    assert code == 2
    assert "the model has changed; delete the tables, or give --restart --add" in err
    assert isotone("seed", site, "shop.db", "--restart", "--add").code == 0
    assert isotone("verify", site, "shop.db").code == 0


def interrupt_after(items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt the next run after so many items."""
    real = seeding.SeedProgress

    def progress(done: int, of_items: int) -> seeding.SeedProgress:
        if done >= items:
            raise KeyboardInterrupt
        return real(done, of_items)

    monkeypatch.setattr(seeding, "SeedProgress", progress)


@pytest.mark.parametrize("change", ["the file is deleted", "the table is deleted"])
def test_what_an_interrupted_run_wrote_is_gone(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(75, patch)
        assert isotone("seed", site, "shop.db").code == 130
    if change == "the file is deleted":
        Path("shop.db").unlink()
    else:
        assert isotone("call", "shop.db", "DeleteTable", '{"TableName": "shop"}').code == 0
    assert isotone("seed", site, "shop.db").code == 0
    assert isotone("seed", site, "whole.db").code == 0
    assert isotone("diff", "shop.db", "whole.db", "--items-only").code == 0


def test_a_run_that_is_killed_before_its_first_report_continues(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 runs no handler, so only what was saved before the first write is there."""
    with monkeypatch.context() as patch:
        patch.setattr(command, "_SAVE_EVERY", 1000)
        patch.setattr(command._SeedOutput, "save", lambda _: None)
        interrupt_after(75, patch)
        assert isotone("seed", site, "shop.db").code == 130
    assert isotone("seed", site, "shop.db").code == 0
    assert isotone("seed", site, "whole.db").code == 0
    assert isotone("diff", "shop.db", "whole.db").code == 0


def test_a_run_that_was_refused_is_refused_again(site: str, isotone: Run) -> None:
    assert isotone("create", "shop.db", "shop", "PK", "SK").code == 0
    assert isotone("put", "shop.db", "shop", '{"PK": "mine", "SK": "1"}').code == 0
    for _ in range(2):
        code, _, err = isotone("seed", site, "shop.db")
        assert (code, "table 'shop' has items" in err) == (2, True)


def test_a_new_table_with_items_of_others_is_refused(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(75, patch)
        assert isotone("seed", site, "shop.db").code == 130
    assert isotone("call", "shop.db", "DeleteTable", '{"TableName": "shop"}').code == 0
    assert isotone("create", "shop.db", "shop", "PK", "SK").code == 0
    assert isotone("put", "shop.db", "shop", '{"PK": "mine", "SK": "1"}').code == 0
    code, _, err = isotone("seed", site, "shop.db")
    assert code == 2
    assert "table 'shop' has items" in err
    assert isotone("scan", "shop.db", "shop", "--all", "--format", "jsonl").out.count("\n") == 1


def test_a_field_with_another_name_does_not_continue(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(75, patch)
        assert isotone("seed", site, "shop.db").code == 130
    sys.modules.pop(site)
    Path(f"{site}.py").write_text(MODULE.replace("    name:", "    company:"))
    code, _, err = isotone("seed", site, "shop.db")
    assert code == 2
    assert "the model has changed" in err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--items", "Custmer=3"], "there is no entity 'Custmer'; there are Customer, Order"),
        (["--items", "Customer=3", "--items", "Customer=4"], "--items gives Customer twice"),
        (["--per", "Order=3", "--per", "Order=4"], "--per gives Order twice"),
        (["--items", "Customer"], "'Customer' is not ENTITY=N, such as Customer=1000"),
        (["--items", "Customer=many"], "'many' is not a number; write 2500, 10k or 10M"),
        (["--per", "Order"], "'Order' is not PARENT:CHILD=N..M, such as Customer:Order=3..40"),
        (["--per", "Customer:Order=9..3"], "'9..3' is not a number of items"),
        (["--per", "Order:Customer=9"], "Customer belongs to no other entity, not to Order"),
        (["--popularity", "Customer=x"], "'x' is not a number from 0 to 3"),
        (["--until", "tomorrow"], "'tomorrow' is not a time, such as 2026-01-01"),
        (["--until", "0001-01-01"], "'0001-01-01' is not in the years 1000 to 9900"),
        (["--until", "9999-12-31"], "'9999-12-31' is not in the years 1000 to 9900"),
    ],
)
def test_a_wrong_option_is_one_line(site: str, isotone: Run, words: list[str], error: str) -> None:
    code, out, err = isotone("seed", site, "shop.db", *words)
    assert (code, out) == (2, "")
    assert error in err
    assert err.count("\n") == 1
    assert not Path("shop.db").exists()


def test_a_module_that_is_missing_or_fails(site: str, isotone: Run) -> None:
    code, _, err = isotone("seed", "nothing", "shop.db")
    assert (code, err.count("\n")) == (2, 1)
    assert "there is no module 'nothing'" in err
    Path("broken_here.py").write_text("raise ValueError('it is broken')\n")
    code, _, err = isotone("seed", "broken_here", "shop.db")
    assert code == 2
    assert "module 'broken_here' cannot be imported: ValueError: it is broken" in err


def test_a_table_of_another_shape_is_refused(site: str, isotone: Run) -> None:
    assert isotone("create", "shop.db", "shop", "customer").code == 0
    code, _, err = isotone("seed", site, "shop.db")
    assert code == 2
    assert "table 'shop'" in err
    assert package.connect("shop.db").close() is None
