"""What a database does when its file has changed behind its back: no request returns what nobody wrote."""

from __future__ import annotations

import json
import logging
import os
import signal
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.programs import python
from tests.storage.old_format import to_format_1

import isotone
from isotone.errors import DamagedItem, IsotoneError, StorageCorrupt
from isotone.server import running_server

NOW = 1_800_000_000
KILLS = int(os.environ.get("ISOTONE_KILLS", "6"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def clock() -> isotone.ManualClock:
    return isotone.ManualClock(NOW)


@pytest.fixture
def database(path: Path, clock: isotone.ManualClock) -> Iterator[isotone.Database]:
    with isotone.open(path, durability="none", clock=clock) as database:
        client = database.client()
        client.create_table(
            TableName="Orders",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[
                {"AttributeName": "id", "AttributeType": "S"},
                {"AttributeName": "state", "AttributeType": "S"},
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "by_state",
                    "KeySchema": [{"AttributeName": "state", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            BillingMode="PAY_PER_REQUEST",
        )
        for number in range(20):
            client.put_item(TableName="Orders", Item=order(number))
        yield database


def order(number: int) -> dict[str, Any]:
    return {
        "id": {"S": str(number)},
        "state": {"S": "new"},
        "until": {"N": str(NOW + 10)},
        "note": {"S": f"note {number}"},
    }


def damage(path: Path, database: isotone.Database, tree: str, number: int = 3) -> None:
    """Change one bit of the note of an order, where it is stored in one tree."""
    table = database.engine.catalog.tables["Orders"]
    trees = {
        "items": table.tree,
        "index": table.secondary[0].tree,
        "stream": table.stream.tree if table.stream else "",
    }
    connection = apsw.Connection(str(path))
    text = f'note {number}"'.encode()
    (key, value), *_ = connection.execute(
        f'SELECT key, value FROM "tree_{trees[tree]}" WHERE instr(value, ?)', (text,)
    ).fetchall()
    changed = value.replace(text, b"note" + bytes((text[4] ^ 2,)) + text[5:])
    connection.execute(f'UPDATE "tree_{trees[tree]}" SET value = ? WHERE key = ?', (changed, key))
    connection.close()


KEY = {"id": {"S": "3"}}

READS: dict[str, Callable[[Any], object]] = {
    "get": lambda client: client.get_item(TableName="Orders", Key=KEY),
    "get a part": lambda client: client.get_item(
        TableName="Orders", Key=KEY, ProjectionExpression="id"
    ),
    "batch": lambda client: client.batch_get_item(RequestItems={"Orders": {"Keys": [KEY]}}),
    "transaction": lambda client: client.transact_get_items(
        TransactItems=[{"Get": {"TableName": "Orders", "Key": KEY}}]
    ),
    "scan": lambda client: client.scan(TableName="Orders"),
    "count": lambda client: client.scan(TableName="Orders", Select="COUNT"),
    "query": lambda client: client.query(
        TableName="Orders",
        KeyConditionExpression="id = :i",
        ExpressionAttributeValues={":i": {"S": "3"}},
    ),
    "partiql": lambda client: client.execute_statement(
        Statement="SELECT * FROM Orders WHERE id = '3'"
    ),
    "put": lambda client: client.put_item(TableName="Orders", Item=order(3)),
    "update": lambda client: client.update_item(
        TableName="Orders",
        Key=KEY,
        UpdateExpression="SET note = :n",
        ExpressionAttributeValues={":n": {"S": "x"}},
    ),
    "delete": lambda client: client.delete_item(TableName="Orders", Key=KEY),
}


@pytest.mark.parametrize("name", READS)
def test_a_request_that_meets_a_damaged_item_names_it(
    path: Path, database: isotone.Database, name: str
) -> None:
    damage(path, database, "items")
    with pytest.raises(DamagedItem, match=r'item \{"id": \{"S": "3"\}\} of table Orders') as caught:
        READS[name](database.client())
    assert (caught.value.table, caught.value.key) == ("Orders", KEY)
    other = database.client().get_item(TableName="Orders", Key={"id": {"S": "4"}})
    assert other["Item"] == order(4)


def test_index_entries_and_stream_records_are_covered(
    path: Path, database: isotone.Database
) -> None:
    damage(path, database, "index")
    damage(path, database, "stream")
    client, streams = database.client(), database.streams_client()
    with pytest.raises(DamagedItem, match="in index by_state of table Orders") as caught:
        client.query(
            TableName="Orders",
            IndexName="by_state",
            KeyConditionExpression="#s = :s",
            ExpressionAttributeNames={"#s": "state"},
            ExpressionAttributeValues={":s": {"S": "new"}},
        )
    assert caught.value.key == KEY
    (stream,) = streams.list_streams()["Streams"]
    (shard,) = streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]["Shards"]
    iterator = streams.get_shard_iterator(
        StreamArn=stream["StreamArn"], ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    with pytest.raises(DamagedItem, match="record of the stream of table Orders"):
        streams.get_records(ShardIterator=iterator)


def test_over_http_damage_is_an_internal_server_error_and_a_log_line(
    path: Path, database: isotone.Database, caplog: pytest.LogCaptureFixture
) -> None:
    damage(path, database, "items")
    with running_server(database) as url:
        for operation, request in {
            "GetItem": {"TableName": "Orders", "Key": KEY},
            "Scan": {"TableName": "Orders"},
            "PutItem": {"TableName": "Orders", "Item": order(3)},
        }.items():
            with (
                caplog.at_level(logging.ERROR, "isotone"),
                pytest.raises(urllib.error.HTTPError) as caught,
            ):
                urllib.request.urlopen(_request(url, operation, request))
            assert caught.value.code == 500
            body = json.loads(caught.value.read())
            assert body["__type"].endswith("#InternalServerError")
            assert 'item {"id": {"S": "3"}} of table Orders' in caplog.text
            caplog.clear()


def _request(url: str, operation: str, request: object) -> urllib.request.Request:
    credential = "Credential=a/20270115/us-east-1/dynamodb/aws4_request"
    return urllib.request.Request(
        url,
        json.dumps(request).encode(),
        {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "X-Amz-Date": "20270115T080000Z",
            "Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=b",
        },
    )


def test_check_names_every_damaged_item_and_continues(
    path: Path, database: isotone.Database
) -> None:
    assert database.check() == []
    for number in (3, 7, 15):
        damage(path, database, "items", number)
    damage(path, database, "stream", 4)
    problems = database.check()
    for number in (3, 7, 15):
        assert any(
            f'item {{"id": {{"S": "{number}"}}}} of table Orders is' in one for one in problems
        )
    assert any("record of the stream of table Orders" in problem for problem in problems)
    assert any("there are 17 readable items" in problem for problem in problems)


def test_the_checksum_of_a_key_is_checked_too(
    path: Path, database: isotone.Database, tmp_path: Path
) -> None:
    """Only a read at a gap looks at it: the check and a backup must, too."""
    connection = apsw.Connection(str(path))
    tree = database.engine.catalog.tables["Orders"].tree
    third = f'(SELECT key FROM "tree_{tree}" LIMIT 1 OFFSET 2)'
    connection.execute(f"UPDATE \"tree_{tree}\" SET key_sum = x'00000000' WHERE key = {third}")
    connection.close()
    (problem,) = database.check()
    assert "the item" in problem
    assert "is damaged" in problem
    with pytest.raises(IsotoneError, match="does not have its checksum"):
        isotone.backup(path, tmp_path / "copy.db")


def test_the_sweep_continues_with_the_next_item(
    path: Path,
    database: isotone.Database,
    clock: isotone.ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = database.client()
    client.update_time_to_live(
        TableName="Orders", TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"}
    )
    database.finish_maintenance()
    damage(path, database, "items")
    clock.advance(20)
    with caplog.at_level(logging.ERROR, "isotone"):
        database.finish_maintenance()
        database.finish_maintenance()
    assert client.describe_table(TableName="Orders")["Table"]["ItemCount"] == 1
    assert caplog.text.count("of table Orders is damaged") == 1


def test_a_backfill_leaves_a_damaged_item_out(
    path: Path, database: isotone.Database, caplog: pytest.LogCaptureFixture
) -> None:
    damage(path, database, "items")
    client = database.client()
    with caplog.at_level(logging.ERROR, "isotone"):
        client.update_table(
            TableName="Orders",
            AttributeDefinitions=[{"AttributeName": "note", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[
                {
                    "Create": {
                        "IndexName": "by_note",
                        "KeySchema": [{"AttributeName": "note", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    }
                }
            ],
        )
        database.finish_maintenance()
    assert client.scan(TableName="Orders", IndexName="by_note")["Count"] == 19
    assert 'item {"id": {"S": "3"}} of table Orders is damaged' in caplog.text


def test_a_damaged_catalog_is_no_empty_database(path: Path, database: isotone.Database) -> None:
    database.close()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE tree_catalog SET value = x'7b7d' WHERE key = CAST('Orders' AS BLOB)")
    connection.close()
    with pytest.raises(DamagedItem, match="entry of catalog is damaged"):
        isotone.open(path)


# The upgrade


def test_an_old_file_is_upgraded_in_the_background(path: Path, database: isotone.Database) -> None:
    database.close()
    to_format_1(path)
    with isotone.open(path, durability="none") as again:
        assert again.client().get_item(TableName="Orders", Key=KEY)["Item"] == order(3)
        deadline = time.monotonic() + 30
        while again.engine.store.is_upgrading():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert again.check() == []


def test_what_an_old_file_has_damaged_is_never_returned_after_the_upgrade(
    path: Path, database: isotone.Database
) -> None:
    damage(path, database, "items")
    table = database.engine.catalog.tables["Orders"].tree
    database.close()
    to_format_1(path)
    connection = apsw.Connection(str(path))  # as a flipped bit does, make JSON that is none
    connection.execute(
        f'UPDATE "tree_{table}" SET value = CAST(replace(value, \'"note 5"\', \'"note 5\\\') AS BLOB)'
        " WHERE instr(value, 'note 5')"
    )
    connection.close()
    with isotone.open(path, durability="none") as again:
        again.finish_maintenance()
        with pytest.raises(DamagedItem):
            again.client().get_item(TableName="Orders", Key={"id": {"S": "5"}})
        assert any('{"id": {"S": "5"}}' in problem for problem in again.check())


SITE = textwrap.dedent("""
    import itertools, sys
    import isotone
    with isotone.open(sys.argv[1], durability="process") as database:
        client = database.client()
        print(flush=True)
        for number in itertools.count(int(sys.argv[2])):
            item = {"id": {"S": str(number)}, "state": {"S": "new"}}
            client.put_item(TableName="Orders", Item=item)
            print(number, flush=True)
""")


def test_a_kill_in_the_upgrade_loses_no_acknowledged_write(
    path: Path, database: isotone.Database
) -> None:
    client = database.client()
    for number in range(20, 3000):
        client.put_item(TableName="Orders", Item={**order(number), "note": {"S": "n" * 300}})
    database.close()
    to_format_1(path)
    latest, is_pending = 10_000, False
    for kill in range(KILLS):
        with python("-c", SITE, path, latest + 1) as site:
            assert site.stdout is not None
            site.stdout.readline()
            time.sleep(0.02 * kill)
            site.send_signal(signal.SIGKILL)
            told = [int(line) for line in site.stdout.read().splitlines() if line.strip()]
        latest = told[-1] if told else latest
        connection = apsw.Connection(str(path))
        is_pending |= bool(
            connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'upgrade'").get
        )
        connection.close()
    assert is_pending, "no kill came before the upgrade had ended"
    with isotone.open(path, durability="none") as again:
        again.finish_maintenance()
        assert not again.engine.store.is_upgrading()
        assert again.check() == []
        paginator = again.client().get_paginator("scan")
        ids = {
            int(item["id"]["S"])
            for page in paginator.paginate(TableName="Orders")
            for item in page["Items"]
        }
        assert ids >= {*range(3000), *range(10_001, latest + 1)}


def test_all_reads_end_in_an_error_of_isotone(path: Path, database: isotone.Database) -> None:
    damage(path, database, "items")
    for read in READS.values():
        with pytest.raises(IsotoneError):
            read(database.client())


@pytest.mark.parametrize("record", [b"{", b"\xff{}", b"{}", b'{"name":"tab","keys":[]}'])
def test_a_damaged_definition_in_an_old_file_is_named(tmp_path: Path, record: bytes) -> None:
    path = tmp_path / "old.db"
    with isotone.open(path) as database:
        database.client().create_table(
            TableName="tab",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    to_format_1(path)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE tree_catalog SET value = ? WHERE key = ?", (record, b"tab"))
    connection.close()
    with pytest.raises(StorageCorrupt, match="the definition of table 'tab' is damaged"):
        isotone.open(path)
