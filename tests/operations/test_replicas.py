"""Replicas of tables in other regions: what reaches them, when, who wins, and what follows of settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import key_schema

import isotone
from isotone.engine import replication as delivery
from isotone.errors import ApiError
from isotone.server import running_server
from isotone.testing import replication

HOME, AWAY, THIRD = "us-east-1", "eu-west-1", "ap-south-1"
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
INDEX: dict[str, Any] = {
    "IndexName": "by_g",
    "KeySchema": key_schema("g", "p"),
    "Projection": {"ProjectionType": "ALL"},
}
G = [{"AttributeName": "g", "AttributeType": "S"}]


class World:
    """A database with clients of several regions, and a clock that the test moves."""

    def __init__(self, path: str | Path, **more: Any) -> None:
        self.path = path
        self.clock = isotone.ManualClock()
        self.open(**more)

    def open(self, **more: Any) -> None:
        self.database = isotone.open(self.path, clock=self.clock, durability="none", **more)

    def __getitem__(self, region: str) -> Any:
        return self.database.region(region).client()

    def create(self, region: str = HOME, **more: Any) -> None:
        self[region].create_table(
            TableName="tab",
            **{
                "AttributeDefinitions": [
                    {"AttributeName": "p", "AttributeType": "S"},
                    *more.pop("attributes", ()),
                ],
                "KeySchema": key_schema("p"),
                "BillingMode": "PAY_PER_REQUEST",
                **more,
            },
        )

    def replicate(self, *regions: str, **more: Any) -> dict[str, Any]:
        updates = [{"Create": {"RegionName": region}} for region in regions]
        answer = self[HOME].update_table(TableName="tab", ReplicaUpdates=updates, **more)
        return dict(answer["TableDescription"])

    def put(self, region: str, p: str, value: str = "", **more: Any) -> None:
        item = {"p": {"S": p}, "v": {"S": value}, **more}
        self[region].put_item(TableName="tab", Item=item)

    def delete(self, region: str, p: str) -> None:
        self[region].delete_item(TableName="tab", Key={"p": {"S": p}})

    def items(self, region: str) -> dict[str, str]:
        found = self[region].get_paginator("scan").paginate(TableName="tab")
        return {item["p"]["S"]: item["v"]["S"] for page in found for item in page["Items"]}

    def events(self, region: str) -> list[tuple[str, str]]:
        """The records of a replica's stream: event and key."""
        streams = self.database.region(region).streams_client()
        arn = self.describe(region)["LatestStreamArn"]
        found = []
        for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            iterator = streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            for each in streams.get_records(ShardIterator=iterator)["Records"]:
                change = each["dynamodb"]
                at = int(change["SequenceNumber"])
                who = each.get("userIdentity", {}).get("Type", "")
                found.append((at, each["eventName"] + who, change["Keys"]["p"]["S"]))
        return [event[1:] for event in sorted(found)]

    def describe(self, region: str = HOME) -> dict[str, Any]:
        return dict(self[region].describe_table(TableName="tab")["Table"])

    def close(self) -> None:
        assert self.database.check() == []
        self.database.close()


@pytest.fixture(params=["memory", "file"])
def world(request: pytest.FixtureRequest, tmp_path: Path, by_hand: None) -> Iterator[World]:
    made = World(":memory:" if request.param == "memory" else tmp_path / "file.db")
    yield made
    made.close()


# Regions


def test_a_region_has_the_tables_of_its_own_replicas(world: World) -> None:
    world.create()
    assert world.database.in_region(AWAY).client().list_tables()["TableNames"] == ["tab"]
    world[HOME].create_table(
        TableName="local",
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        KeySchema=key_schema("p"),
        BillingMode="PAY_PER_REQUEST",
    )
    world.replicate(AWAY)
    assert world[AWAY].list_tables()["TableNames"] == ["tab"]
    assert world[HOME].list_tables()["TableNames"] == ["local", "tab"]
    assert world.database.in_region(AWAY).client().list_tables()["TableNames"] == ["tab"]
    third = world.database.in_region(THIRD).client()
    assert third.list_tables()["TableNames"] == ["local", "tab"]


