"""What the database inside the process does by itself."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone.backends import embedded
from isotone.errors import StorageBusy, UsageError
from isotone.operations.api import Api

TABLE: Any = {
    "TableName": "sessions",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
EXPIRY: Any = {"AttributeName": "until", "Enabled": True}
PATIENCE = 10.0  # seconds


def test_items_expire_after_the_file_was_opened_again(tmp_path: Path) -> None:
    clock = isotone.ManualClock()
    with isotone.open(tmp_path / "a.db", clock=clock) as database:
        client = database.client()
        client.create_table(**TABLE)
        client.update_time_to_live(TableName="sessions", TimeToLiveSpecification=EXPIRY)
        until = {"N": str(int(clock.now()) + 5)}
        client.put_item(TableName="sessions", Item={"id": {"S": "1"}, "until": until})
    clock.advance(10)
    with isotone.open(tmp_path / "a.db", clock=clock) as database:
        deadline = time.monotonic() + PATIENCE
        while database.client().scan(TableName="sessions")["Count"]:
            assert time.monotonic() < deadline, "nothing expired"
            time.sleep(0.01)


def test_a_call_starts_background_work_as_a_client_does() -> None:
    clock = isotone.ManualClock()
    with isotone.open(clock=clock) as database:
        database.execute("CreateTable", TABLE)
        setting = {"TableName": "sessions", "TimeToLiveSpecification": EXPIRY}
        database.execute("UpdateTimeToLive", setting)
        until = {"N": str(int(clock.now()) + 5)}
        database.execute(
            "PutItem", {"TableName": "sessions", "Item": {"id": {"S": "1"}, "until": until}}
        )
        clock.advance(10)
        deadline = time.monotonic() + PATIENCE
        while database.execute("Scan", {"TableName": "sessions"})["Count"]:
            assert time.monotonic() < deadline, "nothing expired"
            time.sleep(0.01)


def test_failing_background_work_is_logged_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedded, "_RETRY_INTERVAL", 0.01)
    done = threading.Event()
    attempts = iter((StorageBusy("locked"), StorageBusy("locked"), None))

    def maintain(_: object) -> float:
        error = next(attempts, None)
        if error is not None:
            raise error
        done.set()
        return 60.0

    monkeypatch.setattr(Api, "maintain", maintain)
    with isotone.open() as database:
        database.client().create_table(**TABLE)
        database.client().update_time_to_live(TableName="sessions", TimeToLiveSpecification=EXPIRY)
        assert done.wait(PATIENCE)
    assert "it will be tried again" in caplog.text


@pytest.mark.parametrize("place", ["memory", "file"])
def test_a_closed_database_answers_nothing(place: str, tmp_path: Path) -> None:
    database = isotone.open(":memory:" if place == "memory" else tmp_path / "a.db")
    client = database.client()
    client.create_table(**TABLE)
    database.close()
    asking: list[Any] = [
        client.list_tables,
        lambda: client.describe_table(TableName="sessions"),
        lambda: client.get_item(TableName="sessions", Key={"id": {"S": "1"}}),
        lambda: client.put_item(TableName="sessions", Item={"id": {"S": "1"}}),
        lambda: client.create_table(**TABLE | {"TableName": "more"}),
    ]
    for ask in asking:
        with pytest.raises(UsageError, match="the store is closed"):
            ask()
