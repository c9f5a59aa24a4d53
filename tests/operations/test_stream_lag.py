"""How old the records of streams are that nobody has read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operations.conftest import Asker
from tests.operations.test_streams import describe, iterator, stream, switch

from isotone.engine import stream_lag, streams

LAG = "isotone_stream_lag_seconds"


def lags(ask: Asker) -> list[float]:
    """The lag of each shard that has one, the oldest shard first."""
    found = [(dict(labels), value) for name, labels, value in ask.database.series() if name == LAG]
    assert {labels["region"] for labels, _ in found} <= {"us-east-1"}
    return [value for _, value in sorted(found, key=lambda each: each[0]["shard"])]


def put(ask: Asker, *keys: str) -> None:
    for key in keys:
        now = {"S": str(ask.clock.now())}
        ask("PutItem", TableName="tab", Item={"p": {"S": key}, "at": now})


def get(ask: Asker, position: str, **more: Any) -> str | None:
    following: str | None = ask("GetRecords", ShardIterator=position, **more).get(
        "NextShardIterator"
    )
    return following


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
        arn = ask("DescribeTable", TableName=f"tab{number}")["Table"]["LatestStreamArn"]
        shard = describe(ask, arn)["Shards"][0]["ShardId"]
        start = ask("GetShardIterator", StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST")
        get(ask, start["ShardIterator"])
    assert len(ask.database.engine.watched_streams or {}) == 3
    assert lags(ask) == [0.0] * 4
