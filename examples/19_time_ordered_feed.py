"""The posts of the authors that a reader follows, the newest first, delivered by a worker.

Show a timeline. The key of each entry is the reader and a tick that counts down, so the newest sorts first.
The author sees a post at once; a worker, usually another process, delivers it to all followers. Posts of authors
with very many followers are merged when a timeline is read.

    python examples/19_time_ordered_feed.py [ADDRESS]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime

import isotone
from isotone import ManualClock, Store
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.structures import Feed, FeedPost

feeds = Feed.layout("content-site")


def fan_out(feed: Feed) -> None:
    """The work of `isotone worker module:fan_out ADDRESS`, until nothing is left."""
    feed.worker().run(feed.store, until_idle=True)


def show(posts: Iterable[FeedPost]) -> None:
    for post in posts:
        print(f"{post.at:%H:%M:%S}  {post.author:<4}  {post.content}")


def begin(store: Store) -> Feed:
    """A feed without posts, and its followers."""
    feed = Feed(store, "site", threshold=3, table=feeds)
    worker = feed.worker()
    worker.create_tables(store)
    store.drop_tables(feed.table, feed.timelines, worker.leases)  # from an earlier run
    feed.create_table()
    worker.create_tables(store)
    for author in ("ann", "eve"):
        feed.follow("bob", author)
    return feed


# What many users would do: isotone simulate 19_time_ordered_feed
load = Workload("content site")
users = load.population("user", 1_000_000, activity=0.5)


@load.prepare
def launch(store: Store) -> Feed:
    return begin(store)


@users.starts_with
def follow(call: WorkloadCall) -> None:
    for _ in range(3):
        author = call.draw(users)
        if author != call.member:
            call.world.follow(call.member.id, author.id)


@load.action(by=users, per_day=1)
def post(call: WorkloadCall) -> None:
    call.world.post(call.member.id, "Hello")
    fan_out(call.world)


@load.action(by=users, per_day=20)
def read(call: WorkloadCall) -> None:
    call.world.read(call.member.id)


def main(address: str = ":memory:") -> None:
    clock = ManualClock(datetime(2015, 6, 1, 9, tzinfo=UTC))
    with isotone.connect(address, clock=clock, cursor_secret=b"of an example only") as store:
        feed = begin(store)
        first = feed.post("ann", "Good morning")
        feed.post("ann", "… in the same tick")
        feed.post("eve", "The train is late")

        print("Ann reads her own posts at once")
        show(feed.read("ann"))
        print("\nBob, before the worker was there")
        print(f"{len(feed.read('bob'))} posts")

        fan_out(feed)
        print("\nBob, after it")
        show(feed.read("bob"))
        print("\nHis timeline, in the order of its keys")
        entries = feed.entries
        mine = entries.primary.where(
            entries.feed == "site", entries.of == "READER", entries.owner == "bob"
        )
        isotone.show(store.all(mine), by=entries.primary)

        print("\nTwo at a time, while new posts arrive")
        page = feed.read("bob", 2)
        show(page)
        clock.advance(60)
        feed.post("eve", "It is here")
        fan_out(feed)
        print("and after the cursor:")
        show(feed.read("bob", 2, page.cursor))
        print("and what is new since:")
        show(feed.read_newer("bob", page.newest))

        print("\nAn edit and a deletion are seen everywhere at once")
        feed.edit(first, "Good morning, all")
        feed.delete(feed.read("eve")[0])
        show(feed.read("bob"))

        print("\nAnn has many followers: her posts are read from her channel")
        for number in range(1, 6):
            feed.follow(f"fan{number}", "ann")
        clock.advance(60)
        loud = feed.post("ann", "To all of you")
        print(f"{feed.follower_count('ann')} followers, {loud.spread!r}")
        clock.advance(60)
        feed.post("eve", "At work")
        fan_out(feed)
        show(feed.read("bob"))

        print("\nBob does not follow her any more")
        feed.unfollow("bob", "ann")
        show(feed.read("bob"))


if __name__ == "__main__":
    main(*sys.argv[1:])
