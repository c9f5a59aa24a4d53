"""The lock and the one transaction: whatever goes wrong inside, what comes after is right."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

import pytest
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone.backends import embedded
from isotone.engine import maintenance
from isotone.engine.engine import Engine
from isotone.engine.tree_counts import TreeCounts
from isotone.errors import ResourceNotFoundException, StorageFull, ValidationException
from isotone.storage.interface import OrderedStore
from isotone.storage.memory import MemoryStore
from isotone.storage.sqlite import SQLiteStore

OURS = f"{Path(isotone.__file__).parent}"
TOOL = 4  # of `sys.monitoring`: not a number that debuggers, profilers and coverage have
NEVER_AGAIN = sys.monitoring.DISABLE if sys.version_info >= (3, 12) else None


@pytest.fixture(params=["memory", "file"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[isotone.Database]:
    where = ":memory:" if request.param == "memory" else tmp_path / "data.db"
    with isotone.open(where, durability="none") as database:
        yield database


@pytest.fixture
def call(database: isotone.Database) -> Asker:
    asker = Asker(database, isotone.ManualClock())
    asker.table(
        keys="p s",
        types={"l": "S"},
        LocalSecondaryIndexes=[
            {
                "IndexName": "by-l",
                "KeySchema": key_schema("p", "l"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    return asker


def item(number: int) -> dict[str, Any]:
    return {"p": {"S": "p"}, "s": {"S": str(number)}, "l": {"S": str(number % 7)}}


def put(call: Asker, number: int) -> None:
    call("PutItem", TableName="tab", Item=item(number))


def count(call: Asker) -> int:
    found: int = call("DescribeTable", TableName="tab")["Table"]["ItemCount"]
    return found


class Interrupt:
    """Raises KeyboardInterrupt at one instruction of Isotone's own code, as a signal handler might.

    Counts the instructions of this thread, and notes the files that they are in.
    """

    def __init__(self, step: int) -> None:
        self.step = step
        self.steps = 0
        self.files: set[str] = set()
        self._thread = threading.get_ident()

    if sys.version_info >= (3, 12):  # where settrace does not report every instruction

        def __enter__(self) -> Self:
            instruction = sys.monitoring.events.INSTRUCTION
            sys.monitoring.register_callback(TOOL, instruction, self._reached)
            if not sys.monitoring.get_events(TOOL):
                sys.monitoring.set_events(TOOL, instruction)
            return self

        def __exit__(self, *_: object) -> None:
            sys.monitoring.register_callback(TOOL, sys.monitoring.events.INSTRUCTION, None)

    else:

        def __enter__(self) -> Self:
            sys.settrace(self._called)
            return self

        def __exit__(self, *_: object) -> None:
            sys.settrace(None)

        def _called(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
            if not frame.f_code.co_filename.startswith(OURS):
                return None
            frame.f_trace_lines = False
            frame.f_trace_opcodes = True
            return self._traced

        def _traced(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
            if event == "opcode":
                self._reached(frame.f_code, 0)
            return self._traced

    def _reached(self, code: CodeType, offset: int) -> object:
        if not code.co_filename.startswith(OURS):
            return NEVER_AGAIN
        if threading.get_ident() == self._thread:
            self.steps += 1
            self.files.add(code.co_filename)
            if self.steps == self.step:
                raise KeyboardInterrupt
        return None


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Keeps the code instrumented during a test: to instrument it for each interruption would take a minute."""
    if sys.version_info < (3, 12):
        yield
        return
    sys.monitoring.use_tool_id(TOOL, "interrupt")
    yield
    sys.monitoring.set_events(TOOL, 0)
    sys.monitoring.free_tool_id(TOOL)


