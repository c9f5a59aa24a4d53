"""What requests consume of each table and index, counted whether they ask for it or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker
from tests.operations.test_capacity import INDEXES
from tests.operations.test_vectors import near, search, vector

import isotone
from isotone.engine import consumed_units
from isotone.errors import ApiError

READ, WRITTEN = "isotone_consumed_read_units_total", "isotone_consumed_write_units_total"
HOME = "us-east-1"
TABLES = ("one", "two")
Counted = dict[tuple[str, str], tuple[float, float]]


def counted(database: isotone.Database, region: str = HOME) -> Counted:
    """What was read from and written to each table and index of a region."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for name, labels, value in database.series():
        where = dict(labels)
        if name in (READ, WRITTEN) and where["region"] == region:
            found.setdefault((where["table"], where["index"]), {})[name] = value
    return {key: (each[READ], each[WRITTEN]) for key, each in found.items()}


@pytest.fixture
def measured(ask: Asker) -> Asker:
    ask.database.measure()
    return ask


def put(ask: Asker, size: int = 10, key: str = "a", table: str = "tab", **more: Any) -> None:
    item = {"p": {"S": key}, "x": {"S": "x" * size}}
    ask("PutItem", TableName=table, Item=item, **more)


def test_requests_are_counted_that_do_not_ask(measured: Asker) -> None:
    measured.table()
    put(measured, 2_000)  # 3 KB begun: 2
    put(measured, 10)  # replaces 2 KB
    measured("GetItem", TableName="tab", Key={"p": {"S": "a"}})
    measured("GetItem", TableName="tab", Key={"p": {"S": "a"}}, ConsistentRead=True)
    measured("GetItem", TableName="tab", Key={"p": {"S": "nobody"}})
    assert counted(measured.database) == {("tab", ""): (2.0, 4.0)}
    put(measured, 5_000)
    put(measured, 10, key="b")
    measured("Scan", TableName="tab")
    assert counted(measured.database) == {("tab", ""): (3.0, 10.0)}


def test_nobody_counts_unless_it_is_asked(ask: Asker) -> None:
    ask.table()
    put(ask)
    assert ask.database.series() == []
    assert ask.database.engine.catalog.tables["tab"].units is None
    ask.database.measure()
    put(ask)
    assert counted(ask.database) == {("tab", ""): (0.0, 1.0)}
    ask.database.measure()  # once more, for another server: the counters go on
    put(ask)
    assert counted(ask.database) == {("tab", ""): (0.0, 2.0)}
    ask.database.measure(False)
    put(ask)
    assert ask.database.series() == []


def test_a_write_whose_condition_is_false_is_charged(measured: Asker) -> None:
    measured.table()
    put(measured, 2_500)
    fails = {"ConditionExpression": "attribute_not_exists(p)"}
    for asks in ({}, {"ReturnConsumedCapacity": "TOTAL"}):
        with pytest.raises(ApiError):
            put(measured, 10, **fails, **asks)
    with pytest.raises(ApiError):
        measured("DeleteItem", TableName="tab", Key={"p": {"S": "b"}}, ConditionExpression="attribute_exists(p)")  # fmt: skip
    assert counted(measured.database) == {("tab", ""): (0.0, 3.0 + 3.0 + 3.0 + 1.0)}


def test_expiry_is_not_charged(measured: Asker) -> None:
    measured.table()
    measured(
        "UpdateTimeToLive",
        TableName="tab",
        TimeToLiveSpecification={"AttributeName": "until", "Enabled": True},
    )
    until = {"N": str(int(measured.clock.now()) + 10)}
    measured("PutItem", TableName="tab", Item={"p": {"S": "a"}, "until": until})
    measured.clock.advance(100)
    measured.database.finish_maintenance()
    assert measured("Scan", TableName="tab")["Count"] == 0
    assert counted(measured.database) == {("tab", ""): (0.5, 1.0)}


def test_a_vector_index_consumes_no_units(measured: Asker) -> None:
    """It is charged by bytes, which responses report."""
    measured.table(VectorIndexes=[near()])
    for mode in ("NONE", "INDEXES"):
        item = {"p": {"S": "a"}, "v": vector(len(mode), 1)}
        measured("PutItem", TableName="tab", Item=item, ReturnConsumedCapacity=mode)
        assert search(measured, 1, 1)
    assert counted(measured.database) == {("tab", ""): (0.0, 2.0)}


def test_regions_have_their_own(ask: Asker) -> None:
    ask.database.measure()
    ask.table()
    there = Asker(ask.database.region("eu-west-1"), ask.clock)
    there.table()
    put(ask)
    put(there, 2_000)
    assert counted(ask.database) == {("tab", ""): (0.0, 1.0)}
    assert counted(ask.database, "eu-west-1") == {("tab", ""): (0.0, 2.0)}


