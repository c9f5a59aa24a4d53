"""Every row of docs/compatibility.md: the differences that are meant, and what is like the service."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from tests.service_model import newest_client

import isotone
from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    DuplicateItemException,
    ResourceNotFoundException,
    TransactionCanceledException,
    UnknownOperationException,
    ValidationException,
)
from isotone.server import running_server
from isotone.server.users import User, changing_users, new_key

GB = 1024**3


class Bench:
    """A database with a table `items`: keys `p` and `s`, a global index on `g`, a local one on `l`."""

    def __init__(self) -> None:
        self.clock = isotone.ManualClock()
        self.database = isotone.open(":memory:", clock=self.clock)
        self.client = self.database.client()
        self.created = self.client.create_table(**TABLE)["TableDescription"]

    def put(self, s: str, p: str = "p", **more: Any) -> dict[str, Any]:
        item = {"p": {"S": p}, "s": {"S": s}, **more}
        return self.client.put_item(TableName="items", Item=item, ReturnConsumedCapacity="INDEXES")

    def query(self, **more: Any) -> dict[str, Any]:
        return self.client.query(
            TableName="items",
            KeyConditionExpression="p = :p",
            ExpressionAttributeValues={":p": {"S": "p"}, **more.pop("values", {})},
            **more,
        )

    def by_g(self, **more: Any) -> dict[str, Any]:
        return self.client.query(
            TableName="items",
            IndexName="by_g",
            KeyConditionExpression="g = :g",
            ExpressionAttributeValues={":g": {"S": "g"}},
            **more,
        )

    def status(self) -> str:
        described = self.client.describe_table(TableName="items")["Table"]
        return str(described["TableStatus"])


def schema(*names: str) -> Any:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]


TABLE: Any = {
    "TableName": "items",
    "KeySchema": schema("p", "s"),
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in "psgl"],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {"IndexName": "by_g", "KeySchema": schema("g"), "Projection": {"ProjectionType": "ALL"}}
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by_l",
            "KeySchema": schema("p", "l"),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}
KEY: Any = {"p": {"S": "p"}, "s": {"S": "1"}}
G: Any = {"g": {"S": "g"}}


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    assert made.database.check() == []
    made.database.close()


@pytest.mark.parametrize("operation", ["DescribeCluster", "CreateTables"])
def test_missing_actions_say_so(bench: Bench, operation: str) -> None:
    with pytest.raises(UnknownOperationException):
        bench.database.send(operation, b"{}")


def test_1_tables_are_ready_at_once(bench: Bench) -> None:
    assert (bench.created["TableStatus"], bench.status()) == ("CREATING", "ACTIVE")
    updated = bench.client.update_table(TableName="items", DeletionProtectionEnabled=False)
    assert (updated["TableDescription"]["TableStatus"], bench.status()) == ("UPDATING", "ACTIVE")
    deleted = bench.client.delete_table(TableName="items")
    assert deleted["TableDescription"]["TableStatus"] == "DELETING"
    with pytest.raises(ResourceNotFoundException):
        bench.status()


def test_2_an_added_index_fills_in_the_background(bench: Bench) -> None:
    bench.put("1", h={"S": "h"})
    index = {
        "IndexName": "by_h",
        "KeySchema": schema("h"),
        "Projection": {"ProjectionType": "ALL"},
    }
    answer = bench.client.update_table(
        TableName="items",
        AttributeDefinitions=[{"AttributeName": "h", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": index}],  # type: ignore[typeddict-item]
    )
    added = answer["TableDescription"]["GlobalSecondaryIndexes"][-1]
    assert (added["IndexStatus"], added["Backfilling"]) == ("CREATING", True)
    bench.database.finish_maintenance()
    assert bench.client.scan(TableName="items", IndexName="by_h")["Count"] == 1


def test_3_an_index_is_never_behind(bench: Bench) -> None:
    bench.put("1", **G)
    assert bench.by_g()["Count"] == 1
    bench.put("1")
    assert bench.by_g()["Count"] == 0
    with pytest.raises(ValidationException, match="Consistent reads are not supported on global"):
        bench.by_g(ConsistentRead=True)


def test_4_nothing_is_throttled(bench: Bench) -> None:
    one = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    bench.client.create_table(
        TableName="slow",
        KeySchema=schema("p"),
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        ProvisionedThroughput=one,
    )
    for number in range(100):
        item = {"p": {"S": str(number)}, "x": {"S": "x" * 2000}}
        answer = bench.client.put_item(TableName="slow", Item=item, ReturnConsumedCapacity="TOTAL")
        assert answer["ConsumedCapacity"]["CapacityUnits"] == 2.0


def test_5_counts_are_exact(bench: Bench) -> None:
    bench.put("1", **G)
    bench.put("2")
    table = bench.client.describe_table(TableName="items")["Table"]
    assert (table["ItemCount"], table["TableSizeBytes"]) == (2, (1 + 1 + 1 + 1) * 2 + (1 + 1))
    assert table["GlobalSecondaryIndexes"][0]["ItemCount"] == 1


def test_6_expiry_is_prompt(bench: Bench) -> None:
    def switch(enabled: bool) -> str:
        bench.client.update_time_to_live(
            TableName="items",
            TimeToLiveSpecification={"AttributeName": "until", "Enabled": enabled},
        )
        described = bench.client.describe_time_to_live(TableName="items")
        return str(described["TimeToLiveDescription"]["TimeToLiveStatus"])

    assert [switch(True), switch(False), switch(True)] == ["ENABLED", "DISABLED", "ENABLED"]
    bench.put("1", until={"N": str(int(bench.clock.now()) + 10)})
    bench.clock.advance(timedelta(seconds=12))
    bench.database.finish_maintenance()
    assert bench.query()["Count"] == 0


def test_7_a_scan_has_an_order_of_its_own(bench: Bench) -> None:
    names = [f"{number:03}" for number in range(50)]
    for name in names:
        bench.put("1", p=name)

    def scanned(**segment: int) -> list[str]:
        page = bench.client.scan(TableName="items", **segment)  # type: ignore[misc,arg-type]
        return [item["p"]["S"] for item in page["Items"]]

    assert scanned() != names
    assert sorted(scanned()) == names
    segments = [scanned(Segment=segment, TotalSegments=3) for segment in range(3)]
    assert [name for segment in segments for name in segment] == scanned()


def test_8_requests_never_conflict(bench: Bench) -> None:
    update: Any = {
        "TableName": "items",
        "Key": KEY,
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    failures: list[ApiError] = []

    def work() -> None:
        try:
            for _ in range(20):
                bench.client.update_item(**update)
                bench.client.transact_write_items(TransactItems=[{"Update": update}])
        except ApiError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    counted = bench.client.get_item(TableName="items", Key=KEY)["Item"]
    assert counted["n"] == {"N": "160"}


def test_9_an_item_collection_may_grow(bench: Bench) -> None:
    engine = bench.database.engine
    table = engine.catalog.tables["items"]
    assert table.collections is not None
    prefix = table.keyspace.prefix([{"S": "p"}])
    bench.put("1")
    with engine.writing:  # eleven gigabytes, without writing them
        real = engine.store.get(table.collections, prefix)
        assert real is not None
        engine.store.put(table.collections, prefix, (11 * GB).to_bytes(8, "big"))
    item = {**KEY, "s": {"S": "2"}}
    answer = bench.client.put_item(TableName="items", Item=item, ReturnItemCollectionMetrics="SIZE")
    assert answer["ItemCollectionMetrics"]["SizeEstimateRangeGB"] == [11.0, 12.0]
    with engine.writing:
        engine.store.put(table.collections, prefix, real)
        bench.database.client().delete_item(TableName="items", Key={**KEY, "s": {"S": "2"}})
        engine.store.put(table.collections, prefix, real)


def test_10_any_key_will_do(bench: Bench) -> None:
    with running_server(bench.database) as url:
        for key, region in (("nobody", "us-east-1"), ("AKIA0", "eu-central-1")):
            client = boto3.client(
                "dynamodb",
                endpoint_url=url,
                region_name=region,
                aws_access_key_id=key,
                aws_secret_access_key="wrong",
            )
            assert client.list_tables()["TableNames"] == ["items"]
            client.close()


def test_11_settings_are_recorded(bench: Bench) -> None:
    more: Any = {
        **TABLE,
        "TableName": "more",
        "SSESpecification": {"Enabled": True},
        "TableClass": "STANDARD_INFREQUENT_ACCESS",
        "OnDemandThroughput": {"MaxReadRequestUnits": 1, "MaxWriteRequestUnits": 1},
    }
    bench.client.create_table(**more)
    table = bench.client.describe_table(TableName="more")["Table"]
    assert table["SSEDescription"]["Status"] == "ENABLED"
    assert table["TableClassSummary"] == {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
    assert table["OnDemandThroughput"] == more["OnDemandThroughput"]
    big = {"p": {"S": "p"}, "s": {"S": "s"}, "x": {"S": "x" * 3000}}
    bench.client.put_item(TableName="more", Item=big)


def test_12_an_arn_names_the_local_table(bench: Bench) -> None:
    bench.put("1")
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/items"
    assert bench.client.get_item(TableName=arn, Key=KEY)["Item"] == KEY


def test_13_an_account_has_no_quotas(bench: Bench) -> None:
    one: Any = {"ReadCapacityUnits": 100, "WriteCapacityUnits": 100}
    bench.client.create_table(
        TableName="slow",
        KeySchema=schema("p"),
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        ProvisionedThroughput=one,
    )
    for units in range(99, 59, -1):
        less: Any = {"ReadCapacityUnits": units, "WriteCapacityUnits": units}
        bench.client.update_table(TableName="slow", ProvisionedThroughput=less)
    limits = bench.client.describe_limits()
    assert limits["TableMaxReadCapacityUnits"] == 40_000


def test_14_a_batch_is_left_unprocessed_at_16_mb_only(bench: Bench) -> None:
    for start in range(0, 50, 25):
        puts = [
            {"PutRequest": {"Item": {**KEY, "s": {"S": str(number)}, "x": {"B": b"x" * 390_000}}}}
            for number in range(start, start + 25)
        ]
        answer = bench.client.batch_write_item(RequestItems={"items": puts})  # type: ignore[dict-item]
        assert answer["UnprocessedItems"] == {}
    keys = [{**KEY, "s": {"S": str(number)}} for number in range(50)]
    got = bench.client.batch_get_item(RequestItems={"items": {"Keys": keys}})
    left = got["UnprocessedKeys"]["items"]["Keys"]
    assert len(got["Responses"]["items"]) == 16 * 1024 * 1024 // 390_000
    assert len(got["Responses"]["items"]) + len(left) == 50


def test_15_equal_index_keys_come_in_the_tables_order(bench: Bench) -> None:
    for name in "cab":
        bench.put(name, **G)
    assert [item["s"]["S"] for item in bench.by_g()["Items"]] == ["a", "b", "c"]


def test_16_endpoints_are_those_of_aws(bench: Bench) -> None:
    (endpoint,) = bench.client.describe_endpoints()["Endpoints"]
    assert endpoint["Address"] == "dynamodb.us-east-1.amazonaws.com"


def test_22_a_token_of_a_statement_does_not_expire(bench: Bench) -> None:
    for s in "123":
        bench.put(s)
    statement = "SELECT s FROM items WHERE p = 'p'"
    token = bench.client.execute_statement(Statement=statement, Limit=1)["NextToken"]
    bench.clock.advance(timedelta(days=30))
    rest = bench.client.execute_statement(Statement=statement, NextToken=token)["Items"]
    assert rest == [{"s": {"S": "2"}}, {"s": {"S": "3"}}]
    with pytest.raises(ValidationException, match="NextToken does not match request"):
        bench.client.execute_statement(Statement="SELECT * FROM items", NextToken=token)


def test_statements_write_what_is_there(bench: Bench) -> None:
    run = bench.client.execute_statement
    with pytest.raises(ConditionalCheckFailedException):
        run(Statement="UPDATE items SET x = 1 WHERE p = 'p' AND s = '1'")
    run(Statement="INSERT INTO items VALUE {'p': 'p', 's': '1'}")
    with pytest.raises(DuplicateItemException):
        run(Statement="INSERT INTO items VALUE {'p': 'p', 's': '1', 'x': 1}")
    assert bench.query()["Items"] == [KEY]
    for _ in range(2):
        assert run(Statement="DELETE FROM items WHERE p = 'p' AND s = '1'")["Items"] == []


def test_a_statement_reads_by_its_keys(bench: Bench) -> None:
    for p in "pqr":
        for s in "12":
            bench.put(s, p, text={"S": "x" * 4000})

    def units(where: str) -> float:
        answer = bench.client.execute_statement(
            Statement=f"SELECT * FROM items WHERE {where}", ReturnConsumedCapacity="TOTAL"
        )
        return float(answer["ConsumedCapacity"]["CapacityUnits"])

    assert units("p = 'p' AND s = '1'") == 0.5
    assert units("p = 'p' AND text <> 'x'") == 1
    assert units("p = 'p' OR p = 'q'") == 2
    assert units("s = '1'") == 3


def test_text_sorts_by_utf8(bench: Bench) -> None:
    for name in ("apple", "Banana", "cherry", "#1", "é", "～", "😀"):
        bench.put(name)
    got = [item["s"]["S"] for item in bench.query()["Items"]]
    assert got == ["#1", "Banana", "apple", "cherry", "é", "～", "😀"]


def test_numbers_are_exact(bench: Bench) -> None:
    forms = {"1e2": "100", "100.0": "100", "-0": "0", "007": "7", "1e-3": "0.001"}
    for given, printed in forms.items():
        bench.put("1", n={"N": given})
        item = bench.client.get_item(TableName="items", Key=KEY)["Item"]
        assert item["n"] == {"N": printed}
    digits = "12345678901234567890123456789012345678"
    bench.put("1", n={"N": digits})
    answer = bench.client.update_item(
        TableName="items",
        Key=KEY,
        UpdateExpression="ADD n :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
    )
    assert Decimal(answer["Attributes"]["n"]["N"]) == int(digits) + 1
    with pytest.raises(ValidationException, match="more than 38 significant digits"):
        bench.put("1", n={"N": digits + "9"})


def test_a_page_counts_before_its_filter(bench: Bench) -> None:
    for number in range(4):
        bench.put(str(number))
    nothing: Any = {"FilterExpression": "x = :x", "values": {":x": {"S": "x"}}}
    page = bench.query(Limit=2, **nothing)
    assert (page["Count"], page["ScannedCount"]) == (0, 2)
    assert page["LastEvaluatedKey"] == {"p": {"S": "p"}, "s": {"S": "1"}}
    for number in range(4):
        bench.put(str(number), y={"S": "y" * 390_000})
    page = bench.query(**nothing)
    assert (page["Count"], page["ScannedCount"]) == (0, 3)
    assert "LastEvaluatedKey" in page


def test_a_full_page_has_a_last_key(bench: Bench) -> None:
    bench.put("1")
    page = bench.query(Limit=1)
    assert (page["Count"], page["LastEvaluatedKey"]) == (1, KEY)
    rest = bench.query(ExclusiveStartKey=page["LastEvaluatedKey"])
    assert rest["Count"] == 0
    assert "LastEvaluatedKey" not in rest


@pytest.mark.parametrize("forward", [True, False])
def test_pages_of_an_index_lose_nothing(bench: Bench, forward: bool) -> None:
    for number in range(7):
        bench.put(str(number), **G)
    seen: list[str] = []
    start: Any = {}
    while True:
        page = bench.by_g(Limit=2, ScanIndexForward=forward, **start)
        seen += [item["s"]["S"] for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            break
        assert page["LastEvaluatedKey"].keys() == {"p", "s", "g"}
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert sorted(seen) == list("0123456")


def test_an_update_reads_the_old_item(bench: Bench) -> None:
    letters = [{"S": letter} for letter in "abcde"]
    bench.put("1", a={"S": "1"}, b={"S": "2"}, letters={"L": letters})
    answer = bench.client.update_item(
        TableName="items",
        Key=KEY,
        UpdateExpression="SET a = b, b = a REMOVE letters[0], letters[2]",
        ReturnValues="ALL_NEW",
    )
    new = answer["Attributes"]
    assert (new["a"], new["b"]) == ({"S": "2"}, {"S": "1"})
    assert new["letters"] == {"L": [{"S": letter} for letter in "bde"]}


def test_a_removal_creates_nothing(bench: Bench) -> None:
    bench.client.update_item(TableName="items", Key=KEY, UpdateExpression="REMOVE x.y, z")
    assert bench.query()["Count"] == 0


def test_an_error_in_a_single_write_is_counted(bench: Bench) -> None:
    condition: Any = {"TableName": "items", "ConditionExpression": "x ="}
    with pytest.raises(ValidationException, match="operation: 1 validation error detected: Inv"):
        bench.client.delete_item(Key=KEY, **condition)
    entry: Any = {"Delete": {"Key": KEY, **condition}}
    with pytest.raises(ValidationException, match="operation: Invalid ConditionExpression"):
        bench.client.transact_write_items(TransactItems=[entry])


def test_a_faulty_value_is_not_a_reason(bench: Bench) -> None:
    def deleted(**key: Any) -> None:
        entry: Any = {"Delete": {"TableName": "items", "Key": {**KEY, **key}}}
        bench.client.transact_write_items(TransactItems=[entry])

    with pytest.raises(ValidationException, match="cannot contain an empty string"):
        deleted(s={"S": ""})
    with pytest.raises(TransactionCanceledException):
        deleted(s={"N": "1"})


def test_a_boolean_may_be_a_text(bench: Bench) -> None:
    item = {**KEY, "x": {"BOOL": "true"}}
    bench.database.execute("PutItem", {"TableName": "items", "Item": item})
    assert bench.query()["Items"][0]["x"] == {"BOOL": True}


def test_sets_come_back_sorted(bench: Bench) -> None:
    bench.put("1", x={"SS": ["b", "a"]}, y={"NS": ["10", "9"]}, z={"BS": [b"\xff", b"\x00"]})
    item = bench.query()["Items"][0]
    assert (item["x"], item["y"]) == ({"SS": ["a", "b"]}, {"NS": ["9", "10"]})
    assert item["z"] == {"BS": [b"\x00", b"\xff"]}


def test_a_scan_of_an_index_may_filter_by_any_attribute(bench: Bench) -> None:
    bench.put("1", l={"S": "l"}, x={"S": "x"})
    by_l: Any = {"TableName": "items", "IndexName": "by_l"}
    assert bench.client.scan(**by_l, FilterExpression="attribute_not_exists(x)")["Count"] == 1
    with pytest.raises(ValidationException, match="does not project one or more filter"):
        bench.query(IndexName="by_l", FilterExpression="attribute_not_exists(x)")


def test_reserved_and_unused_names_are_refused(bench: Bench) -> None:
    with pytest.raises(ValidationException, match="reserved keyword; reserved keyword: total"):
        bench.query(ProjectionExpression="total")
    with pytest.raises(ValidationException, match=r"unused in expressions: keys: \{:x\}"):
        bench.query(values={":x": {"S": "x"}})


@pytest.mark.parametrize("value", [{"N": "1"}, {"S": ""}])
def test_an_item_must_fit_its_indexes(bench: Bench, value: dict[str, str]) -> None:
    with pytest.raises(ValidationException, match="by_g"):
        bench.put("1", g=value)
    assert bench.query()["Count"] == 0


def test_a_cancelled_transaction_gives_all_reasons(bench: Bench) -> None:
    there: Any = {"ConditionExpression": "attribute_exists(p)"}
    puts: Any = [
        {"Put": {"TableName": "items", "Item": KEY}},
        {"Put": {"TableName": "items", "Item": {**KEY, "s": {"S": "2"}}, **there}},
        {"Delete": {"TableName": "items", "Key": {**KEY, "s": {"S": "3"}}, **there}},
    ]
    with pytest.raises(TransactionCanceledException) as cancelled:
        bench.client.transact_write_items(TransactItems=puts)
    reasons = cancelled.value.members["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == [
        "None",
        "ConditionalCheckFailed",
        "ConditionalCheckFailed",
    ]
    assert bench.query()["Count"] == 0


def test_a_token_counts_once(bench: Bench) -> None:
    update: Any = {
        "TableName": "items",
        "Key": KEY,
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    for _ in range(2):
        bench.client.transact_write_items(
            TransactItems=[{"Update": update}], ClientRequestToken="again"
        )
    item = bench.client.get_item(TableName="items", Key=KEY)["Item"]
    assert item["n"] == {"N": "1"}


def test_an_update_is_limited_by_what_it_writes(bench: Bench) -> None:
    half = {"S": "x" * 200 * 1024}
    written: Any = {
        "UpdateExpression": "SET a = :half, b = if_not_exists(c, :half)",
        "ExpressionAttributeValues": {":half": half},
    }
    bench.put("1", c={"S": "small"})  # so the item would have 200 KB
    with pytest.raises(ValidationException, match="Item size to update has exceeded"):
        bench.client.update_item(TableName="items", Key={**KEY, "s": {"S": "1"}}, **written)


def test_names_count_to_the_size_of_an_item(bench: Bench) -> None:
    room = 400 * 1024 - len("p" + "p" + "s" + "1")
    bench.put("1", **{"x" * 1000: {"S": "x" * (room - 1000)}})
    with pytest.raises(ValidationException, match="Item size has exceeded the maximum allowed"):
        bench.put("1", **{"x" * 1001: {"S": "x" * (room - 1000)}})


def test_an_index_is_charged_for_changes(bench: Bench) -> None:
    def units(answer: dict[str, Any]) -> float:
        capacity = answer["ConsumedCapacity"].get("GlobalSecondaryIndexes", {})
        return float(capacity.get("by_g", {}).get("CapacityUnits", 0.0))

    assert units(bench.put("1", **G)) == 1.0
    assert units(bench.put("1", **G)) == 0.0
    assert units(bench.put("1", g={"S": "other"})) == 2.0
    assert units(bench.put("1")) == 1.0


@pytest.mark.parametrize("count", [1, 4])
def test_17_a_stream_has_the_shards_that_were_asked_for(bench: Bench, count: int) -> None:
    bench.database.engine.stream_shards = count
    specification = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    changed = bench.client.update_table(TableName="items", StreamSpecification=specification)
    arn = changed["TableDescription"]["LatestStreamArn"]
    names = [str(number) for number in range(20)]
    for name in names:
        bench.put("1", p=name)
    streams = bench.database.streams_client()
    found = []
    shards = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    for shard in shards:
        request = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        position = streams.get_shard_iterator(StreamArn=arn, **request)["ShardIterator"]
        records = streams.get_records(ShardIterator=position)["Records"]
        found += [record["dynamodb"] for record in records]
    assert len(shards) == count
    found.sort(key=lambda change: int(change["SequenceNumber"]))
    assert [change["Keys"]["p"]["S"] for change in found] == names


def test_18_a_backup_is_exact(bench: Bench) -> None:
    bench.put("before")
    made = bench.client.create_backup(TableName="items", BackupName="copy")["BackupDetails"]
    bench.put("after")
    arn = made["BackupArn"]
    assert made["BackupStatus"] == "CREATING"
    described = bench.client.describe_backup(BackupArn=arn)["BackupDescription"]
    assert described["BackupDetails"]["BackupStatus"] == "AVAILABLE"
    bench.client.restore_table_from_backup(TargetTableName="again", BackupArn=arn)
    assert [item["s"]["S"] for item in bench.client.scan(TableName="again")["Items"]] == ["before"]


def test_19_the_latest_restorable_time_is_now(bench: Bench) -> None:
    answer = recovery(bench)
    bench.clock.advance(1)
    bench.put("just now")
    described = bench.client.describe_continuous_backups(TableName="items")
    window = described["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert window["LatestRestorableDateTime"] == bench.clock.utc
    assert window["EarliestRestorableDateTime"] == answer["EarliestRestorableDateTime"]
    bench.client.restore_table_to_point_in_time(
        SourceTableName="items", TargetTableName="again", UseLatestRestorableTime=True
    )
    assert bench.client.scan(TableName="again")["Count"] == 1


def test_20_continuous_backups_are_enabled_at_once(bench: Bench) -> None:
    described = bench.client.describe_continuous_backups(TableName="items")
    assert described["ContinuousBackupsDescription"] == {
        "ContinuousBackupsStatus": "ENABLED",
        "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"},
    }
    assert recovery(bench)["PointInTimeRecoveryStatus"] == "ENABLED"


def recovery(bench: Bench) -> Any:
    answer = bench.client.update_continuous_backups(
        TableName="items", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    return answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]


def test_21_there_are_no_backups_of_aws_backup(bench: Bench) -> None:
    bench.client.create_backup(TableName="items", BackupName="copy")
    for kind, count in (("AWS_BACKUP", 0), ("USER", 1), ("ALL", 1)):
        assert len(bench.client.list_backups(BackupType=kind)["BackupSummaries"]) == count


def test_23_without_users_a_policy_denies_nothing(bench: Bench) -> None:
    arn = bench.created["TableArn"]
    statement = {"Effect": "Deny", "Principal": "*", "Action": "dynamodb:*", "Resource": arn}
    for effect in ("Deny", "Allow"):
        policy = json.dumps({"Version": "2012-10-17", "Statement": {**statement, "Effect": effect}})
        put = bench.client.put_resource_policy(ResourceArn=arn, Policy=policy)
        got = bench.client.get_resource_policy(ResourceArn=arn)
        assert (got["Policy"], got["RevisionId"]) == (policy, put["RevisionId"])
        bench.put("1")


def test_24_destinations_insights_and_scaling_are_recorded(bench: Bench) -> None:
    arn = "arn:aws:kinesis:us-east-1:000000000000:stream/nowhere"
    bench.client.enable_kinesis_streaming_destination(TableName="items", StreamArn=arn)
    bench.put("1")
    described = bench.client.describe_kinesis_streaming_destination(TableName="items")
    assert described["KinesisDataStreamDestinations"][0]["DestinationStatus"] == "ACTIVE"
    answer = bench.client.update_contributor_insights(
        TableName="items", ContributorInsightsAction="ENABLE"
    )
    assert answer["ContributorInsightsStatus"] == "ENABLING"
    described = bench.client.describe_contributor_insights(TableName="items")
    assert described["ContributorInsightsStatus"] == "ENABLED"
    scaling = bench.client.describe_table_replica_auto_scaling(TableName="items")
    (replica,) = scaling["TableAutoScalingDescription"]["Replicas"]
    assert replica["ReplicaProvisionedReadCapacityAutoScalingSettings"]["AutoScalingDisabled"]


VECTORS: dict[str, Any] = {
    "TableName": "vectors",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
NEAR: dict[str, Any] = {
    "IndexName": "near",
    "VectorAttribute": {"AttributeName": "v"},
    "Dimensions": 1,
    "DistanceFunction": "EUCLIDEAN",
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}


def put_vector(client: Any, p: str, number: float, **more: Any) -> dict[str, Any]:
    item = {"p": {"S": p}, "v": {"L": [{"N": str(number)}]}, **more}
    return client.put_item(TableName="vectors", Item=item, ReturnConsumedCapacity="INDEXES")


def search_vectors(client: Any, number: float = 0, **more: Any) -> dict[str, Any]:
    options = {"TableName": "vectors", "IndexName": "near", "TopK": 100, **more}
    return client.search_vectors(SearchVector=[{"N": str(number)}], **options)


def test_25_searches_are_exact(bench: Bench) -> None:
    created = bench.client.create_table(**VECTORS, VectorIndexes=[NEAR])
    assert created["TableDescription"]["VectorIndexes"][0]["IndexStatus"] == "CREATING"
    for number in range(200):
        put_vector(bench.client, f"{number}", number // 2)
    searches = [search_vectors(bench.client, 50, TopK=5)["SearchResults"] for _ in range(3)]
    assert searches[0] == searches[1] == searches[2]
    found = [result["Item"]["p"]["S"] for result in searches[0]]
    assert {*found[:2]} == {"100", "101"}
    assert {*found[2:]} < {"98", "99", "102", "103"}


def test_26_a_vector_index_is_never_behind(bench: Bench) -> None:
    bench.client.create_table(**VECTORS)
    put_vector(bench.client, "a", 1)
    bench.client.update_table(TableName="vectors", VectorIndexUpdates=[{"Create": NEAR}])
    bench.database.finish_maintenance()
    put_vector(bench.client, "b", 0)
    found = search_vectors(bench.client)["SearchResults"]
    assert [result["Item"]["p"]["S"] for result in found] == ["b", "a"]


def test_27_bytes_of_vectors_follow_a_formula(bench: Bench) -> None:
    index = {**NEAR, "Dimensions": 4096}
    bench.client.create_table(**VECTORS, VectorIndexes=[index])
    item = {"p": {"S": "a"}, "v": {"L": [{"N": "0.5"}] * 4096}}
    put = bench.client.put_item(TableName="vectors", Item=item, ReturnConsumedCapacity="INDEXES")
    size = 4 * 4096 + len("v") + len("p") + len("a")
    assert put["ConsumedCapacity"]["VectorIndexes"] == {"near": {"VectorWriteRequestBytes": size}}
    for _ in range(2):
        searched = bench.client.search_vectors(
            TableName="vectors",
            IndexName="near",
            SearchVector=item["v"]["L"],
            TopK=1,
            ReturnConsumedCapacity="TOTAL",
        )
        capacity = searched["ConsumedCapacity"]
        assert capacity == {"VectorSearchRequestBytes": pytest.approx(17.6 * 4096 + 2)}


def test_28_search_results_end_at_16_mb(bench: Bench) -> None:
    index = {**NEAR, "Projection": {"ProjectionType": "ALL"}}
    bench.client.create_table(**VECTORS, VectorIndexes=[index])
    for number in range(50):
        put_vector(bench.client, f"{number}", number, x={"S": "x" * 400_000})
    assert len(search_vectors(bench.client)["SearchResults"]) == 41


def test_29_searches_have_no_endpoint_of_their_own(bench: Bench) -> None:
    bench.client.create_table(**VECTORS, VectorIndexes=[NEAR])
    put_vector(bench.client, "a", 1)
    with running_server(bench.database) as url:
        session = boto3.Session("key", "secret", region_name="us-east-1")
        client = newest_client(session, endpoint_url=url)
        (result,) = search_vectors(client)["SearchResults"]
    assert result["Item"] == {"p": {"S": "a"}}


def test_30_an_unprojected_attribute_is_refused(bench: Bench) -> None:
    bench.client.create_table(**VECTORS, VectorIndexes=[NEAR])
    for projection in ("v", "x"):
        with pytest.raises(bench.client.exceptions.ClientError, match="does not project"):
            search_vectors(bench.client, ProjectionExpression=projection)


def test_31_a_table_with_a_new_vector_index_can_be_deleted(bench: Bench) -> None:
    bench.client.create_table(**VECTORS)
    bench.client.update_table(TableName="vectors", VectorIndexUpdates=[{"Create": NEAR}])
    bench.client.delete_table(TableName="vectors")
    assert "vectors" not in bench.client.list_tables()["TableNames"]


# Exports and imports


class Buckets:
    """A database in memory with a table `items`, and buckets in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = isotone.open(s3=folder)
        self.client = self.database.client()
        self.client.create_table(TableName="items", **ONE_KEY)
        self.client.update_continuous_backups(
            TableName="items",
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )

    def export(self, **more: Any) -> dict[str, Any]:
        arn = self.client.export_table_to_point_in_time(
            TableArn="items", S3Bucket="exports", **more
        )["ExportDescription"]["ExportArn"]
        self.client.get_waiter("export_completed").wait(ExportArn=arn)
        described: dict[str, Any] = self.client.describe_export(ExportArn=arn)["ExportDescription"]
        return described

    def load(self, bucket: str, **more: Any) -> dict[str, Any]:
        arn = self.client.import_table(
            S3BucketSource={"S3Bucket": bucket},
            InputFormat="DYNAMODB_JSON",
            TableCreationParameters={"TableName": "again", **ONE_KEY},
            **more,
        )["ImportTableDescription"]["ImportArn"]
        self.database.finish_maintenance()
        done: dict[str, Any] = self.client.describe_import(ImportArn=arn)["ImportTableDescription"]
        return done

    def write(self, bucket: str, *records: Any) -> None:
        (self.folder / bucket).mkdir(parents=True)
        text = "\n".join(map(json.dumps, records))
        (self.folder / bucket / "data.json").write_text(text)

    def bulk(self, bucket: str) -> dict[str, Any]:
        arn = self.client.start_bulk_put_items(
            TableName="items",
            InputS3Configuration={"S3Bucket": bucket, "InputFormat": "DYNAMODB_JSON"},
            OutputS3Configuration={"S3Bucket": "reports", "OutputType": ["ERROR"]},
            MaxWriteRequestUnits=1024,
        )["BulkOperationDescription"]["BulkOperationArn"]
        self.client.get_waiter("bulk_operation_completed").wait(BulkOperationArn=arn)
        done: dict[str, Any] = self.client.describe_bulk_operation(BulkOperationArn=arn)
        return dict(done["BulkOperationDescription"])


