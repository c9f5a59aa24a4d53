"""A process that increments, adds and pops members of sorted sets in a file, and says what it did.

python sorted_set_increments.py FILE SECONDS SEED
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter

import isotone
from isotone.structures import SortedSet

SHARDS = {"plain": 1, "sharded": 4}


def main(address: str, seconds: str, seed: str) -> None:
    chosen, until = random.Random(int(seed)), time.monotonic() + float(seconds)
    sums: dict[str, Counter[str]] = {name: Counter() for name in SHARDS}
    popped: list[str] = []
    with isotone.connect(address, durability="process") as store:
        sets = {name: SortedSet(store, name, shards=shards) for name, shards in SHARDS.items()}
        jobs = SortedSet(store, "jobs")
        turn = 0
        while time.monotonic() < until:
            turn += 1
            for name, songs in sets.items():
                member, tenths = f"song:{chosen.randrange(30)}", chosen.randrange(-5, 10)
                songs.incr(member, tenths / 10)
                sums[name][member] += tenths
            if turn % 10 == 0:
                jobs.zadd({f"{seed}:{turn}": turn, f"{seed}:{turn + 1}": turn})
                popped += [member for member, _ in jobs.zpopmin(chosen.randrange(4))]
    print(json.dumps({"sums": sums, "popped": popped, "added": turn // 10 * 2}))


if __name__ == "__main__":
    main(*sys.argv[1:])
