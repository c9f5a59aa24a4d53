"""Streams under random histories: replayed, they give the table; each record comes once, in order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker
from tests.programs import python

import isotone
from isotone.engine import stream_records, streams

Items = dict[str, dict[str, Any]]
Record = dict[str, Any]
HOUR = 3600
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}

keys = st.sampled_from("abcdefgh")
attributes = st.dictionaries(
    st.sampled_from("xy"),
    st.sampled_from([{"N": "1"}, {"S": "s"}, {"SS": ["a", "b"]}, {"SS": ["b", "a"]}, {"L": []}]),
)
writes = st.tuples(st.sampled_from(["put", "put", "update", "delete"]), keys, attributes)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(writes, min_size=1, max_size=1)),
        st.tuples(
            st.sampled_from(["batch", "transaction"]),
            st.lists(writes, min_size=1, max_size=5, unique_by=lambda write: write[1]),
        ),
        st.tuples(st.just("wait"), st.sampled_from([60, HOUR, 5 * HOUR, 15 * HOUR])),
    ),
    max_size=25,
)


@contextmanager
def opened(kind: str) -> Iterator[Asker]:
    clock = isotone.ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        path = ":memory:" if kind == "memory" else Path(folder) / "file.db"
        with isotone.open(path, durability="none", clock=clock, stream_shards=4) as database:
            ask = Asker(database, clock)
            ask.table(StreamSpecification=STREAM)
            yield ask
            assert database.check() == []


def perform(ask: Asker, step: tuple[str, Any]) -> None:
    kind, what = step
    if kind == "wait":
        ask.clock.advance(what)
        ask.database.finish_maintenance()
    elif kind == "batch":
        requests = [
            {"DeleteRequest": {"Key": key(name)}}
            if verb == "delete"
            else {"PutRequest": {"Item": {**key(name), **given_}}}
            for verb, name, given_ in what
        ]
        ask("BatchWriteItem", RequestItems={"tab": requests})
    else:
        actions = [action(*write) for write in what]
        if kind == "transaction":
            ask("TransactWriteItems", TransactItems=actions)
            return
        ((name, request),) = actions[0].items()
        ask(f"{name}Item", **request)


def within(history: list[Any], seconds: float) -> list[Any]:
    """A history without the waits that would make it longer than so many seconds."""
    kept = []
    for kind, what in history:
        if kind == "wait":
            if what > seconds:
                continue
            seconds -= what
        kept.append((kind, what))
    return kept


def key(name: str) -> dict[str, Any]:
    return {"p": {"S": name}}


def action(verb: str, name: str, given_: dict[str, Any]) -> dict[str, Any]:
    if verb == "put":
        return {"Put": {"TableName": "tab", "Item": {**key(name), **given_}}}
    if verb == "delete":
        return {"Delete": {"TableName": "tab", "Key": key(name)}}
    sets = ", ".join(f"{each} = :{each}" for each in given_)
    return {
        "Update": {
            "TableName": "tab",
            "Key": key(name),
            "UpdateExpression": f"SET {sets}" if sets else "REMOVE x, y",
            **(
                {"ExpressionAttributeValues": {f":{k}": v for k, v in given_.items()}}
                if sets
                else {}
            ),
        }
    }


def contents(ask: Asker) -> Items:
    return {item["p"]["S"]: item for item in ask("Scan", TableName="tab")["Items"]}


def stream_arn(ask: Asker) -> str:
    found: str = ask("DescribeTable", TableName="tab")["Table"]["LatestStreamArn"]
    return found


def shards(ask: Asker) -> list[dict[str, Any]]:
    """All shards, parents before their children, described three at a time."""
    found: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while True:
        page = ask("DescribeStream", StreamArn=stream_arn(ask), Limit=3, **more)[
            "StreamDescription"
        ]
        found += page["Shards"]
        if "LastEvaluatedShardId" not in page:
            break
        more = {"ExclusiveStartShardId": page["LastEvaluatedShardId"]}
    return sorted(found, key=lambda s: int(s["SequenceNumberRange"]["StartingSequenceNumber"]))


def iterator(ask: Asker, shard: dict[str, Any], kind: str) -> str:
    request = {"ShardId": shard["ShardId"], "ShardIteratorType": kind}
    found: str = ask("GetShardIterator", StreamArn=stream_arn(ask), **request)["ShardIterator"]
    return found


def follow(ask: Asker, position: str | None, limit: int) -> list[Record]:
    """The records of one shard, page by page, to its end or to an empty page of an open one."""
    found: list[Record] = []
    while position is not None:
        page = ask("GetRecords", ShardIterator=position, Limit=limit)
        assert len(page["Records"]) <= limit
        found += page["Records"]
        position = page.get("NextShardIterator") if page["Records"] else None
    return found


def everything(ask: Asker, limit: int) -> list[Record]:
    """All records in an order in which a consumer may read them: shard by shard, parents first."""
    found: list[Record] = []
    for shard in shards(ask):
        found += follow(ask, iterator(ask, shard, "TRIM_HORIZON"), limit)
    return found


def sequence(record: Record) -> int:
    return int(record["dynamodb"]["SequenceNumber"])


def replay(items: Items, records: list[Record]) -> None:
    """Apply records, each of which must fit what is there."""
    for record in records:
        change = record["dynamodb"]
        name = change["Keys"]["p"]["S"]
        assert same(change.get("OldImage"), items.pop(name, None))
        new = change.get("NewImage")
        kinds = {(False, True): "INSERT", (True, True): "MODIFY", (True, False): "REMOVE"}
        assert record["eventName"] == kinds["OldImage" in change, "NewImage" in change]
        assert not same(change.get("OldImage"), new)
        if new is not None:
            items[name] = new


def same(one: Any, other: Any) -> bool:
    """Equality in which a set has no order."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            sorted(one[name]) == sorted(other[name])
            if name == "SS"
            else same(one[name], other[name])
            for name in one
        )
    return bool(one == other)


