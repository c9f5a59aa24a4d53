"""Rules on CreateTable and UpdateTable, in the order in which the service applies them."""

from __future__ import annotations

from typing import Final

from isotone.errors import LimitExceededException, ValidationException
from isotone.operations.rules.indexes import (
    Index,
    check_attributes,
    check_defined,
    check_global_indexes,
    check_key_schema,
    check_local_indexes,
    check_projected_count,
    check_projection,
)
from isotone.operations.rules.parameters import INVALID
from isotone.operations.shapes.tables import (
    CreateGlobalSecondaryIndexAction,
    CreateTable,
    GlobalSecondaryIndexUpdate,
    ProvisionedThroughput,
    StreamSpecification,
    UpdateTable,
)

_LARGEST_THROUGHPUT: Final = 1_000_000_000_000
_UPDATES: Final = (
    "billing_mode",
    "deletion_protection_enabled",
    "global_secondary_index_updates",
    "global_table_witness_updates",
    "multi_region_consistency",
    "on_demand_throughput",
    "provisioned_throughput",
    "replica_updates",
    "sse_specification",
    "stream_specification",
    "table_class",
    "warm_throughput",
)


def check_create_table(request: CreateTable) -> None:
    """That a new table's throughput, keys and indexes fit together."""
    _check_billing(request)
    _check_bounds(request.provisioned_throughput)
    _check_stream(request.stream_specification)
    types = {each.attribute_name for each in request.attribute_definitions}
    if len(types) < len(request.attribute_definitions):
        raise ValidationException("Cannot have two attributes with the same name")
    check_key_schema(request.key_schema)
    if not {each.attribute_name for each in request.key_schema} <= types:
        raise ValidationException("Invalid KeySchema: Some index key attribute have no definition")
    check_local_indexes(request)
    check_global_indexes(request)
    check_attributes(request)


def _check_billing(request: CreateTable) -> None:
    on_demand = request.billing_mode == "PAY_PER_REQUEST"
    if on_demand and request.provisioned_throughput is not None:
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            "when BillingMode is PAY_PER_REQUEST"
        )
    if not on_demand and request.provisioned_throughput is None:
        raise ValidationException(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified "
            "when BillingMode is PROVISIONED"
        )


def _check_bounds(throughput: ProvisionedThroughput | None, index: str | None = None) -> None:
    if throughput is None:
        return
    where = "" if index is None else f" for index {index}"
    for name, units in (
        ("ReadCapacityUnits", throughput.read_capacity_units),
        ("WriteCapacityUnits", throughput.write_capacity_units),
    ):
        if units > _LARGEST_THROUGHPUT:
            raise ValidationException(f"Given value {units} for {name} is out of bounds{where}")


def _check_stream(stream: StreamSpecification | None) -> None:
    if stream is None:
        return
    if stream.stream_enabled and stream.stream_view_type is None:
        raise ValidationException(
            "Invalid StreamViewType: Stream ViewType must not be null or empty when enabling streams."
        )
    if not stream.stream_enabled and stream.stream_view_type is not None:
        raise ValidationException(
            "Invalid StreamViewType: Stream StreamEnabled was false but a StreamViewType was present."
        )


def check_update_table(request: UpdateTable) -> None:
    """That an update changes something, and each index at most once."""
    if all(getattr(request, name) in (None, []) for name in _UPDATES):
        raise ValidationException(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
            "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"
        )
    _check_new_billing(request)
    _check_bounds(request.provisioned_throughput)
    _check_stream(request.stream_specification)
    created = _created_indexes(request.global_secondary_index_updates or [])
    for index in created:
        check_defined(index.key_schema, request.attribute_definitions)
        check_key_schema(index.key_schema, parts_of_index=True)
        check_projection(index.projection)
    check_projected_count(created)


def _check_new_billing(request: UpdateTable) -> None:
    throughput = request.provisioned_throughput
    if request.billing_mode == "PAY_PER_REQUEST" and throughput is not None:
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            "when BillingMode is PAY_PER_REQUEST"
        )
    if request.billing_mode == "PROVISIONED" and throughput is None:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
        )


def _created_indexes(
    updates: list[GlobalSecondaryIndexUpdate],
) -> list[CreateGlobalSecondaryIndexAction]:
    """The indexes to make, of which there may be one; each index is named once."""
    named: set[str] = set()
    for update in updates:
        action = _action(update)
        if action.index_name in named:
            raise ValidationException(
                f"{INVALID}Only one global secondary index update per index is allowed "
                f"simultaneously. Index: {action.index_name}"
            )
        named.add(action.index_name)
        _check_bounds(getattr(action, "provisioned_throughput", None), action.index_name)
    created = [update.create for update in updates if update.create is not None]
    if len(created) + sum(update.delete is not None for update in updates) > 1:
        raise LimitExceededException(
            "Subscriber limit exceeded: "
            "Only 1 online index can be created or deleted simultaneously per table"
        )
    return created


def _action(update: GlobalSecondaryIndexUpdate) -> Index:
    actions = [each for each in (update.update, update.create, update.delete) if each is not None]
    if not actions:
        raise ValidationException(
            f"{INVALID}One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
            "GlobalSecondaryIndexUpdate.Delete must not be null"
        )
    if len(actions) > 1:
        raise ValidationException(
            f"{INVALID}Only one of GlobalSecondaryIndexUpdate.Update, "
            "GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete may not be null"
        )
    return actions[0]
