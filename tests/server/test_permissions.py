"""What users may do, on a real database: permissions of each action, and policies as IAM evaluates them."""

from __future__ import annotations

import fnmatch
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone.backends.embedded import Database
from isotone.errors import ApiError, UsageError
from isotone.operations.api import ACTIONS
from isotone.server.policies import READING, Permissions, PolicyContext, _matches
from isotone.server.users import User

LEAD = "arn:aws:dynamodb:us-east-1:000000000000"
TABLE = f"{LEAD}:table/Orders"
CONTEXT = PolicyContext(
    user="ann",
    account="000000000000",
    region="us-east-1",
    source="10.1.2.3",
    secure=False,
    now=datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp(),
)
KEY = {"customer": {"S": "ann"}, "number": {"N": "1"}}
READ = {"Statement": "SELECT * FROM Orders WHERE customer = 'ann' AND number = 1"}


@pytest.fixture(scope="module")
def database():
    with isotone.open() as database:
        parts = [("customer", "S"), ("number", "N"), ("status", "S")]
        schema = {
            "TableName": "Orders",
            "KeySchema": [
                {"AttributeName": "customer", "KeyType": "HASH"},
                {"AttributeName": "number", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": kind} for name, kind in parts
            ],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "by_status",
                    "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        }
        database.execute("CreateTable", schema)
        database.execute("CreateTable", {**schema, "TableName": "Notes"})
        yield database


def needed(database: Database, operation: str, request: Any) -> list[tuple[str, str]]:
    """The permissions of a request, without the lead of ARNs."""
    found = database.accesses(operation, json.dumps(request).encode())
    return [(each.action, each.resource.removeprefix(f"{LEAD}:")) for each in found]


def refusal(database, user, operation, request, context=CONTEXT):
    """The message of the first permission that a user lacks; "" if there is none."""
    permissions = Permissions(user)
    for access in database.accesses(operation, json.dumps(request).encode()):
        refused = permissions.refusal(access, context)
        if refused is not None:
            return refused.message
    return ""


def may(database, document, operation, request, context=CONTEXT):
    """Whether a policy, or one statement that allows, lets a request pass."""
    if "Statement" not in document:
        document = {
            "Version": "2012-10-17",
            "Statement": {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*", **document},
        }
    return not refusal(database, User(policy=document), operation, request, context)


# What requests need


def test_every_action_has_its_permissions():
    from isotone.operations.permissions import _NEEDS

    assert set(_NEEDS) == set(ACTIONS)


GET = {"TableName": "Orders", "Key": KEY}
PUT = {"TableName": "Orders", "Item": KEY}
SELECT = 'SELECT * FROM "Orders" WHERE customer = \'ann\' AND "number" = 1'
DELETE = 'DELETE FROM "Notes" WHERE customer = \'ann\' AND "number" = 1'


@pytest.mark.parametrize(
    ("operation", "request_", "permissions"),
    [
        ("GetItem", GET, [("GetItem", "table/Orders")]),
        ("GetItem", {**GET, "TableName": TABLE}, [("GetItem", "table/Orders")]),
        (
            "GetItem",
            {**GET, "TableName": TABLE.replace("us-east-1:0", "eu-west-1:1")},
            [("GetItem", "table/Orders")],
        ),
        (
            "Query",
            {"TableName": "Orders", "IndexName": "by_status"},
            [("Query", "table/Orders/index/by_status")],
        ),
        ("Scan", {"TableName": "Orders"}, [("Scan", "table/Orders")]),
        (
            "BatchGetItem",
            {"RequestItems": {"Orders": {"Keys": [KEY]}, "Notes": {"Keys": [KEY]}}},
            [("BatchGetItem", "table/Orders"), ("BatchGetItem", "table/Notes")],
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"Orders": [{"PutRequest": {"Item": KEY}}]}},
            [("BatchWriteItem", "table/Orders")],
        ),
        (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"Put": PUT},
                    {"Update": {**GET, "UpdateExpression": "SET a = b"}},
                    {"Delete": {**GET, "TableName": "Notes"}},
                    {"ConditionCheck": {**GET, "ConditionExpression": "attribute_exists(a)"}},
                ]
            },
            [
                ("PutItem", "table/Orders"),
                ("UpdateItem", "table/Orders"),
                ("DeleteItem", "table/Notes"),
                ("ConditionCheckItem", "table/Orders"),
            ],
        ),
        ("TransactGetItems", {"TransactItems": [{"Get": GET}]}, [("GetItem", "table/Orders")]),
        ("ExecuteStatement", {"Statement": SELECT}, [("PartiQLSelect", "table/Orders")]),
        (
            "ExecuteStatement",
            {"Statement": 'SELECT * FROM "Orders"."by_status"'},
            [("PartiQLSelect", "table/Orders/index/by_status")],
        ),
        (
            "ExecuteStatement",
            {"Statement": "INSERT INTO \"Orders\" VALUE {'customer': 'a', 'number': 1}"},
            [("PartiQLInsert", "table/Orders")],
        ),
        (
            "BatchExecuteStatement",
            {
                "Statements": [
                    {"Statement": SELECT},
                    {"Statement": "nonsense"},
                    {"Statement": DELETE},
                ]
            },
            [("PartiQLSelect", "table/Orders"), ("PartiQLDelete", "table/Notes")],
        ),
        (
            "ExecuteTransaction",
            {
                "TransactStatements": [
                    {"Statement": f"EXISTS({SELECT})"},
                    {
                        "Statement": 'UPDATE "Orders" SET a = 1 WHERE customer = \'b\' AND "number" = 1'
                    },
                ]
            },
            [("PartiQLSelect", "table/Orders"), ("PartiQLUpdate", "table/Orders")],
        ),
        ("ListTables", {}, [("ListTables", "*")]),
        (
            "CreateBackup",
            {"TableName": "Orders", "BackupName": "nightly"},
            [("CreateBackup", "table/Orders")],
        ),
        (
            "DeleteBackup",
            {"BackupArn": f"{TABLE}/backup/01"},
            [("DeleteBackup", "table/Orders/backup/01")],
        ),
        (
            "UpdateGlobalTable",
            {"GlobalTableName": "Orders", "ReplicaUpdates": []},
            [
                ("UpdateGlobalTable", "arn:aws:dynamodb::000000000000:global-table/Orders"),
                ("UpdateGlobalTable", "table/Orders"),
            ],
        ),
        (
            "UpdateTable",
            {"TableName": "Orders", "ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]},
            [("UpdateTable", "table/Orders"), ("CreateTableReplica", "table/Orders")],
        ),
    ],
)
def test_permissions_of_requests(database, operation, request_, permissions):
    assert needed(database, operation, request_) == permissions


