"""The power fails, or the process dies, at any point of a backfill beside writes: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.crash.disk import Disk, Event, after_power_cut, recording_disk
from tests.crash.test_power_cut import HOW

import isotone
from isotone.engine import backfill, maintenance

ITEMS = 60
CUTS = int(os.environ.get("ISOTONE_KILLS", "25"))
TABLE = "tab"
State = dict[str, dict[str, Any]]


def write(client: isotone.Client, state: State, random: Random) -> None:
    """Put, change or delete an item; `state` is what the table has then."""
    name, group = str(random.randrange(ITEMS)), random.choice("xyz")
    match random.randrange(4):
        case 0:
            client.delete_item(TableName=TABLE, Key={"p": {"S": name}})
            state.pop(name, None)
            return
        case 1:
            item: dict[str, Any] = {"p": {"S": name}, "other": {"S": "sparse"}}
        case _:
            item = {"p": {"S": name}, "g": {"S": group}, "other": {"N": str(random.randrange(9))}}
    client.put_item(TableName=TABLE, Item=item)
    state[name] = item


def record(path: Path) -> tuple[Disk, list[State]]:
    """What the disk sees while an index is filled between writes, with a mark after each, and the states after them."""
    random = Random(1)
    with recording_disk() as disk, isotone.open(path) as database:
        client = database.client()
        client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        states: list[State] = [{}]
        with database.engine.writing:
            for number in range(ITEMS):
                item = {"p": {"S": str(number)}, "g": {"S": "xyz"[number % 3]}}
                client.put_item(TableName=TABLE, Item=item)
                states[0][str(number)] = item
        database._maintain = lambda: 5.0  # type: ignore[method-assign] # the steps are the test's
        client.update_table(
            TableName=TABLE,
            AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[
                {
                    "Create": {
                        "IndexName": "by-g",
                        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                }
            ],
        )
        disk.mark(0)
        while backfill.step(database.engine):
            states.append({**states[-1]})
            write(client, states[-1], random)
            disk.mark(len(states) - 1)
    return disk, states


@pytest.mark.parametrize("how", ["lost", "torn", "kept"])
def test_a_backfill_survives_a_cut_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    sizes = {"FIRST_PART": 5, "_READ": 4, "_ADDED": 2, "_TURN": 0.0, "_LEASE": 0.0}
    for name, few in sizes.items():
        monkeypatch.setattr(backfill, name, few)
    disk, states = record(tmp_path / "tab.db")
    begin = next(place for place, event in enumerate(disk.log) if event.mark == 0)
    points = Random(how).sample(range(begin + 1, len(disk.log) + 1), CUTS)
    interrupted = 0
    for length in sorted(points):
        folder = tmp_path / str(length)
        interrupted += finished_after_cut(disk.log[:length], states, HOW[how](length), folder)
    assert interrupted > CUTS // 2, "the index was complete: the test has shown nothing"


def finished_after_cut(log: list[Event], states: list[State], remains: Any, folder: Path) -> bool:
    """Finish what a cut has left, and compare it; returns whether there was something to be done."""
    folder.mkdir()
    for name, content in after_power_cut(log, remains).items():
        (folder / name).write_bytes(content)
    acknowledged = max(event.mark for event in log if event.kind == "mark")
    with isotone.open(folder / "tab.db", durability="none") as database:
        assert database.check() == []
        is_interrupted = backfill.pending(database.engine)
        maintenance.finish(database.engine)
        assert database.check() == []
        client = database.client()
        items = {item["p"]["S"]: item for item in client.scan(TableName=TABLE)["Items"]}
        assert items in states[acknowledged : acknowledged + 2]
        entries = client.scan(TableName=TABLE, IndexName="by-g")["Items"]
        assert {entry["p"]["S"]: entry for entry in entries} == {
            name: item for name, item in items.items() if "g" in item
        }
        assert len(entries) == len({entry["p"]["S"] for entry in entries})
    return is_interrupted
