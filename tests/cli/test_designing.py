"""`isotone design`: prints the sheet of a module's access patterns."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

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
    done = isotone("design", site, "--items", "Customer=50", "--rate", "Order.put=10")
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
        (["--reads", "often"], "'often' is not a number of calls a second, such as 50"),
        (["--page", "0"], "page=0 is not a number of items"),
        (["--sheet", "pdf"], "invalid choice: 'pdf'"),
        (["--items", "Custmer=3"], "there is no entity 'Custmer'"),
    ],
)
def test_a_wrong_option_is_one_line(site: str, isotone: Run, words: list[str], error: str) -> None:
    code, out, err = isotone("design", site, *words)
    assert (code, out) == (2, "")
    assert error in err
    assert err.count("\n") == 1
