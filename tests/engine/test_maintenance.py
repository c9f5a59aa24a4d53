"""Which numbers are times that have passed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operations.conftest import Asker

import isotone
from isotone.backends import embedded
from isotone.engine import maintenance
from isotone.engine.engine import PROGRESS
from isotone.errors import StorageCorrupt
from isotone.storage.memory import MemoryStore

NOW = 1_700_000_000
FIVE_YEARS = 5 * 365 * 24 * 3600


@pytest.mark.parametrize(
    ("value", "expires"),
    [
        ({"N": str(NOW - 1)}, True),
        ({"N": str(NOW)}, False),
        ({"N": str(NOW - 1) + ".5"}, True),
        ({"N": str(NOW - FIVE_YEARS)}, True),
        ({"N": str(NOW - FIVE_YEARS - 1)}, False),
        ({"N": str(NOW * 1000)}, False),  # milliseconds are far in the future
        ({"N": "9" * 38}, False),
        ({"N": "9.9e125"}, False),
        ({"N": "1e-130"}, False),
        ({"N": "0"}, False),
        ({"N": str(-NOW)}, False),
        ({"S": str(NOW - 1)}, False),
        ({"NS": [str(NOW - 1)]}, False),
        ({"M": {"N": {"N": "1"}}}, False),
        ({"NULL": True}, False),
    ],
)
@pytest.mark.parametrize("enabled_first", [True, False])
def test_only_a_number_of_seconds_of_the_last_five_years_has_passed(
    ask: Asker, value: dict[str, object], expires: bool, enabled_first: bool
) -> None:
    ask.table()
    specification = {"AttributeName": "until", "Enabled": True}
    steps = [
        lambda: ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification),
        lambda: ask("PutItem", TableName="tab", Item={"p": {"S": "a"}, "until": value}),
    ]
    for step in steps if enabled_first else reversed(steps):
        step()
    ask.database.finish_maintenance()
    assert ask("Scan", TableName="tab")["Count"] == (0 if expires else 1)


def test_an_expiry_by_the_key_itself(ask: Asker) -> None:
    ask.table(keys="p s:N")
    specification = {"AttributeName": "s", "Enabled": True}
    ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
    for seconds in (NOW - 1, NOW + 1):
        ask("PutItem", TableName="tab", Item={"p": {"S": "a"}, "s": {"N": str(seconds)}})
    ask.database.finish_maintenance()
    (left,) = ask("Scan", TableName="tab")["Items"]
    assert left["s"] == {"N": str(NOW + 1)}


def test_work_whose_records_are_corrupt_keeps_nothing_else_waiting(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask.table()
    specification = {"AttributeName": "until", "Enabled": True}
    ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
    ask("PutItem", TableName="tab", Item={"p": {"S": "a"}, "until": {"N": str(NOW - 1)}})
    engine = ask.database.engine
    sound = type(engine.store).range

    def damaged(store: Any, tree: str, *bounds: Any, **options: Any) -> Any:
        if tree == PROGRESS:
            raise StorageCorrupt("damaged")
        return sound(store, tree, *bounds, **options)

    monkeypatch.setattr(type(engine.store), "range", damaged)
    with pytest.raises(StorageCorrupt):
        maintenance.step(engine)
    assert ask("Scan", TableName="tab")["Count"] == 0


def test_a_corrupt_region_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded.Database, "_wake_if_wanted", lambda _: None)
    clock = isotone.ManualClock(NOW)
    with isotone.open(regions=True, clock=clock) as database:
        ask = Asker(database.region("eu-west-1"), clock)
        ask.table()
        specification = {"AttributeName": "until", "Enabled": True}
        ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
        ask("PutItem", TableName="tab", Item={"p": {"S": "a"}, "until": {"N": str(NOW - 1)}})
        sound = MemoryStore.range

        def damaged(store: Any, tree: str, *bounds: Any, **options: Any) -> Any:
            if tree == PROGRESS:  # that of the first region
                raise StorageCorrupt("damaged")
            return sound(store, tree, *bounds, **options)

        monkeypatch.setattr(MemoryStore, "range", damaged)
        with pytest.raises(StorageCorrupt):
            maintenance.finish(database.engine)
        assert ask("Scan", TableName="tab")["Count"] == 0


def test_items_expire_whose_index_another_worker_fills_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be filled between the look for expired items and the look for indexes that others fill."""
    monkeypatch.setattr(embedded.Database, "_wake_if_wanted", lambda _: None)
    clock = isotone.ManualClock(NOW)
    with isotone.open(clock=clock) as database:
        ask = Asker(database, clock)
        ask.table()
        ask("PutItem", TableName="tab", Item={"p": {"S": "a"}, "until": {"N": str(NOW - 1)}})
        specification = {"AttributeName": "until", "Enabled": True}
        ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
        fill, *others = maintenance._WORK
        turns = 0

        def fills_after_the_step(engine: Any) -> bool:
            nonlocal turns
            turns += 1
            return turns > 1 and fill(engine)

        def another_worker(engine: Any) -> bool:
            while turns == 1 and fill(engine):
                pass
            return False

        monkeypatch.setattr(maintenance, "_WORK", (fills_after_the_step, *others, another_worker))
        database.finish_maintenance()
        assert ask("Scan", TableName="tab")["Count"] == 0
