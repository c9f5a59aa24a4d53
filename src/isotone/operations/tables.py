"""CreateTable, DescribeTable, UpdateTable, DeleteTable: complete at once; refuses tables in use, and too many indexes.

Only adding an index to an existing table takes time: it is backfilled in the background.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from isotone import limits
from isotone.engine import backfill, backups, replica_log, replication, streams, views
from isotone.engine.engine import Engine
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import (
    IndexKind,
    IndexOrVector,
    IndexSchema,
    IndexStatus,
    KeyPart,
    KeySchema,
    TableSchema,
    TableThroughput,
)
from isotone.engine.table_schema import IndexProjection as ProjectionSchema
from isotone.errors import (
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from isotone.operations import replicas, vector_indexes, warm_throughput
from isotone.operations.action import ActionRule, Answer, Rules, action
from isotone.operations.descriptions import table_description, with_table_class
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import ApiStructure
from isotone.operations.resource_policies import check_policy, new_policy
from isotone.operations.table_lookup import (
    IN_USE,
    TABLE_CHANGES,
    TABLE_IS_KNOWN,
    changed_table,
    described_table,
    table_name,
)
from isotone.operations.table_requests import (
    ALL_ARE_USED,
    NEW_STREAM,
    ONE_AT_A_TIME,
    TABLE_RULES,
    UPDATE_RULES,
    AttributeDefinition,
    CreateGlobalSecondaryIndexAction,
    CreateTable,
    DeleteTable,
    DescribeTable,
    KeySchemaElement,
    Projection,
    ProvisionedThroughput,
    StreamSpecification,
    UpdateGlobalSecondaryIndexAction,
    UpdateTable,
    check_changed_stream,
    check_maximums,
    check_projected_count,
)


def _check_policy(request: CreateTable) -> None:
    if request.resource_policy is not None:
        check_policy(request.resource_policy)


def check_table_is_new(engine: Engine, name: str) -> None:
    """Check that no table has the name of a new one."""
    if engine.catalog.find(name) is not None:
        raise ResourceInUseException(f"Table already exists: {name}")


NEW_TABLE: Final[Rules] = (*TABLE_RULES, *vector_indexes.CREATED, ALL_ARE_USED)
"""The rules on the definition of a new table."""


@action(
    "CreateTable",
    before=(
        *NEW_TABLE,
        NEW_STREAM,
        ActionRule("a malformed ResourcePolicy", _check_policy),
        ActionRule(
            "an ARN that is not that of a table", lambda request: table_name(request.table_name)
        ),
    ),
    writing=(
        ActionRule(
            "a table that exists",
            lambda engine, request: check_table_is_new(engine, table_name(request.table_name)),
        ),
    ),
)
def create_table(engine: Engine, request: CreateTable) -> Answer:
    """Create a table with its indexes; it is ready when the response is sent."""
    schema = new_schema(engine, table_name(request.table_name), request)
    check_projected_count(schema.projected_count)
    if request.resource_policy is not None:
        policy = new_policy(engine, request.resource_policy)
        schema = msgspec.structs.replace(schema, policy=policy)
    if request.stream_specification is not None:
        schema = _with_stream(engine, schema, request.stream_specification)
    table = engine.catalog.save(schema)
    for tree in table.trees:
        engine.store.create_tree(tree)
    return {"TableDescription": table_description(engine, schema, "CREATING")}


@action("DescribeTable", reading=(TABLE_IS_KNOWN,))
def describe_table(engine: Engine, request: DescribeTable) -> Answer:
    """A table's keys, indexes and settings, with exact counts."""
    table = described_table(engine, request.table_name)
    return {"Table": table_description(engine, table.schema)}


# These members are missing in AWS's examples of the response.
_NOT_OF_DELETED: Final = (
    "AttributeDefinitions",
    "KeySchema",
    "CreationDateTime",
    "LocalSecondaryIndexes",
    "GlobalSecondaryIndexes",
    "WarmThroughput",
)


