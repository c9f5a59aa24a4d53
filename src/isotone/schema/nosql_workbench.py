"""NoSQL Workbench's model files (JSON, version 3.0): keys, global indexes, capacity, facets and sample data.

Such a file has facets and sample items, and types of attributes outside of keys, which no other format has. Older files
have sample items in their facets, and no billing mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from isotone.schema.deployable import (
    ON_DEMAND,
    PROVISIONED,
    DeployableTable,
    Facet,
    ReadTables,
    key_names,
    no_parameters,
    normal_request,
)
from isotone.schema.document import UNITS, DocumentValue, ObjectShape, parsed_json, taken
from isotone.values.types import Item

_KINDS: Final = {"HASH": "PartitionKey", "RANGE": "SortKey"}
_NO_ACCESS: Final[dict[str, Any]] = {
    "MySql": {}
}  # where sample data came from, which the application always writes


# Writing


def write(tables: Sequence[DeployableTable]) -> str:
    """The model of tables, named after the first one."""
    now = datetime.now(UTC).strftime("%b %d, %Y, %I:%M %p")
    model = {
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
    return json.dumps(model, indent=2, ensure_ascii=False) + "\n"


def _written(table: DeployableTable) -> dict[str, Any]:
    request = table.request
    key = {each["AttributeName"] for each in request["KeySchema"]}
    others = {**table.types, **table.attributes}
    found = {
        "TableName": table.name,
        "KeyAttributes": _key(table, request["KeySchema"]),
        "NonKeyAttributes": [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in others.items()
            if name not in key
        ],
        "TableFacets": [_written_facet(facet) for facet in table.facets],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index["IndexName"],
                "KeyAttributes": _key(table, index["KeySchema"]),
                "Projection": index["Projection"],
            }
            for index in request.get("GlobalSecondaryIndexes", ())
        ],
        "TableData": list(table.items),
        "DataAccess": _NO_ACCESS,
        "BillingMode": request["BillingMode"],
    }
    if units := request.get("ProvisionedThroughput"):
        found["ProvisionedCapacitySettings"] = {"ProvisionedThroughput": units}
    return {name: value for name, value in found.items() if value != []}


def _key(table: DeployableTable, schema: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    return {
        own: {"AttributeName": name, "AttributeType": table.types[name]}
        for kind, own in _KINDS.items()
        for name in key_names(schema, kind)
    }


def _written_facet(facet: Facet) -> dict[str, Any]:
    sort = {} if facet.sort is None else {"SortKeyAlias": facet.sort}
    return {
        "FacetName": facet.name,
        "KeyAttributeAlias": {"PartitionKeyAlias": facet.partition, **sort},
        "TableData": [],
        "NonKeyAttributes": list(facet.attributes),
        "DataAccess": _NO_ACCESS,
    }


# Reading


def is_content(content: Any) -> bool:
    """Whether JSON is a model."""
    return isinstance(content, dict) and "DataModel" in content


_ATTRIBUTE: Final = ObjectShape({"AttributeName": str, "AttributeType": str})
_KEY: Final = ObjectShape({"PartitionKey": _ATTRIBUTE}, {"SortKey": _ATTRIBUTE})
_SCALING: Final = ("AutoScalingRead", "AutoScalingWrite")
_TABLE: Final = ObjectShape(
    {"TableName": str, "KeyAttributes": _KEY},
    {
        "NonKeyAttributes": [_ATTRIBUTE],
        "TableFacets": [
            ObjectShape(
                {"FacetName": str},
                {
                    "KeyAttributeAlias": ObjectShape(
                        {}, {"PartitionKeyAlias": str, "SortKeyAlias": str}
                    ),
                    "NonKeyAttributes": [str],
                    "TableData": [object],
                    "DataAccess": None,
                },
            )
        ],
        "GlobalSecondaryIndexes": [
            ObjectShape(
                {"IndexName": str, "KeyAttributes": _KEY},
                {"Projection": ObjectShape({}, {"ProjectionType": str, "NonKeyAttributes": [str]})},
            )
        ],
        "TableData": [object],
        "DataAccess": None,
        "BillingMode": str,
        "ProvisionedCapacitySettings": ObjectShape(
            {}, {"ProvisionedThroughput": UNITS, **dict.fromkeys(_SCALING, object)}
        ),
    },
)


def read(text: str, source: str, parameters: Mapping[str, str]) -> ReadTables:
    """The tables of a model."""
    no_parameters(source, parameters)
    root = DocumentValue(parsed_json(text, source), "", source)
    members = root.members()
    if "DataModel" not in members:
        raise root.refusal("has no DataModel, so it is no model of NoSQL Workbench")
    notes: list[str] = []
    return ReadTables([_table(each, notes) for each in members["DataModel"].elements()], notes)


def _table(value: DocumentValue, notes: list[str]) -> DeployableTable:
    unread: list[str] = []
    found = taken(value, _TABLE, unread)
    notes += [f"{value.source}: {place} is not read" for place in unread]
    capacity = found.get("ProvisionedCapacitySettings", {})
    units = capacity.get("ProvisionedThroughput")
    if any(name in capacity for name in _SCALING) and found.get("BillingMode") == PROVISIONED:
        notes.append(f"{value.source}: {found['TableName']}: auto scaling is not read")
    types: dict[str, str] = {}
    request = {
        "TableName": found["TableName"],
        "KeySchema": _schema(found["KeyAttributes"], types),
        "GlobalSecondaryIndexes": [
            {
                **index,
                "KeySchema": _schema(index["KeyAttributes"], types),
                "ProvisionedThroughput": units,
            }
            for index in found.get("GlobalSecondaryIndexes", ())
        ],
        "BillingMode": found.get("BillingMode") or (PROVISIONED if units else ON_DEMAND),
        "ProvisionedThroughput": units,
    }
    request["AttributeDefinitions"] = [
        {"AttributeName": name, "AttributeType": kind} for name, kind in types.items()
    ]
    return DeployableTable(
        request=normal_request(request),
        attributes={
            each["AttributeName"]: each["AttributeType"]
            for each in found.get("NonKeyAttributes", ())
            if each["AttributeName"] not in types
        },
        facets=tuple(_facets(found)),
        items=tuple(_items(value, found)),
    )


def _schema(key: Mapping[str, Any], types: dict[str, str]) -> list[dict[str, str]]:
    """A key, whose attributes are added to the types."""
    schema = []
    for kind, own in _KINDS.items():
        if own in key:
            name = key[own]["AttributeName"]
            types[name] = key[own]["AttributeType"]
            schema.append({"AttributeName": name, "KeyType": kind})
    return schema


def _facets(found: Mapping[str, Any]) -> Iterator[Facet]:
    key = found["KeyAttributes"]
    for facet in found.get("TableFacets", ()):
        alias = facet.get("KeyAttributeAlias", {})
        partition = alias.get("PartitionKeyAlias", key["PartitionKey"]["AttributeName"])
        sort = alias.get("SortKeyAlias") if "SortKey" in key else None
        names = tuple(facet.get("NonKeyAttributes", ()))
        yield Facet(facet["FacetName"], partition, sort, names)


def _items(value: DocumentValue, found: Mapping[str, Any]) -> Iterator[Item]:
    """The sample items of a table and of its facets; those that occur in both, once."""
    seen: set[str] = set()
    for items in (
        found.get("TableData", ()),
        *(facet.get("TableData", ()) for facet in found.get("TableFacets", ())),
    ):
        for item in items:
            if not isinstance(item, dict):
                raise value.refusal(f"has a sample item that is no object: {str(item)[:60]}")
            known = json.dumps(item, sort_keys=True)
            if known not in seen:
                seen.add(known)
                yield item
