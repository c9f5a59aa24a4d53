"""A process that increments and ranks a sorted set: python ranking_changes.py ADDRESS SECONDS SEED MEMBERS.

All members are there from the beginning, and one that nobody changes is always the last. It prints what it
added to each member. Killed in the middle it prints nothing.
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

NAME, LAST = "contested", "last"


def names(members: int) -> list[str]:
    """The members that change."""
    return [f"member:{number}" for number in range(members)]


def prepare(address: str, members: int) -> None:
    """A set of which all members are there."""
    with isotone.connect(address) as store:
        contested = SortedSet(store, NAME, ranked=True)
        contested.create_table()
        contested.load(dict.fromkeys(names(members), 0) | {LAST: 10**12})


def main(address: str, seconds: str, seed: str, members: str) -> None:
    chosen, added, end = random.Random(seed), Counter[str](), time.monotonic() + float(seconds)
    there = names(int(members))
    with isotone.connect(address) as store:
        contested = SortedSet(store, NAME, ranked=True)
        while time.monotonic() < end:
            member = chosen.choice(there)
            amount = chosen.choice([1, 1, 2, 10, 1000, -500])
            score = contested.zincrby(amount, member)
            added[member] += amount
            assert isinstance(score, Decimal)
            rank = contested.zrank(chosen.choice(there))
            assert 0 <= rank < len(there)
            assert contested.zrank(LAST) == len(there)
            assert contested.zrevrank(LAST) == 0
            assert contested.zcount("-inf", "+inf") == len(there) + 1
            top = contested.zrevrange(0, 9, withscores=True)
            assert [each[1] for each in top] == sorted((each[1] for each in top), reverse=True)
    print(json.dumps(added))


if __name__ == "__main__":
    main(*sys.argv[1:])