def _check_unprotected(engine: Engine, request: DeleteTable) -> None:
    if changed_table(engine, request.table_name).schema.deletion_protection:
        raise ValidationException(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )


@action(
    "DeleteTable",
    writing=(TABLE_CHANGES, ActionRule("a protected table", _check_unprotected)),
)
def delete_table(engine: Engine, request: DeleteTable) -> Answer:
    """Delete a table with everything in it. Its stream can be read for another day.

    With point-in-time recovery, its items remain as a system backup. Replicas in other regions stay.
    """
    table = changed_table(engine, request.table_name)
    description = table_description(engine, table.schema, "DELETING")
    for member in _NOT_OF_DELETED:
        description.pop(member, None)
    replication.deliver_all(engine, table.name)
    _remove(engine, table)
    replicas.leave_group(engine, table.schema)
    return {"TableDescription": description}


def _remove(engine: Engine, table: StoredTable) -> None:
    """Remove a table and its trees from one region, unless a backup or a new replica is reading it."""
    if replica_log.copying(engine, table):
        raise ResourceInUseException(f"{IN_USE}Table is being updated: {table.name}")
    if views.is_read(engine, table.tree):
        raise ResourceInUseException(f"{IN_USE}Table is being backed up: {table.name}")
    with engine.writing:
        if table.stream is not None:
            streams.disable(engine, table.schema)
        engine.catalog.remove(table.name)
        trees = table.trees
        if table.schema.recovery is not None:
            backups.keep_deleted(engine, table)
            trees.remove(table.tree)
        for tree in trees:
            backfill.drop(engine, tree)


def _check_maximums(engine: Engine, request: UpdateTable) -> None:
    schema = changed_table(engine, request.table_name).schema
    provisioned = (request.billing_mode or schema.billing) == "PROVISIONED"
    check_maximums(request.on_demand_throughput, provisioned)
    for each in request.global_secondary_index_updates or ():
        index = each.create or each.update
        if index is not None:
            check_maximums(index.on_demand_throughput, provisioned, f"index {index.index_name}")


@action(
    "UpdateTable",
    before=(*UPDATE_RULES, *vector_indexes.UPDATED),
    writing=(
        TABLE_CHANGES,
        ActionRule(
            "OnDemandThroughput of a provisioned table or index, or out of bounds",
            _check_maximums,
        ),
    ),
)
def update_table(engine: Engine, request: UpdateTable) -> Answer:
    """Change capacity, billing and protection; add or drop global indexes while the table is in use."""
    before = changed_table(engine, request.table_name).schema
    shown = _update(engine, before, request)
    if replicas.follows(before):
        for region, replica in replicas.others(engine, before):
            with region.writing:
                _update(region, replica, replicas.followed(request))
    if replicas.are_updated(request):
        after = replicas.update(engine, engine.catalog.tables[before.name].schema, request)
        for region in map(engine.regions.__getitem__, replicas.deleted_regions(request)):
            _remove(region, region.catalog.tables[before.name])
        shown = table_description(engine, after, "UPDATING")
    return {"TableDescription": shown}


def _update(engine: Engine, before: TableSchema, request: UpdateTable) -> dict[str, Any]:
    """Change one table, and describe it as it is while it changes."""
    after = _with_settings(engine, before, request)
    after = _with_throughput(engine, after, request)
    after = warm_throughput.kept(before, _with_indexes(engine, after, request))
    if request.stream_specification is not None:
        after = _with_changed_stream(engine, after, request.stream_specification)
    engine.catalog.save(after)
    old_trees, new_trees = before.index_trees, after.index_trees
    for tree in sorted(new_trees - old_trees):
        backfill.begin(engine, after.name, tree)
    shown = table_description(engine, _with_leaving(before, after), "UPDATING")
    for tree in sorted(old_trees - new_trees):
        backfill.drop(engine, tree)
    return shown


