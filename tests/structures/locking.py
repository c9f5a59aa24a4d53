"""A process that takes turns: python locking.py FILE TALLY TIMES NUMBER, or holds a lock until it is killed:
python locking.py FILE."""

from __future__ import annotations

import sys
from pathlib import Path

import isotone
from isotone.structures import Lock


def take_turns(file: str, tally: str, times: str, number: str) -> None:
    with isotone.connect(file, durability="none") as store:
        for _ in range(int(times)):
            with Lock(store, "tally", owner=number).held(wait=0.01) as lock:
                count = int(Path(tally).read_text())
                print(count, lock.fence)
                Path(tally).write_text(str(count + 1))


def hold(file: str) -> None:
    with isotone.connect(file) as store:
        print(Lock(store, "tally", owner="doomed").acquire(), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    (hold if len(sys.argv) == 2 else take_turns)(*sys.argv[1:])
