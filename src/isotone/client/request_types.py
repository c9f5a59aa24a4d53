"""The parameters of each action, as boto3's low-level clients take them: made of `operations`, by `make files`.

An editor completes keyword arguments from an `…Input`. `parameters` compiles it into a check that runs in C, and walks it
to report errors with botocore's messages. Names, order and lower bounds of the members are the service's own.
"""
# fmt: off

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict, TypeVar

from msgspec import Meta

T = TypeVar("T")

NonEmpty = Annotated[Sequence[T], Meta(min_length=1)]
Int0 = Annotated[int, Meta(ge=0)]
Int1 = Annotated[int, Meta(ge=1)]
Int1024 = Annotated[int, Meta(ge=1024)]
Text1 = Annotated[str, Meta(min_length=1)]
Text3 = Annotated[str, Meta(min_length=3)]
Text21 = Annotated[str, Meta(min_length=21)]
Text28 = Annotated[str, Meta(min_length=28)]
Text37 = Annotated[str, Meta(min_length=37)]
Text112 = Annotated[str, Meta(min_length=112)]

class AttributeValue(TypedDict, total=False):
    S: str
    N: str
    B: bytes
    SS: Sequence[str]
    NS: Sequence[str]
    BS: Sequence[bytes]
    M: Mapping[str, Any]
    L: Sequence[Any]
    NULL: bool
    BOOL: bool

if TYPE_CHECKING:  # a dict made before the call has no more exact type
    AttributeMap = Mapping[str, AttributeValue | Mapping[str, Any]]
else:
    AttributeMap = Mapping[str, AttributeValue]

# Of operations/account.py

class DescribeEndpointsInput(TypedDict, total=False):
    pass

class DescribeLimitsInput(TypedDict, total=False):
    pass

# Of operations/backups.py

class CreateBackupInput(TypedDict, total=False):
    TableName: Required[Text1]
    BackupName: Required[Text3]

class DeleteBackupInput(TypedDict, total=False):
    BackupArn: Required[Text37]

class DescribeBackupInput(TypedDict, total=False):
    BackupArn: Required[Text37]

class KeySchemaElement(TypedDict, total=False):
    AttributeName: Required[Text1]
    KeyType: Required[str]

class Projection(TypedDict, total=False):
    ProjectionType: str
    NonKeyAttributes: NonEmpty[Text1]

class ProvisionedThroughput(TypedDict, total=False):
    ReadCapacityUnits: Required[Int1]
    WriteCapacityUnits: Required[Int1]

class OnDemandThroughput(TypedDict, total=False):
    MaxReadRequestUnits: int
    MaxWriteRequestUnits: int

class WarmThroughput(TypedDict, total=False):
    ReadUnitsPerSecond: int
    WriteUnitsPerSecond: int

class GlobalSecondaryIndex(TypedDict, total=False):
    IndexName: Required[Text3]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    Projection: Required[Projection]
    ProvisionedThroughput: ProvisionedThroughput
    OnDemandThroughput: OnDemandThroughput
    WarmThroughput: WarmThroughput

class LocalSecondaryIndex(TypedDict, total=False):
    IndexName: Required[Text3]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    Projection: Required[Projection]

class SSESpecification(TypedDict, total=False):
    Enabled: bool
    SSEType: str
    KMSMasterKeyId: str

class VectorAttributeDefinition(TypedDict, total=False):
    AttributeName: Required[Text1]

class SearchSchemaElement(TypedDict, total=False):
    AttributeName: Required[str]
    SearchSchemaElementType: Required[str]

class VectorIndex(TypedDict, total=False):
    IndexName: Required[Text3]
    VectorAttribute: Required[VectorAttributeDefinition]
    SearchSchema: NonEmpty[SearchSchemaElement]
    Projection: Required[Projection]
    Dimensions: Required[Int1]
    DistanceFunction: Required[str]

class RestoreTableFromBackupInput(TypedDict, total=False):
    TargetTableName: Required[Text3]
    BackupArn: Required[Text37]
    BillingModeOverride: str
    GlobalSecondaryIndexOverride: Sequence[GlobalSecondaryIndex]
    LocalSecondaryIndexOverride: Sequence[LocalSecondaryIndex]
    ProvisionedThroughputOverride: ProvisionedThroughput
    OnDemandThroughputOverride: OnDemandThroughput
    SSESpecificationOverride: SSESpecification
    VectorIndexOverride: Sequence[VectorIndex]

