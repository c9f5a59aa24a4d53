"""Sample data and chapters about structures: a sorted set, a leaderboard, a feed and a queue."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from time import time as wall_clock
from typing import Any, Final
from zoneinfo import ZoneInfo

from isotone import Attr, Entity, Key, ManualClock, Store, Table, field, raw, written
from isotone.demo.chapter import Chapter
from isotone.structures import Feed, Leaderboard, Queue, QueueEntry, ScoreEvent, SortedSet, Windows

# 17  Sorted set

trending = SortedSet.layout("trending")

_POINTS: Final = (("song:1", 1), ("song:1", 0.1), ("song:2", 0.3), ("song:3", 0.7), ("song:4", 0.9))


def fill_trending(store: Store, clock: ManualClock) -> None:
    today = SortedSet(store, "songs:today", table=trending)
    for song, points in _POINTS:
        today.incr(song, points)
    chance = random.Random(17)
    month = SortedSet(store, "songs:month", table=trending)
    month.load((f"song:{number}", chance.randrange(10, 90_000)) for number in range(1, 301))


def top_songs(store: Store, chart: str = "songs:today", songs: int = 20) -> Any:
    chart_of = SortedSet(store, chart, table=trending)
    return chart_of.zrevrange(0, songs - 1, withscores=True)


def top_songs_by_hand(client: Any, chart: str = "songs:today", songs: int = 20) -> Any:
    # And: increments without lost updates, exact decimals, ranks, ties, expiry, and Redis's other 30 commands.
    return client.query(
        TableName="trending",
        IndexName="by_score",
        KeyConditionExpression="PK = :chart",
        ExpressionAttributeValues={":chart": {"S": f"SORTED_SET#{chart}#000"}},
        ScanIndexForward=False,
        Limit=songs,
    )["Items"]


def like_a_song(store: Store) -> Any:
    SortedSet(store, "songs:today", table=trending).incr("song:2", 0.5)


# 18  Speed of service

cars = Table("drive-through")
boards = Leaderboard.layout("leaderboards")

NEW_YORK: Final = ZoneInfo("America/New_York")
QUARTER: Final = datetime(2022, 8, 13, 0, 30, tzinfo=NEW_YORK)


class Car(Entity, table=cars):
    """A served car: seconds at the menus, in the queues after them, and at the window."""

    store_id: Attr[str] = field()
    at: Attr[datetime] = field()
    lane: Attr[str] = field()
    menu1: Attr[int] = field()
    menu2: Attr[int] = field()
    qmenu1: Attr[int] = field()
    qmenu2: Attr[int] = field()
    window: Attr[int] = field()

    primary = Key(raw(store_id)).sort(written(at, "%Y-%m-%d %H:%M:%S"), raw(lane))

    @property
    def seconds(self) -> int:
        return self.menu1 + self.menu2 + self.qmenu1 + self.qmenu2 + self.window


def _served(store_id: str, begin: datetime, end: datetime, chance: random.Random) -> list[Car]:
    """A car in each lane every few minutes; some stores are faster than others."""
    speed = 20 + int(store_id) * 7 % 11
    found = []
    for lane in ("LANE1", "LANE2"):
        at = begin
        while at < end:
            menu1, menu2, qmenu1, qmenu2, window = (
                chance.randint(speed, speed + 20) for _ in range(5)
            )
            found.append(
                Car(
                    store_id=store_id,
                    at=at,
                    lane=lane,
                    menu1=menu1,
                    menu2=menu2,
                    qmenu1=qmenu1,
                    qmenu2=qmenu2,
                    window=window,
                )
            )
            at += timedelta(seconds=chance.randint(180, 420))
    return found


def fill_cars(store: Store, clock: ManualClock) -> None:
    chance = random.Random(18)
    begin = QUARTER.astimezone(UTC)
    day = _served("000001", begin - timedelta(hours=12), begin + timedelta(hours=12), chance)
    quarter = [
        car
        for number in range(2, 25)
        for car in _served(f"{number:06}", begin, begin + timedelta(minutes=15), chance)
    ]
    store.put_many(day + quarter)


def fill_boards(store: Store, clock: ManualClock) -> None:
    quarter = Windows("quarter-hour", zone=NEW_YORK).at(QUARTER)
    served = store.all(Car.primary.scan())
    speed_of_service(store).record_many(
        ScoreEvent(car.store_id, car.seconds, 1, car.at)
        for car in served
        if quarter.start <= car.at < quarter.end
    )


def speed_of_service(store: Store) -> Leaderboard:
    return Leaderboard(
        store,
        "speed of service",
        score="average",
        best="lowest",
        window="quarter-hour",
        zone=NEW_YORK,
        table=boards,
    )


def fastest(store: Store, stores: int = 10) -> Any:
    return speed_of_service(store).top(stores, at=QUARTER)


def fastest_by_hand(client: Any, stores: int = 10) -> Any:
    # The index key is padded: quarter of an hour, then the average in six digits.
    # And: averages that are updated by many cars at once, ties, ranks, shards, a new board each quarter.
    return client.query(
        TableName="leaderboards",
        IndexName="GSI1",
        KeyConditionExpression="GSI1PK = :board AND begins_with(GSI1SK, :quarter)",
        ExpressionAttributeValues={
            ":board": {"S": "LEADERBOARD#speed of service"},
            ":quarter": {"S": "2022-08-13#2#"},
        },
        Limit=stores,
    )["Items"]


def a_business_day(
    store: Store,
    store_id: str = "000001",
    start: datetime = datetime(2022, 8, 12, 20, 0, tzinfo=UTC),
    end: datetime = datetime(2022, 8, 12, 20, 15, tzinfo=UTC),
) -> Any:
    return store.page(
        Car.primary.where(Car.store_id == store_id, Car.at >= start, Car.at < end),
        size=500,
    )


def a_business_day_by_hand(
    client: Any,
    store_id: str = "000001",
    start: datetime = datetime(2022, 8, 12, 20, 0, tzinfo=UTC),
    end: datetime = datetime(2022, 8, 12, 20, 15, tzinfo=UTC),
) -> Any:
    return client.query(
        TableName="drive-through",
        KeyConditionExpression="PK = :store AND SK BETWEEN :start AND :end",
        ExpressionAttributeValues={
            ":store": {"S": store_id},
            ":start": {"S": f"{start:%Y-%m-%d %H:%M:%S}"},
            ":end": {"S": f"{end:%Y-%m-%d %H:%M:%S}"},  # "…#LANE1" sorts after it
        },
    )["Items"]


# 19  Feed

feeds = Feed.layout("feeds")
timelines = Table("timelines")

_POSTS: Final = (
    ("ann", "Good morning"),
    ("eve", "The train is late"),
    ("ann", "Tea, then work"),
    ("cem", "Has anybody seen my bicycle?"),
    ("eve", "It is here"),
    ("ann", "Lunch?"),
    ("cem", "Found it. It was where I had left it."),
    ("eve", "At work"),
)


def fill_feeds(store: Store, clock: ManualClock) -> None:
    feed = Feed(store, "site", table=feeds, timelines=timelines)
    feed.create_table()
    worker = feed.worker()
    worker.create_tables(store)
    for author in ("ann", "eve", "cem"):
        feed.follow("bob", author)
    for number in range(40):
        author, content = _POSTS[number % len(_POSTS)]
        clock.advance(timedelta(minutes=13))
        feed.post(author, content if number >= 32 else f"{content} ({number // 8 + 1})")
    worker.run(store, until_idle=True)


def nothing_more(store: Store, clock: ManualClock) -> None:
    """Do nothing: filling the feed also fills the timelines."""


def newest_posts(store: Store, reader: str = "bob", posts: int = 6) -> Any:
    return Feed(store, "site", table=feeds, timelines=timelines).read(reader, posts)


def newest_posts_by_hand(client: Any, reader: str = "bob", posts: int = 6) -> Any:
    # And: a bus, workers with leases that deliver exactly once, channels for the very popular, edits, cursors.
    entries = client.query(
        TableName="timelines",
        KeyConditionExpression="PK = :timeline",
        ExpressionAttributeValues={":timeline": {"S": f"FEED#site#READER#{reader}"}},
        Limit=posts,
    )["Items"]
    return [{"PK": each["PK"], "SK": each["SK"]} for each in entries]  # … and read the posts


def post_as_eve(store: Store) -> Any:
    feed = Feed(store, "site", table=feeds, timelines=timelines)
    feed.post("eve", "Posted from the tour")
    feed.worker().run(store, until_idle=True)


# 20  Queue

queues = Queue.layout("queues")


def fill_queues(store: Store, clock: ManualClock) -> None:
    queue = Queue(store, "orders", hold=3_600, attempts=2, retry_after=lambda _: 0, table=queues)
    # claims and delays need the current time
    clock.advance(max(0.0, wall_clock() - 600 - clock.now()))
    for number in range(1, 25):
        clock.advance(timedelta(seconds=20))
        queue.put({"order": number, "product": ("tea", "lamp", "cup")[number % 3]})
    for message in queue.claim(2):  # fails twice, so these become dead letters
        queue.give_back(message, reason="the card is refused")
    for message in queue.claim(2):
        queue.bury(message, "the card is refused")
    queue.claim(3)
    for number in (25, 26):
        queue.put({"order": number, "product": "desk, from Monday"}, delay=86_400)


def waiting(store: Store, queue: str = "orders", first: int = 8) -> Any:
    entries = Queue(store, queue, table=queues).bind(QueueEntry)
    here = QueueEntry.queue == queue, QueueEntry.state == "READY", QueueEntry.shard == 0
    return store.page(entries.ready.where(*here), size=first)


def waiting_by_hand(client: Any, queue: str = "orders", first: int = 8) -> Any:
    # And: claims that no two workers get, time-outs, retries, dead letters, groups in order, priorities.
    return client.query(
        TableName="queues",
        IndexName="queue",
        KeyConditionExpression="QPK = :queue",
        ExpressionAttributeValues={":queue": {"S": f"QUEUE#{queue}#READY#000"}},
        Limit=first,
    )["Items"]


def claim_a_message(store: Store) -> Any:
    Queue(store, "orders", hold=60, table=queues).claim()


CHAPTERS: Final = (
    Chapter(
        "sorted-set",
        17,
        "Structures",
        "Trending songs, without drift",
        "Plays and likes add points from many processes at once, and the page shows the top twenty. Each increment is one "
        "atomic write of an exact decimal; an index of numbers keeps the order. The commands are Redis's, all of them.",
        ("trending",),
        top_songs,
        top_songs_by_hand,
        columns=("song", "points"),
        act=like_a_song,
        act_title="Add 0.5 to song:2",
    ),
    Chapter(
        "time-ranges",
        18,
        "Structures",
        "Any fifteen minutes of a store",
        "Every car at a drive-through is a row: the store groups, the time orders, and lanes share the clock. A quarter of "
        "an hour is one range, and so is a business day from 4 am to 4 am. Nothing is aggregated in advance.",
        ("cars", "Car"),
        a_business_day,
        a_business_day_by_hand,
    ),
    Chapter(
        "leaderboard",
        18,
        "Structures",
        "The ten fastest stores, in ten reads",
        "Which stores serve fastest in this quarter of an hour? Each store has one item, and its index key holds the "
        "quarter and the padded average, so the ten fastest are the first ten entries. Ties are kept, and no store "
        "overwrites another.",
        ("boards", "QUARTER", "speed_of_service"),
        fastest,
        fastest_by_hand,
        columns=("rank", "member", "score", "count"),
    ),
    Chapter(
        "feed",
        19,
        "Structures",
        "A timeline, newest first",
        "A reader's timeline counts ticks down to the end of time, so that the newest post sorts first. Authors see their "
        "posts at once; a worker delivers them to followers, each exactly once, however often it is killed. A cursor "
        "never repeats or skips.",
        ("feeds", "timelines"),
        newest_posts,
        newest_posts_by_hand,
        columns=("at", "author", "content"),
        act=post_as_eve,
        act_title="Post as Eve",
    ),
    Chapter(
        "queue",
        20,
        "Structures",
        "A queue with nothing lost",
        "Orders wait until a worker claims them, and come back if it dies. The index is ordered by when each is due: a "
        "claim moves the message into the future, a failure puts it back, and too many make a dead letter. Claim one, and "
        "watch it move.",
        ("queues",),
        waiting,
        waiting_by_hand,
        act=claim_a_message,
        act_title="Claim a message",
    ),
)

SAMPLES: Final = (
    (trending, fill_trending),
    (cars, fill_cars),
    (boards, fill_boards),
    (feeds, fill_feeds),
    (timelines, nothing_more),
    (queues, fill_queues),
)
