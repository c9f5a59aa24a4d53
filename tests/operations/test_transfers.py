"""Exports, imports and bulk operations through the API: what is in the files, and what comes back from them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker, key_schema
from tests.operations.test_backups import items_of
from tests.storage.old_format import to_format_1

import isotone
from isotone.engine import backfill
from isotone.exchange import ion
from isotone.exchange.objects import ObjectStoreUnavailable
from isotone.operations.transfers import export_files, jobs, loading
from isotone.storage import sorting
from isotone.values.known_shapes import KnownShapes

START = 1_700_000_000
HOUR = 3600


class Transfers(Asker):
    """An asker with a folder of buckets."""

    def __init__(
        self, database: isotone.Database, clock: isotone.ManualClock, folder: Path
    ) -> None:
        super().__init__(database, clock)
        self.folder = folder

    def read(self, bucket: str, key: str) -> bytes:
        """The content of an object."""
        return (self.folder / bucket / key).read_bytes()

    def write(self, bucket: str, key: str, content: bytes | str) -> None:
        """Put an object by hand."""
        path = self.folder / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def keys(self, bucket: str) -> list[str]:
        """The keys of all objects in a bucket."""
        root = self.folder / bucket
        return sorted(
            path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()
        )

    def recovery(self, table: str = "tab") -> None:
        """Enable point-in-time recovery, which exports need."""
        wanted = {"PointInTimeRecoveryEnabled": True}
        self("UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=wanted)

    def put(self, table: str = "tab", **item: Any) -> None:
        self("PutItem", TableName=table, Item=item)

    def fill(self, count: int, table: str = "tab") -> None:
        """Items 0, 1, … with every type of value."""
        for first in range(0, count, 25):
            puts = [
                {"PutRequest": {"Item": sample(number)}}
                for number in range(first, min(first + 25, count))
            ]
            self("BatchWriteItem", RequestItems={table: puts})

    def export(self, table: str = "tab", bucket: str = "exports", **more: Any) -> dict[str, Any]:
        """Begin an export and do all of it."""
        answer = self("ExportTableToPointInTime", TableArn=table, S3Bucket=bucket, **more)
        arn = answer["ExportDescription"]["ExportArn"]
        self.database.finish_maintenance()
        return dict(self("DescribeExport", ExportArn=arn)["ExportDescription"])

    def lines(self, export: dict[str, Any]) -> list[bytes]:
        """The lines of an export's data files, by way of its manifests."""
        bucket = export["S3Bucket"]
        summary = json.loads(self.read(bucket, export["ExportManifest"]))
        files = self.read(bucket, summary["manifestFilesS3Key"]).splitlines()
        found: list[bytes] = []
        for file in map(json.loads, files):
            content = self.read(bucket, file["dataFileS3Key"])
            digest = hashlib.md5(content, usedforsecurity=False).digest()
            assert base64.b64decode(file["md5Checksum"]) == digest
            lines = gzip.decompress(content).splitlines()
            assert len(lines) == file["itemCount"]
            found += lines
        assert len(found) == summary["itemCount"] == export["ItemCount"]
        return found

    def load(self, bucket: str, prefix: str = "", table: str = "again", **more: Any) -> Any:
        """Begin an import into a new table and do all of it."""
        parameters = {
            "TableName": table,
            "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
            "KeySchema": key_schema("p"),
            "BillingMode": "PAY_PER_REQUEST",
            **more.pop("table_parameters", {}),
        }
        request = {
            "S3BucketSource": {"S3Bucket": bucket, "S3KeyPrefix": prefix},
            "InputFormat": "DYNAMODB_JSON",
            "TableCreationParameters": parameters,
            **more,
        }
        arn = self("ImportTable", **request)["ImportTableDescription"]["ImportArn"]
        self.database.finish_maintenance()
        return self("DescribeImport", ImportArn=arn)["ImportTableDescription"]

    def errors(self, arn: str) -> list[dict[str, Any]]:
        """The log of an import."""
        lines = self.read("aws-dynamodb", f"imports/{arn.rpartition('/')[2]}/error").splitlines()
        return [json.loads(line) for line in lines]

    def bulk(self, bucket: str, **more: Any) -> dict[str, Any]:
        """Begin a bulk operation and do all of it."""
        source = {"S3Bucket": bucket, "InputFormat": "DYNAMODB_JSON", **more.pop("source", {})}
        output = {"S3Bucket": "reports", "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"]}
        request = {
            "TableName": "tab",
            "InputS3Configuration": source,
            "OutputS3Configuration": output,
            **more,
        }
        answer = self("StartBulkPutItems", **request)["BulkOperationDescription"]
        self.database.finish_maintenance()
        return self.bulk_operation(answer["BulkOperationArn"])

    def bulk_operation(self, arn: str) -> dict[str, Any]:
        answer = self("DescribeBulkOperation", BulkOperationArn=arn)
        return dict(answer["BulkOperationDescription"])


def sample(number: int) -> dict[str, Any]:
    return {
        "p": {"S": f"p{number:05}"},
        "n": {"N": str(number * 100)},
        "b": {"B": base64.b64encode(b"bytes").decode()},
        "sets": {"M": {"s": {"SS": ["a", "b"]}, "n": {"NS": ["1", "20"]}, "b": {"BS": ["AA=="]}}},
        "l": {"L": [{"NULL": True}, {"BOOL": number % 2 == 0}, {"S": 'quote " and \n é 😀'}]},
    }


@pytest.fixture(params=["memory", "file"])
def ask(request: pytest.FixtureRequest, tmp_path: Path, by_hand: None) -> Iterator[Transfers]:
    clock = isotone.ManualClock(START)
    path = ":memory:" if request.param == "memory" else tmp_path / "file.db"
    folder = tmp_path / "buckets"
    with isotone.open(path, clock=clock, durability="none", s3=folder) as database:
        asker = Transfers(database, clock, folder)
        asker.table()
        yield asker
        assert database.check() == []


# Full exports


@pytest.mark.parametrize("form", ["DYNAMODB_JSON", "ION"])
def test_an_export_is_imported_as_it_is(ask: Transfers, form: str) -> None:
    ask.recovery()
    ask.fill(25)
    export = ask.export(ExportFormat=form, S3Prefix="some/where")
    assert export["ExportStatus"] == "COMPLETED"
    identity = export["ExportArn"].rpartition("/")[2]
    done = ask.load(
        "exports",
        f"some/where/AWSDynamoDB/{identity}",  # with the manifests, which are left out
        InputFormat=form,
        InputCompressionType="GZIP",
    )
    assert (done["ImportStatus"], done["ImportedItemCount"]) == ("COMPLETED", 25)
    assert items_of(ask, "again") == items_of(ask)


def test_the_files_of_a_full_export(ask: Transfers) -> None:
    ask.recovery()
    ask.fill(3)
    ask.clock.advance(1.5)
    export = ask.export(S3Prefix="2026", ClientToken="once")
    arn = export["ExportArn"]
    identity = arn.rpartition("/")[2]
    root = f"2026/AWSDynamoDB/{identity}"
    assert export == {
        "ExportArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/tab/export/{identity}",
        "ExportStatus": "COMPLETED",
        "StartTime": START + 1.5,
        "EndTime": START + 1.5,
        "ExportManifest": f"{root}/manifest-summary.json",
        "TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/tab",
        "TableId": ask("DescribeTable", TableName="tab")["Table"]["TableId"],
        "ExportTime": START + 1.5,
        "ClientToken": "once",
        "S3Bucket": "exports",
        "S3Prefix": "2026",
        "S3SseAlgorithm": "AES256",
        "ExportFormat": "DYNAMODB_JSON",
        "BilledSizeBytes": ask("DescribeTable", TableName="tab")["Table"]["TableSizeBytes"],
        "ItemCount": 3,
        "ExportType": "FULL_EXPORT",
    }
    data = next(key for key in ask.keys("exports") if "/data/" in key)
    assert data.startswith(f"{root}/data/")
    assert data.endswith(".json.gz")
    beside = ["_started", "manifest-files.json", "manifest-files.md5", "manifest-summary.json"]
    assert ask.keys("exports") == sorted(
        [data, *(f"{root}/{name}" for name in (*beside, "manifest-summary.md5"))]
    )
    assert ask.read("exports", f"{root}/_started") == b""
    for name in ("files", "summary"):
        content = ask.read("exports", f"{root}/manifest-{name}.json")
        digest = hashlib.md5(content, usedforsecurity=False).digest()
        assert base64.b64decode(ask.read("exports", f"{root}/manifest-{name}.md5")) == digest
    assert json.loads(ask.read("exports", f"{root}/manifest-summary.json")) == {
        "version": "2020-06-30",
        "exportArn": arn,
        "startTime": "2023-11-14T22:13:21.500Z",
        "endTime": "2023-11-14T22:13:21.500Z",
        "tableArn": export["TableArn"],
        "tableId": export["TableId"],
        "exportTime": "2023-11-14T22:13:21.500Z",
        "s3Bucket": "exports",
        "s3Prefix": "2026",
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"{root}/manifest-files.json",
        "billedSizeBytes": export["BilledSizeBytes"],
        "itemCount": 3,
        "outputFormat": "DYNAMODB_JSON",
    }
    items = sorted(json.loads(line)["Item"]["p"]["S"] for line in ask.lines(export))
    assert items == ["p00000", "p00001", "p00002"]


