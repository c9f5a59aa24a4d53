"""Auto-scaling of replicas: the settings of reads and writes, of a table and of its global indexes, in each region.

Settings are checked, recorded and described. They change no throughput, because nothing is throttled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from isotone.engine import replication
from isotone.engine.engine import Engine
from isotone.engine.table_schema import TableSchema
from isotone.errors import ResourceNotFoundException, ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.request_members import (
    Double,
    Flag,
    IndexName,
    ListedTableName,
    PositiveLong,
    Structure,
)
from isotone.operations.table_lookup import changed_table, described_table, partition_of

Integer = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Direction = Literal["Read", "Write"]


class AutoScalingTargetTrackingScalingPolicyConfigurationUpdate(
    Structure, frozen=True, kw_only=True
):
    """How full capacity should be, in percent, and how soon it is changed."""

    disable_scale_in: Flag | None = None
    scale_in_cooldown: Integer | None = None
    scale_out_cooldown: Integer | None = None
    target_value: Double


class AutoScalingPolicyUpdate(Structure, frozen=True, kw_only=True):
    """A scaling policy."""

    policy_name: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    target_tracking_scaling_policy_configuration: (
        AutoScalingTargetTrackingScalingPolicyConfigurationUpdate
    )


class AutoScalingSettingsUpdate(Structure, frozen=True):
    """The bounds within which capacity is scaled, and by which policy."""

    minimum_units: PositiveLong | None = None
    maximum_units: PositiveLong | None = None
    auto_scaling_disabled: Flag | None = None
    auto_scaling_role_arn: Annotated[str, Meta(min_length=1, max_length=1600)] | None = None
    scaling_policy_update: AutoScalingPolicyUpdate | None = None


class GlobalSecondaryIndexAutoScalingUpdate(Structure, frozen=True):
    """The scaling of writes of an index, in all regions."""

    index_name: IndexName | None = None
    provisioned_write_capacity_auto_scaling_update: AutoScalingSettingsUpdate | None = None


class ReplicaGlobalSecondaryIndexAutoScalingUpdate(Structure, frozen=True):
    """The scaling of reads of an index, in one region."""

    index_name: IndexName | None = None
    provisioned_read_capacity_auto_scaling_update: AutoScalingSettingsUpdate | None = None


class ReplicaAutoScalingUpdate(Structure, frozen=True):
    """The scaling of reads in one region."""

    region_name: str
    replica_global_secondary_index_updates: (
        list[ReplicaGlobalSecondaryIndexAutoScalingUpdate] | None
    ) = None
    replica_provisioned_read_capacity_auto_scaling_update: AutoScalingSettingsUpdate | None = None


class UpdateTableReplicaAutoScaling(Structure, frozen=True, kw_only=True):
    """Change the scaling of a table and its replicas."""

    global_secondary_index_updates: (
        Annotated[list[GlobalSecondaryIndexAutoScalingUpdate], Meta(min_length=1)] | None
    ) = None
    table_name: ListedTableName
    provisioned_write_capacity_auto_scaling_update: AutoScalingSettingsUpdate | None = None
    replica_updates: Annotated[list[ReplicaAutoScalingUpdate], Meta(min_length=1)] | None = None


class DescribeTableReplicaAutoScaling(Structure, frozen=True):
    """Ask for the scaling of a table and its replicas."""

    table_name: ListedTableName


_ROLE: Final = (
    "arn:{partition}:iam::{account}:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)
_LEAST_TARGET: Final = 20
_MOST_TARGET: Final = 90


@action("DescribeTableReplicaAutoScaling")
def describe_table_replica_auto_scaling(
    engine: Engine, request: DescribeTableReplicaAutoScaling
) -> Answer:
    """The scaling of a table in each of its regions."""
    with engine.reading:
        schema = described_table(engine, request.table_name).schema
        return {"TableAutoScalingDescription": _description(engine, schema, "ACTIVE")}


@action("UpdateTableReplicaAutoScaling")
def update_table_replica_auto_scaling(
    engine: Engine, request: UpdateTableReplicaAutoScaling
) -> Answer:
    """Change the scaling of writes in all regions, and of reads in some."""
    with engine.writing:
        schema = changed_table(engine, request.table_name).schema
        group = dict(replication.members(engine, schema))
        reads = {replica.region_name: replica for replica in request.replica_updates or ()}
        for region in reads:
            if region not in {member.region for member in group}:
                raise ValidationException(
                    f"Replica not found: table {schema.name} has none in {region}"
                )
        changed = {
            member: _scaled(present, request, reads.get(member.region))
            for member, present in group.items()
        }
        for member, present in changed.items():
            with member.writing:
                member.catalog.save(present)
        return {"TableAutoScalingDescription": _description(engine, changed[engine], "UPDATING")}


def _scaled(
    schema: TableSchema,
    request: UpdateTableReplicaAutoScaling,
    replica: ReplicaAutoScalingUpdate | None,
) -> TableSchema:
    """One replica with the changes of its writes, which are those of all regions, and of its reads."""
    scaling = dict(schema.scaling)
    apply_settings(
        schema, scaling, "Write", "", request.provisioned_write_capacity_auto_scaling_update
    )
    for index in request.global_secondary_index_updates or ():
        update = index.provisioned_write_capacity_auto_scaling_update
        apply_settings(schema, scaling, "Write", index.index_name or "", update)
    if replica is not None:
        update = replica.replica_provisioned_read_capacity_auto_scaling_update
        apply_settings(schema, scaling, "Read", "", update)
        for read in replica.replica_global_secondary_index_updates or ():
            update = read.provisioned_read_capacity_auto_scaling_update
            apply_settings(schema, scaling, "Read", read.index_name or "", update)
    return msgspec.structs.replace(schema, scaling=scaling)


def settings_key(direction: Direction, index: str = "") -> str:
    """The key in a table's `scaling` of the settings of the table or an index."""
    return f"{direction}:{index}"