class ListBackupsInput(TypedDict, total=False):
    TableName: Text1
    Limit: Int1
    TimeRangeLowerBound: datetime
    TimeRangeUpperBound: datetime
    ExclusiveStartBackupArn: Text37
    BackupType: str

# Of operations/batches.py

class KeysAndAttributes(TypedDict, total=False):
    Keys: Required[NonEmpty[AttributeMap]]
    AttributesToGet: NonEmpty[str]
    ConsistentRead: bool
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]

class BatchGetItemInput(TypedDict, total=False):
    RequestItems: Required[Mapping[Text1, KeysAndAttributes]]
    ReturnConsumedCapacity: str

class PutRequest(TypedDict, total=False):
    Item: Required[AttributeMap]

class DeleteRequest(TypedDict, total=False):
    Key: Required[AttributeMap]

class WriteRequest(TypedDict, total=False):
    PutRequest: PutRequest
    DeleteRequest: DeleteRequest

class BatchWriteItemInput(TypedDict, total=False):
    RequestItems: Required[Mapping[Text1, NonEmpty[WriteRequest]]]
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str

# Of operations/bulk_puts.py

class CancelBulkOperationInput(TypedDict, total=False):
    BulkOperationArn: Required[Text37]

class DescribeBulkOperationInput(TypedDict, total=False):
    BulkOperationArn: Required[Text37]

class ListBulkOperationsInput(TypedDict, total=False):
    MaxResults: Int1
    NextToken: Text1

class InputS3Configuration(TypedDict, total=False):
    S3BucketOwner: str
    S3Bucket: Required[str]
    S3KeyPrefix: str
    InputFormat: Required[str]
    InputCompressionType: str

class OutputS3Configuration(TypedDict, total=False):
    S3BucketOwner: str
    S3Bucket: str
    S3KeyPrefix: str
    S3SseAlgorithm: str
    S3SseKmsKeyId: Text1
    OutputType: Required[Sequence[str]]

class StartBulkPutItemsInput(TypedDict, total=False):
    ClientToken: str
    InputS3Configuration: Required[InputS3Configuration]
    OutputS3Configuration: Required[OutputS3Configuration]
    TableName: Required[Text1]
    MaxWriteRequestUnits: Int1024
    PerformanceTier: str

# Of operations/contributor_insights.py

class DescribeContributorInsightsInput(TypedDict, total=False):
    TableName: Required[Text1]
    IndexName: Text3

class ListContributorInsightsInput(TypedDict, total=False):
    TableName: Text1
    NextToken: str
    MaxResults: int

class UpdateContributorInsightsInput(TypedDict, total=False):
    TableName: Required[Text1]
    IndexName: Text3
    ContributorInsightsAction: Required[str]
    ContributorInsightsMode: str

# Of operations/expiry.py

class DescribeTimeToLiveInput(TypedDict, total=False):
    TableName: Required[Text1]

class TimeToLiveSpecification(TypedDict, total=False):
    Enabled: Required[bool]
    AttributeName: Required[Text1]

class UpdateTimeToLiveInput(TypedDict, total=False):
    TableName: Required[Text1]
    TimeToLiveSpecification: Required[TimeToLiveSpecification]

# Of operations/exports.py

class DescribeExportInput(TypedDict, total=False):
    ExportArn: Required[Text37]

class IncrementalExportSpecification(TypedDict, total=False):
    ExportFromTime: datetime
    ExportToTime: datetime
    ExportViewType: str

class FilterSpecification(TypedDict, total=False):
    FilterExpression: str
    ProjectionExpression: str
    KeyConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap

class ExportTableToPointInTimeInput(TypedDict, total=False):
    TableArn: Required[Text1]
    ExportTime: datetime
    ClientToken: str
    S3Bucket: Required[str]
    S3BucketOwner: str
    S3Prefix: str
    S3SseAlgorithm: str
    S3SseKmsKeyId: Text1
    ExportFormat: str
    ExportType: str
    IncrementalExportSpecification: IncrementalExportSpecification
    FilterSpecification: FilterSpecification

