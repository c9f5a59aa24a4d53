"""CloudFormation's templates, in YAML and JSON, and SAM's: tables as resources.

Of a template, `AWS::DynamoDB::Table`, `AWS::DynamoDB::GlobalTable` and `AWS::Serverless::SimpleTable` are read; other
resources are counted. `intrinsics` resolves functions, parameters and conditions. A table without a name gets that of
its resource.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from isotone.schema.deployable import (
    LONGEST_RECOVERY,
    ON_DEMAND,
    DeployableTable,
    ReadTables,
    normal_request,
)
from isotone.schema.document import (
    REQUEST,
    UNITS,
    DocumentValue,
    ObjectShape,
    parsed_json,
    taken,
)
from isotone.schema.global_tables import read_global_table
from isotone.schema.intrinsics import Intrinsics
from isotone.schema.yaml_text import parsed_yaml, yaml_text
from isotone.text_table import pluralized

TABLE: Final = "AWS::DynamoDB::Table"
_GLOBAL_TABLE: Final = "AWS::DynamoDB::GlobalTable"
_SIMPLE_TABLE: Final = "AWS::Serverless::SimpleTable"
_SAM: Final = "AWS::Serverless-2016-10-31"
_KEPT: Final = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
_TYPES: Final = {"S": "String", "N": "Number", "B": "Binary"}
_WORD: Final = re.compile(r"[A-Za-z0-9]+")


# Writing


def write_yaml(tables: Sequence[DeployableTable]) -> str:
    """A template in YAML. A stack that is deleted leaves its tables."""
    return yaml_text(_template(_resource, tables))


def write_json(tables: Sequence[DeployableTable]) -> str:
    """A template in JSON."""
    return json.dumps(_template(_resource, tables), indent=2, ensure_ascii=False) + "\n"


def write_sam(tables: Sequence[DeployableTable]) -> str:
    """A template for SAM: simple tables where they express all of a table."""
    return yaml_text(_template(_sam_resource, tables, Transform=_SAM))


def _template(resource: Any, tables: Sequence[DeployableTable], **more: Any) -> dict[str, Any]:
    names = logical_names([table.name for table in tables])
    resources = {name: resource(table) for name, table in zip(names, tables, strict=True)}
    return {"AWSTemplateFormatVersion": "2010-09-09", **more, "Resources": resources}


def logical_names(names: Sequence[str]) -> list[str]:
    """The names of tables as those of resources and classes: letters and digits, each name once."""
    found: list[str] = []
    for name in names:
        words = "".join(word[0].upper() + word[1:] for word in _WORD.findall(name))
        wanted = f"{words if words[:1].isalpha() else f'T{words}'}Table"
        number = 2
        own = wanted
        while own in found:
            own, number = f"{wanted}{number}", number + 1
        found.append(own)
    return found


def _resource(table: DeployableTable) -> dict[str, Any]:
    return {"Type": TABLE, **_KEPT, "Properties": properties(table)}


def properties(table: DeployableTable) -> dict[str, Any]:
    """The properties of a table, which have the names of the request's members, with a few exceptions."""
    found = dict(table.request)
    if stream := found.pop("StreamSpecification", None):
        found["StreamSpecification"] = {"StreamViewType": stream["StreamViewType"]}
    if encryption := found.pop("SSESpecification", None):
        others = {name: value for name, value in encryption.items() if name != "Enabled"}
        found["SSESpecification"] = {"SSEEnabled": True, **others}
    if policy := found.pop("ResourcePolicy", None):
        found["ResourcePolicy"] = {"PolicyDocument": json.loads(policy)}
    if table.expiry:
        found["TimeToLiveSpecification"] = {"AttributeName": table.expiry, "Enabled": True}
    if table.recovery_days:
        found["PointInTimeRecoverySpecification"] = _recovery(table)
    return found


