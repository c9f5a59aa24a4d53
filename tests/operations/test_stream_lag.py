"""How old the records of streams are that nobody has read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.operations.conftest import Asker
from tests.operations.test_streams import describe, iterator, stream, switch

import isotone
from isotone.engine import stream_lag, streams
from isotone.errors import DamagedItem

LAG = "isotone_stream_lag_seconds"


def lags(ask: Asker) -> list[float]:
    """The lag of each shard that has one, the oldest shard first."""
    found = [(dict(labels), value) for name, labels, value in ask.database.series() if name == LAG]
    assert {labels["region"] for labels, _ in found} <= {"us-east-1"}
    return [value for _, value in sorted(found, key=lambda each: each[0]["shard"])]


def put(ask: Asker, *keys: str, table: str = "tab") -> None:
    for key in keys:
        now = {"S": str(ask.clock.now())}
        ask("PutItem", TableName=table, Item={"p": {"S": key}, "at": now})


def get(ask: Asker, position: str, **more: Any) -> str | None:
    following: str | None = ask("GetRecords", ShardIterator=position, **more).get(
        "NextShardIterator"
    )
    return following


def arn_of(ask: Asker, table: str) -> str:
    arn: str = ask("DescribeTable", TableName=table)["Table"]["LatestStreamArn"]
    return arn


def get_latest(ask: Asker, table: str) -> None:
    """Read the stream of a table, which has one shard, from now on."""
    arn = arn_of(ask, table)
    shard = describe(ask, arn)["Shards"][0]["ShardId"]
    start = ask("GetShardIterator", StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST")
    get(ask, start["ShardIterator"])


@pytest.fixture
def one_shard(ask: Asker) -> Asker:
    ask.database.engine.stream_shards = 1
    ask.database.measure()
    ask.table(**stream())
    return ask


def first_shard(ask: Asker) -> str:
    shard: str = describe(ask)["Shards"][0]["ShardId"]
    return shard


def test_a_lag_is_the_age_of_the_oldest_record_that_nobody_has_read(one_shard: Asker) -> None:
    ask = one_shard
    assert lags(ask) == [0.0]
    put(ask, "a")
    ask.clock.advance(10)
    put(ask, "b")
    ask.clock.advance(5)
    put(ask, "c")
    assert lags(ask) == [15.0]
    position = get(ask, iterator(ask, first_shard(ask)), Limit=1)
    assert lags(ask) == [5.0]
    get(
        ask, iterator(ask, first_shard(ask)), Limit=1
    )  # another reader, from the start: nothing new
    assert lags(ask) == [5.0]
    assert position is not None
    get(ask, position)
    assert lags(ask) == [0.0]
    ask.clock.advance(60)
    assert lags(ask) == [0.0]
    put(ask, "d")
    ask.clock.advance(3)
    assert lags(ask) == [3.0]


def test_a_reader_of_the_latest_records_leaves_the_others_out(one_shard: Asker) -> None:
    ask = one_shard
    put(ask, "a")
    ask.clock.advance(100)
    position = iterator(ask, first_shard(ask), "LATEST")
    assert lags(ask) == [100.0]
    get(ask, position)
    assert lags(ask) == [0.0]


def test_what_was_there_before_counts_as_read(ask: Asker) -> None:
    ask.database.engine.stream_shards = 1
    ask.table(**stream())
    put(ask, "a")
    ask.clock.advance(1000)
    ask.database.measure()
    assert lags(ask) == [0.0]
    put(ask, "b")
    ask.clock.advance(7)
    assert lags(ask) == [7.0]


def test_each_shard_has_its_lag(ask: Asker) -> None:
    ask.database.measure()
    ask.table(**stream())
    for number in range(40):
        put(ask, f"key{number}")
    ask.clock.advance(20)
    assert lags(ask) == [20.0] * 4
    shards = [each["ShardId"] for each in describe(ask)["Shards"]]
    get(ask, iterator(ask, shards[2]))
    assert lags(ask) == [20.0, 20.0, 0.0, 20.0]


def test_closed_shards_have_a_lag_until_they_are_read_or_passed_by(one_shard: Asker) -> None:
    ask = one_shard
    put(ask, "a")
    for _ in range(2):
        ask.clock.advance(streams.SHARD_LIFETIME)
        ask.database.maintain()
        put(ask, "b", "c")
    old, _, new = (each["ShardId"] for each in describe(ask)["Shards"])
    ask.clock.advance(10)
    assert lags(ask) == [2 * streams.SHARD_LIFETIME + 10, streams.SHARD_LIFETIME + 10, 10]
    get(ask, iterator(ask, old))
    assert lags(ask) == [streams.SHARD_LIFETIME + 10, 10]
    get(ask, iterator(ask, new, "LATEST"))  # whoever reads a child wants nothing of its parent
    assert lags(ask) == [0.0]


def test_streams_that_have_ended_have_no_lag(one_shard: Asker) -> None:
    ask = one_shard
    put(ask, "a")
    get(ask, iterator(ask, first_shard(ask)))
    switch(ask, None)
    assert lags(ask) == []
    switch(ask, "KEYS_ONLY")
    put(ask, "b")
    ask.clock.advance(4)
    assert lags(ask) == [4.0]
    ask("DeleteTable", TableName="tab")
    assert lags(ask) == []


def test_positions_are_bounded(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_lag, "_MOST_WATCHED", 3)
    monkeypatch.setattr(stream_lag, "MOST_STREAMS", 4)
    ask.database.engine.stream_shards = 1
    ask.database.measure()
    for number in range(6):
        ask.table(f"tab{number}", **stream())
        get_latest(ask, f"tab{number}")
    assert len(ask.database.engine.watched_streams or {}) == 3
    assert lags(ask) == [0.0] * 4


def test_the_position_of_a_stream_that_is_read_stays(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_lag, "_MOST_WATCHED", 3)
    ask.database.engine.stream_shards = 1
    ask.table("old", **stream())
    put(ask, "a", table="old")
    ask.clock.advance(100)
    ask.database.measure()
    for number in range(6):
        ask.table(f"tab{number}", **stream())
        get_latest(ask, "old")
        get_latest(ask, f"tab{number}")
    assert lags(ask) == [0.0] * 7


def test_a_stream_whose_record_is_damaged_hides_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = isotone.ManualClock()
    with isotone.open(tmp_path / "a.db", clock=clock, durability="none") as database:
        ask = Asker(database, clock)
        for name in ("one", "two"):
            ask.table(name, **stream())
        connection = apsw.Connection(str(tmp_path / "a.db"))
        connection.execute(
            "UPDATE tree_streams SET value = x'00' WHERE key >= CAST('sone' AS BLOB)"
            " AND key < CAST('sonf' AS BLOB)"
        )
        connection.close()
        database.measure()
        with pytest.raises(DamagedItem):
            ask("DescribeStream", StreamArn=arn_of(ask, "one"))
        ask("PutItem", TableName="two", Item={"p": {"S": "a"}})
        clock.advance(5)
        assert 5.0 in lags(ask)
    assert caplog.text.count("an entry of streams is damaged") == 1
