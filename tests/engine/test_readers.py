"""Reads of threads while another thread has the engine: each sees what was acknowledged before it, and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest

import isotone
from isotone.engine.readers import MOST
from isotone.errors import DamagedItem, ResourceNotFoundException, UsageError

T = TypeVar("T")

TABLE = {
    "TableName": "tab",
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "s", "AttributeType": "N"},
    ],
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "s", "KeyType": "RANGE"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
}
KEY = {"p": {"S": "a"}, "s": {"N": "1"}}
GET = {"TableName": "tab", "Key": KEY}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[isotone.Database]:
    with isotone.open(tmp_path / "a.db", durability="none") as database:
        database.execute("CreateTable", TABLE)
        yield database
    assert apsw.connections() == []


def put(database: isotone.Database, value: str, number: int = 1) -> None:
    item = {**KEY, "s": {"N": str(number)}, "v": {"S": value}}
    database.execute("PutItem", {"TableName": "tab", "Item": item})


def elsewhere(work: Callable[[], T]) -> T:
    """The result of a function in another thread, which must not have to wait."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(work).result(timeout=20)
    finally:
        pool.shutdown(wait=False)


@contextmanager
def busy(database: isotone.Database) -> Iterator[None]:
    """This thread has the engine's lock, as a writer does until its commit is on the disk."""
    with database.engine.lock:
        yield


def readers(database: isotone.Database) -> int:
    return len(database.engine.readers._opened)


def value_of(answer: dict[str, Any]) -> str:
    return str(answer["v"]["S"])


def statement(database: isotone.Database, operation: str) -> Any:
    select = "SELECT * FROM tab WHERE p = 'a' AND s = 1"
    if operation == "ExecuteStatement":
        return database.execute(operation, {"Statement": select})["Items"][0]
    several = "TransactStatements" if operation == "ExecuteTransaction" else "Statements"
    return database.execute(operation, {several: [{"Statement": select}]})["Responses"][0]["Item"]


def of_stream(database: isotone.Database) -> dict[str, Any]:
    """The last record of the table's stream, through all requests that lead to it."""
    (stream,) = database.execute("ListStreams", {"TableName": "tab"})["Streams"]
    arn = stream["StreamArn"]
    described = database.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    (shard,) = described["Shards"]
    wanted = {
        "StreamArn": arn,
        "ShardId": shard["ShardId"],
        "ShardIteratorType": "TRIM_HORIZON",
    }
    place = database.execute("GetShardIterator", wanted)
    records = database.execute("GetRecords", place)["Records"]
    found: dict[str, Any] = records[-1]["dynamodb"]["NewImage"]
    return found


