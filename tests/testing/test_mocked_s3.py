"""Exports and imports inside a mock: the buckets are those of a mocked S3, or those that the mock is given."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest
from tests.testing.mocked_s3 import MockedS3, mocked_s3

import isotone
from isotone.errors import UsageError
from isotone.exchange.objects import Bucket
from isotone.exchange.s3 import S3Buckets
from isotone.testing import attach, mock_aws, mock_dynamodb
from isotone.testing.process_s3 import ProcessS3

pytestmark = pytest.mark.usefixtures("bare_environment")

SCHEMA: dict[str, Any] = {
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def export(client: Any, database: isotone.Database, bucket: str = "exports") -> dict[str, Any]:
    """Export a table of three items; the description when it has ended."""
    arn = client.create_table(TableName="Orders", **SCHEMA)["TableDescription"]["TableArn"]
    for number in range(3):
        client.put_item(TableName="Orders", Item={"id": {"S": str(number)}})
    client.update_continuous_backups(
        TableName="Orders",
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    started = client.export_table_to_point_in_time(
        TableArn=arn, S3Bucket=bucket, S3Prefix="a b+c/ä"
    )["ExportDescription"]
    database.finish_maintenance()
    return client.describe_export(ExportArn=started["ExportArn"])["ExportDescription"]  # type: ignore[no-any-return]


def import_again(client: Any, database: isotone.Database, prefix: str) -> dict[str, Any]:
    started = client.import_table(
        S3BucketSource={"S3Bucket": "exports", "S3KeyPrefix": prefix},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters={"TableName": "Copy", **SCHEMA},
    )["ImportTableDescription"]
    database.finish_maintenance()
    return client.describe_import(ImportArn=started["ImportArn"])["ImportTableDescription"]  # type: ignore[no-any-return]


def ids(client: Any, table: str) -> list[str]:
    return sorted(item["id"]["S"] for item in client.scan(TableName=table)["Items"])


def test_an_export_and_an_import_use_the_mocked_s3() -> None:
    with mocked_s3("exports") as s3, mock_dynamodb() as database:
        client = boto3.client("dynamodb")
        exported = export(client, database)
        assert exported["ExportStatus"] == "COMPLETED", exported
        (data,) = [key for key in s3.buckets["exports"] if key.endswith(".json.gz")]
        assert data.startswith("a b+c/ä/AWSDynamoDB/")
        lines = gzip.decompress(s3.buckets["exports"][data]).decode().split()
        assert sorted(json.loads(line)["Item"]["id"]["S"] for line in lines) == ["0", "1", "2"]

        imported = import_again(client, database, "a b+c/ä")
        assert imported["ImportStatus"] == "COMPLETED", imported
        assert ids(client, "Copy") == ["0", "1", "2"]


def test_the_order_of_the_mocks_does_not_matter_and_moto_s_name_works() -> None:
    with mock_aws() as mock, mocked_s3("exports"):
        client = boto3.client("dynamodb", region_name="eu-west-1")
        exported = export(client, mock.in_region("eu-west-1"))
        assert exported["ExportStatus"] == "COMPLETED", exported


def test_a_bucket_that_does_not_exist() -> None:
    with mocked_s3(), mock_dynamodb() as database:
        exported = export(boto3.client("dynamodb"), database)
        assert exported["ExportStatus"] == "FAILED"
        assert exported["FailureCode"] == "S3NoSuchBucket"


def test_where_nothing_answers_for_s3_the_job_says_how_to_give_it_buckets() -> None:
    with mock_dynamodb() as database:
        client = boto3.client("dynamodb")
        exported = export(client, database)
        assert exported["ExportStatus"] == "FAILED"
        assert exported["FailureMessage"] == (
            "nothing answers for S3 in this process; activate moto's mock_aws as well, or name a folder for the "
            "buckets: mock_dynamodb(s3='folder')"
        )
        imported = import_again(client, database, "")
        assert imported["ImportStatus"] == "FAILED"
        assert "mock_dynamodb(s3='folder')" in imported["FailureMessage"]


@pytest.mark.parametrize("mock", [mock_dynamodb, mock_aws])
def test_the_buckets_of_a_folder(mock: Any, tmp_path: Path) -> None:
    with mock(s3=tmp_path) as entered:
        database = entered if mock is mock_dynamodb else entered.in_region("us-east-1")
        client = boto3.client("dynamodb", region_name="us-east-1")
        assert export(client, database)["ExportStatus"] == "COMPLETED"
    assert len(list(tmp_path.glob("exports/a b+c/ä/AWSDynamoDB/*/data/*.json.gz"))) == 1


def test_buckets_are_given_once() -> None:
    with (
        isotone.open() as database,
        pytest.raises(UsageError, match=r"write isotone\.open\(…, s3=…\)"),
    ):
        mock_dynamodb(database=database, s3="buckets")
    with mock_dynamodb(), pytest.raises(UsageError, match="give it to the outermost"):
        mock_dynamodb(s3="buckets").start()


def test_large_objects_are_written_in_parts_and_read_in_ranges() -> None:
    content = bytes(range(256)) * (20 << 12)  # 20 MB
    bucket = Bucket("exports")
    with mocked_s3("exports") as s3:
        buckets = S3Buckets(ProcessS3(region="us-east-1").client())
        buckets.put(bucket, "large", content)
        assert s3.buckets["exports"]["large"] == content
        assert not s3.uploads
        with buckets.open(bucket, "large") as file:
            assert file.read() == content
        for number in range(5):
            buckets.put(bucket, f"many/{number}", b"")
        assert [each.key for each in buckets.list(bucket, "many/")] == [
            f"many/{number}" for number in range(5)
        ]
        with buckets.open(bucket, "many/0") as empty:
            assert empty.read() == b""


def test_a_request_leaves_the_process_only_if_the_mock_passes_it_on(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    bare_environment.setenv("AWS_ACCESS_KEY_ID", "a")
    bare_environment.setenv("AWS_SECRET_ACCESS_KEY", "b")

    def passes(url: str) -> bool:
        asked.append(url)
        return False

    buckets = S3Buckets(ProcessS3(region="us-east-1", passes=passes).client())
    with pytest.raises(Exception, match="nothing answers for S3"):
        buckets.list(Bucket("exports"), "")
    (url,) = asked
    assert "amazonaws.com" in url


def test_a_client_that_is_attached_is_answered_once_where_another_mock_knows_dynamodb() -> None:
    class Everything(MockedS3):
        def __call__(self, request: Any, **_: Any) -> None:
            if ".amazonaws.com" in request.url:
                self.requests.append((request.method, request.url))

    with isotone.open() as database:
        session = boto3.Session(
            region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        attach(session, database)
        other = Everything({})
        session.events.register("before-send", other)
        assert session.client("dynamodb").list_tables()["TableNames"] == []
        assert other.requests == []


def test_botocore_is_not_imported_before_a_bucket_is_used() -> None:
    import subprocess

    program = (
        "import sys, isotone; from isotone.testing.process_s3 import ProcessS3; "
        "isotone.open(s3=ProcessS3(region='us-east-1')).close(); assert 'botocore' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
