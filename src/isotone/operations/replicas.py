"""Replicas of global tables (version 2019.11.21): the ReplicaUpdates of UpdateTable, and leaving a group.

Each region of a table stores the whole group, so each can describe it and outlive the others. All of them change in one
transaction. What the service keeps equal in all regions (indexes, billing, writes and expiry) is changed in all.
"""

from __future__ import annotations

import uuid
from typing import Any, Final, TypeVar

import msgspec

from isotone.engine import backfill, replication, streams
from isotone.engine.engine import Engine
from isotone.engine.replica_log import CURRENT, LEGACY
from isotone.engine.table_schema import IndexSchema, Replication, TableSchema, TableThroughput
from isotone.errors import ValidationException
from isotone.operations.descriptions import with_table_class
from isotone.operations.request_members import ApiStructure
from isotone.operations.table_requests import (
    CreateReplicationGroupMemberAction,
    ReplicaGlobalSecondaryIndex,
    ReplicaSettings,
    UpdateReplicationGroupMemberAction,
    UpdateTable,
)

Readable = TypeVar("Readable", TableSchema, IndexSchema)
_LOCAL_REGION: Final = (
    "Cannot add, delete, or update the local region through ReplicaUpdates. "
    "Use CreateTable, DeleteTable, or UpdateTable as required."
)
_NOT_PART: Final = (
    "Update global table operation failed because one or more replicas were not part of "
    "the global table."
)
_STRONG_REGIONS: Final = 3


def others(engine: Engine, schema: TableSchema) -> list[tuple[Engine, TableSchema]]:
    """The replicas of a table in other regions."""
    return list(replication.members(engine, schema))[1:]


def followed(request: UpdateTable) -> UpdateTable:
    """The part of an update that replicas of version 2019 follow."""
    return msgspec.structs.replace(
        request,
        table_class=None,
        deletion_protection_enabled=None,
        stream_specification=None,
        replica_updates=None,
        global_table_witness_updates=None,
        multi_region_consistency=None,
    )


def follows(schema: TableSchema) -> bool:
    """Whether the replicas of a table follow its changes of settings."""
    return schema.replication is not None and schema.replication.version == CURRENT


# UpdateTable


def are_updated(request: UpdateTable) -> bool:
    """Whether an update concerns replicas."""
    return bool(
        request.replica_updates
        or request.global_table_witness_updates
        or request.multi_region_consistency
    )


def check_stream(schema: TableSchema, enabled: bool) -> None:
    """Refuse to disable the stream of a replica."""
    if schema.replication is not None and not enabled:
        raise ValidationException(
            f"The stream of table {schema.name} cannot be disabled while it is a replica "
            "of a global table"
        )


def deleted_regions(request: UpdateTable) -> list[str]:
    """The regions whose replicas an update deletes."""
    updates = request.replica_updates or ()
    return [each.delete.region_name for each in updates if each.delete is not None]


def update(engine: Engine, schema: TableSchema, request: UpdateTable) -> TableSchema:
    """Create and change replicas and witnesses; returns the resulting table.

    Deleted replicas leave the group; the caller removes their tables.
    """
    updates = request.replica_updates or ()
    witnesses = request.global_table_witness_updates or ()
    if not updates and not witnesses:
        raise ValidationException(
            "MultiRegionConsistency can only be specified when a global table is created"
        )
    if schema.replication is not None and schema.replication.version == LEGACY:
        raise ValidationException(
            f"Table {schema.name} is a replica of a global table of version {LEGACY}: "
            "use UpdateGlobalTable"
        )
    created = [each.create for each in updates if each.create is not None]
    changed = [each.update for each in updates if each.update is not None]
    deleted = deleted_regions(request)
    _check_regions(engine, schema, created, [*(each.region_name for each in changed), *deleted])
    members: list[ReplicaSettings] = [*created, *changed]
    _check_indexes(schema, members)
    group = _group_after(engine, schema, request, created, deleted)
    if created or deleted:
        replication.deliver_all(engine, schema.name)
    for member in members:
        given = _merged(group.overrides.get(member.region_name, {}), _overrides(member))
        group = msgspec.structs.replace(
            group, overrides={**group.overrides, member.region_name: given}
        )
    schema = _with_stream(engine, schema)
    schema = regroup(engine, schema, group)
    for new in created:
        replication.create(engine, replica_of(engine, schema), new.region_name, group)
    for member in members:
        _override(engine.regions[member.region_name], schema.name, member)
    return engine.catalog.tables[schema.name].schema


