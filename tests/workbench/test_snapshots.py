"""Snapshots through the page's calls: of memory, a file and an engine elsewhere; faults, safe mode, what is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.intercepted_backend import InterceptedBackend
from tests.moving.tables import NAME, create, fill, items, key_of, order
from tests.oracle import optional_dynamodb_local
from tests.workbench.page import Browserless

import isotone
from isotone import moving
from isotone.backends.opening import open_backend
from isotone.server import running_server
from isotone.tables import threads
from isotone.tables.job_state import locked
from isotone.workbench import Workbench, snapshot_folder, snapshots
from isotone.workbench.snapshot_folder import SnapshotFolder, folder_for, new_id

HOSTILE = "<img src=x onerror='window.hacked = 1'>"
ORDERS = 60

Serve = Callable[..., Browserless]


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        create(database)
        fill(database, ORDERS)
        yield database


@pytest.fixture
def serve(database: isotone.Database, tmp_path: Path) -> Iterator[Serve]:
    """A workbench of the database; with `remote`, of its server."""
    with ExitStack() as stack:

        def serve(*, remote: bool = False, **options: Any) -> Browserless:
            given = {"snapshots": tmp_path / "snapshots", "target": ":memory:", **options}
            backend: Any = database
            if remote:
                there = stack.enter_context(running_server(database))
                keys = isotone.Credentials("local", "local")
                backend, close = open_backend(there, region="us-east-1", credentials=keys)
                stack.callback(close)
            pages = Workbench(backend, remote=remote, **given)
            return Browserless(stack.enter_context(running_server(database, pages=pages)))

        yield serve


def wait_until_over(page: Browserless, call: str, given: Any, member: str = "") -> Any:
    """The last answer of a call about a job."""
    while True:
        answer = page.call(call, given)
        job = answer[member] if member else answer
        if job["state"] != "running":
            return job
        time.sleep(0.02)


def take(page: Browserless, name: str = "before", tables: list[str] | None = None) -> str:
    answer = page.call("snapshot_take", {"name": name, "tables": tables})
    assert "error" not in answer, answer
    done = wait_until_over(page, "snapshot_taking", {}, "taking")
    assert (done["state"], done["fault"]) == ("done", "")
    identity: str = done["id"]
    return identity


def test_the_list_says_which_database_a_snapshot_is_of(serve: Serve, tmp_path: Path) -> None:
    """Two databases may use one folder; the same name in another folder is another database."""
    take(serve(target="shop.db"), "mine")
    take(serve(target=str(tmp_path / "shop.db")), "theirs")
    theirs, mine = serve(target="shop.db").call("snapshots")["snapshots"]
    assert (mine["target"], mine["foreign"]) == (str(Path("shop.db").absolute()), False)
    assert (theirs["target"], theirs["foreign"]) == (str(tmp_path / "shop.db"), True)


def test_a_copied_description_is_no_second_snapshot(serve: Serve, tmp_path: Path) -> None:
    page = serve()
    identity = take(page)
    description = tmp_path / "snapshots" / f"{identity}.json"
    description.with_name("copy.json").write_bytes(description.read_bytes())
    listed = page.call("snapshots")
    assert [each["id"] for each in listed["snapshots"]] == [identity]
    assert listed["unreadable"] == ["copy.json"]


def compare(page: Browserless, before: str, after: str = "now", **given: Any) -> Any:
    names = {"from": before, "to": after, "table": NAME}
    answer = page.call("comparison", {**names, "start": True, **given})
    assert "error" not in answer, answer
    return wait_until_over(page, "comparison", names, "comparison")


def put_back(page: Browserless, comparison: Any, **given: Any) -> Any:
    answer = page.call("put_back", {"id": comparison["id"], **given})
    if "error" in answer:
        return answer["error"]
    return wait_until_over(page, "put_back_progress", {"id": comparison["id"]})


def change(database: isotone.Database) -> None:
    """One order is changed, one removed, one added."""
    database.execute("PutItem", {"TableName": NAME, "Item": order(3, total=999)})
    database.execute("DeleteItem", {"TableName": NAME, "Key": key_of(order(4))})
    added = {**order(100), "customer": {"S": HOSTILE}, HOSTILE: {"S": HOSTILE}}
    database.execute("PutItem", {"TableName": NAME, "Item": added})


@pytest.mark.parametrize("where", ["memory", "file", "elsewhere", "dynamodb-local"])
def test_a_snapshot_is_taken_compared_and_put_back(where, tmp_path):
    is_remote = where in ("elsewhere", "dynamodb-local")
    with ExitStack() as stack:
        target = ":memory:" if where == "memory" else str(tmp_path / "shop.db")
        database: Any = stack.enter_context(isotone.open(target))
        backend = database
        if is_remote:
            there = (
                stack.enter_context(optional_dynamodb_local.dynamodb_local()).url
                if where == "dynamodb-local"
                else stack.enter_context(running_server(database))
            )
            keys = isotone.Credentials("local", "local")
            backend, close = open_backend(there, region="us-east-1", credentials=keys)
            stack.callback(close)
        pages = Workbench(
            backend,
            target=target,
            remote=is_remote,
            snapshots=tmp_path / "folder" if is_remote else None,
        )
        page = Browserless(stack.enter_context(running_server(database, pages=pages)))
        database = backend
        create(database)
        fill(database, ORDERS)
        before = items(database)
        identity = take(page, HOSTILE)
        change(database)
        after = items(database)
        listed = page.call("snapshots")
        (snapshot,) = listed["snapshots"]
        assert (snapshot["name"], snapshot["moment"]) == (HOSTILE, not is_remote)
        assert [(each["name"], each["items"]) for each in snapshot["tables"]] == [(NAME, ORDERS)]
        assert snapshot["bytes"] == listed["place"]["bytes"] > 10_000
        assert listed["place"]["temporary"] is (where == "memory")
        if where == "file":
            assert Path(listed["place"]["path"]) == tmp_path / "shop.db-snapshots"
        found = compare(page, identity)
        assert found["counts"] == {
            "all": 3, "added": 1, "removed": 1, "changed": 1,
            "same": ORDERS - 2, "before": ORDERS, "after": ORDERS,
        }  # fmt: skip
        given = {"id": found["id"], "list": "changed", "at": 0, "count": 10}
        (row,) = page.call("comparison_rows", given)["rows"]
        assert row["attributes"] == [["total", ["N", "0"], ["N", "999"]]]
        difference = page.call("comparison_item", {"id": found["id"], "number": row["number"]})
        assert (difference["before"], difference["after"]) == (order(3), order(3, total=999))
        assert difference["changed"] == ["total"]
        # one item, and then all
        done = put_back(page, found, numbers=[row["number"]])
        assert (done["state"], done["written"], done["refused"]) == ("done", 1, 0)
        assert items(database) == {**after, ("c3", "3"): before["c3", "3"]}
        assert put_back(page, found, numbers=[row["number"]], undo=True)["written"] == 1
        assert put_back(page, found, list="all")["written"] == 3
        assert items(database) == before
        again = compare(page, identity, again=True)
        assert again["counts"]["all"] == 0
        # the former comparison is still there to undo
        assert put_back(page, found, list="all", undo=True)["written"] == 3
        assert items(database) == after
        # two snapshots
        later = take(page, "after")
        assert compare(page, identity, later)["counts"] == found["counts"]
        assert (
            "only the present"
            in put_back(page, compare(page, identity, later), list="all")["message"]
        )
        for each in (identity, later):
            assert page.call("snapshot_delete", {"id": each}) == {}
        assert page.call("snapshots")["snapshots"] == []
        assert (
            "compare again"
            in page.call("comparison_item", {"id": found["id"], "number": 0})["error"]["message"]
        )
        folder = Path(listed["place"]["path"])
        assert [each.name for each in folder.iterdir() if each.suffix == ".db"] == []


def test_a_file_in_the_temporary_folder_goes_with_the_workbench(database):
    folder = folder_for(":memory:", remote=False)
    with folder.draft(new_id("one")) as file:
        file.write_bytes(b"x")
        assert file.exists()
    path = folder.path
    assert path.exists()
    del folder
    assert not path.exists()


def test_of_several_tables_one_that_is_gone_is_made_again(serve, database):
    page = serve()
    create(database, "Other")
    described = database.execute("DescribeTable", {"TableName": NAME})["Table"]
    before = items(database)
    identity = take(page)
    assert {each["name"] for each in page.call("snapshots")["snapshots"][0]["tables"]} == {
        NAME,
        "Other",
    }
    database.execute("DeleteTable", {"TableName": NAME})
    found = compare(page, identity)
    assert (found["gone"], found["counts"]["removed"]) == (True, ORDERS)
    assert put_back(page, found, list="all")["written"] == ORDERS
    assert items(database) == before
    made = database.execute("DescribeTable", {"TableName": NAME})["Table"]
    for member in ("KeySchema", "ItemCount"):
        assert made[member] == described[member]
    names = [each["IndexName"] for each in made["GlobalSecondaryIndexes"]]
    assert names == [each["IndexName"] for each in described["GlobalSecondaryIndexes"]]
    assert database.check() == []


def test_other_indexes_are_reported_and_other_keys_are_refused(serve, database):
    page = serve()
    identity = take(page)
    change(database)
    database.execute(
        "UpdateTable",
        {
            "TableName": NAME,
            "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by_status"}}],
        },
    )
    assert compare(page, identity)["notes"] == ["index by_status: only in the source"]
    database.execute("DeleteTable", {"TableName": NAME})
    database.execute(
        "CreateTable",
        {
            "TableName": NAME,
            "KeySchema": [{"AttributeName": "number", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "number", "AttributeType": "N"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    failed = compare(page, identity, again=True)
    assert failed["state"] == "failed"
    assert "other keys" in failed["fault"]


def test_what_was_written_since_the_comparison_is_left_alone_and_reported(serve, database):
    page = serve()
    identity = take(page)
    change(database)
    found = compare(page, identity)
    database.execute("PutItem", {"TableName": NAME, "Item": order(3, total=1000)})
    done = put_back(page, found, list="all")
    assert (done["state"], done["written"], done["refused"]) == ("done", 2, 1)
    assert [key for _, key in done["refused_first"]] == ['{"customer": "c3", "number": 3}']
    assert items(database)["c3", "3"]["total"] == {"N": "1000"}


def test_safe_mode_takes_and_compares_and_writes_nothing(serve, database):
    page = serve(writable=False)
    identity = take(page)
    change(database)
    after = items(database)
    found = compare(page, identity)
    assert put_back(page, found, list="all")["code"] == "SafeMode"
    assert items(database) == after
    page.call("unlock", {"writable": True})
    assert put_back(page, found, list="all")["written"] == 3


def test_what_an_engine_refuses_is_reported(serve, database):
    page = serve()
    identity = take(page)
    change(database)
    found = compare(page, identity)
    database.execute("UpdateTable", {"TableName": NAME, "DeletionProtectionEnabled": False})
    database.execute("DeleteTable", {"TableName": NAME})
    done = put_back(page, found, list="all")
    assert done["state"] == "failed"
    assert "not found" in done["fault"]


@pytest.mark.parametrize(
    ("call", "given", "told"),
    [
        ("snapshot_take", {"tables": []}, "not a list of table names"),
        ("snapshot_take", {"tables": "Orders"}, "not a list of table names"),
        ("snapshot_take", {"name": "x" * 101}, "up to 100"),
        ("snapshot_delete", {"id": "20260101-000000-x"}, "no snapshot '20260101-000000-x'"),
        ("snapshot_delete", {"id": "../../etc/passwd"}, "not the id"),
        ("comparison_rows", {"id": 7, "list": "all", "at": 0, "count": 1}, "compare again"),
        ("comparison", {"from": "x", "to": "now"}, "'table'"),
        ("put_back", {"id": 7, "list": "all"}, "compare again"),
    ],
)
def test_wrong_calls_are_reported(serve, call, given, told):
    assert told in serve().call(call, given)["error"]["message"]


def test_faults_of_jobs_are_reported_and_leave_nothing(serve, database, tmp_path):
    page = serve()
    page.call("snapshot_take", {"name": "", "tables": ["Nowhere"]})
    failed = wait_until_over(page, "snapshot_taking", {}, "taking")
    assert failed["state"] == "failed"
    assert "Nowhere" in failed["fault"]
    for before, after, table, told in (
        ("20260101-000000-gone", "now", NAME, "no snapshot '20260101-000000-gone'"),
        ("../x", "now", NAME, "not the id"),
        (take(page), "now", "Nowhere", "neither side"),
    ):
        names = {"from": before, "to": after, "table": table}
        page.call("comparison", {**names, "start": True})
        assert told in wait_until_over(page, "comparison", names, "comparison")["fault"]
    left = {each.suffix for each in (tmp_path / "snapshots").iterdir()}
    assert left <= {".db", ".json"}
    assert len(list((tmp_path / "snapshots").glob("*.db"))) == 1


def test_a_snapshot_that_is_stopped_leaves_nothing(database, tmp_path):
    begun, gate = threading.Event(), threading.Event()

    def wait(operation: str, _: Any) -> None:
        if operation == "Scan":
            begun.set()
            gate.wait(30)

    backend: Any = InterceptedBackend(database, wait)
    pages = Workbench(backend, target="slow", remote=True, snapshots=tmp_path)
    with running_server(database, pages=pages) as url:
        page = Browserless(url)
        assert page.call("snapshot_take", {"name": "slow"})["state"] == "running"
        begun.wait(30)
        assert page.call("snapshots")["taking"]["name"] == "slow"
        error = page.call("snapshot_take", {"name": "another"})["error"]
        assert "being taken already" in error["message"]
        page.call("snapshot_stop")
        gate.set()
        assert wait_until_over(page, "snapshot_taking", {}, "taking")["state"] == "stopped"
        assert list(tmp_path.iterdir()) == []


def test_a_snapshot_is_deleted_while_it_is_compared(database, tmp_path):
    begun = threading.Event()
    first = True

    class Slow:
        def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
            if operation == "Scan" and not first:
                begun.set()
                time.sleep(0.05)
            few = {"Limit": 1} if operation == "Scan" else {}
            return database.execute(operation, {**request, **few}, deadline)

    backend: Any = Slow()
    pages = Workbench(backend, target="slow", remote=True, snapshots=tmp_path)
    with running_server(database, pages=pages) as url:
        page = Browserless(url)
        identity = take(page)
        first = False
        names = {"from": identity, "to": "now", "table": NAME}
        assert page.call("comparison", {**names, "start": True})["comparison"]["state"] == "running"
        begun.wait(30)
        assert page.call("snapshot_delete", {"id": identity}) == {}
        assert page.call("comparison", names) == {"comparison": None}
        assert list(tmp_path.iterdir()) == []


def test_a_comparison_begins_only_when_it_is_asked_for(serve, database):
    page = serve()
    names = {"from": take(page), "to": "now", "table": NAME}
    assert page.call("comparison", names) == {"comparison": None}
    first = compare(page, names["from"])
    assert compare(page, names["from"])["id"] == first["id"]
    assert compare(page, names["from"], again=True)["id"] > first["id"]


def test_the_number_of_comparisons_is_bounded(serve, tmp_path):
    page = serve()
    taken = [take(page, f"snapshot {number}") for number in range(3)]
    for before in taken:
        for after in (*taken, "now"):
            compare(page, before, after)
    assert len(list((tmp_path / "snapshots").glob("*comparison*.db"))) == 4


def test_what_a_killed_process_left_is_deleted_and_what_another_one_writes_is_not(tmp_path):
    folder = SnapshotFolder(tmp_path)
    running = new_id("running")
    for name in (new_id("killed"), running):
        for suffix in (".db", ".db-wal", ".lock"):
            (tmp_path / f"{name}{suffix}").touch()
    with locked(tmp_path / f"{running}.lock"):
        (tmp_path / "broken.json").write_text("{}")
        assert folder.all() == ([], ["broken.json"])
        assert {each.name for each in tmp_path.iterdir()} == {
            f"{running}.db", f"{running}.db-wal", f"{running}.lock", "broken.json",
        }  # fmt: skip


def test_other_databases_in_the_folder_stay(serve, database, tmp_path):
    """As with `--snapshots .`: only what a killed process has left is deleted."""
    isotone.open(tmp_path / "shop.db").close()
    isotone.open(tmp_path / "locked.db").close()
    (tmp_path / "locked.lock").write_text("of another program")
    isotone.open(tmp_path / "copied.db").close()
    (tmp_path / "copied.lock").touch()  # of a job with `--state copied`
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with running_server(
        database, pages=Workbench(database, target="shop.db", snapshots=tmp_path)
    ) as url:
        page = Browserless(url)
        page.call("snapshots")
        take(page)
        assert len(page.call("snapshots")["snapshots"]) == 1
    for name, content in before.items():
        assert (tmp_path / name).read_bytes() == content


def test_a_folder_of_another_program_is_not_swept(tmp_path, monkeypatch):
    """The temporary folders of killed processes have a lock; a link to a folder is none of them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(snapshot_folder, "_OLD", -1.0)
    (tmp_path / "isotone_snapshots_of_mine").mkdir()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/owner.lock").touch()
    (tmp_path / "isotone_snapshots_link").symlink_to("precious")
    (tmp_path / "isotone_snapshots_left").mkdir()
    (tmp_path / "isotone_snapshots_left/owner.lock").touch()
    snapshot_folder._sweep_temporary()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "isotone_snapshots_link", "isotone_snapshots_of_mine", "precious",
    ]  # fmt: skip
    assert (tmp_path / "precious/owner.lock").exists()


