"""`DeployableTable`: a table in normal form (billing decides its units), and what of it is left out (replicas).

It is the one value that every format is written from and read into. Its definition is a CreateTable request, with what other actions set: time to live, and point-in-time recovery.
`DEFINITION` has the shapes of all members; the shapes of a format refer to these.

    table, notes = deployable_of(read_definition(backend, "Orders"))
    make(backend, table)

In normal form, equal tables have equal definitions: members are in one order, settings that change nothing are absent,
and the billing mode is stated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from isotone.backends.interface import Backend
from isotone.errors import ApiError
from isotone.schema.document import DocumentValue, RemovedProperty
from isotone.schema.shapes import At, ObjectShape, read_shape, write_shape
from isotone.tables.definition import SUBJECT_OF, TableDefinition
from isotone.values.types import Item

PROVISIONED: Final = "PROVISIONED"
ON_DEMAND: Final = "PAY_PER_REQUEST"
INDEXES: Final = ("LocalSecondaryIndexes", "GlobalSecondaryIndexes", "VectorIndexes")
LONGEST_RECOVERY: Final = 35
"""The days that point-in-time recovery reaches back if none are given; also the most."""

_DEFAULT_WARM: Final = (12_000, 4_000)  # units that a new on-demand table supports at once

# The shapes of a definition

UNITS: Final = ObjectShape({"ReadCapacityUnits": int, "WriteCapacityUnits": int})
_LIMITS: Final = ObjectShape({}, {"MaxReadRequestUnits": int, "MaxWriteRequestUnits": int})
_WARM: Final = ObjectShape({}, {"ReadUnitsPerSecond": int, "WriteUnitsPerSecond": int})
_CAPACITY: Final = {
    "ProvisionedThroughput": UNITS,
    "OnDemandThroughput": _LIMITS,
    "WarmThroughput": _WARM,
}
_KEY: Final = [ObjectShape({"AttributeName": str, "KeyType": str})]
PROJECTION: Final = ObjectShape({}, {"ProjectionType": str, "NonKeyAttributes": [str]})
_INDEX: Final = {"IndexName": str, "KeySchema": _KEY, "Projection": PROJECTION}
_VECTOR_INDEX: Final = ObjectShape(
    {
        "IndexName": str,
        "VectorAttribute": ObjectShape({"AttributeName": str}),
        "Dimensions": int,
        "DistanceFunction": str,
        "Projection": PROJECTION,
    },
    {"SearchSchema": [ObjectShape({"AttributeName": str, "SearchSchemaElementType": str})]},
)
REQUEST: Final[dict[str, Any]] = {
    "TableName": str,
    "AttributeDefinitions": [ObjectShape({"AttributeName": str, "AttributeType": str})],
    "KeySchema": _KEY,
    "LocalSecondaryIndexes": [ObjectShape(_INDEX)],
    "GlobalSecondaryIndexes": [ObjectShape(_INDEX, _CAPACITY)],
    "VectorIndexes": [_VECTOR_INDEX],
    "BillingMode": str,
    **_CAPACITY,
    "StreamSpecification": ObjectShape({"StreamEnabled": bool}, {"StreamViewType": str}),
    "SSESpecification": ObjectShape({}, {"Enabled": bool, "SSEType": str, "KMSMasterKeyId": str}),
    "TableClass": str,
    "DeletionProtectionEnabled": bool,
    "ResourcePolicy": str,
    "Tags": [ObjectShape({"Key": str, "Value": DocumentValue.value_text})],
}
"""The members of a CreateTable request."""

_OF_OTHER_ACTIONS: Final = {
    "TimeToLiveSpecification": "UpdateTimeToLive",
    "PointInTimeRecoverySpecification": "UpdateContinuousBackups",
}
DEFINITION: Final[dict[str, Any]] = {
    **REQUEST,
    "TimeToLiveSpecification": ObjectShape({"Enabled": bool}, {"AttributeName": str}),
    "PointInTimeRecoverySpecification": ObjectShape(
        {}, {"PointInTimeRecoveryEnabled": bool, "RecoveryPeriodInDays": int}
    ),
}
"""These, and what other actions set."""


def _read_tags(value: DocumentValue) -> list[dict[str, str]]:
    present = {
        name: each for name, each in value.members().items() if each.value is not RemovedProperty
    }
    return [{"Key": name, "Value": each.value_text()} for name, each in present.items()]


TAGS_BY_NAME: Final = At(
    "Tags", _read_tags, write=lambda tags: {tag["Key"]: tag["Value"] for tag in tags}
)
"""Tags of formats that have them as an object."""


class Facet(msgspec.Struct, frozen=True):
    """A kind of items, in the words of NoSQL Workbench: what its keys mean, and its other attributes."""

    name: str
    partition: str
    sort: str | None
    attributes: tuple[str, ...]


class DeployableTable(msgspec.Struct, frozen=True, kw_only=True):
    """A definition in normal form, and what documents the table.

    `attributes` are the types of attributes outside of keys, as far as they are known. They, `facets` and `items` are
    not deployed.
    """

    definition: dict[str, Any]
    attributes: dict[str, str] = {}
    facets: tuple[Facet, ...] = ()
    items: tuple[Item, ...] = ()

    @property
    def name(self) -> str:
        """The table's name."""
        return str(self.definition["TableName"])

    @property
    def types(self) -> dict[str, str]:
        """The type of each key attribute."""
        attributes = self.definition["AttributeDefinitions"]
        return {each["AttributeName"]: each["AttributeType"] for each in attributes}

    def with_members(self, **members: Any) -> DeployableTable:
        """The table with other members of its definition; None removes one, and attributes that no key then uses."""
        changed = {**self.definition, **members}
        used = set(_used(changed))
        changed["AttributeDefinitions"] = [
            each for each in changed["AttributeDefinitions"] if each["AttributeName"] in used
        ]
        return msgspec.structs.replace(self, definition=_normal_definition(changed))