def test_a_restore_needs_the_writes_that_it_makes(database):
    found = needed(
        database,
        "RestoreTableFromBackup",
        {"BackupArn": f"{TABLE}/backup/01", "TargetTableName": "Copy"},
    )
    assert found[:2] == [
        ("RestoreTableFromBackup", "table/Orders/backup/01"),
        ("RestoreTableFromBackup", "table/Copy"),
    ]
    assert {"PutItem", "BatchWriteItem", "Scan"} <= {action for action, _ in found}


def test_a_table_with_tags_and_a_policy_needs_permission_for_them(database):
    request = {"TableName": "New", "Tags": [{"Key": "a", "Value": "b"}], "ResourcePolicy": "{}"}
    found = needed(
        database,
        "CreateTable",
        {
            **request,
            "AttributeDefinitions": [],
            "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        },
    )
    assert found == [
        ("CreateTable", "table/New"),
        ("TagResource", "table/New"),
        ("PutResourcePolicy", "table/New"),
    ]


def test_records_of_a_stream_need_permission_for_the_stream(database):
    (stream,) = [
        each
        for each in database.execute("ListStreams", {})["Streams"]
        if each["TableName"] == "Orders"
    ]
    arn = stream["StreamArn"]
    shard = database.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"][0]
    asked = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = database.execute("GetShardIterator", asked)["ShardIterator"]
    for operation, request in (
        ("GetShardIterator", asked),
        ("GetRecords", {"ShardIterator": iterator}),
    ):
        assert needed(database, operation, request) == [(operation, arn.removeprefix(f"{LEAD}:"))]


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("GetItem", {"TableName": "a b", "Key": KEY}),
        ("GetItem", {"TableName": 5}),
        ("ExecuteStatement", {"Statement": "nonsense"}),
        ("GetRecords", {"ShardIterator": "x" * 30}),
        ("Nonsense", {}),
        *(
            ("ExecuteTransaction", {"TransactStatements": [READ, {"Statement": text}]})
            for text in (
                "nonsense",
                "SELECT * FROM Orders WHERE a BETWEEN 1",
                "SELECT a.b.c, a.b FROM Orders WHERE customer = 'ann' AND number = 1",
                "SELECT size(a) FROM Orders WHERE customer = 'ann'",
                "SELECT * FROM Orders.by_status WHERE status = 'x'",
                "DELETE FROM Orders WHERE customer = 'ann' RETURNING ALL OLD *",
                "SELECT * FROM Orders WHERE customer = ? AND number = ?",
            )
        ),
    ],
)
def test_a_request_that_cannot_be_read_gets_its_own_error(database, operation, request_):
    body = json.dumps(request_).encode()
    with pytest.raises(ApiError) as told:
        database.accesses(operation, body)
    with pytest.raises(ApiError) as answered:
        database.send(operation, body)
    assert (told.value.code, told.value.message) == (answered.value.code, answered.value.message)


# Plain limits


def test_a_user_without_limits_may_do_everything():
    assert Permissions(User()).are_all
    assert not Permissions(User(read_only=True)).are_all


