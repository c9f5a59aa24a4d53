"""What may be written, decided for any path by the rules of the one function, and by library calls that take one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import moving
from isotone.errors import UsageError
from isotone.model.undo_log import UndoLog
from isotone.output_paths import OutputPath, check_output, check_outputs, write_text, write_whole
from isotone.server.users import changing_users
from isotone.tables.job_state import JobState

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links as POSIX has them")
LOGS = ("-wal", "-shm", "-journal")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with isotone.open("shop.db") as database:
        database.client().create_table(
            TableName="Orders",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    return tmp_path


def test_nothing_else_is_refused() -> None:
    Path("old.txt").write_text("text")
    check_outputs(
        OutputPath("--a", "new.txt", beside=(".part",)),
        OutputPath("--b", "old.txt"),
        None,
        inputs={"FILE": "shop.db", "--c": None, "--d": "missing"},
    )


def test_an_address_is_no_file() -> None:
    for needs_folder in (True, False):
        output = OutputPath("--state", "postgresql://ann@db/app", needs_folder=needs_folder)
        with pytest.raises(UsageError, match="is an address, not a file"):
            check_outputs(output)


@pytest.mark.parametrize("ending", ["", *LOGS])
def test_a_database_without_a_header_is_known_by_its_log(ending: str) -> None:
    """The header is damaged, and the log has what a repair needs."""
    log = apsw.Connection("other.db")
    log.execute("PRAGMA journal_mode=WAL").fetchall()
    log.execute("CREATE TABLE t (a)")
    content = Path("other.db-wal").read_bytes()
    log.close()
    Path("other.db").write_bytes(b"damaged" + Path("other.db").read_bytes()[7:])
    Path("other.db-wal").write_bytes(content)
    if ending in ("", "-wal"):
        with pytest.raises(UsageError, match="and is not replaced; give another file"):
            check_outputs(OutputPath("--report", f"other.db{ending}"))


def test_a_hot_journal_is_not_replaced() -> None:
    writer = apsw.Connection("other.db")
    writer.execute("CREATE TABLE t (a); BEGIN; INSERT INTO t VALUES (1)")
    writer.cache_flush()
    journal = Path("other.db-journal").read_bytes()
    writer.close()
    Path("moved-away").write_bytes(journal)
    with pytest.raises(UsageError, match="moved-away is the log of a database"):
        check_outputs(OutputPath("--report", "moved-away"))


@given(st.data())
def test_two_spellings_of_one_file_are_one(data: st.DataObject) -> None:
    """However a path goes up and down, and whether the file is there: the same folder and name are the same file."""
    Path("a/b").mkdir(parents=True, exist_ok=True)
    ways = ["", "./", "a/../", "a/b/../../", f"{Path.cwd()}/", "a/.././"]
    name = data.draw(st.sampled_from(["shop.db", "new.db"]))
    first, second = (data.draw(st.sampled_from(ways)) + name for _ in range(2))
    with pytest.raises(UsageError, match=r"same file|written by"):
        check_outputs(OutputPath("--a", first, is_database=True), inputs={"FILE": second})
    if name == "new.db":
        with pytest.raises(UsageError, match="is written by --a"):
            check_outputs(OutputPath("--a", first), OutputPath("--b", second))


def test_a_file_is_replaced_as_a_whole_or_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "state.json"
    write_whole(path, b"old")
    before = sorted(folder.iterdir())

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert sorted(folder.iterdir()) == before


def test_library_calls_refuse_what_the_options_do() -> None:
    Path("rows.jsonl").write_text('{"id": "a"}\nbad\n')
    before = Path("shop.db").read_bytes()
    calls: list[Any] = [
        lambda: moving.import_items("rows.jsonl", "shop.db", "Orders", bad_rows="shop.db"),
        lambda: moving.import_items("rows.jsonl", "shop.db", "Orders", bad_rows="rows.jsonl"),
        lambda: moving.import_items("rows.jsonl", "shop.db", "Orders", state="shop.db-wal"),
        lambda: moving.export_items("shop.db", "Orders", "shop.db", format="jsonl", force=True),
        lambda: moving.export_items("shop.db", "Orders", "x.jsonl", state="shop.db"),
        lambda: moving.copy("shop.db", "new.db", state="new.db"),
        lambda: isotone.repair("shop.db", "shop.db-wal"),
        lambda: isotone.connect("shop.db", tape="shop.db-wal"),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="give another file"):
            call()
    assert Path("shop.db").read_bytes() == before
    assert sorted(str(path) for path in Path().iterdir()) == ["rows.jsonl", "shop.db"]


@pytest.mark.parametrize("path", ["new/", "new//", "folder/.", "folder/new/."])
def test_the_name_of_a_folder_is_no_output(folder: Path, path: str) -> None:
    (folder / "folder").mkdir()
    with pytest.raises(UsageError, match="is a folder, not a regular file"):
        check_output(OutputPath("--report", f"{folder}/{path}"))


def test_a_tape_takes_no_other_file(folder: Path) -> None:
    Path("tape.json.part").symlink_to("shop.db")
    before = Path("shop.db").read_bytes()
    with pytest.raises(UsageError, match=r"tape\.json\.part, which is a symbolic link"):
        isotone.connect("shop.db", tape="tape.json")
    assert Path("shop.db").read_bytes() == before


def test_a_tape_replaces_only_a_draft_of_a_tape(folder: Path) -> None:
    draft = Path("tape.json.part")
    draft.write_text("precious")
    with pytest.raises(UsageError, match=r"tape\.json\.part is no unfinished file of Isotone"):
        isotone.connect("shop.db", tape="tape.json")
    assert draft.read_text() == "precious"
    Path("tape.json.part-begun").touch()  # as a killed program has left it
    isotone.connect("shop.db", tape="tape.json").close()
    assert Path("tape.json").exists()
    assert not list(Path().glob("tape.json.*"))


def test_an_open_database_is_no_output_of_its_own_jobs() -> None:
    Path("rows.jsonl").write_text("bad\n")
    with isotone.open("shop.db") as database:
        for path in ("shop.db", "shop.db-wal", "shop.db-shm"):
            with pytest.raises(UsageError, match="is not replaced"):
                moving.import_items("rows.jsonl", database, "Orders", bad_rows=path)
        assert database.check() == []


def test_a_text_replaces_a_file_as_a_whole_or_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk a report or a page has what it had, as a module that was changed by hand does."""
    page = OutputPath("--html", "page.html", may_stream=True)
    write_text(page, "old")
    Path("page.html").chmod(0o640)
    write_text(page, "newer €")
    assert Path("page.html").read_text(encoding="utf-8") == "newer €"
    assert Path("page.html").stat().st_mode & 0o777 == 0o640
    before = sorted(folder.iterdir())

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space .*'page\.html'"):
        write_text(page, "lost" * 10_000)
    assert Path("page.html").read_text(encoding="utf-8") == "newer €"
    assert sorted(folder.iterdir()) == before


