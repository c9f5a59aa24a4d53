"""Exports and imports that cannot go on end with the reason, whatever it is, and keep no other job waiting."""

from __future__ import annotations

import errno
import gzip
import json
import logging
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from tests.cli.test_read_only import BIND
from tests.operations.conftest import key_schema
from tests.operations.test_transfers import Transfers, lines
from tests.programs import python

import isotone
from isotone.errors import StorageBusy, StorageFull
from isotone.exchange.objects import Bucket, Folder
from isotone.operations.transfers import export_files, loading

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and pipes as POSIX has them")

SCHEMA: Any = {
    "KeySchema": key_schema("p"),
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
GOOD = lines({"p": {"S": "good"}})


@pytest.fixture
def ask(tmp_path: Path, by_hand: None) -> Iterator[Transfers]:
    folder = tmp_path / "buckets"
    (folder / "input").mkdir(parents=True)
    clock = isotone.ManualClock(1_700_000_000)
    with isotone.open(tmp_path / "file.db", clock=clock, durability="none", s3=folder) as database:
        asker = Transfers(database, clock, folder)
        asker.table()
        asker.recovery()
        yield asker
        assert database.check() == []


def failed(description: dict[str, Any]) -> tuple[str, str]:
    """The code and the message of an import that has failed."""
    assert description["ImportStatus"] == "FAILED"
    assert "EndTime" in description
    return description["FailureCode"], description["FailureMessage"]


# Buckets that cannot be read


def test_a_link_to_nothing_fails_the_import_with_the_reason(
    ask: Transfers, caplog: pytest.LogCaptureFixture
) -> None:
    (ask.folder / "input/a.csv").symlink_to("/nonexistent")
    code, message = failed(ask.load("input", InputFormat="CSV"))
    assert code == "S3NoSuchKey"
    assert "a.csv: The object cannot be read: The specified key does not exist" in message
    assert "/nonexistent" in message
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (lambda path: path.symlink_to("nowhere"), "S3NoSuchKey", "nowhere"),
        (lambda path: path.symlink_to(path), "S3Failure", "symbolic links"),
        (os.mkfifo, "S3Failure", "no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "S3Failure", "no regular file"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_imported(
    ask: Transfers, make: Callable[[Path], Any], code: str, words: str
) -> None:
    make(ask.folder / "input/bad.json")
    alone, message = failed(ask.load("input"))
    assert alone == code
    assert words in message
    ask.write("input", "good.json", GOOD)
    done = ask.load("input", table="other")
    beside, message = failed(done)
    assert beside == "ItemValidationError"  # as of records that are not items
    assert "bad.json" in message
    assert words in message
    assert (done["ErrorCount"], done["ImportedItemCount"]) == (1, 1)
    (error,) = ask.errors(done["ImportArn"])
    assert error["itemS3Pointer"]["key"] == "bad.json"


def test_a_name_that_is_no_text(ask: Transfers) -> None:
    Path(os.fsdecode(os.fsencode(ask.folder / "input") + b"/\xff.json")).write_text(GOOD)
    code, message = failed(ask.load("input"))
    assert code == "S3InvalidKey"
    assert "not text in UTF-8" in message


def test_a_bucket_is_read_through_links_and_never_in_a_circle(ask: Transfers) -> None:
    far = ask.folder / "far/deep"
    far.mkdir(parents=True)
    (far / "1.json").write_text(GOOD)
    (far / "up").symlink_to("..")
    (ask.folder / "input/link").symlink_to("../far")
    (ask.folder / "input/self").symlink_to(".")
    (ask.folder / "input/folder.json").mkdir()  # named like a file
    done = ask.load("input", "link/")
    assert (done["ImportStatus"], done["ImportedItemCount"]) == ("COMPLETED", 1)
    assert ask.load("input", table="other")["ImportStatus"] == "COMPLETED"


def test_files_and_folders_that_may_not_be_read_fail_the_import(tmp_path: Path) -> None:
    # Root may also read everything (CAP_DAC_READ_SEARCH).
    program = f"""{BIND.replace("~(1 << 1)", "~(1 << 1 | 1 << 2)")}
import json, os, sys, isotone
from pathlib import Path

buckets = Path(sys.argv[1])
for name in ("file", "folder"):
    (buckets / name / "deep").mkdir(parents=True)
    (buckets / name / "deep/1.json").write_text('{{"Item": {{"p": {{"S": "a"}}}}}}')
(buckets / "file/deep/1.json").chmod(0)
(buckets / "folder/deep").chmod(0)
(buckets / "closed").mkdir()
(buckets / "closed").chmod(0o500)
with isotone.open(s3=buckets) as database:
    client = database.client()
    schema = json.loads(sys.argv[2])
    for name in ("file", "folder"):
        begun = client.import_table(
            S3BucketSource={{"S3Bucket": name}},
            InputFormat="DYNAMODB_JSON",
            TableCreationParameters=schema | {{"TableName": name}},
        )["ImportTableDescription"]
        database.finish_maintenance()
        done = client.describe_import(ImportArn=begun["ImportArn"])["ImportTableDescription"]
        print(done["ImportStatus"], done["FailureCode"])
    client.create_table(TableName="out", **schema)
    client.update_continuous_backups(
        TableName="out", PointInTimeRecoverySpecification={{"PointInTimeRecoveryEnabled": True}}
    )
    begun = client.export_table_to_point_in_time(TableArn="out", S3Bucket="closed")
    database.finish_maintenance()
    done = client.describe_export(ExportArn=begun["ExportDescription"]["ExportArn"])
    print(done["ExportDescription"]["ExportStatus"], done["ExportDescription"]["FailureCode"])
"""
    if sys.platform != "linux":
        pytest.skip("needs permissions that bind root")
    running = python("-c", program, tmp_path / "buckets", json.dumps(SCHEMA))
    out, _ = running.communicate(timeout=60)
    for path in (tmp_path / "buckets").rglob("*"):
        path.chmod(0o700)
    assert out.splitlines() == ["FAILED S3AccessDenied"] * 3


@pytest.mark.parametrize("compression", ["NONE", "GZIP"])
@pytest.mark.parametrize("form", ["DYNAMODB_JSON", "ION", "CSV"])
def test_garbage_ends_as_errors_of_the_object(ask: Transfers, form: str, compression: str) -> None:
    """Whatever the bytes are, and wherever a good file is cut off or changed, each import ends."""
    by_chance = random.Random(f"{form} {compression}")
    good = {
        "DYNAMODB_JSON": GOOD * 50,
        "ION": '$ion_1_0 {Item:{p:"a"}}\n' * 50,
        "CSV": "p\na\n" * 50,
    }
    whole = good[form].encode()
    whole = gzip.compress(whole) if compression == "GZIP" else whole
    for number in range(12):
        changed = bytearray(whole[: by_chance.randrange(len(whole))] if number % 3 else whole)
        for _ in range(number):
            if changed:
                changed[by_chance.randrange(len(changed))] = by_chance.randrange(256)
        content = bytes(changed) if number % 4 else by_chance.randbytes(300)
        ask.write("input", "1", content)
        done = ask.load(
            "input", table=f"made{number}", InputFormat=form, InputCompressionType=compression
        )
        assert done["ImportStatus"] in ("COMPLETED", "FAILED")
        assert "EndTime" in done


def test_a_file_that_is_deleted_in_mid_import(
    ask: Transfers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SLICE", 10)
    monkeypatch.setattr(loading, "BUFFER", 10)
    for name in ("1.json", "2.json"):
        many = [{"p": {"S": f"{name} {number:03}"}} for number in range(30)]
        ask.write("input", name, lines(*many))
    request = {
        "S3BucketSource": {"S3Bucket": "input"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": SCHEMA | {"TableName": "again"},
    }
    arn = ask("ImportTable", **request)["ImportTableDescription"]["ImportArn"]
    ask.database.maintain()
    (ask.folder / "input/2.json").unlink()
    ask.database.finish_maintenance()
    done = ask("DescribeImport", ImportArn=arn)["ImportTableDescription"]
    code, message = failed(done)
    assert code == "ItemValidationError"
    assert "2.json: The object cannot be read: The specified key does not exist" in message
    assert done["ImportedItemCount"] == 30


@pytest.mark.parametrize("content", ["", '{"Item":{"p":{"S":"other"}}}\n'])
def test_a_file_that_is_changed_in_mid_import(ask: Transfers, content: str) -> None:
    """An import of a file that had just been emptied, to be written again, was complete, with no items."""
    ask.write("input", "1.json", lines({"p": {"S": "1"}}))
    ask.write("input", "2.json", lines(*({"p": {"S": str(number)}} for number in range(2, 30))))
    request = {
        "S3BucketSource": {"S3Bucket": "input"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": SCHEMA | {"TableName": "again"},
    }
    arn = ask("ImportTable", **request)["ImportTableDescription"]["ImportArn"]
    ask.database.maintain()
    (ask.folder / "input/2.json").write_text(content)
    ask.database.finish_maintenance()
    done = ask("DescribeImport", ImportArn=arn)["ImportTableDescription"]
    code, message = failed(done)
    assert code == "ItemValidationError"
    assert "2.json was changed after it was listed" in message
    assert done["ImportedItemCount"] == 1


@pytest.mark.parametrize("place", ["_started", "data", "manifest"])
def test_a_full_disk_of_the_buckets_fails_the_export(
    ask: Transfers, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    put = Folder.put

    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def full(self: Folder, bucket: Bucket, key: str, content: bytes) -> str:
        with monkeypatch.context() as patch:
            if place in key:
                patch.setattr(os, "fsync", no_room)
            return put(self, bucket, key, content)

    (ask.folder / "exports").mkdir()
    monkeypatch.setattr(Folder, "put", full)
    ask.fill(3)
    export = ask.export()
    assert (export["ExportStatus"], export["FailureCode"]) == ("FAILED", "S3Failure")
    assert "No space left on device" in export["FailureMessage"]
    assert "ExportManifest" not in export
    assert not [key for key in ask.keys("exports") if key.endswith("-part")]
    ask("DeleteTable", TableName="tab")  # it is not being read any more


@pytest.mark.parametrize("change", ["deleted", "cut", "moved", "moved at the end"])
def test_an_export_whose_files_do_not_stay_fails(
    ask: Transfers, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    put = Folder.put

    def storing(self: Folder, bucket: Bucket, key: str, content: bytes) -> str:
        etag = put(self, bucket, key, content)
        path = ask.folder / "exports" / key
        if "/data/" in key and change == "deleted":
            path.unlink()
        elif "/data/" in key and change == "cut":
            os.truncate(path, 10)
        elif ("/data/" in key and change == "moved") or (
            key.endswith("manifest-files.json") and change == "moved at the end"
        ):
            (ask.folder / "exports").rename(ask.folder / "moved")
            (ask.folder / "exports").mkdir()
        return etag

    monkeypatch.setattr(Folder, "put", storing)
    ask.fill(3)
    export = ask.export()
    assert (export["ExportStatus"], export["FailureCode"]) == ("FAILED", "S3Failure")
    assert "was deleted, replaced or changed after it was written" in export["FailureMessage"]
    if change != "moved at the end":
        assert not [key for key in ask.keys("exports") if "manifest" in key]


# What goes wrong in a slice


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RuntimeError("a bug"), "InternalServerError", "RuntimeError: a bug"),
        (MemoryError(), "InternalServerError", "MemoryError: "),
        (RecursionError("deep"), "InternalServerError", "RecursionError: deep"),
        (StorageFull("the disk is full"), "StorageFull", "the disk is full"),
    ],
)
def test_any_error_of_a_slice_ends_the_job(
    ask: Transfers,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    code: str,
    message: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    ask.write("input", "1.json", GOOD)
    monkeypatch.setattr(loading, "_load", fail)
    assert failed(ask.load("input")) == (code, message)
    done = ask.bulk("input")
    assert (done["BulkOperationStatus"], done["FailureCode"]) == ("FAILED", code)
    monkeypatch.setattr(export_files, "_read", fail)
    export = ask.export()
    assert (export["ExportStatus"], export["FailureCode"]) == ("FAILED", code)
    assert export["FailureMessage"] == message
    expected = 0 if isinstance(error, isotone.errors.IsotoneError) else 3
    assert caplog.text.count("Traceback") == expected
    ask("DeleteTable", TableName="tab")


def test_another_process_that_writes_fails_no_job(
    ask: Transfers, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = loading._load, [1]

    def busy(*arguments: Any) -> None:
        if left:
            left.pop()
            raise StorageBusy("another process is writing")
        write(*arguments)

    monkeypatch.setattr(loading, "_load", busy)
    ask.write("input", "1.json", GOOD)
    with pytest.raises(StorageBusy):
        ask.load("input")
    ask.database.finish_maintenance()
    (listed,) = ask("ListImports")["ImportSummaryList"]
    assert listed["ImportStatus"] == "COMPLETED"


# One job and the others


class Stuck(Folder):
    """Buckets of which one never answers, until `go_on` is set."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.go_on = threading.Event()
        self.waits = threading.Event()

    def _wait(self, bucket: Bucket) -> None:
        if bucket.name == "stuck":
            self.waits.set()
            self.go_on.wait()

    def open(self, bucket: Bucket, key: str, size: int | None = None) -> BinaryIO:
        if key.endswith(".json"):
            self._wait(bucket)
        content = super().open(bucket, key, size)
        if key.endswith(".slow"):
            read = content.read

            def slow(size: int = -1) -> bytes:
                self._wait(bucket)
                return read(size)

            content.read = slow  # type: ignore[method-assign]
        return content

    def list(self, bucket: Bucket, prefix: str) -> Any:
        if prefix == "list":
            self._wait(bucket)
        return super().list(bucket, prefix)

    def put(self, bucket: Bucket, key: str, content: bytes) -> str:
        self._wait(bucket)
        return super().put(bucket, key, content)


def wait_until_over(client: Any, arn: str) -> dict[str, Any]:
    """The description of an import when it has ended."""
    while True:
        found = client.describe_import(ImportArn=arn)["ImportTableDescription"]
        if found["ImportStatus"] != "IN_PROGRESS":
            return dict(found)
        time.sleep(0.005)


@pytest.mark.parametrize("where", ["list", "open", "read", "put"])
def test_a_job_that_is_stuck_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    buckets = Stuck(tmp_path)
    monkeypatch.setattr("isotone.backends.embedded._buckets", lambda _: buckets)
    ending = "slow" if where == "read" else "json"
    for bucket in ("stuck", "good"):
        (tmp_path / bucket).mkdir()
        (tmp_path / bucket / f"list.{ending}").write_text(GOOD)
    with isotone.open(tmp_path / "file.db", s3=tmp_path) as database:
        client = database.client()

        def load(bucket: str) -> str:
            begun = client.import_table(
                S3BucketSource={
                    "S3Bucket": bucket,
                    "S3KeyPrefix": "list" if where == "list" else "",
                },
                InputFormat="DYNAMODB_JSON",
                TableCreationParameters=SCHEMA | {"TableName": f"table-{bucket}"},
            )
            return str(begun["ImportTableDescription"]["ImportArn"])

        client.create_table(TableName="tab", **SCHEMA)
        client.update_continuous_backups(
            TableName="tab", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        stuck = ""
        if where == "put":
            client.export_table_to_point_in_time(TableArn="tab", S3Bucket="stuck")
        else:
            stuck = load("stuck")
        assert buckets.waits.wait(60)
        assert wait_until_over(client, load("good"))["ImportStatus"] == "COMPLETED"
        export = client.export_table_to_point_in_time(TableArn="tab", S3Bucket="exports")
        arn = export["ExportDescription"]["ExportArn"]
        while (
            client.describe_export(ExportArn=arn)["ExportDescription"]["ExportStatus"]
            == "IN_PROGRESS"
        ):
            time.sleep(0.005)
        buckets.go_on.set()
        if stuck:
            assert wait_until_over(client, stuck)["ImportStatus"] == "COMPLETED"


def test_a_job_that_fails_keeps_no_other_waiting_and_logs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/a.csv").symlink_to("/nonexistent")
    (tmp_path / "good").mkdir()
    (tmp_path / "good/1.json").write_text(GOOD)
    with isotone.open(s3=tmp_path) as database:
        client = database.client()
        arns = [
            client.import_table(
                S3BucketSource={"S3Bucket": bucket},
                InputFormat="DYNAMODB_JSON",
                TableCreationParameters=SCHEMA | {"TableName": f"table-{bucket}"},
            )["ImportTableDescription"]["ImportArn"]
            for bucket in ("bad", "good", "bad-too")[:2]
        ]
        found = [wait_until_over(client, arn) for arn in arns]
    assert [each["ImportStatus"] for each in found] == ["FAILED", "COMPLETED"]
    assert caplog.records == []


def test_a_failure_that_cannot_be_recorded_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk of the database is full: not even FAILED can be written, until there is room."""
    (tmp_path / "good").mkdir()
    (tmp_path / "good/1.json").write_text(GOOD)
    tried = 0

    def full(*_: object) -> None:
        nonlocal tried
        tried += 1
        raise StorageFull("the disk is full")

    monkeypatch.setattr("isotone.operations.transfers.threads._RETRY", 0.001)
    with isotone.open(s3=tmp_path) as database, monkeypatch.context() as patch:
        patch.setattr(loading, "_load", full)
        patch.setattr(loading, "_end", full)
        client = database.client()
        begun = client.import_table(
            S3BucketSource={"S3Bucket": "good"},
            InputFormat="DYNAMODB_JSON",
            TableCreationParameters=SCHEMA | {"TableName": "again"},
        )
        while tried < 20:
            time.sleep(0.001)
        patch.undo()
        arn = begun["ImportTableDescription"]["ImportArn"]
        assert wait_until_over(client, arn)["ImportStatus"] == "COMPLETED"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "the disk is full" in caplog.text


def test_as_many_jobs_as_are_allowed_end_together(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"bucket{number}").mkdir()
        many = [{"p": {"S": f"{item}"}} for item in range(number + 1)]
        (tmp_path / f"bucket{number}/1.json").write_text(lines(*many))
    with isotone.open(tmp_path / "file.db", durability="none", s3=tmp_path) as database:
        client = database.client()
        arns = [
            client.import_table(
                S3BucketSource={"S3Bucket": f"bucket{number}"},
                InputFormat="DYNAMODB_JSON",
                TableCreationParameters=SCHEMA | {"TableName": f"table{number}"},
            )["ImportTableDescription"]["ImportArn"]
            for number in range(50)
        ]
        found = [wait_until_over(client, arn) for arn in arns]
        assert [each["ImportedItemCount"] for each in found] == list(range(1, 51))
        assert database.check() == []
    names = {thread.name for thread in threading.enumerate()}
    assert not any(name.startswith("isotone-transfer") for name in names)


def test_closing_while_jobs_run_leaves_them_to_the_next_process(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    many = [{"p": {"S": f"{item}"}} for item in range(5000)]
    (tmp_path / "bucket/1.json").write_text(lines(*many))
    with isotone.open(tmp_path / "file.db", durability="none", s3=tmp_path) as database:
        client = database.client()
        arns = [
            client.import_table(
                S3BucketSource={"S3Bucket": "bucket"},
                InputFormat="DYNAMODB_JSON",
                TableCreationParameters=SCHEMA | {"TableName": f"table{number}"},
            )["ImportTableDescription"]["ImportArn"]
            for number in range(5)
        ]
    with isotone.open(tmp_path / "file.db", s3=tmp_path) as database:
        found = [wait_until_over(database.client(), arn) for arn in arns]
        assert {each["ImportedItemCount"] for each in found} == {5000}
        assert database.check() == []