def test_only_tables(database):
    user = User(tables=["Ord*s"])
    assert refusal(database, user, "GetItem", GET) == ""
    assert refusal(database, user, "Query", {"TableName": "Orders", "IndexName": "by_status"}) == ""
    assert refusal(database, user, "DeleteBackup", {"BackupArn": f"{TABLE}/backup/01"}) == ""
    assert refusal(database, user, "DescribeLimits", {}) == ""
    assert "table/Notes" in refusal(database, user, "GetItem", {**GET, "TableName": "Notes"})
    other = f"{LEAD}:table/Order/backup/s"
    assert refusal(database, user, "DeleteBackup", {"BackupArn": other})
    assert refusal(database, user, "ListTables", {})
    both = {"RequestItems": {"Orders": {"Keys": [KEY]}, "Notes": {"Keys": [KEY]}}}
    assert refusal(database, user, "BatchGetItem", both)
    restore = {"BackupArn": f"{TABLE}/backup/01", "TargetTableName": "Copy"}
    assert "table/Copy" in refusal(database, user, "RestoreTableFromBackup", restore)


def test_only_actions(database):
    user = User(actions=["getitem", "dynamodb:Batch*"])
    assert refusal(database, user, "GetItem", GET) == ""
    assert (
        refusal(database, user, "BatchGetItem", {"RequestItems": {"Orders": {"Keys": [KEY]}}}) == ""
    )
    assert refusal(database, user, "PutItem", PUT)


def test_all_limits_must_allow(database):
    user = User(
        read_only=True,
        tables=["Orders"],
        policy={"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}},
    )
    assert refusal(database, user, "GetItem", GET) == ""
    assert refusal(database, user, "PutItem", PUT)
    assert refusal(database, user, "GetItem", {**GET, "TableName": "Notes"})


def test_a_policy_reports_nothing_of_tables_that_are_out_of_reach(database):
    own_keys = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["ann"]}}
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": own_keys}
    user = User(tables=["Orders"], policy={"Statement": statement})
    there = refusal(database, user, "GetItem", {**GET, "TableName": "Notes"})
    absent = refusal(database, user, "GetItem", {**GET, "TableName": "Nothing"})
    assert there.replace("Notes", "Nothing") == absent != ""


# Policies


def test_the_words_of_a_refusal(database):
    user = User(
        policy={"Statement": {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*"}}
    )
    assert refusal(database, user, "PutItem", PUT) == (
        "User: arn:aws:iam::000000000000:user/ann is not authorized to perform: dynamodb:PutItem on resource: "
        f"{TABLE} because no identity-based policy allows the dynamodb:PutItem action"
    )
    denying = {"Effect": "Deny", "Action": "dynamodb:GetItem", "Resource": TABLE}
    allowing = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    for order in ([denying, allowing], [allowing, denying]):
        assert refusal(database, User(policy={"Statement": order}), "GetItem", GET) == (
            "User: arn:aws:iam::000000000000:user/ann is not authorized to perform: dynamodb:GetItem on resource: "
            f"{TABLE} with an explicit deny in an identity-based policy"
        )


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ({"Action": "dynamodb:Get*"}, True),
        ({"Action": "DynamoDB:getITEM"}, True),
        ({"Action": ["dynamodb:Put*", "dynamodb:G?tItem"]}, True),
        ({"Action": "s3:*"}, False),
        ({"Resource": TABLE}, True),
        ({"Resource": f"{LEAD}:table/*"}, True),
        ({"Resource": "arn:aws:dynamodb:*:*:table/Orders"}, True),
        ({"Resource": "arn:aws:dynamodb:*:table/Orders:*:*"}, False),
        ({"Resource": f"{TABLE}/index/*"}, False),
        ({"Resource": f"{LEAD}:table/orders"}, False),
        ({"Resource": "arn:aws:dynamodb:eu-west-1:*:table/Orders"}, False),
        ({"Resource": "arn:aws:dynamodb:*:*:table/${aws:username}"}, False),
        ({"Resource": "arn:aws:dynamodb:*:*:table/${aws:missing, 'Orders'}"}, None),
    ],
)
def test_actions_and_resources(database, statement, allowed):
    if allowed is None:
        with pytest.raises(UsageError, match="a variable that this server does not know"):
            may(database, statement, "GetItem", GET)
    else:
        assert may(database, statement, "GetItem", GET) is allowed


def test_not_action_and_not_resource(database):
    others = {
        "Effect": "Allow",
        "NotAction": "dynamodb:Delete*",
        "NotResource": f"{LEAD}:table/Notes*",
    }
    document = {"Statement": [others]}
    assert may(database, document, "PutItem", PUT)
    assert not may(database, document, "DeleteItem", GET)
    assert not may(database, document, "PutItem", {**PUT, "TableName": "Notes"})


QUERY = {
    "TableName": "Orders",
    "KeyConditionExpression": "#c = :c",
    "ExpressionAttributeNames": {"#c": "customer"},
    "ExpressionAttributeValues": {":c": {"S": "ann"}},
}
BOB = {"customer": {"S": "bob"}, "number": {"N": "1"}}
LEGACY = {"customer": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "ann"}]}}
STATUS = {
    "TableName": "Orders",
    "IndexName": "by_status",
    "KeyConditionExpression": "#s = :s",
    "ExpressionAttributeNames": {"#s": "status"},
    "ExpressionAttributeValues": {":s": {"S": "ann"}},
}


