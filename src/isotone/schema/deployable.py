"""`DeployableTable`: a table as it is to be deployed, the one value that every format is written from and read into.

It is the CreateTable request in normal form, and what other actions set: time to live, and point-in-time recovery.

    deployable, notes = deployable_of(read_definition(backend, "Orders"))
    make(backend, deployable)

In normal form, equal tables have equal requests: members are in one order, settings that change nothing are absent,
and the billing mode is stated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from isotone.backends.interface import Backend
from isotone.errors import ApiError, UsageError
from isotone.tables.definition import SUBJECT_OF, TableDefinition
from isotone.values.types import Item

PROVISIONED: Final = "PROVISIONED"
ON_DEMAND: Final = "PAY_PER_REQUEST"
INDEXES: Final = ("LocalSecondaryIndexes", "GlobalSecondaryIndexes", "VectorIndexes")
LONGEST_RECOVERY: Final = 35
"""The days that point-in-time recovery reaches back if none are given; also the most."""

_DEFAULT_WARM: Final = (12_000, 4_000)  # units that a new on-demand table supports at once
_KEY_TYPES: Final = {"HASH": 0, "RANGE": 1}


class Facet(msgspec.Struct, frozen=True):
    """A kind of items, in the words of NoSQL Workbench: what its keys mean, and its other attributes."""

    name: str
    partition: str
    sort: str | None
    attributes: tuple[str, ...]


class DeployableTable(msgspec.Struct, frozen=True, kw_only=True):
    """A CreateTable request in normal form, with the settings of other actions.

    `recovery_days` is 0 without point-in-time recovery. `attributes` are the types of attributes outside of keys, as far
    as they are known; they, `facets` and `items` document a table, and are not deployed.
    """

    request: dict[str, Any]
    expiry: str | None = None
    recovery_days: int = 0
    attributes: dict[str, str] = {}
    facets: tuple[Facet, ...] = ()
    items: tuple[Item, ...] = ()

    @property
    def name(self) -> str:
        """The table's name."""
        return str(self.request["TableName"])

    @property
    def types(self) -> dict[str, str]:
        """The type of each key attribute."""
        return {
            each["AttributeName"]: each["AttributeType"]
            for each in self.request["AttributeDefinitions"]
        }

    @property
    def is_on_demand(self) -> bool:
        """Whether requests are billed, instead of provisioned units."""
        return bool(self.request["BillingMode"] == ON_DEMAND)

    def with_members(self, **members: Any) -> DeployableTable:
        """The table with other members of its request; None removes one, and attributes that no key then uses."""
        changed = {**self.request, **members}
        used = set(_used(changed))
        definitions = [
            each for each in self.request["AttributeDefinitions"] if each["AttributeName"] in used
        ]
        request = normal_request({**changed, "AttributeDefinitions": definitions})
        return msgspec.structs.replace(self, request=request)


def key_names(schema: Sequence[Mapping[str, str]], kind: str) -> list[str]:
    """The names of the attributes of one part of a key: HASH or RANGE."""
    return [each["AttributeName"] for each in schema if each["KeyType"] == kind]


# What a reader gives


class ReadTables(NamedTuple):
    """The tables that a file defines, and notes about what of it was not read."""

    tables: list[DeployableTable]
    notes: list[str]


def no_parameters(source: str, parameters: Mapping[str, str]) -> None:
    """Refuse parameters for a file of a format that has none."""
    if parameters:
        raise UsageError(f"{source} has no parameters, so {next(iter(parameters))!r} means nothing")


# The normal form


