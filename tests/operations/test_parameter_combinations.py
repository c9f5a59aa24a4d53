"""What requests may combine, in the words of the service."""

from __future__ import annotations

import json
from typing import Any

import pytest

import isotone
from isotone.errors import ApiError, ResourceNotFoundException

DATABASE = isotone.open()
INVALID = "One or more parameter values were invalid: "
KEY = {"p": {"S": "a"}}
NAMES = {"#a": "b"}
VALUES = {":a": {"S": "x"}}
ABSENT = {"Exists": False}
IS_NULL = {"ComparisonOperator": "NULL"}
KEYED = {"p": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}}

DEFAULTS: dict[str, dict[str, Any]] = {
    "GetItem": {"TableName": "abc", "Key": KEY},
    "PutItem": {"TableName": "abc", "Item": KEY},
    "UpdateItem": {"TableName": "abc", "Key": KEY},
    "DeleteItem": {"TableName": "abc", "Key": KEY},
    "Query": {"TableName": "abc", "KeyConditions": KEYED},
    "Scan": {"TableName": "abc"},
    "UpdateTable": {"TableName": "abc"},
}


def verdict(operation: str, members: dict[str, Any]) -> str | None:
    """The message of the refusal, or None."""
    request = {**DEFAULTS.get(operation, {}), **members}
    present = {name: value for name, value in request.items() if value is not None}
    try:
        with DATABASE.rolled_back():
            DATABASE.execute(operation, json.dumps(present).encode())
    except ResourceNotFoundException:  # there are no tables: the rules let the request pass
        return None
    except ApiError as error:
        return error.message
    return None


def mixed(legacy: str, expressions: str) -> str:
    return (
        "Can not use both expression and non-expression parameters in the same request: "
        f"Non-expression parameters: {{{legacy}}} Expression parameters: {{{expressions}}}"
    )


COUNT = "1 validation error detected: "
NAMES_ONLY = "ExpressionAttributeNames can only be specified when using expressions"
VALUES_ONLY = "ExpressionAttributeValues can only be specified when using expressions: "
OLD_ONLY = "ReturnValues can only be ALL_OLD or NONE"
NO_FILTER = "ConditionalOperator cannot be used without Filter or Expected"

