"""The parameters of each action, as boto3's low-level clients take them.

Each `…Input` is declared once and used three times: an editor completes keyword arguments from it, and
`parameters` compiles it into a check that runs in C, and walks it to report errors with botocore's
messages. Names, order and bounds of the members are the service's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict, TypeVar

from msgspec import Meta

T = TypeVar("T")

Name = Annotated[str, Meta(min_length=1)]
IndexName = Annotated[str, Meta(min_length=3)]
TableName = Annotated[str, Meta(min_length=3)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
NonEmpty = Annotated[Sequence[T], Meta(min_length=1)]


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


# Items


class GetItemInput(TypedDict, total=False):
    TableName: Required[Name]
    Key: Required[AttributeMap]
    AttributesToGet: NonEmpty[str]
    ConsistentRead: bool
    ReturnConsumedCapacity: str
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]


class ExpectedAttributeValue(TypedDict, total=False):
    Value: AttributeValue
    Exists: bool
    ComparisonOperator: str
    AttributeValueList: Sequence[AttributeValue]


class PutItemInput(TypedDict, total=False):
    TableName: Required[Name]
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
    TableName: Required[Name]
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


class DeleteItemInput(TypedDict, total=False):
    TableName: Required[Name]
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


class Condition(TypedDict, total=False):
    AttributeValueList: Sequence[AttributeValue]
    ComparisonOperator: Required[str]


class QueryInput(TypedDict, total=False):
    TableName: Required[Name]
    IndexName: IndexName
    Select: str
    AttributesToGet: NonEmpty[str]
    Limit: Positive
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
    TableName: Required[Name]
    IndexName: IndexName
    AttributesToGet: NonEmpty[str]
    Limit: Positive
    Select: str
    ScanFilter: Mapping[str, Condition]
    ConditionalOperator: str
    ExclusiveStartKey: AttributeMap
    ReturnConsumedCapacity: str
    TotalSegments: Positive
    Segment: Natural
    ProjectionExpression: str
    FilterExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ConsistentRead: bool


class KeysAndAttributes(TypedDict, total=False):
    Keys: Required[NonEmpty[AttributeMap]]
    AttributesToGet: NonEmpty[str]
    ConsistentRead: bool
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]


class BatchGetItemInput(TypedDict, total=False):
    RequestItems: Required[Mapping[str, KeysAndAttributes]]
    ReturnConsumedCapacity: str


class PutRequestShape(TypedDict, total=False):
    Item: Required[AttributeMap]


class DeleteRequestShape(TypedDict, total=False):
    Key: Required[AttributeMap]


class WriteRequest(TypedDict, total=False):
    PutRequest: PutRequestShape
    DeleteRequest: DeleteRequestShape


class BatchWriteItemInput(TypedDict, total=False):
    RequestItems: Required[Mapping[str, NonEmpty[WriteRequest]]]
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str


class GetShape(TypedDict, total=False):
    Key: Required[AttributeMap]
    TableName: Required[Name]
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]


class TransactGetItem(TypedDict, total=False):
    Get: Required[GetShape]


class TransactGetItemsInput(TypedDict, total=False):
    TransactItems: Required[NonEmpty[TransactGetItem]]
    ReturnConsumedCapacity: str


class ConditionCheckShape(TypedDict, total=False):
    Key: Required[AttributeMap]
    TableName: Required[Name]
    ConditionExpression: Required[str]
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class PutShape(TypedDict, total=False):
    Item: Required[AttributeMap]
    TableName: Required[Name]
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class DeleteShape(TypedDict, total=False):
    Key: Required[AttributeMap]
    TableName: Required[Name]
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class UpdateShape(TypedDict, total=False):
    Key: Required[AttributeMap]
    UpdateExpression: Required[str]
    TableName: Required[Name]
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class TransactWriteItem(TypedDict, total=False):
    ConditionCheck: ConditionCheckShape
    Put: PutShape
    Delete: DeleteShape
    Update: UpdateShape


class TransactWriteItemsInput(TypedDict, total=False):
    TransactItems: Required[NonEmpty[TransactWriteItem]]
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    ClientRequestToken: Name


class SearchVectorsInput(TypedDict, total=False):
    TableName: Required[Name]
    IndexName: Required[IndexName]
    ReturnConsumedCapacity: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ProjectionExpression: str
    SearchVector: Required[NonEmpty[AttributeValue]]
    SearchConditionExpression: str
    TopK: Required[Positive]


class ExecuteStatementInput(TypedDict, total=False):
    Statement: Required[Name]
    Parameters: NonEmpty[AttributeValue]
    ConsistentRead: bool
    NextToken: Name
    ReturnConsumedCapacity: str
    Limit: Positive
    ReturnValuesOnConditionCheckFailure: str


class BatchStatementRequest(TypedDict, total=False):
    Statement: Required[Name]
    Parameters: NonEmpty[AttributeValue]
    ConsistentRead: bool
    ReturnValuesOnConditionCheckFailure: str


class BatchExecuteStatementInput(TypedDict, total=False):
    Statements: Required[NonEmpty[BatchStatementRequest]]
    ReturnConsumedCapacity: str


class ParameterizedStatement(TypedDict, total=False):
    Statement: Required[Name]
    Parameters: NonEmpty[AttributeValue]
    ReturnValuesOnConditionCheckFailure: str


class ExecuteTransactionInput(TypedDict, total=False):
    TransactStatements: Required[NonEmpty[ParameterizedStatement]]
    ClientRequestToken: Name
    ReturnConsumedCapacity: str


# Tables


class AttributeDefinition(TypedDict, total=False):
    AttributeName: Required[Name]
    AttributeType: Required[str]


class KeySchemaElement(TypedDict, total=False):
    AttributeName: Required[Name]
    KeyType: Required[str]


class ProjectionShape(TypedDict, total=False):
    ProjectionType: str
    NonKeyAttributes: NonEmpty[Name]


class LocalSecondaryIndex(TypedDict, total=False):
    IndexName: Required[IndexName]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    Projection: Required[ProjectionShape]


class ProvisionedThroughputShape(TypedDict, total=False):
    ReadCapacityUnits: Required[Positive]
    WriteCapacityUnits: Required[Positive]


class OnDemandThroughputShape(TypedDict, total=False):
    MaxReadRequestUnits: int
    MaxWriteRequestUnits: int


class WarmThroughputShape(TypedDict, total=False):
    ReadUnitsPerSecond: int
    WriteUnitsPerSecond: int


class GlobalSecondaryIndex(TypedDict, total=False):
    IndexName: Required[IndexName]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    Projection: Required[ProjectionShape]
    ProvisionedThroughput: ProvisionedThroughputShape
    OnDemandThroughput: OnDemandThroughputShape
    WarmThroughput: WarmThroughputShape


class StreamSpecificationShape(TypedDict, total=False):
    StreamEnabled: Required[bool]
    StreamViewType: str


class SSESpecificationShape(TypedDict, total=False):
    Enabled: bool
    SSEType: str
    KMSMasterKeyId: str


class Tag(TypedDict, total=False):
    Key: Required[Name]
    Value: Required[str]


class VectorAttributeDefinition(TypedDict, total=False):
    AttributeName: Required[Name]


class SearchSchemaElement(TypedDict, total=False):
    AttributeName: Required[str]
    SearchSchemaElementType: Required[str]


class VectorIndex(TypedDict, total=False):
    IndexName: Required[IndexName]
    VectorAttribute: Required[VectorAttributeDefinition]
    SearchSchema: NonEmpty[SearchSchemaElement]
    Projection: Required[ProjectionShape]
    Dimensions: Required[Positive]
    DistanceFunction: Required[str]


class DeleteVectorIndexAction(TypedDict, total=False):
    IndexName: Required[IndexName]


class VectorIndexUpdate(TypedDict, total=False):
    Create: VectorIndex
    Delete: DeleteVectorIndexAction


class CreateTableInput(TypedDict, total=False):
    AttributeDefinitions: Required[Sequence[AttributeDefinition]]
    TableName: Required[Name]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    LocalSecondaryIndexes: Sequence[LocalSecondaryIndex]
    GlobalSecondaryIndexes: Sequence[GlobalSecondaryIndex]
    BillingMode: str
    ProvisionedThroughput: ProvisionedThroughputShape
    StreamSpecification: StreamSpecificationShape
    SSESpecification: SSESpecificationShape
    Tags: Sequence[Tag]
    TableClass: str
    DeletionProtectionEnabled: bool
    WarmThroughput: WarmThroughputShape
    ResourcePolicy: str
    OnDemandThroughput: OnDemandThroughputShape
    VectorIndexes: Sequence[VectorIndex]


class UpdateGlobalSecondaryIndexAction(TypedDict, total=False):
    IndexName: Required[IndexName]
    ProvisionedThroughput: ProvisionedThroughputShape
    OnDemandThroughput: OnDemandThroughputShape
    WarmThroughput: WarmThroughputShape


class DeleteGlobalSecondaryIndexAction(TypedDict, total=False):
    IndexName: Required[IndexName]


class GlobalSecondaryIndexUpdate(TypedDict, total=False):
    Update: UpdateGlobalSecondaryIndexAction
    Create: GlobalSecondaryIndex
    Delete: DeleteGlobalSecondaryIndexAction


class ProvisionedThroughputOverrideShape(TypedDict, total=False):
    ReadCapacityUnits: Positive


class OnDemandThroughputOverrideShape(TypedDict, total=False):
    MaxReadRequestUnits: int


class ReplicaIndex(TypedDict, total=False):
    IndexName: Required[IndexName]
    ProvisionedThroughputOverride: ProvisionedThroughputOverrideShape
    OnDemandThroughputOverride: OnDemandThroughputOverrideShape


class ReplicaSettings(TypedDict, total=False):
    RegionName: Required[str]
    KMSMasterKeyId: str
    ProvisionedThroughputOverride: ProvisionedThroughputOverrideShape
    OnDemandThroughputOverride: OnDemandThroughputOverrideShape
    GlobalSecondaryIndexes: NonEmpty[ReplicaIndex]
    TableClassOverride: str


class OfRegion(TypedDict, total=False):
    RegionName: Required[str]


class ReplicaDisassociation(TypedDict, total=False):
    RegionName: Required[str]
    DisassociationMode: Required[str]


class ReplicaUpdate(TypedDict, total=False):
    Create: ReplicaSettings
    Update: ReplicaSettings
    Delete: OfRegion
    Disassociate: ReplicaDisassociation


class WitnessUpdate(TypedDict, total=False):
    Create: OfRegion
    Delete: OfRegion


class UpdateTableInput(TypedDict, total=False):
    AttributeDefinitions: Sequence[AttributeDefinition]
    TableName: Required[Name]
    BillingMode: str
    ProvisionedThroughput: ProvisionedThroughputShape
    GlobalSecondaryIndexUpdates: Sequence[GlobalSecondaryIndexUpdate]
    StreamSpecification: StreamSpecificationShape
    SSESpecification: SSESpecificationShape
    ReplicaUpdates: NonEmpty[ReplicaUpdate]
    TableClass: str
    DeletionProtectionEnabled: bool
    MultiRegionConsistency: str
    GlobalTableWitnessUpdates: NonEmpty[WitnessUpdate]
    OnDemandThroughput: OnDemandThroughputShape
    WarmThroughput: WarmThroughputShape
    VectorIndexUpdates: Sequence[VectorIndexUpdate]


class DescribeTableInput(TypedDict, total=False):
    TableName: Required[Name]


DeleteTableInput = DescribeTableInput
DescribeTimeToLiveInput = DescribeTableInput
DescribeContinuousBackupsInput = DescribeTableInput


class ListTablesInput(TypedDict, total=False):
    ExclusiveStartTableName: TableName
    Limit: Positive


class TimeToLiveSpecificationShape(TypedDict, total=False):
    Enabled: Required[bool]
    AttributeName: Required[Name]


class UpdateTimeToLiveInput(TypedDict, total=False):
    TableName: Required[Name]
    TimeToLiveSpecification: Required[TimeToLiveSpecificationShape]


class TagResourceInput(TypedDict, total=False):
    ResourceArn: Required[Name]
    Tags: Required[Sequence[Tag]]


class UntagResourceInput(TypedDict, total=False):
    ResourceArn: Required[Name]
    TagKeys: Required[Sequence[Name]]


class ListTagsOfResourceInput(TypedDict, total=False):
    ResourceArn: Required[Name]
    NextToken: str


class PointInTimeRecoverySpecificationShape(TypedDict, total=False):
    PointInTimeRecoveryEnabled: Required[bool]
    RecoveryPeriodInDays: Positive


class UpdateContinuousBackupsInput(TypedDict, total=False):
    TableName: Required[Name]
    PointInTimeRecoverySpecification: Required[PointInTimeRecoverySpecificationShape]


# Backups

BackupName = Annotated[str, Meta(min_length=3)]
BackupArn = Annotated[str, Meta(min_length=37)]


class CreateBackupInput(TypedDict, total=False):
    TableName: Required[Name]
    BackupName: Required[BackupName]


class DescribeBackupInput(TypedDict, total=False):
    BackupArn: Required[BackupArn]


DeleteBackupInput = DescribeBackupInput


class ListBackupsInput(TypedDict, total=False):
    TableName: Name
    Limit: Positive
    TimeRangeLowerBound: datetime
    TimeRangeUpperBound: datetime
    ExclusiveStartBackupArn: BackupArn
    BackupType: str


class RestoreTableFromBackupInput(TypedDict, total=False):
    TargetTableName: Required[TableName]
    BackupArn: Required[BackupArn]
    BillingModeOverride: str
    GlobalSecondaryIndexOverride: Sequence[GlobalSecondaryIndex]
    LocalSecondaryIndexOverride: Sequence[LocalSecondaryIndex]
    ProvisionedThroughputOverride: ProvisionedThroughputShape
    OnDemandThroughputOverride: OnDemandThroughputShape
    SSESpecificationOverride: SSESpecificationShape
    VectorIndexOverride: Sequence[VectorIndex]


class RestoreTableToPointInTimeInput(TypedDict, total=False):
    SourceTableArn: Name
    SourceTableName: TableName
    TargetTableName: Required[TableName]
    UseLatestRestorableTime: bool
    RestoreDateTime: datetime
    BillingModeOverride: str
    GlobalSecondaryIndexOverride: Sequence[GlobalSecondaryIndex]
    LocalSecondaryIndexOverride: Sequence[LocalSecondaryIndex]
    ProvisionedThroughputOverride: ProvisionedThroughputShape
    OnDemandThroughputOverride: OnDemandThroughputShape
    SSESpecificationOverride: SSESpecificationShape
    VectorIndexOverride: Sequence[VectorIndex]


class DescribeLimitsInput(TypedDict, total=False):
    pass


class DescribeEndpointsInput(TypedDict, total=False):
    pass


# Resource policies

ResourceArn = Name
Revision = Annotated[str, Meta(min_length=1)]


class PutResourcePolicyInput(TypedDict, total=False):
    ResourceArn: Required[ResourceArn]
    Policy: Required[str]
    ExpectedRevisionId: Revision
    ConfirmRemoveSelfResourceAccess: bool


class GetResourcePolicyInput(TypedDict, total=False):
    ResourceArn: Required[ResourceArn]


class DeleteResourcePolicyInput(TypedDict, total=False):
    ResourceArn: Required[ResourceArn]
    ExpectedRevisionId: Revision


# Kinesis destinations and Contributor Insights

KinesisArn = Annotated[str, Meta(min_length=37)]


class KinesisPrecision(TypedDict, total=False):
    ApproximateCreationDateTimePrecision: str


class EnableKinesisStreamingDestinationInput(TypedDict, total=False):
    TableName: Required[Name]
    StreamArn: Required[KinesisArn]
    EnableKinesisStreamingConfiguration: KinesisPrecision


DisableKinesisStreamingDestinationInput = EnableKinesisStreamingDestinationInput


class UpdateKinesisStreamingDestinationInput(TypedDict, total=False):
    TableName: Required[Name]
    StreamArn: Required[KinesisArn]
    UpdateKinesisStreamingConfiguration: KinesisPrecision


DescribeKinesisStreamingDestinationInput = DescribeTableInput


class UpdateContributorInsightsInput(TypedDict, total=False):
    TableName: Required[Name]
    IndexName: TableName
    ContributorInsightsAction: Required[str]
    ContributorInsightsMode: str


class DescribeContributorInsightsInput(TypedDict, total=False):
    TableName: Required[Name]
    IndexName: TableName


class ListContributorInsightsInput(TypedDict, total=False):
    TableName: Name
    NextToken: str
    MaxResults: int


# Exports, imports and bulk operations

TransferArn = Annotated[str, Meta(min_length=37)]


class IncrementalExportShape(TypedDict, total=False):
    ExportFromTime: datetime
    ExportToTime: datetime
    ExportViewType: str


class FilterSpecificationShape(TypedDict, total=False):
    FilterExpression: str
    ProjectionExpression: str
    KeyConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap


class ExportTableToPointInTimeInput(TypedDict, total=False):
    TableArn: Required[Name]
    ExportTime: datetime
    ClientToken: str
    S3Bucket: Required[str]
    S3BucketOwner: str
    S3Prefix: str
    S3SseAlgorithm: str
    S3SseKmsKeyId: Name
    ExportFormat: str
    ExportType: str
    IncrementalExportSpecification: IncrementalExportShape
    FilterSpecification: FilterSpecificationShape


class DescribeExportInput(TypedDict, total=False):
    ExportArn: Required[TransferArn]


class ListExportsInput(TypedDict, total=False):
    TableArn: Name
    MaxResults: Positive
    NextToken: str


class S3BucketSourceShape(TypedDict, total=False):
    S3BucketOwner: str
    S3Bucket: Required[str]
    S3KeyPrefix: str


class CsvOptionsShape(TypedDict, total=False):
    Delimiter: Name
    HeaderList: NonEmpty[Name]


class InputFormatOptionsShape(TypedDict, total=False):
    Csv: CsvOptionsShape


class TableCreationParametersShape(TypedDict, total=False):
    TableName: Required[TableName]
    AttributeDefinitions: Required[Sequence[AttributeDefinition]]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    BillingMode: str
    ProvisionedThroughput: ProvisionedThroughputShape
    OnDemandThroughput: OnDemandThroughputShape
    SSESpecification: SSESpecificationShape
    GlobalSecondaryIndexes: Sequence[GlobalSecondaryIndex]
    VectorIndexes: Sequence[VectorIndex]


class ImportTableInput(TypedDict, total=False):
    ClientToken: str
    S3BucketSource: Required[S3BucketSourceShape]
    InputFormat: Required[str]
    InputFormatOptions: InputFormatOptionsShape
    InputCompressionType: str
    TableCreationParameters: Required[TableCreationParametersShape]


class DescribeImportInput(TypedDict, total=False):
    ImportArn: Required[TransferArn]


class ListImportsInput(TypedDict, total=False):
    TableArn: Name
    PageSize: Positive
    NextToken: Annotated[str, Meta(min_length=112)]


class InputS3ConfigurationShape(TypedDict, total=False):
    S3BucketOwner: str
    S3Bucket: Required[str]
    S3KeyPrefix: str
    InputFormat: Required[str]
    InputCompressionType: str


class OutputS3ConfigurationShape(TypedDict, total=False):
    S3BucketOwner: str
    S3Bucket: str
    S3KeyPrefix: str
    S3SseAlgorithm: str
    S3SseKmsKeyId: Name
    OutputType: Required[Sequence[str]]


class StartBulkPutItemsInput(TypedDict, total=False):
    ClientToken: str
    InputS3Configuration: Required[InputS3ConfigurationShape]
    OutputS3Configuration: Required[OutputS3ConfigurationShape]
    TableName: Required[Name]
    MaxWriteRequestUnits: Annotated[int, Meta(ge=1024)]
    PerformanceTier: str


class DescribeBulkOperationInput(TypedDict, total=False):
    BulkOperationArn: Required[TransferArn]


CancelBulkOperationInput = DescribeBulkOperationInput


class ListBulkOperationsInput(TypedDict, total=False):
    MaxResults: Positive
    NextToken: Name


# Streams

StreamArn = Annotated[str, Meta(min_length=37)]
ShardId = Annotated[str, Meta(min_length=28)]
SequenceNumber = Annotated[str, Meta(min_length=21)]


class ListStreamsInput(TypedDict, total=False):
    TableName: TableName
    Limit: Positive
    ExclusiveStartStreamArn: StreamArn


class ShardFilter(TypedDict, total=False):
    Type: str
    ShardId: ShardId


class DescribeStreamInput(TypedDict, total=False):
    StreamArn: Required[StreamArn]
    Limit: Positive
    ExclusiveStartShardId: ShardId
    ShardFilter: ShardFilter


class GetShardIteratorInput(TypedDict, total=False):
    StreamArn: Required[StreamArn]
    ShardId: Required[ShardId]
    ShardIteratorType: Required[str]
    SequenceNumber: SequenceNumber
    Timestamp: datetime


class GetRecordsInput(TypedDict, total=False):
    ShardIterator: Required[Name]
    Limit: Positive
