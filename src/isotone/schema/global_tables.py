"""CloudFormation's global tables, read as the table of their first replica.

The CDK's `TableV2` makes a global table even for a single region. Its capacity is that of auto scaling, of which the
least is taken; what a replica has of its own becomes the table's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isotone.schema.document import REQUEST, TAGS, DocumentValue, ObjectShape, taken

_INDEX: Final = REQUEST["GlobalSecondaryIndexes"][0]
_WRITES: Final = {
    "WriteProvisionedThroughputSettings": ObjectShape(
        {}, {"WriteCapacityAutoScalingSettings": ObjectShape({"MinCapacity": int})}
    ),
    "WriteOnDemandThroughputSettings": ObjectShape({}, {"MaxWriteRequestUnits": int}),
}
_READS: Final = {
    "ReadProvisionedThroughputSettings": ObjectShape(
        {},
        {
            "ReadCapacityUnits": int,
            "ReadCapacityAutoScalingSettings": ObjectShape({"MinCapacity": int}),
        },
    ),
    "ReadOnDemandThroughputSettings": ObjectShape({}, {"MaxReadRequestUnits": int}),
}


def read_global_table(
    given: DocumentValue, properties: Mapping[str, Any], unread: list[str]
) -> dict[str, Any]:
    """The properties of a global table, in the form of those of a table; `properties` are the latter's shapes."""
    replicas = given.members().get("Replicas")
    if replicas is None or not replicas.elements():
        raise given.refusal("lacks Replicas")
    first, *others = replicas.elements()
    unread += [other.place for other in others]
    of_replica = {
        name: properties[name]
        for name in (
            *("PointInTimeRecoverySpecification", "TableClass", "DeletionProtectionEnabled"),
            "ResourcePolicy",
        )
    }
    replica = taken(
        first,
        ObjectShape(
            {},
            {
                **of_replica,
                **_READS,
                "Region": None,
                "Tags": TAGS,
                "SSESpecification": ObjectShape({"KMSMasterKeyId": str}),
                "GlobalSecondaryIndexes": [ObjectShape({"IndexName": str}, _READS)],
            },
        ),
        unread,
    )
    plain = ("AttributeDefinitions", "LocalSecondaryIndexes", "BillingMode", "WarmThroughput")
    shape = {
        **{name: properties[name] for name in (*plain, "TableName", "StreamSpecification")},
        **_WRITES,
        "GlobalSecondaryIndexes": [
            ObjectShape(
                _INDEX.required, {"WarmThroughput": properties["WarmThroughput"], **_WRITES}
            )
        ],
        "SSESpecification": properties["SSESpecification"],
        "TimeToLiveSpecification": properties["TimeToLiveSpecification"],
        "Replicas": None,
    }
    table = taken(given, ObjectShape({"KeySchema": properties["KeySchema"]}, shape), unread)
    return _merged(table, replica)


def _merged(table: dict[str, Any], replica: dict[str, Any]) -> dict[str, Any]:
    own = {index["IndexName"]: index for index in replica.pop("GlobalSecondaryIndexes", ())}
    indexes = [
        _with_capacity(index, own.get(index["IndexName"], {}))
        for index in table.pop("GlobalSecondaryIndexes", ())
    ]
    encryption = table.pop("SSESpecification", {}) | replica.pop("SSESpecification", {})
    key = {"SSESpecification": {"SSEEnabled": True, **encryption}} if encryption else {}
    whole = _with_capacity(table, replica)
    members = {name: value for name, value in replica.items() if name not in _READS}
    return {**whole, **members, **key, "GlobalSecondaryIndexes": indexes}


def _with_capacity(written: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    """A table or an index with the capacity that its parts state for reads and for writes."""
    writes = written.get("WriteProvisionedThroughputSettings", {})
    reads = read.get("ReadProvisionedThroughputSettings", {})
    least = writes.get("WriteCapacityAutoScalingSettings", {}).get("MinCapacity")
    units = reads.get("ReadCapacityUnits") or reads.get("ReadCapacityAutoScalingSettings", {}).get(
        "MinCapacity"
    )
    found = {name: value for name, value in written.items() if name not in _WRITES}
    if least and units:
        found["ProvisionedThroughput"] = {"ReadCapacityUnits": units, "WriteCapacityUnits": least}
    limits = {
        **read.get("ReadOnDemandThroughputSettings", {}),
        **written.get("WriteOnDemandThroughputSettings", {}),
    }
    return {**found, **({"OnDemandThroughput": limits} if limits else {})}