PARAMETERS: list[tuple[str, dict[str, Any], str | None]] = [
    (
        "GetItem",
        {"AttributesToGet": ["a"], "ProjectionExpression": "b"},
        mixed("AttributesToGet", "ProjectionExpression"),
    ),
    ("GetItem", {"ExpressionAttributeNames": NAMES}, NAMES_ONLY),
    ("GetItem", {"ExpressionAttributeNames": NAMES, "AttributesToGet": ["a"]}, NAMES_ONLY),
    ("GetItem", {"ExpressionAttributeNames": NAMES, "ProjectionExpression": "#a"}, None),
    ("GetItem", {"AttributesToGet": ["a", "b"]}, None),
    (
        "GetItem",
        {"AttributesToGet": ["a", "b", "a"]},
        INVALID + "Duplicate value in attribute name: a",
    ),
    ("PutItem", {}, None),
    (
        "PutItem",
        {"Expected": {"a": ABSENT}, "ConditionalOperator": "AND", "ConditionExpression": "a = b"},
        COUNT + mixed("Expected, ConditionalOperator", "ConditionExpression"),
    ),
    ("PutItem", {"ExpressionAttributeValues": VALUES}, COUNT + VALUES_ONLY.removesuffix(": ")),
    (
        "PutItem",
        {"ExpressionAttributeValues": VALUES, "ExpressionAttributeNames": NAMES},
        COUNT + NAMES_ONLY,
    ),
    ("PutItem", {"ConditionalOperator": "AND"}, COUNT + NO_FILTER),
    ("PutItem", {"ConditionalOperator": "OR", "Expected": {}}, COUNT + NO_FILTER),
    ("PutItem", {"ConditionalOperator": "OR", "Expected": {"a": ABSENT, "b": ABSENT}}, None),
    (
        "PutItem",
        {"Expected": {"a": {"ComparisonOperator": "IS"}}},
        COUNT + INVALID + "Invalid comparison operator",
    ),
    (
        "PutItem",
        {"ConditionalOperator": "NOR", "Expected": {"a": ABSENT, "b": ABSENT}},
        COUNT + "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]",
    ),
    ("PutItem", {"ReturnValues": "ALL_OLD"}, None),
    ("PutItem", {"ReturnValues": "ALL_NEW"}, COUNT + OLD_ONLY),
    ("DeleteItem", {"ReturnValues": "UPDATED_OLD"}, COUNT + OLD_ONLY),
    ("UpdateItem", {"ReturnValues": "UPDATED_NEW"}, None),
    (
        "UpdateItem",
        {
            "AttributeUpdates": {"a": {"Action": "DELETE"}},
            "Expected": {"a": ABSENT},
            "UpdateExpression": "REMOVE a",
            "ConditionExpression": "a = b",
        },
        COUNT + mixed("AttributeUpdates, Expected", "UpdateExpression, ConditionExpression"),
    ),
    (
        "UpdateItem",
        {"ExpressionAttributeValues": VALUES, "AttributeUpdates": {"a": {"Action": "DELETE"}}},
        COUNT + VALUES_ONLY.removesuffix(": "),
    ),
    ("UpdateItem", {"UpdateExpression": "SET a = :a", "ExpressionAttributeValues": VALUES}, None),
    (
        "Query",
        {
            "AttributesToGet": ["a"],
            "QueryFilter": {"a": IS_NULL, "b": IS_NULL},
            "ConditionalOperator": "AND",
            "KeyConditionExpression": "p = :a",
            "FilterExpression": "x = :a",
            "ProjectionExpression": "z",
            "ExpressionAttributeValues": VALUES,
        },
        mixed(
            "AttributesToGet, QueryFilter, ConditionalOperator, KeyConditions",
            "ProjectionExpression, FilterExpression, KeyConditionExpression",
        ),
    ),
    ("Query", {"FilterExpression": "x = :a", "ExpressionAttributeValues": VALUES}, None),
    (
        "Query",
        {"ProjectionExpression": "x", "ExpressionAttributeValues": VALUES},
        VALUES_ONLY + "FilterExpression and KeyConditionExpression are null",
    ),
    ("Query", {"ConditionalOperator": "OR"}, NO_FILTER),
    (
        "Scan",
        {"ScanFilter": {"a": IS_NULL}, "FilterExpression": "a = b"},
        mixed("ScanFilter", "FilterExpression"),
    ),
    (
        "Scan",
        {"ExpressionAttributeValues": VALUES, "ProjectionExpression": "a"},
        VALUES_ONLY + "FilterExpression is null",
    ),
]

SELECTED: list[tuple[str, dict[str, Any], str | None]] = [
    ("Query", {"Select": "ALL_ATTRIBUTES"}, None),
    ("Query", {"Select": "COUNT"}, None),
    ("Query", {"Select": "SPECIFIC_ATTRIBUTES", "AttributesToGet": ["a"]}, None),
    (
        "Query",
        {"Select": "SPECIFIC_ATTRIBUTES"},
        COUNT + "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
        "SPECIFIC_ATTRIBUTES",
    ),
    (
        "Query",
        {"Select": "ALL_ATTRIBUTES", "AttributesToGet": ["a"]},
        COUNT + "Cannot specify the AttributesToGet when choosing to get ALL_ATTRIBUTES",
    ),
    (
        "Scan",
        {"Select": "ALL_PROJECTED_ATTRIBUTES", "ProjectionExpression": "a"},
        "Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES",
    ),
    (
        "Scan",
        {"Select": "COUNT", "ProjectionExpression": "a"},
        "Cannot specify the ProjectionExpression when choosing to get only the Count",
    ),
    (
        "Scan",
        {"Select": "ALL_PROJECTED_ATTRIBUTES"},
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    ),
    ("Scan", {"Select": "ALL_PROJECTED_ATTRIBUTES", "IndexName": "idx"}, None),
    ("Scan", {"Segment": 3, "TotalSegments": 4}, None),
    (
        "Scan",
        {"Segment": 4, "TotalSegments": 4},
        "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
        "Segment: 4 is not less than TotalSegments: 4",
    ),
    (
        "Scan",
        {"Segment": 0},
        "The TotalSegments parameter is required but was not present in the request when "
        "Segment parameter is present",
    ),
    (
        "Scan",
        {"TotalSegments": 1},
        "The Segment parameter is required but was not present in the request when "
        "parameter TotalSegments is present",
    ),
]

