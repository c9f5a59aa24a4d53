"""Of two faults in a request, the one that is told. Each order is DynamoDB Local's and dynoxide's.

`python -m tests.oracle.fault_pairs` compares many more pairs with both.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.operations.conftest import Asker

KEY = {"p": {"S": "a"}}
NO_NUMBER = {"N": "x"}
NOT_FOUND = "Requested resource not found"
NUMERIC = "The parameter cannot be converted to a numeric value: x"
COUNT = "1 validation error detected: "
MISMATCH = "The provided key element does not match the schema"
TOO_LARGE = "Item size has exceeded the maximum allowed size"
NAMES = {"ExpressionAttributeNames": {"#z": "z"}}
LARGE = {**KEY, "c": {"S": "c" * 410_000}}
QUERY = {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}


@pytest.mark.parametrize("condition", ["a =", "a = :u", "#u = a", "attribute_exists(size)", "f(a)"])
def test_a_write_reports_a_wrong_value_before_its_condition(ask: Asker, condition: str) -> None:
    ask.table()
    item = {**KEY, "a": NO_NUMBER}
    put = ask.refused("PutItem", TableName="tab", Item=item, ConditionExpression=condition)
    assert put.message == COUNT + NUMERIC
    key = {"p": NO_NUMBER}
    delete = ask.refused("DeleteItem", TableName="tab", Key=key, ConditionExpression=condition)
    assert delete.message == COUNT + NUMERIC


@pytest.mark.parametrize("projection", ["a,", "a, a.b", "#u"])
def test_a_read_reports_an_absent_table_before_its_projection(ask: Asker, projection: str) -> None:
    asked: dict[str, Any] = {"TableName": "absent", "ProjectionExpression": projection}
    for operation, more in (("GetItem", {"Key": KEY}), ("Query", QUERY), ("Scan", {})):
        assert ask.refused(operation, **asked, **more).message == NOT_FOUND


@pytest.mark.parametrize("more", [{"ProjectionExpression": "a,"}, NAMES])
def test_a_query_reports_an_absent_index_before_its_projection(
    ask: Asker, more: dict[str, Any]
) -> None:
    ask.table()
    error = ask.refused("Query", TableName="tab", IndexName="absent", **QUERY, **more)
    assert error.message == "The table does not have the specified index: absent"


def test_a_filter_is_read_before_the_table_is_looked_up(ask: Asker) -> None:
    error = ask.refused("Scan", TableName="absent", FilterExpression="a =")
    assert error.message.startswith("Invalid FilterExpression: Syntax error")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"Select": "COUNT", "ProjectionExpression": "a"},
            "Cannot specify the ProjectionExpression when choosing to get only the Count",
        ),
        ({"ExclusiveStartKey": {"p": NO_NUMBER}}, NUMERIC),
        ({"FilterExpression": "a ="}, "Invalid FilterExpression: Syntax error"),
    ],
)
def test_what_a_scan_reports_before_its_segment(
    ask: Asker, more: dict[str, Any], message: str
) -> None:
    ask.table()
    error = ask.refused("Scan", TableName="tab", Segment=5, TotalSegments=2, **more)
    assert error.message.startswith(message)


@pytest.mark.parametrize(
    "more", [{"ProjectionExpression": "a, a.b"}, {"FilterExpression": "a = :u"}, {"IndexName": "i"}]
)
def test_what_a_scan_reports_after_its_segment(ask: Asker, more: dict[str, Any]) -> None:
    error = ask.refused("Scan", TableName="absent", Segment=5, TotalSegments=2, **more)
    assert error.message.startswith("The Segment parameter is zero-based")


def test_a_query_reports_a_wrong_start_before_a_filter_of_its_key(ask: Asker) -> None:
    ask.table()
    for start, message in (
        ({"q": {"S": "a"}}, "The provided starting key is"),
        ({"p": NO_NUMBER}, NUMERIC),
    ):
        error = ask.refused(
            "Query", TableName="tab", **QUERY, FilterExpression="p = :p", ExclusiveStartKey=start
        )
        assert error.message.startswith(message)


def test_useless_placeholders_and_a_return_value_of_other_actions(ask: Asker) -> None:
    """A put reports the placeholders first, a delete the value."""
    asked: dict[str, Any] = {"TableName": "tab", "ReturnValues": "ALL_NEW", **NAMES}
    error = ask.refused("PutItem", Item=KEY, **asked)
    assert error.message.endswith(
        "ExpressionAttributeNames can only be specified when using expressions"
    )
    error = ask.refused("DeleteItem", Key=KEY, **asked)
    assert error.message == COUNT + "ReturnValues can only be ALL_OLD or NONE"


@pytest.mark.parametrize(
    "item", [{"q": {"S": "a"}}, {"p": {"N": "1"}}], ids=["no key", "another type"]
)
def test_a_batch_reports_a_put_that_its_key_does_not_match(
    ask: Asker, item: dict[str, Any]
) -> None:
    ask.table()
    error = ask.refused("BatchWriteItem", RequestItems={"tab": [{"PutRequest": {"Item": item}}]})
    assert error.message == MISMATCH


@pytest.mark.parametrize("other", [{"q": {"S": "a"}}, {"p": {"S": ""}}])
def test_a_large_item_is_reported_before_all_that_needs_the_table(
    ask: Asker, other: dict[str, Any]
) -> None:
    ask.table()
    for table in ("tab", "absent"):
        puts = [{"PutRequest": {"Item": each}} for each in (other, LARGE)]
        assert ask.refused("BatchWriteItem", RequestItems={table: puts}).message == TOO_LARGE
        entries = [{"Put": {"TableName": table, "Item": each}} for each in (other, LARGE)]
        assert ask.refused("TransactWriteItems", TransactItems=entries).message == TOO_LARGE


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"Put": {"TableName": "absent", "Item": KEY}}, NOT_FOUND),
        ({"Put": {"TableName": "tab", "Item": {"p": NO_NUMBER}}}, NUMERIC),
        ({"Put": {"TableName": "tab", "Item": LARGE}}, TOO_LARGE),
        (
            {"Delete": {"TableName": "tab", "Key": KEY, "ConditionExpression": "f(a)"}},
            "Invalid ConditionExpression: Invalid function name; function: f",
        ),
        (
            {"Delete": {"TableName": "tab", "Key": {"p": {"S": ""}}}},
            "One or more parameter values are not valid. The AttributeValue for a key attribute "
            "cannot contain an empty string value. Key: p",
        ),
    ],
)
def test_a_transaction_reports_placeholders_without_expressions_last(
    ask: Asker, entry: dict[str, Any], message: str
) -> None:
    ask.table()
    useless = {"Put": {"TableName": "tab", "Item": KEY, **NAMES}}
    for entries in ([useless, entry], [entry, useless]):
        assert ask.refused("TransactWriteItems", TransactItems=entries).message == message
    alone = ask.refused("TransactWriteItems", TransactItems=[useless]).message
    assert alone == "ExpressionAttributeNames can only be specified when using expressions"


def test_a_false_condition_is_reported_before_an_update_of_the_key(ask: Asker) -> None:
    ask.table()
    update = {"TableName": "tab", "Key": KEY, "UpdateExpression": "REMOVE p"}
    of_key = "One or more parameter values were invalid: Cannot update attribute p. This attribute is part of the key"
    assert ask.refused("UpdateItem", **update).message == of_key
    false = {**update, "ConditionExpression": "attribute_exists(zz)"}
    assert ask.refused("UpdateItem", **false).message == "The conditional request failed"
    cancelled = ask.refused("TransactWriteItems", TransactItems=[{"Update": false}])
    assert [each["Code"] for each in cancelled.members["CancellationReasons"]] == [
        "ConditionalCheckFailed"
    ]
    legacy = {"AttributeUpdates": {"p": {"Action": "PUT", "Value": {"S": "b"}}}}
    expected = {"Expected": {"zz": {"Value": {"S": "a"}}}}
    both = ask.refused("UpdateItem", TableName="tab", Key=KEY, **legacy, **expected)
    assert both.message == "The conditional request failed"
    assert ask.refused("UpdateItem", TableName="tab", Key=KEY, **legacy).message == of_key
    for text in ("p = 'b'", "p.x = 1"):
        statement = f"UPDATE tab SET {text} WHERE p = 'absent'"
        assert ask.refused("ExecuteStatement", Statement=statement).message == of_key


def test_a_reserved_word_is_reported_after_a_wrong_value(ask: Asker) -> None:
    ask.table()
    reserved = {"ConditionExpression": "attribute_exists(status)"}
    wrong = {"UpdateExpression": "SET a = :v", "ExpressionAttributeValues": {":v": NO_NUMBER}}
    error = ask.refused("UpdateItem", TableName="tab", Key=KEY, **wrong, **reserved)
    assert error.message == COUNT + NUMERIC
    error = ask.refused("PutItem", TableName="tab", Item={**KEY, "z": NO_NUMBER}, **reserved)
    assert error.message == COUNT + NUMERIC


def test_several_types_of_one_value_are_reported_with_the_placeholder_by_updates_and_deletes(
    ask: Asker,
) -> None:
    ask.table()
    several = {"ExpressionAttributeValues": {":v": {"S": "a", "N": "1"}}}
    many = (
        "Supplied AttributeValue has more than one datatypes set, "
        "must contain exactly one of the supported datatypes"
    )
    of_value = f"ExpressionAttributeValues contains invalid value: {many} for key :v"
    condition = {"ConditionExpression": "a = :v", **several}
    assert ask.refused("DeleteItem", TableName="tab", Key=KEY, **condition).message == of_value
    assert ask.refused("PutItem", TableName="tab", Item=KEY, **condition).message == many
    update = {"UpdateExpression": "SET a = :v", **several}
    assert ask.refused("UpdateItem", TableName="tab", Key=KEY, **update).message == of_value


@pytest.mark.parametrize("empty", ["SSESpecification", "WarmThroughput", "OnDemandThroughput"])
def test_an_empty_change_of_a_table_is_none(ask: Asker, empty: str) -> None:
    ask.table()
    error = ask.refused("UpdateTable", TableName="tab", **{empty: {}})
    assert error.message.startswith("At least one of ProvisionedThroughput, BillingMode")
    ask("UpdateTable", TableName="tab", DeletionProtectionEnabled=False, **{empty: {}})


def test_names_are_limited_by_their_size_and_not_in_number(ask: Asker) -> None:
    ask.table()
    names = {f"#n{number}": "a" for number in range(70_000)}
    filtered = {"FilterExpression": " AND ".join(["attribute_exists(#n0)"])}
    error = ask.refused("Scan", TableName="tab", ExpressionAttributeNames=names, **filtered)
    assert error.message.startswith(
        "Value provided in ExpressionAttributeNames unused in expressions"
    )
    long = {"TableName": "tab", "Key": KEY, "ProjectionExpression": "#n"}
    assert ask("GetItem", **long, ExpressionAttributeNames={"#n": "a" * 65_535}) == {}
    error = ask.refused("GetItem", **long, ExpressionAttributeNames={"#n": "a" * 65_536})
    assert "failed to satisfy constraint" in error.message


def test_legacy_conditions_have_as_many_values_as_a_request(ask: Asker) -> None:
    ask.table()
    ask("PutItem", TableName="tab", Item={**KEY, "a": {"N": "19999"}})
    among = {
        "ComparisonOperator": "IN",
        "AttributeValueList": [{"N": str(n)} for n in range(20_000)],
    }
    assert ask("Scan", TableName="tab", ScanFilter={"a": among})["Count"] == 1
    absent = {f"b{number}": {"ComparisonOperator": "NULL"} for number in range(3000)}
    assert ask("Scan", TableName="tab", ScanFilter=absent)["Count"] == 1
    present = {**absent, "a": {"ComparisonOperator": "NULL"}}
    assert ask("Scan", TableName="tab", ScanFilter=present)["Count"] == 0
    assert ask("Scan", TableName="tab", ScanFilter=present, ConditionalOperator="OR")["Count"] == 1
    ask("DeleteItem", TableName="tab", Key=KEY, Expected={n: {"Exists": False} for n in absent})


@pytest.mark.parametrize("repeated", [["b, c", "a", "a"], ["]", "a", "a"], ['"', "[", "["]])
def test_a_repeated_member_is_told_with_the_members_as_they_are(
    ask: Asker, repeated: list[str]
) -> None:
    ask.table()
    error = ask.refused("PutItem", TableName="tab", Item={**KEY, "s": {"SS": repeated}})
    first = sorted(repeated[:2])
    assert error.message.endswith(
        f"Input collection {json.dumps([*first, repeated[2]])} contains duplicates."
    )


def test_a_write_reports_a_wrong_key_before_a_path_into_the_key(ask: Asker) -> None:
    ask.table()
    asked = {"TableName": "tab", "ConditionExpression": "attribute_exists(p.a)"}
    wrong = {"p": {"N": "1"}}
    for operation, more in (
        ("PutItem", {"Item": wrong}),
        ("DeleteItem", {"Key": wrong}),
        ("UpdateItem", {"Key": wrong, "UpdateExpression": "REMOVE z"}),
    ):
        assert "Key attributes" not in ask.refused(operation, **asked, **more).message
        (member,) = {"Item", "Key"} & more.keys()
        error = ask.refused(operation, **asked, **{**more, member: KEY})
        assert "Key attributes must be scalars" in error.message
