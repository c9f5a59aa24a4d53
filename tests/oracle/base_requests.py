"""Valid requests of every action on the tables of `prepared`, from which faults are made.

Texts in capitals (`TABLE_ARN`) stand for what each side calls its own.
"""

from __future__ import annotations

import json
from typing import Final

from tests.oracle.faults import BASES, ITEM, KEY
from tests.oracle.scripts import Request, index, n, s, table

_VALUES: Final[Request] = {"ExpressionAttributeValues": {":v": s("a")}}
_EQ: Final = {"ComparisonOperator": "EQ", "AttributeValueList": [s("a")]}
_OTHER: Final = {"p": s("b"), "s": n(1)}


OF_ITEMS: Final[dict[str, tuple[Request, ...]]] = {
    "PutItem": (
        BASES["PutItem"],
        {**BASES["PutItem"], "ConditionExpression": "attribute_not_exists(zz)"},
        {**BASES["PutItem"], "Expected": {"zz": {"Exists": False}}},
    ),
    "DeleteItem": (
        BASES["DeleteItem"],
        {**BASES["DeleteItem"], "ConditionExpression": "zz <> :v", **_VALUES},
        {**BASES["DeleteItem"], "Expected": {"zz": {"Exists": False}}},
    ),
    "UpdateItem": (
        BASES["UpdateItem"],
        {**BASES["UpdateItem"], "ConditionExpression": "zz <> :v"},
        {
            "TableName": "tab",
            "Key": KEY,
            "AttributeUpdates": {"y": {"Action": "PUT", "Value": s("a")}},
            "Expected": {"zz": {"Exists": False}},
        },
        {"TableName": "tab", "Key": KEY},
    ),
    "GetItem": (
        BASES["GetItem"],
        {**BASES["GetItem"], "ProjectionExpression": "x"},
        {**BASES["GetItem"], "AttributesToGet": ["x"]},
    ),
    "Query": (
        BASES["Query"],
        {**BASES["Query"], "FilterExpression": "x = :v", "ProjectionExpression": "x"},
        {
            "TableName": "tab",
            "KeyConditions": {"p": _EQ},
            "QueryFilter": {"x": _EQ},
            "AttributesToGet": ["x"],
        },
        {
            "TableName": "tab",
            "IndexName": "g-all",
            "KeyConditionExpression": "g = :v AND r = :n",
            "ExpressionAttributeValues": {":v": s("g"), ":n": n(1)},
        },
    ),
    "Scan": (
        BASES["Scan"],
        {"TableName": "tab", "FilterExpression": "x = :v", **_VALUES, "ProjectionExpression": "x"},
        {"TableName": "tab", "ScanFilter": {"x": _EQ}, "AttributesToGet": ["x"]},
        {"TableName": "tab", "Segment": 0, "TotalSegments": 1},
    ),
    "BatchGetItem": (
        BASES["BatchGetItem"],
        {"RequestItems": {"tab": {"Keys": [KEY, _OTHER], "ProjectionExpression": "x"}}},
        {"RequestItems": {"tab": {"Keys": [_OTHER, KEY], "AttributesToGet": ["x"]}}},
    ),
    "BatchWriteItem": (
        BASES["BatchWriteItem"],
        {
            "RequestItems": {
                "tab": [{"PutRequest": {"Item": ITEM}}, {"DeleteRequest": {"Key": _OTHER}}]
            }
        },
    ),
    "TransactGetItems": (
        BASES["TransactGetItems"],
        {
            "TransactItems": [
                {"Get": {"TableName": "tab", "Key": KEY, "ProjectionExpression": "x"}},
                {"Get": {"TableName": "tab", "Key": _OTHER}},
            ]
        },
    ),
    "TransactWriteItems": (
        BASES["TransactWriteItems"],
        {
            "TransactItems": [
                {
                    "Update": {
                        "TableName": "tab",
                        "Key": KEY,
                        "UpdateExpression": "SET y = :v",
                        **_VALUES,
                    }
                },
                {
                    "ConditionCheck": {
                        "TableName": "tab",
                        "Key": _OTHER,
                        "ConditionExpression": "attribute_not_exists(zz)",
                    }
                },
            ],
            "ClientRequestToken": "token",
        },
    ),
    "SearchVectors": (
        {
            "TableName": "vec",
            "IndexName": "vec",
            "SearchVector": [{"N": "1"}, {"N": "2"}],
            "TopK": 3,
        },
        {
            "TableName": "vec",
            "IndexName": "vec",
            "SearchVector": [{"N": "1"}, {"N": "2"}],
            "TopK": 3,
            "SearchConditionExpression": "x = :v",
            "ProjectionExpression": "p",
            **_VALUES,
        },
    ),
    "ExecuteStatement": (
        {"Statement": "SELECT * FROM tab WHERE p = 'a'", "Limit": 1},
        {"Statement": "SELECT x FROM tab WHERE p = ? AND s = ?", "Parameters": [s("a"), n(1)]},
        {
            "Statement": "UPDATE tab SET y = ? WHERE p = 'a' AND s = 1",
            "Parameters": [s("y")],
        },
        {"Statement": "INSERT INTO tab VALUE {'p': 'new', 's': 1}"},
        {"Statement": "DELETE FROM tab WHERE p = 'a' AND s = 1"},
    ),
    "BatchExecuteStatement": (
        {"Statements": [{"Statement": "SELECT * FROM tab WHERE p = 'a' AND s = 1"}]},
        {
            "Statements": [
                {
                    "Statement": "UPDATE tab SET y = ? WHERE p = 'a' AND s = 1",
                    "Parameters": [s("y")],
                },
                {"Statement": "DELETE FROM tab WHERE p = 'b' AND s = 1"},
            ]
        },
    ),
    "ExecuteTransaction": (
        {"TransactStatements": [{"Statement": "SELECT * FROM tab WHERE p = 'a' AND s = 1"}]},
        {
            "TransactStatements": [
                {
                    "Statement": "UPDATE tab SET y = ? WHERE p = 'a' AND s = 1",
                    "Parameters": [s("y")],
                },
                {"Statement": "DELETE FROM tab WHERE p = 'b' AND s = 1"},
            ],
            "ClientRequestToken": "token",
        },
    ),
}
"""Valid requests of the actions on items: with expressions, with legacy parameters, with several entries."""

