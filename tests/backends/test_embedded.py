"""What the database inside the process does by itself."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone.backends import embedded
from isotone.errors import StorageFull, UsageError
from isotone.operations.action import GROUPED, STARTS_WORK
from isotone.operations.api import Api
from isotone.server import running_server

TABLE: Any = {
    "TableName": "sessions",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
EXPIRY: Any = {"AttributeName": "until", "Enabled": True}
PATIENCE = 10.0  # seconds

sessions = isotone.Table("sessions")


class Session(isotone.Entity, table=sessions):
    user: isotone.Attr[str] = isotone.field()
    until: isotone.Attr[datetime] = isotone.expires()

    primary = isotone.Key("USER", user).sort("SESSION")


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
    attempts = iter((StorageFull("full"), StorageFull("full"), None))

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


def test_actions_that_start_background_work() -> None:
    assert {"CreateTable", "UpdateTable", "UpdateTimeToLive"} <= STARTS_WORK
    # A server runs the grouped actions by `send_many`, which does not look for new work.
    assert not GROUPED & STARTS_WORK


@pytest.mark.parametrize("how", ["store", "async store"])
@pytest.mark.parametrize("served", [False, True], ids=["embedded", "served"])
def test_background_work_has_one_thread(
    monkeypatch: pytest.MonkeyPatch, served: bool, how: str
) -> None:
    interval, calls = 0.03, []
    with ExitStack() as stack:
        database = stack.enter_context(isotone.open())

        def maintain(api: Api) -> float:
            if api.engine is database.engine:  # other tests may have left theirs open
                calls.append((time.monotonic(), threading.current_thread().name))
            return interval

        monkeypatch.setattr(Api, "maintain", maintain)
        address = stack.enter_context(running_server(database)) if served else database
        create_sessions(address, how)
        calls.clear()
        deadline = time.monotonic() + PATIENCE
        while len(calls) < 5:
            assert time.monotonic() < deadline, "nothing is maintained"
            time.sleep(0.01)
    # The first call after `clear` may be the one that the setting of the expiry asked for.
    times = [at for at, _ in calls[1:]]
    assert all(later - at >= 0.9 * interval for at, later in pairwise(times))
    assert {name for _, name in calls} == {"isotone-maintenance"}


def create_sessions(address: Any, how: str) -> None:
    """Create a table whose items expire."""

    async def create() -> None:
        async with isotone.aconnect(address) as store:
            await store.create_tables(sessions)

    if how == "async store":
        asyncio.run(create())
    else:
        with isotone.connect(address) as store:
            store.create_tables(sessions)


def test_a_server_maintains_what_other_processes_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    with isotone.open() as database:

        def maintain(api: Api) -> float:
            if api.engine is database.engine:
                done.set()
            return 60.0

        monkeypatch.setattr(Api, "maintain", maintain)
        assert not done.wait(0.1), "an empty database needs no maintenance"
        with running_server(database):
            assert done.wait(PATIENCE)


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