@pytest.mark.parametrize(
    ("operation", "request_", "allowed"),
    [
        ("GetItem", GET, True),
        ("GetItem", {**GET, "Key": BOB}, False),
        ("PutItem", PUT, True),
        ("PutItem", {**PUT, "Item": BOB}, False),
        ("UpdateItem", {**GET, "Key": BOB}, False),
        ("DeleteItem", {**GET, "Key": BOB}, False),
        ("Query", QUERY, True),
        ("Query", {**QUERY, "ExpressionAttributeValues": {":c": {"S": "bob"}}}, False),
        ("Query", {"TableName": "Orders", "KeyConditions": LEGACY}, True),
        ("Query", STATUS, True),
        ("Query", {**STATUS, "ExpressionAttributeValues": {":s": {"S": "paid"}}}, False),
        ("BatchGetItem", {"RequestItems": {"Orders": {"Keys": [KEY, BOB]}}}, False),
        ("BatchGetItem", {"RequestItems": {"Orders": {"Keys": [KEY]}}}, True),
        ("BatchWriteItem", {"RequestItems": {"Orders": [{"PutRequest": {"Item": KEY}}, {"DeleteRequest": {"Key": BOB}}]}}, False),
        ("BatchWriteItem", {"RequestItems": {"Orders": [{"PutRequest": {"Item": KEY}}]}}, True),
        ("TransactWriteItems", {"TransactItems": [{"Put": PUT}, {"Delete": {**GET, "Key": BOB}}]}, False),
        ("TransactWriteItems", {"TransactItems": [{"Put": PUT}, {"Delete": GET}]}, True),
        ("TransactGetItems", {"TransactItems": [{"Get": {**GET, "Key": BOB}}]}, False),
        ("ExecuteStatement", {"Statement": SELECT}, True),
        ("ExecuteStatement", {"Statement": SELECT.replace("ann", "bob")}, False),
        ("ExecuteStatement", {"Statement": 'SELECT * FROM "Orders" WHERE customer = ?', "Parameters": [{"S": "bob"}]}, False),
        ("ExecuteStatement", {"Statement": "SELECT * FROM \"Orders\" WHERE customer IN ['ann', 'bob']"}, False),
        ("ExecuteStatement", {"Statement": "INSERT INTO \"Orders\" VALUE {'customer': 'bob', 'number': 1}"}, False),
        ("ExecuteStatement", {"Statement": DELETE.replace("ann", "bob")}, False),
        ("ExecuteStatement", {"Statement": DELETE}, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "key", ["dynamodb:LeadingKeys", "dynamodb:FirstPartitionKeyValues", "DYNAMODB:leadingkeys"]
)
def test_leading_keys(database, operation, request_, allowed, key):
    condition = {"ForAllValues:StringEquals": {key: ["${aws:username}"]}}
    assert may(database, {"Condition": condition}, operation, request_) is allowed
    denying = {"ForAnyValue:StringNotEquals": {key: "ann"}}
    statements = [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": denying},
    ]
    assert may(database, {"Statement": statements}, operation, request_) is allowed


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("Scan", {"TableName": "Orders"}),
        ("ExecuteStatement", {"Statement": 'SELECT * FROM "Orders"'}),
        ("DescribeTable", {"TableName": "Orders"}),
    ],
)
def test_a_scan_has_no_leading_keys(database, operation, request_):
    """As in IAM: ForAllValues is true of a key that is not there. Without it, the condition is false."""
    for operator, allowed in (
        ("ForAllValues:StringEquals", True),
        ("ForAnyValue:StringEquals", False),
        ("StringEquals", False),
        ("StringEqualsIfExists", True),
        ("StringNotEquals", True),
    ):
        condition = {operator: {"dynamodb:LeadingKeys": "ann"}}
        assert may(database, {"Condition": condition}, operation, request_) is allowed
    for absent, allowed in (("true", True), ("false", False)):
        condition = {"Null": {"dynamodb:LeadingKeys": absent}}
        assert may(database, {"Condition": condition}, operation, request_) is allowed
    assert may(database, {"Condition": {"Null": {"dynamodb:LeadingKeys": "false"}}}, "GetItem", GET)


def test_a_statement_that_reads_everything_can_be_denied(database):
    condition = {"Bool": {"dynamodb:FullTableScan": "false"}}
    assert may(database, {"Condition": condition}, "ExecuteStatement", {"Statement": SELECT})
    everything = {"Statement": 'SELECT * FROM "Orders" WHERE total > 5'}
    assert not may(database, {"Condition": condition}, "ExecuteStatement", everything)