ITEMS_OF_TAB: Final = (
    *("PutItem", "DeleteItem", "UpdateItem", "GetItem", "Query", "Scan"),
    *("BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"),
)
"""The actions on items of the table `tab` by their keys: what they change, one PutItem mends."""

_UNITS: Final = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
_STREAM: Final = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
_NEW: Final = table("new", "p:S s:N", "ps")
_VECTOR: Final[Request] = {
    "IndexName": "vec",
    "VectorAttribute": {"AttributeName": "v"},
    "Dimensions": 2,
    "DistanceFunction": "COSINE",
    "Projection": {"ProjectionType": "ALL"},
    "SearchSchema": [{"AttributeName": "x", "SearchSchemaElementType": "INLINE_FILTER"}],
}
_SCALING: Final = {
    "MinimumUnits": 5,
    "MaximumUnits": 50,
    "ScalingPolicyUpdate": {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0}},
}
POLICY: Final = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": "*",
                "Action": "dynamodb:GetItem",
                "Resource": "arn:aws:dynamodb:us-east-1:000000000000:table/tab",
            }
        ],
    }
)
_FROM: Final = {"S3Bucket": "bucket", "S3KeyPrefix": "in", "InputFormat": "DYNAMODB_JSON"}
_NEW_INDEX: Final = index("g-new", "ng")

PROVISIONED: Final[Request] = {
    **table(
        "prov",
        "p:S s:N g:S",
        "ps",
        GlobalSecondaryIndexes=[{**index("g-all", "g"), "ProvisionedThroughput": _UNITS}],
    ),
    "BillingMode": "PROVISIONED",
    "ProvisionedThroughput": _UNITS,
}
"""A table whose capacity is provisioned."""

SEARCHED: Final[Request] = {**table("vec", "p:S x:S", "p"), "VectorIndexes": [_VECTOR]}
"""A table with a vector index."""

