"""The actions on global tables of version 2017.11.29: equal, empty tables of several regions, joined into a group.

Such a table exists in each region before it joins, and stays there when it leaves. The attributes `aws:rep:deleting`,
`aws:rep:updatetime` and `aws:rep:updateregion` of its items are visible (`engine/replica_log.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from isotone.engine import replication
from isotone.engine.engine import Engine
from isotone.engine.replica_log import LEGACY
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import IndexSchema, KeySchema, Replication, TableSchema
from isotone.errors import (
    GlobalTableAlreadyExistsException,
    GlobalTableNotFoundException,
    ReplicaAlreadyExistsException,
    ReplicaNotFoundException,
    TableNotFoundException,
    ValidationException,
)
from isotone.operations import replicas
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import ApiStructure, EntityName, PositiveInteger
from isotone.operations.table_lookup import partition_of
from isotone.operations.table_requests import RegionAction


class Replica(ApiStructure, frozen=True):
    """A region of a global table."""

    region_name: str | None = None


class CreateGlobalTable(ApiStructure, frozen=True):
    """Join tables of several regions."""

    global_table_name: EntityName
    replication_group: list[Replica]


class ReplicaUpdate(ApiStructure, frozen=True):
    """A region that joins or leaves: exactly one of the members is present."""

    create: RegionAction | None = None
    delete: RegionAction | None = None


class UpdateGlobalTable(ApiStructure, frozen=True):
    """Let regions join and leave a global table."""

    global_table_name: EntityName
    replica_updates: list[ReplicaUpdate]


class DescribeGlobalTable(ApiStructure, frozen=True):
    """Ask for the regions of a global table."""

    global_table_name: EntityName


class ListGlobalTables(ApiStructure, frozen=True):
    """Ask for all global tables, or those of a region, a page at a time."""

    exclusive_start_global_table_name: EntityName | None = None
    limit: PositiveInteger | None = None
    region_name: str | None = None


_PAGE: Final = 100


Member: TypeAlias = tuple[Engine, StoredTable]


def _check_regions(request: CreateGlobalTable) -> None:
    regions = [replica.region_name for replica in request.replication_group]
    if not regions or None in regions or len(set(regions)) < len(regions):
        raise ValidationException(
            f"{INVALID}ReplicationGroup must have each RegionName once, and at least one"
        )


def _members(engine: Engine, request: CreateGlobalTable) -> list[Member]:
    return [
        _member(engine, request.global_table_name, replica.region_name or "")
        for replica in request.replication_group
    ]


def _check_free(engine: Engine, request: CreateGlobalTable) -> None:
    for _, table in _members(engine, request):
        if table.schema.replication is not None:
            raise GlobalTableAlreadyExistsException(
                f"Global table with name: '{request.global_table_name}' already exists."
            )


def _check_equal(engine: Engine, request: CreateGlobalTable) -> None:
    members = _members(engine, request)
    for member in members:
        _check_joining(*member, members[0][1].schema)


_UNFIT: Final = "each region in turn: a table that is not empty, without such a stream, or with other keys or indexes"


@action(
    "CreateGlobalTable",
    before=(ActionRule("no region, or one twice", _check_regions),),
    writing=(
        ActionRule("a region without the table", _members),
        ActionRule("a table that is in a global table", _check_free),
        ActionRule(_UNFIT, _check_equal),
    ),
)
def create_global_table(engine: Engine, request: CreateGlobalTable) -> Answer:
    """Join the tables that have the same name in some regions; they must be equal and empty."""
    members = _members(engine, request)
    created = round(engine.clock.now(), 3)
    group = Replication(LEGACY, tuple(member.region for member, _ in members), created)
    first, table = members[0]
    replicas.regroup(first, table.schema, group)
    name = request.global_table_name
    return {"GlobalTableDescription": _description(engine, name, group, "CREATING")}


def _check_updates(request: UpdateGlobalTable) -> None:
    if not request.replica_updates:
        raise ValidationException(f"{INVALID}ReplicaUpdates must not be empty")


def _group(engine: Engine, name: str) -> Replication:
    group = find_group(engine, name)[1].replication
    assert group is not None
    return group


def _joining_and_leaving(
    engine: Engine, request: UpdateGlobalTable
) -> tuple[list[Member], list[str]]:
    """The tables that join, and the regions that leave."""
    name = request.global_table_name
    group = _group(engine, name)
    joining, leaving = [], []
    for update in request.replica_updates:
        if (update.create is None) == (update.delete is None):
            raise ValidationException(
                f"{INVALID}Each of ReplicaUpdates must have one of Create and Delete"
            )
        if update.create is not None:
            region = update.create.region_name
            if region in group.regions:
                raise ReplicaAlreadyExistsException(
                    f"Global table with name: '{name}' already has a replica in '{region}'."
                )
            joining.append(_member(engine, name, region))
        if update.delete is not None:
            region = update.delete.region_name
            if region not in group.regions:
                raise ReplicaNotFoundException(
                    f"Global table with name: '{name}' has no replica in '{region}'."
                )
            leaving.append(region)
    return joining, leaving


def _check_joined(engine: Engine, request: UpdateGlobalTable) -> None:
    _, schema = find_group(engine, request.global_table_name)
    for joined in _joining_and_leaving(engine, request)[0]:
        _check_joining(*joined, schema)


GROUP_EXISTS: Final = ActionRule(
    "no such global table",
    lambda engine, request: find_group(engine, request.global_table_name),
)
"""The rule on the global table of a request."""


@action(
    "UpdateGlobalTable",
    before=(ActionRule("no update", _check_updates),),
    writing=(
        GROUP_EXISTS,
        ActionRule(
            "each update in turn: neither Create nor Delete, or both; a region that is there, or is not",
            _joining_and_leaving,
        ),
        ActionRule(_UNFIT, _check_joined),
    ),
)
def update_global_table(engine: Engine, request: UpdateGlobalTable) -> Answer:
    """Let regions join and leave; a table that leaves stays in its region, alone."""
    name = request.global_table_name
    group = _group(engine, name)
    joining, leaving = _joining_and_leaving(engine, request)
    kept = [region for region in group.regions if region not in leaving]
    kept += [joined.region for joined, _ in joining]
    after = msgspec.structs.replace(group, regions=tuple(kept))
    replication.deliver_all(engine, name)
    for region in leaving:
        gone, table = _member(engine, name, region)
        replicas.end_membership(gone, table.schema)
    if kept:
        member = engine.regions[kept[0]]
        replicas.regroup(member, member.catalog.tables[name].schema, after)
    return {"GlobalTableDescription": _description(engine, name, after, "UPDATING")}


@action("DescribeGlobalTable", reading=(GROUP_EXISTS,))
def describe_global_table(engine: Engine, request: DescribeGlobalTable) -> Answer:
    """The regions of a global table."""
    name = request.global_table_name
    described = _description(engine, name, _group(engine, name), "ACTIVE")
    return {"GlobalTableDescription": described}


@action("ListGlobalTables")
def list_global_tables(engine: Engine, request: ListGlobalTables) -> Answer:
    """The names and regions of the global tables in order, a page at a time."""
    with engine.reading:
        groups = dict(_groups(engine))
    names = sorted(
        name
        for name, group in groups.items()
        if request.region_name is None or request.region_name in group.regions
    )
    first = 0
    if request.exclusive_start_global_table_name is not None:
        first = bisect_right(names, request.exclusive_start_global_table_name)
    page = names[first : first + (request.limit or _PAGE)]
    answer: dict[str, Any] = {
        "GlobalTables": [
            {
                "GlobalTableName": name,
                "ReplicationGroup": [{"RegionName": region} for region in groups[name].regions],
            }
            for name in page
        ]
    }
    if page and page[-1] != names[-1]:
        answer["LastEvaluatedGlobalTableName"] = page[-1]
    return answer


def find_group(engine: Engine, name: str) -> tuple[Engine, TableSchema]:
    """A replica of a global table: that of the request's region, or of any other."""
    for member in (engine, *engine.regions.values()):
        table = member.catalog.tables.get(name)
        if table is not None and _is_legacy(table.schema):
            return member, table.schema
    raise GlobalTableNotFoundException(f"Global table with name: '{name}' does not exist.")


