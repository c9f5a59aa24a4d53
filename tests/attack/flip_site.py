"""A database with something of everything, all that can be read of it, and copies of it with one bit flipped."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import isotone
from isotone.errors import IsotoneError

START = 1_800_000_000
PEOPLE, ORDERS = 12, 14
Reads = dict[str, Any]


def build(path: Path) -> None:
    """Write a closed file: tables, indexes of each kind, a stream, TTL, a backup, a history, large items, free pages."""
    with isotone.open(path, durability="none", clock=isotone.ManualClock(START)) as database:
        fill(database)


def fill(database: isotone.Database) -> None:
    """Write everything that `reads` reads."""
    client = database.client()
    client.create_table(
        TableName="Shop",
        KeySchema=_keys("pk", "sk"),
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
            {"AttributeName": "state", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_state",
                "KeySchema": _keys("state", "sk"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by_age",
                "KeySchema": _keys("pk", "state"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        BillingMode="PAY_PER_REQUEST",
    )
    client.create_table(
        TableName="Plain",
        KeySchema=_keys("id"),
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "B"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.update_time_to_live(
        TableName="Plain",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"},
    )
    client.update_continuous_backups(
        TableName="Plain",
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    database.finish_maintenance()
    for person in range(PEOPLE):
        for order in range(ORDERS):
            client.put_item(TableName="Shop", Item=_order(person, order))
    for number in range(60):
        for version in range(2):
            client.put_item(TableName="Plain", Item=_plain(number, version))
    client.create_backup(TableName="Plain", BackupName="nightly")
    client.create_table(
        TableName="Gone",
        KeySchema=_keys("id"),
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "B"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for number in range(40):
        client.put_item(TableName="Gone", Item=_plain(number, 0))
    client.delete_table(TableName="Gone")
    database.finish_maintenance()
    assert database.check() == []


def add_orders(database: isotone.Database) -> None:
    """Write more orders."""
    client = database.client()
    for person in range(PEOPLE):
        for order in range(ORDERS, ORDERS + 4):
            client.put_item(TableName="Shop", Item=_order(person, order))


def _keys(*names: str) -> list[Any]:
    return [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def _order(person: int, order: int) -> dict[str, Any]:
    return {
        "pk": {"S": f"person-{person}"},
        "sk": {"N": str(order)},
        "state": {"S": ("new", "paid", "sent")[order % 3]},
        "note": {"S": f"{person}/{order} " * (3 + 17 * (order % 4))},
        "lines": {
            "L": [{"M": {"sku": {"S": f"A{line}"}, "n": {"N": str(line)}}} for line in range(3)]
        },
    }


def _plain(number: int, version: int) -> dict[str, Any]:
    return {
        "id": {"B": _id(number)},
        "until": {"N": str(1_900_000_000 + number)},
        "text": {
            "S": f"version {version} " * (number % 7 * 5 + 1) * (60 if number % 20 == 0 else 1)
        },
    }


def _id(number: int) -> bytes:
    return b"\x00id" + bytes((number,))


def reads(database: isotone.Database) -> Reads:
    """The answer to each request that reads, or the error of Isotone that it raises."""
    client = database.client()
    streams = database.streams_client()
    answers: Reads = {}

    def ask(name: str, request: Callable[[], Any]) -> Any:
        try:
            answers[name] = request()
        except IsotoneError as error:
            answers[name] = error
        return answers[name]

    ask("tables", lambda: client.list_tables()["TableNames"])
    for table in ("Shop", "Plain"):
        ask(f"describe {table}", lambda table=table: _described(client, table))
        ask(f"scan {table}", lambda table=table: client.scan(TableName=table)["Items"])
    for person in range(PEOPLE):
        for order in range(ORDERS):
            item = _order(person, order)
            key = {"pk": item["pk"], "sk": item["sk"]}
            ask(f"get {person}/{order}", lambda key=key: _item(client, "Shop", key))
        ask(f"query {person}", lambda person=person: _query(client, f"person-{person}"))
        ask(f"back {person}", lambda person=person: _query(client, f"person-{person}", back=True))
        ask(f"page {person}", lambda person=person: _query(client, f"person-{person}", limit=5))
        ask(f"local {person}", lambda person=person: _query(client, f"person-{person}", "by_age"))
    for state in ("new", "paid", "sent"):
        ask(f"state {state}", lambda state=state: _by_state(client, state))
    for number in range(60):
        key = {"id": {"B": _id(number)}}
        ask(f"plain {number}", lambda key=key: _item(client, "Plain", key))
    ask("absent", lambda: _item(client, "Plain", {"id": {"B": b"absent"}}))
    ask("backups", lambda: client.list_backups()["BackupSummaries"])
    ask("stream", lambda: _stream(streams))
    ask("restored", lambda: _restored(client))
    return answers


def _described(client: Any, table: str) -> Any:
    described = client.describe_table(TableName=table)["Table"]
    ttl = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    return described, ttl


def _item(client: Any, table: str, key: Any) -> Any:
    return client.get_item(TableName=table, Key=key).get("Item")


def _query(client: Any, person: str, index: str = "", back: bool = False, limit: int = 0) -> Any:
    page = client.query(
        TableName="Shop",
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": {"S": person}},
        ScanIndexForward=not back,
        **({"IndexName": index} if index else {}),
        **({"Limit": limit} if limit else {}),
    )
    return page["Items"], page.get("LastEvaluatedKey")


def _by_state(client: Any, state: str) -> Any:
    return client.query(
        TableName="Shop",
        IndexName="by_state",
        KeyConditionExpression="#s = :s",
        ExpressionAttributeNames={"#s": "state"},
        ExpressionAttributeValues={":s": {"S": state}},
    )["Items"]


def _stream(streams: Any) -> list[Any]:
    found: list[Any] = []
    listed = streams.list_streams()["Streams"]
    if not listed:  # what described the stream is lost, as are its records with it
        return found
    (stream,) = listed
    described = streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]
    for shard in described["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=stream["StreamArn"],
            ShardId=shard["ShardId"],
            ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"]
        while iterator:
            page = streams.get_records(ShardIterator=iterator)
            found += page["Records"]
            iterator = page.get("NextShardIterator") if page["Records"] else None
    return found


def _restored(client: Any) -> list[Any]:
    """What a restored backup has."""
    (backup,) = [
        one for one in client.list_backups()["BackupSummaries"] if one["BackupName"] == "nightly"
    ]
    client.restore_table_from_backup(TargetTableName="Restored", BackupArn=backup["BackupArn"])
    items: list[Any] = client.scan(TableName="Restored")["Items"]
    return items


def flipped(source: Path, target: Path, seed: int) -> int:
    """Copy a file and flip one random bit of the copy; returns its number."""
    shutil.copyfile(source, target)
    content = bytearray(target.read_bytes())
    bit = random.Random(seed).randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    target.write_bytes(content)
    return bit
