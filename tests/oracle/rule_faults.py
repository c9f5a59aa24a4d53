"""Values that break a rule of an action, by the member that has them; the service model does not know these."""

from __future__ import annotations

from typing import Any, Final

from tests.oracle.faults import KEY
from tests.oracle.scripts import Request, index, n, s

_EQ: Final = {"ComparisonOperator": "EQ", "AttributeValueList": [s("a")]}


def nested(levels: int, kind: str = "L") -> Request:
    """A value so many levels deep."""
    value = s("a")
    for _ in range(levels - 1):
        value = {"L": [value]} if kind == "L" else {"M": {"m": value}}
    return value


BAD_VALUES: Final[tuple[tuple[str, Any], ...]] = (
    ("empty value", {}),
    ("two types", {"S": "a", "N": "1"}),
    ("unknown type", {"X": "a"}),
    ("no number", {"N": "x"}),
    ("empty number", {"N": ""}),
    ("overflow", {"N": "1e126"}),
    ("zero overflow", {"N": "0e126"}),
    ("underflow", {"N": "1e-131"}),
    ("zero underflow", {"N": "0e-131"}),
    ("far overflow", {"N": "1e99999999999"}),
    ("far underflow", {"N": "1e-99999999999"}),
    ("int overflow", {"N": "1e2147483647"}),
    ("int overflow by one", {"N": "1e2147483648"}),
    ("int underflow", {"N": "-1e-2147483649"}),
    ("39 digits", {"N": "1" * 39}),
    ("empty set of texts", {"SS": []}),
    ("empty set of numbers", {"NS": []}),
    ("empty set of binaries", {"BS": []}),
    ("empty text in a set", {"SS": [""]}),
    ("duplicates", {"SS": ["b", "a", "b"]}),
    ("duplicate numbers", {"NS": ["2", "1.0", "1"]}),
    ("duplicate binaries", {"BS": ["AQ==", "AA==", "AQ=="]}),
    ("no number in a set", {"NS": ["1", "x"]}),
    ("null is false", {"NULL": False}),
    ("33 levels", nested(33)),
    ("34 levels", nested(34)),
    ("63 levels", nested(63)),
    ("64 levels", nested(64)),
    ("100 levels", nested(100)),
    ("40 levels of maps", nested(40, "M")),
    ("bad inside", {"L": [{"M": {"m": {"N": "x"}}}]}),
    ("empty inside", {"M": {"m": {"L": [{}]}}}),
    ("empty name inside", {"M": {"": s("a")}}),
    ("text for a list", {"L": "a"}),
    ("number for a text", {"S": 1}),
    ("no base64", {"B": "!"}),
)
OF_KEYS: Final[tuple[tuple[str, Any], ...]] = (
    ("of another type", n(1)),
    ("empty", s("")),
    ("a list", {"L": []}),
    ("long", s("k" * 3000)),
)
_CONDITION: Final = (
    ("syntax", "a ="),
    ("undefined value", "a = :u"),
    ("undefined name", "#u = a"),
    ("reserved", "attribute_exists(size)"),
    ("function", "foo(a)"),
    ("false", "attribute_exists(zz)"),
    ("operand", "begins_with(a, :num)"),
    ("empty", ""),
    ("redundant parentheses", "((a = a))"),
    ("long", f"a = :v OR {'x' * 4100} = :v"),
)
_PROJECTION: Final = (
    ("syntax", "a,"),
    ("overlap", "a, a.b"),
    ("undefined name", "#u"),
    ("reserved", "size"),
    ("empty", ""),
)
_UPDATE: Final = (
    ("syntax", "SET y ="),
    ("of the key", "SET s = :v"),
    ("of an index key", "SET r = :v"),
    ("path", "SET zz.y = :v"),
    ("operand", "SET x = x + :v"),
    ("undefined value", "SET y = :u"),
    ("overlap", "SET y = :v, y.z = :v"),
    ("twice", "SET y = :v SET z = :v"),
    ("empty", ""),
)
_KEY_CONDITION: Final = (
    ("syntax", "p ="),
    ("undefined value", "p = :u"),
    ("of others", "p = :v AND a = :v"),
    ("no partition", "s = :v"),
    ("two on the sort key", "p = :v AND s > :v AND s < :v"),
    ("three", "p = :v AND s = :v AND a = :v AND b = :v"),
    ("or", "p = :v OR s = :v"),
    ("unequal", "p > :v"),
    ("begins with", "p = :v AND begins_with(s, :num)"),
    ("of the type", "p = :num"),
)
_CHOICES: Final = ("COUNT", "SPECIFIC_ATTRIBUTES", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
_EXPECTED: Final = (
    ("exists without value", {"a": {"Exists": True}}),
    ("operator", {"a": {"ComparisonOperator": "XX"}}),
    ("arguments", {"a": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [n(1)]}}),
    ("types", {"a": {"ComparisonOperator": "LT", "AttributeValueList": [{"SS": ["a"]}]}}),
    ("both", {"a": {"Exists": False, "Value": n(1)}}),
    ("false", {"x": {"Exists": False}}),
    ("bad value", {"a": {"Value": {"N": "x"}}}),
    ("100 levels", {"a": {"Value": nested(100)}}),
)
_START: Final = (
    ("short", {"p": s("a")}),
    ("no number", {"p": s("a"), "s": {"N": "x"}}),
    ("of another type", {"p": s("a"), "s": s("a")}),
    ("outside", {"p": s("b"), "s": n(1)}),
    ("valid", KEY),
)
_NAMES: Final = (
    ("unused", {"#z": "z"}),
    ("malformed", {"z": "z"}),
    ("empty name", {"#z": ""}),
    ("none", {}),
)
_VALUE_SETS: Final = (
    ("unused", {":z": s("z")}),
    ("malformed", {"z": s("z")}),
    ("number", {":num": n(1), ":v": s("a")}),
    ("none", {}),
)

