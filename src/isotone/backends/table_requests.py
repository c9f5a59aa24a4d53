"""The parameters of the actions on tables, as boto3's low-level client takes them.

See `item_requests`, which also declares the bounded types that both modules use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict

from isotone.backends.item_requests import Name, NonEmpty, Positive


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
    IndexName: Required[Name]
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
    IndexName: Required[Name]
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


class UpdateGlobalSecondaryIndexAction(TypedDict, total=False):
    IndexName: Required[Name]
    ProvisionedThroughput: ProvisionedThroughputShape
    OnDemandThroughput: OnDemandThroughputShape
    WarmThroughput: WarmThroughputShape


class CreateGlobalSecondaryIndexAction(TypedDict, total=False):
    IndexName: Required[Name]
    KeySchema: Required[NonEmpty[KeySchemaElement]]
    Projection: Required[ProjectionShape]
    ProvisionedThroughput: ProvisionedThroughputShape
    OnDemandThroughput: OnDemandThroughputShape
    WarmThroughput: WarmThroughputShape


class DeleteGlobalSecondaryIndexAction(TypedDict, total=False):
    IndexName: Required[Name]


class GlobalSecondaryIndexUpdate(TypedDict, total=False):
    Update: UpdateGlobalSecondaryIndexAction
    Create: CreateGlobalSecondaryIndexAction
    Delete: DeleteGlobalSecondaryIndexAction


class UpdateTableInput(TypedDict, total=False):
    AttributeDefinitions: Sequence[AttributeDefinition]
    TableName: Required[Name]
    BillingMode: str
    ProvisionedThroughput: ProvisionedThroughputShape
    GlobalSecondaryIndexUpdates: Sequence[GlobalSecondaryIndexUpdate]
    StreamSpecification: StreamSpecificationShape
    SSESpecification: SSESpecificationShape
    ReplicaUpdates: NonEmpty[Mapping[str, Any]]
    TableClass: str
    DeletionProtectionEnabled: bool
    MultiRegionConsistency: str
    GlobalTableWitnessUpdates: NonEmpty[Mapping[str, Any]]
    OnDemandThroughput: OnDemandThroughputShape
    WarmThroughput: WarmThroughputShape


class DeleteTableInput(TypedDict, total=False):
    TableName: Required[Name]


class DescribeTableInput(TypedDict, total=False):
    TableName: Required[Name]


class ListTablesInput(TypedDict, total=False):
    ExclusiveStartTableName: Name
    Limit: Positive


class DescribeTimeToLiveInput(TypedDict, total=False):
    TableName: Required[Name]


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


class DescribeContinuousBackupsInput(TypedDict, total=False):
    TableName: Required[Name]


class PointInTimeRecoverySpecificationShape(TypedDict, total=False):
    PointInTimeRecoveryEnabled: Required[bool]
    RecoveryPeriodInDays: Positive


class UpdateContinuousBackupsInput(TypedDict, total=False):
    TableName: Required[Name]
    PointInTimeRecoverySpecification: Required[PointInTimeRecoverySpecificationShape]


class DescribeLimitsInput(TypedDict, total=False):
    pass


class DescribeEndpointsInput(TypedDict, total=False):
    pass