def test_an_addition_of_another_thread_is_not_lost(measured: Asker, monkeypatch) -> None:
    """A long read is finished by a thread without the engine's lock. It may be interrupted wherever it calls a function."""
    measured.table()
    units = measured.database.engine.catalog.tables["tab"].units
    assert units is not None
    read_units = consumed_units.read_units

    def interrupted(size: int, consistent: bool) -> float:
        monkeypatch.setattr(consumed_units, "read_units", read_units)
        put(measured)
        measured("Scan", TableName="tab")
        return read_units(size, consistent)

    monkeypatch.setattr(consumed_units, "read_units", interrupted)
    units.read(4096, consistent=True)
    assert counted(measured.database) == {("tab", ""): (1.5, 1.0)}


# The number of counters


def total(database: isotone.Database) -> tuple[float, float]:
    found = counted(database).values()
    return sum(read for read, _ in found), sum(written for _, written in found)


def test_tables_that_come_and_go_leave_no_series(measured: Asker, monkeypatch) -> None:
    monkeypatch.setattr(consumed_units, "MOST_TABLES", 5)
    measured.table("stays")
    put(measured, table="stays")
    for number in range(30):
        name = f"table{number}"
        measured.table(name, **INDEXES, keys="p s")
        measured(
            "PutItem", TableName=name, Item={"p": {"S": "p"}, "s": {"S": "s"}, "g": {"S": "g"}}
        )
        measured("Scan", TableName=name)
        if number % 3:
            measured("DeleteTable", TableName=name)
    found = counted(measured.database)
    assert found["stays", ""] == (0.0, 1.0)
    assert len({table for table, _ in found}) == 5 + 1
    assert found[consumed_units.OTHERS, ""][0] > 20 * 0.5
    assert total(measured.database) == (30 * 0.5, 1.0 + 30 * 2)


def test_a_deleted_index_has_no_series(measured: Asker) -> None:
    measured.table(**INDEXES, keys="p s")
    item = {"p": {"S": "p"}, "s": {"S": "s"}, "g": {"S": "g"}, "l": {"S": "l"}}
    measured("PutItem", TableName="tab", Item=item)
    assert counted(measured.database) == {
        ("tab", ""): (0.0, 1.0), ("tab", "gsi"): (0.0, 1.0), ("tab", "lsi"): (0.0, 1.0)
    }  # fmt: skip
    measured("UpdateTable", TableName="tab", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "gsi"}}])  # fmt: skip
    measured.database.finish_maintenance()
    assert counted(measured.database) == {
        ("tab", ""): (0.0, 1.0), ("tab", "lsi"): (0.0, 1.0), (consumed_units.OTHERS, ""): (0.0, 1.0)
    }  # fmt: skip


def test_what_another_process_drops_and_what_is_undone_have_no_series(tmp_path: Path) -> None:
    clock = isotone.ManualClock()
    with isotone.open(tmp_path / "a.db", clock=clock, durability="none") as database:
        database.measure()
        ask = Asker(database, clock)
        ask.table("first")
        put(ask, table="first")
        with isotone.open(tmp_path / "a.db", clock=clock, durability="none") as other:
            other.execute("DeleteTable", {"TableName": "first"})
        ask("ListTables")
        with database.rolled_back():
            ask.table("undone")
            put(ask, table="undone")
        ask("ListTables")
        assert counted(database) == {(consumed_units.OTHERS, ""): (0.0, 2.0)}


# Against what responses report

KEYS = [{"p": {"S": p}, "s": {"S": s}} for p in "ab" for s in "xy"]
NAMES = st.sampled_from(TABLES)
KEY = st.sampled_from(KEYS)
ITEM = st.builds(
    lambda key, size, more: {**key, "x": {"S": "x" * size}, **more},
    KEY,
    st.sampled_from([1, 900, 1100, 5000]),
    st.sampled_from([{}, {"g": {"S": "g"}}, {"g": {"S": "h"}, "l": {"S": "m"}}]),
)
FLAG = st.booleans()


def _request(name: str, **members: Any) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.fixed_dictionaries(members).map(lambda request: (name, request))


