"""What `isotone worker feed_site:fan_out` runs in the test of killed workers: as slow as a network, with a log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from isotone import Store
from isotone.structures import Feed, FeedPost, Worker
from isotone.structures.feed.entities import FeedEntry
from isotone.structures.feed.fanout import FanOut

entries_of = FanOut._entries_of


def slowly(self: FanOut, post: FeedPost, readers: Sequence[str]) -> Iterator[FeedEntry]:
    began = time.monotonic()
    for entry in entries_of(self, post, readers):
        time.sleep(0.001)
        yield entry
    with Path(os.environ["FEED_SITE_LOG"]).open("a") as log:
        log.write(f"{os.getpid()} {began} {time.monotonic()}\n")


def fan_out(store: Store) -> Worker:
    FanOut._entries_of = slowly  # type: ignore[method-assign]
    return Feed(store, "site").worker("fan-out")
