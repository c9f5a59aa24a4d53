"""UpdateTable: capacity, billing, protection, and global indexes added or dropped while work goes on."""

from __future__ import annotations

from typing import Any

import msgspec

from isotone import limits
from isotone.engine import backfill
from isotone.engine.engine import Engine
from isotone.engine.schema import IndexSchema, TableSchema, Throughput
from isotone.errors import LimitExceededException, ResourceNotFoundException, ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.definitions import (
    TABLE_SETTINGS,
    attribute_types,
    index_schema,
    settings,
    throughput,
    with_stream,
)
from isotone.operations.describe import table_description
from isotone.operations.rules.tables import check_update_table
from isotone.operations.shapes import tables as shapes
from isotone.operations.shapes.tables import UpdateTable
from isotone.operations.tables import described_table

_INVALID = "One or more parameter values were invalid: "


@action("UpdateTable")
def run(engine: Engine, request: UpdateTable) -> Answer:
    check_update_table(request)
    with engine.writing:
        before = described_table(engine, request.table_name).schema
        after = _with_settings(engine, before, request)
        after = _with_throughput(engine, after, request)
        after = _with_indexes(engine, after, request)
        if request.stream_specification is not None:
            after = with_stream(engine, after, request.stream_specification)
        engine.catalog.save(after)
        _begin_filling(engine, before, after)
        shown = table_description(engine, _with_leaving(before, after), "UPDATING")
        _drop_trees(engine, before, after)
        return {"TableDescription": shown}


def _with_settings(engine: Engine, schema: TableSchema, request: UpdateTable) -> TableSchema:
    changed = settings(request, TABLE_SETTINGS)
    if request.stream_specification is not None:
        _check_stream(schema, request.stream_specification.stream_enabled)
    protection = request.deletion_protection_enabled
    return msgspec.structs.replace(
        schema,
        settings={**schema.settings, **changed},
        deletion_protection=schema.deletion_protection if protection is None else protection,
    )


def _check_stream(schema: TableSchema, enable: bool) -> None:
    enabled = schema.stream is not None and bool(schema.stream.shards)
    if enable and enabled:
        raise ValidationException(f"Table already has an enabled stream: TableName: {schema.name}")
    if not enable and not enabled:
        raise ValidationException("Table has no stream to disable: TableName: " + schema.name)


def _with_throughput(engine: Engine, schema: TableSchema, request: UpdateTable) -> TableSchema:
    now = round(engine.clock.now(), 3)
    mode = request.billing_mode or schema.billing
    if mode == "PAY_PER_REQUEST":
        if request.provisioned_throughput is not None:
            raise ValidationException(
                f"{_INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
                "when BillingMode is PAY_PER_REQUEST"
            )
        if schema.billing == mode:
            return schema
        indexes = tuple(
            msgspec.structs.replace(index, throughput=Throughput()) for index in schema.indexes
        )
        return msgspec.structs.replace(
            schema, billing=mode, throughput=Throughput(), indexes=indexes, on_demand_since=now
        )
    if request.provisioned_throughput is None:
        return schema
    changed = _changed(schema.throughput, request.provisioned_throughput, now, "table")
    since = schema.on_demand_since
    if schema.billing == "PAY_PER_REQUEST":
        since = since or schema.created
    return msgspec.structs.replace(schema, billing=mode, throughput=changed, on_demand_since=since)


