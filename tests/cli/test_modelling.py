"""`isotone model`: what it prints, where, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_the_module_is_printed_and_the_notes_are_not(isotone: Run, shop: Path) -> None:
    code, out, err = isotone("model", shop, "Orders")
    assert code == 0
    compile(out, "orders.py", "exec")
    assert 'orders = Table(\n    "Orders",\n    partition="customer",\n' in out
    assert "class Order(Entity, table=orders):" in out
    assert "no item has a tag" in err
    assert err.endswith(
        "Orders: 1 entity from all 5 items; every item is modelled, verified with 5 items\n"
    )


def test_the_module_is_written_to_a_file(isotone: Run, shop: Path, tmp_path: Path) -> None:
    printed = isotone("model", shop, "Orders", "--no-verify").out
    code, out, err = isotone("model", shop, "Orders", "--output", tmp_path / "orders.py")
    assert (code, out) == (0, "")
    assert "verified" in err
    assert (tmp_path / "orders.py").read_text("utf-8") == printed


def test_json_has_the_source_and_the_notes(isotone: Run, shop: Path) -> None:
    code, out, _ = isotone("model", shop, "Orders", "--json", "--all")
    found = json.loads(out)
    assert code == 0
    assert found["entities"] == [
        {
            "name": "Order",
            "tag": None,
            "items": 5,
            "fields": found["entities"][0]["fields"],
        }
    ]
    assert set(found["entities"][0]["fields"]) == {"customer", "placed_at", "total", "status"}
    assert (found["is_whole"], found["is_complete"]) == (True, True)
    assert any("tag" in note["what"] for note in found["notes"])


def test_what_is_not_modelled_is_at_the_top_and_in_the_exit_code(isotone: Run, shop: Path) -> None:
    isotone("create", shop, "mixed", "PK", "SK")
    for number in range(40):
        item = {"PK": f"USER#{number}", "SK": "USER", "type": "user", "number": number}
        isotone("put", shop, "mixed", json.dumps(item))
    isotone("put", shop, "mixed", '{"PK": "odd", "SK": "USER", "type": "user", "number": 1}')
    code, out, err = isotone("model", shop, "mixed")
    assert code == 1
    assert "verified: 1 item: key user.primary, such as odd USER" in out
    assert "some items are not modelled, verified with 41 items" in err
    assert 'primary = Key("USER", raw(number)).sort("USER")' in out


def test_a_sample_is_not_the_whole_table(isotone: Run, shop: Path) -> None:
    code, out, err = isotone("model", shop, "Orders", "--sample", "3")
    assert code == 0
    assert "inferred from 3 items, not all of them" in out
    assert "from a sample of 3 items" in err
    assert "verified with 5 items" in err


def test_wrong_calls_are_refused(isotone: Run, shop: Path) -> None:
    assert isotone("model", shop, "Orders", "--sample", "0").code == 2
    code, out, err = isotone("model", shop, "Nope")
    assert (code, out) == (2, "")
    assert err == "isotone: there is no table 'Nope'; the tables are: Orders\n"


def test_the_only_table_need_not_be_named(isotone: Run, shop: Path) -> None:
    assert isotone("model", shop).out == isotone("model", shop, "Orders").out
    isotone("create", shop, "Customers", "id")
    code, out, err = isotone("model", shop)
    assert (code, out) == (2, "")
    assert err == "isotone: which table? The tables are: Customers, Orders\n"


def test_an_empty_table_is_drafted_from_its_keys(isotone: Run, shop: Path) -> None:
    isotone("create", shop, "empty", "id")
    code, out, _ = isotone("model", shop, "empty")
    assert code == 0
    assert "the table is empty" in out
    assert 'empty = Table("empty", partition="id", sort=None)' in out
    assert "class Empty(Entity, table=empty):" in out
    assert "    id: Attr[str] = field()\n" in out
