"""What is refused: each error that an action of the model names, where it does not need a fault of the service itself."""

from __future__ import annotations

from typing import Any, Final

from tests.operations.session.player import (
    AWAY,
    FULL,
    HOME,
    KINESIS,
    START,
    STREAM,
    UNITS,
    VALUES,
    Player,
    Request,
    index,
    indexed,
    n,
    s,
    tab,
)
from tests.operations.session.tables import POLICY

from isotone.testing import Faults

ARN: Final = "arn:aws:dynamodb:us-east-1:000000000000:table/none"
JOB: Final = f"{ARN}/{{}}/01700000000000-0000000a"
MISSING: Final = "ResourceNotFoundException"
TTL: Final = {"Enabled": True, "AttributeName": "until"}
TAGS: Final = [{"Key": "owner", "Value": "ann"}]
TRACKED: Final = {"PointInTimeRecoveryEnabled": True}
SEARCH: Final[Request] = {"IndexName": "near", "SearchVector": [n(1), n(2)], "TopK": 1}
BULK: Final[Request] = {
    "InputS3Configuration": {"S3Bucket": "bucket", "InputFormat": "ION"},
    "OutputS3Configuration": {"S3Bucket": "reports", "OutputType": ["ERROR"]},
}


def missing_tables(play: Player) -> None:
    item: Request = {"TableName": "none", "Key": {"p": s("a")}}
    kinesis = {"TableName": "none", "StreamArn": KINESIS}
    statement = {"Statement": "SELECT * FROM \"none\" WHERE p = 'a'"}
    named: dict[str, Request] = {
        "DeleteItem": item,
        "GetItem": item,
        "UpdateItem": item,
        "PutItem": {"TableName": "none", "Item": VALUES},
        "Query": {
            "TableName": "none",
            "KeyConditionExpression": "p = :p",
            "ExpressionAttributeValues": {":p": s("a")},
        },
        "Scan": {"TableName": "none"},
        "SearchVectors": {"TableName": "none", **SEARCH},
        "BatchGetItem": {"RequestItems": {"none": {"Keys": [{"p": s("a")}]}}},
        "BatchWriteItem": {"RequestItems": {"none": [{"PutRequest": {"Item": VALUES}}]}},
        "TransactGetItems": {"TransactItems": [{"Get": item}]},
        "TransactWriteItems": {"TransactItems": [{"Delete": item}]},
        "ExecuteStatement": statement,
        "ExecuteTransaction": {"TransactStatements": [statement]},
        "DescribeTable": {"TableName": "none"},
        "DeleteTable": {"TableName": "none"},
        "UpdateTable": {"TableName": "none", "DeletionProtectionEnabled": True},
        "DescribeTimeToLive": {"TableName": "none"},
        "UpdateTimeToLive": {"TableName": "none", "TimeToLiveSpecification": TTL},
        "TagResource": {"ResourceArn": ARN, "Tags": TAGS},
        "UntagResource": {"ResourceArn": ARN, "TagKeys": ["owner"]},
        "ListTagsOfResource": {"ResourceArn": ARN},
        "PutResourcePolicy": {"ResourceArn": ARN, "Policy": POLICY},
        "GetResourcePolicy": {"ResourceArn": ARN},
        "DeleteResourcePolicy": {"ResourceArn": ARN},
        "EnableKinesisStreamingDestination": kinesis,
        "DisableKinesisStreamingDestination": kinesis,
        "UpdateKinesisStreamingDestination": {
            **kinesis,
            "UpdateKinesisStreamingConfiguration": {
                "ApproximateCreationDateTimePrecision": "MICROSECOND"
            },
        },
        "DescribeKinesisStreamingDestination": {"TableName": "none"},
        "UpdateContributorInsights": {"TableName": "none", "ContributorInsightsAction": "ENABLE"},
        "DescribeContributorInsights": {"TableName": "none"},
        "ListContributorInsights": {"TableName": "none"},
        "DescribeTableReplicaAutoScaling": {"TableName": "none"},
        "UpdateTableReplicaAutoScaling": {"TableName": "none"},
        "StartBulkPutItems": {"TableName": "none", **BULK},
        "DescribeBulkOperation": {"BulkOperationArn": JOB.format("bulk-operation")},
        "CancelBulkOperation": {"BulkOperationArn": JOB.format("bulk-operation")},
    }
    for action, request in named.items():
        play.refused(MISSING, action, **request)
    for action, request in {
        "CreateBackup": {"TableName": "none", "BackupName": "copy"},
        "DescribeContinuousBackups": {"TableName": "none"},
        "UpdateContinuousBackups": {
            "TableName": "none",
            "PointInTimeRecoverySpecification": TRACKED,
        },
        "RestoreTableToPointInTime": {
            "SourceTableName": "none",
            "TargetTableName": "copy",
            "UseLatestRestorableTime": True,
        },
        "ExportTableToPointInTime": {"TableArn": ARN, "S3Bucket": "bucket"},
        "CreateGlobalTable": {
            "GlobalTableName": "none",
            "ReplicationGroup": [{"RegionName": HOME}],
        },
    }.items():
        play.refused("TableNotFoundException", action, **request)


