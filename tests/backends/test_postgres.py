"""A database in PostgreSQL: round trips of each action, two databases over one schema, and addresses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.postgres_server import needs_postgres, shared

import isotone
from isotone.backends import embedded
from isotone.errors import StorageError, UsageError

pytestmark = needs_postgres

KEYS = [{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "s", "KeyType": "RANGE"}]
TABLE: dict[str, Any] = {
    "TableName": "tab",
    "KeySchema": KEYS,
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in "psg"],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def item(number: int) -> dict[str, Any]:
    return {"p": {"S": "a"}, "s": {"S": f"{number:04}"}, "g": {"S": str(number % 3)}}


def key(number: int) -> dict[str, Any]:
    return {"p": {"S": "a"}, "s": {"S": f"{number:04}"}}


@pytest.fixture
def address() -> str:
    return shared().new_address()


@pytest.fixture
def database(address: str) -> Iterator[isotone.Database]:
    with isotone.open(address) as database:
        database.execute("CreateTable", TABLE)
        for number in range(30):
            database.execute("PutItem", {"TableName": "tab", "Item": item(number)})
        yield database
        assert database.check() == []


def trips(database: isotone.Database, call: Callable[[], object]) -> int:
    store: Any = database.engine.store
    before = store._reading.round_trips + store._writing.round_trips
    call()
    return store._reading.round_trips + store._writing.round_trips - before


QUERY = {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}
COSTS: dict[str, tuple[dict[str, Any], int]] = {
    "GetItem": ({"Key": key(1)}, 1),
    "Query": ({**QUERY, "Limit": 20}, 1),
    "PutItem": ({"Item": item(1)}, 3),
    "UpdateItem": (
        {
            "Key": key(2),
            "UpdateExpression": "SET g = :p",
            "ExpressionAttributeValues": {":p": {"S": "b"}},
        },
        3,
    ),
    "DeleteItem": ({"Key": key(3)}, 3),
}


@pytest.mark.parametrize("action", COSTS)
def test_round_trips_of_an_action(database: isotone.Database, action: str) -> None:
    request, wanted = COSTS[action]
    call = {"TableName": "tab", **request}
    assert trips(database, lambda: database.execute(action, call)) == wanted


def test_a_group_of_puts_reads_together(database: isotone.Database) -> None:
    requests = [
        ("PutItem", json.dumps({"TableName": "tab", "Item": item(number)}).encode())
        for number in range(10, 60)
    ]
    wrong = ("PutItem", b'{"TableName": "tab", "Item": {}}')
    exists = {"TableName": "tab", "Item": item(1), "ConditionExpression": "attribute_not_exists(p)"}
    refused = ("PutItem", json.dumps(exists).encode())
    answers: list[Any] = []
    sent = [*requests, wrong, refused]
    assert trips(database, lambda: answers.extend(database.send_many(sent))) <= 6
    assert answers[:50] == [b"{}"] * 50
    assert [type(each).__name__ for each in answers[50:]] == [
        "ValidationException",
        "ConditionalCheckFailedException",
    ]
    count = database.execute("Scan", {"TableName": "tab", "Select": "COUNT"})["Count"]
    assert count == 60


def test_writes_of_one_group_see_each_other(database: isotone.Database) -> None:
    """What is read together is what was stored before the group; each request sees those before it."""
    update = {
        "TableName": "tab",
        "Key": key(5),
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
        "ReturnValues": "UPDATED_NEW",
    }
    answers: Any = database.send_many([("UpdateItem", json.dumps(update).encode())] * 20)
    numbers = [json.loads(answer)["Attributes"]["n"]["N"] for answer in answers]
    assert numbers == [str(number) for number in range(1, 21)]


def test_two_databases_share_a_schema(database: isotone.Database, address: str) -> None:
    with isotone.open(address) as other:
        for number in range(5):
            database.execute("PutItem", {"TableName": "tab", "Item": item(100 + number)})
            got = other.execute("GetItem", {"TableName": "tab", "Key": key(100 + number)})
            assert got["Item"] == item(100 + number)
            other.execute("DeleteItem", {"TableName": "tab", "Key": key(100 + number)})
            assert database.execute("GetItem", {"TableName": "tab", "Key": key(100 + number)}) == {}
        other.execute("DeleteTable", {"TableName": "tab"})
        assert database.execute("ListTables", {})["TableNames"] == []
        other.execute("CreateTable", TABLE)
        database.execute("PutItem", {"TableName": "tab", "Item": item(1)})
        assert other.execute("Scan", {"TableName": "tab"})["Count"] == 1
        assert other.check() == []


def test_a_region_that_another_made(database: isotone.Database, address: str) -> None:
    with isotone.open(address) as other:
        other.region("eu-west-1").execute("CreateTable", TABLE)
        found = database.region("eu-west-1").execute("ListTables", {})
        assert found["TableNames"] == ["tab"]


def test_a_table_is_read_as_of_one_moment(database: isotone.Database) -> None:
    with database.frozen(["tab"]) as pages:
        for number in range(30):
            database.execute("DeleteItem", {"TableName": "tab", "Key": key(number)})
        assert sum(len(page) for page in pages("tab")) == 30
    with database.frozen(["tab"]) as pages:
        assert sum(len(page) for page in pages("tab")) == 0


def test_the_longest_keys(database: isotone.Database) -> None:
    """Keys of 2,048 and 1,024 bytes are far longer than an index of PostgreSQL takes."""
    put = [
        {"p": {"S": "p" * 2047 + last}, "s": {"S": "s" * 1023 + last}, "g": {"S": "g" * 2048}}
        for last in "abc"
    ]
    for each in put:
        database.execute("PutItem", {"TableName": "tab", "Item": each})
    for each in put:
        found = database.execute(
            "GetItem", {"TableName": "tab", "Key": {name: each[name] for name in "ps"}}
        )
        assert found["Item"] == each
    by_g = {
        "TableName": "tab",
        "IndexName": "by_g",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": {"S": "g" * 2048}},
    }
    assert database.execute("Query", by_g)["Count"] == 3


def test_a_store_of_the_library(address: str) -> None:
    with isotone.connect(address) as store:
        assert store.capabilities == isotone.ENGINES["isotone"]
    with pytest.raises(UsageError, match="for a server"):
        isotone.connect(address, profile="x")


def test_what_is_for_files_alone_says_so(address: str, tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="no Isotone database"):
        embedded.check(address)
    with isotone.open(address) as database, pytest.raises(UsageError, match="pg_dump"):
        database.backup(tmp_path / "backup.db")
    for call in (isotone.backup, isotone.restore, isotone.repair):
        with pytest.raises(UsageError, match="pg_dump"):
            call(address, tmp_path / "other.db")
    with pytest.raises(UsageError, match="pg_dump"):
        isotone.compact(address)
    assert embedded.check(address) == ([], 0)


def test_a_server_that_does_not_answer() -> None:
    with pytest.raises(StorageError, match=r"ann@127\.0\.0\.1:1/app.*cannot be used") as caught:
        isotone.open("postgresql://ann:secret@127.0.0.1:1/app")
    assert "secret" not in str(caught.value)


def test_reads_of_one_turn_go_out_together(database: isotone.Database, address: str) -> None:
    gets = [
        ("GetItem", json.dumps({"TableName": "tab", "Key": key(number)}).encode())
        for number in range(32)
    ]
    query = ("Query", json.dumps({"TableName": "tab", **QUERY, "Limit": 5}).encode())
    none = ("GetItem", b'{"TableName": "none", "Key": {"p": {"S": "a"}}}')
    answers: list[Any] = []
    assert trips(database, lambda: answers.extend(database.send_reads(gets))) == 1
    wanted = [{"Item": item(number)} if number < 30 else {} for number in range(32)]
    assert [json.loads(answer) for answer in answers] == wanted
    mixed: Any = database.send_reads([query, *gets[:3], none, ("ListTables", b"{}")])
    assert json.loads(mixed[0])["Count"] == 5
    assert [json.loads(answer) for answer in mixed[1:4]] == wanted[:3]
    assert type(mixed[4]).__name__ == "ResourceNotFoundException"
    assert json.loads(mixed[5]) == {"TableNames": ["tab"]}
    assert not database.engine.lock._is_owned()  # whatever ended an attempt
    with isotone.open(address) as other:  # what is known of the turn is forgotten after it
        other.execute("DeleteItem", {"TableName": "tab", "Key": key(1)})
        again: Any = database.send_reads(gets)
        assert json.loads(again[1]) == {}
        other.execute("DeleteTable", {"TableName": "tab"})
        gone: Any = database.send_reads(gets)
        assert {type(answer).__name__ for answer in gone} == {"ResourceNotFoundException"}


def test_a_server_gathers_reads(address: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from tests.crash.server_storm import Caller

    from isotone.server import running_server

    with isotone.open(address) as database, running_server(database) as url:
        database.execute("CreateTable", TABLE)

        def put_and_get(worker: int) -> None:
            with Caller(url) as call:
                for number in range(worker * 100, worker * 100 + 30):
                    call("PutItem", TableName="tab", Item=item(number))
                    got = call("GetItem", TableName="tab", Key=key(number), ConsistentRead=True)
                    assert got["Item"] == item(number)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put_and_get, range(8)))
        assert database.check() == []
