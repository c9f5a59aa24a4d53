"""The actions on the settings of global tables of version 2017.11.29: capacity, auto-scaling and table class by region."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from isotone.engine import replication
from isotone.engine.engine import Engine
from isotone.engine.table_schema import IndexSchema, TableSchema, Throughput
from isotone.errors import (
    IndexNotFoundException,
    ReplicaNotFoundException,
    ValidationException,
)
from isotone.operations.action import Answer, action
from isotone.operations.auto_scaling import (
    AutoScalingSettingsUpdate,
    apply_settings,
    describe_settings,
)
from isotone.operations.descriptions import table_class_summary, with_table_class
from isotone.operations.global_tables import find_group
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import (
    BillingMode,
    EntityName,
    IndexName,
    PositiveLong,
    Structure,
    TableClass,
)


class DescribeGlobalTableSettings(Structure, frozen=True):
    """Ask for the settings of a global table in each region."""

    global_table_name: EntityName


class GlobalTableGlobalSecondaryIndexSettingsUpdate(Structure, frozen=True):
    """The writes of an index, in all regions."""

    index_name: IndexName
    provisioned_write_capacity_units: PositiveLong | None = None
    provisioned_write_capacity_auto_scaling_settings_update: AutoScalingSettingsUpdate | None = None


class ReplicaGlobalSecondaryIndexSettingsUpdate(Structure, frozen=True):
    """The reads of an index, in one region."""

    index_name: IndexName
    provisioned_read_capacity_units: PositiveLong | None = None
    provisioned_read_capacity_auto_scaling_settings_update: AutoScalingSettingsUpdate | None = None


class ReplicaSettingsUpdate(Structure, frozen=True):
    """The reads and the table class in one region."""

    region_name: str
    replica_provisioned_read_capacity_units: PositiveLong | None = None
    replica_provisioned_read_capacity_auto_scaling_settings_update: (
        AutoScalingSettingsUpdate | None
    ) = None
    replica_global_secondary_index_settings_update: (
        Annotated[
            list[ReplicaGlobalSecondaryIndexSettingsUpdate], Meta(min_length=1, max_length=20)
        ]
        | None
    ) = None
    replica_table_class: TableClass | None = None


class UpdateGlobalTableSettings(Structure, frozen=True):
    """Change the settings of a global table in all regions, and in some."""

    global_table_name: EntityName
    global_table_billing_mode: BillingMode | None = None
    global_table_provisioned_write_capacity_units: PositiveLong | None = None
    global_table_provisioned_write_capacity_auto_scaling_settings_update: (
        AutoScalingSettingsUpdate | None
    ) = None
    global_table_global_secondary_index_settings_update: (
        Annotated[
            list[GlobalTableGlobalSecondaryIndexSettingsUpdate], Meta(min_length=1, max_length=20)
        ]
        | None
    ) = None
    replica_settings_update: (
        Annotated[list[ReplicaSettingsUpdate], Meta(min_length=1, max_length=50)] | None
    ) = None


@action("DescribeGlobalTableSettings")
def describe_global_table_settings(engine: Engine, request: DescribeGlobalTableSettings) -> Answer:
    """The settings of a global table in each region."""
    with engine.reading:
        return _answer(engine, request.global_table_name, "ACTIVE")


@action("UpdateGlobalTableSettings")
def update_global_table_settings(engine: Engine, request: UpdateGlobalTableSettings) -> Answer:
    """Change the billing and the writes of all regions, and the reads of some."""
    name = request.global_table_name
    with engine.writing:
        members = dict(replication.members(*find_group(engine, name)))
        regional = {each.region_name: each for each in request.replica_settings_update or ()}
        present = {member.region for member in members}
        for region in regional:
            if region not in present:
                raise ReplicaNotFoundException(
                    f"Global table with name: '{name}' has no replica in '{region}'."
                )
        changed = {}
        for member, schema in members.items():
            schema = _with_billing(member, schema, request)
            schema = _with_writes(schema, request)
            schema = _with_reads(member, schema, regional.get(member.region))
            _check_capacity(schema)
            changed[member] = schema
        for member, schema in changed.items():
            with member.writing:
                member.catalog.save(schema)
        return _answer(engine, name, "UPDATING")


def _with_billing(
    engine: Engine, schema: TableSchema, request: UpdateGlobalTableSettings
) -> TableSchema:
    mode = request.global_table_billing_mode
    if mode is None or mode == schema.billing:
        return schema
    if mode == "PROVISIONED":
        return msgspec.structs.replace(schema, billing=mode)
    indexes = tuple(
        msgspec.structs.replace(index, throughput=Throughput()) for index in schema.indexes
    )
    now = round(engine.clock.now(), 3)
    return msgspec.structs.replace(
        schema,
        billing=mode,
        throughput=Throughput(),
        indexes=indexes,
        scaling={},
        on_demand_since=now,
    )


def _with_writes(schema: TableSchema, request: UpdateGlobalTableSettings) -> TableSchema:
    scaling = dict(schema.scaling)
    schema = _with_units(schema, None, write=request.global_table_provisioned_write_capacity_units)
    update = request.global_table_provisioned_write_capacity_auto_scaling_settings_update
    apply_settings(schema, scaling, "Write", "", update)
    for each in request.global_table_global_secondary_index_settings_update or ():
        index = _index(schema, each.index_name)
        schema = _with_units(schema, index, write=each.provisioned_write_capacity_units)
        update = each.provisioned_write_capacity_auto_scaling_settings_update
        apply_settings(schema, scaling, "Write", index.name, update)
    return msgspec.structs.replace(schema, scaling=scaling)


def _with_reads(
    engine: Engine, schema: TableSchema, request: ReplicaSettingsUpdate | None
) -> TableSchema:
    if request is None:
        return schema
    scaling = dict(schema.scaling)
    schema = _with_units(schema, None, read=request.replica_provisioned_read_capacity_units)
    update = request.replica_provisioned_read_capacity_auto_scaling_settings_update
    apply_settings(schema, scaling, "Read", "", update)
    for each in request.replica_global_secondary_index_settings_update or ():
        index = _index(schema, each.index_name)
        schema = _with_units(schema, index, read=each.provisioned_read_capacity_units)
        update = each.provisioned_read_capacity_auto_scaling_settings_update
        apply_settings(schema, scaling, "Read", index.name, update)
    settings = schema.settings
    if request.replica_table_class is not None:
        settings = with_table_class(settings, request.replica_table_class, engine.clock.now())
    return msgspec.structs.replace(schema, scaling=scaling, settings=settings)


def _with_units(
    schema: TableSchema,
    index: IndexSchema | None,
    *,
    read: int | None = None,
    write: int | None = None,
) -> TableSchema:
    """The table with other units of itself or of an index."""
    if read is None and write is None:
        return schema
    if schema.billing == "PAY_PER_REQUEST":
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            "when BillingMode is PAY_PER_REQUEST"
        )
    before = schema.throughput if index is None else index.throughput
    units = Throughput(read or before.read, write or before.write)
    if index is None:
        return msgspec.structs.replace(schema, throughput=units)
    indexes = tuple(
        msgspec.structs.replace(each, throughput=units) if each.name == index.name else each
        for each in schema.indexes
    )
    return msgspec.structs.replace(schema, indexes=indexes)


def _check_capacity(schema: TableSchema) -> None:
    units = [schema.throughput]
    units += [index.throughput for index in schema.indexes if index.kind == "global"]
    if schema.billing == "PROVISIONED" and not all(each.read and each.write for each in units):
        raise ValidationException(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified "
            "when BillingMode is PROVISIONED"
        )


def _index(schema: TableSchema, name: str) -> IndexSchema:
    index = schema.index(name)
    if index is None or index.kind != "global":
        raise IndexNotFoundException(f"Index not found: {name} of table {schema.name}")
    return index


# Descriptions


def _answer(engine: Engine, name: str, status: str) -> Answer:
    members = replication.members(*find_group(engine, name))
    replicas = [_replica(member, schema, status) for member, schema in members]
    return {"GlobalTableName": name, "ReplicaSettings": replicas}


def _replica(engine: Engine, schema: TableSchema, status: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "RegionName": engine.region,
        "ReplicaStatus": status,
        "ReplicaProvisionedReadCapacityUnits": schema.throughput.read,
        "ReplicaProvisionedReadCapacityAutoScalingSettings": describe_settings(
            engine, schema, "Read"
        ),
        "ReplicaProvisionedWriteCapacityUnits": schema.throughput.write,
        "ReplicaProvisionedWriteCapacityAutoScalingSettings": describe_settings(
            engine, schema, "Write"
        ),
    }
    if schema.billing == "PAY_PER_REQUEST":
        described["ReplicaBillingModeSummary"] = {
            "BillingMode": schema.billing,
            "LastUpdateToPayPerRequestDateTime": schema.on_demand_since or schema.created,
        }
    indexes = [_described_index(engine, schema, index) for index in schema.indexes]
    if any(indexes):
        described["ReplicaGlobalSecondaryIndexSettings"] = [index for index in indexes if index]
    if "TableClass" in schema.settings:
        described["ReplicaTableClassSummary"] = table_class_summary(schema.settings)
    return described


def _described_index(engine: Engine, schema: TableSchema, index: IndexSchema) -> dict[str, Any]:
    if index.kind != "global":
        return {}
    described: dict[str, Any] = {
        "IndexName": index.name,
        "IndexStatus": index.status,
        "ProvisionedReadCapacityAutoScalingSettings": describe_settings(
            engine, schema, "Read", index.name
        ),
        "ProvisionedWriteCapacityAutoScalingSettings": describe_settings(
            engine, schema, "Write", index.name
        ),
    }
    if index.throughput.read:
        described["ProvisionedReadCapacityUnits"] = index.throughput.read
        described["ProvisionedWriteCapacityUnits"] = index.throughput.write
    return described