def missing_copies(play: Player) -> None:
    backup = {"BackupArn": JOB.format("backup")}
    for action, more in {
        "DescribeBackup": {},
        "DeleteBackup": {},
        "RestoreTableFromBackup": {"TargetTableName": "copy"},
    }.items():
        play.refused("BackupNotFoundException", action, **backup, **more)
    play.refused("ExportNotFoundException", "DescribeExport", ExportArn=JOB.format("export"))
    play.refused("ImportNotFoundException", "DescribeImport", ImportArn=JOB.format("import"))


def copies_in_the_way(play: Player) -> None:
    arn = play.table()["TableDescription"]["TableArn"]
    restore = {"SourceTableName": "tab", "TargetTableName": "copy"}
    latest = {**restore, "UseLatestRestorableTime": True}
    untracked = "PointInTimeRecoveryUnavailableException"
    play.refused(untracked, "RestoreTableToPointInTime", **latest)
    export = {"TableArn": arn, "S3Bucket": "bucket"}
    play.refused(untracked, "ExportTableToPointInTime", **export)
    play("UpdateContinuousBackups", TableName="tab", PointInTimeRecoverySpecification=TRACKED)
    early = {**restore, "RestoreDateTime": START - 60}
    play.refused("InvalidRestoreTimeException", "RestoreTableToPointInTime", **early)
    times = {"ExportTime": START - 60}
    play.refused("InvalidExportTimeException", "ExportTableToPointInTime", **export, **times)
    taken = {**latest, "TargetTableName": "tab"}
    play.refused("TableAlreadyExistsException", "RestoreTableToPointInTime", **taken)
    backup = play("CreateBackup", TableName="tab", BackupName="copy")["BackupDetails"]
    from_backup = {"BackupArn": backup["BackupArn"], "TargetTableName": "tab"}
    play.refused("TableAlreadyExistsException", "RestoreTableFromBackup", **from_backup)
    table = {"InputFormat": "ION", "TableCreationParameters": tab()}
    source = {"S3BucketSource": {"S3Bucket": "bucket"}}
    play.refused("ResourceInUseException", "ImportTable", **table, **source)
    for _ in range(300):
        play("ExportTableToPointInTime", **export)
    play.refused("LimitExceededException", "ExportTableToPointInTime", **export)
    for number in range(50):
        named = {**table, "TableCreationParameters": tab(TableName=f"imported-{number}")}
        play("ImportTable", **named, **source)
    named = {**table, "TableCreationParameters": tab(TableName="imported")}
    play.refused("LimitExceededException", "ImportTable", **named, **source)
    for _ in range(50):
        play("StartBulkPutItems", TableName="tab", **BULK)
    play.refused("LimitExceededException", "StartBulkPutItems", TableName="tab", **BULK)


