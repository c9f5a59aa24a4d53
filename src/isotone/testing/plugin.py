"""The pytest plugin: `isotone_database`, `isotone_client`, `dynamodb_client` …: a database for each test, and clients.

pytest loads this module in every project that has Isotone installed, so it imports only pytest. Databases
and boto3 load when a fixture first needs them. Processes share nothing: each worker of pytest-xdist has its
own databases.

The tables and data of `isotone_schema` are created once, and each test's changes are rolled back. So a test
gets a fresh database in microseconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from isotone.backends.embedded import Database
    from isotone.client import Client
    from isotone.clock import ManualClock
    from isotone.testing.faults import Faults
    from isotone.testing.fixture_clients import FixtureClients
    from isotone.testing.prepared import Prepared, SwitchedClock

Schema = Callable[["Client"], object]
AsyncClients = Callable[[], AbstractAsyncContextManager[Any]]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # pytest rewrites the assertions in a plugin's whole distribution; this one is a library without
    # any.
    marked: set[str] = getattr(pluginmanager.rewrite_hook, "_must_rewrite", set())
    marked.discard("isotone")
    parser.addini(
        "isotone_mock_dynamodb",
        "Use the fixture mock_dynamodb in every test that is not marked real_dynamodb.",
        type="bool",
        default=False,
    )
    parser.addini("isotone_region", "The region of Isotone's fixtures.", default="us-east-1")
    parser.addini(
        "isotone_s3",
        "The buckets of exports and imports: a folder, or the URL of an S3 endpoint. By default, the S3 that a test mocks.",
        default="",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "real_dynamodb: do not patch boto3 in this test, even if isotone_mock_dynamodb is set.",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getini("isotone_mock_dynamodb"):
        return
    for item in items:
        names = getattr(item, "fixturenames", None)
        if names is not None and item.get_closest_marker("real_dynamodb") is None:
            # pytest shares the list between the cases of a function, of which only some may be marked.
            vars(item)["fixturenames"] = ["mock_dynamodb", *names]


@pytest.fixture(scope="session")
def isotone_schema() -> Schema | None:
    """The tables and data that every test starts with. Override it:

    @pytest.fixture(scope="session")
    def isotone_schema():
        def prepare(client):
            client.create_table(TableName="music", ...)

        return prepare

    The function is called once, with Isotone's client on an empty database; boto3 inside it uses the same
    database. Every test sees what it creates, and may change it.
    """
    return None


@pytest.fixture
def isotone_database(
    _isotone_prepared: Prepared, isotone_schema: Schema | None
) -> Iterator[Database]:
    """An `isotone.Database` in memory with the tables of `isotone_schema`, fresh for each test."""
    with _isotone_prepared.fresh(isotone_schema) as database:
        yield database


@pytest.fixture
def isotone_client(isotone_database: Database) -> Client:
    """Isotone's client: the methods of boto3's client, without boto3."""
    return isotone_database.client()


@pytest.fixture
def isotone_clock(_isotone_time: SwitchedClock) -> Iterator[ManualClock]:
    """The clock of the test's database: it stands still until the test advances it."""
    with _isotone_time.stopped() as clock:
        yield clock


@pytest.fixture
def isotone_faults(isotone_database: Database, isotone_clock: ManualClock) -> Iterator[Faults]:
    """Faults that strike the requests of this test: throttling, conflicts, lost answers, stale reads.

    Their time is `isotone_clock`: a delay advances it.
    """
    from isotone.testing.faults import Faults

    faults = Faults(clock=isotone_clock)
    with faults.on(isotone_database):
        yield faults


@pytest.fixture
def dynamodb_client(_isotone_clients: FixtureClients, isotone_database: Database) -> Iterator[Any]:
    """`boto3.client("dynamodb")` on the test's database."""
    with _isotone_clients.to(isotone_database):
        yield _isotone_clients.client


@pytest.fixture
def dynamodb_resource(
    _isotone_clients: FixtureClients, isotone_database: Database
) -> Iterator[Any]:
    """`boto3.resource("dynamodb")` on the test's database."""
    with _isotone_clients.to(isotone_database):
        yield _isotone_clients.resource


@pytest.fixture
def aiodynamodb_client(isotone_database: Database, pytestconfig: pytest.Config) -> AsyncClients:
    """Opens aiobotocore clients on the test's database: `async with aiodynamodb_client() as client:`."""
    pytest.importorskip("aiobotocore", reason="aiodynamodb_client needs aiobotocore")
    from isotone.testing.fixture_clients import aio_client

    return lambda: aio_client(isotone_database, _region(pytestconfig))


@pytest.fixture
def aiodynamodb_resource(isotone_database: Database, pytestconfig: pytest.Config) -> AsyncClients:
    """Opens aioboto3 resources on the test's database: `async with aiodynamodb_resource() as dynamodb:`."""
    pytest.importorskip("aioboto3", reason="aiodynamodb_resource needs aioboto3")
    from isotone.testing.fixture_clients import aio_resource

    return lambda: aio_resource(isotone_database, _region(pytestconfig))


@pytest.fixture
def mock_dynamodb(
    isotone_database: Database, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """Connects all boto3 and aioboto3 clients of the process to the test's database."""
    pytest.importorskip("botocore", reason="mock_dynamodb needs botocore")
    from isotone.testing.mock import mock_dynamodb as mock

    if "AWS_DEFAULT_REGION" not in os.environ:
        monkeypatch.setenv("AWS_DEFAULT_REGION", _region(pytestconfig))
    with mock(database=isotone_database) as database:
        yield database


@pytest.fixture(scope="session")
def _isotone_time() -> SwitchedClock:
    from isotone.testing.prepared import SwitchedClock

    return SwitchedClock()


@pytest.fixture(scope="session")
def _isotone_prepared(
    _isotone_time: SwitchedClock, pytestconfig: pytest.Config
) -> Iterator[Prepared]:
    from isotone.testing.prepared import Prepared

    prepared = Prepared(
        clock=_isotone_time, region=_region(pytestconfig), s3=pytestconfig.getini("isotone_s3")
    )
    yield prepared
    prepared.close()


@pytest.fixture(scope="session")
def _isotone_clients(pytestconfig: pytest.Config) -> FixtureClients:
    pytest.importorskip("boto3", reason="dynamodb_client and dynamodb_resource need boto3")
    from isotone.testing.fixture_clients import FixtureClients

    return FixtureClients(_region(pytestconfig))


def _region(config: pytest.Config) -> str:
    region: str = config.getini("isotone_region")
    return region