GLOBAL: Final[Request] = {
    **table("glob", "p:S", "p"),
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
"""A table that regions can have in common."""

OF_TABLES: Final[dict[str, tuple[Request, ...]]] = {
    "CreateTable": (
        BASES["CreateTable"],
        {
            **PROVISIONED,
            "TableName": "new",
            "StreamSpecification": _STREAM,
            "Tags": [{"Key": "k", "Value": "v"}],
            "TableClass": "STANDARD",
        },
        {**SEARCHED, "TableName": "new", "ResourcePolicy": POLICY},
    ),
    "UpdateTable": (
        {"TableName": "tab", "DeletionProtectionEnabled": False},
        {
            "TableName": "tab",
            "AttributeDefinitions": [
                {"AttributeName": "n", "AttributeType": "S"},
                {"AttributeName": "g", "AttributeType": "S"},
            ],
            "GlobalSecondaryIndexUpdates": [{"Create": _NEW_INDEX}],
        },
        {
            "TableName": "prov",
            "ProvisionedThroughput": {"ReadCapacityUnits": 6, "WriteCapacityUnits": 6},
            "GlobalSecondaryIndexUpdates": [
                {
                    "Update": {
                        "IndexName": "g-all",
                        "ProvisionedThroughput": {"ReadCapacityUnits": 6, "WriteCapacityUnits": 6},
                    }
                }
            ],
        },
        {"TableName": "tab", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "g-all"}}]},
        {"TableName": "prov", "StreamSpecification": _STREAM},
        {"TableName": "vec", "VectorIndexUpdates": [{"Delete": {"IndexName": "vec"}}]},
        {"TableName": "tab", "ReplicaUpdates": [{"Create": {"RegionName": "ap-south-1"}}]},
    ),
    "DeleteTable": ({"TableName": "prov"}, {"TableName": "kept"}),
    "DescribeTable": ({"TableName": "tab"},),
    "ListTables": ({"ExclusiveStartTableName": "aaa", "Limit": 1},),
    "UpdateTimeToLive": (
        {
            "TableName": "tab",
            "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"},
        },
        {
            "TableName": "vec",
            "TimeToLiveSpecification": {"Enabled": False, "AttributeName": "ttl"},
        },
    ),
    "DescribeTimeToLive": ({"TableName": "tab"},),
    "TagResource": ({"ResourceArn": "TABLE_ARN", "Tags": [{"Key": "k", "Value": "v"}]},),
    "UntagResource": ({"ResourceArn": "TABLE_ARN", "TagKeys": ["k"]},),
    "ListTagsOfResource": ({"ResourceArn": "TABLE_ARN"},),
    "DescribeLimits": ({},),
    "DescribeEndpoints": ({},),
    "PutResourcePolicy": (
        {"ResourceArn": "TABLE_ARN", "Policy": POLICY, "ExpectedRevisionId": "NO_POLICY"},
        {"ResourceArn": "STREAM_ARN", "Policy": POLICY},
    ),
    "GetResourcePolicy": ({"ResourceArn": "VECTOR_ARN"},),
    "DeleteResourcePolicy": ({"ResourceArn": "VECTOR_ARN"},),
    "EnableKinesisStreamingDestination": (
        {
            "TableName": "tab",
            "StreamArn": "KINESIS",
            "EnableKinesisStreamingConfiguration": {
                "ApproximateCreationDateTimePrecision": "MICROSECOND"
            },
        },
    ),
    "DisableKinesisStreamingDestination": ({"TableName": "vec", "StreamArn": "KINESIS"},),
    "UpdateKinesisStreamingDestination": (
        {
            "TableName": "vec",
            "StreamArn": "KINESIS",
            "UpdateKinesisStreamingConfiguration": {
                "ApproximateCreationDateTimePrecision": "MICROSECOND"
            },
        },
    ),
    "DescribeKinesisStreamingDestination": ({"TableName": "tab"},),
    "UpdateContributorInsights": (
        {"TableName": "tab", "ContributorInsightsAction": "ENABLE"},
        {"TableName": "tab", "IndexName": "g-all", "ContributorInsightsAction": "DISABLE"},
    ),
    "DescribeContributorInsights": ({"TableName": "tab", "IndexName": "g-all"},),
    "ListContributorInsights": ({"TableName": "tab", "MaxResults": 1},),
}
"""Valid requests of the actions on tables and their settings."""

OF_STREAMS: Final[dict[str, tuple[Request, ...]]] = {
    "ListStreams": ({"TableName": "tab", "Limit": 1},),
    "DescribeStream": (
        {"StreamArn": "STREAM_ARN", "Limit": 1},
        {
            "StreamArn": "STREAM_ARN",
            "ShardFilter": {"Type": "CHILD_SHARDS", "ShardId": "SHARD_ID"},
        },
    ),
    "GetShardIterator": (
        BASES["GetShardIterator"],
        {
            **BASES["GetShardIterator"],
            "ShardIteratorType": "AT_SEQUENCE_NUMBER",
            "SequenceNumber": "SEQUENCE",
        },
    ),
    "GetRecords": ({"ShardIterator": "ITERATOR", "Limit": 1},),
}
"""Valid requests of the actions on streams."""