PUT = {"PutRequest": {"Item": KEY}}
DELETE = {"DeleteRequest": {"Key": KEY}}
TRANSACT_PUT = {"TableName": "abc", "Item": KEY}
TRANSACT_DELETE = {"TableName": "abc", "Key": KEY}

SEVERAL: list[tuple[str, dict[str, Any], str | None]] = [
    ("BatchGetItem", {"RequestItems": {"abc": {"Keys": [KEY]}}}, None),
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [KEY] * 60}, "def": {"Keys": [KEY] * 41}}},
        "Too many items requested for the BatchGetItem call",
    ),
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": [KEY], "ExpressionAttributeNames": NAMES}}},
        NAMES_ONLY,
    ),
    ("BatchWriteItem", {"RequestItems": {"abc": [PUT, DELETE]}}, None),
    (
        "BatchWriteItem",
        {"RequestItems": {"abc": [PUT] * 13, "def": [DELETE] * 13}},
        "Too many items requested for the BatchWriteItem call",
    ),
    (
        "BatchWriteItem",
        {"RequestItems": {"abc": [{**PUT, **DELETE}]}},
        "Supplied AttributeValue has more than one datatypes set, "
        "must contain exactly one of the supported datatypes",
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Put": TRANSACT_PUT}, {"Delete": TRANSACT_DELETE}]},
        None,
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Put": TRANSACT_PUT, "Delete": TRANSACT_DELETE}]},
        "TransactItems can only contain one of Check, Put, Update or Delete",
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{}]},
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {**TRANSACT_PUT, "ExpressionAttributeValues": VALUES}}]},
        None,  # with a table it is refused: test_two_faults.py
    ),
    (
        "TransactGetItems",
        {"TransactItems": [{"Get": {"TableName": "a;", "Key": KEY}}]},
        "2 validation errors detected: "
        "Value 'a;' at 'transactItems.1.member.get.tableName' failed to satisfy constraint: "
        "Member must have length greater than or equal to 3; "
        "Value 'a;' at 'transactItems.1.member.get.tableName' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    ),
    (
        "TransactGetItems",
        {"TransactItems": [{"Get": {**TRANSACT_DELETE, "ExpressionAttributeNames": NAMES}}]},
        NAMES_ONLY,
    ),
    (
        "TransactGetItems",
        {"TransactItems": [{"Get": {**TRANSACT_DELETE, "ExpressionAttributeNames": {}}}]},
        None,
    ),
    (
        "TransactWriteItems",
        {
            "TransactItems": [
                {
                    "Delete": {
                        **TRANSACT_DELETE,
                        "ExpressionAttributeNames": {},
                        "ExpressionAttributeValues": {},
                    }
                }
            ]
        },
        None,
    ),
]

TAGS: list[tuple[str, dict[str, Any], str | None]] = [
    (
        "TagResource",
        {"ResourceArn": "arn:aws:dynamodb:us-east-1:1:table/abc", "Tags": []},
        "Atleast one Tag needs to be provided as Input.",
    ),
    (
        "UntagResource",
        {"ResourceArn": "arn:aws:dynamodb:us-east-1:1:table/abc", "TagKeys": []},
        "Atleast one Tag Key needs to be provided as Input.",
    ),
    (
        "ListTagsOfResource",
        {"ResourceArn": "abc"},
        "One or more parameter values were invalid: ARNs must start with 'arn:': abc",
    ),
]


@pytest.mark.parametrize(
    ("operation", "members", "message"), [*PARAMETERS, *SELECTED, *SEVERAL, *TAGS]
)
def test_what_may_be_combined(operation: str, members: dict[str, Any], message: str | None) -> None:
    assert verdict(operation, members) == message