READS: dict[str, Callable[[isotone.Database], dict[str, Any]]] = {
    "GetItem": lambda database: database.execute("GetItem", GET)["Item"],
    "GetItem, projected": lambda database: database.execute(
        "GetItem", {**GET, "ProjectionExpression": "v"}
    )["Item"],
    "Query": lambda database: database.execute(
        "Query",
        {
            "TableName": "tab",
            "KeyConditionExpression": "p = :p",
            "ExpressionAttributeValues": {":p": {"S": "a"}},
        },
    )["Items"][0],
    "Scan": lambda database: database.execute("Scan", {"TableName": "tab"})["Items"][0],
    "BatchGetItem": lambda database: database.execute(
        "BatchGetItem", {"RequestItems": {"tab": {"Keys": [KEY]}}}
    )["Responses"]["tab"][0],
    "TransactGetItems": lambda database: database.execute(
        "TransactGetItems", {"TransactItems": [{"Get": GET}]}
    )["Responses"][0]["Item"],
    "ExecuteStatement": lambda database: statement(database, "ExecuteStatement"),
    "BatchExecuteStatement": lambda database: statement(database, "BatchExecuteStatement"),
    "ExecuteTransaction": lambda database: statement(database, "ExecuteTransaction"),
    "GetRecords": of_stream,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_beside_a_transaction_sees_what_was_committed_before(
    database: isotone.Database, read: Callable[[isotone.Database], dict[str, Any]]
) -> None:
    put(database, "before")
    with database.engine.writing:
        put(database, "not committed")
        assert value_of(elsewhere(lambda: read(database))) == "before"
        assert value_of(read(database)) == "not committed"  # its own thread's
    with busy(database):
        assert value_of(elsewhere(lambda: read(database))) == "not committed"
    assert readers(database) == 1


def test_descriptions_do_not_wait(database: isotone.Database) -> None:
    with database.engine.writing:
        database.execute("CreateTable", {**TABLE, "TableName": "new"})
        put(database, "x")
        assert elsewhere(lambda: database.execute("ListTables", {})) == {"TableNames": ["tab"]}
        found = elsewhere(lambda: database.execute("DescribeTable", {"TableName": "tab"}))
        assert found["Table"]["ItemCount"] == 0
        with pytest.raises(ResourceNotFoundException):
            elsewhere(lambda: database.execute("GetItem", {**GET, "TableName": "new"}))
    with busy(database):
        names = elsewhere(lambda: database.execute("ListTables", {}))["TableNames"]
        assert names == ["new", "tab"]
        found = elsewhere(lambda: database.execute("DescribeTable", {"TableName": "tab"}))
        assert found["Table"]["ItemCount"] == 1


def test_a_long_page_continues_beside_another_thread(database: isotone.Database) -> None:
    with database.engine.writing:
        for number in range(5000):
            put(database, "x", number)
    request = {"TableName": "tab", "Select": "COUNT"}
    with busy(database):
        assert elsewhere(lambda: database.execute("Scan", request))["Count"] == 5000


def test_one_thread_opens_no_reader(tmp_path: Path) -> None:
    with isotone.open(tmp_path / "b.db", durability="none") as database:
        plain = {name: value for name, value in TABLE.items() if name != "StreamSpecification"}
        database.execute("CreateTable", plain)  # without background work
        for number in range(50):
            put(database, str(number))
            for name, read in READS.items():
                assert name == "GetRecords" or value_of(read(database)) == str(number)
        assert readers(database) == 0
        assert len(apsw.connections()) == 1


def test_many_threads_leave_few_connections(database: isotone.Database) -> None:
    put(database, "x")
    with ThreadPoolExecutor(100) as pool:
        begun = threading.Barrier(100)

        def read() -> None:
            begun.wait()
            for _ in range(3):
                for ask in READS.values():
                    assert value_of(ask(database)) == "x"

        for done in [pool.submit(read) for _ in range(100)]:
            done.result()
    assert readers(database) <= MOST


def test_a_read_finds_one_of_few_readers(database: isotone.Database) -> None:
    put(database, "x")
    with busy(database), ThreadPoolExecutor(3 * MOST) as pool:
        found = [pool.submit(READS["Query"], database) for _ in range(60)]
        assert {value_of(each.result(timeout=20)) for each in found} == {"x"}
    assert 1 <= readers(database) <= MOST


def test_all_threads_see_the_writes_of_a_block_that_is_rolled_back(
    database: isotone.Database,
) -> None:
    put(database, "before")
    with busy(database):
        elsewhere(lambda: READS["GetItem"](database))
    with database.rolled_back():
        elsewhere(lambda: put(database, "inside"))
        with ThreadPoolExecutor(4) as pool:  # in each other's way
            found = [pool.submit(READS["Scan"], database) for _ in range(200)]
            assert {value_of(each.result()) for each in found} == {"inside"}
    with busy(database):
        assert value_of(elsewhere(lambda: READS["GetItem"](database))) == "before"


def test_what_another_process_writes_makes_and_drops(
    database: isotone.Database, tmp_path: Path
) -> None:
    put(database, "0")
    with isotone.open(tmp_path / "a.db", durability="none") as other, busy(database):
        for number in range(5):
            put(other, str(number))
            for read in READS.values():
                assert value_of(elsewhere(lambda read=read: read(database))) == str(number)  # type: ignore[misc]
        other.execute("DeleteTable", {"TableName": "tab"})
        with pytest.raises(ResourceNotFoundException):
            elsewhere(lambda: READS["GetItem"](database))
        other.execute("CreateTable", TABLE)
        assert elsewhere(lambda: database.execute("GetItem", GET)) == {}


def test_regions_have_their_own_tables(database: isotone.Database) -> None:
    put(database, "home")
    abroad = database.region("eu-west-1")
    abroad.execute("CreateTable", TABLE)
    put(abroad, "abroad")
    with busy(database):
        assert value_of(elsewhere(lambda: READS["GetItem"](abroad))) == "abroad"
        assert value_of(elsewhere(lambda: READS["Scan"](database))) == "home"
    late = database.region("eu-west-2")  # the reader is older
    late.execute("CreateTable", TABLE)
    put(late, "late")
    with busy(database):
        assert value_of(elsewhere(lambda: READS["Query"](late))) == "late"


def test_consumption_is_counted_once_for_all(database: isotone.Database) -> None:
    put(database, "x")

    def units() -> float:
        return next(
            units
            for name, labels, units in database.series()
            if name == "isotone_consumed_read_units_total" and ("table", "tab") in labels
        )

    with busy(database):
        elsewhere(lambda: READS["GetItem"](database))
    database.measure()
    READS["GetItem"](database)
    assert units() == 0.5
    with busy(database):
        elsewhere(lambda: READS["GetItem"](database))
        elsewhere(lambda: READS["Scan"](database))
    assert units() == 1.5


def test_a_file_that_was_replaced_is_not_mixed_with_the_new_one(
    database: isotone.Database, tmp_path: Path
) -> None:
    put(database, "old")
    with isotone.open(tmp_path / "b.db", durability="none") as other:
        other.execute("CreateTable", TABLE)
        put(other, "new")
    for ending in ("", "-wal", "-shm"):
        shutil.move(tmp_path / f"a.db{ending}", tmp_path / f"moved.db{ending}")
    shutil.move(tmp_path / "b.db", tmp_path / "a.db")
    waiting: Future[Any] = Future()
    with busy(database):
        thread = threading.Thread(target=lambda: waiting.set_result(READS["GetItem"](database)))
        thread.start()
        time.sleep(0.05)
        assert not waiting.done()  # it waits rather than open another file
    assert value_of(waiting.result(timeout=20)) == "old"
    thread.join()
    assert readers(database) == 0


def test_a_reader_notices_damage(database: isotone.Database) -> None:
    put(database, "x")
    tree = database.engine.catalog.tables["tab"].tree
    with apsw.Connection(database.engine.store.path) as raw:  # type: ignore[attr-defined] # a file
        raw.execute(f"UPDATE tree_{tree} SET value = CAST(value || x'20' AS BLOB)")
    raw.close()
    with busy(database):
        for name in ("GetItem", "Query", "Scan"):
            with pytest.raises(DamagedItem, match=r"a.db: the item .*\"a\".* of table tab"):
                elsewhere(lambda name=name: READS[name](database))  # type: ignore[misc]


def test_close_waits_for_a_read(tmp_path: Path) -> None:
    database = isotone.open(tmp_path / "a.db", durability="none")
    database.execute("CreateTable", TABLE)
    put(database, "x")
    with busy(database):
        elsewhere(lambda: READS["GetItem"](database))
    (reader,) = database.engine.readers._opened
    began, ends = threading.Event(), threading.Event()

    def read() -> None:
        with reader.lock:
            began.set()
            ends.wait()
            assert value_of(READS["Scan"](database)) == "x"

    reading = threading.Thread(target=read)
    reading.start()
    began.wait()
    closing = threading.Thread(target=database.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    ends.set()
    closing.join(20)
    reading.join(20)
    assert not closing.is_alive()
    with pytest.raises(UsageError, match="closed"):
        READS["GetItem"](database)
    assert apsw.connections() == []


def test_an_interrupted_read_gives_its_reader_back(database: isotone.Database) -> None:
    put(database, "x")

    def interrupted() -> None:
        chosen = database.engine.reading_beside
        reader = chosen.__enter__()
        assert reader is not database.engine
        database.engine.abandon()  # the block ended without its end
        assert not reader.lock._is_owned()

    for _ in range(2 * MOST):
        with busy(database):
            elsewhere(interrupted)
            assert value_of(elsewhere(lambda: READS["Query"](database))) == "x"
    assert readers(database) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_reads_and_its_child_has_no_file(database: isotone.Database) -> None:
    put(database, "x")
    stopping = threading.Event()

    def read() -> None:
        while not stopping.is_set():
            for ask in READS.values():
                assert value_of(ask(database)) == "x"

    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(4))
        stack.callback(stopping.set)
        reading = [pool.submit(read) for _ in range(4)]
        for _ in range(10):
            assert _child_is_refused(database) == 0
            put(database, "x")
        stopping.set()
        for each in reading:
            each.result()
    assert database.check() == []


def _child_is_refused(database: isotone.Database) -> int:
    """The exit code of a forked child that reads and then opens the file itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python advises against fork here
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        signal.alarm(20)  # ends a child that waits for a lock in vain
        with database.engine.lock:
            try:
                elsewhere(lambda: READS["GetItem"](database))
            except UsageError:
                pass
            else:
                os._exit(1)
        with isotone.open(database.engine.store.path) as own:  # type: ignore[attr-defined] # a file
            os._exit(value_of(READS["GetItem"](own)) != "x")
    finally:
        os._exit(2)


def test_readers_do_not_make_the_log_grow_for_ever(tmp_path: Path) -> None:
    """Several threads always read; the log is copied into the file and begun again all the same."""
    with isotone.open(tmp_path / "a.db", durability="none") as database, ExitStack() as stack:
        database.execute("CreateTable", TABLE)
        put(database, "x")
        pool = stack.enter_context(ThreadPoolExecutor(3))
        stopping = threading.Event()
        stack.callback(stopping.set)

        def read() -> None:
            while not stopping.is_set():
                READS["Query"](database)
                READS["Scan"](database)

        reading = [pool.submit(read) for _ in range(3)]
        for number in range(120):
            with database.engine.writing:
                for each in range(10):
                    put(database, "y" * 40_000, number * 10 % 200 + each + 2)
        stopping.set()
        for each in reading:
            each.result()
        # 48 MB were written to it
        assert (tmp_path / "a.db-wal").stat().st_size < 24_000_000