@pytest.mark.parametrize("content", [None, b""])
def test_a_snapshot_without_its_file_is_compared_with_nothing(serve, tmp_path, content):
    page = serve()
    file = tmp_path / "snapshots" / f"{take(page)}.db"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    found = compare(page, file.stem)
    assert (found["state"], found["fault"].split(":")[0]) == (
        "failed", f"{file} is missing or empty",
    )  # fmt: skip
    assert (file.read_bytes() if file.exists() else None) == content


@pytest.mark.parametrize("how", ["exchanged", "another database", "a damaged description"])
def test_a_file_that_is_not_the_one_of_its_description_is_not_compared(
    serve, database, tmp_path, how
):
    page = serve()
    first = take(page, "first")
    change(database)
    second = take(page, "second")  # with as many items
    folder = tmp_path / "snapshots"
    if how == "exchanged":
        (folder / f"{first}.db").replace(folder / "kept")
        (folder / f"{second}.db").replace(folder / f"{first}.db")
        (folder / "kept").replace(folder / f"{second}.db")
    elif how == "another database":
        (folder / f"{first}.db").unlink()
        isotone.open(folder / f"{first}.db").close()
    else:
        description = folder / f"{first}.json"
        description.write_text(description.read_text().replace(f'"{NAME}":', f'"{NAME}s":', 1))
    found = compare(page, first)
    assert found["state"] == "failed"
    assert "is not the one of its description" in found["fault"]
    assert "error" not in page.call("snapshots")


