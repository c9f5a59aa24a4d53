"""The schema of a restored table (backup or PITR): like its source, with the overrides of the request.

Both kinds of restore take keys, indexes, throughput, table class and encryption from the source. Like the service, they
do not restore tags, TTL, stream, policy, deletion protection and point-in-time recovery.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.table_schema import (
    IndexSchema,
    TableSchema,
    TableThroughput,
    VectorSchema,
)
from isotone.errors import (
    LimitExceededException,
    TableAlreadyExistsException,
    TableInUseException,
    ValidationException,
)
from isotone.operations.action import ActionRule
from isotone.operations.descriptions import key_elements, projection, vector_settings
from isotone.operations.item_validation import INVALID
from isotone.operations.table_requests import (
    GlobalSecondaryIndex,
    LocalSecondaryIndex,
    ProvisionedThroughput,
)
from isotone.operations.tables import plain
from isotone.operations.vector_indexes import ON_DEMAND_ONLY

if TYPE_CHECKING:
    from isotone.operations.backups import RestoreTableFromBackup
    from isotone.operations.recovery import RestoreTableToPointInTime

    Overrides: TypeAlias = RestoreTableFromBackup | RestoreTableToPointInTime

_RESTORED_SETTINGS: Final[tuple[str, ...]] = (
    "SSESpecification",
    "TableClass",
    "OnDemandThroughput",
)


def _check_overrides(request: Overrides) -> None:
    if (
        request.billing_mode_override == "PAY_PER_REQUEST"
        and request.provisioned_throughput_override is not None
    ):
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            "when BillingMode is PAY_PER_REQUEST"
        )


def _check_target(engine: Engine, request: Overrides) -> None:
    name = request.target_table_name
    if name in engine.catalog.tables:
        raise TableAlreadyExistsException(f"Table already exists: {name}")
    if name in engine.catalog.creating:
        raise TableInUseException(f"Table is being created: {name}")


def _check_running(engine: Engine, _: Overrides) -> None:
    if len(engine.catalog.creating) >= limits.CONCURRENT_RESTORES:
        raise LimitExceededException(
            "Subscriber limit exceeded: "
            f"Only {limits.CONCURRENT_RESTORES} tables can be restored simultaneously"
        )


OVERRIDES_FIT: Final = ActionRule("throughput for an on-demand table", _check_overrides)
"""The rule on overrides that does not need the source."""

TARGET_IS_FREE: Final = (
    ActionRule("a target that exists or is being created", _check_target),
    ActionRule("too many restores at a time", _check_running),
)
"""The rules on the table to create."""


def restored_schema(engine: Engine, source: TableSchema, request: Overrides) -> TableSchema:
    """The schema of the table to create."""
    billing = request.billing_mode_override or source.billing
    indexes = tuple(
        msgspec.structs.replace(
            index,
            tree=engine.catalog.new_tree("i"),
            status="ACTIVE",
            throughput=_throughput(billing, index.throughput, f"index: {index.name}")
            if index.kind == "global"
            else TableThroughput(),
        )
        for index in _indexes(source, request)
    )
    vectors = tuple(
        msgspec.structs.replace(index, tree=engine.catalog.new_tree("i"), status="ACTIVE")
        for index in _vectors(source, request)
    )
    if vectors and billing == "PROVISIONED":
        raise ValidationException(ON_DEMAND_ONLY)
    used = msgspec.structs.replace(source, indexes=indexes, vectors=vectors).used_attributes
    wanted = request.provisioned_throughput_override
    throughput = source.throughput if wanted is None else _given(wanted)
    return TableSchema(
        name=request.target_table_name,
        id=str(uuid.uuid4()),
        created=round(engine.clock.now(), 3),
        keys=source.keys,
        tree=engine.catalog.new_tree("t"),
        attributes={name: kind for name, kind in source.attributes.items() if name in used},
        indexes=indexes,
        vectors=vectors,
        billing=billing,
        throughput=_throughput(billing, throughput, "the table"),
        settings=_settings(source, request, billing),
    )


def _settings(source: TableSchema, request: Overrides, billing: str) -> dict[str, Any]:
    overrides: dict[str, Any] = {
        "SSESpecification": request.sse_specification_override,
        "OnDemandThroughput": request.on_demand_throughput_override,
    }
    given = {name: plain(value) for name, value in overrides.items() if value is not None}
    kept = {name: source.settings[name] for name in _RESTORED_SETTINGS if name in source.settings}
    settings: dict[str, Any] = {**kept, **given}
    if billing == "PROVISIONED":
        settings.pop("OnDemandThroughput", None)
    return settings


def _throughput(billing: str, throughput: TableThroughput, what: str) -> TableThroughput:
    """The throughput of a new table or index, without the times of earlier changes."""
    if billing == "PAY_PER_REQUEST":
        return TableThroughput()
    if not throughput.read:
        raise ValidationException(f"{INVALID}ProvisionedThroughput is not specified for {what}")
    return TableThroughput(throughput.read, throughput.write)


def _given(wanted: ProvisionedThroughput) -> TableThroughput:
    return TableThroughput(wanted.read_capacity_units, wanted.write_capacity_units)


# Indexes


def _indexes(source: TableSchema, request: Overrides) -> list[IndexSchema]:
    """The source's indexes that the request asks for; all by default."""
    local = [index for index in source.indexes if index.kind == "local"]
    global_ = [index for index in source.indexes if index.kind == "global"]
    if request.local_secondary_index_override is not None:
        local = _chosen(local, request.local_secondary_index_override)
    if request.global_secondary_index_override is not None:
        global_ = _chosen(global_, request.global_secondary_index_override)
    return [*local, *global_]