def deployable(definition: Mapping[str, Any]) -> DeployableTable:
    """The table that a definition describes."""
    return DeployableTable(definition=_normal_definition(definition))


def key_names(schema: Sequence[Mapping[str, str]], kind: str) -> list[str]:
    """The names of the attributes of one part of a key: HASH or RANGE."""
    return [each["AttributeName"] for each in schema if each["KeyType"] == kind]


def unique_names(wanted: Iterable[str], separator: str = "") -> list[str]:
    """Names of which each occurs once: a number is added to one that is taken."""
    found: list[str] = []
    for name in wanted:
        numbered = (f"{name}{separator}{number}" for number in range(2, len(found) + 3))
        found.append(next(each for each in (name, *numbered) if each not in found))
    return found


# The normal form


def _normal_definition(given: Mapping[str, Any]) -> dict[str, Any]:
    billing = given.get("BillingMode") or PROVISIONED
    table_class = given.get("TableClass")
    normal = {
        **given,
        **_normal_capacity(given, billing),
        **{
            member: [_normal_index(index, billing) for index in given.get(member) or ()]
            for member in INDEXES
        },
        "AttributeDefinitions": _in_order_of_use(given),
        "KeySchema": _normal_key(given["KeySchema"]),
        "BillingMode": billing,
        "StreamSpecification": _enabled(given, "StreamSpecification", "StreamEnabled"),
        "SSESpecification": _normal_encryption(given),
        "TableClass": None if table_class == "STANDARD" else table_class,
        "DeletionProtectionEnabled": given.get("DeletionProtectionEnabled") or None,
        "ResourcePolicy": _normal_policy(given.get("ResourcePolicy")),
        "Tags": sorted(given.get("Tags") or (), key=lambda tag: str(tag["Key"])),
        "TimeToLiveSpecification": _enabled(given, "TimeToLiveSpecification", "Enabled"),
        "PointInTimeRecoverySpecification": _normal_recovery(given),
    }
    found: dict[str, Any] = write_shape(ObjectShape(DEFINITION), normal)
    return found


def _enabled(given: Mapping[str, Any], member: str, flag: str) -> dict[str, Any]:
    """The settings of a feature; none if it is off."""
    settings: dict[str, Any] = given.get(member) or {}
    return settings if settings.get(flag) else {}


