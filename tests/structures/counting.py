"""A process that counts and takes numbers: python counting.py FILE TIMES NUMBER."""

from __future__ import annotations

import sys

import isotone
from isotone.structures import Counter, Sequence, ShardedCounter


def main(file: str, times: str, number: str) -> None:
    with isotone.connect(file, durability="none") as store:
        counter, sharded = Counter(store, "c"), ShardedCounter(store, "s", 4)
        numbers = Sequence(store, "n")
        for each in range(int(times)):
            counter.add(2)
            sharded.add(3)
            counter.add_once(f"{number}-{each}")
            print(numbers.next())


if __name__ == "__main__":
    main(*sys.argv[1:])
