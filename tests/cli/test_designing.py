"""`isotone design` and `isotone apply`: sheet and diagram of a module, and the plan that changes live tables."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.conftest import Run
from tests.cli.test_seeding import MODULE

PRICES = """
region = "eu-central-1"
as_of = 2026-11-01
million_read_units = 1
million_write_units = 2
read_unit_hour = 0.0001586
write_unit_hour = 0.000793
gigabyte_month = 0.306
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory with a module of entities."""
    name = f"designed_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield name
    sys.modules.pop(name, None)


def test_the_sheet_of_a_module(site: str, isotone: Run) -> None:
    done = isotone(
        "design", site, "--sheet", "text", "--items", "Customer=50", "--rate", "Order.put=10"
    )
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].split()[:3] == ["pattern", "key", "order"]
    assert [line.split()[0] for line in lines[2:10]] == [
        "Customer.get",
        "Order.get",
        "Order.primary",
        "Customer.put",
        "Customer.update",
        "Customer.delete",
        "Order.put",
        "Order.delete",
    ]
    assert any(line.startswith("items: 50 Customer, ") for line in lines)
    assert not list(Path().glob("*.db"))


def test_its_forms_and_prices(site: str, isotone: Run) -> None:
    Path("prices.toml").write_text(PRICES)
    options = ["--reads", 0, "--writes", 4, "--prices", "prices.toml"]
    out = isotone("design", site, "--sheet", "csv", *options).out
    rows = {row["pattern"]: row for row in csv.DictReader(io.StringIO(out))}
    assert float(rows["Order.put"]["cost_a_month"]) == pytest.approx(4 * 2 * 730 * 3600 / 1e6)
    assert float(rows["Order.get"]["cost_a_month"]) == 0
    document = json.loads(isotone("design", site, "--sheet", "json", *options).out)
    assert document["region"] == "eu-central-1"
    assert isotone("design", f"{site}:Order", "--sheet", "markdown").out.startswith("| pattern |")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--rate", "Order.pt=3"], "there is no pattern 'Order.pt'; there are Customer.get"),
        (["--rate", "Order.put"], "'Order.put' is not PATTERN=N, such as Order.by_status=50"),
        (["--rate", "Order.put=3", "--rate", "Order.put=4"], "--rate gives Order.put twice"),
        (["--reads", "often"], "'often' is not a number of calls a second, such as 50"),
        (["--page", "0"], "page=0 is not a number of items"),
        (["--sheet", "pdf"], "invalid choice: 'pdf'"),
        (["--items", "Custmer=3"], "there is no entity 'Custmer'"),
    ],
)
def test_a_wrong_option_is_one_line(site: str, isotone: Run, words: list[str], error: str) -> None:
    code, out, err = isotone("design", site, "--sheet", "text", *words)
    assert (code, out) == (2, "")
    assert error in err
    assert err.count("\n") == 1


def test_the_diagram_is_a_file(site: str, isotone: Run) -> None:
    done = isotone("design", site, "--diagram", "shop.svg")
    assert done == (0, "", "")
    root = ElementTree.parse("shop.svg").getroot()
    shown = {"".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Customer", "Order", "ORDER#{number}", "2 entities share it"} <= shown
    drawn = Path("shop.svg").read_text()
    assert isotone("design", f"{site}:Order", "--diagram", "shop.svg", "--sheet", "csv").code == 0
    assert Path("shop.svg").read_text() != drawn  # a picture that it drew is replaced
    Path("notes.svg").write_text("mine")
    refused = isotone("design", site, "--diagram", "notes.svg")
    assert (refused.code, Path("notes.svg").read_text()) == (2, "mine")


CHANGED = (
    MODULE.replace("field(max=999)", "field(max=99_999)")
    .replace('Table("shop")', 'Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})')
    .replace("import Attr,", "import Global, Index, Attr,")
    + """    by_number = Index("GSI1", "ORDERS").sort(number)
"""
)


@pytest.fixture
def live(site: str, isotone: Run) -> str:
    """A module whose tables are in shop.db as another version of it made them."""
    assert isotone("seed", site, "shop.db", "--items", "Customer=5").code == 0
    sys.modules.pop(site)
    Path(f"{site}.py").write_text(CHANGED)
    return site


def test_a_plan_is_printed_and_applied(live: str, isotone: Run) -> None:
    planned = isotone("design", live, "--against", "shop.db")
    assert (planned.code, planned.err) == (1, "")
    lines = planned.out.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["add", "rewrite"]
    assert lines[-1].startswith("in all: 0.00 USD on demand in us-east-1, about ")
    trial = isotone("apply", live, "shop.db", "--dry-run")
    assert (trial.code, trial.out) == (1, planned.out)
    assert isotone("design", live, "--against", "shop.db").out == planned.out  # nothing was written
    done = isotone("apply", live, "shop.db", "--yes", "--undo-log", "shop.undo")
    assert (done.code, done.err) == (0, "")
    assert done.out == "done: add index GSI1 (shop)\ndone: rewrite Order (shop)\n"
    assert Path("shop.undo").stat().st_size
    assert isotone("verify", live, "shop.db").code == 0
    again = isotone("apply", live, "shop.db")
    assert (again.code, again.out) == (0, "the tables are as declared\n")
    assert isotone("design", live, "--against", "shop.db").code == 0


def test_a_plan_as_json(live: str, isotone: Run) -> None:
    document = json.loads(isotone("design", live, "--against", "shop.db", "--sheet", "json").out)
    assert [step["kind"] for step in document["steps"]] == ["add index", "rewrite"]
    result = json.loads(isotone("apply", live, "shop.db", "--yes", "--json").out)
    assert result == {"done": ["add index GSI1 (shop)", "rewrite Order (shop)"], "left": []}


def test_apply_asks(live: str, isotone: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = isotone("apply", live, "shop.db")
    assert code == 2
    assert "give --yes to do 2 of 2 steps in shop.db without confirmation; --dry-run only" in err
    answers = io.StringIO("n\ny\n")
    monkeypatch.setattr(answers, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", answers)
    refused = isotone("apply", live, "shop.db")
    assert refused.code == 2
    assert "nothing was written" in refused.err
    assert "rewrite Order" in refused.out
    assert isotone("apply", live, "shop.db").code == 0


def test_an_index_is_dropped_only_if_told(live: str, isotone: Run) -> None:
    assert isotone("apply", live, "shop.db", "--yes").code == 0
    sys.modules.pop(live)
    Path(f"{live}.py").write_text(MODULE.replace("field(max=999)", "field(max=99_999)"))
    left = isotone("apply", live, "shop.db", "--yes")
    assert left.code == 1
    assert "drop index GSI1" in left.out
    assert "needs --drop-indexes" in left.out
    done = isotone("apply", live, "shop.db", "--yes", "--drop-indexes")
    assert (done.code, done.out) == (0, "done: drop index GSI1 (shop)\n")


def test_tables_are_made_in_a_missing_file(site: str, isotone: Run) -> None:
    trial = isotone("apply", site, "new.db", "--dry-run")
    assert trial.code == 1
    assert "create table" in trial.out
    assert not Path("new.db").exists()
    assert isotone("apply", site, "new.db", "--yes").out == "done: create table (shop)\n"
    code, _, err = isotone("design", site, "--against", "nowhere.db")
    assert code == 2
    assert "there is no file nowhere.db" in err


def test_a_plan_has_two_forms(site: str, isotone: Run) -> None:
    code, _, err = isotone("design", site, "--against", "shop.db", "--sheet", "csv")
    assert code == 2
    assert "a plan is printed as text or json, not as csv" in err
