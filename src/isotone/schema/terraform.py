"""Terraform's resources `aws_dynamodb_table`, their names, and resource policies; other resources are counted.

A block `key_schema` is written only for a key with several attributes in a part, since older versions of the provider
do not know it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from isotone.schema.deployable import (
    TAGS_BY_NAME,
    DeployableTable,
    deployable,
    key_names,
    unique_names,
)
from isotone.schema.document import DocumentValue
from isotone.schema.features import is_wide
from isotone.schema.hcl import Expressions, HclReference, as_parsed, unquoted
from isotone.schema.shapes import At, ObjectShape, read_shape, write_shape
from isotone.text_table import pluralized

_TABLE: Final = "aws_dynamodb_table"
_POLICY: Final = "aws_dynamodb_resource_policy"


def _block(path: str, required: Mapping[str, Any], optional: Mapping[str, Any]) -> At:
    """A block that occurs at most once."""
    return At(
        path,
        [ObjectShape(required, optional)],
        read=lambda blocks: blocks[0] if blocks else {},
        write=lambda found: [found],
    )


def _key_part(kind: str) -> At:
    """The only attribute of a part of a key."""

    def name(schema: Sequence[Mapping[str, str]]) -> str | None:
        return None if is_wide(schema) else next(iter(key_names(schema, kind)), None)

    return At("KeySchema", read=lambda name: [{"AttributeName": name, "KeyType": kind}], write=name)


# Attributes stand before blocks, in the order of the provider's documentation.
_RANGE_KEY: Final = _key_part("RANGE")
_KEY: Final = {"hash_key": _key_part("HASH"), "range_key": _RANGE_KEY}
_KEY_BLOCKS: Final = {
    "key_schema": At(
        "KeySchema",
        [ObjectShape({"attribute_name": At("AttributeName"), "key_type": At("KeyType")})],
        write=lambda schema: schema if is_wide(schema) else None,
    )
}
_PROJECTION: Final = {
    "projection_type": At("Projection.ProjectionType"),
    "non_key_attributes": At("Projection.NonKeyAttributes", [str]),
}
_UNITS: Final = {
    "read_capacity": At("ProvisionedThroughput.ReadCapacityUnits", int),
    "write_capacity": At("ProvisionedThroughput.WriteCapacityUnits", int),
}
_CAPACITY_BLOCKS: Final = {
    "on_demand_throughput": _block(
        "OnDemandThroughput",
        {},
        {
            "max_read_request_units": At("MaxReadRequestUnits", int),
            "max_write_request_units": At("MaxWriteRequestUnits", int),
        },
    ),
    "warm_throughput": _block(
        "WarmThroughput",
        {},
        {
            "read_units_per_second": At("ReadUnitsPerSecond", int),
            "write_units_per_second": At("WriteUnitsPerSecond", int),
        },
    ),
}
_RESOURCE: Final = ObjectShape(
    {
        "name": At("TableName"),
        "attribute": At(
            "AttributeDefinitions",
            [ObjectShape({"name": At("AttributeName"), "type": At("AttributeType")})],
        ),
    },
    {
        "billing_mode": At("BillingMode"),
        **_UNITS,
        **_KEY,
        **_KEY_BLOCKS,
        "table_class": At("TableClass"),
        "deletion_protection_enabled": At("DeletionProtectionEnabled", bool),
        "stream_enabled": At("StreamSpecification.StreamEnabled", bool),
        "stream_view_type": At("StreamSpecification.StreamViewType"),
        "tags": TAGS_BY_NAME,
        "local_secondary_index": At(
            "LocalSecondaryIndexes",
            [ObjectShape({"name": At("IndexName"), "range_key": _RANGE_KEY}, _PROJECTION)],
        ),
        "global_secondary_index": At(
            "GlobalSecondaryIndexes",
            [
                ObjectShape(
                    {"name": At("IndexName")},
                    {**_KEY, **_PROJECTION, **_UNITS, **_KEY_BLOCKS, **_CAPACITY_BLOCKS},
                )
            ],
        ),
        "ttl": _block(
            "TimeToLiveSpecification",
            {},
            {"attribute_name": At("AttributeName"), "enabled": At("Enabled", bool)},
        ),
        "point_in_time_recovery": _block(
            "PointInTimeRecoverySpecification",
            {"enabled": At("PointInTimeRecoveryEnabled", bool)},
            {"recovery_period_in_days": At("RecoveryPeriodInDays", int)},
        ),
        "server_side_encryption": _block(
            "SSESpecification",
            {"enabled": At("Enabled", bool)},
            {"kms_key_arn": At("KMSMasterKeyId")},
        ),
        **_CAPACITY_BLOCKS,
        # What does not change the table.
        **dict.fromkeys(("lifecycle", "depends_on", "provider", "timeouts", "tags_all")),
    },
)


# Writing


def write(tables: Sequence[DeployableTable]) -> dict[tuple[str, str], Any]:
    """The resources of tables."""
    words = [re.sub(r"[^a-z0-9]+", "_", table.name.lower()).strip("_") for table in tables]
    names = unique_names((each if each[:1].isalpha() else f"table_{each}" for each in words), "_")
    resources = {}
    for name, table in zip(names, tables, strict=True):
        resources[_TABLE, name] = write_shape(_RESOURCE, table.definition)
        if policy := table.definition.get("ResourcePolicy"):
            arn = HclReference(f"{_TABLE}.{name}.arn")
            resources[_POLICY, name] = {"resource_arn": arn, "policy": policy}
    return resources


# Reading

_TWICE: Final = "is defined twice; Terraform refuses that, too"


def read(root: DocumentValue, parameters: Mapping[str, str]) -> list[DeployableTable]:
    """The tables of a configuration: a file, or all files of a folder one after the other."""
    blocks = root.given
    given = (each for block in _all(blocks, "locals") for each in _without_marks(block).items())
    locals_ = _by_name("local", given, root)
    expressions = Expressions(root.source, _variables(root, parameters), locals_)
    tables: dict[str, DeployableTable] = {}
    policies: list[DocumentValue] = []
    others = sum(1 for kind in ("module", "data") for _ in _all(blocks, kind))
    for kind, name, body in _labelled(blocks, "resource"):
        value = DocumentValue(
            _without_marks(body), root.source, root.notes, f"{kind}.{name}", expressions.resolve
        )
        if kind == _TABLE and name in tables:
            raise value.refusal(_TWICE)
        if kind == _TABLE:
            tables[name] = _table(value)
        elif kind == _POLICY:
            policies.append(value)
        else:
            others += 1
    for policy in policies:
        others += not _add_policy(policy, tables)
    if others:
        root.note(f"not read: {pluralized(others, 'other resource')}")
    return list(tables.values())


def _all(blocks: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """The blocks of a type; none if the name is that of an attribute."""
    found = blocks.get(kind, ())
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _labelled(blocks: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str, Any]]:
    """The blocks with two labels."""
    for block in _all(blocks, kind):
        for first, inner in block.items():
            if isinstance(inner, dict):
                for second, body in inner.items():
                    if isinstance(body, dict):
                        yield unquoted(first), unquoted(second), body


def _by_name(kind: str, given: Iterable[tuple[str, Any]], root: DocumentValue) -> dict[str, Any]:
    """Values by their names; raises `UsageError` for a name that is there twice, as Terraform does."""
    found: dict[str, Any] = {}
    for name, value in given:
        if name in found:
            raise DocumentValue(value, root.source, root.notes, f"{kind}.{name}").refusal(_TWICE)
        found[name] = value
    return found


def _variables(root: DocumentValue, parameters: Mapping[str, str]) -> dict[str, Any]:
    given = (
        (unquoted(name), body)
        for block in _all(root.given, "variable")
        for name, body in block.items()
        if isinstance(body, dict)
    )
    declared = _by_name("variable", given, root)
    for name in parameters:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise root.refusal(f"has no variable {name!r}; its variables: {known}")
    defaults = {name: body["default"] for name, body in declared.items() if "default" in body}
    chosen = {name: _given(declared[name], value) for name, value in parameters.items()}
    return {**defaults, **chosen}


def _given(variable: Mapping[str, Any], value: str) -> str:
    """What is given for a variable, as the parser gives it: of a number or a truth value the text without quotes."""
    is_plain = variable.get("type") in ("number", "bool")
    is_like_default = isinstance(
        variable.get("default"), int | float
    )  # which a truth value is, too
    return value if is_plain or is_like_default else str(as_parsed(value))


def _without_marks(value: Any) -> Any:
    """A body without the parser's own marks."""
    if isinstance(value, dict):
        return {
            name: _without_marks(each)
            for name, each in value.items()
            if name not in ("__is_block__", "__start_line__", "__end_line__")
        }
    return [_without_marks(each) for each in value] if isinstance(value, list) else value