def new_schema(engine: Engine, name: str, request: CreateTable) -> TableSchema:
    """The schema of a new table, whose trees the caller creates."""
    types = _attribute_types(request.attribute_definitions)
    schema = TableSchema(
        name=name,
        id=str(uuid.uuid4()),
        created=round(engine.clock.now(), 3),
        keys=_key_schema(request.key_schema, types),
        tree=engine.catalog.new_tree("t"),
        attributes=types,
        indexes=_indexes(engine, request, types),
        vectors=tuple(
            vector_indexes.vector_schema(engine, index, types)
            for index in request.vector_indexes or ()
        ),
        billing=request.billing_mode or "PROVISIONED",
        throughput=_throughput(request.provisioned_throughput),
        deletion_protection=bool(request.deletion_protection_enabled),
        tags={tag.key: tag.value for tag in request.tags or ()},
        settings=_settings(request, _TABLE_SETTINGS),
    )
    warm_throughput.check_new(schema)
    for index in schema.indexes:
        warm_throughput.check_new(index)
    return schema


def _indexes(
    engine: Engine, request: CreateTable, types: dict[str, str]
) -> tuple[IndexSchema, ...]:
    local = request.local_secondary_indexes or ()
    global_ = request.global_secondary_indexes or ()
    return (
        *(_index_schema(engine, index, "local", types) for index in local),
        *(_index_schema(engine, index, "global", types) for index in global_),
    )


# Convert the members of a request to the catalog's structures


class _IndexDefinition(Protocol):
    """The members that the three requests that define an index share."""

    @property
    def index_name(self) -> str: ...
    @property
    def key_schema(self) -> list[KeySchemaElement]: ...
    @property
    def projection(self) -> Projection: ...


def _attribute_types(definitions: list[AttributeDefinition] | None) -> dict[str, str]:
    return {item.attribute_name: item.attribute_type for item in definitions or ()}


def _key_schema(elements: list[KeySchemaElement], types: Mapping[str, str]) -> KeySchema:
    """The key of these elements, which have been validated."""

    def parts(kind: str) -> tuple[KeyPart, ...]:
        return tuple(
            KeyPart(element.attribute_name, types[element.attribute_name])  # type: ignore[arg-type] # one of S, N, B
            for element in elements
            if element.key_type == kind
        )

    return KeySchema(parts("HASH"), parts("RANGE"))


def _index_schema(
    engine: Engine,
    definition: _IndexDefinition,
    kind: IndexKind,
    types: Mapping[str, str],
    status: IndexStatus = "ACTIVE",
) -> IndexSchema:
    """A new index with a new tree name; the caller creates the tree."""
    wanted = definition.projection
    return IndexSchema(
        name=definition.index_name,
        kind=kind,
        keys=_key_schema(definition.key_schema, types),
        projection=ProjectionSchema(
            wanted.projection_type or "ALL", tuple(wanted.non_key_attributes or ())
        ),
        tree=engine.catalog.new_tree("i"),
        status=status,
        throughput=_throughput(getattr(definition, "provisioned_throughput", None)),
        settings=_settings(definition, ("on_demand_throughput", "warm_throughput")),
    )


def _with_stream(engine: Engine, schema: TableSchema, wanted: StreamSpecification) -> TableSchema:
    """The table with its stream enabled or disabled; the caller saves it."""
    if wanted.stream_enabled:
        assert wanted.stream_view_type is not None  # the rules require it
        return streams.enable(engine, schema, wanted.stream_view_type)
    return schema if schema.stream is None else streams.disable(engine, schema)


def _throughput(wanted: ProvisionedThroughput | None) -> TableThroughput:
    if wanted is None:
        return TableThroughput()
    return TableThroughput(wanted.read_capacity_units, wanted.write_capacity_units)


_TABLE_SETTINGS = (
    "sse_specification",
    "table_class",
    "on_demand_throughput",
    "warm_throughput",
)


def _settings(request: Any, members: tuple[str, ...]) -> dict[str, Any]:
    """Members that are stored and described unchanged, under AWS's names."""
    names = dict(zip(request.__struct_fields__, request.__struct_encode_fields__, strict=True))
    given = {names[name]: getattr(request, name) for name in members if name in names}
    return {name: plain(value) for name, value in given.items() if value is not None}


