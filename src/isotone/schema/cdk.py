"""Stacks of the AWS CDK, in Python and in TypeScript, with a construct `dynamodb.Table` for each table.

What the construct cannot express is an override of the property that CloudFormation has for it. There is no reader: the
template that `cdk synth` makes is read instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from isotone.schema.cloudformation import logical_names
from isotone.schema.deployable import (
    LONGEST_RECOVERY,
    DeployableTable,
    key_names,
)

_WIDTH: Final = 88
_TYPES: Final = {"S": "STRING", "N": "NUMBER", "B": "BINARY"}
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


class CdkCode(NamedTuple):
    """An expression that is written alike in both languages, such as `dynamodb.BillingMode.PROVISIONED`."""

    text: str


class CdkStruct(NamedTuple):
    """The arguments of a call, or a struct, by the names of TypeScript; in Python it has a class."""

    type: str
    members: Mapping[str, Any]


# What a construct is made of


def _arguments(table: DeployableTable) -> dict[str, Any]:
    request = table.request
    stream = request.get("StreamSpecification", {}).get("StreamViewType")
    return {
        "tableName": table.name,
        **_key(table, request["KeySchema"]),
        "billingMode": _member("BillingMode", request["BillingMode"]),
        **_capacity(request),
        "timeToLiveAttribute": table.expiry,
        "stream": _member("StreamViewType", stream) if stream else None,
        "pointInTimeRecoverySpecification": _recovery(table),
        "encryption": _member("TableEncryption", "AWS_MANAGED")
        if "SSESpecification" in request
        else None,
        "tableClass": _member("TableClass", request["TableClass"])
        if "TableClass" in request
        else None,
        "deletionProtection": request.get("DeletionProtectionEnabled"),
    }


def _member(enumeration: str, name: str) -> CdkCode:
    return CdkCode(f"dynamodb.{enumeration}.{name}")


def _key(table: DeployableTable, schema: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, name in (("HASH", "partitionKey"), ("RANGE", "sortKey")):
        parts = [_attribute(table, each) for each in key_names(schema, kind)]
        if len(parts) == 1:
            found[name] = parts[0]
        elif parts:
            found[f"{name}s"] = parts
    return found


def _attribute(table: DeployableTable, name: str) -> CdkStruct:
    kind = _member("AttributeType", _TYPES[table.types[name]])
    return CdkStruct("dynamodb.Attribute", {"name": name, "type": kind})


def _capacity(of: Mapping[str, Any]) -> dict[str, Any]:
    units, limits = of.get("ProvisionedThroughput", {}), of.get("OnDemandThroughput", {})
    warm = of.get("WarmThroughput")
    return {
        "readCapacity": units.get("ReadCapacityUnits"),
        "writeCapacity": units.get("WriteCapacityUnits"),
        "maxReadRequestUnits": limits.get("MaxReadRequestUnits"),
        "maxWriteRequestUnits": limits.get("MaxWriteRequestUnits"),
        "warmThroughput": CdkStruct(
            "dynamodb.WarmThroughput",
            {f"{name[0].lower()}{name[1:]}": number for name, number in warm.items()},
        )
        if warm
        else None,
    }


def _recovery(table: DeployableTable) -> CdkStruct | None:
    if not table.recovery_days:
        return None
    own = table.recovery_days if table.recovery_days != LONGEST_RECOVERY else None
    members = {"pointInTimeRecoveryEnabled": True, "recoveryPeriodInDays": own}
    return CdkStruct("dynamodb.PointInTimeRecoverySpecification", members)


def _index(table: DeployableTable, index: Mapping[str, Any], *, is_local: bool) -> CdkStruct:
    key = _key(table, index["KeySchema"])
    if is_local:  # it has the partition key of its table
        key.pop("partitionKey")
    projection = index["Projection"]
    return CdkStruct(
        "",
        {
            "indexName": index["IndexName"],
            **key,
            "projectionType": _member("ProjectionType", projection["ProjectionType"]),
            "nonKeyAttributes": projection.get("NonKeyAttributes"),
            **_capacity(index),
        },
    )


def _overrides(request: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The properties that the construct cannot express, by their names in CloudFormation."""
    if key := request.get("SSESpecification", {}).get("KMSMasterKeyId"):
        yield "SSESpecification.KMSMasterKeyId", key
        yield "SSESpecification.SSEType", "KMS"
    if policy := request.get("ResourcePolicy"):
        yield "ResourcePolicy.PolicyDocument", json.loads(policy)
    if vectors := request.get("VectorIndexes"):
        yield "AttributeDefinitions", request["AttributeDefinitions"]
        yield "VectorIndexes", vectors


# Python


def write_python(tables: Sequence[DeployableTable]) -> str:
    """A module with a stack, which is also an app: `cdk deploy --app "python FILE"`."""
    names = logical_names([table.name for table in tables])
    body = "\n".join(
        "".join(f"        {line}\n" if line else "\n" for line in _python_lines(name, table))
        for name, table in zip(names, tables, strict=True)
    )
    return _PYTHON.format(body=body)


_PYTHON: Final = """\
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct


class TablesStack(cdk.Stack):
    def __init__(self, scope: Construct, construct_id: str, **kwargs) -> None:
        super().__init__(scope, construct_id, **kwargs)

{body}

if __name__ == "__main__":
    app = cdk.App()
    TablesStack(app, "TablesStack")
    app.synth()
"""


