"""Terraform's resources `aws_dynamodb_table`, with `aws_dynamodb_resource_policy`; other resources are counted.

A block `key_schema` is written only for a key with several attributes in a part, since older versions of the provider
do not know it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from isotone.schema.deployable import (
    LONGEST_RECOVERY,
    PROVISIONED,
    DeployableTable,
    ReadTables,
    key_names,
    normal_request,
)
from isotone.schema.document import DocumentValue, ObjectShape, taken
from isotone.schema.hcl import (
    Expressions,
    HclBlock,
    HclReference,
    as_parsed,
    hcl_text,
    parsed_hcl,
    unquoted,
)
from isotone.text_table import pluralized

TABLE: Final = "aws_dynamodb_table"
_POLICY: Final = "aws_dynamodb_resource_policy"
_LIMITS: Final = {
    "max_read_request_units": "MaxReadRequestUnits",
    "max_write_request_units": "MaxWriteRequestUnits",
}
_WARM: Final = {
    "read_units_per_second": "ReadUnitsPerSecond",
    "write_units_per_second": "WriteUnitsPerSecond",
}
_UNITS: Final = {"read_capacity": "ReadCapacityUnits", "write_capacity": "WriteCapacityUnits"}


# Writing


def write(tables: Sequence[DeployableTable]) -> str:
    """The resources of tables."""
    blocks: list[HclBlock] = []
    taken_names: set[str] = set()
    for table in tables:
        name = _resource_name(table.name, taken_names)
        taken_names.add(name)
        blocks.append(_resource(table, name))
        if policy := table.request.get("ResourcePolicy"):
            reference = HclReference(f"{TABLE}.{name}.arn")
            attributes = {"resource_arn": reference, "policy": policy}
            blocks.append(HclBlock("resource", (_POLICY, name), attributes))
    return hcl_text(blocks)


def _resource_name(name: str, others: set[str]) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    wanted = words if words[:1].isalpha() else f"table_{words}"
    own, number = wanted, 2
    while own in others:
        own, number = f"{wanted}_{number}", number + 1
    return own


def _resource(table: DeployableTable, name: str) -> HclBlock:
    request = table.request
    stream = request.get("StreamSpecification")
    attributes = {
        "name": table.name,
        "billing_mode": request["BillingMode"],
        **_renamed(_UNITS, request.get("ProvisionedThroughput")),
        **_key(request["KeySchema"]),
        "table_class": request.get("TableClass"),
        "deletion_protection_enabled": request.get("DeletionProtectionEnabled"),
        "stream_enabled": True if stream else None,
        "stream_view_type": stream["StreamViewType"] if stream else None,
        "tags": {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())} or None,
    }
    return HclBlock("resource", (TABLE, name), _present(attributes), tuple(_blocks(table, request)))


def _blocks(table: DeployableTable, request: Mapping[str, Any]) -> Iterator[HclBlock]:
    for each in request["AttributeDefinitions"]:
        definition = {"name": each["AttributeName"], "type": each["AttributeType"]}
        yield HclBlock("attribute", (), definition)
    for index in request.get("LocalSecondaryIndexes", ()):
        key = {"range_key": key_names(index["KeySchema"], "RANGE")[0]}
        attributes = {"name": index["IndexName"], **key, **_projection(index)}
        yield HclBlock("local_secondary_index", (), attributes)
    for index in request.get("GlobalSecondaryIndexes", ()):
        yield _global_index(index)
    if table.expiry:
        yield HclBlock("ttl", (), {"attribute_name": table.expiry, "enabled": True})
    if table.recovery_days:
        own = table.recovery_days != LONGEST_RECOVERY
        period = {"recovery_period_in_days": table.recovery_days} if own else {}
        yield HclBlock("point_in_time_recovery", (), {"enabled": True, **period})
    if encryption := request.get("SSESpecification"):
        settings = {"enabled": True, "kms_key_arn": encryption.get("KMSMasterKeyId")}
        yield HclBlock("server_side_encryption", (), _present(settings))
    yield from _capacity(request)


def _global_index(index: Mapping[str, Any]) -> HclBlock:
    key = _key(index["KeySchema"])
    attributes = {
        "name": index["IndexName"],
        **(key or {}),
        **_projection(index),
        **_renamed(_UNITS, index.get("ProvisionedThroughput")),
    }
    schema = [
        HclBlock(
            "key_schema",
            (),
            {"attribute_name": each["AttributeName"], "key_type": each["KeyType"]},
        )
        for each in index["KeySchema"]
        if not key
    ]
    return HclBlock("global_secondary_index", (), attributes, (*schema, *_capacity(index)))


def _key(schema: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """A key with one attribute in each part; empty if a part has several."""
    hashed, ranged = key_names(schema, "HASH"), key_names(schema, "RANGE")
    if len(hashed) > 1 or len(ranged) > 1:
        return {}
    return {"hash_key": hashed[0]} | ({"range_key": ranged[0]} if ranged else {})


def _projection(index: Mapping[str, Any]) -> dict[str, Any]:
    projection = index["Projection"]
    names = projection.get("NonKeyAttributes")
    return _present({"projection_type": projection["ProjectionType"], "non_key_attributes": names})


def _capacity(of: Mapping[str, Any]) -> Iterator[HclBlock]:
    for name, names, member in (
        ("on_demand_throughput", _LIMITS, "OnDemandThroughput"),
        ("warm_throughput", _WARM, "WarmThroughput"),
    ):
        if member in of:
            yield HclBlock(name, (), _renamed(names, of[member]))


def _renamed(names: Mapping[str, str], members: Mapping[str, Any] | None) -> dict[str, Any]:
    given = members or {}
    return {own: given[name] for own, name in names.items() if name in given}


def _present(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


# Reading

_PROJECTED: Final = {"projection_type": str, "non_key_attributes": [str]}
_KEYS: Final = {
    "hash_key": str,
    "range_key": str,
    "key_schema": [ObjectShape({"attribute_name": str, "key_type": str})],
}
_CAPACITY: Final = {
    **dict.fromkeys(_UNITS, int),
    "on_demand_throughput": [ObjectShape({}, dict.fromkeys(_LIMITS, int))],
    "warm_throughput": [ObjectShape({}, dict.fromkeys(_WARM, int))],
}
_RESOURCE: Final = ObjectShape(
    {"name": str, "attribute": [ObjectShape({"name": str, "type": str})]},
    {
        **_KEYS,
        **_CAPACITY,
        "billing_mode": str,
        "table_class": str,
        "deletion_protection_enabled": bool,
        "stream_enabled": bool,
        "stream_view_type": str,
        "tags": object,
        "ttl": [ObjectShape({}, {"attribute_name": str, "enabled": bool})],
        "point_in_time_recovery": [
            ObjectShape({"enabled": bool}, {"recovery_period_in_days": int})
        ],
        "server_side_encryption": [ObjectShape({"enabled": bool}, {"kms_key_arn": str})],
        "local_secondary_index": [ObjectShape({"name": str, "range_key": str}, _PROJECTED)],
        "global_secondary_index": [
            ObjectShape({"name": str}, {**_KEYS, **_PROJECTED, **_CAPACITY})
        ],
        # What does not change the table.
        **dict.fromkeys(("lifecycle", "depends_on", "provider", "timeouts", "tags_all")),
    },
)


_TWICE: Final = "is defined twice; Terraform refuses that, too"


def read(text: str, source: str, parameters: Mapping[str, str]) -> ReadTables:
    """The tables of a configuration: a file, or all files of a folder one after the other."""
    blocks = parsed_hcl(text, source)
    variables = _variables(blocks, parameters, source)
    given = (each for block in _all(blocks, "locals") for each in _without_marks(block).items())
    locals_ = _by_name("local", given, source)
    expressions = Expressions(source, variables, locals_)
    root = DocumentValue(None, "", source, expressions.resolve)
    notes: list[str] = []
    tables: dict[str, DeployableTable] = {}
    policies: list[DocumentValue] = []
    others = 0
    for kind, name, body in _labelled(blocks, "resource"):
        value = root.with_value(_without_marks(body), f"{kind}.{name}")
        if kind == TABLE and name in tables:
            raise value.refusal(_TWICE)
        if kind == TABLE:
            tables[name] = _table(value, notes)
        elif kind == _POLICY:
            policies.append(value)
        else:
            others += 1
    others += sum(1 for kind in ("module", "data") for _ in _all(blocks, kind))
    for policy in policies:
        others += not _add_policy(policy, tables)
    if others:
        notes.append(f"{source}: not read: {pluralized(others, 'other resource')}")
    return ReadTables(list(tables.values()), notes)


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


def _by_name(kind: str, given: Iterable[tuple[str, Any]], source: str) -> dict[str, Any]:
    """Values by their names; raises `UsageError` for a name that is there twice, as Terraform does."""
    found: dict[str, Any] = {}
    for name, value in given:
        if name in found:
            raise DocumentValue(value, f"{kind}.{name}", source).refusal(_TWICE)
        found[name] = value
    return found


def _variables(
    blocks: Mapping[str, Any], parameters: Mapping[str, str], source: str
) -> dict[str, Any]:
    given = (
        (unquoted(name), body)
        for block in _all(blocks, "variable")
        for name, body in block.items()
        if isinstance(body, dict)
    )
    declared = _by_name("variable", given, source)
    for name in parameters:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise DocumentValue(None, "", source).refusal(
                f"has no variable {name!r}; its variables: {known}"
            )
    defaults = {name: body["default"] for name, body in declared.items() if "default" in body}
    return {**defaults, **{name: as_parsed(value) for name, value in parameters.items()}}


def _without_marks(value: Any) -> Any:
    """A body without the parser's own marks."""
    if isinstance(value, dict):
        return {
            name: _without_marks(each)
            for name, each in value.items()
            if name not in ("__is_block__", "__start_line__", "__end_line__")
        }
    return [_without_marks(each) for each in value] if isinstance(value, list) else value