@pytest.mark.parametrize("what", ["a database", "a text", "a snapshot with one item more"])
def test_a_file_in_the_place_of_a_snapshot_is_not_deleted_with_it(serve, tmp_path, what):
    page = serve()
    file = tmp_path / "snapshots" / f"{take(page)}.db"
    if what == "a text":
        file.write_text("precious" * 100)
    else:
        if what == "a database":
            file.unlink()
        with isotone.open(file) as other:
            if what == "a database":
                create(other)
            fill(other, ORDERS + 1)
    before = file.read_bytes()
    answer = page.call("snapshot_delete", {"id": file.stem})
    assert f"{file} is not deleted, as it may not be the file of this snapshot" in str(answer)
    assert file.read_bytes() == before
    assert [each["id"] for each in page.call("snapshots")["snapshots"]] == [file.stem]
    file.rename(tmp_path / "kept.db")
    assert page.call("snapshot_delete", {"id": file.stem}) == {}
    assert page.call("snapshots")["snapshots"] == []


def test_a_snapshot_is_a_file_that_other_commands_read(serve, database, tmp_path):
    page = serve()
    take(page)
    file = page.call("snapshots")["snapshots"][0]["file"]
    assert moving.diff(file, database, items_only=True).is_equal
    assert not moving.diff(file, database).is_equal  # it has no indexes
    change(database)
    comparison = moving.diff(file, database, items_only=True).comparisons[NAME]
    found = compare(page, page.call("snapshots")["snapshots"][0]["id"])["counts"]
    assert (comparison.only_in_target, comparison.only_in_source, comparison.changed) == (
        found["added"], found["removed"], found["changed"],
    )  # fmt: skip
    with isotone.open(file) as opened:
        assert opened.check() == []
        assert items(opened).keys() < items(database).keys() | {("c4", "4")}


