"""Stacks of the AWS CDK, in Python and in TypeScript, with a construct `dynamodb.Table` for each table.

What the construct cannot express is an override of the property that CloudFormation has for it. There is no reader: the
template that `cdk synth` makes is read instead.
Both languages have the same calls; a `CdkLanguage` writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from isotone.schema.cloudformation import logical_names
from isotone.schema.deployable import DeployableTable, key_names
from isotone.schema.shapes import At, ObjectShape, write_shape

_WIDTH: Final = 88
_TYPES: Final = {"S": "STRING", "N": "NUMBER", "B": "BINARY"}
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


class CdkCode(NamedTuple):
    """An expression that is written alike in both languages, such as `dynamodb.BillingMode.PROVISIONED`."""

    text: str


class CdkStruct(NamedTuple):
    """A struct by the names of TypeScript; in Python it has a class."""

    type: str
    members: Mapping[str, Any]


# The arguments of a construct, by what they have of a definition


def _member(enumeration: str, path: str) -> At:
    return At(path, write=lambda name: CdkCode(f"dynamodb.{enumeration}.{name}"))


def _struct(kind: str, path: str, members: Mapping[str, str]) -> At:
    shape = ObjectShape({name: At(own) for name, own in members.items()})
    return At(path, write=lambda found: CdkStruct(f"dynamodb.{kind}", write_shape(shape, found)))


_CAPACITY: Final = {
    "readCapacity": At("ProvisionedThroughput.ReadCapacityUnits"),
    "writeCapacity": At("ProvisionedThroughput.WriteCapacityUnits"),
    "maxReadRequestUnits": At("OnDemandThroughput.MaxReadRequestUnits"),
    "maxWriteRequestUnits": At("OnDemandThroughput.MaxWriteRequestUnits"),
    "warmThroughput": _struct(
        "WarmThroughput",
        "WarmThroughput",
        {
            "readUnitsPerSecond": "ReadUnitsPerSecond",
            "writeUnitsPerSecond": "WriteUnitsPerSecond",
        },
    ),
}
_TABLE: Final = ObjectShape(
    {
        "billingMode": _member("BillingMode", "BillingMode"),
        **_CAPACITY,
        "timeToLiveAttribute": At("TimeToLiveSpecification.AttributeName"),
        "stream": _member("StreamViewType", "StreamSpecification.StreamViewType"),
        "pointInTimeRecoverySpecification": _struct(
            "PointInTimeRecoverySpecification",
            "PointInTimeRecoverySpecification",
            {
                "pointInTimeRecoveryEnabled": "PointInTimeRecoveryEnabled",
                "recoveryPeriodInDays": "RecoveryPeriodInDays",
            },
        ),
        "encryption": At(
            "SSESpecification", write=lambda _: CdkCode("dynamodb.TableEncryption.AWS_MANAGED")
        ),
        "tableClass": _member("TableClass", "TableClass"),
        "deletionProtection": At("DeletionProtectionEnabled"),
    }
)
_INDEX: Final = ObjectShape(
    {
        "projectionType": _member("ProjectionType", "Projection.ProjectionType"),
        "nonKeyAttributes": At("Projection.NonKeyAttributes"),
        **_CAPACITY,
    }
)


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
    kind = CdkCode(f"dynamodb.AttributeType.{_TYPES[table.types[name]]}")
    return CdkStruct("dynamodb.Attribute", {"name": name, "type": kind})


def _indexes(table: DeployableTable) -> Iterator[tuple[str, dict[str, Any]]]:
    """The method that adds each index, and its arguments."""
    for kind in ("Local", "Global"):
        for index in table.definition.get(f"{kind}SecondaryIndexes", ()):
            key = _key(table, index["KeySchema"])
            if kind == "Local":  # it has the partition key of its table
                key.pop("partitionKey")
            name = {"indexName": index["IndexName"]}
            yield f"add{kind}SecondaryIndex", {**name, **key, **write_shape(_INDEX, index)}


def _overrides(definition: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The properties that the construct cannot express, by their names in CloudFormation."""
    if key := definition.get("SSESpecification", {}).get("KMSMasterKeyId"):
        yield "SSESpecification.KMSMasterKeyId", key
        yield "SSESpecification.SSEType", "KMS"
    if policy := definition.get("ResourcePolicy"):
        yield "ResourcePolicy.PolicyDocument", json.loads(policy)
    if vectors := definition.get("VectorIndexes"):
        yield "AttributeDefinitions", definition["AttributeDefinitions"]
        yield "VectorIndexes", vectors


# The languages


