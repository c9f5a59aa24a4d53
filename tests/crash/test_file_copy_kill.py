"""SIGKILL during backups, restores and compaction: each file is as before, or complete.

`ISOTONE_KILLS=50 pytest tests/crash/test_file_copy_kill.py` for as many kills as one likes.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.crash import backup_site, copying_site
from tests.programs import python

import isotone

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

KILLS = int(os.environ.get("ISOTONE_KILLS", "4"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of one table."""
    backup_site.create(tmp_path / "site.db")
    return tmp_path


def kills(way: str, folder: Path) -> Iterator[None]:
    """Start a process that copies, kill it at a random moment, and give the caller the files that it left."""
    random = Random(way)
    for _ in range(KILLS):
        with python(copying_site.__file__, way, folder) as site:
            assert site.stdout is not None
            assert site.stdout.readline()
            time.sleep(random.uniform(0, 0.3))
            site.kill()
        yield


def content(file: Path) -> dict[str, int]:
    with isotone.open(file) as database:
        assert database.check() == []
        pages = database.client().get_paginator("scan").paginate(TableName="tab")
        return {item["p"]["S"]: int(item["n"]["N"]) for page in pages for item in page["Items"]}


@pytest.mark.parametrize("way", ["backup", "update"])
def test_a_killed_backup_beside_a_writer(folder: Path, way: str) -> None:
    isotone.backup(folder / "site.db", folder / "copy.db")
    file = folder / "site.db"
    with python(backup_site.__file__, file, stdout=subprocess.DEVNULL) as writer:
        try:
            for _ in kills(way, folder):
                # Restored elsewhere, so that reading it does not change the backup.
                isotone.restore(folder / "copy.db", folder / "seen.db", force=True)
                found = content(folder / "seen.db")
                assert found == backup_site.expected(found["count"])
            isotone.backup(folder / "site.db", folder / "copy.db", force=True)
        finally:
            writer.kill()
    assert not list(folder.glob("*.part"))


def test_a_killed_restore(folder: Path) -> None:
    isotone.backup(folder / "site.db", folder / "0.db")
    with isotone.open(folder / "site.db", durability="none") as database:
        for number in range(backup_site.SLOTS + 1, backup_site.SLOTS + 300):
            backup_site.write(database.client(), number)
    isotone.backup(folder / "site.db", folder / "1.db")
    possible = [content(folder / "0.db"), content(folder / "1.db")]
    assert possible[0] != possible[1]
    isotone.restore(folder / "0.db", folder / "target.db")
    for _ in kills("restore", folder):
        assert content(folder / "target.db") in possible


def test_a_killed_compaction(folder: Path) -> None:
    expected = content(folder / "site.db")
    for _ in kills("compact", folder):
        assert content(folder / "site.db") == expected
    isotone.compact(folder / "site.db")
    assert content(folder / "site.db") == expected
