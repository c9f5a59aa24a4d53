"""What users of moto have, by `mock_aws`: its methods, its configuration, its rules for classes and credentials."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import aioboto3
import boto3
import pytest
from botocore import handlers
from botocore.endpoint import Endpoint
from botocore.exceptions import ClientError, NoRegionError

import isotone
from isotone.errors import UsageError
from isotone.testing import mock_aws, mock_dynamodb
from isotone.testing.mock import MockAWS

pytestmark = pytest.mark.usefixtures("bare_environment")

EARLY = boto3.client("dynamodb", region_name="us-east-1")


def create(name: str, client: Any = EARLY) -> str:
    description = client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )["TableDescription"]
    return description["TableArn"]  # type: ignore[no-any-return]


def names(client: Any = EARLY) -> list[str]:
    return client.list_tables()["TableNames"]  # type: ignore[no-any-return]


# start, stop, reset


def test_stop_twice_is_a_runtime_error() -> None:
    mock = mock_aws()
    mock.start()
    mock.stop()
    with pytest.raises(RuntimeError, match="without start"):
        mock.stop()


def test_the_block_gives_the_mock() -> None:
    with mock_aws() as mock:
        assert isinstance(mock, MockAWS)
        create("music")
        assert names(mock.in_region("us-east-1").client()) == ["music"]


def test_reset_empties_all_regions_in_place() -> None:
    there = boto3.client("dynamodb", region_name="eu-west-1")
    with mock_aws() as mock:
        create("music")
        create("music", there)
        database = mock.in_region("us-east-1")
        mock.reset()
        assert names() == names(there) == names(database.client()) == []
        create("films")
        EARLY.put_item(TableName="films", Item={"pk": {"S": "a"}})
        assert names(database.client()) == ["films"]
        assert database.check() == []


def test_reset_forgets_tokens_and_protection() -> None:
    write = {"Put": {"TableName": "music", "Item": {"pk": {"S": "a"}}}}
    with mock_aws() as mock:
        for _ in range(2):
            create("music")
            EARLY.update_table(TableName="music", DeletionProtectionEnabled=True)
            EARLY.transact_write_items(TransactItems=[write], ClientRequestToken="once")
            assert EARLY.scan(TableName="music")["Count"] == 1
            mock.reset()


def test_reset_leaves_a_given_database_alone() -> None:
    with isotone.open() as own:
        mock = mock_dynamodb(database=own)
        with mock:
            create("music")
            with pytest.raises(UsageError, match="was given"):
                mock.reset()
            assert names() == ["music"]


def test_data_is_kept_where_asked() -> None:
    mock = mock_aws()
    mock.start()
    create("music")
    mock.stop(remove_data=False)
    mock.start(reset=False)
    assert names() == ["music"]
    mock.stop()
    mock.start(reset=False)
    assert names() == []
    create("films")
    mock.stop(remove_data=False)
    with mock_aws():
        assert names() == []


# Credentials, sessions and regions


def test_a_missing_region_fails_as_with_boto3(bare_environment: pytest.MonkeyPatch) -> None:
    with mock_aws():
        with pytest.raises(NoRegionError):
            boto3.client("dynamodb")
        bare_environment.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        assert create("music", boto3.client("dynamodb")).startswith("arn:aws:dynamodb:eu-west-1:")


@pytest.mark.parametrize("before", [None, "real"])
def test_no_credentials_outlive_the_mock(
    before: str | None, bare_environment: pytest.MonkeyPatch
) -> None:
    session = before and boto3.Session("real", "real", region_name="eu-west-1")
    bare_environment.setattr(boto3, "DEFAULT_SESSION", session)
    with mock_aws():
        boto3.client("dynamodb", region_name="us-east-1").list_tables()
        inside = boto3.DEFAULT_SESSION
        assert inside is not session
        assert inside.get_credentials().access_key == "testing"
    assert boto3.DEFAULT_SESSION is session
    assert "AWS_ACCESS_KEY_ID" not in os.environ


def test_each_mock_has_its_own_session() -> None:
    seen: list[str] = []
    for _ in range(2):
        with mock_aws():
            client = boto3.client("dynamodb", region_name="us-east-1")
            client.list_tables()
            events = boto3.DEFAULT_SESSION.events
            events.register("before-send.dynamodb", lambda request, **_: seen.append(request.url))
    assert seen == []


def test_the_session_is_kept_where_asked(bare_environment: pytest.MonkeyPatch) -> None:
    session = boto3.Session("a", "b", region_name="eu-west-1")
    bare_environment.setattr(boto3, "DEFAULT_SESSION", session)
    with mock_aws(config={"core": {"reset_boto3_session": False}}):
        assert create("music", boto3.client("dynamodb")).startswith("arn:aws:dynamodb:eu-west-1:")
        assert boto3.DEFAULT_SESSION is session
    assert boto3.DEFAULT_SESSION is session


@pytest.mark.parametrize(("mocked", "key"), [(True, "testing"), (False, "mine")])
def test_keys_are_replaced_unless_told_otherwise(
    mocked: bool, key: str, bare_environment: pytest.MonkeyPatch
) -> None:
    bare_environment.setenv("AWS_ACCESS_KEY_ID", "mine")
    with mock_aws(config={"core": {"mock_credentials": mocked}}):
        assert os.environ["AWS_ACCESS_KEY_ID"] == key
    assert os.environ["AWS_ACCESS_KEY_ID"] == "mine"


def test_the_account_is_motos_or_the_one_asked_for(bare_environment: pytest.MonkeyPatch) -> None:
    with mock_aws():
        sts = boto3.client("sts", region_name="us-east-1")
        assert create("music") == "arn:aws:dynamodb:us-east-1:123456789012:table/music"
        assert sts.get_caller_identity()["Account"] == "123456789012"
        bare_environment.setenv("MOTO_ACCOUNT_ID", "111122223333")
        assert names() == []
        assert create("films") == "arn:aws:dynamodb:us-east-1:111122223333:table/films"
        identity = sts.get_caller_identity()
        assert identity["Account"] == "111122223333"
        assert identity["Arn"] == "arn:aws:sts::111122223333:user/moto"
        bare_environment.delenv("MOTO_ACCOUNT_ID")
        assert names() == ["music"]


def test_the_identity_is_known_to_aioboto3_too() -> None:
    async def account() -> str:
        async with aioboto3.Session().client("sts", region_name="us-east-1") as sts:
            return (await sts.get_caller_identity())["Account"]  # type: ignore[no-any-return]

    with mock_aws():
        assert asyncio.run(account()) == "123456789012"


def test_the_rest_of_sts_is_refused() -> None:
    with mock_aws(), pytest.raises(UsageError, match="service 'sts'"):
        boto3.client("sts", region_name="us-east-1").get_session_token()


@pytest.mark.parametrize(
    ("passthrough", "sent"),
    [
        ({"services": ["s3"]}, ["s3"]),
        ({"services": ["s3", "dynamodb"]}, ["dynamodb", "s3"]),
        ({"urls": ["https://sqs"]}, ["sqs"]),
        ({"services": [], "urls": []}, []),
    ],
)
def test_named_services_pass(
    passthrough: dict[str, Any], sent: list[str], bare_environment: pytest.MonkeyPatch
) -> None:
    class Sent(Exception):
        pass

    def send(endpoint: Endpoint, request: Any) -> Any:
        raise Sent

    bare_environment.setattr(Endpoint, "_send", send)
    calls = {"dynamodb": "list_tables", "s3": "list_buckets", "sqs": "list_queues"}
    found = []
    with mock_aws(config={"core": {"passthrough": passthrough}}):
        for service, call in calls.items():
            try:
                getattr(boto3.client(service, region_name="us-east-1"), call)()
            except Sent:
                found.append(service)
            except UsageError:
                pass
    assert found == sent


# Classes


@mock_aws
class TestHelpers:
    def make(self, name: str) -> None:
        create(name)

    @staticmethod
    def count() -> int:
        return len(names())

    def test_shares_the_mock_with_its_helpers(self) -> None:
        self.make("music")
        assert self.count() == 1

    def test_begins_empty(self) -> None:
        assert self.count() == 0

    class TestInside:
        def test_is_decorated_as_well(self) -> None:
            create("music")
            assert names() == ["music"]


@mock_aws
class Shop:
    """A class that is not a test: one call continues with the data of the one before."""

    def open(self) -> None:
        create("orders")

    def tables(self) -> list[str]:
        return names()


def test_helpers_alone_continue_with_their_data() -> None:
    with mock_aws():
        pass  # whatever was kept before is gone
    shop = Shop()
    shop.open()
    assert shop.tables() == ["orders"]
    with mock_aws():
        assert shop.tables() == []


@mock_aws
class TestClassSetup:
    @classmethod
    def setup_class(cls) -> None:
        cls.client = boto3.client("dynamodb", region_name="us-east-1")
        create("whole-class", cls.client)

    @classmethod
    def teardown_class(cls) -> None:
        assert names(cls.client) == ["whole-class"]

    def test_shares_the_class(self) -> None:
        assert names() == ["whole-class"]

    def test_shares_the_class_too(self) -> None:
        assert names(self.client) == ["whole-class"]


@mock_aws
class TestFixturesOfTheClass:
    @pytest.fixture(autouse=True)
    def tables(self) -> Iterator[None]:
        create("set-up")
        yield
        assert names() == ["set-up", "test"]

    def test_has_the_fixture(self) -> None:
        create("test")

    def test_has_the_fixture_again(self) -> None:
        assert names() == ["set-up"]
        create("test")


class TestSetupStartsTheMock:
    """As many suites of moto's users are written."""

    def setup_method(self) -> None:
        self.mock = mock_aws()
        self.mock.start()
        create("set-up")

    def teardown_method(self) -> None:
        self.mock.stop()

    def test_has_the_setup(self) -> None:
        assert names() == ["set-up"]

    @mock_aws
    def test_has_it_when_decorated(self) -> None:
        assert names() == ["set-up"]


