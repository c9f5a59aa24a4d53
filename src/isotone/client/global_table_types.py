"""The parameters of the actions of global tables and of auto scaling, declared as in `request_types`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Required, TypedDict

from isotone.client.request_types import IndexName, Name, NonEmpty, Positive, TableName


class Replica(TypedDict, total=False):
    RegionName: str


class CreateGlobalTableInput(TypedDict, total=False):
    GlobalTableName: Required[TableName]
    ReplicationGroup: Required[Sequence[Replica]]


class DescribeGlobalTableInput(TypedDict, total=False):
    GlobalTableName: Required[TableName]


DescribeGlobalTableSettingsInput = DescribeGlobalTableInput


class ListGlobalTablesInput(TypedDict, total=False):
    ExclusiveStartGlobalTableName: TableName
    Limit: Positive
    RegionName: str


class ReplicaAction(TypedDict, total=False):
    RegionName: Required[str]


class ReplicaOfGlobalTable(TypedDict, total=False):
    Create: ReplicaAction
    Delete: ReplicaAction


class UpdateGlobalTableInput(TypedDict, total=False):
    GlobalTableName: Required[TableName]
    ReplicaUpdates: Required[Sequence[ReplicaOfGlobalTable]]


class TargetTrackingScalingPolicy(TypedDict, total=False):
    DisableScaleIn: bool
    ScaleInCooldown: int
    ScaleOutCooldown: int
    TargetValue: Required[float]


class AutoScalingPolicyUpdate(TypedDict, total=False):
    PolicyName: Name
    TargetTrackingScalingPolicyConfiguration: Required[TargetTrackingScalingPolicy]


class AutoScalingSettingsUpdate(TypedDict, total=False):
    MinimumUnits: Positive
    MaximumUnits: Positive
    AutoScalingDisabled: bool
    AutoScalingRoleArn: Name
    ScalingPolicyUpdate: AutoScalingPolicyUpdate


class IndexWriteCapacity(TypedDict, total=False):
    IndexName: Required[IndexName]
    ProvisionedWriteCapacityUnits: Positive
    ProvisionedWriteCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdate


class IndexReadCapacity(TypedDict, total=False):
    IndexName: Required[IndexName]
    ProvisionedReadCapacityUnits: Positive
    ProvisionedReadCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdate


class ReplicaCapacity(TypedDict, total=False):
    RegionName: Required[str]
    ReplicaProvisionedReadCapacityUnits: Positive
    ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdate
    ReplicaGlobalSecondaryIndexSettingsUpdate: NonEmpty[IndexReadCapacity]
    ReplicaTableClass: str


class UpdateGlobalTableSettingsInput(TypedDict, total=False):
    GlobalTableName: Required[TableName]
    GlobalTableBillingMode: str
    GlobalTableProvisionedWriteCapacityUnits: Positive
    GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdate
    GlobalTableGlobalSecondaryIndexSettingsUpdate: NonEmpty[IndexWriteCapacity]
    ReplicaSettingsUpdate: NonEmpty[ReplicaCapacity]


class DescribeTableReplicaAutoScalingInput(TypedDict, total=False):
    TableName: Required[Name]


class IndexWriteScaling(TypedDict, total=False):
    IndexName: IndexName
    ProvisionedWriteCapacityAutoScalingUpdate: AutoScalingSettingsUpdate


class IndexReadScaling(TypedDict, total=False):
    IndexName: IndexName
    ProvisionedReadCapacityAutoScalingUpdate: AutoScalingSettingsUpdate


class ReplicaScaling(TypedDict, total=False):
    RegionName: Required[str]
    ReplicaGlobalSecondaryIndexUpdates: Sequence[IndexReadScaling]
    ReplicaProvisionedReadCapacityAutoScalingUpdate: AutoScalingSettingsUpdate


class UpdateTableReplicaAutoScalingInput(TypedDict, total=False):
    GlobalSecondaryIndexUpdates: NonEmpty[IndexWriteScaling]
    TableName: Required[Name]
    ProvisionedWriteCapacityAutoScalingUpdate: AutoScalingSettingsUpdate
    ReplicaUpdates: NonEmpty[ReplicaScaling]
