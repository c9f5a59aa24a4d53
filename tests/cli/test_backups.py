"""`isotone backup`, `restore` and `compact`: what they say, and their exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import apsw
import pytest
from tests.cli.conftest import Run

from isotone.storage import file_copies


def test_a_backup_and_its_restore(isotone: Run, shop: Path, tmp_path: Path) -> None:
    copy, new = tmp_path / "copy.db", tmp_path / "new.db"
    code, out, err = isotone("backup", shop, copy)
    assert (code, err) == (0, "")
    assert out.startswith(f"{shop} was backed up to {copy} (")
    code, out, err = isotone("backup", shop, copy)
    assert (code, out) == (1, "")
    assert err == f"isotone: {copy} exists; --force (force=True) replaces it\n"
    assert isotone("backup", shop, copy, "--force", "--quiet") == (0, "", "")
    assert isotone("delete", shop, "Orders", "ann", "2026-01-01").code == 0
    result = json.loads(isotone("backup", shop, copy, "--update", "--json").out)
    assert result["size"] == copy.stat().st_size
    code, out, _ = isotone("restore", copy, new)
    assert code == 0
    assert out.startswith(f"{new} was restored from {copy} (")
    assert "4 items" in isotone("query", new, "Orders", "customer=ann").out
    assert isotone("restore", copy, new).code == 1
    assert isotone("restore", copy, new, "--force", "--quiet") == (0, "", "")


def test_compaction_prints_both_sizes(isotone: Run, shop: Path) -> None:
    code, out, err = isotone("compact", shop)
    assert (code, err) == (0, "")
    assert out.startswith(f"{shop}: ")
    assert " before, " in out
    sizes = json.loads(isotone("compact", shop, "--json").out)
    assert sizes["before"] == sizes["after"] == shop.stat().st_size


def test_a_missing_file_is_named(isotone: Run, tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    for command in (
        ("backup", missing, "x.db"),
        ("restore", missing, "x.db"),
        ("compact", missing),
    ):
        assert isotone(*command) == (1, "", f"isotone: there is no file {missing}\n")


@pytest.mark.parametrize("address", ["localhost:8000", "http://localhost:8000"])
def test_an_address_is_not_a_file(
    isotone: Run, shop: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    refused = (
        f"isotone: {address!r} is the address of a server; "
        "give the path of a file (isotone.connect takes both)\n"
    )
    for command in (
        ("backup", address, "x.db"),
        ("backup", shop, address),
        ("restore", address, "x.db"),
        ("restore", shop, address),
        ("compact", address),
        ("check", address),
        ("repair", address, "x.db"),
        ("repair", shop, address),
        ("serve", address),
        ("demo", address),
    ):
        assert isotone(*command) == (1, "", refused), command
    assert sorted(tmp_path.iterdir()) == before


def test_a_backup_of_a_damaged_file_names_that_file(
    isotone: Run, shop: Path, tmp_path: Path
) -> None:
    connection = apsw.Connection(str(shop))
    connection.execute("UPDATE tree_t1 SET value = x'00'")
    connection.close()
    code, out, err = isotone("backup", shop, tmp_path / "copy.db")
    assert (code, out) == (1, "")
    assert err.startswith(f"isotone: {shop} is damaged (an entry of tree_t1 does not have its")
    assert list(tmp_path.glob("copy.db*")) == []


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (apsw.FullError("full"), "the disk is full under {}"),
        (apsw.CantOpenError("no"), "{} cannot"),
    ],
)
def test_a_target_that_cannot_be_written_is_named(
    isotone: Run,
    shop: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: apsw.Error,
    says: str,
) -> None:
    copy, new = tmp_path / "copy.db", tmp_path / "new.db"
    assert isotone("backup", shop, copy, "--quiet").code == 0
    lock = file_copies._PartFile._lock

    def fail(self: file_copies._PartFile) -> None:
        lock(self)
        raise error

    monkeypatch.setattr(file_copies._PartFile, "_lock", fail)
    for command in (("backup", shop, new), ("restore", copy, new)):
        code, out, err = isotone(*command)
        assert (code, out) == (1, "")
        assert err.startswith(f"isotone: {says.format(new)}"), err
    assert list(tmp_path.glob("new.db*")) == []


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("DROP TABLE tree_t1", ["table Orders is missing\n"]),
        ("DROP TABLE tree_i2", ["table Orders: index by_status is missing\n"]),
        (
            "DELETE FROM tree_i2",
            [
                "its entry in index by_status is missing or outdated\n",
                "table Orders: index by_status has 0 readable entries instead of 5\n",
            ],
        ),
    ],
)
def test_a_check_names_tables_and_indexes_not_trees(
    isotone: Run, shop: Path, sql: str, says: list[str]
) -> None:
    connection = apsw.Connection(str(shop))
    connection.execute(sql)
    connection.close()
    code, out, err = isotone("check", shop)
    assert (code, err) == (1, "")
    for each in says:
        assert each in out
    problems = "".join(out.splitlines(keepends=True)[:-1])
    assert not re.search(r"\b(tree|t1|i2)\b", problems)


def test_a_damaged_index_is_rebuilt_and_no_loss(isotone: Run, shop: Path, tmp_path: Path) -> None:
    connection = apsw.Connection(str(shop))
    for tree in ("i2", "counts"):  # the index by_status, and the counts of the table and the index
        connection.execute(f"UPDATE tree_{tree} SET value = CAST(value || x'00' AS BLOB)")
    connection.close()
    assert isotone("repair", shop, tmp_path / "new.db") == (
        0,
        f"{tmp_path / 'new.db'}: 5 items saved, nothing lost, 7 damaged entries of indexes and counts rebuilt\n",
        "",
    )
    code, out, _ = isotone("repair", shop, tmp_path / "other.db", "--json")
    told = json.loads(out)
    assert (code, told["lost"], told["problems"]) == (0, [], [])
    assert [each["what"] for each in told["rebuilt"]].count("an index entry") == 5
    assert isotone("check", tmp_path / "new.db").code == 0
    page = isotone("query", tmp_path / "new.db", "Orders", "status=OPEN").out
    assert "2026-01-02" in page
    assert ", index by_status)" in page


def test_a_repair_lists_what_is_lost(isotone: Run, shop: Path, tmp_path: Path) -> None:
    report, new = tmp_path / "lost.jsonl", tmp_path / "new.db"
    code, out, err = isotone("repair", shop, new, "--report", tmp_path / "none" / "lost.jsonl")
    assert (code, out) == (1, "")
    assert "--report" in err
    assert not new.exists()  # nothing was done in vain
    for number in range(30):
        item = f'{{"customer": "bob", "placed_at": "{number:02}", "status": "OPEN"}}'
        assert isotone("put", shop, "Orders", item).code == 0
    connection = apsw.Connection(str(shop))
    connection.execute("UPDATE tree_t1 SET value = x'00'")
    connection.close()
    code, out, err = isotone("repair", shop, new, "--report", report)
    assert (code, err) == (1, "")
    lost = len(report.read_text().splitlines())
    assert lost == 36  # 35 items, and the count of the table
    *first, more, last = out.splitlines()
    assert len(first) == 20
    assert more == f"and 16 more losses: see {report}"
    assert last == f"{new}: 0 items saved, 36 losses"
