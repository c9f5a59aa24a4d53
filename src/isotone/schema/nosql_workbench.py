"""NoSQL Workbench's model files (JSON, version 3.0): keys, global indexes, capacity, facets and sample data.

Such a file has facets and sample items, and types of attributes outside of keys, which no other format has. Many files have
their sample items in facets; they are read as the table's. Older files have no billing mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from isotone.schema.deployable import (
    ON_DEMAND,
    PROJECTION,
    PROVISIONED,
    UNITS,
    DeployableTable,
    Facet,
    deployable,
)
from isotone.schema.document import DocumentValue
from isotone.schema.shapes import At, ObjectShape, read_shape, write_shape
from isotone.values.types import Item

_PARTS: Final = {"PartitionKey": "HASH", "SortKey": "RANGE"}
# Where sample data came from, which the application always writes.
_NO_ACCESS: Final[dict[str, Any]] = {"MySql": {}}
_ATTRIBUTE: Final = ObjectShape({"AttributeName": str, "AttributeType": str})
_SCALING: Final = ("AutoScalingRead", "AutoScalingWrite")


def _read_key(key: Mapping[str, dict[str, str]]) -> dict[str, Any]:
    """A key has the types of its attributes."""
    parts = [(key[part]["AttributeName"], kind) for part, kind in _PARTS.items() if part in key]
    return {
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in parts],
        "AttributeDefinitions": list(key.values()),
    }


def _written_key(of: Mapping[str, Any]) -> dict[str, Any]:
    attributes = {each["AttributeName"]: each for each in of["AttributeDefinitions"]}
    kinds = {each["KeyType"]: attributes[each["AttributeName"]] for each in of["KeySchema"]}
    return {part: kinds[kind] for part, kind in _PARTS.items() if kind in kinds}


_KEY: Final = {
    "KeyAttributes": At(
        "",
        ObjectShape({"PartitionKey": _ATTRIBUTE}, {"SortKey": _ATTRIBUTE}),
        read=_read_key,
        write=_written_key,
    )
}
_FACET: Final = ObjectShape(
    {"FacetName": str},
    {
        "KeyAttributeAlias": ObjectShape({}, {"PartitionKeyAlias": str, "SortKeyAlias": str}),
        "TableData": [object],
        "NonKeyAttributes": [str],
        "DataAccess": object,
    },
)
_TABLE: Final = ObjectShape(
    {"TableName": str, **_KEY},
    {
        "NonKeyAttributes": [_ATTRIBUTE],
        "TableFacets": [_FACET],
        "GlobalSecondaryIndexes": [
            ObjectShape({"IndexName": str, **_KEY}, {"Projection": PROJECTION})
        ],
        "TableData": [object],
        "DataAccess": object,
        "BillingMode": str,
        "ProvisionedCapacitySettings": At(
            "",
            ObjectShape({}, {"ProvisionedThroughput": UNITS, **dict.fromkeys(_SCALING, object)}),
            write=lambda table: {"ProvisionedThroughput": table.get("ProvisionedThroughput")},
        ),
    },
)


# Writing


def write(tables: Sequence[DeployableTable]) -> dict[str, Any]:
    """The model of tables, named after the first one."""
    now = datetime.now(UTC).strftime("%b %d, %Y, %I:%M %p")
    return {
        "ModelName": tables[0].name,
        "ModelMetadata": {
            "Author": "",
            "DateCreated": now,
            "DateLastModified": now,
            "Description": "",
            "AWSService": "Amazon DynamoDB",
            "Version": "3.0",
        },
        "DataModel": [_written(table) for table in tables],
    }


def _written(table: DeployableTable) -> dict[str, Any]:
    document: dict[str, Any] = write_shape(_TABLE, _whole(table))
    for facet in document.get("TableFacets", ()):
        facet["TableData"] = []  # which the application always writes
    return document


def _whole(table: DeployableTable) -> dict[str, Any]:
    """A table with what documents it, and the types of attributes in each index."""
    definition = table.definition
    types = {"AttributeDefinitions": definition["AttributeDefinitions"]}
    key = {each["AttributeName"] for each in definition["KeySchema"]}
    others = {**table.types, **table.attributes}
    return {
        **definition,
        "NonKeyAttributes": [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in others.items()
            if name not in key
        ],
        "TableFacets": [_written_facet(facet) for facet in table.facets],
        "GlobalSecondaryIndexes": [
            {**index, **types} for index in definition.get("GlobalSecondaryIndexes", ())
        ],
        "TableData": list(table.items),
        "DataAccess": _NO_ACCESS,
    }


def _written_facet(facet: Facet) -> dict[str, Any]:
    alias = {"PartitionKeyAlias": facet.partition, "SortKeyAlias": facet.sort}
    names = list(facet.attributes)
    return {
        "FacetName": facet.name,
        "KeyAttributeAlias": alias,
        "NonKeyAttributes": names,
        "DataAccess": _NO_ACCESS,
    }


# Reading


def read(root: DocumentValue, parameters: Mapping[str, str]) -> list[DeployableTable]:
    """The tables of a model."""
    members = root.members()
    if "DataModel" not in members:
        raise root.refusal("has no DataModel, so it is no model of NoSQL Workbench")
    return [_table(each) for each in members["DataModel"].elements()]


def _table(value: DocumentValue) -> DeployableTable:
    found = read_shape(_TABLE, value)
    if any(name in found for name in _SCALING) and found.get("BillingMode") == PROVISIONED:
        value.note(f"{found['TableName']}: auto scaling is not read")
    units = found.get("ProvisionedThroughput")
    definitions = list(found["AttributeDefinitions"])
    for index in found.get("GlobalSecondaryIndexes", ()):
        definitions += index["AttributeDefinitions"]
        index["ProvisionedThroughput"] = units
    table = deployable(
        {
            **found,
            "AttributeDefinitions": definitions,
            "BillingMode": found.get("BillingMode") or (PROVISIONED if units else ON_DEMAND),
        }
    )
    others = {
        each["AttributeName"]: each["AttributeType"]
        for each in found.get("NonKeyAttributes", ())
        if each["AttributeName"] not in table.types
    }
    return msgspec.structs.replace(
        table,
        attributes=others,
        facets=tuple(_facets(found)),
        items=tuple(_items(value, found)),
    )


def _facets(found: Mapping[str, Any]) -> Iterator[Facet]:
    partition, *sort = [each["AttributeName"] for each in found["KeySchema"]]
    for facet in found.get("TableFacets", ()):
        alias = facet.get("KeyAttributeAlias", {})
        yield Facet(
            facet["FacetName"],
            alias.get("PartitionKeyAlias", partition),
            alias.get("SortKeyAlias") if sort else None,
            tuple(facet.get("NonKeyAttributes", ())),
        )


def _items(value: DocumentValue, found: Mapping[str, Any]) -> Iterator[Item]:
    """The sample items of a table and of its facets; those that occur in both, once."""
    seen: set[str] = set()
    for of in (found, *found.get("TableFacets", ())):
        for item in of.get("TableData", ()):
            if not isinstance(item, dict):
                raise value.refusal(f"has a sample item that is no object: {str(item)[:60]}")
            known = json.dumps(item, sort_keys=True)
            if known not in seen:
                seen.add(known)
                yield item