def test_an_export_in_ion_has_the_types_of_the_service(ask: Transfers) -> None:
    ask.recovery()
    ask.put(
        p={"S": "333-3333333333"},
        Authors={"SS": ["Author1", "Author2"]},
        Id={"N": "103"},
        PageCount={"N": "600"},
        Price={"N": "-12.5"},
        InPublication={"BOOL": False},
        Cover={"B": "aGVsbG8="},
        **{"odd name": {"M": {"null": {"NULL": True}}}},
    )
    (line,) = ask.lines(ask.export(ExportFormat="ION"))
    assert line.decode() == (
        '$ion_1_0 {Item:{p:"333-3333333333",Authors:$dynamodb_SS::["Author1","Author2"],Id:103.,'
        "PageCount:6d2,Price:-12.5,InPublication:false,Cover:{{aGVsbG8=}},'odd name':{'null':null}}}"
    )


def test_an_export_is_of_its_moment(ask: Transfers) -> None:
    ask.recovery()
    ask.fill(4)
    ask.clock.advance(60)
    ask("DeleteItem", TableName="tab", Key={"p": {"S": "p00001"}})
    ask.put(p={"S": "p00002"}, n={"N": "7"})
    ask.put(p={"S": "new"})
    before = [json.loads(line)["Item"] for line in ask.lines(ask.export(ExportTime=START + 30))]
    now = [json.loads(line)["Item"] for line in ask.lines(ask.export())]
    assert sorted(before, key=str) == sorted((sample(number) for number in range(4)), key=str)
    assert sorted(now, key=str) == sorted(items_of(ask), key=str)


def test_an_export_does_not_see_what_is_written_meanwhile(
    ask: Transfers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_files, "SLICE", 3)
    monkeypatch.setattr(export_files, "FILE_SIZE", 400)
    ask.recovery()
    ask.fill(40)
    before = items_of(ask)
    answer = ask("ExportTableToPointInTime", TableArn="tab", S3Bucket="exports")
    for number in range(0, 40, 2):
        ask("DeleteItem", TableName="tab", Key={"p": {"S": f"p{number:05}"}})
        ask.put(p={"S": f"q{number:05}"})
        ask.database.maintain()
    ask.database.finish_maintenance()
    arn = answer["ExportDescription"]["ExportArn"]
    export = ask("DescribeExport", ExportArn=arn)["ExportDescription"]
    lines = ask.lines(export)
    assert [json.loads(line)["Item"] for line in lines] == before
    assert sum("/data/" in key for key in ask.keys("exports")) > 2


def test_an_empty_table_has_one_empty_file(ask: Transfers) -> None:
    ask.recovery()
    export = ask.export()
    assert ask.lines(export) == []
    done = ask.load("exports", "AWSDynamoDB/", InputCompressionType="GZIP")
    assert (done["ImportStatus"], done["ProcessedItemCount"]) == ("COMPLETED", 0)


def test_a_filter_chooses_items_and_attributes(ask: Transfers) -> None:
    ask.recovery()
    ask.fill(10)
    some = {
        "FilterExpression": "n >= :n",
        "ProjectionExpression": "p, #n",
        "ExpressionAttributeNames": {"#n": "n"},
        "ExpressionAttributeValues": {":n": {"N": "800"}},
    }
    export = ask.export(FilterSpecification=some)
    assert export["FilterSpecification"] == some
    items = [json.loads(line)["Item"] for line in ask.lines(export)]
    assert sorted(items, key=str) == [
        {"p": {"S": "p00008"}, "n": {"N": "800"}},
        {"p": {"S": "p00009"}, "n": {"N": "900"}},
    ]
    one = {
        "KeyConditionExpression": "p = :p",
        "ExpressionAttributeValues": {":p": {"S": "p00003"}},
    }
    (line,) = ask.lines(ask.export(FilterSpecification=one, ExportFormat="ION"))
    (value,) = ion.values_in(line.decode())
    assert value["M"]["Item"]["M"]["p"] == {"S": "p00003"}


# Incremental exports


def changes(ask: Transfers) -> None:
    """An insert, an update, a delete, and an insert that does not last, in the second hour."""
    ask.recovery()
    for name in ("updated", "deleted", "same"):
        ask.put(p={"S": name}, v={"N": "1"})
    ask.clock.advance(HOUR)
    ask.put(p={"S": "updated"}, v={"N": "2"})
    ask.put(p={"S": "updated"}, v={"N": "3"})
    ask.put(p={"S": "inserted"})
    ask.put(p={"S": "short-lived"})
    ask("DeleteItem", TableName="tab", Key={"p": {"S": "short-lived"}})
    ask("DeleteItem", TableName="tab", Key={"p": {"S": "deleted"}})
    ask.clock.advance(HOUR)
    ask.put(p={"S": "later"})


def incremental(ask: Transfers, view: str = "NEW_AND_OLD_IMAGES", **more: Any) -> dict[str, Any]:
    period = {
        "ExportFromTime": START + HOUR,
        "ExportToTime": START + 2 * HOUR,
        "ExportViewType": view,
    }
    return ask.export(
        ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=period, **more
    )


def test_the_records_of_an_incremental_export(ask: Transfers) -> None:
    changes(ask)
    export = incremental(ask, S3Prefix="2026")
    at = {"WriteTimestampMicros": {"N": f"{START + HOUR}000000"}}
    records = {json.loads(line)["Keys"]["p"]["S"]: json.loads(line) for line in ask.lines(export)}
    updated, deleted, inserted = ({"p": {"S": name}} for name in ("updated", "deleted", "inserted"))
    assert records == {
        "updated": {
            "Metadata": at,
            "Keys": updated,
            "OldImage": {**updated, "v": {"N": "1"}},
            "NewImage": {**updated, "v": {"N": "3"}},
        },
        "deleted": {"Metadata": at, "Keys": deleted, "OldImage": {**deleted, "v": {"N": "1"}}},
        "inserted": {"Metadata": at, "Keys": inserted, "NewImage": inserted},
    }
    assert export["IncrementalExportSpecification"] == {
        "ExportFromTime": START + HOUR,
        "ExportToTime": START + 2 * HOUR,
        "ExportViewType": "NEW_AND_OLD_IMAGES",
    }
    assert "ExportTime" not in export
    summary = json.loads(ask.read("exports", export["ExportManifest"]))
    assert summary["exportType"] == "INCREMENTAL_EXPORT"
    assert summary["outputView"] == "NEW_AND_OLD_IMAGES"
    assert summary["exportFromTime"] == "2023-11-14T23:13:20.000Z"
    data = [key for key in ask.keys("exports") if key.endswith(".json.gz")]
    assert [key.startswith("2026/AWSDynamoDB/data/") for key in data] == [True]


def test_an_incremental_export_of_new_images_in_ion(ask: Transfers) -> None:
    changes(ask)
    lines = sorted(ask.lines(incremental(ask, "NEW_IMAGE", ExportFormat="ION")))
    metadata = f"Metadata:{{WriteTimestampMicros:{START + HOUR}d6}}".replace("00d6", "d8")
    assert [line.decode() for line in lines] == [
        f'$ion_1_0 {{Record:{{Keys:{{p:"deleted"}},{metadata}}}}}',
        f'$ion_1_0 {{Record:{{Keys:{{p:"inserted"}},{metadata},NewImage:{{p:"inserted"}}}}}}',
        f'$ion_1_0 {{Record:{{Keys:{{p:"updated"}},{metadata},NewImage:{{p:"updated",v:3.}}}}}}',
    ]


