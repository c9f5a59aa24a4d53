"""Each test runs a small project of its own under pytest, as a user has it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

# Loading the first plugin takes longer than each of the projects; the second has fixtures of its own.
LEAN = ("-p", "no:hypothesispytest", "-p", "no:anyio")
CONFTEST = """
import pytest

CALLS = []

@pytest.fixture(scope="session")
def isotone_schema():
    def prepare(client):
        CALLS.append(1)
        client.create_table(
            TableName="music",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client.put_item(TableName="music", Item={"pk": {"S": "seed"}})

    return prepare

@pytest.fixture
def prepared_times():
    return len(CALLS)
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    pytester.makeconftest(CONFTEST)
    return pytester


def passes(project: pytest.Pytester, source: str, tests: int) -> None:
    project.makepyfile(source)
    project.runpytest_inprocess(*LEAN, "-Werror").assert_outcomes(passed=tests)


ISOLATED = """
import pytest

def keys(client):
    return sorted(item["pk"]["S"] for item in client.scan(TableName="music")["Items"])

@pytest.mark.parametrize("n", range(4))
def test_begins_as_prepared(n, isotone_client, isotone_database, prepared_times):
    assert keys(isotone_client) == ["seed"]
    assert prepared_times == 1
    isotone_client.put_item(TableName="music", Item={"pk": {"S": str(n)}})
    isotone_client.create_table(
        TableName="films",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    assert keys(isotone_database.client()) == sorted([str(n), "seed"])
"""


def test_each_test_begins_with_the_prepared_database(project: pytest.Pytester) -> None:
    passes(project, ISOLATED, 4)


def test_workers_of_xdist_have_databases_of_their_own(project: pytest.Pytester) -> None:
    project.makepyfile(ISOLATED)
    run = project.runpytest_subprocess(*LEAN, "-Werror", "-n2")
    run.assert_outcomes(passed=4)


def test_boto3_fixtures_share_the_database_of_the_test(project: pytest.Pytester) -> None:
    passes(
        project,
        """
        import pytest

        @pytest.mark.parametrize("n", range(2))
        def test_all_see_it(n, isotone_client, dynamodb_client, dynamodb_resource, mock_dynamodb):
            import boto3

            dynamodb_client.put_item(TableName="music", Item={"pk": {"S": "new"}})
            key = {"pk": {"S": "new"}}
            assert "Item" in isotone_client.get_item(TableName="music", Key=key)
            assert "Item" in dynamodb_resource.Table("music").get_item(Key={"pk": "new"})
            assert "Item" in boto3.client("dynamodb").get_item(TableName="music", Key=key)
            assert dynamodb_client.scan(TableName="music")["Count"] == 2

        def test_nothing_is_left(dynamodb_client, dynamodb_resource):
            assert dynamodb_client.scan(TableName="music")["Count"] == 1
            assert [table.name for table in dynamodb_resource.tables.all()] == ["music"]
        """,
        3,
    )


def test_asynchronous_clients(project: pytest.Pytester) -> None:
    passes(
        project,
        """
        import asyncio

        def test_client(aiodynamodb_client, isotone_client):
            async def use():
                async with aiodynamodb_client() as client:
                    await client.put_item(TableName="music", Item={"pk": {"S": "a"}})
            asyncio.run(use())
            assert isotone_client.scan(TableName="music")["Count"] == 2

        def test_resource(aiodynamodb_resource):
            async def use():
                async with aiodynamodb_resource() as dynamodb:
                    table = await dynamodb.Table("music")
                    return (await table.scan())["Items"]
            assert asyncio.run(use()) == [{"pk": "seed"}]
        """,
        2,
    )


def test_each_schema_has_its_own_database(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_other="""
        import pytest

        @pytest.fixture(scope="session")
        def isotone_schema():
            return None

        def test_is_empty(isotone_client):
            assert isotone_client.list_tables()["TableNames"] == []
        """,
        test_usual="""
        def test_has_music(isotone_client):
            assert isotone_client.list_tables()["TableNames"] == ["music"]
        """,
    )
    project.runpytest_inprocess(*LEAN).assert_outcomes(passed=2)


def test_boto3_prepares_too(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import boto3
        import pytest

        @pytest.fixture(scope="session")
        def isotone_schema():
            def prepare(client):
                boto3.resource("dynamodb").create_table(
                    TableName="films",
                    KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                    AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                    BillingMode="PAY_PER_REQUEST",
                )
            return prepare
        """
    )
    passes(
        project,
        """
        def test_films(isotone_client):
            assert isotone_client.list_tables()["TableNames"] == ["films"]
        """,
        1,
    )


def test_a_schema_that_must_be_awaited_is_refused(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def isotone_schema():
            async def prepare(client):
                raise AssertionError

            return prepare
        """
    )
    project.makepyfile("def test_films(isotone_client): pass")
    result = project.runpytest_inprocess(*LEAN)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*UsageError: isotone_schema gave an async function*"])


def test_the_clock_stands_still_for_one_test(project: pytest.Pytester) -> None:
    passes(
        project,
        """
        import time

        def test_moves_when_told(isotone_clock, isotone_client):
            before = isotone_clock.now()
            isotone_clock.advance(3600)
            isotone_client.create_table(
                TableName="films",
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
            table = isotone_client.describe_table(TableName="films")["Table"]
            assert abs(table["CreationDateTime"].timestamp() - before - 3600) < 0.01

        def test_runs_again(isotone_client):
            isotone_client.create_table(
                TableName="films",
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
            table = isotone_client.describe_table(TableName="films")["Table"]
            assert abs(table["CreationDateTime"].timestamp() - time.time()) < 5
        """,
        2,
    )


def test_can_mock_every_test(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nisotone_mock_dynamodb = true\nisotone_region = eu-west-1")
    passes(
        project,
        """
        import unittest
        import boto3
        import pytest
        from botocore.endpoint import Endpoint

        ORIGINAL = Endpoint.make_request

        def test_is_mocked():
            client = boto3.client("dynamodb")
            assert client.meta.region_name == "eu-west-1"
            assert client.list_tables()["TableNames"] == ["music"]

        class TestUnittest(unittest.TestCase):
            def setUp(self):
                self.client = boto3.client("dynamodb")
                self.client.put_item(TableName="music", Item={"pk": {"S": "a"}})

            def test_is_mocked(self):
                self.assertEqual(self.client.scan(TableName="music")["Count"], 2)

        @pytest.mark.real_dynamodb
        def test_is_left_alone():
            assert Endpoint.make_request is ORIGINAL

        REAL = pytest.param(True, marks=pytest.mark.real_dynamodb)

        @pytest.mark.parametrize("is_real", [False, REAL])
        def test_a_case_is_left_alone(is_real):
            assert (Endpoint.make_request is ORIGINAL) == is_real
        """,
        5,
    )


def test_a_client_outlives_no_test(project: pytest.Pytester) -> None:
    passes(
        project,
        """
        import pytest
        from isotone.errors import UsageError

        KEPT = []

        def test_first(dynamodb_client):
            KEPT.append(dynamodb_client)

        def test_second():
            with pytest.raises(UsageError, match="ask for the fixture in each test"):
                KEPT[0].list_tables()
        """,
        2,
    )


def test_fixtures_are_documented(project: pytest.Pytester) -> None:
    project.makeconftest("")
    shown = project.runpytest_inprocess(*LEAN, "--fixtures", "-q").stdout.str()
    for name in (
        "isotone_schema",
        "isotone_database",
        "isotone_client",
        "isotone_clock",
        "dynamodb_client",
        "dynamodb_resource",
        "aiodynamodb_client",
        "aiodynamodb_resource",
        "mock_dynamodb",
    ):
        assert name in shown
    assert "no docstring available" not in shown


def test_assertions_of_the_library_are_not_rewritten(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import isotone.model.store

        def test_it_is_imported_as_it_is():
            assert "Rewriting" not in type(isotone.model.store.__loader__).__name__
            assert "Rewriting" in type(__loader__).__name__
        """
    )
    project.runpytest_subprocess(*LEAN).assert_outcomes(passed=1)


def test_importing_the_plugin_imports_nothing_else() -> None:
    script = (
        "import sys, isotone.testing.plugin\n"
        "loaded = {'boto3', 'botocore', 'msgspec', 'apsw', 'isotone.engine.engine'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


EXPORT = """
TABLE = {
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}

def export(client, database):
    arn = client.create_table(**TABLE)["TableDescription"]["TableArn"]
    recovery = {"PointInTimeRecoveryEnabled": True}
    client.update_continuous_backups(
        TableName="orders", PointInTimeRecoverySpecification=recovery
    )
    started = client.export_table_to_point_in_time(TableArn=arn, S3Bucket="exports")
    database.finish_maintenance()
    arn = started["ExportDescription"]["ExportArn"]
    return client.describe_export(ExportArn=arn)["ExportDescription"]
"""


def test_an_export_needs_a_mocked_s3_or_a_folder(project: pytest.Pytester) -> None:
    source = (
        EXPORT
        + """
def test_export(isotone_client, isotone_database):
    ended = export(isotone_client, isotone_database)
    assert ended["ExportStatus"] == "FAILED"
    assert "isotone_s3 = folder" in ended["FailureMessage"]
"""
    )
    passes(project, source, 1)


def test_the_folder_of_the_setting_has_the_buckets(project: pytest.Pytester) -> None:
    buckets = project.path / "buckets"
    project.makeini(f"[pytest]\nisotone_s3 = {buckets}\n")
    source = (
        EXPORT
        + """
def test_export(isotone_client, isotone_database):
    assert export(isotone_client, isotone_database)["ExportStatus"] == "COMPLETED"
"""
    )
    passes(project, source, 1)
    assert list(buckets.glob("exports/AWSDynamoDB/*/manifest-summary.json"))