def _check_regions(
    engine: Engine,
    schema: TableSchema,
    created: list[CreateReplicationGroupMemberAction],
    changed: list[str],
) -> None:
    present = () if schema.replication is None else schema.replication.regions
    names = [*(member.region_name for member in created), *changed]
    if engine.region in names:
        raise ValidationException(_LOCAL_REGION)
    if len(set(names)) < len(names):
        raise ValidationException("One or more replicas are updated more than once")
    if not set(changed) <= set(present):
        raise ValidationException(_NOT_PART)
    for member in created:
        target = engine.open_region(member.region_name)
        if target.catalog.find(schema.name) is not None:
            raise ValidationException(
                f"Failed to create a the new replica of table with name: '{schema.name}' "
                "because one or more replicas already existed as tables."
            )
    is_scaled = schema.billing == "PAY_PER_REQUEST" or "Write:" in schema.scaling
    if created and not is_scaled:
        raise ValidationException(
            "Table write capacity should either be Pay-Per-Request or AutoScaled."
        )


def _check_indexes(schema: TableSchema, members: list[ReplicaSettings]) -> None:
    known = {index.name for index in schema.indexes if index.kind == "global"}
    for member in members:
        for index in member.global_secondary_indexes or ():
            if index.index_name not in known:
                raise ValidationException(
                    f"The table does not have the specified index: {index.index_name}"
                )


def _group_after(
    engine: Engine,
    schema: TableSchema,
    request: UpdateTable,
    created: list[CreateReplicationGroupMemberAction],
    deleted: list[str],
) -> Replication:
    """The group after the update; checks what its consistency mode allows."""
    group = schema.replication
    is_new = group is None
    if group is None:
        consistency = request.multi_region_consistency or "EVENTUAL"
        group = Replication(
            CURRENT, (engine.region,), round(engine.clock.now(), 3), consistency=consistency
        )
    elif request.multi_region_consistency not in (None, group.consistency):
        raise ValidationException(
            f"The consistency mode of table {schema.name} cannot be changed: "
            f"it is {group.consistency}"
        )
    regions = [region for region in group.regions if region not in deleted]
    regions += [member.region_name for member in created]
    witnesses = list(group.witnesses)
    for each in request.global_table_witness_updates or ():
        if each.create is not None:
            witnesses.append(each.create.region_name)
        if each.delete is not None:
            if each.delete.region_name not in witnesses:
                raise ValidationException(_NOT_PART)
            witnesses.remove(each.delete.region_name)
    if group.consistency == "STRONG":
        _check_strong(engine, schema, regions, witnesses, is_new=is_new)
    elif witnesses:
        raise ValidationException("A witness needs MultiRegionConsistency STRONG")
    overrides = {name: value for name, value in group.overrides.items() if name in regions}
    return msgspec.structs.replace(
        group, regions=tuple(regions), witnesses=tuple(witnesses), overrides=overrides
    )


def _check_strong(
    engine: Engine, schema: TableSchema, regions: list[str], witnesses: list[str], *, is_new: bool
) -> None:
    places = {*regions, *witnesses}
    if len(places) < len(regions) + len(witnesses):
        raise ValidationException("A region cannot have both a replica and a witness")
    is_ended = len(regions) == 1 and not witnesses
    if not is_ended and (len(places) != _STRONG_REGIONS or len(regions) == 1):
        raise ValidationException(
            "A table with MultiRegionConsistency STRONG must have three replicas, "
            f"or two replicas and a witness; this would leave {len(regions)} and {len(witnesses)}"
        )
    if not is_new:
        return
    if engine.counts.of(schema.tree)[0]:
        raise ValidationException(
            "A table must be empty to become a replica with MultiRegionConsistency STRONG"
        )
    if schema.ttl is not None or any(index.kind == "local" for index in schema.indexes):
        raise ValidationException(
            "MultiRegionConsistency STRONG supports neither time to live nor local indexes"
        )


def _with_stream(engine: Engine, schema: TableSchema) -> TableSchema:
    """The table with the stream that replicas need; the caller saves it."""
    if schema.stream is None or not schema.stream.shards:
        return streams.enable(engine, schema, "NEW_AND_OLD_IMAGES")
    if schema.stream.view != "NEW_AND_OLD_IMAGES":
        raise ValidationException(
            f"Table {schema.name} must have a stream with new and old images to have replicas"
        )
    return schema


def replica_of(engine: Engine, schema: TableSchema) -> TableSchema:
    """The schema of a new replica, without anything that belongs to a single region."""
    return msgspec.structs.replace(
        schema,
        id=str(uuid.uuid4()),
        created=round(engine.clock.now(), 3),
        deletion_protection=False,
        history=None,
        recovery=None,
        restored=None,
        policy=None,
        loading=None,
        kinesis=(),
        insights={},
        tags={},
    )


