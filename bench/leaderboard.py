"""A leaderboard of 10,000 stores, in one partition and in several: time and items read of its first ten."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import isotone
from bench import peers
from bench.measuring import Effort, Row, Target, alternately
from isotone.structures import Leaderboard

TOP = "Leaderboard.top(10) of 10,000 stores in a file"
READ = "items read by Leaderboard.top(10) of 10,000 stores"
RECORD = "Leaderboard.record of a running average in a file"
STORES = 10_000
WHOLE, SHARDED, RANKED = "one partition", "8 partitions", "one partition, ranked"
TARGETS = (
    Target(READ, WHOLE, "at most", 10),
    Target(READ, SHARDED, "at most", 10 * 8),
)


def _boards(store: isotone.Store) -> dict[str, Leaderboard]:
    return {
        WHOLE: Leaderboard(store, score="average", best="lowest"),
        SHARDED: Leaderboard(store, "sharded", score="average", best="lowest", shards=8),
        RANKED: Leaderboard(store, "ranked", score="average", best="lowest", ranked=True),
    }


def _fill(board: Leaderboard) -> None:
    chosen = random.Random(18)
    for number in range(STORES):
        board.record(f"{number:06}", chosen.randrange(90, 400))


def _recorder(board: Leaderboard, numbers: Iterator[int]) -> Callable[[], object]:
    return lambda: board.record(f"{next(numbers) * 7919 % STORES:06}", 187)


def run(effort: Effort) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=peers.data_folder()) as folder:
        path = Path(folder) / "boards.db"
        with isotone.open(path, durability="none") as database, isotone.connect(database) as store:
            boards = _boards(store)
            boards[WHOLE].create_table()
            for board in boards.values():
                _fill(board)
        with isotone.connect(path) as store:
            boards = _boards(store)
            tops = {name: boards[name].top for name in (WHOLE, SHARDED)}
            read = {name: float(top().stats.scanned) for name, top in tops.items()}
            rows = alternately(TOP, tops, effort)
            rows += [Row(READ, name, "items", [items]) for name, items in read.items()]
            writers = {name: _recorder(board, count()) for name, board in boards.items()}
            rows += alternately(RECORD, writers, replace(effort, calls=effort.calls // 10))
    return rows
