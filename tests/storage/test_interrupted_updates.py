"""An update of a backup that is killed, or still runs: readers of the backup see all of it or nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import isotone
from isotone.errors import StorageBusy, StorageCorrupt, StorageError, UsageError
from isotone.storage import file_copies, sqlite

ITEMS = 200
KILLED = """
import os, sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA cache_size=1; BEGIN IMMEDIATE")
for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'tree_*'").fetchall():
    connection.execute(f'UPDATE "{name}" SET value = zeroblob(500)')
os._exit(9)  # as a kill: the changed pages that had no room in the cache are in the file
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    """An open file, of which `copy.db` is a backup with an update that was killed; now it has other items."""
    with isotone.open("shop.db", durability="none") as database:
        database.client().create_table(
            TableName="tab",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        write(database, "old")
        isotone.backup("shop.db", "copy.db")
        kill_an_update("copy.db")
        write(database, "new")
        yield database


def write(database: isotone.Database, content: str) -> None:
    for number in range(ITEMS):
        item = {"p": {"S": str(number)}, "text": {"S": content * 100}}
        database.execute("PutItem", {"TableName": "tab", "Item": item})


def kill_an_update(backup: str) -> None:
    before = Path(backup).read_bytes()
    assert subprocess.run([sys.executable, "-c", KILLED, backup]).returncode == 9
    assert Path(backup).read_bytes() != before
    assert Path(f"{backup}-journal").stat().st_size


def content(file: str) -> set[str]:
    with isotone.open(file) as database:
        assert database.check() == []
        pages = database.client().get_paginator("scan").paginate(TableName="tab")
        items = [item for page in pages for item in page["Items"]]
        assert len(items) == ITEMS
        return {item["text"]["S"][:3] for item in items}


def test_a_restore_undoes_the_update(database: isotone.Database) -> None:
    isotone.restore("copy.db", "seen.db")
    assert content("seen.db") == {"old"}
    assert not Path("copy.db-journal").exists()


def test_opening_the_backup_undoes_the_update(database: isotone.Database) -> None:
    assert content("copy.db") == {"old"}


def test_a_repair_undoes_the_update(database: isotone.Database) -> None:
    repaired = isotone.repair("copy.db", "seen.db")
    assert repaired.lost == []
    assert content("seen.db") == {"old"}
    assert Path("copy.db-journal").exists()  # the source is not changed
    Path("next.db-journal").touch()
    with pytest.raises(UsageError, match=r"next\.db-journal exists"):
        isotone.repair("copy.db", "next.db")


def test_another_update_undoes_it_first(database: isotone.Database) -> None:
    isotone.backup("shop.db", "copy.db", update=True)
    isotone.restore("copy.db", "seen.db")
    assert content("seen.db") == {"new"}


@pytest.mark.parametrize("compact", [False, True])
def test_its_journal_is_not_applied_to_the_next_backup(
    database: isotone.Database, compact: bool
) -> None:
    isotone.backup("shop.db", "copy.db", force=True, compact=compact)
    assert not Path("copy.db-journal").exists()
    isotone.restore("copy.db", "seen.db")
    assert content("seen.db") == {"new"}


def test_its_journal_is_not_applied_to_a_database_in_memory(database: isotone.Database) -> None:
    with isotone.open(":memory:") as memory:
        memory.client().create_table(
            TableName="other",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        memory.backup("copy.db", force=True)
    with isotone.open("copy.db") as copy:
        assert copy.check() == []
        assert copy.client().list_tables()["TableNames"] == ["other"]


def test_a_backup_that_fails_leaves_the_earlier_one(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        isotone.backup("shop.db", "copy.db", force=True, progress=fail)
    isotone.restore("copy.db", "seen.db")
    assert content("seen.db") == {"old"}


@pytest.mark.parametrize("way", ["restore", "backup"])
def test_a_journal_without_its_backup_is_not_applied_to_another(
    database: isotone.Database, way: str
) -> None:
    isotone.backup("shop.db", "good.db")
    Path("copy.db").unlink()
    make = isotone.restore if way == "restore" else isotone.backup
    source = "good.db" if way == "restore" else "shop.db"
    with pytest.raises(UsageError, match=r"copy\.db-journal is the log of another"):
        make(source, "copy.db")
    make(source, "copy.db", force=True)
    assert content("copy.db") == {"new"}


def test_a_backup_that_is_being_updated_is_not_read(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_copies, "BUSY_TIMEOUT", 0.1)
    isotone.backup("shop.db", "copy.db", update=True)
    updating = apsw.Connection("copy.db")
    updating.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageBusy, match=r"another process is updating copy\.db"):
        isotone.restore("copy.db", "seen.db")
    updating.close()
    isotone.restore("copy.db", "seen.db")
    assert content("seen.db") == {"new"}


def test_a_backup_that_is_read_is_not_updated(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_copies, "BUSY_TIMEOUT", 0.1)

    def update(done: int, total: int) -> None:
        with pytest.raises(StorageBusy, match=r"another process has copy\.db open"):
            isotone.backup("shop.db", "copy.db", update=True)

    isotone.restore("copy.db", "seen.db", progress=update)
    assert content("seen.db") == {"old"}


def test_an_update_and_a_backup_to_one_target_do_not_meet(database: isotone.Database) -> None:
    other = apsw.Connection("copy.db.part")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageBusy, match=r"another process is writing copy\.db"):
        isotone.backup("shop.db", "copy.db", update=True)
    other.close()
    isotone.backup("shop.db", "copy.db", update=True)
    assert not Path("copy.db.part").exists()


def test_where_nothing_can_be_written_it_cannot_be_undone(
    database: isotone.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_written = Path("copy.db").read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may write anywhere
    with pytest.raises(StorageError, match=r"copy copy\.db and copy\.db-journal to a folder"):
        isotone.restore("copy.db", "seen.db")
    with pytest.raises(StorageError, match=r"read-only and has a log \(copy\.db-journal\)"):
        sqlite.SQLiteStore("copy.db")
    assert Path("copy.db").read_bytes() == half_written


def outcome_of(how: str) -> object:
    """What becomes of the backup: the state of its items, or an error."""
    try:
        if how == "restore":
            isotone.restore("copy.db", "seen.db")
        return content("seen.db" if how == "restore" else "copy.db")
    except StorageCorrupt as error:
        return type(error)


@pytest.mark.parametrize("how", ["restore", "open"])
@pytest.mark.usefixtures("database")
def test_a_damaged_journal_is_never_applied_in_part(how: str) -> None:
    backup, journal = Path("copy.db").read_bytes(), Path("copy.db-journal").read_bytes()
    header = [
        *range(12),
        *range(12, 16),
        *range(20, 28),
    ]  # of these, each bit decides what is put back
    begin = int.from_bytes(journal[20:24], "big")
    number_of_page = [begin, begin + 3]
    for byte in [*header, *number_of_page]:
        for end in ("-wal", "-shm"):
            Path(f"copy.db{end}").unlink(missing_ok=True)
        Path("seen.db").unlink(missing_ok=True)
        flipped = bytearray(journal)
        flipped[byte] ^= 1 << byte % 8
        Path("copy.db").write_bytes(backup)
        Path("copy.db-journal").write_bytes(flipped)
        assert outcome_of(how) == StorageCorrupt, byte
        assert Path("copy.db-journal").read_bytes() == flipped
        assert Path("copy.db").read_bytes() == backup


@pytest.mark.parametrize("how", ["restore", "open"])
@pytest.mark.usefixtures("database")
def test_a_segment_that_was_not_synced_has_changed_nothing(how: str) -> None:
    journal = Path("copy.db-journal").read_bytes()
    unsynced = bytes(12) + journal[12:28] + b"\x55" * 9000
    end = -(-len(journal) // 512) * 512
    Path("copy.db-journal").write_bytes(journal.ljust(end, b"\0") + unsynced)
    assert outcome_of(how) == {"old"}


@pytest.mark.usefixtures("database")
def test_a_repair_reports_a_damaged_journal() -> None:
    journal = bytearray(Path("copy.db-journal").read_bytes())
    journal[3] ^= 1
    Path("copy.db-journal").write_bytes(journal)
    assert "journal" in str(isotone.repair("copy.db", "seen.db").lost)


def test_a_damaged_journal_does_not_keep_a_new_backup_away(database: isotone.Database) -> None:
    Path("copy.db-journal").write_bytes(b"\1" + Path("copy.db-journal").read_bytes()[1:])
    with pytest.raises(StorageCorrupt, match="--force"):
        isotone.backup("shop.db", "copy.db", update=True)
    isotone.backup("shop.db", "copy.db", force=True)
    assert not Path("copy.db-journal").exists()
    assert content("copy.db") == {"new"}
