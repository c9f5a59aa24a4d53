"""SIGKILL of `isotone copy --live`, while another program writes: the next run continues, and both sides end equal.

`ISOTONE_KILLS=50 pytest tests/crash/test_copy_kill.py` for as many kills, on more items.
"""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import pytest
from tests import programs
from tests.moving.tables import create, fill, items, write_at_random

import isotone
from isotone.moving import diff

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

KILLS = int(os.environ.get("ISOTONE_KILLS", "3"))
ITEMS = 60_000 if "ISOTONE_KILLS" in os.environ else 3_000


def copying(source: Path, target: Path, state: Path, *more: str) -> list[object]:
    return ["copy", source, target, "--state", state, "--quiet", *more]


def wait_for_change(state: Path, before: bytes, failures: list[BaseException]) -> None:
    """Wait until a copy has saved something new, which it does as long as somebody writes."""
    until = time.monotonic() + 60
    while not state.exists() or state.read_bytes() == before:
        assert failures == []
        assert time.monotonic() < until, "the copy has not begun"
        time.sleep(0.01)


@pytest.mark.parametrize("segments", [1, 3])
def test_a_killed_copy_continues_with_a_writer_at_work(tmp_path: Path, segments: int) -> None:
    source, target, state = (tmp_path / name for name in ("source.db", "target.db", "state.json"))
    rng = random.Random(segments)
    with isotone.open(source, durability="process") as database:
        create(database)
        fill(database, ITEMS)
        over, failures = threading.Event(), list[BaseException]()

        def write() -> None:
            try:
                while not over.is_set():
                    write_at_random(database, rng, ITEMS + 500)
                    time.sleep(0.002)
            except BaseException as error:  # noqa: BLE001 - raised by the test
                failures.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(KILLS):
                budget = ("--write-units", str(rng.choice((2000, 8000, 50_000))))
                live = copying(source, target, state, "--live", "--segments", str(segments))
                before = state.read_bytes() if state.exists() else b""
                process = programs.isotone(*live, *budget, stdout=None)
                try:
                    wait_for_change(state, before, failures)
                    time.sleep(rng.uniform(0.0, 0.4))
                    assert process.poll() is None, "a live copy goes on until it is stopped"
                finally:
                    process.kill()
                    process.wait()
        finally:
            over.set()
            writer.join()
        assert failures == []
        assert state.exists()
        cut_over = copying(source, target, state, "--cut-over", "--yes")
        assert programs.isotone(*cut_over, stdout=None).wait(300) == 0
        assert not state.exists()
        with isotone.open(target) as copied:
            assert items(copied) == items(database)
            assert copied.check() == []
    assert diff(source, target).is_equal