def changed_settings(
    schema: TableSchema,
    scaling: Mapping[str, Any],
    direction: Direction,
    index: str,
    update: AutoScalingSettingsUpdate,
) -> dict[str, Any] | None:
    """The settings after an update; None if scaling is disabled."""
    if update.auto_scaling_disabled:
        return None
    if schema.billing == "PAY_PER_REQUEST":
        raise ValidationException(
            f"Auto scaling cannot be set for table {schema.name}: "
            "its BillingMode is PAY_PER_REQUEST"
        )
    found = schema.index(index) if index else None
    if index and (found is None or found.kind != "global"):
        raise ResourceNotFoundException(f"Requested resource not found: Index: {index} not found")
    settings: dict[str, Any] = {
        **(scaling.get(settings_key(direction, index)) or {}),
        **_given(update),
    }
    low, high = settings.get("MinimumUnits"), settings.get("MaximumUnits")
    if low is None or high is None:
        raise ValidationException(
            "MinimumUnits and MaximumUnits must be specified to enable auto scaling"
        )
    if low > high:
        raise ValidationException(f"MinimumUnits {low} must not exceed MaximumUnits {high}")
    return settings


def describe_settings(
    engine: Engine, schema: TableSchema, direction: Direction, index: str = ""
) -> dict[str, Any]:
    """An AutoScalingSettingsDescription."""
    settings = schema.scaling.get(settings_key(direction, index))
    if settings is None:
        return {"AutoScalingDisabled": True, "ScalingPolicies": []}
    resource = f"table/{schema.name}" + (f"/index/{index}" if index else "")
    policies = []
    if "Policy" in settings:
        named = {"PolicyName": f"DynamoDB{direction}CapacityUtilization:{resource}"}
        policies.append({**named, **settings["Policy"]})
    return {
        "MinimumUnits": settings["MinimumUnits"],
        "MaximumUnits": settings["MaximumUnits"],
        "AutoScalingDisabled": False,
        "AutoScalingRoleArn": settings.get("AutoScalingRoleArn")
        or _ROLE.format(partition=partition_of(engine.region), account=engine.account),
        "ScalingPolicies": policies,
    }


def apply_settings(
    schema: TableSchema,
    scaling: dict[str, Any],
    direction: Direction,
    index: str,
    update: AutoScalingSettingsUpdate | None,
) -> None:
    """Change the settings of the table or an index, in `scaling`."""
    if update is None:
        return
    key = settings_key(direction, index)
    settings = changed_settings(schema, scaling, direction, index, update)
    if settings is None:
        scaling.pop(key, None)
    else:
        scaling[key] = settings


def _given(update: AutoScalingSettingsUpdate) -> dict[str, Any]:
    given: dict[str, Any] = {
        "MinimumUnits": update.minimum_units,
        "MaximumUnits": update.maximum_units,
        "AutoScalingRoleArn": update.auto_scaling_role_arn,
    }
    policy = update.scaling_policy_update
    if policy is not None:
        target = policy.target_tracking_scaling_policy_configuration
        if not _LEAST_TARGET <= target.target_value <= _MOST_TARGET:
            raise ValidationException(
                f"TargetValue must be between {_LEAST_TARGET} and {_MOST_TARGET}, "
                f"it is {target.target_value}"
            )
        given["Policy"] = _present(
            {
                "PolicyName": policy.policy_name,
                "TargetTrackingScalingPolicyConfiguration": _present(msgspec.to_builtins(target)),
            }
        )
    return _present(given)


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _description(engine: Engine, schema: TableSchema, status: str) -> dict[str, Any]:
    return {
        "TableName": schema.name,
        "TableStatus": status,
        "Replicas": [_replica(*member) for member in replication.members(engine, schema)],
    }


def _replica(engine: Engine, schema: TableSchema) -> dict[str, Any]:
    indexes = [
        {
            "IndexName": index.name,
            "IndexStatus": index.status,
            "ProvisionedReadCapacityAutoScalingSettings": describe_settings(
                engine, schema, "Read", index.name
            ),
            "ProvisionedWriteCapacityAutoScalingSettings": describe_settings(
                engine, schema, "Write", index.name
            ),
        }
        for index in schema.indexes
        if index.kind == "global"
    ]
    return {
        "RegionName": engine.region,
        "GlobalSecondaryIndexes": indexes,
        "ReplicaProvisionedReadCapacityAutoScalingSettings": describe_settings(
            engine, schema, "Read"
        ),
        "ReplicaProvisionedWriteCapacityAutoScalingSettings": describe_settings(
            engine, schema, "Write"
        ),
        "ReplicaStatus": "ACTIVE",
    }