def normal_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """A CreateTable request in normal form."""
    billing = request.get("BillingMode") or PROVISIONED
    units = request.get("ProvisionedThroughput") if billing == PROVISIONED else None
    limits = request.get("OnDemandThroughput") if billing == ON_DEMAND else None
    stream: Mapping[str, Any] = request.get("StreamSpecification") or {}
    table_class = request.get("TableClass")
    normal = {
        "TableName": request["TableName"],
        "AttributeDefinitions": _in_order_of_use(request),
        "KeySchema": _normal_key(request["KeySchema"]),
        **{
            member: [_normal_index(index, billing) for index in request.get(member) or ()]
            for member in INDEXES
        },
        "BillingMode": billing,
        "ProvisionedThroughput": units,
        "OnDemandThroughput": _normal_limits(limits),
        "WarmThroughput": request.get("WarmThroughput"),
        "StreamSpecification": stream if stream.get("StreamEnabled") else None,
        "SSESpecification": _normal_encryption(request.get("SSESpecification") or {}),
        "TableClass": None if table_class == "STANDARD" else table_class,
        "DeletionProtectionEnabled": request.get("DeletionProtectionEnabled"),
        "ResourcePolicy": _normal_policy(request.get("ResourcePolicy")),
        "Tags": sorted(request.get("Tags") or (), key=lambda tag: str(tag["Key"])),
    }
    return {name: value for name, value in normal.items() if value}


