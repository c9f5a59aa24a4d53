"""Global tables of version 2017.11.29: equal tables joined over regions, their attributes and their settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.operations.conftest import key_schema

import isotone
from isotone.backends import embedded
from isotone.errors import ApiError, UsageError
from isotone.testing import replication

HOME, AWAY, THIRD = "us-east-1", "eu-west-1", "ap-south-1"
UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
INDEX: dict[str, Any] = {
    "IndexName": "by_g",
    "KeySchema": key_schema("g"),
    "Projection": {"ProjectionType": "ALL"},
    "ProvisionedThroughput": UNITS,
}


@pytest.fixture(params=["memory", "file"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[isotone.Database]:
    monkeypatch.setattr(embedded.Database, "_wake_if_wanted", lambda _: None)
    path = ":memory:" if request.param == "memory" else tmp_path / "file.db"
    clock = isotone.ManualClock(1_563_222_960.25)
    with isotone.open(path, clock=clock, regions=True, durability="none") as opened:
        yield opened
        assert opened.check() == []


def make(database: isotone.Database, *regions: str, name: str = "tab", **more: Any) -> None:
    attributes = [
        {"AttributeName": "p", "AttributeType": "S"},
        *({"AttributeName": "g", "AttributeType": "S"} for _ in more.get("indexes", ())),
    ]
    indexes = {"GlobalSecondaryIndexes": more.pop("indexes")} if "indexes" in more else {}
    for region in regions:
        database.region(region).client().create_table(
            TableName=name,
            **{
                "AttributeDefinitions": attributes,
                "KeySchema": key_schema("p"),
                "BillingMode": "PAY_PER_REQUEST",
                "StreamSpecification": {
                    "StreamEnabled": True,
                    "StreamViewType": "NEW_AND_OLD_IMAGES",
                },
                **indexes,
                **more,
            },
        )


def group(*regions: str) -> list[dict[str, str]]:
    return [{"RegionName": region} for region in regions]


def scan(database: isotone.Database, region: str) -> list[dict[str, Any]]:
    return list(database.region(region).client().scan(TableName="tab")["Items"])


def refused(client: Any, method: str, **request: Any) -> str:
    with pytest.raises(ApiError) as caught:
        getattr(client, method)(**request)
    return caught.value.code


def test_tables_are_joined_and_their_items_have_attributes_of_replication(
    database: isotone.Database,
) -> None:
    client = database.client()
    make(database, HOME, AWAY)
    answer = client.create_global_table(GlobalTableName="tab", ReplicationGroup=group(HOME, AWAY))[
        "GlobalTableDescription"
    ]
    assert answer["GlobalTableStatus"] == "CREATING"
    assert answer["GlobalTableArn"] == "arn:aws:dynamodb::000000000000:global-table/tab"
    for region in (HOME, AWAY):
        described = database.region(region).client().describe_global_table(GlobalTableName="tab")
        assert described["GlobalTableDescription"]["GlobalTableStatus"] == "ACTIVE"
        assert described["GlobalTableDescription"]["ReplicationGroup"] == group(HOME, AWAY)
    client.put_item(TableName="tab", Item={"p": {"S": "1"}})
    shown = {
        "p": {"S": "1"},
        "aws:rep:deleting": {"BOOL": False},
        "aws:rep:updatetime": {"N": "1563222960.25"},
        "aws:rep:updateregion": {"S": HOME},
    }
    assert scan(database, HOME) == scan(database, AWAY) == [shown]
    away = database.region(AWAY).client()
    away.update_item(
        TableName="tab",
        Key={"p": {"S": "1"}},
        UpdateExpression="SET v = :v",
        ExpressionAttributeValues={":v": {"S": "x"}},
    )
    (item,) = scan(database, HOME)
    assert (item["v"], item["aws:rep:updateregion"]) == ({"S": "x"}, {"S": AWAY})
    assert "GlobalTableVersion" not in client.describe_table(TableName="tab")["Table"]
    away.delete_item(TableName="tab", Key={"p": {"S": "1"}})
    assert scan(database, HOME) == scan(database, AWAY) == []


def test_the_last_writer_wins(database: isotone.Database) -> None:
    make(database, HOME, AWAY)
    client, away = database.client(), database.region(AWAY).client()
    client.create_global_table(GlobalTableName="tab", ReplicationGroup=group(HOME, AWAY))
    with replication(database, paused=True):
        away.put_item(TableName="tab", Item={"p": {"S": "1"}, "v": {"S": "first"}})
        client.put_item(TableName="tab", Item={"p": {"S": "1"}, "v": {"S": "same time"}})
    assert scan(database, HOME) == scan(database, AWAY)
    assert scan(database, AWAY)[0]["aws:rep:updateregion"] == {"S": max(HOME, AWAY)}


def test_regions_join_and_leave(database: isotone.Database) -> None:
    make(database, HOME, AWAY)
    client = database.client()
    client.create_global_table(GlobalTableName="tab", ReplicationGroup=group(HOME))

    def update(*updates: Any) -> list[str]:
        answer = client.update_global_table(
            GlobalTableName="tab",
            ReplicaUpdates=[{kind: {"RegionName": region}} for kind, region in updates],
        )
        replicas = answer["GlobalTableDescription"]["ReplicationGroup"]
        return [each["RegionName"] for each in replicas]

    assert update(("Create", AWAY)) == [HOME, AWAY]
    for updates, code in (
        ([("Create", AWAY)], "ReplicaAlreadyExistsException"),
        ([("Delete", THIRD)], "ReplicaNotFoundException"),
        ([("Create", THIRD)], "TableNotFoundException"),
        ([], "ValidationException"),
    ):
        with pytest.raises(ApiError) as caught:
            update(*updates)
        assert caught.value.code == code
    client.put_item(TableName="tab", Item={"p": {"S": "1"}})
    assert update(("Delete", AWAY)) == [HOME]
    client.delete_item(TableName="tab", Key={"p": {"S": "1"}})
    assert (scan(database, HOME), len(scan(database, AWAY))) == ([], 1)
    with pytest.raises(ApiError, match="must be empty"):
        update(("Create", AWAY))
    assert update(("Delete", HOME)) == []
    assert refused(client, "describe_global_table", GlobalTableName="tab") == (
        "GlobalTableNotFoundException"
    )
    assert client.list_tables()["TableNames"] == ["tab"]


def test_tables_that_are_not_equal_cannot_be_joined(database: isotone.Database) -> None:
    client = database.client()

    def join(*regions: str, name: str) -> str:
        return refused(
            client, "create_global_table", GlobalTableName=name, ReplicationGroup=group(*regions)
        )

    make(database, HOME, name="alone")
    assert join(HOME, AWAY, name="alone") == "TableNotFoundException"
    assert join(HOME, HOME, name="alone") == "ValidationException"
    assert join(name="alone") == "ValidationException"
    make(database, HOME, name="keys")
    make(database, AWAY, name="keys", KeySchema=key_schema("q"),
         AttributeDefinitions=[{"AttributeName": "q", "AttributeType": "S"}])  # fmt: skip
    assert join(HOME, AWAY, name="keys") == "ValidationException"
    make(database, HOME, name="silent", StreamSpecification={"StreamEnabled": False})
    assert join(HOME, name="silent") == "ValidationException"
    make(database, HOME, name="full")
    client.put_item(TableName="full", Item={"p": {"S": "1"}})
    assert join(HOME, name="full") == "ValidationException"
    make(database, HOME, name="joined")
    client.create_global_table(GlobalTableName="joined", ReplicationGroup=group(HOME))
    assert join(HOME, name="joined") == "GlobalTableAlreadyExistsException"
    create = [{"Create": {"RegionName": AWAY}}]
    code = refused(client, "update_table", TableName="joined", ReplicaUpdates=create)
    assert code == "ValidationException"


def test_global_tables_are_listed_in_pages(database: isotone.Database) -> None:
    client = database.client()
    for name, regions in (("bbb", (HOME, AWAY)), ("aaa", (AWAY,)), ("ccc", (HOME,))):
        make(database, *regions, name=name)
        client.create_global_table(GlobalTableName=name, ReplicationGroup=group(*regions))
    first = client.list_global_tables(Limit=2)
    assert [each["GlobalTableName"] for each in first["GlobalTables"]] == ["aaa", "bbb"]
    assert first["GlobalTables"][1]["ReplicationGroup"] == group(HOME, AWAY)
    rest = client.list_global_tables(
        ExclusiveStartGlobalTableName=first["LastEvaluatedGlobalTableName"]
    )
    assert [each["GlobalTableName"] for each in rest["GlobalTables"]] == ["ccc"]
    assert "LastEvaluatedGlobalTableName" not in rest
    away = client.list_global_tables(RegionName=AWAY)["GlobalTables"]
    assert [each["GlobalTableName"] for each in away] == ["aaa", "bbb"]


def test_settings_of_all_regions_and_of_one(database: isotone.Database) -> None:
    client = database.client()
    make(database, HOME, AWAY, BillingMode="PROVISIONED", ProvisionedThroughput=UNITS,
         indexes=[INDEX])  # fmt: skip
    client.create_global_table(GlobalTableName="tab", ReplicationGroup=group(HOME, AWAY))
    scaling = {"MinimumUnits": 1, "MaximumUnits": 9}
    client.update_global_table_settings(
        GlobalTableName="tab",
        GlobalTableProvisionedWriteCapacityUnits=20,
        GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate=scaling,
        GlobalTableGlobalSecondaryIndexSettingsUpdate=[
            {"IndexName": "by_g", "ProvisionedWriteCapacityUnits": 21}
        ],
        ReplicaSettingsUpdate=[
            {
                "RegionName": AWAY,
                "ReplicaProvisionedReadCapacityUnits": 30,
                "ReplicaTableClass": "STANDARD_INFREQUENT_ACCESS",
                "ReplicaGlobalSecondaryIndexSettingsUpdate": [
                    {"IndexName": "by_g", "ProvisionedReadCapacityUnits": 31}
                ],
            }
        ],
    )
    described = client.describe_global_table_settings(GlobalTableName="tab")["ReplicaSettings"]
    found = {
        each["RegionName"]: (
            each["ReplicaProvisionedReadCapacityUnits"],
            each["ReplicaProvisionedWriteCapacityUnits"],
            each["ReplicaProvisionedWriteCapacityAutoScalingSettings"]["MaximumUnits"],
            each["ReplicaGlobalSecondaryIndexSettings"][0]["ProvisionedReadCapacityUnits"],
            each["ReplicaGlobalSecondaryIndexSettings"][0]["ProvisionedWriteCapacityUnits"],
            "ReplicaTableClassSummary" in each,
        )
        for each in described
    }
    assert found == {HOME: (5, 20, 9, 5, 21, False), AWAY: (30, 20, 9, 31, 21, True)}
    client.update_global_table_settings(
        GlobalTableName="tab", GlobalTableBillingMode="PAY_PER_REQUEST"
    )
    for region in (HOME, AWAY):
        table = database.region(region).client().describe_table(TableName="tab")["Table"]
        assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_settings_of_what_is_missing_are_refused(database: isotone.Database) -> None:
    client = database.client()
    for method in ("describe_global_table_settings", "update_global_table_settings"):
        assert refused(client, method, GlobalTableName="tab") == "GlobalTableNotFoundException"
    make(database, HOME)
    client.create_global_table(GlobalTableName="tab", ReplicationGroup=group(HOME))
    for more, code in (
        ({"ReplicaSettingsUpdate": [{"RegionName": AWAY}]}, "ReplicaNotFoundException"),
        (
            {"GlobalTableGlobalSecondaryIndexSettingsUpdate": [{"IndexName": "none"}]},
            "IndexNotFoundException",
        ),
        ({"GlobalTableProvisionedWriteCapacityUnits": 1}, "ValidationException"),
        ({"GlobalTableBillingMode": "PROVISIONED"}, "ValidationException"),
    ):
        code_ = refused(client, "update_global_table_settings", GlobalTableName="tab", **more)
        assert code_ == code


@pytest.mark.parametrize("lag", [-1, float("nan"), float("inf"), 1e305, "5"])
def test_a_lag_that_cannot_be_waited_for_is_refused(lag: Any) -> None:
    with isotone.open() as database:
        with pytest.raises(UsageError, match="is not a number of seconds from 0 to 1e9"):
            database.set_replication(lag=lag)
        assert database.replication == (0.0, False)