def test_a_failing_class_setup_ends_the_mock() -> None:
    @mock_aws
    class Failing:
        @classmethod
        def setup_class(cls) -> None:
            raise LookupError

    methods = Endpoint.make_request
    with pytest.raises(LookupError):
        Failing.setup_class()
    assert Endpoint.make_request is methods


# Functions


@mock_aws
def test_has_motos_name() -> None:
    assert names() == []


@mock_aws()
async def coroutine() -> list[str]:
    await asyncio.sleep(0)
    create("music")
    return names()


def test_coroutines_are_mocked_while_they_run() -> None:
    assert asyncio.run(coroutine()) == ["music"]


class TestAutouse:
    @pytest.fixture(autouse=True)
    @mock_aws
    def mocked(self) -> Iterator[None]:
        create("set-up")
        yield
        assert names() == ["set-up"]

    def test_a_generator_fixture_stays_in_the_mock(self) -> None:
        assert names() == ["set-up"]


# Stacked with moto, in either order


class Elsewhere:
    """Plays moto: answers every service but DynamoDB before the request is sent, as its handler does."""

    def __call__(self, request: Any, **_: Any) -> Any:
        from isotone.testing.attachment import response

        if "dynamodb" not in request.url:
            return response(request.url, 200, b"<R><Buckets/></R>", "text/xml")
        return None