def test_nothing_is_put_back_twice_at_once(database, tmp_path):
    """Nor is a snapshot deleted while items are put back from it; and the job can be stopped."""
    begun, gate = threading.Event(), threading.Event()

    def wait(operation: str, _: Any) -> None:
        if operation == "UpdateItem":
            begun.set()
            gate.wait(30)

    pages = Workbench(
        InterceptedBackend(database, wait), target="slow", remote=True, snapshots=tmp_path
    )
    numbers = range(100, 120)  # more than are written at the same time
    for number in numbers:
        database.execute("PutItem", {"TableName": NAME, "Item": order(number)})
    with running_server(database, pages=pages) as url:
        page = Browserless(url)
        identity = take(page)
        for number in numbers:
            database.execute("PutItem", {"TableName": NAME, "Item": order(number, total=999)})
        found = compare(page, identity)
        given = {"id": found["id"]}
        error = page.call("put_back_progress", given)["error"]
        assert "nothing was put back" in error["message"]
        try:
            assert page.call("put_back", {**given, "list": "all"})["state"] == "running"
            assert begun.wait(30)
            error = page.call("put_back", {**given, "list": "all"})["error"]
            assert "being put back already" in error["message"]
            error = page.call("snapshot_delete", {"id": identity})["error"]
            assert "being put back from this snapshot" in error["message"]
            assert page.call("comparison_stop", given) == {}
        finally:
            gate.set()
        done = wait_until_over(page, "put_back_progress", given)
        assert done["state"] == "stopped"
        assert 1 <= done["written"] < len(numbers)