def _table(value: DocumentValue) -> DeployableTable:
    if "dynamic" in value.members():
        raise value.refusal("has a dynamic block, which is not computed; write its blocks out")
    found = read_shape(_RESOURCE, value)
    for each in (found, *found.get("GlobalSecondaryIndexes", ())):
        if not key_names(each.get("KeySchema", ()), "HASH"):
            name = each.get("TableName") or each["IndexName"]
            raise value.refusal(f"lacks the hash_key of {name}")
    hashed = [each for each in found["KeySchema"] if each["KeyType"] == "HASH"]
    for index in found.get("LocalSecondaryIndexes", ()):
        index["KeySchema"] = [*hashed, *index["KeySchema"]]
    return deployable(found)


_ARN_OF: Final = re.compile(rf"\$\{{{_TABLE}\.([A-Za-z0-9_-]+)\.arn\}}")


def _add_policy(value: DocumentValue, tables: dict[str, DeployableTable]) -> bool:
    """Give a table its policy; false for the policy of another resource."""
    members = value.members()
    arn = members["resource_arn"].given if "resource_arn" in members else None
    match = _ARN_OF.fullmatch(arn) if isinstance(arn, str) else None
    if match is None or match[1] not in tables or "policy" not in members:
        return False
    table = tables[match[1]]
    tables[match[1]] = table.with_members(ResourcePolicy=members["policy"].text())
    return True
