"""Point-in-time recovery through the API: any second of the period, exactly; what is refused; what is trimmed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker
from tests.operations.test_backups import INDEXES, fill, item, items_of

import isotone
from isotone.backends import embedded
from isotone.engine import history, restores, views

DAY = 24 * 3600
START = 1_700_000_000


@pytest.fixture(params=["memory", "file"])
def ask(request: pytest.FixtureRequest, tmp_path: Path, by_hand: None) -> Iterator[Asker]:
    clock = isotone.ManualClock(START)
    path = ":memory:" if request.param == "memory" else tmp_path / "file.db"
    with isotone.open(path, clock=clock, durability="none") as database:
        asker = Asker(database, clock)
        asker.table(keys="p s", **INDEXES)
        yield asker
        assert database.check() == []


def enable(ask: Asker, on: bool = True, **more: Any) -> dict[str, Any]:
    wanted = {"PointInTimeRecoveryEnabled": on, **more}
    answer = ask(
        "UpdateContinuousBackups", TableName="tab", PointInTimeRecoverySpecification=wanted
    )
    return point_in_time(answer)


def described(ask: Asker) -> dict[str, Any]:
    return point_in_time(ask("DescribeContinuousBackups", TableName="tab"))


def point_in_time(answer: dict[str, Any]) -> dict[str, Any]:
    continuous = answer["ContinuousBackupsDescription"]
    assert continuous["ContinuousBackupsStatus"] == "ENABLED"
    found: dict[str, Any] = continuous["PointInTimeRecoveryDescription"]
    return found


def put(ask: Asker, number: int, **more: Any) -> None:
    ask("PutItem", TableName="tab", Item=item(number, **more))


def remove(ask: Asker, number: int) -> None:
    ask("DeleteItem", TableName="tab", Key={name: item(number)[name] for name in "ps"})


def restored(ask: Asker, moment: float | None, table: str = "again", **more: Any) -> Any:
    """The items of the table as of a moment, or of now."""
    when: dict[str, Any] = (
        {"UseLatestRestorableTime": True} if moment is None else {"RestoreDateTime": moment}
    )
    request = {"SourceTableName": "tab", "TargetTableName": table, **when, **more}
    ask("RestoreTableToPointInTime", **request)
    ask.database.finish_maintenance()
    return items_of(ask, table)


def test_off_unless_asked_for(ask: Asker) -> None:
    assert described(ask) == {"PointInTimeRecoveryStatus": "DISABLED"}
    request = {
        "SourceTableName": "tab",
        "TargetTableName": "again",
        "UseLatestRestorableTime": True,
    }
    error = ask.refused("RestoreTableToPointInTime", **request)
    assert (error.code, error.message) == (
        "PointInTimeRecoveryUnavailableException",
        "Point in time recovery is not enabled for table 'tab'",
    )
    trees = ask.database.engine.store.trees()
    put(ask, 1)
    assert ask.database.engine.store.trees() == trees


def test_what_is_described(ask: Asker) -> None:
    enabled = {"PointInTimeRecoveryStatus": "ENABLED", "RecoveryPeriodInDays": 35}
    window = {"EarliestRestorableDateTime": START, "LatestRestorableDateTime": START}
    assert enable(ask) == {**enabled, **window}
    ask.clock.advance(timedelta(days=40))
    now = ask.clock.now()
    assert described(ask) == {
        **enabled,
        "EarliestRestorableDateTime": now - 35 * DAY,
        "LatestRestorableDateTime": now,
    }
    assert enable(ask, RecoveryPeriodInDays=2)["EarliestRestorableDateTime"] == now - 2 * DAY
    longer = enable(ask)
    assert longer["RecoveryPeriodInDays"] == 35
    assert longer["EarliestRestorableDateTime"] == now - 2 * DAY  # the rest is given up
    assert enable(ask, on=False) == {"PointInTimeRecoveryStatus": "DISABLED"}
    assert enable(ask, on=False) == {"PointInTimeRecoveryStatus": "DISABLED"}
    assert enable(ask)["EarliestRestorableDateTime"] == now


def test_the_earliest_time_can_be_given_back_in_whole_seconds(ask: Asker) -> None:
    ask.clock.set(START + 0.4)
    put(ask, 1)
    enable(ask)
    assert described(ask)["EarliestRestorableDateTime"] == START + 0.4
    ask.clock.set(START + 0.7)
    put(ask, 2)
    ask.clock.set(START + 2)
    earliest = described(ask)["EarliestRestorableDateTime"]
    assert earliest == START + 1
    assert len(restored(ask, earliest)) == 2
    assert len(restored(ask, START + 0.5, "third")) == 1


def test_every_second_can_be_restored(ask: Asker) -> None:
    put(ask, 0)
    enable(ask)
    states = {START: items_of(ask)}
    for second, change in enumerate(
        [
            lambda: put(ask, 1),
            lambda: put(ask, 1, x={"S": "second"}),
            lambda: remove(ask, 0),
            lambda: [put(ask, 0), remove(ask, 1), put(ask, 2)],
            lambda: put(ask, 0),
            lambda: ask("UpdateItem", TableName="tab", Key={n: item(2)[n] for n in "ps"}),
            lambda: [put(ask, 3), remove(ask, 3)],
        ],
        START + 1,
    ):
        ask.clock.set(second)
        change()
        states[second] = items_of(ask)
    indexed = items_of(ask, IndexName="by_g")
    for moment, expected in states.items():
        assert restored(ask, moment, f"at_{moment}") == expected
    assert restored(ask, None) == items_of(ask)
    assert items_of(ask, "again", IndexName="by_g") == indexed


def test_a_change_after_the_request_is_not_restored_even_in_the_same_instant(ask: Asker) -> None:
    enable(ask)
    fill(ask, restores.SLICE * 2)
    before = items_of(ask)
    request = {"SourceTableName": "tab", "TargetTableName": "again"}
    ask("RestoreTableToPointInTime", **request, UseLatestRestorableTime=True)
    for number in range(0, restores.SLICE * 2, 2):
        remove(ask, number)
        put(ask, number + 1, x={"S": "later"})
    ask.database.finish_maintenance()
    assert items_of(ask, "again") == before


def test_the_summary_of_a_restore(ask: Asker) -> None:
    enable(ask)
    ask.clock.advance(5)
    restored(ask, START + 2, LocalSecondaryIndexOverride=[])
    table = ask("DescribeTable", TableName="again")["Table"]
    arn = table["TableArn"].replace("again", "tab")
    assert table["RestoreSummary"] == {
        "SourceTableArn": arn,
        "RestoreDateTime": START + 2,
        "RestoreInProgress": False,
    }
    assert "LocalSecondaryIndexes" not in table
    assert table["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE"
    request = {"SourceTableArn": arn, "TargetTableName": "third", "UseLatestRestorableTime": True}
    assert (
        ask("RestoreTableToPointInTime", **request)["TableDescription"]["TableStatus"] == "CREATING"
    )


def test_the_indexes_are_those_of_today(ask: Asker) -> None:
    enable(ask)
    put(ask, 1)
    ask.clock.advance(10)
    ask(
        "UpdateTable",
        TableName="tab",
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by_g"}}],
    )
    restored(ask, START)
    assert "GlobalSecondaryIndexes" not in ask("DescribeTable", TableName="again")["Table"]


def test_expired_items_are_deleted_in_the_history_too(ask: Asker) -> None:
    enable(ask)
    expiry = {"AttributeName": "until", "Enabled": True}
    ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=expiry)
    put(ask, 1, until={"N": str(START + 5)})
    before = items_of(ask)
    ask.clock.advance(10)
    ask.database.finish_maintenance()
    assert items_of(ask) == []
    assert restored(ask, START + 9) == before


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"RestoreDateTime": START - 1}, "InvalidRestoreTimeException"),
        ({"RestoreDateTime": START + 101}, "InvalidRestoreTimeException"),
        ({"RestoreDateTime": 1e300}, "InvalidRestoreTimeException"),
        ({"RestoreDateTime": "now"}, "SerializationException"),
        ({}, "ValidationException"),
        ({"UseLatestRestorableTime": False}, "ValidationException"),
        ({"RestoreDateTime": START, "UseLatestRestorableTime": True}, "ValidationException"),
        ({"RestoreDateTime": START, "SourceTableName": None}, "ValidationException"),
        ({"RestoreDateTime": START, "SourceTableName": "none"}, "TableNotFoundException"),
        ({"RestoreDateTime": START, "SourceTableArn": "a;c"}, "ValidationException"),
        ({"RestoreDateTime": START, "TargetTableName": "tab"}, "TableAlreadyExistsException"),
        ({"RestoreDateTime": START, "TargetTableName": "t"}, "ValidationException"),
        (
            {
                "RestoreDateTime": START,
                "GlobalSecondaryIndexOverride": [
                    {
                        **INDEXES["GlobalSecondaryIndexes"][0],
                        "WarmThroughput": {"ReadUnitsPerSecond": 20_000},
                    }
                ],
            },
            "ValidationException",
        ),
    ],
)
def test_bad_restores_are_refused(ask: Asker, request_: dict[str, Any], code: str) -> None:
    enable(ask)
    ask.clock.advance(100)
    request = {"SourceTableName": "tab", "TargetTableName": "again", **request_}
    assert ask.refused("RestoreTableToPointInTime", **request).code == code
    assert ask("ListTables")["TableNames"] == ["tab"]


@pytest.mark.parametrize("days", [0, 36])
def test_a_period_is_1_to_35_days(ask: Asker, days: int) -> None:
    wanted = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": days}
    request = {"TableName": "tab", "PointInTimeRecoverySpecification": wanted}
    error = ask.refused("UpdateContinuousBackups", **request)
    assert "recoveryPeriodInDays" in error.message
    missing = {
        "TableName": "none",
        "PointInTimeRecoverySpecification": {**wanted, "RecoveryPeriodInDays": 1},
    }
    assert ask.refused("UpdateContinuousBackups", **missing).code == "TableNotFoundException"
    assert (
        ask.refused("DescribeContinuousBackups", TableName="none").code == "TableNotFoundException"
    )


# The history


def entries(ask: Asker) -> int:
    """The changes in the history of the table."""
    tree = ask.database.engine.catalog.tables["tab"].history
    assert tree is not None
    return sum(1 for _ in ask.database.engine.store.range(tree, b"", None))


def test_changes_are_dropped_after_the_period(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SLICE", 7)
    enable(ask, RecoveryPeriodInDays=1)
    ask.clock.advance(1)
    fill(ask, 50)
    ask.clock.advance(DAY - 1)
    ask.database.finish_maintenance()
    assert entries(ask) == 50
    put(ask, 1, x={"S": "new"})
    before = items_of(ask)
    ask.clock.advance(1)
    ask.database.finish_maintenance()
    assert entries(ask) == 51, "an export may begin with the changes of the earliest moment"
    assert len(restored(ask, START + 1, "third")) == 50
    assert restored(ask, START + 1, "fourth") != before
    ask.clock.advance(0.001)
    ask.database.finish_maintenance()
    assert entries(ask) == 1
    assert restored(ask, None) == before


def test_a_restore_that_began_in_time_ends_after_the_period(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable(ask, RecoveryPeriodInDays=1)
    fill(ask, 50)
    before = items_of(ask)
    ask.clock.advance(1)
    for number in range(50):
        remove(ask, number)
    monkeypatch.setattr(restores, "SLICE", 5)
    request = {"SourceTableName": "tab", "TargetTableName": "again", "RestoreDateTime": START}
    ask("RestoreTableToPointInTime", **request)
    ask.clock.advance(3 * DAY)
    ask.database.finish_maintenance()
    assert items_of(ask, "again") == before
    assert entries(ask) == 0


def test_recovery_may_be_disabled_during_a_restore(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable(ask)
    fill(ask, 50)
    before = items_of(ask)
    monkeypatch.setattr(restores, "SLICE", 5)
    request = {
        "SourceTableName": "tab",
        "TargetTableName": "again",
        "UseLatestRestorableTime": True,
    }
    ask("RestoreTableToPointInTime", **request)
    enable(ask, on=False)
    for number in range(50):
        remove(ask, number)
    assert ask.refused("DeleteTable", TableName="tab").code == "ResourceInUseException"
    ask.database.finish_maintenance()
    assert items_of(ask, "again") == before
    assert ask.database.engine.catalog.tables["tab"].history is None


def test_a_write_that_changes_nothing_is_not_kept(ask: Asker) -> None:
    enable(ask)
    put(ask, 1)
    put(ask, 1)
    remove(ask, 2)
    assert entries(ask) == 1


def test_a_clock_that_is_set_back(ask: Asker) -> None:
    enable(ask)
    ask.clock.set(START + 100)
    put(ask, 1)
    ask.clock.set(START + 50)
    put(ask, 2)
    ask.clock.set(START + 200)
    assert restored(ask, START + 99) == []
    assert len(restored(ask, START + 100, "third")) == 2  # no change is before the one before it


# Random histories

CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete", "batch", "maintain"]), st.integers(0, 12)),
    max_size=60,
)


@settings(max_examples=examples(60), deadline=None)
@given(CHANGES, st.data(), st.integers(1, 5), st.booleans())
def test_any_second_of_any_history(
    changes: list[tuple[str, int]], data: st.DataObject, size: int, late: bool
) -> None:
    """The oracle copies a dict at each second; restores run in small slices beside more writes."""
    with (
        pytest.MonkeyPatch.context() as patch,
        isotone.open(clock=(clock := isotone.ManualClock(START))) as database,
    ):
        patch.setattr(embedded.Database, "_wake_if_wanted", lambda _: None)
        patch.setattr(restores, "SLICE", size)
        patch.setattr(views, "CATCH_UP", size)
        patch.setattr(history, "SLICE", size)
        ask = Asker(database, clock)
        ask.table(keys="p s", **INDEXES)
        enable(ask)
        present: dict[int, str] = {}
        states = {START: {}}
        for place, (kind, number) in enumerate(changes):
            if data.draw(st.booleans()):
                clock.advance(1)
            run(ask, present, kind, number, place)
            states[int(clock.now())] = dict(present)
        wanted = data.draw(st.lists(st.integers(START, int(clock.now())), max_size=3))
        expected = []
        for number, moment in enumerate(wanted):
            expected.append(states[max(second for second in states if second <= moment)])
            request = {"SourceTableName": "tab", "TargetTableName": f"again{number}"}
            ask("RestoreTableToPointInTime", **request, RestoreDateTime=moment)
            for place in range(number * late):
                run(ask, present, "put", place, 1000 + place)
                run(ask, present, "delete", place + 5, 0)
                database.maintain()
            states[int(clock.now())] = dict(present)
        database.finish_maintenance()
        for number, items in enumerate(expected):
            found = items_of(ask, f"again{number}")
            assert {int(each["s"]["S"][1:]): each["x"]["S"] for each in found} == items
        assert database.check() == []


def run(ask: Asker, present: dict[int, str], kind: str, number: int, place: int) -> None:
    text = str(place)
    if kind == "put":
        put(ask, number, x={"S": text})
        present[number] = text
    elif kind == "delete":
        remove(ask, number)
        present.pop(number, None)
    elif kind == "batch":
        puts = [{"PutRequest": {"Item": item(each, x={"S": text})}} for each in range(number)]
        if puts:
            ask("BatchWriteItem", RequestItems={"tab": puts})
        present.update(dict.fromkeys(range(number), text))
    else:
        ask.database.maintain()


def test_a_file_that_two_programs_have_open(by_hand: None, tmp_path: Path) -> None:
    clock = isotone.ManualClock(START)
    path = tmp_path / "file.db"
    with isotone.open(path, clock=clock) as first, isotone.open(path, clock=clock) as second:
        ask, other = Asker(first, clock), Asker(second, clock)
        ask.table(keys="p s", **INDEXES)
        put(other, 0)
        enable(ask)
        clock.advance(1)
        put(other, 1)
        before = items_of(ask)
        clock.advance(1)
        for number in range(3):
            put(other, number, x={"S": "changed"})
        assert restored(ask, START + 1) == before
        assert restored(other, START + 2, "third") == items_of(ask)
        enable(other, on=False)
        put(ask, 5)
        assert second.check() == []
