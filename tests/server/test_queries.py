"""The most expensive queries of a server: counted by shape, in one process and in several."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.sdks.server_process import start_server
from tests.server.test_monitor import ask

import isotone
from isotone.operations import served_queries
from isotone.operations.served_queries import ServedQueries
from isotone.server import running_server

TABLE = {
    "TableName": "orders",
    "KeySchema": [
        {"AttributeName": "customer", "KeyType": "HASH"},
        {"AttributeName": "at", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("customer", "at", "status")
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_status",
            "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


def queries(url: str) -> Any:
    status, text = ask(url, "GET", "/queries")
    assert status == 200
    return json.loads(text)["queries"]


def fill(database: isotone.Database) -> None:
    database.execute("CreateTable", TABLE)
    for number in range(400):
        item = {
            "customer": {"S": f"c{number % 4}"},
            "at": {"S": f"{number:05}"},
            "status": {"S": "OPEN" if number % 20 == 0 else "DONE"},
            "total": {"N": str(number)},
            "text": {"S": "x" * 200},
        }
        database.execute("PutItem", {"TableName": "orders", "Item": item})


def query(key: str, *, values: dict[str, str], **members: Any) -> tuple[str, dict[str, Any]]:
    given = {f":{name}": {"S": value} for name, value in values.items()}
    return "Query", {
        "TableName": "orders",
        "KeyConditionExpression": key,
        "ExpressionAttributeValues": given,
        **members,
    }


def workload() -> list[tuple[str, dict[str, Any]]]:
    """A day of a small shop: cheap requests, and five wastes."""
    sent: list[tuple[str, dict[str, Any]]] = []
    for number in range(40):
        key = {"customer": {"S": f"c{number % 4}"}, "at": {"S": f"{number:05}"}}
        sent.append(("GetItem", {"TableName": "orders", "Key": key}))
        sent.append(query("customer = :c AND #at > :a", values={"c": "c1", "a": "00390"}))
        sent[-1][1]["ExpressionAttributeNames"] = {"#at": "at"}
    for number in range(12):
        text = {":s": {"S": "OPEN"}}
        # a scan with a filter, where an index answers
        scan = {"TableName": "orders", "FilterExpression": "#s = :s"}
        names = {"ExpressionAttributeNames": {"#s": "status"}}
        sent.append(("Scan", {**scan, **names, "ExpressionAttributeValues": text}))
        # a query whose filter drops most
        sent.append(
            query(
                "customer = :c",
                values={"c": f"c{number % 4}", "s": "OPEN"},
                FilterExpression="#s = :s",
                **names,
            )
        )
        # a statement without the key
        sent.append(
            ("ExecuteStatement", {"Statement": f"SELECT * FROM orders WHERE total = {number}"})
        )
        # a count by a scan of an index
        sent.append(("Scan", {"TableName": "orders", "IndexName": "by_status", "Select": "COUNT"}))
        # a whole partition of an index, to show its first item
        sent.append(query("#s = :s", values={"s": "DONE"}, IndexName="by_status", **names))
    return sent


WASTES = [
    ("Scan", "", "", "status = ?", ""),
    ("Query", "", "customer = ?", "status = ?", ""),
    ("ExecuteStatement", "", "", "", "SELECT * FROM orders WHERE total = ?"),
    ("Scan", "by_status", "", "", ""),
    ("Query", "by_status", "status = ?", "", ""),
]


@pytest.mark.parametrize("workers", [1, 2])
def test_five_planted_wastes_are_the_most_expensive(workers: int, tmp_path: Any) -> None:
    file = str(tmp_path / "orders.db")
    with isotone.open(file) as database:
        fill(database)
        if workers == 1:
            with running_server(database) as url:
                check_wastes(url)
            return
    with start_server(tmp_path / "orders.db", "--workers", str(workers)) as server:
        check_wastes(server.url)


def check_wastes(url: str) -> None:
    with isotone.connect(url, engine="isotone") as store:
        for action, request in workload():
            store.backend.execute(action, request)
    found = queries(url)
    five = [
        (each["action"], each["index"], each["key"], each["filter"], each["statement"])
        for each in found[:5]
    ]
    assert sorted(five) == sorted(WASTES)
    by_shape = dict(zip(five, found, strict=False))
    filtered = by_shape[WASTES[1]]
    assert filtered["calls"] == 12
    assert filtered["read"] == 12 * 100
    assert filtered["returned"] == 3 * 20
    assert filtered["p99"] > 0
    assert filtered["request"]["FilterExpression"] == "#s = :s"
    scanned = by_shape[WASTES[0]]
    assert scanned["units"] == pytest.approx(12 * 15, rel=0.2)
    for each in found[:5]:
        with isotone.connect(url, engine="isotone") as store:
            explained = isotone.explain(store, (each["action"], each["request"]), run=True)
        measured = explained.measured
        assert measured is not None
        assert each["units"] / each["calls"] == pytest.approx(measured.units, rel=0.05)


def test_credentials_hide_them(tmp_path: Any) -> None:
    users = tmp_path / "users.json"
    users.write_text('{"users": {}}')
    with isotone.open() as database, running_server(database, credentials=users) as url:
        assert ask(url, "GET", "/queries")[0] == 404


def send(database: isotone.Database, action: str, **request: Any) -> None:
    database.send(action, json.dumps(request).encode())


def test_requests_that_differ_in_values_and_placeholders_are_one_shape() -> None:
    with isotone.open() as database:
        fill(database)
        database.measure()
        for name in "abc":
            send(
                database,
                "Query",
                TableName="orders",
                KeyConditionExpression=f"#{name} = :{name}",
                ExpressionAttributeNames={f"#{name}": "customer"},
                ExpressionAttributeValues={f":{name}": {"S": name}},
            )
            send(
                database,
                "ExecuteStatement",
                Statement=f"SELECT * FROM orders WHERE customer IN ['{name}', 'd']",
            )
        send(
            database,
            "Query",
            TableName="orders",
            KeyConditions={
                "customer": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "c"}]}
            },
        )
        found = json.loads(database.served())["queries"]
        shapes = {(each["key"] or each["statement"]): each["calls"] for each in found}
        assert shapes == {
            "customer = ?": 3,
            "SELECT * FROM orders WHERE customer IN [?, …]": 3,
            "customer EQ": 1,
        }


def test_batches_and_transactions_count_by_their_parts() -> None:
    key = {"customer": {"S": "c1"}, "at": {"S": "00001"}}
    other = {"customer": {"S": "c2"}, "at": {"S": "00002"}}
    missing = {"customer": {"S": "nobody"}, "at": {"S": "00000"}}
    with isotone.open() as database:
        fill(database)
        database.execute("CreateTable", {**TABLE, "TableName": "customers"})
        database.measure()
        for name, keys in (("#a", [key, other, missing]), ("#b", [key])):
            entry = {
                "Keys": keys,
                "ProjectionExpression": f"{name}, customer",
                "ExpressionAttributeNames": {name: "at"},
            }
            send(database, "BatchGetItem", RequestItems={"orders": entry})
            send(
                database,
                "TransactGetItems",
                TransactItems=[
                    {"Get": {"TableName": table, "Key": each}}
                    for table in ("orders", "customers")
                    for each in keys
                ],
            )
        for number in range(3):
            put = {"Item": {**missing, "at": {"S": str(number)}}}
            writes = {
                "orders": [{"PutRequest": put}, {"DeleteRequest": {"Key": other}}],
                "customers": [{"PutRequest": put}] * (number % 2),
            }
            send(
                database,
                "BatchWriteItem",
                RequestItems={table: each for table, each in writes.items() if each},
            )
            update = {
                "TableName": "orders",
                "Key": key,
                "UpdateExpression": f"SET #n{number} = :v",
                "ConditionExpression": f"attribute_exists(#n{number})",
                "ExpressionAttributeNames": {f"#n{number}": "total"},
                "ExpressionAttributeValues": {":v": {"N": str(number)}},
            }
            check = {
                "TableName": "orders",
                "Key": {**key, "at": {"S": "00005"}},
                "ConditionExpression": "attribute_exists(customer)",
            }
            entries = [
                {"Update": update},
                {"ConditionCheck": check},
                {"Put": {"TableName": "customers", **put}},
            ]
            send(database, "TransactWriteItems", TransactItems=entries[:: 1 - 2 * (number % 2)])
            send(
                database,
                "BatchExecuteStatement",
                Statements=[
                    {
                        "Statement": f"SELECT * FROM orders WHERE customer = 'c1' AND \"at\" = '{each}'"
                    }
                    for each in ("00001", number)
                ]
                + [{"Statement": "SELECT orders"}],
            )
        found = json.loads(database.served())["queries"]
        by_parts = {each["parts"]: each for each in found}
        statements = 'SELECT * FROM orders WHERE customer = ? AND "at" = ?; SELECT orders'
        assert {
            (each["action"], each["table"], each["parts"], each["calls"]) for each in found
        } == {
            ("BatchGetItem", "orders", "Get orders returns at, customer", 2),
            ("TransactGetItems", "customers, orders", "Get customers; Get orders", 2),
            ("BatchWriteItem", "orders", "Delete orders; Put orders", 2),
            ("BatchWriteItem", "customers, orders", "Delete orders; Put customers; Put orders", 1),
            (
                "TransactWriteItems",
                "customers, orders",
                "ConditionCheck orders if attribute_exists(customer); Put customers; "
                "Update orders SET total = ? if attribute_exists(total)",
                3,
            ),
            ("BatchExecuteStatement", "orders", statements, 3),
        }
        batch = by_parts["Get orders returns at, customer"]
        assert (batch["read"], batch["returned"]) == (3, 3)  # a missing item is not dropped
        assert batch["units"] == 2  # of four keys
        assert len(batch["request"]["RequestItems"]["orders"]["Keys"]) == 3
        transaction = by_parts["Get customers; Get orders"]
        assert transaction["units"] == 8 * 2
        assert (transaction["read"], transaction["returned"]) == (3, 3)


def test_memory_is_bounded_and_no_count_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_queries, "MOST", 10)
    monkeypatch.setattr(served_queries, "_SPELLINGS", 15)
    monkeypatch.setattr(served_queries, "BUSY", float("inf"))  # count every request
    with isotone.open() as database:
        fill(database)
        database.measure()
        send(database, "Scan", TableName="orders")
        for number in range(60):
            expression = f"attribute_exists(a{number})"
            send(
                database,
                "Query",
                TableName="orders",
                KeyConditionExpression="customer = :c",
                FilterExpression=expression,
                ExpressionAttributeValues={":c": {"S": "nobody"}},
            )
        found = json.loads(database.served())["queries"]
        assert len(found) <= 11
        assert sum(each["calls"] for each in found) == 61
        (scan,) = [each for each in found if each["action"] == "Scan"]
        assert scan["table"] == "orders"  # the expensive one is kept
        assert any(each["table"] == "(other)" for each in found)


def test_a_busy_server_counts_queries_by_their_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_queries, "BUSY", 0)
    read_all = {
        "TableName": "orders",
        "KeyConditionExpression": "customer = :c",
        "ExpressionAttributeValues": {":c": {"S": "c1"}},
    }
    key = {"customer": {"S": "c1"}, "at": {"S": "00001"}}
    calls: Counter[tuple[str, str, str]] = Counter()
    units: Counter[tuple[str, str, str]] = Counter()
    with isotone.open() as database:
        fill(database)
        text = {"customer": {"S": "big"}, "text": {"S": "x" * 390_000}}
        for number in range(3):
            item = {**text, "at": {"S": f"{number:05}"}}
            database.execute("PutItem", {"TableName": "orders", "Item": item})
        for seed in range(4):
            monkeypatch.setattr(served_queries, "random", Random(seed).random)
            database.measure()
            for number in range(2000):
                send(database, "GetItem", TableName="orders", Key=key)
                send(database, "Query", **read_all, Limit=1)
                if number % 10 == 0:
                    send(database, "Query", **read_all, FilterExpression="attribute_exists(gone)")
                if number % 100 == 0:
                    # Each is counted, and what follows it has no better chance.
                    send(database, "Scan", TableName="orders", Select="COUNT")
                    send(database, "Query", **read_all, Limit=2, ProjectionExpression="customer")
            for each in json.loads(database.take_served()):
                shape = (each["action"], each["filter"], each["projection"])
                calls[shape] += each["calls"]
                units[shape] += each["units"]
    assert calls["Scan", "", ""] == 4 * 20
    for shape, executed, consumed in (
        (("GetItem", "", ""), 2000, 0.5),
        (("Query", "", ""), 2000, 0.5),
        (("Query", "attribute_exists(gone)", ""), 200, 3),
    ):
        assert calls[shape] == pytest.approx(4 * executed, rel=0.2), shape
        assert units[shape] == pytest.approx(4 * executed * consumed, rel=0.2), shape
    assert calls["Query", "", "customer"] <= 4 * 64, "80 were sent, each of which may count as 64"


def test_counts_of_processes_are_added() -> None:
    parts = []
    for _ in range(2):
        with isotone.open() as database:
            fill(database)
            database.measure()
            send(database, "Scan", TableName="orders")
            parts.append(database.served())
    with isotone.open() as database:
        fill(database)
        database.measure()
        send(database, "Scan", TableName="orders")
        (scan,) = json.loads(database.served(parts))["queries"]
        assert (scan["calls"], scan["read"]) == (3, 1200)
        taken = database.take_served()
        assert json.loads(database.served())["queries"] == []
        assert database.take_served() == b""
        database.add_served(taken)
        (again,) = json.loads(database.served())["queries"]
        assert again["calls"] == 1
        assert isinstance(database._api.served, ServedQueries)
