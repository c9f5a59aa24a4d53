from __future__ import annotations

import asyncio
import os
import threading
import unittest
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aioboto3
import boto3
import botocore.session
import pytest
from botocore.config import Config
from botocore.endpoint import Endpoint
from botocore.exceptions import ClientError
from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

import isotone
from isotone.errors import NotStarted, UsageError
from isotone.server import running_server
from isotone.testing import mock_dynamodb

EARLY = boto3.client("dynamodb", region_name="us-east-1")
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

pytestmark = pytest.mark.usefixtures("bare_environment")


def names(client: Any) -> list[str]:
    return client.list_tables()["TableNames"]  # type: ignore[no-any-return]


def test_answers_clients_made_before_and_inside(music: dict[str, Any]) -> None:
    before = boto3.client("dynamodb", region_name="us-east-1")
    with mock_dynamodb():
        boto3.client("dynamodb").create_table(**music)
        for client in (EARLY, before, boto3.resource("dynamodb").meta.client):
            assert names(client) == ["music"]
        session = botocore.session.Session()
        assert names(session.create_client("dynamodb")) == ["music"]


def test_gives_the_database_of_the_default_region(music: dict[str, Any]) -> None:
    with mock_dynamodb() as database:
        boto3.client("dynamodb").create_table(**music)
        assert names(database.client()) == ["music"]


def test_each_region_has_its_own_database(music: dict[str, Any]) -> None:
    mock = mock_dynamodb()
    with mock as database:
        here, there = (boto3.client("dynamodb", region_name=r) for r in ("us-east-1", "eu-west-1"))
        arn = there.create_table(**music)["TableDescription"]["TableArn"]
        assert arn == "arn:aws:dynamodb:eu-west-1:123456789012:table/music"
        assert (names(here), names(there)) == ([], ["music"])
        assert mock.in_region("us-east-1") is database
        assert names(mock.in_region("eu-west-1").client()) == ["music"]


def test_begins_empty_each_time(music: dict[str, Any]) -> None:
    for _ in range(2):
        with mock_dynamodb():
            assert names(EARLY) == []
            EARLY.create_table(**music)


def test_an_inner_mock_shares_the_outer_one(music: dict[str, Any]) -> None:
    with mock_dynamodb() as outer:
        EARLY.create_table(**music)
        with mock_dynamodb() as inner:
            assert inner is outer
            assert names(EARLY) == ["music"]
        assert names(EARLY) == ["music"]


def test_a_given_database_answers_for_all_regions(music: dict[str, Any]) -> None:
    with isotone.open() as own, mock_dynamodb() as outer:
        with mock_dynamodb(database=own) as inner:
            assert inner is own
            boto3.client("dynamodb", region_name="eu-west-1").create_table(**music)
            assert names(EARLY) == ["music"]
        assert names(EARLY) == names(outer.client()) == []
        assert names(own.client()) == ["music"]


def test_endpoints_of_ones_own_are_answered_too(music: dict[str, Any]) -> None:
    with mock_dynamodb():
        local = boto3.client("dynamodb", endpoint_url="http://127.0.0.1:1")
        local.create_table(**music)
        assert names(EARLY) == ["music"]


def test_errors_come_out_as_botocores(music: dict[str, Any]) -> None:
    with mock_dynamodb():
        EARLY.create_table(**music)
        with pytest.raises(EARLY.exceptions.ResourceInUseException) as caught:
            EARLY.create_table(**music)
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        assert caught.value.response["ResponseMetadata"]["RetryAttempts"] == 0


def test_resources_write_and_read(music: dict[str, Any]) -> None:
    with mock_dynamodb():
        table = boto3.resource("dynamodb").create_table(**music)
        table.wait_until_exists()
        table.put_item(Item={"pk": "a", "n": 1, "bytes": b"\x00", "set": {"x"}})
        assert table.get_item(Key={"pk": "a"})["Item"] == {
            "pk": "a",
            "n": 1,
            "bytes": b"\x00",
            "set": {"x"},
        }


def test_streams_stay_in_the_process() -> None:
    with mock_dynamodb(), pytest.raises(ClientError) as caught:
        boto3.client("dynamodbstreams").get_records(ShardIterator="none")
    assert caught.value.operation_name == "GetRecords"


def test_other_services_are_refused() -> None:
    with mock_dynamodb():
        s3 = boto3.client("s3")
        with pytest.raises(UsageError, match="service 's3'"):
            s3.list_buckets()


def test_other_services_pass_when_asked_to(bare_environment: pytest.MonkeyPatch) -> None:
    sent = []
    bare_environment.setattr(Endpoint, "_send", lambda self, request: sent.append(request.url))
    with mock_dynamodb(other_services="pass"):
        s3 = boto3.client("s3", aws_access_key_id="a", aws_secret_access_key="b")
        with pytest.raises(AttributeError):  # our stand-in for the network answers None
            s3.list_buckets()
    assert sent == ["https://s3.amazonaws.com/"]


