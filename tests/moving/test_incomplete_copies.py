"""No copy of items is called complete that is not: another target than before, cut-off files, reports that failed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone import moving
from isotone.errors import BadRow, StorageError, UsageError

ROWS = 900
pytestmark = pytest.mark.usefixtures("frequent_reports")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def write_rows(count: int = ROWS) -> None:
    Path("rows.jsonl").write_text("".join(f'{{"id": "i{n}"}}\n' for n in range(count)))


def count_of(file: str) -> int:
    with isotone.open(file) as database:
        found: int = database.execute("Scan", {"TableName": "Orders", "Select": "COUNT"})["Count"]
        return found


def delete_database(file: str) -> None:
    for path in Path().glob(f"{file}*"):
        path.unlink()


def begin_import(file: str, **options: Any) -> None:
    """An import that is stopped when it has written its first rows."""
    stop = threading.Event()

    def stop_soon(progress: moving.Progress) -> None:
        if progress.items:
            stop.set()

    done = moving.import_items(
        "rows.jsonl", file, "Orders", stop=stop, progress=stop_soon, **options
    )
    assert not done.is_complete
    assert 0 < done.items < ROWS


@pytest.mark.skipif(os.name == "nt", reason="Windows does not rename an open file")
@pytest.mark.parametrize("there", ["nothing", "another file"])
def test_a_live_copy_of_a_file_that_was_replaced_does_not_say_that_there_is_no_lag(
    there: str,
) -> None:
    write_rows(10)
    for file in ("shop.db", "other.db"):
        moving.import_items("rows.jsonl", file, "Orders", key="id")
    seen: list[moving.Progress] = []

    def replace(progress: moving.Progress) -> bool:
        if not seen:
            Path("shop.db").rename("moved.db")
            if there == "another file":
                Path("other.db").rename("shop.db")
        seen.append(progress)
        assert len(seen) == 1, "it says that it follows, and no change can come"
        return False

    with pytest.raises(StorageError, match=r"shop.db was deleted, moved or replaced while"):
        moving.copy("shop.db", "new.db", live=True, until=replace)


def test_an_import_into_a_new_table_of_the_same_name_begins_again() -> None:
    write_rows()
    begin_import("new.db", key="id")
    delete_database("new.db")
    done = moving.import_items("rows.jsonl", "new.db", "Orders", key="id")
    assert (done.is_complete, done.items) == (True, ROWS)
    assert count_of("new.db") == ROWS


def test_an_import_into_a_table_that_was_made_again_begins_again() -> None:
    write_rows()
    begin_import("new.db", key="id")
    with isotone.open("new.db") as database:
        described = database.execute("DescribeTable", {"TableName": "Orders"})["Table"]
        database.execute("DeleteTable", {"TableName": "Orders"})
        database.execute(
            "CreateTable",
            {
                "TableName": "Orders",
                "KeySchema": described["KeySchema"],
                "AttributeDefinitions": described["AttributeDefinitions"],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
    moving.import_items("rows.jsonl", "new.db", "Orders")
    assert count_of("new.db") == ROWS


def test_an_import_into_the_same_table_continues() -> None:
    write_rows()
    begin_import("new.db", key="id")
    with isotone.open("new.db") as database:
        there = database.execute("Scan", {"TableName": "Orders"})["Items"][0]
        database.execute("DeleteItem", {"TableName": "Orders", "Key": there})
    done = moving.import_items("rows.jsonl", "new.db", "Orders", key="id")
    assert done.items == ROWS
    assert count_of("new.db") == ROWS - 1, "what was written before is not written again"


class PrinterOnFire(Exception):
    pass


def fail(_: object) -> None:
    raise PrinterOnFire


def test_an_export_whose_report_failed_is_not_found_complete_later() -> None:
    write_rows(3)
    moving.import_items("rows.jsonl", "shop.db", "Orders", key="id")
    with pytest.raises(PrinterOnFire):
        moving.export_items("shop.db", "Orders", "out.jsonl", on_complete=fail)
    with isotone.open("shop.db") as database:
        database.execute("PutItem", {"TableName": "Orders", "Item": {"id": {"S": "later"}}})
    done = moving.export_items("shop.db", "Orders", "out.jsonl", force=True)
    assert done.items == 4
    assert len(Path("out.jsonl").read_bytes().splitlines()) == 4


class Killed(BaseException):
    pass


def killed(_: object) -> None:
    raise Killed


@pytest.mark.parametrize("left", ["the export", "another file", "the export with more"])
def test_an_export_that_was_killed_at_its_end_is_complete_if_its_file_is_there(left: str) -> None:
    write_rows(3)
    moving.import_items("rows.jsonl", "shop.db", "Orders", key="id")
    with pytest.raises(Killed):
        moving.export_items("shop.db", "Orders", "out.jsonl", on_complete=killed)
    if left == "another file":
        Path("out.jsonl").write_text("something else")
    elif left == "the export with more":
        with Path("out.jsonl").open("a") as file:
            file.write("something else")
    if left == "the export":
        assert moving.export_items("shop.db", "Orders", "out.jsonl").items == 3
    else:
        with pytest.raises(UsageError, match=r"out\.jsonl exists; --force"):
            moving.export_items("shop.db", "Orders", "out.jsonl")


def test_an_export_that_replaces_its_file_is_made_again() -> None:
    """A process was killed at the end of the last one, so its state is still there."""
    write_rows(3)
    moving.import_items("rows.jsonl", "shop.db", "Orders", key="id")
    with pytest.raises(Killed):
        moving.export_items("shop.db", "Orders", "out.jsonl", on_complete=killed)
    with isotone.open("shop.db") as database:
        database.execute("PutItem", {"TableName": "Orders", "Item": {"id": {"S": "later"}}})
    assert moving.export_items("shop.db", "Orders", "out.jsonl", force=True).items == 4


def test_an_import_and_a_copy_whose_reports_failed_begin_again() -> None:
    write_rows(3)
    with pytest.raises(PrinterOnFire):
        moving.import_items("rows.jsonl", "shop.db", "Orders", key="id", on_complete=fail)
    with pytest.raises(PrinterOnFire):
        moving.copy("shop.db", "copy.db", on_complete=fail)
    for file in ("shop.db", "copy.db"):
        with isotone.open(file) as database:
            database.execute("DeleteItem", {"TableName": "Orders", "Key": {"id": {"S": "i1"}}})
    moving.import_items("rows.jsonl", "shop.db", "Orders")
    moving.copy("shop.db", "copy.db", into_existing=True)
    assert (count_of("shop.db"), count_of("copy.db")) == (3, 3)


# Files that are cut off


@pytest.mark.parametrize("name", ["rows.jsonl.zst", "rows.jsonl.gz", "rows.csv.gz", "rows.ion.zst"])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.999])
def test_a_compressed_file_that_is_cut_off_is_refused(name: str, share: float) -> None:
    write_rows()
    moving.import_items("rows.jsonl", "shop.db", "Orders", key="id")
    moving.export_items("shop.db", "Orders", name)
    whole = Path(name).read_bytes()
    cut = Path(f"cut-{name}")
    cut.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises((UsageError, BadRow)) as raised:
        moving.import_items(cut, "new.db", "Orders", key="id")
    assert "cut-" in str(raised.value) or "cannot be read further" in str(raised.value)


def test_a_file_of_several_frames_is_read_to_its_end_and_refused_where_the_last_is_cut() -> None:
    write_rows(2)
    moving.import_items("rows.jsonl", "shop.db", "Orders", key="id")
    moving.export_items("shop.db", "Orders", "one.jsonl.zst")
    frame = Path("one.jsonl.zst").read_bytes()
    other = frame * 3
    Path("three.jsonl.zst").write_bytes(other)
    assert moving.import_items("three.jsonl.zst", "new.db", "Orders", key="id").items == 2
    for cut in (1, 5, len(frame) - 1):
        Path("cut.jsonl.zst").write_bytes(other[:-cut])
        with pytest.raises(BadRow, match="cannot be read further"):
            moving.import_items("cut.jsonl.zst", "new.db", "Orders")


# Manifests


def export_in_two_files() -> Path:
    """The manifest of an export whose second file was added by hand, as a larger table has it."""
    write_rows(5)
    moving.import_items("rows.jsonl", "shop.db", "Orders", key="id")
    moving.export_items("shop.db", "Orders", "folder/")
    manifest = next(Path("folder").rglob("manifest-files.json"))
    summary = manifest.with_name("manifest-summary.json")
    (entry,) = [json.loads(line) for line in manifest.read_text().splitlines()]
    data = next(Path("folder").rglob("*.json.gz"))
    second = data.with_name("second.json.gz")
    second.write_bytes(data.read_bytes())
    key = entry["dataFileS3Key"].replace(data.name, second.name)
    more = {**entry, "dataFileS3Key": key, "md5Checksum": digest_of(second)}
    manifest.write_text(json.dumps(entry) + "\n" + json.dumps(more) + "\n")
    manifest.with_suffix(".md5").write_text(digest_of(manifest))
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "itemCount": 10}))
    return manifest


def digest_of(file: Path) -> str:
    return base64.b64encode(hashlib.md5(file.read_bytes()).digest()).decode()


def test_a_manifest_that_is_whole_is_imported() -> None:
    export_in_two_files()
    assert moving.import_items("folder/", "new.db", "Orders", key="id").items == 10


@pytest.mark.parametrize("lines", [0, 1])
def test_a_manifest_that_lacks_lines_is_refused(lines: int) -> None:
    manifest = export_in_two_files()
    manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:lines]))
    with pytest.raises(UsageError, match=r"manifest-files.md5 describes: copy both again"):
        moving.import_items("folder/", "new.db", "Orders", key="id")
    assert not Path("new.db").exists()


def test_a_manifest_without_lines_is_refused_though_its_digest_is_missing() -> None:
    manifest = export_in_two_files()
    manifest.write_text("")
    manifest.with_suffix(".md5").unlink()
    with pytest.raises(UsageError, match="names no files, and the export's item count is 10"):
        moving.import_items("folder/", "new.db", "Orders", key="id")


@pytest.mark.parametrize("precious", ["notes\n", "{}\n", '{"row": "one"}\n', "half a line", "\n"])
def test_bad_rows_take_no_file_of_something_else(precious: str) -> None:
    write_rows(3)
    Path("notes.txt").write_text(precious)
    with pytest.raises(UsageError, match=r"notes\.txt exists, and has no bad rows of an import"):
        moving.import_items("rows.jsonl", "new.db", "Orders", key="id", bad_rows="notes.txt")
    assert Path("notes.txt").read_text() == precious


def test_bad_rows_of_an_earlier_import_are_replaced() -> None:
    write_rows(3)
    with Path("rows.jsonl").open("a") as file:
        file.write("broken\n")
    for _ in range(2):
        done = moving.import_items("rows.jsonl", "new.db", "Orders", key="id", bad_rows="bad.jsonl")
        assert done.bad == 1
    assert len(Path("bad.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("key", "row"),
    [
        ("id", '{{"id": "i{n}"}}'),
        ("id", '{{"id": "é\\u00e9\\"{n}"}}'),
        ("id:N", '{{"id": {n}.50}}'),
        ("id:B", '{{"id": {{"B": "{binary}"}}}}'),
    ],
)
def test_an_import_continues_in_a_table_that_has_what_was_written(key: str, row: str) -> None:
    rows = [row.format(n=n, binary=base64.b64encode(b"%d" % n).decode()) for n in range(ROWS)]
    Path("rows.jsonl").write_text("\n".join(rows))
    begin_import("new.db", key=key)
    assert moving.import_items("rows.jsonl", "new.db", "Orders").items == ROWS
    assert count_of("new.db") == ROWS


def test_an_import_into_a_table_that_was_restored_is_refused() -> None:
    write_rows()
    Path("first.jsonl").write_text('{"id": "other"}\n')
    moving.import_items("first.jsonl", "new.db", "Orders", key="id")
    isotone.backup("new.db", "copy.db")
    begin_import("new.db")
    isotone.restore("copy.db", "new.db", force=True)
    with pytest.raises(UsageError, match=r"it was restored .* --restart"):
        moving.import_items("rows.jsonl", "new.db", "Orders")
    assert moving.import_items("rows.jsonl", "new.db", "Orders", restart=True).items == ROWS
    assert count_of("new.db") == ROWS + 1


def test_a_copy_into_a_table_that_was_restored_is_refused() -> None:
    write_rows(30_000)
    moving.import_items("rows.jsonl", "old.db", "Orders", key="id")
    with isotone.open("old.db") as database:
        described = database.execute("DescribeTable", {"TableName": "Orders"})["Table"]
        request = {name: described[name] for name in ("KeySchema", "AttributeDefinitions")}
    with isotone.open("new.db") as database:
        database.execute(
            "CreateTable", {"TableName": "Orders", **request, "BillingMode": "PAY_PER_REQUEST"}
        )
    isotone.backup("new.db", "copy.db")
    stop = threading.Event()

    def stop_soon(progress: moving.Progress) -> None:
        if progress.items:
            stop.set()

    done = moving.copy("old.db", "new.db", segments=1, progress=stop_soon, stop=stop)
    assert not done.is_complete
    assert 0 < count_of("new.db") < 30_000
    isotone.restore("copy.db", "new.db", force=True)
    with pytest.raises(UsageError, match=r"it was restored .* --restart"):
        moving.copy("old.db", "new.db")
    assert moving.copy("old.db", "new.db", restart=True).is_complete
    assert count_of("new.db") == 30_000


def test_a_live_copy_into_a_table_that_was_restored_is_refused() -> None:
    write_rows(100)
    moving.import_items("rows.jsonl", "old.db", "Orders", key="id")
    assert moving.copy("old.db", "new.db", live=True).is_caught_up
    isotone.backup("new.db", "copy.db")
    with isotone.open("old.db") as database:
        for number in range(3):
            item = {"id": {"S": f"late{number}"}}
            database.execute("PutItem", {"TableName": "Orders", "Item": item})
    assert moving.copy("old.db", "new.db", live=True).is_caught_up
    assert moving.copy("old.db", "new.db", live=True).is_caught_up
    isotone.restore("copy.db", "new.db", force=True)
    with pytest.raises(UsageError, match=r"it was restored .* --restart"):
        moving.copy("old.db", "new.db", live=True)


def test_a_live_copy_continues_after_its_last_items_were_deleted() -> None:
    write_rows(100)
    moving.import_items("rows.jsonl", "old.db", "Orders", key="id")
    assert moving.copy("old.db", "new.db", live=True).is_caught_up
    for action, members in (("PutItem", "Item"), ("DeleteItem", "Key")):
        with isotone.open("old.db") as database:
            database.execute(action, {"TableName": "Orders", members: {"id": {"S": "late"}}})
        assert moving.copy("old.db", "new.db", live=True).is_caught_up
    assert count_of("new.db") == 100


@pytest.mark.parametrize("is_made_again", [True, False])
@pytest.mark.parametrize("job", ["import", "export", "copy"])
def test_a_job_whose_table_is_deleted_meanwhile_is_not_complete(
    job: str, is_made_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isotone.moving.copying._ITEMS_A_PAGE", 500)
    write_rows()
    moving.import_items("rows.jsonl", "new.db", "Orders", key="id")
    with isotone.open("new.db") as database, isotone.open() as target:
        described = database.execute("DescribeTable", {"TableName": "Orders"})["Table"]
        deleted: list[str] = []

        def make() -> None:
            names = ("TableName", "KeySchema", "AttributeDefinitions")
            request = {name: described[name] for name in names}
            database.execute("CreateTable", {**request, "BillingMode": "PAY_PER_REQUEST"})

        def delete(_: moving.Progress) -> None:
            if deleted:
                return
            database.execute("DeleteTable", {"TableName": "Orders"})
            if is_made_again:
                make()
            deleted.append("Orders")

        def run(progress: Any) -> Any:
            if job == "import":
                return moving.import_items("rows.jsonl", database, "Orders", progress=progress)
            if job == "export":
                return moving.export_items(
                    database, "Orders", "out.jsonl", progress=progress, segments=1, force=True
                )
            return moving.copy(database, target, into_existing=True, progress=progress)

        with pytest.raises(UsageError, match=f"was deleted during this {job}"):
            run(delete)
        assert deleted
        if not is_made_again:
            make()
        assert run(lambda _: None).is_complete
