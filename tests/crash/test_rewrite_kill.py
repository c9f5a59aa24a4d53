"""SIGKILL of `isotone rewrite`, while another program writes: nothing is lost, and the next run continues.

`ISOTONE_KILLS=50 pytest tests/crash/test_rewrite_kill.py` for as many kills, on more items.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from tests import programs
from tests.crash.rewriting_site import Order, Purchase

import isotone

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

KILLS = int(os.environ.get("ISOTONE_KILLS", "3"))
ITEMS = 100_000 if "ISOTONE_KILLS" in os.environ else 1_500
HERE = Path(__file__).parent


def rewriting(file: Path, log: Path) -> programs.Command | subprocess.Popen[str]:
    options = ("--yes", "--segments", "2", "--undo-log", log)
    words = ("rewrite", "rewriting_site:Order", file, *options)
    return programs.isotone(*words, cwd=HERE, stdout=subprocess.DEVNULL)


def test_a_killed_rewrite_loses_nothing_and_continues(tmp_path: Path) -> None:
    file, log = tmp_path / "orders.db", tmp_path / "orders.undo"
    rng = random.Random(5)
    expected = {(number % 10, number): 0 for number in range(ITEMS)}
    with isotone.connect(str(file)) as store:
        store.create_tables(Purchase.__schema__.table)
        store.put_many(Purchase(customer=c, number=n) for c, n in expected)

    with isotone.connect(str(file)) as store:
        for _ in range(KILLS):
            process = rewriting(file, log)
            until = time.monotonic() + rng.uniform(0.1, 0.9)
            while time.monotonic() < until and process.poll() is None:
                customer, number = rng.choice(list(expected)[:200])
                store.update(Order, Order.writes.add(1), customer=customer, number=number)
                expected[customer, number] += 1
            process.kill()
            process.wait()
            assert count(store) == ITEMS
        process = rewriting(file, log)
        assert process.wait(timeout=900) == 0

        for customer in range(10):
            orders = store.all(Order.primary.where(Order.customer == customer))
            found = {(each.customer, each.number): each.writes for each in orders}
            assert found == {key: writes for key, writes in expected.items() if key[0] == customer}
        assert store.count(Order.by_status.where(Order.status == "OPEN")) == ITEMS
        assert store.verify(Order).is_clean

        undone = store.undo(log)
        written = sum(1 for writes in expected.values() if writes)
        assert undone.changed <= written
        assert count(store) == ITEMS
        assert all(
            store.get(Order, customer=c, number=n).writes == w for (c, n), w in pick(expected)
        )
    with isotone.open(str(file)) as database:
        assert database.check() == []


def count(store: isotone.Store) -> int:
    """How many orders there are, under either key."""
    return sum(1 for _ in store.iterate(Order.primary.scan()))


def pick(expected: dict[tuple[int, int], int]) -> list[tuple[tuple[int, int], int]]:
    return list(expected.items())[:: max(1, len(expected) // 50)]