def test_an_incremental_export_is_not_imported(ask: Transfers) -> None:
    changes(ask)
    incremental(ask)
    done = ask.load("exports", "AWSDynamoDB/data", InputCompressionType="GZIP")
    assert (done["ImportStatus"], done["ErrorCount"]) == ("FAILED", 3)
    assert "incremental export" in ask.errors(done["ImportArn"])[0]["errorMessages"][0]


# What cannot be exported


def test_what_an_export_needs(ask: Transfers) -> None:
    request = {"TableArn": "tab", "S3Bucket": "exports"}
    export = "ExportTableToPointInTime"
    error = ask.refused(export, **request)
    assert error.code == "PointInTimeRecoveryUnavailableException"
    assert ask.refused(export, TableArn="none", S3Bucket="ab").code == "TableNotFoundException"
    ask.recovery()
    for moment in (START - 1, START + 1):
        error = ask.refused(export, **request, ExportTime=moment)
        assert error.code == "InvalidExportTimeException"
    period = {"ExportFromTime": START, "ExportToTime": START}
    incremental = {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": period}
    for more, words in (
        ({"ExportType": "INCREMENTAL_EXPORT"}, "IncrementalExportSpecification is required"),
        ({"IncrementalExportSpecification": period}, "only supported for INCREMENTAL_EXPORT"),
        ({**incremental, "ExportTime": START}, "ExportTime is only"),
        ({**incremental, "FilterSpecification": {}}, "FilterSpecification is only"),
        (incremental, "between 15 minutes and 24 hours"),
        ({"S3SseKmsKeyId": "key"}, "S3SseKmsKeyId"),
        ({"S3Prefix": "../other"}, "leaves its bucket"),
        ({"FilterSpecification": {"FilterExpression": "a ="}}, "FilterExpression"),
        ({"S3Bucket": "no bucket"}, "s3Bucket"),
    ):
        error = ask.refused(export, **{**request, **more})
        assert error.code == "ValidationException", error
        assert words in error.message
    assert ask("ListExports")["ExportSummaries"] == []


def test_a_token_exports_once(ask: Transfers) -> None:
    ask.recovery()
    request = {"TableArn": "tab", "S3Bucket": "exports", "ClientToken": "a"}
    arns = [
        ask("ExportTableToPointInTime", **request)["ExportDescription"]["ExportArn"]
        for _ in range(2)
    ]
    assert arns[0] == arns[1]
    error = ask.refused("ExportTableToPointInTime", **request, S3Prefix="other")
    assert error.code == "ExportConflictException"
    ask.database.finish_maintenance()
    ask.clock.advance(timedelta(hours=8, seconds=1))
    again = ask("ExportTableToPointInTime", **request)["ExportDescription"]["ExportArn"]
    assert again != arns[0]
    ask.database.finish_maintenance()


def test_exports_are_listed_for_ninety_days(ask: Transfers) -> None:
    ask.table("other")
    ask.recovery()
    ask.recovery("other")
    arns = []
    for table in ("tab", "other", "tab"):
        arns.append(ask.export(table)["ExportArn"])
        ask.clock.advance(1)
    first = ask("ListExports", MaxResults=2)
    assert [each["ExportArn"] for each in first["ExportSummaries"]] == [arns[2], arns[1]]
    rest = ask("ListExports", MaxResults=2, NextToken=first["NextToken"])
    assert rest == {
        "ExportSummaries": [
            {"ExportArn": arns[0], "ExportStatus": "COMPLETED", "ExportType": "FULL_EXPORT"}
        ]
    }
    other = ask("ListExports", TableArn="other")["ExportSummaries"]
    assert [each["ExportArn"] for each in other] == [arns[1]]
    assert ask.refused("ListExports", NextToken="zz").code == "ValidationException"
    assert (
        ask.refused("DescribeExport", ExportArn=arns[0][:-1] + "x").code
        == "ExportNotFoundException"
    )
    ask.clock.advance(timedelta(days=91))
    assert ask("ListExports")["ExportSummaries"] == []


def test_without_a_folder_the_error_says_how_to_name_one(by_hand: None) -> None:
    with isotone.open() as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table()
        error = ask.refused("ExportTableToPointInTime", TableArn="tab", S3Bucket="exports")
        assert "isotone serve --s3" in error.message


def test_a_folder_that_cannot_be_written_fails_the_export(ask: Transfers) -> None:
    ask.recovery()
    ask.folder.mkdir()
    (ask.folder / "exports").write_text("a file")
    export = ask.export()
    assert export["ExportStatus"] == "FAILED"
    assert export["FailureCode"] == "S3Failure"
    assert str(ask.folder) in export["FailureMessage"]
    ask("DeleteTable", TableName="tab")  # it is not being read any more


# Damage


def damage(ask: Transfers, text: bytes) -> None:
    """Change a bit of the item of the table that has this text, on the disk."""
    database = ask.database
    tree = database.engine.catalog.tables["tab"].tree
    connection = apsw.Connection(database.engine.store.path)  # type: ignore[attr-defined] # a file
    ((key, value),) = connection.execute(
        f'SELECT key, value FROM "tree_{tree}" WHERE instr(value, ?)', (text,)
    ).fetchall()
    changed = value.replace(text, bytes((text[0] ^ 2,)) + text[1:])
    connection.execute(f'UPDATE "tree_{tree}" SET value = ? WHERE key = ?', (changed, key))
    connection.close()


@pytest.fixture
def damaged(tmp_path: Path, by_hand: None) -> Iterator[Transfers]:
    """A file in which one item is damaged."""
    clock = isotone.ManualClock(START)
    with isotone.open(
        tmp_path / "file.db", clock=clock, durability="none", s3=tmp_path / "buckets"
    ) as database:
        asker = Transfers(database, clock, tmp_path / "buckets")
        asker.table()
        asker.recovery()
        for name in ("first", "second", "third"):
            asker.put(p={"S": name}, text={"S": f"the text of {name}"})
        damage(asker, b"text of second")
        yield asker


def test_an_export_of_a_damaged_item_fails_and_names_it(damaged: Transfers, caplog: Any) -> None:
    done = damaged.export()
    assert done["ExportStatus"] == "FAILED"
    assert done["FailureCode"] == "DamagedItem"
    assert 'the item {"p": {"S": "second"}} of table tab is damaged' in done["FailureMessage"]
    assert {"EndTime", "ExportArn"} <= set(done)
    assert (
        "ExportManifest" not in done
        or not (damaged.folder / "exports" / done["ExportManifest"]).exists()
    )
    assert [key for key in damaged.keys("exports") if not key.endswith("_started")] == []
    assert "background work failed" not in caplog.text
    damaged.write("in-here", "1.json", lines({"p": {"S": "x"}}))
    assert damaged.load("in-here")["ImportStatus"] == "COMPLETED"


def test_a_damaged_job_keeps_no_other_waiting(damaged: Transfers, caplog: Any) -> None:
    export = damaged("ExportTableToPointInTime", TableArn="tab", S3Bucket="exports")
    arn = export["ExportDescription"]["ExportArn"]
    damaged.clock.advance(1)
    damaged.write("in-here", "1.json", lines({"p": {"S": "x"}}))
    damaged(
        "ImportTable",
        S3BucketSource={"S3Bucket": "in-here"},
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters={
            "TableName": "again",
            "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
            "KeySchema": key_schema("p"),
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    connection = apsw.Connection(damaged.database.engine.store.path)  # type: ignore[attr-defined] # a file
    job = b"j" + arn.rpartition("/")[2].encode()
    connection.execute("UPDATE tree_transfers SET value = x'00' WHERE key = ?", (job,))
    connection.close()
    damaged.database.finish_maintenance()
    assert items_of(damaged, "again") == [{"p": {"S": "x"}}]
    assert caplog.text.count("an entry of transfers is damaged") == 1


def test_an_export_waits_until_the_items_of_an_old_file_have_their_checksums(
    tmp_path: Path, by_hand: None
) -> None:
    clock, path = isotone.ManualClock(START), tmp_path / "file.db"
    with isotone.open(path, clock=clock, s3=tmp_path / "buckets") as database:
        asker = Transfers(database, clock, tmp_path / "buckets")
        asker.table()
        asker.recovery()
        for name in ("first", "second", "third"):
            asker.put(p={"S": name}, text={"S": f"the text of {name}"})
        tree = database.engine.catalog.tables["tab"].tree
    to_format_1(path)
    connection = apsw.Connection(str(path))
    connection.execute(
        f"UPDATE tree_{tree} SET value = CAST(replace(value, '\"the text of second', '!') AS BLOB)"
    )
    connection.close()
    with isotone.open(path, clock=clock, s3=tmp_path / "buckets") as database:
        asker = Transfers(database, clock, tmp_path / "buckets")
        begun = asker("ExportTableToPointInTime", TableArn="tab", S3Bucket="exports")
        arn = begun["ExportDescription"]["ExportArn"]
        while database._api.transfer() == 0.0:  # before the upgrade, which is another thread's work
            pass
        described = asker("DescribeExport", ExportArn=arn)["ExportDescription"]
        assert described["ExportStatus"] == "IN_PROGRESS"
        database.finish_maintenance()
        described = asker("DescribeExport", ExportArn=arn)["ExportDescription"]
        assert (described["ExportStatus"], described["FailureCode"]) == ("FAILED", "DamagedItem")
        assert 'the item {"p": {"S": "second"}} of table tab is' in described["FailureMessage"]


def test_a_bulk_operation_leaves_a_damaged_item_and_reports_it(damaged: Transfers) -> None:
    new = [{"p": {"S": name}, "v": {"N": "2"}} for name in ("first", "second", "third")]
    damaged.write("in-here", "1.json", lines(*new))
    done = damaged.bulk("in-here")
    assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (3, 1)
    identity = done["BulkOperationArn"].rpartition("/")[2]
    report = damaged.read("reports", f"AWSDynamoDB/{identity}/output.json").splitlines()
    (line,) = map(json.loads, report)
    assert (line["outputType"], line["itemS3Pointer"]["itemIndex"]) == ("ERROR", 1)
    assert 'the item {"p": {"S": "second"}} of table tab is damaged' in line["errorMessages"][0]
    for item in (new[0], new[2]):
        assert damaged("GetItem", TableName="tab", Key={"p": item["p"]})["Item"] == item


# Imports


def lines(*items: dict[str, Any]) -> str:
    return "".join(json.dumps({"Item": item}) + "\n" for item in items)


def test_a_folder_made_by_hand_from_the_documentation(ask: Transfers) -> None:
    """A production export: two data files, one of them empty, manifests with checksums, `_started`."""
    root = "AWSDynamoDB/01345678901234-abc12345"
    book = (
        '{"Item":{"Authors":{"SS":["Author1","Author2"]},"Dimensions":{"S":"8.5 x 11.0 x 1.5"},'
        '"ISBN":{"S":"333-3333333333"},"Id":{"N":"103"},"InPublication":{"BOOL":false},'
        '"PageCount":{"N":"600"},"Price":{"N":"2000"},"Title":{"S":"Book 103 Title"}}}\n'
    )
    data = gzip.compress(book.encode())
    ask.write("prod", f"{root}/_started", b"")
    ask.write("prod", f"{root}/data/bafybeiczss3yxay3o4abnabbb.json.gz", data)
    ask.write("prod", f"{root}/data/gkes5o3lnrhoznhnkyax3hxvya.json.gz", gzip.compress(b""))
    entry = {"itemCount": 1, "md5Checksum": "x", "etag": "y-1", "dataFileS3Key": "…"}
    ask.write("prod", f"{root}/manifest-files.json", json.dumps(entry) + "\n")
    ask.write("prod", f"{root}/manifest-files.checksum", "x")
    ask.write("prod", f"{root}/manifest-summary.json", "{}")
    ask.write("prod", f"{root}/manifest-summary.checksum", "x")
    parameters = {
        "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "N"}],
        "KeySchema": key_schema("Id"),
    }
    done = ask.load("prod", f"{root}/", InputCompressionType="GZIP", table_parameters=parameters)
    assert done["ImportStatus"] == "COMPLETED"
    assert items_of(ask, "again") == [json.loads(book)["Item"]]


def test_ion_as_the_documentation_shows_it(ask: Transfers) -> None:
    text = """
    $ion_1_0 {
        Item:{
            Authors:$dynamodb_SS::["Author1","Author2"],
            p:"333-3333333333", Id:103., InPublication:false, // a comment
            PageCount:6d2, Price:2d3, Weight:1.5d-3, Count:0x1F,
            Cover:{{ aGVs bG8= }}, Parts:[1, "two", [true, null.string]], Inner:{'a b':'''long '''
            '''text'''}
        }
    }
    """
    ask.write("books", "book.ion", text)
    done = ask.load("books", InputFormat="ION")
    assert done["ImportStatus"] == "COMPLETED"
    assert items_of(ask, "again") == [
        {
            "Authors": {"SS": ["Author1", "Author2"]},
            "p": {"S": "333-3333333333"},
            "Id": {"N": "103"},
            "InPublication": {"BOOL": False},
            "PageCount": {"N": "600"},
            "Price": {"N": "2000"},
            "Weight": {"N": "0.0015"},
            "Count": {"N": "31"},
            "Cover": {"B": "aGVsbG8="},
            "Parts": {"L": [{"N": "1"}, {"S": "two"}, {"L": [{"BOOL": True}, {"NULL": True}]}]},
            "Inner": {"M": {"a b": {"S": "long text"}}},
        }
    ]


def test_csv(ask: Transfers) -> None:
    ask.write(
        "csv",
        "songs.csv",
        '\ufeffp,year,title,cover\r\na,1973,"Dark ""Side"", of\nthe Moon",aGk=\r\nb,1975,Wish,aGk=\n'
        'c,19x,Bad year,aGk=\nd,1979\ne,1980,no "quotes",aGk=\nlast,1981,,aGk=',
    )
    types = {"p": "S", "year": "N", "cover": "B"}
    parameters = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind} for name, kind in types.items()
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": f"by_{name}",
                "KeySchema": key_schema(name),
                "Projection": {"ProjectionType": "ALL"},
            }
            for name in ("year", "cover")
        ],
    }
    done = ask.load("csv", "songs", InputFormat="CSV", table_parameters=parameters)
    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "ItemValidationError")
    counts = ("ProcessedItemCount", "ImportedItemCount", "ErrorCount")
    assert [done[name] for name in counts] == [6, 3, 3]
    cover = {"cover": {"B": "aGk="}}
    assert sorted(items_of(ask, "again", IndexName="by_year"), key=str) == [
        {
            "p": {"S": "a"},
            "year": {"N": "1973"},
            "title": {"S": 'Dark "Side", of\nthe Moon'},
            **cover,
        },
        {"p": {"S": "b"}, "year": {"N": "1975"}, "title": {"S": "Wish"}, **cover},
        {"p": {"S": "last"}, "year": {"N": "1981"}, "title": {"S": ""}, **cover},
    ]
    assert len(items_of(ask, "again", IndexName="by_cover")) == 3
    arn = done["ImportArn"]
    assert [error["itemS3Pointer"] for error in ask.errors(arn)] == [
        {"bucket": "csv", "key": "songs.csv", "itemIndex": index} for index in (2, 3, 4)
    ]
    messages = [error["errorMessages"][0] for error in ask.errors(arn)]
    assert messages[0].startswith("The parameter cannot be converted to a numeric value")
    assert "2 fields, but there are 4 headers" in messages[1]
    assert "not escaped" in messages[2]
    assert ask.errors(arn)[0]["importArn"] == arn


