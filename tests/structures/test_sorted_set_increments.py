"""Eight processes increment and pop in one file: sums are exact, and nobody pops the same.

A few seconds; ISOTONE_LONG=1 makes it a minute.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

from tests.programs import together
from tests.structures import sorted_set_increments

import isotone
from isotone.structures import SortedSet

SECONDS = "60" if os.environ.get("ISOTONE_LONG") else "1"
PROCESSES = 8


def test_eight_processes_increment_and_pop(tmp_path: Path) -> None:
    address = f"{tmp_path}/sets.db"
    with isotone.connect(address) as store:
        SortedSet(store, "any").create_table()
    program = Path(sorted_set_increments.__file__)
    outputs = together(program, address, SECONDS, processes=PROCESSES)
    told = [json.loads(output) for output in outputs]
    with isotone.connect(address) as store:
        for name, shards in sorted_set_increments.SHARDS.items():
            sums = Counter[str]()
            for each in told:
                sums.update(each["sums"][name])
            found = dict(SortedSet(store, name, shards=shards).zrange(0, -1, withscores=True))
            assert found == {member: Decimal(tenths) / 10 for member, tenths in sums.items()}
        popped = [member for each in told for member in each["popped"]]
        assert len(popped) == len(set(popped))
        left = SortedSet(store, "jobs").zrange(0, -1)
        assert len(left) + len(popped) == sum(each["added"] for each in told)
        assert not set(left) & set(popped)