class CdkLanguage(NamedTuple):
    """How a language writes values and calls; names are those of TypeScript, until they are written."""

    this: str
    new: str
    end: str  # of a statement
    resource: str  # that of a construct
    braces: tuple[str, str]
    indent: int  # of a statement
    step: int
    name: Callable[[str], str]  # of a member, an argument or a method
    scalar: Callable[[Any], str]
    has_named_arguments: bool  # in place of a struct

    def value(self, value: Any, indent: int) -> str:
        """A value that begins at an indentation."""
        inner = indent + self.step
        if isinstance(value, CdkCode):
            return value.text
        if isinstance(value, CdkStruct):
            brackets = (f"{value.type}(", ")") if self.has_named_arguments else self.braces
            return self.bracketed(*brackets, self.members(value.members, indent), indent)
        if isinstance(value, dict):
            parts = [f"{_literal(name)}: {self.value(of, inner)}" for name, of in value.items()]
            return self.bracketed(*self.braces, parts, indent)
        if isinstance(value, list):
            return self.bracketed("[", "]", [self.value(of, inner) for of in value], indent)
        return self.scalar(value)

    def members(self, members: Mapping[str, Any], indent: int) -> list[str]:
        """Members, or arguments that have names."""
        sign, inner = "=" if self.has_named_arguments else ": ", indent + self.step
        return [f"{self.name(name)}{sign}{self.value(of, inner)}" for name, of in members.items()]

    def call(self, function: str, values: Sequence[Any], members: Mapping[str, Any]) -> str:
        """A call with values, and with arguments that have names, or a struct of them."""
        parts = [self.value(each, self.indent) for each in values]
        if self.has_named_arguments:
            parts += self.members(members, self.indent)
            return self.bracketed(f"{function}(", ")", parts, self.indent)
        structs = [self.value(CdkStruct("", members), self.indent)] if members else []
        return f"{function}({', '.join([*parts, *structs])})"

    def bracketed(self, begin: str, end: str, parts: Sequence[str], indent: int) -> str:
        """Parts in brackets: on one line, or each on its own."""
        line = f"{begin}{', '.join(parts)}{end}"
        if "\n" not in line and indent + len(line) <= _WIDTH:
            return line
        space = " " * self.step
        lines = [space + part.replace("\n", f"\n{space}") + "," for part in parts]
        return "\n".join([begin.rstrip(), *lines, end.lstrip()])

    def statements(self, name: str, table: DeployableTable) -> Iterator[str]:
        """The statements that make a table."""
        own = f"{self.this}.{self.name(name)}"
        arguments = {
            "tableName": table.name,
            **_key(table, table.definition["KeySchema"]),
            **write_shape(_TABLE, table.definition),
        }
        values = [CdkCode(self.this), name]
        yield self.call(f"{own} = {self.new}dynamodb.Table", values, arguments)
        for method, members in _indexes(table):
            yield self.call(f"{own}.{self.name(method)}", [], members)
        for tag in table.definition.get("Tags", ()):
            yield self.call(f"cdk.Tags.of({own}).add", [tag["Key"], tag["Value"]], {})
        for path, value in _overrides(table.definition):
            function = f"{self.resource.format(own)}.{self.name('addPropertyOverride')}"
            yield self.call(function, [path, value], {})

    def body(self, tables: Sequence[DeployableTable]) -> str:
        """The statements of all tables, with an empty line between two."""
        space = " " * self.indent
        names = logical_names([table.name for table in tables])
        return "\n".join(
            "".join(
                f"{space}{statement}{self.end}\n".replace("\n", f"\n{space}").removesuffix(space)
                for statement in self.statements(name, table)
            )
            for name, table in zip(names, tables, strict=True)
        )


def _literal(text: Any) -> str:
    """A text, which is written alike in both languages; or another scalar in TypeScript."""
    return "".join(map(_escaped, json.dumps(text, ensure_ascii=False)))


def _escaped(character: str) -> str:
    """The languages have different escapes above U+FFFF, where no character needs one."""
    is_plain = character.isprintable() or ord(character) > 0xFFFF
    return character if is_plain else f"\\u{ord(character):04x}"


_PYTHON: Final = CdkLanguage(
    this="self",
    new="",
    end="",
    resource="{}.node.default_child",
    braces=("{", "}"),
    indent=8,
    step=4,
    name=lambda name: _CAPITAL.sub(r"_\1", name).lower(),
    scalar=lambda value: _literal(value) if isinstance(value, str) else repr(value),
    has_named_arguments=True,
)
_TYPESCRIPT: Final = CdkLanguage(
    this="this",
    new="new ",
    end=";",
    resource="({}.node.defaultChild as dynamodb.CfnTable)",
    braces=("{ ", " }"),
    indent=4,
    step=2,
    name=lambda name: name[0].lower() + name[1:],
    scalar=_literal,
    has_named_arguments=False,
)


# The files


def write_python(tables: Sequence[DeployableTable]) -> str:
    """A module with a stack, which is also an app: `cdk deploy --app "python FILE"`."""
    return _PYTHON_FILE.replace("BODY\n", _PYTHON.body(tables))


def write_typescript(tables: Sequence[DeployableTable]) -> str:
    """A module with a stack, for an app of your own."""
    names = [_TYPESCRIPT.name(name) for name in logical_names([table.name for table in tables])]
    members = "".join(f"  readonly {name}: dynamodb.Table;\n" for name in names)
    body = _TYPESCRIPT.body(tables)
    return _TYPESCRIPT_FILE.replace("MEMBERS\n", members).replace("BODY\n", body)


_PYTHON_FILE: Final = """\
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct


class TablesStack(cdk.Stack):
    def __init__(self, scope: Construct, construct_id: str, **kwargs) -> None:
        super().__init__(scope, construct_id, **kwargs)

BODY


if __name__ == "__main__":
    app = cdk.App()
    TablesStack(app, "TablesStack")
    app.synth()
"""
_TYPESCRIPT_FILE: Final = """\
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
