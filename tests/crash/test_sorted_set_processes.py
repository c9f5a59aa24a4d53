"""Processes that increment and rank one sorted set at the same time, and processes that are killed at it.

A few seconds; ISOTONE_LONG=1 makes it a minute.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from tests.programs import Command, python
from tests.structures import ranking_changes
from tests.structures.ranking_changes import LAST, NAME, prepare

import isotone
from isotone.structures import SortedSet

SECONDS = 60.0 if os.environ.get("ISOTONE_LONG") else 1.0
PROCESSES = 8


def start(address: str, seconds: float, seed: int, members: int) -> Command | subprocess.Popen[str]:
    return python(ranking_changes.__file__, address, seconds, seed, members)


def check(address: str, sums: Counter[str] | None = None) -> None:
    """The tree has its form, ranks agree with a recount, and scores with what was added."""
    with isotone.connect(address) as store:
        contested = SortedSet(store, NAME, ranked=True)
        unranked = SortedSet(store, NAME)
        assert contested.ranking is not None
        findings = store.run(contested.ranking.check())
        assert findings.faults == []
        recount = unranked.zrange(0, -1, withscores=True)
        assert contested.zrange(0, -1, withscores=True) == recount
        assert contested.zcard() == findings.keys == len(recount)
        for rank, (member, score) in enumerate(recount):
            assert contested.zrank(member) == rank
            assert contested.zscore(member) == score
        if sums is not None:
            assert {member: score for member, score in recount if score} == {
                member: Decimal(total) for member, total in sums.items() if total
            } | {LAST: 10**12}


@pytest.mark.parametrize("members", [30, 1000])
def test_eight_processes_increment_and_rank_one_set(tmp_path: Path, members: int) -> None:
    address = f"{tmp_path}/contested.db"
    prepare(address, members)
    workers = [start(address, SECONDS, seed, members) for seed in range(PROCESSES)]
    outputs = [worker.communicate()[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * PROCESSES
    sums = Counter[str]()
    for output in outputs:
        sums.update(Counter(json.loads(output)))
    check(address, sums)


def test_processes_that_are_killed_leave_a_tree(tmp_path: Path) -> None:
    address, chosen = f"{tmp_path}/killed.db", random.Random(5)
    prepare(address, 400)
    for round_ in range(max(3, int(SECONDS / 3))):
        workers = [start(address, 60, 10 * round_ + number, 400) for number in range(2)]
        time.sleep(0.2 + chosen.random())
        for worker in workers:
            worker.kill()
            worker.communicate()
            assert worker.returncode == -signal.SIGKILL
        check(address)
