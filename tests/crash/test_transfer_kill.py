"""SIGKILL of a server that exports, imports and puts items in bulk: nothing is lost, and nothing is done twice.

`ISOTONE_KILLS=50 pytest tests/crash/test_transfer_kill.py` for as many kills as one likes.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path
from random import Random
from typing import Any

import boto3
import pytest
from botocore.config import Config
from tests.sdks.server_process import start_server

import isotone

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

KILLS = int(os.environ.get("ISOTONE_KILLS", "4"))
ITEMS = 15_000
BAD = range(0, ITEMS, 1000)  # records of the import that have no key
SCHEMA: Any = {
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "g", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


def item(number: int) -> dict[str, Any]:
    return {"p": {"S": f"p{number:06}"}, "g": {"S": f"g{number % 100}"}}


def write_inputs(buckets: Path) -> None:
    """For the import, three files with some bad records; for the bulk operation, puts that work once."""
    (buckets / "import").mkdir(parents=True)
    (buckets / "bulk").mkdir()
    for part in range(3):
        numbers = range(part, ITEMS, 3)
        records = ({"Item": {} if number in BAD else item(number)} for number in numbers)
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (buckets / "import" / f"{part}.gz").write_bytes(gzip.compress(lines.encode(), 1))
    once = {"ConditionExpression": "attribute_not_exists(p)"}
    records = ({"Item": item(number), **once} for number in range(ITEMS))
    (buckets / "bulk" / "all.json").write_text("\n".join(map(json.dumps, records)))


def fill(file: Path) -> None:
    with isotone.open(file, durability="none") as database:
        client = database.client()
        for name in ("exported", "loaded"):
            client.create_table(TableName=name, **SCHEMA)
        client.update_continuous_backups(
            TableName="exported",
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )
        for first in range(0, ITEMS, 25):
            puts = [{"PutRequest": {"Item": item(n)}} for n in range(first, first + 25)]
            client.batch_write_item(RequestItems={"exported": puts})


def begin(client: Any) -> list[str]:
    """Start the three, and return their ARNs."""
    export = client.export_table_to_point_in_time(TableArn="exported", S3Bucket="export")
    load = client.import_table(
        S3BucketSource={"S3Bucket": "import"},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters={"TableName": "imported", **SCHEMA},
    )
    return [
        export["ExportDescription"]["ExportArn"],
        load["ImportTableDescription"]["ImportArn"],
    ]


def client_of(url: str) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"max_attempts": 1}),
    )


def test_killed_transfers_are_completed_exactly(tmp_path: Path) -> None:
    file, buckets = tmp_path / "site.db", tmp_path / "buckets"
    write_inputs(buckets)
    fill(file)
    random = Random(13)
    arguments = ("--s3", str(buckets), "--durability", "process")
    interrupted = 0
    arns: list[str] = []
    bulk = ""
    for _ in range(KILLS):
        with start_server(file, *arguments) as server:
            client = client_of(server.url)
            if not arns:
                arns = begin(client)
                with isotone.connect(server.url) as store:
                    bulk = store.backend.execute(  # newer than boto3
                        "StartBulkPutItems", bulk_request()
                    )["BulkOperationDescription"]["BulkOperationArn"]
            time.sleep(random.uniform(0, 0.4))
            server.kill()
        with isotone.open(file) as database:
            assert database.check() == []
            interrupted += sum(
                status == "IN_PROGRESS" for status in statuses(database.client(), arns, bulk)
            )
    assert interrupted, "everything was complete: the test has shown nothing"
    with isotone.open(file, s3=buckets) as database:
        database.finish_maintenance()
        assert database.check() == []
        verify(database.client(), buckets, arns, bulk)


def bulk_request() -> dict[str, Any]:
    return {
        "TableName": "loaded",
        "InputS3Configuration": {"S3Bucket": "bulk", "InputFormat": "DYNAMODB_JSON"},
        "OutputS3Configuration": {
            "S3Bucket": "report",
            "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"],
        },
    }


def statuses(client: isotone.Client, arns: list[str], bulk: str) -> list[str]:
    export, load = arns
    return [
        client.describe_export(ExportArn=export)["ExportDescription"]["ExportStatus"],
        client.describe_import(ImportArn=load)["ImportTableDescription"]["ImportStatus"],
        client.describe_bulk_operation(BulkOperationArn=bulk)["BulkOperationDescription"][
            "BulkOperationStatus"
        ],
    ]


def verify(client: isotone.Client, buckets: Path, arns: list[str], bulk: str) -> None:
    assert statuses(client, arns, bulk) == ["COMPLETED", "FAILED", "COMPLETED"]
    everything = [item(number) for number in range(ITEMS)]

    export = client.describe_export(ExportArn=arns[0])["ExportDescription"]
    assert export["ItemCount"] == ITEMS
    manifest = buckets / "export" / export["ExportManifest"].replace("summary", "files")
    keys = [json.loads(line)["dataFileS3Key"] for line in manifest.read_text().splitlines()]
    assert sorted(buckets.glob("export/AWSDynamoDB/*/data/*")) == sorted(
        buckets / "export" / key for key in keys
    )
    lines = [
        line
        for key in keys
        for line in gzip.decompress((buckets / "export" / key).read_bytes()).splitlines()
    ]
    exported = [json.loads(line)["Item"] for line in lines]
    assert sorted(exported, key=name_of) == everything

    load = client.describe_import(ImportArn=arns[1])["ImportTableDescription"]
    assert (load["ProcessedItemCount"], load["ErrorCount"]) == (ITEMS, len(BAD))
    log = buckets / "aws-dynamodb" / "imports" / arns[1].rpartition("/")[2] / "error"
    assert len(set(log.read_text().splitlines())) == len(log.read_text().splitlines()) == len(BAD)
    good = [item(number) for number in range(ITEMS) if number not in BAD]
    assert sorted(items_of(client, "imported"), key=name_of) == good

    done = client.describe_bulk_operation(BulkOperationArn=bulk)["BulkOperationDescription"]
    assert done["ProcessedItemCount"] == ITEMS
    report = buckets / "report" / "AWSDynamoDB" / bulk.rpartition("/")[2] / "output.json"
    assert report.read_text() == ""  # a put that was repeated would have failed its condition
    assert sorted(items_of(client, "loaded"), key=name_of) == everything


def name_of(each: dict[str, Any]) -> str:
    return str(each["p"]["S"])


def items_of(client: isotone.Client, table: str) -> list[dict[str, Any]]:
    pages = client.get_paginator("scan").paginate(TableName=table)
    return [each for page in pages for each in page["Items"]]