@pytest.mark.parametrize("kind", ["memory", "file"])
@settings(max_examples=examples(40), deadline=None)
@given(history=steps, limit=st.sampled_from([1, 2, 3, 1000]))
def test_a_stream_replays_to_the_table(kind: str, history: list[Any], limit: int) -> None:
    with opened(kind) as ask:
        moments = [(0, contents(ask))]  # how many records there were, and what was in the table
        for step in within(history, 23 * HOUR):
            perform(ask, step)
            moments.append((len(everything(ask, 1000)), contents(ask)))
        found = everything(ask, limit)
        assert len({record["eventID"] for record in found}) == len(found)
        each_item: dict[str, list[int]] = {}
        for record in found:
            each_item.setdefault(record["dynamodb"]["Keys"]["p"]["S"], []).append(sequence(record))
        assert all(numbers == sorted(numbers) for numbers in each_item.values())
        items: Items = {}
        found.sort(key=sequence)
        done = 0
        for count, table in moments:
            replay(items, found[done:count])
            assert same(items, table)
            done = count
        assert done == len(found)


@settings(max_examples=examples(40), deadline=None)
@given(before=steps, after=steps, limit=st.sampled_from([1, 3, 1000]))
def test_latest_sees_exactly_what_comes_after(
    before: list[Any], after: list[Any], limit: int
) -> None:
    with opened("memory") as ask:
        for step in before:
            perform(ask, step)
        items = contents(ask)
        latest = [
            iterator(ask, shard, "LATEST")
            for shard in shards(ask)
            if "EndingSequenceNumber" not in shard["SequenceNumberRange"]
        ]
        known = {shard["ShardId"] for shard in shards(ask)}
        for step in within(after, 14 * 60):  # later, the iterators would have expired
            perform(ask, step)
        found = [record for position in latest for record in follow(ask, position, limit)]
        for shard in shards(ask):
            if shard["ShardId"] not in known:
                found += follow(ask, iterator(ask, shard, "TRIM_HORIZON"), limit)
        replay(items, sorted(found, key=sequence))
        assert same(items, contents(ask))


@settings(max_examples=examples(40), deadline=None)
@given(history=steps)
def test_trimming_takes_what_is_a_day_old_and_nothing_else(history: list[Any]) -> None:
    with opened("memory") as ask:
        made: dict[int, float] = {}
        for step in history:
            perform(ask, step)
            fresh = {sequence(record) for record in everything(ask, 1000)}
            for number in fresh - made.keys():
                made[number] = ask.clock.now()
            horizon = ask.clock.now() - 24 * HOUR
            assert fresh == {number for number, time in made.items() if time > horizon}


def test_all_partitions_of_one_key_share_a_shard(ask: Asker) -> None:
    ask.table(keys="p s:N", StreamSpecification=STREAM)
    for number in range(60):
        item = {"p": {"S": str(number % 20)}, "s": {"N": str(number)}}
        ask("PutItem", TableName="tab", Item=item)
    where: dict[str, set[str]] = {}
    used = set()
    for shard in shards(ask):
        for record in follow(ask, iterator(ask, shard, "TRIM_HORIZON"), 1000):
            where.setdefault(record["dynamodb"]["Keys"]["p"]["S"], set()).add(shard["ShardId"])
            used.add(shard["ShardId"])
    assert len(where) == 20
    assert all(len(each) == 1 for each in where.values())
    assert len(used) > 1


def test_records_are_undone_with_their_change(ask: Asker) -> None:
    ask.table(StreamSpecification=STREAM)
    with ask.database.rolled_back():
        ask("PutItem", TableName="tab", Item=key("a"))
        assert len(everything(ask, 10)) == 1
    assert everything(ask, 10) == []
    ask("PutItem", TableName="tab", Item=key("b"))
    assert [str(10**20 + 1)] == [r["dynamodb"]["SequenceNumber"] for r in everything(ask, 10)]


def test_a_group_of_writes_leaves_its_records(ask: Asker) -> None:
    ask.table(StreamSpecification=STREAM)
    requests = [("PutItem", ask.body(TableName="tab", Item=key(name))) for name in "abc"]
    refused = ask.body(
        TableName="tab", Item=key("a"), ConditionExpression="attribute_not_exists(p)"
    )
    answers = ask.database.send_many([*requests, ("PutItem", refused)])
    assert isinstance(answers[3], isotone.errors.ApiError)
    found = sorted(everything(ask, 10), key=sequence)
    assert [record["dynamodb"]["Keys"]["p"]["S"] for record in found] == ["a", "b", "c"]