def test_a_snapshot_that_is_completed_during_a_sweep_stays(tmp_path, monkeypatch):
    """A sweep finds no description of it, and gets its lock when it has one."""
    folder = SnapshotFolder(tmp_path)
    with ExitStack() as draft:
        file = draft.enter_context(folder.draft(new_id("one")))
        file.touch()

        def complete_and_lock(path: Path) -> Any:
            file.with_suffix(".json").touch()
            draft.close()
            return locked(path)

        monkeypatch.setattr(snapshot_folder, "locked", complete_and_lock)
        folder.sweep()
    assert file.exists()


def test_the_newest_snapshot_is_the_first_one(serve):
    page = serve()
    for name in ("b", "a", ""):  # within a second
        take(page, name)
    assert [each["name"] for each in page.call("snapshots")["snapshots"]] == ["", "a", "b"]


def test_a_snapshot_has_its_account(database, tmp_path):
    """The address of Amazon's service is that of every account."""

    class Account(InterceptedBackend):
        def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
            if "ResourceArn" in request:
                return {}
            answer = super().execute(operation, request, deadline)
            if operation == "DescribeTable":
                arn = answer["Table"]["TableArn"].replace(":000000000000:", ":123456789012:")
                answer["Table"]["TableArn"] = arn
            return answer

    for backend in (InterceptedBackend(database), Account(database)):
        pages = Workbench(backend, target="dynamodb://us-east-1", snapshots=tmp_path)
        with running_server(database, pages=pages) as url:
            take(Browserless(url))
            listed = Browserless(url).call("snapshots")["snapshots"]
    assert [each["account"] for each in listed] == ["123456789012", "000000000000"]