class ListExportsInput(TypedDict, total=False):
    TableArn: Text1
    MaxResults: Int1
    NextToken: str

# Of operations/global_tables.py

class Replica(TypedDict, total=False):
    RegionName: str

class CreateGlobalTableInput(TypedDict, total=False):
    GlobalTableName: Required[Text3]
    ReplicationGroup: Required[Sequence[Replica]]

class DescribeGlobalTableInput(TypedDict, total=False):
    GlobalTableName: Required[Text3]

class RegionAction(TypedDict, total=False):
    RegionName: Required[str]

class ReplicaUpdate(TypedDict, total=False):
    Create: RegionAction
    Delete: RegionAction

class UpdateGlobalTableInput(TypedDict, total=False):
    GlobalTableName: Required[Text3]
    ReplicaUpdates: Required[Sequence[ReplicaUpdate]]

class ListGlobalTablesInput(TypedDict, total=False):
    ExclusiveStartGlobalTableName: Text3
    Limit: Int1
    RegionName: str

# Of operations/imports.py

class DescribeImportInput(TypedDict, total=False):
    ImportArn: Required[Text37]

class S3BucketSource(TypedDict, total=False):
    S3BucketOwner: str
    S3Bucket: Required[str]
    S3KeyPrefix: str

class CsvOptions(TypedDict, total=False):
    Delimiter: Text1
    HeaderList: NonEmpty[Text1]

class InputFormatOptions(TypedDict, total=False):
    Csv: CsvOptions

class AttributeDefinition(TypedDict, total=False):
    AttributeName: Required[Text1]
    AttributeType: Required[str]

class TableCreationParameters(TypedDict, total=False):
    TableName: Required[Text3]
    AttributeDefinitions: Required[Sequence[AttributeDefinition]]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    BillingMode: str
    ProvisionedThroughput: ProvisionedThroughput
    OnDemandThroughput: OnDemandThroughput
    SSESpecification: SSESpecification
    GlobalSecondaryIndexes: Sequence[GlobalSecondaryIndex]
    VectorIndexes: Sequence[VectorIndex]

class ImportTableInput(TypedDict, total=False):
    ClientToken: str
    S3BucketSource: Required[S3BucketSource]
    InputFormat: Required[str]
    InputFormatOptions: InputFormatOptions
    InputCompressionType: str
    TableCreationParameters: Required[TableCreationParameters]

class ListImportsInput(TypedDict, total=False):
    TableArn: Text1
    PageSize: Int1
    NextToken: Text112

# Of operations/item_requests.py

class ExpectedAttributeValue(TypedDict, total=False):
    Value: AttributeValue
    Exists: bool
    ComparisonOperator: str
    AttributeValueList: Sequence[AttributeValue]

class DeleteItemInput(TypedDict, total=False):
    TableName: Required[Text1]
    Key: Required[AttributeMap]
    Expected: Mapping[str, ExpectedAttributeValue]
    ConditionalOperator: str
    ReturnValues: str
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str

class GetItemInput(TypedDict, total=False):
    TableName: Required[Text1]
    Key: Required[AttributeMap]
    AttributesToGet: NonEmpty[str]
    ConsistentRead: bool
    ReturnConsumedCapacity: str
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]

class PutItemInput(TypedDict, total=False):
    TableName: Required[Text1]
    Item: Required[AttributeMap]
    Expected: Mapping[str, ExpectedAttributeValue]
    ReturnValues: str
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    ConditionalOperator: str
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str

class AttributeValueUpdate(TypedDict, total=False):
    Value: AttributeValue
    Action: str

class UpdateItemInput(TypedDict, total=False):
    TableName: Required[Text1]
    Key: Required[AttributeMap]
    AttributeUpdates: Mapping[str, AttributeValueUpdate]
    Expected: Mapping[str, ExpectedAttributeValue]
    ConditionalOperator: str
    ReturnValues: str
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    UpdateExpression: str
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str

# Of operations/kinesis_destinations.py