def test_a_number_in_another_spelling_is_the_same_key(database):
    with isotone.open() as other:
        other.execute(
            "CreateTable",
            {
                "TableName": "Counters",
                "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "n", "AttributeType": "N"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        statements = [
            {"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": "*", "Resource": "*",
             "Condition": {"StringEquals": {"dynamodb:LeadingKeys": "5"}}},
        ]  # fmt: skip
        for written in ("5", "5.0", "05", "0.5e1"):
            request = {"TableName": "Counters", "Key": {"n": {"N": written}}}
            assert not may(other, {"Statement": statements}, "GetItem", request), written
        assert may(
            other,
            {"Statement": statements},
            "GetItem",
            {"TableName": "Counters", "Key": {"n": {"N": "6"}}},
        )


def test_a_table_that_is_not_there_has_no_leading_keys_to_compare(database):
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "ann"}}
    with pytest.raises(ApiError, match="Requested resource not found"):
        may(database, {"Condition": condition}, "GetItem", {**GET, "TableName": "Nothing"})
    # A user without permission does not learn what is there.
    assert not may(
        database, {"Action": "dynamodb:PutItem"}, "GetItem", {**GET, "TableName": "Nothing"}
    )


NAMED = {"#t": "total"}


@pytest.mark.parametrize(
    ("operation", "request_", "attributes"),
    [
        ("GetItem", {**GET, "ProjectionExpression": "#t, a.b", "ExpressionAttributeNames": NAMED}, "customer number total a"),
        ("GetItem", {**GET, "AttributesToGet": ["x"]}, "customer number x"),
        ("PutItem", {**PUT, "Item": {**KEY, "total": {"N": "1"}}, "ConditionExpression": "attribute_exists(c)"}, "customer number total c"),
        ("PutItem", {**PUT, "Expected": {"e": {"Exists": False}}}, "customer number e"),
        ("UpdateItem", {**GET, "UpdateExpression": "SET a = b, c.d = :x REMOVE f", "ExpressionAttributeValues": {":x": {"S": ""}}}, "customer number a b c f"),
        ("UpdateItem", {**GET, "AttributeUpdates": {"u": {"Action": "DELETE"}}}, "customer number u"),
        ("Query", {**QUERY, "FilterExpression": "attribute_exists(f)", "ProjectionExpression": "p"}, "customer f p"),
        ("Query", {"TableName": "Orders", "KeyConditions": LEGACY, "QueryFilter": {"q": {"ComparisonOperator": "NULL"}}}, "customer q"),
        ("Scan", {"TableName": "Orders", "FilterExpression": "attribute_exists(f)"}, "f"),
        ("Scan", {"TableName": "Orders", "ScanFilter": {"s": {"ComparisonOperator": "NULL"}}}, "s"),
        ("BatchGetItem", {"RequestItems": {"Orders": {"Keys": [KEY], "ProjectionExpression": "p"}}}, "customer number p"),
        ("BatchWriteItem", {"RequestItems": {"Orders": [{"PutRequest": {"Item": {**KEY, "w": {"S": ""}}}}]}}, "customer number w"),
        ("ExecuteStatement", {"Statement": SELECT.replace("*", "a, b.c")}, "customer number a b"),
        ("ExecuteStatement", {"Statement": "INSERT INTO \"Orders\" VALUE {'customer': 'a', 'number': 1, 'i': 2}"}, "customer number i"),
        ("ExecuteStatement", {"Statement": "UPDATE \"Orders\" SET u = v WHERE customer = 'a' AND \"number\" = 1"}, "customer number u v"),
    ],
)  # fmt: skip
def test_attributes(database, operation, request_, attributes):
    names = attributes.split()
    condition = {"ForAllValues:StringEquals": {"dynamodb:Attributes": names}}
    assert may(database, {"Condition": condition}, operation, request_)
    for left_out in names:
        fewer = {
            "ForAllValues:StringEquals": {
                "dynamodb:Attributes": [n for n in names if n != left_out] + ["-"]
            }
        }
        assert not may(database, {"Condition": fewer}, operation, request_), left_out


@pytest.mark.parametrize(
    ("operation", "request_", "select"),
    [
        ("GetItem", GET, "ALL_ATTRIBUTES"),
        ("GetItem", {**GET, "ProjectionExpression": "a"}, "SPECIFIC_ATTRIBUTES"),
        ("TransactGetItems", {"TransactItems": [{"Get": GET}]}, "ALL_ATTRIBUTES"),
        ("Query", QUERY, "ALL_ATTRIBUTES"),
        ("Query", STATUS, "ALL_PROJECTED_ATTRIBUTES"),
        ("Query", {**QUERY, "Select": "COUNT"}, "COUNT"),
        ("Scan", {"TableName": "Orders", "AttributesToGet": ["a"]}, "SPECIFIC_ATTRIBUTES"),
        ("BatchGetItem", {"RequestItems": {"Orders": {"Keys": [KEY]}}}, "ALL_ATTRIBUTES"),
        ("ExecuteStatement", {"Statement": SELECT}, "ALL_ATTRIBUTES"),
        ("ExecuteStatement", {"Statement": SELECT.replace("*", "a")}, "SPECIFIC_ATTRIBUTES"),
    ],
)
def test_select(database, operation, request_, select):
    assert may(
        database, {"Condition": {"StringEquals": {"dynamodb:Select": select}}}, operation, request_
    )
    assert not may(
        database,
        {"Condition": {"StringNotEquals": {"dynamodb:Select": select}}},
        operation,
        request_,
    )


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        (PUT, True),
        ({**PUT, "ReturnValues": "ALL_OLD"}, False),
        (
            {
                **PUT,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                "ConditionExpression": "attribute_exists(a)",
            },
            False,
        ),
    ],
)
def test_return_values(database, request_, allowed):
    condition = {"StringEquals": {"dynamodb:ReturnValues": ["NONE", "UPDATED_OLD"]}}
    assert may(database, {"Condition": condition}, "PutItem", request_) is allowed
    statements = [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": "*", "Resource": "*",
         "Condition": {"StringEquals": {"dynamodb:ReturnValues": "ALL_OLD"}}},
    ]  # fmt: skip
    assert may(database, {"Statement": statements}, "PutItem", request_) is allowed