def test_two_windows_that_compare_the_same_see_one_comparison(serve, monkeypatch):
    def late(function: Callable[..., Any], *arguments: Any) -> Any:
        return threads.in_thread(lambda: (time.sleep(0.05), function(*arguments))[1])

    monkeypatch.setattr(snapshots, "in_thread", late)
    page = serve()
    names = {"from": take(page), "to": "now", "table": NAME, "start": True}
    with ThreadPoolExecutor(8) as windows:
        found = list(windows.map(lambda _: page.call("comparison", names), range(8)))
    assert len({each["comparison"]["id"] for each in found}) == 1


def test_what_was_put_back_can_be_undone_after_other_comparisons(serve, database):
    page = serve()
    identity = take(page)
    change(database)
    after = items(database)
    found = compare(page, identity)
    assert put_back(page, found, list="all")["written"] == 3
    for number in range(5):
        compare(page, identity, take(page, f"other {number}"))
    assert put_back(page, found, list="all", undo=True)["written"] == 3
    assert items(database) == after


def test_a_table_that_is_made_again_has_its_settings_when_that_is_stopped(database, tmp_path):
    expiry = {"AttributeName": "expires", "Enabled": True}
    database.execute("UpdateTimeToLive", {"TableName": NAME, "TimeToLiveSpecification": expiry})

    def stop(operation: str, _: Any) -> None:
        if operation == "PutItem":
            page.call("comparison_stop", {"id": found["id"]})

    pages = Workbench(
        InterceptedBackend(database, stop), target="x", remote=True, snapshots=tmp_path
    )
    with running_server(database, pages=pages) as url:
        page = Browserless(url)
        identity = take(page)
        database.execute("DeleteTable", {"TableName": NAME})
        found = compare(page, identity)
        assert put_back(page, found, list="all")["state"] == "stopped"
    told = database.execute("DescribeTimeToLive", {"TableName": NAME})["TimeToLiveDescription"]
    assert told["AttributeName"] == "expires"