class DescribeKinesisStreamingDestinationInput(TypedDict, total=False):
    TableName: Required[Text1]

class EnableKinesisStreamingConfiguration(TypedDict, total=False):
    ApproximateCreationDateTimePrecision: str

class DisableKinesisStreamingDestinationInput(TypedDict, total=False):
    TableName: Required[Text1]
    StreamArn: Required[Text37]
    EnableKinesisStreamingConfiguration: EnableKinesisStreamingConfiguration

class EnableKinesisStreamingDestinationInput(TypedDict, total=False):
    TableName: Required[Text1]
    StreamArn: Required[Text37]
    EnableKinesisStreamingConfiguration: EnableKinesisStreamingConfiguration

class UpdateKinesisStreamingConfiguration(TypedDict, total=False):
    ApproximateCreationDateTimePrecision: str

class UpdateKinesisStreamingDestinationInput(TypedDict, total=False):
    TableName: Required[Text1]
    StreamArn: Required[Text37]
    UpdateKinesisStreamingConfiguration: UpdateKinesisStreamingConfiguration

# Of operations/query_and_scan.py

class Condition(TypedDict, total=False):
    AttributeValueList: Sequence[AttributeValue]
    ComparisonOperator: Required[str]

class QueryInput(TypedDict, total=False):
    TableName: Required[Text1]
    IndexName: Text3
    Select: str
    AttributesToGet: NonEmpty[str]
    Limit: Int1
    ConsistentRead: bool
    KeyConditions: Mapping[str, Condition]
    QueryFilter: Mapping[str, Condition]
    ConditionalOperator: str
    ScanIndexForward: bool
    ExclusiveStartKey: AttributeMap
    ReturnConsumedCapacity: str
    ProjectionExpression: str
    FilterExpression: str
    KeyConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap

class ScanInput(TypedDict, total=False):
    TableName: Required[Text1]
    IndexName: Text3
    AttributesToGet: NonEmpty[str]
    Limit: Int1
    Select: str
    ScanFilter: Mapping[str, Condition]
    ConditionalOperator: str
    ExclusiveStartKey: AttributeMap
    ReturnConsumedCapacity: str
    TotalSegments: Int1
    Segment: Int0
    ProjectionExpression: str
    FilterExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ConsistentRead: bool

# Of operations/recovery.py

class DescribeContinuousBackupsInput(TypedDict, total=False):
    TableName: Required[Text1]

class RestoreTableToPointInTimeInput(TypedDict, total=False):
    SourceTableArn: Text1
    SourceTableName: Text3
    TargetTableName: Required[Text3]
    UseLatestRestorableTime: bool
    RestoreDateTime: datetime
    BillingModeOverride: str
    GlobalSecondaryIndexOverride: Sequence[GlobalSecondaryIndex]
    LocalSecondaryIndexOverride: Sequence[LocalSecondaryIndex]
    ProvisionedThroughputOverride: ProvisionedThroughput
    OnDemandThroughputOverride: OnDemandThroughput
    SSESpecificationOverride: SSESpecification
    VectorIndexOverride: Sequence[VectorIndex]

class PointInTimeRecoverySpecification(TypedDict, total=False):
    PointInTimeRecoveryEnabled: Required[bool]
    RecoveryPeriodInDays: Int1

class UpdateContinuousBackupsInput(TypedDict, total=False):
    TableName: Required[Text1]
    PointInTimeRecoverySpecification: Required[PointInTimeRecoverySpecification]

# Of operations/replica_settings.py

class DescribeGlobalTableSettingsInput(TypedDict, total=False):
    GlobalTableName: Required[Text3]

class DescribeTableReplicaAutoScalingInput(TypedDict, total=False):
    TableName: Required[Text1]

class AutoScalingTargetTrackingScalingPolicyConfigurationUpdate(TypedDict, total=False):
    DisableScaleIn: bool
    ScaleInCooldown: int
    ScaleOutCooldown: int
    TargetValue: Required[float]

class AutoScalingPolicyUpdate(TypedDict, total=False):
    PolicyName: Text1
    TargetTrackingScalingPolicyConfiguration: Required[AutoScalingTargetTrackingScalingPolicyConfigurationUpdate]