def test_csv_with_a_delimiter_and_headers(ask: Transfers) -> None:
    ask.write("csv", "a.csv", "a|1,5\nb|2\n")
    options = {"Csv": {"Delimiter": "|", "HeaderList": ["p", "v"]}}
    done = ask.load("csv", InputFormat="CSV", InputFormatOptions=options)
    assert done["InputFormatOptions"] == options
    assert sorted(items_of(ask, "again"), key=str) == [
        {"p": {"S": "a"}, "v": {"S": "1,5"}},
        {"p": {"S": "b"}, "v": {"S": "2"}},
    ]


@pytest.mark.parametrize(
    ("content", "headers", "reason"),
    [
        ("p,v\ra,1\rb,2\r", None, "end with CR alone"),
        ("p\ra\rb\r", None, "end with CR alone"),
        ("p,v,v\na,1,2\n", None, "two columns have the same name: p, v, v"),
        ("a,1\n", ["p", "p"], "two columns have the same name: p, p"),
    ],
)
def test_csv_whose_columns_would_be_lost_is_an_error(
    ask: Transfers, content: str, headers: list[str] | None, reason: str
) -> None:
    ask.write("csv", "a.csv", content)
    ask.write("csv", "b.csv", "z,9\n" if headers else "p,v\nz,9\n")
    options: Any = {"InputFormatOptions": {"Csv": {"HeaderList": headers}}} if headers else {}
    done = ask.load("csv", InputFormat="CSV", **options)
    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert done["ErrorCount"] == (2 if headers else 1)
    assert reason in ask.errors(done["ImportArn"])[0]["errorMessages"][0]
    assert len(items_of(ask, "again")) == done["ImportedItemCount"] == (0 if headers else 1)