@contextmanager
def elsewhere() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        handler = ("before-send", Elsewhere())
        patch.setattr(handlers, "BUILTIN_HANDLERS", [*handlers.BUILTIN_HANDLERS, handler])
        yield


@pytest.mark.parametrize("outer_first", [True, False])
def test_stacks_with_handlers_that_answer_first(outer_first: bool) -> None:
    with mock_aws():
        boto3.Session()  # made without the handler
    mocks: list[AbstractContextManager[Any]] = [elsewhere(), mock_aws()]
    with mocks.pop(not outer_first), mocks.pop():
        assert boto3.client("s3", region_name="us-east-1").list_buckets()["Buckets"] == []
        assert names(boto3.client("dynamodb", region_name="us-east-1")) == []


@pytest.mark.parametrize("outer_first", [True, False])
def test_stacks_with_moto_itself(outer_first: bool) -> None:
    moto = pytest.importorskip("moto")
    mocks = [moto.mock_aws(), mock_aws()]
    with mocks.pop(not outer_first), mocks.pop():
        assert boto3.client("s3", region_name="us-east-1").list_buckets()["Buckets"] == []
        assert names(boto3.client("dynamodb", region_name="us-east-1")) == []


# Sessions


def test_models_of_ones_own_are_read_each_time(
    tmp_path: Any, bare_environment: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine" / "2020-01-01"
    folder.mkdir(parents=True)
    bare_environment.setenv("AWS_DATA_PATH", str(tmp_path))
    for name in ("first", "second"):
        (folder / "service-2.json").write_text('{"metadata": {"serviceId": "' + name + '"}}')
        with mock_aws():
            session = boto3.Session()
            assert "mine" in session.get_available_services()
            loaded = session._loader.load_service_model("mine", "service-2")
            assert loaded["metadata"]["serviceId"] == name


def test_an_unknown_service_is_unknown_in_the_mock_too() -> None:
    with mock_aws(), pytest.raises(Exception, match="Unknown service: 'nothing'") as inside:
        boto3.client("nothing", region_name="us-east-1")
    with pytest.raises(Exception, match="Unknown service: 'nothing'") as outside:
        boto3.client("nothing", region_name="us-east-1")
    assert str(inside.value) == str(outside.value)


def test_a_session_in_the_mock_has_the_handlers_of_any_other() -> None:
    def built_in() -> list[str]:
        seen: list[str] = []
        client = boto3.Session().client("dynamodb", region_name="us-east-1")
        emitter = client.meta.events._emitter
        for event in ("before-parameter-build", "request-created", "needs-retry", "before-sign"):
            found = emitter._handlers.prefix_search(f"{event}.dynamodb.PutItem")
            seen += [f"{event} {each.__name__}" for each in found if hasattr(each, "__name__")]
        return seen

    outside = built_in()
    with mock_aws():
        inside = [built_in(), built_in()]
    assert inside == [outside, outside]
    assert outside


def test_patches_of_sessions_end_with_the_mock() -> None:
    session = importlib.import_module("botocore.session").Session
    loaders = importlib.import_module("botocore.loaders")
    before = session.__init__, loaders.JSONFileLoader.load_file
    with mock_aws(), pytest.raises(ClientError):
        boto3.client("dynamodb", region_name="us-east-1").scan(TableName="none")
    assert (session.__init__, loaders.JSONFileLoader.load_file) == before
