"""Exports and imports whose buckets are at an S3 endpoint."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.backends.s3_server import ACCESS_KEY, SECRET_KEY, S3Server, etag, s3_server
from tests.operations.conftest import key_schema
from tests.operations.test_backups import items_of
from tests.operations.test_transfers import START, Transfers

import isotone
from isotone.errors import UsageError
from isotone.operations.transfers import loading

CREDENTIALS = isotone.Credentials(ACCESS_KEY, SECRET_KEY)


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server("exports", "reports", page=2) as running:
        yield running


def endpoint(server: S3Server, **options: Any) -> isotone.S3:
    given = {"retries": isotone.Retries(attempts=3, base=0.001), **options}
    return isotone.S3(server.url, credentials=CREDENTIALS, **given)


class AtS3(Transfers):
    """An asker whose buckets are at a server."""

    server: S3Server

    def read(self, bucket: str, key: str) -> bytes:
        return self.server.buckets[bucket][key]

    def write(self, bucket: str, key: str, content: bytes | str) -> None:
        objects = self.server.buckets.setdefault(bucket, {})
        objects[key] = content.encode() if isinstance(content, str) else content

    def keys(self, bucket: str) -> list[str]:
        return sorted(self.server.buckets[bucket])


@pytest.fixture(params=["memory", "file"])
def ask(request: pytest.FixtureRequest, server: S3Server, tmp_path: Path) -> Iterator[AtS3]:
    clock = isotone.ManualClock(START)
    path = ":memory:" if request.param == "memory" else tmp_path / "file.db"
    with isotone.open(path, clock=clock, durability="none", s3=endpoint(server)) as database:
        asker = AtS3(database, clock, tmp_path)
        asker.server = server
        asker.table()
        yield asker
        assert database.check() == []


def record(number: int) -> str:
    return json.dumps({"Item": {"p": {"S": f"{number:05}"}}}) + "\n"


def described(ask: AtS3, arn: str) -> dict[str, Any]:
    answer: dict[str, Any] = ask("DescribeImport", ImportArn=arn)["ImportTableDescription"]
    return answer


def wait_until_over(ask: AtS3, arn: str, at_most: float = 30) -> dict[str, Any]:
    """An import that the background does, when it has ended."""
    deadline = time.monotonic() + at_most
    while (found := described(ask, arn))["ImportStatus"] == "IN_PROGRESS":
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
    return found


def test_an_export_is_imported_as_it_is(ask: AtS3) -> None:
    ask.recovery()
    ask.fill(25)
    export = ask.export(S3Prefix="some/where")
    assert export["ExportStatus"] == "COMPLETED"
    assert len(ask.lines(export)) == 25
    done = ask.load("exports", "some/where", InputCompressionType="GZIP")
    assert (done["ImportStatus"], done["ImportedItemCount"]) == ("COMPLETED", 25)
    assert items_of(ask, "again") == items_of(ask)


def test_the_manifest_has_the_etags_of_the_endpoint(ask: AtS3) -> None:
    ask.recovery()
    ask.fill(3)
    summary = json.loads(ask.read("exports", ask.export()["ExportManifest"]))
    (file,) = map(json.loads, ask.read("exports", summary["manifestFilesS3Key"]).splitlines())
    assert f'"{file["etag"]}"' == etag(ask.read("exports", file["dataFileS3Key"]))


@pytest.mark.parametrize(
    ("bucket", "code", "message"),
    [
        ("nowhere", "S3NoSuchBucket", "The specified bucket does not exist"),
        ("denied", "S3AccessDenied", "Access Denied"),
    ],
)
def test_a_bucket_that_cannot_be_used(ask: AtS3, bucket: str, code: str, message: str) -> None:
    ask.recovery()
    ask.server.denied.add("denied")
    export = ask.export(bucket=bucket)
    assert export["ExportStatus"] == "FAILED"
    assert (export["FailureCode"], export["FailureMessage"]) == (code, message)
    done = ask.load(bucket)
    assert done["ImportStatus"] == "FAILED"
    assert (done["FailureCode"], done["FailureMessage"]) == (code, message)


def test_a_bulk_operation_reads_and_reports(ask: AtS3) -> None:
    ask.write("updates", "all.json", record(1) + "{}\n" + record(2))
    done = ask.bulk("updates")
    assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert len(items_of(ask)) == 2
    (report,) = ask.keys("reports")
    assert json.loads(ask.read("reports", report))["outputType"] == "ERROR"


def test_a_log_that_cannot_be_written_is_said_in_the_failure(ask: AtS3) -> None:
    ask.write("input", "all.json", record(1) + "{}\n")
    done = ask.load("input")
    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert "The log cannot be written to s3://aws-dynamodb/imports/" in done["FailureMessage"]
    assert len(items_of(ask, "again")) == 1
    ask.server.buckets["aws-dynamodb"] = {}
    done = ask.load("input", table="once-more")
    assert "The log cannot" not in done["FailureMessage"]
    assert len(ask.errors(done["ImportArn"])) == 1


def test_an_object_that_is_denied_is_one_error_and_the_others_are_read(ask: AtS3) -> None:
    ask.write("input", "1.json", record(1))
    ask.write("input", "2.json", record(2))
    ask.server.faults = [200, 403, 200]  # the list, the first object, the second
    done = ask.load("input")
    assert (done["ImportStatus"], done["ErrorCount"]) == ("FAILED", 1)
    assert done["ImportedItemCount"] == 1


def test_an_endpoint_that_breaks_off_ends_the_import(
    ask: AtS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SLICE", 10)
    ask.write("input", "1.json", "".join(map(record, range(30))))
    ask.write("input", "2.json", "".join(map(record, range(30, 60))))
    ask.server.faults = [200, 200, 503, 503, 503]
    done = ask.load("input")
    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "S3SlowDown")


def test_requests_and_other_work_go_on_while_the_endpoint_hangs(server: S3Server) -> None:
    """Only the job waits; and closing the database does not wait for it."""
    slow = endpoint(server, timeouts=isotone.Timeouts(read=60))
    server.buckets["input"] = {"all.json": record(1).encode()}
    server.faults = ["hang"]
    begin = time.monotonic()
    with isotone.open(":memory:", s3=slow) as database:
        client = database.client()
        schema: Any = {
            "KeySchema": key_schema("p"),
            "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
        client.create_table(TableName="tab", **schema)
        client.import_table(
            S3BucketSource={"S3Bucket": "input"},
            InputFormat="DYNAMODB_JSON",
            TableCreationParameters=schema | {"TableName": "again"},
        )
        while not server.requests:
            time.sleep(0.01)
        client.update_time_to_live(
            TableName="tab", TimeToLiveSpecification={"Enabled": True, "AttributeName": "t"}
        )
        old = str(int(time.time()) - 60)
        client.put_item(TableName="tab", Item={"p": {"S": "a"}, "t": {"N": old}})
        while client.scan(TableName="tab")["Count"]:
            time.sleep(0.01)
    assert time.monotonic() - begin < 20


def test_a_job_that_closing_broke_off_is_continued(server: S3Server, tmp_path: Path) -> None:
    content = gzip.compress("".join(map(record, range(3000))).encode())
    server.buckets["input"] = {"all.json.gz": content}
    server.faults = [200, "hang"]
    path = tmp_path / "file.db"
    clock = isotone.ManualClock(START)
    with isotone.open(path, clock=clock, s3=endpoint(server)) as database:
        arn = database.execute(
            "ImportTable",
            {
                "S3BucketSource": {"S3Bucket": "input"},
                "InputFormat": "DYNAMODB_JSON",
                "InputCompressionType": "GZIP",
                "TableCreationParameters": {
                    "TableName": "again",
                    "KeySchema": key_schema("p"),
                    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
            },
        )["ImportTableDescription"]["ImportArn"]
        while len(server.requests) < 2:
            time.sleep(0.01)
    server.faults = []
    with isotone.open(path, clock=clock, s3=endpoint(server)) as database:
        done = wait_until_over(AtS3(database, clock, tmp_path), arn)
        assert (done["ImportStatus"], done["ImportedItemCount"]) == ("COMPLETED", 3000)


def test_what_is_no_folder_and_no_endpoint_is_refused() -> None:
    with pytest.raises(UsageError, match="is not an S3 endpoint"):
        isotone.open(s3="s3://exports")