def _groups(engine: Engine) -> Iterator[tuple[str, Replication]]:
    for member in engine.regions.values():
        for table in member.catalog:
            group = table.schema.replication
            if group is not None and group.version == LEGACY:
                yield table.name, group


def _is_legacy(schema: TableSchema) -> bool:
    return schema.replication is not None and schema.replication.version == LEGACY


def _member(engine: Engine, name: str, region: str) -> tuple[Engine, StoredTable]:
    """The table of a region; without a region of its own, a region has no table that could be a replica."""
    member = engine.regions.get(region)
    table = None if member is None else member.catalog.tables.get(name)
    if member is None or table is None:
        raise TableNotFoundException(f"Table not found: {name} in {region}")
    return member, table


def _check_joining(engine: Engine, table: StoredTable, model: TableSchema) -> None:
    """Check that a table can join the group of `model`."""
    schema = table.schema
    if engine.counts.of(schema.tree)[0]:
        raise _unfit(engine, schema, "must be empty")
    if schema.stream is None or not schema.stream.shards:
        raise _unfit(engine, schema, "must have a stream")
    if schema.stream.view != "NEW_AND_OLD_IMAGES":
        raise _unfit(engine, schema, "must have a stream with new and old images")
    if schema.keys != model.keys:
        raise _unfit(engine, schema, "must have the key schema of the other replicas")
    if _keys_of(schema.indexes) != _keys_of(model.indexes):
        raise _unfit(engine, schema, "must have the indexes of the other replicas")


def _keys_of(indexes: tuple[IndexSchema, ...]) -> dict[str, tuple[str, KeySchema]]:
    return {index.name: (index.kind, index.keys) for index in indexes}


def _unfit(engine: Engine, schema: TableSchema, rule: str) -> ValidationException:
    return ValidationException(
        f"{INVALID}Table {schema.name} in {engine.region} {rule} to be a replica"
    )


def global_table_arn(engine: Engine, name: str) -> str:
    """The ARN of a global table, which belongs to no region."""
    return f"arn:{partition_of(engine.region)}:dynamodb::{engine.account}:global-table/{name}"


def _description(engine: Engine, name: str, group: Replication, status: str) -> dict[str, Any]:
    return {
        "ReplicationGroup": [{"RegionName": region} for region in group.regions],
        "GlobalTableArn": global_table_arn(engine, name),
        "CreationDateTime": group.created,
        "GlobalTableStatus": status,
        "GlobalTableName": name,
    }
