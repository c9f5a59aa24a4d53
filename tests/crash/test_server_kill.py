"""A server dies, or is told to stop, in a storm of writes: what it has acknowledged is in the file.

`ISOTONE_KILLS=100 pytest -s tests/crash/test_server_kill.py` for as many kills as one likes.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tests.crash.server_storm import Caller, Program, Storm, create_table, item_of
from tests.sdks.server_process import ServerProcess, start_server

import isotone

KILLS = int(os.environ.get("ISOTONE_KILLS", "4"))
CHANCE = Random(4)
FILLING_KILLS = max(KILLS, 8)
KILLS_A_FILE = 10  # reading everything back takes longer as receipts gather


def check(path: Path) -> list[str]:
    with isotone.open(path) as database:
        return database.check()


def kill_again_and_again(path: Path, kills: int, random: Random) -> Storm:
    storm = Storm(random.randrange(1_000_000))
    for _ in range(kills):
        with start_server(path) as server:
            storm.rage(server.url, partial(kill_after, random.randrange(51, 200), storm, server))
        with start_server(path) as server:
            storm.verify(server.url)
            assert check(path) == []
    return storm


def kill_after(writes: int, storm: Storm, server: ServerProcess) -> None:
    """Kill a server at any moment after it has acknowledged so many writes."""
    storm.wait_for(writes)
    time.sleep(CHANCE.uniform(0, 0.02))
    server.kill()


def test_every_acknowledged_write_survives_a_kill(tmp_path: Path) -> None:
    random = Random(KILLS)
    left, acknowledged, unanswered = KILLS, 0, 0
    while left:
        kills = min(left, KILLS_A_FILE)
        storm = kill_again_and_again(tmp_path / f"{left}.db", kills, random)
        left -= kills
        acknowledged += storm.acknowledged
        unanswered += storm.open
        print(
            f"\n{KILLS - left} kills: {acknowledged} writes acknowledged, none lost; "
            f"{unanswered} had no answer"
        )
    assert acknowledged > 50 * KILLS


def test_a_stop_in_a_storm_is_clean(tmp_path: Path) -> None:
    path, complaints, storm = tmp_path / "shop.db", tmp_path / "log", Storm(1)
    with complaints.open("w") as log, start_server(path, stderr=log) as server:

        def stop() -> None:
            storm.wait_for(51)
            assert server.stop() == 0

        # A worker takes an answer that breaks off in the middle as a failure, and `rage` raises it.
        storm.rage(server.url, stop)
    assert complaints.read_text() == ""
    assert check(path) == []
    with start_server(path) as server:
        storm.verify(server.url)
    assert storm.acknowledged > 50


def test_a_server_continues_when_its_neighbour_is_killed(tmp_path: Path) -> None:
    """Two servers on one file; whatever lock the dead one held goes with it."""
    path, random = tmp_path / "shop.db", Random(7)
    steady, shaken = Storm(2, "Steady"), Storm(3, "Shaken")
    with start_server(path) as survivor:

        def shake() -> None:
            for _ in range(max(3, KILLS // 2)):
                with start_server(path) as server:
                    writes = random.randrange(20, 60)
                    shaken.rage(server.url, partial(kill_after, writes, shaken, server))
                shaken.verify(survivor.url)
                steady.wait_for(11)  # it goes on
            assert survivor.stop() == 0

        steady.rage(survivor.url, shake)
    assert check(path) == []
    with start_server(path) as server:
        steady.verify(server.url)
    assert min(steady.acknowledged, shaken.acknowledged) > 30


def test_an_index_is_filled_across_kills(tmp_path: Path) -> None:
    path, count, random = tmp_path / "shop.db", 10_000, Random(8)
    with isotone.open(path, durability="none") as database:
        program = Program(database)
        create_table(program, "Filling")
        with database.engine.writing:
            for first in range(0, count, 25):
                items = [item_of("a", number, number) for number in range(first, first + 25)]
                puts = [{"PutRequest": {"Item": item}} for item in items]
                program("BatchWriteItem", RequestItems={"Filling": puts})
    index = {
        "IndexName": "by_sort",
        "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    with start_server(path) as server, Caller(server.url) as call:
        call(
            "UpdateTable",
            TableName="Filling",
            AttributeDefinitions=[{"AttributeName": "sk", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[{"Create": index}],
        )
        server.kill()
    kills, reached = 1, 0
    while True:
        with start_server(path) as server, Caller(server.url) as call:
            found = index_of(call)
            while found["IndexStatus"] != "ACTIVE" and (
                kills == FILLING_KILLS or found["ItemCount"] <= reached
            ):
                time.sleep(0.005)
                found = index_of(call)
            if found["IndexStatus"] == "ACTIVE":
                break
            reached = found["ItemCount"]
            time.sleep(random.uniform(0, 0.02))
            server.kill()
            kills += 1
    assert kills > 1
    with isotone.open(path) as database:
        indexes = Program(database)("DescribeTable", TableName="Filling")["Table"]
        counts = {
            each["IndexName"]: each["ItemCount"] for each in indexes["GlobalSecondaryIndexes"]
        }
        assert counts == {"by_shade": count, "by_sort": count}
        assert database.check() == []


def index_of(call: Caller) -> dict[str, Any]:
    table = call("DescribeTable", TableName="Filling")["Table"]
    (found,) = (i for i in table["GlobalSecondaryIndexes"] if i["IndexName"] == "by_sort")
    return found