def test_a_full_disk_is_that_of_the_file_that_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of a write names no file, and the command line would take it for that of standard output."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def change_users() -> None:
        with changing_users("users.json"):
            pass

    log = UndoLog("orders.undo")
    state = JobState("state.json", ("copy",))
    monkeypatch.setattr("os.fsync", full)
    writes: dict[str, Callable[[], object]] = {
        "users.json": change_users,
        "orders.undo": lambda: log.add_and_sync("Orders", [({"id": {"S": "a"}}, None, None)]),
        "state.json": lambda: state.set("Orders", {}),
        "text.txt": lambda: write_whole(Path("text.txt"), b"text"),
    }
    for name, write in writes.items():
        with pytest.raises(OSError, match="No space left") as caught:
            write()
        assert caught.value.filename == name
    with log:
        pass


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
@pytest.mark.parametrize("is_database", [False, True])
def test_a_file_that_nobody_may_write_is_not_replaced(is_database: bool) -> None:
    """A rename would replace it all the same; so would root, whom no mode keeps out."""
    path = Path("old")
    path.write_text("text")
    path.chmod(0o444)
    with pytest.raises(UsageError, match="old is read-only, and is not replaced"):
        check_outputs(OutputPath("--a", path, is_database=is_database))
    path.chmod(0o644)
    check_outputs(OutputPath("--a", path, is_database=is_database))


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
def test_a_backup_does_not_replace_one_that_is_read_only() -> None:
    """And one of a read-only file is no read-only file."""
    Path("shop.db").chmod(0o444)
    isotone.backup("shop.db", "backup.db")
    isotone.backup("shop.db", "backup.db", force=True)
    Path("backup.db").chmod(0o444)
    content = Path("backup.db").read_bytes()
    options: dict[str, bool]
    for options in ({"force": True}, {"update": True}):
        with pytest.raises(UsageError, match=r"backup.db is read-only, and is not replaced"):
            isotone.backup("shop.db", "backup.db", **options)
    with pytest.raises(UsageError, match=r"backup.db is read-only, and is not replaced"):
        isotone.restore("shop.db", "backup.db", force=True)
    assert Path("backup.db").read_bytes() == content


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
@pytest.mark.parametrize("kind", ["a pipe", "a folder"])
def test_a_tape_is_a_regular_file(kind: str) -> None:
    """Opening a pipe waits for its writer."""
    if kind == "a pipe":
        os.mkfifo("tape")
    else:
        Path("tape").mkdir()
    with pytest.raises(UsageError, match=f"tape.* is {kind}, not a regular file"):
        isotone.connect("shop.db", tape="tape")