def attribute(name: str) -> dict[str, str]:
    return {"AttributeName": name, "AttributeType": "S"}


def keys(hashed: str, ranged: str = "") -> list[dict[str, str]]:
    kinds = [*((name, "HASH") for name in hashed), *((name, "RANGE") for name in ranged)]
    return [{"AttributeName": name, "KeyType": kind} for name, kind in kinds]


def index(name: str = "idx", schema: Any = None, projection: Any = None, **members: Any) -> Any:
    return {
        "IndexName": name,
        "KeySchema": schema or keys("a"),
        "Projection": {"ProjectionType": "ALL"} if projection is None else projection,
        **members,
    }


def include(*names: str) -> dict[str, Any]:
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(names)}


UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}


def table(attributes: str = "a", schema: Any = None, **members: Any) -> dict[str, Any]:
    return {
        "TableName": "abc",
        "AttributeDefinitions": [attribute(name) for name in attributes],
        "KeySchema": schema or keys("a"),
        "BillingMode": "PAY_PER_REQUEST",
        **members,
    }


def local(*indexes: Any, attributes: str = "ab") -> dict[str, Any]:
    return table(attributes, keys("a", "b"), LocalSecondaryIndexes=list(indexes))


def global_(*indexes: Any, attributes: str = "a", **members: Any) -> dict[str, Any]:
    return table(attributes, GlobalSecondaryIndexes=list(indexes), **members)


FIRST_NOT_HASH = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
UNDEFINED_KEY = "Invalid KeySchema: Some index key attribute have no definition"
SAME_NAME = "Both the Hash Key and the Range Key element in the KeySchema have the same name"