def test_the_documented_error_log(ask: Transfers) -> None:
    ask.write("import", "import-test.csv", "title,artist\nThe Dark Side of the Moon,Pink Floyd\n")
    done = ask.load("import", "import-test", InputFormat="CSV")
    assert done["FailureMessage"] == (
        "Some of the items failed validation checks and were not imported. "
        "Please check CloudWatch error logs for more details."
    )
    assert done["CloudWatchLogGroupArn"] == (
        "arn:aws:logs:us-east-1:000000000000:log-group:/aws-dynamodb/imports:*"
    )
    assert ask.errors(done["ImportArn"]) == [
        {
            "itemS3Pointer": {"bucket": "import", "key": "import-test.csv", "itemIndex": 0},
            "importArn": done["ImportArn"],
            "errorMessages": [
                "One or more parameter values were invalid: Missing the key p in the item"
            ],
        }
    ]
    assert ask("DescribeTable", TableName="again")["Table"]["TableStatus"] == "ACTIVE"


def test_bad_records_do_not_stop_an_import(ask: Transfers) -> None:
    good = {"p": {"S": "good"}}
    ask.write("in-here", "1.json", '{"Item":\n{"p":1}\n' + lines(good) + '{"Keys":{}}\n\n')
    ask.write("in-here", "2.json", lines({"p": {"N": "1"}}, {"p": {"S": ""}}, {"q": {"S": "x"}}))
    ask.write("in-here", "3.json", lines({"p": {"S": "big"}, "x": {"S": "x" * 500_000}}))
    done = ask.load("in-here")
    assert (done["ProcessedItemCount"], done["ErrorCount"], done["ImportedItemCount"]) == (8, 7, 1)
    assert items_of(ask, "again") == [good]
    pointers = [error["itemS3Pointer"] for error in ask.errors(done["ImportArn"])]
    assert [(each["key"], each["itemIndex"]) for each in pointers] == [
        ("1.json", 0),
        ("1.json", 1),
        ("1.json", 3),
        ("2.json", 0),
        ("2.json", 1),
        ("2.json", 2),
        ("3.json", 0),
    ]


ALIKE = (
    '{"Item":{"p":{"S":"%s"},"n":{"N":"%s"},"t":{"S":"%s"}}}',
    '{"Item":{"n":{"N":"%s"},"p":{"S":"%s"},"t":{"S":"%s"}}}',
    '{"Item": {"p":{"S":"%s"},"n":{"N":"%s"},"t":{"S":"%s"}}}',
    '{"Item":{"p":{"S":"%s"},"n":{"N":"%s"},"t":{"S":"%s"}},"ConditionExpression":"a = b"}',
    '{"Item":{"p":{"S":"%s"},"n":{"N":"%s"},"p":{"S":"%s"}}}',
)
CONTENTS = (
    "a",
    "b",
    "",
    "7",
    "07",
    "1e2",
    "-5.50",
    "é",
    "\\\\n",
    "x" * 600,
    "x" * 2100,
    "x" * 410_000,
)
TYPED = [{"AttributeName": name, "AttributeType": kind} for name, kind in ("pS", "tS", "nN")]


def indexed(**indexes: tuple[tuple[str, ...], str]) -> dict[str, Any]:
    """A table with indexes: the attributes of their keys, and the projection."""
    defined = {name for keys, _ in indexes.values() for name in keys} | {"p"}
    some = {"NonKeyAttributes": ["t"]}
    return {
        "AttributeDefinitions": [each for each in TYPED if each["AttributeName"] in defined],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": name,
                "KeySchema": key_schema(*keys),
                "Projection": {
                    "ProjectionType": projection,
                    **(some if projection == "INCLUDE" else {}),
                },
            }
            for name, (keys, projection) in indexes.items()
        ],
    }


INDEXED: dict[str, dict[str, Any]] = {
    "plain": {},
    "text": indexed(by_t=(("t",), "KEYS_ONLY")),
    "number": indexed(by_n=(("n",), "KEYS_ONLY"), by_both=(("t", "n"), "ALL")),
    "own key": indexed(by_own=(("t", "p"), "KEYS_ONLY"), by_other=(("n", "t"), "KEYS_ONLY")),
    "included": indexed(by_n=(("n",), "INCLUDE"), by_t=(("t", "n"), "KEYS_ONLY")),
    "sorted": {
        **indexed(by_n=(("n", "t"), "KEYS_ONLY")),
        "KeySchema": key_schema("p", "t"),
        "AttributeDefinitions": TYPED,
    },
}