@pytest.mark.parametrize("ending", LOGS)
def test_a_link_to_the_name_of_a_log_is_no_output(ending: str) -> None:
    """SQLite deletes what is there when the database is opened, with all that was appended through the link."""
    Path("link").symlink_to(f"shop.db{ending}")
    calls: list[Callable[[], Any]] = [
        lambda: UndoLog("link"),
        lambda: changing_users("link").__enter__(),
        lambda: check_outputs(OutputPath("--audit-log", "link", is_appended=True)),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=r"link is the log of .*shop\.db, and is not replaced"):
            call()
    assert sorted(str(path) for path in Path().iterdir()) == ["link", "shop.db"]


@pytest.mark.parametrize(
    ("ending", "head"),
    [("-wal", b"\x37\x7f\x06\x82"), ("-journal", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")],
)
def test_a_link_to_a_database_without_a_header_is_no_output(ending: str, head: bytes) -> None:
    """Its log has what a repair needs. It is beside the file, not beside the link."""
    Path("other.db").write_bytes(b"damaged")
    Path(f"other.db{ending}").write_bytes(head)
    Path("link").symlink_to("other.db")
    with pytest.raises(UsageError, match="is a database"):
        check_outputs(OutputPath("--audit-log", "link", is_appended=True))


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux lists locks")
def test_an_open_database_that_is_named_as_an_input_keeps_its_locks() -> None:
    """Closing a file ends the locks of SQLite on it: another process would take the database for an unused one."""

    def locks() -> int:
        return Path("/proc/locks").read_text().count(f":{Path('shop.db').stat().st_ino} ")

    with isotone.open("shop.db") as database:
        database.client().list_tables()
        before = locks()
        assert before
        store = isotone.connect(database)
        with pytest.raises(UsageError, match="is not an undo log"):
            store.undo("shop.db")
        assert locks() == before
        with pytest.raises(UsageError, match="is not a tape"):
            isotone.connect(database, tape="shop.db")
        assert locks() == before