def test_a_before_send_handler_still_comes_first(music: dict[str, Any]) -> None:
    seen = []
    with mock_dynamodb():
        client = boto3.client("dynamodb")
        client.meta.events.register(
            "before-send.dynamodb", lambda request, **_: seen.append(request)
        )
        client.create_table(**music)
    assert [request.headers["X-Amz-Target"] for request in seen] == [
        b"DynamoDB_20120810.CreateTable"
    ]


def test_leaves_everything_as_it_was() -> None:
    methods = Endpoint.make_request, Endpoint._send
    session = boto3.DEFAULT_SESSION
    with mock_dynamodb():
        assert os.environ["AWS_ACCESS_KEY_ID"] == "testing"
        boto3.client("dynamodb").list_tables()
    assert "AWS_ACCESS_KEY_ID" not in os.environ
    assert "AWS_DEFAULT_REGION" not in os.environ
    assert (Endpoint.make_request, Endpoint._send) == methods
    assert boto3.DEFAULT_SESSION is session


def test_keeps_the_region_that_is_there(bare_environment: pytest.MonkeyPatch) -> None:
    bare_environment.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    mock = mock_dynamodb()
    with mock as database:
        assert mock.in_region("eu-west-1") is database
    assert os.environ["AWS_DEFAULT_REGION"] == "eu-west-1"


def test_real_keys_are_hidden(bare_environment: pytest.MonkeyPatch) -> None:
    real = dict.fromkeys(KEYS, "mine")
    for name in real:
        bare_environment.setenv(name, "mine")
    with mock_dynamodb():
        assert {os.environ[name] for name in real} == {"testing"}
        credentials = boto3.Session().get_credentials()
        assert (credentials.access_key, credentials.token) == ("testing", "testing")
    assert {name: os.environ[name] for name in real} == real


def test_other_services_get_the_real_keys(bare_environment: pytest.MonkeyPatch) -> None:
    bare_environment.setenv("AWS_ACCESS_KEY_ID", "mine")
    with mock_dynamodb(other_services="pass"):
        assert os.environ["AWS_ACCESS_KEY_ID"] == "mine"


