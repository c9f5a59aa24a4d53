"""An import that ends as complete has left nothing out: no file of a folder, no column, no row."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone import moving
from isotone.errors import BadRow, UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def imported(source: str, key: str = "id") -> list[dict[str, Any]]:
    """The items of a new table after an import."""
    with isotone.open(":memory:") as database:
        moving.import_items(source, database, "Orders", key=key)
        found: list[dict[str, Any]] = database.execute("Scan", {"TableName": "Orders"})["Items"]
        return found


def write_items(*names: str) -> None:
    for name in names:
        path = Path("items", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"id": "{name}"}}\n')


def test_a_folder_is_read_with_links_and_names_in_capitals() -> None:
    write_items("a.jsonl", "B.JSONL", "in/c.jsonl")
    Path("other").mkdir()
    Path("other/d.jsonl").write_text('{"id": "d"}\n')
    Path("items/link").symlink_to(Path("other").absolute())
    Path("items/in/back").symlink_to(Path("items").absolute())
    found = {item["id"]["S"] for item in imported("items/")}
    assert found == {"a.jsonl", "B.JSONL", "in/c.jsonl", "d"}


def test_a_link_to_nothing_is_not_left_out() -> None:
    write_items("a.jsonl")
    Path("items/b.jsonl").symlink_to("/nowhere/b.jsonl")
    with pytest.raises(UsageError, match=r"cannot read items/b\.jsonl"):
        imported("items/")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no such permissions")
def test_a_folder_that_cannot_be_read_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    write_items("a.jsonl", "in/b.jsonl")
    listed = Path.iterdir

    def refused(path: Path) -> Any:
        if path.name == "in":  # root may read every folder
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(UsageError, match="cannot read items/in: Permission denied"):
        imported("items/")


def test_lines_that_end_with_cr_alone_are_refused() -> None:
    Path("orders.csv").write_bytes(b"id,total\ra,1\rb,2\r")
    with pytest.raises(UsageError, match="end with CR alone"):
        imported("orders.csv")


@pytest.mark.parametrize(
    ("name", "header", "bad"),
    [
        ("rows.jsonl", "", '{"id": "2", "v": "\\ud800"}'),
        ("rows.jsonl", "", '{"id": "2", "v": {"\\udfff": [1]}}'),
        ("rows.csv", "id,v:JSON\n", '2,"""\\ud800"""'),
    ],
)
def test_half_of_a_character_is_a_bad_row(name: str, header: str, bad: str) -> None:
    rows = ["1,1", bad, "3,3"] if header else ['{"id": "1"}', bad, '{"id": "3"}']
    Path(name).write_text(header + "\n".join(rows))
    with isotone.open(":memory:") as target:
        done = moving.import_items(name, target, "Orders", key="id", bad_rows="bad")
        assert (done.items, done.bad) == (2, 1)
    assert json.loads(Path("bad").read_text())["text"] == bad
    assert "half of a character" in Path("bad").read_text()


def test_a_name_that_begins_with_a_byte_order_mark_comes_back() -> None:
    with isotone.open(":memory:") as source:
        Path("first.jsonl").write_text('{"\ufeffid": "a", "b": "c"}\n')
        moving.import_items("first.jsonl", source, "Orders", key="\ufeffid")
        moving.export_items(source, "Orders", "orders.csv")
    assert imported("orders.csv", "\ufeffid") == [{"\ufeffid": {"S": "a"}, "b": {"S": "c"}}]
    Path("marked.csv").write_text("\ufeffid,b\na,c\n")
    assert imported("marked.csv") == [{"id": {"S": "a"}, "b": {"S": "c"}}]


def test_the_last_column_takes_no_place_of_another() -> None:
    Path("orders.csv").write_text('id,total,*\na,1,"{""total"": 2}"\n')
    with pytest.raises(BadRow, match="it has total, which the row has in another column as well"):
        imported("orders.csv")


def test_two_columns_of_a_parquet_file_do_not_become_one() -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = [arrow.array(["a"]), arrow.array([1]), arrow.array([2])]
    parquet.write_table(
        arrow.Table.from_arrays(columns, names=["id", "total", "total"]), "orders.parquet"
    )
    with pytest.raises(UsageError, match=r"two columns of orders\.parquet have the same name"):
        imported("orders.parquet")


def test_times_with_nanoseconds_are_refused_with_their_row() -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    times = arrow.array([1_700_000_000_123_456_789], arrow.timestamp("ns"))
    parquet.write_table(arrow.table({"id": ["a"], "at": times}), "orders.parquet")
    with pytest.raises(UsageError, match=r"orders\.parquet cannot be read after row 0"):
        imported("orders.parquet")
