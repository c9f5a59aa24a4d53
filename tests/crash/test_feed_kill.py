"""SIGKILL of workers in the middle of a fan-out: every follower gets every post exactly once, in order.

Twenty thousand deliveries; `ISOTONE_KILLS=50 pytest tests/crash/test_feed_kill.py` for as many kills as one
likes.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import isotone
from isotone import Store
from isotone.structures import Feed
from isotone.structures.feed_followers import FeedFollow, FeedFollower

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

KILLS = int(os.environ.get("ISOTONE_KILLS", "5"))
DELIVERIES = 20_000 if "ISOTONE_KILLS" in os.environ else 4_000
AUTHORS, POSTS = 4, 2  # each author's posts come to all of their followers
FOLLOWERS = DELIVERIES // (AUTHORS * POSTS)
WORKERS = 3
SITE = Path(__file__).parents[1] / "structures"
COMMAND = [sys.executable, "-m", "isotone", "worker", "feed_site:fan_out"]
SECONDS = 60


@contextlib.contextmanager
def workers(file: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Some workers that share the work."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        running += (started(file) for _ in range(WORKERS))
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


def started(file: Path) -> subprocess.Popen[bytes]:
    command = [*COMMAND, str(file), "--lease", "0.5", "--quiet"]
    environment = {**os.environ, "FEED_SITE_LOG": str(log_of(file))}
    return subprocess.Popen(command, cwd=SITE, stderr=subprocess.DEVNULL, env=environment)


def log_of(file: Path) -> Path:
    """Where workers note which process wrote entries, from when to when."""
    return file.with_suffix(".log")


def at_once(log: Path) -> int:
    """How many processes wrote entries at one moment, at most."""
    lines = [line.split() for line in log.read_text().splitlines()]
    spans = [(pid, float(began), float(ended)) for pid, began, ended in lines]
    counts = (
        len({pid for pid, began, ended in spans if began <= moment < ended})
        for _, moment, _ in spans
    )
    return max(counts, default=0)


def prepare(store: Store, authors: int = AUTHORS, followers: int = FOLLOWERS) -> list[str]:
    """Authors with followers, and posts that nobody has delivered yet; the posts' ids, the newest first."""
    feed = Feed(store, "site", backfill=0)
    feed.create_table()
    feed.worker("fan-out").create_tables(store)
    for author in map(str, range(authors)):
        # As `follow` writes them, but together.
        store.put_many(
            kind(feed="site", author=author, reader=f"{reader:04}")
            for reader in range(followers)
            for kind in (feed.bind(FeedFollow), feed.bind(FeedFollower))
        )
    posted = [
        feed.post(str(author), f"{number} of {author}").id
        for number in range(POSTS)
        for author in range(authors)
    ]
    return posted[::-1]


def delivered(store: Store, feed: Feed) -> int:
    return store.count(feed.entries.primary.scan()) - AUTHORS * POSTS  # without the authors' own


def reach(store: Store, feed: Feed, number: int) -> None:
    """Wait until so many deliveries are made."""
    until = time.monotonic() + SECONDS
    while (done := delivered(store, feed)) < number:
        assert time.monotonic() < until, f"the workers are stuck at {done} of {DELIVERIES}"
        time.sleep(0.05)  # counting reads all entries


def test_every_follower_has_every_post_once_and_in_order(tmp_path: Path) -> None:
    chance, file = random.Random(4), tmp_path / "site.db"
    with isotone.connect(file) as store, contextlib.ExitStack() as stack:
        posted = prepare(store)
        running = stack.enter_context(workers(file))
        feed = Feed(store, "site")
        for kill in range(1, KILLS + 1):
            reach(store, feed, kill * DELIVERIES // (KILLS + 2))
            time.sleep(chance.uniform(0, 0.05))
            victim = running.pop(chance.randrange(len(running)))
            victim.kill()
            victim.wait()
            running.append(started(file))
        assert delivered(store, feed) < DELIVERIES, "it was over before the last kill"
        reach(store, feed, DELIVERIES)
        for reader in range(FOLLOWERS):
            page = feed.read(f"{reader:04}", 100)
            assert [post.id for post in page] == posted
        entries = store.all(feed.entries.primary.scan())
        times = Counter(
            (each.owner, each.tick, each.author) for each in entries if each.of == "READER"
        )
        assert set(times.values()) == {1}
        assert len(times) == DELIVERIES + AUTHORS * POSTS
        assert feed.worker("fan-out").dead_letters(store) == []


def test_workers_share_the_work(tmp_path: Path) -> None:
    file = tmp_path / "site.db"
    log = log_of(file)
    log.touch()
    with isotone.connect(file) as store, contextlib.ExitStack() as stack:
        prepare(store, authors=16, followers=50)  # in all shards
        feed = Feed(store, "site")
        stack.enter_context(workers(file))
        until = time.monotonic() + SECONDS
        while at_once(log) < 2:
            assert time.monotonic() < until, "one does it all"
            for author in range(16):
                feed.post(str(author), "more")
            time.sleep(0.5)