OF_COPIES: Final[dict[str, tuple[Request, ...]]] = {
    "CreateBackup": ({"TableName": "tab", "BackupName": "kept"},),
    "DescribeBackup": ({"BackupArn": "BACKUP_ARN"},),
    "ListBackups": ({"TableName": "tab", "Limit": 1, "BackupType": "ALL"},),
    "DeleteBackup": ({"BackupArn": "BACKUP_ARN"},),
    "RestoreTableFromBackup": (
        {"TargetTableName": "new", "BackupArn": "BACKUP_ARN"},
        {
            "TargetTableName": "new",
            "BackupArn": "BACKUP_ARN",
            "BillingModeOverride": "PROVISIONED",
            "ProvisionedThroughputOverride": _UNITS,
            "GlobalSecondaryIndexOverride": [],
        },
    ),
    "UpdateContinuousBackups": (
        {
            "TableName": "tab",
            "PointInTimeRecoverySpecification": {
                "PointInTimeRecoveryEnabled": True,
                "RecoveryPeriodInDays": 3,
            },
        },
    ),
    "DescribeContinuousBackups": ({"TableName": "tab"},),
    "RestoreTableToPointInTime": (
        {
            "SourceTableName": "tab",
            "TargetTableName": "new",
            "UseLatestRestorableTime": True,
        },
        {
            "SourceTableArn": "TABLE_ARN",
            "TargetTableName": "new",
            "UseLatestRestorableTime": True,
            "GlobalSecondaryIndexOverride": [index("g-keys", "g", "KEYS_ONLY")],
        },
    ),
    "ExportTableToPointInTime": (
        {"TableArn": "TABLE_ARN", "S3Bucket": "bucket", "ExportFormat": "ION"},
        {
            "TableArn": "TABLE_ARN",
            "S3Bucket": "bucket",
            "S3SseAlgorithm": "KMS",
            "S3SseKmsKeyId": "key",
            "FilterSpecification": {"ProjectionExpression": "p"},
        },
    ),
    "DescribeExport": ({"ExportArn": "EXPORT_ARN"},),
    "ListExports": ({"TableArn": "TABLE_ARN", "MaxResults": 1},),
    "ImportTable": (
        {
            "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in"},
            "InputFormat": "CSV",
            "InputFormatOptions": {"Csv": {"Delimiter": ","}},
            "TableCreationParameters": _NEW,
        },
    ),
    "DescribeImport": ({"ImportArn": "IMPORT_ARN"},),
    "ListImports": ({"TableArn": "TABLE_ARN", "PageSize": 1},),
    "StartBulkPutItems": (
        {
            "TableName": "tab",
            "InputS3Configuration": _FROM,
            "OutputS3Configuration": {"S3Bucket": "bucket", "OutputType": ["ERROR"]},
        },
    ),
    "DescribeBulkOperation": ({"BulkOperationArn": "BULK_ARN"},),
    "ListBulkOperations": ({"MaxResults": 1},),
    "CancelBulkOperation": ({"BulkOperationArn": "BULK_ARN"},),
}
"""Valid requests of the actions on backups, exports, imports and bulk operations."""

OF_REGIONS: Final[dict[str, tuple[Request, ...]]] = {
    "CreateGlobalTable": (
        {
            "GlobalTableName": "free",
            "ReplicationGroup": [{"RegionName": "us-east-1"}, {"RegionName": "eu-west-1"}],
        },
    ),
    "UpdateGlobalTable": (
        {
            "GlobalTableName": "glob",
            "ReplicaUpdates": [{"Delete": {"RegionName": "eu-west-1"}}],
        },
    ),
    "DescribeGlobalTable": ({"GlobalTableName": "glob"},),
    "ListGlobalTables": ({"Limit": 1, "RegionName": "us-east-1"},),
    "DescribeGlobalTableSettings": ({"GlobalTableName": "glob"},),
    "UpdateGlobalTableSettings": (
        {
            "GlobalTableName": "glob",
            "ReplicaSettingsUpdate": [{"RegionName": "eu-west-1", "ReplicaTableClass": "STANDARD"}],
        },
    ),
    "DescribeTableReplicaAutoScaling": ({"TableName": "tab"},),
    "UpdateTableReplicaAutoScaling": (
        {
            "TableName": "prov",
            "ProvisionedWriteCapacityAutoScalingUpdate": _SCALING,
            "GlobalSecondaryIndexUpdates": [
                {"IndexName": "g-all", "ProvisionedWriteCapacityAutoScalingUpdate": _SCALING}
            ],
        },
    ),
}
"""Valid requests of the actions on global tables and scaling."""

BASES_OF: Final[dict[str, tuple[Request, ...]]] = {
    **OF_ITEMS,
    **OF_TABLES,
    **OF_STREAMS,
    **OF_COPIES,
    **OF_REGIONS,
}
"""Valid requests of every action."""
