"""CloudFormation's global tables, read as the table of their first replica.

The CDK's `TableV2` makes a global table even for a single region. Its capacity is that of auto scaling, of which the
least is taken; what a replica has of its own becomes the table's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isotone.schema.deployable import DEFINITION
from isotone.schema.document import DocumentValue
from isotone.schema.shapes import At, ObjectShape, merged, read_shape


def _least(units: str) -> At:
    """The least capacity of auto scaling, as provisioned units."""
    return At("", ObjectShape({"MinCapacity": At(units, int)}))


_WRITES: Final = {
    "WriteProvisionedThroughputSettings": At(
        "ProvisionedThroughput",
        ObjectShape({}, {"WriteCapacityAutoScalingSettings": _least("WriteCapacityUnits")}),
    ),
    "WriteOnDemandThroughputSettings": At(
        "OnDemandThroughput", ObjectShape({}, {"MaxWriteRequestUnits": int})
    ),
}
_READS: Final = {
    "ReadProvisionedThroughputSettings": At(
        "ProvisionedThroughput",
        ObjectShape(
            {},
            {
                "ReadCapacityAutoScalingSettings": _least("ReadCapacityUnits"),
                "ReadCapacityUnits": int,
            },
        ),
    ),
    "ReadOnDemandThroughputSettings": At(
        "OnDemandThroughput", ObjectShape({}, {"MaxReadRequestUnits": int})
    ),
}
_OF_TABLES: Final = (
    *("TableName", "AttributeDefinitions", "LocalSecondaryIndexes", "BillingMode"),
    *("WarmThroughput", "StreamSpecification", "SSESpecification", "TimeToLiveSpecification"),
)
_OF_REPLICAS: Final = (
    *("PointInTimeRecoverySpecification", "TableClass", "DeletionProtectionEnabled"),
    *("ResourcePolicy", "Tags"),
)
_INDEX: Final = DEFINITION["GlobalSecondaryIndexes"][0].required


def read_global_table(given: DocumentValue, properties: Mapping[str, Any]) -> dict[str, Any]:
    """The definition of a global table; `properties` are the shapes of those of a table."""
    members = given.members()
    replicas = members["Replicas"].elements() if "Replicas" in members else []
    if not replicas:
        raise given.refusal("lacks Replicas")
    for other in replicas[1:]:
        other.note(f"{other.place} is not read")
    index = ObjectShape(_INDEX, {"WarmThroughput": DEFINITION["WarmThroughput"], **_WRITES})
    table = {
        **{name: properties[name] for name in _OF_TABLES},
        **_WRITES,
        "GlobalSecondaryIndexes": [index],
        "Replicas": None,
    }
    replica = {
        **{name: properties[name] for name in _OF_REPLICAS},
        **_READS,
        "Region": None,
        "SSESpecification": At(
            "SSESpecification",
            ObjectShape({"KMSMasterKeyId": str}),
            read=lambda key: {"Enabled": True, **key},
        ),
        "GlobalSecondaryIndexes": [ObjectShape({"IndexName": str}, _READS)],
    }
    shape = ObjectShape({"KeySchema": properties["KeySchema"]}, table)
    whole = read_shape(shape, given)
    own = read_shape(ObjectShape({}, replica), replicas[0])
    reads = {each["IndexName"]: each for each in own.pop("GlobalSecondaryIndexes", ())}
    indexes = [
        merged(reads.get(each["IndexName"], {}), each)
        for each in whole.pop("GlobalSecondaryIndexes", ())
    ]
    return {**merged(own, whole), "GlobalSecondaryIndexes": indexes}