def test_no_stream_leaves_nothing_behind(ask: Asker) -> None:
    ask.table()
    trees = ask.database.engine.store.trees()
    ask("PutItem", TableName="tab", Item=key("a"))
    assert ask.database.engine.store.trees() == trees
    assert list(ask.database.engine.store.range("streams", b"", None)) == []


def test_the_written_form_of_a_record() -> None:
    entry = stream_records.StreamRecord(
        1_700_000_000_123, stream_records.MODIFY, 7, b'{"p":1}', b"{}", b"{ }"
    )
    value = stream_records.pack(entry)
    assert value.hex() == (
        "0000018bcfe5687b" "01" "00000007" "00000007" "00000002" "7b2270223a317d" "7b7d" "7b207d"
    )  # fmt: skip
    assert stream_records.unpack(value) == entry
    assert stream_records.time_of(value) == 1_700_000_000_123
    assert stream_records.record_key(3, 258).hex() == "000000030000000000000102"
    assert stream_records.position_of(stream_records.record_key(3, 258)) == (3, 258)


SPOILED = {
    "belongs in another": lambda e, s, r: e.store.put(
        s.tree,
        stream_records.record_key(r[0] % 4 + 1, r[1]),
        e.store.get(s.tree, stream_records.record_key(*r)),
    ),
    "which does not exist": lambda e, s, r: e.store.put(
        s.tree, stream_records.record_key(9, 1), b""
    ),
    "is outside the sequence numbers": lambda e, s, r: e.store.put(
        s.tree, stream_records.record_key(r[0], 99), b""
    ),
    "do not cover all hashes": lambda e, s, r: streams.close(
        e, s, streams.open_shards(e, s)[0], 0.0
    ),
}


@pytest.mark.parametrize("words", SPOILED)
def test_the_check_finds_what_is_wrong(words: str) -> None:
    with isotone.open(stream_shards=4) as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table(StreamSpecification=STREAM)
        ask("PutItem", TableName="tab", Item=key("a"))
        assert database.check() == []
        engine = database.engine
        (stream,) = streams.known(engine)
        ((where, _),) = engine.store.range(stream.tree, b"", None)
        with engine.writing:
            SPOILED[words](engine, stream, stream_records.position_of(where))
        assert any(words in problem for problem in database.check())


WRITER = """
import sys, isotone
path, first = sys.argv[1:]
with isotone.open(path, durability="none") as database:
    client = database.client()
    for number in range(int(first), int(first) + 150):
        key = {"p": {"S": str(number % 7)}}
        client.put_item(TableName="tab", Item={**key, "x": {"N": str(number)}})
"""


def test_after_a_kill_the_stream_reports_what_is_in_the_table(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    with isotone.open(path) as database:
        Asker(database, isotone.ManualClock()).table(StreamSpecification=STREAM)
    for first in (0, 1000, 2000):
        endless = WRITER.replace("+ 150", "+ 10**9").replace('"none"', '"disk"')
        telling = endless.replace("client.put", "print(number, flush=True) or client.put")
        with python("-c", telling, path, first) as writer:
            assert writer.stdout is not None
            for _ in range(50):
                writer.stdout.readline()
            writer.kill()
    with isotone.open(path) as database:
        ask = Asker(database, isotone.ManualClock())
        items: Items = {}
        replay(items, sorted(everything(ask, 1000), key=sequence))
        assert len(items) == 7
        assert same(items, contents(ask))
        assert database.check() == []


def test_several_processes_write_one_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SHARD_RECORDS", 20)  # splits, while the others write
    path = tmp_path / "file.db"
    with isotone.open(path, durability="none") as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table(StreamSpecification=STREAM)
        # Each waits after 15 records until both have written theirs, so that no fast writer is done before a split.
        paced = WRITER.replace(
            "client.put", "number % 15 or (print(flush=True), input()); client.put"
        )
        with (
            python("-c", paced, path, 0, stdin=PIPE) as one,
            python("-c", paced, path, 1000, stdin=PIPE) as other,
        ):
            for _ in range(10):
                for writer in (one, other):
                    assert writer.stdout is not None
                    assert writer.stdout.readline() == "\n"
                for writer in (one, other):
                    assert writer.stdin is not None
                    writer.stdin.write("\n")
                    writer.stdin.flush()
                ask.database.maintain()
        assert (one.returncode, other.returncode) == (0, 0)
        found = sorted(everything(ask, 50), key=sequence)
        assert len({sequence(record) for record in found}) == 300
        assert len(shards(ask)) > 4
        items: Items = {}
        replay(items, found)
        assert same(items, contents(ask))
        numbers = [int(r["dynamodb"]["NewImage"]["x"]["N"]) for r in found]
        for half in (range(150), range(1000, 1150)):
            assert [number for number in numbers if number in half] == list(half)
        assert database.check() == []
