"""What copies tables: backups, recovery, exports, imports, bulk operations."""

from __future__ import annotations

import gzip
import json
from typing import Final

from tests.operations.session.player import (
    FULL,
    INCLUDE,
    KEY,
    MOST,
    START,
    STREAM,
    UNITS,
    VALUES,
    WARM,
    Player,
    Request,
    index,
    indexed,
    key_schema,
    n,
    s,
    search,
    tab,
    types_of,
    vectors,
)


def backups(play: Player) -> None:
    play.table(
        types={"g": "S", "l": "S", "y": "N"},
        LocalSecondaryIndexes=[index("local", "p l", Projection=INCLUDE)],
        GlobalSecondaryIndexes=[index("global", "g", Projection=INCLUDE, OnDemandThroughput=MOST)],
        VectorIndexes=[vectors()],
        StreamSpecification=STREAM,
        SSESpecification=KEY,
        OnDemandThroughput=MOST,
    )
    specification = {"Enabled": True, "AttributeName": "until"}
    play("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
    play("PutItem", TableName="tab", Item=FULL)
    first = play("CreateBackup", TableName="tab", BackupName="first")["BackupDetails"]["BackupArn"]
    play("DescribeBackup", BackupArn=first)
    play.clock.advance(60)
    play.table("tac")
    for table, name in (("tab", "second"), ("tac", "third")):
        play("CreateBackup", TableName=table, BackupName=name)
        play.clock.advance(60)
    play("ListBackups")
    play("ListBackups", TableName="tac")
    play("ListBackups", TimeRangeLowerBound=START + 50)
    play("ListBackups", TimeRangeUpperBound=START + 50)
    play("ListBackups", BackupType="SYSTEM")
    last = play("ListBackups", Limit=1)["LastEvaluatedBackupArn"]
    play("ListBackups", ExclusiveStartBackupArn=last)
    for name, more in restores():
        play("RestoreTableFromBackup", TargetTableName=name, BackupArn=first, **more)
        play.work()
        play("DescribeTable", TableName=name)
        play("Scan", TableName=name)
    warm = {
        "GlobalSecondaryIndexOverride": [
            index("global", "g", Projection=INCLUDE, WarmThroughput=WARM)
        ]
    }
    play("RestoreTableFromBackup", TargetTableName="warm", BackupArn=first, **warm)
    play.work()
    play("DescribeTable", TableName="warm")
    play("DeleteBackup", BackupArn=first)


def restores() -> list[tuple[str, Request]]:
    """How a table is restored: with its own settings, and with others."""
    return [
        ("same", {}),
        (
            "units",
            {
                "BillingModeOverride": "PROVISIONED",
                "ProvisionedThroughputOverride": UNITS,
                "GlobalSecondaryIndexOverride": [
                    index("global", "g", Projection=INCLUDE, ProvisionedThroughput=UNITS)
                ],
                "VectorIndexOverride": [],
                "SSESpecificationOverride": {**KEY, "KMSMasterKeyId": "alias/other"},
            },
        ),
        (
            "fewer",
            {
                "OnDemandThroughputOverride": {
                    "MaxReadRequestUnits": 3,
                    "MaxWriteRequestUnits": 4,
                },
                "GlobalSecondaryIndexOverride": [
                    index(
                        "global",
                        "g",
                        Projection=INCLUDE,
                        OnDemandThroughput={"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 6},
                    )
                ],
                "LocalSecondaryIndexOverride": [],
                "VectorIndexOverride": [],
            },
        ),
        (
            "others",
            {
                "GlobalSecondaryIndexOverride": [],
                "LocalSecondaryIndexOverride": [index("local", "p l", Projection=INCLUDE)],
                "VectorIndexOverride": [vectors()],
            },
        ),
    ]


def recovery(play: Player) -> None:
    arn = play.table(
        types={"g": "S", "l": "S", "y": "N"},
        LocalSecondaryIndexes=[index("local", "p l", Projection=INCLUDE)],
        GlobalSecondaryIndexes=[index("global", "g", Projection=INCLUDE, OnDemandThroughput=MOST)],
        VectorIndexes=[vectors()],
        SSESpecification=KEY,
        OnDemandThroughput=MOST,
    )["TableDescription"]["TableArn"]
    play("DescribeContinuousBackups", TableName="tab")
    specification = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 7}
    play("UpdateContinuousBackups", TableName="tab", PointInTimeRecoverySpecification=specification)
    play.clock.advance(10)
    play("PutItem", TableName="tab", Item=FULL)
    play.clock.advance(10)
    play("DeleteItem", TableName="tab", Key={"p": s("a"), "s": n(1)})
    play.clock.advance(10)
    play("DescribeContinuousBackups", TableName="tab")
    times: list[Request] = [{"UseLatestRestorableTime": True}, {"RestoreDateTime": START + 15}]
    for source in ({"SourceTableName": "tab"}, {"SourceTableArn": arn}):
        for at in times:
            name = f"{''.join(source)}-{''.join(at)}"
            play("RestoreTableToPointInTime", TargetTableName=name, **source, **at)
            play.work()
            play("Scan", TableName=name)
    for name, more in restores():
        at = {"RestoreDateTime": START + 15, "SourceTableName": "tab"}
        play("RestoreTableToPointInTime", TargetTableName=name, **at, **more)
        play.work()
        play("DescribeTable", TableName=name)
        play("Scan", TableName=name)
    warm = {
        "GlobalSecondaryIndexOverride": [
            index("global", "g", Projection=INCLUDE, WarmThroughput=WARM)
        ]
    }
    copy = {"TargetTableName": "warm", "SourceTableName": "tab", "UseLatestRestorableTime": True}
    play.refused("ValidationException", "RestoreTableToPointInTime", **copy, **warm)
    play.clock.advance(8 * 24 * 3600)
    play("DescribeContinuousBackups", TableName="tab")
    play("DeleteTable", TableName="tab")
    kept = play("ListBackups", BackupType="SYSTEM")["BackupSummaries"][0]["BackupArn"]
    play("DescribeBackup", BackupArn=kept)


def exports(play: Player) -> None:
    arn = play.table()["TableDescription"]["TableArn"]
    other = play.table("other")["TableDescription"]["TableArn"]
    on = {"PointInTimeRecoveryEnabled": True}
    for name in ("tab", "other"):
        play("UpdateContinuousBackups", TableName=name, PointInTimeRecoverySpecification=on)
    play("PutItem", TableName="tab", Item=VALUES)
    play("PutItem", TableName="tab", Item={**VALUES, "p": s("b")})
    play("PutItem", TableName="tab", Item={**VALUES, "s": n(2), "z": s("z")})
    play.clock.advance(3600)
    play("PutItem", TableName="tab", Item={**VALUES, "s": n(3)})
    play("PutItem", TableName="tab", Item={**VALUES, "x": n(3)})
    play.clock.advance(3000)
    play("PutItem", TableName="tab", Item={**VALUES, "s": n(4)})
    play.clock.advance(600)
    whole = {"TableArn": arn, "S3Bucket": "bucket"}
    export = play(
        "ExportTableToPointInTime",
        **whole,
        ExportTime=START + 1800,
        ClientToken="one",
        S3BucketOwner="000000000000",
        S3Prefix="exports",
        S3SseAlgorithm="KMS",
        S3SseKmsKeyId="alias/mine",
        ExportFormat="ION",
        ExportType="FULL_EXPORT",
        FilterSpecification={
            "KeyConditionExpression": "#p = :p",
            "FilterExpression": "#z <> :z",
            "ProjectionExpression": "p, s",
            "ExpressionAttributeNames": {"#p": "p", "#z": "z"},
            "ExpressionAttributeValues": {":p": s("a"), ":z": s("z")},
        },
    )["ExportDescription"]["ExportArn"]
    play.refused("ExportConflictException", "ExportTableToPointInTime", **whole, ClientToken="one")
    play.clock.advance(1)
    play.work()
    play("DescribeExport", ExportArn=export)
    play.files("bucket")
    for view in ("NEW_AND_OLD_IMAGES", "NEW_IMAGE"):
        play.clock.advance(1)
        changes = play(
            "ExportTableToPointInTime",
            **whole,
            ExportType="INCREMENTAL_EXPORT",
            IncrementalExportSpecification={
                "ExportFromTime": START + 1800,
                "ExportToTime": START + 5400,
                "ExportViewType": view,
            },
        )["ExportDescription"]["ExportArn"]
        play.work()
        play("DescribeExport", ExportArn=changes)
        play.files("bucket")
    play.file("", "blocked", b"a file, and no folder")
    blocked = play("ExportTableToPointInTime", TableArn=arn, S3Bucket="blocked")
    play.work()
    play("DescribeExport", ExportArn=blocked["ExportDescription"]["ExportArn"])
    play("ExportTableToPointInTime", TableArn=other, S3Bucket="bucket")
    play("ListExports")
    play("ListExports", TableArn=other)
    token = play("ListExports", MaxResults=1)["NextToken"]
    play("ListExports", NextToken=token)


LINES: Final = json.dumps({"Item": FULL}).encode() + b"\n" + b'{"Item":{"p":{"S":"b"}}}\n'


def imports(play: Player) -> None:
    play.file("bucket", "in/one.json", LINES)
    play.file("bucket", "other/two.json", LINES)
    types = types_of("p s:N g y:N")
    table = {
        "TableName": "imported",
        "AttributeDefinitions": [
            {"AttributeName": a, "AttributeType": t} for a, t in types.items()
        ],
        "KeySchema": key_schema("p s:N"),
        "BillingMode": "PAY_PER_REQUEST",
        "OnDemandThroughput": MOST,
        "SSESpecification": KEY,
        "GlobalSecondaryIndexes": [
            index("global", "g", Projection=INCLUDE, OnDemandThroughput=MOST, WarmThroughput=WARM)
        ],
        "VectorIndexes": [vectors()],
    }
    source = {"S3Bucket": "bucket", "S3KeyPrefix": "in/", "S3BucketOwner": "000000000000"}
    began = play(
        "ImportTable",
        ClientToken="one",
        S3BucketSource=source,
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="NONE",
        TableCreationParameters=table,
    )["ImportTableDescription"]["ImportArn"]
    conflict = {"S3BucketSource": source, "InputFormat": "ION", "TableCreationParameters": table}
    play.refused("ImportConflictException", "ImportTable", ClientToken="one", **conflict)
    play.clock.advance(1)
    play.work()
    play("DescribeImport", ImportArn=began)
    described = play("DescribeTable", TableName="imported")["Table"]
    play("Scan", TableName="imported")
    play("Scan", TableName="imported", IndexName="global")
    search(play, "imported")
    play.file("bucket", "csv/one.csv", b"a;1;x\nb;2;y\n")
    units = {
        "TableName": "columns",
        "AttributeDefinitions": [
            {"AttributeName": a, "AttributeType": t} for a, t in types_of("p s:N z").items()
        ],
        "KeySchema": key_schema("p s:N"),
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": UNITS,
        "GlobalSecondaryIndexes": [index("by_z", "z", ProvisionedThroughput=UNITS)],
    }
    columns = play(
        "ImportTable",
        S3BucketSource={"S3Bucket": "bucket", "S3KeyPrefix": "csv/"},
        InputFormat="CSV",
        InputFormatOptions={"Csv": {"Delimiter": ";", "HeaderList": ["p", "s", "z"]}},
        TableCreationParameters=units,
    )["ImportTableDescription"]["ImportArn"]
    play.work()
    play("DescribeImport", ImportArn=columns)
    play("DescribeTable", TableName="columns")
    play("Scan", TableName="columns")
    play.file("bucket", "packed/one.json.gz", b"not packed")
    packed = play(
        "ImportTable",
        S3BucketSource={"S3Bucket": "bucket", "S3KeyPrefix": "packed/"},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters=tab(TableName="packed"),
    )["ImportTableDescription"]["ImportArn"]
    play.work()
    play("DescribeImport", ImportArn=packed)
    play("ListImports")
    play("ListImports", TableArn=described["TableArn"])
    token = play("ListImports", PageSize=1)["NextToken"]
    play("ListImports", NextToken=token)


def bulk_operations(play: Player) -> None:
    indexed(play)
    ion = b'$ion_1_0 {Item:{p:"a",s:1.}}\n'
    lines = LINES
    conditional = {"Item": {**FULL, "s": n(1)}, "ConditionExpression": "attribute_not_exists(p)"}
    play.file("bucket", "in/one.json", lines + json.dumps(conditional).encode() + b"\n")
    play.file("bucket", "other/one.json", lines)
    play.file("bucket", "ion/one.ion", ion)
    started = play(
        "StartBulkPutItems",
        ClientToken="one",
        InputS3Configuration={
            "S3BucketOwner": "000000000000",
            "S3Bucket": "bucket",
            "S3KeyPrefix": "in/",
            "InputFormat": "DYNAMODB_JSON",
            "InputCompressionType": "NONE",
        },
        OutputS3Configuration={
            "S3BucketOwner": "000000000000",
            "S3Bucket": "reports",
            "S3KeyPrefix": "out",
            "S3SseAlgorithm": "KMS",
            "S3SseKmsKeyId": "alias/mine",
            "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"],
        },
        TableName="tab",
        MaxWriteRequestUnits=2048,
        PerformanceTier="ACCELERATED",
    )["BulkOperationDescription"]["BulkOperationArn"]
    other: Request = {
        "InputS3Configuration": {
            "S3Bucket": "bucket",
            "S3KeyPrefix": "ion/",
            "InputFormat": "ION",
        },
        "OutputS3Configuration": {"S3Bucket": "reports", "OutputType": ["ERROR"]},
        "TableName": "tab",
    }
    mismatch = "IdempotentParameterMismatchException"
    play.refused(mismatch, "StartBulkPutItems", **other, ClientToken="one")
    play.clock.advance(1)
    play.work()
    play("DescribeBulkOperation", BulkOperationArn=started)
    play("Scan", TableName="tab")
    play.files("reports")
    play.file("bucket", "packed/one.json.gz", gzip.compress(LINES))
    packed = {
        "S3Bucket": "bucket",
        "S3KeyPrefix": "packed/",
        "InputFormat": "DYNAMODB_JSON",
        "InputCompressionType": "GZIP",
    }
    failing = play("StartBulkPutItems", **{**other, "InputS3Configuration": packed})
    play.work()
    arn = failing["BulkOperationDescription"]["BulkOperationArn"]
    play("DescribeBulkOperation", BulkOperationArn=arn)
    play("ListBulkOperations")
    token = play("ListBulkOperations", MaxResults=1)["NextToken"]
    play("ListBulkOperations", NextToken=token)
    more = play("StartBulkPutItems", **other)["BulkOperationDescription"]["BulkOperationArn"]
    play("CancelBulkOperation", BulkOperationArn=more)
    play.work()
    play("DescribeBulkOperation", BulkOperationArn=more)
