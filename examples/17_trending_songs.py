"""The songs of the day, by the points that listeners give them.

Show the trending songs. Every play, like and share adds points to a song's score of the day, from many processes
at once. The page shows the twenty songs with the most points, with their ranks. The set has an item for each
song, and a local index orders them by score. An increment is one atomic write of an exact decimal; the top
twenty are the last twenty entries of the index. The commands are Redis's.

    python examples/17_trending_songs.py [ADDRESS]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

import isotone
from isotone import Store
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.structures import SortedSet

sets = SortedSet.layout("trending")

POINTS = [("song:1", 1), ("song:1", 0.1), ("song:2", 0.3), ("song:3", 0.7), ("song:4", 0.9)]


def show(found: Iterable[tuple[str, Decimal]]) -> None:
    for place, (song, points) in enumerate(found, start=1):
        print(f"{place:>2}  {song}  {points}")


# What many users would do: isotone simulate 17_trending_songs
load = Workload("trending songs", tables=[sets])
songs = load.population("song", 1_000_000, popularity=1.0)
listeners = load.population("listener", 2_000_000, activity=0.5)


@load.prepare
def begin(store: Store) -> SortedSet:
    return SortedSet(store, "trending:20130419", table=sets)


@songs.starts_with
def publish(call: WorkloadCall) -> None:
    call.world.zadd({call.member.id: call.chance.randrange(10**6)})


@load.action(by=listeners, per_day=20)
def play(call: WorkloadCall) -> None:
    call.world.incr(call.draw(songs).id, 1)


@load.action(by=listeners, per_day=2)
def look(call: WorkloadCall) -> None:
    call.world.zrevrange(0, 19, withscores=True)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        friday = SortedSet(store, "trending:20130419", table=sets)
        friday.create_table()
        friday.delete()  # from an earlier run
        for song, points in POINTS:
            friday.incr(song, points)

        print("The items of the day, by the index of scores")
        (query,) = friday.queries()
        isotone.show(store.all(query), by=friday.entries.by_score)

        print("\nThe top twenty")
        show(friday.zrevrange(0, 19, withscores=True))

        print("\nA hundred increments of a tenth are ten")
        for _ in range(100):
            friday.zincrby(0.1, "song:5")
        print(f"song:5 has {friday.zscore('song:5')} points")
        print(f"song:6 has {friday.zscore('song:6')}")

        print("\nRanks, by counting the songs above: the first is 0")
        for song in ("song:5", "song:1", "song:2", "song:6"):
            print(f"{song}: {friday.zrevrank(song)}")

        print("\nThe same from a set that keeps ranks, which costs more to write and little to ask")
        ranked = SortedSet(store, "trending:20130419:ranked", table=sets, ranked=True)
        ranked.zunionstore([friday])
        for song in ("song:5", "song:1", "song:2", "song:6"):
            print(f"{song}: {ranked.zrevrank(song)}")
        print(f"{ranked.zcount('(0.3', 1)} songs have more than 0.3 points, and at most 1")

        print("\nSpread over four partitions, for more writes than one takes")
        spread = SortedSet(store, "trending:20130419:spread", table=sets, shards=4)
        spread.delete()
        for song, points in POINTS:
            spread.incr(song, points)
        show(spread.zrevrange(0, 19, withscores=True))

        print("\nOnly better scores count, and only new songs are added")
        print(f"greater: {friday.zadd({'song:2': 0.2, 'song:3': 0.8}, gt=True, ch=True)} changed")
        print(f"new: {friday.zadd({'song:2': 9, 'song:7': 0.2}, nx=True)} added")
        show(friday.zrange(0, 2, withscores=True))

        print("\nThe weekend: Saturday's points count twice")
        saturday = SortedSet(store, "trending:20130420", table=sets)
        saturday.delete()
        saturday.zadd({"song:2": 0.5, "song:8": 0.25})
        weekend = SortedSet(store, "trending:weekend", table=sets)
        print(f"{weekend.zunionstore({friday: 1, saturday: 2})} songs")
        show(weekend.zrevrange(0, 2, withscores=True))

        print("\nBetween two points, page by page")
        print(", ".join(friday.zrangebyscore("(0.2", "+inf", 0, 2)))
        print(", ".join(friday.zrangebyscore("(0.2", "+inf", 2, 2)))

        print("\nA set of the day is gone when its time is over")
        over = datetime(2013, 4, 21, tzinfo=UTC)
        gone = SortedSet(store, "trending:20130418", table=sets, expires=over)
        gone.incr("song:1", 1)
        print(f"{gone.zcard()} songs, ttl {gone.ttl()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
