"""Does a sorted set with ranks cost more as it grows? 10,000 members, and 1,000,000, in files.

Members are loaded at once. Then some that are picked at random are incremented and ranked: by 1, which
mostly leaves them where they are, and by so much that they go anywhere. An increment is durable: it waits
for the disk.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import isotone
from bench import peers
from bench.measuring import Effort, Row, Target, alternately
from isotone.structures import SortedSet

NAME = "bench"
SMALL = 10_000
SMALL_NAME, LARGE_NAME = "10,000 members", "large set"
NEAR = "zincrby(1, …) with ranks, durable, by size of set"
FAR = "zincrby(±500,000, …) with ranks, durable, by size of set"
RANK = "zrank, by size of set"
TOP = "zrevrange(0, 9) with ranks, by size of set"
ITEMS = "items read by zrank"
# An increment that goes anywhere writes to more items the higher the tree; it is shown, not promised.
TARGETS = (
    *(Target(each, LARGE_NAME, "at most", 1.5, SMALL_NAME) for each in (NEAR, RANK, TOP)),
    Target(ITEMS, LARGE_NAME, "at most", 10),
)


def _score(number: int) -> int:
    """From 0 to a million, in no order, and the same in every run."""
    return number * 48_271 % 2_147_483_647 % 1_000_000


def _name(number: int) -> str:
    return f"member:{number:07}"


def _fill(path: Path, members: int) -> None:
    with isotone.connect(path, durability="none") as store:
        ranked = SortedSet(store, NAME, ranked=True)
        ranked.create_table()
        ranked.load((_name(number), _score(number)) for number in range(members))


def _calls(ranked: SortedSet, members: int) -> dict[str, Callable[[], object]]:
    chosen = random.Random(17)

    def anyone() -> str:
        return _name(chosen.randrange(members))

    return {
        NEAR: lambda: ranked.zincrby(1, anyone()),
        FAR: lambda: ranked.zincrby(chosen.randrange(-500_000, 500_000), anyone()),
        RANK: lambda: ranked.zrank(anyone()),
        TOP: lambda: ranked.zrevrange(0, 9),
    }


def _items_of_a_rank(path: Path, members: int) -> float:
    """What a process reads that has never seen the set, and so does not know the way to its leaves."""
    spent: list[isotone.Observation] = []
    with isotone.connect(path, observe=[isotone.at_end(spent.append)]) as store:
        SortedSet(store, NAME, ranked=True).zrank(_name(members // 2))
    return float(sum(len(each.request.get("TransactItems", "1")) for each in spent))


def run(effort: Effort) -> list[Row]:
    calls: dict[str, dict[str, Callable[[], object]]] = {}
    rows: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=peers.data_folder())))
        for name, members in ((SMALL_NAME, SMALL), (LARGE_NAME, effort.items)):
            path = folder / f"{members}.db"
            _fill(path, members)
            rows.append(Row(ITEMS, name, "items", [_items_of_a_rank(path, members)]))
            store = stack.enter_context(isotone.connect(path))
            calls[name] = _calls(SortedSet(store, NAME, ranked=True), members)
        for measure, some in ((RANK, 1), (TOP, 1), (NEAR, 10), (FAR, 10)):
            subjects = {name: calls[name][measure] for name in calls}
            rows += alternately(measure, subjects, replace(effort, calls=effort.calls // some))
    return [_told(row, effort) for row in rows]


def _told(row: Row, effort: Effort) -> Row:
    """The row with the real size of the large set beside it."""
    return row if row.subject == SMALL_NAME else replace(row, extra={"members": effort.items})