_OF_ITEMS: Final[dict[str, tuple[tuple[str, Any], ...]]] = {
    "ConditionExpression": _CONDITION,
    "FilterExpression": _CONDITION,
    "ProjectionExpression": _PROJECTION,
    "UpdateExpression": _UPDATE,
    "KeyConditionExpression": _KEY_CONDITION,
    "ExpressionAttributeNames": _NAMES,
    "ExpressionAttributeValues": _VALUE_SETS,
    "Expected": _EXPECTED,
    "ScanFilter": _EXPECTED[1:4],
    "QueryFilter": _EXPECTED[1:4],
    "KeyConditions": (*_EXPECTED[1:4], ("none", {}), ("of others", {"a": _EQ})),
    "ExclusiveStartKey": _START,
    "Select": tuple((each, each) for each in _CHOICES),
    "ConditionalOperator": (("XOR", "XOR"), ("or", "OR"), ("empty", "")),
    "AttributesToGet": (("repeated", ["a", "a"]), ("one", ["a"]), ("empty name", [""])),
    "ReturnValues": (("all new", "ALL_NEW"), ("all old", "ALL_OLD"), ("updated", "UPDATED_NEW")),
    "ConsistentRead": (("yes", True),),
    "Segment": (("five", 5), ("none", 0)),
    "TotalSegments": (("two", 2),),
    "ClientRequestToken": (("long", "t" * 37), ("empty", "")),
    "AttributeUpdates": (
        ("add a text", {"y": {"Action": "ADD", "Value": s("a")}}),
        ("put nothing", {"y": {"Action": "PUT"}}),
        ("of the key", {"s": {"Action": "PUT", "Value": n(2)}}),
        ("bad value", {"y": {"Action": "PUT", "Value": {"N": "x"}}}),
        ("100 levels", {"y": {"Action": "PUT", "Value": nested(100)}}),
        ("none", {}),
    ),
    "SearchConditionExpression": (
        ("syntax", "x ="),
        ("undefined value", "x = :u"),
        ("of others", "y = :v"),
        ("of another type", "x = :num"),
    ),
    "SearchVector": (("long", [{"N": "1"}] * 3), ("text", [s("a"), s("b")])),
    "TopK": (("many", 10**6),),
    "Statement": (
        ("syntax", "SELECT FROM"),
        ("parameters", "SELECT * FROM tab WHERE p = ? AND s = ? AND x = ?"),
        ("absent table", "SELECT * FROM absent WHERE p = 'a' AND s = 1"),
        ("absent index", "SELECT * FROM tab.absent WHERE p = 'a' AND s = 1"),
        ("wrong key", "SELECT * FROM tab WHERE p = 1 AND s = 1"),
        ("part of the key", "DELETE FROM tab WHERE p = 'a'"),
        ("write", "DELETE FROM tab WHERE p = 'a' AND s = 1"),
        ("read", "SELECT * FROM tab WHERE p = 'a' AND s = 1"),
        ("of the key", "UPDATE tab SET s = 2 WHERE p = 'a' AND s = 1"),
        ("exists", "EXISTS(SELECT * FROM tab WHERE p = 'a' AND s = 1)"),
        ("literal", "SELECT * FROM tab WHERE p = 'a' AND s = 1e200"),
    ),
    "Parameters": (
        ("no number", [{"N": "x"}, {"N": "1"}]),
        ("too deep", [nested(40)]),
        ("three", [s("a"), n(1), n(2)]),
    ),
}

