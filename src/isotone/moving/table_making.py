"""Makes a table like another one: its definition, what the target lacks; expiry, tags and stream are enabled last.

    wanted = read_definition(source, "Orders")
    plan = plan_table(wanted, "Orders", capabilities)       # .request, .missing: known before the first item
    make_table(target, plan)                                # the table with its indexes
    apply_settings(target, plan)                            # expiry, tags, stream: when the items are there

Expiry and the stream are enabled last: a target must not delete items while they are compared, and readers of the
stream should not see the copied items as changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from isotone.backends.capabilities import Capabilities
from isotone.backends.interface import Backend
from isotone.errors import (
    ApiError,
    UsageError,
)
from isotone.tables.definition import SUBJECT_OF, TableDefinition, read_definition
from isotone.tables.description import TableDescription, description_of
from isotone.tables.pace import Stopped

_MAX_WAIT: Final = 600.0  # seconds to wait until a table is active


# Planning


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How to create a table on a target: the CreateTable request, the later settings, and what is missing."""

    name: str
    request: dict[str, Any]
    expiry: str | None
    stream: str | None
    tags: tuple[tuple[str, str], ...]
    is_protected: bool
    missing: list[str] = field(default_factory=list)


def plan_table(
    definition: TableDefinition, name: str, capabilities: Capabilities, *, on_demand: bool = False
) -> TablePlan:
    """Plan the creation of a table like this one on an engine."""
    described = definition.description
    missing: list[str] = []

    def keep(feature: str, what: str) -> bool:
        has = not capabilities.lacking([feature])
        if not has:
            missing.append(f"{what}: {capabilities.engine} has none")
        return has

    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": described["KeySchema"],
        **_throughput(described, on_demand=on_demand),
    }
    if table_class := (described.get("TableClassSummary") or {}).get("TableClass"):
        request["TableClass"] = table_class
    for member, feature, what in (
        ("LocalSecondaryIndexes", "local_indexes", "local index"),
        ("GlobalSecondaryIndexes", "global_indexes", "global index"),
        ("VectorIndexes", "vectors", "vector index"),
    ):
        indexes = [
            _index_request(member, index, capabilities, missing, on_demand=on_demand)
            for index in described.get(member) or ()
            if keep(feature, f"{what} {index['IndexName']}")
        ]
        if indexes:
            request[member] = indexes
    request["AttributeDefinitions"] = _used_attributes(described, request)
    missing += [f"{SUBJECT_OF[each]}: {each} is denied on the source" for each in definition.denied]
    if definition.has_recovery:
        missing.append("point-in-time recovery: enable it on the target yourself")
    if definition.has_policy:
        missing.append("the resource policy: put it on the target yourself")
    missing += [
        f"Kinesis stream {arn}: enable it on the target yourself"
        for arn in definition.kinesis_streams
    ]
    if described.get("OnDemandThroughput"):
        missing.append("the limits of on-demand throughput: set them on the target yourself")
    sse: Mapping[str, Any] = described.get("SSEDescription") or {}
    if sse.get("KMSMasterKeyArn"):
        missing.append("its own encryption key: the target has the default one")
    if described.get("Replicas"):
        missing.append("replicas in other regions: add them on the target yourself")
    expiry, view, tags = definition.expiry, definition.table.stream, definition.tags
    return TablePlan(
        name,
        request,
        expiry if expiry and keep("expiry", f"expiry by {expiry}") else None,
        view if view and keep("streams", "the stream") else None,
        tags if tags and keep("tags", "tags") else (),
        bool(described.get("DeletionProtectionEnabled")),
        missing,
    )


def _throughput(described: Mapping[str, Any], *, on_demand: bool) -> dict[str, Any]:
    mode = (described.get("BillingModeSummary") or {}).get("BillingMode")
    units: Mapping[str, Any] = described.get("ProvisionedThroughput") or {}
    if on_demand or mode == "PAY_PER_REQUEST" or not units.get("ReadCapacityUnits"):
        return {"BillingMode": "PAY_PER_REQUEST"}
    names = ("ReadCapacityUnits", "WriteCapacityUnits")
    return {
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {name: units[name] for name in names},
    }


_OF_INDEX: Final = {
    "LocalSecondaryIndexes": ("IndexName", "KeySchema", "Projection"),
    "GlobalSecondaryIndexes": ("IndexName", "KeySchema", "Projection"),
    "VectorIndexes": (
        *("IndexName", "VectorAttribute", "SearchSchema"),
        *("Projection", "Dimensions", "DistanceFunction"),
    ),
}


def _index_request(
    member: str,
    index: Mapping[str, Any],
    capabilities: Capabilities,
    missing: list[str],
    *,
    on_demand: bool,
) -> dict[str, Any]:
    request = {name: index[name] for name in _OF_INDEX[member] if name in index}
    if member == "GlobalSecondaryIndexes":
        throughput = _throughput(index, on_demand=on_demand)
        if "ProvisionedThroughput" in throughput:
            request["ProvisionedThroughput"] = throughput["ProvisionedThroughput"]
    if member != "VectorIndexes" and not capabilities.index_projections:
        if request["Projection"].get("ProjectionType") != "ALL":
            missing.append(f"the projection of index {index['IndexName']}: it will have everything")
        request["Projection"] = {"ProjectionType": "ALL"}
    return request


