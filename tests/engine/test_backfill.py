"""Backfills: whatever happens to the table meanwhile, in the end the index is what it should be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone.engine import backfill, maintenance

BY_G: dict[str, Any] = {
    "IndexName": "by-g",
    "KeySchema": key_schema("g"),
    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["kept"]},
}
G_DEFINED = [{"AttributeName": "g", "AttributeType": "S"}]


@pytest.fixture
def held(ask: Asker) -> Iterator[Asker]:
    """Calls that the background thread does not come between."""
    with ask.database.engine.writing:
        yield ask


def add_index(ask: Asker) -> None:
    ask(
        "UpdateTable",
        TableName="tab",
        AttributeDefinitions=G_DEFINED,
        GlobalSecondaryIndexUpdates=[{"Create": BY_G}],
    )


def put(ask: Asker, number: int, **more: Any) -> None:
    ask("PutItem", TableName="tab", Item={"p": {"S": str(number)}, **more})


def test_a_table_can_be_dropped_while_its_index_is_filled(held: Asker) -> None:
    held.table()
    for number in range(600):
        put(held, number, g={"S": "g"})
    add_index(held)
    assert backfill.step(held.database.engine)
    held("DeleteTable", TableName="tab")
    assert not backfill.pending(held.database.engine)
    maintenance.finish(held.database.engine)
    held.table()
    assert held("Scan", TableName="tab")["Count"] == 0


def test_an_index_can_be_dropped_while_it_is_filled(held: Asker) -> None:
    held.table()
    for number in range(600):
        put(held, number, g={"S": "g"})
    add_index(held)
    assert backfill.step(held.database.engine)
    error = held.refused("Scan", TableName="tab", IndexName="by-g")
    assert error.message == "Cannot read from backfilling global secondary index: by-g"
    held(
        "UpdateTable",
        TableName="tab",
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-g"}}],
    )
    assert not backfill.pending(held.database.engine)
    add_index(held)
    maintenance.finish(held.database.engine)
    assert held("Scan", TableName="tab", IndexName="by-g")["Count"] == 600


def test_expiry_can_be_switched_off_and_on_while_it_is_prepared(held: Asker) -> None:
    held.table()
    for number in range(600):
        put(held, number, until={"N": "1"}, later={"N": str(int(held.clock.now()) - 1)})
    for attribute, enabled in (("until", True), ("until", False), ("later", True)):
        specification = {"AttributeName": attribute, "Enabled": enabled}
        held("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
        if enabled:
            assert backfill.step(held.database.engine)
    maintenance.finish(held.database.engine)
    assert held("Scan", TableName="tab", Select="COUNT")["Count"] == 0


def test_two_backfills_take_turns(held: Asker) -> None:
    for name in ("one", "two"):
        held.table(name)
        for number in range(300):
            item = {"p": {"S": str(number)}, "g": {"S": "g"}}
            held("PutItem", TableName=name, Item=item)
        held(
            "UpdateTable",
            TableName=name,
            AttributeDefinitions=G_DEFINED,
            GlobalSecondaryIndexUpdates=[{"Create": BY_G}],
        )
    maintenance.finish(held.database.engine)
    for name in ("one", "two"):
        assert held("Scan", TableName=name, IndexName="by-g")["Count"] == 300


groups = st.one_of(st.none(), st.sampled_from([{"S": "x"}, {"S": "y"}]))
actions = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 9), groups),
    st.tuples(st.just("set"), st.integers(0, 9), groups),
    st.tuples(st.just("delete"), st.integers(0, 9), st.none()),
    st.tuples(st.just("step"), st.just(0), st.none()),
)


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(actions, max_size=12), st.lists(actions, max_size=15))
def test_any_writes_between_the_slices_end_in_a_true_index(
    before: list[tuple[str, int, Any]], during: list[tuple[str, int, Any]]
) -> None:
    with isotone.open(":memory:") as database, pytest.MonkeyPatch.context() as patch:
        patch.setattr(backfill, "SLICE", 2)
        ask = Asker(database, isotone.ManualClock())
        ask.table()
        with database.engine.writing:
            for action in before:
                carry_out(ask, *action)
            add_index(ask)
            for action in during:
                carry_out(ask, *action)
            maintenance.finish(database.engine)
        assert database.check() == []
        items = ask("Scan", TableName="tab")["Items"]
        expected = [
            {name: value for name, value in item.items() if name != "other"}
            for item in items
            if "g" in item
        ]
        found = ask("Scan", TableName="tab", IndexName="by-g")["Items"]

        def by_key(item: dict[str, Any]) -> str:
            return str(item["p"]["S"])

        assert sorted(found, key=by_key) == sorted(expected, key=by_key)


def carry_out(ask: Asker, action: str, number: int, group: Any) -> None:
    key = {"p": {"S": str(number)}}
    more = {} if group is None else {"g": group}
    if action == "put":
        put(ask, number, **more, other={"BOOL": True})
    elif action == "delete":
        ask("DeleteItem", TableName="tab", Key=key)
    elif action == "step":
        backfill.step(ask.database.engine)
    elif group is None:
        ask("UpdateItem", TableName="tab", Key=key, UpdateExpression="REMOVE g")
    else:
        ask(
            "UpdateItem",
            TableName="tab",
            Key=key,
            UpdateExpression="SET g = :g, kept = :g",
            ExpressionAttributeValues={":g": group},
        )


def test_a_file_that_is_opened_again_goes_on(tmp_path: Any) -> None:
    path = tmp_path / "data.db"
    clock = isotone.ManualClock()
    with isotone.open(path, durability="none", clock=clock) as database:
        ask = Asker(database, clock)
        ask.table()
        with database.engine.writing:
            for number in range(600):
                put(ask, number, g={"S": "g"})
            add_index(ask)
            assert backfill.step(database.engine)
    with isotone.open(path, clock=clock) as database:
        database.finish_maintenance()
        assert Asker(database, clock)("Scan", TableName="tab", IndexName="by-g")["Count"] == 600
        assert database.check() == []


def test_closing_stops_the_background_thread() -> None:
    def workers() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name == "isotone-maintenance"]

    others = len(workers())
    database = isotone.open(":memory:")
    ask = Asker(database, isotone.ManualClock())
    ask.table()
    for number in range(1000):
        put(ask, number, g={"S": "g"})
    add_index(ask)
    assert len(workers()) == others + 1
    database.close()
    assert len(workers()) == others
    database.close()
