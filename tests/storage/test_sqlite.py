"""What only a file can do: be shared, be foreign, be locked, be damaged, be inherited."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import apsw
import pytest

from isotone.errors import StorageBusy, StorageCorrupt, StorageError, UsageError
from isotone.output_paths import OutputPath, check_output
from isotone.storage.file import APPLICATION_ID, FORMAT, header_of
from isotone.storage.interface import NoSuchTree
from isotone.storage.sqlite import SQLiteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path, durability="none")
    with store.transaction():
        store.create_tree("t")
        for number in range(100):
            store.put("t", b"%02d" % number, bytes(number))
    yield store
    store.close()


@pytest.fixture
def other(path: Path, store: SQLiteStore) -> Iterator[SQLiteStore]:
    """The same file, as another process has it."""
    other = SQLiteStore(path, durability="none", busy_timeout=0)
    yield other
    other.close()


def put(store: SQLiteStore, key: bytes, value: bytes) -> None:
    with store.transaction():
        store.put("t", key, value)


# Opening


def test_what_was_written_is_there_after_opening_again(path: Path, store: SQLiteStore) -> None:
    store.close()
    again = SQLiteStore(path)
    assert len(list(again.range("t", b"", None))) == 100
    again.close()


LOOKS = {
    "another store": lambda path: SQLiteStore(path).close(),
    "its header": lambda path: header_of(str(path)),
    "an output of this name": lambda path: check_output(OutputPath("--report", f"{path}-shm")),
    "a target of this name": lambda path: check_output(
        OutputPath("the target", path, beside=("-shm",), is_database=True)
    ),
}


@pytest.mark.parametrize("how", LOOKS)
def test_reading_an_open_file_keeps_its_locks(path: Path, store: SQLiteStore, how: str) -> None:
    """Without them another process takes itself for the last one, and deletes the log that this one writes on."""
    with suppress(UsageError):
        LOOKS[how](path)
    for number in range(3):
        subprocess.run([sys.executable, "-c", OPEN_AND_CLOSE, path], check=True, timeout=60)
        put(store, b"new", bytes(number))
        assert Path(f"{path}-wal").exists()
    reader = SQLiteStore(path)
    assert reader.get("t", b"new") == bytes(2)
    reader.close()


def test_the_header_of_a_file_is_found_through_a_link(path: Path, store: SQLiteStore) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    store.close()
    assert header_of(str(link)) == (APPLICATION_ID, True)


OPEN_AND_CLOSE = "import apsw, sys; c = apsw.Connection(sys.argv[1]); c.execute('PRAGMA user_version').get; c.close()"


def test_closing_folds_the_log_into_the_file(path: Path, store: SQLiteStore) -> None:
    assert path.with_name("store.db-wal").exists()
    store.close()
    assert [entry.name for entry in path.parent.iterdir()] == ["store.db"]


def test_the_file_is_marked_as_ours(path: Path, store: SQLiteStore) -> None:
    store.close()
    header = path.read_bytes()[:100]
    assert header[63] == FORMAT
    assert any(header[60:63])  # its own number
    assert header[68:72] == b"ISOT" == APPLICATION_ID.to_bytes(4, "big")


def test_an_empty_file_is_a_new_store(path: Path) -> None:
    path.touch()
    store = SQLiteStore(path)
    assert store.trees() == []
    store.close()


@pytest.mark.parametrize(
    "sql", ["CREATE TABLE mine (x)", "PRAGMA user_version = 7", "PRAGMA application_id = 252006673"]
)
def test_a_foreign_database_is_refused_and_left_alone(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageCorrupt, match=f"{path} is an SQLite database that Isotone did not"):
        SQLiteStore(path)
    assert path.read_bytes() == before


def test_garbage_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"no database at all, but long enough to look like a header" * 100)
    before = path.read_bytes()
    with pytest.raises(StorageCorrupt, match=f"{path} is not an Isotone file"):
        SQLiteStore(path)
    assert path.read_bytes() == before


def test_a_later_format_is_refused(path: Path, store: SQLiteStore) -> None:
    store._execute(f"PRAGMA user_version = {FORMAT + 1}")
    store.close()
    with pytest.raises(StorageError, match=f"format {FORMAT + 1}.*newer Isotone"):
        SQLiteStore(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is a folder"):
        SQLiteStore(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"the folder {tmp_path / 'none'} does not exist"):
        SQLiteStore(tmp_path / "none" / "store.db")


def test_an_unknown_durability_is_refused(path: Path) -> None:
    with pytest.raises(
        UsageError, match="'fast' is not a durability; use one of disk, process, none"
    ):
        SQLiteStore(path, durability="fast")  # type: ignore[arg-type]
    assert not path.exists()


AS_NOBODY = """
import os, sys
from isotone.storage.sqlite import SQLiteStore
if os.geteuid() == 0:
    os.setuid(65534)