def test_returning_of_a_statement(database):
    condition = {"StringEquals": {"dynamodb:ReturnValues": "NONE"}}
    assert may(database, {"Condition": condition}, "ExecuteStatement", {"Statement": DELETE})
    assert not may(
        database,
        {"Condition": condition},
        "ExecuteStatement",
        {"Statement": DELETE + " RETURNING ALL OLD *"},
    )


def test_consumed_capacity_and_enclosing_operation(database):
    condition = {"StringEquals": {"dynamodb:ReturnConsumedCapacity": "NONE"}}
    assert may(database, {"Condition": condition}, "GetItem", GET)
    assert not may(
        database, {"Condition": condition}, "GetItem", {**GET, "ReturnConsumedCapacity": "TOTAL"}
    )
    condition = {
        "ForAnyValue:StringEquals": {"dynamodb:EnclosingOperation": ["TransactWriteItems"]}
    }
    assert may(
        database, {"Condition": condition}, "TransactWriteItems", {"TransactItems": [{"Put": PUT}]}
    )
    assert not may(database, {"Condition": condition}, "PutItem", PUT)


@pytest.mark.parametrize(
    ("condition", "allowed"),
    [
        ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, True),
        ({"IpAddress": {"aws:SourceIp": ["192.168.0.0/16", "10.1.2.3"]}}, True),
        ({"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, False),
        ({"IpAddress": {"aws:SourceIp": "2001:db8::/32"}}, False),
        ({"DateLessThan": {"aws:CurrentTime": "2026-01-01T12:00:01Z"}}, True),
        ({"DateGreaterThan": {"aws:CurrentTime": "2026-01-01T12:00:00+01:00"}}, True),
        ({"DateLessThanEquals": {"aws:EpochTime": "1767268799"}}, False),
        ({"NumericLessThan": {"aws:EpochTime": 2000000000}}, True),
        ({"NumericEquals": {"aws:username": "1"}}, False),
        ({"Bool": {"aws:SecureTransport": "true"}}, False),
        ({"Bool": {"aws:SecureTransport": False}}, True),
        ({"StringEquals": {"aws:username": "ann"}}, True),
        ({"StringEquals": {"aws:username": "Ann"}}, False),
        ({"StringEqualsIgnoreCase": {"aws:username": "ANN"}}, True),
        ({"StringLike": {"aws:username": ["b*", "a?n"]}}, True),
        ({"StringNotLike": {"aws:username": ["b*", "a*"]}}, False),
        ({"StringNotEquals": {"aws:username": ["bob", "eve"]}}, True),
        ({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/*"}}, True),
        (
            {
                "StringEquals": {"aws:RequestedRegion": "us-east-1"},
                "StringLike": {"aws:username": "b*"},
            },
            False,
        ),
        ({"StringEquals": {"aws:RequestedRegion": "us-east-1", "aws:username": "ann"}}, True),
    ],
)
def test_conditions_on_the_caller(database, condition, allowed):
    assert may(database, {"Condition": condition}, "GetItem", GET) is allowed


def test_wildcards_in_a_name_stand_for_themselves(database):
    resource = {"Resource": "arn:aws:dynamodb:*:*:table/${aws:username}"}
    assert may(database, resource, "GetItem", GET, CONTEXT._replace(user="Orders"))
    assert not may(database, resource, "GetItem", GET, CONTEXT._replace(user="*"))
    literal = {"StringLike": {"aws:username": "a${*}"}}
    assert may(database, {"Condition": literal}, "GetItem", GET, CONTEXT._replace(user="a*"))
    assert not may(database, {"Condition": literal}, "GetItem", GET)


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        ("${aws:PrincipalArn}", True),
        ("arn:aws:iam::000000000000:user/${aws:username}", True),
        ("${aws:PrincipalArn}-else", False),
        ("arn:aws:iam::${aws:PrincipalArn}:user/eve", False),
    ],
)
def test_a_variable_in_an_arn_may_hold_colons(database, wanted, allowed):
    condition = {"ArnEquals": {"aws:PrincipalArn": wanted}}
    assert may(database, {"Condition": condition}, "GetItem", GET) is allowed


def test_a_request_that_names_no_attributes_has_none_to_compare(database):
    request = {"TableName": "Orders"}
    denied = {"StringNotEquals": {"dynamodb:Attributes": ["total"]}}
    statements = [ALLOW, {**ALLOW, "Effect": "Deny", "Condition": denied}]
    assert not may(database, {"Statement": statements}, "Scan", request)
    absent = {"Null": {"dynamodb:Attributes": "true"}}
    assert may(database, {"Condition": absent}, "Scan", request)
    assert not may(database, {"Condition": absent}, "GetItem", GET)


ALLOW = {"Effect": "Allow", "Action": "*", "Resource": "*"}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({}, "statement 1 is not a JSON object"),
        ({"Version": "2020-01-01", "Statement": ALLOW}, "write 2012-10-17"),
        ({"Statements": ALLOW}, "the unknown element Statements"),
        ({"Statement": [ALLOW, {**ALLOW, "Effect": "allow"}]}, "statement 2 has the Effect 'allow'"),
        ({"Statement": {**ALLOW, "Principal": "*"}}, "statement 1 has a Principal"),
        ({"Statement": {**ALLOW, "Actions": "*"}}, "the unknown element Actions"),
        ({"Statement": {"Effect": "Allow", "Resource": "*"}}, "either Action or NotAction"),
        ({"Statement": {**ALLOW, "NotAction": "*"}}, "either Action or NotAction"),
        ({"Statement": {**ALLOW, "Action": "GetItem"}}, "write dynamodb:GetItem"),
        ({"Statement": {**ALLOW, "Action": []}}, "needs a string, or a list of strings"),
        ({"Statement": {**ALLOW, "Resource": "Orders"}}, "write \\* or an ARN"),
        ({"Statement": {**ALLOW, "Condition": []}}, "a Condition that is not a JSON object"),
        ({"Statement": {**ALLOW, "Condition": {"StringEquals": "a"}}}, "needs a JSON object of condition keys"),
        ({"Statement": {**ALLOW, "Condition": {"Same": {"aws:username": "a"}}}}, "'Same', which this server does not know"),
        ({"Statement": {**ALLOW, "Condition": {"ForSome:StringEquals": {"aws:username": "a"}}}}, "not one of IAM's"),
        ({"Statement": {**ALLOW, "Condition": {"Bool": {"aws:MultiFactorAuthPresent": "true"}}}}, "'aws:MultiFactorAuthPresent', which this server does not know"),
        ({"Statement": {**ALLOW, "Condition": {"StringEquals": {"dynamodb:Leading": "a"}}}}, "'dynamodb:Leading', which"),
        ({"Statement": {**ALLOW, "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/99"}}}}, "does not appear to be an IPv4"),
        ({"Statement": {**ALLOW, "Condition": {"DateLessThan": {"aws:CurrentTime": "soon"}}}}, "Invalid isoformat"),
        ({"Statement": {**ALLOW, "Condition": {"NumericEquals": {"aws:EpochTime": "many"}}}}, "'many' is not a number"),
        ({"Statement": {**ALLOW, "Condition": {"Bool": {"aws:SecureTransport": "yes"}}}}, "neither true nor false"),
        ({"Statement": {**ALLOW, "Condition": {"StringEquals": {"aws:username": []}}}}, "needs a value"),
        ({"Statement": {**ALLOW, "Condition": {"StringEquals": {"aws:username": [None]}}}}, "needs a value"),
        ({"Statement": {**ALLOW, "Resource": "arn:aws:dynamodb:*:*:table/${aws:username}"}}, "needs the Version 2012-10-17"),
    ],
)  # fmt: skip
def test_a_policy_that_cannot_be_used_is_reported(document, told):
    with pytest.raises(UsageError, match=told):
        Permissions(User(policy=document))


@given(st.text(alphabet="ab*?", max_size=8), st.text(alphabet="ab\n", max_size=8))
def test_wildcards_against_those_of_python(pattern, text):
    assert _matches(pattern, text) == bool(re.match(fnmatch.translate(pattern), text))


def test_wildcards_take_no_time():
    assert not _matches("*a" * 30 + "b", "a" * 20_000)


def test_what_reads_does_not_write():
    """Against the names: no action that a reader has changes anything."""
    words = (
        "Put",
        "Update",
        "Delete",
        "Create",
        "Write",
        "Insert",
        "Tag",
        "Untag",
        "Restore",
        "Import",
        "Export",
        "Start",
        "Cancel",
        "Enable",
        "Disable",
    )
    assert not [each for each in READING if each.startswith(words)]


# Policies of tables and streams

ANN = "arn:aws:iam::000000000000:user/ann"
ROOT = "arn:aws:iam::000000000000:root"
NO_GRANT = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Allow", "Action": "dynamodb:ListTables", "Resource": "*"},
}


@pytest.fixture
def attach(database):
    """Attaches a policy of one statement, or several, to a table or a stream for one test."""
    attached: list[str] = []

    def to(arn: str, *statements: dict[str, Any]) -> None:
        whole = [{"Action": "dynamodb:*", "Resource": "*", **each} for each in statements]
        document = {"Version": "2012-10-17", "Statement": whole}
        request = {"ResourceArn": arn, "Policy": json.dumps(document)}
        database.execute("PutResourcePolicy", request)
        attached.append(arn)

    yield to
    for arn in attached:
        database.execute("DeleteResourcePolicy", {"ResourceArn": arn})


QUERY_INDEX = {
    "TableName": "Orders",
    "IndexName": "by_status",
    "KeyConditionExpression": "#s = :s",
    "ExpressionAttributeNames": {"#s": "status"},
    "ExpressionAttributeValues": {":s": {"S": "OPEN"}},
}


@pytest.mark.parametrize(
    ("principal", "deny", "allow"),
    [
        ("*", True, True),
        ({"AWS": "*"}, True, True),
        ({"AWS": ANN}, True, True),
        ({"AWS": ["arn:aws:iam::000000000000:user/bob", ANN]}, True, True),
        ({"AWS": "arn:aws:iam::000000000000:user/bob"}, False, False),
        ({"AWS": "arn:aws:iam::111122223333:user/ann"}, False, False),
        ({"AWS": ROOT}, True, False),
        ({"AWS": "000000000000"}, True, False),
        ({"Service": "dynamodb.amazonaws.com"}, False, False),
    ],
)
def test_the_policy_of_a_table_denies_and_allows(database, attach, principal, deny, allow):
    assert refusal(database, User(policy=NO_GRANT), "GetItem", GET)
    attach(TABLE, {"Effect": "Allow", "Principal": principal})
    for operation, request in (("GetItem", GET), ("Query", QUERY_INDEX)):
        assert (not refusal(database, User(policy=NO_GRANT), operation, request)) is allow
        assert not refusal(database, User(), operation, request)
    attach(TABLE, {"Effect": "Deny", "Principal": principal})
    for operation, request in (("GetItem", GET), ("Query", QUERY_INDEX)):
        refused = refusal(database, User(), operation, request)
        assert refused.endswith("with an explicit deny in a resource-based policy") is deny
    other = {**GET, "TableName": "Notes"}
    assert not refusal(database, User(), "GetItem", other)


def test_everybody_but_some(database, attach):
    attach(TABLE, {"Effect": "Deny", "NotPrincipal": {"AWS": ANN}})
    assert not refusal(database, User(), "GetItem", GET)
    assert refusal(database, User(), "GetItem", GET, CONTEXT._replace(user="bob"))


def test_an_explicit_deny_wins_over_every_allow(database, attach):
    denying = {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"},
    }
    attach(TABLE, {"Effect": "Allow", "Principal": "*"})
    refused = refusal(database, User(policy=denying), "GetItem", GET)
    assert refused.endswith("with an explicit deny in an identity-based policy")


def test_a_policy_of_a_table_lifts_no_limit(database, attach):
    attach(TABLE, {"Effect": "Allow", "Principal": "*"})
    for user in (User(read_only=True), User(tables=["Notes"]), User(actions=["GetItem"])):
        assert refusal(database, user, "PutItem", PUT)


def test_a_policy_of_a_table_has_actions_resources_and_conditions(database, attach):
    attach(
        TABLE,
        {
            "Effect": "Allow",
            "Principal": {"AWS": ANN},
            "Action": ["dynamodb:GetItem", "dynamodb:PutItem"],
            "Resource": TABLE,
            "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${aws:username}"}},
        },
    )
    user = User(policy=NO_GRANT)
    assert not refusal(database, user, "PutItem", PUT)
    assert refusal(database, user, "DeleteItem", GET)
    bob = {**KEY, "customer": {"S": "bob"}}
    assert refusal(database, user, "PutItem", {**PUT, "Item": bob})
    in_two = {"RequestItems": {"Orders": {"Keys": [KEY]}, "Notes": {"Keys": [KEY]}}}
    assert refusal(database, user, "BatchGetItem", in_two)


def test_a_stream_has_a_policy_of_its_own(database, attach):
    stream = database.execute("DescribeTable", {"TableName": "Orders"})["Table"]["LatestStreamArn"]
    describe = {"StreamArn": stream}
    attach(TABLE, {"Effect": "Deny", "Principal": "*"})
    assert not refusal(database, User(), "DescribeStream", describe)
    attach(stream, {"Effect": "Deny", "Principal": "*"})
    assert refusal(database, User(), "DescribeStream", describe)


def test_a_policy_that_cannot_be_evaluated_denies_and_can_be_replaced(database, attach, caplog):
    condition = {"StringEquals": {"s3:prefix": "x"}}
    attach(TABLE, {"Effect": "Allow", "Principal": "*", "Condition": condition})
    assert refusal(database, User(), "GetItem", GET)
    assert "s3:prefix" in caplog.text
    replace = {"ResourceArn": TABLE, "Policy": "{}"}
    assert not refusal(database, User(), "PutResourcePolicy", replace)


def test_a_server_asks_for_policies_only_where_there_are_some(database, attach):
    assert not database.has_policies("GetItem")
    assert database.has_policies("GetRecords")
    attach(TABLE, {"Effect": "Deny", "Principal": "*"})
    assert database.has_policies("GetItem")