def _table(value: DocumentValue, notes: list[str]) -> DeployableTable:
    if "dynamic" in value.members():
        raise value.refusal("has a dynamic block, which is not computed; write its blocks out")
    unread: list[str] = []
    found = taken(value, _RESOURCE, unread)
    notes += [f"{value.source}: {place} is not read" for place in unread]
    expiry, recovery = _only(found, "ttl"), _only(found, "point_in_time_recovery")
    encryption = _only(found, "server_side_encryption")
    tags = found.get("tags") or {}
    if not isinstance(tags, dict):
        raise value.refusal("has tags that are no map")
    hashed = _read_key(value, found)
    request = {
        "TableName": found["name"],
        "AttributeDefinitions": [
            {"AttributeName": each["name"], "AttributeType": each["type"]}
            for each in found["attribute"]
        ],
        "KeySchema": hashed,
        "LocalSecondaryIndexes": [
            {
                "IndexName": index["name"],
                "KeySchema": [hashed[0], {"AttributeName": index["range_key"], "KeyType": "RANGE"}],
                "Projection": _read_projection(index),
            }
            for index in found.get("local_secondary_index", ())
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index["name"],
                "KeySchema": _read_key(value, index),
                "Projection": _read_projection(index),
                **_read_capacity(index),
            }
            for index in found.get("global_secondary_index", ())
        ],
        "BillingMode": found.get("billing_mode", PROVISIONED),
        **_read_capacity(found),
        "StreamSpecification": {
            "StreamEnabled": found.get("stream_enabled", False),
            "StreamViewType": found.get("stream_view_type"),
        },
        "SSESpecification": {
            "Enabled": encryption.get("enabled"),
            "KMSMasterKeyId": encryption.get("kms_key_arn"),
        },
        "TableClass": found.get("table_class"),
        "DeletionProtectionEnabled": found.get("deletion_protection_enabled"),
        "Tags": [{"Key": name, "Value": str(each)} for name, each in tags.items()],
    }
    days = recovery.get("recovery_period_in_days", LONGEST_RECOVERY)
    return DeployableTable(
        request=normal_request(request),
        expiry=expiry.get("attribute_name") if expiry.get("enabled") else None,
        recovery_days=days if recovery.get("enabled") else 0,
    )