def test_with_regions_each_has_tables_of_its_own(by_hand: None) -> None:
    world = World(":memory:", regions=True)
    for region in (HOME, AWAY):
        assert world.database.in_region(region).client().list_tables()["TableNames"] == []
        world.create(region)
        world.put(region, "1", region)
        assert world.describe(region)["TableArn"].split(":")[3] == region
    assert world.items(HOME) == {"1": HOME}
    assert world.items(AWAY) == {"1": AWAY}
    with pytest.raises(ApiError):
        world.database.in_region("Nowhere!")
    world.database.clear()
    assert world[AWAY].list_tables()["TableNames"] == []
    world.close()


# Writes


def test_writes_reach_every_replica_at_once(world: World) -> None:
    world.create()
    world.put(HOME, "old", "before")
    answer = world.replicate(AWAY, THIRD)
    assert [each["RegionName"] for each in answer["Replicas"]] == [AWAY, THIRD]
    assert answer["GlobalTableVersion"] == "2019.11.21"
    for region in (HOME, AWAY, THIRD):
        world.put(region, region, "x")
        others = {HOME, AWAY, THIRD} - {region}
        described = world.describe(region)
        assert {each["RegionName"] for each in described["Replicas"]} == others
    for region in (HOME, AWAY, THIRD):
        assert world.items(region) == {"old": "before", HOME: "x", AWAY: "x", THIRD: "x"}
    world[AWAY].update_item(
        TableName="tab",
        Key={"p": {"S": "old"}},
        UpdateExpression="SET v = :v",
        ExpressionAttributeValues={":v": {"S": "after"}},
    )
    world[THIRD].transact_write_items(
        TransactItems=[
            {"Delete": {"TableName": "tab", "Key": {"p": {"S": region}}}} for region in (HOME, AWAY)
        ]
    )
    for region in (HOME, AWAY, THIRD):
        assert world.items(region) == {"old": "after", THIRD: "x"}


def test_items_of_the_version_of_2019_have_no_attributes_of_replication(world: World) -> None:
    world.create()
    world.replicate(AWAY)
    world.put(HOME, "1")
    for region in (HOME, AWAY):
        (item,) = world[region].scan(TableName="tab")["Items"]
        assert set(item) == {"p", "v"}


def test_a_write_arrives_after_the_lag(world: World) -> None:
    world.create()
    world.replicate(AWAY)
    with replication(world.database, lag=10):
        world.put(HOME, "1", "a")
        world.clock.advance(9)
        world.database.finish_maintenance()
        assert (world.items(HOME), world.items(AWAY)) == ({"1": "a"}, {})
        world.clock.advance(1)
        world.database.finish_maintenance()
        assert world.items(AWAY) == {"1": "a"}


def test_a_paused_replica_catches_up_when_the_pause_ends(world: World) -> None:
    world.create()
    world.replicate(AWAY)
    with replication(world.database, paused=True):
        for number in range(delivery.SLICE + 3):
            world.put(HOME, f"{number}", "a")
        world.delete(HOME, "0")
        world.clock.advance(1e6)
        world.database.finish_maintenance()
        assert world.items(AWAY) == {}
    assert world.items(AWAY) == world.items(HOME)
    assert len(world.items(AWAY)) == delivery.SLICE + 2


@pytest.mark.parametrize("lag", [{"paused": True}, {"lag": 10}])
def test_a_clock_that_is_set_back_holds_no_write_up(world: World, lag: dict[str, Any]) -> None:
    world.create()
    world.replicate(AWAY)
    with replication(world.database, **lag):
        world.put(HOME, "1", "before")
        world.clock.set(world.clock.now() - 1000)
        world.put(HOME, "1", "after")
    assert world.items(HOME) == world.items(AWAY) == {"1": "after"}
    world.put(HOME, "1", "without a lag")
    assert world.items(AWAY) == {"1": "without a lag"}