_DEFINED: Final = [{"AttributeName": name, "AttributeType": "S"} for name in "psgrl"]
_SOME: Final = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
_GLOBAL: Final = index("g-more", "gr")
_ALL: Final = {"ProjectionType": "ALL"}
_VECTOR: Final[Request] = {
    "IndexName": "more",
    "VectorAttribute": {"AttributeName": "w"},
    "Dimensions": 2,
    "DistanceFunction": "COSINE",
    "Projection": _ALL,
}


def _key(*parts: tuple[str, str]) -> list[Request]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in parts]


def _arn(place: str) -> str:
    return f"arn:aws:dynamodb:us-east-1:000000000000:table/{place}"


_ARNS: Final = (
    ("no arn", "table/tab" + "x" * 40),
    ("absent", _arn("absent/backup/01700000000000-0a0b0c0d")),
    ("of a table", _arn("tab") + "x" * 0),
    ("garbled", "arn:" + "x" * 50),
)

_OF_TABLES: Final[dict[str, tuple[tuple[str, Any], ...]]] = {
    "IndexName": (("absent", "absent"), ("short", "ab"), ("empty", ""), ("local", "l-all")),
    "TableName": (
        ("absent", "absent"),
        ("taken", "tab"),
        ("protected", "safe"),
        ("arn", "arn:aws:dynamodb:us-east-1:1:table/x"),
    ),
    "TargetTableName": (("taken", "tab"),),
    "SourceTableName": (("absent", "absent"), ("not recovered", "prov")),
    "GlobalTableName": (("absent", "absent"), ("taken", "glob"), ("no global one", "tab")),
    "BillingMode": (("on demand", "PAY_PER_REQUEST"), ("provisioned", "PROVISIONED")),
    "BillingModeOverride": (("on demand", "PAY_PER_REQUEST"), ("provisioned", "PROVISIONED")),
    "GlobalTableBillingMode": (("provisioned", "PROVISIONED"),),
    "ProvisionedThroughput": (
        ("some", _SOME),
        ("out of bounds", {"ReadCapacityUnits": 10**13, "WriteCapacityUnits": 5}),
    ),
    "ProvisionedThroughputOverride": (("some", _SOME),),
    "OnDemandThroughput": (
        ("zero", {"MaxReadRequestUnits": 0}),
        ("some", {"MaxReadRequestUnits": 5}),
    ),
    "WarmThroughput": (("low", {"ReadUnitsPerSecond": 1}), ("zero", {"ReadUnitsPerSecond": 0})),
    "AttributeDefinitions": (
        ("twice", [*_DEFINED[:2], _DEFINED[0]]),
        ("others", [{"AttributeName": "q", "AttributeType": "S"}]),
        ("too few", _DEFINED[:1]),
        ("too many", [*_DEFINED, {"AttributeName": "q", "AttributeType": "S"}]),
        ("of another type", [{"AttributeName": "p", "AttributeType": "B"}, *_DEFINED[1:]]),
    ),
    "KeySchema": (
        ("ranges", _key(("p", "RANGE"), ("s", "RANGE"))),
        ("hashes", _key(("p", "HASH"), ("s", "HASH"))),
        ("one name", _key(("p", "HASH"), ("p", "RANGE"))),
        ("undefined", _key(("q", "HASH"))),
        ("half undefined", _key(("p", "HASH"), ("q", "RANGE"))),
        ("hash alone", _key(("p", "HASH"))),
    ),
    "Projection": (
        ("names without include", {"ProjectionType": "ALL", "NonKeyAttributes": ["x"]}),
        ("include without names", {"ProjectionType": "INCLUDE"}),
        ("no type", {}),
        ("repeated names", {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x", "x"]}),
    ),
    "GlobalSecondaryIndexes": (
        ("twice", [_GLOBAL, _GLOBAL]),
        ("like a local one", [{**_GLOBAL, "IndexName": "l-all"}]),
        ("provisioned", [{**_GLOBAL, "ProvisionedThroughput": _SOME}]),
        ("too many", [{**_GLOBAL, "IndexName": f"g-{place}"} for place in range(21)]),
    ),
    "LocalSecondaryIndexes": (
        ("twice", [index("l-more", "pl")] * 2),
        ("another hash", [index("l-more", "gl")]),
        ("no range", [index("l-more", "p")]),
        ("too many", [index(f"l-{place}", "pl") for place in range(6)]),
    ),
    "VectorIndexes": (
        ("one", [_VECTOR]),
        ("twice", [_VECTOR] * 2),
        ("dimensions", [{**_VECTOR, "Dimensions": 10**6}]),
        ("defined", [{**_VECTOR, "VectorAttribute": {"AttributeName": "p"}}]),
    ),
    "VectorIndexUpdates": (
        ("nothing", [{}]),
        ("both", [{"Create": _VECTOR, "Delete": {"IndexName": "vec"}}]),
        ("another", [{"Create": {**_VECTOR, "IndexName": "vec"}}]),
        ("absent", [{"Delete": {"IndexName": "absent"}}]),
    ),
    "StreamSpecification": (
        ("enabled without view", {"StreamEnabled": True}),
        ("disabled with view", {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}),
        ("enabled", {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}),
        ("disabled", {"StreamEnabled": False}),
    ),
    "GlobalSecondaryIndexUpdates": (
        ("nothing", [{}]),
        ("both", [{"Create": _GLOBAL, "Delete": {"IndexName": "g-all"}}]),
        ("twice", [{"Delete": {"IndexName": "g-all"}}] * 2),
        ("two", [{"Delete": {"IndexName": "g-all"}}, {"Delete": {"IndexName": "g-keys"}}]),
        ("absent", [{"Delete": {"IndexName": "absent"}}]),
        ("another", [{"Create": {**_GLOBAL, "IndexName": "g-all"}}]),
        ("capacity", [{"Update": {"IndexName": "g-all", "ProvisionedThroughput": _SOME}}]),
        ("index alone", [{"IndexName": "absent"}]),
    ),
    "ReplicaUpdates": (
        ("here", [{"Create": {"RegionName": "us-east-1"}}]),
        ("no part", [{"Delete": {"RegionName": "ap-south-1"}}]),
        ("nothing", [{}]),
        ("twice", [{"Create": {"RegionName": "eu-west-1"}}] * 2),
        ("absent", [{"RegionName": "ap-south-1"}]),
    ),
    "ReplicationGroup": (
        ("twice", [{"RegionName": "us-east-1"}] * 2),
        ("no name", [{}]),
        ("absent", [{"RegionName": "ap-south-1"}]),
    ),
    "ReplicaSettingsUpdate": (("absent", [{"RegionName": "ap-south-1"}]),),
    "MultiRegionConsistency": (("strong", "STRONG"),),
    "GlobalTableWitnessUpdates": (("absent", [{"Delete": {"RegionName": "ap-south-1"}}]),),
    "GlobalTableProvisionedWriteCapacityUnits": (("some", 5),),
    "ProvisionedWriteCapacityAutoScalingUpdate": (
        ("half", {"MinimumUnits": 5}),
        ("crossed", {"MinimumUnits": 5, "MaximumUnits": 4}),
    ),
    "TimeToLiveSpecification": (
        ("disabled", {"Enabled": False, "AttributeName": "ttl"}),
        ("enabled", {"Enabled": True, "AttributeName": "ttl"}),
        ("another", {"Enabled": True, "AttributeName": "other"}),
    ),
    "Tags": (
        ("twice", [{"Key": "k", "Value": "v"}] * 2),
        ("reserved", [{"Key": "aws:k", "Value": "v"}]),
        ("characters", [{"Key": "k", "Value": "<>"}]),
        ("many", [{"Key": f"k{place}", "Value": "v"} for place in range(51)]),
    ),
    "ResourceArn": (
        ("absent", _arn("absent")),
        ("no arn", "tab"),
        ("garbled", "arn:x"),
        ("of another", "arn:aws:dynamodb:us-east-1:123456789012:table/tab"),
    ),
    "Policy": (
        ("no json", "{"),
        ("no statement", "{}"),
        ("long", "{" + " " * 30_000 + "}"),
    ),
    "ResourcePolicy": (("no json", "{"),),
    "ExpectedRevisionId": (("another", "1"), ("none", "NO_POLICY")),
    "EnableKinesisStreamingConfiguration": (("none", {}),),
    "UpdateKinesisStreamingConfiguration": (
        ("none", {}),
        ("equal", {"ApproximateCreationDateTimePrecision": "MILLISECOND"}),
    ),
    "MaxResults": (("zero", 0), ("below", -1)),
    "NextToken": (("no token", "x" * 120), ("short", "x"), ("of zeros", "0" * 112)),
}

_OF_COPIES: Final[dict[str, tuple[tuple[str, Any], ...]]] = {
    "StreamArn": (*_ARNS, ("absent stream", _arn("tab/stream/2026-01-01T00:00:00.000"))),
    "ExclusiveStartStreamArn": _ARNS,
    "BackupArn": _ARNS,
    "ExportArn": _ARNS,
    "ImportArn": _ARNS,
    "BulkOperationArn": _ARNS,
    "TableArn": (("absent", _arn("absent")), ("not recovered", _arn("prov")), ("short", "ab")),
    "SourceTableArn": (("absent", _arn("absent")),),
    "ShardId": (("absent", "shardId-00000000000000000000-absent"),),
    "ShardFilter": (("no shard", {"Type": "CHILD_SHARDS"}), ("no type", {"ShardId": "s" * 30})),
    "ExclusiveStartShardId": (("some", "shardId-00000000000000000000-absent"),),
    "ShardIteratorType": (
        ("at a number", "AT_SEQUENCE_NUMBER"),
        ("at a time", "AT_TIMESTAMP"),
        ("trim", "TRIM_HORIZON"),
    ),
    "SequenceNumber": (("some", "1" * 21), ("no number", "x" * 21)),
    "ShardIterator": (("garbled", "x"),),
    "Limit": (("many", 10**6),),
    "UseLatestRestorableTime": (("no", False),),
    "RestoreDateTime": (("long ago", 1.0),),
    "ExportTime": (("long ago", 1.0),),
    "ExportType": (("incremental", "INCREMENTAL_EXPORT"),),
    "IncrementalExportSpecification": (("none", {}), ("long ago", {"ExportFromTime": 1.0})),
    "FilterSpecification": (
        ("syntax", {"FilterExpression": "a ="}),
        ("unused", {"ProjectionExpression": "p", "ExpressionAttributeNames": {"#z": "z"}}),
    ),
    "S3SseKmsKeyId": (("key", "key"),),
    "S3SseAlgorithm": (("aes", "AES256"),),
    "S3KeyPrefix": (("leaves", "../x"),),
    "S3Prefix": (("leaves", "../x"),),
    "InputFormat": (("ion", "ION"),),
    "OutputType": (("none", []),),
    "LocalSecondaryIndexOverride": (("absent", [index("absent", "pl")]),),
    "GlobalSecondaryIndexOverride": (
        ("absent", [index("absent", "g")]),
        ("twice", [index("g-keys", "g", "KEYS_ONLY")] * 2),
        (
            "warm",
            [{**index("g-keys", "g", "KEYS_ONLY"), "WarmThroughput": {"ReadUnitsPerSecond": 1}}],
        ),
    ),
}

RULE_FAULTS: Final[dict[str, tuple[tuple[str, Any], ...]]] = {
    **_OF_ITEMS,
    **_OF_TABLES,
    **_OF_COPIES,
}
"""Values that break a rule of an action, by the member that has them."""