def test_answers_every_thread(music: dict[str, Any]) -> None:
    with mock_dynamodb():
        EARLY.create_table(**music)

        def put(n: int) -> None:
            for i in range(20):
                EARLY.put_item(TableName="music", Item={"pk": {"S": f"{n}-{i}"}})

        threads = [threading.Thread(target=put, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert EARLY.scan(TableName="music")["Count"] == 80


def test_start_and_stop() -> None:
    mock = mock_dynamodb()
    database = mock.start()
    assert names(EARLY) == names(database.client()) == []
    mock.stop()
    for misuse in (mock.stop, mock.reset, lambda: mock.in_region("us-east-1")):
        with pytest.raises(NotStarted, match="not active"):
            misuse()


def test_refuses_an_unknown_option() -> None:
    with pytest.raises(UsageError, match='"refuse" or "pass"'):
        mock_dynamodb(other_services="maybe")  # type: ignore[call-overload]


@mock_dynamodb
def test_decorates_with_fixtures(music: dict[str, Any]) -> None:
    EARLY.create_table(**music)
    assert names(EARLY) == ["music"]


@mock_dynamodb()
@pytest.mark.parametrize("n", [1, 2])
def test_decorates_with_parentheses(n: int, music: dict[str, Any]) -> None:
    assert names(EARLY) == []
    EARLY.create_table(**music)


@pytest.fixture
@mock_dynamodb
def mocked(music: dict[str, Any]) -> Iterator[Any]:
    EARLY.create_table(**music)
    yield EARLY
    assert names(EARLY) == ["music"]


@mock_dynamodb
def test_decorates_fixtures_that_the_test_shares(mocked: Any) -> None:
    assert names(mocked) == ["music"]


def test_decorates_coroutines_and_their_generators(music: dict[str, Any]) -> None:
    @mock_dynamodb
    async def tables() -> list[str]:
        await asyncio.sleep(0)
        EARLY.create_table(**music)
        return names(EARLY)

    @mock_dynamodb
    async def each() -> AsyncIterator[list[str]]:
        yield names(EARLY)
        await asyncio.sleep(0)
        yield names(EARLY)

    async def collect() -> list[list[str]]:
        return [await tables(), *[found async for found in each()]]

    assert asyncio.run(collect()) == [["music"], [], []]


def test_answers_aioboto3(music: dict[str, Any]) -> None:
    async def use() -> Any:
        session = aioboto3.Session()
        async with session.client("dynamodb") as client:
            await client.create_table(**music)
            with pytest.raises(client.exceptions.ResourceNotFoundException):
                await client.scan(TableName="films")
        async with session.resource("dynamodb") as dynamodb:
            table = await dynamodb.Table("music")
            await table.put_item(Item={"pk": "a", "bytes": b"\x00"})
            return (await table.get_item(Key={"pk": "a"}))["Item"]

    with mock_dynamodb():
        assert asyncio.run(use()) == {"pk": "a", "bytes": b"\x00"}


class Tune(isotone.Entity, table=isotone.Table("songs")):
    name: isotone.Attr[str] = isotone.field()

    primary = isotone.Key("TUNE", name).sort("TUNE")


def test_answers_stores_of_amazons_service() -> None:
    given = isotone.Credentials("key", "secret")
    early = isotone.connect("dynamodb://us-east-1", credentials=given)

    async def names_there() -> list[str]:
        async with isotone.aconnect("dynamodb://eu-west-1", credentials=given) as store:
            await store.create_tables(Tune.__schema__.table)
            await store.put(Tune(name="b"))
            return [each.name async for each in store.iterate(Tune.primary.scan())]

    with mock_dynamodb() as database, early as store:
        store.create_tables(Tune.__schema__.table)
        assert store.put(Tune(name="a")) == store.get(Tune, name="a")
        assert names(boto3.client("dynamodb")) == names(database.client()) == ["songs"]
        with pytest.raises(isotone.errors.AlreadyExists):
            store.create(Tune(name="a"))
        with isotone.connect("dynamodb://eu-west-1") as there:  # with the mock's own keys
            assert there.backend.execute("ListTables", {}) == {"TableNames": []}
        assert asyncio.run(names_there()) == ["b"]


def test_stores_of_servers_reach_them() -> None:
    with isotone.open() as served, running_server(served) as url, mock_dynamodb() as mocked:
        with isotone.connect(url) as store:
            store.create_tables(Tune.__schema__.table)
        assert names(served.client()) == ["songs"]
        assert names(mocked.client()) == []


def test_refuses_other_services_of_aioboto3() -> None:
    async def use() -> None:
        async with aioboto3.Session().client(
            "sqs", config=Config(retries={"max_attempts": 0})
        ) as sqs:
            await sqs.list_queues()

    with mock_dynamodb(), pytest.raises(UsageError, match="service 'sqs'"):
        asyncio.run(use())


class Song(Model):
    """A table as PynamoDB declares it."""

    class Meta:
        table_name = "songs"
        region = "us-east-1"
        billing_mode = "PAY_PER_REQUEST"

    artist = UnicodeAttribute(hash_key=True)
    title = UnicodeAttribute(range_key=True)
    plays = NumberAttribute(default=0)


@mock_dynamodb
def test_answers_pynamodb() -> None:
    Song.create_table(wait=True)
    for title in ("Blue", "Carey", "River"):
        Song("Joni", title).save()
    river = Song.get("Joni", "River")
    river.update([Song.plays.add(2)])
    assert [(song.title, song.plays) for song in Song.query("Joni", Song.title > "C")] == [
        ("Carey", 0),
        ("River", 2),
    ]
    with pytest.raises(Song.DoesNotExist):
        Song.get("Joni", "Hejira")


@mock_dynamodb
class TestPlainClass:
    def test_begins_empty(self, music: dict[str, Any]) -> None:
        assert names(EARLY) == []
        EARLY.create_table(**music)

    def test_begins_empty_again(self) -> None:
        assert names(EARLY) == []

    @staticmethod
    def test_static() -> None:
        assert callable(names)


@mock_dynamodb
class TestClassWithSetup:
    def setup_method(self) -> None:
        assert names(EARLY) == []
        EARLY.create_table(
            TableName="set-up",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def teardown_method(self, method: Any) -> None:
        assert method.__name__.startswith("test_")
        assert names(EARLY) == ["set-up"]

    def test_has_the_setup(self) -> None:
        assert names(EARLY) == ["set-up"]

    def test_has_the_setup_again(self) -> None:
        assert names(EARLY) == ["set-up"]


def create(name: str) -> None:
    EARLY.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


@mock_dynamodb
class TestUnittest(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(names, EARLY)  # the mock is still there
        create("set-up")

    def test_has_the_setup(self) -> None:
        assert names(EARLY) == ["set-up"]

    def test_has_the_setup_again(self) -> None:
        assert names(EARLY) == ["set-up"]


@mock_dynamodb
class TestUnittestWithClassSetup(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        create("whole-class")

    def test_shares_the_class(self) -> None:
        assert names(EARLY) == ["whole-class"]

    def test_shares_the_class_too(self) -> None:
        assert names(EARLY) == ["whole-class"]


@mock_dynamodb
class TestAsyncUnittest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        create("set-up")

    async def test_has_the_setup(self) -> None:
        assert names(EARLY) == ["set-up"]


def test_a_failing_setup_ends_the_mock() -> None:
    @mock_dynamodb
    class Failing:
        def setup_method(self) -> None:
            raise LookupError

    methods = Endpoint.make_request
    with pytest.raises(LookupError):
        Failing().setup_method(None)  # type: ignore[call-arg]
    assert Endpoint.make_request is methods
