"""DynamoDB Streams through the API: what a record says, when there is one, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.operations.conftest import Asker

import isotone
from isotone.engine import streams
from isotone.errors import ApiError

BOTH = "NEW_AND_OLD_IMAGES"
A = {"p": {"S": "a"}}
HOUR = 3600


def stream(view: str = BOTH) -> dict[str, Any]:
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": view}}


def switch(ask: Asker, view: str | None) -> dict[str, Any]:
    wanted = {"StreamEnabled": False} if view is None else stream(view)["StreamSpecification"]
    return ask("UpdateTable", TableName="tab", StreamSpecification=wanted)["TableDescription"]


def arn(ask: Asker) -> str:
    found: str = ask("DescribeTable", TableName="tab")["Table"]["LatestStreamArn"]
    return found


def describe(ask: Asker, of: str | None = None, **more: Any) -> dict[str, Any]:
    described: dict[str, Any] = ask("DescribeStream", StreamArn=of or arn(ask), **more)
    return described["StreamDescription"]


def iterator(ask: Asker, shard: str, kind: str = "TRIM_HORIZON", **more: Any) -> str:
    request = {"ShardId": shard, "ShardIteratorType": kind, "StreamArn": arn(ask), **more}
    found: str = ask("GetShardIterator", **request)["ShardIterator"]
    return found


def drained(ask: Asker, position: str | None, **more: Any) -> Iterator[dict[str, Any]]:
    """Everything from a position on, to the end of its shard or of what there is."""
    while position is not None:
        page = ask("GetRecords", ShardIterator=position, **more)
        yield from page["Records"]
        position = page.get("NextShardIterator") if page["Records"] else None


def records(ask: Asker, of: str | None = None) -> list[dict[str, Any]]:
    """All records of a stream, in the order of their sequence numbers."""
    found = [
        record
        for shard in describe(ask, of)["Shards"]
        for record in drained(ask, iterator(ask, shard["ShardId"], StreamArn=of or arn(ask)))
    ]
    return sorted(found, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


def events(ask: Asker) -> list[tuple[str, str]]:
    return [(each["eventName"], each["dynamodb"]["Keys"]["p"]["S"]) for each in records(ask)]


def put(ask: Asker, name: str, **attributes: Any) -> None:
    ask("PutItem", TableName="tab", Item={"p": {"S": name}, **attributes})


def test_a_record_says_what_the_service_says(ask: Asker) -> None:
    ask.table(keys="p s:N", **stream())
    ask.clock.set(1_700_000_000.75)
    key = {"p": {"S": "a"}, "s": {"N": "1"}}
    ask("PutItem", TableName="tab", Item={**key, "b": {"B": "AAE="}, "l": {"L": [{"S": "x"}]}})
    (record,) = records(ask)
    assert len(record.pop("eventID")) == 32
    sequence = record["dynamodb"].pop("SequenceNumber")
    assert sequence.isdigit()
    assert 21 <= len(sequence) <= 40
    assert record == {
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_700_000_000,
            "Keys": key,
            "NewImage": {**key, "b": {"B": "AAE="}, "l": {"L": [{"S": "x"}]}},
            # keys 2 + 3; the image has these, b 1 + 2, and l 1 + 3 + 1 + 1
            "SizeBytes": 5 + 14,
            "StreamViewType": BOTH,
        },
    }


@pytest.mark.parametrize(
    ("view", "images"),
    [
        ("KEYS_ONLY", set()),
        ("NEW_IMAGE", {"NewImage"}),
        ("OLD_IMAGE", {"OldImage"}),
        (BOTH, {"NewImage", "OldImage"}),
    ],
)
def test_a_view_decides_on_images(ask: Asker, view: str, images: set[str]) -> None:
    ask.table(**stream(view))
    put(ask, "a", x={"N": "1"})
    put(ask, "a", x={"N": "2"})
    ask("DeleteItem", TableName="tab", Key=A)
    missing = [{"OldImage"}, set(), {"NewImage"}]
    for record, absent in zip(records(ask), missing, strict=True):
        shown = {name for name in record["dynamodb"] if name.endswith("Image")}
        assert shown == images - absent
        assert record["dynamodb"]["StreamViewType"] == view


def test_every_change_is_recorded(ask: Asker) -> None:
    ask.table(**stream())
    put(ask, "a")
    values = {":x": {"N": "1"}}
    update = {"UpdateExpression": "SET x = :x", "ExpressionAttributeValues": values}
    ask("UpdateItem", TableName="tab", Key=A, **update)
    ask("UpdateItem", TableName="tab", Key={"p": {"S": "b"}}, **update)
    writes = [{"PutRequest": {"Item": {"p": {"S": "c"}}}}, {"DeleteRequest": {"Key": A}}]
    ask("BatchWriteItem", RequestItems={"tab": writes})
    actions = [
        {"Put": {"TableName": "tab", "Item": {"p": {"S": "d"}}}},
        {"Update": {"TableName": "tab", "Key": {"p": {"S": "c"}}, **update}},
        {"Delete": {"TableName": "tab", "Key": {"p": {"S": "b"}}}},
    ]
    ask("TransactWriteItems", TransactItems=actions)
    assert events(ask) == [
        ("INSERT", "a"),
        ("MODIFY", "a"),
        ("INSERT", "b"),
        ("INSERT", "c"),
        ("REMOVE", "a"),
        ("INSERT", "d"),
        ("MODIFY", "c"),
        ("REMOVE", "b"),
    ]


def test_what_changes_nothing_is_not_recorded(ask: Asker) -> None:
    ask.table(**stream())
    put(ask, "a", x={"N": "1"}, s={"M": {"y": {"SS": ["b", "c"]}}})
    put(ask, "a", s={"M": {"y": {"SS": ["c", "b"]}}}, x={"N": "1.0"})
    values = {":x": {"N": "1"}}
    update = {"UpdateExpression": "SET x = :x", "ExpressionAttributeValues": values}
    ask("UpdateItem", TableName="tab", Key=A, **update)
    ask("UpdateItem", TableName="tab", Key=A)
    ask("DeleteItem", TableName="tab", Key={"p": {"S": "nobody"}})
    check = {"ConditionCheck": {"TableName": "tab", "Key": A, "ConditionExpression": "x = :x"}}
    check["ConditionCheck"]["ExpressionAttributeValues"] = values
    ask("TransactWriteItems", TransactItems=[check])
    assert events(ask) == [("INSERT", "a")]


def test_a_refused_write_is_not_recorded(ask: Asker) -> None:
    ask.table(**stream())
    put(ask, "a")
    new = {"TableName": "tab", "Item": A, "ConditionExpression": "attribute_not_exists(p)"}
    ask.refused("PutItem", **new)
    other = {"Put": {"TableName": "tab", "Item": {"p": {"S": "b"}}}}
    ask.refused("TransactWriteItems", TransactItems=[other, {"Put": new}])
    assert events(ask) == [("INSERT", "a")]


def test_an_expiry_is_marked(ask: Asker) -> None:
    ask.table(**stream())
    specification = {"AttributeName": "until", "Enabled": True}
    ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=specification)
    put(ask, "a", until={"N": str(int(ask.clock.now()) + 10)})
    put(ask, "b")
    ask("DeleteItem", TableName="tab", Key={"p": {"S": "b"}})
    ask.clock.advance(11)
    ask.database.finish_maintenance()
    *_, by_hand, by_service = records(ask)
    assert "userIdentity" not in by_hand
    assert by_service["userIdentity"] == {
        "PrincipalId": "dynamodb.amazonaws.com",
        "Type": "Service",
    }
    assert by_service["eventName"] == "REMOVE"
    assert by_service["dynamodb"]["OldImage"]["until"]


def test_a_table_reports_its_latest_stream(ask: Asker) -> None:
    ask.table()
    assert "LatestStreamArn" not in ask("DescribeTable", TableName="tab")["Table"]
    ask.clock.set(1_700_000_000.25)
    first = switch(ask, "KEYS_ONLY")
    assert first["LatestStreamLabel"] == "2023-11-14T22:13:20.250"
    assert first["LatestStreamArn"] == f"{first['TableArn']}/stream/2023-11-14T22:13:20.250"
    assert first["StreamSpecification"] == stream("KEYS_ONLY")["StreamSpecification"]
    disabled = switch(ask, None)
    assert "StreamSpecification" not in disabled
    assert disabled["LatestStreamArn"] == first["LatestStreamArn"]
    assert switch(ask, BOTH)["LatestStreamArn"] != first["LatestStreamArn"]


def test_a_stream_is_enabled_once(ask: Asker) -> None:
    ask.table()
    off = {"StreamEnabled": False}
    error = ask.refused("UpdateTable", TableName="tab", StreamSpecification=off)
    assert error.message == "Table has no stream to disable: TableName: tab"
    switch(ask, BOTH)
    error = ask.refused("UpdateTable", TableName="tab", **stream())
    assert error.message == "Table already has an enabled stream: TableName: tab"


@pytest.mark.parametrize(
    "wrong",
    [
        {"StreamEnabled": False},
        {"StreamEnabled": True},
        {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"},
    ],
)
def test_a_change_of_a_stream_is_looked_at_last(ask: Asker, wrong: dict[str, Any]) -> None:
    """So DynamoDB Local and dynoxide, of indexes and of throughput."""
    ask.table()
    absent = [{"Delete": {"IndexName": "absent"}}]
    for table, more in (("none", {}), ("tab", {"GlobalSecondaryIndexUpdates": absent})):
        error = ask.refused("UpdateTable", TableName=table, StreamSpecification=wrong, **more)
        assert error.code == "ResourceNotFoundException"


def test_a_disabled_stream_can_be_read_for_a_day(ask: Asker) -> None:
    ask.table(**stream())
    old = arn(ask)
    put(ask, "a")
    switch(ask, None)
    put(ask, "b")
    switch(ask, "KEYS_ONLY")
    put(ask, "c")
    assert [each["dynamodb"]["Keys"]["p"]["S"] for each in records(ask, old)] == ["a"]
    assert [each["dynamodb"]["Keys"]["p"]["S"] for each in records(ask)] == ["c"]
    described = describe(ask, old)
    assert described["StreamStatus"] == "DISABLED"
    assert all("EndingSequenceNumber" in s["SequenceNumberRange"] for s in described["Shards"])
    ask.clock.advance(timedelta(hours=24, seconds=1))
    ask.database.finish_maintenance()
    error = ask.refused("DescribeStream", StreamArn=old)
    assert error.code == "ResourceNotFoundException"
    assert error.message == f"Requested resource not found: Stream: {old} not found"
    assert describe(ask)["StreamStatus"] == "ENABLED"


def test_a_stream_outlives_its_table(ask: Asker) -> None:
    ask.table(**stream())
    old = arn(ask)
    put(ask, "a")
    ask("DeleteTable", TableName="tab")
    assert describe(ask, old)["StreamStatus"] == "DISABLED"
    ask.table(**stream())  # at the same instant: the label must differ all the same
    assert arn(ask) != old
    assert [each["eventName"] for each in records(ask, old)] == ["INSERT"]
    assert records(ask) == []
    assert len(ask("ListStreams", TableName="tab")["Streams"]) == 2
    ask.clock.advance(timedelta(days=2))
    ask.database.finish_maintenance()
    assert [each["StreamArn"] for each in ask("ListStreams")["Streams"]] == [arn(ask)]


def test_streams_are_listed_in_pages(ask: Asker) -> None:
    for name in ("one", "two", "tab"):
        ask.table(name, **stream())
    ask.table("without")
    whole = ask("ListStreams")["Streams"]
    assert [each["TableName"] for each in whole] == ["one", "tab", "two"]
    assert whole[1]["StreamArn"] == arn(ask)
    assert whole[1]["StreamArn"].endswith(whole[1]["StreamLabel"])
    page = ask("ListStreams", Limit=2)
    assert page == {"Streams": whole[:2], "LastEvaluatedStreamArn": whole[1]["StreamArn"]}
    rest = ask("ListStreams", Limit=2, ExclusiveStartStreamArn=page["LastEvaluatedStreamArn"])
    assert rest == {"Streams": whole[2:]}
    assert ask("ListStreams", TableName="without") == {"Streams": []}


def test_shards_are_described_in_pages(ask: Asker) -> None:
    ask.table(keys="p s:N", **stream("OLD_IMAGE"))
    whole = describe(ask)
    assert {name: whole[name] for name in whole if name not in ("Shards", "StreamArn")} == {
        "StreamLabel": "2023-11-14T22:13:20.000",
        "StreamStatus": "ENABLED",
        "StreamViewType": "OLD_IMAGE",
        "CreationRequestDateTime": 1_700_000_000.0,
        "TableName": "tab",
        "KeySchema": [
            {"AttributeName": "p", "KeyType": "HASH"},
            {"AttributeName": "s", "KeyType": "RANGE"},
        ],
    }
    page = describe(ask, Limit=3)
    last = page["LastEvaluatedShardId"]
    assert [len(whole["Shards"]), len(page["Shards"])] == [4, 3]
    assert page["Shards"][-1]["ShardId"] == last
    rest = describe(ask, ExclusiveStartShardId=last)
    assert page["Shards"] + rest["Shards"] == whole["Shards"]
    assert "LastEvaluatedShardId" not in rest


def test_old_shards_go_on_in_their_children(ask: Asker) -> None:
    ask.table(**stream())
    put(ask, "a", x={"N": "1"})
    parents = [shard["ShardId"] for shard in describe(ask)["Shards"]]
    before = {shard: iterator(ask, shard) for shard in parents}
    ask.clock.advance(timedelta(hours=4))
    ask.database.finish_maintenance()
    put(ask, "a", x={"N": "2"})
    shards = {shard["ShardId"]: shard for shard in describe(ask)["Shards"]}
    children = {
        shard["ParentShardId"]: each for each, shard in shards.items() if each not in parents
    }
    assert set(children) == set(parents)
    for parent, child in children.items():
        closed, opened = shards[parent]["SequenceNumberRange"], shards[child]["SequenceNumberRange"]
        assert int(closed["EndingSequenceNumber"]) < int(opened["StartingSequenceNumber"])
        assert "EndingSequenceNumber" not in opened
        only = {"Type": "CHILD_SHARDS", "ShardId": parent}
        assert [each["ShardId"] for each in describe(ask, ShardFilter=only)["Shards"]] == [child]
    full = next(shard for shard in parents if list(drained(ask, iterator(ask, shard))))
    end = ask("GetRecords", ShardIterator=iterator(ask, full))
    assert [len(end["Records"]), end.get("NextShardIterator")] == [1, None]
    after = list(drained(ask, iterator(ask, children[full])))
    assert [each["dynamodb"]["NewImage"]["x"] for each in after] == [{"N": "2"}]
    assert ask.refused("GetRecords", ShardIterator=before[full]).code == "ExpiredIteratorException"


def test_full_shards_split(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SHARD_RECORDS", 5)
    ask.table(**stream())
    written = [str(number) for number in range(100)]
    for name in written:
        put(ask, name)
        ask.database.maintain()
    shards = describe(ask)["Shards"]
    assert len([shard for shard in shards if "ParentShardId" not in shard]) == 4
    opened = [s for s in shards if "EndingSequenceNumber" not in s["SequenceNumberRange"]]
    assert len(opened) == streams.OPEN_SHARDS
    assert [name for _, name in events(ask)] == written


def test_records_are_trimmed_after_a_day(ask: Asker) -> None:
    ask.table(**stream())
    put(ask, "a", x={"N": "1"})
    shard = next(s["ShardId"] for s in describe(ask)["Shards"] if _holds(ask, s["ShardId"]))
    first = next(drained(ask, iterator(ask, shard)))["dynamodb"]["SequenceNumber"]
    ask.clock.advance(timedelta(hours=3))
    put(ask, "a", x={"N": "2"})
    ask.clock.advance(timedelta(hours=20, minutes=50))
    ask.database.finish_maintenance()
    position = iterator(ask, shard)
    assert next(drained(ask, position))["dynamodb"]["SequenceNumber"] == first
    ask.clock.advance(timedelta(minutes=11))
    ask.database.finish_maintenance()
    trimmed = "The data you are trying to access has been trimmed"
    error = ask.refused("GetRecords", ShardIterator=position)
    assert (error.code, error.message) == ("TrimmedDataAccessException", trimmed)
    for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
        request = {"ShardId": shard, "ShardIteratorType": kind, "SequenceNumber": first}
        error = ask.refused("GetShardIterator", StreamArn=arn(ask), **request)
        assert (error.code, error.message) == ("TrimmedDataAccessException", trimmed)
    assert [r["dynamodb"]["NewImage"]["x"] for r in drained(ask, iterator(ask, shard))] == [
        {"N": "2"}
    ]
    ask.clock.advance(timedelta(hours=4))
    ask.database.finish_maintenance()
    assert list(drained(ask, iterator(ask, shard))) == []
    ask.clock.advance(timedelta(hours=24))
    ask.database.finish_maintenance()
    request = {"ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    error = ask.refused("GetShardIterator", StreamArn=arn(ask), **request)
    assert error.message == "Requested resource not found: Shard does not exist"


def _holds(ask: Asker, shard: str) -> bool:
    return bool(ask("GetRecords", ShardIterator=iterator(ask, shard))["Records"])


def test_iterators_begin_where_they_say(ask: Asker) -> None:
    ask.table(keys="p s", **stream())
    names = [str(number) for number in range(5)]
    for name in names:
        ask("PutItem", TableName="tab", Item={**A, "s": {"S": name}})
    shard = next(s["ShardId"] for s in describe(ask)["Shards"] if _holds(ask, s["ShardId"]))
    every = list(drained(ask, iterator(ask, shard)))
    latest = iterator(ask, shard, "LATEST")
    assert list(drained(ask, latest)) == []
    for place, record in enumerate(every):
        at = {"SequenceNumber": record["dynamodb"]["SequenceNumber"]}
        assert list(drained(ask, iterator(ask, shard, "AT_SEQUENCE_NUMBER", **at))) == every[place:]
        after = iterator(ask, shard, "AFTER_SEQUENCE_NUMBER", **at)
        assert list(drained(ask, after, Limit=2)) == every[place + 1 :]
    ask("PutItem", TableName="tab", Item={**A, "s": {"S": "new"}})
    assert [each["dynamodb"]["Keys"]["s"]["S"] for each in drained(ask, latest)] == ["new"]


def test_an_iterator_begins_at_a_time(ask: Asker) -> None:
    ask.table(keys="p s", **stream())
    times = []
    for number in range(5):
        ask.clock.advance(0.25 if number % 2 else 60.5)
        times.append(ask.clock.now())
        ask("PutItem", TableName="tab", Item={**A, "s": {"S": str(number)}})
    ask.clock.advance(1)
    shard = next(s["ShardId"] for s in describe(ask)["Shards"] if _holds(ask, s["ShardId"]))
    every = list(drained(ask, iterator(ask, shard)))
    probes = [0, *times, *(time + 0.001 for time in times), *(time - 0.001 for time in times)]
    for probe in probes:
        found = drained(ask, iterator(ask, shard, "AT_TIMESTAMP", Timestamp=probe))
        expected = [record for record, time in zip(every, times, strict=True) if time >= probe]
        assert list(found) == expected
    late = iterator(ask, shard, "AT_TIMESTAMP", Timestamp=times[-1] + 0.5)
    ask("PutItem", TableName="tab", Item={**A, "s": {"S": "new"}})
    assert [each["dynamodb"]["Keys"]["s"]["S"] for each in drained(ask, late)] == ["new"]


def test_an_open_shard_has_a_next_iterator(ask: Asker) -> None:
    ask.table(**stream())
    for shard in describe(ask)["Shards"]:
        page = ask("GetRecords", ShardIterator=iterator(ask, shard["ShardId"]))
        assert page["Records"] == []
        again = ask("GetRecords", ShardIterator=page["NextShardIterator"])
        assert again["NextShardIterator"]


def test_an_iterator_expires_after_15_minutes(ask: Asker) -> None:
    ask.table(**stream())
    position = iterator(ask, describe(ask)["Shards"][0]["ShardId"])
    ask.clock.advance(15 * 60)
    following = ask("GetRecords", ShardIterator=position)["NextShardIterator"]
    ask.clock.advance(1)
    assert ask.refused("GetRecords", ShardIterator=position).code == "ExpiredIteratorException"
    ask.clock.advance(14 * 60)
    ask("GetRecords", ShardIterator=following)


def test_a_page_ends_at_1_mb_and_1000_records(ask: Asker) -> None:
    ask.table(keys="p s:N", **stream("NEW_IMAGE"))
    for number in range(4):
        big = {**A, "s": {"N": str(number)}, "x": {"S": "x" * 390_000}}
        ask("PutItem", TableName="tab", Item=big)
    shard = next(s["ShardId"] for s in describe(ask)["Shards"] if _holds(ask, s["ShardId"]))
    page = ask("GetRecords", ShardIterator=iterator(ask, shard))
    assert len(page["Records"]) == 2
    rest = ask("GetRecords", ShardIterator=page["NextShardIterator"])
    assert len(rest["Records"]) == 2
    for first in range(0, 1100, 25):
        writes = [
            {"PutRequest": {"Item": {**A, "s": {"N": str(number)}}}}
            for number in range(first + 100, first + 125)
        ]
        ask("BatchWriteItem", RequestItems={"tab": writes})
    rest = ask("GetRecords", ShardIterator=rest["NextShardIterator"])
    assert len(rest["Records"]) == 1000


def refusals() -> Iterator[tuple[str, dict[str, Any], str]]:
    yield (
        "ListStreams",
        {"Limit": 101},
        "Limit cannot be greater than the maximum allowed size: 100",
    )
    yield ("DescribeStream", {"Limit": 101}, "Limit cannot be greater than the maximum: 100")
    yield ("GetRecords", {"Limit": 1001}, "Limit should be less than or equal to 1000")
    at = {"ShardIteratorType": "AT_SEQUENCE_NUMBER"}
    yield ("GetShardIterator", at, "Invalid SequenceNumber")
    other = "arn:aws:dynamodb:us-east-1:000000000000:table/T/stream/2020-01-01T00:00:00.000"
    yield ("GetShardIterator", {**at, "StreamArn": other}, "Invalid SequenceNumber")
    yield ("GetShardIterator", {**at, "SequenceNumber": "x" * 21}, "Invalid SequenceNumber")
    latest = {"ShardIteratorType": "LATEST", "SequenceNumber": "1" * 21}
    words = "SequenceNumber should not be passed for this iterator type"
    yield ("GetShardIterator", latest, words)
    absent = "shardId-00000000000000000000-00000009"  # which would be found missing later
    yield ("GetShardIterator", {**latest, "ShardId": absent}, words)
    yield ("GetShardIterator", {**latest, "ShardIteratorType": "AT_TIMESTAMP"}, words)
    words = "Timestamp should not be passed for this iterator type"
    yield ("GetShardIterator", {"ShardIteratorType": "LATEST", "Timestamp": 1}, words)
    at = {"ShardIteratorType": "AT_TIMESTAMP"}
    words = "Timestamp must be passed for this iterator type"
    yield ("GetShardIterator", at, words)
    yield ("GetShardIterator", {**at, "StreamArn": other}, words)
    words = "Timestamp should not be in the future"
    yield ("GetShardIterator", {**at, "Timestamp": 10**11}, words)


@pytest.mark.parametrize(("operation", "request_", "words"), list(refusals()))
def test_parameters_are_refused_in_the_services_words(
    ask: Asker, operation: str, request_: dict[str, Any], words: str
) -> None:
    ask.table(**stream())
    shard = describe(ask)["Shards"][0]["ShardId"]
    base: dict[str, dict[str, Any]] = {
        "ListStreams": {},
        "DescribeStream": {"StreamArn": arn(ask)},
        "GetRecords": {"ShardIterator": iterator(ask, shard)},
        "GetShardIterator": {"StreamArn": arn(ask), "ShardId": shard},
    }
    error = ask.refused(operation, **{**base[operation], **request_})
    assert error.code == "ValidationException"
    assert error.message == f"One or more parameter values were invalid: {words}"


def test_what_is_not_there_is_refused(ask: Asker) -> None:
    ask.table(**stream())
    shard = describe(ask)["Shards"][0]["ShardId"]
    request = {"StreamArn": arn(ask), "ShardId": shard, "ShardIteratorType": "LATEST"}
    error = ask.refused("GetShardIterator", **{**request, "ShardId": shard[:-8] + "no_shard"})
    assert error.code == "ResourceNotFoundException"
    assert error.message == "Requested resource not found: Shard does not exist"
    error = ask.refused("GetShardIterator", **{**request, "StreamArn": arn(ask) + "0"})
    assert error.message == "Requested resource not found: Stream does not exist"
    at = {**request, "ShardIteratorType": "AT_SEQUENCE_NUMBER"}
    for sequence in ("0" * 21, "9" * 40):
        error = ask.refused("GetShardIterator", **at, SequenceNumber=sequence)
        assert error.message == "Invalid SequenceNumber for the shard"


@pytest.mark.parametrize("change", [lambda text: "x", lambda text: text[:-1], lambda text: text + "x",
    lambda text: text.replace("|1|", "|2|"), lambda text: text.replace("table/tab", "table/tub"),
    lambda text: text[:-8] + "AAAAAAA="])  # fmt: skip
def test_an_iterator_cannot_be_made_up(ask: Asker, change: Any) -> None:
    ask.table(**stream())
    text = iterator(ask, describe(ask)["Shards"][0]["ShardId"])
    error = ask.refused("GetRecords", ShardIterator=change(text))
    assert (error.code, error.message) == ("ValidationException", "Invalid ShardIterator")


def test_constraints_are_listed(ask: Asker) -> None:
    error = ask.refused("GetShardIterator", StreamArn="x", ShardIteratorType="FIRST")
    assert error.message == (
        "3 validation errors detected: "
        "Value null at 'shardId' failed to satisfy constraint: Member must not be null; "
        "Value 'FIRST' at 'shardIteratorType' failed to satisfy constraint: "
        "Member must satisfy enum value set: "
        "[AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON, AT_TIMESTAMP]; "
        "Value 'x' at 'streamArn' failed to satisfy constraint: "
        "Member must have length greater than or equal to 37"
    )


def test_a_filter_asks_for_the_children_of_a_shard(ask: Asker) -> None:
    ask.table(**stream())
    error = ask.refused("DescribeStream", StreamArn=arn(ask), ShardFilter={"Type": "CHILD_SHARDS"})
    assert error.code == "ValidationException"
    error = ask.refused("DescribeStream", StreamArn=arn(ask), ShardFilter={})
    assert error.message == (
        "1 validation error detected: Value 'null' at 'shardFilter.type' failed to satisfy "
        "constraint: Member must be CHILD_SHARDS"
    )


def opened(count: int) -> tuple[isotone.Database, Asker]:
    """A database whose streams begin with so many shards, with a table that has a stream."""
    clock = isotone.ManualClock()
    database = isotone.open(clock=clock, stream_shards=count)
    ask = Asker(database, clock)
    ask.table(**stream())
    return database, ask


def test_a_new_stream_has_one_shard() -> None:
    with isotone.open() as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table(**stream())
        for name in "abcdefgh":
            put(ask, name)
        (shard,) = describe(ask)["Shards"]
        assert len(list(drained(ask, iterator(ask, shard["ShardId"])))) == 8


@pytest.mark.parametrize("count", [0, 17, "2", True])
def test_the_number_of_shards_is_limited(count: Any) -> None:
    with pytest.raises(isotone.errors.UsageError, match="give 1 to 16"):
        isotone.open(stream_shards=count)


def test_a_key_is_in_the_same_place_in_every_run() -> None:
    def places() -> list[list[str]]:
        database, ask = opened(5)
        with database:
            for name in "abcdefghijklmnop":
                put(ask, name)
            return [
                [record["dynamodb"]["Keys"]["p"]["S"] for record in drained(ask, position)]
                for position in (
                    iterator(ask, shard["ShardId"]) for shard in describe(ask)["Shards"]
                )
            ]

    first = places()
    assert sum(map(bool, first)) > 1
    assert [places() for _ in range(3)] == [first] * 3


def test_an_empty_shard_accepts_the_number_that_it_begins_with(ask: Asker) -> None:
    ask.table(**stream())
    for shard in describe(ask)["Shards"]:
        begin = {"SequenceNumber": shard["SequenceNumberRange"]["StartingSequenceNumber"]}
        for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
            position = iterator(ask, shard["ShardId"], kind, **begin)
            assert ask("GetRecords", ShardIterator=position)["Records"] == []


def test_a_shard_begins_with_its_first_record() -> None:
    database, ask = opened(1)
    with database:
        (shard,) = describe(ask)["Shards"]
        begin = shard["SequenceNumberRange"]["StartingSequenceNumber"]
        early = iterator(ask, shard["ShardId"], "AT_SEQUENCE_NUMBER", SequenceNumber=begin)
        put(ask, "a")
        put(ask, "b")
        found = list(drained(ask, early))
        assert [each["dynamodb"]["Keys"]["p"]["S"] for each in found] == ["a", "b"]
        assert found[0]["dynamodb"]["SequenceNumber"] == begin


def test_a_filter_does_not_go_with_a_start(ask: Asker) -> None:
    ask.table(**stream())
    shard = describe(ask)["Shards"][0]["ShardId"]
    wanted = {"Type": "CHILD_SHARDS", "ShardId": shard}
    assert describe(ask, ShardFilter=wanted)["Shards"] == []
    error = ask.refused(
        "DescribeStream", StreamArn=arn(ask), ShardFilter=wanted, ExclusiveStartShardId=shard
    )
    assert error.message == (
        "ShardFilter and ExclusiveStartShardId both should not be specified in the request."
    )


def test_a_refused_position_of_many_threads_is_refused_in_each(tmp_path: Path) -> None:
    """The error is looked for in the database, which other threads read at the same time."""
    schema = {
        "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        "TableName": "tab",
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    }
    with isotone.open(tmp_path / "shop.db") as database:
        table = database.execute("CreateTable", schema)["TableDescription"]
        stream = {"StreamArn": table["LatestStreamArn"]}
        described = database.execute("DescribeStream", stream)["StreamDescription"]
        shard = {**stream, "ShardId": described["Shards"][0]["ShardId"]}
        position = {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": "9" * 30}

        def refused(_: int) -> str:
            with pytest.raises(ApiError) as caught:
                database.execute("GetShardIterator", {**shard, **position})
            return caught.value.message

        with ThreadPoolExecutor(8) as pool:
            assert {*pool.map(refused, range(400))} == {"Invalid SequenceNumber for the shard"}
