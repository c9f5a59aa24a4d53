"""Names under which SQLite would lose a database: that of another one's log, and a second name of one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

import isotone
from isotone.errors import StorageError
from isotone.storage.sqlite import SQLiteStore

SCHEMA: Any = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with isotone.open("shop.db") as database:
        database.execute("CreateTable", SCHEMA)
    return tmp_path


def tables_of(file: str) -> list[str]:
    with isotone.open(file) as database:
        names: list[str] = database.execute("ListTables", {})["TableNames"]
        return names


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_database_does_not_get_the_name_of_a_log(ending: str) -> None:
    with pytest.raises(StorageError, match=rf"shop\.db{ending} is the name of a log of shop\.db"):
        isotone.open(f"shop.db{ending}")
    isotone.open("shop.db").close()
    assert [path.name for path in Path().iterdir()] == ["shop.db"]


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_database_does_not_get_the_name_of_a_log_through_a_link(ending: str) -> None:
    Path("link.db").symlink_to(f"shop.db{ending}")
    with pytest.raises(StorageError, match=rf"shop\.db{ending} is the name of a log of .*shop\.db"):
        isotone.open("link.db")
    assert tables_of("shop.db") == ["Orders"]
    assert sorted(path.name for path in Path().iterdir()) == ["link.db", "shop.db"]


def test_a_link_to_a_database_with_a_database_for_a_log_is_refused() -> None:
    apsw.Connection("new.db-wal").execute("CREATE TABLE precious (a)")
    before = Path("new.db-wal").read_bytes()
    Path("link.db").symlink_to("new.db")
    with pytest.raises(StorageError, match=r"new\.db-wal is a database, and would be deleted"):
        isotone.open("link.db")
    assert Path("new.db-wal").read_bytes() == before


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
@pytest.mark.parametrize("is_ours", [True, False])
def test_a_database_that_has_the_name_of_a_log_is_not_deleted(
    ending: str, *, is_ours: bool
) -> None:
    """The other way round: it was there first, and its neighbour is made."""
    name = f"new.db{ending}"
    if is_ours:
        with isotone.open(name) as database:
            database.execute("CreateTable", SCHEMA)
    else:
        apsw.Connection(name).execute("CREATE TABLE precious (a)")
    before = Path(name).read_bytes()
    with pytest.raises(StorageError, match=rf"new\.db{ending} is a database, and would be deleted"):
        isotone.open("new.db")
    assert Path(name).read_bytes() == before


def test_a_name_that_ends_like_a_log_is_free_without_that_database() -> None:
    with isotone.open("my-journal") as database:
        database.execute("CreateTable", SCHEMA)
    assert tables_of("my-journal") == ["Orders"]


def test_a_file_is_not_written_under_two_names() -> None:
    """Each name would have a log, and commits of one would be overwritten by the other."""
    Path("other.db").hardlink_to("shop.db")
    for name in ("shop.db", "other.db"):
        with pytest.raises(StorageError, match=rf"{name} has another name \(a hard link\)"):
            isotone.open(name)
    Path("other.db").unlink()
    assert tables_of("shop.db") == ["Orders"]


def test_a_file_with_two_names_can_be_read_and_copied() -> None:
    """As in folders of backups that share their files by links."""
    Path("other.db").hardlink_to("shop.db")
    isotone.restore("other.db", "new.db")
    assert tables_of("new.db") == ["Orders"]
    store = SQLiteStore("other.db", read_only=True)
    assert list(store.trees())
    store.close()
