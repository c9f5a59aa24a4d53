"""What `isotone worker feed_site:fan_out` runs in the test of killed workers: as slow as a network."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from isotone import Store
from isotone.structures import Feed, FeedPost, Worker
from isotone.structures.feed.entities import FeedEntry
from isotone.structures.feed.fanout import FanOut

entries_of = FanOut._entries_of


def slowly(self: FanOut, post: FeedPost, readers: Sequence[str]) -> Iterator[FeedEntry]:
    for entry in entries_of(self, post, readers):
        time.sleep(0.001)
        yield entry


def fan_out(store: Store) -> Worker:
    FanOut._entries_of = slowly  # type: ignore[method-assign]
    return Feed(store, "site").worker("fan-out")