class AutoScalingSettingsUpdate(TypedDict, total=False):
    MinimumUnits: Int1
    MaximumUnits: Int1
    AutoScalingDisabled: bool
    AutoScalingRoleArn: Text1
    ScalingPolicyUpdate: AutoScalingPolicyUpdate

class GlobalTableGlobalSecondaryIndexSettingsUpdate(TypedDict, total=False):
    IndexName: Required[Text3]
    ProvisionedWriteCapacityUnits: Int1
    ProvisionedWriteCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdate

class ReplicaGlobalSecondaryIndexSettingsUpdate(TypedDict, total=False):
    IndexName: Required[Text3]
    ProvisionedReadCapacityUnits: Int1
    ProvisionedReadCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdate

class ReplicaSettingsUpdate(TypedDict, total=False):
    RegionName: Required[str]
    ReplicaProvisionedReadCapacityUnits: Int1
    ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdate
    ReplicaGlobalSecondaryIndexSettingsUpdate: NonEmpty[ReplicaGlobalSecondaryIndexSettingsUpdate]
    ReplicaTableClass: str

class UpdateGlobalTableSettingsInput(TypedDict, total=False):
    GlobalTableName: Required[Text3]
    GlobalTableBillingMode: str
    GlobalTableProvisionedWriteCapacityUnits: Int1
    GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdate
    GlobalTableGlobalSecondaryIndexSettingsUpdate: NonEmpty[GlobalTableGlobalSecondaryIndexSettingsUpdate]
    ReplicaSettingsUpdate: NonEmpty[ReplicaSettingsUpdate]

class GlobalSecondaryIndexAutoScalingUpdate(TypedDict, total=False):
    IndexName: Text3
    ProvisionedWriteCapacityAutoScalingUpdate: AutoScalingSettingsUpdate

class ReplicaGlobalSecondaryIndexAutoScalingUpdate(TypedDict, total=False):
    IndexName: Text3
    ProvisionedReadCapacityAutoScalingUpdate: AutoScalingSettingsUpdate

class ReplicaAutoScalingUpdate(TypedDict, total=False):
    RegionName: Required[str]
    ReplicaGlobalSecondaryIndexUpdates: Sequence[ReplicaGlobalSecondaryIndexAutoScalingUpdate]
    ReplicaProvisionedReadCapacityAutoScalingUpdate: AutoScalingSettingsUpdate

class UpdateTableReplicaAutoScalingInput(TypedDict, total=False):
    GlobalSecondaryIndexUpdates: NonEmpty[GlobalSecondaryIndexAutoScalingUpdate]
    TableName: Required[Text1]
    ProvisionedWriteCapacityAutoScalingUpdate: AutoScalingSettingsUpdate
    ReplicaUpdates: NonEmpty[ReplicaAutoScalingUpdate]

# Of operations/resource_policies.py

class DeleteResourcePolicyInput(TypedDict, total=False):
    ResourceArn: Required[Text1]
    ExpectedRevisionId: Text1

class GetResourcePolicyInput(TypedDict, total=False):
    ResourceArn: Required[Text1]

class PutResourcePolicyInput(TypedDict, total=False):
    ResourceArn: Required[Text1]
    Policy: Required[str]
    ExpectedRevisionId: Text1
    ConfirmRemoveSelfResourceAccess: bool

# Of operations/statements.py

class BatchStatementRequest(TypedDict, total=False):
    Statement: Required[Text1]
    Parameters: NonEmpty[AttributeValue]
    ConsistentRead: bool
    ReturnValuesOnConditionCheckFailure: str

class BatchExecuteStatementInput(TypedDict, total=False):
    Statements: Required[NonEmpty[BatchStatementRequest]]
    ReturnConsumedCapacity: str

class ExecuteStatementInput(TypedDict, total=False):
    Statement: Required[Text1]
    Parameters: NonEmpty[AttributeValue]
    ConsistentRead: bool
    NextToken: Text1
    ReturnConsumedCapacity: str
    Limit: Int1
    ReturnValuesOnConditionCheckFailure: str