def tables_in_use(play: Player) -> None:
    """Settings of a table that is being created, and changes of one that is being updated."""
    arn = play.table()["TableDescription"]["TableArn"]
    backup = play("CreateBackup", TableName="tab", BackupName="copy")["BackupDetails"]["BackupArn"]
    play("UpdateContinuousBackups", TableName="tab", PointInTimeRecoverySpecification=TRACKED)
    faults = Faults(clock=play.clock)
    faults.slow_tables(creating=60, updating=60)
    new = arn.replace("/tab", "/new")
    kinesis = {"TableName": "new", "StreamArn": KINESIS}
    latest = {"SourceTableName": "tab", "UseLatestRestorableTime": True}
    in_use: list[tuple[str, Request]] = [
        ("CreateTable", tab(TableName="new")),
        ("DeleteTable", {"TableName": "new"}),
        ("UpdateTable", {"TableName": "new", "DeletionProtectionEnabled": True}),
        ("UpdateTimeToLive", {"TableName": "new", "TimeToLiveSpecification": TTL}),
        ("TagResource", {"ResourceArn": new, "Tags": TAGS}),
        ("UntagResource", {"ResourceArn": new, "TagKeys": ["owner"]}),
        ("PutResourcePolicy", {"ResourceArn": new, "Policy": POLICY}),
        ("DeleteResourcePolicy", {"ResourceArn": new}),
        ("EnableKinesisStreamingDestination", kinesis),
        ("DisableKinesisStreamingDestination", kinesis),
        ("UpdateKinesisStreamingDestination", kinesis),
        ("UpdateTableReplicaAutoScaling", {"TableName": "new"}),
        ("StartBulkPutItems", {"TableName": "new", **BULK}),
    ]
    with faults.on(play.database):
        play("CreateTable", **tab(TableName="new"))
        for action, request in in_use:
            play.refused("ResourceInUseException", action, **request)
        copy = {"TableName": "new", "BackupName": "copy"}
        play.refused("TableInUseException", "CreateBackup", **copy)
        busy = {"TargetTableName": "new"}
        play.refused("TableInUseException", "RestoreTableFromBackup", BackupArn=backup, **busy)
        play.refused("TableInUseException", "RestoreTableToPointInTime", **latest, **busy)
        tracked = {"TableName": "new", "PointInTimeRecoverySpecification": TRACKED}
        unavailable = "ContinuousBackupsUnavailableException"
        play.refused(unavailable, "UpdateContinuousBackups", **tracked)
        play("UpdateTable", TableName="tab", DeletionProtectionEnabled=False)
        for action in ("UpdateTable", "DeleteTable"):
            play.refused("ResourceInUseException", action, TableName="tab")


def items_in_the_way(play: Player) -> None:
    indexed(play)
    play("PutItem", TableName="tab", Item=FULL)
    insert = {"Statement": "INSERT INTO \"tab\" VALUE {'p': 'a', 's': 1}"}
    play.refused("DuplicateItemException", "ExecuteStatement", **insert)
    writes: list[Any] = [
        {"Put": {"TableName": "tab", "Item": {**FULL, "s": n(each)}}} for each in (7, 8)
    ]
    mismatch = "IdempotentParameterMismatchException"
    token = {"ClientRequestToken": "once"}
    play("TransactWriteItems", TransactItems=writes[:1], **token)
    play.refused(mismatch, "TransactWriteItems", TransactItems=writes[1:], **token)
    token = {"ClientRequestToken": "twice"}
    changes = [
        {"Statement": f"DELETE FROM \"tab\" WHERE p = 'a' AND s = {each}"} for each in (7, 8)
    ]
    play("ExecuteTransaction", TransactStatements=changes[:1], **token)
    play.refused(mismatch, "ExecuteTransaction", TransactStatements=changes[1:], **token)
    wrong = [{"Get": {"TableName": "tab", "Key": {"p": n(1), "s": n(1)}}}]
    play.refused("TransactionCanceledException", "TransactGetItems", TransactItems=wrong)