def spread(steps: int, count: int) -> list[int]:
    """So many of the steps, evenly spread from the first to the last."""
    return [1 + (steps - 1) * place // (count - 1) for place in range(count)]


def is_free(database: isotone.Database) -> bool:
    """Whether another thread gets the lock."""
    got: list[bool] = []

    def take() -> None:
        got.append(database.engine.lock.acquire(blocking=False))
        if got[0]:
            database.engine.lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return got[0]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("door", ["execute", "call"])
@pytest.mark.parametrize("operation", ["PutItem", "Query", "TransactWriteItems"])
def test_an_interruption_anywhere_leaves_nothing_half_done(
    database: isotone.Database, call: Asker, operation: str, door: str
) -> None:
    put(call, 0)

    def ask(request: dict[str, Any]) -> None:
        database.execute(operation, request) if door == "call" else call(operation, **request)

    requests: dict[str, Callable[[int], dict[str, Any]]] = {
        "PutItem": lambda number: {"TableName": "tab", "Item": item(number)},
        "TransactWriteItems": lambda number: {
            "TransactItems": [
                {"Put": {"TableName": "tab", "Item": item(number)}},
                {"Put": {"TableName": "tab", "Item": item(-number)}},
            ]
        },
        "Query": lambda number: {
            "TableName": "tab",
            "KeyConditionExpression": "p = :p",
            "ExpressionAttributeValues": {":p": {"S": "p"}},
        },
    }
    for _ in range(2):  # the first call also does what is done once
        with Interrupt(0) as whole:
            ask(requests[operation](1))
    packages = {Path(file).relative_to(OURS).parts[0] for file in whole.files}
    assert packages >= {"operations", "engine", "storage"}
    interrupted = 0
    for number, step in enumerate(spread(whole.steps, 80), 1):
        try:
            with Interrupt(step):
                ask(requests[operation](10 * number))
        except KeyboardInterrupt:
            interrupted += 1
        assert is_free(database), step
        before = count(call)
        put(call, 10 * number + 1)
        with database.rolled_back():  # nothing is rolled back that another transaction keeps open
            put(call, 10 * number + 2)
        database.engine.forget()
        assert count(call) == before + 1, step
    assert interrupted >= 70  # a call of another item may have a few steps less
    assert database.check() == []


class Broken(Exception):
    pass


def test_what_breaks_in_a_block_undoes_it(database: isotone.Database, call: Asker) -> None:
    put(call, 0)

    def break_off() -> None:
        with database.engine.writing:
            put(call, 1)
            call.table("other")
            raise Broken

    with pytest.raises(Broken):
        break_off()
    assert count(call) == 1
    assert call("ListTables")["TableNames"] == ["tab"]
    assert database.check() == []


def test_a_refusal_among_others_undoes_nothing(database: isotone.Database, call: Asker) -> None:
    bodies = [call.body(TableName="tab", Item=each) for each in (item(1), {}, item(2))]
    first, refused, last = database.send_many([("PutItem", body) for body in bodies])
    assert (first, last) == (b"{}", b"{}")
    assert isinstance(refused, ValidationException)
    assert count(call) == 2


class Full:
    """A store whose disk is full when `full` says so: at the writes, or only at the commit."""

    def __init__(self, store: OrderedStore) -> None:
        self._store = store
        self.full = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, *arguments: Any) -> None:
        if self.full == "writes":
            raise StorageFull("no room")
        self._store.put(*arguments)

    def transaction(self, **options: Any) -> Any:
        return _FullTransaction(self, self._store.transaction(**options))


class _FullTransaction:
    def __init__(self, full: Full, transaction: Any) -> None:
        self._full = full
        self._transaction = transaction

    def rollback(self) -> None:
        self._transaction.rollback()

    def __enter__(self) -> Any:
        self._transaction.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._full.full == "commit":
            self._transaction.rollback()
            self._transaction.__exit__(None, None, None)
            raise StorageFull("no room")
        self._transaction.__exit__(*exception)


