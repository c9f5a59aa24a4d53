"""Single processes of a server die in a storm of writes: nothing that was acknowledged is lost, and nothing is there by half.

The stream of the table tells whether a record was lost or doubled: each has the image that the one before it left.
`ISOTONE_KILLS=300 pytest -s tests/crash/test_process_kill.py` for as many kills as one likes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest
from tests.crash.server_storm import Caller, Refused, Request, Storm, create_table, key
from tests.sdks.server_process import ServerProcess, start_server

import isotone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

KILLS = int(os.environ.get("ISOTONE_KILLS", "20"))
KILLS_A_SERVER = 8  # the tenth death within a minute ends a server
VICTIMS = ("writer", "writer", "front", "front", "supervisor")


class StreamOfTable:
    """Reads the records of a table as they come, and what they say is in it."""

    def __init__(self) -> None:
        self.images: dict[str, Request] = {}
        self._iterators: dict[str, str] = {}
        self._ids: set[str] = set()

    def catch_up(self, call: Caller, table: str) -> None:
        """Read what is new; each record must go on from the one before it."""
        for shard, arn in list(self._shards(call, table)):
            if shard not in self._iterators:
                place = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
                self._iterators[shard] = call("GetShardIterator", **place)["ShardIterator"]
            while True:
                page = call("GetRecords", ShardIterator=self._iterators[shard])
                self._iterators[shard] = page["NextShardIterator"]
                if not page["Records"]:
                    break
                for record in page["Records"]:
                    self._take(record)

    def _shards(self, call: Caller, table: str) -> Iterator[tuple[str, str]]:
        for stream in call("ListStreams", TableName=table)["Streams"]:
            arn = stream["StreamArn"]
            description = call("DescribeStream", StreamArn=arn)["StreamDescription"]
            yield from ((shard["ShardId"], arn) for shard in description["Shards"])

    def _take(self, record: Request) -> None:
        assert record["eventID"] not in self._ids
        self._ids.add(record["eventID"])
        change = record["dynamodb"]
        key = repr(sorted(change["Keys"].items()))
        assert change.get("OldImage") == self.images.pop(key, None), "a record was lost or doubled"
        if "NewImage" in change:
            self.images[key] = change["NewImage"]

    def check(self, call: Caller, table: str) -> None:
        """The table has what its stream says."""
        self.catch_up(call, table)
        items = call.pages("Scan", TableName=table, ConsistentRead=True)
        found = {repr(sorted((name, item[name]) for name in ("pk", "sk"))): item for item in items}
        assert found == self.images


class Target:
    """A server, and which of its processes is what."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        _, self.writer, *self.fronts = server.processes()

    def kill(self, victim: str, storm: Storm, random: Random) -> None:
        """End a process in the middle of the storm, wait until another is in its place, and end the storm."""
        storm.wait_for(random.randrange(20, 60))
        time.sleep(random.uniform(0, 0.02))
        if victim == "supervisor":
            self.server.kill()
            for child in (self.writer, *self.fronts):  # they finish what they have
                wait_until(partial(has_ended, child))
            return
        before = set(self.server.processes())
        dead = self.writer if victim == "writer" else random.choice(self.fronts)
        os.kill(dead, signal.SIGKILL)
        new = self._new(before)
        settle(self.server.url)
        if victim == "writer":
            self.writer = new
        else:
            self.fronts[self.fronts.index(dead)] = new
        storm.is_over = True

    def _new(self, before: set[int]) -> int:
        wait_until(lambda: set(self.server.processes()) - before)
        return (set(self.server.processes()) - before).pop()


def wait_until(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def has_ended(process: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True


def settle(url: str) -> None:
    """Wait until the writer has executed what a dead front had handed to it: writes come in the order of their arrival."""
    for _ in range(2):
        with Caller(url) as call, contextlib.suppress(Refused):
            call("DeleteItem", TableName="Storm", Key=key("nobody", 0))


def kill_again_and_again(
    path: Path, storm: Storm, stream: StreamOfTable, random: Random, kills: int
) -> Counter[str]:
    """Kill processes of one server until its supervisor is among them, or so many have died."""
    killed: Counter[str] = Counter()
    with start_server(path, "--workers", "2") as server:
        target = Target(server)
        with Caller(server.url) as call:
            if storm.table not in call("ListTables")["TableNames"]:
                create_table(call, storm.table)
                views = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
                call("UpdateTable", TableName=storm.table, StreamSpecification=views)
        while killed.total() < kills and not killed["supervisor"]:
            victim = random.choice(VICTIMS)
            storm.rage(server.url, partial(target.kill, victim, storm, random))
            killed[victim] += 1
            if victim != "supervisor":
                storm.verify(server.url)
                with Caller(server.url) as call:
                    stream.check(call, storm.table)
        if not killed["supervisor"]:
            assert server.stop() == 0
    return killed


def test_every_acknowledged_write_survives_kills_of_single_processes(tmp_path: Path) -> None:
    path, random = tmp_path / "shop.db", Random(KILLS)
    storm, stream = Storm(random.randrange(1_000_000), may_fail=True), StreamOfTable()
    killed: Counter[str] = Counter()
    while killed.total() < KILLS:
        left = min(KILLS - killed.total(), KILLS_A_SERVER)
        killed += kill_again_and_again(path, storm, stream, random, left)
        with isotone.open(path) as database:
            assert database.check() == []
        with start_server(path, "--workers", "2") as server, Caller(server.url) as call:
            storm.verify(server.url)
            stream.check(call, storm.table)
            assert server.stop() == 0
        print(
            f"\n{killed.total()} kills {dict(killed)}: {storm.acknowledged} writes acknowledged, "
            f"none lost; {storm.open} had no answer"
        )
    assert storm.acknowledged > 20 * KILLS
    assert killed["writer"]
    assert killed["front"]
