"""Transactions: all or nothing, with a reason for each entry, and once for each token."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operations.conftest import Asker, key_schema


def put(number: int, **more: Any) -> dict[str, Any]:
    return {"Put": {"TableName": "tab", "Item": {"p": {"S": str(number)}}, **more}}


def count(ask: Asker) -> int:
    found: int = ask("Scan", TableName="tab", Select="COUNT")["Count"]
    return found


def test_nothing_is_written_when_one_condition_fails(ask: Asker) -> None:
    ask.table()
    ask("PutItem", TableName="tab", Item={"p": {"S": "2"}, "was": {"S": "here"}})
    error = ask.refused(
        "TransactWriteItems",
        TransactItems=[
            put(1),
            put(
                2,
                ConditionExpression="attribute_not_exists(p)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
            put(3),
        ],
    )
    assert error.code == "TransactionCanceledException"
    assert error.message == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[None, ConditionalCheckFailed, None]"
    )
    reasons = error.members["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed", "None"]
    assert reasons[1]["Message"] == "The conditional request failed"
    assert b"here" in bytes(reasons[1]["Item"])
    assert count(ask) == 1


def test_the_four_kinds_of_entries(ask: Asker) -> None:
    ask.table()
    for number in (1, 2, 3):
        ask("PutItem", TableName="tab", Item={"p": {"S": str(number)}, "n": {"N": "1"}})
    ask(
        "TransactWriteItems",
        TransactItems=[
            {
                "ConditionCheck": {
                    "TableName": "tab",
                    "Key": {"p": {"S": "1"}},
                    "ConditionExpression": "n = :one",
                    "ExpressionAttributeValues": {":one": {"N": "1"}},
                }
            },
            {
                "Update": {
                    "TableName": "tab",
                    "Key": {"p": {"S": "2"}},
                    "UpdateExpression": "ADD n :one",
                    "ExpressionAttributeValues": {":one": {"N": "1"}},
                }
            },
            {"Delete": {"TableName": "tab", "Key": {"p": {"S": "3"}}}},
            put(4),
        ],
    )
    got = ask(
        "TransactGetItems",
        TransactItems=[
            {"Get": {"TableName": "tab", "Key": {"p": {"S": str(number)}}}}
            for number in (1, 2, 3, 4)
        ],
    )["Responses"]
    assert got == [
        {"Item": {"p": {"S": "1"}, "n": {"N": "1"}}},
        {"Item": {"p": {"S": "2"}, "n": {"N": "2"}}},
        {},
        {"Item": {"p": {"S": "4"}}},
    ]


def test_two_actions_on_one_item_are_refused(ask: Asker) -> None:
    ask.table()
    error = ask.refused("TransactWriteItems", TransactItems=[put(1), put(1)])
    assert (error.code, error.message) == (
        "ValidationException",
        "Transaction request cannot include multiple operations on one item",
    )


def test_a_token_makes_a_transaction_happen_once(ask: Asker) -> None:
    ask.table()
    add = {
        "Update": {
            "TableName": "tab",
            "Key": {"p": {"S": "1"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }
    for _ in range(3):
        ask("TransactWriteItems", TransactItems=[add], ClientRequestToken="token")
    assert ask("GetItem", TableName="tab", Key={"p": {"S": "1"}})["Item"]["n"] == {"N": "1"}
    error = ask.refused("TransactWriteItems", TransactItems=[put(2)], ClientRequestToken="token")
    assert error.code == "IdempotentParameterMismatchException"
    ask.clock.advance(10 * 60 + 1)
    ask("TransactWriteItems", TransactItems=[add], ClientRequestToken="token")
    assert ask("GetItem", TableName="tab", Key={"p": {"S": "1"}})["Item"]["n"] == {"N": "2"}
    ask.clock.advance(10 * 60 + 1)
    ask.database.finish_maintenance()
    assert list(ask.database.engine.store.range("tokens", b"", None)) == []


def test_a_transaction_costs_twice(ask: Asker) -> None:
    ask.table()
    wrote = ask("TransactWriteItems", TransactItems=[put(1)], ReturnConsumedCapacity="TOTAL")
    assert wrote["ConsumedCapacity"] == [
        {"TableName": "tab", "CapacityUnits": 2.0, "WriteCapacityUnits": 2.0}
    ]
    read = ask(
        "TransactGetItems",
        TransactItems=[{"Get": {"TableName": "tab", "Key": {"p": {"S": "1"}}}}],
        ReturnConsumedCapacity="TOTAL",
    )
    assert read["ConsumedCapacity"] == [
        {"TableName": "tab", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}
    ]


def test_a_key_that_is_no_value_is_an_error_and_no_reason(ask: Asker) -> None:
    ask.table()
    where = {"TableName": "tab", "Key": {"p": {}}}
    condition = {"ConditionExpression": "attribute_exists(p)"}
    for operation, entry in (
        ("TransactGetItems", {"Get": where}),
        ("TransactWriteItems", {"Delete": where}),
        ("TransactWriteItems", {"ConditionCheck": {**where, **condition}}),
        ("TransactWriteItems", {"Update": {**where, "UpdateExpression": "SET a = p"}}),
    ):
        error = ask.refused(operation, TransactItems=[entry])
        assert (error.code, error.message) == (
            "ValidationException",
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        )


def test_a_key_of_a_wrong_type_is_a_reason(ask: Asker) -> None:
    ask.table()
    where = {"TableName": "tab", "Key": {"p": {"N": "1"}}}
    for operation, entry in (
        ("TransactGetItems", {"Get": where}),
        ("TransactWriteItems", {"Delete": where}),
    ):
        error = ask.refused(operation, TransactItems=[entry])
        assert error.code == "TransactionCanceledException"
        assert error.members["CancellationReasons"] == [
            {
                "Code": "ValidationError",
                "Message": "The provided key element does not match the schema",
            }
        ]


def test_a_transaction_carries_4_megabytes_at_most(ask: Asker) -> None:
    ask.table()
    filler = {"x": {"S": "x" * (400 * 1024 - 3)}}  # with its name, and a key of 2 bytes: 400 KB
    puts = [
        {"Put": {"TableName": "tab", "Item": {"p": {"S": str(number)}, **filler}}}
        for number in range(10)
    ]
    ask("TransactWriteItems", TransactItems=puts)
    rest = {"p": {"S": "z"}, "x": {"S": "x" * (96 * 1024 - 3)}}
    ask("TransactWriteItems", TransactItems=[*puts, {"Put": {"TableName": "tab", "Item": rest}}])
    rest["x"] = {"S": "x" * (96 * 1024 - 2)}
    puts.append({"Put": {"TableName": "tab", "Item": rest}})
    error = ask.refused("TransactWriteItems", TransactItems=puts)
    size = 4 * 1024 * 1024 + 1
    assert error.message == f"Transaction payload size cannot exceed 4MB. Payload Size: {size}"


EMPTY = (
    "One or more parameter values are not valid. "
    "The AttributeValue for a key attribute cannot contain an empty string value. Key: p"
)
EMPTY_PUT: dict[str, Any] = {"Put": {"TableName": "tab", "Item": {"p": {"S": ""}}}}
WRONG_PUT: dict[str, Any] = {"Put": {"TableName": "tab", "Item": {"p": {"N": "1"}}}}
WRONG = "One or more parameter values were invalid: Type mismatch for key p expected: S actual: N"


def put_of(name: str, **more: Any) -> dict[str, Any]:
    return {"Put": {"TableName": "tab", "Item": {"p": {"S": name}, **more}}}


def update(text: str, value: dict[str, Any]) -> dict[str, Any]:
    key = {"TableName": "tab", "Key": {"p": {"S": "a"}}}
    values = {"ExpressionAttributeValues": {":v": value}}
    return {"Update": {**key, "UpdateExpression": text, **values}}


def by_g(ask: Asker) -> None:
    index = {
        "IndexName": "by-g",
        "KeySchema": key_schema("g"),
        "Projection": {"ProjectionType": "ALL"},
    }
    ask.table(types={"g": "S"}, GlobalSecondaryIndexes=[index])


@pytest.mark.parametrize(
    "entry",
    [
        EMPTY_PUT,
        {"Delete": {"TableName": "tab", "Key": {"p": {"S": ""}}}},
        put_of("a", g={"S": ""}),
        put_of("a", x={"S": "x" * 400 * 1024}),
    ],
)
def test_a_faulty_value_refuses_the_whole_request(ask: Asker, entry: dict[str, Any]) -> None:
    by_g(ask)
    error = ask.refused("TransactWriteItems", TransactItems=[WRONG_PUT, entry, put_of("b")])
    assert error.code == "ValidationException"
    assert "not valid. " in error.message or "Item size" in error.message
    assert ask("Scan", TableName="tab")["Count"] == 0


@pytest.mark.parametrize(
    "entry",
    [
        WRONG_PUT,
        {"Delete": {"TableName": "tab", "Key": {"p": {"N": "1"}}}},
        {"Delete": {"TableName": "tab", "Key": {"x": {"S": "1"}}}},
        put_of("a", g={"N": "1"}),
        update("SET g = :v", {"N": "1"}),
        update("SET x = y + :v", {"N": "1"}),
        update("SET x = :v", {"S": "x" * 400 * 1024}),
    ],
)
def test_an_entry_that_does_not_fit_cancels(ask: Asker, entry: dict[str, Any]) -> None:
    by_g(ask)
    error = ask.refused("TransactWriteItems", TransactItems=[put_of("b"), entry])
    reasons = [reason["Code"] for reason in error.members["CancellationReasons"]]
    assert reasons == ["None", "ValidationError"]


def test_an_update_to_a_faulty_value_refuses_the_whole_request(ask: Asker) -> None:
    by_g(ask)
    faulty = update("SET g = :v", {"S": ""})
    error = ask.refused("TransactWriteItems", TransactItems=[put_of("b"), faulty])
    assert "not valid. " in error.message
    assert ask("Scan", TableName="tab")["Count"] == 0


def test_the_first_key_of_a_wrong_type_is_the_only_reason(ask: Asker) -> None:
    ask.table()
    check = {
        "ConditionCheck": {
            "TableName": "tab",
            "Key": {"p": {"S": "z"}},
            "ConditionExpression": "attribute_exists(p)",
        }
    }
    wrong_delete = {"Delete": {"TableName": "tab", "Key": {"p": {"N": "2"}}}}
    entries = [check, WRONG_PUT, wrong_delete, put_of("a")]
    error = ask.refused("TransactWriteItems", TransactItems=entries)
    assert error.members["CancellationReasons"] == [
        {"Code": "None"},
        {"Code": "ValidationError", "Message": WRONG},
        {"Code": "None"},
        {"Code": "None"},
    ]


def test_an_item_written_twice_comes_before_the_reasons(ask: Asker) -> None:
    ask.table()
    error = ask.refused("TransactWriteItems", TransactItems=[WRONG_PUT, put_of("a"), put_of("a")])
    assert "cannot include multiple operations on one item" in error.message


def test_a_read_of_an_empty_key_refuses_the_request(ask: Asker) -> None:
    ask.table()
    gets = [{"Get": {"TableName": "tab", "Key": {"p": {"S": text}}}} for text in ("a", "")]
    assert ask.refused("TransactGetItems", TransactItems=gets).message == EMPTY
