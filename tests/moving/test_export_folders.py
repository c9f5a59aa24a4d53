"""Folders as ExportTableToPointInTime leaves them in S3, made by hand: full and incremental, in JSON and Ion.

Names, members and values are those that the developer guide of DynamoDB documents for the service's exports.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.moving.test_item_files import SCHEMA, content, database_of, item

import isotone
from isotone import moving
from isotone.errors import BadRow, UsageError

ROOT = "exports/2026/AWSDynamoDB"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def export(
    identity: str,
    files: list[str],
    *,
    form: str = "DYNAMODB_JSON",
    period: tuple[str, str] | None = None,
    table: str = "ProductCatalog",
) -> Path:
    """Write the objects of an export, with the prefix `2026` of a bucket `exports`; returns its folder."""
    place = Path(ROOT, identity)
    data = "data" if period else f"{identity}/data"
    (Path(ROOT) / data).mkdir(parents=True, exist_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    (place / "_started").touch()
    end = "ion" if form == "ION" else "json"
    lines = []
    for number, text in enumerate(files):
        packed = gzip.compress(text.encode())
        path = Path(ROOT, data, f"{identity}{number}cevs5e5ky4.{end}.gz")
        path.write_bytes(packed)
        digest = hashlib.md5(packed, usedforsecurity=False).digest()
        entry = {
            "itemCount": len(text.splitlines()),
            "md5Checksum": base64.b64encode(digest).decode(),
            "etag": "f30ab5364598d9acd2f1f7e2a4ffdd0c-1",
            "dataFileS3Key": path.as_posix().removeprefix("exports/"),
        }
        lines.append(json.dumps(entry))
    arn = f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}"
    summary: dict[str, Any] = {
        "version": "2023-08-01" if period else "2020-06-30",
        "exportArn": f"{arn}/export/{identity}",
        "startTime": "2026-11-04T07:28:34.028Z",
        "endTime": "2026-11-04T07:33:43.897Z",
        "tableArn": arn,
        "tableId": "12345a12-abcd-123a-ab12-1234abc12345",
        "s3Bucket": "exports",
        "s3Prefix": "2026",
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"2026/AWSDynamoDB/{identity}/manifest-files.json",
        "billedSizeBytes": 0,
        "itemCount": 8,
        "outputFormat": form,
    }
    if period:
        summary |= {
            "exportFromTime": period[0],
            "exportToTime": period[1],
            "outputView": "NEW_AND_OLD_IMAGES",
            "exportType": "INCREMENTAL_EXPORT",
        }
    else:
        summary["exportTime"] = "2026-11-04T07:28:34.028Z"
    for name, written in (("files", "\n".join(lines) + "\n"), ("summary", json.dumps(summary))):
        (place / f"manifest-{name}.json").write_text(written)
        digest = hashlib.md5(written.encode(), usedforsecurity=False).digest()
        (place / f"manifest-{name}.md5").write_bytes(base64.b64encode(digest))
    return place


FULL = [
    '{"Item":{"id":{"S":"a"},"at":{"N":"1"},"title":{"S":"Book 101"},"price":{"N":"2.50"}}}\n'
    '{"Item":{"id":{"S":"b"},"at":{"N":"1"},"colors":{"SS":["red","black"]}}}\n',
    '{"Item":{"id":{"S":"c"},"at":{"N":"1"},"gone":{"BOOL":true}}}\n',
    "",
]
FULL_ION = [
    '$ion_1_0 {Item:{id:"a",at:1.,title:"Book 101",price:2.50}}\n'
    '$ion_1_0 {Item:{id:"b",at:1.,colors:$dynamodb_SS::["red","black"]}}\n',
    '$ion_1_0 {Item:{id:"c",at:1.,gone:true}}\n',
]
CHANGES = [
    '{"Metadata":{"WriteTimestampMicros":{"N":"1680109764000000"}},"Keys":{"id":{"S":"d"},"at":{"N":"1"}},'
    '"NewImage":{"id":{"S":"d"},"at":{"N":"1"},"title":{"S":"new"}}}\n'
    '{"Metadata":{"WriteTimestampMicros":{"N":"1680109764000000"}},"Keys":{"id":{"S":"c"},"at":{"N":"1"}},'
    '"OldImage":{"id":{"S":"c"},"at":{"N":"1"},"gone":{"BOOL":true}}}\n',
    '{"Metadata":{"WriteTimestampMicros":{"N":"1680109764000000"}},"Keys":{"id":{"S":"a"},"at":{"N":"1"}},'
    '"OldImage":{"id":{"S":"a"},"at":{"N":"1"}},"NewImage":{"id":{"S":"a"},"at":{"N":"1"},"price":{"N":"3"}}}\n',
]
CHANGES_ION = [
    '$ion_1_0 {Record:{Keys:{id:"d",at:1.},Metadata:{WriteTimestampMicros:1680109764000000.},'
    'NewImage:{id:"d",at:1.,title:"new"}}}\n'
    '$ion_1_0 {Record:{Keys:{id:"c",at:1.},Metadata:{WriteTimestampMicros:1680109764000000.},'
    'OldImage:{id:"c",at:1.,gone:true}}}\n',
    '$ion_1_0 {Record:{Keys:{id:"a",at:1.},Metadata:{WriteTimestampMicros:1680109764000000.},'
    'OldImage:{id:"a",at:1.},NewImage:{id:"a",at:1.,price:3.}}}\n',
]
DAY = ("2026-11-04T07:28:34.028Z", "2026-11-05T07:00:00.000Z")
NEXT_DAY = ("2026-11-05T07:00:00.000Z", "2026-11-06T07:00:00.000Z")
LATER = ("2026-11-07T07:00:00.000Z", "2026-11-08T07:00:00.000Z")
BEFORE = {
    "a": {"title": {"S": "Book 101"}, "price": {"N": "2.5"}},
    "b": {"colors": {"SS": ["black", "red"]}},
    "c": {"gone": {"BOOL": True}},
}
AFTER = {
    "a": {"price": {"N": "3"}},
    "b": {"colors": {"SS": ["black", "red"]}},
    "d": {"title": {"S": "new"}},
}


def others(database: isotone.Database) -> dict[str, Any]:
    """The attributes of each item besides its key."""
    return {
        found["id"]["S"]: {name: found[name] for name in found if name not in ("id", "at")}
        for found in content(database).values()
    }


@pytest.mark.parametrize(
    ("form", "full", "changes"),
    [("DYNAMODB_JSON", FULL, CHANGES), ("ION", FULL_ION, CHANGES_ION)],
)
def test_a_full_export_and_then_its_changes(form: str, full: list[str], changes: list[str]) -> None:
    place = export("01693685827463-2d8752fd", full, form=form)
    with database_of([]) as target:
        done = moving.import_items(place, target, "Orders")  # the folder of the export alone
        assert (done.items, done.deleted, done.bad) == (3, 0, 0)
        assert others(target) == BEFORE
        place = export("01693685934212-ac809da5", changes, form=form, period=DAY)
        done = moving.import_items(place, target, "Orders")
        assert (done.items, done.deleted, done.bad) == (2, 1, 0)
        assert others(target) == AFTER
    with database_of([]) as target:  # both at once, in their order, from the bucket
        done = moving.import_items("exports/", target, "Orders")
        assert (done.items, done.deleted) == (5, 1)
        assert others(target) == AFTER


def test_exports_of_several_days_are_applied_in_their_order() -> None:
    late = CHANGES[1].replace('"N":"3"', '"N":"4"')
    export("01800000000000-00000000", CHANGES, period=DAY)
    export("01700000000000-00000000", [late], period=NEXT_DAY)
    export("01900000000000-00000000", FULL)
    with database_of([]) as target:
        moving.import_items("exports", target, "Orders")
        assert others(target) == AFTER | {"a": {"price": {"N": "4"}}}
    export("01950000000000-00000000", CHANGES, period=LATER)
    with database_of([]) as target, pytest.raises(UsageError, match="the changes from 2026-11-06"):
        moving.import_items("exports", target, "Orders")


def test_changes_that_the_full_export_has_are_left_out() -> None:
    """They would put older items in the place of its own."""
    export(
        "01600000000000-00000000", CHANGES, period=("2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z")
    )
    export("01693685827463-2d8752fd", FULL)
    with database_of([]) as target:
        done = moving.import_items("exports", target, "Orders")
        assert (done.items, done.deleted) == (3, 0)
        assert others(target) == BEFORE


def test_changes_inside_those_of_a_longer_time_are_left_out() -> None:
    late = CHANGES[1].replace('"N":"3"', '"N":"4"')
    export("01700000000000-00000000", [late], period=(DAY[0], NEXT_DAY[1]))
    export("01800000000000-00000000", CHANGES, period=(DAY[0], DAY[1]))
    export("01900000000000-00000000", CHANGES, period=(DAY[1], NEXT_DAY[1]))
    with database_of([]) as target:
        done = moving.import_items("exports", target, "Orders")
        assert (done.items, others(target)) == (1, {"a": {"price": {"N": "4"}}})


def test_changes_that_begin_after_the_full_export_are_refused() -> None:
    export("01693685827463-2d8752fd", FULL)
    export("01800000000000-00000000", CHANGES, period=NEXT_DAY)
    with (
        database_of([]) as target,
        pytest.raises(
            UsageError, match=r"the changes from 2026-11-04.* to 2026-11-05.* are not in"
        ),
    ):
        moving.import_items("exports", target, "Orders")


def test_exports_of_two_tables_are_refused() -> None:
    export("01693685827463-2d8752fd", FULL)
    export("01800000000000-00000000", CHANGES, period=DAY, table="Customers")
    with (
        database_of([]) as target,
        pytest.raises(UsageError, match="has exports of several tables: Customers, ProductCatalog"),
    ):
        moving.import_items("exports", target, "Orders")


def test_a_copied_folder_is_complete_or_refused() -> None:
    place = export("01693685827463-2d8752fd", FULL)
    shutil.move("exports/2026/AWSDynamoDB", "elsewhere")  # the prefix does not matter
    moved = Path("elsewhere") / place.name
    with database_of([]) as target:
        moving.import_items("elsewhere", target, "Orders")
        assert others(target) == BEFORE
        (data, *_) = sorted(moved.glob("data/*"))
        packed = data.read_bytes()
        data.write_bytes(gzip.compress(FULL[1].encode()))
        with pytest.raises(UsageError, match="is not the file that its manifest describes"):
            moving.import_items("elsewhere", target, "Orders")
        data.unlink()
        with pytest.raises(UsageError, match=r"is missing, which .*manifest-files\.json names"):
            moving.import_items("elsewhere", target, "Orders")
        data.write_bytes(packed)
        shutil.copytree(moved, "elsewhere/01693685827464-2d8752fd")
        with pytest.raises(UsageError, match="has 2 full exports; give the folder of one"):
            moving.import_items("elsewhere", target, "Orders")


def test_a_manifest_names_files_of_its_folder_alone() -> None:
    """A folder comes from elsewhere: what it names is not read from anywhere on the machine."""
    place = export("01693685827463-2d8752fd", FULL)
    secret = Path("secret.json.gz")
    secret.write_bytes(gzip.compress(FULL[0].encode()))
    manifest = place / "manifest-files.json"
    manifest.with_suffix(".md5").unlink()
    for name in (
        "2026/AWSDynamoDB/../../../secret.json.gz",
        str(secret.absolute()),
        "2026/AWSDynamoDB/01693685827463-2d8752fd/../../../../secret.json.gz",
    ):
        manifest.write_text(json.dumps({"dataFileS3Key": name}))
        with (
            database_of([]) as target,
            pytest.raises(UsageError, match="names a file outside of its folder"),
        ):
            moving.import_items("exports", target, "Orders")
    for wrong in (b"{]", b"\xff\xfe", b'{"dataFileS3Key": 7}'):
        for path in (manifest, place / "manifest-summary.json"):
            before = path.read_bytes()
            path.write_bytes(wrong)
            with database_of([]) as target, pytest.raises(UsageError, match=f"{path} is not the"):
                moving.import_items("exports", target, "Orders")
            path.write_bytes(before)


def test_a_bad_record_names_its_file() -> None:
    broken = '{"Item":{"id":{"S":"x"}}}\n{"Item":7}\n'
    place = export("01693685827463-2d8752fd", [FULL[0], FULL[1] + broken])
    with database_of([]) as target:
        with pytest.raises(
            BadRow, match=r"row 2 of data/.*cevs5e5ky4.json.gz: it has no at"
        ) as bad:
            moving.import_items(place, target, "Orders")
        assert bad.value.text == '{"id":{"S":"x"}}'
        done = moving.import_items(place, target, "Orders", bad_rows="bad.jsonl")
        assert (done.items, done.bad) == (3, 2)
    rows = [json.loads(line) for line in Path("bad.jsonl").read_text().splitlines()]
    assert [row["row"] for row in rows] == [2, 3]
    assert rows[1]["text"] == '{"Item":7}'


def test_an_exported_folder_is_imported_by_import_table() -> None:
    items = [item(n, x={"S": "y" * 50}) for n in range(3000)]
    with isotone.open(":memory:", s3="buckets") as database:
        client = database.client()
        client.create_table(TableName="Orders", **SCHEMA)
        for each in items:
            database.execute("PutItem", {"TableName": "Orders", "Item": each})
        Path("buckets/mine").mkdir(parents=True)
        moving.export_items(database, "Orders", "buckets/mine")
        client.import_table(
            S3BucketSource={"S3Bucket": "mine"},
            InputFormat="DYNAMODB_JSON",
            InputCompressionType="GZIP",
            TableCreationParameters=SCHEMA | {"TableName": "Copy"},
        )
        database.finish_maintenance()
        assert client.list_imports()["ImportSummaryList"][0]["ImportStatus"] == "COMPLETED"
        assert content(database, "Copy") == content(database)


@pytest.mark.parametrize("form", ["DYNAMODB_JSON", "ION"])
def test_what_export_table_to_point_in_time_writes_is_imported(form: Any) -> None:
    clock = isotone.ManualClock(1_800_000_000)
    with (
        isotone.open(":memory:", s3="buckets", clock=clock) as database,
        database_of([]) as target,
    ):
        client = database.client()
        client.create_table(TableName="Orders", **SCHEMA)
        recovery = {"PointInTimeRecoveryEnabled": True}
        client.update_continuous_backups(
            TableName="Orders", PointInTimeRecoverySpecification=recovery
        )
        common: Any = {"TableArn": "Orders", "S3Bucket": "mine", "ExportFormat": form}
        for n in range(50):
            database.execute("PutItem", {"TableName": "Orders", "Item": item(n)})
        clock.advance(
            1
        )  # a period has the changes of its first millisecond, which the full export has as well
        client.export_table_to_point_in_time(**common)
        database.finish_maintenance()
        begin = clock.now()
        clock.advance(600)
        for n in range(40, 60):
            changed = item(n, x={"N": "1"})
            database.execute("PutItem", {"TableName": "Orders", "Item": changed})
        key = {"id": {"S": "o3"}, "at": {"N": "3"}}
        database.execute("DeleteItem", {"TableName": "Orders", "Key": key})
        clock.advance(3600)
        client.export_table_to_point_in_time(
            **common,
            ExportType="INCREMENTAL_EXPORT",
            IncrementalExportSpecification={
                "ExportFromTime": begin,
                "ExportToTime": begin + 1800,
            },
        )
        database.finish_maintenance()
        done = moving.import_items("buckets/mine", target, "Orders")
        assert done.deleted == 1
        assert content(target) == content(database)


def test_a_folder_of_files_is_read_in_the_order_of_their_names() -> None:
    Path("lines").mkdir()
    Path("lines/2.jsonl").write_text('{"id": "a", "at": 1, "n": 2}\n')
    Path("lines/1.csv").write_text("id,at,n:N\na,1,1\nb,1,1\n")
    Path("lines/readme.txt").write_text("not items")
    with database_of([]) as target:
        moving.import_items("lines/", target, "Orders")
        assert others(target) == {"a": {"n": {"N": "2"}}, "b": {"n": {"N": "1"}}}
