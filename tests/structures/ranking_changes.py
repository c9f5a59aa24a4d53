"""A process that increments and ranks a sorted set: python ranking_changes.py ADDRESS SECONDS SEED MEMBERS.

It prints what it added to each member. Killed in the middle it prints nothing.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from decimal import Decimal

import isotone
from isotone.structures import SortedSet

NAME = "contested"


def main(address: str, seconds: str, seed: str, members: str) -> None:
    chosen, added, end = random.Random(seed), Counter[str](), time.monotonic() + float(seconds)
    names = [f"member:{number}" for number in range(int(members))]
    with isotone.connect(address) as store:
        contested = SortedSet(store, NAME, ranked=True)
        while time.monotonic() < end:
            member = chosen.choice(names)
            amount = chosen.choice([1, 1, 2, 10, 1000, -500])
            score = contested.zincrby(amount, member)
            added[member] += amount
            assert isinstance(score, Decimal)
            rank = contested.zrank(chosen.choice(names))
            assert rank is None or 0 <= rank < len(names)
            top = contested.zrevrange(0, 9, withscores=True)
            assert [each[1] for each in top] == sorted((each[1] for each in top), reverse=True)
    print(json.dumps(added))


if __name__ == "__main__":
    main(*sys.argv[1:])
