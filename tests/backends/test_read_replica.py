"""Eventually consistent reads from a streaming replica of PostgreSQL: how stale they may be, and who answers without it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from tests.crash.server_storm import Caller
from tests.postgres_server import PostgresServer, needs_postgres
from tests.sdks.server_process import start_server

import isotone
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.operations import replica_reads
from isotone.operations.api import Api
from isotone.operations.replica_reads import ReplicaReads
from isotone.postgres_address import address_of

TABLE = "Orders"
KEY = {"pk": {"S": "a"}}
PATIENCE = 30.0  # seconds


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    with PostgresServer("fsync=off") as server:
        yield server


@pytest.fixture(scope="module")
def replica(primary: PostgresServer) -> Iterator[PostgresServer]:
    server = primary.replica()
    try:
        yield server
    finally:
        server.__exit__()


@pytest.fixture
def database(
    primary: PostgresServer, replica: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[isotone.Database]:
    """A database whose item has the version 1, which the replica has as well."""
    monkeypatch.setattr(replica_reads, "_REST", 0.05)
    with isotone.open(f"{primary.new_address()}&read_replica={replica.folder}") as database:
        create(database, primary)
        until(lambda: has_received(primary, replica))
        assert read(database) == 1
        yield database
        replica.execute("SELECT pg_wal_replay_resume()")


def create(database: isotone.Database, primary: PostgresServer) -> None:
    database.execute(
        "CreateTable",
        {
            "TableName": TABLE,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    write(database, 1)


def write(database: isotone.Database, version: int) -> None:
    item = {**KEY, "version": {"N": str(version)}}
    database.execute("PutItem", {"TableName": TABLE, "Item": item})


def read(database: isotone.Database, **options: Any) -> int:
    request = {"TableName": TABLE, "Key": KEY, **options}
    return int(database.execute("GetItem", request)["Item"]["version"]["N"])


def pause(replica: PostgresServer) -> None:
    """Let the replica show nothing new."""
    replica.execute("SELECT pg_wal_replay_pause()")
    state = "SELECT pg_get_wal_replay_pause_state()"
    until(lambda: replica.execute(state) == [("paused",)])


def has_received(primary: PostgresServer, replica: PostgresServer) -> bool:
    (((end,),), ((shown,),)) = (
        primary.execute("SELECT pg_current_wal_lsn() - '0/0'"),
        replica.execute("SELECT pg_last_wal_replay_lsn() - '0/0'"),
    )
    return shown >= end  # type: ignore[operator]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def asked(database: isotone.Database) -> int:
    """How often the replica was asked."""
    api = database._api
    assert isinstance(api, ReplicaReads)
    if api._replica is None:
        return 0
    store: Any = api._replica.engine.store
    found: int = store._reading.round_trips
    return found


QUERY = {
    "KeyConditionExpression": "pk = :a",
    "ExpressionAttributeValues": {":a": {"S": "a"}},
}
READS: dict[str, tuple[str, dict[str, Any]]] = {
    "GetItem": ("GetItem", {"TableName": TABLE, "Key": KEY}),
    "GetItem, projected": (
        "GetItem",
        {"TableName": TABLE, "Key": KEY, "ProjectionExpression": "version"},
    ),
    "GetItem, told": ("GetItem", {"TableName": TABLE, "Key": KEY, "ConsistentRead": False}),
    "BatchGetItem": ("BatchGetItem", {"RequestItems": {TABLE: {"Keys": [KEY]}}}),
    "Query": ("Query", {"TableName": TABLE, **QUERY}),
    "Scan": ("Scan", {"TableName": TABLE}),
}
CONSISTENT: dict[str, tuple[str, dict[str, Any]]] = {
    "GetItem": ("GetItem", {"TableName": TABLE, "Key": KEY, "ConsistentRead": True}),
    "BatchGetItem": (
        "BatchGetItem",
        {"RequestItems": {TABLE: {"Keys": [KEY], "ConsistentRead": True}}},
    ),
    "Query": ("Query", {"TableName": TABLE, **QUERY, "ConsistentRead": True}),
    "Scan": ("Scan", {"TableName": TABLE, "ConsistentRead": True}),
    "TransactGetItems": (
        "TransactGetItems",
        {"TransactItems": [{"Get": {"TableName": TABLE, "Key": KEY}}]},
    ),
    "ExecuteStatement": ("ExecuteStatement", {"Statement": f'SELECT * FROM "{TABLE}"'}),
}
WAYS: dict[str, Callable[[isotone.Database, str, dict[str, Any]], Any]] = {
    "execute": lambda database, operation, request: database.execute(operation, request),
    "send": lambda database, *call: json.loads(database.send(*in_json(*call))),
    "send_reads": lambda database, *call: json.loads(alone(database.send_reads([in_json(*call)]))),
}


def in_json(operation: str, request: dict[str, Any]) -> tuple[str, bytes]:
    return operation, json.dumps(request).encode()


def alone(answers: Any) -> bytes:
    (answer,) = answers
    assert isinstance(answer, bytes)
    return answer


def version_in(answer: Any) -> int:
    return int(json.dumps(answer).split('"version": {"N": "')[1].split('"')[0])


@needs_postgres
def test_eventually_consistent_reads_are_as_stale_as_the_replica(
    database: isotone.Database, replica: PostgresServer
) -> None:
    pause(replica)
    write(database, 2)
    for way in WAYS.values():
        for name, read_ in READS.items():
            before = asked(database)
            assert version_in(way(database, *read_)) == 1, name
            assert asked(database) > before
        for name, read_ in CONSISTENT.items():
            before = asked(database)
            assert version_in(way(database, *read_)) == 2, name
            assert asked(database) == before
    replica.execute("SELECT pg_wal_replay_resume()")
    until(lambda: read(database) == 2)


@needs_postgres
@pytest.mark.parametrize("workers", ["1", "2"])
def test_servers_read_from_it(
    database: isotone.Database, replica: PostgresServer, workers: str
) -> None:
    address = str(getattr(database.engine.store, "address", ""))
    with start_server(address, "--workers", workers) as server, Caller(server.url) as call:
        pause(replica)
        item = {**KEY, "version": {"N": "2"}}
        call("PutItem", TableName=TABLE, Item=item)
        read_ = {"TableName": TABLE, "Key": KEY}
        assert call("GetItem", **read_, ConsistentRead=True)["Item"] == item
        assert call("GetItem", **read_)["Item"] == {**KEY, "version": {"N": "1"}}
        assert call("Scan", TableName=TABLE)["Items"] == [{**KEY, "version": {"N": "1"}}]


@needs_postgres
def test_many_reads_are_one_round_trip_to_each_server(database: isotone.Database) -> None:
    gets = [in_json(*READS["GetItem"]), in_json(*CONSISTENT["GetItem"])] * 16
    database.send_reads(gets)
    store: Any = database.engine.store
    before = asked(database), store._reading.round_trips
    answers = database.send_reads(gets)
    assert {version_in(json.loads(alone([answer]))) for answer in answers} == {1}
    assert (asked(database), store._reading.round_trips) == (before[0] + 1, before[1] + 1)


@needs_postgres
def test_what_only_the_primary_knows_is_answered_by_it(
    database: isotone.Database, primary: PostgresServer, replica: PostgresServer
) -> None:
    """A table that the replica does not have yet; afterwards no read shows less than this one did."""
    pause(replica)
    late = {"TableName": "Late", "Key": KEY}
    with pytest.raises(ResourceNotFoundException):
        database.execute("GetItem", late)
    write(database, 2)
    assert read(database) == 1  # a failed read has shown nothing
    database.execute("CreateTable", table := {**table_like(database), "TableName": "Late"})
    assert table["TableName"] == "Late"
    assert database.execute("GetItem", late) == {}
    assert read(database) == 2
    replica.execute("SELECT pg_wal_replay_resume()")
    until(lambda: has_received(primary, replica))
    before = asked(database)
    until(lambda: read(database) == 2 and asked(database) > before)


def table_like(database: isotone.Database) -> dict[str, Any]:
    described = database.execute("DescribeTable", {"TableName": TABLE})["Table"]
    names = ("AttributeDefinitions", "KeySchema")
    return {"BillingMode": "PAY_PER_REQUEST", **{name: described[name] for name in names}}


@needs_postgres
def test_a_block_of_the_caller_reads_its_own_writes(database: isotone.Database) -> None:
    with database.rolled_back():
        write(database, 2)
        assert read(database) == 2
    assert read(database) == 1


@needs_postgres
def test_without_the_replica_the_primary_answers(
    primary: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_reads, "_REST", 0.05)
    with ExitStack() as stack:
        replica = primary.replica()
        stack.callback(replica.__exit__)
        replica.stop()
        address = f"{primary.new_address()}&read_replica={replica.folder}"
        database = stack.enter_context(isotone.open(address))
        create(database, primary)
        assert read(database) == 1
        assert asked(database) == 0
        for version in (2, 3):
            replica.start()
            until(lambda: read(database) > 0 and asked(database) > 0)
            until(lambda: has_received(primary, replica))
            replica.stop()
            write(database, version)
            assert read(database) == version
            before = asked(database)
            assert read(database) == version
            assert asked(database) == before  # it is left alone
            assert database.health() == ""


@needs_postgres
def test_reads_never_go_back_to_an_older_replica(
    database: isotone.Database, primary: PostgresServer, replica: PostgresServer
) -> None:
    """The first of two replicas is lost, and the other one is behind."""
    with ExitStack() as stack:
        ahead = primary.replica()
        stack.callback(ahead.__exit__)
        schema = address_of(str(getattr(database.engine.store, "address", ""))).schema
        address = f"{primary.address(schema)}&read_replica={ahead.folder},{replica.folder}"
        reading = stack.enter_context(isotone.open(address))
        pause(replica)
        write(database, 2)
        until(lambda: has_received(primary, ahead))
        assert read(reading) == 2
        before = asked(reading)
        assert read(reading) == 2
        assert asked(reading) == before + 1
        ahead.stop()
        for _ in range(20):
            assert read(reading) == 2
            time.sleep(0.01)
        assert read(database) == 1  # who has not seen more may see this
        replica.execute("SELECT pg_wal_replay_resume()")
        until(lambda: has_received(primary, replica))
        until(lambda: read(reading) == 2 and asked(reading) > before + 20)


@needs_postgres
def test_a_closed_database_asks_nobody(primary: PostgresServer, replica: PostgresServer) -> None:
    address = f"{primary.new_address()}&read_replica={replica.folder}"
    with closing(isotone.open(address)) as database:
        create(database, primary)
        until(lambda: has_received(primary, replica))
        assert read(database) == 1
        assert asked(database) > 0
    with pytest.raises(UsageError, match="closed"):
        read(database)


def test_others_pay_nothing() -> None:
    with isotone.open() as database:
        assert type(database._api) is Api


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ("db2", "host=db2&port="),
        ("db2:5433", "host=db2&port=5433"),
        ("db2,db3:5433", "host=db2%2Cdb3&port=%2C5433"),
        ("[::1]:5433", "host=%3A%3A1&port=5433"),
        ("/run/db2", "host=%2Frun%2Fdb2&port="),
    ],
)
def test_the_address_of_a_replica(hosts: str, expected: str) -> None:
    given = f"postgresql://ann:secret@db1:5432/app?schema=shop&sslmode=require&host=db0&read_replica={hosts}"
    found = address_of(given)
    assert "read_replica" not in found.uri
    assert found.replica == (
        f"postgresql://ann:secret@/app?sslmode=require&schema=shop&{expected}"
        "&target_session_attrs=prefer-standby&connect_timeout=2"
    )
    assert address_of(found.replica).replica == ""


@pytest.mark.parametrize("hosts", ["", "db2,", "db2:port", "a:b:c", "user@db2/x"])
def test_a_replica_that_is_no_server(hosts: str) -> None:
    with pytest.raises(UsageError, match="read_replica"):
        address_of(f"postgresql://ann@db1/app?read_replica={hosts}")