ONE_KEY: Any = {
    "KeySchema": schema("p"),
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def buckets(tmp_path: Path) -> Iterator[Buckets]:
    made = Buckets(tmp_path / "buckets")
    yield made
    assert made.database.check() == []
    made.database.close()


def test_32_buckets_are_folders(buckets: Buckets) -> None:
    export = buckets.export(S3BucketOwner="123456789012", S3SseAlgorithm="KMS", S3SseKmsKeyId="key")
    assert (buckets.folder / "exports" / export["ExportManifest"]).is_file()
    assert (export["S3BucketOwner"], export["S3SseKmsKeyId"]) == ("123456789012", "key")


def test_33_the_log_of_an_import_is_a_file(buckets: Buckets) -> None:
    one, two = ({"Item": {"p": {"S": "same"}, "v": {"N": number}}} for number in "12")
    buckets.write("mixed", one, {"Item": {}}, two)
    done = buckets.load("mixed")
    assert (done["ImportStatus"], done["ErrorCount"]) == ("FAILED", 1)
    identity = done["ImportArn"].rpartition("/")[2]
    log = buckets.folder / "aws-dynamodb" / "imports" / identity / "error"
    assert json.loads(log.read_text())["itemS3Pointer"]["itemIndex"] == 1
    assert buckets.client.scan(TableName="again")["Items"] == [two["Item"]]


def test_34_manifests_are_no_data(buckets: Buckets) -> None:
    buckets.client.put_item(TableName="items", Item={"p": {"S": "1"}})
    buckets.export()
    done = buckets.load("exports", InputCompressionType="GZIP")
    assert (done["ImportStatus"], done["ProcessedItemCount"]) == ("COMPLETED", 1)


def test_35_a_bulk_operation_reports_in_one_file(buckets: Buckets) -> None:
    buckets.write("puts", {"Item": {"q": {"S": "1"}}}, {"Item": {"p": {"S": "1"}}})
    done = buckets.bulk("puts")
    identity = done["BulkOperationArn"].rpartition("/")[2]
    (report,) = (path for path in (buckets.folder / "reports").rglob("*") if path.is_file())
    assert report == buckets.folder / "reports" / "AWSDynamoDB" / identity / "output.json"
    assert json.loads(report.read_text())["outputType"] == "ERROR"
    assert (done["PerformanceTier"], done["MaxWriteRequestUnits"]) == ("STANDARD", 1024)


def test_36_bytes_are_those_of_items(buckets: Buckets) -> None:
    buckets.write("puts", {"Item": {"p": {"S": "1234"}}})
    assert buckets.bulk("puts")["BulkOperationUsage"][0]["BulkPutBytes"] == 5
    assert buckets.export()["BilledSizeBytes"] == 5


def replicated(bench: Bench, **more: Any) -> Any:
    """A client of another region, to which the table is replicated."""
    updates = [{"Create": {"RegionName": region}} for region in ("eu-west-1", "eu-west-2")]
    bench.client.delete_table(TableName="items")
    bench.client.create_table(
        TableName="items",
        KeySchema=TABLE["KeySchema"],
        AttributeDefinitions=TABLE["AttributeDefinitions"][:2],
        BillingMode="PAY_PER_REQUEST",
    )
    bench.client.update_table(TableName="items", ReplicaUpdates=updates, **more)
    return bench.database.region("eu-west-1").client()


def test_37_replicas_are_never_behind(bench: Bench) -> None:
    other = replicated(bench)
    bench.put("1")
    assert other.scan(TableName="items")["Count"] == 1


def test_38_regions_share_their_tables(bench: Bench) -> None:
    other = bench.database.in_region("eu-west-1").client()
    assert other.list_tables()["TableNames"] == ["items"]
    with isotone.open(regions=True) as database:
        database.client().create_table(**TABLE)
        assert database.in_region("eu-west-1").client().list_tables()["TableNames"] == []


def test_39_attributes_of_replication_come_with_the_write(bench: Bench) -> None:
    with isotone.open(regions=True) as database:
        client = database.client()
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        client.create_table(**TABLE, StreamSpecification=stream)
        client.create_global_table(
            GlobalTableName="items", ReplicationGroup=[{"RegionName": "us-east-1"}]
        )
        client.put_item(TableName="items", Item=KEY)
        streams = database.streams_client()
        (found,) = streams.list_streams()["Streams"]
        described = streams.describe_stream(StreamArn=found["StreamArn"])["StreamDescription"]
        records = []
        for shard in described["Shards"]:
            iterator = streams.get_shard_iterator(
                StreamArn=found["StreamArn"],
                ShardId=shard["ShardId"],
                ShardIteratorType="TRIM_HORIZON",
            )["ShardIterator"]
            records += streams.get_records(ShardIterator=iterator)["Records"]
        (record,) = records
        assert "aws:rep:updatetime" in record["dynamodb"]["NewImage"]


def test_40_strong_replicas_never_conflict(bench: Bench) -> None:
    other = replicated(bench, MultiRegionConsistency="STRONG")
    bench.put("1")
    other.transact_write_items(TransactItems=[{"Delete": {"TableName": "items", "Key": KEY}}])
    assert bench.client.scan(TableName="items")["Count"] == 0


def test_41_parameters_of_several_accounts_are_ignored(bench: Bench) -> None:
    def ask(action: str, **request: Any) -> dict[str, Any]:
        body = json.dumps({**request, "TableName": "items"}).encode()
        answer: dict[str, Any] = json.loads(bench.database.send(action, body))
        return answer

    bench.client.delete_table(TableName="items")
    source = "arn:aws:dynamodb:us-east-1:123456789012:table/items"
    mode = {"GlobalTableSettingsReplicationMode": "ENABLED"}
    ask("CreateTable", **TABLE, **mode, GlobalTableSourceArn=source)
    protected = {"DisassociationProtectionEnabled": True, "DeletionProtectionEnabled": True}
    ask("UpdateTable", **mode, **protected)
    leaving = {"RegionName": "eu-west-1", "DisassociationMode": "WAIT_FOR_REPLICATION"}
    ask("UpdateTable", ReplicaUpdates=[{"Disassociate": leaving}])
    described = bench.client.describe_table(TableName="items")["Table"]
    assert described["DeletionProtectionEnabled"] is True
    assert "GlobalTableSettingsReplicationMode" not in described
    assert "Replicas" not in described


def test_42_web_pages_are_refused(bench: Bench) -> None:
    page = {"Origin": "http://example.com"}
    for options, status in ({}, 403), ({"allow_origins": ["http://example.com"]}, 404):
        with running_server(bench.database, **options) as url:  # type: ignore[arg-type] # one of two forms
            connection = http.client.HTTPConnection(urlsplit(url).netloc)
            connection.request("POST", "/", b"{}", page)
            response = connection.getresponse()
            assert response.status == status
            connection.close()


def test_43_a_batch_of_statements_is_refused_as_a_whole(bench: Bench, tmp_path: Path) -> None:
    key = new_key()
    with changing_users(tmp_path / "users.json") as users:
        users["reader"] = User(keys=[key], read_only=True)
    with running_server(bench.database, credentials=tmp_path / "users.json") as url:
        client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id=key.access_key_id,
            aws_secret_access_key=key.secret_access_key,
        )
        statements = [
            {"Statement": "INSERT INTO items VALUE {'id': '1'}"},
            {"Statement": "INSERT INTO items VALUE {'id': '2'}"},
        ]
        with pytest.raises(client.exceptions.ClientError, match="AccessDeniedException"):
            client.batch_execute_statement(Statements=statements)
        client.close()
    assert bench.client.scan(TableName="items")["Count"] == 0


def test_44_tables_of_a_batch_are_checked_in_their_order(bench: Bench) -> None:
    bench.client.create_table(
        TableName="aside",
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    faults: dict[str, Any] = {"items": {"p": {"N": "1"}}, "aside": {"p": {"S": ""}}}
    told = []
    for names in (("items", "aside"), ("aside", "items")):
        with pytest.raises(bench.client.exceptions.ClientError) as error:
            bench.client.batch_get_item(
                RequestItems={name: {"Keys": [faults[name]]} for name in names}
            )
        told.append(error.value.response["Error"]["Message"])
    assert told[0] == "The provided key element does not match the schema"
    assert "cannot contain an empty string value" in told[1]


def test_45_an_incremental_export_has_no_filter(bench: Bench) -> None:
    with pytest.raises(
        bench.client.exceptions.ClientError,
        match=r"ValidationException.*FilterSpecification is only supported for FULL_EXPORT",
    ):
        bench.client.export_table_to_point_in_time(
            TableArn="items",
            S3Bucket="exports",
            ExportType="INCREMENTAL_EXPORT",
            IncrementalExportSpecification={},
            FilterSpecification={"FilterExpression": "attribute_exists(a)"},
        )
