"""Capacity, auto-scaling and table class in each region of a table, by the actions of 2019 and of 2017.11.29.

Both say the same of a table and of its global indexes: writes for all regions, reads for each. So their structures have
the same members, by the end of their names (`_members_of`).

Settings are checked, recorded and described. They change no throughput, because nothing is throttled.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from isotone.engine import replication
from isotone.engine.engine import Engine
from isotone.engine.table_schema import IndexSchema, TableSchema, TableThroughput
from isotone.errors import (
    IndexNotFoundException,
    ReplicaNotFoundException,
    ResourceNotFoundException,
    ValidationException,
)
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.descriptions import table_class_summary, with_table_class
from isotone.operations.global_tables import GROUP_EXISTS, find_group
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import (
    ApiStructure,
    BillingMode,
    Double,
    EntityName,
    Flag,
    IndexName,
    ListedTableName,
    PositiveLong,
    TableClass,
)
from isotone.operations.table_lookup import (
    TABLE_CHANGES,
    TABLE_IS_KNOWN,
    changed_table,
    described_table,
    partition_of,
)

Integer: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Direction: TypeAlias = Literal["Read", "Write"]


class AutoScalingTargetTrackingScalingPolicyConfigurationUpdate(
    ApiStructure, frozen=True, kw_only=True
):
    """How full capacity should be, in percent, and how soon it is changed."""

    disable_scale_in: Flag | None = None
    scale_in_cooldown: Integer | None = None
    scale_out_cooldown: Integer | None = None
    target_value: Double


class AutoScalingPolicyUpdate(ApiStructure, frozen=True, kw_only=True):
    """A scaling policy."""

    policy_name: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    target_tracking_scaling_policy_configuration: (
        AutoScalingTargetTrackingScalingPolicyConfigurationUpdate
    )


class AutoScalingSettingsUpdate(ApiStructure, frozen=True):
    """The bounds within which capacity is scaled, and by which policy."""

    minimum_units: PositiveLong | None = None
    maximum_units: PositiveLong | None = None
    auto_scaling_disabled: Flag | None = None
    auto_scaling_role_arn: Annotated[str, Meta(min_length=1, max_length=1600)] | None = None
    scaling_policy_update: AutoScalingPolicyUpdate | None = None


Scaling: TypeAlias = AutoScalingSettingsUpdate


class GlobalSecondaryIndexAutoScalingUpdate(ApiStructure, frozen=True):
    """The scaling of writes of an index, in all regions."""

    index_name: IndexName | None = None
    provisioned_write_capacity_auto_scaling_update: Scaling | None = None


class ReplicaGlobalSecondaryIndexAutoScalingUpdate(ApiStructure, frozen=True):
    """The scaling of reads of an index, in one region."""

    index_name: IndexName | None = None
    provisioned_read_capacity_auto_scaling_update: Scaling | None = None


class ReplicaAutoScalingUpdate(ApiStructure, frozen=True):
    """The scaling of reads in one region."""

    region_name: str
    replica_global_secondary_index_updates: (
        list[ReplicaGlobalSecondaryIndexAutoScalingUpdate] | None
    ) = None
    replica_provisioned_read_capacity_auto_scaling_update: Scaling | None = None


class UpdateTableReplicaAutoScaling(ApiStructure, frozen=True, kw_only=True):
    """Change the scaling of a table and its replicas."""

    global_secondary_index_updates: (
        Annotated[list[GlobalSecondaryIndexAutoScalingUpdate], Meta(min_length=1)] | None
    ) = None
    table_name: ListedTableName
    provisioned_write_capacity_auto_scaling_update: Scaling | None = None
    replica_updates: Annotated[list[ReplicaAutoScalingUpdate], Meta(min_length=1)] | None = None


class DescribeTableReplicaAutoScaling(ApiStructure, frozen=True):
    """Ask for the scaling of a table and its replicas."""

    table_name: ListedTableName


class GlobalTableGlobalSecondaryIndexSettingsUpdate(ApiStructure, frozen=True):
    """The writes of an index, in all regions."""

    index_name: IndexName
    provisioned_write_capacity_units: PositiveLong | None = None
    provisioned_write_capacity_auto_scaling_settings_update: Scaling | None = None


class ReplicaGlobalSecondaryIndexSettingsUpdate(ApiStructure, frozen=True):
    """The reads of an index, in one region."""

    index_name: IndexName
    provisioned_read_capacity_units: PositiveLong | None = None
    provisioned_read_capacity_auto_scaling_settings_update: Scaling | None = None


IndexesOfTable: TypeAlias = Annotated[
    list[GlobalTableGlobalSecondaryIndexSettingsUpdate], Meta(min_length=1, max_length=20)
]
IndexesOfReplica: TypeAlias = Annotated[
    list[ReplicaGlobalSecondaryIndexSettingsUpdate], Meta(min_length=1, max_length=20)
]


class ReplicaSettingsUpdate(ApiStructure, frozen=True):
    """The reads and the table class in one region."""

    region_name: str
    replica_provisioned_read_capacity_units: PositiveLong | None = None
    replica_provisioned_read_capacity_auto_scaling_settings_update: Scaling | None = None
    replica_global_secondary_index_settings_update: IndexesOfReplica | None = None
    replica_table_class: TableClass | None = None


class UpdateGlobalTableSettings(ApiStructure, frozen=True):
    """Change the settings of a global table in all regions, and in some."""

    global_table_name: EntityName
    global_table_billing_mode: BillingMode | None = None
    global_table_provisioned_write_capacity_units: PositiveLong | None = None
    global_table_provisioned_write_capacity_auto_scaling_settings_update: Scaling | None = None
    global_table_global_secondary_index_settings_update: IndexesOfTable | None = None
    replica_settings_update: (
        Annotated[list[ReplicaSettingsUpdate], Meta(min_length=1, max_length=50)] | None
    ) = None


class DescribeGlobalTableSettings(ApiStructure, frozen=True):
    """Ask for the settings of a global table in each region."""

    global_table_name: EntityName


_ROLE: Final = (
    "arn:{partition}:iam::{account}:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)
_LEAST_TARGET: Final = 20
_MOST_TARGET: Final = 90


# Actions


@action("DescribeTableReplicaAutoScaling", reading=(TABLE_IS_KNOWN,))
def describe_table_replica_auto_scaling(
    engine: Engine, request: DescribeTableReplicaAutoScaling
) -> Answer:
    """The scaling of a table in each of its regions."""
    return _scaling_answer(engine, described_table(engine, request.table_name).schema, "ACTIVE")


def _check_replicas(engine: Engine, request: UpdateTableReplicaAutoScaling) -> None:
    schema = changed_table(engine, request.table_name).schema
    present = {member.region for member, _ in replication.members(engine, schema)}
    for each in request.replica_updates or ():
        if each.region_name not in present:
            raise ValidationException(
                f"Replica not found: table {schema.name} has none in {each.region_name}"
            )


def _scaled(engine: Engine, request: UpdateTableReplicaAutoScaling) -> dict[Engine, TableSchema]:
    """The table of each region after a change of scaling."""
    schema = changed_table(engine, request.table_name).schema
    replicas = {each.region_name: each for each in request.replica_updates or ()}
    return {
        member: _with_settings(_with_settings(old, request), replicas.get(member.region))
        for member, old in replication.members(engine, schema)
    }


@action(
    "UpdateTableReplicaAutoScaling",
    writing=(
        TABLE_CHANGES,
        ActionRule("a region without a replica", _check_replicas),
        ActionRule(
            "each region in turn, the table before its indexes: an on-demand table, no such index, "
            "a target out of bounds, bounds that are missing or crossed",
            _scaled,
        ),
    ),
)
def update_table_replica_auto_scaling(
    engine: Engine, request: UpdateTableReplicaAutoScaling
) -> Answer:
    """Change the scaling of writes in all regions, and of reads in some."""
    changed = _scaled(engine, request)
    _save(changed)
    return _scaling_answer(engine, changed[engine], "UPDATING")


@action("DescribeGlobalTableSettings", reading=(GROUP_EXISTS,))
def describe_global_table_settings(engine: Engine, request: DescribeGlobalTableSettings) -> Answer:
    """The settings of a global table in each region."""
    return _settings_answer(engine, request.global_table_name, "ACTIVE")


def _check_members(engine: Engine, request: UpdateGlobalTableSettings) -> None:
    name = request.global_table_name
    present = {member.region for member, _ in replication.members(*find_group(engine, name))}
    for each in request.replica_settings_update or ():
        if each.region_name not in present:
            raise ReplicaNotFoundException(
                f"Global table with name: '{name}' has no replica in '{each.region_name}'."
            )


def _settled(engine: Engine, request: UpdateGlobalTableSettings) -> dict[Engine, TableSchema]:
    """The table of each region after a change of settings."""
    replicas = {each.region_name: each for each in request.replica_settings_update or ()}
    changed = {}
    for member, schema in replication.members(*find_group(engine, request.global_table_name)):
        replica = replicas.get(member.region)
        schema = _with_billing(member, schema, request.global_table_billing_mode)
        schema = _with_settings(_with_settings(schema, request), replica)
        _check_capacity(schema)
        changed[member] = _with_class(member, schema, replica)
    return changed


@action(
    "UpdateGlobalTableSettings",
    writing=(
        GROUP_EXISTS,
        ActionRule("a region without a replica", _check_members),
        ActionRule(
            "each region in turn, the table before its indexes: no such index, units or scaling of an "
            "on-demand table, a target out of bounds, bounds; then missing units of a provisioned one",
            _settled,
        ),
    ),
)
def update_global_table_settings(engine: Engine, request: UpdateGlobalTableSettings) -> Answer:
    """Change the billing and the writes of all regions, and the reads of some."""
    _save(_settled(engine, request))
    return _settings_answer(engine, request.global_table_name, "UPDATING")


# Changes


def _save(changed: Mapping[Engine, TableSchema]) -> None:
    for member, schema in changed.items():
        with member.writing:
            member.catalog.save(schema)


class _Members(NamedTuple):
    """The members of a structure: the scaling of reads or writes, the list of indexes, and units."""

    direction: Direction
    scaling: str
    indexes: str
    units: str


@cache
def _members_of(structure: type[ApiStructure]) -> _Members:
    """The members of a structure, by the ends of their names; empty for those that it has not."""

    def ending(*ends: str) -> str:
        return next((name for name in structure.__struct_fields__ if name.endswith(ends)), "")

    scaling = ending("_auto_scaling_update", "_auto_scaling_settings_update")
    indexes = ending("_index_updates", "_index_settings_update")
    return _Members(
        "Read" if "_read_" in scaling else "Write", scaling, indexes, ending("_capacity_units")
    )


def _with_settings(schema: TableSchema, request: ApiStructure | None) -> TableSchema:
    """The table with the settings of a request or of a region: first its own, then those of its indexes."""
    if request is None:
        return schema
    scaling = dict(schema.scaling)
    indexes = getattr(request, _members_of(type(request)).indexes)
    parts: list[ApiStructure] = [request, *(indexes or ())]
    for each in parts:
        members = _members_of(type(each))
        index = getattr(each, "index_name", None) or ""
        if members.units:
            units = getattr(each, members.units)
            schema = _with_units(schema, members.direction, index, units)
        update = getattr(each, members.scaling)
        if update is not None:
            key = f"{members.direction}:{index}"
            settings = _changed_scaling(schema, scaling.get(key), index, update)
            scaling.pop(key, None)
            if settings is not None:
                scaling[key] = settings
    return msgspec.structs.replace(schema, scaling=scaling)


def _changed_scaling(
    schema: TableSchema, before: Mapping[str, Any] | None, index: str, update: Scaling
) -> dict[str, Any] | None:
    """The settings after an update; None if scaling is disabled."""
    if update.auto_scaling_disabled:
        return None
    if schema.billing == "PAY_PER_REQUEST":
        raise ValidationException(
            f"Auto scaling cannot be set for table {schema.name}: "
            "its BillingMode is PAY_PER_REQUEST"
        )
    if index and _global_index(schema, index) is None:
        raise ResourceNotFoundException(f"Requested resource not found: Index: {index} not found")
    settings: dict[str, Any] = {**(before or {}), **_given(update)}
    low, high = settings.get("MinimumUnits"), settings.get("MaximumUnits")
    if low is None or high is None:
        raise ValidationException(
            "MinimumUnits and MaximumUnits must be specified to enable auto scaling"
        )
    if low > high:
        raise ValidationException(f"MinimumUnits {low} must not exceed MaximumUnits {high}")
    return settings


def _given(update: Scaling) -> dict[str, Any]:
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


def _with_class(
    engine: Engine, schema: TableSchema, replica: ReplicaSettingsUpdate | None
) -> TableSchema:
    if replica is None or replica.replica_table_class is None:
        return schema
    now = engine.clock.now()
    settings = with_table_class(schema.settings, replica.replica_table_class, now)
    return msgspec.structs.replace(schema, settings=settings)


def _with_billing(engine: Engine, schema: TableSchema, mode: BillingMode | None) -> TableSchema:
    if mode is None or mode == schema.billing:
        return schema
    if mode == "PROVISIONED":
        return msgspec.structs.replace(schema, billing=mode)
    return msgspec.structs.replace(
        schema,
        billing=mode,
        throughput=TableThroughput(),
        indexes=tuple(
            msgspec.structs.replace(index, throughput=TableThroughput()) for index in schema.indexes
        ),
        scaling={},
        on_demand_since=round(engine.clock.now(), 3),
    )


def _with_units(
    schema: TableSchema, direction: Direction, name: str, units: int | None
) -> TableSchema:
    """The table with other units of itself or of an index, which must exist."""
    index = _global_index(schema, name) if name else None
    if name and index is None:
        raise IndexNotFoundException(f"Index not found: {name} of table {schema.name}")
    if units is None:
        return schema
    if schema.billing == "PAY_PER_REQUEST":
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            "when BillingMode is PAY_PER_REQUEST"
        )
    before = schema.throughput if index is None else index.throughput
    after = TableThroughput(
        *((units, before.write) if direction == "Read" else (before.read, units))
    )
    if index is None:
        return msgspec.structs.replace(schema, throughput=after)
    indexes = tuple(
        msgspec.structs.replace(each, throughput=after) if each is index else each
        for each in schema.indexes
    )
    return msgspec.structs.replace(schema, indexes=indexes)


def _check_capacity(schema: TableSchema) -> None:
    units = [schema.throughput, *(index.throughput for index in _global_indexes(schema))]
    if schema.billing == "PROVISIONED" and not all(each.read and each.write for each in units):
        raise ValidationException(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified "
            "when BillingMode is PROVISIONED"
        )


def _global_indexes(schema: TableSchema) -> list[IndexSchema]:
    return [index for index in schema.indexes if index.kind == "global"]


def _global_index(schema: TableSchema, name: str) -> IndexSchema | None:
    return next((index for index in _global_indexes(schema) if index.name == name), None)


# Descriptions


def _scaling_answer(engine: Engine, schema: TableSchema, status: str) -> Answer:
    replicas = [
        {
            "RegionName": member.region,
            "ReplicaStatus": "ACTIVE",
            "GlobalSecondaryIndexes": [
                _described_index(member, present, index) for index in _global_indexes(present)
            ],
            **_described_scaling(member, present, "Replica"),
        }
        for member, present in replication.members(engine, schema)
    ]
    described = {"TableName": schema.name, "TableStatus": status, "Replicas": replicas}
    return {"TableAutoScalingDescription": described}


def _settings_answer(engine: Engine, name: str, status: str) -> Answer:
    members = replication.members(*find_group(engine, name))
    replicas = [_described_settings(member, schema, status) for member, schema in members]
    return {"GlobalTableName": name, "ReplicaSettings": replicas}


def _described_settings(engine: Engine, schema: TableSchema, status: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "RegionName": engine.region,
        "ReplicaStatus": status,
        **_described_units(schema.throughput, "Replica"),
        **_described_scaling(engine, schema, "Replica"),
    }
    if schema.billing == "PAY_PER_REQUEST":
        described["ReplicaBillingModeSummary"] = {
            "BillingMode": schema.billing,
            "LastUpdateToPayPerRequestDateTime": schema.on_demand_since or schema.created,
        }
    indexes = [
        _described_index(engine, schema, index)
        | (_described_units(index.throughput) if index.throughput.read else {})
        for index in _global_indexes(schema)
    ]
    if indexes:
        described["ReplicaGlobalSecondaryIndexSettings"] = indexes
    if "TableClass" in schema.settings:
        described["ReplicaTableClassSummary"] = table_class_summary(schema.settings)
    return described


def _described_index(engine: Engine, schema: TableSchema, index: IndexSchema) -> dict[str, Any]:
    named = {"IndexName": index.name, "IndexStatus": index.status}
    return {**named, **_described_scaling(engine, schema, "", index.name)}


def _described_units(units: TableThroughput, prefix: str = "") -> dict[str, Any]:
    return {
        f"{prefix}ProvisionedReadCapacityUnits": units.read,
        f"{prefix}ProvisionedWriteCapacityUnits": units.write,
    }


def _described_scaling(
    engine: Engine, schema: TableSchema, prefix: str, index: str = ""
) -> dict[str, Any]:
    """The settings of reads and of writes."""
    directions: tuple[Direction, ...] = ("Read", "Write")
    return {
        f"{prefix}Provisioned{direction}CapacityAutoScalingSettings": _described_direction(
            engine, schema, direction, index
        )
        for direction in directions
    }


def _described_direction(
    engine: Engine, schema: TableSchema, direction: Direction, index: str
) -> dict[str, Any]:
    """An AutoScalingSettingsDescription."""
    settings = schema.scaling.get(f"{direction}:{index}")
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
