"""Faults that a test orders, through Isotone's client, boto3 and a store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, field
from isotone.errors import (
    ApiError,
    ConnectionFailed,
    ContinuousBackupsUnavailableException,
    ExpiredIteratorException,
    LimitExceededException,
    ProvisionedThroughputExceededException,
    ReplicatedWriteConflictException,
    RequestLimitExceeded,
    ResourceInUseException,
    ResourceNotFoundException,
    TableInUseException,
    ThrottlingException,
    TransactionCanceledException,
    TransactionConflictException,
    UsageError,
    ValidationException,
)
from isotone.testing import attach, mock_dynamodb
from isotone.testing.faults import Fault, Faults

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/music"


def table(name: str = "music", *, reads: int = 0, writes: int = 0) -> dict[str, Any]:
    """The parameters of a table with the key p and s, and an index by g."""
    throughput = {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes}
    index: dict[str, Any] = {
        "IndexName": "by-g",
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    billing: dict[str, Any] = {"BillingMode": "PAY_PER_REQUEST"}
    if reads:
        billing = {"ProvisionedThroughput": throughput}
        index["ProvisionedThroughput"] = throughput
    return {
        "TableName": name,
        "KeySchema": [
            {"AttributeName": "p", "KeyType": "HASH"},
            {"AttributeName": "s", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in "psg"],
        "GlobalSecondaryIndexes": [index],
        **billing,
    }


def item(p: str, s: str = "s", **more: Any) -> dict[str, Any]:
    return {name: {"S": value} for name, value in {"p": p, "s": s, **more}.items()}


class Site:
    """A database with a table, its clock, faults on it, and a client."""

    def __init__(self, database: isotone.Database, clock: isotone.ManualClock) -> None:
        self.database = database
        self.clock = clock
        self.faults = Faults(seed=1, clock=clock)
        self.client: Any = database.client()

    def put(self, p: str, s: str = "s", **more: Any) -> Any:
        return self.client.put_item(TableName="music", Item=item(p, s, **more))

    def count(self, **more: Any) -> int:
        found: int = self.client.scan(TableName="music", **more)["Count"]
        return found

    def accepted(self, attempts: int, call: Callable[[int], object]) -> int:
        """How many of these calls were not throttled."""
        done = 0
        for number in range(attempts):
            try:
                call(number)
                done += 1
            except (ProvisionedThroughputExceededException, ThrottlingException):
                pass
        return done


@pytest.fixture
def site() -> Iterator[Site]:
    clock = isotone.ManualClock()
    with isotone.open(clock=clock) as database:
        made = Site(database, clock)
        made.client.create_table(**table())
        with made.faults.on(database):
            yield made
        assert database.check() == []


def test_without_faults_everything_passes(site: Site) -> None:
    site.put("a")
    assert site.count() == 1
    assert site.faults.ordered == ()


def test_faults_end_with_their_block() -> None:
    faults = Faults()
    faults.fail(None, "InternalServerError")
    with isotone.open() as database:
        with faults.on(database), pytest.raises(ApiError):
            database.client().list_tables()
        assert database.client().list_tables()["TableNames"] == []


def test_a_fault_is_stopped_and_all_are_cleared(site: Site) -> None:
    first, second = site.faults.fail("PutItem"), site.faults.fail("Scan")
    first.stop()
    site.put("a")
    site.faults.clear()
    assert (site.count(), first.count, second.count) == (1, 0, 0)


# Errors


def test_the_nth_call_fails(site: Site) -> None:
    fault = site.faults.fail("PutItem", at=2)
    site.put("a")
    with pytest.raises(ProvisionedThroughputExceededException) as caught:
        site.put("b")
    site.put("c")
    assert (site.count(), fault.count) == (2, 1)
    assert caught.value.response["ThrottlingReasons"] == [
        {"reason": "TableWriteProvisionedThroughputExceeded", "resource": ARN}
    ]


@pytest.mark.parametrize(
    ("name", "kind", "member", "reason"),
    [
        (
            "ThrottlingException",
            ThrottlingException,
            "throttlingReasons",
            "TableReadMaxOnDemandThroughputExceeded",
        ),
        (
            "RequestLimitExceeded",
            RequestLimitExceeded,
            "ThrottlingReasons",
            "TableReadAccountLimitExceeded",
        ),
    ],
)
def test_each_throttle_has_its_reasons(
    site: Site, name: str, kind: type[ApiError], member: str, reason: str
) -> None:
    site.faults.fail("GetItem", name)
    with pytest.raises(kind) as caught:
        site.database.send("GetItem", b'{"TableName":"music","Key":{"p":{"S":"a"},"s":{"S":"s"}}}')
    assert caught.value.members[member] == [{"reason": reason, "resource": ARN}]


def test_an_unknown_error_or_fault_is_refused(site: Site) -> None:
    for misuse in (
        lambda: site.faults.fail("PutItem", "OutOfCheese"),
        lambda: site.faults.order("flood"),
        lambda: site.faults.order("fail", pears=3),
        lambda: site.faults.throttle(error="OutOfCheese"),  # type: ignore[arg-type]
        lambda: site.faults.stale_reads(),
        lambda: site.faults.conflict(rate=2),
    ):
        with pytest.raises(UsageError):
            misuse()


@given(seed=st.integers(0, 99), rate=st.floats(0, 1))
@settings(max_examples=20, deadline=None)
def test_the_same_seed_strikes_the_same_calls(seed: int, rate: float) -> None:
    def struck(*others: str) -> list[bool]:
        faults = Faults(seed)
        fault = faults.fail("ListTables", "InternalServerError", rate=rate)
        for other in others:
            faults.fail(other, rate=0.5)
        found = []
        with isotone.open() as database, faults.on(database):
            for _ in range(20):
                before = fault.count
                with suppress(ApiError):
                    database.client().list_tables()
                found.append(fault.count > before)
        return found

    assert struck() == struck("PutItem", "Scan")


def test_times_is_the_most(site: Site) -> None:
    fault = site.faults.fail("PutItem", times=2)
    assert site.accepted(5, lambda n: site.put(str(n))) == 3
    assert fault.count == 2


# Throttling


@pytest.fixture
def provisioned(site: Site) -> Site:
    site.client.delete_table(TableName="music")
    site.client.create_table(**table(reads=4, writes=2))
    return site


def test_a_table_is_throttled_at_its_declared_units(provisioned: Site) -> None:
    site = provisioned
    fault = site.faults.throttle()
    assert site.accepted(5, lambda n: site.put(str(n))) == 2
    assert fault.count == 3
    site.clock.advance(0.5)
    assert site.accepted(5, lambda n: site.put(str(n))) == 1
    site.clock.advance(10)  # no more than a second's units are kept
    assert site.accepted(5, lambda n: site.put(str(n))) == 2
    key = {"p": {"S": "0"}, "s": {"S": "s"}}
    get = lambda _: site.client.get_item(TableName="music", Key=key)  # noqa: E731
    assert site.accepted(20, get) == 8  # half a unit each


def test_units_are_given_and_a_large_item_leaves_a_debt(site: Site) -> None:
    site.faults.throttle("music", writes=2, burst=5)
    site.put("a", text="x" * 14_000)  # 14 units of 10
    with pytest.raises(ThrottlingException) as caught:
        site.put("b")
    assert caught.value.response["throttlingReasons"][0] == {
        "reason": "TableWriteMaxOnDemandThroughputExceeded",
        "resource": ARN,
    }
    site.clock.advance(2)
    assert site.accepted(1, lambda _: site.put("b")) == 0
    site.clock.advance(0.5)
    assert site.accepted(1, lambda _: site.put("b")) == 1


def test_a_hot_partition_is_throttled_alone(site: Site) -> None:
    site.faults.throttle(partition_writes=3, partition_reads=2)
    assert site.accepted(5, lambda n: site.put("hot", str(n))) == 3
    assert site.accepted(3, lambda n: site.put("cold", str(n))) == 3
    with pytest.raises(ThrottlingException) as caught:
        site.put("hot")
    (reason,) = caught.value.response["throttlingReasons"]
    assert reason["reason"] == "TableWriteKeyRangeThroughputExceeded"

    def query(number: int) -> Any:
        return site.client.query(
            TableName="music",
            KeyConditionExpression="#p = :p",
            ExpressionAttributeNames={"#p": "p"},
            ExpressionAttributeValues={":p": {"S": "hot"}},
        )

    assert site.accepted(9, query) == 4


def test_an_index_throttles_the_writes_of_its_table(site: Site) -> None:
    site.faults.throttle(index="by-g", writes=2)
    assert site.accepted(4, lambda n: site.put(str(n))) == 4  # not in the index
    assert site.accepted(4, lambda n: site.put(str(n), g="g")) == 2
    with pytest.raises(ThrottlingException) as caught:
        site.put("x", g="g")
    assert "one or more global secondary indexes" in str(caught.value)
    (reason,) = caught.value.response["throttlingReasons"]
    assert reason["reason"] == "IndexWriteMaxOnDemandThroughputExceeded"
    assert reason["resource"].endswith("/index/by-g")


def test_a_batch_is_left_unprocessed_where_it_is_throttled(site: Site) -> None:
    site.faults.throttle(partition_writes=1)
    site.put("hot", "0")
    puts = [{"PutRequest": {"Item": item(p, "1")}} for p in ("hot", "cold")]
    left = site.client.batch_write_item(RequestItems={"music": puts})["UnprocessedItems"]
    assert left == {"music": puts[:1]}
    with pytest.raises(ThrottlingException):
        site.client.batch_write_item(RequestItems=left)


def test_a_transaction_is_cancelled_where_it_is_throttled(site: Site) -> None:
    site.faults.throttle(partition_writes=1)
    site.put("hot")
    puts = [{"Put": {"TableName": "music", "Item": item(p, "1")}} for p in ("cold", "hot")]
    with pytest.raises(TransactionCanceledException) as caught:
        site.client.transact_write_items(TransactItems=puts)
    reasons = caught.value.response["CancellationReasons"]
    assert [each["Code"] for each in reasons] == ["None", "ThrottlingError"]
    assert site.count() == 1


def test_a_statement_of_a_batch_is_refused_where_it_is_throttled(site: Site) -> None:
    site.client.create_table(**table("songs"))

    def insert(name: str, p: str) -> dict[str, str]:
        return {"Statement": f"INSERT INTO \"{name}\" VALUE {{'p': '{p}', 's': 's'}}"}

    def codes(*statements: dict[str, str]) -> list[str | None]:
        response = site.client.batch_execute_statement(Statements=list(statements))
        return [each.get("Error", {}).get("Code") for each in response["Responses"]]

    fault = site.faults.throttle("music", writes=1)
    site.put("a")
    batch = insert("music", "b"), insert("songs", "a"), insert("music", "c"), insert("songs", "b")
    assert codes(*batch) == ["ThrottlingError", None, "ThrottlingError", None]
    assert codes(*batch[:1]) == ["ThrottlingError"]
    assert fault.count == 2
    # The answers of the others stand in their places.
    assert codes(*batch[:2], insert("songs", "c")) == ["ThrottlingError", "DuplicateItem", None]
    with pytest.raises(TransactionCanceledException) as caught:
        site.client.execute_transaction(TransactStatements=[insert("songs", "d"), batch[0]])
    reasons = caught.value.response["CancellationReasons"]
    assert [each["Code"] for each in reasons] == ["None", "ThrottlingError"]
    site.clock.advance(1)
    assert codes(batch[0]) == [None]
    site.faults.clear()
    site.faults.throttle("music", writes=1, error="RequestLimitExceeded")
    site.put("x")
    assert codes(batch[2]) == ["RequestLimitExceeded"]
    assert {each["p"]["S"] for each in site.client.scan(TableName="songs")["Items"]} == {*"abc"}


FAULTY_REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("Query", {"TableName": "music", "KeyConditionExpression": "p = :v"}),
    ("Query", {"TableName": "music", "KeyConditionExpression": 5}),
    ("Query", {"TableName": "music", "KeyConditionExpression": "p = :v", "IndexName": []}),
    ("Query", {"TableName": "m", "KeyConditionExpression": "p = :v"}),
    ("GetItem", {"TableName": "music", "Key": item("a"), "ReturnConsumedCapacity": "BOGUS"}),
    ("GetItem", {"TableName": "music", "Key": None}),
    ("PutItem", {"TableName": "music", "Item": []}),
    ("PutItem", {"TableName": "m", "Item": item("a")}),
    ("BatchGetItem", {"RequestItems": {"music": {}}}),
    ("BatchWriteItem", {"RequestItems": {"music": [{"PutRequest": 5}]}}),
    ("TransactWriteItems", {"TransactItems": [{"Put": {"Item": item("a")}}]}),
    ("TransactGetItems", {"TransactItems": [5]}),
    ("ExecuteStatement", {"Statement": 5}),
    ("BatchExecuteStatement", {"Statements": [{}]}),
    ("ExecuteTransaction", {"TransactStatements": 5}),
    ("UpdateTable", {"TableName": "music", "GlobalSecondaryIndexUpdates": [{"Create": {}}]}),
    ("GetRecords", {"ShardIterator": []}),
]


@pytest.mark.parametrize(("operation", "request_"), FAULTY_REQUESTS)
def test_a_faulty_request_is_refused_as_without_faults(
    site: Site, operation: str, request_: dict[str, Any]
) -> None:
    def refusal() -> tuple[type[ApiError], str]:
        with pytest.raises(ApiError) as caught:
            site.database.send(operation, json.dumps(request_).encode())
        return type(caught.value), str(caught.value)

    expected = refusal()
    for order in (
        site.faults.throttle,
        lambda: site.faults.conflict("music"),
        lambda: site.faults.stale_reads(writes=1),
        lambda: site.faults.leave_unprocessed(1.0),
        lambda: site.faults.slow_tables(creating=5, updating=5, indexes=5),
        site.faults.expire_iterators,
    ):
        fault = order()
        assert refusal() == expected
        fault.stop()


def test_the_capacity_that_was_asked_for_is_returned(site: Site) -> None:
    site.faults.throttle(writes=100)
    for asked, members in {
        "NONE": None,
        "TOTAL": {"TableName", "CapacityUnits"},
        "INDEXES": {"TableName", "CapacityUnits", "Table"},
    }.items():
        response = site.client.put_item(
            TableName="music", Item=item(asked), ReturnConsumedCapacity=asked
        )
        consumed = response.get("ConsumedCapacity")
        assert (consumed and set(consumed)) == members


# Conflicts, lost answers, batches, iterators, delays


def test_writes_and_transactions_conflict(site: Site) -> None:
    fault = site.faults.conflict("music")
    with pytest.raises(TransactionConflictException, match="Transaction is ongoing for the item"):
        site.put("a")
    puts = [{"Put": {"TableName": "music", "Item": item(p)}} for p in "abc"]
    with pytest.raises(TransactionCanceledException) as caught:
        site.client.transact_write_items(TransactItems=puts)
    codes = [each["Code"] for each in caught.value.response["CancellationReasons"]]
    assert sorted(codes) == ["None", "None", "TransactionConflict"]
    assert (site.count(), fault.count) == (0, 2)


def test_a_transaction_that_was_executed_never_conflicts(site: Site) -> None:
    site.faults.conflict(at=[1, 3])
    site.faults.lose_answers("TransactWriteItems", at=1)
    write = {
        "TransactItems": [{"Put": {"TableName": "music", "Item": item("a")}}],
        "ClientRequestToken": "once",
    }
    with pytest.raises(TransactionCanceledException):
        site.client.transact_write_items(**write)
    with pytest.raises(ConnectionFailed):
        site.client.transact_write_items(**write)
    site.client.transact_write_items(**write)
    with pytest.raises(TransactionConflictException):
        site.put("b")


def test_an_answer_is_lost_after_the_write(site: Site) -> None:
    site.faults.lose_answers("PutItem", at=1)
    with pytest.raises(ConnectionFailed, match="before PutItem was answered"):
        site.put("a")
    assert site.count() == 1


def test_boto3_retries_a_lost_answer(site: Site) -> None:
    site.faults.lose_answers("UpdateItem", at=1)
    client = boto3.client("dynamodb", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    with attach(client, site.database):
        response = client.update_item(
            TableName="music",
            Key=item("a"),
            UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="ALL_NEW",
        )
    assert response["ResponseMetadata"]["RetryAttempts"] == 1
    assert response["Attributes"]["n"] == {"N": "2"}  # it counted twice, as on the service


def test_the_mock_has_faults() -> None:
    faults = Faults()
    faults.fail("ListTables", "ThrottlingException")
    config = Config(retries={"total_max_attempts": 1})
    with mock_dynamodb() as database, faults.on(database), pytest.raises(ClientError) as caught:
        boto3.client("dynamodb", "us-east-1", config=config).list_tables()
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"


@given(data=st.data(), share=st.floats(0.1, 1), size=st.integers(1, 25), seed=st.integers(0, 9))
@settings(max_examples=examples(30), deadline=None)
def test_repeating_what_is_unprocessed_processes_all(
    data: st.DataObject, share: float, size: int, seed: int
) -> None:
    faults = Faults(seed)
    faults.leave_unprocessed(share)
    with isotone.open() as database, faults.on(database):
        client: Any = database.client()
        names = ["music", "films"]
        for name in names:
            client.create_table(**table(name))
        where = [data.draw(st.sampled_from(names)) for _ in range(size)]
        pending: dict[str, Any] = {}
        for number, name in enumerate(where):
            put = {"PutRequest": {"Item": item(str(number))}}
            pending.setdefault(name, []).append(put)
        requests = 0
        while pending:
            pending = client.batch_write_item(RequestItems=pending)["UnprocessedItems"]
            requests += 1
        keys = {
            name: {"Keys": [item(str(n)) for n, each in enumerate(where) if each == name]}
            for name in set(where)
        }
        found = []
        while keys:
            response = client.batch_get_item(RequestItems=keys)
            found += [
                (name, each["p"]["S"])
                for name in response["Responses"]
                for each in response["Responses"][name]
            ]
            keys = response["UnprocessedKeys"]
        assert sorted(found) == sorted((name, str(n)) for n, name in enumerate(where))
        assert requests <= size


def test_an_iterator_that_expired_stays_so(site: Site) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    site.client.update_table(TableName="music", StreamSpecification=stream)
    streams: Any = site.database.streams_client()
    (found,) = streams.list_streams()["Streams"]
    arn = found["StreamArn"]
    shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]

    def iterator() -> str:
        made: str = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        return made

    site.faults.expire_iterators(at=1)
    old = iterator()
    for _ in range(2):
        with pytest.raises(ExpiredIteratorException):
            streams.get_records(ShardIterator=old)
    site.clock.advance(1)
    streams.get_records(ShardIterator=iterator())


def test_a_delay_moves_the_clock(site: Site) -> None:
    before = site.clock.now()
    site.faults.delay(0.25, "PutItem")
    site.put("a")
    site.put("b")
    assert site.clock.now() == before + 0.5


# Stale reads


def test_reads_are_some_writes_behind(site: Site) -> None:
    site.put("before")
    site.faults.stale_reads(writes=2)
    seen = []
    for n in range(4):
        site.put(str(n))
        seen.append((site.count(), site.count(ConsistentRead=True)))
    assert seen == [(1, 2), (1, 3), (2, 4), (3, 5)]


def test_reads_are_some_seconds_behind(site: Site) -> None:
    fault = site.faults.stale_reads("music", seconds=2)
    key = item("a")
    site.put("a")
    get = lambda **more: site.client.get_item(TableName="music", Key=key, **more)  # noqa: E731
    assert "Item" not in get()
    assert "Item" in get(ConsistentRead=True)
    site.clock.advance(2)
    assert "Item" in get()
    site.client.delete_item(TableName="music", Key=key)
    assert "Item" in get()
    assert fault.count == 3


def test_an_index_is_behind_its_table(site: Site) -> None:
    site.faults.stale_reads(index="by-g", writes=1)
    site.put("a", g="x")
    site.put("b", g="x")

    def of(value: str) -> list[str]:
        found = site.client.query(
            TableName="music",
            IndexName="by-g",
            KeyConditionExpression="g = :g",
            ExpressionAttributeValues={":g": {"S": value}},
        )
        return [each["p"]["S"] for each in found["Items"]]

    assert (of("x"), site.count()) == (["a"], 2)
    site.put("a", g="y")
    assert (sorted(of("x")), of("y")) == (["a", "b"], [])


def test_a_batch_reads_each_table_as_asked(site: Site) -> None:
    site.client.create_table(**table("films"))
    site.faults.stale_reads(writes=5)
    site.put("a")
    site.client.put_item(TableName="films", Item=item("a"))
    keys = {"Keys": [item("a")]}
    response = site.client.batch_get_item(
        RequestItems={"music": keys, "films": {**keys, "ConsistentRead": True}}
    )
    assert response["Responses"] == {"music": [], "films": [item("a")]}


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "delete", "add"])), max_size=30
    )
)
@settings(max_examples=examples(30), deadline=None)
def test_a_stale_read_is_a_state_that_was(changes: list[tuple[str, str]]) -> None:
    faults = Faults()
    with isotone.open() as database, faults.on(database):
        client: Any = database.client()
        client.create_table(**table())
        faults.stale_reads(writes=3)
        read = lambda **more: client.scan(TableName="music", **more)["Items"]  # noqa: E731
        states = [read(ConsistentRead=True)]
        for number, (p, change) in enumerate(changes):
            if change == "put":
                client.put_item(TableName="music", Item=item(p, g=str(number)))
            elif change == "delete":
                client.delete_item(TableName="music", Key=item(p))
            else:
                client.update_item(
                    TableName="music",
                    Key=item(p),
                    UpdateExpression="SET g = :g",
                    ExpressionAttributeValues={":g": {"S": f"u{number}"}},
                )
            states.append(read(ConsistentRead=True))
            assert read() == states[max(0, len(states) - 4)]


def test_a_table_that_is_made_again_has_no_past(site: Site) -> None:
    site.faults.stale_reads(writes=3)
    site.put("a")
    site.client.delete_table(TableName="music")
    with pytest.raises(ResourceNotFoundException):
        site.count()
    site.client.create_table(**table())
    site.put("b")
    assert site.count() == 0


def test_statements_are_struck_as_other_requests_are(site: Site) -> None:
    def insert(p: str) -> dict[str, str]:
        return {"Statement": f"INSERT INTO \"music\" VALUE {{'p': '{p}', 's': 's'}}"}

    select = {"Statement": 'SELECT * FROM "music"'}
    site.faults.stale_reads(writes=1)
    site.client.execute_statement(**insert("a"))
    assert site.client.execute_statement(**select)["Items"] == []
    assert len(site.client.execute_statement(**select, ConsistentRead=True)["Items"]) == 1
    site.faults.clear()
    site.faults.throttle(writes=1)
    site.client.execute_statement(**insert("b"))
    with pytest.raises(ThrottlingException):
        site.client.execute_statement(**insert("c"))
    with pytest.raises(TransactionCanceledException, match="ThrottlingError"):
        site.client.execute_transaction(TransactStatements=[insert("c"), insert("d")])
    site.faults.clear()
    site.faults.conflict("music")
    site.client.execute_statement(**select)
    with pytest.raises(TransactionConflictException):
        site.client.execute_statement(**insert("c"))
    with pytest.raises(TransactionCanceledException, match="TransactionConflict"):
        site.client.execute_transaction(TransactStatements=[insert("c"), insert("d")])
    assert site.count() == 2


# Tables that take their time


def test_a_table_stays_creating(site: Site) -> None:
    site.faults.slow_tables(creating=5)
    status = lambda: site.client.describe_table(TableName="films")["Table"]["TableStatus"]  # noqa: E731
    site.client.create_table(**table("films"))
    assert status() == "CREATING"
    with pytest.raises(ResourceNotFoundException):
        site.client.put_item(TableName="films", Item=item("a"))
    with pytest.raises(ResourceInUseException, match="being created: films"):
        site.client.delete_table(TableName="films")
    with pytest.raises(ResourceInUseException, match="being created: films"):
        site.client.create_table(**table("films"))
    site.clock.advance(5)
    assert status() == "ACTIVE"
    site.client.put_item(TableName="films", Item=item("a"))


def test_settings_of_a_table_wait_until_it_is_there(site: Site) -> None:
    site.faults.slow_tables(creating=5)
    made = site.client.create_table(**table("films"))["TableDescription"]
    expiry = {"Enabled": True, "AttributeName": "until"}
    arn = made["TableArn"]

    def settings() -> None:
        site.client.update_time_to_live(TableName="films", TimeToLiveSpecification=expiry)

    def tags() -> None:
        site.client.tag_resource(ResourceArn=arn, Tags=[{"Key": "owner", "Value": "ann"}])

    def backup() -> None:
        site.client.create_backup(TableName="films", BackupName="copy")

    def recovery() -> None:
        site.client.update_continuous_backups(
            TableName="films", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )

    for call in (settings, tags):
        with pytest.raises(ResourceInUseException, match="still in use: Table is being created"):
            call()
    with pytest.raises(TableInUseException, match="being created: films"):
        backup()
    with pytest.raises(ContinuousBackupsUnavailableException, match="retry later"):
        recovery()
    assert site.client.describe_time_to_live(TableName="films")["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "DISABLED"
    }
    site.clock.advance(5)
    for call in (settings, tags, backup, recovery):
        call()


def test_a_table_stays_in_restore(site: Site) -> None:
    site.put("a")
    made = site.client.create_backup(TableName="music", BackupName="copy")["BackupDetails"]
    request = {"TargetTableName": "again", "BackupArn": made["BackupArn"]}
    site.faults.slow_tables(creating=5)
    site.client.restore_table_from_backup(**request)

    def described() -> tuple[str, bool]:
        described = site.client.describe_table(TableName="again")["Table"]
        return described["TableStatus"], described["RestoreSummary"]["RestoreInProgress"]

    assert described() == ("CREATING", True)
    with pytest.raises(ResourceNotFoundException):
        site.client.scan(TableName="again")
    with pytest.raises(TableInUseException, match="being created: again"):
        site.client.restore_table_from_backup(**request)
    site.clock.advance(5)
    assert described() == ("ACTIVE", False)
    assert site.client.scan(TableName="again")["Count"] == 1


def test_a_table_stays_updating_and_deleting(site: Site) -> None:
    site.faults.slow_tables(updating=5, deleting=5)
    status = lambda: site.client.describe_table(TableName="music")["Table"]["TableStatus"]  # noqa: E731
    site.client.update_table(TableName="music", DeletionProtectionEnabled=False)
    assert status() == "UPDATING"
    site.put("a")
    with pytest.raises(ResourceInUseException, match="being updated: music"):
        site.client.update_table(TableName="music", DeletionProtectionEnabled=True)
    with pytest.raises(ResourceInUseException, match="being updated: music"):
        site.client.delete_table(TableName="music")
    with pytest.raises(ResourceInUseException, match="already exists: music"):
        site.client.create_table(**table())
    site.client.update_time_to_live(
        TableName="music", TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"}
    )
    site.clock.advance(5)
    assert status() == "ACTIVE"
    site.client.delete_table(TableName="music")
    site.client.delete_table(TableName="music")
    assert (status(), site.client.list_tables()["TableNames"]) == ("DELETING", ["music"])
    with pytest.raises(ResourceInUseException, match="being deleted: music"):
        site.client.create_table(**table())
    with pytest.raises(ResourceInUseException, match="being deleted: music"):
        site.client.update_table(TableName="music", DeletionProtectionEnabled=True)
    site.clock.advance(5)
    with pytest.raises(ResourceNotFoundException):
        status()
    site.client.create_table(**table())


def test_an_index_stays_creating(site: Site) -> None:
    site.faults.slow_tables(indexes=60)
    create = {
        "IndexName": "by-s",
        "KeySchema": [{"AttributeName": "s", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    site.client.update_table(
        TableName="music",
        AttributeDefinitions=[{"AttributeName": "s", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": create}],
    )
    site.database.finish_maintenance()

    def status() -> dict[str, str]:
        indexes = site.client.describe_table(TableName="music")["Table"]["GlobalSecondaryIndexes"]
        return {each["IndexName"]: each["IndexStatus"] for each in indexes}

    def scan() -> int:
        return site.count(IndexName="by-s")

    site.put("a")
    assert status() == {"by-g": "ACTIVE", "by-s": "CREATING"}
    with pytest.raises(LimitExceededException, match="Only 1 online index"):
        site.client.update_table(
            TableName="music",
            AttributeDefinitions=[{"AttributeName": "s", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[{"Create": {**create, "IndexName": "by-t"}}],
        )
    with pytest.raises(ValidationException, match="backfilling global secondary index: by-s"):
        scan()
    site.clock.advance(60)
    assert (status()["by-s"], scan()) == ("ACTIVE", 1)


# Replicas


def test_replicas_lag_until_the_fault_ends(site: Site) -> None:
    create = [{"Create": {"RegionName": "eu-west-1"}}]
    site.client.update_table(TableName="music", ReplicaUpdates=create)
    away: Any = site.database.region("eu-west-1").client()

    def there() -> int:
        site.database.finish_maintenance()
        count: int = away.scan(TableName="music")["Count"]
        return count

    lag = site.faults.lag_replicas(seconds=10)
    site.put("a")
    assert (there(), lag.count) == (0, 1)
    site.clock.advance(10)
    assert there() == 1
    paused = site.faults.lag_replicas(paused=True)
    site.put("b")
    site.clock.advance(60)
    assert there() == 1
    paused.stop()
    assert there() == 2
    site.faults.clear()
    assert site.database.replication == (0.0, False)
    site.put("c")
    assert away.scan(TableName="music")["Count"] == 3


def test_replicas_lag_while_the_faults_are_on() -> None:
    faults = Faults()
    faults.lag_replicas(paused=True)
    with isotone.open() as database:
        with faults.on(database):
            assert database.replication == (0.0, True)
        assert database.replication == (0.0, False)


@pytest.mark.parametrize("options", [{}, {"seconds": -1}, {"seconds": 1, "paused": True}])
def test_a_lag_is_of_seconds_or_without_end(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="either seconds="):
        Faults().lag_replicas(**options)


def test_a_write_conflicts_with_one_of_another_region(site: Site) -> None:
    site.faults.fail("PutItem", "ReplicatedWriteConflictException", at=1)
    with pytest.raises(ReplicatedWriteConflictException, match="in another Region"):
        site.put("a")
    assert site.count() == 0
    site.faults.fail("PutItem", "ReplicatedWriteConflictException", times=1)
    store = isotone.connect(site.database)
    store.backend.execute("PutItem", {"TableName": "music", "Item": item("a")})  # tried again
    assert site.count() == 1


# Stores

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=999)
    total: Attr[int] = field(default=0)

    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    all = Index("GSI1", "ORDERS").sort(number)


def test_a_store_retries_as_with_a_server(site: Site) -> None:
    store = isotone.connect(site.database)
    store.create_tables(shop)
    throttled = site.faults.fail("PutItem", at=[1, 2])
    lost = site.faults.lose_answers("GetItem", at=1)
    store.put(Order(customer="ann", number=1))
    assert store.get(Order, customer="ann", number=1)
    assert (throttled.count, lost.count) == (2, 1)
    site.faults.fail("Query")
    with pytest.raises(ProvisionedThroughputExceededException):
        store.all(Order.primary.where(Order.customer == "ann"))


def test_an_async_store_has_faults(site: Site) -> None:
    async def use() -> int:
        async with isotone.aconnect(site.database) as store:
            await store.create_tables(shop)
            fault = site.faults.fail("UpdateItem", at=1)
            await store.put(Order(customer="ann", number=1))
            await store.update(Order, Order.total.add(2), customer="ann", number=1)
            assert fault.count == 1
            order = await store.get(Order, customer="ann", number=1)
            return order.total if order else 0

    assert asyncio.run(use()) == 2


def test_around_any_backend(site: Site) -> None:
    faults = Faults(clock=site.clock)
    fault = faults.fail("PutItem", at=1)
    store = isotone.connect(faults.around(isotone.connect(site.client).backend))
    store.create_tables(shop)
    store.put(Order(customer="ann", number=1))
    assert fault.count == 1


def test_a_query_of_an_index_is_stale_in_a_store(site: Site) -> None:
    store = isotone.connect(site.database)
    store.create_tables(shop)
    site.faults.stale_reads(index="GSI1", seconds=1)
    store.put(Order(customer="ann", number=1))
    assert store.all(Order.all.where()) == []
    site.clock.advance(1)
    assert [order.number for order in store.all(Order.all.where())] == [1]


def test_the_fixture(isotone_faults: Faults, dynamodb_client: Any, isotone_clock: Any) -> None:
    before = isotone_clock.now()
    fault = isotone_faults.delay(3)
    assert isinstance(fault, Fault)
    assert dynamodb_client.list_tables()["TableNames"] == []
    assert isotone_clock.now() == before + 3
