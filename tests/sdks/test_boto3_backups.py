"""Backups and recovery over HTTP with boto3, beside a writer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.sdks import orders
from tests.sdks.orders import natural_item, order, wire_item

FAST = {"Delay": 0.05, "MaxAttempts": 400}
RESTORED = 2_000  # items of a table that is copied in several slices


def content(client: Any, table: str, **more: Any) -> list[dict[str, Any]]:
    pages = client.get_paginator("scan").paginate(TableName=table, **more)
    return [natural_item(item) for page in pages for item in page["Items"]]


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(400):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it took too long")


def is_available(client: Any, arn: str) -> bool:
    described = client.describe_backup(BackupArn=arn)["BackupDescription"]
    return bool(described["BackupDetails"]["BackupStatus"] == "AVAILABLE")


def test_a_backup_from_its_birth_to_its_end(client: Any, table: str) -> None:
    before = content(client, table)
    made = client.create_backup(TableName=table, BackupName="nightly")["BackupDetails"]
    arn = made["BackupArn"]
    assert made["BackupStatus"] == "CREATING"
    assert isinstance(made["BackupCreationDateTime"], datetime)
    wait_until(lambda: is_available(client, arn))
    key = orders.key(order(1))
    client.delete_item(TableName=table, Key=wire_item(key))
    pages = client.get_paginator("list_backups").paginate(TableName=table)
    (summary,) = [each for page in pages for each in page["BackupSummaries"]]
    assert (summary["BackupName"], summary["BackupSizeBytes"]) == (
        "nightly",
        made["BackupSizeBytes"],
    )
    target = f"{table}-restored"
    client.restore_table_from_backup(TargetTableName=target, BackupArn=arn)
    client.get_waiter("table_exists").wait(TableName=target, WaiterConfig=FAST)
    assert content(client, target) == before
    with pytest.raises(client.exceptions.TableAlreadyExistsException):
        client.restore_table_from_backup(TargetTableName=target, BackupArn=arn)
    wait_until(lambda: client.delete_backup(BackupArn=arn) is not None)
    for call in (client.describe_backup, client.delete_backup):
        with pytest.raises(client.exceptions.BackupNotFoundException) as refused:
            call(BackupArn=arn)
        assert refused.value.response["Error"]["Message"] == f"Backup not found: {arn}"
    with pytest.raises(client.exceptions.TableNotFoundException):
        client.create_backup(TableName="none", BackupName="nightly")


def test_a_table_as_it_was_before_a_mistake(client: Any, table: str) -> None:
    with pytest.raises(client.exceptions.PointInTimeRecoveryUnavailableException):
        client.restore_table_to_point_in_time(
            SourceTableName=table, TargetTableName="again", UseLatestRestorableTime=True
        )
    client.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    time.sleep(1.1)
    before, moment = content(client, table), datetime.now(UTC)
    time.sleep(1.1)
    for item in orders.ORDERS:
        client.delete_item(TableName=table, Key=wire_item(orders.key(item)))
    target = f"{table}-before"
    client.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName=target, RestoreDateTime=moment
    )
    client.get_waiter("table_exists").wait(TableName=target, WaiterConfig=FAST)
    assert content(client, target) == before
    described = client.describe_continuous_backups(TableName=table)
    recovery = described["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert recovery["EarliestRestorableDateTime"] < moment < recovery["LatestRestorableDateTime"]
    with pytest.raises(client.exceptions.InvalidRestoreTimeException):
        client.restore_table_to_point_in_time(
            SourceTableName=table,
            TargetTableName="again",
            RestoreDateTime=datetime(2020, 1, 1, tzinfo=UTC),
        )


def test_a_backup_beside_writers_has_none_of_what_they_write(client: Any, name: str) -> None:
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for first in range(0, RESTORED, 25):
        puts = [
            {"PutRequest": {"Item": {"p": {"S": str(number)}, "v": {"N": "0"}}}}
            for number in range(first, first + 25)
        ]
        client.batch_write_item(RequestItems={name: puts})
    started, stop = threading.Event(), threading.Event()
    arns: list[str] = []

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 7
            item = {"p": {"S": str(number % (RESTORED * 2))}, "v": {"N": str(number)}}
            client.put_item(TableName=name, Item=item)
            started.set()

    arns.append(
        client.create_backup(TableName=name, BackupName="beside")["BackupDetails"]["BackupArn"]
    )
    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    assert started.wait(10)
    wait_until(lambda: is_available(client, arns[0]))
    client.restore_table_from_backup(TargetTableName=f"{name}-restored", BackupArn=arns[0])
    client.get_waiter("table_exists").wait(TableName=f"{name}-restored", WaiterConfig=FAST)
    stop.set()
    for writer in writers:
        writer.join()
    restored = content(client, f"{name}-restored")
    assert {item["p"] for item in restored} == {str(number) for number in range(RESTORED)}
    assert {item["v"] for item in restored} == {0}
