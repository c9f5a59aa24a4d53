"""SIGKILL in the middle of a storm of writes: every acknowledged transaction is there, and whole.

`ISOTONE_KILLS=100 pytest tests/crash/test_kill.py` for as many kills as one likes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random
from typing import get_args

import pytest
from tests.crash.storm import entries_of
from tests.programs import python
from tests.storage import integrity

from isotone.storage.file import Durability
from isotone.storage.sqlite import SQLiteStore

KILLS = int(os.environ.get("ISOTONE_KILLS", "5"))
STORM = Path(__file__).with_name("storm.py")


def acknowledged_by_storm(path: Path, durability: str, seconds: float) -> int:
    """Let a storm rage for a while after its first commit, kill it, and say what it had told."""
    with python(STORM, "numbers", path, durability) as storm:
        assert storm.stdout is not None
        first = storm.stdout.readline()
        time.sleep(seconds)
        storm.kill()
        lines = (first + storm.stdout.read()).splitlines(keepends=True)
    told = [int(line) for line in lines if line.endswith("\n")]
    assert told == list(range(told[0], told[0] + len(told)))
    return told[-1]


@pytest.mark.parametrize("durability", get_args(Durability))
def test_every_acknowledged_transaction_survives(tmp_path: Path, durability: Durability) -> None:
    path = tmp_path / "store.db"
    store = SQLiteStore(path, durability)
    with store.transaction():
        store.create_tree("numbers")
        store.create_tree("newest")
    store.close()
    random = Random(durability)
    for _ in range(KILLS if durability == "disk" else 1):
        told = acknowledged_by_storm(path, durability, random.uniform(0, 0.15))
        store = SQLiteStore(path)
        assert integrity.check(store) == []
        newest = int(store.get("newest", b"") or b"0")
        # The last transaction may have been committed before it could be told.
        assert newest in (told, told + 1)
        wanted = {
            key: value
            for number in range(1, newest + 1)
            for key, value in entries_of(number).items()
        }
        assert dict(store.range("numbers", b"", None)) == wanted
        store.close()