def test_the_last_writer_wins(world: World) -> None:
    world.create()
    world.replicate(AWAY)
    for first, second in ((HOME, AWAY), (AWAY, HOME)):
        with replication(world.database, paused=True):
            world.put(first, "1", "first")
            world.clock.advance(0.001)
            world.put(second, "1", "second")
            assert world.items(first)["1"] == "first"
        assert world.items(HOME) == world.items(AWAY) == {"1": "second"}


def test_a_late_write_does_not_bring_a_deleted_item_back(world: World) -> None:
    world.create()
    world.replicate(AWAY)
    world.put(HOME, "1", "old")
    with replication(world.database, paused=True):
        world.put(HOME, "1", "new")
        world.clock.advance(1)
        world.delete(AWAY, "1")
        assert (world.items(HOME), world.items(AWAY)) == ({"1": "new"}, {})
    assert world.items(HOME) == world.items(AWAY) == {}


def test_conditions_are_judged_by_the_local_replica(world: World) -> None:
    world.create()
    world.replicate(AWAY)
    only_new = {"ConditionExpression": "attribute_not_exists(p)"}
    with replication(world.database, paused=True):
        for region in (HOME, AWAY):
            item = {"p": {"S": "1"}, "v": {"S": region}}
            world[region].put_item(TableName="tab", Item=item, **only_new)
            world.clock.advance(1)
    assert world.items(HOME) == world.items(AWAY) == {"1": AWAY}
    with pytest.raises(ApiError):
        world[HOME].put_item(TableName="tab", Item=item, **only_new)


def test_each_replica_has_a_stream_of_its_own(world: World) -> None:
    world.create(StreamSpecification=STREAM)
    world.put(HOME, "old")
    world.replicate(AWAY)
    assert world.describe(HOME)["LatestStreamArn"] != world.describe(AWAY)["LatestStreamArn"]
    world.put(AWAY, "1")
    world.put(HOME, "1", "changed")
    world.delete(AWAY, "1")
    changes = [("INSERT", "1"), ("MODIFY", "1"), ("REMOVE", "1")]
    assert world.events(HOME) == [("INSERT", "old"), *changes]
    assert world.events(AWAY) == changes


