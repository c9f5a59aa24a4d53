"""`isotone.moving.copy`: tables with their settings, items of any kind, interruptions, budgets."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.moving.tables import NAME, attributes, create, fill, items, order, two_files
from tests.sdks.server_process import server_process

import isotone
from isotone.backends.interface import Native, Request, Response, Tape
from isotone.errors import AccessDeniedException, InProgress, UsageError
from isotone.moving import Progress, acopy, copy, diff
from isotone.tables.pace import Pace
from isotone.testing import Faults


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("isotone.moving.copying._ITEMS_A_PAGE", 30)
    monkeypatch.setattr("isotone.moving.copying._ITEMS_A_SENT_PAGE", 20)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_a_table_is_copied_with_its_indexes_and_settings(tmp_path: Path) -> None:
    with two_files(tmp_path) as (source, target):
        stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        create(source, StreamSpecification=stream, Tags=[{"Key": "team", "Value": "shop"}])
        fill(source, 200)
        source.execute(
            "UpdateTimeToLive",
            {
                "TableName": NAME,
                "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "gone"},
            },
        )
        source.execute("UpdateTable", {"TableName": NAME, "DeletionProtectionEnabled": True})
    done = copy(tmp_path / "source.db", tmp_path / "target.db")
    assert done.is_complete
    assert done.tables[NAME].items == 200
    assert done.tables[NAME].write_units > 200, "with those of the indexes"
    assert not list((tmp_path / "state" / "isotone").iterdir()), (
        "nothing is left of a copy that is over"
    )
    report = diff(tmp_path / "source.db", tmp_path / "target.db")
    assert report.is_equal, report
    with two_files(tmp_path) as (source, target):
        assert items(source) == items(target)
        table = target.execute("DescribeTable", {"TableName": NAME})["Table"]
        assert table["DeletionProtectionEnabled"]
        assert table["StreamSpecification"] == stream
        query = {
            "TableName": NAME,
            "IndexName": "by_status",
            "KeyConditionExpression": "#s = :s",
            "ExpressionAttributeNames": {"#s": "status"},
            "ExpressionAttributeValues": {":s": {"S": "PAID"}},
        }
        assert target.execute("Query", query)["Count"] == 100
        tags = {"ResourceArn": table["TableArn"]}
        assert target.execute("ListTagsOfResource", tags)["Tags"] == [
            {"Key": "team", "Value": "shop"}
        ]
        streams = target.streams_client()
        (shard,) = streams.describe_stream(StreamArn=table["LatestStreamArn"])["StreamDescription"][
            "Shards"
        ]
        position = streams.get_shard_iterator(
            StreamArn=table["LatestStreamArn"],
            ShardId=shard["ShardId"],
            ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"]
        assert not streams.get_records(ShardIterator=position)["Records"], "a copy is no change"


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(attributes, max_size=12),
    st.integers(1, 4),
    st.integers(1, 5),
)
def test_items_of_any_kind_arrive_as_they_are(
    given_items: list[dict[str, Any]], segments: int, parts: int
) -> None:
    with isotone.open() as source, isotone.open() as target:
        create(source)
        for number, attributes_ in enumerate(given_items):
            source.execute(
                "PutItem",
                {"TableName": NAME, "Item": {**attributes_, **order(number % (parts * 3))}},
            )
        assert copy(source, target, segments=segments).is_complete
        assert items(target) == items(source)
        assert diff(source, target, segments=segments).is_equal


def test_several_tables_and_other_names() -> None:
    with isotone.open() as source, isotone.open() as target:
        for name in ("One", "Two", "Three"):
            create(source, name)
            fill(source, 40, name)
        assert copy(source, target, {"One": "Uno", "Two": "Two"}).is_complete
        assert target.execute("ListTables", {})["TableNames"] == ["Two", "Uno"]
        assert items(target, "Uno") == items(source, "One")
        assert diff(source, target, {"One": "Uno"}).is_equal
        with pytest.raises(UsageError, match="target has items"):
            copy(source, target)
        assert target.execute("ListTables", {})["TableNames"] == ["Two", "Uno"]
        assert copy(source, target, ["One", "Three"]).is_complete


def test_a_target_with_items_is_refused_unless_it_is_wanted() -> None:
    with isotone.open() as source, isotone.open() as target:
        create(source)
        fill(source, 50)
        create(target)
        target.execute("PutItem", {"TableName": NAME, "Item": order(3, total=77)})
        target.execute("PutItem", {"TableName": NAME, "Item": order(99)})
        with pytest.raises(UsageError, match=r"into_existing=True.*NEW_NAME"):
            copy(source, target)
        assert copy(source, target, into_existing=True).is_complete
        report = diff(source, target).comparisons[NAME]
        assert (report.only_in_source, report.only_in_target, report.changed) == (0, 1, 0)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (["Nothing"], "no table 'Nothing'"),
        ("Orders", r"write \['Orders'\]"),
        ([], "leave it out"),
    ],
)
def test_wrong_tables_are_refused(tables: Any, message: str) -> None:
    with isotone.open() as source, isotone.open() as target:
        create(source)
        with pytest.raises(UsageError, match=message):
            copy(source, target, tables)


def test_tables_that_do_not_fit_are_refused() -> None:
    with isotone.open() as source, isotone.open() as target:
        create(source)
        client = target.client()
        client.create_table(
            TableName=NAME,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
            BillingMode="PAY_PER_REQUEST",
        )
        with pytest.raises(UsageError, match=r"id \(N\).*customer \(S\) · number \(N\)"):
            copy(source, target)
        report = diff(source, target)
        assert not report.is_equal
        assert "keys" in str(report)
        with pytest.raises(UsageError, match="onto itself"):
            copy(source, source, [NAME])
        with pytest.raises(UsageError, match="no tables"):
            copy(isotone.open(), target)
        with pytest.raises(UsageError, match="segments=0"):
            copy(source, target, segments=0)


READERS = {
    "Effect": "Allow",
    "Principal": {"AWS": "arn:aws:iam::000000000000:root"},
    "Action": "dynamodb:GetItem",
    "Resource": "*",
}
POLICY = json.dumps({"Version": "2012-10-17", "Statement": [READERS]})


def test_a_dry_run_writes_nothing() -> None:
    with isotone.open() as source:
        create(source)
        fill(source, 10)
        source.execute(
            "UpdateContinuousBackups",
            {
                "TableName": NAME,
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        )
        arn = source.execute("DescribeTable", {"TableName": NAME})["Table"]["TableArn"]
        source.execute("PutResourcePolicy", {"ResourceArn": arn, "Policy": POLICY})
        kinesis = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
        source.execute(
            "EnableKinesisStreamingDestination", {"TableName": NAME, "StreamArn": kinesis}
        )
        limits = {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 100}
        source.execute("UpdateTable", {"TableName": NAME, "OnDemandThroughput": limits})
        notices: list[str] = []
        with isotone.open() as target:
            done = copy(source, target, dry_run=True, notice=notices.append)
            assert target.execute("ListTables", {})["TableNames"] == []
        assert done.is_dry_run
        assert not done.is_complete
        assert done.tables[NAME].of_items == 10
        assert list(done.missing) == notices
        expected = ("recovery", "resource policy", kinesis, "on-demand throughput")
        assert all(what in notice for what, notice in zip(expected, notices, strict=True))


class Denied(Native):
    """A source whose keys may read items and descriptions, and nothing else."""

    def __init__(self, database: isotone.Database) -> None:
        self._database = database

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        if operation in ("DescribeTimeToLive", "ListTagsOfResource", "DescribeContinuousBackups"):
            raise AccessDeniedException(f"not authorized to perform: dynamodb:{operation}")
        return self._database.execute(operation, request)


def test_settings_that_the_source_may_not_describe_are_reported() -> None:
    """Without a word, a copy would lose the expiry of a table."""
    with isotone.open() as source, isotone.open() as target:
        create(source)
        expiry = {"Enabled": True, "AttributeName": "gone_at"}
        source.execute("UpdateTimeToLive", {"TableName": NAME, "TimeToLiveSpecification": expiry})
        notices: list[str] = []
        copy(Denied(source), target, notice=notices.append)
        assert f"{NAME}: expiry: DescribeTimeToLive is denied on the source" in notices
        assert len(notices) == 3
        report = diff(Denied(source), target)
        assert report.is_equal
        assert "(DescribeTimeToLive is denied)" in str(report.comparisons[NAME].settings)


def test_a_stop_ends_the_wait_for_a_table() -> None:
    class Creating(Denied):
        def execute(
            self, operation: str, request: Request, deadline: float | None = None
        ) -> Response:
            response = self._database.execute(operation, request)
            if operation == "DescribeTable":
                stop.set()
                response["Table"]["TableStatus"] = "CREATING"
            return response

    stop = threading.Event()
    with isotone.open() as source, isotone.open() as target:
        create(source)
        assert not copy(source, Creating(target), stop=stop).is_complete


class Stop(BaseException):
    """As Ctrl-C."""


def stop_after(items: int) -> Any:
    def report(progress: Progress) -> None:
        if progress.phase == "copy" and progress.items >= items:
            raise Stop

    return report


@pytest.mark.parametrize("segments", [1, 3])
def test_an_interrupted_copy_continues(
    tmp_path: Path, segments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isotone.tables.jobs.TICK", 0.001)
    with two_files(tmp_path) as (source, _):
        create(source)
        fill(source, 1500)
    ends = (tmp_path / "source.db", tmp_path / "target.db")
    state = tmp_path / "copy.json"
    last = 0
    for at in (200, 600, 1000):
        try:
            # the write budget makes it slow enough to be interrupted
            copy(
                *ends,
                segments=segments,
                state=state,
                write_units=5000,
                progress=stop_after(at),
            )
        except Stop:
            pass
        else:
            pytest.fail("the copy ended before it was interrupted")
        with isotone.open(ends[1]) as target:
            count = len(items(target))
        assert last < count < 1500
        last = count
    with pytest.raises(UsageError, match="another job"):
        copy(ends[0], tmp_path / "other.db", state=state)
    reads: list[int] = []
    done = copy(*ends, state=state, progress=lambda progress: reads.append(progress.items))
    assert done.is_complete
    assert done.tables[NAME].items >= 1500, "with a page or two that was repeated"
    assert min(reads) >= 1000, "it went on where it was"
    assert diff(*ends).is_equal
    assert not state.exists()


def test_a_target_that_was_deleted_is_copied_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isotone.tables.jobs.TICK", 0.001)
    with two_files(tmp_path) as (source, _):
        create(source)
        fill(source, 800)
    ends = (tmp_path / "source.db", tmp_path / "target.db")
    with pytest.raises(Stop):
        copy(*ends, write_units=3000, progress=stop_after(100))
    with isotone.open(ends[1]) as target:
        target.execute("DeleteTable", {"TableName": NAME})
    assert copy(*ends).is_complete
    assert diff(*ends).is_equal


def test_two_copies_of_the_same_exclude_each_other(tmp_path: Path) -> None:
    with two_files(tmp_path) as (source, _):
        create(source)
        fill(source, 100)
    ends = (tmp_path / "source.db", tmp_path / "target.db")
    failures: list[Exception] = []

    def again(_: Progress) -> None:
        if not failures:
            try:
                copy(*ends)
            except InProgress as error:
                failures.append(error)

    assert copy(*ends, progress=again).is_complete
    assert "another process" in str(failures[0])


@pytest.mark.usefixtures("frequent_reports")
def test_a_stop_from_another_thread(tmp_path: Path) -> None:
    with two_files(tmp_path) as (source, _):
        create(source)
        fill(source, 500)
    ends = (tmp_path / "source.db", tmp_path / "target.db")
    stop = threading.Event()
    stopped = copy(*ends, write_units=200, stop=stop, progress=lambda _: stop.set())
    assert not stopped.is_complete
    assert stopped.tables[NAME].items < 500
    assert stopped.state is not None
    assert stopped.state.exists()
    assert copy(*ends).is_complete
    assert diff(*ends).is_equal


def test_a_budget_is_kept() -> None:
    with isotone.open() as source, isotone.open() as target:
        create(source)
        fill(source, 100)
        done = copy(source, target, write_units=400)
        assert done.is_complete
        units, seconds = done.tables[NAME].write_units, done.tables[NAME].seconds
        assert units / max(seconds, 0.001) < 1200, "a second of the budget may come at once"
        with pytest.raises(UsageError, match="above 0"):
            copy(source, target, read_units=-1)


def test_throttled_batches_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "_sleep", lambda self, seconds: None)
    with isotone.open() as source, isotone.open() as target:
        create(source)
        fill(source, 300)
        faults = Faults(seed=3)
        faults.leave_unprocessed(rate=0.5)
        with faults.on(target):
            assert copy(source, target, segments=2).is_complete
        assert items(target) == items(source)


def test_a_copy_is_awaited() -> None:
    async def run() -> None:
        with isotone.open() as source, isotone.open() as target:
            create(source)
            fill(source, 60)
            assert (await acopy(source, target)).is_complete
            assert items(target) == items(source)

    asyncio.run(run())


def test_a_cancelled_copy_stops(tmp_path: Path) -> None:
    with two_files(tmp_path) as (source, _):
        create(source)
        fill(source, 500)
    ends = (tmp_path / "source.db", tmp_path / "target.db")

    async def run() -> None:
        task = asyncio.create_task(acopy(*ends, write_units=100))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert copy(*ends).is_complete
    assert diff(*ends).is_equal


def test_an_object_that_takes_no_json_gets_plain_items() -> None:
    with isotone.open() as source:
        create(source)
        fill(source, 30)
        sent: list[Any] = []

        class Theirs:
            def __init__(self) -> None:
                self.database = isotone.open()

            def execute(self, operation: str, request: Any) -> Any:
                if operation == "BatchWriteItem":
                    sent.extend(request["RequestItems"][NAME])
                return self.database.execute(operation, request)

        theirs = Theirs()
        assert copy(source, theirs).is_complete
        assert items(theirs.database) == items(source)
        assert all(isinstance(each["PutRequest"]["Item"], dict) for each in sent)


def test_an_error_of_the_target_ends_the_copy() -> None:
    with isotone.open() as source:
        create(source)
        with pytest.raises(UsageError, match="no answer left"):
            copy(source, Tape())


def test_a_file_is_mapped_in_part(tmp_path: Path) -> None:
    with isotone.connect(tmp_path / "a.db", memory_map=0) as store:
        create(store.backend)
    assert copy(tmp_path / "a.db", tmp_path / "b.db").is_complete
    with pytest.raises(UsageError, match="memory_map= is for a file"):
        isotone.connect("http://localhost:1", memory_map=1)


def test_what_is_written_to_amazon_has_a_price(tmp_path: Path) -> None:
    with isotone.open(tmp_path / "a.db") as source:
        create(source)
        fill(source, 40)
    with server_process(tmp_path / "served.db") as url:
        amazon = f"{url}?engine=dynamodb"
        there = copy(tmp_path / "a.db", amazon)
        units = there.tables[NAME].write_units
        assert units >= 40
        assert there.dollars == pytest.approx(units * 0.625 / 1e6)
        back = copy(amazon, tmp_path / "b.db")
        assert back.dollars == pytest.approx(back.tables[NAME].read_units * 0.125 / 1e6)
    assert copy(tmp_path / "a.db", tmp_path / "c.db").dollars is None


@pytest.mark.parametrize("segments", [0, -1, 1001, 10**20, 1.5, "8"])
def test_as_many_segments_as_no_machine_has_threads_are_refused(segments: Any) -> None:
    with isotone.open() as source, isotone.open() as target:
        create(source)
        with pytest.raises(UsageError, match=r"is not a number of segments; give 1 to 1000"):
            copy(source, target, segments=segments)


def test_two_tables_are_not_copied_into_one() -> None:
    with isotone.open() as source, isotone.open() as target:
        for name in ("Old", "New"):
            create(source, name)
        with pytest.raises(UsageError, match="'Old' and 'New' would both be copied into 'All'"):
            copy(source, target, {"Old": "All", "New": "All"})
        assert target.execute("ListTables", {})["TableNames"] == []


@pytest.mark.parametrize("other", ["orders.db", "link.db"])
def test_a_table_is_not_copied_onto_itself(tmp_path: Path, other: str) -> None:
    """What somebody writes between the read and the write of a page would be lost."""
    file = tmp_path / "orders.db"
    with isotone.open(file) as database:
        create(database)
        fill(database, 20)
    if other == "link.db":
        (tmp_path / other).symlink_to(file)
    with pytest.raises(UsageError, match="cannot be copied onto itself"):
        copy(file, tmp_path / other, into_existing=True)
    assert copy(file, tmp_path / "orders.db", {NAME: "Copy"}).is_complete
