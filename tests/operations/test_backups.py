"""Backups through the API: what is in one, what a restored table has, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone.backends import embedded
from isotone.engine import backups, restores

LARGE = 2 * backups.SLICE + 3  # items of a table whose backup is made in several slices
INDEXES: dict[str, Any] = {
    "types": {"g": "S", "l": "N"},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_g",
            "KeySchema": key_schema("g", "s"),
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by_l",
            "KeySchema": key_schema("p", "l"),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]},
        }
    ],
}


@pytest.fixture(params=["memory", "file"])
def ask(request: pytest.FixtureRequest, tmp_path: Path, by_hand: None) -> Iterator[Asker]:
    """Like the common one, on both stores; nothing happens in the background by itself."""
    clock = isotone.ManualClock()
    path = ":memory:" if request.param == "memory" else tmp_path / "file.db"
    with isotone.open(path, clock=clock, durability="none") as database:
        yield Asker(database, clock)
        assert database.check() == []


def item(number: int, **more: Any) -> dict[str, Any]:
    return {
        "p": {"S": f"p{number % 7}"},
        "s": {"S": f"s{number:05}"},
        "g": {"S": f"g{number % 3}"},
        "l": {"N": str(number % 11)},
        "x": {"S": "x" * (number % 50)},
        **more,
    }


def fill(ask: Asker, count: int) -> None:
    for first in range(0, count, 25):
        puts = [{"PutRequest": {"Item": item(n)}} for n in range(first, min(first + 25, count))]
        ask("BatchWriteItem", RequestItems={"tab": puts})


def items_of(ask: Asker, table: str = "tab", **more: Any) -> list[dict[str, Any]]:
    """All items of a table or an index, in order."""
    found: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = ask("Scan", TableName=table, **start, **more)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def back_up(ask: Asker, name: str = "copy", table: str = "tab") -> str:
    arn: str = ask("CreateBackup", TableName=table, BackupName=name)["BackupDetails"]["BackupArn"]
    return arn


def describe(ask: Asker, arn: str) -> dict[str, Any]:
    described: dict[str, Any] = ask("DescribeBackup", BackupArn=arn)["BackupDescription"]
    return described


def status(ask: Asker, arn: str) -> str:
    return str(describe(ask, arn)["BackupDetails"]["BackupStatus"])


def restore(ask: Asker, arn: str, table: str = "again", **overrides: Any) -> dict[str, Any]:
    answer = ask("RestoreTableFromBackup", TargetTableName=table, BackupArn=arn, **overrides)
    ask.database.finish_maintenance()
    return dict(answer["TableDescription"])


def listed(ask: Asker, **request: Any) -> list[str]:
    return [each["BackupName"] for each in ask("ListBackups", **request)["BackupSummaries"]]


def test_a_backup_has_the_items_and_indexes_of_its_table(ask: Asker) -> None:
    ask.table(keys="p s", **INDEXES)
    fill(ask, 40)
    before = [items_of(ask), items_of(ask, IndexName="by_g"), items_of(ask, IndexName="by_l")]
    arn = back_up(ask)
    ask("DeleteItem", TableName="tab", Key={"p": {"S": "p0"}, "s": {"S": "s00000"}})
    ask("PutItem", TableName="tab", Item=item(1, x={"S": "changed"}))
    described = restore(ask, arn)
    assert described["TableStatus"] == "CREATING"
    assert described["GlobalSecondaryIndexes"][0]["IndexStatus"] == "CREATING"
    after = [
        items_of(ask, "again", **more)
        for more in ({}, {"IndexName": "by_g"}, {"IndexName": "by_l"})
    ]
    assert after == before


@pytest.mark.parametrize("deleted", [True, False])
def test_a_backup_outlives_its_table(ask: Asker, deleted: bool) -> None:
    ask.table(keys="p s")
    fill(ask, 3)
    arn = back_up(ask)
    before = items_of(ask)
    if deleted:
        ask("DeleteTable", TableName="tab")
        restore(ask, arn, "tab")
        assert items_of(ask) == before
    else:
        error = ask.refused("RestoreTableFromBackup", TargetTableName="tab", BackupArn=arn)
        assert (error.code, error.message) == (
            "TableAlreadyExistsException",
            "Table already exists: tab",
        )


def test_a_description_has_what_the_model_names(ask: Asker) -> None:
    ask.table(
        keys="p s",
        **INDEXES,
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        SSESpecification={"Enabled": True},
    )
    expiry = {"AttributeName": "until", "Enabled": True}
    ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=expiry)
    fill(ask, 2)
    table = ask("DescribeTable", TableName="tab")["Table"]
    ask.clock.advance(60)
    arn = back_up(ask)
    details = describe(ask, arn)["BackupDetails"]
    assert details == {
        "BackupArn": arn,
        "BackupName": "copy",
        "BackupSizeBytes": table["TableSizeBytes"],
        "BackupStatus": "AVAILABLE",
        "BackupType": "USER",
        "BackupCreationDateTime": ask.clock.now(),
    }
    assert arn.startswith("arn:aws:dynamodb:us-east-1:000000000000:table/tab/backup/0170000006000")
    source = describe(ask, arn)["SourceTableDetails"]
    assert source == {
        "TableName": "tab",
        "TableId": table["TableId"],
        "TableArn": table["TableArn"],
        "TableSizeBytes": table["TableSizeBytes"],
        "KeySchema": table["KeySchema"],
        "TableCreationDateTime": table["CreationDateTime"],
        "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
        "ItemCount": 2,
        "BillingMode": "PAY_PER_REQUEST",
    }
    features = describe(ask, arn)["SourceTableFeatureDetails"]
    assert features["StreamDescription"] == {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    assert features["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "until",
    }
    assert features["SSEDescription"]["Status"] == "ENABLED"
    assert features["LocalSecondaryIndexes"][0]["IndexName"] == "by_l"
    assert features["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == {
        "ReadCapacityUnits": 0,
        "WriteCapacityUnits": 0,
    }


def test_settings_that_are_not_restored(ask: Asker) -> None:
    ask.table(
        Tags=[{"Key": "team", "Value": "music"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        DeletionProtectionEnabled=True,
        TableClass="STANDARD_INFREQUENT_ACCESS",
        SSESpecification={"Enabled": True},
    )
    expiry = {"AttributeName": "until", "Enabled": True}
    ask("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=expiry)
    recovery = {"PointInTimeRecoveryEnabled": True}
    ask("UpdateContinuousBackups", TableName="tab", PointInTimeRecoverySpecification=recovery)
    arn = back_up(ask)
    restore(ask, arn)
    table = ask("DescribeTable", TableName="again")["Table"]
    assert table["TableStatus"] == "ACTIVE"
    assert "StreamSpecification" not in table
    assert not table["DeletionProtectionEnabled"]
    assert table["TableClassSummary"] == {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
    assert table["SSEDescription"]["Status"] == "ENABLED"
    assert ask("ListTagsOfResource", ResourceArn=table["TableArn"])["Tags"] == []
    expiry_now = ask("DescribeTimeToLive", TableName="again")["TimeToLiveDescription"]
    assert expiry_now == {"TimeToLiveStatus": "DISABLED"}
    continuous = ask("DescribeContinuousBackups", TableName="again")["ContinuousBackupsDescription"]
    assert continuous["PointInTimeRecoveryDescription"] == {"PointInTimeRecoveryStatus": "DISABLED"}
    assert table["RestoreSummary"] == {
        "SourceBackupArn": arn,
        "SourceTableArn": table["TableArn"].replace("again", "tab"),
        "RestoreDateTime": ask.clock.now(),
        "RestoreInProgress": False,
    }


# Large tables are copied in slices


def test_writers_go_on_while_a_large_table_is_backed_up(ask: Asker) -> None:
    ask.table(keys="p s", **INDEXES)
    fill(ask, LARGE)
    before = items_of(ask)
    arn = back_up(ask)
    assert status(ask, arn) == "CREATING"
    assert describe(ask, arn)["SourceTableDetails"]["ItemCount"] == LARGE
    for number in range(0, LARGE, 3):
        ask("DeleteItem", TableName="tab", Key={n: item(number)[n] for n in "ps"})
        ask("PutItem", TableName="tab", Item=item(number + 1, x={"S": "new"}))
        ask("PutItem", TableName="tab", Item=item(number + LARGE))
        if number % 400 == 0:
            ask.database.maintain()
    ask.database.finish_maintenance()
    assert status(ask, arn) == "AVAILABLE"
    restore(ask, arn)
    assert items_of(ask, "again") == before


def test_a_table_and_a_backup_are_in_use_while_they_are_copied(ask: Asker) -> None:
    ask.table(keys="p s")
    fill(ask, LARGE)
    arn = back_up(ask)
    for operation, request, code in (
        ("DeleteTable", {"TableName": "tab"}, "ResourceInUseException"),
        ("DeleteBackup", {"BackupArn": arn}, "BackupInUseException"),
        (
            "RestoreTableFromBackup",
            {"TargetTableName": "again", "BackupArn": arn},
            "BackupInUseException",
        ),
    ):
        assert ask.refused(operation, **request).code == code
    ask.database.finish_maintenance()
    ask("DeleteTable", TableName="tab")
    ask("RestoreTableFromBackup", TargetTableName="again", BackupArn=arn)
    assert ask.refused("DeleteBackup", BackupArn=arn).code == "BackupInUseException"
    ask.database.finish_maintenance()
    deleted = ask("DeleteBackup", BackupArn=arn)["BackupDescription"]
    assert deleted["BackupDetails"]["BackupStatus"] == "DELETED"
    for operation in ("DescribeBackup", "DeleteBackup"):
        error = ask.refused(operation, BackupArn=arn)
        assert (error.code, error.message) == (
            "BackupNotFoundException",
            f"Backup not found: {arn}",
        )
    assert len(items_of(ask, "again")) == LARGE


def test_a_table_that_is_being_restored_cannot_be_used(ask: Asker) -> None:
    ask.table(keys="p s", **INDEXES)
    fill(ask, LARGE)
    arn = back_up(ask)
    ask.database.finish_maintenance()
    ask("RestoreTableFromBackup", TargetTableName="again", BackupArn=arn)
    table = ask("DescribeTable", TableName="again")["Table"]
    assert table["TableStatus"] == "CREATING"
    assert table["RestoreSummary"]["RestoreInProgress"]
    assert ask("ListTables")["TableNames"] == ["again", "tab"]
    assert ask.database.check() == []
    key = {"p": {"S": "a"}, "s": {"S": "b"}}
    recovery = {"PointInTimeRecoveryEnabled": True}
    for operation, request, code in (
        ("GetItem", {"Key": key}, "ResourceNotFoundException"),
        ("PutItem", {"Item": key}, "ResourceNotFoundException"),
        ("Scan", {}, "ResourceNotFoundException"),
        ("DeleteTable", {}, "ResourceInUseException"),
        ("UpdateTable", {"DeletionProtectionEnabled": True}, "ResourceInUseException"),
        ("CreateBackup", {"BackupName": "copy"}, "TableInUseException"),
        (
            "UpdateContinuousBackups",
            {"PointInTimeRecoverySpecification": recovery},
            "ContinuousBackupsUnavailableException",
        ),
    ):
        assert ask.refused(operation, TableName="again", **request).code == code, operation
    refused = ask.refused("RestoreTableFromBackup", TargetTableName="again", BackupArn=arn)
    assert refused.code == "TableInUseException"
    ask.database.finish_maintenance()
    assert ask("DescribeTable", TableName="again")["Table"]["TableStatus"] == "ACTIVE"
    ask("PutItem", TableName="again", Item=key)


def test_at_most_fifty_tables_are_restored_at_once(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask.table(keys="p s")
    fill(ask, 3)
    arn = back_up(ask)
    monkeypatch.setattr(restores, "SLICE", 1)
    for number in range(50):
        ask("RestoreTableFromBackup", TargetTableName=f"again{number}", BackupArn=arn)
    refused = ask.refused("RestoreTableFromBackup", TargetTableName="again", BackupArn=arn)
    assert refused.code == "LimitExceededException"
    ask.database.finish_maintenance()
    assert len(items_of(ask, "again49")) == 3


# Overrides


def provisioned(read: int, write: int) -> dict[str, int]:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def test_the_throughput_of_a_restored_table(ask: Asker) -> None:
    index = {**INDEXES["GlobalSecondaryIndexes"][0], "ProvisionedThroughput": provisioned(3, 4)}
    ask.table(
        keys="p s",
        types={"g": "S"},
        BillingMode="PROVISIONED",
        ProvisionedThroughput=provisioned(1, 2),
        GlobalSecondaryIndexes=[index],
    )
    arn = back_up(ask)

    def units(**overrides: Any) -> list[tuple[int, int]]:
        table = restore(ask, arn, f"again{len(ask('ListTables')['TableNames'])}", **overrides)
        throughputs = [table, *table["GlobalSecondaryIndexes"]]
        return [
            (part["ProvisionedThroughput"]["ReadCapacityUnits"],
             part["ProvisionedThroughput"]["WriteCapacityUnits"])
            for part in throughputs
        ]  # fmt: skip

    assert units() == [(1, 2), (3, 4)]
    assert units(ProvisionedThroughputOverride=provisioned(5, 6)) == [(5, 6), (3, 4)]
    wanted = {**index, "ProvisionedThroughput": provisioned(7, 8)}
    assert units(GlobalSecondaryIndexOverride=[wanted]) == [(1, 2), (7, 8)]
    assert units(BillingModeOverride="PAY_PER_REQUEST") == [(0, 0), (0, 0)]


def test_indexes_may_be_left_out(ask: Asker) -> None:
    ask.table(keys="p s", **INDEXES)
    fill(ask, 3)
    arn = back_up(ask)
    restored = restore(
        ask, arn, "none", LocalSecondaryIndexOverride=[], GlobalSecondaryIndexOverride=[]
    )
    assert not {"LocalSecondaryIndexes", "GlobalSecondaryIndexes"} & restored.keys()
    assert [each["AttributeName"] for each in restored["AttributeDefinitions"]] == ["p", "s"]
    local = INDEXES["LocalSecondaryIndexes"]
    restored = restore(
        ask, arn, "local", LocalSecondaryIndexOverride=local, GlobalSecondaryIndexOverride=[]
    )
    assert restored["LocalSecondaryIndexes"][0]["Projection"] == local[0]["Projection"]
    assert len(items_of(ask, "local", IndexName="by_l")) == 3


@pytest.mark.parametrize(
    "overrides",
    [
        {"GlobalSecondaryIndexOverride": [{**INDEXES["GlobalSecondaryIndexes"][0], "IndexName": "other"}]},
        {"GlobalSecondaryIndexOverride": [{**INDEXES["GlobalSecondaryIndexes"][0], "KeySchema": key_schema("g")}]},
        {"GlobalSecondaryIndexOverride": INDEXES["GlobalSecondaryIndexes"] * 2},
        {"LocalSecondaryIndexOverride": INDEXES["GlobalSecondaryIndexes"]},
        {"BillingModeOverride": "PROVISIONED"},
        {"BillingModeOverride": "PROVISIONED", "ProvisionedThroughputOverride": provisioned(1, 1)},
        {"BillingModeOverride": "PAY_PER_REQUEST", "ProvisionedThroughputOverride": provisioned(1, 1)},
        {"BillingModeOverride": "FREE"},
        {"ProvisionedThroughputOverride": provisioned(0, 1)},
    ],
)  # fmt: skip
def test_overrides_that_do_not_fit_the_source_are_refused(
    ask: Asker, overrides: dict[str, Any]
) -> None:
    ask.table(keys="p s", **INDEXES)
    arn = back_up(ask)
    request = {"TargetTableName": "again", "BackupArn": arn, **overrides}
    assert ask.refused("RestoreTableFromBackup", **request).code == "ValidationException"
    assert ask("ListTables")["TableNames"] == ["tab"]


# Lists


def test_backups_are_listed_by_time_and_by_table(ask: Asker) -> None:
    ask.table("tab")
    ask.table("other")
    names = ["one", "two", "three", "four"]
    arns = []
    for number, name in enumerate(names):
        ask.clock.advance(10)
        arns.append(back_up(ask, name, ["tab", "other"][number % 2]))
    now = ask.clock.now()
    assert listed(ask) == names
    assert listed(ask, TableName="tab") == ["one", "three"]
    assert listed(ask, TableName="arn:aws:dynamodb:us-east-1:000000000000:table/other") == [
        "two",
        "four",
    ]
    assert listed(ask, TimeRangeLowerBound=now - 20, TimeRangeUpperBound=now) == ["two", "three"]
    assert listed(ask, BackupType="SYSTEM") == []
    assert listed(ask, BackupType="AWS_BACKUP") == []
    first = ask("ListBackups", Limit=3)
    assert [each["BackupName"] for each in first["BackupSummaries"]] == names[:3]
    last = ask("ListBackups", ExclusiveStartBackupArn=first["LastEvaluatedBackupArn"])
    assert [each["BackupName"] for each in last["BackupSummaries"]] == names[3:]
    assert "LastEvaluatedBackupArn" not in last
    summary = first["BackupSummaries"][0]
    assert summary["TableArn"].endswith("table/tab")
    assert summary["BackupArn"] == arns[0]


def test_a_deleted_table_with_recovery_leaves_a_system_backup(ask: Asker) -> None:
    ask.table(keys="p s", **INDEXES)
    recovery = {"PointInTimeRecoveryEnabled": True}
    ask("UpdateContinuousBackups", TableName="tab", PointInTimeRecoverySpecification=recovery)
    fill(ask, LARGE)
    before = items_of(ask)
    ask("DeleteTable", TableName="tab")
    assert listed(ask) == []
    (summary,) = ask("ListBackups", BackupType="SYSTEM", TableName="tab")["BackupSummaries"]
    assert summary["BackupName"] == "tab$DeletedTableBackup"
    assert summary["BackupType"] == "SYSTEM"
    assert summary["BackupExpiryDateTime"] == ask.clock.now() + 35 * 24 * 3600
    restore(ask, summary["BackupArn"], "tab")
    assert items_of(ask) == before
    ask.clock.advance(timedelta(days=34))
    ask.database.finish_maintenance()
    assert listed(ask, BackupType="ALL") == ["tab$DeletedTableBackup"]
    ask.clock.advance(timedelta(days=1))
    ask.database.finish_maintenance()
    assert listed(ask, BackupType="ALL") == []
    assert items_of(ask) == before


# Refusals


@pytest.mark.parametrize(
    ("operation", "request_", "code", "message"),
    [
        ("CreateBackup", {"TableName": "tab"}, "ValidationException", "backupName"),
        ("CreateBackup", {"TableName": "tab", "BackupName": "no"}, "ValidationException", "'no'"),
        ("CreateBackup", {"TableName": "none", "BackupName": "copy"}, "TableNotFoundException", "Table not found: none"),
        ("DescribeBackup", {"BackupArn": "short"}, "ValidationException", "37"),
        ("DescribeBackup", {"BackupArn": "a" * 37}, "BackupNotFoundException", "Backup not found: aaa"),
        ("DeleteBackup", {}, "ValidationException", "backupArn"),
        ("ListBackups", {"Limit": 101}, "ValidationException", "100"),
        ("ListBackups", {"BackupType": "MINE"}, "ValidationException", "enum"),
        ("ListBackups", {"TimeRangeLowerBound": "today"}, "SerializationException", "STRING_VALUE"),
        ("RestoreTableFromBackup", {"TargetTableName": "again"}, "ValidationException", "backupArn"),
        ("RestoreTableFromBackup", {"TargetTableName": "tab", "BackupArn": "a" * 37}, "BackupNotFoundException", "Backup not found"),
    ],
)  # fmt: skip
def test_bad_requests_are_refused(
    ask: Asker, operation: str, request_: dict[str, Any], code: str, message: str
) -> None:
    ask.table()
    error = ask.refused(operation, **request_)
    assert error.code == code
    assert message in error.message


def test_an_arn_of_another_table_names_no_backup(ask: Asker) -> None:
    ask.table()
    arn = back_up(ask).replace("table/tab", "table/other")
    assert ask.refused("DescribeBackup", BackupArn=arn).code == "BackupNotFoundException"


# Random histories


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 40)),
            st.tuples(st.just("delete"), st.integers(0, 40)),
            st.just(("maintain", 0)),
            st.just(("backup", 0)),
        ),
        max_size=80,
    ),
    st.integers(1, 9),
)
def test_a_backup_is_the_table_at_its_instant(steps: list[tuple[str, int]], size: int) -> None:
    """Backups in slices of a few items, beside writes; the oracle copies a dict."""
    with pytest.MonkeyPatch.context() as patch, isotone.open() as database:
        patch.setattr(embedded.Database, "_wake_if_wanted", lambda _: None)
        patch.setattr(backups, "SLICE", size)
        patch.setattr(restores, "SLICE", size)
        ask = Asker(database, isotone.ManualClock())
        ask.table(keys="p s", **INDEXES)
        expected: dict[str, list[dict[str, Any]]] = {}
        present: dict[int, dict[str, Any]] = {}
        for key in range(0, 40, 2):
            put(ask, present, key, -1)
        run: dict[str, Callable[[int, int], object]] = {
            "put": lambda place, key: put(ask, present, key, place),
            "delete": lambda place, key: remove(ask, present, key),
            "maintain": lambda place, key: database.maintain(),
            "backup": lambda place, key: expected.update({back_up(ask): [*present.values()]}),
        }
        for place, (kind, key) in enumerate(steps):
            run[kind](place, key)
        database.finish_maintenance()
        for number, (arn, wanted) in enumerate(expected.items()):
            restore(ask, arn, f"again{number}")
            assert sorted(map(str, items_of(ask, f"again{number}"))) == sorted(map(str, wanted))
        assert database.check() == []


def put(ask: Asker, present: dict[int, dict[str, Any]], key: int, place: int) -> None:
    present[key] = item(key, x={"S": str(place)})
    ask("PutItem", TableName="tab", Item=present[key])


def remove(ask: Asker, present: dict[int, dict[str, Any]], key: int) -> None:
    present.pop(key, None)
    ask("DeleteItem", TableName="tab", Key={name: item(key)[name] for name in "ps"})