def _recovery(table: DeployableTable) -> dict[str, Any]:
    own = table.recovery_days != LONGEST_RECOVERY
    return {"PointInTimeRecoveryEnabled": True} | (
        {"RecoveryPeriodInDays": table.recovery_days} if own else {}
    )


_IN_SIMPLE_TABLES: Final = {
    *("TableName", "AttributeDefinitions", "KeySchema", "BillingMode", "ProvisionedThroughput"),
    *("SSESpecification", "PointInTimeRecoverySpecification", "Tags"),
}


def _sam_resource(table: DeployableTable) -> dict[str, Any]:
    found = properties(table)
    (key, *sort), tags = table.request["KeySchema"], found.pop("Tags", ())
    if sort or not found.keys() <= _IN_SIMPLE_TABLES:
        return _resource(table)
    name = key["AttributeName"]
    simple = {
        "TableName": found["TableName"],
        "PrimaryKey": {"Name": name, "Type": _TYPES[table.types[name]]},
        "ProvisionedThroughput": found.get("ProvisionedThroughput"),
        "SSESpecification": found.get("SSESpecification"),
        "PointInTimeRecoverySpecification": found.get("PointInTimeRecoverySpecification"),
        "Tags": {tag["Key"]: tag["Value"] for tag in tags},
    }
    written = {name: value for name, value in simple.items() if value}
    return {"Type": _SIMPLE_TABLE, **_KEPT, "Properties": written}


# Reading


def is_content(content: Any) -> bool:
    """Whether JSON is a template."""
    return isinstance(content, dict) and "Resources" in content


def read_yaml(text: str, source: str, parameters: Mapping[str, str]) -> ReadTables:
    """The tables of a template in YAML."""
    return _read(parsed_yaml(text, source), source, parameters)


def read_json(text: str, source: str, parameters: Mapping[str, str]) -> ReadTables:
    """The tables of a template in JSON."""
    return _read(parsed_json(text, source), source, parameters)


def _read(content: Any, source: str, parameters: Mapping[str, str]) -> ReadTables:
    root = DocumentValue(content, "", source)
    template = root.members()
    if "Resources" not in template:
        raise root.refusal("has no Resources, so it is no template of CloudFormation")
    intrinsics = Intrinsics(template, parameters)
    resolved = root._replace(resolve=intrinsics.resolve)
    defaults = _sam_defaults(resolved.members())
    tables: list[DeployableTable] = []
    notes: list[str] = []
    others = 0
    for name, resource in resolved.members()["Resources"].members().items():
        members = resource.members()
        if "Type" not in members:
            raise resource.refusal("lacks Type")
        kind = members["Type"].text()
        reader = _READERS.get(kind)
        if reader is None:
            others += 1
        elif "Condition" in members and not intrinsics.holds(members["Condition"]):
            notes.append(f"{source}: {resource.place} is not made: its condition is false")
        else:
            given = members.get("Properties", resource.with_value({}))
            unread: list[str] = []
            tables.append(reader(name, given, unread, defaults))
            notes += [f"{source}: {place} is not read" for place in unread]
    if others:
        notes.append(f"{source}: not read: {pluralized(others, 'other resource')}")
    return ReadTables(tables, notes)


_ENCRYPTION: Final = ObjectShape({"SSEEnabled": bool}, {"SSEType": str, "KMSMasterKeyId": str})
_RECOVERY: Final = ObjectShape(
    {}, {"PointInTimeRecoveryEnabled": bool, "RecoveryPeriodInDays": int}
)
_POLICY: Final = ObjectShape({"PolicyDocument": object})
_PROPERTIES: Final = {
    **REQUEST,
    "TableName": str,
    "StreamSpecification": ObjectShape({"StreamViewType": str}, {"ResourcePolicy": object}),
    "SSESpecification": _ENCRYPTION,
    "ResourcePolicy": _POLICY,
    "TimeToLiveSpecification": ObjectShape({"Enabled": bool}, {"AttributeName": str}),
    "PointInTimeRecoverySpecification": _RECOVERY,
}