def streams_that_are_gone(play: Player) -> None:
    arn = play.table(StreamSpecification=STREAM)["TableDescription"]["LatestStreamArn"]
    other = arn.replace("/tab/", "/none/")
    play.refused(MISSING, "DescribeStream", StreamArn=other)
    play("PutItem", TableName="tab", Item=VALUES)
    described = play("DescribeStream", StreamArn=arn)["StreamDescription"]
    shard = {"StreamArn": arn, "ShardId": described["Shards"][0]["ShardId"]}
    horizon = {"ShardIteratorType": "TRIM_HORIZON"}
    play.refused(MISSING, "GetShardIterator", **{**shard, "StreamArn": other}, **horizon)
    iterator = play("GetShardIterator", **shard, **horizon)["ShardIterator"]
    number = play("GetRecords", ShardIterator=iterator)["Records"][0]["dynamodb"]["SequenceNumber"]
    play.clock.advance(16 * 60)
    play.refused("ExpiredIteratorException", "GetRecords", ShardIterator=iterator)
    play.clock.advance(25 * 3600)
    play("PutItem", TableName="tab", Item=VALUES)
    play.work()
    at = {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": number}
    play.refused("TrimmedDataAccessException", "GetShardIterator", **shard, **at)


def global_tables_in_the_way(play: Player) -> None:
    for call in (play, play.away):
        play.table(
            call=call,
            keys="p",
            types={"g": "S"},
            GlobalSecondaryIndexes=[index("global", "g", ProvisionedThroughput=UNITS)],
            StreamSpecification=STREAM,
            BillingMode="PROVISIONED",
            ProvisionedThroughput=UNITS,
        )
    group = {
        "GlobalTableName": "tab",
        "ReplicationGroup": [{"RegionName": HOME}, {"RegionName": AWAY}],
    }
    play("CreateGlobalTable", **group)
    play.refused("GlobalTableAlreadyExistsException", "CreateGlobalTable", **group)
    missing = "GlobalTableNotFoundException"
    create, delete = ({kind: {"RegionName": AWAY}} for kind in ("Create", "Delete"))
    play.refused(missing, "DescribeGlobalTable", GlobalTableName="none")
    play.refused(missing, "DescribeGlobalTableSettings", GlobalTableName="none")
    play.refused(missing, "UpdateGlobalTableSettings", GlobalTableName="none")
    play.refused(missing, "UpdateGlobalTable", GlobalTableName="none", ReplicaUpdates=[create])
    named = {"GlobalTableName": "tab"}
    play.refused(
        "ReplicaAlreadyExistsException", "UpdateGlobalTable", **named, ReplicaUpdates=[create]
    )
    third = {"RegionName": "ap-south-1"}
    absent = "ReplicaNotFoundException"
    play.refused(absent, "UpdateGlobalTable", **named, ReplicaUpdates=[{"Delete": third}])
    play.refused(
        "TableNotFoundException", "UpdateGlobalTable", **named, ReplicaUpdates=[{"Create": third}]
    )
    play.refused(absent, "UpdateGlobalTableSettings", **named, ReplicaSettingsUpdate=[third])
    play("UpdateGlobalTable", **named, ReplicaUpdates=[delete])
    units = {"IndexName": "none", "ProvisionedWriteCapacityUnits": 7}
    settings = {"GlobalTableGlobalSecondaryIndexSettingsUpdate": [units]}
    play.refused("IndexNotFoundException", "UpdateGlobalTableSettings", **named, **settings)


FAILURES: Final = (
    missing_tables,
    missing_copies,
    copies_in_the_way,
    tables_in_use,
    items_in_the_way,
    streams_that_are_gone,
    global_tables_in_the_way,
)
