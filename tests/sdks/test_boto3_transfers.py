"""Exports and imports over HTTP with boto3; the server answers while they run."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

import isotone
from isotone.server import running_server

SCHEMA: Any = {
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
START = 1_800_000_000


@pytest.fixture(params=["memory", "file"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[isotone.Database]:
    path = ":memory:" if request.param == "memory" else tmp_path / "file.db"
    clock = isotone.ManualClock(START)
    with isotone.open(path, s3=tmp_path / "buckets", clock=clock, durability="none") as database:
        yield database
        assert database.check() == []


@pytest.fixture
def client(database: isotone.Database) -> Iterator[Any]:
    with running_server(database) as url:
        client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        client.create_table(TableName="tab", **SCHEMA)
        client.update_continuous_backups(
            TableName="tab", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        yield client


def test_a_table_goes_out_and_comes_back(
    client: Any, database: isotone.Database, tmp_path: Path
) -> None:
    items = [{"p": {"S": f"{n:03}"}, "b": {"B": bytes([n])}} for n in range(100)]
    for item in items:
        client.put_item(TableName="tab", Item=item)
    export = client.export_table_to_point_in_time(TableArn="tab", S3Bucket="exports")
    described = export["ExportDescription"]
    assert described["ExportTime"].timestamp() == START
    assert described["ClientToken"]  # boto3 makes one
    database.finish_maintenance()
    done = client.describe_export(ExportArn=described["ExportArn"])["ExportDescription"]
    assert (done["ExportStatus"], done["ItemCount"]) == ("COMPLETED", 100)
    (listed,) = client.list_exports(TableArn=done["TableArn"])["ExportSummaries"]
    assert listed["ExportArn"] == done["ExportArn"]
    load = client.import_table(
        S3BucketSource={"S3Bucket": "exports"},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters={"TableName": "again", **SCHEMA},
    )["ImportTableDescription"]
    client.get_waiter("table_exists").wait(
        TableName="again", WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )
    found = client.scan(TableName="again")["Items"]
    assert sorted(found, key=lambda item: str(item["p"])) == items
    (listed,) = client.list_imports()["ImportSummaryList"]
    assert (listed["ImportArn"], listed["ImportStatus"]) == (load["ImportArn"], "COMPLETED")


def test_an_incremental_export(client: Any, database: isotone.Database, tmp_path: Path) -> None:
    clock = database.engine.clock
    assert isinstance(clock, isotone.ManualClock)
    client.put_item(TableName="tab", Item={"p": {"S": "a"}})
    database.finish_maintenance()  # a change of the first millisecond is still needed
    clock.advance(3600)
    export = client.export_table_to_point_in_time(
        TableArn="tab",
        S3Bucket="changes",
        ExportType="INCREMENTAL_EXPORT",
        IncrementalExportSpecification={"ExportFromTime": START, "ExportToTime": START + 3600},
    )["ExportDescription"]
    period = export["IncrementalExportSpecification"]
    assert period["ExportToTime"].timestamp() == START + 3600
    database.finish_maintenance()
    (file,) = (tmp_path / "buckets/changes/AWSDynamoDB/data").glob("*.json.gz")
    assert json.loads(gzip.decompress(file.read_bytes()))["NewImage"] == {"p": {"S": "a"}}


def test_errors_are_those_of_botocores_model(client: Any) -> None:
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/tab/export/01234567890123-abcdef01"
    with pytest.raises(client.exceptions.ExportNotFoundException):
        client.describe_export(ExportArn=arn)
    with pytest.raises(client.exceptions.ImportNotFoundException):
        client.describe_import(ImportArn=arn)
    with pytest.raises(client.exceptions.InvalidExportTimeException):
        client.export_table_to_point_in_time(
            TableArn="tab", S3Bucket="exports", ExportTime=START - 60
        )
    client.export_table_to_point_in_time(TableArn="tab", S3Bucket="exports", ClientToken="a")
    with pytest.raises(client.exceptions.ExportConflictException):
        client.export_table_to_point_in_time(TableArn="tab", S3Bucket="other", ClientToken="a")


def test_requests_are_answered_while_an_import_runs(client: Any, tmp_path: Path) -> None:
    bucket = tmp_path / "buckets" / "large"
    bucket.mkdir(parents=True)
    records = (json.dumps({"Item": {"p": {"S": f"{n:06}"}}}) for n in range(30_000))
    (bucket / "all.json").write_text("\n".join(records))
    arn = client.import_table(
        S3BucketSource={"S3Bucket": "large"},
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters={"TableName": "again", **SCHEMA},
    )["ImportTableDescription"]["ImportArn"]
    seen: list[int] = []
    while True:
        client.put_item(TableName="tab", Item={"p": {"S": str(len(seen))}})
        described = client.describe_import(ImportArn=arn)["ImportTableDescription"]
        seen.append(described["ProcessedItemCount"])
        if described["ImportStatus"] != "IN_PROGRESS":
            break
    assert described["ImportStatus"] == "COMPLETED"
    assert seen == sorted(seen)
    assert len(set(seen)) > 2, "the import was over before another request was answered"