def regroup(engine: Engine, schema: TableSchema, group: Replication) -> TableSchema:
    """Record a changed group in all its regions that have the table. A group of one region ends."""
    for target, replica in others(engine, msgspec.structs.replace(schema, replication=group)):
        _regroup_one(target, replica, group)
    return _regroup_one(engine, schema, group)


def _regroup_one(engine: Engine, schema: TableSchema, group: Replication) -> TableSchema:
    present = schema.replication
    own: Replication
    if len(group.regions) == 1 and group.version == CURRENT:
        schema = msgspec.structs.replace(schema, replication=None)
    elif present is None:
        own = replication.own_trees(engine, group)
        for tree in (own.stamps, own.outbox):
            engine.store.create_tree(tree)
        schema = msgspec.structs.replace(schema, replication=own)
    else:
        own = msgspec.structs.replace(group, stamps=present.stamps, outbox=present.outbox)
        schema = msgspec.structs.replace(schema, replication=own)
    with engine.writing:
        engine.catalog.save(schema)
        if present is not None and schema.replication is None:
            backfill.drop(engine, present.stamps)
            backfill.drop(engine, present.outbox)
    return schema


def end_membership(engine: Engine, schema: TableSchema) -> None:
    """End a table's membership in a group; the table stays in its region."""
    group = schema.replication
    assert group is not None
    with engine.writing:
        engine.catalog.save(msgspec.structs.replace(schema, replication=None))
        backfill.drop(engine, group.stamps)
        backfill.drop(engine, group.outbox)


def leave_group(engine: Engine, schema: TableSchema) -> None:
    """Let the group of a removed table continue in the other regions."""
    if schema.replication is not None:
        kept = tuple(name for name in schema.replication.regions if name != engine.region)
        left = msgspec.structs.replace(schema.replication, regions=kept)
        for target, replica in others(engine, msgspec.structs.replace(schema, replication=left)):
            _regroup_one(target, replica, left)


# Overrides


_INDEXES: Final = "GlobalSecondaryIndexes"


def _overrides(member: ReplicaSettings) -> dict[str, Any]:
    given: dict[str, Any] = {
        "KMSMasterKeyId": member.kms_master_key_id,
        "ProvisionedThroughputOverride": _plain(member.provisioned_throughput_override),
        "OnDemandThroughputOverride": _plain(member.on_demand_throughput_override),
        _INDEXES: [_plain(index) for index in member.global_secondary_indexes or ()],
        "TableClass": member.table_class_override,
    }
    return {name: value for name, value in given.items() if value}


def _merged(before: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The overrides of a replica after more were given; those of each index are merged separately."""
    merged = {**before, **given}
    if _INDEXES in given:
        indexes = {each["IndexName"]: each for each in before.get(_INDEXES, ())}
        for each in given[_INDEXES]:
            name = each["IndexName"]
            indexes[name] = {**indexes.get(name, {}), **each}
        merged[_INDEXES] = list(indexes.values())
    return merged


def _override(engine: Engine, name: str, member: ReplicaSettings) -> None:
    """Give a replica its own settings."""
    schema = engine.catalog.tables[name].schema
    settings = dict(schema.settings)
    if member.table_class_override is not None:
        is_changed = isinstance(member, UpdateReplicationGroupMemberAction)
        changed = engine.clock.now() if is_changed else None
        settings = with_table_class(settings, member.table_class_override, changed)
    if member.kms_master_key_id is not None:
        key = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": member.kms_master_key_id}
        settings["SSESpecification"] = key
    given = {index.index_name: index for index in member.global_secondary_indexes or ()}
    indexes = tuple(
        _with_reads(index, given[index.name]) if index.name in given else index
        for index in schema.indexes
    )
    schema = msgspec.structs.replace(schema, settings=settings, indexes=indexes)
    with engine.writing:
        engine.catalog.save(_with_reads(schema, member))


def _with_reads(of: Readable, given: ReplicaSettings | ReplicaGlobalSecondaryIndex) -> Readable:
    """A table or an index with the read capacity of one region."""
    settings, throughput = of.settings, of.throughput
    most = given.on_demand_throughput_override
    if most is not None:
        limits = settings.get("OnDemandThroughput", {})
        settings = {**settings, "OnDemandThroughput": {**limits, **_plain(most)}}
    units = given.provisioned_throughput_override
    if units is not None and units.read_capacity_units is not None:
        throughput = TableThroughput(units.read_capacity_units, throughput.write)
    return msgspec.structs.replace(of, settings=settings, throughput=throughput)


def _plain(value: ApiStructure | None) -> dict[str, Any]:
    members = {} if value is None else msgspec.to_builtins(value)
    return {
        name: {key: inner for key, inner in member.items() if inner is not None}
        if isinstance(member, dict)
        else member
        for name, member in members.items()
        if member is not None
    }