def _normal_key(schema: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    return [
        {"AttributeName": each["AttributeName"], "KeyType": each["KeyType"]}
        for each in sorted(schema, key=lambda each: _KEY_TYPES.get(each["KeyType"], 2))
    ]


def _normal_index(index: Mapping[str, Any], billing: str) -> dict[str, Any]:
    projection: Mapping[str, Any] = index.get("Projection") or {}
    kind = projection.get("ProjectionType") or "ALL"
    names = list(projection.get("NonKeyAttributes") or ())
    kept = {"NonKeyAttributes": names} if kind == "INCLUDE" else {}
    normal = {
        "IndexName": index["IndexName"],
        "VectorAttribute": index.get("VectorAttribute"),
        "SearchSchema": index.get("SearchSchema"),
        "Dimensions": index.get("Dimensions"),
        "DistanceFunction": index.get("DistanceFunction"),
        "KeySchema": _normal_key(index.get("KeySchema") or ()),
        "Projection": {"ProjectionType": kind, **kept},
        "ProvisionedThroughput": index.get("ProvisionedThroughput")
        if billing == PROVISIONED
        else None,
        "OnDemandThroughput": _normal_limits(index.get("OnDemandThroughput"))
        if billing == ON_DEMAND
        else None,
        "WarmThroughput": index.get("WarmThroughput"),
    }
    return {name: value for name, value in normal.items() if value}


def _normal_limits(limits: Mapping[str, int] | None) -> dict[str, int]:
    """Limits of on-demand throughput; -1 stands for none."""
    return {name: number for name, number in (limits or {}).items() if number != -1}


def _normal_encryption(given: Mapping[str, Any]) -> dict[str, Any] | None:
    if not given.get("Enabled"):
        return None
    key = given.get("KMSMasterKeyId")
    return {"Enabled": True, "SSEType": "KMS"} | ({"KMSMasterKeyId": key} if key else {})


def _normal_policy(policy: str | None) -> str | None:
    if not policy:
        return None
    try:
        return json.dumps(json.loads(policy), separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        return policy  # the service refuses it with its own words


def _in_order_of_use(request: Mapping[str, Any]) -> list[dict[str, str]]:
    """The definitions of attributes: those of the table's key first, then those of indexes, then unused ones."""
    types = {
        each["AttributeName"]: each["AttributeType"]
        for each in request.get("AttributeDefinitions") or ()
    }
    names = [name for name in dict.fromkeys((*_used(request), *types)) if name in types]
    return [{"AttributeName": name, "AttributeType": types[name]} for name in names]


def _used(request: Mapping[str, Any]) -> Iterator[str]:
    for part in (request, *(index for member in INDEXES for index in request.get(member) or ())):
        for each in (
            *_normal_key(part.get("KeySchema") or ()),
            *(part.get("SearchSchema") or ()),
        ):
            yield each["AttributeName"]


# From a table that exists


def deployable_of(definition: TableDefinition) -> tuple[DeployableTable, list[str]]:
    """A table like an existing one, and notes about what of it is not taken over."""
    described = definition.description
    billing = (described.get("BillingModeSummary") or {}).get("BillingMode") or PROVISIONED
    encryption: Mapping[str, Any] = described.get("SSEDescription") or {}
    request = {
        **{name: described.get(name) for name in ("TableName", "AttributeDefinitions")},
        "KeySchema": described["KeySchema"],
        **{
            member: [_described_index(index) for index in described.get(member) or ()]
            for member in INDEXES
        },
        "BillingMode": billing,
        "ProvisionedThroughput": _units(described),
        "OnDemandThroughput": described.get("OnDemandThroughput"),
        "StreamSpecification": described.get("StreamSpecification"),
        "SSESpecification": {
            "Enabled": encryption.get("Status") in ("ENABLED", "ENABLING", "UPDATING"),
            "KMSMasterKeyId": encryption.get("KMSMasterKeyArn"),
        },
        "TableClass": (described.get("TableClassSummary") or {}).get("TableClass"),
        "DeletionProtectionEnabled": described.get("DeletionProtectionEnabled"),
        "ResourcePolicy": definition.policy,
        "Tags": [{"Key": key, "Value": value} for key, value in definition.tags],
    }
    days = definition.recovery_days or LONGEST_RECOVERY if definition.has_recovery else 0
    deployable = DeployableTable(
        request=normal_request(request), expiry=definition.expiry, recovery_days=days
    )
    return deployable, list(_not_taken(definition, billing))


def _described_index(index: Mapping[str, Any]) -> dict[str, Any]:
    return {**index, "ProvisionedThroughput": _units(index), "WarmThroughput": None}


def _units(described: Mapping[str, Any]) -> dict[str, int] | None:
    units: Mapping[str, int] = described.get("ProvisionedThroughput") or {}
    names = ("ReadCapacityUnits", "WriteCapacityUnits")
    return {name: units[name] for name in names} if units.get(names[0]) else None


def _not_taken(definition: TableDefinition, billing: str) -> Iterator[str]:
    name, described = definition.name, definition.description
    for action in definition.denied:
        yield f"{name}: {SUBJECT_OF[action]}: {action} is denied, so it is not known"
    for stream in definition.kinesis_streams:
        yield f"{name}: the Kinesis stream {stream}: add it to the result yourself"
    for replica in described.get("Replicas") or ():
        yield f"{name}: the replica in {replica['RegionName']}: add it to the result yourself"
    warm: Mapping[str, Any] = described.get("WarmThroughput") or {}
    units = (warm.get("ReadUnitsPerSecond", 0), warm.get("WriteUnitsPerSecond", 0))
    is_usual = units[0] <= _DEFAULT_WARM[0] and units[1] <= _DEFAULT_WARM[1]
    if billing == ON_DEMAND and not is_usual:
        yield (
            f"{name}: warm throughput of {units[0]:,} read and {units[1]:,} write units: it grows with use, "
            "and a new table pays for it; add it to the result if you want it"
        )


# Making it


def make(backend: Backend, table: DeployableTable) -> list[str]:
    """Create a table with its settings, and put its items, on a backend whose tables are active at once.

    Returns why items were refused: samples are made by hand, and may lack a key.
    """
    backend.execute("CreateTable", table.request)
    if table.expiry:
        specification = {"Enabled": True, "AttributeName": table.expiry}
        request = {"TableName": table.name, "TimeToLiveSpecification": specification}
        backend.execute("UpdateTimeToLive", request)
    if table.recovery_days:
        recovery = {
            "PointInTimeRecoveryEnabled": True,
            "RecoveryPeriodInDays": table.recovery_days,
        }
        request = {"TableName": table.name, "PointInTimeRecoverySpecification": recovery}
        backend.execute("UpdateContinuousBackups", request)
    refused = []
    for number, item in enumerate(table.items, 1):
        try:
            backend.execute("PutItem", {"TableName": table.name, "Item": item})
        except ApiError as error:
            refused.append(f"sample item {number} is not read: {error.message or error.code}")
    return refused
