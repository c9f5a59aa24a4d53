"""Tables in several regions: replicas, and global tables of version 2017.11.29."""

from __future__ import annotations

from tests.operations.session.player import (
    AWAY,
    HOME,
    KEY,
    MOST,
    NO_SCALING,
    STREAM,
    UNITS,
    VALUES,
    Player,
    index,
    scaled,
    scaling,
)


def replicas(play: Player) -> None:
    play.table(
        types={"g": "S"},
        GlobalSecondaryIndexes=[index("global", "g", OnDemandThroughput=MOST)],
        StreamSpecification=STREAM,
        OnDemandThroughput=MOST,
        SSESpecification=KEY,
    )
    create = {
        "RegionName": AWAY,
        "KMSMasterKeyId": "alias/theirs",
        "OnDemandThroughputOverride": {"MaxReadRequestUnits": 11},
        "GlobalSecondaryIndexes": [
            {"IndexName": "global", "OnDemandThroughputOverride": {"MaxReadRequestUnits": 12}}
        ],
        "TableClassOverride": "STANDARD_INFREQUENT_ACCESS",
    }
    play("UpdateTable", TableName="tab", ReplicaUpdates=[{"Create": create}])
    play.work()
    play("DescribeTable", TableName="tab")
    play("PutItem", TableName="tab", Item=VALUES)
    play.away("Scan", TableName="tab")
    update = {
        "RegionName": AWAY,
        "KMSMasterKeyId": "alias/others",
        "OnDemandThroughputOverride": {"MaxReadRequestUnits": 13},
        "GlobalSecondaryIndexes": [
            {"IndexName": "global", "OnDemandThroughputOverride": {"MaxReadRequestUnits": 14}}
        ],
        "TableClassOverride": "STANDARD",
    }
    play.away("DescribeTable", TableName="tab")
    play("UpdateTable", TableName="tab", ReplicaUpdates=[{"Update": update}])
    play("DescribeTable", TableName="tab")
    play.away("DescribeTable", TableName="tab")
    play("UpdateTable", TableName="tab", ReplicaUpdates=[{"Delete": {"RegionName": AWAY}}])
    play("DescribeTable", TableName="tab")


def provisioned_replicas(play: Player) -> None:
    play.table(
        types={"g": "S"},
        GlobalSecondaryIndexes=[index("global", "g", ProvisionedThroughput=UNITS)],
        StreamSpecification=STREAM,
        BillingMode="PROVISIONED",
        ProvisionedThroughput=UNITS,
    )
    play("UpdateTableReplicaAutoScaling", **scaled(scaling(4)))
    for kind, units in (("Create", 11), ("Update", 12)):
        overrides = {
            "RegionName": AWAY,
            "ProvisionedThroughputOverride": {"ReadCapacityUnits": units},
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "global",
                    "ProvisionedThroughputOverride": {"ReadCapacityUnits": units + 10},
                }
            ],
        }
        play("UpdateTable", TableName="tab", ReplicaUpdates=[{kind: overrides}])
        play.work()
        play("DescribeTable", TableName="tab")
        play.away("DescribeTable", TableName="tab")


def strong_replicas(play: Player) -> None:
    play.table()
    third = {"RegionName": "us-west-2"}
    play(
        "UpdateTable",
        TableName="tab",
        ReplicaUpdates=[{"Create": {"RegionName": "us-east-2"}}],
        MultiRegionConsistency="STRONG",
        GlobalTableWitnessUpdates=[{"Create": third}],
    )
    play.work()
    play("DescribeTable", TableName="tab")
    play(
        "UpdateTable",
        TableName="tab",
        ReplicaUpdates=[{"Delete": {"RegionName": "us-east-2"}}],
        GlobalTableWitnessUpdates=[{"Delete": third}],
    )
    play("DescribeTable", TableName="tab")


