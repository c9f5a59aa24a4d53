"""Hot backups, restores and compaction of a file, through the public API."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import isotone
from isotone.errors import StorageBusy, StorageCorrupt, UsageError
from isotone.storage import file_copies

SCHEMA: Any = {
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
FILLER = "x" * 400


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    """An open file with 200 items."""
    with isotone.open("shop.db", durability="none") as database:
        database.client().create_table(TableName="Orders", **SCHEMA)
        write(database, range(200))
        yield database


def write(database: isotone.Database, numbers: range) -> None:
    for number in numbers:
        item = {"id": {"S": str(number)}, "filler": {"S": FILLER}}
        database.execute("PutItem", {"TableName": "Orders", "Item": item})


def delete(database: isotone.Database, numbers: range) -> None:
    for number in numbers:
        request = {"TableName": "Orders", "Key": {"id": {"S": str(number)}}}
        database.execute("DeleteItem", request)


def numbers_in(file: str) -> set[int]:
    """The numbers of the items in a file, which must be consistent."""
    with isotone.open(file) as database:
        assert database.check() == []
        pages = database.client().get_paginator("scan").paginate(TableName="Orders")
        return {int(item["id"]["S"]) for page in pages for item in page["Items"]}


@pytest.mark.parametrize("compact", [False, True])
def test_a_backup_beside_a_writer_is_the_file_at_one_moment(
    database: isotone.Database, compact: bool
) -> None:
    done = threading.Event()
    last = 200

    def add() -> None:
        nonlocal last
        while not done.is_set():
            write(database, range(last, last + 1))
            last += 1

    writer = threading.Thread(target=add)
    writer.start()
    try:
        sizes: list[tuple[int, int]] = []
        for number in range(3):
            isotone.backup(
                "shop.db", f"{number}.db", compact=compact, progress=lambda *at: sizes.append(at)
            )
    finally:
        done.set()
        writer.join()
    assert sizes[-1][0] == sizes[-1][1] > 0 or compact
    for number in range(3):
        found = numbers_in(f"{number}.db")
        assert found == set(range(len(found)))  # the items were written in this order
        assert len(found) >= 200
    assert not list(Path().glob("*.part"))


def test_a_backup_is_one_file_that_is_readable_without_the_right_to_write(
    database: isotone.Database, folder: Path
) -> None:
    media = folder / "media"
    media.mkdir()
    size = database.backup(media / "shop.db")
    assert size == (media / "shop.db").stat().st_size
    assert list(media.iterdir()) == [media / "shop.db"]
    media.chmod(0o500)
    try:
        isotone.restore(media / "shop.db", "copy.db")
        assert list(media.iterdir()) == [media / "shop.db"]
    finally:
        media.chmod(0o700)
    assert numbers_in("copy.db") == set(range(200))


def test_an_earlier_backup_is_brought_up_to_date(database: isotone.Database) -> None:
    isotone.backup("shop.db", "copy.db")
    before = Path("copy.db").stat().st_ino
    write(database, range(150, 300))
    delete(database, range(10))
    database.client().create_table(TableName="Other", **SCHEMA)
    isotone.backup("shop.db", "copy.db", update=True)
    assert Path("copy.db").stat().st_ino == before
    assert numbers_in("copy.db") == set(range(10, 300))
    database.client().delete_table(TableName="Other")
    database.backup("copy.db", update=True)
    with isotone.open("copy.db") as copy:
        assert copy.client().list_tables()["TableNames"] == ["Orders"]
    database.backup("new.db", update=True)  # the first one is made
    assert numbers_in("new.db") == set(range(10, 300))


def test_memory_is_backed_up_to_a_file() -> None:
    with isotone.open(":memory:") as database:
        database.client().create_table(TableName="Orders", **SCHEMA)
        write(database, range(2500))
        database.backup("memory.db", force=True)
        with pytest.raises(UsageError, match="exists; --force"):
            database.backup("memory.db")
    assert numbers_in("memory.db") == set(range(2500))


def test_an_existing_target_is_replaced_only_with_force(database: isotone.Database) -> None:
    isotone.backup("shop.db", "copy.db")
    first = Path("copy.db").read_bytes()
    write(database, range(200, 201))
    with pytest.raises(UsageError, match=r"copy.db exists; --force \(force=True\) replaces it"):
        isotone.backup("shop.db", "copy.db")
    assert Path("copy.db").read_bytes() == first
    isotone.backup("shop.db", "copy.db", force=True)
    assert numbers_in("copy.db") == set(range(201))


def test_what_is_no_backup_is_not_replaced_even_with_force(database: isotone.Database) -> None:
    for content in (b"precious", b"#!/bin/sh\n", bytes(8192)):
        Path("copy.db").write_bytes(content)
        for make in (
            isotone.backup,
            lambda _, target, **options: database.backup(target, **options),
        ):
            with pytest.raises(UsageError, match=r"copy\.db is no database.*or delete it first"):
                make("shop.db", "copy.db", force=True)
        assert Path("copy.db").read_bytes() == content
    Path("copy.db").write_bytes(b"")  # as mktemp makes it
    isotone.backup("shop.db", "copy.db", force=True)
    assert numbers_in("copy.db") == set(range(200))


def test_a_database_in_use_is_no_target(database: isotone.Database) -> None:
    with isotone.open("other.db") as other:
        other.client().create_table(TableName="Orders", **SCHEMA)
        with pytest.raises(UsageError, match=r"other\.db-wal exists.*use restore"):
            isotone.backup("shop.db", "other.db", force=True)


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ("none.db", "copy.db", "there is no file none.db"),
        ("shop.db", ".", r"\. is a folder"),
        ("shop.db", "none/copy.db", "the folder none does not exist"),
    ],
)
def test_paths_that_cannot_be(
    database: isotone.Database, source: str, target: str, text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        isotone.backup(source, target)


def test_only_files_of_isotone_are_backed_up_and_restored(database: isotone.Database) -> None:
    foreign = apsw.Connection("foreign.db")
    foreign.execute("CREATE TABLE t (a)")
    foreign.close()
    Path("text.db").write_text("no database at all")
    for name in ("foreign.db", "text.db"):
        content = Path(name).read_bytes()
        with pytest.raises(StorageCorrupt):
            isotone.backup(name, "copy.db")
        with pytest.raises(StorageCorrupt):
            isotone.restore(name, "copy.db")
        with pytest.raises(StorageCorrupt):
            isotone.restore("shop.db", name, force=True)
        assert Path(name).read_bytes() == content
    Path("empty.db").touch()
    with pytest.raises(StorageCorrupt, match="empty"):
        isotone.restore("empty.db", "copy.db")
    assert not Path("copy.db").exists()


def test_a_restore_over_an_open_database_is_seen_by_it(database: isotone.Database) -> None:
    database.backup("copy.db")
    delete(database, range(150))
    with pytest.raises(UsageError, match=r"shop.db exists; --force"):
        isotone.restore("copy.db", "shop.db")
    isotone.restore("copy.db", "shop.db", force=True)
    assert database.client().describe_table(TableName="Orders")["Table"]["ItemCount"] == 200
    assert database.check() == []
    write(database, range(200, 210))
    assert numbers_in("shop.db") == set(range(210))


def test_a_damaged_backup_replaces_nothing(database: isotone.Database) -> None:
    database.backup("copy.db")
    content = bytearray(Path("copy.db").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8192] = os.urandom(8192)
    Path("copy.db").write_bytes(content)
    for target in ("shop.db", "new.db"):
        with pytest.raises(StorageCorrupt, match=r"copy\.db is damaged"):
            isotone.restore("copy.db", target, force=True)
    assert not Path("new.db").exists()
    assert numbers_in("shop.db") == set(range(200))


@pytest.mark.parametrize("damaged_from", [100, 8192 * 6])
def test_a_damaged_database_is_replaced(database: isotone.Database, damaged_from: int) -> None:
    database.backup("copy.db")
    content = bytearray(Path("copy.db").read_bytes())
    content[damaged_from : damaged_from + 8192] = os.urandom(8192)
    Path("broken.db").write_bytes(content)
    Path("broken.db-wal").write_bytes(b"a log of something else")
    isotone.restore("copy.db", "broken.db", force=True)
    assert numbers_in("broken.db") == set(range(200))


def test_the_log_of_another_database_is_not_taken_over(database: isotone.Database) -> None:
    database.backup("copy.db")
    write(database, range(200, 220))
    log = Path("shop.db-wal").read_bytes()
    assert log
    Path("new.db-wal").write_bytes(log)
    with pytest.raises(UsageError, match=r"new.db-wal is the log of another database"):
        isotone.restore("copy.db", "new.db")
    assert not Path("new.db").exists()
    isotone.restore("copy.db", "new.db", force=True)
    assert numbers_in("new.db") == set(range(200))


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_an_update_of_a_missing_backup_leaves_the_log_of_another_one(
    database: isotone.Database, ending: str
) -> None:
    """The backup was moved away, and without its journal an unfinished update cannot be undone."""
    Path(f"copy.db{ending}").write_bytes(b"precious")
    with pytest.raises(UsageError, match=rf"copy\.db{ending} is the log of another database"):
        database.backup("copy.db", update=True)
    assert Path(f"copy.db{ending}").read_bytes() == b"precious"
    assert not Path("copy.db").exists()


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_the_log_of_a_database_that_is_named_as_a_draft_is_kept(
    database: isotone.Database, ending: str
) -> None:
    """The draft would be a new database with this log, which SQLite would apply to it, or delete."""
    database.backup("mine.db")
    log = Path(f"copy.db.part{ending}")
    log.write_bytes(b"precious")
    for call in (lambda: database.backup("copy.db"), lambda: isotone.restore("mine.db", "copy.db")):
        with pytest.raises(UsageError, match=rf"copy\.db\.part{ending} is the log of a database"):
            call()
        assert log.read_bytes() == b"precious"
    Path("copy.db.part-begun").touch()  # a killed backup of a database in memory leaves such a log
    database.backup("copy.db")
    assert not log.exists()


def test_a_backup_is_not_restored_over_itself(database: isotone.Database) -> None:
    database.backup("copy.db")
    with pytest.raises(UsageError, match="is the backup itself"):
        isotone.restore("copy.db", "./copy.db", force=True)


def test_a_database_is_not_backed_up_over_itself(database: isotone.Database) -> None:
    database.close()
    with pytest.raises(UsageError, match="is the database itself; give another file"):
        isotone.backup("shop.db", "./shop.db", force=True)
    assert numbers_in("shop.db") == set(range(200))


def test_compaction_gives_space_back(database: isotone.Database) -> None:
    write(database, range(200, 3000))
    delete(database, range(100, 3000))
    before, after = isotone.compact("shop.db")
    assert after < before / 4
    assert Path("shop.db").stat().st_size == after
    assert numbers_in("shop.db") == set(range(100))


def test_compaction_says_that_another_process_is_in_the_way(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_copies, "BUSY_TIMEOUT", 0.2)
    other = apsw.Connection("shop.db")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageBusy, match=r"another process is writing to shop\.db"):
        isotone.compact("shop.db")
    other.execute("ROLLBACK; BEGIN")
    other.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    with pytest.raises(StorageBusy, match=r"another process is reading it"):
        isotone.compact("shop.db")
    other.close()


def test_two_backups_to_one_target_do_not_meet(database: isotone.Database) -> None:
    first = apsw.Connection("copy.db.part")
    first.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageBusy, match=r"another process is writing copy\.db"):
        isotone.backup("shop.db", "copy.db")
    first.close()
    Path("copy.db.part").write_bytes(os.urandom(9000))  # by a killed process
    Path("copy.db.part-begun").touch()
    isotone.backup("shop.db", "copy.db")
    assert numbers_in("copy.db") == set(range(200))


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be renamed there")
def test_a_backup_is_locked_until_it_has_its_name(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's lock ends when the process closes any descriptor of the file."""
    link = os.link
    probe = "import apsw; apsw.Connection('copy.db.part').execute('BEGIN EXCLUSIVE')"
    answers: list[str] = []

    def ask_then_link(source: str, target: str) -> None:
        done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
        answers.append(done.stderr)
        link(source, target)

    monkeypatch.setattr(os, "link", ask_then_link)
    isotone.backup("shop.db", "copy.db")
    assert "BusyError" in answers[0]


