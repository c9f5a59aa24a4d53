"""Users who may only read, or use some tables, over HTTP: no action gets around it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tests.server.signing import write_credentials

import isotone
from isotone.backends.embedded import Database
from isotone.expressions.partiql import statements
from isotone.expressions.partiql.parser import parse
from isotone.operations.api import ACTIONS
from isotone.server import running_server
from isotone.server.policies import Permissions, PolicyContext
from isotone.server.users import User

LEAD = "arn:aws:dynamodb:us-east-1:000000000000"
ORDERS = f"{LEAD}:table/Orders"
KEY = {"id": {"S": "o-1"}}
SCHEMA: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
OF_TABLE = {"TableName": "Orders"}
OF_ITEM = {**OF_TABLE, "Key": KEY}
KINESIS = {**OF_TABLE, "StreamArn": "arn:aws:kinesis:us-east-1:000000000000:stream/changes"}
BACKUP = {"BackupArn": f"{ORDERS}/backup/01700000000000-0a0b0c0d"}
TAGGED = {"ResourceArn": ORDERS}
S3 = {"S3Bucket": "bucket"}
SELECT = "SELECT * FROM \"Orders\" WHERE id = 'o-1'"
WRITES = {
    "insert": "INSERT INTO \"Orders\" VALUE {'id': 'o-2'}",
    "update": "UPDATE \"Orders\" SET total = 2 WHERE id = 'o-1'",
    "delete": "DELETE FROM \"Orders\" WHERE id = 'o-1'",
}

# A request of each action that would do something.
READS: dict[str, dict[str, Any]] = {
    "BatchGetItem": {"RequestItems": {"Orders": {"Keys": [KEY]}}},
    "DescribeBackup": BACKUP,
    "DescribeBulkOperation": {
        "BulkOperationArn": f"{ORDERS}/bulk-operation/01700000000000-0a0b0c0d"
    },
    "DescribeContinuousBackups": OF_TABLE,
    "DescribeContributorInsights": OF_TABLE,
    "DescribeEndpoints": {},
    "DescribeExport": {"ExportArn": f"{ORDERS}/export/01700000000000-0a0b0c0d"},
    "DescribeGlobalTable": {"GlobalTableName": "Orders"},
    "DescribeGlobalTableSettings": {"GlobalTableName": "Orders"},
    "DescribeImport": {"ImportArn": f"{ORDERS}/import/01700000000000-0a0b0c0d"},
    "DescribeKinesisStreamingDestination": OF_TABLE,
    "DescribeLimits": {},
    "DescribeStream": {"StreamArn": f"{ORDERS}/stream/2026-01-01T00:00:00.000"},
    "DescribeTable": OF_TABLE,
    "DescribeTableReplicaAutoScaling": OF_TABLE,
    "DescribeTimeToLive": OF_TABLE,
    "GetItem": OF_ITEM,
    "GetResourcePolicy": TAGGED,
    "GetShardIterator": {
        "StreamArn": f"{ORDERS}/stream/2026-01-01T00:00:00.000",
        "ShardId": "shardId-00000000000000000000-00000000",
        "ShardIteratorType": "LATEST",
    },
    "ListBackups": {},
    "ListBulkOperations": {},
    "ListContributorInsights": {},
    "ListExports": {},
    "ListGlobalTables": {},
    "ListImports": {},
    "ListStreams": {},
    "ListTables": {},
    "ListTagsOfResource": TAGGED,
    "Query": {
        **OF_TABLE,
        "KeyConditionExpression": "id = :id",
        "ExpressionAttributeValues": {":id": {"S": "o-1"}},
    },
    "Scan": OF_TABLE,
    "SearchVectors": {
        **OF_TABLE,
        "IndexName": "by_meaning",
        "SearchVector": [{"N": "1"}],
        "TopK": 1,
    },
    "TransactGetItems": {"TransactItems": [{"Get": OF_ITEM}]},
}
WRITING: dict[str, dict[str, Any]] = {
    "BatchWriteItem": {"RequestItems": {"Orders": [{"DeleteRequest": {"Key": KEY}}]}},
    "CancelBulkOperation": {"BulkOperationArn": f"{ORDERS}/bulk-operation/01700000000000-0a0b0c0d"},
    "CreateBackup": {**OF_TABLE, "BackupName": "nightly"},
    "CreateGlobalTable": {
        "GlobalTableName": "Orders",
        "ReplicationGroup": [{"RegionName": "us-east-1"}],
    },
    "CreateTable": {**SCHEMA, "TableName": "Others"},
    "DeleteBackup": BACKUP,
    "DeleteItem": OF_ITEM,
    "DeleteResourcePolicy": TAGGED,
    "DeleteTable": OF_TABLE,
    "DisableKinesisStreamingDestination": KINESIS,
    "EnableKinesisStreamingDestination": KINESIS,
    "ExportTableToPointInTime": {"TableArn": ORDERS, **S3},
    "ImportTable": {
        "S3BucketSource": S3,
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": {**SCHEMA, "TableName": "Imported"},
    },
    "PutItem": {**OF_TABLE, "Item": {"id": {"S": "o-2"}}},
    "PutResourcePolicy": {**TAGGED, "Policy": "{}"},
    "RestoreTableFromBackup": {**BACKUP, "TargetTableName": "Restored"},
    "RestoreTableToPointInTime": {
        "SourceTableName": "Orders",
        "TargetTableName": "Restored",
        "UseLatestRestorableTime": True,
    },
    "StartBulkPutItems": {
        **OF_TABLE,
        "InputS3Configuration": {**S3, "InputFormat": "DYNAMODB_JSON"},
        "OutputS3Configuration": {**S3, "OutputType": ["ERROR"]},
    },
    "TagResource": {**TAGGED, "Tags": [{"Key": "a", "Value": "b"}]},
    "TransactWriteItems": {"TransactItems": [{"Delete": OF_ITEM}]},
    "UntagResource": {**TAGGED, "TagKeys": ["a"]},
    "UpdateContinuousBackups": {
        **OF_TABLE,
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    },
    "UpdateContributorInsights": {**OF_TABLE, "ContributorInsightsAction": "ENABLE"},
    "UpdateGlobalTable": {
        "GlobalTableName": "Orders",
        "ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}],
    },
    "UpdateGlobalTableSettings": {"GlobalTableName": "Orders"},
    "UpdateItem": {**OF_ITEM, "UpdateExpression": "SET a = id"},
    "UpdateKinesisStreamingDestination": KINESIS,
    "UpdateTable": {**OF_TABLE, "DeletionProtectionEnabled": True},
    "UpdateTableReplicaAutoScaling": OF_TABLE,
    "UpdateTimeToLive": {
        **OF_TABLE,
        "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "expires"},
    },
}
OF_STATEMENTS = {"ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"}


def of_statement(text: str) -> dict[str, dict[str, Any]]:
    """The three actions that run a statement."""
    return {
        "ExecuteStatement": {"Statement": text},
        "BatchExecuteStatement": {"Statements": [{"Statement": text}]},
        "ExecuteTransaction": {"TransactStatements": [{"Statement": text}]},
    }


def test_the_lists_are_complete() -> None:
    """GetRecords needs an iterator of a stream: `test_permissions` has it."""
    assert set(READS) | set(WRITING) | OF_STATEMENTS | {"GetRecords"} == set(ACTIONS)
    assert not set(READS) & set(WRITING)


# All actions, on the service


@pytest.fixture
def database() -> Iterator[Database]:
    with isotone.open() as database:
        database.execute("CreateTable", SCHEMA)
        database.execute("PutItem", {**OF_TABLE, "Item": {**KEY, "total": {"N": "1"}}})
        yield database


def is_refused(database: Database, user: User, operation: str, request: dict[str, Any]) -> bool:
    context = PolicyContext("eve", "000000000000", "us-east-1", "127.0.0.1", secure=True, now=0.0)
    needed = database.accesses(operation, json.dumps(request).encode())
    assert needed
    return any(Permissions(user).refusal(each, context) is not None for each in needed)


@pytest.mark.parametrize("operation", WRITING)
def test_who_may_only_read_cannot_write(database: Database, operation: str) -> None:
    assert is_refused(database, User(read_only=True), operation, WRITING[operation])


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("operation", sorted(OF_STATEMENTS))
def test_nor_by_a_statement(database: Database, operation: str, kind: str) -> None:
    request = of_statement(WRITES[kind])[operation]
    assert is_refused(database, User(read_only=True), operation, request)


@pytest.mark.parametrize("operation", [*READS, *sorted(OF_STATEMENTS)])
def test_who_may_only_read_can_read(database: Database, operation: str) -> None:
    request = (READS | of_statement(SELECT))[operation]
    assert not is_refused(database, User(read_only=True), operation, request)


@pytest.mark.parametrize("operation", [*READS, *WRITING, *sorted(OF_STATEMENTS)])
def test_who_may_use_another_table_can_do_nothing_here(database: Database, operation: str) -> None:
    request = (READS | WRITING | of_statement(SELECT))[operation]
    is_harmless = operation in ("DescribeEndpoints", "DescribeLimits")
    if operation in ("CreateTable", "ImportTable"):
        request = json.loads(
            json.dumps(request).replace("Others", "Orders").replace("Imported", "Orders")
        )
    assert is_refused(database, User(tables=["Customers"]), operation, request) is not is_harmless


def test_a_mixed_transaction_is_refused_as_a_whole(database: Database) -> None:
    mixed = {
        "TransactItems": [
            {"ConditionCheck": {**OF_ITEM, "ConditionExpression": "attribute_exists(id)"}},
            {"Delete": OF_ITEM},
        ]
    }
    assert is_refused(database, User(read_only=True), "TransactWriteItems", mixed)
    mixed["TransactItems"].pop()
    assert not is_refused(database, User(read_only=True), "TransactWriteItems", mixed)


# Over HTTP


@pytest.fixture
def url(database: Database, tmp_path: Path) -> Iterator[str]:
    policy = {
        "Version": "2012-10-17",
        "Statement": {
            "Effect": "Allow",
            "Action": ["dynamodb:*Item", "dynamodb:Query", "dynamodb:PartiQL*"],
            "Resource": f"{LEAD}:table/Orders",
            "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": "${aws:username}-*"}},
        },
    }
    credentials = write_credentials(
        tmp_path / "users.json",
        ann={},
        reader={"read_only": True},
        other={"tables": ["Customers"]},
        o={"policy": policy},
    )
    with running_server(database, credentials=credentials) as url:
        yield url


def test_the_policy_of_a_table_denies_one_who_may_do_everything(database, url):
    ann = client(url, "ann")
    assert called(ann, "GetItem", OF_ITEM) == ""
    statement = {"Effect": "Deny", "Principal": "*", "Action": "dynamodb:GetItem", "Resource": "*"}
    policy = {"ResourceArn": ORDERS, "Policy": json.dumps({"Statement": statement})}
    assert called(ann, "PutResourcePolicy", policy) == ""
    assert called(ann, "GetItem", OF_ITEM) == "AccessDeniedException"
    assert called(ann, "DescribeTable", OF_TABLE) == ""
    assert called(ann, "DeleteResourcePolicy", {"ResourceArn": ORDERS}) == ""
    assert called(ann, "GetItem", OF_ITEM) == ""


def client(url: str, name: str, region: str = "us-east-1") -> Any:
    return boto3.Session().client(
        "dynamodb",
        endpoint_url=url,
        region_name=region,
        aws_access_key_id=f"ISOT{name.upper()}",
        aws_secret_access_key=f"a secret of {name}",
        config=Config(retries={"mode": "standard"}),
    )


def called(client: Any, operation: str, request: dict[str, Any]) -> str:
    """The code of the error of a call; "" if there is none."""
    try:
        client._make_api_call(operation, request)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return str(error.response["Error"]["Code"]) + ("" if status == 400 else f" ({status})")
    return ""


def test_a_reader_changes_nothing(url: str, database: Database) -> None:
    reader = client(url, "reader")
    before = database.execute("Scan", OF_TABLE)["Items"]
    attempts = [
        *((name, request) for name, request in WRITING.items() if name != "CancelBulkOperation"),
        *(pair for text in WRITES.values() for pair in of_statement(text).items()),
    ]
    for operation, request in attempts:
        if operation in reader.meta.service_model.operation_names:
            assert called(reader, operation, request) == "AccessDeniedException", operation
    assert called(reader, "GetItem", OF_ITEM) == ""
    assert called(reader, "ExecuteStatement", {"Statement": SELECT}) == ""
    assert database.execute("Scan", OF_TABLE)["Items"] == before
    assert database.execute("ListTables", {})["TableNames"] == ["Orders"]


def test_a_user_of_other_tables_learns_nothing_of_this_one(url: str) -> None:
    other = client(url, "other")
    for operation in ("DescribeTable", "Scan"):
        assert called(other, operation, OF_TABLE) == "AccessDeniedException"
        assert called(other, operation, {"TableName": "Nothing"}) == "AccessDeniedException"
    assert called(other, "ListTables", {}) == "AccessDeniedException"
    assert called(other, "Scan", {"TableName": "Customers"}) == "ResourceNotFoundException"


def test_a_user_of_own_keys(url: str, database: Database) -> None:
    own = client(url, "o")
    assert called(own, "GetItem", OF_ITEM) == ""
    theirs = {**OF_TABLE, "Key": {"id": {"S": "p-1"}}}
    assert called(own, "GetItem", theirs) == "AccessDeniedException"
    batch = {"RequestItems": {"Orders": {"Keys": [KEY, {"id": {"S": "p-1"}}]}}}
    assert called(own, "BatchGetItem", batch) == "AccessDeniedException"
    both = {"TransactItems": [{"Get": OF_ITEM}, {"Get": theirs}]}
    assert called(own, "TransactGetItems", both) == "AccessDeniedException"
    for text in (
        "UPDATE \"Orders\" SET a = 1 WHERE id = 'p-1'",
        "INSERT INTO \"Orders\" VALUE {'id': 'p-1'}",
    ):
        for operation, request in of_statement(text).items():
            assert called(own, operation, request) == "AccessDeniedException"
    assert called(own, "Scan", OF_TABLE) == "AccessDeniedException"
    assert [item["id"]["S"] for item in database.execute("Scan", OF_TABLE)["Items"]] == ["o-1"]


def test_the_words_of_a_refusal(url: str) -> None:
    with pytest.raises(ClientError) as refused:
        client(url, "reader").put_item(TableName="Orders", Item=KEY)
    assert refused.value.response["Error"] == {
        "Code": "AccessDeniedException",
        "Message": "User: arn:aws:iam::000000000000:user/reader is not authorized to perform: dynamodb:PutItem on "
        f"resource: {ORDERS} because no identity-based policy allows the dynamodb:PutItem action",
    }


def test_a_request_that_cannot_be_read_is_not_let_in(url: str) -> None:
    reader = client(url, "reader")
    assert (
        called(reader, "ExecuteStatement", {"Statement": "DROP TABLE x"}) == "ValidationException"
    )
    assert called(reader, "PutItem", {"TableName": "a b", "Item": KEY}) == "ValidationException"


def test_a_refused_request_creates_no_region(tmp_path: Path) -> None:
    credentials = write_credentials(
        tmp_path / "users.json", ann={}, other={"tables": ["Customers"]}
    )
    regions = ["eu-west-1", "eu-west-2"]
    with (
        isotone.open(tmp_path / "shop.db", durability="none", regions=True) as database,
        running_server(database, credentials=credentials) as url,
    ):
        for region in regions:
            other = client(url, "other", region)
            assert called(other, "GetItem", OF_ITEM) == "AccessDeniedException"
            customer = {"TableName": "Customers", "Key": KEY}
            with pytest.raises(ClientError, match="not authorized"):
                other.list_tables()
            assert list(database.engine.regions) == ["us-east-1"]
        for _ in range(2):  # the first creates the region
            assert called(client(url, "other", "eu-west-1"), "GetItem", customer) == (
                "ResourceNotFoundException"
            )
            assert called(client(url, "other", "eu-west-1"), "GetItem", OF_ITEM) == (
                "AccessDeniedException"
            )
        client(url, "ann", "eu-west-2").create_table(**SCHEMA)
        assert list(database.engine.regions) == ["us-east-1", "eu-west-1", "eu-west-2"]


def long_statement(key: str, name: str) -> str:
    others = " OR ".join(f"{name}{number} = {number}" for number in range(80))
    return f"UPDATE \"Orders\" SET a = 1 WHERE id = '{key}' AND ({others} OR attribute_exists(id))"


@pytest.mark.parametrize("operation", sorted(OF_STATEMENTS))
def test_permissions_of_long_statements_are_asked_in_the_thread_for_long_work(
    url: str, database: Database, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    threads = set()

    def noted(text: str) -> Any:
        threads.add(threading.current_thread().name)
        return parse(text)

    monkeypatch.setattr(statements, "parse", noted)
    own = client(url, "o")
    for key, refused in (("o-1", ""), ("p-1", "AccessDeniedException")):
        request = of_statement(long_statement(key, operation))[operation]
        assert called(own, operation, request) == refused
    assert threads == {"isotone-long-work"}
    (item,) = database.execute("Scan", OF_TABLE)["Items"]
    assert item["a"] == {"N": "1"}


def test_large_requests_are_looked_into_in_the_thread_for_long_work(
    url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    accesses = type(database).accesses

    def noted(*asked: Any) -> Any:
        threads.append(threading.current_thread().name)
        return accesses(*asked)

    monkeypatch.setattr(type(database), "accesses", noted)
    own = client(url, "o")
    for size, key, refused in (
        (100, "o-2", ""),
        (140_000, "o-3", ""),
        (200_000, "o-4", ""),
        (200_000, "p-1", "AccessDeniedException"),
    ):
        item = {"id": {"S": key}, "text": {"S": "x" * size}}
        assert called(own, "PutItem", {**OF_TABLE, "Item": item}) == refused
    assert threads[1:] == ["isotone-long-work"] * 3
    assert threads[0] != "isotone-long-work"
    assert database.execute("Scan", {**OF_TABLE, "Select": "COUNT"})["Count"] == 4


def test_an_error_while_permissions_are_looked_up_lets_nobody_in(
    url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(type(database), "accesses", broken)
    reader = client(url, "reader")
    with pytest.raises(ClientError) as failed:
        reader.get_item(**OF_ITEM)
    assert failed.value.response["Error"]["Code"] == "InternalServerError"