def _python_lines(name: str, table: DeployableTable) -> Iterator[str]:
    own = f"self.{_snake(name)}"
    arguments = ["self", _literal(name), *_python_arguments(_arguments(table), 8)]
    yield from _call(f"{own} = dynamodb.Table(", arguments, ")", 8)
    for member, is_local in _INDEXES.items():
        for index in table.request.get(member, ()):
            function = f"{own}.add_{'local' if is_local else 'global'}_secondary_index("
            members = _index(table, index, is_local=is_local).members
            yield from _call(function, list(_python_arguments(members, 8)), ")", 8)
    for tag in table.request.get("Tags", ()):
        pair = [_literal(tag["Key"]), _literal(tag["Value"])]
        yield from _call(f"cdk.Tags.of({own}).add(", pair, ")", 8)
    for path, value in _overrides(table.request):
        arguments = [_literal(path), _python(value, 8)]
        yield from _call(f"{own}.node.default_child.add_property_override(", arguments, ")", 8)


_INDEXES: Final = {"LocalSecondaryIndexes": True, "GlobalSecondaryIndexes": False}


def _python_arguments(members: Mapping[str, Any], indent: int) -> Iterator[str]:
    for name, value in members.items():
        if value is not None:
            yield f"{_snake(name)}={_python(value, indent + 4)}"


def _python(value: Any, indent: int) -> str:
    """A value as Python, which begins at an indentation."""
    if isinstance(value, CdkCode):
        return value.text
    if isinstance(value, CdkStruct):
        arguments = list(_python_arguments(value.members, indent))
        return "\n".join(_call(f"{value.type}(", arguments, ")", indent))
    if isinstance(value, dict):
        parts = [f"{_literal(name)}: {_python(each, indent + 4)}" for name, each in value.items()]
        return "\n".join(_call("{", parts, "}", indent))
    if isinstance(value, list):
        parts = [_python(each, indent + 4) for each in value]
        return "\n".join(_call("[", parts, "]", indent))
    return _literal(value) if isinstance(value, str) else repr(value)


def _snake(name: str) -> str:
    return _CAPITAL.sub(r"_\1", name).lower()


# TypeScript


def write_typescript(tables: Sequence[DeployableTable]) -> str:
    """A module with a stack, for an app of your own."""
    names = logical_names([table.name for table in tables])
    members = "".join(f"  readonly {_camel(name)}: dynamodb.Table;\n" for name in names)
    body = "\n".join(
        "".join(f"    {line}\n" if line else "\n" for line in _typescript_lines(name, table))
        for name, table in zip(names, tables, strict=True)
    )
    return _TYPESCRIPT.replace("MEMBERS\n", members).replace("BODY\n", body)


_TYPESCRIPT: Final = """\
import * as cdk from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import { Construct } from "constructs";

export class TablesStack extends cdk.Stack {
MEMBERS

  constructor(scope: Construct, id: string, props?: cdk.StackProps) {
    super(scope, id, props);

BODY
  }
}
"""


def _typescript_lines(name: str, table: DeployableTable) -> Iterator[str]:
    own = f"this.{_camel(name)}"
    arguments = _typescript(CdkStruct("", _arguments(table)), 4)
    yield from f"{own} = new dynamodb.Table(this, {_literal(name)}, {arguments});".split("\n")
    for member, is_local in _INDEXES.items():
        for index in table.request.get(member, ()):
            kind = "Local" if is_local else "Global"
            arguments = _typescript(_index(table, index, is_local=is_local), 4)
            yield from f"{own}.add{kind}SecondaryIndex({arguments});".split("\n")
    for tag in table.request.get("Tags", ()):
        yield f"cdk.Tags.of({own}).add({_literal(tag['Key'])}, {_literal(tag['Value'])});"
    overrides = list(_overrides(table.request))
    if overrides:
        resource = f"{_camel(name)}Resource"
        yield f"const {resource} = {own}.node.defaultChild as dynamodb.CfnTable;"
        for path, value in overrides:
            call = f"{resource}.addPropertyOverride({_literal(path)}, {_typescript(value, 4)});"
            yield from call.split("\n")


def _typescript(value: Any, indent: int) -> str:
    """A value as TypeScript."""
    if isinstance(value, CdkCode):
        return value.text
    if isinstance(value, CdkStruct):
        parts = [
            f"{name}: {_typescript(each, indent + 2)}"
            for name, each in value.members.items()
            if each is not None
        ]
        return "\n".join(_call("{ ", parts, " }", indent, step=2))
    if isinstance(value, dict):
        parts = [
            f"{_literal(name)}: {_typescript(each, indent + 2)}" for name, each in value.items()
        ]
        return "\n".join(_call("{ ", parts, " }", indent, step=2))
    if isinstance(value, list):
        parts = [_typescript(each, indent + 2) for each in value]
        return "\n".join(_call("[", parts, "]", indent, step=2))
    return _literal(value)


def _camel(name: str) -> str:
    return name[0].lower() + name[1:]


# Layout


def _literal(value: Any) -> str:
    """A text, a number or a truth value; a text is written alike in both languages."""
    return "".join(map(_escaped, json.dumps(value, ensure_ascii=False)))


def _escaped(character: str) -> str:
    """The languages have different escapes above U+FFFF, where no character needs one."""
    is_plain = character.isprintable() or ord(character) > 0xFFFF
    return character if is_plain else f"\\u{ord(character):04x}"


def _call(begin: str, parts: Sequence[str], end: str, indent: int, step: int = 4) -> Iterator[str]:
    """A call on one line, or with a line for each argument."""
    line = f"{begin}{', '.join(parts)}{end}"
    if "\n" not in line and indent + len(line) <= _WIDTH:
        yield line
        return
    yield begin.rstrip()
    for part in parts:
        lines = part.split("\n")
        yield from (f"{' ' * step}{each}" for each in lines[:-1])
        yield f"{' ' * step}{lines[-1]},"
    yield end.lstrip()