def test_expiries_reach_the_replicas(world: World) -> None:
    world.create()
    world.replicate(AWAY)
    expiry = {"Enabled": True, "AttributeName": "ttl"}
    world[AWAY].update_time_to_live(TableName="tab", TimeToLiveSpecification=expiry)
    described = world[HOME].describe_time_to_live(TableName="tab")
    assert described["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    world.put(AWAY, "1", ttl={"N": str(int(world.clock.now()) + 5)})
    world.clock.advance(10)
    world.database.finish_maintenance()
    assert world.items(HOME) == world.items(AWAY) == {}
    assert sorted([world.events(HOME)[-1], world.events(AWAY)[-1]]) == [
        ("REMOVE", "1"),
        ("REMOVEService", "1"),
    ]


def test_a_large_table_is_copied_in_the_background(world: World) -> None:
    world.create(attributes=G, GlobalSecondaryIndexes=[INDEX])
    count = 2 * delivery.SLICE + 7
    for number in range(count):
        world.put(HOME, f"{number:05}", "old", g={"S": "g"})
    answer = world.replicate(AWAY)
    assert answer["Replicas"][0]["ReplicaStatus"] == "CREATING"
    assert len(world.items(AWAY)) == delivery.SLICE
    change = [{"Delete": {"RegionName": HOME}}]
    with pytest.raises(ApiError, match="in use: Table is being updated: tab"):
        world[HOME].delete_table(TableName="tab")  # the rest of the items would be gone
    with pytest.raises(ApiError, match="in use: Table is being updated: tab"):
        world[AWAY].update_table(TableName="tab", ReplicaUpdates=change)
    world.put(HOME, f"{count:05}", "new")
    world.put(AWAY, "00001", "away")
    world.delete(HOME, "00002")
    world.database.finish_maintenance()
    assert world.describe()["Replicas"][0]["ReplicaStatus"] == "ACTIVE"
    assert world.items(AWAY) == world.items(HOME)
    assert world.items(HOME)["00001"] == "away"
    found = world[AWAY].query(
        TableName="tab",
        IndexName="by_g",
        KeyConditionExpression="g = :g",
        ExpressionAttributeValues={":g": {"S": "g"}},
        Select="COUNT",
    )
    assert found["Count"] == count - 2


# Settings


def test_indexes_and_billing_follow_and_protection_does_not(world: World) -> None:
    world.create()
    world.replicate(AWAY)
    world.put(HOME, "1", g={"S": "x"})
    world[AWAY].update_table(
        TableName="tab",
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}, *G],
        GlobalSecondaryIndexUpdates=[{"Create": INDEX}],
        DeletionProtectionEnabled=True,
    )
    world.database.finish_maintenance()
    for region in (HOME, AWAY):
        found = world[region].scan(TableName="tab", IndexName="by_g")
        assert found["Count"] == 1
    assert world.describe(AWAY)["DeletionProtectionEnabled"]
    assert not world.describe(HOME)["DeletionProtectionEnabled"]
    world[HOME].update_table(
        TableName="tab", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by_g"}}]
    )
    assert "GlobalSecondaryIndexes" not in world.describe(AWAY)


