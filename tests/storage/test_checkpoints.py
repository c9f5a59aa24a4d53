"""Commits of background work: which are synced, and when the log is copied into the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.crash.disk import Disk, after_power_cut, recording_disk

from isotone.storage.sqlite import SQLiteStore


def synced(disk: Disk) -> list[str]:
    """The files that were synced since the last call."""
    names = [event.name for event in disk.log if event.kind == "sync"]
    disk.log.clear()
    return names


def stored(tmp_path: Path) -> SQLiteStore:
    store = SQLiteStore(tmp_path / "store.db")
    with store.transaction():
        store.create_tree("t")
    return store


def test_an_unsynced_commit_waits_for_no_disk(tmp_path: Path) -> None:
    with recording_disk() as disk:
        store = stored(tmp_path)
        synced(disk)
        with store.transaction(synced=False):
            store.put("t", b"a", b"1")
        assert synced(disk) == []
        with store.transaction():
            store.put("t", b"b", b"2")
        assert synced(disk) == ["store.db-wal"]
        store.close()


def test_an_unsynced_commit_survives_a_power_cut_from_the_next_synced_commit_on(
    tmp_path: Path,
) -> None:
    with recording_disk() as disk:
        store = stored(tmp_path)
        for key in (b"a", b"b"):
            with store.transaction(synced=key == b"b"):
                store.put("t", key, b"")
            disk.mark(key)
        log = list(disk.log)
        store.close()
    found = {}
    for mark in (b"a", b"b"):
        folder = tmp_path / mark.decode()
        folder.mkdir()
        seen = log[: next(n for n, event in enumerate(log) if event.mark == mark)]
        for name, content in after_power_cut(seen, lambda event: None).items():
            (folder / name).write_bytes(content)
        store = SQLiteStore(folder / "store.db", "none")
        found[mark] = [key for key, _ in store.range("t", b"", None)]
        store.close()
    assert found == {b"a": [], b"b": [b"a", b"b"]}


def test_the_end_of_background_work_copies_the_log(tmp_path: Path) -> None:
    with recording_disk() as disk:
        store = stored(tmp_path)
        synced(disk)
        with store.background():
            for number in range(400):  # more pages than a commit usually leaves in the log
                with store.transaction(synced=False):
                    store.put("t", number.to_bytes(2), b"x" * 9000)
            assert "store.db" not in {event.name for event in disk.log}
            assert synced(disk) == []
        assert synced(disk)[:2] == ["store.db-wal", "store.db"]
        store.close()


def test_sync_makes_unsynced_commits_durable(tmp_path: Path) -> None:
    with recording_disk() as disk:
        store = stored(tmp_path)
        with store.transaction(synced=False):
            store.put("t", b"a", b"1")
        synced(disk)
        store.sync()
        assert synced(disk)[0] == "store.db-wal"
        store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_does_not_use_the_connection_of_its_parent(tmp_path: Path) -> None:
    store = stored(tmp_path)
    store.sync()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store.sync()  # does nothing
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    with store.transaction(synced=False):
        store.put("t", b"a", b"1")
    store.sync()
    assert store.get("t", b"a") == b"1"
    store.close()
