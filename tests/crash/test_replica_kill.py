"""`kill -9` while two regions are written with a lag: no acknowledged write is lost, and the replicas agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.programs import python

import isotone

ROUNDS = 3
WRITES = 40  # acknowledged in each round before the kill

# Writes to both regions, while maintenance delivers in the background, and prints what was acknowledged.
WRITER = """
import itertools, sys
import isotone

database = isotone.open(sys.argv[1], durability="process")
database.set_replication(lag=0.005)
clients = [database.region(name).client() for name in ("us-east-1", "eu-west-1")]
for number in itertools.count():
    item = {"p": {"S": f"{sys.argv[2]}-{number}"}}
    clients[number % 2].put_item(TableName="tab", Item=item)
    shared = {"p": {"S": "shared"}, "v": {"S": f"{sys.argv[2]}-{number}"}}
    clients[number % 3 % 2].put_item(TableName="tab", Item=shared)
    print(item["p"]["S"], flush=True)
"""


def acknowledged(path: Path, round_: int) -> list[str]:
    """What a writer acknowledged until it was killed."""
    writer = python("-c", WRITER, path, round_)
    assert writer.stdout is not None
    found = [writer.stdout.readline().strip() for _ in range(WRITES)]
    writer.kill()
    rest = writer.communicate(timeout=30)[0]
    return [*found, *(line for line in rest.split("\n")[:-1])]


def items(client: Any) -> dict[str, Any]:
    pages = client.get_paginator("scan").paginate(TableName="tab")
    return {item["p"]["S"]: item for page in pages for item in page["Items"]}


def test_replicas_agree_after_every_kill(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    with isotone.open(path) as database:
        client = database.client()
        client.create_table(
            TableName="tab",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client.update_table(
            TableName="tab", ReplicaUpdates=[{"Create": {"RegionName": "eu-west-1"}}]
        )
    expected: set[str] = {"shared"}
    for round_ in range(ROUNDS):
        expected |= set(acknowledged(path, round_))
        with isotone.open(path) as database:
            database.finish_maintenance()
            assert database.check() == []
            home, away = (
                items(database.region(name).client()) for name in ("us-east-1", "eu-west-1")
            )
            assert home == away
            assert expected <= set(home)