def _table(
    name: str, given: DocumentValue, unread: list[str], defaults: Mapping[str, DocumentValue]
) -> DeployableTable:
    found = taken(given, ObjectShape({"KeySchema": REQUEST["KeySchema"]}, _PROPERTIES), unread)
    if found.get("StreamSpecification", {}).pop("ResourcePolicy", None):
        unread.append(f"{given.place}.StreamSpecification.ResourcePolicy")
    return _deployable(name, found)


def _deployable(name: str, found: dict[str, Any]) -> DeployableTable:
    """A table of the properties that were read."""
    expiry = found.pop("TimeToLiveSpecification", {})
    recovery = found.pop("PointInTimeRecoverySpecification", {})
    if stream := found.pop("StreamSpecification", None):
        found["StreamSpecification"] = {"StreamEnabled": True, **stream}
    if encryption := found.pop("SSESpecification", None):
        enabled = encryption.pop("SSEEnabled")
        found["SSESpecification"] = {"Enabled": enabled, **encryption}
    if policy := found.pop("ResourcePolicy", None):
        found["ResourcePolicy"] = json.dumps(policy["PolicyDocument"], ensure_ascii=False)
    days = recovery.get("RecoveryPeriodInDays", LONGEST_RECOVERY)
    return DeployableTable(
        request=normal_request({"TableName": name, **found}),
        expiry=expiry.get("AttributeName") if expiry.get("Enabled") else None,
        recovery_days=days if recovery.get("PointInTimeRecoveryEnabled") else 0,
    )


# SAM's simple tables

_SIMPLE: Final = {
    "TableName": str,
    "PrimaryKey": ObjectShape({"Name": str, "Type": str}),
    "ProvisionedThroughput": UNITS,
    "SSESpecification": _ENCRYPTION,
    "PointInTimeRecoverySpecification": _RECOVERY,
    "Tags": object,
}


def _sam_defaults(template: Mapping[str, DocumentValue]) -> dict[str, DocumentValue]:
    """The properties of all simple tables: `Globals`."""
    of_all = template["Globals"].members() if "Globals" in template else {}
    return of_all["SimpleTable"].members() if "SimpleTable" in of_all else {}


def _simple_table(
    name: str, given: DocumentValue, unread: list[str], defaults: Mapping[str, DocumentValue]
) -> DeployableTable:
    members = {**defaults, **given.members()}
    merged = given.with_value({member: each.given for member, each in members.items()})
    found = taken(merged, ObjectShape({}, _SIMPLE), unread)
    key = found.pop("PrimaryKey", {"Name": "id", "Type": "String"})
    types = {title: code for code, title in _TYPES.items()}
    if key["Type"] not in types:
        raise given.refusal(f"has a PrimaryKey of type {key['Type']!r}; use {', '.join(types)}")
    tags = found.pop("Tags", {})
    if not isinstance(tags, dict):
        raise given.refusal(
            "has Tags that are no object; a simple table has names and values there"
        )
    return _deployable(
        name,
        {
            **found,
            "AttributeDefinitions": [
                {"AttributeName": key["Name"], "AttributeType": types[key["Type"]]}
            ],
            "KeySchema": [{"AttributeName": key["Name"], "KeyType": "HASH"}],
            "BillingMode": "PROVISIONED" if "ProvisionedThroughput" in found else ON_DEMAND,
            "Tags": [{"Key": tag, "Value": str(value)} for tag, value in tags.items()],
        },
    )


def _global_table(
    name: str, given: DocumentValue, unread: list[str], defaults: Mapping[str, DocumentValue]
) -> DeployableTable:
    return _deployable(name, read_global_table(given, _PROPERTIES, unread))


_READERS: Final = {
    TABLE: _table,
    _GLOBAL_TABLE: _global_table,
    _SIMPLE_TABLE: _simple_table,
}
