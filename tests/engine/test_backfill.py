"""Backfills: whatever happens to the table meanwhile, in the end the index is what it should be."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.crash.disk import Event, recording_disk
from tests.effort import examples
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone.engine import backfill, maintenance, removed_entries
from isotone.storage import sorting
from isotone.storage.sorting import Sorter

BY_G: dict[str, Any] = {
    "IndexName": "by-g",
    "KeySchema": key_schema("g"),
    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["kept"]},
}
G_DEFINED = [{"AttributeName": "g", "AttributeType": "S"}]


@pytest.fixture
def held(ask: Asker) -> Iterator[Asker]:
    """Calls that the background thread does not come between; each step of a backfill is a slice."""
    with pytest.MonkeyPatch.context() as patch, ask.database.engine.writing:
        patch.setattr(backfill, "_TURN", 0.0)
        yield ask


def one_by_one(patch: pytest.MonkeyPatch) -> None:
    """Make parts and slices of a few items, so that a small table has many."""
    sizes = {"FIRST_PART": 3, "_READ": 2, "_ADDED": 1, "_TURN": 0.0}
    for name, few in sizes.items():
        patch.setattr(backfill, name, few)


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
        one_by_one(patch)
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
        assert sorted(found, key=by_key) == sorted(expected, key=by_key)


def by_key(item: dict[str, Any]) -> str:
    return str(item["p"]["S"])


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


def test_a_file_that_is_opened_again_continues(tmp_path: Any) -> None:
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


PROJECTIONS: dict[str, Any] = {
    "keys": {"ProjectionType": "KEYS_ONLY"},
    "some": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["kept"]},
    "all": {"ProjectionType": "ALL"},
}
SHOWN: dict[str, set[str]] = {"keys": {"p", "g"}, "some": {"p", "g", "kept"}}


def add_index_and_expiry(ask: Asker, projection: str) -> None:
    create = {**BY_G, "Projection": PROJECTIONS[projection]}
    ask(
        "UpdateTable",
        TableName="tab",
        AttributeDefinitions=G_DEFINED,
        GlobalSecondaryIndexUpdates=[{"Create": create}],
    )
    specification = {"AttributeName": "until", "Enabled": True}
    ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(actions, max_size=12),
    st.lists(st.tuples(st.integers(0, 1), actions), max_size=30),
    st.booleans(),
    st.sampled_from(sorted(PROJECTIONS)),
)
def test_processes_that_lose_their_leases_fill_indexes_together(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, int, Any]],
    during: list[tuple[int, tuple[str, int, Any]]],
    keeps: bool,
    projection: str,
) -> None:
    """With leases that end at once, either may continue between any two slices of the other, whose work is then void."""
    path, clock = tmp_path_factory.mktemp("shared") / "data.db", isotone.ManualClock()
    with pytest.MonkeyPatch.context() as patch:
        one_by_one(patch)
        patch.setattr(backfill, "_LEASE", 3.0 if keeps else -1.0)
        patch.setattr(isotone.Database, "_maintain", lambda database: 5.0)
        with (
            isotone.open(path, durability="none", clock=clock) as one,
            isotone.open(path, durability="none", clock=clock) as two,
        ):
            ask, *_ = askers = [Asker(one, clock), Asker(two, clock)]
            ask.table()
            for action in before:
                carry_out(ask, *action)
            add_index_and_expiry(ask, projection)
            for which, action in during:
                carry_out(askers[which], *action)
            two.close()
            maintenance.finish(one.engine)
            assert one.check() == []
            items = ask("Scan", TableName="tab")["Items"]
            shown = SHOWN.get(projection)
            expected = [
                {name: value for name, value in item.items() if shown is None or name in shown}
                for item in items
                if "g" in item
            ]
            found = ask("Scan", TableName="tab", IndexName="by-g")["Items"]
            assert sorted(found, key=by_key) == sorted(expected, key=by_key)
            (index,) = ask("DescribeTable", TableName="tab")["Table"]["GlobalSecondaryIndexes"]
            assert (index["IndexStatus"], index["ItemCount"]) == ("ACTIVE", len(expected))


def test_no_commit_of_a_backfill_waits_for_the_disk_with_the_lock(tmp_path: Any) -> None:
    """Otherwise each read of another thread would wait as long."""
    with_lock: list[str] = []
    with recording_disk() as disk, isotone.open(tmp_path / "data.db") as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table()
        with database.engine.writing:
            for number in range(3000):
                put(ask, number, g={"S": f"g{number}"})

        def note(event: Event) -> None:
            if event.kind == "sync":
                held = database.engine.lock._is_owned()
                with_lock.append(f"{event.name} {'with' if held else 'without'} the lock")

        database._maintain = lambda: 5.0  # type: ignore[method-assign] # the steps are the test's
        add_index(ask)
        disk.note = note  # type: ignore[method-assign]
        maintenance.finish(database.engine)
        assert set(with_lock) == {"data.db-wal without the lock", "data.db without the lock"}
        assert ask("Scan", TableName="tab", IndexName="by-g")["Count"] == 3000


def test_slices_hold_the_lock_for_a_moment_only(tmp_path: Any) -> None:
    """The slices are counted by their processor time: on a busy machine the clock says nothing of them."""
    with isotone.open(tmp_path / "data.db", durability="none") as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table()
        with database.engine.writing:
            for number in range(4000):
                put(ask, number, g={"S": f"g{number}"}, kept={"S": "x" * 500})
        database._maintain = lambda: 5.0  # type: ignore[method-assign] # the steps are the test's
        add_index(ask)
        watched = database.engine.lock = WatchedLock(database.engine.lock)
        for block in (
            database.engine.reading,
            database.engine.writing,
            database.engine.writing_unsynced,
        ):
            block._lock = watched  # type: ignore[union-attr]
        maintenance.finish(database.engine)
        held = sorted(watched.seconds)
        assert len(held) > 40
        assert median(held) < 0.001
        assert held[-len(held) // 10] < 0.002
        assert ask("Scan", TableName="tab", IndexName="by-g", Select="COUNT")["Count"]


class WatchedLock:
    """A lock that notes the processor time for which each of its holders had it."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.depth = 0
        self.began = 0.0
        self.seconds: list[float] = []

    def acquire(self, *arguments: Any, **more: Any) -> bool:
        taken: bool = self.lock.acquire(*arguments, **more)
        self.depth += 1
        if self.depth == 1:
            self.began = time.thread_time()
        return taken

    def release(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds.append(time.thread_time() - self.began)
        self.lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_owned(self) -> bool:
        return bool(self.lock._is_owned())


def test_a_table_is_dropped_while_a_backfill_sorts(ask: Asker) -> None:
    """The worker finds out in its next slice, and goes on with another table."""
    for name in ("dropped", "left"):
        ask.table(name)
        for number in range(300):
            item = {"p": {"S": str(number)}, "g": {"S": "g"}}
            ask("PutItem", TableName=name, Item=item)
    with ask.database.engine.writing, pytest.MonkeyPatch.context() as patch:
        for name in ("dropped", "left"):
            ask(
                "UpdateTable",
                TableName=name,
                AttributeDefinitions=G_DEFINED,
                GlobalSecondaryIndexUpdates=[{"Create": BY_G}],
            )

        def drop(sorter: Sorter) -> list[tuple[bytes, bytes]]:
            patch.undo()
            ask("DeleteTable", TableName="dropped")
            return sorter.take()

        patch.setattr(Sorter, "take", drop)
        maintenance.finish(ask.database.engine)
        assert ask("ListTables")["TableNames"] == ["left"]
        assert ask("Scan", TableName="left", IndexName="by-g")["Count"] == 300


def test_notes_of_removed_entries_are_deleted_in_the_end(held: Asker) -> None:
    held.table()
    for number in range(30):
        put(held, number, g={"S": "before"})
    add_index(held)
    for number in range(20):
        put(held, number, g={"S": "after"})
    assert list(held.database.engine.store.range("progress", removed_entries.FIRST, None))
    maintenance.finish(held.database.engine)
    assert not list(held.database.engine.store.range("progress", b"", None))


def test_a_backfill_whose_entries_cannot_be_sorted_continues_with_fewer(
    held: Asker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without room for a temporary file, only parts that fit in memory can be added."""

    def full() -> Any:
        raise OSError("no space left on device")

    held.table()
    for number in range(3000):
        put(held, number, g={"S": f"g{number}"})
    add_index(held)
    monkeypatch.setattr(sorting, "_temporary_file", full)
    monkeypatch.setattr(sorting, "RUN", 2000)
    monkeypatch.setattr(sorting, "MEMORY", 1)
    maintenance.finish(held.database.engine)
    assert "until then fewer are sorted at once" in caplog.text
    assert held("Scan", TableName="tab", IndexName="by-g")["Count"] == 3000