def test_a_replica_has_settings_of_its_own(world: World) -> None:
    world.create()
    member = {"RegionName": AWAY, "TableClassOverride": "STANDARD_INFREQUENT_ACCESS"}
    world[HOME].update_table(TableName="tab", ReplicaUpdates=[{"Create": member}])
    (replica,) = world.describe(HOME)["Replicas"]
    summary = {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
    assert replica["ReplicaTableClassSummary"] == summary
    assert world.describe(AWAY)["TableClassSummary"] == summary
    member = {"RegionName": AWAY, "TableClassOverride": "STANDARD"}
    world[HOME].update_table(TableName="tab", ReplicaUpdates=[{"Update": member}])
    summary = world.describe(AWAY)["TableClassSummary"]
    assert (summary["TableClass"], summary["LastUpdateDateTime"]) == ("STANDARD", world.clock.utc)
    assert "TableClassSummary" not in world.describe(HOME)


def test_an_index_of_a_replica_has_reads_of_its_own(world: World) -> None:
    world.create(attributes=G, GlobalSecondaryIndexes=[INDEX, {**INDEX, "IndexName": "by_h"}])
    for kind, name, most in (("Create", "by_g", 11), ("Update", "by_h", 12)):
        limits = {"OnDemandThroughputOverride": {"MaxReadRequestUnits": most}}
        member = {"RegionName": AWAY, "GlobalSecondaryIndexes": [{"IndexName": name, **limits}]}
        world[HOME].update_table(TableName="tab", ReplicaUpdates=[{kind: member}])
    own = world.describe(AWAY)["GlobalSecondaryIndexes"]
    assert [each["OnDemandThroughput"] for each in own] == [
        {"MaxReadRequestUnits": 11},
        {"MaxReadRequestUnits": 12},
    ]
    (replica,) = world.describe(HOME)["Replicas"]
    shown = [each["OnDemandThroughputOverride"] for each in replica["GlobalSecondaryIndexes"]]
    assert shown == [{"MaxReadRequestUnits": 11}, {"MaxReadRequestUnits": 12}]
    assert "OnDemandThroughput" not in world.describe(HOME)["GlobalSecondaryIndexes"][0]
    member = {"RegionName": AWAY, "GlobalSecondaryIndexes": [{"IndexName": "other"}]}
    with pytest.raises(ApiError, match="does not have the specified index: other"):
        world[HOME].update_table(TableName="tab", ReplicaUpdates=[{"Update": member}])


def test_deleting_a_replica_leaves_the_others(world: World) -> None:
    world.create()
    world.replicate(AWAY, THIRD)
    world.put(AWAY, "1")
    world[THIRD].delete_table(TableName="tab")
    assert [each["RegionName"] for each in world.describe()["Replicas"]] == [AWAY]
    delete = [{"Delete": {"RegionName": HOME}}]
    world[AWAY].update_table(TableName="tab", ReplicaUpdates=delete)
    assert world[HOME].list_tables()["TableNames"] == []
    described = world.describe(AWAY)
    assert not {"Replicas", "GlobalTableVersion", "MultiRegionConsistency"} & set(described)
    world.put(AWAY, "2")
    assert set(world.items(AWAY)) == {"1", "2"}


def test_a_table_of_the_name_of_a_replica_that_has_left_gets_no_items(by_hand: None) -> None:
    world = World(":memory:")
    world.create()
    for number in range(3 * delivery.SLICE):
        world.put(HOME, f"{number:05}")
    world.replicate(AWAY, THIRD)
    change = [{"Delete": {"RegionName": AWAY}}]
    world[HOME].update_table(TableName="tab", ReplicaUpdates=change)
    world.create(AWAY)
    world.database.finish_maintenance()
    assert world.items(AWAY) == {}
    assert len(world.items(THIRD)) == 3 * delivery.SLICE
    world.close()


def test_what_waits_is_delivered_before_the_group_changes(world: World) -> None:
    """A region that leaves takes no write with it, a new one gets all, and one that comes back nothing of before."""
    world.create()
    world.replicate(AWAY, THIRD)

    def update(action: str) -> None:
        change = [{action: {"RegionName": THIRD}}]
        world[HOME].update_table(TableName="tab", ReplicaUpdates=change)
        world.clock.advance(1)

    with replication(world.database, paused=True):
        world.put(AWAY, "gone")
        world.put(THIRD, "of-third")
        update("Delete")
        world.delete(AWAY, "gone")
        world.put(AWAY, "of-away")
        update("Create")
        assert world.items(THIRD).keys() == {"of-third", "of-away"}
        world.put(AWAY, "last")
        world[AWAY].delete_table(TableName="tab")
    assert world.items(HOME) == world.items(THIRD)
    assert world.items(HOME).keys() == {"of-third", "of-away", "last"}


def test_a_replica_is_refused_where_it_cannot_be(world: World) -> None:
    world.create()

    def refused(**request: Any) -> str:
        with pytest.raises(ApiError) as caught:
            world[HOME].update_table(TableName="tab", **request)
        assert caught.value.code == "ValidationException"
        return caught.value.message

    def update(kind: str, region: str) -> dict[str, Any]:
        return {"ReplicaUpdates": [{kind: {"RegionName": region}}]}

    for kind in ("Create", "Update", "Delete"):
        assert "local region" in refused(**update(kind, HOME))
    for kind in ("Update", "Delete"):
        assert "not part of the global table" in refused(**update(kind, AWAY))
    refused(**update("Create", "no region!"))
    world.create(THIRD)
    assert "already existed as tables" in refused(**update("Create", THIRD))
    refused(MultiRegionConsistency="STRONG")
    world.replicate(AWAY)
    assert "already existed as tables" in refused(**update("Create", AWAY))
    assert "stream" in refused(StreamSpecification={"StreamEnabled": False})
    assert [each["RegionName"] for each in world.describe()["Replicas"]] == [AWAY]


def test_provisioned_writes_must_be_scaled_to_have_replicas(world: World) -> None:
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    world.create(BillingMode="PROVISIONED", ProvisionedThroughput=units)
    with pytest.raises(ApiError, match="Pay-Per-Request or AutoScaled"):
        world.replicate(AWAY)
    assert "Replicas" not in world.describe()
    scaling = {"MinimumUnits": 1, "MaximumUnits": 9}
    world[HOME].update_table_replica_auto_scaling(
        TableName="tab", ProvisionedWriteCapacityAutoScalingUpdate=scaling
    )
    world.replicate(AWAY)
    world[AWAY].update_table_replica_auto_scaling(
        TableName="tab",
        ProvisionedWriteCapacityAutoScalingUpdate={"MaximumUnits": 7},
        ReplicaUpdates=[
            {"RegionName": HOME, "ReplicaProvisionedReadCapacityAutoScalingUpdate": scaling}
        ],
    )
    described = world[HOME].describe_table_replica_auto_scaling(TableName="tab")
    found = {
        each["RegionName"]: (
            each["ReplicaProvisionedWriteCapacityAutoScalingSettings"]["MaximumUnits"],
            each["ReplicaProvisionedReadCapacityAutoScalingSettings"].get("MaximumUnits"),
        )
        for each in described["TableAutoScalingDescription"]["Replicas"]
    }
    assert found == {HOME: (7, 9), AWAY: (7, None)}


def test_strong_consistency_needs_three_regions_and_knows_no_lag(world: World) -> None:
    world.create()
    strong: dict[str, Any] = {"MultiRegionConsistency": "STRONG"}
    witness = {"GlobalTableWitnessUpdates": [{"Create": {"RegionName": THIRD}}]}
    with pytest.raises(ApiError, match="three replicas"):
        world.replicate(AWAY, **strong)
    with pytest.raises(ApiError, match="witness needs"):
        world.replicate(AWAY, **witness)
    answer = world.replicate(AWAY, **strong, **witness)
    assert answer["MultiRegionConsistency"] == "STRONG"
    assert answer["GlobalTableWitnesses"] == [{"RegionName": THIRD, "WitnessStatus": "ACTIVE"}]
    with replication(world.database, paused=True):
        world.put(HOME, "1")
        assert world.items(AWAY) == {"1": ""}


# Durability


def test_what_waits_survives_the_process(tmp_path: Path, by_hand: None) -> None:
    world = World(tmp_path / "file.db")
    world.create()
    for number in range(delivery.SLICE + 1):
        world.put(HOME, f"{number:04}")
    world.database.set_replication(paused=True)
    world.replicate(AWAY)
    world.put(HOME, "0001", "changed")
    world.database.close()
    world.open()
    assert world.describe(AWAY)["TableStatus"] == "ACTIVE"
    world.database.finish_maintenance()
    assert world.items(AWAY) == world.items(HOME)
    assert world.items(AWAY)["0001"] == "changed"
    world.close()


def test_two_processes_share_the_regions_of_a_file(tmp_path: Path, by_hand: None) -> None:
    world = World(tmp_path / "file.db")
    world.create()
    with isotone.open(world.path, clock=world.clock) as other:
        assert other.client().list_tables()["TableNames"] == ["tab"]
        world.replicate(AWAY)
        world.put(AWAY, "1", "x")
        assert other.client().scan(TableName="tab")["Count"] == 1
        away = other.in_region(AWAY).client()
        away.put_item(TableName="tab", Item={"p": {"S": "2"}, "v": {"S": "y"}})
    assert world.items(HOME) == world.items(AWAY) == {"1": "x", "2": "y"}
    world.close()


def test_a_refused_update_leaves_no_trace(world: World) -> None:
    world.create(attributes=G, GlobalSecondaryIndexes=[INDEX])
    before = world.describe()
    with pytest.raises(ApiError):
        world[HOME].update_table(
            TableName="tab",
            GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by_g"}}],
            ReplicaUpdates=[
                {"Create": {"RegionName": AWAY}},
                {"Delete": {"RegionName": THIRD}},
            ],
        )
    assert world.describe() == before
    world.put(HOME, "1", g={"S": "x"})
    world.replicate(AWAY)
    assert world.items(AWAY) == {"1": ""}


# Random histories


class Model:
    """What a replica would hold: naive, with a list of every write and its time."""

    def __init__(self) -> None:
        self.writes: dict[str, list[tuple[int, str, str | None, set[str]]]] = {}

    def write(self, time: int, region: str, key: str, value: str | None) -> None:
        self.writes.setdefault(key, []).append((time, region, value, {region}))

    def deliver(self) -> None:
        for writes in self.writes.values():
            for write in writes:
                write[3].update((HOME, AWAY, THIRD))

    def items(self, region: str) -> dict[str, str]:
        found = {}
        for key, writes in self.writes.items():
            seen = [write[:3] for write in writes if region in write[3]]
            if seen and max(seen, key=lambda write: write[:2])[2] is not None:
                found[key] = str(max(seen, key=lambda write: write[:2])[2])
        return found


ACTIONS = st.tuples(
    st.sampled_from(["put", "delete", "deliver"]),
    st.sampled_from([HOME, AWAY, THIRD]),
    st.sampled_from("abc"),
)


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(ACTIONS, max_size=30))
def test_replicas_agree_with_a_naive_model(actions: list[tuple[str, str, str]]) -> None:
    world, model = World(":memory:"), Model()
    world.create()
    world.replicate(AWAY, THIRD)
    for number, (action, region, key) in enumerate(actions):
        world.database.set_replication(paused=True)
        world.clock.advance(1)
        if action == "deliver":
            world.database.set_replication()
            world.database.finish_maintenance()
            model.deliver()
        elif action == "put":
            world.put(region, key, f"{number}")
            model.write(number, region, key, f"{number}")
        elif key in model.items(region):
            world.delete(region, key)
            model.write(number, region, key, None)
        for each in (HOME, AWAY, THIRD):
            assert world.items(each) == model.items(each)
    world.database.set_replication()
    world.database.finish_maintenance()
    model.deliver()
    assert world.items(HOME) == world.items(AWAY) == world.items(THIRD) == model.items(HOME)
    world.close()