store = SQLiteStore(sys.argv[1])
assert store.get("t", b"01") is not None, "it can be read"
with store.transaction():
    store.put("t", b"a", b"1")
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_may_not_be_written_is_named(path: Path, store: SQLiteStore, what: str) -> None:
    store.close()
    for folder in (path.parent, *path.parent.parents):
        if folder.owner() == path.parent.owner() and folder.name.startswith(("pytest-", "test_")):
            folder.chmod(0o755)
    path.chmod(0o444 if what == "file" else 0o666)
    path.parent.chmod(0o777 if what == "file" else 0o555)
    command = [sys.executable, "-c", AS_NOBODY, path]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    path.parent.chmod(0o755)
    if "PermissionError" in run.stderr or "ModuleNotFoundError" in run.stderr:
        pytest.skip("the other user cannot read Isotone itself")
    last = run.stderr.splitlines()[-1]
    assert last.startswith("isotone.errors.StorageError: ")
    assert str(path) in last
    assert "check the permissions" in last


# Damage


def test_damage_is_reported_and_not_crashed_on(path: Path, store: SQLiteStore) -> None:
    with store.transaction():
        for number in range(3_000):
            store.put("t", b"%05d" % number, bytes(100))
    store.close()
    content = bytearray(path.read_bytes())
    content[20_000:60_000] = os.urandom(40_000)
    path.write_bytes(content)
    damaged = SQLiteStore(path)
    assert damaged.check() != []
    with pytest.raises(StorageCorrupt, match="is damaged"):
        list(damaged.range("t", b"", None))
    damaged.close()


def test_a_table_that_is_not_ours_is_found(store: SQLiteStore) -> None:
    store._execute("CREATE TABLE tree_x (key BLOB PRIMARY KEY, value BLOB)")
    assert store.check() == ["table tree_x was not created by Isotone"]


def test_only_bytes_can_be_stored(store: SQLiteStore) -> None:
    with pytest.raises(UsageError, match="must be bytes"):
        put(store, b"key", "text")  # type: ignore[arg-type]


# Several processes


def test_changes_of_others_are_noticed_once(store: SQLiteStore, other: SQLiteStore) -> None:
    assert not store.changed_elsewhere()
    put(other, b"a", b"1")
    assert store.changed_elsewhere()
    assert not store.changed_elsewhere()
    assert not other.changed_elsewhere()


def test_own_changes_do_not_hide_those_of_others(store: SQLiteStore, other: SQLiteStore) -> None:
    put(other, b"a", b"1")
    put(store, b"b", b"2")
    assert store.changed_elsewhere()
    assert not store.changed_elsewhere()
    assert other.changed_elsewhere()


def test_nothing_has_changed_where_nothing_was_committed(
    store: SQLiteStore, other: SQLiteStore
) -> None:
    with other.transaction() as transaction:
        other.put("t", b"a", b"1")
        transaction.rollback()
    with other.transaction():
        pass
    assert not store.changed_elsewhere()


def test_a_snapshot_sees_one_moment(store: SQLiteStore, other: SQLiteStore) -> None:
    with store.snapshot():
        assert store.get("t", b"a") is None
        put(other, b"a", b"1")
        assert store.get("t", b"a") is None
        assert not store.changed_elsewhere()
    assert store.changed_elsewhere()
    assert store.get("t", b"a") == b"1"


def test_a_locked_file_is_waited_for_and_then_told(
    store: SQLiteStore, other: SQLiteStore, path: Path
) -> None:
    with store.transaction():
        with pytest.raises(StorageBusy, match=f"{path} was locked"), other.transaction():
            pass
        assert other.get("t", b"01") == b"\x00"
    put(other, b"a", b"1")


def test_the_wait_lasts_as_long_as_was_asked_for(path: Path, store: SQLiteStore) -> None:
    patient = SQLiteStore(path, durability="none", busy_timeout=0.2)
    with store.transaction():
        begin = time.monotonic()
        with pytest.raises(StorageBusy), patient.transaction():
            pass
        assert 0.1 < time.monotonic() - begin < 2
    patient.close()