HUNG = """
import os, sys, threading
import isotone
from isotone.server import serve
from isotone.workbench import Workbench
from tests.moving.tables import create, fill

database = isotone.open()
create(database)
fill(database, 3)

class Hung:
    def execute(self, operation, request, deadline=None):
        if operation == sys.argv[1]:
            os.write(1, b"hung\\n")  # a thread that is in `print` at the exit aborts the process
            threading.Event().wait()
        return database.execute(operation, request, deadline)

pages = Workbench(Hung(), target="x", remote=True, snapshots="snapshots")
serve(database, port=0, pages=pages, ready=lambda url: print(url, flush=True))
"""


@pytest.mark.parametrize("operation", ["DescribeTable", "Scan", "DeleteItem"])
def test_an_engine_that_does_not_answer_does_not_delay_the_end(operation, tmp_path):
    """The process is a new one: one that was forked would not wait for its threads."""
    process = subprocess.Popen(
        [sys.executable, "-c", HUNG, operation],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        page = Browserless(url)
        with closing(HTTPConnection(url.removeprefix("http://"))) as waiting:
            if operation == "DescribeTable":
                header = {"X-Isotone-Workbench": "1"}
                waiting.request("POST", "/workbench/api/tables", "{}", header)
            elif operation == "Scan":
                page.call("snapshot_take", {"name": "never"})
            else:
                identity = take(page)
                page.execute("PutItem", {"TableName": NAME, "Item": order(100)})
                page.call("put_back", {"id": compare(page, identity)["id"], "list": "all"})
            assert process.stdout.readline() == "hung\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_description_has_the_number_of_its_form(serve):
    page = serve()
    take(page)
    description = next(Path(page.call("snapshots")["place"]["path"]).glob("*.json"))
    assert msgspec.json.decode(description.read_bytes())["form"] == 1
