from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run

MODULE = """
from isotone import Attr, Entity, Index, Global, Key, Table, field

orders = Table("Orders", partition="customer", sort="placed_at",
               indexes={"by_status": Global("status", "placed_at")})


class Order(Entity, table=orders):
    customer: Attr[str] = field()
    placed_at: Attr[str] = field()
    status: Attr[str] = field()
    total: Attr[float] = field()

    primary = Key(customer).sort(placed_at)
    by_status = Index("by_status", status).sort(placed_at)


open_orders = Order.by_status.where(Order.status == "OPEN")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delitem(sys.modules, "explained_shop", raising=False)
    (tmp_path / "explained_shop.py").write_text(MODULE, encoding="utf-8")


def test_a_statement(isotone: Run, shop: Path) -> None:
    code, out, _ = isotone(
        "explain", shop, "SELECT * FROM Orders WHERE customer = ? AND total > 3", "--param", "ann"
    )
    assert code == 0
    assert 'stored     customer = "ann"' in out
    assert "waste      2 of 5 items are read and dropped" in out
    assert "measured" not in out


def test_a_table_with_conditions_and_its_units(isotone: Run, shop: Path) -> None:
    words = ("explain", shop, "Orders", "status=OPEN", "--reverse", "--run", "--json")
    told = json.loads(isotone(*words).out)
    assert (told["index"], told["direction"]) == ("by_status", "backward")
    assert told["measured"]["units"] == told["estimate"]["units"] == 0.5
    assert "Scan of table Orders" in isotone("explain", shop, "Orders").out


@pytest.mark.usefixtures("module")
def test_a_key_of_a_module_with_conditions(isotone: Run, shop: Path) -> None:
    code, out, _ = isotone("explain", shop, "explained_shop:Order.by_status", "status=PAID")
    assert code == 0
    assert "Query of Order.by_status: index by_status of table Orders" in out
    out = isotone("explain", shop, "explained_shop:open_orders", "--reverse").out
    assert "direction  backward" in out
    assert "nothing: the" not in out


@pytest.mark.usefixtures("module")
def test_a_model_names_the_access_patterns(isotone: Run, shop: Path) -> None:
    statement = "SELECT * FROM Orders WHERE status = 'OPEN'"
    out = isotone("explain", shop, statement, "--model", "explained_shop").out
    assert "cheaper    Order.by_status (index by_status) answers 1 of 1 condition by its key" in out
    code, _, err = isotone("explain", shop, statement, "--model", "nothing_there")
    assert code == 1
    assert "there is no module 'nothing_there'" in err


def test_a_request(isotone: Run, shop: Path) -> None:
    request = {"TableName": "Orders", "Key": {"customer": {"S": "ann"}, "placed_at": {"S": "x"}}}
    out = isotone("explain", shop, "--call", "DeleteItem", json.dumps(request)).out
    assert "DeleteItem in table Orders" in out
    assert "there is no such item" in out


def test_a_request_with_a_number_and_one_that_is_malformed(isotone: Run, shop: Path) -> None:
    request: dict[str, object] = {"TableName": "Orders", "Limit": 1}
    out = isotone("explain", shop, "--call", "Scan", json.dumps(request)).out
    assert "Scan of table Orders" in out
    code, _, err = isotone("explain", shop, "--call", "BatchGetItem", json.dumps(request))
    assert code == 1
    assert err.startswith("isotone: ValidationException: ")


def test_into_files(isotone: Run, shop: Path, tmp_path: Path) -> None:
    assert isotone("explain", shop, "Orders", "customer=ann", "--svg", tmp_path / "o.svg").code == 0
    assert (tmp_path / "o.svg").read_text(encoding="utf-8").startswith("<svg")
    assert isotone("explain", shop, "Orders", "--html", tmp_path / "o.html").code == 0
    assert "<dt>stored" not in (tmp_path / "o.html").read_text(encoding="utf-8")


def test_conditions_are_not_required(isotone: Run, shop: Path) -> None:
    code, _, err = isotone("explain", shop)
    assert (code, err.splitlines()[-1]) == (
        2,
        "isotone: the following arguments are required: WHAT; "
        "isotone explain --help explains the command",
    )


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["SELECT * FROM Orders", "customer=ann"], "write the conditions into the statement"),
        (["explained_shop:"], "names no query"),
        (["explained_shop:orders"], "neither a query nor a key"),
        (["explained_shop:open_orders", "status=OPEN"], "is not a key, so it takes no conditions"),
        (["explained_shop:Order.by_status", "nothing=1"], "has no field 'nothing'"),
        (["explained_shop:Order.by_status", "status exists"], "a key cannot answer 'exists'"),
        (["--call", "Query", "[]"], "a request must be a JSON object"),
        (["Nothing"], "there is no table Nothing"),
        (["Orders", "--sample", "-1"], "sample=-1 is not a number of items"),
        (["Orders", "customer=nobody", "--svg", "x.svg"], "there is nothing to draw"),
    ],
)
def test_what_cannot_be_explained(isotone: Run, shop: Path, words: list[str], message: str) -> None:
    code, out, err = isotone("explain", shop, *words)
    assert (code, out) == (1, "")
    assert message in err