def plain(value: Any) -> Any:
    """A structure as a JSON document, without absent members."""
    if not isinstance(value, ApiStructure):
        return value
    members = msgspec.to_builtins(value)
    return {name: member for name, member in members.items() if member is not None}


# The steps of UpdateTable, in the order in which the service tells their faults


def _with_settings(engine: Engine, schema: TableSchema, request: UpdateTable) -> TableSchema:
    changed = _settings(request, _TABLE_SETTINGS)
    protection = request.deletion_protection_enabled
    settings = {**schema.settings, **changed}
    if request.table_class is not None:
        settings = with_table_class(settings, request.table_class, engine.clock.now())
    return msgspec.structs.replace(
        schema,
        settings=settings,
        deletion_protection=schema.deletion_protection if protection is None else protection,
    )


def _with_throughput(engine: Engine, schema: TableSchema, request: UpdateTable) -> TableSchema:
    now = round(engine.clock.now(), 3)
    mode = request.billing_mode or schema.billing
    if mode == "PAY_PER_REQUEST":
        if request.provisioned_throughput is not None:
            raise ValidationException(
                f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
                "when BillingMode is PAY_PER_REQUEST"
            )
        if schema.billing == mode:
            return schema
        indexes = tuple(
            msgspec.structs.replace(index, throughput=TableThroughput()) for index in schema.indexes
        )
        return msgspec.structs.replace(
            schema, billing=mode, throughput=TableThroughput(), indexes=indexes, on_demand_since=now
        )
    if request.provisioned_throughput is None:
        return schema
    changed = _changed(schema.throughput, request.provisioned_throughput, now, "table")
    since = schema.on_demand_since
    if schema.billing == "PAY_PER_REQUEST":
        since = since or schema.created
    return msgspec.structs.replace(schema, billing=mode, throughput=changed, on_demand_since=since)


def _changed(
    before: TableThroughput, wanted: ProvisionedThroughput, now: float, what: str
) -> TableThroughput:
    after = _throughput(wanted)
    if (before.read, before.write) == (after.read, after.write):
        raise ValidationException(
            f"The provisioned throughput for the {what} will not change. The requested value equals "
            f"the current value. Current ReadCapacityUnits provisioned for the {what}: {before.read}. "
            f"Requested ReadCapacityUnits: {after.read}. Current WriteCapacityUnits provisioned for "
            f"the {what}: {before.write}. Requested WriteCapacityUnits: {after.write}. Refer to the "
            "Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
        )
    lower = after.read < before.read or after.write < before.write
    higher = after.read > before.read or after.write > before.write
    return TableThroughput(
        after.read,
        after.write,
        now if higher else before.increased,
        now if lower else before.decreased,
        before.decreases_today + lower,
    )


def _with_indexes(engine: Engine, schema: TableSchema, request: UpdateTable) -> TableSchema:
    types = _types(schema, request)
    before = schema
    for update in request.global_secondary_index_updates or ():
        if update.create is not None:
            schema = _with_new_index(engine, schema, update.create, types)
        elif update.delete is not None:
            schema = _without_index(schema, update.delete.index_name)
        elif update.update is not None:
            schema = _with_changed_index(engine, schema, update.update)
    _check_counts(schema)
    _check_capacity(before, schema)
    schema = vector_indexes.updated(engine, schema, request, types)
    check_projected_count(schema.projected_count)
    used = schema.used_attributes
    return msgspec.structs.replace(
        schema, attributes={name: kind for name, kind in types.items() if name in used}
    )


def _with_changed_stream(
    engine: Engine, schema: TableSchema, wanted: StreamSpecification
) -> TableSchema:
    check_changed_stream(wanted)
    enabled = schema.stream is not None and bool(schema.stream.shards)
    if wanted.stream_enabled and enabled:
        raise ValidationException(f"Table already has an enabled stream: TableName: {schema.name}")
    if not wanted.stream_enabled and not enabled:
        raise ValidationException(f"Table has no stream to disable: TableName: {schema.name}")
    replicas.check_stream(schema, wanted.stream_enabled)
    return _with_stream(engine, schema, wanted)


