"""The tables, copies and settings that `base_requests` refer to, made on any side, and the names that it gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.oracle.base_requests import GLOBAL, PROVISIONED, SEARCHED
from tests.oracle.endpoints import Answer
from tests.oracle.faults import ITEM, STREAMED
from tests.oracle.scripts import Request, lst, n, s, table

Ask = Callable[[str, Request], Answer]

KINESIS: Final = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
_UNKNOWN: Final = "arn:aws:dynamodb:us-east-1:000000000000:table/tab"
_RECOVERED: Final = {"PointInTimeRecoveryEnabled": True}
_NAMES: Final[dict[str, str]] = {
    "TABLE_ARN": _UNKNOWN,
    "VECTOR_ARN": "arn:aws:dynamodb:us-east-1:000000000000:table/vec",
    "STREAM_ARN": f"{_UNKNOWN}/stream/2026-01-01T00:00:00.000",
    "SHARD_ID": "shardId-00000000000000000000-00000000",
    "SEQUENCE": "1" * 21,
    "ITERATOR": "unknown",
    "KINESIS": KINESIS,
    "BACKUP_ARN": f"{_UNKNOWN}/backup/01700000000000-0a0b0c0d",
    "EXPORT_ARN": f"{_UNKNOWN}/export/01700000000000-0a0b0c0d",
    "IMPORT_ARN": f"{_UNKNOWN}/import/01700000000000-0a0b0c0d",
    "BULK_ARN": f"{_UNKNOWN}/bulk-operation/01700000000000-0a0b0c0d",
}

_MADE: Final[tuple[tuple[str, Request], ...]] = (
    ("CreateTable", STREAMED),
    ("CreateTable", PROVISIONED),
    ("CreateTable", SEARCHED),
    ("CreateTable", GLOBAL),
    ("CreateTable", {**GLOBAL, "TableName": "free"}),
    ("CreateTable", table("kept", "p:S", "p")),
    ("CreateTable", {**table("safe", "p:S", "p"), "DeletionProtectionEnabled": True}),
    ("PutItem", {"TableName": "tab", "Item": ITEM}),
    ("PutItem", {"TableName": "vec", "Item": {"p": s("a"), "x": s("a"), "v": lst(n(1), n(2))}}),
    (
        "UpdateTimeToLive",
        {"TableName": "vec", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}},
    ),
)
_SET: Final[tuple[tuple[str, Request], ...]] = (
    ("EnableKinesisStreamingDestination", {"TableName": "vec", "StreamArn": KINESIS}),
    (
        "UpdateContinuousBackups",
        {"TableName": "tab", "PointInTimeRecoverySpecification": _RECOVERED},
    ),
    ("UpdateContributorInsights", {"TableName": "tab", "ContributorInsightsAction": "ENABLE"}),
)
_FROM: Final = {"S3Bucket": "bucket", "S3KeyPrefix": "in", "InputFormat": "DYNAMODB_JSON"}
_COPIED: Final[tuple[tuple[str, Request, str, tuple[str, ...]], ...]] = (
    (
        "CreateBackup",
        {"TableName": "tab", "BackupName": "first"},
        "BACKUP_ARN",
        ("BackupDetails", "BackupArn"),
    ),
    (
        "ExportTableToPointInTime",
        {"TableArn": "tab", "S3Bucket": "bucket"},
        "EXPORT_ARN",
        ("ExportDescription", "ExportArn"),
    ),
    (
        "ImportTable",
        {
            "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in"},
            "InputFormat": "DYNAMODB_JSON",
            "TableCreationParameters": table("imported", "p:S s:N", "ps"),
        },
        "IMPORT_ARN",
        ("ImportTableDescription", "ImportArn"),
    ),
    (
        "StartBulkPutItems",
        {
            "TableName": "tab",
            "InputS3Configuration": _FROM,
            "OutputS3Configuration": {"S3Bucket": "bucket", "OutputType": ["ERROR"]},
        },
        "BULK_ARN",
        ("BulkOperationDescription", "BulkOperationArn"),
    ),
)


def prepare(ask: Ask, *, settings: bool = True) -> dict[str, str]:
    """Make all tables, and what is recorded about them with `settings`; returns the side's own names."""
    names = dict(_NAMES)
    for action, request in (*_MADE, *(_SET if settings else ())):
        ask(action, request)
    described = ask("DescribeTable", {"TableName": "tab"})[1].get("Table", {})
    vectors = ask("DescribeTable", {"TableName": "vec"})[1].get("Table", {})
    names["TABLE_ARN"] = described.get("TableArn", names["TABLE_ARN"])
    names["VECTOR_ARN"] = vectors.get("TableArn", names["VECTOR_ARN"])
    if "LatestStreamArn" in described:
        names |= _names_of_stream(ask, described["LatestStreamArn"])
    for action, request, name, path in _COPIED if settings else ():
        status, found = ask(action, request)
        if status == 200:
            names[name] = found[path[0]][path[1]]
    return names


def _names_of_stream(ask: Ask, arn: str) -> dict[str, str]:
    stream = ask("DescribeStream", {"StreamArn": arn})[1]["StreamDescription"]
    shard = stream["Shards"][0]
    position = {
        "StreamArn": arn,
        "ShardId": shard["ShardId"],
        "ShardIteratorType": "TRIM_HORIZON",
    }
    iterator = ask("GetShardIterator", position)[1].get("ShardIterator", "")
    return {
        "STREAM_ARN": arn,
        "SHARD_ID": shard["ShardId"],
        "SEQUENCE": shard["SequenceNumberRange"]["StartingSequenceNumber"],
        "ITERATOR": iterator,
    }


def placed(request: Any, names: dict[str, str]) -> Any:
    """A request with a side's own names in place of the texts in capitals."""
    if isinstance(request, dict):
        return {name: placed(value, names) for name, value in request.items()}
    if isinstance(request, list):
        return [placed(value, names) for value in request]
    return names.get(request, request) if isinstance(request, str) else request