def _only(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The block of a type of which there is at most one."""
    return next(iter(found.get(name, ())), {})


def _read_key(value: DocumentValue, of: Mapping[str, Any]) -> list[dict[str, str]]:
    if schema := of.get("key_schema"):
        return [
            {"AttributeName": each["attribute_name"], "KeyType": each["key_type"]}
            for each in schema
        ]
    if "hash_key" not in of:
        raise value.refusal(f"lacks the hash_key of {of['name']}")
    pairs = ((of["hash_key"], "HASH"), (of.get("range_key"), "RANGE"))
    return [{"AttributeName": name, "KeyType": kind} for name, kind in pairs if name]


def _read_projection(index: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "ProjectionType": index.get("projection_type", "ALL"),
        "NonKeyAttributes": index.get("non_key_attributes"),
    }


def _read_capacity(of: Mapping[str, Any]) -> dict[str, Any]:
    units = {name: of[own] for own, name in _UNITS.items() if own in of}
    limits, warm = _only(of, "on_demand_throughput"), _only(of, "warm_throughput")
    return {
        "ProvisionedThroughput": units or None,
        "OnDemandThroughput": {name: limits[own] for own, name in _LIMITS.items() if own in limits},
        "WarmThroughput": {name: warm[own] for own, name in _WARM.items() if own in warm},
    }


_ARN_OF: Final = re.compile(rf"\$\{{{TABLE}\.([A-Za-z0-9_-]+)\.arn\}}")


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
