"""The disk fills up or fails at every single write: a clear error, nothing lost, and on it goes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.crash.disk import Fault, recording_disk
from tests.crash.workload import State, content, history, run

from isotone.errors import StorageError, StorageFull
from isotone.storage import file
from isotone.storage.sqlite import SQLiteStore

resource = pytest.importorskip("resource")

TRANSACTIONS = 14

# SQLite goes on when a checkpoint fails, so that the exception for it has nowhere to go.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def sqlite_error(kind: type[apsw.Error], extended: int) -> Callable[[], apsw.Error]:
    def make() -> apsw.Error:
        error = kind("made by the test")
        error.extendedresult = extended
        return error

    return make


FULL = sqlite_error(apsw.FullError, apsw.SQLITE_FULL)
FAULTS = {
    "full": ("write", FULL, StorageFull),
    "write fails": ("write", sqlite_error(apsw.IOError, apsw.SQLITE_IOERR_WRITE), StorageError),
    "sync fails": ("sync", sqlite_error(apsw.IOError, apsw.SQLITE_IOERR_FSYNC), StorageError),
}


def carry_on(store: SQLiteStore, fault: Fault, expected: type[StorageError]) -> None:
    """Run the history; a transaction that fails is undone, and succeeds once the fault is over.

    Except where only the checkpoint after the commit fails. SQLite itself takes that as no failure,
    but APSW raises what a VFS in Python has raised: there, the transaction has been kept.
    """
    before: State = content(store)
    for step, after in history(TRANSACTIONS):
        try:
            run(step, store)
        except expected:
            assert fault.raised
            fault.active = False
            if fault.names == "-wal":
                assert content(store) == before
            if content(store) == before:
                run(step, store)
        assert content(store) == after
        before = after


@pytest.mark.parametrize("names", ["-wal", ".db"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_at_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, names: str
) -> None:
    kind, error, expected = FAULTS[name]
    # A checkpoint begins with a sync of the log, which is no part of the commit.
    pages = 1000 if (kind, names) == ("sync", "-wal") else 8
    settings = [text.replace("checkpoint=1000", f"checkpoint={pages}") for text in file._SETTINGS]
    monkeypatch.setattr(file, "_SETTINGS", settings)
    first, struck = 0, True
    while struck:
        path = tmp_path / f"{first}.db"
        with recording_disk() as disk:
            store = SQLiteStore(path)
            disk.fault = fault = Fault(kind, names, first, error)
            carry_on(store, fault, expected)
            struck = fault.raised > 0
            disk.fault = None
            store.close()
        store = SQLiteStore(path, durability="none")
        assert store.check() == []
        store.close()
        first += 2
    assert first > 5


def make_store(path: Path) -> None:
    store = SQLiteStore(path)
    try:
        with store.transaction():
            if "a" not in store.trees():
                store.create_tree("a")
        assert store.check() == []
    finally:
        store.close()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_while_a_file_is_made(tmp_path: Path, name: str) -> None:
    kind, error, expected = FAULTS[name]
    for first in range(5):
        path = tmp_path / f"{first}.db"
        with recording_disk() as disk:
            disk.fault = Fault(kind, "", first, error)
            with pytest.raises(expected, match=str(path)):
                make_store(path)
            disk.fault = None
            make_store(path)


def test_a_swallowed_error_cannot_commit_half(tmp_path: Path) -> None:
    with recording_disk() as disk:
        store = SQLiteStore(tmp_path / "store.db")
        with store.transaction():
            store.create_tree("a")
        with pytest.raises(StorageError), store.transaction():  # noqa: PT012
            store.put("a", b"before", b"")
            disk.fault = Fault("write", "", 0, FULL)
            with pytest.raises(StorageFull), store.transaction():  # noqa: PT012
                for number in range(40):
                    # More than the page cache holds, so that SQLite writes before the commit.
                    store.put("a", b"%d" % number, bytes(500_000))
            disk.fault = None
            store.put("a", b"after", b"")
        assert content(store) == {"a": {}}
        with store.transaction():
            store.put("a", b"again", b"")
        assert store.check() == []
        store.close()


CHILD = """
import resource, sys
from isotone.errors import StorageFull
from isotone.storage.sqlite import SQLiteStore

store = SQLiteStore(sys.argv[1])
make_room = {make_room}
with store.transaction():
    store.create_tree("a")
written = 0
try:
    while written < 10_000:
        with store.transaction():
            store.put("a", b"%05d" % written, bytes(20_000))
        written += 1
except StorageFull as error:
    assert sys.argv[1] in str(error), error
else:
    sys.exit("the disk never filled up")
assert sum(1 for _ in store.range("a", b"", None)) == written > 5
assert store.check() == []
make_room()
for number in range(written, written + 40):
    with store.transaction():
        store.put("a", b"%05d" % number, bytes(20_000))
assert sum(1 for _ in store.range("a", b"", None)) == written + 40
assert store.check() == []
store.close()
"""


def test_a_real_limit_on_the_size_of_files(tmp_path: Path) -> None:
    unlimited = resource.RLIM_INFINITY
    make_room = f"lambda: resource.setrlimit(resource.RLIMIT_FSIZE, ({unlimited}, {unlimited}))"
    limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, {unlimited}))\n"
    source = CHILD.format(make_room=make_room).replace("store = ", limit + "store = ", 1)
    subprocess.run([sys.executable, "-c", source, tmp_path / "store.db"], check=True, timeout=60)


def test_a_real_full_disk(tmp_path: Path) -> None:
    """On a small file system of its own, mounted where nobody else sees it."""
    if not shutil.which("unshare"):
        pytest.skip("there is no `unshare` to mount a small file system with")
    mount = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    small = f"mount -t tmpfs -o size=4m isotone-test {tmp_path}"
    if subprocess.run([*mount, small], check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    ballast = tmp_path / "ballast"
    source = CHILD.format(make_room=f"lambda: __import__('os').unlink({str(ballast)!r})")
    fill = f'{small} && head -c 3000000 /dev/zero > {ballast} && exec "$0" "$@"'
    command = [*mount, fill, sys.executable, "-c", source, tmp_path / "store.db"]
    subprocess.run(command, check=True, timeout=60, env=os.environ)