def global_tables(play: Player) -> None:
    by_g = index("global", "g", ProvisionedThroughput=UNITS)
    for call in (play, play.away):
        for name in ("tab", "tac"):
            play.table(
                name,
                call=call,
                types={"g": "S"},
                GlobalSecondaryIndexes=[by_g],
                StreamSpecification=STREAM,
                BillingMode="PROVISIONED",
                ProvisionedThroughput=UNITS,
            )
    group = [{"RegionName": HOME}, {"RegionName": AWAY}]
    play("CreateGlobalTable", GlobalTableName="tab", ReplicationGroup=group)
    play("CreateGlobalTable", GlobalTableName="tac", ReplicationGroup=group[:1])
    play("DescribeGlobalTable", GlobalTableName="tab")
    last = play("ListGlobalTables", Limit=1)["LastEvaluatedGlobalTableName"]
    play("ListGlobalTables", ExclusiveStartGlobalTableName=last)
    play("ListGlobalTables", RegionName=AWAY)
    create, delete = ({kind: {"RegionName": AWAY}} for kind in ("Create", "Delete"))
    play("UpdateGlobalTable", GlobalTableName="tac", ReplicaUpdates=[create])
    play("UpdateGlobalTable", GlobalTableName="tac", ReplicaUpdates=[delete])
    play("PutItem", TableName="tab", Item=VALUES)
    play.away("Scan", TableName="tab")
    play("DescribeGlobalTableSettings", GlobalTableName="tab")
    play(
        "UpdateGlobalTableSettings",
        GlobalTableName="tab",
        GlobalTableProvisionedWriteCapacityUnits=31,
        GlobalTableGlobalSecondaryIndexSettingsUpdate=[
            {"IndexName": "global", "ProvisionedWriteCapacityUnits": 32}
        ],
        ReplicaSettingsUpdate=[
            {
                "RegionName": AWAY,
                "ReplicaProvisionedReadCapacityUnits": 33,
                "ReplicaGlobalSecondaryIndexSettingsUpdate": [
                    {"IndexName": "global", "ProvisionedReadCapacityUnits": 34}
                ],
                "ReplicaTableClass": "STANDARD_INFREQUENT_ACCESS",
            }
        ],
    )
    play("DescribeGlobalTableSettings", GlobalTableName="tab")
    play(
        "UpdateGlobalTableSettings",
        GlobalTableName="tab",
        GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate=scaling(4),
        GlobalTableGlobalSecondaryIndexSettingsUpdate=[
            {
                "IndexName": "global",
                "ProvisionedWriteCapacityAutoScalingSettingsUpdate": scaling(5),
            }
        ],
        ReplicaSettingsUpdate=[
            {
                "RegionName": AWAY,
                "ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate": scaling(6),
                "ReplicaGlobalSecondaryIndexSettingsUpdate": [
                    {
                        "IndexName": "global",
                        "ProvisionedReadCapacityAutoScalingSettingsUpdate": scaling(7),
                    }
                ],
            }
        ],
    )
    play("DescribeGlobalTableSettings", GlobalTableName="tab")
    play(
        "UpdateGlobalTableSettings",
        GlobalTableName="tab",
        GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate=NO_SCALING,
        GlobalTableGlobalSecondaryIndexSettingsUpdate=[
            {
                "IndexName": "global",
                "ProvisionedWriteCapacityAutoScalingSettingsUpdate": NO_SCALING,
            }
        ],
        ReplicaSettingsUpdate=[
            {
                "RegionName": AWAY,
                "ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate": NO_SCALING,
                "ReplicaGlobalSecondaryIndexSettingsUpdate": [
                    {
                        "IndexName": "global",
                        "ProvisionedReadCapacityAutoScalingSettingsUpdate": NO_SCALING,
                    }
                ],
            }
        ],
    )
    play("DescribeGlobalTableSettings", GlobalTableName="tab")
    billing = {"GlobalTableBillingMode": "PAY_PER_REQUEST"}
    play("UpdateGlobalTableSettings", GlobalTableName="tab", **billing)
    play("DescribeGlobalTableSettings", GlobalTableName="tab")
