"""Import and export through the page's calls: whole files in parts, bounded, and none while it is safe mode."""

from __future__ import annotations

import tempfile
import time
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.workbench.page import Browserless

from isotone.server import running_server
from isotone.workbench import Workbench, transfers

CSV = b'id,name,total:N\n1,Ann,5\n2,B\xc3\xb6b,6.50\n3,"a, b",x\n'


def finished(page: Browserless, transfer: Any) -> Any:
    while transfer["state"] == "running":
        time.sleep(0.02)
        transfer = page.call("transfer", {"id": transfer["id"]})
    return transfer


def imported(page: Browserless, text: bytes, ending: str = "csv", **given: Any) -> Any:
    begun = page.call("import", {"ending": ending, **given})
    for place in range(0, len(text), 10):
        data = b64encode(text[place : place + 10]).decode()
        page.call("import_part", {"id": begun["id"], "data": data})
    return finished(page, page.call("import_run", {"id": begun["id"]}))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left_over(temporary: Path) -> list[Path]:
    return [*temporary.iterdir()]


def test_a_file_makes_a_table_and_comes_back(page, database, temporary):
    done = imported(page, CSV, table="People", key="id")
    assert (done["state"], done["items"], done["bad"]) == ("done", 2, 1)
    assert "total" in done["bad_rows"][0]
    stored = database.execute("Scan", {"TableName": "People"})["Items"]
    assert {"id": {"S": "2"}, "name": {"S": "Böb"}, "total": {"N": "6.5"}} in stored
    done = finished(page, page.call("export", {"table": "People", "ending": "csv"}))
    assert (done["state"], done["items"]) == ("done", 2)
    text = b""
    while len(text) < done["size"]:
        part = page.call("export_part", {"id": done["id"], "offset": len(text)})
        text += b64decode(part["data"])
    again = imported(page, text, table="Copy", key="id")
    assert (again["items"], again["bad"]) == (2, 0)
    copied = database.execute("Scan", {"TableName": "Copy"})["Items"]
    assert sorted(map(str, copied)) == sorted(map(str, stored))
    for number in range(1, 4):
        page.call("transfer_end", {"id": number})
    assert left_over(temporary) == []


def test_faults_are_reported_and_leave_no_file(page, monkeypatch, temporary):
    for given, reason in (
        ({"table": "Nowhere", "ending": "csv"}, "Nowhere"),
        ({"table": "Words", "ending": "exe"}, "not supported"),
        ({"table": "", "ending": "csv"}, "name of a table"),
    ):
        answer = page.call("export", given)
        told = answer["error"]["message"] if "error" in answer else finished(page, answer)["fault"]
        assert reason in told
    assert "there is no table" in imported(page, CSV, table="Missing")["fault"]
    monkeypatch.setattr(transfers, "LARGEST", 12)
    begun = page.call("import", {"table": "Words", "ending": "csv"})
    data = b64encode(b"0123456789").decode()
    page.call("import_part", {"id": begun["id"], "data": data})
    answer = page.call("import_part", {"id": begun["id"], "data": data})
    assert "isotone import" in answer["error"]["message"]
    page.call("transfer_end", {"id": begun["id"]})
    done = finished(page, page.call("export", {"table": "Orders", "ending": "jsonl"}))
    assert done["state"] == "failed"
    assert "larger than" in done["fault"]
    assert left_over(temporary) == []
    assert "over" in page.call("transfer", {"id": 99})["error"]["message"]


def test_rows_are_saved_in_the_order_of_their_columns_and_come_back(page, database):
    rows = [
        {"id": {"S": "1"}, "total": {"N": "5"}, "paid": {"BOOL": True}, "empty": {"S": ""}},
        {"total": {"N": "6.5"}, "id": {"S": "2"}, "tags": {"SS": ["a", "b"]}},
    ]
    given = {"items": rows, "first": ["id", "total", "none"]}
    text = page.call("rows_file", {**given, "ending": "csv"})["text"]
    assert text.splitlines()[0].startswith("id,total:N,")
    lines = page.call("rows_file", {**given, "ending": "jsonl"})["text"]
    assert len(lines.splitlines()) == 2
    for ending, content in (("csv", text), ("jsonl", lines)):
        done = imported(page, content.encode(), ending, table=f"Of{ending}", key="id")
        assert (done["items"], done["bad"]) == (2, 0)
        stored = database.execute("Scan", {"TableName": f"Of{ending}"})["Items"]
        assert sorted(stored, key=lambda item: item["id"]["S"]) == rows
        page.call("transfer_end", {"id": done["id"]})
    wrong = page.call("rows_file", {**given, "ending": "exe"})
    assert "jsonl or csv" in wrong["error"]["message"]


def test_the_number_of_files_is_bounded(page):
    for _ in range(10):
        page.call("import", {"table": "Words", "ending": "csv"})
    assert "over" in page.call("transfer", {"id": 1})["error"]["message"]
    for number in range(7, 11):
        page.call("transfer_end", {"id": number})


def test_stopping_a_complete_transfer_reports_that_it_was_complete(page):
    done = imported(page, CSV, table="Stopped", key="id")
    told = page.call("transfer_end", {"id": done["id"]})
    assert (told["state"], told["items"], told["bad"]) == ("done", 2, 1)
    assert "total" in told["bad_rows"][0]


def test_what_was_imported_is_in_the_model(page):
    rows = "".join(f"USER#{number},a\n" for number in range(30))
    page.execute(
        "CreateTable",
        {
            "TableName": "People",
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    page.call("keys", {"table": "People", "keys": ["id"], "items": []})  # nothing is known of it
    done = imported(page, f"id,name\n{rows}".encode(), table="People")
    assert done["items"] == 30
    page.call("transfer_end", {"id": done["id"]})
    names = {"table": "People", "keys": ["id"], "items": [{"id": {"S": "USER#7"}}]}
    ((entity, _),) = page.call("keys", names)["recognized"]
    assert entity == "People"


def test_a_part_that_is_not_base64_is_refused(page):
    begun = page.call("import", {"table": "Words", "ending": "csv"})
    error = page.call("import_part", {"id": begun["id"], "data": "*"})["error"]
    assert error["message"] == "the part of the file is not Base64"
    page.call("transfer_end", {"id": begun["id"]})


@pytest.mark.parametrize("call", ["import", "import_part", "import_run"])
def test_safe_mode_refuses_imports(database, call):
    pages = Workbench(database, target=":memory:", writable=False)
    with running_server(database, pages=pages) as url:
        answer = Browserless(url).call(call, {"table": "Words", "ending": "csv", "id": 1})
        assert answer["error"]["code"] == "SafeMode"


def test_few_items_are_looked_at_again_after_a_change(page, database):
    request = {
        "TableName": "Fresh",
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    page.execute("CreateTable", request)
    assert page.call("model", {"table": "Fresh"})["model"] is None
    for number in range(3):
        item = {"pk": {"S": "USER#ann"}, "sk": {"S": f"ORDER#{number}"}, "_type": {"S": "Order"}}
        page.execute("PutItem", {"TableName": "Fresh", "Item": item})
    found = page.call("model", {"table": "Fresh"})["model"]
    assert [each["name"] for each in found["entities"]] == ["Order"]