REQUESTS = st.one_of(
    _request("PutItem", TableName=NAMES, Item=ITEM),
    _request("DeleteItem", TableName=NAMES, Key=KEY),
    _request(
        "UpdateItem",
        TableName=NAMES,
        Key=KEY,
        UpdateExpression=st.sampled_from(["SET g = :g", "REMOVE g, x", "SET x = :g"]),
        ExpressionAttributeValues=st.just({":g": {"S": "g2"}}),
    ).map(lambda each: (each[0], _without_unused(each[1]))),
    _request("GetItem", TableName=NAMES, Key=KEY, ConsistentRead=FLAG),
    _request("Scan", TableName=NAMES, ConsistentRead=FLAG),
    _request("Scan", TableName=NAMES, IndexName=st.sampled_from(["gsi", "lsi"])),
    _request(
        "Query",
        TableName=NAMES,
        IndexName=st.just("lsi"),
        Select=st.sampled_from(["ALL_ATTRIBUTES", "COUNT"]),
        KeyConditionExpression=st.just("p = :p"),
        ExpressionAttributeValues=st.just({":p": {"S": "a"}}),
    ),
    _request(
        "BatchGetItem",
        RequestItems=st.dictionaries(
            NAMES,
            st.builds(
                lambda keys, consistent: {"Keys": keys, "ConsistentRead": consistent},
                st.lists(KEY, min_size=1, unique_by=str),
                FLAG,
            ),
            min_size=1,
        ),
    ),
    _request(
        "BatchWriteItem",
        RequestItems=st.dictionaries(
            NAMES,
            st.lists(
                st.one_of(
                    ITEM.map(lambda item: {"PutRequest": {"Item": item}}),
                    KEY.map(lambda key: {"DeleteRequest": {"Key": key}}),
                ),
                min_size=1,
                unique_by=lambda write: str(_key_of(write)),
            ),
            min_size=1,
        ),
    ),
    _request(
        "TransactGetItems",
        TransactItems=st.lists(
            st.builds(lambda table, key: {"Get": {"TableName": table, "Key": key}}, NAMES, KEY),
            min_size=1,
            unique_by=str,
        ),
    ),
    _request(
        "TransactWriteItems",
        TransactItems=st.lists(
            st.builds(lambda table, item: {"Put": {"TableName": table, "Item": item}}, NAMES, ITEM),
            min_size=1,
            unique_by=lambda write: str((write["Put"]["TableName"], _key_of(write))),
        ),
        ClientRequestToken=st.sampled_from(["1", "2", "3"]),
    ),
    _request(
        "ExecuteStatement",
        Statement=NAMES.flatmap(
            lambda name: st.sampled_from(
                [
                    f"SELECT * FROM {name}",
                    f"SELECT * FROM {name} WHERE p = 'a' AND s = 'x'",
                    f"SELECT * FROM {name}.gsi WHERE g = 'g'",
                    f"INSERT INTO {name} VALUE {{'p': 'a', 's': 'x', 'g': 'i'}}",
                    f"DELETE FROM {name} WHERE p = 'a' AND s = 'x'",
                ]
            )
        ),
    ),
    _request(
        "BatchExecuteStatement",
        Statements=NAMES.flatmap(
            lambda name: st.just(
                [{"Statement": f"SELECT * FROM {name} WHERE p='{p}' AND s='x'"} for p in "ab"]
            )
        ),
    ),
)


def _without_unused(request: dict[str, Any]) -> dict[str, Any]:
    if ":g" not in request["UpdateExpression"]:
        del request["ExpressionAttributeValues"]
    return request


def _key_of(write: dict[str, Any]) -> tuple[Any, Any]:
    (body,) = write.values()
    item = body.get("Item") or body.get("Key")
    return item["p"], item["s"]


def reported(answer: dict[str, Any]) -> Counted:
    """What a response says was consumed, without the difference between reading and writing."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    given = answer["ConsumedCapacity"]
    for each in given if isinstance(given, list) else [given]:
        name = each["TableName"]
        found[name, ""] = (each["Table"]["CapacityUnits"], 0)
        for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
            for index, units in each.get(kind, {}).items():
                found[name, index] = (units["CapacityUnits"], 0)
    return found


def attempt(
    database: isotone.Database, operation: str, request: dict[str, Any]
) -> dict[str, Any] | ApiError:
    try:
        return database.execute(operation, request)
    except ApiError as error:
        return error


@given(st.lists(REQUESTS, min_size=1, max_size=12))
@settings(max_examples=examples(90))
def test_counters_and_responses_agree(requests: list[tuple[str, dict[str, Any]]]) -> None:
    clock = isotone.ManualClock()
    expected: dict[tuple[str, str], float] = {}
    with isotone.open(clock=clock) as asking, isotone.open(clock=clock) as silent:
        for database in (asking, silent):
            for name in TABLES:
                Asker(database, clock).table(name, **INDEXES, keys="p s")
            database.measure()
        for operation, request in requests:
            asked = attempt(asking, operation, {**request, "ReturnConsumedCapacity": "INDEXES"})
            answer = attempt(silent, operation, request)
            if isinstance(asked, ApiError):
                assert isinstance(answer, type(asked))
                if "Duplicate" in asked.code:  # an INSERT that was charged, which nothing reports
                    where = request["Statement"].split()[2], ""
                    expected[where] = sum(counted(silent)[where])
                continue
            assert "ConsumedCapacity" not in answer
            for where, (units, _) in reported(asked).items():
                expected[where] = expected.get(where, 0) + units
        for database in (asking, silent):
            sums = {where: sum(each) for where, each in counted(database).items()}
            assert sums == {where: units for where, units in expected.items() if units}