def _vectors(source: TableSchema, request: Overrides) -> list[VectorSchema]:
    """The source's vector indexes that the request asks for; all by default."""
    if request.vector_index_override is None:
        return list(source.vectors)
    chosen: dict[str, VectorSchema] = {}
    for definition in request.vector_index_override:
        index = source.vector_index(definition.index_name)
        if definition.index_name in chosen:
            raise ValidationException(f"{INVALID}Duplicate index name: {definition.index_name}")
        if index is None or _comparable(plain(definition)) != _comparable(vector_settings(index)):
            raise _unknown_index(definition.index_name)
        chosen[index.name] = index
    return list(chosen.values())


def _comparable(definition: dict[str, Any]) -> dict[str, Any]:
    """A vector index in a form in which equal definitions compare equal."""
    copied = {name: value for name, value in definition["Projection"].items() if value is not None}
    copied["NonKeyAttributes"] = sorted(copied.get("NonKeyAttributes", ()))
    return {"SearchSchema": None, **definition, "Projection": copied}


def _unknown_index(name: str) -> ValidationException:
    return ValidationException(
        f"{INVALID}Index override does not match an index of the source: {name}"
    )


def _chosen(
    indexes: Sequence[IndexSchema],
    wanted: Sequence[GlobalSecondaryIndex] | Sequence[LocalSecondaryIndex],
) -> list[IndexSchema]:
    by_name = {index.name: index for index in indexes}
    chosen: dict[str, IndexSchema] = {}
    for definition in wanted:
        index = by_name.get(definition.index_name)
        if definition.index_name in chosen:
            raise ValidationException(f"{INVALID}Duplicate index name: {definition.index_name}")
        if index is None or not _matches(index, definition):
            raise _unknown_index(definition.index_name)
        chosen[index.name] = _with_throughput(index, definition)
    return list(chosen.values())


def _matches(index: IndexSchema, wanted: GlobalSecondaryIndex | LocalSecondaryIndex) -> bool:
    keys = [
        {"AttributeName": element.attribute_name, "KeyType": element.key_type}
        for element in wanted.key_schema
    ]
    copied = plain(wanted.projection)
    expected = projection(index.projection)
    for description in (copied, expected):
        description["NonKeyAttributes"] = sorted(description.get("NonKeyAttributes", ()))
    return keys == key_elements(index.keys) and copied == expected


def _with_throughput(
    index: IndexSchema, wanted: GlobalSecondaryIndex | LocalSecondaryIndex
) -> IndexSchema:
    if isinstance(wanted, LocalSecondaryIndex):
        return index
    settings = dict(index.settings)
    if wanted.on_demand_throughput is not None:
        settings["OnDemandThroughput"] = plain(wanted.on_demand_throughput)
    if wanted.warm_throughput is not None:
        settings["WarmThroughput"] = plain(wanted.warm_throughput)
    throughput = wanted.provisioned_throughput
    return msgspec.structs.replace(
        index,
        settings=settings,
        throughput=index.throughput if throughput is None else _given(throughput),
    )
