"""CloudFormation's templates, in YAML and JSON, and SAM's: tables as resources.

Of a template, `AWS::DynamoDB::Table`, `AWS::DynamoDB::GlobalTable` and `AWS::Serverless::SimpleTable` are read; other
resources are counted. `intrinsics` resolves functions, parameters and conditions. A table without a name gets that of
its resource.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from isotone.schema.deployable import (
    DEFINITION,
    ON_DEMAND,
    PROVISIONED,
    TAGS_BY_NAME,
    DeployableTable,
    deployable,
    unique_names,
)
from isotone.schema.document import DocumentValue
from isotone.schema.global_tables import read_global_table
from isotone.schema.intrinsics import Intrinsics
from isotone.schema.shapes import At, ObjectShape, read_shape, write_shape
from isotone.text_table import pluralized

_KEPT: Final = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
_TYPES: Final = {"String": "S", "Number": "N", "Binary": "B"}
_WORD: Final = re.compile(r"[A-Za-z0-9]+")

# The properties have the names of a definition's members, with a few exceptions.
_PROPERTIES: Final = {
    **DEFINITION,
    "StreamSpecification": At(
        "StreamSpecification",
        ObjectShape({"StreamViewType": str}),
        read=lambda stream: {"StreamEnabled": True, **stream},
    ),
    "SSESpecification": ObjectShape(
        {"SSEEnabled": At("Enabled", bool)}, {"SSEType": str, "KMSMasterKeyId": str}
    ),
    "ResourcePolicy": At(
        "ResourcePolicy",
        ObjectShape({"PolicyDocument": object}),
        read=lambda policy: json.dumps(policy["PolicyDocument"], ensure_ascii=False),
        write=lambda text: {"PolicyDocument": json.loads(text)},
    ),
}


def _type_of_simple_key(value: DocumentValue) -> str:
    if value.text() not in _TYPES:
        raise value.refusal(f"is {value.text()!r}; use {', '.join(_TYPES)}")
    return _TYPES[value.text()]


def _simple_key(attribute: Mapping[str, str]) -> dict[str, Any]:
    key = {"AttributeName": attribute["AttributeName"], "KeyType": "HASH"}
    return {"AttributeDefinitions": [attribute], "KeySchema": [key]}


_ATTRIBUTE_OF_SIMPLE_KEY: Final = {
    "Name": At("AttributeName"),
    "Type": At(
        "AttributeType",
        _type_of_simple_key,
        write={code: title for title, code in _TYPES.items()}.__getitem__,
    ),
}
_SIMPLE: Final = {
    "TableName": str,
    "PrimaryKey": At(
        "",
        ObjectShape(_ATTRIBUTE_OF_SIMPLE_KEY),
        read=_simple_key,
        write=lambda definition: definition["AttributeDefinitions"][0],
    ),
    "ProvisionedThroughput": DEFINITION["ProvisionedThroughput"],
    "SSESpecification": _PROPERTIES["SSESpecification"],
    "PointInTimeRecoverySpecification": DEFINITION["PointInTimeRecoverySpecification"],
    "Tags": TAGS_BY_NAME,
}
_DEFAULT_KEY: Final = _simple_key({"AttributeName": "id", "AttributeType": "S"})
_IN_SIMPLE_TABLES: Final = {
    *_SIMPLE,
    *("AttributeDefinitions", "KeySchema", "BillingMode"),
}


# Writing


def write(tables: Sequence[DeployableTable]) -> dict[str, Any]:
    """A template. A stack that is deleted leaves its tables."""
    return _template(tables, _resource)


def write_sam(tables: Sequence[DeployableTable]) -> dict[str, Any]:
    """A template for SAM: simple tables where they express all of a table."""
    return _template(tables, _sam_resource, Transform="AWS::Serverless-2016-10-31")


def _template(
    tables: Sequence[DeployableTable], resource: Callable[[DeployableTable], Any], **more: str
) -> dict[str, Any]:
    names = logical_names([table.name for table in tables])
    resources = {name: resource(table) for name, table in zip(names, tables, strict=True)}
    return {"AWSTemplateFormatVersion": "2010-09-09", **more, "Resources": resources}


def logical_names(names: Sequence[str]) -> list[str]:
    """The names of tables as those of resources and classes: letters and digits, each name once."""
    words = ["".join(word[0].upper() + word[1:] for word in _WORD.findall(name)) for name in names]
    return unique_names(f"{each if each[:1].isalpha() else f'T{each}'}Table" for each in words)


def _resource(table: DeployableTable) -> dict[str, Any]:
    properties = write_shape(ObjectShape(_PROPERTIES), table.definition)
    return {"Type": "AWS::DynamoDB::Table", **_KEPT, "Properties": properties}


def _sam_resource(table: DeployableTable) -> dict[str, Any]:
    definition = table.definition
    if len(definition["KeySchema"]) > 1 or not definition.keys() <= _IN_SIMPLE_TABLES:
        return _resource(table)
    return {
        "Type": "AWS::Serverless::SimpleTable",
        **_KEPT,
        "Properties": write_shape(ObjectShape(_SIMPLE), definition),
    }


# Reading


def read(root: DocumentValue, parameters: Mapping[str, str]) -> list[DeployableTable]:
    """The tables of a template."""
    template = root.members()
    if "Resources" not in template:
        raise root.refusal("has no Resources, so it is no template of CloudFormation")
    intrinsics = Intrinsics(template, parameters)
    sections = root._replace(resolve=intrinsics.resolve).members()
    tables = []
    others = 0
    for name, resource in sections["Resources"].members().items():
        members = resource.members()
        if "Type" not in members:
            raise resource.refusal("lacks Type")
        read_properties = _READERS.get(members["Type"].text())
        if read_properties is None:
            others += 1
        elif "Condition" in members and not intrinsics.holds(members["Condition"]):
            resource.note(f"{resource.place} is not made: its condition is false")
        else:
            given = members.get("Properties", resource.with_value({}))
            tables.append(deployable({"TableName": name, **read_properties(given, sections)}))
    if others:
        root.note(f"not read: {pluralized(others, 'other resource')}")
    return tables


def _table(given: DocumentValue, template: Mapping[str, DocumentValue]) -> dict[str, Any]:
    shape = ObjectShape({"KeySchema": DEFINITION["KeySchema"]}, _PROPERTIES)
    return cast(dict[str, Any], read_shape(shape, given))


def _global_table(given: DocumentValue, template: Mapping[str, DocumentValue]) -> dict[str, Any]:
    return read_global_table(given, _PROPERTIES)


def _simple_table(given: DocumentValue, template: Mapping[str, DocumentValue]) -> dict[str, Any]:
    """A simple table of SAM, with the properties that `Globals` has for all of them."""
    of_all = template["Globals"].members() if "Globals" in template else {}
    defaults = of_all["SimpleTable"].members() if "SimpleTable" in of_all else {}
    own = {name: each.given for name, each in {**defaults, **given.members()}.items()}
    found = read_shape(ObjectShape({}, _SIMPLE), given.with_value(own))
    billing = PROVISIONED if "ProvisionedThroughput" in found else ON_DEMAND
    return {**_DEFAULT_KEY, **found, "BillingMode": billing}


_READERS: Final = {
    "AWS::DynamoDB::Table": _table,
    "AWS::DynamoDB::GlobalTable": _global_table,
    "AWS::Serverless::SimpleTable": _simple_table,
}