@pytest.mark.parametrize("where", ["writes", "commit"])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_full_disk_changes_nothing(where: str, kind: str, tmp_path: Path) -> None:
    store = Full(MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "data.db"))
    with isotone.Database(Engine(store)) as database:
        call = Asker(database, isotone.ManualClock())
        call.table(keys="p s")
        put(call, 0)
        store.full = where
        with pytest.raises(StorageFull):
            put(call, 1)
        with pytest.raises(StorageFull):
            call.table("other")
        answers = database.send_many(
            [("PutItem", call.body(TableName="tab", Item=item(each))) for each in (1, 2)]
        )
        assert [type(answer) for answer in answers] == [StorageFull] * 2
        store.full = ""
        assert call("ListTables")["TableNames"] == ["tab"]
        assert count(call) == 1
        put(call, 1)
        call.table("other")
        assert count(call) == 2
        assert database.check() == []


def test_two_engines_on_one_file_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with isotone.open(path) as first, isotone.open(path) as second:
        here, there = (Asker(each, isotone.ManualClock()) for each in (first, second))
        here.table(keys="p s")
        put(there, 1)
        assert count(here) == 1
        here("DeleteTable", TableName="tab")
        with pytest.raises(ResourceNotFoundException):
            put(there, 2)
        there.table(keys="p s")
        put(here, 3)
        assert count(there) == 1
        assert first.check() == second.check() == []


def test_a_catalog_that_was_undone_is_read_anew_whatever_others_made_of_it(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with isotone.open(path) as first, isotone.open(path) as second:
        here, there = (Asker(each, isotone.ManualClock()) for each in (first, second))
        with first.rolled_back():
            here.table("undone")
        there.table("made")
        assert here("ListTables")["TableNames"] == ["made"]
        assert there("ListTables")["TableNames"] == ["made"]


def test_what_is_rolled_back_is_as_if_it_had_not_been(
    database: isotone.Database, call: Asker
) -> None:
    put(call, 0)
    with database.rolled_back():
        put(call, 1)
        call.table("other")
        with database.rolled_back():
            call("DeleteTable", TableName="tab")
        assert count(call) == 2
    assert call("ListTables")["TableNames"] == ["tab"]
    assert count(call) == 1
    assert database.check() == []


def test_threads_count_exactly(database: isotone.Database, call: Asker) -> None:
    def add() -> None:
        for _ in range(50):
            call(
                "UpdateItem",
                TableName="tab",
                Key={"p": {"S": "p"}, "s": {"S": "s"}},
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
            call("Query", TableName="tab", KeyConditions=EQUAL_P)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (found,) = call("Scan", TableName="tab")["Items"]
    assert found["n"] == {"N": "200"}
    assert database.check() == []


EQUAL_P = {"p": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]}}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_continues_with_a_copy_of_its_own() -> None:
    with isotone.open(":memory:") as database:
        call = Asker(database, isotone.ManualClock())
        call.table(keys="p s")
        stopping = threading.Event()

        def write() -> None:
            while not stopping.is_set():
                for number in range(20):
                    put(call, number)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(10):
                assert _child_can_write(call) == 0
        finally:
            stopping.set()
            thread.join()
        assert database.check() == []


