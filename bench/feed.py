"""The fan-out of a feed by one worker, in a file that is durable: followers' entries written in a second."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import isotone
from bench import peers
from bench.measuring import Effort, Row, Target, alternately
from isotone.structures import Feed
from isotone.structures.feed_followers import FeedFollow, FeedFollower
from isotone.structures.worker_members import WorkerMember

FAN_OUT = "Feed: followers' entries written by one worker, in a file"
READ = "Feed.read of 20 posts in a file"
LARGE, SMALL = "posts to 10,000 followers", "posts to 100 followers"
TARGETS = (Target(FAN_OUT, LARGE, "at least", 5_000),)
_FOLLOWERS = {LARGE: 10_000, SMALL: 100}
_POSTS = {LARGE: 1, SMALL: 20}


def _follow(feed: Feed, author: str, number: int) -> None:
    """As `follow` writes it, but together."""
    kinds = feed.bind(FeedFollow), feed.bind(FeedFollower)
    feed.store.put_many(
        kind(feed=feed.name, author=author, reader=f"{reader:06}")
        for reader in range(number)
        for kind in kinds
    )


def _fan_out(feed: Feed, worker: WorkerMember, author: str) -> float:
    """Entries written in a second, from the moment at which the posts are there."""
    for number in range(_POSTS[author]):
        feed.post(author, f"post {number}")
    began = time.perf_counter()
    while worker.work():
        pass
    return _POSTS[author] * _FOLLOWERS[author] / (time.perf_counter() - began)


def run(effort: Effort) -> list[Row]:
    samples: dict[str, list[float]] = {LARGE: [], SMALL: []}
    with tempfile.TemporaryDirectory(dir=peers.data_folder()) as folder:
        path = Path(folder) / "feeds.db"
        with isotone.open(path, durability="none") as database, isotone.connect(database) as store:
            feed = Feed(store, backfill=0)
            feed.create_table()
            feed.worker().create_tables(store)
            for author, number in _FOLLOWERS.items():
                _follow(feed, author, number)
        with isotone.connect(path) as store:
            feed = Feed(store)
            worker = WorkerMember(feed.worker().plan, store)
            worker.coordinate()
            while worker.work():
                pass  # what was followed
            for _ in range(effort.rounds):
                for author, taken in samples.items():
                    taken.append(_fan_out(feed, worker, author))
            rows = [Row(FAN_OUT, author, "1/s", taken) for author, taken in samples.items()]
            read = {"one timeline": lambda: feed.read("000007")}
            return rows + alternately(READ, read, effort)