def _changed(
    before: Throughput, wanted: shapes.ProvisionedThroughput, now: float, what: str
) -> Throughput:
    after = throughput(wanted)
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
    return Throughput(
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
    keys = [schema.keys, *(index.keys for index in schema.indexes)]
    used = {name for key in keys for name in key.names}
    return msgspec.structs.replace(
        schema, attributes={name: kind for name, kind in types.items() if name in used}
    )


def _types(schema: TableSchema, request: UpdateTable) -> dict[str, str]:
    """The types of all attributes that may be keys; one that is defined cannot be defined otherwise."""
    wanted = attribute_types(request.attribute_definitions)
    types = {**wanted, **schema.attributes}
    if any(types[name] != kind for name, kind in wanted.items()):
        raise ValidationException(
            "invalid attribute, SchemaElement redefined should be of same type as previously defined"
        )
    return {**schema.attributes, **wanted}


def _check_counts(schema: TableSchema) -> None:
    """Refuse more global indexes, or more attributes named in projections, than a table may have."""
    if sum(index.kind == "global" for index in schema.indexes) > limits.GLOBAL_INDEXES:
        raise LimitExceededException("Number of global secondary indexes exceeds per-table limit")
    named = sum(len(index.projection.names) for index in schema.indexes)
    if named > limits.PROJECTED_NAMES:
        raise ValidationException(
            f"{_INVALID}Number of NonKeyAttributes over all indexes exceeds "
            f"per-table limit of {limits.PROJECTED_NAMES}"
        )


def _check_capacity(before: TableSchema, after: TableSchema) -> None:
    """Refuse a global index without throughput on a provisioned table, or with some on any other."""
    provisioned = after.billing == "PROVISIONED"
    for index in after.indexes:
        if index.kind == "local" or bool(index.throughput.read) == provisioned:
            continue
        if not provisioned:
            raise ValidationException(
                f"{_INVALID}ProvisionedThroughput should not be specified for index: {index.name} "
                "when BillingMode is PAY_PER_REQUEST"
            )
        verb = "is not" if before.index(index.name) is None else "must be"
        raise ValidationException(
            f"{_INVALID}ProvisionedThroughput {verb} specified for index: {index.name}"
        )


def _with_new_index(
    engine: Engine,
    schema: TableSchema,
    wanted: shapes.CreateGlobalSecondaryIndexAction,
    types: dict[str, str],
) -> TableSchema:
    taken = schema.index(wanted.index_name)
    if taken is not None:
        raise ValidationException(
            f"{_INVALID}Duplicate index name: {wanted.index_name}"
            if taken.kind == "local"
            else "Attempting to create an index which already exists"
        )
    if any(index.status == "CREATING" for index in schema.indexes):
        raise LimitExceededException(
            "Subscriber limit exceeded: Only 1 online index can be created or deleted "
            "simultaneously per table"
        )
    index = index_schema(engine, wanted, "global", types, "CREATING")
    return msgspec.structs.replace(schema, indexes=(*schema.indexes, index))


def _without_index(schema: TableSchema, name: str) -> TableSchema:
    _global_index(schema, name)
    kept = tuple(index for index in schema.indexes if index.name != name)
    return msgspec.structs.replace(schema, indexes=kept)


def _with_changed_index(
    engine: Engine, schema: TableSchema, wanted: shapes.UpdateGlobalSecondaryIndexAction
) -> TableSchema:
    before = _global_index(schema, wanted.index_name)
    changes: dict[str, Any] = {
        "settings": {
            **before.settings,
            **settings(wanted, ("on_demand_throughput", "warm_throughput")),
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
    """The table as the answer shows it: a dropped index is there for the last time."""
    kept = {index.tree for index in after.indexes}
    leaving = [
        msgspec.structs.replace(index, status="DELETING")
        for index in before.indexes
        if index.tree not in kept
    ]
    return msgspec.structs.replace(after, indexes=(*after.indexes, *leaving))


def _begin_filling(engine: Engine, before: TableSchema, after: TableSchema) -> None:
    """Make the trees of new indexes, to be filled by and by."""
    for tree in sorted(_trees(after) - _trees(before)):
        backfill.begin(engine, after.name, tree)


def _drop_trees(engine: Engine, before: TableSchema, after: TableSchema) -> None:
    """Forget the trees of dropped indexes."""
    for tree in sorted(_trees(before) - _trees(after)):
        engine.store.drop_tree(tree)
        engine.counts.drop(tree)
        backfill.cancel(engine, tree)


def _trees(schema: TableSchema) -> set[str]:
    return {index.tree for index in schema.indexes}
