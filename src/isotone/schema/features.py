"""What a table may have that some formats cannot express: how it is found in a table, and how it is left out.

`kept(table, lacks)` removes what a format lacks, and says what that was. Warnings, the page about formats, and the tests
of round trips all take it from here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from isotone.schema.deployable import DeployableTable


class TableFeature(NamedTuple):
    """A feature of a table. `uses` yields what of a table uses it, in words; `without` is the table without that."""

    title: str
    uses: Callable[[DeployableTable], Iterator[str]]
    without: Callable[[DeployableTable], DeployableTable]


def kept(table: DeployableTable, lacks: Collection[str]) -> tuple[DeployableTable, list[str]]:
    """The table without the features that a format lacks, and what was removed."""
    lost = []
    for name in FEATURES:  # in this order: an index that is left out has no units of its own
        if name in lacks:
            feature = FEATURES[name]
            lost += list(feature.uses(table))
            table = feature.without(table)
    return table, lost


# Indexes


def _indexes(member: str, what: str) -> TableFeature:
    def uses(table: DeployableTable) -> Iterator[str]:
        for index in table.definition.get(member, ()):
            yield f"{what} {index['IndexName']}"

    return TableFeature(f"{what}es", uses, lambda table: table.with_members(**{member: None}))


def is_wide(schema: Sequence[Mapping[str, str]]) -> bool:
    """Whether a part of a key has several attributes."""
    kinds = [each["KeyType"] for each in schema]
    return len(set(kinds)) < len(kinds)


def _wide(table: DeployableTable) -> Iterator[str]:
    for index in table.definition.get("GlobalSecondaryIndexes", ()):
        if is_wide(index["KeySchema"]):
            yield f"index {index['IndexName']}, whose key has several attributes in a part"


def _without_wide(table: DeployableTable) -> DeployableTable:
    indexes = table.definition.get("GlobalSecondaryIndexes", ())
    return table.with_members(
        GlobalSecondaryIndexes=[index for index in indexes if not is_wide(index["KeySchema"])]
    )


def _own_units(table: DeployableTable) -> Iterator[str]:
    for index in table.definition.get("GlobalSecondaryIndexes", ()):
        units = index.get("ProvisionedThroughput")
        if units and units != table.definition["ProvisionedThroughput"]:
            read, write = units["ReadCapacityUnits"], units["WriteCapacityUnits"]
            yield f"the units of index {index['IndexName']}: {read} read, {write} write"


def _without_own_units(table: DeployableTable) -> DeployableTable:
    units = table.definition.get("ProvisionedThroughput")
    return _with_indexes(table, lambda index: {**index, "ProvisionedThroughput": units})


def _with_indexes(
    table: DeployableTable, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> DeployableTable:
    indexes = table.definition.get("GlobalSecondaryIndexes", ())
    return table.with_members(GlobalSecondaryIndexes=[change(index) for index in indexes])


# Settings


def _setting(member: str, title: str, shown: Callable[[Any], str] | None = None) -> TableFeature:
    def uses(table: DeployableTable) -> Iterator[str]:
        if member in table.definition:
            yield title if shown is None else f"{title} {shown(table.definition[member])}"

    return TableFeature(title, uses, lambda table: table.with_members(**{member: None}))


def _setting_of_all(member: str, title: str) -> TableFeature:
    """A setting that a table and each of its global indexes may have."""

    def shown(of: dict[str, Any]) -> str:
        return ", ".join(f"{name} {number}" for name, number in of[member].items())

    def uses(table: DeployableTable) -> Iterator[str]:
        if member in table.definition:
            yield f"{title}: {shown(table.definition)}"
        for index in table.definition.get("GlobalSecondaryIndexes", ()):
            if member in index:
                yield f"{title} of index {index['IndexName']}: {shown(index)}"

    def without(table: DeployableTable) -> DeployableTable:
        plain = _with_indexes(table, lambda index: {**index, member: None})
        return plain.with_members(**{member: None})

    return TableFeature(title, uses, without)


def _recovery_period(table: DeployableTable) -> Iterator[str]:
    recovery = table.definition.get("PointInTimeRecoverySpecification", {})
    if "RecoveryPeriodInDays" in recovery:
        yield f"a recovery period of {recovery['RecoveryPeriodInDays']} days"


def _without_period(table: DeployableTable) -> DeployableTable:
    recovery = table.definition.get("PointInTimeRecoverySpecification", {})
    longest = {**recovery, "RecoveryPeriodInDays": None}
    return table.with_members(PointInTimeRecoverySpecification=longest)


FEATURES: Final = {
    "local_indexes": _indexes("LocalSecondaryIndexes", "local index"),
    "vector_indexes": _indexes("VectorIndexes", "vector index"),
    "wide_keys": TableFeature("index keys with several attributes in a part", _wide, _without_wide),
    "index_units": TableFeature(
        "provisioned units of a single index", _own_units, _without_own_units
    ),
    "expiry": _setting(
        "TimeToLiveSpecification", "time to live", lambda given: f"by {given['AttributeName']!r}"
    ),
    "recovery": _setting("PointInTimeRecoverySpecification", "point-in-time recovery"),
    "recovery_period": TableFeature(
        "the period of point-in-time recovery", _recovery_period, _without_period
    ),
    "stream": _setting(
        "StreamSpecification", "the stream", lambda stream: str(stream["StreamViewType"])
    ),
    "tags": _setting("Tags", "tags", lambda tags: ", ".join(tag["Key"] for tag in tags)),
    "protection": _setting("DeletionProtectionEnabled", "deletion protection"),
    "table_class": _setting("TableClass", "the table class", str),
    "encryption": _setting(
        "SSESpecification",
        "encryption",
        lambda given: f"by {given.get('KMSMasterKeyId', 'a key that AWS manages')}",
    ),
    "policy": _setting("ResourcePolicy", "the resource policy"),
    "limits": _setting_of_all("OnDemandThroughput", "limits of on-demand throughput"),
    "warm_throughput": _setting_of_all("WarmThroughput", "warm throughput"),
}