class ParameterizedStatement(TypedDict, total=False):
    Statement: Required[Text1]
    Parameters: NonEmpty[AttributeValue]
    ReturnValuesOnConditionCheckFailure: str

class ExecuteTransactionInput(TypedDict, total=False):
    TransactStatements: Required[NonEmpty[ParameterizedStatement]]
    ClientRequestToken: Text1
    ReturnConsumedCapacity: str

# Of operations/streams.py

class ShardFilter(TypedDict, total=False):
    Type: str
    ShardId: Text28

class DescribeStreamInput(TypedDict, total=False):
    StreamArn: Required[Text37]
    Limit: Int1
    ExclusiveStartShardId: Text28
    ShardFilter: ShardFilter

class GetRecordsInput(TypedDict, total=False):
    ShardIterator: Required[Text1]
    Limit: Int1

class ListStreamsInput(TypedDict, total=False):
    TableName: Text3
    Limit: Int1
    ExclusiveStartStreamArn: Text37

class GetShardIteratorInput(TypedDict, total=False):
    StreamArn: Required[Text37]
    ShardId: Required[Text28]
    ShardIteratorType: Required[str]
    SequenceNumber: Text21
    Timestamp: datetime

# Of operations/table_names.py

class ListTablesInput(TypedDict, total=False):
    ExclusiveStartTableName: Text3
    Limit: Int1

# Of operations/table_requests.py

class StreamSpecification(TypedDict, total=False):
    StreamEnabled: Required[bool]
    StreamViewType: str

class Tag(TypedDict, total=False):
    Key: Required[Text1]
    Value: Required[str]

class CreateTableInput(TypedDict, total=False):
    AttributeDefinitions: Required[Sequence[AttributeDefinition]]
    TableName: Required[Text1]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    LocalSecondaryIndexes: Sequence[LocalSecondaryIndex]
    GlobalSecondaryIndexes: Sequence[GlobalSecondaryIndex]
    BillingMode: str
    ProvisionedThroughput: ProvisionedThroughput
    StreamSpecification: StreamSpecification
    SSESpecification: SSESpecification
    Tags: Sequence[Tag]
    TableClass: str
    DeletionProtectionEnabled: bool
    WarmThroughput: WarmThroughput
    ResourcePolicy: str
    OnDemandThroughput: OnDemandThroughput
    VectorIndexes: Sequence[VectorIndex]

class DeleteTableInput(TypedDict, total=False):
    TableName: Required[Text1]

class DescribeTableInput(TypedDict, total=False):
    TableName: Required[Text1]

class UpdateGlobalSecondaryIndexAction(TypedDict, total=False):
    IndexName: Required[Text3]
    ProvisionedThroughput: ProvisionedThroughput
    OnDemandThroughput: OnDemandThroughput
    WarmThroughput: WarmThroughput

class CreateGlobalSecondaryIndexAction(TypedDict, total=False):
    IndexName: Required[Text3]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    Projection: Required[Projection]
    ProvisionedThroughput: ProvisionedThroughput
    OnDemandThroughput: OnDemandThroughput
    WarmThroughput: WarmThroughput

class DeleteGlobalSecondaryIndexAction(TypedDict, total=False):
    IndexName: Required[Text3]

class GlobalSecondaryIndexUpdate(TypedDict, total=False):
    Update: UpdateGlobalSecondaryIndexAction
    Create: CreateGlobalSecondaryIndexAction
    Delete: DeleteGlobalSecondaryIndexAction

class ProvisionedThroughputOverride(TypedDict, total=False):
    ReadCapacityUnits: Int1

class OnDemandThroughputOverride(TypedDict, total=False):
    MaxReadRequestUnits: int

class ReplicaGlobalSecondaryIndex(TypedDict, total=False):
    IndexName: Required[Text3]
    ProvisionedThroughputOverride: ProvisionedThroughputOverride
    OnDemandThroughputOverride: OnDemandThroughputOverride

class CreateReplicationGroupMemberAction(TypedDict, total=False):
    RegionName: Required[str]
    KMSMasterKeyId: str
    ProvisionedThroughputOverride: ProvisionedThroughputOverride
    OnDemandThroughputOverride: OnDemandThroughputOverride
    GlobalSecondaryIndexes: NonEmpty[ReplicaGlobalSecondaryIndex]
    TableClassOverride: str