def _used_attributes(described: Mapping[str, Any], request: Mapping[str, Any]) -> list[Any]:
    """The definitions of attributes that the requested keys use; the service refuses unused ones."""
    wanted = description_of({**described, **dict.fromkeys(_OF_INDEX), **request})
    keys = [wanted.key, *(index.key for index in wanted.all_indexes.values())]
    used = {name for key in keys for name in key.names}
    return [each for each in described["AttributeDefinitions"] if each["AttributeName"] in used]


# Making


def make_table(
    backend: Backend, plan: TablePlan, *, sleep: Callable[[float], object] = time.sleep
) -> TableDefinition:
    """Create the table if it does not exist, and wait until it is active. Returns its definition."""
    if read_definition(backend, plan.name) is None:
        try:
            backend.execute("CreateTable", plan.request)
        except ApiError as error:
            error.add_note(f"table {plan.name!r} could not be created on the target")
            raise
    return wait_until_active(backend, plan.name, sleep=sleep)


def wait_until_active(
    backend: Backend, name: str, *, sleep: Callable[[float], object] = time.sleep
) -> TableDefinition:
    """Wait until a table and its indexes can be used. Raises `Stopped` if `sleep` returns true."""
    pause, until = 0.05, time.monotonic() + _MAX_WAIT
    while True:
        found = read_definition(backend, name)
        if found is not None and found.table.statuses == {"ACTIVE"}:
            return found
        if time.monotonic() > until:
            raise UsageError(f"table {name!r} did not become active; run it again later")
        if sleep(pause):
            raise Stopped
        pause = min(pause * 2, 5.0)


def apply_settings(
    backend: Backend, plan: TablePlan, *, sleep: Callable[[float], object] = time.sleep
) -> list[str]:
    """Enable expiry, tags, the stream and deletion protection; returns what the target refused."""
    refused: list[str] = []

    def attempt(what: str, operation: str, request: dict[str, Any]) -> None:
        try:
            backend.execute(operation, request)
        except ApiError as error:
            refused.append(f"{what}: {error.message or error.code}")

    found = wait_until_active(backend, plan.name, sleep=sleep)
    if plan.tags and set(plan.tags) - set(found.tags):
        tags = [{"Key": key, "Value": value} for key, value in plan.tags]
        arn = found.table.arn
        attempt("tags", "TagResource", {"ResourceArn": arn, "Tags": tags})
    if plan.expiry and found.expiry is None:
        specification = {"Enabled": True, "AttributeName": plan.expiry}
        attempt(
            "expiry",
            "UpdateTimeToLive",
            {"TableName": plan.name, "TimeToLiveSpecification": specification},
        )
    if plan.stream and found.table.stream is None:
        attempt("the stream", "UpdateTable", stream_request(plan.name, plan.stream))
        wait_until_active(backend, plan.name, sleep=sleep)
    if plan.is_protected and not found.table.is_protected:
        protection = {"TableName": plan.name, "DeletionProtectionEnabled": True}
        attempt("deletion protection", "UpdateTable", protection)
    return refused


def stream_request(name: str, view: str) -> dict[str, Any]:
    """The UpdateTable request that enables a stream."""
    specification = {"StreamEnabled": True, "StreamViewType": view}
    return {"TableName": name, "StreamSpecification": specification}


def check_same_keys(source: TableDefinition, target: TableDefinition) -> None:
    """Raise `UsageError` if the items of one table do not fit the other."""
    mine, theirs = source.table.key, target.table.key
    if mine.parts != theirs.parts:
        raise UsageError(
            f"table {target.name!r} on the target has the keys {theirs}, and the source's are "
            f"{mine}; copy into another table: {source.name}=NEW_NAME"
        )


# Comparing


def differences(source: TableDefinition, target: TableDefinition) -> list[str]:
    """The differences of two tables that queries can notice: keys, indexes, expiry."""
    found = []
    one, other = source.table, target.table
    if one.key.parts != other.key.parts:
        found.append(f"keys: {one.key} and {other.key}")
    mine, theirs = _indexes_of(one), _indexes_of(other)
    for name in sorted(mine.keys() | theirs.keys()):
        if name not in theirs:
            found.append(f"index {name}: only in the source")
        elif name not in mine:
            found.append(f"index {name}: only in the target")
        elif mine[name] != theirs[name]:
            found.append(f"index {name}: {mine[name]} and {theirs[name]}")
    is_known = "DescribeTimeToLive" not in (*source.denied, *target.denied)
    if source.expiry != target.expiry and is_known:
        found.append(f"expiry: {source.expiry or 'off'} and {target.expiry or 'off'}")
    return found


def setting_differences(source: TableDefinition, target: TableDefinition) -> list[str]:
    """The differences of two tables that only operators notice: stream, tags."""
    sides = (("source", source), ("target", target))
    found = [
        f"{SUBJECT_OF[action]} of the {side}: not known ({action} is denied)"
        for side, definition in sides
        for action in definition.denied
    ]
    if source.table.stream != target.table.stream:
        found.append(f"stream: {source.table.stream or 'off'} and {target.table.stream or 'off'}")
    is_known = "ListTagsOfResource" not in (*source.denied, *target.denied)
    if source.tags != target.tags and is_known:
        found.append(f"tags: {dict(source.tags)} and {dict(target.tags)}")
    return found


def _indexes_of(table: TableDescription) -> dict[str, str]:
    """A description of each index: kind, keys, projection."""
    return {
        name: f"{index.kind} {index.key} {_shown(index.projection)}"
        for name, index in table.all_indexes.items()
    }


def _shown(projection: str | tuple[str, ...]) -> str:
    return projection if isinstance(projection, str) else "INCLUDE " + ", ".join(sorted(projection))
