"""What a malformed request is told: SerializationException, then every broken constraint."""

from __future__ import annotations

import json
from typing import Any

import pytest

import isotone
from isotone.errors import ApiError
from isotone.operations.api import ACTIONS
from isotone.operations.request_decoding import decode
from isotone.operations.table_lookup import table_name

NULL = "Value null at '{}' failed to satisfy constraint: Member must not be null"
NO_CLASS = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class "
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base "
    "of loader 'bootstrap')"
)
PATTERN = (
    "1 validation error detected: Value '{}' at 'tableName' failed to satisfy constraint: "
    "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
)
KEY = {"p": {"S": "a"}}


def error(operation: str, request: Any) -> ApiError:
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    with isotone.open(":memory:") as database, pytest.raises(ApiError) as caught:
        database.send(operation, body)
    return caught.value


SERIALIZATION = [
    ("GetItem", b"", ""),
    ("GetItem", b"{", ""),
    ("GetItem", b"nonsense", ""),
    ("GetItem", b'{"TableName":"\xff"}', ""),
    ("GetItem", {"TableName": 5}, "NUMBER_VALUE cannot be converted to String"),
    ("GetItem", {"TableName": 5.5}, "DECIMAL_VALUE cannot be converted to String"),
    ("GetItem", {"TableName": True}, "TRUE_VALUE cannot be converted to String"),
    ("GetItem", {"TableName": False}, "FALSE_VALUE cannot be converted to String"),
    ("GetItem", {"TableName": []}, "Unrecognized collection type class java.lang.String"),
    ("GetItem", {"TableName": {}}, "Start of structure or map found where not expected"),
    ("GetItem", {"Key": "x"}, "Unexpected field type"),
    (
        "GetItem",
        {"Key": []},
        "Unrecognized collection type java.util.Map<java.lang.String, "
        "com.amazonaws.dynamodb.v20120810.AttributeValue>",
    ),
    (
        "GetItem",
        {"Key": {"p": []}},
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue",
    ),
    ("GetItem", {"AttributesToGet": "x"}, "Unexpected field type"),
    ("CreateTable", {"StreamSpecification": "x"}, "Unexpected field type"),
    ("CreateTable", {"KeySchema": [5]}, "Unexpected value type in payload"),
    ("BatchGetItem", {"RequestItems": {"t": "x"}}, "Unexpected value type in payload"),
    ("BatchGetItem", {"RequestItems": {"t": {"Keys": "x"}}}, "Unexpected field type"),
    ("BatchGetItem", {"RequestItems": {"t": {"Keys": [5]}}}, NO_CLASS),
    ("BatchGetItem", {"RequestItems": {"t": {"Keys": [[]]}}}, NO_CLASS),
    ("BatchWriteItem", {"RequestItems": {"t": {}}}, NO_CLASS),
    ("BatchWriteItem", {"RequestItems": {"t": [True]}}, "Unexpected value type in payload"),
    ("GetItem", {"AttributesToGet": {}}, "Start of structure or map found where not expected"),
    ("GetItem", {"AttributesToGet": [1]}, "NUMBER_VALUE cannot be converted to String"),
    ("GetItem", {"ConsistentRead": "yes"}, "Unexpected token received from parser"),
    ("GetItem", {"ConsistentRead": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
    ("Query", {"Limit": "10"}, "STRING_VALUE cannot be converted to Integer"),
    ("Query", {"Limit": True}, "TRUE_VALUE cannot be converted to Integer"),
    (
        "CreateTable",
        {"ProvisionedThroughput": {"ReadCapacityUnits": "1"}},
        "STRING_VALUE cannot be converted to Long",
    ),
    (
        "CreateTable",
        {"KeySchema": [[]]},
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.KeySchemaElement",
    ),
    (
        "BatchWriteItem",
        {"RequestItems": []},
        "Unrecognized collection type java.util.Map<java.lang.String, "
        "java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>>",
    ),
]


@pytest.mark.parametrize(("operation", "request_", "message"), SERIALIZATION)
def test_wrong_json_is_a_serialization_exception(
    operation: str, request_: Any, message: str
) -> None:
    refused = error(operation, request_)
    assert (refused.code, refused.message) == ("SerializationException", message)


def test_a_wrong_type_comes_before_a_broken_constraint() -> None:
    assert error("GetItem", {"TableName": "", "Key": 1}).code == "SerializationException"


CONSTRAINTS = [
    ("GetItem", {}, [NULL.format("key"), NULL.format("tableName")]),
    ("GetItem", {"TableName": None, "Key": KEY}, [NULL.format("tableName")]),
    (
        "Query",
        {"TableName": "", "Limit": 5},
        [
            "Value at 'TableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1"
        ],
    ),
    (
        "GetItem",
        {"TableName": "a;"},
        [
            NULL.format("key"),
            "Value 'a;' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3",
        ],
    ),
    (
        "GetItem",
        {"TableName": "abc", "Key": KEY, "AttributesToGet": []},
        [
            "Value '[]' at 'attributesToGet' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1"
        ],
    ),
    (
        "PutItem",
        {"TableName": "abc", "Item": KEY, "ReturnValues": "all"},
        [
            "Failed to satisfy constraint: Member must satisfy enum value set: "
            "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
        ],
    ),
    (
        "Query",
        {"TableName": "abc", "Limit": 0, "IndexName": "ab"},
        [
            "Value at 'Limit' failed to satisfy constraint: "
            "Member must have value greater than or equal to 1",
        ],
    ),
    (
        "Scan",
        {"TableName": "abc", "Segment": -1, "TotalSegments": 1_000_001},
        [
            "Value at 'Segment' failed to satisfy constraint: "
            "Member must have value greater than or equal to 0",
            "Value at 'TotalSegments' failed to satisfy constraint: "
            "Member must have value less than or equal to 1000000",
        ],
    ),
    (
        "CreateTable",
        {"TableName": "abc", "AttributeDefinitions": [], "KeySchema": [{"AttributeName": "p"}]},
        [NULL.format("keySchema.1.member.keyType")],
    ),
    (
        "CreateTable",
        {
            "TableName": "abc",
            "AttributeDefinitions": [{"AttributeName": "", "AttributeType": "X"}],
            "KeySchema": [],
        },
        [
            "Value '[]' at 'keySchema' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1",
            "Value '' at 'attributeDefinitions.1.member.attributeName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1",
            "Value 'X' at 'attributeDefinitions.1.member.attributeType' failed to satisfy "
            "constraint: Member must satisfy enum value set: [B, N, S]",
        ],
    ),
    (
        "CreateTable",
        {
            "TableName": "abc",
            "AttributeDefinitions": [],
            "KeySchema": [{"AttributeName": name, "KeyType": "HASH"} for name in "abc"],
        },
        [
            "Value '[KeySchemaElement(attributeName=a, keyType=HASH), "
            "KeySchemaElement(attributeName=b, keyType=HASH), "
            "KeySchemaElement(attributeName=c, keyType=HASH)]' at 'keySchema' failed to satisfy "
            "constraint: Member must have length less than or equal to 2"
        ],
    ),
    (
        "BatchWriteItem",
        {"RequestItems": {"abc": []}},
        [
            "Value '{abc=[]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy "
            "constraint: [Member must have length less than or equal to 25, "
            "Member must have length greater than or equal to 1]"
        ],
    ),
    (
        "BatchWriteItem",
        {"RequestItems": {"abc": [{"DeleteRequest": {}}]}},
        [NULL.format("requestItems.abc.member.1.member.deleteRequest.key")],
    ),
    (
        "BatchGetItem",
        {"RequestItems": {"abc": {"Keys": []}}},
        [
            "Value at 'RequestItems.abc.member.Keys' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1"
        ],
    ),
    ("TransactGetItems", {"TransactItems": [{}]}, [NULL.format("transactItems.1.member.get")]),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Put": {"TableName": "abc"}}]},
        [NULL.format("transactItems.1.member.put.item")],
    ),
    (
        "UntagResource",
        {"ResourceArn": "arn", "TagKeys": ["a", ""]},
        [
            "Value '[a, ]' at 'tagKeys' failed to satisfy constraint: Member must satisfy constraint: "
            "[Member must have length less than or equal to 128, "
            "Member must have length greater than or equal to 1]"
        ],
    ),
    (
        "ListTables",
        {"Limit": 101},
        [
            "Value '101' at 'limit' failed to satisfy constraint: "
            "Member must have value less than or equal to 100"
        ],
    ),
]


@pytest.mark.parametrize(("operation", "request_", "problems"), CONSTRAINTS)
def test_broken_constraints_are_counted_and_listed(
    operation: str, request_: Any, problems: list[str]
) -> None:
    counted = "1 validation error" if len(problems) == 1 else f"{len(problems)} validation errors"
    refused = error(operation, request_)
    assert refused.code == "ValidationException"
    assert refused.message == f"{counted} detected: {'; '.join(problems)}"


def test_ten_problems_are_listed_and_all_are_counted() -> None:
    definitions = [{"AttributeType": "S"}] * 11
    refused = error(
        "CreateTable",
        {
            "TableName": "abc",
            "AttributeDefinitions": definitions,
            "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        },
    )
    assert refused.message.startswith("11 validation errors detected: Value null at")
    assert refused.message.count("Member must not be null") == 10


@pytest.mark.parametrize("operation", ["DescribeTable", "DeleteTable", "UpdateTable"])
def test_control_plane_calls_judge_the_table_name_last_and_in_their_own_words(
    operation: str,
) -> None:
    missing = "The parameter 'TableName' is required but was not present in the request"
    length = "TableName must be at least 3 characters long and at most 255 characters long"
    assert error(operation, {}).message == missing
    assert error(operation, {"TableName": "ab"}).message == length
    assert error(operation, {"TableName": "a" * 256}).message == length
    assert error(operation, {"TableName": "a;c"}).message == PATTERN.format("a;c")


def test_what_the_service_forgives() -> None:
    body = json.dumps(
        {
            "TableName": "abc",
            "Limit": 10.9,
            "IndexName": None,
            "Select": None,
            "ExpressionAttributeNames": {"#a": None},
            "ExclusiveStartKey": {"p": None},
            "Unknown": [1],
        }
    ).encode()
    request: Any = decode(ACTIONS["Query"].request, body)
    assert request.limit == 10
    assert request.index_name is None
    assert request.expression_attribute_names == {}
    assert request.exclusive_start_key == {"p": {}}


def test_a_number_beyond_the_java_type_is_clamped() -> None:
    request: Any = decode(
        ACTIONS["Query"].request, b'{"TableName":"abc","Limit":99999999999999999999}'
    )
    assert request.limit == 2**31 - 1


def test_a_table_may_be_named_by_its_arn() -> None:
    assert table_name("orders.2024-a_b") == "orders.2024-a_b"
    assert table_name("arn:aws:dynamodb:eu-west-1:123456789012:table/orders") == "orders"


WRONG_NAMES = [
    ("a;c", PATTERN.format("a;c")),
    (
        "ab",
        "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: "
        "Member must have length greater than or equal to 3",
    ),
    (
        "x" * 256,
        f"1 validation error detected: Value '{'x' * 256}' at 'tableName' failed to satisfy "
        "constraint: Member must have length less than or equal to 255",
    ),
]


@pytest.mark.parametrize(("name", "message"), WRONG_NAMES)
def test_data_plane_calls_judge_a_table_name_when_no_table_has_it(name: str, message: str) -> None:
    assert decode(ACTIONS["GetItem"].request, json.dumps({"TableName": name, "Key": KEY}).encode())
    with pytest.raises(ApiError) as caught:
        table_name(name)
    assert caught.value.message == message


def test_an_arn_of_something_else_names_no_table() -> None:
    with pytest.raises(ApiError):
        table_name("arn:aws:s3:::bucket")
