"""SIGKILL of workers in the middle of a fan-out: every follower gets every post exactly once, in order.

`ISOTONE_KILLS=50 pytest tests/crash/test_feed_kill.py` for as many kills as one likes: authors go on posting until
the last of them.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import programs

import isotone
from isotone import Store
from isotone.structures import Feed
from isotone.structures.feed_followers import FeedFollow, FeedFollower

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

Process = programs.Command | subprocess.Popen[str]

KILLS = int(os.environ.get("ISOTONE_KILLS", "5"))
AUTHORS, POSTS = 4, 2  # each author's posts come to all of their followers
FOLLOWERS = 500
DELIVERIES_PER_KILL = 200
WORKERS = 3
SITE = Path(__file__).parents[1] / "structures"
SECONDS = 60


@contextlib.contextmanager
def workers(file: Path) -> Iterator[list[Process]]:
    """Some workers that share the work."""
    running: list[Process] = []
    try:
        running += (started(file) for _ in range(WORKERS))
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


def started(file: Path) -> Process:
    words = ("worker", "feed_site:fan_out", file, "--lease", "0.5", "--quiet")
    environment = {**os.environ, "FEED_SITE_LOG": str(log_of(file))}
    quiet = subprocess.DEVNULL
    return programs.isotone(*words, cwd=SITE, env=environment, stdout=quiet, stderr=quiet)


def log_of(file: Path) -> Path:
    """Where workers note which process wrote entries, from when to when."""
    return file.with_suffix(".log")


def at_once(log: Path) -> int:
    """How many processes wrote entries within one short time, at most; a lease passes on no faster."""
    lines = [line.split() for line in log.read_text().splitlines()]
    spans = [(pid, float(began), float(ended)) for pid, began, ended in lines]
    counts = (
        len({pid for pid, began, ended in spans if began - 0.2 <= moment < ended + 0.2})
        for _, moment, _ in spans
    )
    return max(counts, default=0)


@contextlib.contextmanager
def store_of(file: Path) -> Iterator[Store]:
    """A store whose streams have a shard for each worker."""
    with isotone.open(file, stream_shards=4) as database, isotone.connect(database) as store:
        yield store


def prepare(store: Store, authors: int = AUTHORS, followers: int = FOLLOWERS) -> list[str]:
    """Authors with followers, and posts that nobody has delivered yet; the posts' ids, the oldest first."""
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
    return [each for _ in range(POSTS) for each in post(feed, authors)]


def post(feed: Feed, authors: int = AUTHORS) -> list[str]:
    """A post by each author; their ids, the oldest first."""
    return [feed.post(str(author), f"a post of {author}").id for author in range(authors)]


def delivered(store: Store, feed: Feed, posts: int) -> int:
    return store.count(feed.entries.primary.scan()) - posts  # without the authors' own


def reach(store: Store, feed: Feed, posts: int, number: int) -> int:
    """Wait until so many deliveries are made; returns how many are."""
    until = time.monotonic() + SECONDS
    while (done := delivered(store, feed, posts)) < number:
        assert time.monotonic() < until, f"the workers are stuck at {done} of {number}"
        time.sleep(0.05)  # counting reads all entries
    return done


def test_every_follower_has_every_post_once_and_in_order(tmp_path: Path) -> None:
    chance, file = random.Random(4), tmp_path / "site.db"
    with store_of(file) as store, contextlib.ExitStack() as stack:
        posted = prepare(store)
        running = stack.enter_context(workers(file))
        feed = Feed(store, "site")
        done = 0
        for _ in range(KILLS):
            done = reach(store, feed, len(posted), done + DELIVERIES_PER_KILL)
            if done + AUTHORS * FOLLOWERS > len(posted) * FOLLOWERS:
                posted += post(feed)  # so that no kill comes when all is done
            time.sleep(chance.uniform(0, 0.05))
            victim = running.pop(chance.randrange(len(running)))
            victim.kill()
            victim.wait()
            running.append(started(file))
        reach(store, feed, len(posted), len(posted) * FOLLOWERS)
        for reader in range(FOLLOWERS):
            page = feed.read(f"{reader:04}", len(posted) + 1)
            assert [post.id for post in page] == posted[::-1]
        entries = store.all(feed.entries.primary.scan())
        times = Counter(
            (each.owner, each.tick, each.author) for each in entries if each.of == "READER"
        )
        assert set(times.values()) == {1}
        assert len(times) == len(posted) * (FOLLOWERS + 1)
        assert feed.worker("fan-out").dead_letters(store) == []


def test_workers_share_the_work(tmp_path: Path) -> None:
    file = tmp_path / "site.db"
    log = log_of(file)
    log.touch()
    with store_of(file) as store, contextlib.ExitStack() as stack:
        prepare(store, authors=16, followers=50)  # in all shards
        feed = Feed(store, "site")
        stack.enter_context(workers(file))
        until = time.monotonic() + SECONDS
        while at_once(log) < 2:
            assert time.monotonic() < until, "one does it all"
            for author in range(16):
                feed.post(str(author), "more")
            time.sleep(0.5)
