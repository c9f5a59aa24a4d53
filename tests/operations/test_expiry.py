"""TimeToLive: items whose time has passed go, with their index entries; all others stay."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.operations.conftest import Asker, key_schema


def enable(ask: Asker, attribute: str = "until", enabled: bool = True) -> dict[str, Any]:
    return ask(
        "UpdateTimeToLive",
        TableName="tab",
        TimeToLiveSpecification={"AttributeName": attribute, "Enabled": enabled},
    )


def put(ask: Asker, name: str, until: dict[str, str] | None) -> None:
    item: dict[str, Any] = {"p": {"S": name}, "g": {"S": "g"}}
    if until is not None:
        item["until"] = until
    ask("PutItem", TableName="tab", Item=item)


def names(ask: Asker) -> list[str]:
    return sorted(item["p"]["S"] for item in ask("Scan", TableName="tab")["Items"])


def seconds(ask: Asker, ahead: float) -> dict[str, str]:
    return {"N": str(int(ask.clock.now() + ahead))}


def test_items_go_when_their_time_has_passed(ask: Asker) -> None:
    ask.table(
        types={"g": "S"},
        GlobalSecondaryIndexes=[
            {
                "IndexName": "gsi",
                "KeySchema": key_schema("g"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    put(ask, "before enabling", seconds(ask, 10))
    enable(ask)
    put(ask, "soon", seconds(ask, 10))
    put(ask, "later", seconds(ask, 1000))
    put(ask, "never", None)
    put(ask, "no number", {"S": "1"})
    put(ask, "long ago", seconds(ask, -6 * 365 * 24 * 3600))
    ask.database.finish_maintenance()
    assert len(names(ask)) == 6
    ask.clock.advance(timedelta(seconds=11))
    ask.database.finish_maintenance()
    assert names(ask) == ["later", "long ago", "never", "no number"]
    page = ask("Scan", TableName="tab", IndexName="gsi")
    assert page["Count"] == 4


def test_a_changed_expiry_counts(ask: Asker) -> None:
    ask.table()
    enable(ask)
    put(ask, "a", seconds(ask, 10))
    put(ask, "a", seconds(ask, 100))
    ask.clock.advance(50)
    ask.database.finish_maintenance()
    assert names(ask) == ["a"]


def test_more_than_a_slice_expires(ask: Asker) -> None:
    ask.table()
    enable(ask)
    for number in range(250):
        put(ask, str(number), seconds(ask, 10))
    ask.clock.advance(11)
    ask.database.finish_maintenance()
    assert names(ask) == []


def test_expiry_is_described_and_can_be_stopped(ask: Asker) -> None:
    ask.table()
    described = ask("DescribeTimeToLive", TableName="tab")
    assert described == {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    assert enable(ask) == {"TimeToLiveSpecification": {"AttributeName": "until", "Enabled": True}}
    assert ask("DescribeTimeToLive", TableName="tab")["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "until",
    }
    put(ask, "a", seconds(ask, 10))
    enable(ask, enabled=False)
    ask.clock.advance(100)
    ask.database.finish_maintenance()
    assert names(ask) == ["a"]


def test_expiry_is_enabled_once(ask: Asker) -> None:
    ask.table()
    specification = {"AttributeName": "until", "Enabled": False}
    error = ask.refused("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
    assert (error.code, error.message) == ("ValidationException", "TimeToLive is already disabled")
    enable(ask)
    specification = {"AttributeName": "until", "Enabled": True}
    error = ask.refused("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
    assert error.message == "TimeToLive is already enabled"
