"""What the processes of some tests run. It imports the library alone, so that they start fast."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

from tests.effort import LONG

import isotone
from isotone import ManualClock
from isotone.structures import Feed, Leaderboard, Point, TimeSeries

EVENTS = 40 if LONG else 20  # of each process


def record(path: str, seed: int, ranked: bool) -> None:
    """Record events, which the seed determines."""
    chance = random.Random(seed)
    with isotone.connect(path) as store:
        board = Leaderboard(store, score="average", shards=2, ranked=ranked)
        for _ in range(EVENTS):
            board.record(f"{chance.randrange(3)}", chance.randrange(100))


def add_points(path: str, start: datetime) -> None:
    """Add 2,000 points, one for each second."""
    with isotone.connect(path) as store:
        series = TimeSeries(store, "readings")
        for first in range(0, 2000, 20):
            batch = range(first, first + 20)
            series.add_many("s", [Point(each, start + timedelta(seconds=each)) for each in batch])


def post(path: Path) -> list[int]:
    """The ticks of 15 posts, all at one moment."""
    with isotone.connect(path, clock=ManualClock(1_800_000_000)) as store:
        return [Feed(store).post("ann", "hello").tick for _ in range(15)]


def post_with_tokens(path: Path) -> list[int]:
    """The ticks of 15 posts, whose tokens are the same in each process."""
    with isotone.connect(path) as store:
        return [Feed(store).post("ann", "hello", token=str(number)).tick for number in range(15)]