# HTTP


def boto(url: str, region: str, service: str = "dynamodb") -> Any:
    return boto3.client(
        service,
        endpoint_url=url,
        region_name=region,
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )


@pytest.mark.parametrize("regions", [False, True])
def test_over_http_a_request_names_its_region_by_its_signature(
    regions: bool, tmp_path: Path
) -> None:
    with (
        isotone.open(tmp_path / "file.db", regions=regions) as database,
        running_server(database) as url,
    ):
        home, away = boto(url, HOME), boto(url, AWAY)
        home.create_table(
            TableName="tab",
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            KeySchema=key_schema("p"),
            BillingMode="PAY_PER_REQUEST",
        )
        assert away.list_tables()["TableNames"] == ([] if regions else ["tab"])
        create = [{"Create": {"RegionName": AWAY}}]
        home.update_table(TableName="tab", ReplicaUpdates=create)
        with replication(database, paused=True):
            home.put_item(TableName="tab", Item={"p": {"S": "1"}})
            away.put_item(TableName="tab", Item={"p": {"S": "2"}})
            assert home.scan(TableName="tab")["Items"] == [{"p": {"S": "1"}}]
            assert away.scan(TableName="tab")["Items"] == [{"p": {"S": "2"}}]
        assert home.scan(TableName="tab")["Count"] == away.scan(TableName="tab")["Count"] == 2
        streams = boto(url, AWAY, "dynamodbstreams").list_streams(TableName="tab")["Streams"]
        assert [each["StreamArn"].split(":")[3] for each in streams] == [AWAY]
