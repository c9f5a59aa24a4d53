"""States of jobs that earlier versions have saved are continued: the files of `saved_states` are theirs, byte for byte.

Only the paths of the databases and the identities of the tables are filled in; they are new in each test.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone.moving import copy, export_items, import_items

SAVED = Path(__file__).parent / "saved_states"
STAMP = 1_700_000_000_000_000_000  # when the imported file was written


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The table that the jobs were reading: 40 orders."""
    with isotone.open(tmp_path / "source.db") as database:
        make_table(database)
        for number in range(40):
            database.execute("PutItem", {"TableName": "Orders", "Item": order(number)})
    return tmp_path / "source.db"


def order(number: int) -> dict[str, Any]:
    return {"id": {"S": f"order-{number:02}"}, "n": {"N": str(number)}}


def make_table(database: Any) -> None:
    database.execute(
        "CreateTable",
        {
            "TableName": "Orders",
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )


def identity_of(path: Path) -> str:
    with isotone.open(path) as database:
        found: str = database.execute("DescribeTable", {"TableName": "Orders"})["Table"]["TableId"]
        return found


def items_of(path: Path) -> dict[str, Any]:
    with isotone.open(path) as database:
        found = database.execute("Scan", {"TableName": "Orders"})["Items"]
        return {item["id"]["S"]: item for item in found}


def before_positions(path: Path, positions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items of each segment up to its saved position: what the job has read."""
    read = []
    with isotone.open(path) as database:
        for number, position in enumerate(positions):
            segment = {"Segment": number, "TotalSegments": len(positions)}
            items = database.execute("Scan", {"TableName": "Orders", **segment})["Items"]
            names = [item["id"]["S"] for item in items]
            read += items[: names.index(position["after"]["id"]["S"]) + 1]
    return read


def saved_state(job: str, folder: Path, **members: str) -> tuple[Path, dict[str, Any]]:
    """The state of a job in a file of this test, and its entry."""
    state = json.loads((SAVED / f"{job}.json").read_text())
    state["job"] = [
        str(folder / word.removeprefix("{folder}/")) if word.startswith("{folder}") else word
        for word in state["job"]
    ]
    state["entries"]["Orders"].update(members)
    path = folder / "state.json"
    path.write_text(json.dumps(state))
    return path, state["entries"]["Orders"]


def test_a_copy_is_continued(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    with isotone.open(target) as database:
        make_table(database)
    state, entry = saved_state(
        "copy", tmp_path, source=identity_of(source), target=identity_of(target)
    )
    copied = before_positions(source, entry["segments"])
    assert len(copied) == entry["items"] == 20
    with isotone.open(target) as database:
        for item in copied:  # marked: an item that is copied again loses its mark
            marked = {**item, "copied": {"S": "before"}}
            database.execute("PutItem", {"TableName": "Orders", "Item": marked})
    done = copy(source, target, state=state)
    assert done.is_complete
    assert done.tables["Orders"].items == 40
    found = items_of(target)
    assert len(found) == 40
    assert {name for name, item in found.items() if "copied" in item} == {
        item["id"]["S"] for item in copied
    }
    assert not state.exists()


def test_an_export_is_continued(source: Path, tmp_path: Path) -> None:
    state, entry = saved_state("export", tmp_path, identity=identity_of(source))
    written = before_positions(source, entry["segments"])
    lines = [
        json.dumps({"id": item["id"]["S"], "n": int(item["n"]["N"])}) + "\n" for item in written
    ]
    part = tmp_path / "orders.jsonl.part"
    part.write_text("".join(lines))
    assert part.stat().st_size == entry["output"]
    part.write_text("".join(lines) + '{"id": "written after the state was sav')
    done = export_items(source, "Orders", tmp_path / "orders.jsonl", state=state)
    assert done.is_complete
    assert done.items == 40
    exported = [json.loads(line) for line in (tmp_path / "orders.jsonl").read_text().splitlines()]
    assert exported[:10] == list(map(json.loads, lines))
    assert sorted(each["n"] for each in exported) == list(range(40))
    assert not state.exists()


def test_an_import_that_did_not_save_its_table_begins_again(tmp_path: Path) -> None:
    """Its state has no identity of the table, so nobody knows whether that has the first rows."""
    rows = "".join(json.dumps({"id": f"order-{n:02}", "n": n}) + "\n" for n in range(40))
    (tmp_path / "in.jsonl").write_text(rows)
    os.utime(tmp_path / "in.jsonl", ns=(STAMP, STAMP))
    target = tmp_path / "imported.db"
    with isotone.open(target) as database:
        make_table(database)
    state, _ = saved_state("import", tmp_path)
    done = import_items(tmp_path / "in.jsonl", target, "Orders", state=state)
    assert done.is_complete
    assert items_of(target) == {f"order-{n:02}": order(n) for n in range(40)}
    assert not state.exists()


def test_an_import_is_continued(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"id": f"order-{n:02}", "n": n}) + "\n" for n in range(40))
    (tmp_path / "in.jsonl").write_text(rows)
    os.utime(tmp_path / "in.jsonl", ns=(STAMP, STAMP))
    target = tmp_path / "imported.db"
    with isotone.open(target) as database:
        make_table(database)
        for number in range(10):
            marked = {**order(number), "imported": {"S": "before"}}
            database.execute("PutItem", {"TableName": "Orders", "Item": marked})
    state, entry = saved_state("import", tmp_path, identity=identity_of(target))
    assert entry["items"] == 10
    done = import_items(tmp_path / "in.jsonl", target, "Orders", state=state)
    assert done.is_complete
    assert done.progress.items == 40
    found = items_of(target)
    assert len(found) == 40
    assert {name for name, item in found.items() if "imported" in item} == set(sorted(found)[:10])