def test_trees_that_others_make_and_drop_come_and_go(
    store: SQLiteStore, other: SQLiteStore
) -> None:
    with pytest.raises(NoSuchTree):
        store.get("u", b"")
    with other.transaction():
        other.create_tree("u")
        other.put("u", b"", b"1")
    assert store.get("u", b"") == b"1"
    with other.transaction():
        other.drop_tree("u")
    for use in (lambda: store.get("u", b""), lambda: store.range("u", b"", None)):
        with pytest.raises(NoSuchTree, match="u"):
            use()
    with store.transaction(), pytest.raises(NoSuchTree, match="u"):
        store.put("u", b"", b"")


# Ranges


def test_a_range_that_is_dropped_early_holds_nothing(
    path: Path, store: SQLiteStore, other: SQLiteStore
) -> None:
    taken = store.range("t", b"", None)
    assert len(list(islice(taken, 3))) == 3
    put(other, b"a", b"1")
    held = other._execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert held[0][0] == 1, "an open range is expected to hold the log"
    del taken
    assert other._execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall() == [(0, 0, 0)]


def test_a_range_that_was_never_begun_holds_nothing(store: SQLiteStore, other: SQLiteStore) -> None:
    store.range("t", b"", None)
    put(other, b"a", b"1")
    assert other._execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall() == [(0, 0, 0)]


def test_a_tree_is_not_dropped_under_a_range(store: SQLiteStore) -> None:
    taken = store.range("t", b"", None)
    next(taken)
    with pytest.raises(UsageError, match=r"range .* still being read"), store.transaction():
        store.drop_tree("t")
    del taken
    with store.transaction():
        store.drop_tree("t")


def test_a_range_of_an_outdated_moment_is_no_ground_to_write_on(
    store: SQLiteStore, other: SQLiteStore
) -> None:
    taken = store.range("t", b"", None)
    next(taken)
    put(other, b"a", b"1")
    with pytest.raises(UsageError, match=r"range .* still being read"):
        put(store, b"b", b"2")
    del taken
    put(store, b"b", b"2")


def test_two_ranges_at_once(store: SQLiteStore) -> None:
    forwards = store.range("t", b"10", b"20")
    backwards = store.range("t", b"10", b"20", reverse=True)
    pairs = list(zip(forwards, backwards, strict=True))
    assert pairs[0] == ((b"10", bytes(10)), (b"19", bytes(19)))
    assert len(pairs) == 10


def test_the_log_stays_bounded(path: Path, store: SQLiteStore) -> None:
    for number in range(600):
        put(store, b"%d" % number, os.urandom(30_000))
    assert path.with_name("store.db-wal").stat().st_size < 12_000_000


# Interruptions and forks


@pytest.mark.parametrize("when", ["BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("done", [False, True])
def test_an_interruption_of_an_end_or_a_beginning_leaves_nothing_open(
    store: SQLiteStore, when: str, done: bool
) -> None:
    execute = store._execute

    def interrupted(sql: str, *bindings: object) -> object:
        if sql == when:
            store._execute = execute
            if done:
                execute(sql)
            raise KeyboardInterrupt
        return execute(sql, *bindings)

    store._execute = interrupted
    with pytest.raises(KeyboardInterrupt), store.transaction() as transaction:  # noqa: PT012
        store.put("t", b"a", b"1")
        if when == "ROLLBACK":
            transaction.rollback()
    kept = b"1" if done and when == "COMMIT" else None
    assert store.get("t", b"a") == kept
    put(store, b"a", b"2")
    assert not store._connection.in_transaction
    assert store.get("t", b"a") == b"2"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork()")
def test_a_forked_child_must_open_the_file_anew(path: Path, store: SQLiteStore) -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            with pytest.raises(UsageError, match="before fork"):
                store.get("t", b"01")
            with pytest.raises(UsageError, match="before fork"), store.transaction():
                pass
            store.close()
            mine = SQLiteStore(path)
            put(mine, b"child", b"1")
            mine.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert store.get("t", b"child") == b"1"
    put(store, b"parent", b"1")
    assert store.check() == []


# The file at its path


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced there")
@pytest.mark.parametrize("what", ["deleted", "replaced", "moved"])
def test_a_write_to_a_file_that_is_no_longer_there_is_refused(
    path: Path, store: SQLiteStore, what: str
) -> None:
    put(store, b"a", b"1")
    other = path.with_name("other.db")
    if what == "deleted":
        path.unlink()
    elif what == "moved":
        path.rename(other)
    else:
        SQLiteStore(other, durability="none").close()
        other.replace(path)
    time.sleep(0.5)
    with pytest.raises(StorageError, match="was replaced or deleted"):
        put(store, b"b", b"2")
    if what == "moved":
        other.rename(path)
        put(store, b"c", b"3")
        assert store.get("t", b"c") == b"3"