TABLES: list[tuple[dict[str, Any], str | None]] = [
    (table(), None),
    (table("ab", keys("a", "b")), None),
    (table(BillingMode="PROVISIONED", ProvisionedThroughput=UNITS), None),
    (
        table(ProvisionedThroughput=UNITS),
        INVALID + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
        "BillingMode is PAY_PER_REQUEST",
    ),
    (
        table(BillingMode=None),
        INVALID + "ReadCapacityUnits and WriteCapacityUnits must both be specified when "
        "BillingMode is PROVISIONED",
    ),
    (
        table(
            BillingMode="PROVISIONED",
            ProvisionedThroughput={"ReadCapacityUnits": 10**12 + 1, "WriteCapacityUnits": 1},
        ),
        "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
    ),
    (table("ab", keys("", "ab")), FIRST_NOT_HASH),
    (
        table("ab", keys("ab")),
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
    ),
    (table("a", keys("a", "a")), UNDEFINED_KEY),
    (table("ab", keys("a", "a")), UNDEFINED_KEY),
    (
        table("a", keys("b")),
        INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [b], AttributeDefinitions: [a]",
    ),
    (
        table("ab"),
        INVALID + "Number of attributes in KeySchema does not exactly match number of attributes "
        "defined in AttributeDefinitions",
    ),
    (local(), INVALID + "List of LocalSecondaryIndexes is empty"),
    (local(index(schema=keys("a", "b"))), None),
    (
        table(LocalSecondaryIndexes=[index()]),
        INVALID + "Table KeySchema does not have a range key, which is required when specifying a "
        "LocalSecondaryIndex",
    ),
    (local(index()), INVALID + "Index KeySchema does not have a range key for index: idx"),
    (
        local(index(schema=keys("b", "a"))),
        INVALID + "Index KeySchema does not have the same leading hash key as table KeySchema for "
        "index: idx. index hash key: b, table hash key: a",
    ),
    (
        local(index(schema=keys("a", "c"))),
        INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [a, c], AttributeDefinitions: [a, b]",
    ),
    (
        local(index(schema=keys("a", "c")), attributes="abcd"),
        INVALID + "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c, d], "
        "keys used: [a, b, c]",
    ),
    (
        local(*(index(f"idx{n}", keys("a", "b")) for n in range(6))),
        INVALID + "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
    ),
    (local(*[index(schema=keys("a", "b"))] * 2), INVALID + "Duplicate index name: idx"),
    (global_(), INVALID + "List of GlobalSecondaryIndexes is empty"),
    (global_(index()), None),
    (global_(index(), index()), INVALID + "Duplicate index name: idx"),
    (global_(index(schema=keys("", "a"))), FIRST_NOT_HASH),
    (global_(index(schema=keys("a", "a"))), SAME_NAME),
    (global_(index(schema=keys("abcd", "efgh")), attributes="abcdefgh"), None),
    (
        global_(index(schema=keys("abcde")), attributes="abcde"),
        INVALID + "The KeySchema exceeds the maximum allowed number of HASH key attributes",
    ),
    (
        global_(index(schema=keys("a", "bcdef")), attributes="abcdef"),
        INVALID + "The KeySchema exceeds the maximum allowed number of RANGE key attributes",
    ),
    (
        global_(*(index(f"idx{n}") for n in range(21))),
        INVALID + "GlobalSecondaryIndex count exceeds the per-table limit of 20",
    ),
    (global_(index(projection={})), INVALID + "Unknown ProjectionType: null"),
    (
        global_(index(projection={"ProjectionType": "ALL", "NonKeyAttributes": ["x"]})),
        INVALID + "ProjectionType is ALL, but NonKeyAttributes is specified",
    ),
    (
        global_(index(projection={"ProjectionType": "INCLUDE"})),
        INVALID + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
    (global_(index(projection=include("x"))), None),
    (
        global_(index(ProvisionedThroughput=UNITS)),
        INVALID + "ProvisionedThroughput should not be specified for index: idx when BillingMode "
        "is PAY_PER_REQUEST",
    ),
    (
        global_(index(), BillingMode="PROVISIONED", ProvisionedThroughput=UNITS),
        INVALID + "ProvisionedThroughput is not specified for index: idx",
    ),
]


@pytest.mark.parametrize(("request_", "message"), TABLES)
def test_create_table(request_: dict[str, Any], message: str | None) -> None:
    assert verdict("CreateTable", request_) == message


def test_the_names_that_all_indexes_project_are_counted_together() -> None:
    indexes = [
        index(f"idx{n}", projection=include(*(f"x{m}" for m in range(20)))) for n in range(6)
    ]
    assert verdict("CreateTable", global_(*indexes[:5])) is None
    assert verdict("CreateTable", global_(*indexes)) is not None


def updates(*each: dict[str, Any]) -> dict[str, Any]:
    return {"GlobalSecondaryIndexUpdates": list(each)}


ONE_AT_A_TIME = (
    "Subscriber limit exceeded: "
    "Only 1 online index can be created or deleted simultaneously per table"
)
NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"
)
UPDATES: list[tuple[dict[str, Any], str | None]] = [
    ({}, NOTHING),
    ({"AttributeDefinitions": [attribute("a")]}, NOTHING),
    (updates(), NOTHING),
    ({"DeletionProtectionEnabled": False}, None),
    (
        {"BillingMode": "PROVISIONED"},
        INVALID + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
    ),
    (
        {"BillingMode": "PAY_PER_REQUEST", "ProvisionedThroughput": UNITS},
        INVALID + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
        "BillingMode is PAY_PER_REQUEST",
    ),
    ({**updates({"Create": index()}), "AttributeDefinitions": [attribute("a")]}, None),
    (
        updates({"Create": index()}),
        INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [a], AttributeDefinitions: []",
    ),
    (updates({"Create": index("one")}, {"Create": index("two")}), ONE_AT_A_TIME),
    (updates({"Create": index("one")}, {"Delete": {"IndexName": "two"}}), ONE_AT_A_TIME),
    (
        updates({"Delete": {"IndexName": "idx"}}, {"Update": {"IndexName": "idx"}}),
        INVALID + "Only one global secondary index update per index is allowed simultaneously. "
        "Index: idx",
    ),
    (
        {
            **updates({"Create": index(projection={})}),
            "AttributeDefinitions": [attribute("a")],
        },
        INVALID + "Unknown ProjectionType: null",
    ),
]


@pytest.mark.parametrize(("members", "message"), UPDATES)
def test_update_table(members: dict[str, Any], message: str | None) -> None:
    assert verdict("UpdateTable", members) == message
