"""PartiQL through boto3 and HTTP: on a file and in memory, alone and in groups, as in the process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest

import isotone
from isotone.server import running_server

TABLE: Any = {
    "TableName": "Orders",
    "KeySchema": [
        {"AttributeName": "customer", "KeyType": "HASH"},
        {"AttributeName": "placed", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "customer", "AttributeType": "S"},
        {"AttributeName": "placed", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
HISTORY: list[tuple[str, list[Any]]] = [
    ("INSERT INTO Orders VALUE {'customer': 'ann', 'placed': 1, 'blob': ?}", [{"B": b"\x00hi"}]),
    ("INSERT INTO Orders VALUE {'customer': 'ann', 'placed': 2, 'tags': <<'a', 'b'>>}", []),
    ("INSERT INTO Orders VALUE {'customer': 'ann', 'placed': 2}", []),
    ("UPDATE Orders SET total = 12.50 WHERE customer = ? AND placed = 1", [{"S": "ann"}]),
    ("UPDATE Orders SET total = total + 1 WHERE customer = 'ann' AND placed = 1 RETURNING ALL NEW *", []),
    ("SELECT * FROM Orders WHERE customer = 'ann' ORDER BY placed DESC", []),
    ("SELECT * FROM Orders WHERE customer = 'ann' AND placed = 1", []),
    ("DELETE FROM Orders WHERE customer = 'ann' AND placed = 1 AND total > 100", []),
    ("DELETE FROM Orders WHERE customer = 'ann' AND placed = 1 RETURNING ALL OLD *", []),
    ("SELECT placed FROM Orders", []),
    ("SELECT FROM", []),
]  # fmt: skip


@pytest.fixture(params=["memory", "file"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    source = ":memory:" if request.param == "memory" else tmp_path / "orders.db"
    with isotone.open(source) as database:
        with running_server(database) as url:
            client = boto3.client(
                "dynamodb",
                endpoint_url=url,
                region_name="us-east-1",
                aws_access_key_id="any",
                aws_secret_access_key="any",
            )
            client.create_table(**TABLE)
            yield client
        assert database.check() == []


def answers(client: Any, *, token: bool = True) -> list[Any]:
    """What a client gets for each statement of the history."""
    found = []
    for statement, parameters in HISTORY:
        more = {"Parameters": parameters} if parameters else {}
        try:
            answer = client.execute_statement(
                Statement=statement, ReturnConsumedCapacity="TOTAL", **more
            )
        except client.exceptions.ClientError as error:
            found.append(error.response["Error"])
        else:
            answer.pop("ResponseMetadata")
            found.append(answer)
    return found


def test_the_same_as_in_the_process(client: Any) -> None:
    with isotone.open(":memory:") as database:
        own = database.client()
        own.create_table(**TABLE)
        expected = answers(own)
    assert answers(client) == expected
    assert [answer.get("Code") for answer in expected if "Code" in answer] == [
        "DuplicateItemException",
        "ConditionalCheckFailedException",
        "ValidationException",
    ]
    assert expected[8]["Items"][0]["blob"] == {"B": b"\x00hi"}


def test_statements_that_arrive_together(client: Any) -> None:
    def add(number: int) -> int:
        client.execute_statement(
            Statement="INSERT INTO Orders VALUE {'customer': 'bob', 'placed': ?}",
            Parameters=[{"N": str(number % 40)}],
        )
        found = client.execute_statement(
            Statement="SELECT placed FROM Orders WHERE customer = 'bob' AND placed = ?",
            Parameters=[{"N": str(number % 40)}],
        )
        return len(found["Items"])

    def attempt(number: int) -> int:
        try:
            return add(number)
        except client.exceptions.DuplicateItemException:
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(80))) == 40
    whole = client.execute_statement(Statement="SELECT * FROM Orders WHERE customer = 'bob'")
    assert len(whole["Items"]) == 40


def test_batches_and_transactions(client: Any) -> None:
    insert = "INSERT INTO Orders VALUE {'customer': 'eve', 'placed': 1}"
    first = client.batch_execute_statement(Statements=[{"Statement": insert}])
    assert first["Responses"] == [{"TableName": "Orders"}]
    with pytest.raises(client.exceptions.TransactionCanceledException) as cancelled:
        client.execute_transaction(
            TransactStatements=[
                {"Statement": "UPDATE Orders SET x = 1 WHERE customer = 'eve' AND placed = 1"},
                {"Statement": "UPDATE Orders SET x = 1 WHERE customer = 'eve' AND placed = 2"},
            ]
        )
    reasons = cancelled.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]
    read = "SELECT * FROM Orders WHERE customer = 'eve' AND placed = 1"
    answer = client.execute_transaction(TransactStatements=[{"Statement": read}])
    assert answer["Responses"] == [{"Item": {"customer": {"S": "eve"}, "placed": {"N": "1"}}}]