def _types(schema: TableSchema, request: UpdateTable) -> dict[str, str]:
    """The types of all key attributes; none may be redefined with another type."""
    wanted = _attribute_types(request.attribute_definitions)
    types = {**wanted, **schema.attributes}
    if any(types[name] != kind for name, kind in wanted.items()):
        raise ValidationException(
            "invalid attribute, SchemaElement redefined should be of same type as previously defined"
        )
    return {**schema.attributes, **wanted}


def _check_counts(schema: TableSchema) -> None:
    """Refuse more global indexes than a table may have."""
    if sum(index.kind == "global" for index in schema.indexes) > limits.GLOBAL_INDEXES:
        raise LimitExceededException("Number of global secondary indexes exceeds per-table limit")


def _check_capacity(before: TableSchema, after: TableSchema) -> None:
    """Require throughput for a global index on a provisioned table, and refuse it on any other."""
    provisioned = after.billing == "PROVISIONED"
    for index in after.indexes:
        if index.kind == "local" or bool(index.throughput.read) == provisioned:
            continue
        if not provisioned:
            raise ValidationException(
                f"{INVALID}ProvisionedThroughput should not be specified for index: {index.name} "
                "when BillingMode is PAY_PER_REQUEST"
            )
        verb = "is not" if before.index(index.name) is None else "must be"
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput {verb} specified for index: {index.name}"
        )


def _with_new_index(
    engine: Engine,
    schema: TableSchema,
    wanted: CreateGlobalSecondaryIndexAction,
    types: dict[str, str],
) -> TableSchema:
    if schema.index(wanted.index_name) or schema.vector_index(wanted.index_name):
        raise ValidationException("Attempting to create an index which already exists")
    if schema.has_filling_index:
        raise LimitExceededException(ONE_AT_A_TIME)
    index = _index_schema(engine, wanted, "global", types, "CREATING")
    return msgspec.structs.replace(schema, indexes=(*schema.indexes, index))


def _without_index(schema: TableSchema, name: str) -> TableSchema:
    _global_index(schema, name)
    kept = tuple(index for index in schema.indexes if index.name != name)
    return msgspec.structs.replace(schema, indexes=kept)


def _with_changed_index(
    engine: Engine, schema: TableSchema, wanted: UpdateGlobalSecondaryIndexAction
) -> TableSchema:
    before = _global_index(schema, wanted.index_name)
    changes: dict[str, Any] = {
        "settings": {
            **before.settings,
            **_settings(wanted, ("on_demand_throughput", "warm_throughput")),
        }
    }
    if wanted.provisioned_throughput is not None:
        now = round(engine.clock.now(), 3)
        what = f"index {wanted.index_name}"
        changes["throughput"] = _changed(
            before.throughput, wanted.provisioned_throughput, now, what
        )
    after = msgspec.structs.replace(before, **changes)
    return msgspec.structs.replace(
        schema, indexes=tuple(after if index is before else index for index in schema.indexes)
    )


def _global_index(schema: TableSchema, name: str) -> IndexSchema:
    index = schema.index(name)
    if index is None or index.kind != "global":
        raise ResourceNotFoundException("Requested resource not found")
    return index


def _with_leaving(before: TableSchema, after: TableSchema) -> TableSchema:
    """The table in the response, which includes a dropped index for the last time."""
    kept = after.index_trees
    indexes = [_leaving(index) for index in before.indexes if index.tree not in kept]
    vectors = [_leaving(index) for index in before.vectors if index.tree not in kept]
    return msgspec.structs.replace(
        after, indexes=(*after.indexes, *indexes), vectors=(*after.vectors, *vectors)
    )


def _leaving(index: IndexOrVector) -> IndexOrVector:
    return msgspec.structs.replace(index, status="DELETING")