def test_a_backup_needs_no_links(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAT and some networks have none."""

    def refuse(source: str, target: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    isotone.backup("shop.db", "copy.db")
    assert numbers_in("copy.db") == set(range(200))
    with pytest.raises(UsageError, match=r"copy\.db exists"):
        isotone.backup("shop.db", "copy.db")
    assert sorted(str(path) for path in Path().glob("copy*")) == ["copy.db"]


def test_an_interrupted_backup_leaves_nothing(database: isotone.Database) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        isotone.backup("shop.db", "copy.db", progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        isotone.restore("shop.db", "copy.db", progress=interrupt)
    assert not list(Path().glob("copy*"))


def test_the_tables_of_litestream_are_no_damage(database: isotone.Database) -> None:
    other = apsw.Connection("shop.db")
    other.execute("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)")
    other.close()
    assert database.check() == []
    isotone.backup("shop.db", "copy.db")
    write(database, range(200, 210))
    isotone.backup("shop.db", "copy.db", update=True)
    assert numbers_in("copy.db") == set(range(210))
    other = apsw.Connection("shop.db")
    other.execute("CREATE TABLE something_else (id)")
    other.close()
    assert database.check() == ["table something_else was not created by Isotone"]


def test_a_compaction_that_is_interrupted_as_its_thread_begins_leaves_the_file_usable(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            raise KeyboardInterrupt  # as Ctrl-C while `start` waits for the thread

    with monkeypatch.context() as patch:
        patch.setattr(file_copies.threading, "Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            isotone.compact("shop.db")
    isotone.compact("shop.db")
    assert database.check() == []


# What a backup replaces


@pytest.fixture
def other() -> bytes:
    """Another database, which is closed; returns its content."""
    with isotone.open("other.db") as database:
        database.client().create_table(TableName="Precious", **SCHEMA)
    return Path("other.db").read_bytes()


@pytest.mark.parametrize("way", ["force", "update"])
def test_another_database_is_not_replaced(
    database: isotone.Database, other: bytes, way: str
) -> None:
    options: Any = {way: True}
    with pytest.raises(UsageError, match=r"other\.db is a database with other tables"):
        isotone.backup("shop.db", "other.db", **options)
    with (
        isotone.open(":memory:") as memory,
        pytest.raises(UsageError, match=r"other\.db is a database with other tables"),
    ):
        memory.backup("other.db", **options)
    assert Path("other.db").read_bytes() == other
    assert sorted(path.name for path in Path().glob("other*")) == ["other.db"]


@pytest.mark.parametrize("way", ["force", "update"])
def test_a_backup_that_was_opened_is_replaced(database: isotone.Database, way: str) -> None:
    options: Any = {way: True}
    isotone.backup("shop.db", "copy.db")
    assert numbers_in("copy.db") == set(range(200))
    delete(database, range(100))
    database.client().create_table(TableName="Other", **SCHEMA)
    isotone.backup("shop.db", "copy.db", **options)
    assert numbers_in("copy.db") == set(range(100, 200))


def test_a_database_without_tables_is_replaced(database: isotone.Database) -> None:
    isotone.open("new.db").close()
    isotone.backup("shop.db", "new.db", force=True)
    assert numbers_in("new.db") == set(range(200))


def test_a_damaged_backup_is_replaced(database: isotone.Database) -> None:
    database.backup("copy.db")
    content = bytearray(Path("copy.db").read_bytes())
    content[200:-200] = os.urandom(len(content) - 400)
    Path("copy.db").write_bytes(content)
    isotone.backup("shop.db", "copy.db", force=True)
    assert numbers_in("copy.db") == set(range(200))


def test_a_damaged_database_is_not_replaced_by_a_backup(
    database: isotone.Database, other: bytes
) -> None:
    content = bytearray(other)
    content[200:-200] = os.urandom(len(content) - 400)
    Path("other.db").write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read, so it may be a backup of anything"):
        isotone.backup("shop.db", "other.db", force=True)
    assert Path("other.db").read_bytes() == content


def test_a_part_that_is_a_link_is_not_written(database: isotone.Database, other: bytes) -> None:
    Path("copy.db.part").symlink_to("other.db")
    with pytest.raises(UsageError, match=r"copy\.db\.part, which is a symbolic link"):
        isotone.backup("shop.db", "copy.db")
    assert Path("other.db").read_bytes() == other


def test_a_file_behind_a_link_is_restored_and_stays_behind_it(database: isotone.Database) -> None:
    database.backup("copy.db")
    Path("link.db").symlink_to("far.db")
    isotone.restore("copy.db", "link.db")
    assert Path("link.db").is_symlink()
    assert numbers_in("far.db") == set(range(200))
    Path("far.db").write_bytes(Path("far.db").read_bytes()[:5000])  # so it is replaced as a whole
    isotone.restore("copy.db", "link.db", force=True)
    assert Path("link.db").is_symlink()
    assert numbers_in("far.db") == set(range(200))


def test_a_log_belongs_to_the_file_behind_a_link(database: isotone.Database, folder: Path) -> None:
    """SQLite keeps it beside the file itself: what is only in the log is not left out."""
    (folder / "killed").mkdir()
    for ending in ("", "-wal"):
        content = Path(f"shop.db{ending}").read_bytes()
        (folder / "killed" / f"shop.db{ending}").write_bytes(content)
    assert (folder / "killed" / "shop.db-wal").stat().st_size
    Path("link.db").symlink_to(folder / "killed" / "shop.db")
    isotone.repair("link.db", "saved.db")
    assert numbers_in("saved.db") == set(range(200))
    isotone.backup("link.db", "copy.db")
    assert numbers_in("copy.db") == set(range(200))


def test_a_restore_does_not_write_through_a_link_to_another_database(
    database: isotone.Database, other: bytes
) -> None:
    database.backup("copy.db")
    Path("new.db.part").symlink_to("other.db")
    with pytest.raises(UsageError, match=r"new\.db\.part, which is a symbolic link"):
        isotone.restore("copy.db", "new.db")
    assert Path("other.db").read_bytes() == other
    assert not Path("new.db").exists()


def test_a_database_is_no_draft_of_a_backup(database: isotone.Database) -> None:
    """`copy.db.part` is where a backup is written, and may be somebody's database all the same."""
    database.backup("mine.db")
    with isotone.open("copy.db.part") as other:
        other.client().create_table(TableName="Precious", **SCHEMA)
    apsw.Connection("theirs.db.part").execute("CREATE TABLE precious (a)")
    calls: list[Any] = [
        lambda: database.backup("copy.db"),
        lambda: database.backup("theirs.db"),
        lambda: database.backup("theirs.db", compact=True),
        lambda: isotone.restore("mine.db", "copy.db"),
    ]
    before = {path.name: path.read_bytes() for path in Path().glob("*.part")}
    for call in calls:
        with pytest.raises(UsageError, match=r"part is a database, and .* give another target"):
            call()
    assert {path.name: path.read_bytes() for path in Path().glob("*.part")} == before


def test_a_text_is_no_draft_of_a_backup(database: isotone.Database) -> None:
    database.backup("mine.db")
    Path("copy.db.part").write_text("precious")
    for call in (lambda: database.backup("copy.db"), lambda: isotone.restore("mine.db", "copy.db")):
        with pytest.raises(UsageError, match=r"copy\.db\.part is no unfinished backup"):
            call()
        assert Path("copy.db.part").read_text() == "precious"
    Path("copy.db.part").write_text("")
    database.backup("copy.db")


def test_a_backup_that_was_killed_as_it_got_its_name_is_not_written_over(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its draft is a second name of it. The next backup writes a new file, and an interrupted one leaves the old."""
    database.backup("copy.db")
    before = Path("copy.db").read_bytes()
    Path("copy.db.part").hardlink_to("copy.db")
    write(database, range(200, 1200))

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database.backup("copy.db", force=True, progress=fail)
    assert Path("copy.db").read_bytes() == before
    database.backup("copy.db", force=True)
    with isotone.open("copy.db") as copy:
        assert copy.check() == []
    assert not Path("copy.db.part").exists()