@pytest.mark.parametrize("kind", INDEXED)
def test_a_line_like_others_is_imported_as_if_it_were_alone(
    ask: Transfers, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(11)
    rows = [
        dice.choice(ALIKE)
        % (dice.choice(CONTENTS[:6]), dice.choice(CONTENTS), dice.choice(CONTENTS))
        for _ in range(900)
    ]
    usual = [ALIKE[0] % (f"k{number % 50}", number, "t") for number in range(600)]
    text = "\n".join(each for pair in zip(usual, rows, strict=False) for each in pair)
    text += "\n" + lines(*({"p": {"S": f"sparse{n}"}, "t": {"S": "few"}} for n in range(9)))
    ask.write("alike", "1.json", text)
    parameters = INDEXED[kind]
    found = []
    for table in ("again", "alone"):
        done = ask.load("alike", table=table, table_parameters={"TableName": table, **parameters})
        log = [
            (each["itemS3Pointer"], each["errorMessages"]) for each in ask.errors(done["ImportArn"])
        ]
        found.append((done["ImportedItemCount"], log, items_of(ask, table)))
        check_entries(ask, table, parameters)
        monkeypatch.setattr(KnownShapes, "recognised", lambda _, lines: [None] * len(lines))
    assert found[0] == found[1]
    assert len(found[0][2]) > 50
    assert found[0][1]


def check_entries(ask: Transfers, table: str, parameters: dict[str, Any]) -> None:
    """Each index has what its definition says of the items, and is ACTIVE."""
    items = items_of(ask, table)
    own = {key["AttributeName"] for key in parameters.get("KeySchema", key_schema("p"))}
    described = ask("DescribeTable", TableName=table)["Table"]
    for index, of in zip(
        parameters.get("GlobalSecondaryIndexes", ()),
        described.get("GlobalSecondaryIndexes", ()),
        strict=True,
    ):
        names = {key["AttributeName"] for key in index["KeySchema"]}
        shown = names | own | set(index["Projection"].get("NonKeyAttributes", ()))
        everything = index["Projection"]["ProjectionType"] == "ALL"
        expected = [
            {name: value for name, value in item.items() if everything or name in shown}
            for item in items
            if names <= item.keys()
        ]
        assert expected
        assert of["IndexName"] == index["IndexName"]
        assert (of["ItemCount"], of["IndexStatus"]) == (len(expected), "ACTIVE")
        entries = items_of(ask, table, IndexName=index["IndexName"])

        def in_order(item: dict[str, Any]) -> str:
            return str(sorted(item.items()))

        assert sorted(entries, key=in_order) == sorted(expected, key=in_order)


def test_an_import_that_fails_on_its_way_leaves_whole_indexes(
    ask: Transfers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was imported stays, so its entries are added after the job has ended."""
    monkeypatch.setattr(loading, "BUFFER", 40)
    monkeypatch.setattr(loading, "SLICE", 20)
    for part in range(3):
        ask.write("in-here", f"{part}.json", lines(*(numbered(part * 100 + n) for n in range(100))))
    read, calls = loading._read, 0

    def failing(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 8:
            raise ObjectStoreUnavailable("S3InternalServerError", "the bucket is gone")
        read(*arguments)

    monkeypatch.setattr(loading, "_read", failing)
    done = ask.load("in-here", table_parameters=INDEXED["text"])
    assert done["ImportStatus"] == "FAILED"
    assert 0 < len(items_of(ask, "again")) < 300
    ask.database.finish_maintenance()
    check_entries(ask, "again", INDEXED["text"])


def numbered(number: int) -> dict[str, Any]:
    return {"p": {"S": str(number)}, "t": {"S": f"t{number % 7}"}}


def test_an_import_without_room_to_sort_still_fills_its_indexes(
    ask: Transfers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> Any:
        raise OSError("no space left on device")

    monkeypatch.setattr(sorting, "RUN", 100)
    monkeypatch.setattr(sorting, "MEMORY", 1)
    monkeypatch.setattr(backfill, "FIRST_PART", 20)
    monkeypatch.setattr(sorting, "_temporary_file", full)
    ask.write("in-here", "1.json", lines(*map(numbered, range(500))))
    done = ask.load("in-here", table_parameters=INDEXED["text"])
    assert done["ImportedItemCount"] == 500
    check_entries(ask, "again", INDEXED["text"])


def test_a_damaged_object_is_one_error(ask: Transfers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "SLICE", 10)
    many = gzip.compress(lines(*({"p": {"S": f"{n:07}"}} for n in range(50_000))).encode(), 0)
    ask.write("damaged", "1.gz", many[: len(many) // 2])
    ask.write("damaged", "2.gz", b"not gzip")
    ask.write("damaged", "3.gz", gzip.compress(lines({"p": {"S": "last"}}).encode()))
    monkeypatch.setattr(loading, "SLICE", 1000)
    done = ask.load("damaged", InputCompressionType="GZIP")
    assert done["ErrorCount"] == 2
    keys = {item["p"]["S"] for item in items_of(ask, "again")}
    assert "last" in keys
    assert len(keys) == done["ImportedItemCount"] > 10_000
    found = [error["itemS3Pointer"]["key"] for error in ask.errors(done["ImportArn"])]
    assert found == ["1.gz", "2.gz"]


def test_the_last_of_several_items_with_one_key_remains(ask: Transfers) -> None:
    items = [{"p": {"S": "one"}, "v": {"N": str(number)}} for number in range(2500)]
    ask.write("same", "1.json", lines(*items))
    index = {
        "AttributeDefinitions": [
            {"AttributeName": "p", "AttributeType": "S"},
            {"AttributeName": "v", "AttributeType": "N"},
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_v",
                "KeySchema": key_schema("v"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    }
    done = ask.load("same", table_parameters=index)
    assert (done["ImportStatus"], done["ImportedItemCount"]) == ("COMPLETED", 2500)
    assert items_of(ask, "again") == [items[-1]]
    assert items_of(ask, "again", IndexName="by_v") == [items[-1]]


@pytest.mark.parametrize("twice", [False, True], ids=["other keys", "the same key"])
def test_the_files_of_an_import_have_no_conditions(ask: Transfers, twice: bool) -> None:
    """Only those of a bulk operation have: here the last of several items remains, and none is an error."""
    records = [
        {
            "Item": {"p": {"S": "one" if twice else str(number)}, "v": {"N": str(number)}},
            "ConditionExpression": "attribute_not_exists(p)" if number < 2 else "nonsense(",
        }
        for number in range(3)
    ]
    ask.write("in-here", "1.json", "\n".join(map(json.dumps, records)))
    done = ask.load("in-here")
    assert (done["ImportStatus"], done["ErrorCount"]) == ("COMPLETED", 0)
    found = sorted(item["v"]["N"] for item in items_of(ask, "again"))
    assert found == (["2"] if twice else ["0", "1", "2"])


def test_an_import_is_sorted_in_parts(ask: Transfers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts end within files and after them; a process that is interrupted repeats what was not complete."""
    monkeypatch.setattr(loading, "SLICE", 7)
    monkeypatch.setattr(loading, "BUFFER", 40)
    expected = {}
    for part in range(3):
        items = [{"p": {"S": f"{n % 60}"}, "v": {"N": f"{part * 100 + n}"}} for n in range(75)]
        expected |= {item["p"]["S"]: item for item in items}
        ask.write("in-here", f"{part}.json", lines(*items) + "bad\n")
    parameters = {
        "TableName": "again",
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        "KeySchema": key_schema("p"),
        "BillingMode": "PAY_PER_REQUEST",
    }
    arn = ask(
        "ImportTable",
        S3BucketSource={"S3Bucket": "in-here"},
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters=parameters,
    )["ImportTableDescription"]["ImportArn"]
    seen = []
    for step in range(300):
        ask.database.maintain()
        if step % 23 == 22:  # as if another process had gone on
            jobs._WORKERS[ask.database.engine].buffers.close_all()
        described = ask("DescribeImport", ImportArn=arn)["ImportTableDescription"]
        seen.append(described["ProcessedItemCount"])
    assert len(set(seen)) > 20
    assert (described["ImportStatus"], described["ErrorCount"]) == ("FAILED", 3)
    assert (described["ProcessedItemCount"], described["ImportedItemCount"]) == (228, 225)
    assert {item["p"]["S"]: item for item in items_of(ask, "again")} == expected
    assert [error["itemS3Pointer"]["itemIndex"] for error in ask.errors(arn)] == [75, 75, 75]


def test_a_table_cannot_be_used_while_it_is_imported(ask: Transfers) -> None:
    ask.write("in-here", "1.json", lines({"p": {"S": "a"}}))
    parameters = {
        "TableName": "again",
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        "KeySchema": key_schema("p"),
        "BillingMode": "PAY_PER_REQUEST",
    }
    request = {
        "S3BucketSource": {"S3Bucket": "in-here"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": parameters,
        "ClientToken": "once",
    }
    begun = ask("ImportTable", **request)["ImportTableDescription"]
    assert begun["ImportStatus"] == "IN_PROGRESS"
    assert begun["TableCreationParameters"] == parameters
    assert ask("DescribeTable", TableName="again")["Table"]["TableStatus"] == "CREATING"
    error = ask.refused("GetItem", TableName="again", Key={"p": {"S": "a"}})
    assert error.code == "ResourceNotFoundException"
    assert ask.refused("DeleteTable", TableName="again").code == "ResourceInUseException"
    assert ask("ImportTable", **request)["ImportTableDescription"] == begun
    error = ask.refused("ImportTable", **{**request, "InputFormat": "ION"})
    assert error.code == "ImportConflictException"
    del request["ClientToken"]
    assert ask.refused("ImportTable", **request).message == "Table already exists: again"
    ask.database.finish_maintenance()
    table = ask("DescribeTable", TableName="again")["Table"]
    assert (table["TableStatus"], table["ItemCount"]) == ("ACTIVE", 1)
    assert (
        ask("ImportTable", **request | {"ClientToken": "once"})["ImportTableDescription"][
            "ImportStatus"
        ]
        == "COMPLETED"
    )


def test_without_a_bucket_no_table_is_left(ask: Transfers) -> None:
    ask.write("in-here", "1.json", lines({"p": {"S": "a"}}))
    done = ask.load("nobody", "")
    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert ask("ListTables")["TableNames"] == ["tab"]


def test_an_import_of_no_objects_makes_an_empty_table(ask: Transfers) -> None:
    ask.write("in-here", "1.json", lines({"p": {"S": "a"}}))
    done = ask.load("in-here", "nothing/")
    assert done["ImportStatus"] == "COMPLETED"
    counts = ("ProcessedItemCount", "ImportedItemCount", "ErrorCount", "ProcessedSizeBytes")
    assert [done[count] for count in counts] == [0, 0, 0, 0]
    assert ask("DescribeTable", TableName="again")["Table"]["TableStatus"] == "ACTIVE"
    assert items_of(ask, "again") == []


def test_records_need_no_line_ends_between_them(ask: Transfers) -> None:
    """A position stays one between two records, however long the line is; what looks like a joint in a string is none."""
    items = [{"p": {"S": f'{n}}}{{"Item":'}, "filler": {"S": "x" * 9000}} for n in range(3000)]
    joined = "".join(" " * (n % 2) + json.dumps({"Item": item}) for n, item in enumerate(items))
    ask.write("in-here", "1.json", joined)
    done = ask.load("in-here", "")
    assert (done["ImportStatus"], done["ImportedItemCount"]) == ("COMPLETED", 3000)
    found = sorted(items_of(ask, "again"), key=lambda item: item["p"]["S"])
    assert found == sorted(items, key=lambda item: item["p"]["S"])


def test_a_prefix_chooses_objects(ask: Transfers) -> None:
    for key in ("a.json", "a/1.json", "ab.json", "b.json"):
        ask.write("in-here", key, lines({"p": {"S": key}}))
    ask.load("in-here", "a")
    assert {item["p"]["S"] for item in items_of(ask, "again")} == {"a.json", "a/1.json", "ab.json"}


def test_what_an_import_refuses(ask: Transfers) -> None:
    for more, words in (
        ({"InputFormatOptions": {"Csv": {}}}, "Csv options"),
        ({"S3BucketSource": {"S3Bucket": "ab", "S3KeyPrefix": "a/../../b"}}, "leaves its bucket"),
        ({"InputFormat": "XML"}, "inputFormat"),
        ({"InputFormat": "CSV", "InputFormatOptions": {"Csv": {"Delimiter": "x"}}}, "delimiter"),
    ):
        with pytest.raises(isotone.errors.ValidationException, match=words):
            ask.load("in-here", **more)
    assert ask.refused("DescribeImport", ImportArn="a" * 40).code == "ImportNotFoundException"
    assert ask("ListImports") == {"ImportSummaryList": []}


def test_ion_that_is_no_item_is_an_error_of_its_own(ask: Transfers) -> None:
    bad = [
        r'{Item:{p:"\U00110000"}}',
        r"{Item:{p:'b','\uD83D':1}}",
        r"""{Item:{p:"b",'\uD83D':1}}""",
        "{Item:{p:0x_}}",
        '{Item:{p:"x}',
    ]
    good = [f'{{Item:{{p:"{number}"}}}}' for number in range(50)]
    ask.write("in-here", "1.ion", "\n".join([good[0], *bad, *good[1:]]))
    done = ask.load("in-here", InputFormat="ION")
    assert (done["ErrorCount"], done["ImportedItemCount"]) == (len(bad), len(good))
    errors = ask.errors(done["ImportArn"])
    assert all("not an item in Ion" in each["errorMessages"][0] for each in errors)


def test_binary_ion_is_refused_with_words(ask: Transfers) -> None:
    ask.write("in-here", "1.ion", b"\xe0\x01\x00\xea\x21\x07")
    done = ask.load("in-here", InputFormat="ION")
    (error,) = ask.errors(done["ImportArn"])
    assert "Binary Ion cannot be read" in error["errorMessages"][0]


def test_zstandard(ask: Transfers) -> None:
    zstandard = pytest.importorskip("zstandard")
    pack = zstandard.ZstdCompressor().compress
    frames = [pack(lines({"p": {"S": str(number)}}).encode()) for number in range(3)]
    ask.write("in-here", "1.zst", b"".join(frames))
    done = ask.load("in-here", InputCompressionType="ZSTD")
    assert (done["ImportStatus"], done["ImportedItemCount"]) == ("COMPLETED", 3)


def test_without_zstandard_the_error_says_what_to_install(
    ask: Transfers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isotone.exchange.compression._zstd", lambda: None)
    with pytest.raises(isotone.errors.ValidationException, match=r"isotone\[zstd\]"):
        ask.load("in-here", InputCompressionType="ZSTD")


def test_imports_are_listed(ask: Transfers) -> None:
    ask.write("in-here", "1.json", lines({"p": {"S": "a"}}))
    arns = []
    for table in ("one", "two", "three"):
        arns.append(ask.load("in-here", table=table)["ImportArn"])
        ask.clock.advance(1)
    first = ask("ListImports", PageSize=2)
    assert [each["ImportArn"] for each in first["ImportSummaryList"]] == arns[:0:-1]
    rest = ask("ListImports", PageSize=2, NextToken=first["NextToken"])
    assert [each["ImportArn"] for each in rest["ImportSummaryList"]] == arns[:1]
    assert "NextToken" not in rest
    (two,) = ask("ListImports", TableArn="two")["ImportSummaryList"]
    assert two["S3BucketSource"] == {"S3Bucket": "in-here", "S3KeyPrefix": ""}


# Bulk operations


def test_a_bulk_operation_puts_items_into_a_table(ask: Transfers) -> None:
    ask.put(p={"S": "old"})
    ask.put(p={"S": "p00001"}, v={"S": "replaced"})
    ask.write("in-here", "1.json", lines(*map(sample, range(3))))
    done = ask.bulk("in-here", MaxWriteRequestUnits=2000)
    size = len(lines(*map(sample, range(3))).encode())
    table = ask("DescribeTable", TableName="tab")["Table"]
    written = table["TableSizeBytes"] - len("pold")
    assert {name: done[name] for name in done.keys() - {"BulkOperationArn"}} == {
        "BulkOperationStatus": "COMPLETED",
        "TableDetails": [{"TableName": "tab", "TableId": table["TableId"]}],
        "InputS3Configuration": {"S3Bucket": "in-here", "InputFormat": "DYNAMODB_JSON"},
        "OutputS3Configuration": {
            "S3Bucket": "reports",
            "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"],
        },
        "StartTime": START,
        "EndTime": START,
        "ProcessedItemCount": 3,
        "ProcessedInputBytes": size,
        "TotalInputBytes": size,
        "BulkOperationUsage": [
            {"TableName": "tab", "BulkPutBytes": written, "Table": {"BulkPutBytes": written}}
        ],
        "FailedItemCount": 0,
        "MaxWriteRequestUnits": 2000,
        "PerformanceTier": "STANDARD",
    }
    assert len(items_of(ask)) == 4


def test_conditions_of_a_bulk_operation(ask: Transfers) -> None:
    ask.put(p={"S": "a"}, v={"N": "1"})
    ask.put(p={"S": "b"}, v={"N": "1"})
    new = {"ConditionExpression": "attribute_not_exists(p)"}
    lower = {
        "ConditionExpression": "#v < :v",
        "ExpressionAttributeNames": {"#v": "v"},
        "ExpressionAttributeValues": {":v": {"N": "5"}},
    }
    records: list[dict[str, Any]] = [
        {"Item": {"p": {"S": "a"}, "v": {"N": "2"}}, **new},
        {"Item": {"p": {"S": "b"}, "v": {"N": "2"}}, **lower},
        {"Item": {"p": {"S": "c"}, "v": {"N": "2"}}, **new},
        {"Item": {"p": {"S": "d"}}, "ConditionExpression": "nonsense("},
        {"Item": {"q": {"S": "d"}}},
    ]
    ask.write("in-here", "1.json", "\n".join(map(json.dumps, records)))
    done = ask.bulk("in-here")
    assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (5, 2)
    values = {item["p"]["S"]: item["v"]["N"] for item in items_of(ask)}
    assert values == {"a": "1", "b": "2", "c": "2"}
    identity = done["BulkOperationArn"].rpartition("/")[2]
    report = ask.read("reports", f"AWSDynamoDB/{identity}/output.json").splitlines()
    found = sorted(map(json.loads, report), key=lambda line: line["itemS3Pointer"]["itemIndex"])
    assert [line["outputType"] for line in found] == ["CONDITION_CHECK_FAILURE", "ERROR", "ERROR"]
    assert found[0]["item"] == records[0]["Item"]
    assert found[0]["existingItem"] == {"p": {"S": "a"}, "v": {"N": "1"}}
    assert "Missing the key p" in found[2]["errorMessages"][0]


def test_a_bulk_operation_is_seen_by_streams_indexes_and_recovery(ask: Transfers) -> None:
    ask.recovery()
    ask.table(
        "indexed",
        types={"g": "S"},
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_g",
                "KeySchema": key_schema("g"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    ask.write("in-here", "1.json", lines({"p": {"S": "a"}, "g": {"S": "g"}}))
    done = ask.bulk("in-here", TableName="indexed")
    assert done["BulkOperationUsage"][0]["GlobalSecondaryIndexes"] == {"by_g": {"BulkPutBytes": 4}}
    assert len(items_of(ask, "indexed", IndexName="by_g")) == 1
    (stream,) = ask("ListStreams")["Streams"]
    described = ask("DescribeStream", StreamArn=stream["StreamArn"])["StreamDescription"]
    records = []
    for shard in described["Shards"]:
        iterator = ask(
            "GetShardIterator",
            StreamArn=stream["StreamArn"],
            ShardId=shard["ShardId"],
            ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"]
        records += ask("GetRecords", ShardIterator=iterator)["Records"]
    assert [record["eventName"] for record in records] == ["INSERT"]
    ask.clock.advance(HOUR)
    ask.bulk("in-here")
    period = {"ExportFromTime": START + HOUR - 900, "ExportToTime": START + HOUR}
    export = ask.export(ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=period)
    assert export["ItemCount"] == 0  # the last moment is left out


def test_a_bulk_operation_is_cancelled(ask: Transfers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "SLICE", 10)
    ask.write("in-here", "1.json", lines(*map(sample, range(100))))
    request = {
        "TableName": "tab",
        "InputS3Configuration": {"S3Bucket": "in-here", "InputFormat": "DYNAMODB_JSON"},
        "OutputS3Configuration": {"S3Bucket": "reports", "OutputType": ["ERROR"]},
        "ClientToken": "once",
    }
    begun = ask("StartBulkPutItems", **request)["BulkOperationDescription"]
    arn = begun["BulkOperationArn"]
    assert ask("StartBulkPutItems", **request)["BulkOperationDescription"] == begun
    error = ask.refused("StartBulkPutItems", **{**request, "PerformanceTier": "ACCELERATED"})
    assert error.code == "IdempotentParameterMismatchException"
    for _ in range(3):
        ask.database.maintain()
    cancelled = ask("CancelBulkOperation", BulkOperationArn=arn)
    assert cancelled == {"BulkOperationArn": arn, "BulkOperationStatus": "CANCELLING"}
    ask.database.finish_maintenance()
    done = ask.bulk_operation(arn)
    assert done["BulkOperationStatus"] == "CANCELLED"
    assert done["FailureCode"] == "Cancelled"
    assert done["ProcessedItemCount"] == len(items_of(ask)) == 20
    assert "not in progress" in ask.refused("CancelBulkOperation", BulkOperationArn=arn).message
    (listed,) = ask("ListBulkOperations")["BulkOperationsSummaryList"]
    assert (listed["BulkOperationArn"], listed["BulkOperationStatus"]) == (arn, "CANCELLED")
    error = ask.refused("DescribeBulkOperation", BulkOperationArn="a" * 40)
    assert error.code == "ResourceNotFoundException"
    assert ask("ListImports") == {"ImportSummaryList": []}


def test_a_bulk_operation_ends_with_its_table(ask: Transfers) -> None:
    ask.write("in-here", "1.json", lines({"p": {"S": "a"}}))
    answer = ask(
        "StartBulkPutItems",
        TableName="tab",
        InputS3Configuration={"S3Bucket": "in-here", "InputFormat": "DYNAMODB_JSON"},
        OutputS3Configuration={"S3Bucket": "reports", "OutputType": ["ERROR"]},
    )["BulkOperationDescription"]
    ask("DeleteTable", TableName="tab")
    ask.table()
    ask.database.finish_maintenance()
    done = ask.bulk_operation(answer["BulkOperationArn"])
    assert (done["BulkOperationStatus"], done["FailureCode"]) == (
        "FAILED",
        "ResourceNotFoundException",
    )
    assert items_of(ask) == []


# Properties

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
numbers = st.decimals(
    allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9
).map(lambda number: {"N": f"{number:f}"})
blobs = st.binary(max_size=5).map(lambda blob: {"B": base64.b64encode(blob).decode()})
scalars = st.one_of(
    texts.map(lambda text: {"S": text}),
    numbers,
    blobs,
    st.booleans().map(lambda value: {"BOOL": value}),
    st.just({"NULL": True}),
    st.sets(texts, min_size=1, max_size=3).map(lambda members: {"SS": sorted(members)}),
    st.sets(st.integers(-1000, 1000), min_size=1, max_size=3).map(
        lambda members: {"NS": [str(each) for each in members]}
    ),
    st.sets(st.binary(max_size=3), min_size=1, max_size=3).map(
        lambda members: {"BS": [base64.b64encode(each).decode() for each in members]}
    ),
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda members: {"L": members}),
        st.dictionaries(names, inner, max_size=3).map(lambda members: {"M": members}),
    ),
    max_leaves=8,
)
items = st.lists(
    st.builds(
        lambda key, more: {**more, "p": {"S": key}},
        st.text("abc", min_size=1, max_size=2),
        st.dictionaries(names, values, max_size=4),
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=examples(30))
@given(contents=items, form=st.sampled_from(["DYNAMODB_JSON", "ION"]))
def test_any_items_survive_an_export_and_an_import(
    contents: list[dict[str, Any]], form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("buckets")
    clock = isotone.ManualClock(START)
    with isotone.open(clock=clock, s3=folder) as database:
        ask = Transfers(database, clock, folder)
        ask.table()
        ask.recovery()
        for item in contents:
            ask("PutItem", TableName="tab", Item=item)  # an attribute may be named `table`
        ask.export(ExportFormat=form)
        done = ask.load("exports", "AWSDynamoDB/", InputFormat=form, InputCompressionType="GZIP")
        assert done["ErrorCount"] == 0
        assert items_of(ask, "again") == items_of(ask)


@pytest.mark.parametrize("is_full", [True, False])
def test_a_change_after_an_export_is_in_the_next_one_though_the_clock_was_set_back(
    ask: Transfers, is_full: bool
) -> None:
    ask.recovery()
    ask.put(p={"S": "before"})
    ask.clock.advance(HOUR)
    if is_full:
        ask.export()
    else:
        chained(ask, START, START + HOUR)
    ask.clock.set(START + HOUR - 60)
    ask.put(p={"S": "after"})
    ask.clock.set(START + 2 * HOUR)
    found = [record_in(line) for line in ask.lines(chained(ask, START + HOUR, START + 2 * HOUR))]
    assert [record["Keys"] for record in found] == [{"p": {"S": "after"}}]


def chained(ask: Transfers, first: int, end: int) -> dict[str, Any]:
    period = {"ExportFromTime": first, "ExportToTime": end}
    return ask.export(ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=period)


writes = st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.integers(0, 3)), max_size=12)


@settings(deadline=None, max_examples=examples(30))
@given(before=writes, within=writes, after=writes, form=st.sampled_from(["DYNAMODB_JSON", "ION"]))
def test_an_incremental_export_applied_to_a_full_one_is_the_later_state(
    before: Any, within: Any, after: Any, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("buckets")
    clock = isotone.ManualClock(START)
    with isotone.open(clock=clock, s3=folder) as database:
        ask = Transfers(database, clock, folder)
        ask.table()
        ask.recovery()
        states = []
        for part in (before, within, after):
            for key, value in part:
                if value is None:
                    ask("DeleteItem", TableName="tab", Key={"p": {"S": key}})
                else:
                    ask.put(p={"S": key}, v={"N": str(value)})
            states.append({item["p"]["S"]: item for item in items_of(ask)})
            clock.advance(HOUR)
        full = ask.export(ExportTime=START + HOUR - 1, ExportFormat=form)
        changes = incremental(ask, ExportFormat=form)
        found = {item["p"]["S"]: item for item in map(item_in, ask.lines(full))}
        assert found == states[0]
        for record in map(record_in, ask.lines(changes)):
            key = record["Keys"]["p"]["S"]
            assert record.get("OldImage") == found.get(key)
            if "NewImage" in record:
                found[key] = record["NewImage"]
            else:
                del found[key]
        assert found == states[1]


def item_in(line: bytes) -> dict[str, Any]:
    if line.startswith(b"{"):
        return dict(json.loads(line)["Item"])
    return plain(ion.values_in(line.decode())[0]["M"]["Item"]["M"])


def record_in(line: bytes) -> dict[str, Any]:
    if line.startswith(b"{"):
        return dict(json.loads(line))
    members = ion.values_in(line.decode())[0]["M"]["Record"]["M"]
    return {name: plain(member["M"]) for name, member in members.items()}


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """An item of small integers, as DynamoDB writes them."""
    return {
        name: {"N": str(int(float(value["N"])))} if "N" in value else value
        for name, value in item.items()
    }