class UpdateReplicationGroupMemberAction(TypedDict, total=False):
    RegionName: Required[str]
    KMSMasterKeyId: str
    ProvisionedThroughputOverride: ProvisionedThroughputOverride
    OnDemandThroughputOverride: OnDemandThroughputOverride
    GlobalSecondaryIndexes: NonEmpty[ReplicaGlobalSecondaryIndex]
    TableClassOverride: str

class Disassociation(TypedDict, total=False):
    RegionName: Required[str]
    DisassociationMode: Required[str]

class ReplicationGroupUpdate(TypedDict, total=False):
    Create: CreateReplicationGroupMemberAction
    Update: UpdateReplicationGroupMemberAction
    Delete: RegionAction
    Disassociate: Disassociation

class GlobalTableWitnessGroupUpdate(TypedDict, total=False):
    Create: RegionAction
    Delete: RegionAction

class DeleteVectorIndexAction(TypedDict, total=False):
    IndexName: Required[Text3]

class VectorIndexUpdate(TypedDict, total=False):
    Create: VectorIndex
    Delete: DeleteVectorIndexAction

class UpdateTableInput(TypedDict, total=False):
    AttributeDefinitions: Sequence[AttributeDefinition]
    TableName: Required[Text1]
    BillingMode: str
    ProvisionedThroughput: ProvisionedThroughput
    GlobalSecondaryIndexUpdates: Sequence[GlobalSecondaryIndexUpdate]
    StreamSpecification: StreamSpecification
    SSESpecification: SSESpecification
    ReplicaUpdates: NonEmpty[ReplicationGroupUpdate]
    TableClass: str
    DeletionProtectionEnabled: bool
    MultiRegionConsistency: str
    GlobalTableWitnessUpdates: NonEmpty[GlobalTableWitnessGroupUpdate]
    OnDemandThroughput: OnDemandThroughput
    WarmThroughput: WarmThroughput
    VectorIndexUpdates: Sequence[VectorIndexUpdate]

# Of operations/tags.py

class ListTagsOfResourceInput(TypedDict, total=False):
    ResourceArn: Required[Text1]
    NextToken: str

class TagResourceInput(TypedDict, total=False):
    ResourceArn: Required[Text1]
    Tags: Required[Sequence[Tag]]

class UntagResourceInput(TypedDict, total=False):
    ResourceArn: Required[Text1]
    TagKeys: Required[Sequence[Text1]]

# Of operations/transactions.py

class Get(TypedDict, total=False):
    Key: Required[AttributeMap]
    TableName: Required[Text1]
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]

class TransactGetItem(TypedDict, total=False):
    Get: Required[Get]

class TransactGetItemsInput(TypedDict, total=False):
    TransactItems: Required[NonEmpty[TransactGetItem]]
    ReturnConsumedCapacity: str

class ConditionCheck(TypedDict, total=False):
    Key: Required[AttributeMap]
    TableName: Required[Text1]
    ConditionExpression: Required[str]
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str

class Put(TypedDict, total=False):
    Item: Required[AttributeMap]
    TableName: Required[Text1]
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str

class Delete(TypedDict, total=False):
    Key: Required[AttributeMap]
    TableName: Required[Text1]
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str

class Update(TypedDict, total=False):
    Key: Required[AttributeMap]
    UpdateExpression: Required[str]
    TableName: Required[Text1]
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str

class TransactWriteItem(TypedDict, total=False):
    ConditionCheck: ConditionCheck
    Put: Put
    Delete: Delete
    Update: Update

class TransactWriteItemsInput(TypedDict, total=False):
    TransactItems: Required[NonEmpty[TransactWriteItem]]
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    ClientRequestToken: Text1

# Of operations/vector_search.py

class SearchVectorsInput(TypedDict, total=False):
    TableName: Required[Text1]
    IndexName: Required[Text3]
    ReturnConsumedCapacity: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ProjectionExpression: str
    SearchVector: Required[NonEmpty[AttributeValue]]
    SearchConditionExpression: str
    TopK: Required[Int1]