def _child_can_write(call: Asker) -> int:
    """The exit code of a forked child that writes, counts and checks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python advises against fork here
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        signal.alarm(20)  # ends a child that waits for a lock in vain
        before = count(call)
        put(call, -1)
        os._exit(not (count(call) == before + 1 and call.database.check() == []))
    finally:
        os._exit(2)


def test_background_work_that_breaks_is_tried_again_and_blocks_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded, "_RETRY_INTERVAL", 0.001)
    tried = threading.Event()
    flush = TreeCounts.flush

    def breaks_once(counts: TreeCounts) -> None:
        if threading.current_thread() is not threading.main_thread() and not tried.is_set():
            tried.set()
            raise Broken
        flush(counts)

    with isotone.open(":memory:") as database:
        monkeypatch.setattr(TreeCounts, "flush", breaks_once)
        call = Asker(database, isotone.ManualClock())
        call.table(keys="p s")
        put(call, 1)
        call(
            "UpdateTable",
            TableName="tab",
            AttributeDefinitions=[{"AttributeName": "l", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[
                {
                    "Create": {
                        "IndexName": "by-l",
                        "KeySchema": key_schema("l"),
                        "Projection": {"ProjectionType": "ALL"},
                    }
                }
            ],
        )
        assert tried.wait(5)
        deadline = time.monotonic() + 5
        while index_status(call) != "ACTIVE":
            assert time.monotonic() < deadline
            time.sleep(0.005)


def index_status(call: Asker) -> str:
    (index,) = call("DescribeTable", TableName="tab")["Table"]["GlobalSecondaryIndexes"]
    status: str = index["IndexStatus"]
    return status


def test_clear_leaves_a_new_database(database: isotone.Database, call: Asker) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    for _ in range(2):
        call("UpdateTable", TableName="tab", DeletionProtectionEnabled=True)
        call("UpdateTable", TableName="tab", StreamSpecification=stream)
        put(call, 1)
        database.clear()
        assert call("ListTables")["TableNames"] == []
        assert call("ListStreams")["Streams"] == []
        assert database.check() == []
        call.table("tab", keys="p s")
        assert count(call) == 0


def test_clear_is_rolled_back(database: isotone.Database, call: Asker) -> None:
    put(call, 1)
    with database.rolled_back():
        database.clear()
        assert call("ListTables")["TableNames"] == []
    assert count(call) == 1
    assert database.check() == []


def test_regions_are_opened_while_others_look_at_them() -> None:
    """Every request may ask whether there is background work, in any thread."""
    failures: list[BaseException] = []
    over = threading.Event()

    def look() -> None:
        try:
            while not over.is_set():
                maintenance.is_wanted(database.engine)
        except BaseException as error:  # noqa: BLE001 - reported below
            failures.append(error)

    before = sys.getswitchinterval()
    with isotone.open(regions=True) as database:
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=look) for _ in range(2)]
        try:
            for thread in threads:
                thread.start()
            for number in range(100):
                database.region(f"eu-west-{number}")
        finally:
            sys.setswitchinterval(before)
            over.set()
            for thread in threads:
                thread.join()
    assert failures == []


def test_background_work_is_looked_for_while_others_write_to_a_file(tmp_path: Path) -> None:
    """SQLite's connection refuses a second thread, also while it waits for the disk."""
    failures: list[BaseException] = []
    over = threading.Event()

    def look() -> None:
        try:
            while not over.is_set():
                maintenance.is_wanted(engine)
        except BaseException as error:  # noqa: BLE001 - reported below
            failures.append(error)

    with isotone.open(tmp_path / "shop.db") as database:
        engine = database.engine
        with engine.writing:
            engine.store.create_tree("large")
        thread = threading.Thread(target=look)
        thread.start()
        try:
            for number in range(30):
                with engine.writing:
                    engine.store.put("large", str(number).encode(), b"x" * 100_000)
        finally:
            over.set()
            thread.join()
    assert failures == []


@pytest.mark.parametrize("lag", [0, 60])
def test_a_file_is_read_only_with_the_lock(tmp_path: Path, lag: float) -> None:
    """One thread at a time may use SQLite's connection: that of a request, or that of the background work."""
    without_lock: list[str] = []
    with isotone.open(tmp_path / "shop.db") as database:
        engine = database.engine

        def trace(_: object, sql: str, __: object) -> bool:
            if not engine.lock._is_owned():
                without_lock.append(sql)
            return True

        engine.store._connection.exec_trace = trace  # type: ignore[attr-defined]
        database.set_replication(lag=lag)
        call = Asker(database, isotone.ManualClock())
        call.table(keys="p s")
        expiry = {"AttributeName": "until", "Enabled": True}
        call("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=expiry)
        history = {"PointInTimeRecoveryEnabled": True}
        call(
            "UpdateContinuousBackups",
            TableName="tab",
            PointInTimeRecoverySpecification=history,
        )
        replica = {"Create": {"RegionName": "eu-west-1"}}
        call("UpdateTable", TableName="tab", ReplicaUpdates=[replica])
        put(call, 1)
        for _ in range(20):
            assert maintenance.is_wanted(engine)
            maintenance.step(engine)
        call("CreateBackup", TableName="tab", BackupName="all")
        database.finish_maintenance()
        assert database.check() == []
    assert without_lock == []
