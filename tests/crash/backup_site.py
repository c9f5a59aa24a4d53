"""A process that writes, backs up and restores as fast as it can: `python backup_site.py FILE`.

Write number `n` sets two slots in one transaction, and the count. So the whole table follows from the number of the
last write that is in it, and so does every backup and every restored table. Their names have that number.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any, Final

import isotone
from isotone import Client

SLOTS: Final = 700
_SCHEMA: Final = {
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "n", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_n",
            "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


def items_of(number: int) -> list[dict[str, Any]]:
    """What write `number` puts."""
    names = (f"left-{number % SLOTS}", f"right-{number % SLOTS}", "count")
    return [{"p": {"S": name}, "n": {"N": str(number)}} for name in names]


def expected(number: int) -> dict[str, int]:
    """The table after a write, from the first full round on."""
    content = {"count": number}
    for written in range(number - SLOTS + 1, number + 1):
        slot = written % SLOTS
        content[f"left-{slot}"] = content[f"right-{slot}"] = written
    return content


def create(file: Path) -> None:
    """The table with its first round of writes."""
    with isotone.open(file, durability="none") as database:
        client = database.client()
        client.create_table(TableName="tab", **_SCHEMA)
        recovery = {"PointInTimeRecoveryEnabled": True}
        client.update_continuous_backups(TableName="tab", PointInTimeRecoverySpecification=recovery)
        for number in range(1, SLOTS + 1):
            write(client, number)


def write(client: Client, number: int) -> None:
    puts = [{"Put": {"TableName": "tab", "Item": item}} for item in items_of(number)]
    client.transact_write_items(TransactItems=puts)


def work(file: str) -> None:
    with isotone.open(file) as database:
        client = database.client()
        last = client.get_item(TableName="tab", Key={"p": {"S": "count"}})["Item"]["n"]["N"]
        for number in count(int(last) + 1):
            write(client, number)
            if number % 40 == 0:
                client.create_backup(TableName="tab", BackupName=f"at-{number}")
                restore_latest(client)
                target = f"moment-{number}"
                client.restore_table_to_point_in_time(
                    SourceTableName="tab", TargetTableName=target, UseLatestRestorableTime=True
                )
                print(number, flush=True)


def restore_latest(client: Client) -> None:
    """Restore the newest complete backup."""
    complete = [
        each
        for each in client.list_backups()["BackupSummaries"]
        if each["BackupStatus"] == "AVAILABLE"
    ]
    taken = client.list_tables()["TableNames"]
    for backup in complete[-1:]:
        target = backup["BackupName"].replace("at", "backup")
        if target not in taken:
            client.restore_table_from_backup(TargetTableName=target, BackupArn=backup["BackupArn"])


if __name__ == "__main__":
    work(sys.argv[1])