def _normal_key(schema: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    kinds = {"HASH": 0, "RANGE": 1}
    return sorted(schema, key=lambda each: kinds.get(each["KeyType"], 2))


def _normal_index(index: Mapping[str, Any], billing: str) -> dict[str, Any]:
    projection: Mapping[str, Any] = index.get("Projection") or {}
    kind = projection.get("ProjectionType") or "ALL"
    names = projection.get("NonKeyAttributes") if kind == "INCLUDE" else None
    return {
        **index,
        **_normal_capacity(index, billing),
        "KeySchema": _normal_key(index.get("KeySchema") or ()),
        "Projection": {"ProjectionType": kind, "NonKeyAttributes": names},
    }


def _normal_capacity(of: Mapping[str, Any], billing: str) -> dict[str, Any]:
    """The capacity of a table or an index that its billing mode has; a limit of -1 stands for none."""
    limits: Mapping[str, int] = of.get("OnDemandThroughput") or {}
    own = {name: number for name, number in limits.items() if number != -1}
    return {
        "ProvisionedThroughput": of.get("ProvisionedThroughput")
        if billing == PROVISIONED
        else None,
        "OnDemandThroughput": own if billing == ON_DEMAND else None,
    }


def _normal_encryption(given: Mapping[str, Any]) -> dict[str, Any]:
    settings = _enabled(given, "SSESpecification", "Enabled")
    key = settings.get("KMSMasterKeyId") or None
    return {**settings, "SSEType": "KMS", "KMSMasterKeyId": key} if settings else {}


def _normal_recovery(given: Mapping[str, Any]) -> dict[str, Any]:
    settings = _enabled(given, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")
    days = settings.get("RecoveryPeriodInDays")
    return {**settings, "RecoveryPeriodInDays": None if days == LONGEST_RECOVERY else days}


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
    """The attributes of keys."""
    for part in (request, *(index for member in INDEXES for index in request.get(member) or ())):
        key = _normal_key(part.get("KeySchema") or ())
        yield from (each["AttributeName"] for each in (*key, *(part.get("SearchSchema") or ())))


# From a table that exists

_DESCRIBED_INDEX: Final = ObjectShape(
    {"IndexName": str, "KeySchema": _KEY},
    {
        "Projection": PROJECTION,
        # As everywhere in an answer, the units of a table on demand may be absent.
        "ProvisionedThroughput": ObjectShape({}, UNITS.required),
        "OnDemandThroughput": _LIMITS,
    },
)
_DESCRIBED: Final = ObjectShape(
    {name: REQUEST[name] for name in ("TableName", "KeySchema", "AttributeDefinitions")},
    {
        "LocalSecondaryIndexes": [_DESCRIBED_INDEX],
        "GlobalSecondaryIndexes": [_DESCRIBED_INDEX],
        "VectorIndexes": [_VECTOR_INDEX],
        "BillingModeSummary": At("", ObjectShape({}, {"BillingMode": str})),
        "ProvisionedThroughput": ObjectShape({}, UNITS.required),
        "OnDemandThroughput": _LIMITS,
        "StreamSpecification": REQUEST["StreamSpecification"],
        "SSEDescription": At(
            "SSESpecification",
            ObjectShape(
                {},
                {
                    "Status": At("Enabled", read=("ENABLED", "ENABLING", "UPDATING").__contains__),
                    "KMSMasterKeyArn": At("KMSMasterKeyId"),
                },
            ),
        ),
        "TableClassSummary": At("", ObjectShape({}, {"TableClass": str})),
        "DeletionProtectionEnabled": bool,
        # These two are not taken over, and said.
        "WarmThroughput": _WARM,
        "Replicas": [ObjectShape({"RegionName": str})],
    },
)


def deployable_of(definition: TableDefinition) -> tuple[DeployableTable, list[str]]:
    """A table like an existing one, and notes about what of it is not taken over."""
    return described_table(DocumentValue(definition.description, "DescribeTable", []), definition)


def described_table(
    description: DocumentValue, others: TableDefinition
) -> tuple[DeployableTable, list[str]]:
    """The table of an answer of DescribeTable, with what `others` has of the answers of other actions."""
    found = read_shape(_DESCRIBED, description._replace(notes=[]))  # the rest is no definition
    definition = {
        **found,
        "WarmThroughput": None,
        "ResourcePolicy": others.policy,
        "Tags": [{"Key": key, "Value": value} for key, value in others.tags],
        "TimeToLiveSpecification": {
            "Enabled": others.expiry is not None,
            "AttributeName": others.expiry,
        },
        "PointInTimeRecoverySpecification": {
            "PointInTimeRecoveryEnabled": others.has_recovery,
            "RecoveryPeriodInDays": others.recovery_days or None,
        },
    }
    return deployable(definition), list(_not_taken(found, others))


def _not_taken(found: Mapping[str, Any], others: TableDefinition) -> Iterator[str]:
    name = found["TableName"]
    for action in others.denied:
        yield f"{name}: {SUBJECT_OF[action]}: {action} is denied, so it is not known"
    for stream in others.kinesis_streams:
        yield f"{name}: the Kinesis stream {stream}: add it to the result yourself"
    for replica in found.get("Replicas", ()):
        yield f"{name}: the replica in {replica['RegionName']}: add it to the result yourself"
    warm = found.get("WarmThroughput", {})
    units = (warm.get("ReadUnitsPerSecond", 0), warm.get("WriteUnitsPerSecond", 0))
    is_usual = units[0] <= _DEFAULT_WARM[0] and units[1] <= _DEFAULT_WARM[1]
    if found.get("BillingMode") == ON_DEMAND and not is_usual:
        yield (
            f"{name}: warm throughput of {units[0]:,} read and {units[1]:,} write units: it grows with use, "
            "and a new table pays for it; add it to the result if you want it"
        )


# Making it


def make(backend: Backend, table: DeployableTable) -> list[str]:
    """Create a table with its settings, and put its items, on a backend whose tables are active at once.

    Returns why items were refused: samples are made by hand, and may lack a key.
    """
    backend.execute("CreateTable", write_shape(ObjectShape(REQUEST), table.definition))
    for member, action in _OF_OTHER_ACTIONS.items():
        if specification := table.definition.get(member):
            backend.execute(action, {"TableName": table.name, member: specification})
    refused = []
    for number, item in enumerate(table.items, 1):
        try:
            backend.execute("PutItem", {"TableName": table.name, "Item": item})
        except ApiError as error:
            key = ", ".join(
                str(item.get(each["AttributeName"])) for each in table.definition["KeySchema"]
            )
            refused.append(
                f"sample item {number}, with the key {key}, is not valid: {error.message or error.code}"
            )
    return refused
